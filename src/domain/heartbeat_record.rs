//! What a heartbeat row says after a beat (state-schema.md section 3, cli-contract.md section 4).

use serde_json::Value;

use super::event::{Lifecycle, PHASE_CHANGED};
use super::metadata::{NAMES, pick, set, set_all};
use super::record::{Members, text};
use super::request::{Beat, Stamp};
use super::vocabulary::normalise;

/// The members that a beat keeps, in the order it writes them. `status_raw` keeps its place only: it never survives a
/// beat that does not set it.
pub const PRESERVED: [&str; 19] = [
    "repo",
    "target",
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
    "status_raw",
    "synthetic",
    "synthetic_kind",
];

/// Composes the row that overwrites `prior`, and the warning about its status, if any.
#[must_use]
pub fn compose(beat: &Beat, stamp: &Stamp, prior: Option<&Members>) -> (Members, Option<String>) {
    let status = normalise(&beat.status);
    let mut row = prior.map_or_else(Members::new, |prior| preserved(beat, prior));
    row.insert("schema_version".to_owned(), Value::from(1));
    row.insert("agent_id".to_owned(), beat.agent.as_str().into());
    for (name, given) in identity(beat) {
        set(&mut row, name, given);
    }
    row.insert("status".to_owned(), status.status.into());
    row.insert("updated_at".to_owned(), stamp.now.to_string().into());
    row.insert("expires_at".to_owned(), stamp.now.plus_seconds(beat.ttl_seconds).to_string().into());
    set_all(&mut row, beat.metadata.members());
    beat.attribution.stamp(&mut row, prior);
    match status.raw {
        Some(raw) => set(&mut row, "status_raw", Some(raw)),
        None => drop(row.shift_remove("status_raw")),
    }
    (row, status.warning)
}

fn identity(beat: &Beat) -> [(&'static str, Option<&str>); 4] {
    [
        ("repo", beat.repo.as_deref()),
        ("target", beat.target.as_deref()),
        ("batch_id", beat.batch_id.as_deref()),
        ("branch", beat.branch.as_deref()),
    ]
}

/// Work on the same thing keeps what is known of it; work on something else keeps no more than where it is.
fn preserved(beat: &Beat, prior: &Members) -> Members {
    let moved = identity(beat).iter().any(|(name, given)| is_new(prior, name, *given));
    let repo_alone = beat.repo.is_some() && beat.target.is_none() && text(prior, "target").is_some();
    if !moved && !repo_alone {
        return pick(prior, &PRESERVED);
    }
    let repo_changed = is_changed(prior, "repo", beat.repo.as_deref());
    let target_changed = repo_changed || is_changed(prior, "target", beat.target.as_deref());
    let kept: Vec<&str> = [("repo", repo_changed), ("target", target_changed)]
        .into_iter()
        .filter_map(|(name, changed)| (!changed).then_some(name))
        .collect();
    pick(prior, &kept)
}

/// A given value that the row does not already hold.
fn is_new(prior: &Members, name: &str, given: Option<&str>) -> bool {
    given.is_some_and(|given| text(prior, name) != Some(given))
}

/// A given value in place of another.
fn is_changed(prior: &Members, name: &str, given: Option<&str>) -> bool {
    is_new(prior, name, given) && prior.get(name).is_some_and(|stored| !stored.is_null())
}

/// Builds `phase.changed` when a beat moves on within the same piece of work.
#[must_use]
pub fn phase_changed(beat: &Beat, stamp: &Stamp, prior: Option<&Members>) -> Lifecycle {
    let Some((prior, old, new)) = phase_step(beat, prior) else { return Lifecycle::None };
    let mut fields = pick(prior, &["repo", "target", "branch"]);
    set_all(&mut fields, pick(prior, &NAMES));
    for (name, given) in identity(beat) {
        set(&mut fields, name, given);
    }
    set_all(&mut fields, beat.metadata.members());
    set(&mut fields, "agent_id", Some(beat.agent.as_str()));
    set(&mut fields, "previous_phase", Some(old));
    set(&mut fields, "message", Some(format!("phase {old} -> {new}")));
    let batch_id = beat.batch_id.as_deref().or_else(|| text(prior, "batch_id"));
    Lifecycle::of(PHASE_CHANGED, batch_id, fields, stamp, &beat.attribution)
}

fn phase_step<'a>(beat: &'a Beat, prior: Option<&'a Members>) -> Option<(&'a Members, &'a str, &'a str)> {
    let (prior, new) = (prior?, beat.metadata.phase.as_deref()?);
    let old = text(prior, "phase").filter(|old| !old.is_empty() && *old != new)?;
    let same_work = identity(beat)[..3].iter().all(|(name, given)| !is_new(prior, name, *given));
    same_work.then_some((prior, old, new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::decision::Edit;
    use crate::domain::fixtures::{beat_of, keys, object, stamp, when};
    use crate::domain::request::{Attribution, Metadata};
    use serde_json::json;

    fn prior() -> Members {
        object(json!({
            "schema_version": 1, "agent_id": "w1", "custom": 1, "repo": "o/r", "target": "42", "batch_id": "b1",
            "status": "in_progress", "updated_at": when(-60), "expires_at": when(840), "phase": "coding", "host": "h",
            "status_raw": "claimed"
        }))
    }

    fn phased(phase: &str) -> Beat {
        Beat { metadata: Metadata { phase: Some(phase.into()), ..Metadata::default() }, ..beat_of("w1") }
    }

    fn row(beat: &Beat) -> Members {
        compose(beat, &stamp(0), Some(&prior())).0
    }

    fn event(beat: &Beat, prior: &Members) -> Option<Members> {
        match phase_changed(beat, &stamp(0), Some(prior)) {
            Lifecycle::Append(Edit::Append { members, .. }) => Some(members),
            _ => None,
        }
    }

    #[test]
    fn a_fresh_row_has_the_writers_key_order() {
        let beat = Beat {
            repo: Some("o/r".into()),
            target: Some("42".into()),
            batch_id: Some("b1".into()),
            branch: Some("br".into()),
            status: "Done".into(),
            attribution: Attribution::resolve(Some("m"), None, None),
            ..phased("qa")
        };
        let (row, warning) = compose(&beat, &stamp(0), None);
        let order = "schema_version agent_id repo target batch_id branch status updated_at expires_at phase machine_id \
                     status_raw";
        assert_eq!((keys(&row).join(" ").as_str(), warning), (order, None));
        assert_eq!((&row["status"], &row["status_raw"]), (&json!("done"), &json!("Done")));
        assert_eq!(row["expires_at"], when(900));
    }

    #[test]
    fn a_plain_beat_keeps_what_is_known_and_drops_the_unknown_and_the_old_spelling() {
        let order = "repo target batch_id host phase schema_version agent_id status updated_at expires_at";
        assert_eq!(keys(&row(&beat_of("w1"))).join(" "), order);
    }

    #[test]
    fn naming_the_same_work_again_keeps_it_all() {
        let same = Beat { repo: Some("o/r".into()), target: Some("42".into()), ..beat_of("w1") };
        assert_eq!(row(&same)["phase"], "coding");
    }

    #[test]
    fn other_work_keeps_no_more_than_where_it_is() {
        let branch = row(&Beat { branch: Some("br".into()), ..beat_of("w1") });
        assert_eq!(
            keys(&branch).join(" "),
            "repo target schema_version agent_id branch status updated_at expires_at",
            "a branch where there was none drops the old metadata as well"
        );
        let target = row(&Beat { target: Some("43".into()), ..beat_of("w1") });
        assert_eq!((&target["repo"], &target["target"]), (&json!("o/r"), &json!("43")));
        let repo = row(&Beat { repo: Some("o/x".into()), ..beat_of("w1") });
        assert!(repo["repo"] == "o/x" && !repo.contains_key("target"), "a target belongs to its repository");
        let repo_alone = row(&Beat { repo: Some("o/r".into()), ..beat_of("w1") });
        assert!(repo_alone["target"] == "42" && !repo_alone.contains_key("phase"));
    }

    #[test]
    fn a_step_within_the_same_work_is_an_event() {
        let event = event(&phased("qa"), &prior()).unwrap();
        let order = "schema_version event_id batch_id type agent_id repo target message at previous_phase host phase";
        assert_eq!(keys(&event).join(" "), order);
        assert_eq!((&event["message"], &event["phase"]), (&json!("phase coding -> qa"), &json!("qa")));
    }

    #[test]
    fn there_is_no_step_without_an_old_phase_a_new_phase_a_batch_or_the_same_work() {
        assert_eq!(event(&phased("coding"), &prior()), None, "the phase is the same");
        assert_eq!(event(&beat_of("w1"), &prior()), None, "none was given");
        assert_eq!(event(&Beat { target: Some("43".into()), ..phased("qa") }, &prior()), None);
        let mut loose = prior();
        loose.shift_remove("batch_id");
        assert_eq!(event(&phased("qa"), &loose), None, "no batch is known");
        assert_eq!(event(&Beat { batch_id: Some("b1".into()), ..phased("qa") }, &loose), None, "the batch is new");
        loose.insert("phase".into(), "".into());
        assert_eq!(event(&phased("qa"), &loose), None);
    }
}
