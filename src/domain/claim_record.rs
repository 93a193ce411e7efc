//! What a claim record says after it was acquired or renewed (state-schema.md section 2).

use serde_json::Value;

use super::metadata::{pick, set, set_all};
use super::record::{Members, text};
use super::request::{Acquire, Stamp};

/// The members that a renewal keeps, in the order it writes them.
pub const PRESERVED: [&str; 24] = [
    "batch_id",
    "branch",
    "thread_handle",
    "chat_handle",
    "host",
    "machine_id",
    "session_id",
    "session_source",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "generation",
    "instance_id",
    "release_mode",
    "handoff_to",
    "handoff_note",
    "terminal",
    "pr_state",
    "evidence_url",
    "workspace",
    "closed_by",
    "synthetic",
    "synthetic_kind",
];

/// What a supersede keeps: the lane goes on, and what told of the replaced instance does not.
const LANE: [&str; 10] = [
    "batch_id",
    "branch",
    "thread_handle",
    "chat_handle",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "synthetic",
    "synthetic_kind",
];

/// How much of the record before survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carry<'a> {
    /// Nothing: a fresh record.
    Nothing,
    /// The preserved members and `claimed_at`.
    Renewal(&'a Members),
    /// The members that describe the lane.
    Lane(&'a Members),
}

impl<'a> Carry<'a> {
    fn members(self) -> Members {
        match self {
            Self::Nothing => Members::new(),
            Self::Renewal(prior) => pick(prior, &PRESERVED),
            Self::Lane(prior) => pick(prior, &LANE),
        }
    }

    fn renewed(self) -> Option<&'a Members> {
        match self {
            Self::Renewal(prior) => Some(prior),
            Self::Nothing | Self::Lane(_) => None,
        }
    }
}

/// Composes the record of a claim that is held from now on. `generation` is what the store enforces; where it enforces
/// none, `--generation` is written as given.
#[must_use]
pub fn compose(request: &Acquire, stamp: &Stamp, carry: Carry<'_>, generation: Option<i64>) -> Members {
    let now = stamp.now.to_string();
    let mut record = carry.members();
    let branch = request.branch.as_ref().or(request.current_branch.as_ref().filter(|_| !record.contains_key("branch")));
    let branch = branch.cloned();
    let claimed_at = carry.renewed().and_then(|prior| text(prior, "claimed_at")).unwrap_or(&now).to_owned();
    record.insert("schema_version".to_owned(), Value::from(1));
    record.insert("repo".to_owned(), request.repo.as_str().into());
    record.insert("target".to_owned(), request.target.as_str().into());
    record.insert("agent_id".to_owned(), request.agent.as_str().into());
    set(&mut record, "batch_id", request.batch_id.clone());
    set(&mut record, "branch", branch);
    record.insert("status".to_owned(), "active".into());
    record.insert("claimed_at".to_owned(), claimed_at.into());
    record.insert("updated_at".to_owned(), now.into());
    record.insert("expires_at".to_owned(), stamp.now.plus_seconds(request.ttl_seconds).to_string().into());
    let mut metadata = request.metadata.clone();
    metadata.generation = generation.or(metadata.generation);
    set_all(&mut record, metadata.members());
    request.attribution.stamp(&mut record, carry.renewed());
    record
}

/// Tells whether `--batch-id` or `--branch` says something else than the record does. Saying it where nothing is
/// stored yet is no change.
#[must_use]
pub fn changes_lane(request: &Acquire, prior: &Members) -> bool {
    let differs = |given: &Option<String>, name: &str| match (given, prior.get(name)) {
        (Some(given), Some(stored)) if !stored.is_null() => stored.as_str() != Some(given),
        _ => false,
    };
    differs(&request.batch_id, "batch_id") || differs(&request.branch, "branch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{acquire_by, keys, object, plain_stamp, stamp, when};
    use crate::domain::request::{Attribution, Metadata};
    use serde_json::json;

    #[test]
    fn a_fresh_record_has_the_writers_key_order() {
        let request = Acquire {
            batch_id: Some("b1".into()),
            branch: Some("br".into()),
            metadata: Metadata {
                thread_handle: Some("t".into()),
                phase: Some("claimed".into()),
                instance_id: Some("i".into()),
                synthetic: true,
                synthetic_kind: Some("smoke".into()),
                ..Metadata::default()
            },
            attribution: Attribution::resolve(Some("m"), Some("s"), None),
            ..acquire_by("w1")
        };
        let record = compose(&request, &stamp(0), Carry::Nothing, Some(4));
        let order = "schema_version repo target agent_id batch_id branch status claimed_at updated_at expires_at \
                     thread_handle phase generation instance_id synthetic synthetic_kind machine_id session_id \
                     session_source";
        assert_eq!(keys(&record).join(" "), order);
        assert_eq!(record["generation"], 4);
        assert_eq!(record["expires_at"], when(14_400));
    }

    #[test]
    fn a_renewal_writes_the_preserved_members_first_and_drops_the_unknown() {
        let prior = object(json!({
            "schema_version": 1, "repo": "o/r", "target": "42", "agent_id": "w1", "custom": 1, "branch": "br",
            "batch_id": "b1", "host": null, "handoff_to": "w9", "claimed_at": when(-50), "status": "active",
            "generation": 2, "machine_id": "m1", "session_id": "s1", "session_source": "codex_thread_id"
        }));
        let request = Acquire { attribution: Attribution::resolve(Some("m2"), None, None), ..acquire_by("w1") };
        let record = compose(&request, &stamp(0), Carry::Renewal(&prior), Some(2));
        let order = "batch_id branch machine_id generation handoff_to schema_version repo target agent_id status \
                     claimed_at updated_at expires_at";
        assert_eq!(keys(&record).join(" "), order);
        assert_eq!((&record["claimed_at"], &record["machine_id"]), (&json!(when(-50)), &json!("m2")));
    }

    #[test]
    fn a_supersede_keeps_the_lane_and_not_the_instance() {
        let prior = object(json!({"batch_id": "b1", "instance_id": "i1", "session_id": "s", "phase": "qa",
                                  "claimed_at": when(-50)}));
        let record = compose(&acquire_by("w1"), &stamp(0), Carry::Lane(&prior), Some(3));
        assert_eq!((&record["batch_id"], &record["phase"]), (&json!("b1"), &json!("qa")));
        assert!(!record.contains_key("instance_id") && !record.contains_key("session_id"));
        assert_eq!(record["claimed_at"], when(0));
    }

    #[test]
    fn the_checked_out_branch_is_stored_only_where_none_is() {
        let request = Acquire { current_branch: Some("feat".into()), ..acquire_by("w1") };
        let after = |prior| compose(&request, &stamp(0), Carry::Renewal(&object(prior)), None)["branch"].clone();
        assert_eq!(compose(&request, &stamp(0), Carry::Nothing, None)["branch"], "feat");
        assert_eq!(after(json!({"branch": "br"})), "br");
        assert_eq!(after(json!({})), "feat");
        let given = Acquire { branch: Some("given".into()), ..request.clone() };
        assert_eq!(compose(&given, &stamp(0), Carry::Nothing, None)["branch"], "given");
    }

    #[test]
    fn where_nothing_is_enforced_the_generation_is_written_as_given() {
        let request = Acquire { metadata: Metadata { generation: Some(9), ..Metadata::default() }, ..acquire_by("w1") };
        assert_eq!(compose(&request, &plain_stamp(0), Carry::Nothing, None)["generation"], 9);
        assert!(!compose(&acquire_by("w1"), &plain_stamp(0), Carry::Nothing, None).contains_key("generation"));
    }

    #[test]
    fn naming_a_lane_where_none_is_stored_is_no_change() {
        let prior = object(json!({"batch_id": "b1", "branch": null}));
        let asking = |batch: &str, branch: &str| Acquire {
            batch_id: Some(batch.into()),
            branch: Some(branch.into()),
            ..acquire_by("w1")
        };
        assert!(!changes_lane(&asking("b1", "any"), &prior));
        assert!(changes_lane(&asking("b2", "any"), &prior));
    }
}
