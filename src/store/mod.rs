//! The store trait, its contract, and what every backend speaks.

pub mod content;
pub mod dir;
#[doc(hidden)]
pub mod faulty;
pub mod git;
pub mod memory;
pub mod open;

use std::fmt;

use thiserror::Error;

use crate::domain::decision::{Edit, Expect};
use crate::domain::ids::TransactionId;
use crate::domain::path::RecordPath;
use crate::domain::record::Version;
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::world::Deadline;

/// Where coordination state lives.
///
/// # Contract
///
/// 1. **One winner.** Of any number of simultaneous [`commit`](Store::commit)s that expect the same state of the same
///    record, at most one returns `Ok`, also when the bytes they write are equal.
/// 2. **Nothing acknowledged is lost.** After `Ok`, every later fetched snapshot of any client shows the edits, or what
///    was written over them later.
/// 3. **Guards hold.** A commit is `Ok` only if every expected state, those of guards included, held when it landed.
/// 4. **All or none**, where [`Abilities::atomic`] says so. Elsewhere edits are applied in order, an [`Edit::Append`] that
///    fails beside other changes becomes a line in [`Receipt::lost_events`], and any other failure ends the commit.
/// 5. **Unknown is not absent.** A record is reported absent only when the store said so. What cannot be read is an
///    error, a note in a listing, or [`Content::Malformed`](crate::domain::record::Content::Malformed); never nothing.
/// 6. **Lost replies are looked up.** After an error, a time-out or a kill in mid-commit the store finds out what
///    happened, by the transaction's id, and sends the same transaction again where it can. Only when that fails too is
///    the answer [`CommitError::Unknown`].
/// 7. **Nobody waits for ever.** Every call returns by its deadline, give or take the grace of a killed process.
pub trait Store: Send + Sync {
    /// Names the store in messages: `git (shared through origin)`, `directory /path`. Never holds a secret.
    fn describe(&self) -> String;

    /// Tells what this store can do beyond the contract.
    fn abilities(&self) -> Abilities;

    /// Reads a scope, absences included.
    ///
    /// # Errors
    /// When any part that was asked for by name cannot be read: the state is UNKNOWN.
    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError>;

    /// Applies a transaction.
    ///
    /// # Errors
    /// [`CommitError::Conflict`] when a state was not as expected, and nothing was written;
    /// [`CommitError::Failed`] when nothing was written for another reason; [`CommitError::Unknown`] otherwise.
    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError>;
}

/// What a store can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Abilities {
    /// All edits of a transaction land together.
    pub atomic: bool,
    /// Generations, fences and tenure are enforced (design.md section 4).
    pub fencing: bool,
    /// A lost race is decided again until the deadline; otherwise as often as the contract counts.
    pub retries_until_deadline: bool,
}

/// The edits of one step.
#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    /// Made once, before the retry loop.
    pub id: TransactionId,
    /// What it changes and what it relies on.
    pub edits: Vec<Edit>,
    /// One line for stores that keep a history: `Claim o/r#42`.
    pub message: String,
}

/// A landed transaction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Receipt {
    /// Events that a store without transactions could not add, each with the reason.
    pub lost_events: Vec<(RecordPath, String)>,
}

/// Why a commit is not known to have landed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum CommitError {
    /// A record was not in the expected state; nothing was written.
    #[error("state of {path} is not as expected")]
    Conflict {
        /// The record.
        path: RecordPath,
        /// What the edit expected.
        expected: Expect,
        /// What was there, when the store told: `Some(None)` = nothing.
        found: Option<Option<Version>>,
    },
    /// It may or may not have landed, and could not be found out.
    #[error(transparent)]
    Unknown(StoreError),
    /// Nothing was written.
    #[error(transparent)]
    Failed(StoreError),
}

/// A store could not answer. The state is UNKNOWN, so every kind ends with exit code 2.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct StoreError {
    /// What kind of trouble.
    pub kind: StoreErrorKind,
    /// One line, secrets already taken out.
    pub message: String,
    /// The next step for whoever reads it. Never a command that destroys state.
    pub hint: Option<String>,
}

impl StoreError {
    /// Returns an error without a hint.
    #[must_use]
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds the next step.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// Kinds of trouble with a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreErrorKind {
    /// Down, refusing authentication, missing, or past the deadline. Trying again may help.
    Unreachable,
    /// The store found is not the one this clone knows.
    Foreign,
    /// The remote or the configuration does not allow it. Trying again does not help.
    Policy,
    /// Something on disk is not as it must be.
    Broken,
    /// One record cannot be read where it lies; the others may be.
    Record(RecordFault),
}

/// What keeps one record from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFault {
    /// Permission, or the disk.
    NotReadable,
    /// The path is longer than the store takes.
    TooLong,
    /// A link lies in its place.
    Symlink,
    /// Something else than a file lies in its place.
    NotRegular,
    /// A directory above it is a link.
    UnderSymlink,
    /// A directory above it is none.
    UnderNonDirectory,
}

impl fmt::Display for RecordFault {
    /// Words the fault as reports of a target do (cli-contract.md section 7.4).
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotReadable => "not readable",
            Self::TooLong => "path too long",
            Self::Symlink => "is a symlink",
            Self::NotRegular => "is not a regular file",
            Self::UnderSymlink => "is in a symlinked directory",
            Self::UnderNonDirectory => "is not in a directory",
        })
    }
}

impl fmt::Display for StoreErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Unreachable => "unreachable",
            Self::Foreign => "foreign",
            Self::Policy => "policy",
            Self::Broken => "broken",
            Self::Record(_) => "record",
        })
    }
}
