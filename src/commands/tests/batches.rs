//! Batches as a coordinator and its workers see them: registered, closed, audited, drained, sorted.

use insta::assert_snapshot;
use serde_json::{Value, json};

use super::Desk;
use crate::domain::record::Annotations;

impl Desk {
    fn file(&self, name: &str, text: &str) {
        std::fs::write(self.directory.path().join(name), text).unwrap();
    }

    /// Registers `b1`: backend of w1 on 42, and docs of w2 on 43, which waits for it.
    fn registered(self) -> Self {
        let manifest = json!({"batch_id": "b1", "repo": "o/r", "lanes": [
            {"name": "backend", "owner": "w1", "targets": ["42"]},
            {"name": "docs", "owner": "w2", "targets": ["43"], "depends_on": ["b1:backend"]}
        ]});
        self.file("b1.json", &manifest.to_string());
        assert_eq!(self.run("register-batch --file b1.json"), "exit 0\n--- stdout\nregistered batch b1\n");
        self
    }

    /// Returns the JSON that a command prints, whatever its exit code.
    fn json(&self, line: &str) -> Value {
        let said = self.run(line);
        let text = said.split("--- stdout\n").nth(1).and_then(|text| text.split("--- stderr\n").next());
        serde_json::from_str(text.unwrap_or_default()).unwrap_or_else(|error| panic!("{error}: {said}"))
    }

    fn batch(&self) -> Value {
        self.json("status --batch-id b1 --json")["batches"][0].clone()
    }

    /// Runs a line that ends without an answer, and returns its exit code and its one line.
    fn refusal(&self, line: &str) -> (String, String) {
        let said = self.run(line);
        let (code, message) = said.split_once("\n--- stderr\n").unwrap_or_else(|| panic!("{line}: {said}"));
        (code.to_owned(), message.lines().next().unwrap_or_default().to_owned())
    }
}

fn exit(code: &str, message: &str) -> (String, String) {
    (format!("exit {code}"), message.to_owned())
}

#[test]
fn a_file_that_is_no_batch_is_refused_in_the_contracts_words() {
    let desk = Desk::new();
    desk.file("array.json", "[]");
    desk.file("torn.json", "{\"batch_id\":");
    desk.file("good.json", r#"{"batch_id": "b1", "lanes": [{"name": "a", "owner": "w", "targets": ["1"]}]}"#);
    std::fs::write(desk.directory.path().join("latin1"), b"caf\xe9").unwrap();
    for (line, code, message) in [
        ("register-batch", "1", "missing required --file"),
        ("register-batch --file nope", "2", "batch manifest unreadable: No such file or directory (os error 2)"),
        (
            "register-batch --file torn.json",
            "1",
            "batch manifest JSON invalid: EOF while parsing a value at line 1 column 12",
        ),
        ("register-batch --file array.json", "1", "batch manifest must be a JSON object"),
        ("register-batch --file good.json --batch-id b2", "1", "--batch-id does not match batch manifest batch_id"),
        (
            "register-batch --file good.json --launch-prompt nope",
            "2",
            "launch prompt unreadable: No such file or directory (os error 2)",
        ),
        ("register-batch --file good.json --launch-prompt latin1", "1", "launch prompt must be valid UTF-8"),
    ] {
        assert_eq!(desk.refusal(line), exit(code, message), "{line}");
    }
    assert_eq!(desk.json("status --json")["batches"], json!([]), "nothing was registered");
}

#[test]
fn a_launch_prompt_is_kept_to_the_byte() {
    let desk = Desk::new().registered();
    desk.file("prompt", "Go.\r\n\n");
    desk.run("register-batch --file b1.json --launch-prompt prompt --synthetic --synthetic-kind smoke");
    let batch = desk.batch();
    assert_eq!(batch["launch_prompt"], "Go.\r\n\n");
    assert_eq!((&batch["synthetic"], &batch["synthetic_kind"]), (&json!(true), &json!("smoke")));
    desk.run("register-batch --file b1.json --launch-prompt -");
    assert_eq!(desk.batch()["launch_prompt"], "", "standard input is empty here");
}

#[test]
fn a_lane_is_closed_by_the_release_of_its_claim_and_closed_once() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    desk.run("heartbeat 42 --batch-id b1");
    desk.pass(60);
    let line = "release 42 --terminal done --pr-state merged --host codex";
    assert_snapshot!(desk.run(line), @"
    exit 0
    --- stdout
    released o/r#42 by w1
    ");
    assert_snapshot!(desk.run(line), @"
    exit 0
    --- stdout
    lane already closed for o/r#42
    ");
    assert_snapshot!(desk.run("release 42 --terminal abandoned"), @"
    exit 1
    --- stderr
    conflicting terminal closeout for lane backend; first closeout is authoritative
    ");
    assert_snapshot!(desk.run("status --batch-id b1"), @"
    exit 0
    --- stdout
    claims
    - not checked in batch scope
    heartbeats
    - w1 in_progress live o/r#42 updated 2026-12-01T12:00:00Z
    batches
    - b1
      - lane backend owner w1 targets 42 status done live deps - blocked_on -
      - lane docs owner w2 targets 43 status unknown no-heartbeat deps b1:backend blocked_on -
    events
    - b1 - claim.acquired - by w1 at 2026-12-01T12:00:00Z
    - b1 backend lane_closed - by w1 at 2026-12-01T12:01:00Z
    degraded
    - not checked in batch scope
    - lane-owner heartbeats not found: w2
    ");
}

#[test]
fn a_closeout_is_json_when_asked() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    let released = desk.json("release 42 --terminal done --json");
    assert_eq!((&released["outcome"], &released["record"]["terminal"]), (&json!("released"), &json!("done")));
    assert_eq!(desk.json("release 42 --terminal done --json")["outcome"], "already_closed");
    let told = desk.json(
        "record-event --batch-id b1 --type lane_closed --agent-id w1 --repo o/r --target 42 --terminal done --json",
    );
    assert_eq!((&told["outcome"], &told["record"]["type"]), (&json!("already_closed"), &json!("lane_closed")));
}

#[test]
fn a_lane_is_closed_by_an_event_alone_and_made_good_after_a_new_registration() {
    let desk = Desk::new().registered();
    let line = "record-event --batch-id b1 --type lane_closed --agent-id w1 --repo o/r --target 42 --terminal done";
    assert_snapshot!(desk.run(line), @"
    exit 0
    --- stdout
    recorded event b1 lane_closed-10e08a419e850eba
    ");
    assert_snapshot!(desk.run(line), @"
    exit 0
    --- stdout
    lane already closed for o/r#42
    ");
    desk.run("register-batch --file b1.json");
    assert_eq!(desk.batch()["lanes"][0].get("terminal"), None);
    assert_snapshot!(desk.run(line), @"
    exit 0
    --- stdout
    reconciled terminal closeout for o/r#42
    ");
    assert_eq!(desk.batch()["lanes"][0]["closed_by"], json!({"agent_id": "w1", "machine": "UNKNOWN"}));
}

#[test]
fn the_last_lane_completes_the_batch() {
    let desk = Desk::new().registered();
    let close = "record-event --batch-id b1 --type lane_closed --repo o/r --terminal done";
    desk.run(&format!("{close} --agent-id w1 --target 42"));
    assert_eq!(desk.batch().get("status"), None);
    desk.pass(5);
    desk.run(&format!("{close} --agent-id w2 --target 43"));
    let batch = desk.batch();
    assert_eq!((&batch["status"], &batch["completed_at"]), (&json!("completed"), &json!("2026-12-01T12:00:05Z")));
}

#[test]
fn what_is_missing_of_a_closeout_is_named_in_order() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    let event = "record-event --batch-id b1 --type lane_closed";
    for (line, message) in [
        (format!("{event} --terminal merged"), "--terminal must be one of: done, abandoned, superseded"),
        (event.to_owned(), "missing required --terminal"),
        (format!("{event} --terminal done"), "missing required --agent-id"),
        (format!("{event} --terminal done --agent-id w1"), "missing required --repo"),
        (format!("{event} --terminal done --agent-id w1 --repo o/r"), "missing required --target"),
        (format!("{event} --terminal done --agent-id w1 --repo x --target 42"), "invalid terminal closeout repo: x"),
        (
            format!("{event} --terminal done --agent-id w1 --repo o/r --target 42 --pr-url x"),
            "--pr-url must be an HTTP(S) URL with a host",
        ),
        (
            format!("{event} --terminal done --agent-id w1 --repo o/r --target 42 --lane a:b"),
            "event lane a:b cannot contain ':'",
        ),
        (
            format!("{event} --terminal done --agent-id x --repo o/r --target 42"),
            "terminal closeout agent does not match lane backend",
        ),
        ("release 42 --terminal=".to_owned(), "--terminal must be one of: done, abandoned, superseded"),
        ("release 42 --repo x --terminal done".to_owned(), "invalid terminal closeout repo: x"),
        (
            "release 42 --terminal done --evidence-url ftp://x".to_owned(),
            "--evidence-url must be an HTTP(S) URL with a host",
        ),
        ("release 44 --terminal done".to_owned(), "no claim exists for o/r#44"),
    ] {
        assert_eq!(desk.refusal(&line), exit("1", message), "{line}");
    }
    assert!(desk.run("release 42 --terminal done").contains("released o/r#42"), "the claim was kept through all that");
}

#[test]
fn an_audit_tells_lane_by_lane_whether_the_story_is_whole() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("batch-audit --batch-id b1"), @"
    exit 2
    --- stdout
    batch-audit b1 unknown
    - batch b1 is not registered
    ");
    let desk = desk.registered();
    desk.run("claim 42 --batch-id b1");
    desk.pass(1);
    desk.run("release 42 --terminal done --host codex");
    assert_snapshot!(desk.run("batch-audit --batch-id b1"), @"
    exit 1
    --- stdout
    batch-audit b1 incomplete
    - lane backend owner w1 complete
    - lane docs owner w2 incomplete missing claim.acquired,terminal
    ");
    desk.pass(1);
    desk.run("claim 43 --batch-id b1 --agent-id w2");
    desk.pass(1);
    desk.run("release 43 --agent-id w2");
    assert_snapshot!(desk.run("batch-audit --batch-id b1 --json"), @r#"
    exit 0
    --- stdout
    {
      "batch_id": "b1",
      "verdict": "complete",
      "lanes": [
        {
          "name": "backend",
          "owner": "w1",
          "targets": [
            "42"
          ],
          "event_count": 2,
          "missing": [],
          "complete": true,
          "malformed": false
        },
        {
          "name": "docs",
          "owner": "w2",
          "targets": [
            "43"
          ],
          "event_count": 2,
          "missing": [],
          "complete": true,
          "malformed": false
        }
      ]
    }
    "#);
}

#[test]
fn an_audit_that_nobody_can_make_is_unknown_and_still_an_answer() {
    let mut desk = Desk::new();
    assert_eq!(desk.refusal("batch-audit"), exit("1", "missing required --batch-id"));
    assert_snapshot!(desk.run("batch-audit --batch-id a/b --json"), @r#"
    exit 2
    --- stdout
    {
      "batch_id": "a/b",
      "verdict": "unknown",
      "reason": "coordination state unreadable: invalid batch-id: a/b",
      "lanes": []
    }
    "#);
    desk.store.unreachable = true;
    assert_snapshot!(desk.run("batch-audit --batch-id b1"), @"
    exit 2
    --- stdout
    batch-audit b1 unknown
    - coordination state unreadable: the remote does not answer
    ");
}

#[test]
fn a_batch_is_reported_with_the_lanes_it_depends_on() {
    let desk = Desk::new();
    let none = Annotations::default;
    desk.put(
        "batches/b1.json",
        json!({"lanes": [
            {"name": "a", "owner": "w1", "targets": ["1"], "depends_on": ["b2:x", "b3:y", "b2:nope", "plain", "b1:b"]},
            {"name": "b", "owner": "liar", "targets": ["2"]}, {"name": "c:d", "owner": "torn", "targets": ["3"]}
        ]}),
        none(),
    );
    desk.put("batches/b2.json", json!({"lanes": [{"name": "x", "owner": "w9", "targets": ["1"]}]}), none());
    let row = |agent: &str| {
        json!({"agent_id": agent, "status": "done", "updated_at": "2026-12-01T12:00:00Z",
                                   "expires_at": "2026-12-01T12:15:00Z"})
    };
    desk.put("heartbeats/w9.json", row("w9"), none());
    desk.put("heartbeats/liar.json", row("honest"), none());
    assert_snapshot!(desk.run("status --batch-id b1"), @"
    exit 0
    --- stdout
    claims
    - not checked in batch scope
    heartbeats
    - w9 done live - updated 2026-12-01T12:00:00Z
    batches
    - b1
      - lane a owner w1 targets 1 status unknown no-heartbeat deps b2:x,b3:y,b2:nope,plain,b1:b blocked_on b3:y,b2:nope,plain,b1:b
      - lane b owner liar targets 2 status unknown mismatched deps - blocked_on -
      - lane c:d owner torn targets 3 status unknown no-heartbeat deps - blocked_on -
    events
    - none
    degraded
    - not checked in batch scope
    - lane-owner heartbeats mismatched: liar; lane-owner heartbeats not found: w1, torn
    - malformed lane names: c:d
    - malformed dependency refs: b2:nope, plain
    - unresolved dependency refs: b3:y
    ");
}

#[test]
fn a_batch_that_is_not_there_is_no_error_of_its_status() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("status --batch-id b1 --json"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "scope": {
        "kind": "batch",
        "batch_id": "b1"
      },
      "degraded": [
        "not checked in batch scope",
        "batch not found"
      ],
      "section_notes": {
        "claims": "not checked in batch scope",
        "batches": "batch not found"
      },
      "claims": [],
      "heartbeats": [],
      "batches": [],
      "events": []
    }
    "#);
    assert_eq!(desk.refusal("status --batch-id a/b"), exit("1", "invalid batch-id: a/b"));
    let archived = "--include-archived is only valid for unscoped status";
    assert_eq!(desk.refusal("status --batch-id b1 --include-archived"), exit("1", archived));
}

#[test]
fn an_owner_without_a_change_of_phase_is_wedged_in_the_report_of_its_batch() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    desk.run("heartbeat 42 --phase implementing");
    desk.pass(46 * 60);
    desk.run("heartbeat 42 --phase implementing");
    let page = desk.run("status --batch-id b1");
    assert!(
        page.contains("- w1 in_progress live o/r#42 updated 2026-12-01T12:46:00Z wedged since 2026-12-01T12:00:00Z\n"),
        "{page}"
    );
    assert_eq!(desk.json("status --batch-id b1 --json")["heartbeats"][0]["wedged"], json!(true));
}

#[test]
fn a_drain_is_shown_wherever_its_workers_look() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    let drained = desk.run_words(&["drain", "--batch-id", "b1", "--lane", "backend", "--reason", "off the release"]);
    assert_eq!(drained, "exit 0\n--- stdout\ndrained lane backend of batch b1\n");
    assert_snapshot!(desk.run("heartbeat 42 --batch-id b1"), @"
    exit 0
    --- stdout
    heartbeat w1 2026-12-01T12:00:00Z
    --- stderr
    warning: lane backend of batch b1 is drained: off the release
    ");
    let beat = desk.json("heartbeat --json");
    assert_eq!(
        beat["drained"],
        json!({"batch_id": "b1", "lane": "backend", "reason": "off the release",
                                       "at": "2026-12-01T12:00:00Z", "by": "w1"})
    );
    assert_snapshot!(desk.run("claim 42"), @"
    exit 0
    --- stdout
    claimed o/r#42 by w1 until 2026-12-01T16:00:00Z
    --- stderr
    warning: lane backend of batch b1 is drained: off the release
    ");
    assert_snapshot!(desk.run("claim 42 --batch-id b1 --json"), @"
    exit 3
    --- stderr
    CLAIM_REFUSED: lane backend of batch b1 is drained: off the release
    ");
    let line =
        "lane backend owner w1 targets 42 status in_progress live deps - blocked_on - drained: off the release\n";
    for scope in ["status", "status --batch-id b1"] {
        assert!(desk.run(scope).contains(line), "{}", desk.run(scope));
    }
    assert_eq!(desk.batch()["lanes"][0]["drained"]["reason"], "off the release");
    assert!(desk.run("status --batch-id b1").contains("- b1 backend human_intervention - by w1 at "));
    let again = desk.run("drain --batch-id b1 --lane backend --cancel");
    assert_eq!(again, "exit 0\n--- stdout\ncancelled the drain of lane backend of batch b1\n");
    assert_eq!(desk.run("drain --batch-id b1 --cancel"), "exit 0\n--- stdout\nnothing to cancel for batch b1\n");
    assert_eq!(desk.code("claim 42 --batch-id b1"), "exit 0");
    assert_eq!(desk.json("heartbeat --json").get("drained"), None);
}

#[test]
fn a_drain_needs_a_batch_a_lane_of_it_and_a_reason() {
    let desk = Desk::new();
    assert_eq!(desk.refusal("drain --batch-id b1 --reason x"), exit("1", "batch b1 is not registered"));
    let desk = desk.registered();
    for (line, message) in [
        ("drain", "missing required --batch-id"),
        ("drain --batch-id b1", "missing required --reason"),
        ("drain --batch-id b1 --reason x --lane=", "--lane must not be empty"),
        ("drain --batch-id b1 --reason x --lane nope", "batch b1 has no lane nope"),
        ("drain --batch-id a/b --reason x", "invalid batch-id: a/b"),
    ] {
        assert_eq!(desk.refusal(line), exit("1", message), "{line}");
    }
    desk.run("drain --batch-id b1 --reason x");
    assert_eq!(desk.run("drain --batch-id b1 --reason x"), "exit 0\n--- stdout\nalready drained batch b1\n");
}

#[test]
fn lanes_are_sorted_by_whether_they_can_start() {
    let desk = Desk::new().registered();
    assert_snapshot!(desk.run("ready --batch-id b1"), @"
    exit 0
    --- stdout
    ready
    - lane backend owner w1 targets 42
    waiting
    - lane docs owner w2 targets 43 waits for b1:backend
    ");
    desk.run("claim issue:42 --batch-id b1 --agent-id w9");
    desk.run("drain --batch-id b1 --lane docs --reason later");
    assert_snapshot!(desk.run("ready --batch-id b1 --json"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "batch_id": "b1",
      "ready": [],
      "waiting": [
        {
          "name": "backend",
          "owner": "w1",
          "targets": [
            "42"
          ],
          "waits_for": [
            {
              "kind": "claim",
              "target": "issue:42",
              "agent_id": "w9",
              "liveness": "no-heartbeat"
            }
          ]
        },
        {
          "name": "docs",
          "owner": "w2",
          "targets": [
            "43"
          ],
          "waits_for": [
            {
              "kind": "drained",
              "reason": "later"
            },
            {
              "kind": "dependency",
              "lane": "b1:backend"
            }
          ]
        }
      ],
      "degraded": []
    }
    "#);
    assert_snapshot!(desk.run("ready --batch-id b2"), @"
    exit 1
    --- stderr
    batch b2 is not registered
    hint: `agent-coord register-batch --file PATH` registers a batch
    ");
}

#[test]
fn a_lane_starts_when_the_one_before_it_is_closed() {
    let desk = Desk::new().registered();
    desk.run("claim 42 --batch-id b1");
    desk.run("release 42 --terminal done");
    assert_snapshot!(desk.run("ready --batch-id b1"), @"
    exit 0
    --- stdout
    ready
    - lane docs owner w2 targets 43
    waiting
    - lane backend owner w1 targets 42 ended done
    ");
}
