use serde_json::{Value, json};

use super::*;
use crate::domain::fixtures::{at, malformed, repo, snapshot, stored, target, when};
use crate::domain::path::RecordPath;

fn judged() -> Judged {
    Judged { now: at(0), wedged_after: Some(2700) }
}

/// Returns a snapshot that lists every family.
fn listing(records: Vec<Stored>) -> Snapshot {
    let mut all = snapshot(Vec::new(), &[]);
    for family in Family::ALL {
        let prefix = Prefix::family(family);
        let records = records.iter().filter(|stored| prefix.covers(&stored.path)).cloned().collect();
        all.listings.insert(prefix, Listing { records, notes: Vec::new() });
    }
    all
}

fn broad(records: Vec<Stored>) -> StatusReport {
    broad_report(&listing(records), judged(), false)
}

fn json_of(rows: &[Members]) -> Value {
    rows.iter().cloned().map(Value::Object).collect()
}

fn heartbeat(agent: &str, status: &str) -> Stored {
    let row = json!({"agent_id": agent, "status": status, "updated_at": when(0), "expires_at": when(900)});
    stored(&format!("heartbeats/{agent}.json"), row)
}

#[test]
fn missing_members_get_their_defaults() {
    let report = broad(vec![
        stored("claims/o/r/9.json", json!({})),
        stored("heartbeats/w1.json", json!({"repo": null})),
        stored("events/b1/e1.json", json!({})),
    ]);
    assert_eq!(
        json_of(&report.claims),
        json!([{"path": "claims/o/r/9.json", "repo": "o/r", "target": "9", "status": "unknown", "agent_id": "UNKNOWN",
                "branch": "UNKNOWN", "expires_at": "UNKNOWN"}])
    );
    assert_eq!(
        json_of(&report.heartbeats),
        json!([{"path": "heartbeats/w1.json", "agent_id": "w1", "status": "unknown", "liveness": "unknown",
                "target": "-", "updated_at": "UNKNOWN"}])
    );
    assert_eq!(
        json_of(report.events.as_deref().unwrap()),
        json!([{"path": "events/b1/e1.json", "batch_id": "b1", "type": "unknown", "at": "UNKNOWN"}])
    );
}

#[test]
fn a_heartbeat_target_is_whatever_half_of_it_is_known() {
    let target_of = |row: Value| shown(&broad(vec![stored("heartbeats/w1.json", row)]).heartbeats[0], "target");
    assert_eq!(target_of(json!({"repo": "o/r", "target": "1"})), "o/r#1");
    assert_eq!(target_of(json!({"repo": "o/r"})), "o/r");
    assert_eq!(target_of(json!({"target": "1"})), "1");
}

#[test]
fn metadata_comes_in_the_order_of_the_report_and_null_is_absent() {
    let claim = json!({"synthetic": true, "generation": 3, "phase": null, "host": "codex", "batch_id": "b1", "own": 1});
    let report = broad(vec![stored("claims/o/r/1.json", claim)]);
    let names: Vec<&str> = report.claims[0].keys().map(String::as_str).skip(7).collect();
    assert_eq!(names, ["batch_id", "host", "generation", "synthetic"]);
}

#[test]
fn events_are_sorted_by_their_own_time_and_then_by_path() {
    let event = |id: &str, at: &str| stored(&format!("events/b1/{id}.json"), json!({"at": at}));
    let report = broad(vec![event("a", "2"), event("b", "1"), event("c", "1")]);
    let paths: Vec<String> = report.events.unwrap().iter().map(|row| shown(row, "path")).collect();
    assert_eq!(paths, ["events/b1/b.json", "events/b1/c.json", "events/b1/a.json"]);
}

#[test]
fn a_lane_stands_as_its_terminal_then_its_owner_then_itself_says() {
    let lanes = json!([
        {"name": "closed", "owner": "w1", "terminal": "done"},
        {"id": "owned", "agent_id": "w1", "target": 7},
        {"name": "own", "owner": "w2", "status": "ready"},
        {"name": "nothing", "owner": " ", "depends_on": ["b1:closed", "b1:own", "b1:nothing", "b9:x"]},
    ]);
    let report = broad(vec![heartbeat("w1", "blocked"), stored("batches/b1.json", json!({"lanes": lanes}))]);
    let batches = report.batches.unwrap();
    let row = |index: usize, name: &str| batches[0]["lanes"][index][name].clone();
    assert_eq!(row(0, "status"), "done");
    assert_eq!(
        (row(1, "name"), row(1, "status"), row(1, "liveness")),
        (json!("owned"), json!("blocked"), json!("live"))
    );
    assert_eq!(row(1, "targets"), json!(["7"]));
    assert_eq!((row(2, "status"), row(2, "liveness")), (json!("ready"), json!("no-heartbeat")));
    assert_eq!((row(3, "owner"), row(3, "status")), (json!("UNKNOWN"), json!("unknown")));
    assert_eq!(row(3, "blocked_on"), json!(["b1:nothing", "b9:x"]), "an unknown dependency is not met");
}

#[test]
fn a_lane_no_dependency_can_name_is_noted() {
    let report = broad(vec![stored("batches/b1.json", json!({"lanes": [{"name": "a:b"}, {"name": "c"}]}))]);
    assert_eq!(report.note("lanes"), Some("malformed lane names: a:b"));
    assert_eq!(report.degraded(), ["malformed lane names: a:b"]);
}

#[test]
fn a_broken_record_is_noted_with_its_path_and_hides_no_other() {
    let report = broad(vec![
        malformed("claims/o/r/1.json"),
        stored("claims/o/r/2.json", json!({"agent_id": "w1"})),
        stored("claims/o/r/3.json", json!([])),
        stored("heartbeats/bad.json", json!(7)),
        heartbeat("w1", "done"),
    ]);
    assert_eq!((report.claims.len(), report.heartbeats.len()), (1, 1));
    assert_eq!(
        report.note("claims"),
        Some(
            "claims/o/r/1.json is unreadable (expected value at line 1 column 1); it is not reported; \
             claims/o/r/3.json is not a JSON object; it is not reported"
        )
    );
    assert_eq!(report.note("heartbeats"), Some("heartbeat records unreadable"));
    assert_eq!(report.warnings, ["heartbeats/bad.json is not a JSON object"]);
}

#[test]
fn what_a_listing_says_of_itself_is_passed_on() {
    let mut all = listing(Vec::new());
    let claims = all.listings.get_mut(&Prefix::family(Family::Claims)).unwrap();
    claims.notes.push("claims filtered by scoped token".to_owned());
    let report = broad_report(&all, judged(), false);
    assert_eq!(report.note("claims"), Some("claims filtered by scoped token"));
}

#[test]
fn archived_records_are_shown_only_when_asked_for() {
    let all = listing(vec![stored("archive/claims/o/r/1.json", json!({"reason": "old", "source_paths": ["x"]}))]);
    assert_eq!(broad_report(&all, judged(), false).archive, None);
    assert_eq!(
        json_of(&broad_report(&all, judged(), true).archive.unwrap()),
        json!([{"path": "archive/claims/o/r/1.json", "record_family": "unknown", "source_paths": ["x"],
                "reason": "old", "synthetic": false, "archived_at": "UNKNOWN", "delete_after": "UNKNOWN"}])
    );
}

#[test]
fn only_a_live_agent_that_names_a_phase_can_be_wedged() {
    let wedged = |row: Value, seconds: i64| {
        let mut record = stored("heartbeats/w1.json", row);
        record.annotations.phase_changed_at = Some(when(0));
        let judged = Judged { now: at(seconds), ..judged() };
        let report = broad_report(&listing(vec![record]), judged, false);
        report.heartbeats[0].contains_key("wedged")
    };
    let row = |phase: Value, ttl: i64| json!({"phase": phase, "updated_at": when(0), "expires_at": when(ttl)});
    assert!(wedged(row(json!("coding"), 9000), 2701));
    assert!(!wedged(row(json!("coding"), 9000), 2700));
    assert!(!wedged(row(json!("coding"), 900), 2701), "a stale agent is stale, not wedged");
    assert!(!wedged(row(json!(null), 9000), 2701));
}

fn candidates(spellings: &[&str]) -> Vec<Candidate> {
    let path = |spelling: &&str| RecordPath::parse(&format!("claims/o/r/{spelling}.json")).unwrap();
    let candidate = |(index, spelling)| Candidate { path: path(spelling), queried: index == 0 };
    spellings.iter().enumerate().map(candidate).collect()
}

fn on_target(records: Vec<Stored>) -> Result<StatusReport, String> {
    let all = snapshot(records, &[]);
    let none = Faults::new();
    let found =
        target_report(&all, &candidates(&["42", "issue:42", "pr:42"]), &none).map_err(|refusal| refusal.message)?;
    Ok(found.finish(&repo(), &target(), &all, judged()))
}

fn claim(spelling: &str, agent: &str) -> Stored {
    let row = json!({"repo": "o/r", "target": spelling, "agent_id": agent, "status": "active"});
    stored(&format!("claims/o/r/{spelling}.json"), row)
}

#[test]
fn a_broken_record_under_the_spelling_asked_for_is_no_answer() {
    assert_eq!(
        on_target(vec![malformed("claims/o/r/42.json")]).unwrap_err(),
        "state unreadable: claims/o/r/42.json: expected value at line 1 column 1"
    );
    assert_eq!(
        on_target(vec![stored("claims/o/r/42.json", json!("x"))]).unwrap_err(),
        "state record is not a claim object: claims/o/r/42.json"
    );
}

#[test]
fn a_broken_record_under_another_spelling_is_a_note() {
    let report = on_target(vec![malformed("claims/o/r/issue:42.json"), stored("claims/o/r/pr:42.json", json!(1))]);
    assert_eq!(
        report.unwrap().note("claims"),
        Some(
            "claims/o/r/issue:42.json unreadable; a claim there would not be reported; \
             claims/o/r/pr:42.json not a claim record; a claim there would not be reported"
        )
    );
}

#[test]
fn one_claim_stored_under_two_spellings_is_one_row() {
    let copy = |path: &str| stored(path, json!({"repo": "o/r", "target": "42", "agent_id": "w1"}));
    let report = on_target(vec![copy("claims/o/r/42.json"), copy("claims/o/r/pr:42.json")]).unwrap();
    assert_eq!(report.claims.len(), 1);
    let nameless = |path: &str| stored(path, json!({"repo": "o/r", "target": "42"}));
    let report = on_target(vec![nameless("claims/o/r/42.json"), nameless("claims/o/r/pr:42.json")]).unwrap();
    assert_eq!(report.claims.len(), 2, "rows without a holder never collapse");
    assert_eq!(report.note("heartbeats"), Some("claim holder not set for 42; claim holder not set for 42"));
}

#[test]
fn a_holder_whose_heartbeat_does_not_answer_for_it_is_noted() {
    let note = |records: Vec<Stored>| on_target(records).unwrap().note("heartbeats").map(str::to_owned);
    assert_eq!(note(vec![claim("42", "w1"), heartbeat("w1", "done")]), None);
    assert_eq!(note(vec![claim("42", "w1")]).as_deref(), Some("holder heartbeat not found"));
    assert_eq!(note(vec![claim("42", "not a segment")]).as_deref(), Some("holder heartbeat not found"));
    assert_eq!(note(vec![claim("42", " ")]).as_deref(), Some("claim holder not set"));
    let unreadable = vec![claim("42", "w1"), malformed("heartbeats/w1.json")];
    assert_eq!(note(unreadable).as_deref(), Some("holder heartbeat unreadable"));
    let of_another = stored("heartbeats/w1.json", json!({"agent_id": "w2"}));
    assert_eq!(note(vec![claim("42", "w1"), of_another]).as_deref(), Some("holder heartbeat mismatched"));
    let two = vec![claim("42", "w1"), claim("pr:42", "w2"), heartbeat("w2", "done")];
    assert_eq!(note(two).as_deref(), Some("holder heartbeat not found for 42 (w1)"));
}

#[test]
fn each_holder_is_read_and_shown_once() {
    let records = vec![claim("42", "w1"), claim("issue:42", "w1"), heartbeat("w1", "done")];
    let all = snapshot(records.clone(), &[]);
    let read = holders(&all, &candidates(&["42", "issue:42"]));
    assert_eq!(read.iter().map(RecordPath::as_str).collect::<Vec<_>>(), ["heartbeats/w1.json"]);
    assert_eq!(on_target(records).unwrap().heartbeats.len(), 1);
}

#[test]
fn the_notes_of_a_target_come_in_the_order_of_the_contract() {
    let report = on_target(vec![claim("42", "w1"), malformed("claims/o/r/pr:42.json")]).unwrap();
    let sections: Vec<&str> = report.notes.iter().map(|(section, _)| *section).collect();
    assert_eq!(sections, ["batches", "events", "claims", "heartbeats"]);
    assert_eq!(report.degraded().len(), 3, "equal notes are listed once");
}
