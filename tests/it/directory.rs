//! The commands on a directory store: the contract to the letter, without what only git can do.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::together::race;
use crate::support::{Ran, TestEnv};

const NOON: &str = "2026-12-01T12:00:00Z";

/// A directory store, and commands that name it.
struct Desk {
    env: TestEnv,
}

impl Desk {
    fn new() -> Self {
        Self { env: TestEnv::new() }
    }

    fn root(&self) -> PathBuf {
        self.env.path("state")
    }

    /// Runs a command at `time` of that day; the selector comes last so that the line reads as the contract does.
    fn at(&self, time: &str, line: &str) -> Ran {
        let line = format!("{line} --state-root {}", self.root().display());
        self.env.in_process(self.env.root(), &format!("2026-12-01T{time}Z"), 1, &line)
    }

    fn run(&self, line: &str) -> Ran {
        self.at("12:00:00", line)
    }

    fn claim(&self, agent: &str) -> Ran {
        self.run(&format!("claim --agent-id {agent} --repo o/r --target 42"))
    }

    fn text(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    fn plant(&self, path: &str, text: &str) {
        let file = self.root().join(path);
        std::fs::create_dir_all(file.parent().expect("a directory")).expect("it can be made");
        std::fs::write(file, text).expect("the record is planted");
    }

    fn error(&self, line: &str) -> (i32, String) {
        let ran = self.run(line);
        assert_eq!(ran.stdout, "", "{ran}");
        (ran.code, ran.stderr)
    }
}

fn said(code: i32, stdout: &str, stderr: &str) -> Ran {
    Ran { code, stdout: stdout.to_owned(), stderr: stderr.to_owned() }
}

#[test]
fn a_claim_is_stored_as_the_predecessor_stores_it() {
    let desk = Desk::new();
    let line = "claim --agent-id w1 --repo o/r --target 42 --branch b --batch-id b1 --phase coding --generation 3";
    assert_eq!(desk.run(line), said(0, "claimed o/r#42 by w1 until 2026-12-01T16:00:00Z\n", ""));
    assert_eq!(
        desk.text("claims/o/r/42.json"),
        "{\n  \"schema_version\": 1,\n  \"repo\": \"o/r\",\n  \"target\": \"42\",\n  \"agent_id\": \"w1\",\n  \
         \"batch_id\": \"b1\",\n  \"branch\": \"b\",\n  \"status\": \"active\",\n  \"claimed_at\": \
         \"2026-12-01T12:00:00Z\",\n  \"updated_at\": \"2026-12-01T12:00:00Z\",\n  \"expires_at\": \
         \"2026-12-01T16:00:00Z\",\n  \"phase\": \"coding\",\n  \"generation\": 3\n}\n"
    );
    let events: Vec<_> = std::fs::read_dir(desk.root().join("events/b1"))
        .expect("an event was left")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    let [event] = events.as_slice() else { panic!("{events:?}") };
    let event: Value = serde_json::from_str(&desk.text(&format!("events/b1/{event}"))).expect("an event");
    assert_eq!((&event["type"], &event["at"]), (&json!("claim.acquired"), &json!(NOON)));
}

#[test]
fn every_required_option_must_be_there_and_nothing_is_inferred() {
    let mut desk = Desk::new();
    desk.env.git().repository("clone");
    desk.env.set("AGENT_COORD_AGENT_ID", "from-environment").set("AGENT_COORD_CLAIM_TTL_SECONDS", "5");
    for (line, message) in [
        ("claim", "missing required --agent-id"),
        ("claim --agent-id=", "missing required --agent-id"),
        ("claim --agent-id w1", "missing required --repo"),
        ("claim --agent-id w1 --repo o/r", "missing required --target"),
        ("claim --agent-id w1 --repo o --target 42", "invalid target repo: o"),
        ("claim --agent-id w1 --repo o/r --target a/b", "invalid target: a/b"),
        ("claim --agent-id w1 --repo o/r --target 42 --ttl 0", "--ttl must be positive"),
        ("heartbeat", "missing required --agent-id"),
        ("heartbeat --agent-id a/b", "invalid agent-id: a/b"),
        ("release --agent-id w1 --target 42", "missing required --repo"),
        ("release --agent-id w1 --repo o/r --target 42", "no claim exists for o/r#42"),
        ("record-event --type note", "missing required --batch-id"),
        ("claim 42 --agent-id w1 --repo o/r", "unexpected arguments: 42"),
        ("heartbeat 42 --agent-id w1", "unexpected arguments: 42"),
        ("release 42 43", "unexpected arguments: 43"),
        ("claim --agent-id w1 --repo o/r --target 42 --supersede", "--supersede is only valid with the git backend"),
    ] {
        assert_eq!(desk.error(line), (1, format!("{message}\n")), "{line}");
    }
    assert!(!desk.root().exists(), "nothing was written");
    let claimed = "claimed o/r#42 by w1 until 2026-12-01T16:00:00Z\n";
    assert_eq!(desk.claim("w1").stdout, claimed, "the TTL is the contract's as well");
}

#[test]
fn the_words_of_the_contract_stay_text_whatever_json_asks() {
    let desk = Desk::new();
    for (line, stdout) in [
        ("claim --json --agent-id w1 --repo o/r --target 42", "claimed o/r#42 by w1 until 2026-12-01T16:00:00Z\n"),
        ("heartbeat --json --agent-id w1 --repo o/r --target 42", "heartbeat w1 2026-12-01T12:00:00Z\n"),
        ("release --json --agent-id w1 --repo o/r --target 42", "released o/r#42 by w1\n"),
    ] {
        assert_eq!(desk.run(line), said(0, stdout, ""));
    }
    let ran = desk.run("record-event --json --batch-id b1 --type note --agent-id w1");
    assert!(ran.stdout.starts_with("recorded event b1 20261201T120000.000000Z-"), "{ran}");
}

#[test]
fn a_heartbeat_stores_what_it_is_given() {
    let desk = Desk::new();
    desk.run("heartbeat --agent-id w1 --repo anything --target a/b --status Done --phase qa").ok();
    let row: Value = serde_json::from_str(&desk.text("heartbeats/w1.json")).expect("a row");
    assert_eq!(
        row,
        json!({"schema_version": 1, "agent_id": "w1", "repo": "anything", "target": "a/b", "status": "done",
               "updated_at": NOON, "expires_at": "2026-12-01T12:15:00Z", "phase": "qa", "status_raw": "Done"})
    );
}

#[test]
fn a_live_holder_stays_and_a_dead_one_gives_way() {
    let desk = Desk::new();
    desk.claim("w1").ok();
    let fallback = "CLAIM_REFUSED: active claim for o/r#42 held by w1; heartbeat missing; fallback claim expires at \
                    2026-12-01T16:00:00Z\n";
    assert_eq!(desk.claim("w2"), said(3, "", fallback));
    desk.run("heartbeat --agent-id w1").ok();
    let held = |liveness: &str| format!("CLAIM_REFUSED: active claim for o/r#42 held by w1; heartbeat {liveness}\n");
    let line = "claim --agent-id w2 --repo o/r --target 42";
    assert_eq!(desk.at("12:14:59", line), said(3, "", &held("live")));
    assert_eq!(desk.at("12:15:00", line), said(3, "", &held("stale")));
    assert_eq!(desk.at("13:00:00", line), said(0, "claimed o/r#42 by w2 until 2026-12-01T17:00:00Z\n", ""));
    assert!(!desk.text("claims/o/r/42.json").contains("generation"), "nothing is counted that was not given");
    assert!(!desk.text("heartbeats/w1.json").contains("fenced"));
    let lost = desk.at("13:00:01", "heartbeat --agent-id w1 --repo o/r --target 42 --generation 1");
    assert_eq!(lost, said(0, "heartbeat w1 2026-12-01T13:00:01Z\n", ""), "a directory does not tell of losses");
    assert_eq!(
        desk.error("release --agent-id w1 --repo o/r --target 42"),
        (1, "claim belongs to w2; w1 cannot release it\n".to_owned())
    );
}

#[test]
fn of_many_processes_one_claims() {
    let desk = Desk::new();
    let root = desk.root().display().to_string();
    let command = |number: usize| {
        let agent = format!("w{number}");
        let words = [
            "claim",
            "--agent-id",
            &agent,
            "--repo",
            "o/r",
            "--target",
            "42",
            "--batch-id",
            "b",
            "--state-root",
            &root,
        ];
        desk.env.agent_coord(desk.env.root(), words)
    };
    let ran = race(&desk.env, (0..8).map(command).collect());
    let winners: Vec<usize> = (0..8).filter(|&number| ran[number].code == 0).collect();
    let [winner] = winners.as_slice() else { panic!("{winners:?} won: {ran:?}") };
    let claim: Value = serde_json::from_str(&desk.text("claims/o/r/42.json")).expect("a claim");
    assert_eq!(claim["agent_id"], format!("w{winner}"));
    for loser in ran.iter().filter(|ran| ran.code != 0) {
        let contention = "claim write contention for o/r#42; state already exists at claims/o/r/42.json\n";
        let told = loser.code == 3 || (loser.code == 2 && loser.stderr == contention);
        assert!(told, "{loser}");
    }
}

#[test]
fn a_status_reads_what_is_there_and_names_what_is_not_right() {
    let desk = Desk::new();
    desk.claim("w1").ok();
    let empty = "claims\n- o/r#42 active w1 branch UNKNOWN expires 2026-12-01T16:00:00Z\nheartbeats\n- none\nbatches\n\
                 - none\nevents\n- none\n";
    assert_eq!(desk.run("status"), said(0, empty, ""));
    symlink("42.json", desk.root().join("claims/o/r/43.json")).expect("a link");
    let broken = (2, "state layout invalid: claims/o/r/43.json is a symlink\n".to_owned());
    assert_eq!(desk.error("status"), broken);
    assert_eq!(desk.error("status --repo o/r --target 43"), broken);
    assert_eq!(desk.error("claim --agent-id w1 --repo o/r --target 43"), broken);
    assert_eq!(desk.run("status --repo o/r --target 42").code, 0, "a point read is not concerned");
}

#[test]
fn an_alias_that_cannot_be_read_is_a_note_and_the_queried_spelling_an_error() {
    let desk = Desk::new();
    desk.claim("w1").ok();
    symlink("42.json", desk.root().join("claims/o/r/issue:42.json")).expect("a link");
    std::fs::create_dir(desk.root().join("claims/o/r/pr:42.json")).expect("a directory");
    desk.run("heartbeat --agent-id w1").ok();
    let report = desk.run("status --repo o/r --target 42 --json").ok().json();
    assert_eq!(
        report["section_notes"]["claims"],
        "claims/o/r/issue:42.json is a symlink; a claim there would not be reported; claims/o/r/pr:42.json is not a \
         regular file; a claim there would not be reported"
    );
    assert_eq!(report["claims"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["heartbeats"].as_array().map(Vec::len), Some(1));
    let asked = desk.error("status --repo o/r --target issue:42");
    assert_eq!(asked, (2, "state layout invalid: claims/o/r/issue:42.json is a symlink\n".to_owned()));
}

#[test]
fn a_holder_of_an_alias_alone_may_be_unreadable_and_that_of_the_queried_claim_may_not() {
    let desk = Desk::new();
    desk.claim("w1").ok();
    desk.run("claim --agent-id w2 --repo o/r --target issue:42").ok();
    desk.run("heartbeat --agent-id w1").ok();
    symlink("w1.json", desk.root().join("heartbeats/w2.json")).expect("a link");
    let report = desk.run("status --repo o/r --target 42 --json").ok().json();
    assert_eq!(report["section_notes"]["heartbeats"], "holder heartbeat unreadable for issue:42 (w2)");
    let asked = desk.error("status --repo o/r --target issue:42");
    assert_eq!(asked, (2, "state layout invalid: heartbeats/w2.json is a symlink\n".to_owned()));
}

#[test]
fn a_record_that_is_no_json_is_unknown_and_never_written_over() {
    let desk = Desk::new();
    desk.plant("claims/o/r/42.json", "{");
    let ran = desk.claim("w1").expect_error(2);
    assert!(ran.stderr.starts_with("state unreadable: claims/o/r/42.json: "), "{ran}");
    assert_eq!(desk.text("claims/o/r/42.json"), "{");
}

#[test]
fn records_of_the_predecessor_are_read_renewed_and_kept() {
    let desk = Desk::new();
    let old = "{\n  \"schema_version\": 1,\n  \"agent_id\": \"w1\",\n  \"target\": \"42\",\n  \"repo\": \"o/r\",\n  \
               \"status\": \"active\",\n  \"claimed_at\": \"2026-11-30T00:00:00Z\",\n  \"expires_at\": \
               \"2026-12-01T13:00:00Z\",\n  \"unknown\": 1\n}\n";
    desk.plant("claims/o/r/42.json", old);
    desk.claim("w1").ok();
    let claim: Value = serde_json::from_str(&desk.text("claims/o/r/42.json")).expect("a claim");
    assert_eq!(claim["claimed_at"], "2026-11-30T00:00:00Z", "a renewal keeps it");
    assert_eq!(claim.get("unknown"), None);
    desk.plant("claims/o/r/43.json", &old.replace("42", "43"));
    desk.run("release --agent-id w1 --repo o/r --target 43").ok();
    let claim: Value = serde_json::from_str(&desk.text("claims/o/r/43.json")).expect("a claim");
    assert_eq!((&claim["status"], &claim["unknown"]), (&json!("released"), &json!(1)), "a release merges");
}

#[test]
fn a_relative_root_is_meant_from_where_the_command_starts() {
    let desk = Desk::new();
    let line = "claim --agent-id w1 --repo o/r --target 42 --state-root ./x/../state";
    desk.env.in_process(desk.env.root(), NOON, 1, line).ok();
    assert!(Path::new(&desk.root()).join("claims/o/r/42.json").exists());
}
