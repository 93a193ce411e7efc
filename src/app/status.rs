//! Reading the scopes of a status report.

use super::App;
use crate::domain::decision::Refusal;
use crate::domain::ids::{BatchId, RepoName, Target};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::domain::status::{self, Candidate, Faults, Judged, StatusReport};
use crate::domain::time::Timestamp;
use crate::store::{StoreError, StoreErrorKind};

use std::collections::BTreeSet;

use thiserror::Error;

/// Why there is no report.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NoReport {
    /// The store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was asked for by name is no record of its kind.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// A report and how old it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// The report.
    pub report: StatusReport,
    /// How fresh the records are.
    pub freshness: Freshness,
    /// When they were fetched, where the store knows.
    pub fetched_at: Option<Timestamp>,
}

impl Read {
    fn new(report: StatusReport, snapshot: &Snapshot) -> Self {
        Self { report, freshness: snapshot.freshness, fetched_at: snapshot.store.fetched_at }
    }
}

impl App<'_> {
    /// Reports on everything.
    ///
    /// # Errors
    /// When the store cannot be read: UNKNOWN is never an empty report.
    pub fn status(&self, freshness: Freshness, wedged_after: i64, archived: bool) -> Result<Read, NoReport> {
        let families = [Family::Claims, Family::Heartbeats, Family::Batches, Family::Events];
        let archive = archived.then_some(Family::Archive);
        let scope = Scope::of_prefixes(families.into_iter().chain(archive).map(Prefix::family));
        let snapshot = self.store.snapshot(&scope, freshness, &self.deadline)?;
        let report = status::broad_report(&snapshot, self.judged(wedged_after), archived);
        Ok(Read::new(report, &snapshot))
    }

    /// Reports on one target under all its spellings, by point reads.
    ///
    /// # Errors
    /// When the store cannot be read, or the spelling asked for holds something that is no claim.
    pub fn target_status(
        &self,
        repo: &RepoName,
        target: &Target,
        freshness: Freshness,
        wedged_after: i64,
    ) -> Result<Read, NoReport> {
        let candidates = candidates(repo, target);
        let (snapshot, faults) = self.claims_and_holders(&candidates, freshness)?;
        let found = status::target_report(&snapshot, &candidates, &faults)?;
        let report = found.finish(repo, target, &snapshot, self.judged(wedged_after));
        Ok(Read::new(report, &snapshot))
    }

    /// Reads the claims and their holders' heartbeats. What this clone last saw tells which heartbeats to ask for along
    /// with the claims, so that a remote is usually asked once.
    fn claims_and_holders(
        &self,
        candidates: &[Candidate],
        freshness: Freshness,
    ) -> Result<(Snapshot, Faults), StoreError> {
        let mut scope = Scope::of_records(candidates.iter().map(|candidate| candidate.path.clone()));
        let mut faults = Faults::new();
        let vital: Vec<RecordPath> = candidates.iter().take(1).map(|candidate| candidate.path.clone()).collect();
        let mut snapshot = match self.read_around(&mut scope, &mut faults, &vital, Freshness::Cached) {
            // A broken cache is mended by a fetch.
            Err(_) if freshness == Freshness::Fetched => {
                self.read_around(&mut scope, &mut faults, &vital, freshness)?
            }
            answer => answer?,
        };
        loop {
            let missing: Vec<RecordPath> = status::holders(&snapshot, candidates)
                .into_iter()
                .filter(|path| !snapshot.records.contains_key(path) && !faults.contains_key(path))
                .collect();
            if missing.is_empty() && snapshot.freshness >= freshness {
                return Ok((snapshot, faults));
            }
            scope.records.extend(missing);
            let holder = candidates.first().map(|queried| status::holders(&snapshot, std::slice::from_ref(queried)));
            let vital: Vec<RecordPath> = vital.iter().cloned().chain(holder.unwrap_or_default()).collect();
            snapshot = self.read_around(&mut scope, &mut faults, &vital, freshness)?;
        }
    }

    /// Reports on one batch: its events, the heartbeats of its lanes' owners, and the lanes they depend on.
    ///
    /// # Errors
    /// When the store cannot be read, or the batch is there and is no object.
    pub fn batch_status(&self, batch: &BatchId, freshness: Freshness, wedged_after: i64) -> Result<Read, NoReport> {
        let events = Prefix::events_of(batch);
        let snapshot = self.gather(freshness, Some(events), |snapshot| status::reads_for_batch(snapshot, batch))?;
        let report = status::batch_report(&snapshot, batch, self.judged(wedged_after))?;
        Ok(Read::new(report, &snapshot))
    }

    /// Reads whatever `wanted` asks for, until it asks for nothing more. What this clone last saw tells most of it, so
    /// that a remote is usually asked once.
    pub(super) fn gather(
        &self,
        freshness: Freshness,
        listing: Option<Prefix>,
        wanted: impl Fn(&Snapshot) -> BTreeSet<RecordPath>,
    ) -> Result<Snapshot, StoreError> {
        let mut scope = Scope::default();
        scope.prefixes.extend(listing);
        let mut at = Freshness::Cached;
        loop {
            let snapshot = self.store.snapshot(&scope, at, &self.deadline)?;
            let missing: BTreeSet<RecordPath> =
                wanted(&snapshot).into_iter().filter(|path| !snapshot.records.contains_key(path)).collect();
            if missing.is_empty() && snapshot.freshness >= freshness {
                return Ok(snapshot);
            }
            if missing.is_empty() {
                at = freshness;
            }
            scope.records.extend(missing);
        }
    }

    /// Reads a scope without the records that cannot be read where they lie, unless they are `vital`.
    fn read_around(
        &self,
        scope: &mut Scope,
        faults: &mut Faults,
        vital: &[RecordPath],
        freshness: Freshness,
    ) -> Result<Snapshot, StoreError> {
        loop {
            let error = match self.store.snapshot(scope, freshness, &self.deadline) {
                Err(error) if matches!(error.kind, StoreErrorKind::Record(_)) => error,
                answer => return answer,
            };
            let found = self.faults_of(scope, freshness)?;
            if let Some((_, error)) = found.iter().find(|(path, _)| vital.contains(path)) {
                return Err(error.clone());
            }
            if found.is_empty() {
                return Err(error);
            }
            for (path, error) in found {
                scope.records.remove(&path);
                if let StoreErrorKind::Record(fault) = error.kind {
                    faults.insert(path, fault.to_string());
                }
            }
        }
    }

    /// Returns the records of a scope that cannot be read where they lie, each with the reason.
    fn faults_of(&self, scope: &Scope, freshness: Freshness) -> Result<Vec<(RecordPath, StoreError)>, StoreError> {
        let mut faults = Vec::new();
        for path in &scope.records {
            let alone = Scope::of_records([path.clone()]);
            match self.store.snapshot(&alone, freshness, &self.deadline) {
                Err(error) if matches!(error.kind, StoreErrorKind::Record(_)) => faults.push((path.clone(), error)),
                answer => drop(answer?),
            }
        }
        Ok(faults)
    }

    pub(super) fn judged(&self, wedged_after: i64) -> Judged {
        Judged { now: self.clock.now(), wedged_after: self.store.abilities().fencing.then_some(wedged_after) }
    }
}

fn candidates(repo: &RepoName, target: &Target) -> Vec<Candidate> {
    let paths =
        status::spellings(repo, target).into_iter().filter_map(|spelling| RecordPath::claim(repo, &spelling).ok());
    paths.enumerate().map(|(index, path)| Candidate { path, queried: index == 0 }).collect()
}
