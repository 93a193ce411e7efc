//! `batch-audit`: does the trail of a batch tell, lane by lane, that the work was begun and ended? (cli-contract.md
//! section 9)

mod lineage;

use serde::Serialize;

use self::lineage::Lineage;
use super::batch::lane::{Lane, UNKNOWN, listed};
use super::decision::Halt;
use super::event::CLAIM_ACQUIRED;
use super::ids::BatchId;
use super::path::{Prefix, RecordPath};
use super::record::{Content, Members, plain, present, text};
use super::snapshot::{Listing, Snapshot};

/// What an audit found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Finding {
    /// Every lane tells its whole story.
    Complete,
    /// Some lane does not.
    Incomplete,
    /// Nobody can tell.
    Unknown,
}

/// The report on one batch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// The batch, as asked for.
    pub batch_id: String,
    /// The verdict.
    pub verdict: Finding,
    /// Why the verdict is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The lanes, in the batch's order.
    pub lanes: Vec<LaneAudit>,
}

/// The report on one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneAudit {
    /// The lane's name.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// Its targets.
    pub targets: Vec<String>,
    /// How many events are attributed to it.
    pub event_count: usize,
    /// Which signals are missing.
    pub missing: Vec<&'static str>,
    /// Whether none is.
    pub complete: bool,
    /// Whether the lane itself is no object.
    pub malformed: bool,
}

const ACQUIRED: &str = "claim.acquired";
const TERMINAL: &str = "terminal";
const LIFECYCLE: &str = "lifecycle";

impl Audit {
    /// Returns the report of a batch that nobody can tell anything about.
    #[must_use]
    pub fn unknown(batch_id: &str, reason: impl Into<String>) -> Self {
        Self {
            batch_id: batch_id.to_owned(),
            verdict: Finding::Unknown,
            reason: Some(reason.into()),
            lanes: Vec::new(),
        }
    }

    /// Returns the report of a batch whose state could not be read.
    #[must_use]
    pub fn unreadable(batch_id: &str, message: &str) -> Self {
        Self::unknown(batch_id, format!("coordination state unreadable: {message}"))
    }
}

/// Audits a batch.
///
/// # Errors
/// [`Halt`] for the batch and its trail, when they were not read.
pub fn audit(snapshot: &Snapshot, batch_id: &BatchId) -> Result<Audit, Halt> {
    let id = batch_id.as_str();
    let listing = snapshot.list(&Prefix::events_of(batch_id))?;
    let Some(stored) = snapshot.get(&RecordPath::batch(batch_id))? else {
        return Ok(Audit::unknown(id, format!("batch {id} is not registered")));
    };
    let batch = match &stored.content {
        Content::Object(batch) => batch,
        Content::NotAnObject(_) => return Ok(Audit::unknown(id, format!("batch {id} state is not an object"))),
        Content::Malformed(reason) => return Ok(Audit::unreadable(id, &format!("{}: {reason}", stored.path))),
    };
    if listed(batch).is_empty() {
        return Ok(Audit::unknown(id, format!("batch {id} registers no lanes")));
    }
    match trouble(listing) {
        Some(Trouble::Filtered) => return Ok(Audit::unknown(id, filtered(id))),
        Some(Trouble::Unreadable(message)) => return Ok(Audit::unreadable(id, &message)),
        None => {}
    }
    let objects: Vec<Lane<'_>> = super::batch::lane::lanes(batch).collect();
    let trail = Trail::of(id, batch, &objects, listing);
    let mut known = objects.iter();
    let lanes: Vec<LaneAudit> =
        listed(batch)
            .iter()
            .map(|lane| {
                if lane.is_object() {
                    known.next().map_or_else(malformed, |lane| trail.audit(lane))
                } else {
                    malformed()
                }
            })
            .collect();
    let complete = lanes.iter().all(|lane| lane.complete);
    let verdict = if complete { Finding::Complete } else { Finding::Incomplete };
    Ok(Audit { batch_id: id.to_owned(), verdict, reason: None, lanes })
}

fn malformed() -> LaneAudit {
    LaneAudit {
        name: UNKNOWN.to_owned(),
        owner: UNKNOWN.to_owned(),
        targets: Vec::new(),
        event_count: 0,
        missing: vec![ACQUIRED, TERMINAL],
        complete: false,
        malformed: true,
    }
}

enum Trouble {
    Filtered,
    Unreadable(String),
}

/// Returns why a trail cannot be relied on. A trail with a gap could hide the very event that decides.
fn trouble(listing: &Listing) -> Option<Trouble> {
    if listing.notes.iter().any(|note| note.ends_with("filtered by scoped token")) {
        return Some(Trouble::Filtered);
    }
    if let Some(note) = listing.notes.first() {
        return Some(Trouble::Unreadable(note.clone()));
    }
    listing.records.iter().find_map(|stored| match &stored.content {
        Content::Object(_) => None,
        Content::NotAnObject(_) => Some(Trouble::Unreadable(format!("{} is not a JSON object", stored.path))),
        Content::Malformed(reason) => Some(Trouble::Unreadable(format!("{}: {reason}", stored.path))),
    })
}

fn filtered(batch_id: &str) -> String {
    format!("event trail for {batch_id} is filtered by a scoped token")
}

/// Words why a trail cannot be relied on; `None` when it can.
#[must_use]
pub fn unreadable_trail(batch_id: &str, listing: &Listing) -> Option<String> {
    Some(match trouble(listing)? {
        Trouble::Filtered => filtered(batch_id),
        Trouble::Unreadable(message) => format!("state unreadable: {message}"),
    })
}

/// The events of a batch beside its lanes.
pub struct Trail<'a> {
    batch_id: &'a str,
    lanes: &'a [Lane<'a>],
    events: Vec<&'a Members>,
}

impl<'a> Trail<'a> {
    /// Gathers the events that count: all of them, or those of the repository the batch declares.
    #[must_use]
    pub fn of(batch_id: &'a str, batch: &Members, lanes: &'a [Lane<'a>], listing: &'a Listing) -> Self {
        let repo = present(batch, "repo").map(plain);
        let counts = |event: &&Members| {
            repo.as_ref().is_none_or(|repo| present(event, "repo").map(plain).as_ref() == Some(repo))
        };
        let events = listing.records.iter().filter_map(|stored| stored.object()).filter(counts).collect();
        Self { batch_id, lanes, events }
    }

    /// Tells whether the trail shows that `agent` may act for `lane`: it is whole, in order and valid, admits the agent,
    /// and holds no invalid or conflicting closeout.
    #[must_use]
    pub fn admits(&self, lane: &Lane<'_>, agent: &str) -> bool {
        let lineage = self.lineage(lane);
        lineage.is_sound() && lineage.authorized.iter().any(|known| known == agent) && lineage.closeouts_agree
    }

    fn audit(&self, lane: &Lane<'_>) -> LaneAudit {
        let events = self.attributed(lane);
        let lineage = self.lineage(lane);
        let mut missing = Vec::new();
        if !events.iter().any(|event| text(event, "type") == Some(CLAIM_ACQUIRED)) {
            missing.push(ACQUIRED);
        }
        if !lineage.is_ended() {
            missing.push(TERMINAL);
        }
        if !lineage.is_sound() {
            missing.push(LIFECYCLE);
        }
        LaneAudit {
            name: lane.name.clone(),
            owner: lane.owner_shown().to_owned(),
            targets: lane.targets.clone(),
            event_count: events.len(),
            complete: missing.is_empty(),
            missing,
            malformed: false,
        }
    }

    fn lineage(&self, lane: &Lane<'_>) -> Lineage {
        Lineage::of(self.batch_id, lane, |target| self.is_unique_target(target), &self.attributed(lane))
    }

    /// Returns the events of a lane: those that name it, its own target, or come from its owner.
    fn attributed(&self, lane: &Lane<'_>) -> Vec<&'a Members> {
        let owner = lineage::known_owner(lane)
            .filter(|owner| self.lanes.iter().filter(|other| other.owner.as_deref() == Some(owner)).count() == 1);
        let is_of = |event: &&&Members| {
            let given = |name: &str| present(event, name).map(plain);
            let target = given("target").filter(|target| !target.trim().is_empty());
            let is_covered = target.as_ref().is_some_and(|target| lane.covers(target));
            let names_lane = given("lane").as_ref() == Some(&lane.name);
            let names_target = is_covered && target.as_ref().is_some_and(|target| self.is_unique_target(target));
            let is_from_owner = owner.is_some() && given("agent_id").as_deref() == owner;
            names_lane || names_target || (is_from_owner && (target.is_none() || is_covered))
        };
        self.events.iter().filter(is_of).copied().collect()
    }

    fn is_unique_target(&self, target: &str) -> bool {
        self.lanes.iter().filter(|lane| lane.covers(target)).count() == 1
    }
}

#[cfg(test)]
mod tests;
