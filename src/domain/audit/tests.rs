use super::*;
use crate::domain::fixtures::{malformed as bad_json, object, snapshot, stored, when};
use crate::domain::record::Stored;
use serde_json::{Value, json};

const BATCH: &str = "batches/b1.json";

fn id() -> BatchId {
    BatchId::parse("batch-id", "b1").unwrap()
}

fn two_lanes() -> Value {
    json!({"batch_id": "b1", "lanes": [
        {"name": "backend", "owner": "w1", "targets": ["1"]},
        {"name": "docs", "owner": "w2", "targets": ["2"]}
    ]})
}

/// An ordinary event of lane `backend`, `second` seconds after zero, changed by `change`.
fn event(second: i64, kind: &str, agent: &str, change: Value) -> Stored {
    let id = format!("e{second:02}");
    let mut members = object(json!({
        "schema_version": 1, "event_id": id, "batch_id": "b1", "type": kind, "agent_id": agent, "repo": "o/r",
        "target": "1", "at": when(second)
    }));
    members.extend(object(change));
    stored(&format!("events/b1/{id}.json"), members.into())
}

fn acquired(second: i64, agent: &str) -> Stored {
    event(second, "claim.acquired", agent, json!({}))
}

fn released(second: i64, agent: &str) -> Stored {
    event(second, "claim.released", agent, json!({"status": "released"}))
}

fn closed(second: i64, agent: &str, change: Value) -> Stored {
    let mut members = json!({
        "schema_version": 2, "lane": "backend", "terminal": "done", "workspace": "default",
        "closed_by": {"agent_id": agent, "machine": "m1"}
    });
    members.as_object_mut().unwrap().extend(object(change));
    event(second, "lane_closed", agent, members)
}

fn audited(batch: Value, events: Vec<Stored>) -> Audit {
    audited_with(stored(BATCH, batch), Listing { records: events, notes: Vec::new() })
}

fn audited_with(batch: Stored, listing: Listing) -> Audit {
    let mut state = snapshot(vec![batch], &[]);
    state.listings.insert(Prefix::events_of(&id()), listing);
    audit(&state, &id()).unwrap()
}

/// Returns what lane `backend` misses, given these events.
fn missing(events: Vec<Stored>) -> Vec<&'static str> {
    audited(two_lanes(), events).lanes.swap_remove(0).missing
}

fn unknown_because(batch: Stored, listing: Listing) -> String {
    let audit = audited_with(batch, listing);
    assert_eq!((audit.verdict, audit.lanes.len()), (Finding::Unknown, 0));
    audit.reason.unwrap()
}

#[test]
fn a_batch_without_events_misses_its_beginning_and_its_end() {
    let audit = audited(two_lanes(), vec![]);
    assert_eq!(audit.verdict, Finding::Incomplete);
    assert_eq!(audit.lanes[1].missing, ["claim.acquired", "terminal"]);
    let json = serde_json::to_value(&audit).unwrap();
    let expected = json!({
        "name": "backend", "owner": "w1", "targets": ["1"], "event_count": 0,
        "missing": ["claim.acquired", "terminal"], "complete": false, "malformed": false
    });
    assert_eq!(json["lanes"][0], expected);
    assert_eq!(json.as_object().unwrap().keys().collect::<Vec<_>>(), ["batch_id", "verdict", "lanes"]);
}

#[test]
fn a_lane_that_was_acquired_and_released_or_closed_is_complete() {
    assert!(missing(vec![acquired(1, "w1"), released(2, "w1")]).is_empty());
    assert!(missing(vec![acquired(1, "w1"), closed(2, "w1", json!({}))]).is_empty());
    assert_eq!(missing(vec![acquired(1, "w1")]), ["terminal"]);
    assert_eq!(missing(vec![released(1, "w1")]), ["claim.acquired"], "the owner may release");
}

#[test]
fn every_lane_must_be_complete() {
    let one = vec![acquired(1, "w1"), released(2, "w1")];
    assert_eq!(audited(two_lanes(), one.clone()).verdict, Finding::Incomplete);
    let only = json!({"lanes": [{"name": "backend", "owner": "w1", "targets": ["1"]}]});
    let audit = audited(only, one);
    assert_eq!((audit.verdict, audit.lanes[0].event_count), (Finding::Complete, 2));
}

#[test]
fn a_stranger_ends_nothing_unless_a_claim_admitted_it_first() {
    assert_eq!(missing(vec![acquired(1, "w1"), released(2, "x")]), ["terminal", "lifecycle"]);
    assert!(missing(vec![acquired(1, "w1"), acquired(2, "x"), released(3, "x")]).is_empty());
    assert!(missing(vec![acquired(1, "x"), closed(2, "x", json!({}))]).is_empty());
    assert_eq!(missing(vec![acquired(3, "x"), closed(2, "x", json!({}))]), ["terminal"], "it closed before it came");
}

#[test]
fn who_takes_a_target_of_several_lanes_must_say_which_lane_it_means() {
    let shared = json!({"lanes": [
        {"name": "backend", "owner": "w1", "targets": ["1"]}, {"name": "docs", "owner": "w2", "targets": ["1"]}
    ]});
    let by_stranger = |change| {
        let events =
            vec![event(1, "claim.acquired", "x", change), event(2, "claim.released", "x", json!({"lane": "backend"}))];
        audited(shared.clone(), events).lanes.swap_remove(0).missing
    };
    assert!(by_stranger(json!({"lane": "backend"})).is_empty());
    assert_eq!(by_stranger(json!({})), ["claim.acquired", "terminal", "lifecycle"]);
}

#[test]
fn closeouts_must_all_be_valid_and_the_same() {
    let closeouts =
        |second: Value| missing(vec![acquired(1, "w1"), closed(2, "w1", json!({})), closed(3, "w1", second)]);
    assert!(closeouts(json!({"closed_by": {"agent_id": "w1", "machine": "other"}})).is_empty());
    assert_eq!(closeouts(json!({"terminal": "abandoned"})), ["terminal"]);
    assert_eq!(closeouts(json!({"schema_version": 1})), ["terminal"]);
    assert_eq!(closeouts(json!({"closed_by": {"agent_id": "w1", "machine": "UNKNOWN"}})), ["terminal"]);
    assert_eq!(closeouts(json!({"agent_id": "x"})), ["terminal"], "the closer speaks for itself");
    let after_release = vec![acquired(1, "w1"), released(2, "w1"), closed(3, "x", json!({}))];
    assert_eq!(missing(after_release), ["terminal"], "an invalid closeout outweighs a release");
}

#[test]
fn a_claim_event_with_anything_amiss_breaks_the_lifecycle() {
    for change in [
        json!({"schema_version": 2}),
        json!({"batch_id": "b2"}),
        json!({"lane": "docs"}),
        json!({"repo": " "}),
        json!({"status": "done"}),
        json!({"agent_id": "unknown"}),
    ] {
        let events = vec![acquired(1, "w1"), event(2, "claim.acquired", "w1", change.clone()), released(3, "w1")];
        assert_eq!(missing(events), ["lifecycle"], "{change}");
    }
}

#[test]
fn a_change_of_phase_says_from_which_phase_to_which() {
    let with =
        |change: Value| missing(vec![acquired(1, "w1"), event(2, "phase.changed", "w1", change), released(3, "w1")]);
    for good in [
        json!({"phase": "b", "previous_phase": "a"}),
        json!({"phase": "b", "old_phase": "a", "new_phase": "b"}),
        json!({"phase": "b", "old_phase": "a", "new_phase": "b", "previous_phase": "a", "status": "done"}),
    ] {
        assert!(with(good.clone()).is_empty(), "{good}");
    }
    for bad in [
        json!({"phase": "b"}),
        json!({"phase": "b", "previous_phase": "b"}),
        json!({"phase": "b", "old_phase": "a"}),
        json!({"phase": "b", "old_phase": "a", "new_phase": "c", "previous_phase": "a"}),
        json!({"previous_phase": "a"}),
        json!({"phase": "b", "previous_phase": "a", "status": ""}),
    ] {
        assert_eq!(with(bad.clone()), ["lifecycle"], "{bad}");
    }
}

#[test]
fn without_a_clear_order_nobody_is_entitled_to_anything() {
    let unreadable_time = event(1, "claim.acquired", "w1", json!({"at": "2026-12-01"}));
    assert_eq!(missing(vec![unreadable_time, released(2, "w1")]), ["terminal", "lifecycle"]);
    let twin = event(1, "claim.acquired", "w1", json!({"event_id": "e02", "at": when(2)}));
    assert_eq!(missing(vec![twin, released(2, "w1")]), ["terminal", "lifecycle"], "same instant, same id");
    let free_form = event(1, "note", "w1", json!({"at": "yesterday"}));
    assert!(missing(vec![free_form, acquired(2, "w1"), released(3, "w1")]).is_empty(), "other types need no order");
}

#[test]
fn events_of_another_repository_do_not_count_when_the_batch_declares_one() {
    let mut batch = two_lanes();
    batch["repo"] = json!("o/r");
    let elsewhere = event(1, "claim.acquired", "w1", json!({"repo": "o/x"}));
    let lane = audited(batch, vec![elsewhere]).lanes.swap_remove(0);
    assert_eq!((lane.event_count, lane.missing[0]), (0, "claim.acquired"));
}

#[test]
fn an_event_belongs_to_the_lane_it_names_the_lane_of_its_target_or_that_of_its_sender() {
    let count = |change: Value| {
        let stranger = event(1, "note", "x", change);
        let lanes = audited(two_lanes(), vec![stranger]).lanes;
        (lanes[0].event_count, lanes[1].event_count)
    };
    assert_eq!(count(json!({"lane": "docs", "target": null})), (0, 1));
    assert_eq!(count(json!({"target": 2})), (0, 1), "compared as text");
    assert_eq!(count(json!({"target": " "})), (0, 0));
    assert_eq!(count(json!({"target": null, "agent_id": "w2"})), (0, 1));
    assert_eq!(count(json!({"target": "9", "agent_id": "w2"})), (0, 0), "its owner, at something else");
}

#[test]
fn an_owner_of_two_lanes_or_of_none_attributes_nothing() {
    let batch = json!({"lanes": [
        {"name": "a", "owner": "w1", "targets": ["1"]}, {"name": "b", "owner": "w1", "targets": ["2"]},
        {"name": "c", "owner": "UNKNOWN", "targets": ["3"]}
    ]});
    let counts = |agent: &str| {
        let note = event(1, "note", agent, json!({"target": null}));
        audited(batch.clone(), vec![note]).lanes.iter().map(|lane| lane.event_count).collect::<Vec<_>>()
    };
    assert_eq!(counts("w1"), [0, 0, 0]);
    assert_eq!(counts("UNKNOWN"), [0, 0, 0]);
}

#[test]
fn a_lane_that_is_no_object_is_reported_in_its_place() {
    let batch = json!({"lanes": [7, {"name": "backend", "owner": "w1", "targets": ["1"]}]});
    let audit = audited(batch, vec![acquired(1, "w1"), released(2, "w1")]);
    assert_eq!(audit.verdict, Finding::Incomplete);
    assert!(audit.lanes[0].malformed && audit.lanes[1].complete);
    assert_eq!((audit.lanes[0].name.as_str(), audit.lanes[0].missing.len()), ("UNKNOWN", 2));
}

#[test]
fn what_cannot_be_read_in_full_is_unknown() {
    let batch = || stored(BATCH, two_lanes());
    let noted = |note: &str| Listing { records: Vec::new(), notes: vec![note.to_owned()] };
    assert_eq!(
        unknown_because(batch(), noted("events/b1 filtered by scoped token")),
        "event trail for b1 is filtered by a scoped token"
    );
    assert_eq!(unknown_because(batch(), noted("gap")), "coordination state unreadable: gap");
    let torn = Listing { records: vec![bad_json("events/b1/x.json")], notes: Vec::new() };
    assert!(unknown_because(batch(), torn).starts_with("coordination state unreadable: events/b1/x.json: "));
    assert_eq!(unknown_because(stored(BATCH, json!([])), Listing::default()), "batch b1 state is not an object");
    assert_eq!(unknown_because(stored(BATCH, json!({"lanes": []})), Listing::default()), "batch b1 registers no lanes");
    assert_eq!(unknown_because(stored(BATCH, json!({})), Listing::default()), "batch b1 registers no lanes");
    assert!(unknown_because(bad_json(BATCH), Listing::default()).starts_with("coordination state unreadable: batches"));
}

#[test]
fn a_batch_that_is_absent_is_not_registered() {
    let mut state = snapshot(vec![], &[BATCH]);
    state.listings.insert(Prefix::events_of(&id()), Listing::default());
    assert_eq!(audit(&state, &id()).unwrap().reason.unwrap(), "batch b1 is not registered");
}
