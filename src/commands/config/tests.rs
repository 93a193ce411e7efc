use std::io::{self, Cursor, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::cli::user_config::tests::{SafeFolder, clock};
use crate::world::{CountedRandomness, Environment, World};

#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Captured {
    fn text(&self, folder: &SafeFolder) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        text.replace(&folder.path("").display().to_string(), "$HOME/")
    }
}

/// A home with a command line in it.
struct Home {
    folder: SafeFolder,
    environment: Environment,
}

impl Home {
    fn new() -> Self {
        let folder = SafeFolder::new();
        // A repository above this folder is no business of these tests.
        folder.directory("work");
        let environment = folder.environment();
        Self { folder, environment }
    }

    fn set(&mut self, name: &str, value: &str) -> &mut Self {
        self.environment.set(name, value);
        self
    }

    /// Returns exit code, stdout and stderr.
    fn run_with(&self, line: &str, stdin: &[u8]) -> (u8, String, String) {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        let mut world = World {
            arguments: line.split_whitespace().map(Into::into).collect(),
            environment: self.environment.clone(),
            directory: Path::new("/").to_owned(),
            stdin: Box::new(Cursor::new(stdin.to_vec())),
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
            colour: false,
            clock: Box::new(clock()),
            ids: Box::new(CountedRandomness::default()),
        };
        let code = crate::run(&mut world);
        (code, stdout.text(&self.folder), stderr.text(&self.folder))
    }

    fn run(&self, line: &str) -> (u8, String, String) {
        self.run_with(line, b"")
    }

    fn error(&self, line: &str) -> (u8, String) {
        let (code, stdout, stderr) = self.run(line);
        assert_eq!(stdout, "");
        (code, stderr)
    }

    fn coordination(&self, line: &str) -> serde_json::Value {
        let (code, stdout, stderr) = self.run(line);
        assert_eq!(code, 0, "{stderr}");
        let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
        report["coordination"].clone()
    }
}

const TEXT: &str = "\
agent-coord config
version: 0.1.0
default_backend: none
default_claim_ttl_seconds: 14400
default_heartbeat_ttl_seconds: 900
heartbeat_dead_after_ttl_multiplier: 4
retention_policy: hot=7d,archive=30d,synthetic_hot=1d
dependency_terminal_statuses: done,merged,ready,ready_gates_clean,ready_no_merge_authority,complete,completed
heartbeat_working_statuses: in_progress,blocked,blocked_user_input,waiting_on_checks_or_review,external_gate_failing,no_pr_evidence,failed
heartbeat_terminal_statuses: done,merged,ready,ready_gates_clean,ready_no_merge_authority,abandoned,superseded
exit_codes: usage=1,stack_usage=64,operational=2,claim_refused=3
coordination_policy: optional
coordination_backend: local
coordination_configured: false
";

#[test]
fn show_is_the_default_action_and_prints_every_line_of_the_contract() {
    let home = Home::new();
    let shown = (0, TEXT.to_owned(), String::new());
    assert_eq!(home.run("config"), shown);
    assert_eq!(home.run("config show"), shown);
    assert_eq!(home.error("config what"), (1, "unexpected arguments: what\n".to_owned()));
}

#[test]
fn the_json_twin_has_the_keys_of_the_contract_in_order() {
    let (code, stdout, stderr) = Home::new().run("config --json");
    assert_eq!((code, stderr.as_str()), (0, ""));
    let report: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&stdout).unwrap();
    let keys: Vec<&str> = report.keys().map(String::as_str).collect();
    assert_eq!(
        keys.join(" "),
        "version schema_version lane_closed_schema_version archive_schema_version default_backend default_ref \
         default_claim_ttl_seconds default_heartbeat_ttl_seconds heartbeat_dead_after_ttl_multiplier retention_policy \
         dependency_terminal_statuses heartbeat_status_vocabulary exit_codes coordination"
    );
    assert_eq!(report["default_backend"], serde_json::Value::Null);
    assert_eq!(report["heartbeat_status_vocabulary"]["aliases"]["in_process"], "in_progress");
    assert_eq!(report["retention_policy"].to_string(), r#"{"hot_days":7,"archive_days":30,"synthetic_hot_days":1}"#);
    assert_eq!(
        report["coordination"].to_string(),
        r#"{"policy":"optional","configured":false,"backend":"local","source":{"backend":"default","policy":"default"},"available":null}"#
    );
}

#[test]
fn show_says_who_selected_the_backend_and_the_policy() {
    let mut home = Home::new();
    home.folder.user_file("AGENT_COORD_API_URL=https://x\nAGENT_COORD_POLICY=required\n");
    let of = |home: &Home, line: &str| {
        let said = home.coordination(line);
        format!("{} {} {}", said["backend"], said["source"], said["configured"])
    };
    assert_eq!(of(&home, "config --json"), r#""http" {"backend":"user_config","policy":"user_config"} true"#);
    home.set("AGENT_COORD_STATE_ROOT", "/s").set("AGENT_COORD_POLICY", "disabled");
    assert_eq!(of(&home, "config --json"), r#""local" {"backend":"process_env","policy":"process_env"} true"#);
    assert_eq!(of(&home, "config --json --backend o/r"), r#""github" {"backend":"cli","policy":"process_env"} true"#);
    let (_, _, stderr) = home.run("config --json --backend o/r");
    assert_eq!(stderr, "", "a report is not a run on a backend, so nothing is warned of");
}

#[test]
fn a_broken_user_file_is_reported_and_the_bypass_needs_a_policy_of_the_process() {
    let mut home = Home::new();
    home.folder.user_file("oops\n");
    let broken = "unsafe user config syntax at $HOME/.config/agent-coord/env:1\n".to_owned();
    assert_eq!(home.error("config"), (2, broken.clone()));
    assert_eq!(home.error("config set --machine-id m"), (2, broken.clone()));
    assert_eq!(home.error("config --bogus"), (2, broken.clone()), "the file is read before options are judged");
    assert_eq!(home.error("bogus"), (1, "unknown command: bogus\n".to_owned()));
    assert_eq!(
        home.error("status --ignore-user-config"),
        (2, broken),
        "a bypass that is not accepted bypasses nothing"
    );
    for line in ["version", "config --help", "help", "status --ignore-user-config --state-root /nowhere/at/all"] {
        assert_eq!(home.run(line).0, 0, "{line}");
    }
    let bypass = "config --ignore-user-config --state-root /s";
    let (code, stderr) = home.error(bypass);
    let warning = "warning: canonical user configuration bypassed by --ignore-user-config; backend selected explicitly \
                   by --state-root.\n";
    let refused = "config show with --ignore-user-config requires an explicit process AGENT_COORD_POLICY (required, \
                   optional, or disabled)\n";
    assert_eq!((code, stderr), (1, format!("{warning}{refused}")));
    home.set("AGENT_COORD_POLICY", "often");
    assert_eq!(home.error(bypass).0, 2);
    home.set("AGENT_COORD_POLICY", "required");
    let (code, stdout, stderr) = home.run(bypass);
    assert_eq!((code, stderr.as_str()), (0, warning));
    assert!(stdout.contains("coordination_policy: required\ncoordination_backend: local\n"), "{stdout}");
}

#[test]
fn set_saves_names_what_it_saved_and_never_shows_the_token() {
    let home = Home::new();
    let saved = home.run_with(
        "config set --api-url https://fleet.example --token-stdin --machine-id m5 --policy required",
        b"s3cret\r\n",
    );
    let stdout = "updated user configuration: $HOME/.config/agent-coord/env (AGENT_COORD_API_TOKEN, AGENT_COORD_API_URL, \
                  AGENT_COORD_MACHINE_ID, AGENT_COORD_POLICY)\n\
                  updated coordination policy in canonical config: $HOME/.config/agent-coord/env\n";
    assert_eq!(saved, (0, stdout.to_owned(), String::new()));
    let text = std::fs::read_to_string(home.folder.path(".config/agent-coord/env")).unwrap();
    assert_eq!(
        text,
        "AGENT_COORD_API_URL=https://fleet.example\nAGENT_COORD_API_TOKEN=s3cret\nAGENT_COORD_MACHINE_ID=m5\n\
         AGENT_COORD_POLICY=required\n"
    );
    assert_eq!(home.coordination("config --json")["policy"], "required");
}

#[test]
fn set_refuses_what_could_not_be_used() {
    let home = Home::new();
    for (line, message) in [
        ("", "config set requires at least one setting"),
        ("--api-url fleet.example", "--api-url must be an absolute HTTP(S) URL"),
        ("--api-url ftp://fleet.example", "--api-url must be an absolute HTTP(S) URL"),
        ("--api-url https://", "--api-url must be an absolute HTTP(S) URL"),
        ("--api-url https://x?y", "--api-url must not include a query or fragment"),
        ("--api-url https://x:0", "--api-url port must be between 1 and 65535"),
        ("--api-url https://x:65536/y", "--api-url port must be between 1 and 65535"),
        ("--api-url http://fleet.example", "--api-url must use https unless it points at localhost"),
        ("--api-url http://localhost.example", "--api-url must use https unless it points at localhost"),
        ("--machine-id a/b", "invalid machine-id: a/b"),
        ("--policy often", "invalid argument: --policy often"),
        ("--machine-id m --state-root /x", "--state-root is not valid for config set"),
        ("--machine-id m --backend o/r", "--backend is not valid for config set"),
        ("--machine-id m --ref x", "--ref is not valid for config set"),
        ("--machine-id m --ignore-user-config", "--ignore-user-config is not valid for config set"),
    ] {
        assert_eq!(home.error(&format!("config set {line}")), (1, format!("{message}\n")));
    }
    for (stdin, message) in [
        (&b""[..], "requires a non-empty token"),
        (b" \n", "requires a non-empty token"),
        (b"a\nb", "token must be one line"),
        (b"a\0", "token must be one line"),
        (b"\xff", "token must be valid UTF-8"),
        (&[b'a'; 65_537], "input is too large"),
    ] {
        let line = "config set --token-stdin --api-url http://[::1]:8787";
        assert_eq!(home.run_with(line, stdin), (1, String::new(), format!("--token-stdin {message}\n")));
    }
    assert!(!home.folder.path(".config").exists(), "nothing was written");
}

#[test]
fn set_makes_a_file_that_was_named_outright() {
    let mut home = Home::new();
    let named = home.folder.path("mine/env").display().to_string();
    home.set("AGENT_COORD_ENV_FILE", &named);
    let refused = "configured user env file does not exist: $HOME/mine/env\n".to_owned();
    assert_eq!(home.error("config show"), (2, refused));
    assert_eq!(home.run("config set --machine-id m1").0, 0);
    assert_eq!(std::fs::read_to_string(named).unwrap(), "AGENT_COORD_MACHINE_ID=m1\n");
    assert_eq!(home.run("config show").0, 0);
}
