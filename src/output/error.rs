//! The one renderer of errors: the contract's line first, then the next steps.

use super::Printer;
use crate::error::CommandError;

/// Prints an error on stderr.
pub fn print(printer: &mut Printer<'_>, error: &CommandError) {
    printer.message(&error.message);
    for hint in &error.hints {
        printer.message(&format!("hint: {hint}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_comes_first_and_every_part_is_one_line() {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let error = CommandError::operational("state\u{1b} of\nx").with_hint("try again");
        print(&mut Printer::new(&mut stdout, &mut stderr, false), &error);
        assert_eq!(String::from_utf8(stderr).unwrap(), "state\\u{1b} of\\nx\nhint: try again\n");
        assert!(stdout.is_empty());
    }
}
