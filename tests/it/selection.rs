//! Which store a command lands on, and what it says of that.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::{Ran, TestEnv};

const NOON: &str = "2026-12-01T12:00:00Z";
const LOCAL: &str =
    "notice: local mode \u{2014} single-machine only; state root: $TEST_ENV/home/.local/state/agent-coordination\n";
const CLONE: &str = "notice: coordination state of this clone only; `agent-coord init --remote NAME` shares it\n";
const CLAIM: &str = "claim --agent-id w1 --repo o/r --target 42";

struct Person {
    env: TestEnv,
}

impl Person {
    fn new() -> Self {
        Self { env: TestEnv::private() }
    }

    fn user_file(self, text: &str) -> Self {
        self.config_file("env", text)
    }

    fn config_file(self, name: &str, text: &str) -> Self {
        let folder = self.env.path("home/.config/agent-coord");
        std::fs::create_dir_all(&folder).expect("a folder");
        for path in [&folder, &self.env.path("home/.config"), &self.env.path("home")] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("a mode");
        }
        let file = folder.join(name);
        std::fs::write(&file, text).expect("a file");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).expect("a mode");
        self
    }

    fn set(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.env.set(name, value);
        self
    }

    /// Runs a command outside every repository.
    fn run(&self, line: &str) -> Ran {
        self.run_in(Path::new("/"), line)
    }

    fn run_in(&self, directory: &Path, line: &str) -> Ran {
        self.env.in_process(directory, NOON, 1, line)
    }

    fn default_root(&self) -> PathBuf {
        self.env.path("home/.local/state/agent-coordination")
    }

    fn holds(&self, root: &Path) -> bool {
        root.join("claims/o/r/42.json").exists()
    }
}

#[test]
fn outside_a_repository_the_default_directory_is_used_and_named() {
    let person = Person::new();
    let ran = person.run(CLAIM).ok();
    assert_eq!(ran.stderr, LOCAL);
    assert!(person.holds(&person.default_root()));
    assert_eq!(person.run("status --json").ok().stderr, LOCAL, "stdout stays JSON");
    let ran = person.run("claim").expect_error(1);
    assert_eq!(
        ran.stderr,
        format!("{LOCAL}missing required --agent-id\n"),
        "the notice precedes the command's own checks"
    );
}

#[test]
fn a_worktree_keeps_its_own_state_and_says_so_once() {
    let person = Person::new();
    let clone = person.env.git().repository("clone");
    let ran = person.run_in(&clone, CLAIM).ok();
    assert_eq!(ran.stderr, CLONE);
    assert_eq!(person.run_in(&clone, "status").ok().stderr, "");
    assert!(!person.default_root().exists());
    let bare = person.env.git().remote("bare.git");
    assert_eq!(person.run_in(&bare, "status").ok().stderr, LOCAL, "a bare repository is nobody's worktree");
}

#[test]
fn claims_in_the_default_directory_never_go_out_of_sight() {
    let person = Person::new();
    person.run(CLAIM).ok();
    let clone = person.env.git().repository("clone");
    let ran = person.run_in(&clone, "status").ok();
    let named = "notice: this repository can hold its own coordination state: `agent-coord init` begins it, \
                 `agent-coord migrate` copies the records over\n";
    assert_eq!(ran.stderr, format!("{LOCAL}{named}"));
    assert!(ran.stdout.contains("o/r#42 active w1"), "{ran}");
    person.run_in(&clone, "init").ok();
    let ran = person.run_in(&clone, "status").ok();
    assert_eq!(ran.stderr, "", "a clone that was initialised has its own store");
    assert!(!ran.stdout.contains("o/r#42"), "{ran}");
}

#[test]
fn each_tier_beats_the_next() {
    let (flag, process, saved) = ("flag", "process", "saved");
    let person = Person::new();
    let at = |name: &str| person.env.path(name);
    let saved_line = format!("AGENT_COORD_STATE_ROOT={}\n", at(saved).display());
    let clone = person.env.git().repository("clone");
    let (flag_root, process_root, saved_root) = (at(flag), at(process), at(saved));
    let person = person.user_file(&saved_line);
    person.run_in(&clone, CLAIM).ok();
    assert!(person.holds(&saved_root), "the user file beats what lies around");
    let person = person.set("AGENT_COORD_STATE_ROOT", &process_root);
    person.run_in(&clone, CLAIM).ok();
    assert!(person.holds(&process_root), "the process beats the user file");
    person.run_in(&clone, &format!("{CLAIM} --state-root {}", flag_root.display())).ok();
    assert!(person.holds(&flag_root), "a flag beats the process");
    let person = person.set("AGENT_COORD_STATE_ROOT", " ");
    person.run_in(&clone, "init").ok();
    let ran = person.run_in(&clone, "config show --json").ok().json();
    assert_eq!(ran["coordination"]["source"]["backend"], "git_config", "an initialised clone beats the user file");
    assert_eq!(ran["coordination"]["backend"], "git");
}

#[test]
fn a_conflict_is_warned_of_once_and_first() {
    let person = Person::new().set("AGENT_COORD_API_URL", "https://fleet.example");
    let root = person.env.path("state");
    let ran = person.run(&format!("claim --state-root {}", root.display())).expect_error(1);
    let warning = "warning: AGENT_COORD_API_URL and --state-root are both set; using the local backend.\n";
    assert_eq!(ran.stderr, format!("{warning}missing required --agent-id\n"));
}

#[test]
fn backends_that_this_version_does_not_have_leave_the_state_unknown() {
    let person = Person::new();
    for (line, backend) in [("status --api-url https://x", "HTTP"), ("status --backend o/r", "legacy GitHub")] {
        let ran = person.run(line).expect_error(2);
        let message = format!("agent-coord 0.1.0 does not have the {backend} backend\n");
        assert!(ran.stderr.starts_with(&message), "{ran}");
    }
}

#[test]
fn a_token_without_a_url_means_that_a_server_was_meant() {
    let message = "AGENT_COORD_API_TOKEN is set but AGENT_COORD_API_URL is missing or empty; set AGENT_COORD_API_URL or \
                   unset AGENT_COORD_API_TOKEN\n";
    let by_process = Person::new().set("AGENT_COORD_API_TOKEN", "secret");
    assert_eq!(by_process.run("status").expect_error(2).stderr, message);
    let saved = Person::new().user_file("AGENT_COORD_API_TOKEN=secret\n");
    assert_eq!(saved.run(CLAIM).expect_error(2).stderr, message);
    saved.run(&format!("status --state-root {}", saved.env.path("x").display())).ok();
}

#[test]
fn read_commands_look_at_the_status_root_and_write_commands_do_not() {
    let person = Person::new();
    let root = person.env.path("status-root");
    let person = person.set("AGENT_COORD_STATUS_STATE_ROOT", &root);
    assert_eq!(person.run("status").ok().stderr, "");
    let clone = person.env.git().repository("clone");
    let ran = person.run_in(&clone, CLAIM).ok();
    assert!(ran.stderr.starts_with(LOCAL), "{ran}");
    assert!(person.holds(&person.default_root()), "in a worktree, too: nobody reads the clone");
    std::fs::rename(person.default_root(), &root).expect("moved");
    assert!(person.run_in(&clone, "status").ok().stdout.contains("o/r#42 active"));
}

#[test]
fn a_saved_machine_is_stamped_on_what_is_written() {
    let person = Person::new().user_file("AGENT_COORD_MACHINE_ID=m5\n");
    person.run(CLAIM).ok();
    let claim = std::fs::read_to_string(person.default_root().join("claims/o/r/42.json")).expect("a claim");
    assert!(claim.contains("\"machine_id\": \"m5\""), "{claim}");
}

fn refusal(file: &str) -> String {
    format!(
        "split-brain configuration: {file} configures AGENT_COORD_API_URL, but this CLI resolved to the implicit local \
         backend; refusing writes that would land on the local state root while a fleet API URL is configured. Source \
         {file} for fleet writes, pass --state-root PATH to choose a local root explicitly, or set AGENT_COORD_LOCAL=1 to \
         opt into local mode.\n"
    )
}

fn advisory(file: &str) -> String {
    format!(
        "warning: split-brain configuration: {file} configures AGENT_COORD_API_URL, but this CLI is using the local \
         backend. Load that env file for fleet reads or remove it if local mode is intended.\n"
    )
}

const COMPATIBILITY: &str = "$TEST_ENV/home/.config/agent-coord/http-env.sh";

#[test]
fn a_split_brain_stops_every_write_and_warns_every_read() {
    let person = Person::new().config_file("http-env.sh", "export AGENT_COORD_API_URL=https://fleet.example\n");
    for line in [CLAIM, "heartbeat", "release", "record-event"] {
        assert_eq!(person.run(line).expect_error(2).stderr, refusal(COMPATIBILITY), "{line}");
    }
    assert!(!person.default_root().exists());
    let ran = person.run("status").ok();
    assert_eq!(ran.stderr, format!("{LOCAL}{}", advisory(COMPATIBILITY)), "the notice comes first");
    let clone = person.env.git().repository("clone");
    assert_eq!(
        person.run_in(&clone, CLAIM).expect_error(2).stderr,
        refusal(COMPATIBILITY),
        "this clone is local as well"
    );
    assert_eq!(person.run_in(&clone, "status").ok().stderr, format!("{CLONE}{}", advisory(COMPATIBILITY)));
}

#[test]
fn saying_what_is_meant_ends_a_split_brain() {
    let person = Person::new().config_file("http-env.sh", "AGENT_COORD_API_URL='https://fleet.example'\n");
    let root = person.env.path("state").display().to_string();
    person.run(&format!("{CLAIM} --state-root {root}")).ok();
    let read = person.run(&format!("status --state-root {root}")).ok();
    assert_eq!(read.stderr, advisory(COMPATIBILITY), "reading an explicit root is still warned of");
    let bypassed = person.run(&format!("status --state-root {root} --ignore-user-config")).ok();
    assert!(!bypassed.stderr.contains("split-brain"), "{bypassed}");
    let person = person.set("AGENT_COORD_LOCAL", "Yes");
    assert_eq!(person.run(CLAIM).ok().stderr, LOCAL);
    assert_eq!(person.run("status").ok().stderr, LOCAL);
    let saved = Person::new()
        .config_file("http-env.sh", "AGENT_COORD_API_URL=https://fleet.example\n")
        .user_file("AGENT_COORD_LOCAL=1\n");
    assert_eq!(saved.run(CLAIM).ok().stderr, LOCAL, "a saved opt-in counts, too");
}

#[test]
fn a_broken_user_file_stops_every_command_but_the_ones_that_do_without_it() {
    let person = Person::new().user_file("AGENT_COORD_NONSENSE=1\n");
    let broken = "unsupported agent-coord key at $TEST_ENV/home/.config/agent-coord/env:1: AGENT_COORD_NONSENSE\n";
    let root = person.env.path("state").display().to_string();
    for line in [CLAIM, "status", "config", &format!("status --state-root {root}")] {
        assert_eq!(person.run(line).expect_error(2).stderr, broken, "{line}");
    }
    let recovered = person.run(&format!("{CLAIM} --ignore-user-config --state-root {root}")).ok();
    assert_eq!(
        recovered.stderr,
        "warning: canonical user configuration bypassed by --ignore-user-config; backend selected explicitly by \
         --state-root.\n"
    );
    person.run("version").ok();
    person.run("claim --help").ok();
    let clone = person.env.git().repository("clone");
    person.run_in(&clone, "init").ok();
}

#[test]
fn the_recovery_bypass_leaves_every_configured_selector_out() {
    let person = Person::new().set("AGENT_COORD_API_URL", "https://fleet.example");
    let root = person.env.path("state").display().to_string();
    let ran = person.run(&format!("{CLAIM} --ignore-user-config --state-root {root}")).ok();
    assert!(!ran.stderr.contains("both set"), "{ran}");
    for line in ["status --ignore-user-config", "status --ignore-user-config --state-root /a --state-root /b"] {
        let ran = person.run(line).expect_error(1);
        let message = "--ignore-user-config requires exactly one explicit backend selector: --state-root, --api-url, or \
                       --backend\n";
        assert_eq!(ran.stderr, message);
    }
}
