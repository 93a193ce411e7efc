//! The rules of `heartbeat`, one decision at a time.

use serde_json::{Value, json};

use super::*;
use crate::domain::decision::{Expect, RefusalKind};
use crate::domain::fixtures::{
    appended, beat_of, fence_of, malformed, plain_stamp, put, refusal, snapshot, stamp, stored, when,
};
use crate::domain::request::Metadata;

const ROW: &str = "heartbeats/a.json";
const CLAIM: &str = "claims/o/r/42.json";

fn row(fenced: Vec<Fence>) -> Stored {
    let mut row = stored(
        ROW,
        json!({"repo": "o/r", "target": "42", "batch_id": "b1", "phase": "coding", "schema_version": 1, "agent_id": "a",
               "status": "in_progress", "updated_at": when(0), "expires_at": when(900)}),
    );
    row.annotations.fenced = fenced;
    row.annotations.phase_changed_at = Some(when(-500));
    row
}

fn claim(agent: &str, instance: Option<&str>, generation: i64) -> Stored {
    let mut value = json!({"status": "active", "agent_id": agent, "generation": generation, "claimed_at": when(10)});
    if let Some(instance) = instance {
        value["instance_id"] = Value::from(instance);
    }
    stored(CLAIM, value)
}

fn acting(instance: Option<&str>, generation: Option<i64>) -> Beat {
    let metadata = Metadata { instance_id: instance.map(str::to_owned), generation, ..Metadata::default() };
    Beat { repo: Some("o/r".into()), target: Some("42".into()), metadata, ..beat_of("a") }
}

fn of_instance(instance: &str, by: &str) -> Fence {
    Fence { instance: Some(instance.to_owned()), ..fence_of(1, by) }
}

fn decide(records: Vec<Stored>, request: &Beat) -> Decision<Beaten> {
    beat(&snapshot(records, &[CLAIM]), request, &stamp(60)).unwrap()
}

const LOST_TO_B: &str = "CLAIM_LOST: o/r#42 generation 2 is held by b since 2026-12-01T00:00:10Z";

#[test]
fn a_first_beat_creates_the_row_on_cached_state() {
    let decision = beat(&snapshot(vec![], &[ROW]), &beat_of("a"), &stamp(0)).unwrap();
    assert_eq!((decision.basis, decision.edits.len()), (Freshness::Cached, 1));
    assert_eq!(put(&decision, ROW).expect, Expect::Absent);
    assert_eq!((decision.outcome.renewed, decision.outcome.lost, decision.outcome.note), (true, None, None));
}

#[test]
fn a_row_of_its_own_that_cannot_be_read_is_not_overwritten() {
    for bad in [malformed(ROW), stored(ROW, json!(3))] {
        let told = refusal(beat(&snapshot(vec![bad], &[]), &beat_of("a"), &stamp(0)));
        assert_eq!(told.kind, RefusalKind::Unknown);
        assert!(told.message.contains(ROW), "{told}");
    }
}

#[test]
fn an_unknown_status_is_warned_of() {
    let decision = decide(vec![row(vec![])], &Beat { status: "odd".into(), ..beat_of("a") });
    assert!(decision.outcome.warnings[0].starts_with("status \"odd\" is not"));
}

#[test]
fn the_phase_clock_runs_on_within_a_phase_and_starts_anew_with_the_next() {
    let since = |phase: Option<&str>| {
        let metadata = Metadata { phase: phase.map(str::to_owned), ..Metadata::default() };
        let decision = decide(vec![row(vec![])], &Beat { metadata, ..beat_of("a") });
        put(&decision, ROW).annotations.phase_changed_at.clone()
    };
    assert_eq!(since(None), Some(when(-500)), "the phase is kept, and so is its clock");
    assert_eq!(since(Some("coding")), Some(when(-500)));
    assert_eq!(since(Some("qa")), Some(when(60)));
    let elsewhere = decide(vec![row(vec![])], &Beat { target: Some("43".into()), ..beat_of("a") });
    assert_eq!(put(&elsewhere, ROW).annotations.phase_changed_at, None, "without a phase there is no clock");
}

#[test]
fn a_step_of_the_phase_lands_with_the_beat() {
    let metadata = Metadata { phase: Some("qa".into()), ..Metadata::default() };
    let decision = decide(vec![row(vec![])], &Beat { metadata, ..beat_of("a") });
    assert_eq!(appended(&decision).unwrap()["type"], "phase.changed");
}

#[test]
fn the_holder_beats_on_cached_state_with_its_claim_read_and_so_guarded() {
    let decision = decide(vec![row(vec![]), claim("a", None, 1)], &acting(None, Some(1)));
    assert_eq!((decision.basis, decision.outcome.lost), (Freshness::Cached, None));
    let unread = beat(&snapshot(vec![row(vec![])], &[]), &acting(None, Some(1)), &stamp(60));
    assert_eq!(unread, Err(Halt::Read(RecordPath::parse(CLAIM).unwrap())));
}

#[test]
fn an_absent_claim_of_a_tenure_has_to_be_fetched_before_silence_is_believed() {
    let decision = decide(vec![row(vec![])], &acting(None, Some(1)));
    assert_eq!((decision.basis, decision.outcome.lost), (Freshness::Fetched, None));
}

#[test]
fn a_displaced_holder_is_recorded_and_told() {
    let decision = decide(vec![row(vec![fence_of(1, "b")]), claim("b", None, 2)], &acting(None, Some(1)));
    let outcome = &decision.outcome;
    assert_eq!((outcome.lost.as_deref(), outcome.renewed), (Some(LOST_TO_B), true));
    assert_eq!((outcome.note.as_deref(), decision.basis), (Some("ours"), Freshness::Fetched));
    let written = put(&decision, ROW);
    assert_eq!(written.members["updated_at"], when(60), "a heartbeat is always recorded");
    assert_eq!(written.annotations.fenced, [Fence { told_by: Some("ours".into()), ..fence_of(1, "b") }]);
}

#[test]
fn a_beat_without_flags_is_told_by_the_mark_alone() {
    let decision = decide(vec![row(vec![fence_of(1, "b")]), claim("b", None, 2)], &beat_of("a"));
    assert_eq!(decision.outcome.lost.as_deref(), Some(LOST_TO_B), "the row names the target");
}

#[test]
fn a_tenure_is_told_of_its_end_even_when_no_mark_was_left() {
    let decision = decide(vec![row(vec![]), claim("b", None, 2)], &acting(None, Some(1)));
    assert_eq!((decision.outcome.lost.as_deref(), decision.outcome.note.as_deref()), (Some(LOST_TO_B), None));
}

#[test]
fn a_report_is_repeated_until_it_is_known_to_be_printed() {
    let marked = Fence { told_by: Some("t1".into()), ..fence_of(1, "b") };
    let again = decide(vec![row(vec![marked.clone()]), claim("b", None, 2)], &beat_of("a"));
    assert_eq!(put(&again, ROW).annotations.fenced[0].told_by.as_deref(), Some("ours"));
    assert!(again.outcome.lost.is_some());
    let known = Beat { told: vec!["t1".into()], ..beat_of("a") };
    let after = decide(vec![row(vec![marked]), claim("b", None, 2)], &known);
    assert_eq!((put(&after, ROW).annotations.fenced.len(), after.outcome.lost), (0, None));
}

#[test]
fn the_loss_of_another_target_only_warns_and_is_marked_as_reported() {
    let elsewhere = Fence { target: "7".into(), ..fence_of(1, "b") };
    let state = snapshot(vec![row(vec![elsewhere])], &["claims/o/r/7.json"]);
    let decision = beat(&state, &beat_of("a"), &stamp(60)).unwrap();
    assert_eq!(decision.outcome.lost, None);
    assert_eq!(decision.outcome.warnings, [format!("generation 1 of o/r#7 was lost to b at {}", when(0))]);
    assert_eq!(decision.outcome.note.as_deref(), Some("ours"));
}

#[test]
fn a_mark_that_the_claim_does_not_bear_out_is_neither_told_nor_dropped() {
    let decision = decide(vec![row(vec![fence_of(1, "b")]), claim("a", None, 1)], &acting(None, Some(1)));
    assert_eq!((decision.outcome.lost.as_deref(), decision.outcome.note.as_deref()), (None, None));
    assert_eq!(put(&decision, ROW).annotations.fenced, [fence_of(1, "b")]);
}

#[test]
fn a_mark_goes_once_the_agent_holds_the_target_again() {
    let decision = decide(vec![row(vec![fence_of(1, "b")]), claim("a", None, 3)], &acting(None, Some(3)));
    assert_eq!((put(&decision, ROW).annotations.fenced.len(), decision.outcome.lost), (0, None));
}

#[test]
fn a_loss_whose_claim_has_been_put_away_is_told_all_the_same() {
    let decision = decide(vec![row(vec![fence_of(1, "b")])], &beat_of("a"));
    let lost = format!("CLAIM_LOST: o/r#42 generation 1 was lost to b at {}; no claim is held now", when(0));
    assert_eq!(decision.outcome.lost, Some(lost));
}

#[test]
fn a_superseded_instance_is_told_and_does_not_renew_the_row_of_its_successor() {
    let records = vec![row(vec![of_instance("i1", "a")]), claim("a", Some("i2"), 2)];
    let decision = decide(records, &acting(Some("i1"), Some(1)));
    let outcome = &decision.outcome;
    assert!(outcome.lost.as_ref().unwrap().contains("generation 2 is held by a instance i2 since"));
    assert!(!outcome.renewed);
    let written = put(&decision, ROW);
    assert_eq!(Some(&written.members), row(vec![]).object(), "the row stays the successor's");
    assert_eq!(written.annotations.fenced[0].told_by.as_deref(), Some("ours"));
    assert_eq!(written.annotations.phase_changed_at, Some(when(-500)));
}

#[test]
fn a_superseded_instance_that_was_told_writes_nothing_more_and_is_told_again() {
    let decision = decide(vec![row(vec![]), claim("a", Some("i2"), 2)], &acting(Some("i1"), Some(1)));
    assert_eq!((decision.edits.len(), decision.basis), (0, Freshness::Fetched));
    assert!(decision.outcome.lost.is_some());
}

#[test]
fn the_successor_beats_in_peace_and_leaves_the_mark_to_its_predecessor() {
    let records = vec![row(vec![of_instance("i1", "a")]), claim("a", Some("i2"), 2)];
    let decision = decide(records, &acting(Some("i2"), Some(2)));
    assert_eq!((decision.outcome.lost.as_deref(), decision.outcome.renewed), (None, true));
    assert_eq!(put(&decision, ROW).annotations.fenced, [of_instance("i1", "a")]);
}

#[test]
fn an_old_process_of_the_same_agent_does_not_renew_for_its_successor_even_without_instances() {
    let decision = decide(vec![row(vec![]), claim("a", None, 2)], &acting(None, Some(1)));
    assert!(decision.outcome.lost.is_some() && !decision.outcome.renewed);
}

#[test]
fn a_claim_that_cannot_be_read_is_warned_of_and_does_not_stop_the_beat() {
    let decision = decide(vec![row(vec![]), stored(CLAIM, json!(1))], &acting(None, Some(1)));
    assert_eq!(decision.outcome.warnings, ["state record is not a claim object: claims/o/r/42.json"]);
    assert!(decision.outcome.renewed);
}

#[test]
fn names_that_can_be_no_claim_are_recorded_as_they_are() {
    let request = Beat { repo: Some("not a repo".into()), ..acting(None, Some(1)) };
    let decision = decide(vec![row(vec![])], &request);
    assert_eq!(put(&decision, ROW).members["repo"], "not a repo");
}

#[test]
fn where_nothing_is_enforced_no_claim_is_read_and_nothing_is_kept_beside_the_row() {
    let state = snapshot(vec![], &[ROW]);
    let decision = beat(&state, &acting(Some("i"), Some(1)), &plain_stamp(0)).unwrap();
    assert_eq!(put(&decision, ROW).annotations, Annotations::default());
    assert_eq!(put(&decision, ROW).members["generation"], 1);
}
