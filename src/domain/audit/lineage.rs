//! Who was entitled to speak for a lane at each of its events (cli-contract.md section 9.2, "Lineage").

use crate::domain::batch::lane::Lane;
use crate::domain::closeout::event::{LANE_CLOSED, closer, is_same, is_valid};
use crate::domain::event::{CLAIM_ACQUIRED, CLAIM_RELEASED, PHASE_CHANGED};
use crate::domain::record::{Members, present, text};
use crate::domain::time::Timestamp;

/// What the events of a lane, walked in order, amount to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// Every event can be put in its place.
    ordered: bool,
    /// Every claim and phase event is valid and from somebody entitled.
    valid: bool,
    /// A `claim.released` from somebody entitled is there.
    released: bool,
    closed: bool,
    /// All closeouts are valid and the same; true without any.
    pub closeouts_agree: bool,
    /// The owner, and whom a valid `claim.acquired` admitted.
    pub authorized: Vec<String>,
}

impl Lineage {
    /// Walks the events attributed to `lane`.
    pub fn of(batch_id: &str, lane: &Lane<'_>, is_unique_target: impl Fn(&str) -> bool, events: &[&Members]) -> Self {
        let own: Vec<&Members> = events.iter().filter(|event| kind(event).is_some()).copied().collect();
        let closeouts: Vec<&Members> = own.iter().filter(|event| kind(event) == Some(LANE_CLOSED)).copied().collect();
        let mut lineage = Self {
            ordered: true,
            valid: true,
            released: false,
            closed: !closeouts.is_empty(),
            closeouts_agree: closeouts.windows(2).all(|pair| is_same(pair[0], pair[1])),
            authorized: known_owner(lane).map(str::to_owned).into_iter().collect(),
        };
        let Some(ordered) = in_order(&own) else {
            return Self { ordered: false, closeouts_agree: closeouts.is_empty(), authorized: Vec::new(), ..lineage };
        };
        for event in ordered {
            lineage.walk(batch_id, lane, &is_unique_target, event);
        }
        lineage
    }

    /// Tells whether the order is clear and every claim and phase event valid.
    pub fn is_sound(&self) -> bool {
        self.ordered && self.valid
    }

    /// Tells whether the lane came to an end: by closeouts that agree, or by a release.
    pub fn is_ended(&self) -> bool {
        if self.closed { self.closeouts_agree } else { self.released }
    }

    fn walk(&mut self, batch_id: &str, lane: &Lane<'_>, is_unique_target: &impl Fn(&str) -> bool, event: &Members) {
        let agent = text(event, "agent_id").unwrap_or_default();
        let authorized = |agent: &str| self.authorized.iter().any(|known| known == agent);
        let facts = has_identity(batch_id, lane, event);
        match kind(event) {
            Some(CLAIM_ACQUIRED) => {
                let may = is_owner(lane, agent) || may_be_admitted(lane, is_unique_target, event);
                let valid = facts && may && status_is(event, "active");
                if valid && !authorized(agent) {
                    self.authorized.push(agent.to_owned());
                }
                self.valid &= valid;
            }
            Some(CLAIM_RELEASED) => {
                let valid = facts && authorized(agent) && status_is(event, "released");
                self.released |= valid;
                self.valid &= valid;
            }
            Some(PHASE_CHANGED) => {
                let valid = facts && authorized(agent) && is_step(event);
                self.valid &= valid;
            }
            _ => {
                let valid = is_closeout(batch_id, lane, event) && closer(event).is_some_and(authorized);
                self.closeouts_agree &= valid;
            }
        }
    }
}

/// Returns the type of an event that a lineage is made of.
fn kind(event: &Members) -> Option<&str> {
    const KINDS: [&str; 4] = [CLAIM_ACQUIRED, CLAIM_RELEASED, PHASE_CHANGED, LANE_CLOSED];
    text(event, "type").filter(|kind| KINDS.contains(kind))
}

/// Sorts events by instant and id; `None` when one has no place, or two have the same.
fn in_order<'a>(events: &[&'a Members]) -> Option<Vec<&'a Members>> {
    let mut placed = Vec::with_capacity(events.len());
    for &event in events {
        let id = usable(event, "event_id")?;
        placed.push((Timestamp::parse_strict(usable(event, "at")?)?, id, event));
    }
    placed.sort_by_key(|(at, id, _)| (*at, *id));
    let clear = placed.windows(2).all(|pair| (pair[0].0, pair[0].1) != (pair[1].0, pair[1].1));
    clear.then(|| placed.into_iter().map(|(_, _, event)| event).collect())
}

/// Returns a member that is text, not blank, and not the word for nothing.
fn usable<'a>(event: &'a Members, name: &str) -> Option<&'a str> {
    text(event, name).filter(|value| is_usable(value))
}

fn is_usable(value: &str) -> bool {
    !value.trim().is_empty() && !value.trim().eq_ignore_ascii_case("UNKNOWN")
}

fn usable_if_there(event: &Members, name: &str) -> bool {
    present(event, name).is_none() || usable(event, name).is_some()
}

/// Returns the owner of a lane, when it has one that means somebody.
pub fn known_owner<'a>(lane: &'a Lane<'_>) -> Option<&'a str> {
    lane.owner.as_deref().filter(|owner| is_usable(owner))
}

fn is_owner(lane: &Lane<'_>, agent: &str) -> bool {
    known_owner(lane) == Some(agent)
}

/// Somebody else is admitted only to an owned lane, on one of its targets, and only when it is clear which lane is meant.
fn may_be_admitted(lane: &Lane<'_>, is_unique_target: &impl Fn(&str) -> bool, event: &Members) -> bool {
    let Some(target) = text(event, "target").filter(|target| lane.covers(target)) else { return false };
    let meant = match text(event, "lane") {
        Some(name) => name == lane.name,
        None => is_unique_target(target),
    };
    known_owner(lane).is_some() && meant
}

/// The facts that say which lane an event belongs to, whose it is and when it happened.
fn has_identity(batch_id: &str, lane: &Lane<'_>, event: &Members) -> bool {
    event.get("schema_version").and_then(serde_json::Value::as_i64) == Some(1)
        && ["event_id", "agent_id"].iter().all(|name| usable(event, name).is_some())
        && usable(event, "at").is_some_and(|at| Timestamp::parse_strict(at).is_some())
        && usable(event, "batch_id") == Some(batch_id)
        && ["lane", "repo", "target"].iter().all(|name| usable_if_there(event, name))
        && matches_lane(lane, event)
}

fn matches_lane(lane: &Lane<'_>, event: &Members) -> bool {
    text(event, "lane").is_none_or(|name| name == lane.name)
        && text(event, "target").is_none_or(|target| lane.covers(target))
}

fn status_is(event: &Members, expected: &str) -> bool {
    present(event, "status").is_none_or(|status| status.as_str() == Some(expected))
}

/// A change of phase says from which phase to which, in either of the spellings events have had.
fn is_step(event: &Members) -> bool {
    let Some(phase) = usable(event, "phase") else { return false };
    let differs = |name: &str| usable(event, name).is_some_and(|old| old != phase);
    let new_spelling = present(event, "previous_phase").map(|_| differs("previous_phase"));
    let has_old_spelling = ["old_phase", "new_phase"].iter().any(|name| present(event, name).is_some());
    let old_spelling = has_old_spelling.then(|| differs("old_phase") && text(event, "new_phase") == Some(phase));
    let stated = [new_spelling, old_spelling];
    usable_if_there(event, "status")
        && stated.iter().any(Option::is_some)
        && stated.iter().flatten().all(|valid| *valid)
}

fn is_closeout(batch_id: &str, lane: &Lane<'_>, event: &Members) -> bool {
    const REQUIRED: [&str; 6] = ["event_id", "repo", "target", "terminal", "workspace", "at"];
    const OPTIONAL: [&str; 7] = ["batch_id", "lane", "agent_id", "branch", "pr_url", "pr_state", "evidence_url"];
    let closed_by = event.get("closed_by").and_then(serde_json::Value::as_object);
    is_valid(event)
        && REQUIRED.iter().all(|name| usable(event, name).is_some())
        && OPTIONAL.iter().all(|name| usable_if_there(event, name))
        && closed_by.is_some_and(|by| ["agent_id", "machine"].iter().all(|name| usable(by, name).is_some()))
        && text(event, "batch_id").is_none_or(|batch| batch == batch_id)
        && matches_lane(lane, event)
        && text(event, "agent_id").is_none_or(|agent| closer(event) == Some(agent))
}
