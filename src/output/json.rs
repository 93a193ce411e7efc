//! JSON as the contract prints it: two spaces of indentation and a newline at the end.

use serde::Serialize;

use super::Printer;

/// Prints a value on stdout. Returns whether it was taken.
pub fn print(printer: &mut Printer<'_>, value: &impl Serialize) -> bool {
    let text = serde_json::to_string_pretty(value).expect("reports have text keys and no failing parts");
    printer.data(&format!("{text}\n"))
}
