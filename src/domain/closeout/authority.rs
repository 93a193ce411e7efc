//! Who may close a lane: its owner, or whoever the batch's trail shows to have acquired it (cli-contract.md section 3).

use super::{Subject, invalid};
use crate::domain::audit::{Trail, unreadable_trail};
use crate::domain::batch::lane::{Lane, lanes};
use crate::domain::decision::{Halt, Refusal, RefusalKind};
use crate::domain::heartbeat::claim_path;
use crate::domain::path::Prefix;
use crate::domain::printable::printable;
use crate::domain::record::{Members, text};
use crate::domain::snapshot::{Freshness, Snapshot};

/// Checks that the subject's agent may close `lane`, and returns how fresh the state has to be for that answer.
///
/// The owner may by its name alone. Anyone else has to hold the claim as recorded, and the trail has to be whole, in
/// order and valid, and to admit it. A trail only grows, and a second closeout of the lane meets the reservation, so a
/// trail that was fetched is fresh enough.
///
/// # Errors
/// A refusal when the agent may not, or the trail cannot be read; [`Halt`] for the claim and the trail.
pub fn authorize(snapshot: &Snapshot, subject: &Subject, batch: &Members, lane: &Lane<'_>) -> Result<Freshness, Halt> {
    if lane.owner.as_deref() == Some(subject.agent.as_str()) {
        return Ok(Freshness::Cached);
    }
    let refuse = || invalid(format!("terminal closeout agent does not match lane {}", printable(&lane.name)));
    if !holds_the_claim(snapshot, subject)? {
        return Err(refuse().into());
    }
    let listing = snapshot.list(&Prefix::events_of(&subject.batch))?;
    if let Some(reason) = unreadable_trail(subject.batch.as_str(), listing) {
        return Err(Refusal::new(RefusalKind::Unknown, reason).into());
    }
    let all: Vec<Lane<'_>> = lanes(batch).collect();
    let trail = Trail::of(subject.batch.as_str(), batch, &all, listing);
    if trail.admits(lane, &subject.agent) { Ok(Freshness::Fetched) } else { Err(refuse().into()) }
}

/// Tells whether the claim, of whatever status, names exactly this repository, target, batch and agent.
fn holds_the_claim(snapshot: &Snapshot, subject: &Subject) -> Result<bool, Halt> {
    let Some(path) = claim_path(&subject.repo, &subject.target) else { return Ok(false) };
    let Some(claim) = snapshot.get(&path)?.and_then(|stored| stored.object()) else { return Ok(false) };
    let named = [
        ("repo", subject.repo.as_str()),
        ("target", subject.target.as_str()),
        ("batch_id", subject.batch.as_str()),
        ("agent_id", subject.agent.as_str()),
    ];
    Ok(named.into_iter().all(|(name, value)| text(claim, name) == Some(value)))
}
