//! Drain: the coordinator's cancellation, which workers honour at their next safe checkpoint (design.md section 4).
//!
//! A batch keeps it in `drained`: one object for each lane, and one without `lane` for the batch as a whole.

use serde_json::{Value, json};

use super::lane::{Lane, lanes};
use super::registered;
use crate::domain::decision::{Decision, Edit, Halt, Put, Refusal, RefusalKind, Verdict};
use crate::domain::event::ordinary;
use crate::domain::ids::BatchId;
use crate::domain::metadata::set;
use crate::domain::path::RecordPath;
use crate::domain::printable::printable;
use crate::domain::record::{Members, plain, present, text};
use crate::domain::request::{Attribution, Stamp};
use crate::domain::snapshot::{Freshness, Snapshot};
use crate::domain::status::Identity;
use crate::domain::tenure::members_of;

/// The member of a batch that holds its drains.
pub const DRAINED: &str = "drained";

/// Asks to drain a batch or one lane of it, or to cancel that.
#[derive(Debug, Clone, PartialEq)]
pub struct Drain {
    /// The batch.
    pub batch: BatchId,
    /// The lane; the whole batch when absent.
    pub lane: Option<String>,
    /// Why; always there unless the drain is cancelled.
    pub reason: Option<String>,
    /// Whether an earlier drain is cancelled.
    pub cancel: bool,
    /// Who asks, when that is known.
    pub by: Option<String>,
    /// Where the write comes from.
    pub attribution: Attribution,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The batch as stored.
    pub record: Members,
    /// Whether anything changed.
    pub changed: bool,
    /// What to warn of, without `warning: `.
    pub warnings: Vec<String>,
}

/// Decides a drain. The batch and the event that tells of it land together.
///
/// # Errors
/// A refusal when the batch is not registered, has no such lane, or cannot be read.
pub fn drain(snapshot: &Snapshot, request: &Drain, stamp: &Stamp) -> Verdict<Outcome> {
    let (stored, batch) = registered(snapshot, &request.batch)?;
    if let Some(lane) = &request.lane
        && !lanes(batch).any(|known| known.name == *lane)
    {
        let message = format!("batch {} has no lane {}", request.batch, printable(lane));
        return Err(Refusal::new(RefusalKind::Invalid, message).into());
    }
    let entries = entries_after(batch, request, stamp);
    let warnings = still_drained(&entries, request).into_iter().collect();
    let Some(entries) = entries.filter(|entries| *entries != entries_of(batch)) else {
        let outcome = Outcome { record: batch.clone(), changed: false, warnings };
        return Ok(Decision { edits: Vec::new(), outcome, basis: Freshness::Fetched });
    };
    let mut record = batch.clone();
    record.insert("updated_at".to_owned(), stamp.now.to_string().into());
    if entries.is_empty() {
        record.shift_remove(DRAINED);
    } else {
        record.insert(DRAINED.to_owned(), entries.into());
    }
    let edits = vec![event(request, stamp), Edit::Put(Put::replace(stored, record.clone()))];
    let outcome = Outcome { record, changed: true, warnings };
    Ok(Decision { edits, outcome, basis: Freshness::Cached })
}

/// Returns the entries as they should be; absent when there is nothing to do.
fn entries_after(batch: &Members, request: &Drain, stamp: &Stamp) -> Option<Vec<Value>> {
    let mut entries = entries_of(batch);
    let same = |entry: &Value| entry.get("lane").map(plain) == request.lane;
    let before = entries.iter().find(|entry| same(entry)).cloned();
    if request.cancel {
        entries.retain(|entry| !same(entry));
        return Some(entries);
    }
    let reason = request.reason.as_deref().unwrap_or_default();
    if before.is_some_and(|before| before.get("reason").and_then(Value::as_str) == Some(reason)) {
        return None;
    }
    entries.retain(|entry| !same(entry));
    let mut entry = Members::new();
    set(&mut entry, "lane", request.lane.clone());
    set(&mut entry, "reason", Some(reason));
    set(&mut entry, "at", Some(stamp.now.to_string()));
    set(&mut entry, "by", request.by.clone());
    entries.push(entry.into());
    Some(entries)
}

fn entries_of(batch: &Members) -> Vec<Value> {
    batch.get(DRAINED).and_then(Value::as_array).cloned().unwrap_or_default()
}

/// A lane whose own drain is cancelled stays drained with its batch.
fn still_drained(entries: &Option<Vec<Value>>, request: &Drain) -> Option<String> {
    let whole = entries.as_ref()?.iter().find(|entry| entry.get("lane").is_none())?;
    let lane = request.lane.as_ref().filter(|_| request.cancel)?;
    let reason = whole.get("reason").map(plain).unwrap_or_default();
    Some(format!("lane {lane} stays drained with the whole of batch {}: {reason}", request.batch))
}

fn event(request: &Drain, stamp: &Stamp) -> Edit {
    let reason = request.reason.as_deref();
    let message = match (request.cancel, reason) {
        (false, reason) => reason.map(str::to_owned),
        (true, None) => Some("drain cancelled".to_owned()),
        (true, Some(reason)) => Some(format!("drain cancelled: {reason}")),
    };
    let mut fields = Members::new();
    set(&mut fields, "lane", request.lane.clone());
    set(&mut fields, "agent_id", request.by.clone());
    set(&mut fields, "message", message);
    fields.insert("kind".to_owned(), json!("drain"));
    let members = ordinary(request.batch.as_str(), "human_intervention", fields, stamp, &request.attribution);
    Edit::Append { path: RecordPath::event(&request.batch, &stamp.event_id), members }
}

/// A drain as a worker of the lane sees it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Notice {
    /// The batch.
    pub batch_id: String,
    /// The lane; absent when the target belongs to none and the whole batch is drained.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
    /// Why.
    pub reason: String,
    /// Since when.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Who drained it, when that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Notice {
    /// Words the drain: `lane L of batch B is drained: REASON`.
    #[must_use]
    pub fn message(&self) -> String {
        let (batch, reason) = (printable(&self.batch_id), printable(&self.reason));
        match &self.lane {
            Some(lane) => format!("lane {} of batch {batch} is drained: {reason}", printable(lane)),
            None => format!("batch {batch} is drained: {reason}"),
        }
    }
}

impl Notice {
    /// Returns the drain as the row of its lane shows it: `reason`, `at`, `by`.
    #[must_use]
    pub fn on_its_lane(&self) -> Value {
        let mut shown = Members::new();
        set(&mut shown, "reason", Some(self.reason.as_str()));
        set(&mut shown, "at", self.at.clone());
        set(&mut shown, "by", self.by.clone());
        shown.into()
    }
}

/// Returns the drain of a lane: its own, else that of the whole batch.
#[must_use]
pub fn of_lane(batch_id: &str, batch: &Members, lane: Option<&str>) -> Option<Notice> {
    let entries = batch.get(DRAINED).and_then(Value::as_array)?.iter().filter_map(Value::as_object);
    let (own, whole): (Vec<&Members>, Vec<&Members>) = entries.partition(|entry| present(entry, "lane").is_some());
    let own = own.into_iter().find(|entry| lane.is_some() && text(entry, "lane") == lane);
    let entry = own.or_else(|| whole.into_iter().next())?;
    let given = |name: &str| present(entry, name).map(plain);
    Some(Notice {
        batch_id: batch_id.to_owned(),
        lane: lane.map(str::to_owned),
        reason: given("reason").unwrap_or_else(|| "no reason given".to_owned()),
        at: given("at"),
        by: given("by"),
    })
}

/// The work that somebody does for a batch.
#[derive(Debug, Clone, Copy)]
pub struct Work<'a> {
    /// Who.
    pub agent: &'a str,
    /// The batch it says it works for.
    pub batch_id: &'a str,
    /// The repository.
    pub repo: Option<&'a str>,
    /// The target.
    pub target: Option<&'a str>,
}

/// What a batch says to somebody who works for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// The drain, if any; or why it cannot be told.
    pub notice: Result<Option<Notice>, Refusal>,
    /// How fresh the state has to be: an absence cannot be guarded, so it has to be fetched.
    pub basis: Freshness,
}

/// Looks whether `work` is drained.
///
/// # Errors
/// [`Halt::Read`] when the batch was not read.
pub fn seen(snapshot: &Snapshot, work: Work<'_>) -> Result<Seen, Halt> {
    let found = |notice| Ok(Seen { notice, basis: Freshness::Cached });
    let Ok(batch_id) = BatchId::parse("batch-id", work.batch_id) else { return found(Ok(None)) };
    let Some(stored) = snapshot.get(&RecordPath::batch(&batch_id))? else {
        return Ok(Seen { notice: Ok(None), basis: Freshness::Fetched });
    };
    found(members_of(stored, "batch").map(|batch| drained(batch, work)))
}

fn drained(batch: &Members, work: Work<'_>) -> Option<Notice> {
    let other_repo = present(batch, "repo").is_some_and(|repo| work.repo.is_some_and(|own| plain(repo) != own));
    if other_repo {
        return None;
    }
    let is_of = |lane: &Lane<'_>| match work.target {
        Some(target) => {
            let wanted = Identity::of(target);
            lane.targets.iter().any(|own| own == target || Identity::of(own) == wanted)
        }
        None => lane.owner.as_deref() == Some(work.agent),
    };
    let mut own = lanes(batch).filter(is_of).peekable();
    if own.peek().is_none() {
        return of_lane(work.batch_id, batch, None);
    }
    own.find_map(|lane| of_lane(work.batch_id, batch, Some(&lane.name)))
}

/// Refuses a claim that names a batch and a target that is drained there.
///
/// # Errors
/// `CLAIM_REFUSED: lane L of batch B is drained: REASON`, exit 3; the batch's own refusal when it cannot be read.
pub fn refuse_claim(seen: &Seen) -> Result<(), Refusal> {
    match &seen.notice {
        Ok(None) => Ok(()),
        Ok(Some(notice)) => Err(Refusal::new(RefusalKind::Claimed, format!("CLAIM_REFUSED: {}", notice.message()))),
        Err(refusal) => Err(refusal.clone()),
    }
}

#[cfg(test)]
mod tests;
