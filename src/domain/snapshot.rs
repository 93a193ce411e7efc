//! Records as read for one decision, absences included.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::Halt;
use super::path::{Prefix, RecordPath};
use super::record::Stored;
use super::time::Timestamp;

/// What a decision or a view wants to read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scope {
    /// Single records.
    pub records: BTreeSet<RecordPath>,
    /// Whole directories.
    pub prefixes: BTreeSet<Prefix>,
}

impl Scope {
    /// Returns the scope of single records.
    #[must_use]
    pub fn of_records(records: impl IntoIterator<Item = RecordPath>) -> Self {
        Self { records: records.into_iter().collect(), prefixes: BTreeSet::new() }
    }

    /// Returns the scope of whole directories.
    #[must_use]
    pub fn of_prefixes(prefixes: impl IntoIterator<Item = Prefix>) -> Self {
        Self { records: BTreeSet::new(), prefixes: prefixes.into_iter().collect() }
    }
}

/// How old an answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Freshness {
    /// What this clone last saw is good enough.
    Cached,
    /// The answer rests on state fetched after the command began.
    Fetched,
}

/// The records of one scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// How old the records may be; a store without a remote always answers [`Freshness::Fetched`].
    pub freshness: Freshness,
    /// Every record of the scope that was asked for by name; `None` = known to be absent.
    pub records: BTreeMap<RecordPath, Option<Stored>>,
    /// Every directory of the scope.
    pub listings: BTreeMap<Prefix, Listing>,
    /// What the store says of itself.
    pub store: StoreFacts,
}

impl Snapshot {
    /// Returns the record at `path`, or `None` when it is absent.
    ///
    /// # Errors
    /// [`Halt::Read`] when the record was not read: the caller reads it and decides again.
    pub fn get(&self, path: &RecordPath) -> Result<Option<&Stored>, Halt> {
        self.records.get(path).map(Option::as_ref).ok_or_else(|| Halt::Read(path.clone()))
    }

    /// Returns the records under `prefix`.
    ///
    /// # Errors
    /// [`Halt::List`] when the directory was not read: the caller reads it and decides again.
    pub fn list(&self, prefix: &Prefix) -> Result<&Listing, Halt> {
        self.listings.get(prefix).ok_or_else(|| Halt::List(prefix.clone()))
    }
}

/// One directory's records, ordered by path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Listing {
    /// The records found.
    pub records: Vec<Stored>,
    /// What is missing or wrong, already worded; empty = complete.
    pub notes: Vec<String>,
}

/// What a store keeps about itself (`store.json` on git).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreFacts {
    /// The repository that commands without `--repo` mean.
    pub default_repo: Option<String>,
    /// Per repository, the highest generation of any claim deleted from it (design.md section 4).
    pub floors: BTreeMap<String, i64>,
    /// When this scope was last fetched; `None` = never, or there is no remote.
    pub fetched_at: Option<Timestamp>,
}

impl StoreFacts {
    /// Returns the lowest generation that an acquisition in `repo` must exceed.
    #[must_use]
    pub fn floor(&self, repo: &str) -> i64 {
        self.floors.get(repo).copied().unwrap_or(0)
    }
}
