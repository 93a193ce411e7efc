//! Which lanes of a batch can start now, and what each other lane waits for.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::drain::{self, Notice};
use super::lane::{Lane, lanes};
use super::registered;
use crate::domain::decision::{Halt, Refusal};
use crate::domain::ids::{AgentId, BatchId, RepoName, Target};
use crate::domain::liveness;
use crate::domain::path::RecordPath;
use crate::domain::record::{Members, Stored, plain, present, text, texts};
use crate::domain::snapshot::Snapshot;
use crate::domain::status::{Judged, batch_report, spellings};
use crate::domain::tenure::Holding;
use crate::domain::vocabulary::{SATISFYING, TERMINAL};

/// The lanes of a batch, sorted by whether they can start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ready {
    /// The batch.
    pub batch_id: String,
    /// Lanes whose dependencies are met, that nobody has claimed, and that are not drained.
    pub ready: Vec<LaneName>,
    /// Every other lane.
    pub waiting: Vec<Waiting>,
    /// What could not be read or resolved.
    pub degraded: Vec<String>,
}

/// A lane by name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaneName {
    /// The lane's name.
    pub name: String,
    /// Its owner.
    pub owner: String,
    /// Its targets.
    pub targets: Vec<String>,
}

/// A lane that cannot start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Waiting {
    /// The lane.
    #[serde(flatten)]
    pub lane: LaneName,
    /// Why not; never empty.
    pub waits_for: Vec<Wait>,
}

/// What keeps a lane from starting.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Wait {
    /// Nothing: it has ended.
    Ended {
        /// How.
        status: String,
    },
    /// Nothing: its coordinator cancelled it.
    Drained {
        /// Why.
        reason: String,
    },
    /// A lane that has not ended well yet.
    Dependency {
        /// `BATCH:LANE`
        lane: String,
    },
    /// Somebody works on it already.
    Claim {
        /// The target, as it was claimed.
        target: String,
        /// Who holds the claim.
        agent_id: String,
        /// The holder's heartbeat state. `dead` permits a takeover.
        liveness: String,
    },
    /// A claim that cannot be read, and is therefore not known to be free.
    Unreadable {
        /// The record.
        path: String,
    },
}

/// Returns the claims of all targets of a batch, and the heartbeats of whoever holds them.
#[must_use]
pub fn claims_and_holders(snapshot: &Snapshot, batch_id: &BatchId, default_repo: &RepoName) -> BTreeSet<RecordPath> {
    let batch = snapshot.records.get(&RecordPath::batch(batch_id)).and_then(Option::as_ref);
    let Some(batch) = batch.and_then(Stored::object) else { return BTreeSet::new() };
    let repo = repo_of(batch, default_repo);
    let mut wanted: BTreeSet<RecordPath> = lanes(batch).flat_map(|lane| claim_paths(&lane, &repo)).collect();
    let holders: Vec<RecordPath> = wanted
        .iter()
        .filter_map(|path| snapshot.records.get(path)?.as_ref())
        .filter_map(|claim| AgentId::parse("agent-id", claim.text("agent_id")?).ok())
        .map(|agent| RecordPath::heartbeat(&agent))
        .collect();
    wanted.extend(holders);
    wanted
}

fn repo_of(batch: &Members, default_repo: &RepoName) -> RepoName {
    let own = text(batch, "repo").and_then(|repo| RepoName::parse("batch", repo).ok());
    own.unwrap_or_else(|| default_repo.clone())
}

/// Returns where a claim on any target of the lane would be, under every spelling.
fn claim_paths(lane: &Lane<'_>, repo: &RepoName) -> Vec<RecordPath> {
    let targets = lane.targets.iter().filter_map(|target| Target::parse("target", target).ok());
    targets
        .flat_map(|target| spellings(repo, &target))
        .filter_map(|spelling| RecordPath::claim(repo, &spelling).ok())
        .collect()
}

/// Sorts the lanes of a batch. The snapshot must hold what its status report and [`claims_and_holders`] are made of.
///
/// # Errors
/// A refusal when the batch is not registered or cannot be read.
pub fn ready(snapshot: &Snapshot, batch_id: &BatchId, default_repo: &RepoName, judged: Judged) -> Result<Ready, Halt> {
    let (_, batch) = registered(snapshot, batch_id)?;
    let report = batch_report(snapshot, batch_id, judged)?;
    let repo = repo_of(batch, default_repo);
    let rows = report.batches.iter().flatten().filter_map(|row| row.get("lanes")).filter_map(Value::as_array).flatten();
    let (mut ready, mut waiting) = (Vec::new(), Vec::new());
    for (lane, row) in lanes(batch).zip(rows) {
        let name =
            LaneName { name: lane.name.clone(), owner: lane.owner_shown().to_owned(), targets: lane.targets.clone() };
        let standing = Standing { snapshot, lane: &lane, judged };
        let waits_for = standing.waits(batch_id, batch, &repo, &texts(row.get("blocked_on")))?;
        if waits_for.is_empty() { ready.push(name) } else { waiting.push(Waiting { lane: name, waits_for }) }
    }
    let notes = report
        .notes
        .iter()
        .filter(|(section, _)| matches!(*section, "dependencies" | "unresolved_dependencies" | "lanes"));
    let degraded = notes.map(|(_, note)| note.clone()).collect();
    Ok(Ready { batch_id: batch_id.to_string(), ready, waiting, degraded })
}

struct Standing<'a> {
    snapshot: &'a Snapshot,
    lane: &'a Lane<'a>,
    judged: Judged,
}

impl Standing<'_> {
    fn waits(
        &self,
        batch_id: &BatchId,
        batch: &Members,
        repo: &RepoName,
        blocked_on: &[String],
    ) -> Result<Vec<Wait>, Halt> {
        if let Some(status) = self.end() {
            return Ok(vec![Wait::Ended { status }]);
        }
        let drained = drain::of_lane(batch_id.as_str(), batch, Some(&self.lane.name));
        let mut waits: Vec<Wait> = drained.into_iter().map(|Notice { reason, .. }| Wait::Drained { reason }).collect();
        waits.extend(blocked_on.iter().map(|lane| Wait::Dependency { lane: lane.clone() }));
        for path in claim_paths(self.lane, repo) {
            if let Some(claim) = self.snapshot.get(&path)? {
                waits.extend(self.claim(claim));
            }
        }
        Ok(waits)
    }

    /// Returns how the lane ended: as closed, as registered, or as its owner's heartbeat on one of its targets says.
    fn end(&self) -> Option<String> {
        let has_ended = |status: &String| TERMINAL.contains(&status.as_str()) || SATISFYING.contains(&status.as_str());
        let own = |name: &str| present(self.lane.members, name).map(plain);
        own("terminal").or_else(|| own("status").filter(has_ended)).or_else(|| {
            let heartbeat = self.heartbeat(self.lane.owner.as_deref()?)?;
            let is_here = text(heartbeat, "target").is_some_and(|target| self.lane.covers(target));
            text(heartbeat, "status").map(str::to_owned).filter(|status| is_here && has_ended(status))
        })
    }

    fn heartbeat(&self, agent: &str) -> Option<&Members> {
        let agent = AgentId::parse("agent-id", agent).ok()?;
        self.snapshot.records.get(&RecordPath::heartbeat(&agent))?.as_ref()?.object()
    }

    fn claim(&self, stored: &Stored) -> Option<Wait> {
        let held: Result<Holding, Refusal> = Holding::of(stored);
        let Ok(held) = held else { return Some(Wait::Unreadable { path: stored.path.to_string() }) };
        let liveness = held.agent.as_deref().and_then(|agent| self.heartbeat(agent));
        held.active.then(|| Wait::Claim {
            target: stored.text("target").unwrap_or_else(|| stored.path.stem()).to_owned(),
            agent_id: held.agent.clone().unwrap_or_else(|| "UNKNOWN".to_owned()),
            liveness: liveness
                .map_or_else(|| "no-heartbeat".to_owned(), |row| liveness::of(row, self.judged.now).to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{at, malformed, refusal, snapshot, stored, when};
    use crate::domain::path::Prefix;
    use crate::domain::snapshot::Listing;
    use serde_json::json;

    fn judged() -> Judged {
        Judged { now: at(0), wedged_after: None }
    }

    fn lane(name: &str, owner: &str, target: &str, depends_on: Value) -> Value {
        json!({"name": name, "owner": owner, "targets": [target], "depends_on": depends_on})
    }

    /// Decides on a batch of these lanes, every other record that is asked for being absent.
    fn sorted(batch: Value, others: Vec<Stored>) -> Ready {
        let (batch_id, repo) = (BatchId::parse("", "b1").unwrap(), RepoName::parse("", "o/r").unwrap());
        let mut present = others;
        present.push(stored("batches/b1.json", batch));
        let mut state = snapshot(present, &[]);
        state.listings.insert(Prefix::events_of(&batch_id), Listing::default());
        for _ in 0..3 {
            let mut wanted = crate::domain::status::reads_for_batch(&state, &batch_id);
            wanted.extend(claims_and_holders(&state, &batch_id, &repo));
            for path in wanted {
                state.records.entry(path).or_insert(None);
            }
        }
        ready(&state, &batch_id, &repo, judged()).unwrap()
    }

    fn names(ready: &Ready) -> Vec<&str> {
        ready.ready.iter().map(|lane| lane.name.as_str()).collect()
    }

    fn beat(agent: &str, status: &str, target: &str) -> Stored {
        let row = json!({"agent_id": agent, "status": status, "target": target, "updated_at": when(0), "expires_at": when(900)});
        stored(&format!("heartbeats/{agent}.json"), row)
    }

    #[test]
    fn a_lane_without_dependencies_can_start_and_the_next_waits_for_it() {
        let batch = json!({"lanes": [lane("a", "w1", "1", json!(null)), lane("b", "w2", "2", json!("b1:a"))]});
        let before = sorted(batch.clone(), vec![]);
        assert_eq!(names(&before), ["a"]);
        assert_eq!(before.waiting[0].waits_for, [Wait::Dependency { lane: "b1:a".to_owned() }]);
        let after = sorted(batch, vec![beat("w1", "done", "1")]);
        assert_eq!(names(&after), ["b"], "the owner says that it is done");
        assert_eq!(after.waiting[0].waits_for, [Wait::Ended { status: "done".to_owned() }]);
    }

    #[test]
    fn a_heartbeat_on_another_lane_does_not_end_this_one() {
        let batch = json!({"lanes": [lane("a", "w1", "1", json!(null)), lane("b", "w1", "2", json!(null))]});
        assert_eq!(names(&sorted(batch, vec![beat("w1", "done", "1")])), ["b"]);
    }

    #[test]
    fn a_claim_under_any_spelling_keeps_a_lane_from_starting() {
        let batch = json!({"lanes": [lane("a", "w1", "1", json!(null))]});
        let claim = json!({"agent_id": "x", "status": "active", "target": "issue:1"});
        let held = sorted(batch.clone(), vec![stored("claims/o/r/issue:1.json", claim), beat("x", "in_progress", "1")]);
        let expected = Wait::Claim { target: "issue:1".into(), agent_id: "x".into(), liveness: "live".into() };
        assert_eq!(held.waiting[0].waits_for, [expected]);
        let released = json!({"agent_id": "x", "status": "released"});
        assert_eq!(names(&sorted(batch.clone(), vec![stored("claims/o/r/1.json", released)])), ["a"]);
        let unreadable = sorted(batch, vec![malformed("claims/o/r/1.json")]);
        assert_eq!(unreadable.waiting[0].waits_for, [Wait::Unreadable { path: "claims/o/r/1.json".to_owned() }]);
    }

    #[test]
    fn the_batchs_own_repository_is_where_its_claims_are_looked_for() {
        let batch = json!({"repo": "o/other", "lanes": [lane("a", "w1", "1", json!(null))]});
        let claim = json!({"agent_id": "x", "status": "active"});
        assert_eq!(names(&sorted(batch.clone(), vec![stored("claims/o/r/1.json", claim.clone())])), ["a"]);
        assert!(names(&sorted(batch, vec![stored("claims/o/other/1.json", claim)])).is_empty());
    }

    #[test]
    fn a_drained_or_closed_lane_never_starts() {
        let mut closed = lane("a", "w1", "1", json!(null));
        closed["terminal"] = json!("abandoned");
        let batch =
            json!({"drained": [{"lane": "b", "reason": "stop"}], "lanes": [closed, lane("b", "w2", "2", json!(null))]});
        let sorted = sorted(batch, vec![]);
        let waits: Vec<&Wait> = sorted.waiting.iter().flat_map(|lane| &lane.waits_for).collect();
        assert_eq!(waits, [&Wait::Ended { status: "abandoned".into() }, &Wait::Drained { reason: "stop".into() }]);
    }

    #[test]
    fn a_dependency_nobody_can_resolve_is_unmet_and_said_to_be() {
        let batch = json!({"lanes": [lane("a", "w1", "1", json!(["b9:x"]))]});
        let sorted = sorted(batch, vec![]);
        assert!(sorted.ready.is_empty());
        assert_eq!(sorted.degraded, ["unresolved dependency refs: b9:x"]);
    }

    #[test]
    fn a_batch_that_is_not_registered_has_no_lanes_to_sort() {
        let (batch_id, repo) = (BatchId::parse("", "b1").unwrap(), RepoName::parse("", "o/r").unwrap());
        let none = snapshot(vec![], &["batches/b1.json"]);
        let verdict = ready(&none, &batch_id, &repo, judged());
        let error = refusal(verdict.map(|_| unreachable_decision()));
        assert_eq!(error.message, "batch b1 is not registered");
    }

    fn unreachable_decision() -> crate::domain::decision::Decision<()> {
        panic!("a batch that is not there was sorted")
    }
}
