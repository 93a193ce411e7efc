//! Batches: a coordinator's lanes, their owners and their dependencies (state-schema.md section 5).

pub mod drain;
pub mod lane;
pub mod manifest;
pub mod ready;
pub mod register;

use super::decision::{Halt, Refusal, RefusalKind};
use super::ids::BatchId;
use super::path::RecordPath;
use super::record::{Members, Stored};
use super::snapshot::Snapshot;
use super::tenure::members_of;

/// Returns a batch that must be registered.
///
/// # Errors
/// A refusal when it is absent or is no object; [`Halt::Read`] when it was not read.
pub fn registered<'a>(snapshot: &'a Snapshot, batch: &BatchId) -> Result<(&'a Stored, &'a Members), Halt> {
    let Some(stored) = snapshot.get(&RecordPath::batch(batch))? else {
        return Err(Refusal::new(RefusalKind::Invalid, format!("batch {batch} is not registered"))
            .with_hint("`agent-coord register-batch --file PATH` registers a batch")
            .into());
    };
    Ok((stored, members_of(stored, "batch")?))
}
