//! Whole histories: commands of several agents on one store, and what each of them is told.

mod closeouts;
mod directed;
mod random;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::domain::claim::{Acquired, FirstRead};
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::fixtures::at;
use crate::domain::heartbeat::Beaten;
use crate::domain::record::{Members, Stored};
use crate::domain::request::{Acquire, Beat, Release};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::store::memory::MemoryStore;
use crate::store::{Abilities, CommitError, Receipt, Store, StoreError, Transaction};
use crate::world::{CountedRandomness, Deadline, SteppedClock};

use super::App;
use super::transact::NotTaken;

/// One store, one clock, and apps to act on them.
struct Lab {
    store: MemoryStore,
    clock: Arc<SteppedClock>,
    ids: CountedRandomness,
}

impl Lab {
    fn new() -> Self {
        Self { store: MemoryStore::new(), clock: Arc::new(SteppedClock::at(at(0))), ids: CountedRandomness::default() }
    }

    fn app(&self) -> App<'_> {
        self.app_on(&self.store)
    }

    fn app_on<'a>(&'a self, store: &'a dyn Store) -> App<'a> {
        let deadline = Deadline::after(&self.clock, Duration::from_secs(20));
        App { store, clock: &self.clock, ids: &self.ids, deadline }
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn claim(&self, request: &Acquire) -> Result<Acquired, NotTaken> {
        super::claim::claim(&self.app(), request, &mut FirstRead::default())
    }

    fn beat(&self, request: &Beat) -> Beaten {
        super::heartbeat::heartbeat(&self.app(), request).unwrap()
    }

    fn release(&self, request: &Release) -> Result<Members, NotTaken> {
        super::release::release(&self.app(), request).map(|released| released.record)
    }

    fn read(&self, path: &str) -> Option<Stored> {
        let path = crate::domain::path::RecordPath::parse(path).unwrap();
        let app = self.app();
        let scope = Scope::of_records([path.clone()]);
        let snapshot = app.store.snapshot(&scope, Freshness::Fetched, &app.deadline).unwrap();
        snapshot.get(&path).unwrap().cloned()
    }
}

fn refused<T: std::fmt::Debug>(answer: Result<T, NotTaken>) -> Refusal {
    match answer {
        Err(NotTaken::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

fn told<T: std::fmt::Debug>(answer: Result<T, NotTaken>) -> (RefusalKind, String) {
    let refusal = refused(answer);
    (refusal.kind, refusal.message)
}

/// A store on which something else happens between a reader's read and its write, and which counts or loses events
/// where it is told to.
struct Between<'a> {
    inner: &'a MemoryStore,
    before_commit: Mutex<Box<dyn FnMut(u32) + Send + 'a>>,
    commits: Mutex<u32>,
    abilities: Abilities,
    loses_events: bool,
}

impl<'a> Between<'a> {
    /// `before_commit` is run before each commit and given its number, from 1.
    fn new(inner: &'a MemoryStore, before_commit: impl FnMut(u32) + Send + 'a) -> Self {
        let before_commit = Mutex::new(Box::new(before_commit) as Box<dyn FnMut(u32) + Send>);
        Self { inner, before_commit, commits: Mutex::new(0), abilities: inner.abilities(), loses_events: false }
    }

    /// The contract's store: counted attempts, no generations, no transactions.
    fn counting(self) -> Self {
        let abilities = Abilities { atomic: false, fencing: false, retries_until_deadline: false };
        Self { abilities, ..self }
    }
}

impl Store for Between<'_> {
    fn describe(&self) -> String {
        "memory with company".to_owned()
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        self.inner.snapshot(scope, freshness, deadline)
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        let number = {
            let mut commits = self.commits.lock().unwrap();
            *commits += 1;
            *commits
        };
        (self.before_commit.lock().unwrap())(number);
        let mut receipt = self.inner.commit(transaction, deadline)?;
        if self.loses_events {
            use crate::domain::decision::Edit;
            let events = transaction.edits.iter().filter(|edit| matches!(edit, Edit::Append { .. }));
            receipt.lost_events = events.map(|edit| (edit.path().clone(), "no room".to_owned())).collect();
        }
        Ok(receipt)
    }
}
