//! The answer of a command that wrote a record.

use super::{Printer, json};
use crate::report::Written;

impl Written {
    /// Prints the report as JSON, or `line` in its place. Returns whether it was taken.
    pub fn print(&self, printer: &mut Printer<'_>, as_json: bool, line: &str) -> bool {
        if as_json { json::print(printer, self) } else { printer.line(line) }
    }
}
