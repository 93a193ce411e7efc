//! Giving a claim back, or on to another (cli-contract.md section 3).

use serde_json::Value;

use super::decision::{Decision, Edit, Halt, Put, Refusal, RefusalKind, Verdict};
use super::event::claim_released;
use super::metadata::{set, set_all};
use super::path::RecordPath;
use super::printable::printable;
use super::record::{Members, Stored, integer};
use super::request::{Release, Stamp};
use super::snapshot::{Freshness, Snapshot};
use super::tenure::{Actor, Holding, members_of};

/// A claim that was given back.
#[derive(Debug, Clone, PartialEq)]
pub struct Released {
    /// The record as stored, without `$store`. Its generation stays: the next acquisition counts on from it.
    pub record: Members,
    /// The generation that was given back; absent on stores that enforce none.
    pub generation: Option<i64>,
    /// What to warn of, without `warning: `.
    pub warnings: Vec<String>,
}

/// Decides a release. The recorded holder may release a released claim again.
///
/// # Errors
/// A refusal when there is no claim, it is another's, or the tenure acted for is over.
pub fn release(snapshot: &Snapshot, request: &Release, stamp: &Stamp) -> Verdict<Released> {
    let stored = releasable(snapshot, request, stamp)?;
    let record = merge(members_of(stored, "claim")?, request, stamp);
    let (mut edits, mut warnings) = (Vec::new(), Vec::new());
    claim_released(&record, stamp, &request.attribution).add_to(&mut edits, &mut warnings);
    edits.push(Edit::Put(Put::replace(stored, record.clone())));
    let generation = stamp.fencing.then(|| integer(&record, "generation").unwrap_or(0));
    Ok(Decision { edits, outcome: Released { record, generation, warnings }, basis: Freshness::Cached })
}

/// Returns the claim that `request` may give back.
///
/// # Errors
/// A refusal when there is no claim, it is another's, or the tenure acted for is over.
pub(super) fn releasable<'a>(snapshot: &'a Snapshot, request: &Release, stamp: &Stamp) -> Result<&'a Stored, Halt> {
    let invalid = |message: String| Refusal::new(RefusalKind::Invalid, message);
    let item = format!("{}#{}", request.repo, request.target);
    let path = RecordPath::claim(&request.repo, &request.target).map_err(|error| invalid(error.to_string()))?;
    let Some(stored) = snapshot.get(&path)? else {
        return Err(invalid(format!("no claim exists for {item}")).into());
    };
    let held = Holding::of(stored)?;
    if held.agent.as_ref().is_some_and(|holder| *holder != request.agent) {
        let asking = printable(&request.agent);
        return Err(invalid(format!("claim belongs to {}; {asking} cannot release it", held.holder())).into());
    }
    if stamp.fencing {
        refuse_other_tenure(&item, &held, request)?;
    }
    Ok(stored)
}

/// An instance or a generation other than the stored one cannot give back what it does not hold.
fn refuse_other_tenure(item: &str, held: &Holding, request: &Release) -> Result<(), Refusal> {
    let actor = Actor::of(Some(&request.agent), &request.metadata);
    let other_instance = matches!((actor.instance, &held.instance), (Some(ours), Some(theirs)) if ours != theirs);
    let other_generation = actor.generation.is_some_and(|ours| ours != held.generation);
    if !other_instance && !other_generation {
        return Ok(());
    }
    let holder = if held.instance.is_some() { held.holder_and_instance() } else { held.holder() };
    let message =
        format!("CLAIM_LOST: {item} generation {} is that of {holder}; it cannot be released by", held.generation);
    let asking = match (other_instance, actor.generation) {
        (true, _) => format!("instance {}", printable(actor.instance.unwrap_or_default())),
        (false, generation) => format!("generation {}", generation.unwrap_or_default()),
    };
    let hint = "that tenure is over; look at the claim with `agent-coord status`";
    Err(Refusal::new(RefusalKind::Claimed, format!("{message} {asking}")).with_hint(hint))
}

/// Merges the release into the stored record, whose unknown members stay.
pub(super) fn merge(stored: &Members, request: &Release, stamp: &Stamp) -> Members {
    let now = Value::from(stamp.now.to_string());
    let mut record: Members = stored
        .iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let agent = Value::from(request.agent.as_str());
    for (name, value) in [
        ("agent_id", agent.clone()),
        ("status", "released".into()),
        ("released_by", agent),
        ("released_at", now.clone()),
        ("updated_at", now.clone()),
        ("expires_at", now),
    ] {
        record.insert(name.to_owned(), value);
    }
    set_all(&mut record, request.metadata.members());
    request.attribution.stamp(&mut record, Some(stored));
    for name in ["release_mode", "handoff_to", "handoff_note"] {
        record.shift_remove(name);
    }
    if request.handoff_to.is_some() || request.handoff_note.is_some() {
        record.insert("release_mode".to_owned(), "handoff".into());
        set(&mut record, "handoff_to", request.handoff_to.clone());
        set(&mut record, "handoff_note", request.handoff_note.clone());
    }
    set(&mut record, "branch", request.branch.clone());
    record
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::decision::Expect;
    use crate::domain::fixtures::{appended, claim_path, keys, malformed, plain_stamp, put, refusal, release_by};
    use crate::domain::fixtures::{snapshot, stamp, stored, when};
    use crate::domain::request::{Attribution, Metadata};
    use serde_json::json;

    const PATH: &str = "claims/o/r/42.json";

    fn held(extra: Value) -> Snapshot {
        let mut claim = json!({"schema_version": 1, "repo": "o/r", "target": "42", "agent_id": "a", "status": "active",
                               "claimed_at": when(-9), "updated_at": when(-9), "expires_at": when(999)});
        claim.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        snapshot(vec![stored(PATH, claim)], &[])
    }

    fn of(instance: Option<&str>, generation: Option<i64>) -> Release {
        let metadata = Metadata { instance_id: instance.map(str::to_owned), generation, ..Metadata::default() };
        Release { metadata, ..release_by("a") }
    }

    #[test]
    fn a_release_is_merged_into_the_record_and_keeps_what_it_does_not_know() {
        let request = Release {
            branch: Some("br".into()),
            metadata: Metadata { phase: Some("done".into()), ..Metadata::default() },
            attribution: Attribution::resolve(Some("m"), None, None),
            ..release_by("a")
        };
        let decision =
            release(&held(json!({"custom": 1, "note": null, "generation": 4})), &request, &stamp(0)).unwrap();
        let put = put(&decision, PATH);
        let order = "schema_version repo target agent_id status claimed_at updated_at expires_at custom generation \
                     released_by released_at phase machine_id branch";
        assert_eq!(keys(&put.members).join(" "), order);
        assert_eq!((&put.members["status"], &put.members["expires_at"]), (&json!("released"), &json!(when(0))));
        assert_eq!((decision.outcome.generation, &put.members["generation"]), (Some(4), &json!(4)));
        assert!(matches!(put.expect, Expect::At(_)));
    }

    #[test]
    fn the_handoff_members_are_those_of_this_release_alone() {
        let before =
            held(json!({"release_mode": "handoff", "handoff_to": "w9", "handoff_note": "old", "branch": "br"}));
        let plain = release(&before, &release_by("a"), &stamp(0)).unwrap().outcome.record;
        assert!(["release_mode", "handoff_to", "handoff_note"].iter().all(|name| !plain.contains_key(*name)));
        let request = Release { handoff_note: Some("new".into()), ..release_by("a") };
        let handed = release(&before, &request, &stamp(0)).unwrap().outcome.record;
        assert_eq!((&handed["release_mode"], &handed["handoff_note"]), (&json!("handoff"), &json!("new")));
        assert!(!handed.contains_key("handoff_to"));
    }

    #[test]
    fn the_batch_is_told_in_the_same_transaction() {
        let decision = release(&held(json!({"batch_id": "b1"})), &release_by("a"), &stamp(0)).unwrap();
        assert_eq!(appended(&decision).unwrap()["type"], "claim.released");
        let alone = release(&held(json!({})), &release_by("a"), &stamp(0)).unwrap();
        assert_eq!(appended(&alone), None);
        let odd = release(&held(json!({"batch_id": "b 1"})), &release_by("a"), &stamp(0)).unwrap();
        assert_eq!(odd.outcome.warnings, ["claim.released event not recorded: invalid batch-id: b 1"]);
    }

    #[test]
    fn only_the_recorded_holder_may_release() {
        let told = refusal(release(&held(json!({})), &release_by("b"), &stamp(0)));
        assert_eq!(
            (told.kind, told.message.as_str()),
            (RefusalKind::Invalid, "claim belongs to a; b cannot release it")
        );
        assert!(release(&held(json!({"status": "released"})), &release_by("a"), &stamp(0)).is_ok(), "again is fine");
        assert!(
            release(&held(json!({"agent_id": null})), &release_by("b"), &stamp(0)).is_ok(),
            "nobody's is anybody's"
        );
    }

    #[test]
    fn what_does_not_exist_or_cannot_be_read_is_not_released() {
        let none = refusal(release(&snapshot(vec![], &[PATH]), &release_by("a"), &stamp(0)));
        assert_eq!((none.kind, none.message.as_str()), (RefusalKind::Invalid, "no claim exists for o/r#42"));
        for bad in [malformed(PATH), stored(PATH, json!("x"))] {
            let unknown = refusal(release(&snapshot(vec![bad], &[]), &release_by("a"), &stamp(0)));
            assert_eq!(unknown.kind, RefusalKind::Unknown);
            assert!(unknown.message.contains(claim_path().as_str()));
        }
    }

    #[test]
    fn a_stale_instance_or_generation_gives_nothing_back() {
        let claim = held(json!({"instance_id": "i2", "generation": 4}));
        for (instance, generation) in [(Some("i1"), None), (Some("i2"), Some(3)), (None, Some(3)), (None, Some(5))] {
            let told = refusal(release(&claim, &of(instance, generation), &stamp(0)));
            assert_eq!(told.kind, RefusalKind::Claimed, "{instance:?} {generation:?}");
            assert!(told.message.starts_with("CLAIM_LOST: o/r#42 generation 4 is that of a instance i2"), "{told}");
        }
        assert!(release(&claim, &of(Some("i2"), Some(4)), &stamp(0)).is_ok());
        assert!(release(&claim, &of(None, None), &stamp(0)).is_ok());
    }

    #[test]
    fn where_nothing_is_enforced_both_are_metadata() {
        let claim = held(json!({"instance_id": "i2", "generation": 4}));
        let record = release(&claim, &of(Some("i1"), Some(3)), &plain_stamp(0)).unwrap().outcome.record;
        assert_eq!((&record["instance_id"], &record["generation"]), (&json!("i1"), &json!(3)));
    }
}
