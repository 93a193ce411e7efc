//! The trail and its mirror, over a real remote and with real processes.

use std::os::unix::fs::PermissionsExt;

use crate::support::together::race;
use crate::support::{Shared, TestEnv};

#[test]
fn every_clone_reads_the_same_trail_through_the_remote() {
    let team = Shared::over_files(2);
    team.run(0, "claim 9 --repo o/r --agent-id w1 --batch-id b1 --host codex").ok();
    team.run(1, "record-event --batch-id b1 --type note --repo o/r --target issue:9 --message hello").ok();
    let trail = |member: usize| team.run(member, "log o/r#9 --json").ok().json();
    let (first, second) = (trail(0), trail(1));
    assert_eq!(first["events"].as_array().map(Vec::len), Some(2));
    assert_eq!(first["events"], second["events"]);
    assert_eq!(first["trail"], "complete");
}

#[test]
fn processes_that_mirror_at_once_lose_no_line_and_write_none_twice() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "init").ok();
    for number in 0..6 {
        env.coord(&clone, &format!("record-event --batch-id b1 --type note --message hello{number}")).ok();
    }
    let commands = (0..6).map(|_| env.agent_coord(&clone, ["log", "--sync"])).collect();
    let synced: Vec<String> = race(&env, commands).into_iter().map(|ran| ran.ok().stdout).collect();
    assert_eq!(synced.iter().filter(|line| line.starts_with("synced 6 new events")).count(), 1, "{synced:?}");
    assert_eq!(synced.iter().filter(|line| line.starts_with("synced 0 new events")).count(), 5, "{synced:?}");
    let mirror = env.path("home/.local/state/agent-coordination/log.tsv");
    let text = std::fs::read_to_string(&mirror).expect("the mirror");
    for number in 0..6 {
        assert_eq!(text.lines().filter(|line| line.contains(&format!("\thello{number}\t"))).count(), 1, "{text}");
    }
}

#[test]
fn the_mirror_keeps_the_mode_and_the_lines_its_owner_gave_it() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "init").ok();
    let mirror = env.path("home/.local/state/agent-coordination/log.tsv");
    std::fs::create_dir_all(mirror.parent().expect("a folder")).expect("a folder");
    std::fs::write(&mirror, "2020-01-01T00:00:00Z\tkept\n").expect("a mirror");
    std::fs::set_permissions(&mirror, std::fs::Permissions::from_mode(0o640)).expect("a mode");
    env.coord(&clone, "record-event --batch-id b1 --type note").ok();
    env.coord(&clone, "log --sync").ok();
    let text = std::fs::read_to_string(&mirror).expect("the mirror");
    assert_eq!(text.lines().count(), 2);
    assert!(text.starts_with("2020-01-01T00:00:00Z\tkept\n"), "{text}");
    assert_eq!(std::fs::metadata(&mirror).expect("the mirror").permissions().mode() & 0o777, 0o640);
}

#[test]
fn of_two_clones_that_answer_a_question_the_older_generation_is_refused() {
    let team = Shared::over_files(2);
    let question = serde_json::json!({
        "schema_version": 1, "workspace": "main", "id": "q1", "repository": "o/r", "target": "9", "status": "open",
        "kind": "decision", "question": "Which?", "choices": ["a"], "priority_class": "urgent-risk",
        "priority_reason": "blocked", "safe_resume": "wait",
        "source": {
            "provider": "codex", "host_id": "h", "task_id": "t", "last_seen_at": "2026-01-01T00:00:00Z",
            "capabilities": { "native_open": "available", "prompt_forwarding": "unknown" },
        },
        "source_generation": 2, "created_at": "2026-01-01T00:00:00Z", "refreshed_at": "2026-01-01T00:00:00Z",
    });
    std::fs::write(team.env.path("q.json"), question.to_string()).expect("a question");
    let path = team.env.path("q.json").display().to_string();
    team.run(0, &format!("attention-upsert --record-json {path}")).ok();
    let key = "--workspace main --repo o/r --attention-id q1";
    let late = team.run(1, &format!("attention-resolve {key} --source-generation 1"));
    assert_eq!((late.code, late.stderr.trim()), (2, "source generation 1 is older than stored generation 2"));
    team.run(1, &format!("attention-resolve {key} --source-generation 2")).ok();
    let listed = team.run(0, "attention-list --workspace main --repo o/r --json").ok().json();
    assert_eq!(listed["records"].as_array().map(Vec::len), Some(0), "the first clone sees the answer");
}
