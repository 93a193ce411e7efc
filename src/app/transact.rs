//! The only retry loop: read, decide, commit; as often as the store says.

use std::collections::BTreeSet;
use std::time::Duration;

use thiserror::Error;

use crate::domain::decision::{Edit, Expect, Halt, Refusal, Verdict};
use crate::domain::ids::TransactionId;
use crate::domain::path::RecordPath;
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::store::{CommitError, Receipt, StoreError, Transaction};

use super::App;

/// One step: what it reads first, how often it may be decided, and who it is.
#[derive(Debug, Clone)]
pub struct Step {
    /// The records to start from; a decision may ask for more.
    pub reads: Scope,
    /// How often a store that counts may be asked to commit (http-protocol.md section 2.5).
    pub attempts: u32,
    /// Made once; the same through every retry.
    pub id: TransactionId,
    /// One line for stores that keep a history.
    pub message: String,
}

/// A step that was taken, or found nothing to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Taken<T> {
    /// What the decision said of it.
    pub outcome: T,
    /// What the store said of it.
    pub receipt: Receipt,
}

/// A step that was not taken, or is not known to have been.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NotTaken {
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Others kept changing the record until the attempts or the time ran out.
    #[error("{}", contention_text(path, expected))]
    Contention {
        /// The record.
        path: RecordPath,
        /// What the last attempt expected.
        expected: Expect,
    },
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns the contract's words for a lost swap: `state already exists at P` or `state changed at P`.
#[must_use]
pub fn contention_text(path: &RecordPath, expected: &Expect) -> String {
    match expected {
        Expect::Absent => format!("state already exists at {path}"),
        Expect::At(_) => format!("state changed at {path}"),
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(4);
const LONGEST_PAUSE: Duration = Duration::from_millis(400);

impl App<'_> {
    /// Takes one step: reads, lets `decide` decide, commits, and does so again when the race was lost.
    ///
    /// Every record that `decide` read and does not write is guarded in the same transaction. A directory cannot be
    /// guarded, so a decision that rests on one has the basis [`Freshness::Fetched`]. A decision that writes
    /// nothing, and every refusal, rests on state fetched after the command began.
    ///
    /// # Errors
    /// See [`NotTaken`].
    pub fn transact<T>(
        &self,
        step: &Step,
        mut decide: impl FnMut(&Snapshot) -> Verdict<T>,
    ) -> Result<Taken<T>, NotTaken> {
        let mut scope = step.reads.clone();
        let mut freshness = Freshness::Cached;
        let mut attempts = 0;
        let mut snapshot = self.read(&scope, &mut freshness)?;
        loop {
            let decision = match decide(&snapshot) {
                Err(Halt::Read(path)) => {
                    scope.records.insert(path);
                    snapshot = self.read(&scope, &mut freshness)?;
                    continue;
                }
                Err(Halt::List(prefix)) => {
                    scope.prefixes.insert(prefix);
                    snapshot = self.store.snapshot(&scope, freshness, &self.deadline)?;
                    continue;
                }
                Err(Halt::Refused(refusal)) if snapshot.freshness == Freshness::Fetched => return Err(refusal.into()),
                Ok(decision) if decision.basis <= snapshot.freshness && !decision.edits.is_empty() => decision,
                Ok(decision) if snapshot.freshness == Freshness::Fetched => {
                    return Ok(Taken { outcome: decision.outcome, receipt: Receipt::default() });
                }
                Ok(_) | Err(Halt::Refused(_)) => {
                    freshness = Freshness::Fetched;
                    snapshot = self.store.snapshot(&scope, freshness, &self.deadline)?;
                    continue;
                }
            };
            let edits = with_guards(decision.edits, &snapshot);
            let transaction = Transaction { id: step.id.clone(), edits, message: step.message.clone() };
            match self.store.commit(&transaction, &self.deadline) {
                Ok(receipt) => return Ok(Taken { outcome: decision.outcome, receipt }),
                Err(CommitError::Unknown(error) | CommitError::Failed(error)) => return Err(error.into()),
                Err(CommitError::Conflict { path, expected, .. }) => {
                    attempts += 1;
                    let exhausted = if self.store.abilities().retries_until_deadline {
                        self.deadline.has_passed()
                    } else {
                        attempts >= step.attempts
                    };
                    if exhausted {
                        return Err(NotTaken::Contention { path, expected });
                    }
                    self.deadline.pause(self.jittered_pause(attempts));
                    freshness = Freshness::Fetched;
                    snapshot = match self.store.snapshot(&scope, freshness, &self.deadline) {
                        Err(_) if self.deadline.has_passed() => return Err(NotTaken::Contention { path, expected }),
                        answer => answer?,
                    };
                }
            }
        }
    }

    /// Reads `scope`; a cache that cannot be read is no reason to stop before the store itself was asked.
    fn read(&self, scope: &Scope, freshness: &mut Freshness) -> Result<Snapshot, StoreError> {
        match self.store.snapshot(scope, *freshness, &self.deadline) {
            Err(_) if *freshness == Freshness::Cached => {
                *freshness = Freshness::Fetched;
                self.store.snapshot(scope, *freshness, &self.deadline)
            }
            answer => answer,
        }
    }

    /// Returns a random pause that doubles its bound with each lost race, so that losers spread out.
    fn jittered_pause(&self, attempts: u32) -> Duration {
        let bound = FIRST_PAUSE.saturating_mul(1 << attempts.min(10)).min(LONGEST_PAUSE);
        let mut random = [0; 2];
        self.ids.fill(&mut random);
        bound.mul_f64(f64::from(u16::from_le_bytes(random)) / f64::from(u16::MAX))
    }
}

/// Adds a guard for every present record of the snapshot that no edit is about.
pub(super) fn with_guards(mut edits: Vec<Edit>, snapshot: &Snapshot) -> Vec<Edit> {
    let written: BTreeSet<&RecordPath> = edits.iter().map(Edit::path).collect();
    let guards: Vec<Edit> = snapshot
        .records
        .values()
        .flatten()
        .filter(|stored| !written.contains(&stored.path))
        .map(|stored| Edit::Guard { path: stored.path.clone(), version: stored.version.clone() })
        .collect();
    edits.extend(guards);
    edits
}
