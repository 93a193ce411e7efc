//! What the documents show is what happens: their console blocks are run, and compared line by line.

use std::fmt::Write as _;
use std::path::Path;

use crate::support::TestEnv;

/// A command of a console block, and what the document says it prints.
#[derive(Debug, PartialEq, Eq)]
struct Step {
    command: String,
    shown: String,
}

#[test]
fn the_readme_shows_what_happens() {
    let env = two_clones();
    check(&env, "README.md");
}

#[test]
fn the_first_example_does_the_main_job_in_its_own_clone() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    let script = std::fs::read(source("examples/first-claim.sh")).expect("the example");
    std::fs::create_dir(clone.join("examples")).expect("a folder");
    std::fs::write(clone.join("examples/first-claim.sh"), script).expect("a copy");
    let mut shell = env.program("sh", &clone);
    shell.arg("examples/first-claim.sh").env("AGENT_COORD_PROGRAM", env!("CARGO_BIN_EXE_agent-coord"));
    let ran = env.finish(&mut shell).ok();
    for line in
        ["$ agent-coord claim first-claim", "claimed ", "heartbeat ", "- local/clone#first-claim active", "released "]
    {
        assert!(ran.stdout.contains(line), "{line} is missing\n{ran}");
    }
}

#[test]
fn a_console_block_is_read_as_commands_with_what_they_print() {
    let text = "x\n```console\n$ a b\none\ntwo\n$ c\n```\n```sh\nno\n```\n";
    let step = |command: &str, shown: &str| Step { command: command.to_owned(), shown: shown.to_owned() };
    assert_eq!(steps(text), [step("a b", "one\ntwo\n"), step("c", "")]);
}

#[test]
fn what_differs_from_run_to_run_is_shown_by_name() {
    let text = "store 42bbe60dd1905e9cd232c2e8823649af until 2026-12-01T07:25:40Z: 22 ms, fetched 3 s ago";
    assert_eq!(normalised(text), "store <id> until <time>: <n> ms, fetched <n> s ago");
}

/// Two people with a clone each of one repository, whose remote has an ordinary address.
fn two_clones() -> TestEnv {
    let env = TestEnv::new();
    let home = env.root().join("home");
    let bare = env.git().remote("served/acme/widgets.git");
    let address = "https://git.example/acme/widgets.git";
    let served = format!("url.file://{}/served/.insteadOf", env.root().display());
    env.git().run(&bare, &format!("config --global {served} https://git.example/"));
    for name in ["ada", "bob"] {
        env.git().run(&home, &format!("clone --quiet {address} {name}"));
        env.git().run(&home.join(name), "commit --quiet --allow-empty --message First");
    }
    env
}

fn check(env: &TestEnv, document: &str) {
    let text = std::fs::read_to_string(source(document)).expect("the document");
    let steps = steps(&text);
    assert!(!steps.is_empty(), "{document} shows nothing");
    let printed = run(env, &steps);
    assert_eq!(printed.len(), steps.len(), "{document}: every command is run");
    for (step, printed) in steps.iter().zip(printed) {
        assert_eq!(normalised(&printed), step.shown, "{document} shows something else than `{}` prints", step.command);
    }
}

/// Runs the commands in one shell, as a reader would, and returns what each printed on either stream.
fn run(env: &TestEnv, steps: &[Step]) -> Vec<String> {
    const MARK: &str = "==== next ====";
    let mut script = String::from("exec 2>&1\nstatus=0\n");
    for step in steps {
        // `$?` in the next command is that of this one.
        let _ = write!(script, "echo '{MARK}'\n(exit $status)\n{}\nstatus=$?\n", step.command);
    }
    let mut shell = env.program("bash", &env.root().join("home"));
    shell.args(["--norc", "-c", &script]);
    let ran = env.finish(&mut shell);
    ran.stdout.split(&format!("{MARK}\n")).skip(1).map(str::to_owned).collect()
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step { command: command.to_owned(), shown: String::new() }),
                (None, Some(step)) => step.shown.extend([line, "\n"]),
                (None, None) => panic!("a console block begins with a command: {line}"),
            },
            (false, _) => {}
        }
    }
    steps
}

/// Replaces ids, instants and durations by what the documents call them.
fn normalised(text: &str) -> String {
    let rules = [
        (r"\b[0-9a-f]{32}\b", "<id>"),
        (r"\b[0-9a-f]{40}\b", "<commit>"),
        (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "<time>"),
        (r"\b\d+ ms\b", "<n> ms"),
        (r"\b\d+ s ago\b", "<n> s ago"),
    ];
    rules.iter().fold(text.to_owned(), |text, (pattern, name)| {
        regex_lite::Regex::new(pattern).expect("a pattern").replace_all(&text, *name).into_owned()
    })
}

fn source(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}
