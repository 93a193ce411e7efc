//! `claim`: one claim, one transaction.

use crate::domain::batch::drain::{self, Seen, Work};
use crate::domain::claim::{Acquired, FirstRead, acquire};
use crate::domain::decision::{Halt, Refusal, RefusalKind, Verdict};
use crate::domain::event::CLAIM_ACQUIRED;
use crate::domain::ids::BatchId;
use crate::domain::path::RecordPath;
use crate::domain::request::{Acquire, Stamp};
use crate::domain::snapshot::{Scope, Snapshot};

use super::App;
use super::stamp::{lost_events, step};
use super::transact::{NotTaken, contention_text};

/// A lost race is not tried again where the contract counts (cli-contract.md section 2).
const ATTEMPTS: u32 = 1;

/// Acquires or renews a claim.
///
/// `first` is given empty. Afterwards its `sightings` are the rows that decided, won or not: a clone that remembers
/// them can tell later that it saw one change.
///
/// # Errors
/// A refusal in the contract's words, or that the store did not answer.
pub fn claim(app: &App<'_>, request: &Acquire, first: &mut FirstRead) -> Result<Acquired, NotTaken> {
    let stamp = app.stamp();
    let item = format!("{}#{}", request.repo, request.target);
    let batch = request.batch_id.as_deref().and_then(|batch| BatchId::parse("batch-id", batch).ok());
    let batch = batch.filter(|_| stamp.fencing).map(|batch| RecordPath::batch(&batch));
    let reads = Scope::of_records(RecordPath::claim(&request.repo, &request.target).into_iter().chain(batch));
    let step = step(&stamp, reads, ATTEMPTS, format!("Claim {item}"));
    let taken =
        app.transact(&step, |snapshot| decide(snapshot, request, &stamp, first)).map_err(
            |not_taken| match not_taken {
                NotTaken::Contention { path, expected } => {
                    let lost = contention_text(&path, &expected);
                    Refusal::new(RefusalKind::Unknown, format!("claim write contention for {item}; {lost}")).into()
                }
                other => other,
            },
        )?;
    let mut acquired = taken.outcome;
    acquired.warnings.extend(lost_events(CLAIM_ACQUIRED, &taken.receipt));
    Ok(acquired)
}

/// Decides the claim, unless its lane is drained.
fn decide(snapshot: &Snapshot, request: &Acquire, stamp: &Stamp, first: &mut FirstRead) -> Verdict<Acquired> {
    let seen = if stamp.fencing { drain_of(snapshot, request)? } else { None };
    if let (Some(seen), Some(_)) = (&seen, &request.batch_id) {
        drain::refuse_claim(seen)?;
    }
    let mut decision = acquire(snapshot, request, stamp, first)?;
    if let Some(Seen { notice, basis }) = seen {
        decision.basis = decision.basis.max(basis);
        match notice {
            Ok(notice) => decision.outcome.drained = notice,
            Err(refusal) => decision.outcome.warnings.push(refusal.message),
        }
    }
    Ok(decision)
}

/// Looks whether the lane is drained: that of the batch named, or, for a renewal, of the batch the claim is stored with.
fn drain_of(snapshot: &Snapshot, request: &Acquire) -> Result<Option<Seen>, Halt> {
    let (repo, target) = (request.repo.as_str(), request.target.as_str());
    let own = || -> Result<Option<&str>, Halt> {
        let Ok(path) = RecordPath::claim(&request.repo, &request.target) else { return Ok(None) };
        let held = snapshot.get(&path)?.filter(|claim| {
            claim.text("status") == Some("active") && claim.text("agent_id") == Some(request.agent.as_str())
        });
        Ok(held.and_then(|claim| claim.text("batch_id")))
    };
    let batch_id = match &request.batch_id {
        Some(named) => Some(named.as_str()),
        None => own()?,
    };
    let work = |batch_id| Work { agent: &request.agent, batch_id, repo: Some(repo), target: Some(target) };
    batch_id.map(|batch_id| drain::seen(snapshot, work(batch_id))).transpose()
}
