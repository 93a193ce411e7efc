//! `heartbeat`: one beat, one transaction.

use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::event::PHASE_CHANGED;
use crate::domain::heartbeat::{self, Beaten, claim_path};
use crate::domain::path::RecordPath;
use crate::domain::request::{Beat, Stamp};
use crate::domain::snapshot::Scope;

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
        app.transact(&step, |snapshot| heartbeat::beat(snapshot, request, &stamp)).map_err(
            |not_taken| match not_taken {
                NotTaken::Contention { path, .. } => {
                    Refusal::new(RefusalKind::Unknown, format!("state changed while writing {path}")).into()
                }
                other => other,
            },
        )?;
    let mut beaten = taken.outcome;
    beaten.warnings.extend(lost_events(PHASE_CHANGED, &taken.receipt));
    Ok(beaten)
}

/// The row, and the claim that a tenure speaks of, so that both come with the first read.
fn reads(request: &Beat, stamp: &Stamp) -> Scope {
    let row = RecordPath::heartbeat(&request.agent);
    let named = request.repo.as_deref().zip(request.target.as_deref());
    let acts_for_tenure = request.metadata.generation.is_some() || request.metadata.instance_id.is_some();
    let claim = named.filter(|_| stamp.fencing && acts_for_tenure).and_then(|(repo, target)| claim_path(repo, target));
    Scope::of_records([row].into_iter().chain(claim))
}
