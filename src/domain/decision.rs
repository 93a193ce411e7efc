//! What a rule answers: the edits of one step and what to say about it, or why it stops.

use thiserror::Error;

use super::path::{Prefix, RecordPath};
use super::record::{Annotations, Members, Stored, Version};
use super::snapshot::Freshness;

/// A step that may be taken.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a decision changes nothing until app::transact commits it"]
pub struct Decision<T> {
    /// The edits, all of which land or none. Empty = nothing to write, which needs fetched state.
    pub edits: Vec<Edit>,
    /// What to report once they have landed.
    pub outcome: T,
    /// The oldest state this decision may rest on: [`Freshness::Cached`] only for free claims and own writes, where a
    /// stale read costs a retry and nothing else (design.md section 3.4).
    pub basis: Freshness,
}

/// One change, with the state it expects.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Write a record.
    Put(Put),
    /// Remove a record.
    Delete {
        /// Where it lives.
        path: RecordPath,
        /// The state it must still be in.
        version: Version,
    },
    /// Add an event; its path must be free.
    Append {
        /// `events/BATCH/EVENT.json`
        path: RecordPath,
        /// The event.
        members: Members,
    },
    /// Change nothing, but fail unless the record is still in this state. Only presence can be guarded: whatever must
    /// stay absent has to be created.
    Guard {
        /// Where it lives.
        path: RecordPath,
        /// The state it must still be in.
        version: Version,
    },
}

impl Edit {
    /// Returns the record the edit is about.
    #[must_use]
    pub fn path(&self) -> &RecordPath {
        match self {
            Self::Put(put) => &put.path,
            Self::Delete { path, .. } | Self::Append { path, .. } | Self::Guard { path, .. } => path,
        }
    }
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct Put {
    /// Where it lives.
    pub path: RecordPath,
    /// What it will say, without `$store`.
    pub members: Members,
    /// What the store is to keep beside it. `transaction_id` and `revision` are the store's to set:
    /// `revision` here is that of the state being replaced.
    pub annotations: Annotations,
    /// The state it must be in now.
    pub expect: Expect,
}

impl Put {
    /// Returns the edit that creates a record where none is.
    #[must_use]
    pub fn create(path: RecordPath, members: Members) -> Self {
        Self { path, members, annotations: Annotations::default(), expect: Expect::Absent }
    }

    /// Returns the edit that replaces `current`, carrying its annotations.
    #[must_use]
    pub fn replace(current: &Stored, members: Members) -> Self {
        Self {
            path: current.path.clone(),
            members,
            annotations: current.annotations.clone(),
            expect: Expect::At(current.version.clone()),
        }
    }

    /// Returns the edit that replaces `current`, or creates `path` when there is none.
    #[must_use]
    pub fn upsert(path: RecordPath, current: Option<&Stored>, members: Members) -> Self {
        match current {
            Some(current) => Self::replace(current, members),
            None => Self::create(path, members),
        }
    }
}

/// The state a record must be in for a write to be accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Nothing is there.
    Absent,
    /// Exactly this state is there.
    At(Version),
}

/// Why a rule did not decide, or decided against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halt {
    /// It needs this record first.
    Read(RecordPath),
    /// It needs this directory first.
    List(Prefix),
    /// The answer is no.
    Refused(Refusal),
}

impl From<Refusal> for Halt {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

/// What a rule returns.
pub type Verdict<T> = Result<Decision<T>, Halt>;

/// An answer of "no", worded as the contract words it. Not a failure of the machine: the state was read and understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which exit code says it.
    pub kind: RefusalKind,
    /// One line, without a trailing full stop.
    pub message: String,
    /// What to do next, when the line does not say it.
    pub hint: Option<String>,
}

impl Refusal {
    /// Returns a refusal without a hint.
    #[must_use]
    pub fn new(kind: RefusalKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The three kinds of "no" (cli-contract.md section 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// Another holds the claim, or this tenure is over: exit 3.
    Claimed,
    /// The request cannot be met as asked: exit 1.
    Invalid,
    /// The state cannot be trusted or moved under the request: exit 2.
    Unknown,
}
