//! A store around another that fails on purpose: lost races, lost replies, silence, and others who write in between.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::domain::decision::{Edit, Expect};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::world::Deadline;

use super::{Abilities, CommitError, Receipt, Store, StoreError, StoreErrorKind, Transaction};

/// What happens to one commit.
pub enum Fault<S> {
    /// It loses a race that nobody else won: nothing is written.
    Conflict,
    /// It lands, and the answer is lost.
    LostReply,
    /// It never arrives, and neither does an answer.
    Vanishes,
    /// It arrives this much later.
    Late(Duration),
    /// Somebody else does this to the store just before it arrives.
    Meanwhile(Box<dyn FnOnce(&S) + Send>),
}

/// A store whose commits meet the given faults, one each, and are left alone once those are used up.
pub struct FaultyStore<S> {
    inner: S,
    faults: Mutex<VecDeque<Fault<S>>>,
    commits: AtomicUsize,
    abilities: Abilities,
}

impl<S: Store> FaultyStore<S> {
    /// Returns `inner` with `faults` ahead of it.
    pub fn new(inner: S, faults: impl IntoIterator<Item = Fault<S>>) -> Self {
        let abilities = inner.abilities();
        let faults = Mutex::new(faults.into_iter().collect());
        Self { inner, faults, commits: AtomicUsize::new(0), abilities }
    }

    /// Claims other abilities than the store has, to see how callers adapt.
    #[must_use]
    pub fn with_abilities(mut self, abilities: Abilities) -> Self {
        self.abilities = abilities;
        self
    }

    /// Returns how often a commit was tried.
    #[must_use]
    pub fn commits(&self) -> usize {
        self.commits.load(Ordering::SeqCst)
    }

    /// Returns the store within, which knows no faults.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn next_fault(&self) -> Option<Fault<S>> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl<S: Store> Store for FaultyStore<S> {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        self.inner.snapshot(scope, freshness, deadline)
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        self.commits.fetch_add(1, Ordering::SeqCst);
        match self.next_fault() {
            Some(Fault::Conflict) => return Err(lost_race(transaction)),
            Some(Fault::LostReply) => {
                self.inner.commit(transaction, deadline)?;
                return Err(silence());
            }
            Some(Fault::Vanishes) => return Err(silence()),
            Some(Fault::Late(delay)) => deadline.clock().pause(delay),
            Some(Fault::Meanwhile(act)) => act(&self.inner),
            None => {}
        }
        self.inner.commit(transaction, deadline)
    }
}

fn silence() -> CommitError {
    CommitError::Unknown(StoreError::new(StoreErrorKind::Unreachable, "no answer came back"))
}

fn lost_race(transaction: &Transaction) -> CommitError {
    let Some(edit) = transaction.edits.first() else { return silence() };
    let expected = match edit {
        Edit::Put(put) => put.expect.clone(),
        Edit::Append { .. } => Expect::Absent,
        Edit::Delete { version, .. } | Edit::Guard { version, .. } => Expect::At(version.clone()),
    };
    CommitError::Conflict { path: edit.path().clone(), expected, found: None }
}
