//! Compares commands with bare git in one run, on one machine: medians, ratios and the budgets of design.md section 8.
//!
//! `cargo bench` runs it; `cargo bench -- --samples 5` is quick, `--check` fails when a budget is not kept.

#![allow(clippy::disallowed_methods, reason = "a benchmark looks at real time")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the table is the product")]
#![allow(missing_docs, reason = "a program, not a library")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

#[allow(dead_code, unused_imports, reason = "the tests use the rest of it")]
#[path = "../tests/it/support/mod.rs"]
mod support;

use support::TestEnv;
use support::git::{ROOT, file_url};

const DEFAULT_SAMPLES: usize = 31;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let given = arguments.iter().position(|argument| argument == "--samples");
    let samples = given.and_then(|at| arguments.get(at + 1)?.parse().ok()).unwrap_or(DEFAULT_SAMPLES);
    let mut table = Table::default();
    local_writes(samples, &mut table);
    for (others, name) in [(10, "10 other claims"), (1_000, "1,000 other claims")] {
        target_status(samples, others, name, &mut table);
    }
    broad_status(samples, &mut table);
    pre_commit(samples, &mut table);
    shared_claim(samples, &mut table);
    println!("{}", table.render(samples));
    let all_kept = table.rows.iter().all(|row| row.budget.is_kept(row.median, row.baseline));
    if arguments.iter().any(|argument| argument == "--check") && !all_kept {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    }
}

/// What is promised of one row.
enum Budget {
    /// Nothing: it is what others are compared with.
    Baseline,
    /// At most this long.
    Within(Duration),
    /// At most this many times the baseline.
    Times(f64),
    /// Both.
    TimesWithin(f64, Duration),
    /// At most this many KiB.
    Kibibytes(u64),
}

impl Budget {
    fn is_kept(&self, median: Measure, baseline: Option<Duration>) -> bool {
        let times = |limit: f64| ratio(median, baseline).is_none_or(|ratio| ratio <= limit);
        let within = |limit: Duration| matches!(median, Measure::Time(time) if time <= limit);
        match *self {
            Self::Baseline => true,
            Self::Within(limit) => within(limit),
            Self::Times(limit) => times(limit),
            Self::TimesWithin(limit, longest) => times(limit) && within(longest),
            Self::Kibibytes(limit) => matches!(median, Measure::Kibibytes(size) if size <= limit),
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Baseline => "-".to_owned(),
            Self::Within(limit) => format!("<= {} ms", limit.as_millis()),
            Self::Times(limit) => format!("<= {limit} x"),
            Self::TimesWithin(times, limit) => format!("<= {times} x and <= {} ms", limit.as_millis()),
            Self::Kibibytes(limit) => format!("<= {} MiB", limit / 1024),
        }
    }
}

#[derive(Clone, Copy)]
enum Measure {
    Time(Duration),
    Kibibytes(u64),
}

struct Row {
    what: String,
    median: Measure,
    baseline: Option<Duration>,
    budget: Budget,
}

#[derive(Default)]
struct Table {
    rows: Vec<Row>,
}

impl Table {
    fn add(&mut self, what: &str, median: Duration, baseline: Option<Duration>, budget: Budget) {
        self.rows.push(Row { what: what.to_owned(), median: Measure::Time(median), baseline, budget });
    }

    fn render(&self, samples: usize) -> String {
        let mut text = format!("Medians of {samples} whole processes each, taken in turns.\n\n");
        text.push_str("| what | median | x baseline | budget | kept |\n| --- | ---: | ---: | --- | --- |\n");
        for row in &self.rows {
            let median = match row.median {
                Measure::Time(time) => format!("{:.1} ms", time.as_secs_f64() * 1_000.0),
                Measure::Kibibytes(size) => format!("{} MiB", size.div_ceil(1024)),
            };
            let times = ratio(row.median, row.baseline).map_or("-".to_owned(), |ratio| format!("{ratio:.2}"));
            let kept = if row.budget.is_kept(row.median, row.baseline) { "yes" } else { "**no**" };
            let budget = row.budget.text();
            text.push_str(&format!("| {} | {median} | {times} | {budget} | {kept} |\n", row.what));
        }
        text
    }
}

fn ratio(median: Measure, baseline: Option<Duration>) -> Option<f64> {
    match median {
        Measure::Time(time) => baseline.map(|baseline| time.as_secs_f64() / baseline.as_secs_f64()),
        Measure::Kibibytes(_) => None,
    }
}

/// Makes the command of one sample.
type Sample<'a> = Box<dyn Fn(usize) -> Command + 'a>;

/// Runs all commands in turns, so that a busy moment of the machine meets all alike, and returns their medians.
fn medians(samples: usize, commands: &[Sample<'_>]) -> Vec<Duration> {
    let mut times = vec![Vec::new(); commands.len()];
    for number in 0..=samples {
        for (command, times) in commands.iter().zip(&mut times) {
            let mut command = command(number);
            let started = Instant::now();
            let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
            let took = started.elapsed();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{command:?} failed: {said}");
            // The first fills caches for the others.
            if number > 0 {
                times.push(took);
            }
        }
    }
    times.into_iter().map(median).collect()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn words(env: &TestEnv, directory: &Path, line: &str) -> Command {
    env.agent_coord(directory, line.split_whitespace())
}

/// One ref written by git alone, in a shape like ours.
fn update_ref(env: &TestEnv, clone: &Path, blob: &str, number: usize) -> Command {
    let mut command = env.program("git", clone);
    command.args(["update-ref", &format!("refs/bare/{number}"), blob]);
    command
}

fn local_writes(samples: usize, table: &mut Table) {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    let blob = env.git().feed(&clone, "hash-object -w --stdin", b"{}\n");
    let commands: [Sample<'_>; 5] = [
        Box::new(|number| update_ref(&env, &clone, &blob, number)),
        Box::new(|number| words(&env, &clone, &format!("claim t{number} --repo o/r --agent-id a"))),
        Box::new(|number| words(&env, &clone, &format!("heartbeat --agent-id a --repo o/r --target t{number}"))),
        Box::new(|number| words(&env, &clone, &format!("release t{number} --repo o/r --agent-id a"))),
        Box::new(|number| words(&env, &clone, &format!("claim e{number} --repo o/r --agent-id a --batch-id b1"))),
    ];
    let times = medians(samples, &commands);
    table.add("`git update-ref` of one ref", times[0], None, Budget::Baseline);
    for (what, time) in [("claim, this clone", times[1]), ("heartbeat, this clone", times[2])] {
        table.add(what, time, Some(times[0]), Budget::TimesWithin(3.0, ms(10)));
    }
    table.add("release, this clone", times[3], Some(times[0]), Budget::TimesWithin(3.0, ms(10)));
    table.add("claim with its event, this clone", times[4], Some(times[0]), Budget::TimesWithin(3.0, ms(10)));
}

fn target_status(samples: usize, others: usize, name: &str, table: &mut Table) {
    let env = TestEnv::new();
    let clone = with_claims(&env, others);
    let line = "status --repo o/r --target t7";
    let times = medians(samples, &[Box::new(|_| words(&env, &clone, line))]);
    table.add(&format!("`status --repo --target`, {name}"), times[0], None, Budget::Within(ms(8)));
}

fn broad_status(samples: usize, table: &mut Table) {
    let env = TestEnv::new();
    let clone = with_claims(&env, 10_000);
    let command = || words(&env, &clone, "status --json");
    let times = medians(samples, &[Box::new(|_| command())]);
    table.add("`status --json`, 10,000 claims, packed", times[0], None, Budget::Within(ms(200)));
    let size = Measure::Kibibytes(peak_memory(command()));
    let what = "memory of that".to_owned();
    table.rows.push(Row { what, median: size, baseline: None, budget: Budget::Kibibytes(64 * 1024) });
}

/// Returns the highest resident size seen while `command` ran, in KiB.
fn peak_memory(mut command: Command) -> u64 {
    let mut child = command.stdout(std::process::Stdio::null()).spawn().expect("the command starts");
    let mut peak = 0;
    while child.try_wait().expect("a child can be waited for").is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let size = line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0);
        peak = peak.max(size);
        std::thread::sleep(Duration::from_micros(300));
    }
    peak
}

fn pre_commit(samples: usize, table: &mut Table) {
    let env = TestEnv::new();
    let clone = with_claims(&env, 1_000);
    env.git().run(&clone, "checkout --quiet -b topic");
    let times = medians(samples, &[Box::new(|_| words(&env, &clone, "hook pre-commit"))]);
    table.add("pre-commit hook, 1,000 claims", times[0], None, Budget::Within(ms(30)));
}

fn shared_claim(samples: usize, table: &mut Table) {
    let env = TestEnv::new();
    let bare = env.git().remote("team.git");
    let url = file_url(&bare);
    let clone = env.git().clone(&url, "clone");
    env.coord(&clone, "init --remote origin --repo o/r").ok();
    // A claim is an object that the remote does not have yet, and so must be what it is compared with.
    let fresh = |number: usize| env.git().feed(&clone, "hash-object -w --stdin", claim(number).as_bytes());
    let blobs: Vec<String> = (0..=samples).map(fresh).collect();
    let push = |number: usize| {
        let blob = &blobs[number];
        let name = format!("refs/bare/{number}");
        let mut command = env.program("git", &clone);
        command.args(["push", "--quiet", &format!("--force-with-lease={name}:"), &url, &format!("{blob}:{name}")]);
        command
    };
    let commands: [Sample<'_>; 3] = [
        Box::new(push),
        Box::new(|number| words(&env, &clone, &format!("claim t{number} --agent-id a"))),
        Box::new(|number| words(&env, &clone, &format!("claim e{number} --agent-id a --batch-id b1"))),
    ];
    let times = medians(samples, &commands);
    table.add("`git push --force-with-lease` of one ref, file://", times[0], None, Budget::Baseline);
    table.add("claim of a free target, file://", times[1], Some(times[0]), Budget::Times(1.2));
    table.add("the same with its event, file://", times[2], Some(times[0]), Budget::Times(1.35));
}

/// Returns a clone that holds `count` claims, refs and objects packed.
fn with_claims(env: &TestEnv, count: usize) -> PathBuf {
    let clone = env.git().repository("clone");
    env.coord(&clone, "init --repo o/r").ok();
    let folder = env.path("records");
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut files = String::new();
    for number in 0..count {
        let file = folder.join(number.to_string());
        std::fs::write(&file, claim(number)).expect("a record can be written");
        files.push_str(&format!("{}\n", file.display()));
    }
    let blobs = env.git().feed(&clone, "hash-object -w --stdin-paths", files.as_bytes());
    let lines = blobs.lines().enumerate();
    let edits: String =
        lines.map(|(number, blob)| format!("create {ROOT}claims/o/r/t{number}.json {blob}\n")).collect();
    env.git().feed(&clone, "update-ref --stdin", edits.as_bytes());
    env.git().run(&clone, "pack-refs --all");
    env.git().run(&clone, "repack -a -d --quiet");
    clone
}

fn claim(number: usize) -> String {
    format!(
        "{{\n  \"schema_version\": 1,\n  \"repo\": \"o/r\",\n  \"target\": \"t{number}\",\n  \"agent_id\": \"w{number}\",\n  \
         \"branch\": \"feature/{number}\",\n  \"status\": \"active\",\n  \"claimed_at\": \"2026-11-30T21:27:16Z\",\n  \
         \"updated_at\": \"2026-11-30T21:27:16Z\",\n  \"expires_at\": \"2026-12-01T01:27:16Z\",\n  \"generation\": 1,\n  \
         \"$store\": {{\n    \"transaction_id\": \"{number:032x}\",\n    \"revision\": 1\n  }}\n}}\n"
    )
}
