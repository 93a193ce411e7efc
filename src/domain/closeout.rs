//! Terminal closeouts: a lane is closed once, by who may close it, and everybody who says the same again is told so
//! (cli-contract.md sections 3 and 6, state-schema.md section 4.3).
//!
//! Three records change: the reservation, which is the event `lane_closed` and authoritative for all that follows; the
//! claim, when its release closes the lane; and the lane in its batch. On an atomic store they land together; elsewhere
//! in this order, each step built on the reservation.

mod authority;
pub mod event;

use serde_json::Value;

use self::authority::authorize;
use self::event::{
    LANE_CLOSED, closeout_path, compose, copy_closeout, is_same, lane_carries, stamp_lane, tells_all_of,
};
use super::batch::lane::{Lane, OUTCOMES, lanes};
use super::decision::{Decision, Edit, Halt, Put, Refusal, RefusalKind, Verdict};
use super::ids::{BatchId, is_repo};
use super::metadata::{pick, set, set_all};
use super::path::RecordPath;
use super::printable::printable;
use super::record::{Members, Stored, plain, present, text};
use super::record_event::refuse_lost_tenure;
use super::release::{merge, releasable};
use super::request::{Attribution, RecordEvent, Release, Stamp};
use super::snapshot::{Freshness, Snapshot};
use super::tenure::members_of;

/// The flags of a closeout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Closing {
    /// `--terminal`: `done`, `abandoned` or `superseded`.
    pub terminal: String,
    /// `--pr-state`
    pub pr_state: Option<String>,
    /// `--evidence-url`
    pub evidence_url: Option<String>,
    /// `--workspace`
    pub workspace: Option<String>,
}

impl Closing {
    /// Checks the outcome's word.
    ///
    /// # Errors
    /// When it is not one of the three.
    pub fn check(&self) -> Result<(), Refusal> {
        if OUTCOMES.contains(&self.terminal.as_str()) {
            return Ok(());
        }
        Err(invalid(format!("--terminal must be one of: {}", OUTCOMES.join(", "))))
    }

    fn put_into(&self, record: &mut Members) {
        set(record, "terminal", Some(self.terminal.as_str()));
        set(record, "pr_state", self.pr_state.clone());
        set(record, "evidence_url", self.evidence_url.clone());
        set(record, "workspace", self.workspace.clone());
    }
}

/// A lane to be closed: by the release of its claim, or by an event alone.
#[derive(Debug, Clone, Copy)]
pub enum Asked<'a> {
    /// `release --terminal`
    Release(&'a Release, &'a Closing),
    /// `record-event --type lane_closed`
    Event(&'a RecordEvent, &'a Closing),
}

impl<'a> Asked<'a> {
    /// Checks the flags alone.
    ///
    /// # Errors
    /// The first rule they break.
    pub fn check(&self) -> Result<(), Refusal> {
        self.closing().check()?;
        check_members(&match self {
            Self::Release(request, closing) => {
                let mut flags = request.metadata.members();
                set(&mut flags, "branch", request.branch.clone());
                set(&mut flags, "repo", Some(request.repo.as_str()));
                closing.put_into(&mut flags);
                flags
            }
            Self::Event(request, closing) => event_members(request, closing),
        })
    }

    fn closing(&self) -> &'a Closing {
        match self {
            Self::Release(_, closing) | Self::Event(_, closing) => closing,
        }
    }

    fn attribution(&self) -> &'a Attribution {
        match self {
            Self::Release(request, _) => &request.attribution,
            Self::Event(request, _) => &request.attribution,
        }
    }
}

/// A lane's reservation.
#[derive(Debug, Clone, PartialEq)]
pub struct Reserved {
    /// The batch.
    pub batch: BatchId,
    /// The lane's name.
    pub lane: String,
    /// The authoritative event: the one stored, or the one to be stored.
    pub event: Members,
    /// Whether it is to be stored.
    pub created: bool,
}

/// What a closeout did.
#[derive(Debug, Clone, PartialEq)]
pub struct Closed {
    /// The reservation.
    pub reserved: Reserved,
    /// The claim as stored, when its release closed the lane.
    pub claim: Option<Members>,
    /// Whether the claim was written.
    pub claim_changed: bool,
    /// Whether the batch was written.
    pub batch_changed: bool,
}

impl Closed {
    /// Tells whether anything was written at all.
    #[must_use]
    pub fn changed(&self) -> bool {
        self.reserved.created || self.claim_changed || self.batch_changed
    }
}

/// Decides a whole closeout, for a store that lands all of it or nothing.
///
/// # Errors
/// A refusal in the contract's words; [`Halt`] for the records and the trail it needs.
pub fn close(snapshot: &Snapshot, asked: Asked<'_>, stamp: &Stamp) -> Verdict<Closed> {
    let Decision { mut edits, outcome: reserved, basis } = reserve(snapshot, asked, stamp)?;
    let mut closed = Closed { reserved, claim: None, claim_changed: false, batch_changed: false };
    if let Asked::Release(request, closing) = asked {
        let claim = close_claim(snapshot, request, closing, &closed.reserved.event, stamp)?;
        closed.claim_changed = !claim.edits.is_empty();
        closed.claim = Some(claim.outcome);
        edits.extend(claim.edits);
    }
    let batch = stamp_batch(snapshot, &closed.reserved, stamp)?;
    closed.batch_changed = !batch.edits.is_empty();
    edits.extend(batch.edits);
    Ok(Decision { edits, outcome: closed, basis })
}

/// Decides the reservation. One that is there already is authoritative if it tells of the same closeout.
///
/// # Errors
/// A refusal when the lane cannot be found, was closed otherwise, or may not be closed by who asks.
pub fn reserve(snapshot: &Snapshot, asked: Asked<'_>, stamp: &Stamp) -> Verdict<Reserved> {
    let subject = Subject::of(snapshot, asked, stamp)?;
    let (_, batch_members) = find_batch(snapshot, &subject.batch)?;
    let lane = find_lane(batch_members, &subject)?;
    let basis = authorize(snapshot, &subject, batch_members, &lane)?.max(subject.basis);
    let path = closeout_path(&subject.batch, &lane.name);
    let ours = compose(&subject.batch, &lane.name, &subject.members, stamp, asked.attribution());
    let stored = snapshot.get(&path)?.map(|stored| members_of(stored, "event")).transpose()?;
    let agrees = stored.is_none_or(|stored| is_same(stored, &ours))
        && (present(lane.members, "terminal").is_none() || lane_carries(lane.members, &ours));
    if !agrees {
        return Err(conflicting(&lane.name).into());
    }
    let reserved = Reserved {
        batch: subject.batch.clone(),
        lane: lane.name.clone(),
        event: stored.cloned().unwrap_or_else(|| ours.clone()),
        created: stored.is_none(),
    };
    let edits = if reserved.created { vec![Edit::Put(Put::create(path, ours))] } else { Vec::new() };
    Ok(Decision { edits, outcome: reserved, basis })
}

/// Decides the release of the claim whose lane `event` closes, and returns the claim as stored.
///
/// # Errors
/// A refusal when there is no claim, or it is not the asker's to give back.
pub fn close_claim(
    snapshot: &Snapshot,
    request: &Release,
    closing: &Closing,
    event: &Members,
    stamp: &Stamp,
) -> Verdict<Members> {
    let stored = releasable(snapshot, request, stamp)?;
    let before = members_of(stored, "claim")?;
    if text(before, "status") == Some("released") && tells_all_of(before, event) {
        return Ok(Decision { edits: Vec::new(), outcome: before.clone(), basis: Freshness::Fetched });
    }
    let mut record = closed_claim(before, request, closing, stamp);
    copy_closeout(&mut record, event);
    let put = Edit::Put(Put::replace(stored, record.clone()));
    Ok(Decision { edits: vec![put], outcome: record, basis: Freshness::Cached })
}

fn closed_claim(before: &Members, request: &Release, closing: &Closing, stamp: &Stamp) -> Members {
    let mut record = merge(before, request, stamp);
    closing.put_into(&mut record);
    record
}

/// Decides the stamp on the lane, and on the batch when all its lanes are closed.
///
/// # Errors
/// A refusal when the lane is gone, or carries another closeout.
pub fn stamp_batch(snapshot: &Snapshot, reserved: &Reserved, stamp: &Stamp) -> Verdict<()> {
    let (stored, batch) = find_batch(snapshot, &reserved.batch)?;
    let lane = lanes(batch).find(|lane| lane.name == reserved.lane);
    let Some(lane) = lane else { return Err(no_single_lane(&reserved.batch).into()) };
    let carried = present(lane.members, "terminal").is_some();
    if carried && !lane_carries(lane.members, &reserved.event) {
        return Err(conflicting(&reserved.lane).into());
    }
    if carried {
        return Ok(Decision { edits: Vec::new(), outcome: (), basis: Freshness::Fetched });
    }
    let mut record = batch.clone();
    if let Some(Value::Array(lanes)) = record.get_mut("lanes") {
        let own = lanes.iter_mut().filter_map(Value::as_object_mut).find(|lane| Lane::of(lane).name == reserved.lane);
        if let Some(own) = own {
            stamp_lane(own, &reserved.event);
        }
    }
    let now = Value::from(stamp.now.to_string());
    record.insert("updated_at".to_owned(), now.clone());
    if lanes(&record).all(|lane| lane.outcome().is_some()) {
        record.insert("status".to_owned(), "completed".into());
        if present(&record, "completed_at").is_none() {
            record.insert("completed_at".to_owned(), now);
        }
    }
    let put = Edit::Put(Put::replace(stored, record));
    Ok(Decision { edits: vec![put], outcome: (), basis: Freshness::Cached })
}

/// What is closed, whoever asked and however.
struct Subject {
    batch: BatchId,
    lane: Option<String>,
    agent: String,
    repo: String,
    target: String,
    /// Everything the event takes from the request or the claim.
    members: Members,
    basis: Freshness,
}

impl Subject {
    fn of(snapshot: &Snapshot, asked: Asked<'_>, stamp: &Stamp) -> Result<Self, Halt> {
        match asked {
            Asked::Release(request, closing) => {
                let stored = releasable(snapshot, request, stamp)?;
                let mut members = closed_claim(members_of(stored, "claim")?, request, closing, stamp);
                fill_from_path(&mut members, stored);
                check_members(&members)?;
                let batch = present(&members, "batch_id").map(plain).filter(|batch| !batch.is_empty());
                let batch = batch.ok_or_else(|| invalid("terminal release requires a claim with batch_id"))?;
                let batch = BatchId::parse("batch-id", &batch).map_err(|error| invalid(error.to_string()))?;
                let lane = text(&members, "lane").filter(|lane| !lane.is_empty()).map(str::to_owned);
                Ok(Self::new(batch, lane, members, Freshness::Cached))
            }
            Asked::Event(request, closing) => {
                let basis = if stamp.fencing { refuse_lost_tenure(snapshot, request)? } else { Freshness::Cached };
                let members = event_members(request, closing);
                Ok(Self::new(request.batch_id.clone(), request.lane.clone(), members, basis))
            }
        }
    }

    fn new(batch: BatchId, lane: Option<String>, members: Members, basis: Freshness) -> Self {
        let given = |name: &str| present(&members, name).map(plain).unwrap_or_default();
        Self { batch, lane, agent: given("agent_id"), repo: given("repo"), target: given("target"), members, basis }
    }
}

/// Older claims may lack their own repository and target.
fn fill_from_path(claim: &mut Members, stored: &Stored) {
    if present(claim, "repo").is_none() {
        set(claim, "repo", stored.path.repo());
    }
    if present(claim, "target").is_none() {
        set(claim, "target", Some(stored.path.stem()));
    }
}

/// Only these flags reach an event that closes a lane.
fn event_members(request: &RecordEvent, closing: &Closing) -> Members {
    let mut members = Members::new();
    for (name, value) in [
        ("agent_id", &request.agent),
        ("repo", &request.repo),
        ("target", &request.target),
        ("branch", &request.branch),
    ] {
        set(&mut members, name, value.clone());
    }
    closing.put_into(&mut members);
    set_all(&mut members, pick(&request.metadata.members(), &["host", "pr_url", "synthetic", "synthetic_kind"]));
    members
}

/// Checks what a closeout must hold, flags or the merged claim.
fn check_members(members: &Members) -> Result<(), Refusal> {
    let repo = present(members, "repo").map(plain).unwrap_or_default();
    if !is_repo(&repo) {
        return Err(invalid(format!("invalid terminal closeout repo: {}", printable(&repo))));
    }
    for name in ["workspace", "host", "branch", "pr_state"] {
        if text(members, name) == Some("") {
            return Err(invalid(format!("--{} must not be empty for terminal closeout", flag(name))));
        }
    }
    for name in ["pr_url", "evidence_url"] {
        if present(members, name).is_some_and(|url| !url.as_str().is_some_and(event::is_acceptable_address)) {
            return Err(invalid(format!("--{} must be an HTTP(S) URL with a host", flag(name))));
        }
    }
    Ok(())
}

fn flag(member: &str) -> String {
    member.replace('_', "-")
}

fn find_batch<'a>(snapshot: &'a Snapshot, batch: &BatchId) -> Result<(&'a Stored, &'a Members), Halt> {
    let missing = || invalid(format!("batch {batch} not found for terminal closeout"));
    let stored = snapshot.get(&RecordPath::batch(batch))?.ok_or_else(missing)?;
    Ok((stored, members_of(stored, "batch")?))
}

fn find_lane<'a>(batch: &'a Members, subject: &Subject) -> Result<Lane<'a>, Refusal> {
    if present(batch, "repo").is_some_and(|repo| plain(repo) != subject.repo) {
        return Err(invalid(format!("terminal closeout repo does not match batch {}", subject.batch)));
    }
    let is_meant = |lane: &Lane<'_>| match &subject.lane {
        Some(name) => lane.name == *name,
        None => lane.covers(&subject.target),
    };
    let mut found = lanes(batch).filter(is_meant);
    let (Some(lane), None) = (found.next(), found.next()) else { return Err(no_single_lane(&subject.batch)) };
    if !lane.covers(&subject.target) {
        let message = format!("terminal closeout target does not match lane {}", printable(&lane.name));
        return Err(invalid(message));
    }
    Ok(lane)
}

fn no_single_lane(batch: &BatchId) -> Refusal {
    invalid(format!("terminal closeout does not match exactly one lane in batch {batch}"))
}

fn conflicting(lane: &str) -> Refusal {
    let lane = printable(lane);
    invalid(format!("conflicting terminal closeout for lane {lane}; first closeout is authoritative"))
}

fn invalid(message: impl Into<String>) -> Refusal {
    Refusal::new(RefusalKind::Invalid, message)
}

/// Tells whether a type of event closes a lane.
#[must_use]
pub fn closes_a_lane(event_type: &str) -> bool {
    event_type == LANE_CLOSED
}

#[cfg(test)]
mod tests;
