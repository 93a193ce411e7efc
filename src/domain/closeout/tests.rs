use super::*;
use crate::domain::fixtures::{
    event_of, malformed, object, plain_stamp, put, refusal, release_by, snapshot, stamp, stored, when,
};
use crate::domain::path::Prefix;
use crate::domain::request::Metadata;
use crate::domain::snapshot::Listing;
use serde_json::json;

const CLAIM: &str = "claims/o/r/42.json";
const BATCH: &str = "batches/b1.json";
const RESERVATION: &str = "events/b1/lane_closed-10e08a419e850eba.json";

fn done() -> Closing {
    Closing { terminal: "done".to_owned(), ..Closing::default() }
}

fn claim_of(agent: &str) -> Value {
    json!({"repo": "o/r", "target": "42", "agent_id": agent, "batch_id": "b1", "status": "active", "custom": 1})
}

fn batch() -> Value {
    json!({"batch_id": "b1", "repo": "o/r", "custom": 2, "lanes": [
        {"name": "backend", "owner": "w1", "targets": ["42", 43], "note": "x"},
        {"name": "docs", "owner": "w2", "targets": ["44"], "terminal": "abandoned"}
    ]})
}

/// State with these records; whatever else a closeout reads is absent.
fn state(claim: Value, batch: Value) -> Snapshot {
    let mut state = snapshot(vec![stored(CLAIM, claim), stored(BATCH, batch)], &[RESERVATION]);
    state.listings.insert(Prefix::events_of(&BatchId::parse("", "b1").unwrap()), Listing::default());
    state
}

fn with(mut state: Snapshot, path: &str, members: Members) -> Snapshot {
    let stored = stored(path, members.into());
    state.records.insert(stored.path.clone(), Some(stored));
    state
}

fn closed_by(agent: &str, state: &Snapshot) -> Verdict<Closed> {
    close(state, Asked::Release(&release_by(agent), &done()), &stamp(60))
}

fn by_event(state: &Snapshot, request: &RecordEvent, closing: &Closing) -> Verdict<Closed> {
    close(state, Asked::Event(request, closing), &stamp(60))
}

fn closing_event(agent: &str) -> RecordEvent {
    RecordEvent {
        agent: Some(agent.to_owned()),
        repo: Some("o/r".to_owned()),
        target: Some("42".to_owned()),
        ..event_of(LANE_CLOSED)
    }
}

/// Applies what a decision puts, as an atomic store would.
fn after(state: Snapshot, decision: &Decision<Closed>) -> Snapshot {
    decision.edits.iter().fold(state, |state, edit| match edit {
        Edit::Put(put) => with(state, put.path.as_str(), put.members.clone()),
        other => panic!("a closeout only writes: {other:?}"),
    })
}

#[test]
fn the_owners_release_reserves_closes_the_claim_and_stamps_the_lane_in_one_decision() {
    let before = state(claim_of("w1"), batch());
    let decision = closed_by("w1", &before).unwrap();
    let paths: Vec<&str> = decision.edits.iter().map(|edit| edit.path().as_str()).collect();
    assert_eq!(paths, [RESERVATION, CLAIM, BATCH]);
    assert_eq!(decision.basis, Freshness::Cached, "everything it read is written");
    let event = &put(&decision, RESERVATION).members;
    let claim = &put(&decision, CLAIM).members;
    assert_eq!(
        (&claim["status"], &claim["terminal"], &claim["workspace"]),
        (&json!("released"), &json!("done"), &json!("default"))
    );
    assert_eq!(claim["closed_by"], event["closed_by"]);
    assert_eq!(claim["custom"], 1, "a release keeps what it does not know");
    let batch = &put(&decision, BATCH).members;
    let lane = batch["lanes"][0].as_object().unwrap();
    assert_eq!((&lane["status"], &lane["closed_at"], &lane["note"]), (&json!("done"), &json!(when(60)), &json!("x")));
    assert_eq!(
        (&batch["status"], &batch["completed_at"], &batch["custom"]),
        (&json!("completed"), &json!(when(60)), &json!(2))
    );
}

#[test]
fn a_batch_with_an_open_lane_is_not_completed() {
    let mut open = batch();
    open["lanes"][1]["terminal"] = json!(null);
    let decision = closed_by("w1", &state(claim_of("w1"), open)).unwrap();
    let batch = &put(&decision, BATCH).members;
    assert!(!batch.contains_key("status") && !batch.contains_key("completed_at"));
    assert_eq!(batch["updated_at"], when(60));
}

#[test]
fn saying_it_again_changes_nothing_and_says_so() {
    let before = state(claim_of("w1"), batch());
    let landed = after(before.clone(), &closed_by("w1", &before).unwrap());
    let again = close(&landed, Asked::Release(&release_by("w1"), &done()), &stamp(600)).unwrap();
    assert!(again.edits.is_empty() && !again.outcome.changed());
    assert_eq!(again.outcome.reserved.event["at"], when(60), "the first closeout stays");
    let told = by_event(&landed, &closing_event("w1"), &done()).unwrap();
    assert!(!told.outcome.changed(), "an event tells the same");
}

#[test]
fn what_a_killed_closeout_left_undone_is_made_good_by_the_next() {
    let before = state(claim_of("w1"), batch());
    let whole = closed_by("w1", &before).unwrap();
    let event = put(&whole, RESERVATION).members.clone();
    let claim = put(&whole, CLAIM).members.clone();
    let reserved = with(before, RESERVATION, event.clone());
    let resumed = closed_by("w1", &reserved).unwrap();
    assert!(!resumed.outcome.reserved.created && resumed.outcome.claim_changed && resumed.outcome.batch_changed);
    assert_eq!(put(&resumed, CLAIM).members["closed_by"], event["closed_by"]);
    let resumed = closed_by("w1", &with(reserved, CLAIM, claim)).unwrap();
    assert!(!resumed.outcome.claim_changed && resumed.outcome.batch_changed);
}

#[test]
fn the_first_closeout_is_authoritative() {
    let conflict = "conflicting terminal closeout for lane backend; first closeout is authoritative";
    let before = state(claim_of("w1"), batch());
    let landed = after(before.clone(), &closed_by("w1", &before).unwrap());
    for other in [
        Closing { terminal: "abandoned".to_owned(), ..done() },
        Closing { workspace: Some("w".to_owned()), ..done() },
        Closing { pr_state: Some("merged".to_owned()), ..done() },
    ] {
        let error = refusal(close(&landed, Asked::Release(&release_by("w1"), &other), &stamp(60)));
        assert_eq!((error.kind, error.message.as_str()), (RefusalKind::Invalid, conflict));
    }
    let mut stamped_otherwise = batch();
    stamped_otherwise["lanes"][0]["terminal"] = json!("superseded");
    assert_eq!(refusal(closed_by("w1", &state(claim_of("w1"), stamped_otherwise))).message, conflict);
}

#[test]
fn a_lane_that_was_registered_again_is_stamped_again() {
    let before = state(claim_of("w1"), batch());
    let landed = after(before.clone(), &closed_by("w1", &before).unwrap());
    let registered_again = with(landed, BATCH, object(batch()));
    let again = by_event(&registered_again, &closing_event("w1"), &done()).unwrap();
    assert!(!again.outcome.reserved.created && again.outcome.batch_changed);
}

#[test]
fn the_flags_are_checked_before_anything_is_read() {
    let check = |closing: Closing, metadata: Metadata, branch: Option<&str>| {
        let request = Release { metadata, branch: branch.map(str::to_owned), ..release_by("w1") };
        Asked::Release(&request, &closing).check().map_err(|refusal| refusal.message)
    };
    let text = |value: &str| Some(value.to_owned());
    let none = Metadata::default;
    assert_eq!(check(done(), none(), Some("br")), Ok(()));
    for (closing, metadata, branch, message) in [
        (
            Closing { terminal: "merged".into(), ..done() },
            none(),
            None,
            "--terminal must be one of: done, abandoned, superseded",
        ),
        (
            Closing { terminal: "".into(), ..done() },
            none(),
            None,
            "--terminal must be one of: done, abandoned, superseded",
        ),
        (
            Closing { workspace: text(""), ..done() },
            none(),
            None,
            "--workspace must not be empty for terminal closeout",
        ),
        (done(), Metadata { host: text(""), ..none() }, None, "--host must not be empty for terminal closeout"),
        (done(), none(), Some(""), "--branch must not be empty for terminal closeout"),
        (Closing { pr_state: text(""), ..done() }, none(), None, "--pr-state must not be empty for terminal closeout"),
        (done(), Metadata { pr_url: text("HTTP://x"), ..none() }, None, "--pr-url must be an HTTP(S) URL with a host"),
        (
            Closing { evidence_url: text("x"), ..done() },
            none(),
            None,
            "--evidence-url must be an HTTP(S) URL with a host",
        ),
    ] {
        assert_eq!(check(closing, metadata, branch), Err(message.to_owned()));
    }
    let request = RecordEvent { repo: Some("nonsense".to_owned()), ..closing_event("w1") };
    let error = Asked::Event(&request, &done()).check().unwrap_err();
    assert_eq!(error.message, "invalid terminal closeout repo: nonsense");
}

#[test]
fn a_claim_has_to_name_a_batch_that_holds_its_lane() {
    let message = |claim: Value, batch: Value| refusal(closed_by("w1", &state(claim, batch))).message;
    let mut without = claim_of("w1");
    without["batch_id"] = json!(null);
    assert_eq!(message(without, batch()), "terminal release requires a claim with batch_id");
    let mut elsewhere = batch();
    elsewhere["repo"] = json!("o/other");
    assert_eq!(message(claim_of("w1"), elsewhere), "terminal closeout repo does not match batch b1");
    let nowhere = json!({"lanes": [{"name": "docs", "owner": "w1", "targets": ["9"]}]});
    let no_single = "terminal closeout does not match exactly one lane in batch b1";
    assert_eq!(message(claim_of("w1"), nowhere), no_single);
    let twice = json!({"lanes": [
        {"name": "a", "owner": "w1", "targets": ["42"]}, {"name": "b", "owner": "w1", "targets": ["42"]}
    ]});
    assert_eq!(message(claim_of("w1"), twice), no_single);
    let absent = snapshot(vec![stored(CLAIM, claim_of("w1"))], &[BATCH]);
    assert_eq!(refusal(closed_by("w1", &absent)).message, "batch b1 not found for terminal closeout");
    assert_eq!(message(claim_of("w2"), batch()), "claim belongs to w2; w1 cannot release it");
}

#[test]
fn an_event_names_its_lane_and_a_target_of_it() {
    let state = state(claim_of("w1"), batch());
    let named = |lane: &str, target: &str| {
        let request =
            RecordEvent { lane: Some(lane.to_owned()), target: Some(target.to_owned()), ..closing_event("w1") };
        by_event(&state, &request, &done())
    };
    assert_eq!(named("backend", "43").unwrap().outcome.reserved.event["target"], "43");
    assert_eq!(refusal(named("backend", "44")).message, "terminal closeout target does not match lane backend");
    assert_eq!(refusal(named("nope", "42")).message, "terminal closeout does not match exactly one lane in batch b1");
}

#[test]
fn only_the_flags_of_a_closeout_reach_its_event() {
    let mut request =
        RecordEvent { message: Some("hi".to_owned()), branch: Some("br".to_owned()), ..closing_event("w1") };
    request.metadata.phase = Some("qa".to_owned());
    request.metadata.host = Some("codex".to_owned());
    let closed = by_event(&state(claim_of("w1"), batch()), &request, &done()).unwrap().outcome;
    let event = closed.reserved.event;
    assert!(!event.contains_key("message") && !event.contains_key("phase"));
    assert_eq!((&event["host"], &event["branch"]), (&json!("codex"), &json!("br")));
    assert_eq!(closed.claim, None, "the claim is left as it is");
}

fn acquired_by(agent: &str) -> Stored {
    let event = json!({"schema_version": 1, "event_id": "e1", "batch_id": "b1", "type": "claim.acquired",
                       "agent_id": agent, "repo": "o/r", "target": "42", "at": when(0)});
    stored("events/b1/e1.json", event)
}

fn with_trail(state: &Snapshot, records: Vec<Stored>, notes: &[&str]) -> Snapshot {
    let mut state = state.clone();
    let notes = notes.iter().map(|note| (*note).to_owned()).collect();
    state.listings.insert(Prefix::events_of(&BatchId::parse("", "b1").unwrap()), Listing { records, notes });
    state
}

#[test]
fn another_agent_closes_a_lane_that_the_trail_shows_it_acquired() {
    let state = state(claim_of("x"), batch());
    let no = "terminal closeout agent does not match lane backend";
    assert_eq!(refusal(closed_by("x", &state)).message, no, "an empty trail admits nobody");
    assert_eq!(refusal(closed_by("x", &with_trail(&state, vec![acquired_by("y")], &[]))).message, no);
    let admitted = closed_by("x", &with_trail(&state, vec![acquired_by("x")], &[])).unwrap();
    assert_eq!(admitted.basis, Freshness::Fetched, "a trail cannot be guarded");
    assert_eq!(admitted.outcome.reserved.event["closed_by"]["agent_id"], "x");
}

#[test]
fn a_trail_with_a_gap_admits_nobody_and_is_unknown() {
    let state = state(claim_of("x"), batch());
    let filtered = with_trail(&state, vec![acquired_by("x")], &["events/b1 filtered by scoped token"]);
    let error = refusal(closed_by("x", &filtered));
    assert_eq!(
        (error.kind, error.message.as_str()),
        (RefusalKind::Unknown, "event trail for b1 is filtered by a scoped token")
    );
    let torn = with_trail(&state, vec![acquired_by("x"), malformed("events/b1/e2.json")], &[]);
    assert_eq!(refusal(closed_by("x", &torn)).kind, RefusalKind::Unknown);
}

#[test]
fn another_agent_needs_the_claim_itself() {
    let admitting = with_trail(&state(claim_of("w1"), batch()), vec![acquired_by("x")], &[]);
    let error = refusal(by_event(&admitting, &closing_event("x"), &done()));
    assert_eq!(error.message, "terminal closeout agent does not match lane backend");
}

#[test]
fn a_tenure_that_is_over_closes_nothing() {
    let mut claim = claim_of("w1");
    claim["generation"] = json!(5);
    let mut request = release_by("w1");
    request.metadata.generation = Some(4);
    let state = state(claim, batch());
    let error = refusal(close(&state, Asked::Release(&request, &done()), &stamp(60)));
    assert_eq!(error.kind, RefusalKind::Claimed);
    let mut event = closing_event("w1");
    event.metadata.generation = Some(4);
    assert_eq!(refusal(by_event(&state, &event, &done())).kind, RefusalKind::Claimed);
    let plain = close(&state, Asked::Release(&request, &done()), &plain_stamp(60)).unwrap();
    assert!(plain.outcome.changed(), "stores without generations do not look at them");
}
