//! Git itself: the one place that spawns it, finds a repository, or reads its configuration.
//!
//! [`gix`] discovers the repository and reads configuration, refs and objects; git writes every ref and talks to
//! remotes (design.md sections 3.3 and 3.5 say why).

pub mod call;
pub mod files;
pub mod head;
mod output;
pub mod parameters;
pub mod redact;
pub mod repository;
pub mod version;

pub use call::{Call, Finished, Git};
pub use repository::Repository;

use thiserror::Error;

/// Git could not be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GitError {
    /// There is no git on the path.
    #[error("git was not found on PATH")]
    NotFound,
    /// The git on the path is too old.
    #[error("git {found} at {program} is too old; agent-coord needs {needed} or newer")]
    TooOld {
        /// The version found.
        found: String,
        /// Where it was found.
        program: String,
        /// The oldest version that works.
        needed: String,
    },
    /// The repository belongs to somebody else and is not declared safe.
    #[error("repository {0} is owned by someone else")]
    Untrusted(String),
    /// The directory is not in a repository, or the repository cannot be opened.
    #[error("cannot open the git repository: {0}")]
    Unusable(String),
    /// A git command could not be started.
    #[error("cannot run git: {0}")]
    Spawn(String),
    /// A git command did not end by the deadline and was stopped.
    #[error("git {command} did not answer within {seconds} s and was stopped")]
    TimedOut {
        /// The subcommand.
        command: String,
        /// How long the whole command had, in seconds.
        seconds: u64,
    },
    /// A git command failed.
    #[error("git {command} failed: {message}")]
    Failed {
        /// The subcommand.
        command: String,
        /// What it said, secrets taken out.
        message: String,
    },
}
