//! `register-batch`, `drain`, `ready` and `batch-audit`: what is done with a batch as a whole.

use crate::domain::audit::{self, Audit};
use crate::domain::batch::drain::{self, Drain};
use crate::domain::batch::ready::{self, Ready};
use crate::domain::batch::register::{self, Register};
use crate::domain::decision::{Halt, Refusal, RefusalKind};
use crate::domain::ids::{BatchId, RepoName};
use crate::domain::path::{Prefix, RecordPath};
use crate::domain::record::Members;
use crate::domain::snapshot::{Freshness, Scope};
use crate::domain::status::reads_for_batch;

use super::App;
use super::stamp::{lost_events, step};
use super::status::NoReport;
use super::transact::{NotTaken, contention_text};

/// A lost race is not tried again where the contract counts (cli-contract.md section 5).
const ATTEMPTS: u32 = 1;

impl App<'_> {
    /// Registers a batch and returns it as stored.
    ///
    /// # Errors
    /// That what is stored cannot be read or kept changing, or that the store did not answer.
    pub fn register_batch(&self, request: &Register) -> Result<Members, NotTaken> {
        let stamp = self.stamp();
        let batch = request.batch_id();
        let reads = Scope::of_records([RecordPath::batch(batch)]);
        let step = step(&stamp, reads, ATTEMPTS, format!("Register batch {batch}"));
        let taken = self.transact(&step, |snapshot| register::register(snapshot, request, &stamp));
        taken.map(|taken| taken.outcome).map_err(|not_taken| match not_taken {
            NotTaken::Contention { path, expected } => {
                let lost = contention_text(&path, &expected);
                let message = format!("batch registration write contention for {batch}; {lost}");
                Refusal::new(RefusalKind::Unknown, message).into()
            }
            other => other,
        })
    }

    /// Drains a batch or a lane of it, or cancels that.
    ///
    /// # Errors
    /// A refusal when there is no such batch or lane, or that the store did not answer.
    pub fn drain(&self, request: &Drain) -> Result<drain::Outcome, NotTaken> {
        let stamp = self.stamp();
        let reads = Scope::of_records([RecordPath::batch(&request.batch)]);
        let step = step(&stamp, reads, ATTEMPTS, format!("Drain batch {}", request.batch));
        let taken = self.transact(&step, |snapshot| drain::drain(snapshot, request, &stamp))?;
        let mut outcome = taken.outcome;
        outcome.warnings.extend(lost_events("human_intervention", &taken.receipt));
        Ok(outcome)
    }

    /// Sorts the lanes of a batch by whether they can start. `default_repo` is where a batch without a repository of its
    /// own has its targets.
    ///
    /// # Errors
    /// When the batch is not registered, or the store cannot be read.
    pub fn ready(&self, batch: &BatchId, default_repo: &RepoName, wedged_after: i64) -> Result<Ready, NoReport> {
        let snapshot = self.gather(Freshness::Fetched, Some(Prefix::events_of(batch)), |snapshot| {
            let mut wanted = reads_for_batch(snapshot, batch);
            wanted.extend(ready::claims_and_holders(snapshot, batch, default_repo));
            wanted
        })?;
        ready::ready(&snapshot, batch, default_repo, self.judged(wedged_after)).map_err(in_full)
    }

    /// Audits a batch. A store that cannot be read is a report, too: nobody can tell.
    #[must_use]
    pub fn audit(&self, batch: &BatchId) -> Audit {
        let mut scope = Scope::of_records([RecordPath::batch(batch)]);
        scope.prefixes.insert(Prefix::events_of(batch));
        let found = self.store.snapshot(&scope, Freshness::Fetched, &self.deadline);
        let audited = found.map_err(NoReport::from);
        let audited = audited.and_then(|snapshot| audit::audit(&snapshot, batch).map_err(in_full));
        audited.unwrap_or_else(|error| Audit::unreadable(batch.as_str(), &error.to_string()))
    }
}

/// Everything a report asks for was read before it was made.
fn in_full(halt: Halt) -> NoReport {
    match halt {
        Halt::Refused(refusal) => refusal.into(),
        Halt::Read(path) => Refusal::new(RefusalKind::Unknown, format!("state unreadable: {path} was not read")).into(),
        Halt::List(prefix) => {
            Refusal::new(RefusalKind::Unknown, format!("state unreadable: {prefix} was not read")).into()
        }
    }
}
