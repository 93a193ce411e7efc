//! Writing to the streams of a command.

use std::io::{self, Write};

use crate::domain::printable::printable;

/// The two streams of a command. A reader that went away is no error: what was to be done is done.
pub struct Printer<'world> {
    stdout: &'world mut (dyn Write + Send),
    stderr: &'world mut (dyn Write + Send),
    colour: bool,
    failure: Option<io::Error>,
}

impl<'world> Printer<'world> {
    /// Returns a printer on two streams.
    pub fn new(stdout: &'world mut (dyn Write + Send), stderr: &'world mut (dyn Write + Send), colour: bool) -> Self {
        Self { stdout, stderr, colour, failure: None }
    }

    /// Tells whether stdout may carry colours.
    #[must_use]
    pub fn colour(&self) -> bool {
        self.colour
    }

    /// Writes text to stdout as it is. Returns whether it was taken.
    pub fn data(&mut self, text: &str) -> bool {
        let result = self.stdout.write_all(text.as_bytes()).and_then(|()| self.stdout.flush());
        let taken = result.is_ok();
        if let Err(error) = result
            && error.kind() != io::ErrorKind::BrokenPipe
            && self.failure.is_none()
        {
            self.failure = Some(error);
        }
        taken
    }

    /// Writes one line to stdout, control characters spelled out. Returns whether it was taken.
    pub fn line(&mut self, text: &str) -> bool {
        self.data(&format!("{}\n", printable(text)))
    }

    /// Writes one line to stderr, control characters spelled out. Returns whether it was taken.
    pub fn message(&mut self, text: &str) -> bool {
        let line = format!("{}\n", printable(text));
        self.stderr.write_all(line.as_bytes()).and_then(|()| self.stderr.flush()).is_ok()
    }

    /// Writes one line of warning to stderr.
    pub fn warning(&mut self, text: &str) -> bool {
        let text = text.strip_prefix("warning: ").unwrap_or(text);
        self.message(&format!("warning: {text}"))
    }

    /// Returns why stdout did not take the data, other than for want of a reader.
    #[must_use]
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream that fails.
    struct Failing(io::ErrorKind);
    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn failure_of(kind: io::ErrorKind) -> (bool, Option<io::ErrorKind>) {
        let (mut stdout, mut stderr) = (Failing(kind), Vec::new());
        let mut printer = Printer::new(&mut stdout, &mut stderr, false);
        let taken = printer.line("x");
        (taken, printer.take_failure().map(|error| error.kind()))
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure_but_the_line_was_not_taken() {
        assert_eq!(failure_of(io::ErrorKind::BrokenPipe), (false, None));
        assert_eq!(failure_of(io::ErrorKind::StorageFull), (false, Some(io::ErrorKind::StorageFull)));
    }

    #[test]
    fn a_warning_is_marked_once() {
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        Printer::new(&mut stdout, &mut stderr, false).warning("warning: a\nb");
        assert_eq!(String::from_utf8(stderr).unwrap(), "warning: a\\nb\n");
    }
}
