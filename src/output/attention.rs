//! Attention records for people (cli-contract.md section 10).

use super::Printer;
use crate::domain::attention::Record;
use crate::domain::printable::scrubbed;
use crate::domain::record::text;

/// Prints a record as two lines: what it is, and the question.
pub fn print(printer: &mut Printer<'_>, record: &Record) {
    let part = |name: &str| scrubbed(text(&record.members, name).unwrap_or_default()).into_owned();
    printer.line(&format!("{} {} [{}]", part("priority_class"), part("id"), part("status")));
    printer.line(&format!("  {}", part("question")));
}
