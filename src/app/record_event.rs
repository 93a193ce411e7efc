//! `record-event`: one event, one transaction.

use crate::domain::decision::{Decision, Expect, Refusal, RefusalKind, Verdict};
use crate::domain::path::RecordPath;
use crate::domain::record_event::{Recorded, record};
use crate::domain::request::{RecordEvent, Stamp};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};

use super::App;
use super::stamp::step;
use super::transact::NotTaken;

/// How many ids are tried before giving up (state-schema.md section 4.2).
const IDS: u32 = 3;
/// Each id is put to the store once where the contract counts.
const ATTEMPTS: u32 = 1;

/// Records an ordinary event.
///
/// # Errors
/// A refusal in the contract's words, or that the store did not answer.
pub fn record_event(app: &App<'_>, request: &RecordEvent) -> Result<Recorded, NotTaken> {
    for _ in 0..IDS {
        if let Some(recorded) = try_one_id(app, request)? {
            return Ok(recorded);
        }
    }
    let message = format!("event id collision while recording event for {}", request.batch_id);
    Err(Refusal::new(RefusalKind::Unknown, message).into())
}

/// Returns nothing when the id was taken.
fn try_one_id(app: &App<'_>, request: &RecordEvent) -> Result<Option<Recorded>, NotTaken> {
    let stamp = app.stamp();
    let path = RecordPath::event(&request.batch_id, &stamp.event_id);
    let message = format!("Record event {} {}", request.batch_id, stamp.event_id);
    let step = step(&stamp, Scope::default(), ATTEMPTS, message);
    let mut put_before = false;
    let taken = app.transact(&step, |snapshot| decide(snapshot, request, &stamp, &path, &mut put_before));
    match taken {
        Ok(taken) => Ok(taken.outcome),
        Err(NotTaken::Contention { path: lost, expected: Expect::Absent }) if lost == path => Ok(None),
        Err(NotTaken::Contention { path, .. }) => {
            Err(Refusal::new(RefusalKind::Unknown, format!("state changed at {path}")).into())
        }
        Err(other) => Err(other),
    }
}

/// After a lost race the event itself is read: what took the id would take it again at every retry.
fn decide(
    snapshot: &Snapshot,
    request: &RecordEvent,
    stamp: &Stamp,
    path: &RecordPath,
    put_before: &mut bool,
) -> Verdict<Option<Recorded>> {
    let Decision { edits, outcome, basis } = record(snapshot, request, stamp)?;
    if *put_before && let Some(found) = snapshot.get(path)? {
        let ours = found.object() == Some(&outcome.record);
        return Ok(Decision { edits: Vec::new(), outcome: ours.then_some(outcome), basis: Freshness::Fetched });
    }
    *put_before |= basis <= snapshot.freshness;
    Ok(Decision { edits, outcome: Some(outcome), basis })
}
