//! One client of a store under test, with the words the rules are written in.

use std::any::Any;
use std::time::Duration;

use agent_coord::domain::decision::{Edit, Put};
use agent_coord::domain::ids::TransactionId;
use agent_coord::domain::path::{Prefix, RecordPath};
use agent_coord::domain::record::{Members, Stored, Version, integer};
use agent_coord::domain::snapshot::{Freshness, Listing, Scope, Snapshot};
use agent_coord::store::{Abilities, CommitError, Receipt, Store, Transaction};
use agent_coord::world::{Deadline, Randomness, SystemClock, SystemRandomness};
use serde_json::{Value, json};

/// A kind of store.
pub struct Backend {
    /// How messages name it.
    pub name: &'static str,
    /// Makes fresh shared state and this many clients of it.
    pub open: fn(usize) -> Team,
    /// How much racing the suite does; a remote takes longer than a mutex.
    pub effort: usize,
}

/// Writes these bytes as the record of this path.
pub type Plant = Box<dyn Fn(&str, &[u8]) + Sync>;

/// Several clients of one shared state.
pub struct Team {
    /// Each sees the state through its own clone, connection or handle.
    pub clients: Vec<Client>,
    /// Writes bytes where a record belongs, behind the store's back; absent where a store has no such place.
    pub plant: Option<Plant>,
    /// Keeps what the state lives in.
    #[expect(dead_code, reason = "it is only kept alive")]
    pub keeps: Option<Box<dyn Any + Sync>>,
}

/// One client.
pub struct Client {
    store: Box<dyn Store>,
    clock: SystemClock,
}

/// More than any machine needs; a rule that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

impl Client {
    pub fn new(store: Box<dyn Store>) -> Self {
        Self { store, clock: SystemClock::start() }
    }

    /// Returns what the store can do beyond the contract.
    pub fn abilities(&self) -> Abilities {
        self.store.abilities()
    }

    pub fn snapshot(&self, scope: &Scope) -> Snapshot {
        let deadline = Deadline::after(&self.clock, PATIENCE);
        let snapshot = self.store.snapshot(scope, Freshness::Fetched, &deadline);
        let snapshot = snapshot.unwrap_or_else(|error| panic!("{}: {error}", self.store.describe()));
        assert_eq!(snapshot.freshness, Freshness::Fetched, "a fetched snapshot was asked for");
        snapshot
    }

    /// Returns the record at `path` as the store has it now.
    pub fn read(&self, path: &RecordPath) -> Option<Stored> {
        let mut snapshot = self.snapshot(&Scope::of_records([path.clone()]));
        snapshot.records.remove(path).expect("a record that was asked for is reported, absent or not")
    }

    /// Returns the record at `path`, which must be there.
    #[track_caller]
    pub fn present(&self, path: &RecordPath) -> Stored {
        self.read(path).unwrap_or_else(|| panic!("{path} is there"))
    }

    pub fn list(&self, prefix: &Prefix) -> Listing {
        let mut snapshot = self.snapshot(&Scope::of_prefixes([prefix.clone()]));
        snapshot.listings.remove(prefix).expect("a directory that was asked for is reported")
    }

    pub fn floor(&self, repo: &str) -> i64 {
        self.snapshot(&Scope::of_records([path("claims/o/r/any.json")])).store.floor(repo)
    }

    /// Commits `edits` as one transaction of its own.
    pub fn commit(&self, edits: Vec<Edit>) -> Result<Receipt, CommitError> {
        self.commit_within(edits, PATIENCE)
    }

    pub fn commit_within(&self, edits: Vec<Edit>, patience: Duration) -> Result<Receipt, CommitError> {
        self.commit_as(&SystemRandomness.hex(16), edits, patience)
    }

    /// Commits under a transaction id that another client may be using, too.
    pub fn commit_as(&self, id: &str, edits: Vec<Edit>, patience: Duration) -> Result<Receipt, CommitError> {
        let id = TransactionId::from_hex(id);
        let deadline = Deadline::after(&self.clock, patience);
        self.store.commit(&Transaction { id, edits, message: "Conformance".to_owned() }, &deadline)
    }

    /// Commits one edit that must land.
    #[track_caller]
    pub fn must(&self, edit: Edit) {
        if let Err(error) = self.commit(vec![edit]) {
            panic!("{}: {error}", self.store.describe());
        }
    }

    /// Writes a record that must be absent so far, and returns it as stored.
    #[track_caller]
    pub fn make(&self, at: &RecordPath, members: Members) -> Stored {
        self.must(create(at, members));
        self.present(at)
    }

    /// Adds one to the counter at `path`, however often that must be tried.
    pub fn raise(&self, path: &RecordPath) {
        loop {
            let current = self.present(path);
            let next = current.object().and_then(|members| integer(members, "count")).expect("a counter counts") + 1;
            match self.commit(vec![replace(&current, members(json!({ "count": next })))]) {
                Ok(_) => return,
                Err(CommitError::Conflict { .. }) => {}
                Err(error) => panic!("{}: {error}", self.store.describe()),
            }
        }
    }
}

pub fn path(text: &str) -> RecordPath {
    RecordPath::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

pub fn members(value: Value) -> Members {
    match value {
        Value::Object(members) => members,
        other => panic!("{other} is no object"),
    }
}

/// Returns a claim as far as stores look at one.
pub fn claim(holder: &str, generation: i64) -> Members {
    members(json!({
        "schema_version": 1, "repo": "o/r", "target": "1", "agent_id": holder, "status": "active",
        "claimed_at": "2026-12-01T00:00:00Z", "generation": generation,
    }))
}

pub fn create(at: &RecordPath, members: Members) -> Edit {
    Edit::Put(Put::create(at.clone(), members))
}

pub fn replace(current: &Stored, members: Members) -> Edit {
    Edit::Put(Put::replace(current, members))
}

pub fn delete(current: &Stored) -> Edit {
    Edit::Delete { path: current.path.clone(), version: current.version.clone() }
}

pub fn guard(current: &Stored) -> Edit {
    Edit::Guard { path: current.path.clone(), version: current.version.clone() }
}

pub fn append(at: &str, members: Members) -> Edit {
    Edit::Append { path: path(at), members }
}

/// Panics unless `given` is a conflict over the record at `at`.
#[track_caller]
pub fn assert_conflict(given: &Result<Receipt, CommitError>, at: &RecordPath) {
    match given {
        Err(CommitError::Conflict { path, .. }) => assert_eq!(path, at, "the conflict names the record that moved"),
        other => panic!("a conflict over {at} was due, not {other:?}"),
    }
}

/// Returns a state that no record was ever in.
pub fn unheard_of(like: &Version) -> Version {
    let turned: String = like.as_str().chars().map(|digit| if digit == '0' { '1' } else { '0' }).collect();
    Version::new(turned)
}
