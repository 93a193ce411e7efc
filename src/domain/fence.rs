//! The marks of lost tenures: who leaves them, whom they concern, and how long they stay (design.md section 4,
//! "Takeover", "Supersede" and "Being told").

use serde_json::Value;

use super::decision::{Edit, Halt, Put};
use super::ids::AgentId;
use super::path::RecordPath;
use super::record::{Annotations, Fence, Members, Stored, text};
use super::snapshot::Snapshot;
use super::tenure::{Actor, Holding};
use super::time::Timestamp;

/// How long a mark stays when nobody comes to read it, in seconds.
const KEPT_FOR: i64 = 30 * 24 * 60 * 60;

/// Returns the path of an agent's heartbeat row; an id that is not a segment can have none.
#[must_use]
pub fn row_path(agent: Option<&str>) -> Option<RecordPath> {
    AgentId::parse("agent-id", agent?).ok().map(|agent| RecordPath::heartbeat(&agent))
}

/// Returns the edit that marks the loss on the displaced holder's heartbeat row.
///
/// The row itself is left as it is. Where there is none, or one that cannot be read, a row with the required members
/// alone is written, dead from the start, so that a first beat in between breaks the swap as well. A holder whose id
/// names no row is displaced without a mark.
///
/// # Errors
/// [`Halt::Read`] when the row was not read yet.
pub fn displace(snapshot: &Snapshot, claim: &Stored, held: &Holding, fence: Fence) -> Result<Option<Edit>, Halt> {
    let (Some(path), Some(agent)) = (row_path(held.agent.as_deref()), held.agent.as_deref()) else { return Ok(None) };
    let row = snapshot.get(&path)?;
    let members = match row.and_then(Stored::object) {
        Some(members) => members.clone(),
        None => stand_in(agent, claim.text("updated_at").unwrap_or(&fence.at)),
    };
    let mut put = Put::upsert(path, row, members);
    add(&mut put.annotations, fence);
    Ok(Some(Edit::Put(put)))
}

/// Returns the row that stands in for a heartbeat nobody ever sent.
fn stand_in(agent: &str, instant: &str) -> Members {
    let mut row = Members::new();
    row.insert("schema_version".to_owned(), Value::from(1));
    for (name, value) in
        [("agent_id", agent), ("status", "in_progress"), ("updated_at", instant), ("expires_at", instant)]
    {
        row.insert(name.to_owned(), Value::from(value));
    }
    row
}

/// Tells whether a row only stands in for a heartbeat. It then says nothing of the agent's other claims: those keep
/// their own `expires_at`.
#[must_use]
pub fn stands_in(row: &Stored) -> bool {
    let written = row.text("updated_at");
    !row.annotations.fenced.is_empty() && written.is_some() && written == row.text("expires_at")
}

/// Adds a mark; of one target and instance only the latest loss is kept.
pub fn add(annotations: &mut Annotations, fence: Fence) {
    let same =
        |other: &Fence| (&other.repo, &other.target, &other.instance) == (&fence.repo, &fence.target, &fence.instance);
    annotations.fenced.retain(|other| !same(other));
    annotations.fenced.push(fence);
}

/// What a beat does with a mark it finds on its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is: it is not for this actor, or the claim does not bear it out.
    Keep,
    /// It has done its work.
    Drop,
    /// It is reported and marked as reported.
    Tell,
}

/// What is known of the claim that a mark speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claimed<'a> {
    /// It stands so.
    Held(&'a Holding),
    /// There is none any more.
    Absent,
    /// It cannot be read.
    Unreadable,
}

/// Decides what becomes of a mark. `told` = the transactions whose report this clone is known to have printed.
#[must_use]
pub fn fate(fence: &Fence, claim: Claimed<'_>, actor: &Actor<'_>, told: &[String], now: Timestamp) -> Fate {
    let told_before = fence.told_by.as_ref().is_some_and(|transaction| told.contains(transaction));
    if told_before || is_old(fence, now) || is_regained(fence, claim, actor) {
        return Fate::Drop;
    }
    if bears_out(claim, fence, actor) && concerns(fence, actor) { Fate::Tell } else { Fate::Keep }
}

fn is_old(fence: &Fence, now: Timestamp) -> bool {
    Timestamp::parse_iso(&fence.at).is_some_and(|at| now.seconds_since(at) >= KEPT_FOR)
}

/// The agent holds the target again, as the instance that had lost it.
fn is_regained(fence: &Fence, claim: Claimed<'_>, actor: &Actor<'_>) -> bool {
    let Claimed::Held(holding) = claim else { return false };
    holding.active
        && actor.agent.is_some_and(|agent| holding.is_of(agent))
        && holding.generation > fence.generation
        && holding.instance == fence.instance
}

/// The claim agrees with the mark. It does not after a transaction that was cut off between the two records.
fn bears_out(claim: Claimed<'_>, fence: &Fence, actor: &Actor<'_>) -> bool {
    match claim {
        Claimed::Held(holding) => {
            holding.generation > fence.generation || !actor.agent.is_some_and(|agent| holding.is_of(agent))
        }
        Claimed::Absent => true,
        Claimed::Unreadable => false,
    }
}

/// The actor may be the one that lost the tenure. After a supersede the row is shared with the successor, so only the
/// instance that was replaced is meant.
fn concerns(fence: &Fence, actor: &Actor<'_>) -> bool {
    if actor.agent == Some(fence.by.as_str()) {
        return fence.instance.as_deref() == actor.instance;
    }
    fence.instance.is_none() || actor.instance.is_none() || fence.instance.as_deref() == actor.instance
}

/// Names the target of a mark: `o/r#42`.
#[must_use]
pub fn item(fence: &Fence) -> String {
    format!("{}#{}", fence.repo, fence.target)
}

/// Tells whether a mark speaks of the target that a heartbeat row names.
#[must_use]
pub fn is_about(fence: &Fence, row: &Members) -> bool {
    text(row, "repo") == Some(&fence.repo) && text(row, "target") == Some(&fence.target)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::decision::Expect;
    use crate::domain::fixtures::{at, claim_path, fence_of, malformed, object, snapshot, stored, when};
    use serde_json::json;

    fn holding(agent: &str, instance: Option<&str>, generation: i64) -> Holding {
        Holding {
            agent: Some(agent.to_owned()),
            instance: instance.map(str::to_owned),
            generation,
            since: Some(when(0)),
            active: true,
        }
    }

    fn actor(instance: Option<&'static str>) -> Actor<'static> {
        Actor { agent: Some("a"), instance, generation: None }
    }

    fn of_instance(instance: &str, by: &str) -> Fence {
        Fence { instance: Some(instance.to_owned()), ..fence_of(1, by) }
    }

    fn displaced(rows: Vec<Stored>, absent: &[&str]) -> Put {
        let claim = stored(claim_path().as_str(), json!({"updated_at": when(5)}));
        match displace(&snapshot(rows, absent), &claim, &holding("a", None, 1), fence_of(1, "b")) {
            Ok(Some(Edit::Put(put))) => put,
            other => panic!("no mark: {other:?}"),
        }
    }

    #[test]
    fn a_readable_row_is_kept_and_gets_the_mark() {
        let row = stored("heartbeats/a.json", json!({"agent_id": "a", "extra": [1]}));
        let put = displaced(vec![row.clone()], &[]);
        assert_eq!(Some(&put.members), row.object());
        assert_eq!((put.expect, put.annotations.fenced), (Expect::At(row.version), vec![fence_of(1, "b")]));
    }

    #[test]
    fn where_no_row_can_be_read_a_stand_in_is_written_that_is_dead_from_the_start() {
        for (rows, absent, expect_absent) in [
            (vec![], &["heartbeats/a.json"][..], true),
            (vec![malformed("heartbeats/a.json")], &[][..], false),
            (vec![stored("heartbeats/a.json", json!(7))], &[][..], false),
        ] {
            let put = displaced(rows, absent);
            assert_eq!(
                put.members,
                object(json!({"schema_version": 1, "agent_id": "a", "status": "in_progress",
                              "updated_at": when(5), "expires_at": when(5)}))
            );
            assert_eq!(put.expect == Expect::Absent, expect_absent);
            let mut row = stored("heartbeats/a.json", json!(put.members));
            row.annotations = put.annotations;
            assert!(stands_in(&row));
        }
    }

    #[test]
    fn a_holder_whose_id_names_no_row_is_displaced_without_a_mark() {
        let claim = stored(claim_path().as_str(), json!({}));
        for agent in ["a/b", "..", " "] {
            let answer = displace(&snapshot(vec![], &[]), &claim, &holding(agent, None, 1), fence_of(1, "b"));
            assert_eq!(answer, Ok(None));
        }
    }

    #[test]
    fn only_the_latest_loss_of_one_target_and_instance_is_kept() {
        let mut annotations = Annotations::default();
        for fence in [fence_of(1, "b"), of_instance("i1", "b"), fence_of(3, "c")] {
            add(&mut annotations, fence);
        }
        assert_eq!(annotations.fenced, [of_instance("i1", "b"), fence_of(3, "c")]);
    }

    #[test]
    fn a_mark_is_told_while_the_claim_bears_it_out() {
        let (taken, kept) = (holding("b", None, 2), holding("a", None, 1));
        let tell = |claim| fate(&fence_of(1, "b"), claim, &actor(None), &[], at(60));
        assert_eq!(tell(Claimed::Held(&taken)), Fate::Tell);
        assert_eq!(tell(Claimed::Absent), Fate::Tell);
        assert_eq!(tell(Claimed::Held(&kept)), Fate::Keep, "the takeover was cut off");
        assert_eq!(tell(Claimed::Unreadable), Fate::Keep);
    }

    #[test]
    fn a_mark_is_dropped_only_when_its_report_is_known_to_be_printed() {
        let marked = Fence { told_by: Some("t1".to_owned()), ..fence_of(1, "b") };
        let claim = holding("b", None, 2);
        let seen = |told: &[String]| fate(&marked, Claimed::Held(&claim), &actor(None), told, at(60));
        assert_eq!(seen(&[]), Fate::Tell, "the report may have been lost with its process");
        assert_eq!(seen(&["t2".to_owned()]), Fate::Tell);
        assert_eq!(seen(&["t1".to_owned()]), Fate::Drop);
    }

    #[test]
    fn a_mark_goes_when_the_same_instance_holds_the_target_again_or_after_thirty_days() {
        let again = holding("a", None, 3);
        assert_eq!(fate(&fence_of(1, "b"), Claimed::Held(&again), &actor(None), &[], at(60)), Fate::Drop);
        let other = holding("a", Some("i2"), 3);
        let mark = of_instance("i1", "b");
        assert_eq!(fate(&mark, Claimed::Held(&other), &actor(Some("i1")), &[], at(60)), Fate::Tell);
        let held = holding("b", None, 2);
        assert_eq!(fate(&fence_of(1, "b"), Claimed::Held(&held), &actor(None), &[], at(KEPT_FOR - 1)), Fate::Tell);
        assert_eq!(fate(&fence_of(1, "b"), Claimed::Held(&held), &actor(None), &[], at(KEPT_FOR)), Fate::Drop);
    }

    #[test]
    fn after_a_supersede_only_the_replaced_instance_is_meant() {
        let claim = holding("a", Some("i2"), 2);
        let mark = of_instance("i1", "a");
        let seen = |instance| fate(&mark, Claimed::Held(&claim), &actor(instance), &[], at(60));
        assert_eq!(seen(Some("i1")), Fate::Tell);
        assert_eq!(seen(Some("i2")), Fate::Keep, "the successor shares the row and must not swallow the report");
        assert_eq!(seen(None), Fate::Keep);
    }

    #[test]
    fn after_a_takeover_another_instance_does_not_swallow_the_report() {
        let claim = holding("b", None, 2);
        let mark = of_instance("i1", "b");
        let seen = |instance| fate(&mark, Claimed::Held(&claim), &actor(instance), &[], at(60));
        assert_eq!((seen(Some("i1")), seen(None), seen(Some("i2"))), (Fate::Tell, Fate::Tell, Fate::Keep));
    }
}
