//! How a command ended: exit code, stdout and stderr, always looked at together.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;

use serde_json::Value;

/// A command that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The exit code; a process ended by signal N gives 128 + N.
    pub code: i32,
    /// Its data.
    pub stdout: String,
    /// Everything else it said.
    pub stderr: String,
}

impl Ran {
    /// Returns how `output` ended, with `root` spelled `$TEST_ENV`.
    pub fn of(output: &Output, root: &str) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).replace(root, "$TEST_ENV");
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or_default());
        Self { code, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }

    /// Panics unless the command exited with `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "wrong exit code\n{self}");
        self
    }

    /// Panics unless the command succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.expect_code(0)
    }

    /// Panics unless stderr contains `text`.
    #[track_caller]
    pub fn expect_stderr(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "stderr should say {text:?}\n{self}");
        self
    }

    /// Panics unless this is an error as the contract wants it: `code`, an empty stdout, something on stderr.
    #[track_caller]
    pub fn expect_error(self, code: i32) -> Self {
        let ran = self.expect_code(code);
        assert_eq!(ran.stdout, "", "an error leaves stdout empty\n{ran}");
        assert!(!ran.stderr.trim().is_empty(), "an error says what and why\n{ran}");
        ran
    }

    /// Returns stdout as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("stdout is no JSON: {error}\n{self}"))
    }
}

impl fmt::Display for Ran {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "exit code: {}\n----- stdout -----\n{}----- stderr -----\n{}",
            self.code, self.stdout, self.stderr
        )
    }
}
