//! Reading the claims that concern some branches, and asking how those stand.

use std::collections::BTreeSet;

use super::standing::{self, Asker, Standing};
use crate::domain::path::{Prefix, RecordPath};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::domain::time::Timestamp;
use crate::store::{Store, StoreError};
use crate::world::Deadline;

/// How often more records may be asked for; each round names at least one heartbeat that is missing.
const ROUNDS: usize = 64;

/// What was read, and how each branch stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Claims {
    /// One answer a branch, in the order asked.
    pub standings: Vec<Standing>,
    /// What could not be read, worded.
    pub warnings: Vec<String>,
    /// It came from a cache of a shared remote, so that it may be old.
    pub cached: bool,
    /// When the state was fetched; `None` = never, or there is no remote.
    pub fetched_at: Option<Timestamp>,
}

/// How old what is read may be, and what that means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// How old it may be.
    pub freshness: Freshness,
    /// The state comes from a shared remote, so that a cache of it ages.
    pub shared: bool,
}

/// Reads the claims of the asker's repository and asks how `branches` stand.
///
/// # Errors
/// When the store does not answer: the state is UNKNOWN.
pub fn ask(
    store: &dyn Store,
    asker: &Asker<'_>,
    branches: &[&str],
    reading: Reading,
    deadline: &Deadline<'_>,
) -> Result<Claims, StoreError> {
    let cached = reading.shared && reading.freshness == Freshness::Cached;
    let mut scope = Scope::of_prefixes([Prefix::claims_of(asker.repo)]);
    if reading.freshness == Freshness::Fetched {
        // The cache tells which heartbeats the answer will rest on, so that one connection brings everything.
        scope.records = wanted(store, asker, branches, deadline);
    }
    for _ in 0..ROUNDS {
        let mut snapshot = store.snapshot(&scope, reading.freshness, deadline)?;
        let read: BTreeSet<RecordPath> = snapshot.records.keys().cloned().collect();
        let fetched_at = snapshot.store.fetched_at;
        if cached {
            let age = fetched_at.map(|at| asker.now.seconds_since(at));
            standing::distrust_old_heartbeats(&mut snapshot, age, asker.now);
        }
        match answer(&snapshot, asker, branches) {
            Ok(standings) => {
                let warnings = standing::unreadable(&snapshot, asker.repo);
                return Ok(Claims { standings, warnings, cached, fetched_at });
            }
            Err(missing) if missing.is_subset(&read) => break,
            Err(missing) => scope.records.extend(missing),
        }
    }
    Err(StoreError::new(crate::store::StoreErrorKind::Broken, "the claims keep naming further records; try again"))
}

/// Answers for all branches, or names every record that has to be read first.
fn answer(snapshot: &Snapshot, asker: &Asker<'_>, branches: &[&str]) -> Result<Vec<Standing>, BTreeSet<RecordPath>> {
    let mut missing = BTreeSet::new();
    let mut standings = Vec::new();
    for branch in branches {
        match standing::of_branch(snapshot, asker, branch) {
            Ok(standing) => standings.push(standing),
            Err(path) => {
                missing.insert(path);
            }
        }
    }
    if missing.is_empty() { Ok(standings) } else { Err(missing) }
}

/// Returns the heartbeats the cached claims call for; nothing when the cache cannot tell.
fn wanted(store: &dyn Store, asker: &Asker<'_>, branches: &[&str], deadline: &Deadline<'_>) -> BTreeSet<RecordPath> {
    let scope = Scope::of_prefixes([Prefix::claims_of(asker.repo)]);
    match store.snapshot(&scope, Freshness::Cached, deadline) {
        Ok(snapshot) => answer(&snapshot, asker, branches).err().unwrap_or_default(),
        Err(_) => BTreeSet::new(),
    }
}
