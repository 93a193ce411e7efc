use super::*;
use crate::domain::fixtures::{appended, malformed, put, refusal, snapshot, stamp, stored, when};

const PATH: &str = "batches/b1.json";

fn batch(drained: Value) -> Value {
    json!({
        "batch_id": "b1", "repo": "o/r", "drained": drained,
        "lanes": [
            {"name": "backend", "owner": "w1", "targets": ["1", "issue:7"]},
            {"name": "docs", "owner": "w2", "targets": [2]}
        ]
    })
}

fn ask(lane: Option<&str>, reason: Option<&str>, cancel: bool) -> Drain {
    Drain {
        batch: BatchId::parse("batch-id", "b1").unwrap(),
        lane: lane.map(str::to_owned),
        reason: reason.map(str::to_owned),
        cancel,
        by: Some("boss".to_owned()),
        attribution: Attribution::default(),
    }
}

fn entry(lane: Option<&str>, reason: &str) -> Value {
    match lane {
        Some(lane) => json!({"lane": lane, "reason": reason, "at": when(0), "by": "boss"}),
        None => json!({"reason": reason, "at": when(0), "by": "boss"}),
    }
}

fn drained_after(before: Value, request: &Drain) -> Decision<Outcome> {
    drain(&snapshot(vec![stored(PATH, batch(before))], &[]), request, &stamp(0)).unwrap()
}

fn notice(drained: Value, agent: &str, target: Option<&str>) -> Option<String> {
    let work = Work { agent, batch_id: "b1", repo: Some("o/r"), target };
    let seen = seen(&snapshot(vec![stored(PATH, batch(drained))], &[]), work).unwrap();
    assert_eq!(seen.basis, Freshness::Cached, "the batch that was read is guarded");
    seen.notice.unwrap().map(|notice| notice.message())
}

#[test]
fn a_drain_is_stored_on_the_batch_and_told_in_its_trail() {
    let decision = drained_after(json!(null), &ask(Some("docs"), Some("stop"), false));
    let record = &put(&decision, PATH).members;
    assert_eq!(record["drained"], json!([entry(Some("docs"), "stop")]));
    assert_eq!(record["updated_at"], when(0));
    let event = appended(&decision).unwrap();
    assert_eq!(
        ["type", "kind", "lane", "message", "agent_id"].map(|name| text(event, name).unwrap()),
        ["human_intervention", "drain", "docs", "stop", "boss"]
    );
}

#[test]
fn draining_again_replaces_the_reason_and_repeating_it_writes_nothing() {
    let before = json!([entry(Some("docs"), "stop"), entry(None, "all")]);
    let again = drained_after(before.clone(), &ask(Some("docs"), Some("stop"), false));
    assert!(again.edits.is_empty() && !again.outcome.changed);
    let other = drained_after(before, &ask(Some("docs"), Some("really"), false));
    assert_eq!(other.outcome.record["drained"], json!([entry(None, "all"), entry(Some("docs"), "really")]));
}

#[test]
fn cancelling_takes_off_exactly_what_was_named() {
    let before = json!([entry(Some("docs"), "stop"), entry(None, "all")]);
    let whole = drained_after(before.clone(), &ask(None, None, true));
    assert_eq!(whole.outcome.record["drained"], json!([entry(Some("docs"), "stop")]));
    let lane = drained_after(before, &ask(Some("docs"), None, true));
    assert_eq!(lane.outcome.warnings, ["lane docs stays drained with the whole of batch b1: all"]);
    let last = drained_after(json!([entry(None, "all")]), &ask(None, Some("fixed"), true));
    assert!(!last.outcome.record.contains_key(DRAINED));
    assert_eq!(appended(&last).unwrap()["message"], "drain cancelled: fixed");
    let nothing = drained_after(json!(null), &ask(None, None, true));
    assert!(nothing.edits.is_empty() && !nothing.outcome.changed);
}

#[test]
fn only_what_exists_can_be_drained() {
    let none = snapshot(vec![], &[PATH]);
    let error = refusal(drain(&none, &ask(None, Some("x"), false), &stamp(0)));
    assert_eq!((error.kind, error.message.as_str()), (RefusalKind::Invalid, "batch b1 is not registered"));
    let some = snapshot(vec![stored(PATH, batch(json!(null)))], &[]);
    let error = refusal(drain(&some, &ask(Some("nope"), Some("x"), false), &stamp(0)));
    assert_eq!(error.message, "batch b1 has no lane nope");
}

#[test]
fn a_lane_is_drained_by_itself_or_with_its_batch() {
    let docs = json!([entry(Some("docs"), "stop")]);
    assert_eq!(notice(docs.clone(), "x", Some("2")).unwrap(), "lane docs of batch b1 is drained: stop");
    assert_eq!(notice(docs, "x", Some("1")), None);
    let whole = json!([entry(None, "all")]);
    assert_eq!(notice(whole.clone(), "x", Some("1")).unwrap(), "lane backend of batch b1 is drained: all");
    assert_eq!(notice(whole, "x", Some("99")).unwrap(), "batch b1 is drained: all");
}

#[test]
fn another_spelling_of_the_target_is_the_same_lane() {
    let backend = json!([entry(Some("backend"), "stop")]);
    for target in ["issue:1", "PR:1", "7"] {
        assert!(notice(backend.clone(), "x", Some(target)).is_some(), "{target}");
    }
    assert_eq!(notice(backend.clone(), "x", Some("1:qa")), None);
    assert!(notice(backend.clone(), "w1", None).is_some(), "who names no target works on its own lane");
    assert_eq!(notice(backend, "w2", None), None);
}

#[test]
fn another_repository_is_not_meant_and_an_absent_batch_has_to_be_fetched() {
    let state = snapshot(vec![stored(PATH, batch(json!([entry(None, "all")])))], &["batches/b2.json"]);
    let other = Work { agent: "x", batch_id: "b1", repo: Some("o/other"), target: Some("1") };
    assert_eq!(seen(&state, other).unwrap().notice, Ok(None));
    let absent = Work { batch_id: "b2", ..other };
    assert_eq!(seen(&state, absent).unwrap(), Seen { notice: Ok(None), basis: Freshness::Fetched });
}

#[test]
fn a_claim_in_a_drained_lane_is_refused_and_a_batch_nobody_can_read_is_unknown() {
    let work = Work { agent: "x", batch_id: "b1", repo: Some("o/r"), target: Some("2") };
    let drained = snapshot(vec![stored(PATH, batch(json!([entry(Some("docs"), "stop\nnow")])))], &[]);
    let error = refuse_claim(&seen(&drained, work).unwrap()).unwrap_err();
    assert_eq!(error.kind, RefusalKind::Claimed);
    assert_eq!(error.message, "CLAIM_REFUSED: lane docs of batch b1 is drained: stop\\nnow");
    let unreadable = snapshot(vec![malformed(PATH)], &[]);
    assert_eq!(refuse_claim(&seen(&unreadable, work).unwrap()).unwrap_err().kind, RefusalKind::Unknown);
}
