//! Attention records from the question to the answer.

use serde_json::{Value, json};

use super::*;

fn ask(desk: &Desk, change: impl FnOnce(&mut Value)) -> String {
    let mut record = json!({
        "schema_version": 1, "workspace": "main", "id": "q1", "repository": "o/r", "target": "9", "status": "open",
        "kind": "decision", "question": "Which\u{1b}[1m branch?\nNow?", "choices": ["a", "b"],
        "priority_class": "urgent-risk", "priority_reason": "blocked", "safe_resume": "wait",
        "source": {
            "provider": "codex", "host_id": "h", "task_id": "t", "last_seen_at": "2026-12-01T11:00:00Z",
            "capabilities": { "native_open": "available", "prompt_forwarding": "unknown" },
        },
        "source_generation": 1, "created_at": "2026-12-01T11:00:00Z", "refreshed_at": "2026-12-01T11:00:00Z",
    });
    change(&mut record);
    std::fs::write(desk.directory.path().join("q.json"), record.to_string()).unwrap();
    desk.run("attention-upsert --record-json q.json")
}

const KEY: &str = "--workspace main --repo o/r --attention-id q1";

#[test]
fn a_question_is_asked_shown_and_answered() {
    let desk = Desk::new();
    assert_snapshot!(ask(&desk, |_| ()), @"
    exit 0
    --- stdout
    attention q1 open at generation 1
    ");
    assert_snapshot!(desk.run(&format!("attention-get {KEY}")), @"
    exit 0
    --- stdout
    urgent-risk q1 [open]
      Which[1m branch? Now?
    ");
    assert_snapshot!(desk.run("attention-list --workspace main --repo o/r"), @"
    exit 0
    --- stdout
    urgent-risk q1 [open]
      Which[1m branch? Now?
    ");
    assert_snapshot!(desk.run(&format!("attention-resolve {KEY} --source-generation 1")), @"
    exit 0
    --- stdout
    attention q1 resolved at generation 1
    ");
    assert_snapshot!(desk.run("attention-list --workspace main --repo o/r --json"), @r#"
    exit 0
    --- stdout
    {
      "records": [],
      "limit": 100,
      "truncated": false
    }
    "#);
    assert_snapshot!(desk.run(&format!("attention-get {KEY} --json")), @r#"
    exit 0
    --- stdout
    {
      "record": {
        "schema_version": 1,
        "workspace": "main",
        "id": "q1",
        "repository": "o/r",
        "target": "9",
        "status": "resolved",
        "kind": "decision",
        "question": "Which\u001b[1m branch?\nNow?",
        "choices": [
          "a",
          "b"
        ],
        "priority_class": "urgent-risk",
        "priority_reason": "blocked",
        "safe_resume": "wait",
        "source": {
          "provider": "codex",
          "host_id": "h",
          "task_id": "t",
          "last_seen_at": "2026-12-01T11:00:00Z",
          "capabilities": {
            "native_open": "available",
            "prompt_forwarding": "unknown"
          }
        },
        "source_generation": 1,
        "created_at": "2026-12-01T11:00:00Z",
        "refreshed_at": "2026-12-01T12:00:00Z",
        "resolved_at": "2026-12-01T12:00:00Z"
      }
    }
    "#);
    assert_snapshot!(ask(&desk, |_| ()), @"
    exit 2
    --- stderr
    reopening attention must advance beyond resolved generation 1
    ");
    assert_snapshot!(ask(&desk, |record| record["source_generation"] = json!(2)), @"
    exit 2
    --- stderr
    attention refresh is older than the stored refresh at generation 1
    ");
}

#[test]
fn a_list_says_when_there_is_more() {
    let desk = Desk::new();
    ask(&desk, |_| ());
    ask(&desk, |record| record["id"] = json!("q0"));
    let listed = desk.run("attention-list --workspace main --repo o/r --limit 1 --json");
    assert!(listed.contains("\"id\": \"q0\"") && listed.contains("\"limit\": 1,\n  \"truncated\": true\n"), "{listed}");
    assert!(!listed.contains("q1"));
}

#[test]
fn bad_input_is_named() {
    let desk = Desk::new();
    let write = |bytes: &[u8]| std::fs::write(desk.directory.path().join("q.json"), bytes).unwrap();
    let upsert = || desk.run("attention-upsert --record-json q.json");
    assert!(upsert().starts_with("exit 2\n--- stderr\nattention record unreadable: "));
    write(b" \n");
    assert_eq!(upsert(), "exit 1\n--- stderr\nattention record JSON must not be empty\n");
    write(b"\"\xff\"");
    assert_eq!(upsert(), "exit 1\n--- stderr\nattention record JSON must be valid UTF-8\n");
    write(b"{");
    assert!(upsert().starts_with("exit 1\n--- stderr\nattention record JSON invalid: "));
    write(&vec![b' '; 262_145]);
    assert_eq!(upsert(), "exit 1\n--- stderr\nattention record exceeds 262144 bytes\n");
    for (line, said) in [
        ("attention-upsert --record-json -", "exit 1\n--- stderr\nattention record JSON must not be empty\n"),
        ("attention-upsert", "exit 1\n--- stderr\nmissing required --record-json\n"),
        ("attention-get --repo o/r", "exit 1\n--- stderr\nmissing required --workspace\n"),
        (
            "attention-resolve --workspace w --repo o/r --attention-id q1 --source-generation -1",
            "exit 1\n--- stderr\n--source-generation must be an integer between 0 and 9007199254740991\n",
        ),
        (
            "attention-list --workspace w --repo o/r --limit 0",
            "exit 1\n--- stderr\n--limit must be between 1 and 100\n",
        ),
        ("attention-list --workspace w --repo o/.. --limit 1", "exit 1\n--- stderr\ninvalid attention repo: o/..\n"),
        (
            "attention-get --workspace w --repo o/r --attention-id q1",
            "exit 2\n--- stderr\nattention record not found: q1\n",
        ),
        (
            "attention-get --workspace w --repo o/r --attention-id q1 --pr-state x",
            "exit 1\n--- stderr\n--pr-state is only valid with terminal closeout\n",
        ),
    ] {
        assert_eq!(desk.run(line), said, "{line}");
    }
}

#[test]
fn a_stored_record_that_is_none_is_an_operational_error() {
    let desk = Desk::new();
    desk.put("attention/main/o/r/q1.json", json!({}), Annotations::default());
    let said = "exit 2\n--- stderr\ninvalid stored attention record at attention/main/o/r/q1.json: \
                attention record missing schema_version\n";
    assert_eq!(desk.run(&format!("attention-get {KEY}")), said);
    assert_eq!(desk.run("attention-list --workspace main --repo o/r"), said);
    assert_eq!(ask(&desk, |_| ()), said);
}
