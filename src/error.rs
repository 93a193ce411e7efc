//! What every command fails with: a kind, which is the exit code, one line, and the next steps.

use std::io;

use crate::app::transact::NotTaken;
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::ids::InvalidName;
use crate::domain::path::UnsafePath;
use crate::git::GitError;
use crate::store::StoreError;

/// Kinds of failure (cli-contract.md section 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bad flags or values, wrong holder, missing claim.
    Usage,
    /// The store, the configuration or the state failed: UNKNOWN.
    Operational,
    /// Another holds the claim, or this tenure is over.
    ClaimRefused,
}

impl Kind {
    /// Returns the exit code.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Usage => 1,
            Self::Operational => 2,
            Self::ClaimRefused => 3,
        }
    }
}

/// A command that did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandError {
    /// Which kind.
    pub kind: Kind,
    /// One line.
    pub message: String,
    /// Next steps, for messages whose text the contract does not fix.
    pub hints: Vec<String>,
}

impl CommandError {
    /// Returns a usage error.
    #[must_use]
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), hints: Vec::new() }
    }

    /// Returns an operational error.
    #[must_use]
    pub fn operational(message: impl Into<String>) -> Self {
        Self { kind: Kind::Operational, message: message.into(), hints: Vec::new() }
    }

    /// Returns the error of a claim held by another.
    #[must_use]
    pub fn claim_refused(message: impl Into<String>) -> Self {
        Self { kind: Kind::ClaimRefused, message: message.into(), hints: Vec::new() }
    }

    /// Returns the error of something that this version does not do.
    #[must_use]
    pub fn unsupported(what: &str) -> Self {
        Self::operational(format!("{what} not supported by agent-coord {}", env!("CARGO_PKG_VERSION")))
    }

    /// Returns the error of a private file of the clone.
    #[must_use]
    pub fn private_file(what: &str, error: &io::Error) -> Self {
        Self::operational(format!("cannot keep {what}: {error}"))
    }

    /// Adds a next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl From<Refusal> for CommandError {
    /// A refused claim stays one line (design.md section 2), so its hint is dropped.
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal.kind {
            RefusalKind::Claimed => Kind::ClaimRefused,
            RefusalKind::Invalid => Kind::Usage,
            RefusalKind::Unknown => Kind::Operational,
        };
        let hints = if kind == Kind::ClaimRefused { None } else { refusal.hint };
        Self { kind, message: refusal.message, hints: hints.into_iter().collect() }
    }
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self { kind: Kind::Operational, message: error.message, hints: error.hint.into_iter().collect() }
    }
}

impl From<NotTaken> for CommandError {
    fn from(reason: NotTaken) -> Self {
        match reason {
            NotTaken::Refused(refusal) => refusal.into(),
            NotTaken::Store(error) => error.into(),
            NotTaken::Contention { .. } => Self::operational(reason.to_string()),
        }
    }
}

impl From<GitError> for CommandError {
    fn from(error: GitError) -> Self {
        let hint = match &error {
            GitError::NotFound => Some("install git, or put it on PATH".to_owned()),
            GitError::TooOld { needed, .. } => Some(format!("put git {needed} or newer first on PATH")),
            GitError::Untrusted(path) => Some(format!(
                "git's `safe.directory` setting decides whose repositories are trusted; it does not name {path}"
            )),
            GitError::TimedOut { .. } => {
                Some("`agent-coord.timeout` in git config sets the seconds allowed".to_owned())
            }
            GitError::Unusable(_) | GitError::Spawn(_) | GitError::Failed { .. } => None,
        };
        Self { kind: Kind::Operational, message: error.to_string(), hints: hint.into_iter().collect() }
    }
}

impl From<InvalidName> for CommandError {
    fn from(error: InvalidName) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<UnsafePath> for CommandError {
    fn from(error: UnsafePath) -> Self {
        Self::usage(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_no_has_its_exit_code() {
        let code = |kind| CommandError::from(Refusal::new(kind, "no")).kind.exit_code();
        assert_eq!(code(RefusalKind::Invalid), 1);
        assert_eq!(code(RefusalKind::Unknown), 2);
        assert_eq!(code(RefusalKind::Claimed), 3);
    }

    #[test]
    fn a_refused_claim_stays_one_line() {
        let refusal = Refusal::new(RefusalKind::Claimed, "CLAIM_REFUSED: x").with_hint("wait");
        assert_eq!(CommandError::from(refusal).hints, Vec::<String>::new());
    }
}
