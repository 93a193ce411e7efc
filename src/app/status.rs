//! Reading the scopes of a status report.

use super::App;
use crate::domain::decision::Refusal;
use crate::domain::ids::{RepoName, Target};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::domain::status::{self, Candidate, Judged, StatusReport};
use crate::domain::time::Timestamp;
use crate::store::StoreError;

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
        let snapshot = self.claims_and_holders(&candidates, freshness)?;
        let found = status::target_report(&snapshot, &candidates)?;
        let report = found.finish(repo, target, &snapshot, self.judged(wedged_after));
        Ok(Read::new(report, &snapshot))
    }

    /// Reads the claims and their holders' heartbeats. What this clone last saw tells which heartbeats to ask for along
    /// with the claims, so that a remote is usually asked once.
    fn claims_and_holders(&self, candidates: &[Candidate], freshness: Freshness) -> Result<Snapshot, StoreError> {
        let mut scope = Scope::of_records(candidates.iter().map(|candidate| candidate.path.clone()));
        let mut snapshot = match self.store.snapshot(&scope, Freshness::Cached, &self.deadline) {
            Err(_) if freshness == Freshness::Fetched => self.store.snapshot(&scope, freshness, &self.deadline)?,
            answer => answer?,
        };
        loop {
            let missing: Vec<RecordPath> = status::holders(&snapshot, candidates)
                .into_iter()
                .filter(|path| !snapshot.records.contains_key(path))
                .collect();
            if missing.is_empty() && snapshot.freshness >= freshness {
                return Ok(snapshot);
            }
            scope.records.extend(missing);
            snapshot = self.store.snapshot(&scope, freshness, &self.deadline)?;
        }
    }

    fn judged(&self, wedged_after: i64) -> Judged {
        Judged { now: self.clock.now(), wedged_after: self.store.abilities().fencing.then_some(wedged_after) }
    }
}

fn candidates(repo: &RepoName, target: &Target) -> Vec<Candidate> {
    let paths =
        status::spellings(repo, target).into_iter().filter_map(|spelling| RecordPath::claim(repo, &spelling).ok());
    paths.enumerate().map(|(index, path)| Candidate { path, queried: index == 0 }).collect()
}
