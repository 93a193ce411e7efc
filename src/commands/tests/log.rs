//! `log` as a whole, in each of its forms.

use serde_json::{Value, json};

use super::*;

/// A desk with a short history of two agents on one work item.
fn with_history() -> Desk {
    let desk = Desk::new();
    desk.environment.lock().unwrap().set("AGENT_COORD_MACHINE_ID", "m1");
    desk.run("claim 9 --batch-id b --host codex --phase implementing");
    desk.pass(60);
    desk.run("heartbeat 9 --phase qa --host codex");
    desk.pass(60);
    desk.run("release 9 --handoff-to w2 --handoff-note tests-are-red --host codex");
    desk.run("record-event --batch-id b --type note --repo O/R --target issue:9:docs --agent-id worker-2 --message hi");
    desk
}

fn event(desk: &Desk, path: &str, record: Value) {
    desk.put(path, record, Annotations::default());
}

#[test]
fn the_trail_is_one_line_an_event_oldest_first() {
    let desk = with_history();
    assert_snapshot!(desk.run("log o/r#9"), @"
    exit 0
    --- stdout
    2026-12-01T12:00:00Z  m1  codex  o/r#9             claim.acquired  implementing  w1
    2026-12-01T12:02:00Z  m1  codex  o/r#9             claim.released  implementing  w1        -> w2 tests-are-red
    2026-12-01T12:02:00Z  m1  ?      O/R#issue:9:docs  note            ?             worker-2  hi
    claim released m1 codex w1 9 phase implementing updated 2026-12-01T12:02:00Z
    ");
    assert_snapshot!(desk.run("log --repo o/r --target 9 --host Codex-CLI --limit 1"), @"
    exit 0
    --- stdout
    2026-12-01T12:02:00Z  m1  codex  o/r#9  claim.released  implementing  w1  -> w2 tests-are-red
    ");
    assert_snapshot!(desk.run("log o/r#9 --format tsv --type note"), @"
    exit 0
    --- stdout
    2026-12-01T12:02:00Z	m1	?	O/R#issue:9:docs	note	?	worker-2	b	hi	?	20261201T120200.000000Z-00000bb9	false	?
    ");
}

#[test]
fn json_carries_the_same_fields() {
    let desk = with_history();
    assert_snapshot!(desk.run("log o/r#9:docs --json"), @r#"
    exit 0
    --- stdout
    {
      "work_item": {
        "repo": "o/r",
        "target": "9:docs",
        "matched_targets": [
          "issue:9:docs"
        ]
      },
      "trail": "complete",
      "events_suppressed": false,
      "events": [
        {
          "at": "2026-12-01T12:02:00Z",
          "machine": "m1",
          "host": "?",
          "work_item": "O/R#issue:9:docs",
          "type": "note",
          "phase": "?",
          "agent_id": "worker-2",
          "batch_id": "b",
          "detail": "hi",
          "host_raw": "?",
          "event_id": "20261201T120200.000000Z-00000bb9",
          "synthetic": false,
          "synthetic_kind": "?"
        }
      ]
    }
    "#);
}

#[test]
fn a_trail_without_rows_says_so_on_stdout_or_beside_the_values() {
    let desk = with_history();
    assert_snapshot!(desk.run("log o/r#10"), @"
    exit 0
    --- stdout
    no events for o/r#10
    ");
    assert_snapshot!(desk.run("log o/r#9 --since 30m --machine m9 --limit 0"), @"
    exit 0
    --- stdout
    no events shown for o/r#9 (--since 30m, --machine m9, --limit 0)
    ");
    assert_snapshot!(desk.run("log o/r#10 --format tsv"), @"
    exit 0
    --- stderr
    no events for o/r#10
    ");
    assert_snapshot!(desk.run("log --type nothing"), @"
    exit 0
    --- stdout
    no events shown for the current filters (--type nothing)
    ");
}

#[test]
fn a_claim_no_event_tells_of_is_reported() {
    let desk = Desk::new();
    desk.run("claim 9 --ttl 60 --host codex");
    desk.pass(90);
    desk.run("claim pr:9 --agent-id w2 --phase qa --synthetic --synthetic-kind smoke");
    assert_snapshot!(desk.run("log o/r#9 --include-synthetic"), @"
    exit 0
    --- stdout
    no events for o/r#9
    claim active ? codex w1 9 phase - updated 2026-12-01T12:00:00Z lease elapsed 2026-12-01T12:01:00Z
    claim active [synthetic] ? ? w2 pr:9 phase qa updated 2026-12-01T12:01:30Z
    ");
    assert_snapshot!(desk.run("log o/r#9 --json"), @r#"
    exit 0
    --- stdout
    {
      "work_item": {
        "repo": "o/r",
        "target": "9",
        "matched_targets": [
          "9"
        ]
      },
      "trail": "complete",
      "events_suppressed": false,
      "events": [],
      "claim": {
        "status": "active",
        "machine": "?",
        "host": "codex",
        "agent_id": "w1",
        "phase": "-",
        "updated_at": "2026-12-01T12:00:00Z",
        "expires_at": "2026-12-01T12:01:00Z",
        "target": "9",
        "lease_elapsed": true,
        "synthetic": false,
        "synthetic_kind": "?"
      },
      "claims": [
        {
          "status": "active",
          "machine": "?",
          "host": "codex",
          "agent_id": "w1",
          "phase": "-",
          "updated_at": "2026-12-01T12:00:00Z",
          "expires_at": "2026-12-01T12:01:00Z",
          "target": "9",
          "lease_elapsed": true,
          "synthetic": false,
          "synthetic_kind": "?"
        }
      ]
    }
    "#);
    assert_snapshot!(desk.run("log o/r#9 --limit 0"), @"
    exit 0
    --- stdout
    no events for o/r#9
    ");
}

#[test]
fn what_comes_from_the_archive_is_told_on_stderr() {
    let desk = with_history();
    let archived = json!({
        "event_id": "old", "batch_id": "b0", "type": "note", "repo": "o/r", "target": "9", "at": "2026-11-01T00:00:00Z",
        "message": "long\tago", "synthetic": false,
    });
    event(
        &desk,
        "archive/events/b0/compact-0-0.json",
        json!({
            "schema_version": 1, "record_family": "compacted_events", "source_paths": ["events/b0/old.json", "events/b0/x.json"],
            "reason": "terminal_target_events", "synthetic": false, "archived_at": "2026-11-02T00:00:00Z",
            "delete_after": "2026-12-02T00:00:00Z", "records": [archived],
        }),
    );
    event(&desk, "archive/events/b0/odd.json", json!({ "record_family": "odd" }));
    assert_snapshot!(desk.run("log o/r#9 --limit 1 --type note --host ?"), @"
    exit 0
    --- stdout
    2026-12-01T12:02:00Z  m1  ?  O/R#issue:9:docs  note  ?  worker-2  hi
    --- stderr
    warning: unknown archived record family at archive/events/b0/odd.json; this trail may be incomplete
    note: 1 of 4 events read from the archive; 1 source event was dropped by compaction; archive deleted after 2026-12-02T00:00:00Z; mirror it with log --sync
    ");
    assert_snapshot!(desk.run("log --sync"), @"
    exit 2
    --- stderr
    warning: unknown archived record family at archive/events/b0/odd.json; this trail may be incomplete
    note: 1 of 4 events read from the archive; 1 source event was dropped by compaction; compaction loss unknown for 1 unreadable envelope; archive deleted after 2026-12-02T00:00:00Z
    refusing to sync an incomplete trail: archive/events
    ");
}

#[test]
fn the_mirror_is_complete_and_grows_only_by_what_is_new() {
    let desk = with_history();
    let home = desk.directory.path().join("state-home");
    desk.environment.lock().unwrap().set("XDG_STATE_HOME", home.as_os_str());
    let shown = |text: String| text.replace(desk.directory.path().to_str().unwrap(), "DESK");
    assert_snapshot!(shown(desk.run("log --sync")), @"
    exit 0
    --- stdout
    synced 3 new events to DESK/state-home/agent-coordination/log.tsv
    ");
    let mirror = home.join("agent-coordination/log.tsv");
    let first = std::fs::read_to_string(&mirror).unwrap();
    assert_snapshot!(first, @"
    2026-12-01T12:00:00Z	m1	codex	o/r#9	claim.acquired	implementing	w1	b		codex	20261201T120000.000000Z-00000001	false	?
    2026-12-01T12:02:00Z	m1	codex	o/r#9	claim.released	implementing	w1	b	-> w2 tests-are-red	codex	20261201T120200.000000Z-000007d1	false	?
    2026-12-01T12:02:00Z	m1	?	O/R#issue:9:docs	note	?	worker-2	b	hi	?	20261201T120200.000000Z-00000bb9	false	?
    ");
    let modified = std::fs::metadata(&mirror).unwrap().modified().unwrap();
    assert_snapshot!(shown(desk.run("log --sync --json")), @r#"
    exit 0
    --- stdout
    {
      "synced": 0,
      "path": "DESK/state-home/agent-coordination/log.tsv"
    }
    "#);
    assert_eq!(std::fs::metadata(&mirror).unwrap().modified().unwrap(), modified, "nothing new, nothing written");
    desk.pass(1);
    desk.run("record-event --batch-id b --type note");
    assert!(desk.run("log --sync").contains("synced 1 new event to "));
    let second = std::fs::read_to_string(&mirror).unwrap();
    assert!(second.starts_with(&first) && second.lines().count() == first.lines().count() + 1);
    let left: Vec<_> =
        std::fs::read_dir(mirror.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "the mirror and its lock: {left:?}");
}

#[test]
fn a_mirror_that_cannot_be_written_is_an_operational_error() {
    let desk = with_history();
    std::fs::write(desk.directory.path().join("file"), "").unwrap();
    let home = desk.directory.path().join("file");
    desk.environment.lock().unwrap().set("XDG_STATE_HOME", home.as_os_str());
    let said = desk.run("log --sync");
    assert!(said.starts_with("exit 2\n--- stderr\n") && said.contains("\nlog mirror unwritable: "), "{said}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let desk = Desk::new();
    for (line, message) in [
        ("log o/r#9 --repo o/r", "give the work item either positionally or with --repo/--target, not both"),
        ("log --repo o/r", "--repo and --target must be given together"),
        ("log o#9", "invalid work item repo: o"),
        ("log o/r#.9", "invalid work item target: .9"),
        ("log o/r#9 --format xml", "--format must be text or tsv"),
        ("log --format text --json", "--json and --format are mutually exclusive"),
        ("log --limit -1", "--limit must not be negative, got -1"),
        ("log --since yesterday", "--since expects a duration like 3d or an ISO8601 timestamp, got \"yesterday\""),
        ("log o/r#9 more words", "unexpected arguments: more words"),
        (
            "log o/r#9 --sync --limit 0 --since 3d",
            "--sync mirrors the complete trail and cannot be narrowed by --since, --limit, a work item",
        ),
        (
            "log --sync --ignore-user-config --git-dir .",
            "--sync with --ignore-user-config requires --state-root as its explicit backend selector",
        ),
    ] {
        let said = desk.run(line);
        assert!(said.starts_with("exit 1\n--- stderr\n"), "{line}: {said}");
        assert_eq!(said.lines().last(), Some(message), "{line}");
    }
    assert_eq!(desk.code("log --format= --machine= --since="), "exit 0", "blank is absent");
}

#[test]
fn unknown_is_never_an_empty_trail() {
    let mut desk = with_history();
    desk.store.unreachable = true;
    desk.store.cached_at = Some(Timestamp::parse_strict("2026-12-01T11:00:00Z").unwrap());
    assert_snapshot!(desk.run("log o/r#9"), @"
    exit 2
    --- stderr
    the remote does not answer
    hint: try again later
    ");
    assert_snapshot!(desk.run("log o/r#9:docs --cached"), @"
    exit 0
    --- stdout
    2026-12-01T12:02:00Z  m1  ?  O/R#issue:9:docs  note  ?  worker-2  hi
    --- stderr
    notice: read from this clone's cache, fetched 3720 s ago (2026-12-01T11:00:00Z)
    ");
}
