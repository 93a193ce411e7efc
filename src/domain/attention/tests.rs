use serde_json::{Value, json};

use super::*;
use crate::domain::decision::{Edit, RefusalKind};
use crate::domain::fixtures::{at, object, refusal, snapshot, stored, when};
use crate::domain::record::{Stored, text};
use crate::domain::snapshot::Listing;

const PATH: &str = "attention/w/o/r/q1.json";

fn question(more: Value) -> Value {
    let mut record = object(json!({
        "schema_version": 1, "workspace": "w", "id": "q1", "repository": "o/r", "target": "9", "status": "open",
        "kind": "decision", "question": "Which?", "choices": ["a", "b"], "priority_class": "unblocks-work",
        "priority_reason": "blocked", "safe_resume": "wait",
        "source": {
            "provider": "codex", "host_id": "h", "task_id": "t", "last_seen_at": when(0),
            "capabilities": { "native_open": "available", "prompt_forwarding": "unknown" },
        },
        "source_generation": 3, "created_at": when(0), "refreshed_at": when(10),
    }));
    for (name, value) in object(more) {
        if value.is_null() {
            record.shift_remove(&name);
        } else {
            record.insert(name, value);
        }
    }
    Value::Object(record)
}

fn resolved(generation: i64) -> Value {
    question(json!({ "status": "resolved", "resolved_at": when(10), "source_generation": generation }))
}

fn open(more: Value) -> Record {
    validate(&question(more), true).unwrap()
}

fn error(more: Value) -> String {
    validate(&question(more), false).unwrap_err().to_string()
}

fn key() -> Key {
    Key::new("w", "o/r", "q1").unwrap()
}

fn upserted(present: Value, requested: &Record) -> Result<Record, String> {
    let verdict = upsert(&snapshot(vec![stored(PATH, present)], &[]), requested);
    match verdict {
        Ok(decision) => Ok(decision.outcome),
        refused => Err(refusal(refused).message),
    }
}

#[test]
fn each_rule_of_the_schema_has_its_message() {
    let long = |length: usize| "é".repeat(length);
    let source = |name: &str, value: Value| {
        let mut source = object(question(json!({})))["source"].clone();
        source[name] = value;
        json!({ "source": source })
    };
    for (change, expected) in [
        (json!({ "kind": null }), "attention record missing kind"),
        (json!({ "x": 1 }), "attention record contains unknown field x"),
        (json!({ "schema_version": 2 }), "attention schema_version must be 1"),
        (json!({ "workspace": 1 }), "attention workspace must be a string"),
        (json!({ "id": "a".repeat(161) }), "attention id must be at most 160 characters"),
        (json!({ "workspace": "a/b" }), "invalid attention workspace: a/b"),
        (json!({ "id": ".a" }), "invalid attention id: .a"),
        (json!({ "repository": "./r" }), "invalid attention repo: ./r"),
        (json!({ "repository": "o/a..b" }), "invalid attention repo: o/a..b"),
        (json!({ "kind": long(101) }), "attention kind must be a non-empty string of at most 100 characters"),
        (json!({ "safe_resume": "" }), "attention safe_resume must be a non-empty string of at most 4000 characters"),
        (
            json!({ "choices": [] }),
            "attention choices must contain 1 to 10 non-empty strings of at most 2000 characters",
        ),
        (
            json!({ "priority_class": "x" }),
            "attention priority_class must be urgent-risk, unblocks-work, current-head-merge, product-architecture",
        ),
        (json!({ "status": "x" }), "attention status must be open or resolved"),
        (
            json!({ "source_generation": 2.5 }),
            "attention source_generation must be an integer between 0 and 9007199254740991",
        ),
        (json!({ "source": 1 }), "attention source must be a JSON object"),
        (json!({ "source": {} }), "attention source missing provider"),
        (source("x", json!(1)), "attention source contains unknown field x"),
        (source("host_id", json!("")), "attention source host_id must be non-empty"),
        (source("provider", json!(long(101))), "attention source provider must be at most 100 characters"),
        (source("task_id", json!(long(256))), "attention source task_id must be at most 255 characters"),
        (source("open_uri", json!("x/y")), "attention source open_uri must be an absolute URI"),
        (
            source("last_seen_at", json!("2026-12-01T00:00:60Z")),
            "attention source last_seen_at must be an RFC 3339 timestamp of at most 64 characters",
        ),
        (
            source("capabilities", json!({ "native_open": "available" })),
            "attention capabilities must contain only native_open and prompt_forwarding",
        ),
        (
            source("capabilities", json!({ "native_open": "x", "prompt_forwarding": "unknown" })),
            "attention native_open must be available, unavailable, or unknown",
        ),
        (json!({ "refreshed_at": when(-1) }), "attention refreshed_at must not precede created_at"),
        (json!({ "status": "resolved" }), "resolved attention requires resolved_at"),
        (json!({ "status": "resolved", "resolved_at": when(-1) }), "attention resolved_at must not precede created_at"),
        (json!({ "resolved_at": when(1) }), "open attention must not contain resolved_at"),
    ] {
        assert_eq!(error(change), expected);
    }
    assert_eq!(validate(&json!([]), false).unwrap_err().to_string(), "attention record must be a JSON object");
    let wrong = validate(&resolved(3), true).unwrap_err();
    assert_eq!(wrong.to_string(), "attention-upsert requires status open");
}

#[test]
fn a_float_without_a_fraction_is_stored_as_an_integer() {
    let record = open(json!({ "source_generation": 2.0 }));
    assert_eq!(record.members["source_generation"].to_string(), "2");
}

#[test]
fn the_longest_key_still_makes_a_path() {
    let name = "a".repeat(160);
    let key = Key::new(&name, &format!("o/{}", "r".repeat(158)), &name).unwrap();
    assert_eq!(key.path().as_str().len(), 497);
}

#[test]
fn a_refresh_keeps_when_the_question_was_first_asked() {
    let merged = upserted(question(json!({})), &open(json!({ "created_at": when(5), "refreshed_at": when(20) })));
    assert_eq!(text(&merged.unwrap().members, "created_at"), Some(when(0).as_str()));
    let merged = upserted(resolved(3), &open(json!({ "source_generation": 4 }))).unwrap();
    assert!(merged.is_open() && !merged.members.contains_key("resolved_at"));
}

#[test]
fn what_is_older_than_the_stored_record_is_refused() {
    let requested = open(json!({}));
    for (present, expected) in [
        (question(json!({ "source_generation": 4 })), "source generation 3 is older than stored generation 4"),
        (resolved(3), "reopening attention must advance beyond resolved generation 3"),
        (
            question(json!({ "source_generation": 2, "refreshed_at": when(11) })),
            "attention refresh is older than the stored refresh at generation 2",
        ),
    ] {
        assert_eq!(upserted(present, &requested).unwrap_err(), expected);
    }
}

#[test]
fn a_stored_record_is_checked_before_it_is_believed() {
    let requested = open(json!({}));
    assert_eq!(
        upserted(question(json!({ "kind": "" })), &requested).unwrap_err(),
        format!(
            "invalid stored attention record at {PATH}: attention kind must be a non-empty string of at most 100 \
             characters"
        )
    );
    assert_eq!(
        upserted(question(json!({ "id": "q2" })), &requested).unwrap_err(),
        format!("stored attention identity does not match path {PATH}")
    );
}

#[test]
fn a_resolution_is_never_earlier_than_what_the_record_tells() {
    let state = snapshot(vec![stored(PATH, question(json!({})))], &[]);
    let later = resolve(&state, &key(), 3, at(60)).unwrap().outcome;
    assert_eq!(text(&later.members, "resolved_at"), Some(when(60).as_str()));
    let skewed = resolve(&state, &key(), 5, at(1)).unwrap().outcome;
    assert_eq!((skewed.generation, text(&skewed.members, "refreshed_at")), (5, Some(when(10).as_str())));
    assert_eq!(text(&skewed.members, "resolved_at"), Some(when(10).as_str()));
}

#[test]
fn resolving_again_at_the_same_generation_changes_nothing() {
    let state = snapshot(vec![stored(PATH, resolved(3))], &[]);
    let decision = resolve(&state, &key(), 3, at(60)).unwrap();
    assert_eq!(Value::Object(decision.outcome.members), resolved(3));
    assert!(matches!(decision.edits[..], [Edit::Put(_)]));
}

#[test]
fn what_is_not_there_cannot_be_resolved() {
    let refused = refusal(resolve(&snapshot(Vec::new(), &[PATH]), &key(), 3, at(60)));
    assert_eq!((refused.kind, refused.message.as_str()), (RefusalKind::Unknown, "attention record not found: q1"));
}

#[test]
fn a_list_is_ordered_by_priority_then_age_then_id() {
    let one = |id: &str, more: Value| -> Stored {
        let mut record = object(question(more));
        record.insert("id".to_owned(), id.into());
        stored(&format!("attention/w/o/r/{id}.json"), Value::Object(record))
    };
    let records = vec![
        one("a", json!({ "priority_class": "product-architecture" })),
        one("b", json!({})),
        one("c", json!({ "created_at": when(-5) })),
        one("d", json!({ "priority_class": "urgent-risk" })),
        one("e", json!({ "status": "resolved", "resolved_at": when(10) })),
    ];
    let listing = Listing { records, notes: Vec::new() };
    let ids = |include| -> Vec<String> {
        list(&listing, "attention/w/o/r", include).unwrap().iter().map(|record| record.key.id().to_owned()).collect()
    };
    assert_eq!(ids(false), ["d", "c", "b", "a"]);
    assert_eq!(ids(true), ["d", "c", "b", "e", "a"]);
}

#[test]
fn a_list_with_a_hole_or_too_many_records_is_no_list() {
    let message = |listing: &Listing| list(listing, "attention/w/o/r", true).unwrap_err().message;
    let filtered = Listing { records: Vec::new(), notes: vec!["filtered by scoped token".to_owned()] };
    assert_eq!(message(&filtered), "attention list is filtered and incomplete for the scoped token");
    let many = Listing { records: vec![stored(PATH, json!(1)); SCAN_MAXIMUM + 1], notes: Vec::new() };
    assert_eq!(message(&many), "state prefix attention/w/o/r exceeds scan maximum 1000");
}
