//! `heartbeat`: one beat, one transaction.

use crate::domain::batch::drain::{self, Work};
use crate::domain::decision::{Refusal, RefusalKind, Verdict};
use crate::domain::event::PHASE_CHANGED;
use crate::domain::heartbeat::{self, Beaten, claim_path};
use crate::domain::ids::BatchId;
use crate::domain::path::RecordPath;
use crate::domain::record::text;
use crate::domain::request::{Beat, Stamp};
use crate::domain::snapshot::{Scope, Snapshot};

use super::App;
use super::stamp::{lost_events, step};
use super::transact::NotTaken;

/// A lost race is decided once more where the contract counts (cli-contract.md section 4).
const ATTEMPTS: u32 = 2;

/// Records a heartbeat.
///
/// When the outcome carries a `note`, the caller leaves it in the clone *after* it has printed the outcome: a later beat
/// then knows that the loss was told (design.md section 4, "Being told").
///
/// # Errors
/// That the row cannot be read or kept changing, or that the store did not answer. A lost claim is no error: the beat
/// is recorded, and [`Beaten::lost`] says so.
pub fn heartbeat(app: &App<'_>, request: &Beat) -> Result<Beaten, NotTaken> {
    let stamp = app.stamp();
    let step = step(&stamp, reads(request, &stamp), ATTEMPTS, format!("Heartbeat {}", request.agent));
    let taken =
        app.transact(&step, |snapshot| decide(snapshot, request, &stamp)).map_err(|not_taken| match not_taken {
            NotTaken::Contention { path, .. } => {
                Refusal::new(RefusalKind::Unknown, format!("state changed while writing {path}")).into()
            }
            other => other,
        })?;
    let mut beaten = taken.outcome;
    beaten.warnings.extend(lost_events(PHASE_CHANGED, &taken.receipt));
    Ok(beaten)
}

/// The row, the claim that a tenure speaks of, and the batch, so that all come with the first read.
fn reads(request: &Beat, stamp: &Stamp) -> Scope {
    let row = RecordPath::heartbeat(&request.agent);
    let named = request.repo.as_deref().zip(request.target.as_deref());
    let acts_for_tenure = request.metadata.generation.is_some() || request.metadata.instance_id.is_some();
    let claim = named.filter(|_| stamp.fencing && acts_for_tenure).and_then(|(repo, target)| claim_path(repo, target));
    let batch = request.batch_id.as_deref().and_then(|batch| BatchId::parse("batch-id", batch).ok());
    let batch = batch.filter(|_| stamp.fencing).map(|batch| RecordPath::batch(&batch));
    Scope::of_records([row].into_iter().chain(claim).chain(batch))
}

/// Decides the beat and looks whether the lane it is about is drained. A beat is recorded in any case.
fn decide(snapshot: &Snapshot, request: &Beat, stamp: &Stamp) -> Verdict<Beaten> {
    let mut decision = heartbeat::beat(snapshot, request, stamp)?;
    let row = decision.outcome.record.clone();
    let Some(batch_id) = text(&row, "batch_id").filter(|_| stamp.fencing) else { return Ok(decision) };
    let (repo, target) = (text(&row, "repo"), text(&row, "target"));
    let seen = drain::seen(snapshot, Work { agent: request.agent.as_str(), batch_id, repo, target })?;
    decision.basis = decision.basis.max(seen.basis);
    match seen.notice {
        Ok(notice) => decision.outcome.drained = notice,
        Err(refusal) => decision.outcome.warnings.push(refusal.message),
    }
    Ok(decision)
}
