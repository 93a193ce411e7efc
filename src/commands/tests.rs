//! Whole commands, run in-process against the reference store: exit code, stdout and stderr together.

mod attention;
mod log;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use insta::assert_snapshot;

use crate::cli::context::{OpenStore, Stores};
use crate::cli::run_with;
use crate::domain::decision::{Edit, Put};
use crate::domain::ids::TransactionId;
use crate::domain::path::RecordPath;
use crate::domain::record::{Annotations, Members};
use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::domain::time::Timestamp;
use crate::store::memory::MemoryStore;
use crate::store::{Abilities, CommitError, Receipt, Store, StoreError, StoreErrorKind, Transaction};
use crate::world::{CountedRandomness, Deadline, Environment, SteppedClock, World};

mod batches;

/// A clone whose state lives in memory.
struct Desk {
    directory: tempfile::TempDir,
    store: Shared,
    clock: Arc<SteppedClock>,
    runs: AtomicU64,
    environment: Mutex<Environment>,
}

#[derive(Clone, Default)]
struct Shared {
    memory: Arc<MemoryStore>,
    /// Answers cached reads as old, and fetches as this fails.
    cached_at: Option<Timestamp>,
    unreachable: bool,
}

impl Store for Shared {
    fn describe(&self) -> String {
        self.memory.describe()
    }
    fn abilities(&self) -> Abilities {
        self.memory.abilities()
    }
    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        if self.unreachable && freshness == Freshness::Fetched {
            return Err(
                StoreError::new(StoreErrorKind::Unreachable, "the remote does not answer").with_hint("try again later")
            );
        }
        let mut snapshot = self.memory.snapshot(scope, freshness, deadline)?;
        if let Some(at) = self.cached_at {
            snapshot.freshness = freshness;
            snapshot.store.fetched_at = Some(at);
        }
        Ok(snapshot)
    }
    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        self.memory.commit(transaction, deadline)
    }
}

impl Stores for Shared {
    fn open<'world>(&self, _: OpenStore<'world>) -> Result<Box<dyn Store + 'world>, StoreError> {
        Ok(Box::new(self.clone()))
    }
}

/// A stream that several hands hold.
#[derive(Clone, Default)]
struct Stream(Arc<Mutex<Vec<u8>>>);

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Stream {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// A stream nobody reads any more.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        gix::init(directory.path()).unwrap();
        std::fs::create_dir(directory.path().join(".git/agent-coord")).unwrap();
        std::fs::write(directory.path().join(".git/agent-coord/told-this-clone-only"), "").unwrap();
        std::fs::write(directory.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let mut environment = Environment::default();
        environment.set("PATH", Environment::of_process().raw("PATH").unwrap_or_default());
        environment.set("AGENT_COORD_AGENT_ID", "w1");
        Self {
            directory,
            store: Shared::default(),
            clock: Arc::new(SteppedClock::at(Timestamp::parse_strict("2026-12-01T12:00:00Z").unwrap())),
            runs: AtomicU64::new(0),
            environment: Mutex::new(environment),
        }
        .configured("repo = o/r")
    }

    fn configured(self, line: &str) -> Self {
        let file = self.directory.path().join(".git/config");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}[agent-coord]\n\t{line}\n")).unwrap();
        self
    }

    fn check_out(&self, branch: &str) {
        std::fs::write(self.directory.path().join(".git/HEAD"), format!("ref: refs/heads/{branch}\n")).unwrap();
    }

    fn without(self, variable: &str) -> Self {
        self.environment.lock().unwrap().remove(variable);
        self
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn world(&self, words: &[&str], stdout: Box<dyn Write + Send>, stderr: Box<dyn Write + Send>) -> World {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        World {
            arguments: words.iter().map(OsString::from).collect(),
            environment: self.environment.lock().unwrap().clone(),
            directory: self.directory.path().to_owned(),
            stdin: Box::new(io::empty()),
            stdout,
            stderr,
            colour: false,
            clock: Box::new(Arc::clone(&self.clock)),
            ids: Box::new(CountedRandomness::from_seed(run * 1000)),
        }
    }

    /// Runs one command line, split at spaces.
    fn run(&self, line: &str) -> String {
        self.run_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    fn run_words(&self, words: &[&str]) -> String {
        let (stdout, stderr) = (Stream::default(), Stream::default());
        let mut world = self.world(words, Box::new(stdout.clone()), Box::new(stderr.clone()));
        let code = run_with(&mut world, &self.store);
        let mut text = format!("exit {code}\n");
        for (name, stream) in [("stdout", stdout.text()), ("stderr", stderr.text())] {
            if !stream.is_empty() {
                write!(text, "--- {name}\n{stream}").unwrap();
            }
        }
        text
    }

    fn code(&self, line: &str) -> String {
        self.run(line).lines().next().unwrap().to_owned()
    }

    /// Puts a record into the store as another client might have.
    fn put(&self, path: &str, record: serde_json::Value, annotations: Annotations) {
        let put = Put { annotations, ..Put::create(RecordPath::parse(path).unwrap(), members(record)) };
        let id = TransactionId::from_hex(format!("{path:0>32}"));
        let transaction = Transaction { id, edits: vec![Edit::Put(put)], message: String::new() };
        let deadline = Deadline::after(&*self.clock, Duration::from_secs(9));
        self.store.memory.commit(&transaction, &deadline).unwrap();
    }
}

fn members(record: serde_json::Value) -> Members {
    match record {
        serde_json::Value::Object(members) => members,
        other => panic!("{other}"),
    }
}

#[test]
fn a_claim_is_made_renewed_and_given_back() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("claim 42"), @"
    exit 0
    --- stdout
    claimed o/r#42 by w1 until 2026-12-01T16:00:00Z
    ");
    desk.pass(60);
    assert_snapshot!(desk.run("claim --TARGET 42 --ttl 0x3c"), @"
    exit 0
    --- stdout
    claimed o/r#42 by w1 until 2026-12-01T12:02:00Z
    ");
    assert_snapshot!(desk.run("heartbeat 42"), @"
    exit 0
    --- stdout
    heartbeat w1 2026-12-01T12:01:00Z
    ");
    assert_snapshot!(desk.run("release 42"), @"
    exit 0
    --- stdout
    released o/r#42 by w1
    ");
}

#[test]
fn a_held_claim_is_refused_on_one_line_with_an_empty_stdout() {
    let desk = Desk::new();
    desk.run("claim 42");
    desk.run("heartbeat 42");
    assert_snapshot!(desk.run("claim 42 --agent-id w2 --json"), @"
    exit 3
    --- stderr
    CLAIM_REFUSED: active claim for o/r#42 held by w1; heartbeat live
    ");
    desk.pass(900);
    assert_snapshot!(desk.run("claim 42 --agent-id w2"), @"
    exit 3
    --- stderr
    CLAIM_REFUSED: active claim for o/r#42 held by w1; heartbeat stale
    ");
}

#[test]
fn a_displaced_holder_is_told_at_every_next_write_and_never_acts_for_its_successor() {
    let (first, second) = (Desk::new(), Desk::new());
    let second = Desk { store: first.store.clone(), clock: Arc::clone(&first.clock), ..second };
    first.run("claim 42 --ttl 60");
    first.run("heartbeat --ttl 60");
    first.pass(240);
    assert_snapshot!(second.run("claim 42 --agent-id w2"), @"
    exit 0
    --- stdout
    claimed o/r#42 by w2 until 2026-12-01T16:04:00Z
    ");
    assert_snapshot!(first.run("heartbeat"), @"
    exit 3
    --- stderr
    CLAIM_LOST: o/r#42 generation 2 is held by w2 since 2026-12-01T12:04:00Z
    ");
    assert_snapshot!(first.run("heartbeat"), @"
    exit 3
    --- stderr
    CLAIM_LOST: o/r#42 generation 2 is held by w2 since 2026-12-01T12:04:00Z
    ");
    assert_eq!(first.code("claim 42"), "exit 3");
    assert_snapshot!(first.run("release"), @"
    exit 1
    --- stderr
    claim belongs to w2; w1 cannot release it
    ");
    assert_snapshot!(first.run("heartbeat"), @"
    exit 0
    --- stdout
    heartbeat w1 2026-12-01T12:04:00Z
    ");
    assert_eq!(second.code("release 42 --agent-id w2"), "exit 0", "the successor's claim is untouched");
}

#[test]
fn a_superseded_instance_cannot_give_back_its_successors_claim_however_often_it_tries() {
    let (first, second) = (Desk::new(), Desk::new());
    let second = Desk { store: first.store.clone(), clock: Arc::clone(&first.clock), ..second };
    first.run("claim 42 --instance-id one");
    assert_eq!(second.code("claim 42 --instance-id two --supersede"), "exit 0");
    assert_eq!(first.code("release 42"), "exit 3");
    assert_eq!(first.code("release 42"), "exit 3");
    assert_eq!(first.code("heartbeat"), "exit 3");
    assert_eq!(second.code("heartbeat"), "exit 0");
}

#[test]
fn the_worktree_remembers_what_it_claimed_and_under_which_name() {
    let desk = Desk::new().without("AGENT_COORD_AGENT_ID");
    desk.run("claim 42 --agent-id w7 --instance-id i1");
    assert_snapshot!(desk.run("heartbeat --json"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "outcome": "recorded",
      "record": {
        "schema_version": 1,
        "agent_id": "w7",
        "repo": "o/r",
        "target": "42",
        "status": "in_progress",
        "updated_at": "2026-12-01T12:00:00Z",
        "expires_at": "2026-12-01T12:15:00Z",
        "generation": 1,
        "instance_id": "i1"
      },
      "generation": 1,
      "warnings": []
    }
    "#);
    desk.run("claim 43 --agent-id w8");
    assert!(desk.run("heartbeat").contains("heartbeat w8 "), "the claim made last is the one spoken for");
    assert!(desk.run("heartbeat --agent-id w7").contains("heartbeat w7 "));
    assert_snapshot!(desk.run("release"), @"
    exit 1
    --- stderr
    this worktree holds several claims; name one of: o/r#42, o/r#43
    ");
    assert_eq!(desk.code("release 43"), "exit 0");
    assert_eq!(desk.run("release"), "exit 0\n--- stdout\nreleased o/r#42 by w7\n");
    assert_eq!(desk.run("release"), "exit 1\n--- stderr\nmissing required --target\n");
}

#[test]
fn an_agent_and_a_repository_nobody_named_are_inferred_silently() {
    let desk = Desk::new().without("AGENT_COORD_AGENT_ID");
    let said = desk.run("claim 42");
    assert!(said.starts_with("exit 0\n--- stdout\nclaimed o/r#42 by user."), "{said}");
    assert!(!said.contains("stderr"), "{said}");
    assert_eq!(desk.code("claim 42"), "exit 0", "the same agent comes back");
}

#[test]
fn the_branch_is_stored_unless_it_is_the_primary_one() {
    let desk = Desk::new();
    desk.run("claim 1");
    assert!(desk.run("status").contains("o/r#1 active w1 branch UNKNOWN "));
    desk.check_out("fix");
    desk.run("claim 2");
    assert!(desk.run("status").contains("o/r#2 active w1 branch fix "));
    let trunk = Desk::new().configured("primaryBranch = trunk");
    trunk.check_out("trunk");
    trunk.run("claim 1");
    assert!(trunk.run("status").contains("o/r#1 active w1 branch UNKNOWN "));
}

#[test]
fn the_json_of_a_claim_says_how_it_came_to_be_held() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("claim 42 --json --batch-id b1"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "outcome": "claimed",
      "record": {
        "schema_version": 1,
        "repo": "o/r",
        "target": "42",
        "agent_id": "w1",
        "batch_id": "b1",
        "status": "active",
        "claimed_at": "2026-12-01T12:00:00Z",
        "updated_at": "2026-12-01T12:00:00Z",
        "expires_at": "2026-12-01T16:00:00Z",
        "generation": 1
      },
      "generation": 1,
      "warnings": []
    }
    "#);
    assert!(desk.run("claim 42 --json").contains("\"outcome\": \"renewed\""));
}

#[test]
fn an_event_names_only_the_agent_it_was_given() {
    let desk = Desk::new();
    desk.run("claim 42");
    let said = desk.run("record-event --batch-id b1 --type note --json");
    assert!(said.starts_with("exit 0") && !said.contains("agent_id"), "{said}");
    assert!(
        desk.run("record-event --batch-id b1 --type note").contains("\nrecorded event b1 20261201T120000.000000Z-")
    );
    for (line, message) in [
        ("record-event", "missing required --batch-id"),
        ("record-event --batch-id .", "missing required --type"),
        ("record-event --batch-id . --type x", "invalid batch-id: ."),
        ("record-event --batch-id b --type help_requested", "missing required --reason"),
        ("record-event --batch-id b --type x --lane a:b", "event lane a:b cannot contain ':'"),
    ] {
        assert_eq!(desk.run(line), format!("exit 1\n--- stderr\n{message}\n"), "{line}");
    }
}

#[test]
fn usage_errors_are_one_line_and_exit_1() {
    let desk = Desk::new();
    for (line, message) in [
        ("frobnicate", "unknown command: frobnicate"),
        ("claim", "missing required --target"),
        ("claim --target=", "missing required --target"),
        ("claim 42 --agent-id=", "missing required --agent-id"),
        ("claim 42 --repo=", "missing required --repo"),
        ("claim 42 --repo x", "invalid target repo: x"),
        ("claim a/b", "invalid target: a/b"),
        ("claim 42 --ttl 0", "--ttl must be positive"),
        ("claim 42 --ttl -5", "--ttl must be positive"),
        ("claim 42 --target 43", "give the target either positionally or with --target, not both"),
        ("claim 1 2 3", "unexpected arguments: 2 3"),
        ("claim 1 --handoff-to w2", "invalid option: --handoff-to"),
        ("release 42", "no claim exists for o/r#42"),
        ("release 42 --terminal merged", "--terminal must be one of: done, abandoned, superseded"),
        (
            "release 42 --terminal done --handoff-to w2",
            "--terminal cannot be combined with --handoff-to or --handoff-note",
        ),
        ("heartbeat --agent-id a/b", "invalid agent-id: a/b"),
        ("status 42", "unexpected arguments: 42"),
        ("status --repo o/r", "missing required --target"),
        ("status --target 42", "missing required --repo"),
        ("status --batch-id b --repo o/r", "--batch-id cannot be combined with --repo or --target"),
        ("status --repo o/r --target 1 --include-archived", "--include-archived is only valid for unscoped status"),
        ("hooks", "missing action: one of install, uninstall, status, print"),
    ] {
        assert_eq!(desk.run(line), format!("exit 1\n--- stderr\n{message}\n"), "{line}");
    }
}

#[test]
fn without_a_repository_and_a_home_the_state_is_unknown() {
    let desk = Desk::new();
    std::fs::remove_dir_all(desk.directory.path().join(".git")).unwrap();
    let said = desk.run("status");
    assert!(said.starts_with("exit 2\n--- stderr\ncannot determine local state root; "), "{said}");
    let said = desk.run("sync");
    assert!(said.starts_with("exit 2\n--- stderr\nno git repository at "), "{said}");
}

#[test]
fn the_status_of_everything_in_text() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("status"), @"
    exit 0
    --- stdout
    claims
    - none
    heartbeats
    - none
    batches
    - none
    events
    - none
    ");
    desk.run("claim 42 --batch-id b1 --branch br --phase claimed");
    desk.run("heartbeat 42 --status weird --phase qa");
    desk.put(
        "batches/b1.json",
        serde_json::json!({"batch_id": "b1", "lanes": [
            {"name": "backend", "owner": "w1", "targets": ["42"]},
            {"name": "docs", "owner": "w2", "targets": [2, 3], "depends_on": "b1:backend"},
        ]}),
        Annotations::default(),
    );
    desk.put("batches/b2.json", serde_json::json!({"lanes": []}), Annotations::default());
    desk.run_words(&[
        "record-event",
        "--batch-id",
        "b1",
        "--lane",
        "docs",
        "--type",
        "note",
        "--message",
        "a\u{1b}[2J b",
    ]);
    assert_snapshot!(desk.run("status"), @r"
    exit 0
    --- stdout
    claims
    - o/r#42 active w1 branch br expires 2026-12-01T16:00:00Z
    heartbeats
    - w1 weird live o/r#42 updated 2026-12-01T12:00:00Z
    batches
    - b1
      - lane backend owner w1 targets 42 status weird live deps - blocked_on -
      - lane docs owner w2 targets 2,3 status unknown no-heartbeat deps b1:backend blocked_on b1:backend
    - b2
      - lanes -
    events
    - b1 - claim.acquired claimed by w1 at 2026-12-01T12:00:00Z
    - b1 docs note - by - at 2026-12-01T12:00:00Z a\u{1b}[2J b
    ");
    assert!(desk.run("status --include-archived").ends_with("archive\n- none\n"));
}

#[test]
fn the_status_of_everything_in_json() {
    let desk = Desk::new();
    desk.run("claim 42 --batch-id b1");
    desk.run("heartbeat 42 --batch-id b1");
    assert_snapshot!(desk.run("status --json"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "scope": {
        "kind": "all"
      },
      "degraded": [],
      "section_notes": {},
      "claims": [
        {
          "path": "claims/o/r/42.json",
          "repo": "o/r",
          "target": "42",
          "status": "active",
          "agent_id": "w1",
          "branch": "UNKNOWN",
          "expires_at": "2026-12-01T16:00:00Z",
          "batch_id": "b1",
          "generation": 1
        }
      ],
      "heartbeats": [
        {
          "path": "heartbeats/w1.json",
          "agent_id": "w1",
          "status": "in_progress",
          "liveness": "live",
          "target": "o/r#42",
          "updated_at": "2026-12-01T12:00:00Z",
          "batch_id": "b1",
          "generation": 1
        }
      ],
      "batches": [],
      "events": [
        {
          "path": "events/b1/20261201T120000.000000Z-00000001.json",
          "batch_id": "b1",
          "type": "claim.acquired",
          "at": "2026-12-01T12:00:00Z",
          "event_id": "20261201T120000.000000Z-00000001",
          "agent_id": "w1",
          "repo": "o/r",
          "target": "42",
          "generation": 1
        }
      ]
    }
    "#);
}

#[test]
fn the_status_of_a_target_finds_every_spelling_and_says_who_has_no_heartbeat() {
    let desk = Desk::new();
    desk.run("claim issue:42");
    desk.run("heartbeat");
    desk.run("claim pr:42 --agent-id w2");
    assert_snapshot!(desk.run("status --repo o/r --target 42"), @"
    exit 0
    --- stdout
    claims
    - o/r#issue:42 active w1 branch UNKNOWN expires 2026-12-01T16:00:00Z
    - o/r#pr:42 active w2 branch UNKNOWN expires 2026-12-01T16:00:00Z
    heartbeats
    - w1 in_progress live o/r#issue:42 updated 2026-12-01T12:00:00Z
    batches
    - not checked in target scope; run `agent-coord log` for this target's history
    events
    - not checked in target scope; run `agent-coord log` for this target's history
    degraded
    - not checked in target scope; run `agent-coord log` for this target's history
    - holder heartbeat not found for pr:42 (w2)
    ");
    let json = desk.run("status --repo o/r --target 42 --json");
    assert!(json.contains("\"batches\": null,\n  \"events\": null\n"), "{json}");
}

#[test]
fn a_live_agent_without_progress_is_wedged() {
    let desk = Desk::new();
    desk.run("claim 42");
    desk.run("heartbeat --phase coding --ttl 9000");
    desk.pass(45 * 60);
    assert!(!desk.run("status").contains("wedged"), "only past the threshold");
    desk.pass(1);
    assert!(desk.run("status").contains(" updated 2026-12-01T12:00:00Z wedged since 2026-12-01T12:00:00Z\n"));
    assert!(desk.run("status --json").contains("\"wedged\": true"));
    desk.run("heartbeat --phase coding");
    assert!(desk.run("status").contains("wedged since 2026-12-01T12:00:00Z"), "a beat is no progress");
    desk.run("heartbeat --phase review");
    assert!(!desk.run("status").contains("wedged"));
    let patient = Desk::new().configured("wedgedAfterSeconds = 60");
    patient.run("heartbeat --phase coding");
    patient.pass(61);
    assert!(patient.run("status").contains("wedged since"));
}

#[test]
fn a_cached_status_tells_its_age_and_an_unreachable_remote_is_unknown() {
    let mut desk = Desk::new();
    desk.run("claim 42");
    let at = Timestamp::parse_strict("2026-12-01T11:58:00Z").unwrap();
    desk.store = Shared { cached_at: Some(at), unreachable: true, ..desk.store.clone() };
    assert_snapshot!(desk.run("status --cached"), @"
    exit 0
    --- stdout
    claims
    - o/r#42 active w1 branch UNKNOWN expires 2026-12-01T16:00:00Z
    heartbeats
    - none
    batches
    - none
    events
    - none
    --- stderr
    notice: read from this clone's cache, fetched 120 s ago (2026-12-01T11:58:00Z)
    ");
    assert_snapshot!(desk.run("status --repo o/r --target 7"), @"
    exit 2
    --- stderr
    the remote does not answer
    hint: try again later
    ");
}

#[test]
fn a_heartbeat_with_a_strange_status_is_kept_with_a_warning() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("heartbeat --status weird"), @r#"
    exit 0
    --- stdout
    heartbeat w1 2026-12-01T12:00:00Z
    --- stderr
    warning: status "weird" is not in the canonical status vocabulary; preserving it verbatim with a status_raw copy. Canonical statuses: in_progress, blocked, blocked_user_input, waiting_on_checks_or_review, external_gate_failing, no_pr_evidence, failed, done, merged, ready, ready_gates_clean, ready_no_merge_authority, abandoned, superseded.
    "#);
}

#[test]
fn a_heartbeat_from_the_future_is_reported_as_clock_skew() {
    let desk = Desk::new();
    desk.pass(600);
    desk.run("heartbeat");
    let earlier = Desk { store: desk.store.clone(), ..Desk::new() };
    let said = earlier.run("status");
    assert!(said.contains("- w1 in_progress live"), "{said}");
    assert!(
        said.ends_with("warning: clock skew: the heartbeat of w1 is 600 s ahead of this machine's clock\n"),
        "{said}"
    );
}

#[test]
fn a_reader_that_went_away_ends_the_command_quietly() {
    let desk = Desk::new();
    let stderr = Stream::default();
    let mut world = desk.world(&["claim", "42"], Box::new(Closed), Box::new(stderr.clone()));
    assert_eq!(run_with(&mut world, &desk.store), 0, "the claim is won all the same");
    assert_eq!(stderr.text(), "");
    assert_eq!(desk.code("claim 42 --agent-id w2"), "exit 3");
}

#[test]
fn help_lists_every_command_and_each_explains_itself() {
    let desk = Desk::new();
    let overview = desk.run("");
    assert_eq!(overview, desk.run("help"));
    for command in super::root().get_subcommands() {
        let name = command.get_name();
        assert!(overview.contains(&format!("\n  {name} ")), "{name}");
        let help = desk.run(&format!("{name} --help"));
        assert!(help.starts_with("exit 0\n--- stdout\n") && help.contains("Usage: agent-coord"), "{help}");
        assert!(command.get_about().is_some(), "{name} says what it does");
    }
    assert_eq!(desk.run("claim 42 --he"), desk.run("claim -h"));
}

#[test]
fn the_versions() {
    let desk = Desk::new();
    assert_snapshot!(desk.run("version"), @"
    exit 0
    --- stdout
    agent-coord 0.1.0
    schema_version: 1
    lane_closed_schema_version: 2
    archive_schema_version: 1
    default_backend: none
    default_ref: state
    ");
    assert_snapshot!(desk.run("version --json --state-root /x"), @r#"
    exit 0
    --- stdout
    {
      "version": "0.1.0",
      "schema_version": 1,
      "lane_closed_schema_version": 2,
      "archive_schema_version": 1,
      "default_backend": null,
      "default_ref": "state"
    }
    "#);
}

#[test]
fn state_kept_in_a_repository_of_its_own_leaves_the_tenure_with_the_code() {
    let desk = Desk::new();
    let state = tempfile::tempdir().unwrap();
    gix::init_bare(state.path()).unwrap();
    let git_dir = state.path().to_str().unwrap();
    assert_eq!(desk.code(&format!("claim 42 --git-dir {git_dir}")), "exit 0");
    assert!(desk.directory.path().join(".git/agent-coord/held.json").exists());
    assert!(!state.path().join("agent-coord/held.json").exists());
}
