//! An environment of its own for every test: a folder, a home, and nothing inherited.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use agent_coord::domain::time::Timestamp;
use agent_coord::world::{Clock, CountedRandomness, Environment, Randomness, SystemRandomness, World};
use chrono::DateTime;
use tempfile::TempDir;

use super::clock::WallClock;
use super::{Git, Ran};

/// The folder, home and environment of one test.
pub struct TestEnv {
    folder: Option<TempDir>,
    root: PathBuf,
    environment: Environment,
}

impl TestEnv {
    /// Returns a fresh environment without any `AGENT_COORD_*` or `GIT_*` of the machine.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("agent-coord-it-").tempdir().expect("a temporary folder");
        let root = folder.path().canonicalize().expect("the temporary folder exists");
        let home = root.join("home");
        std::fs::create_dir_all(home.join("tmp")).expect("a home");
        let config = home.join(".gitconfig");
        std::fs::write(&config, GIT_CONFIG).expect("a git configuration");
        let binary = Path::new(env!("CARGO_BIN_EXE_agent-coord"));
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = binary.parent().map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
        let mut environment = Environment::default();
        environment
            .set("PATH", std::env::join_paths(folders).expect("PATH can be joined"))
            .set("HOME", &home)
            .set("XDG_CONFIG_HOME", home.join(".config"))
            .set("TMPDIR", home.join("tmp"))
            .set("GIT_CONFIG_GLOBAL", &config)
            .set("GIT_CONFIG_NOSYSTEM", "1")
            .set("LC_ALL", "C")
            .set("TZ", "UTC")
            .set("USER", "tester")
            .set("LOGNAME", "tester")
            .set("TERM", "dumb");
        Self { folder: Some(folder), root, environment }
    }

    /// Returns the folder of this test.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns `name` inside the folder of this test.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the environment that commands are given.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Sets a variable for every command that follows.
    pub fn set(&mut self, name: &str, value: impl AsRef<OsStr>) -> &mut Self {
        self.environment.set(name, value.as_ref());
        self
    }

    /// Returns the git of this environment.
    pub fn git(&self) -> Git<'_> {
        Git::of(self)
    }

    /// Returns any program, to be run in `directory` with this environment and nothing else.
    pub fn program(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().envs(self.environment.iter()).current_dir(directory);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the built `agent-coord`, to be run in `directory`.
    pub fn agent_coord<S: AsRef<OsStr>>(&self, directory: &Path, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = self.program(env!("CARGO_BIN_EXE_agent-coord"), directory);
        command.args(arguments);
        command
    }

    /// Runs the built `agent-coord` to its end.
    pub fn run<S: AsRef<OsStr>>(&self, directory: &Path, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.finish(&mut self.agent_coord(directory, arguments))
    }

    /// Runs the built `agent-coord` with a command line that is split at spaces.
    pub fn coord(&self, directory: &Path, line: &str) -> Ran {
        self.run(directory, line.split_whitespace())
    }

    /// Runs `command` to its end.
    pub fn finish(&self, command: &mut Command) -> Ran {
        let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
        Ran::of(&output, &self.root.to_string_lossy())
    }

    /// Runs one command in this process, its clock standing at `now` and its randomness counted from `seed`.
    pub fn in_process(&self, directory: &Path, now: &str, seed: u64, line: &str) -> Ran {
        let clock = WallClock::standing_at(instant(now));
        self.in_world(directory, Box::new(clock), Box::new(CountedRandomness::from_seed(seed)), line)
    }

    /// Runs one command in this process as if it were `seconds_ago`; how a dead holder comes to be without waiting.
    pub fn in_the_past(&self, directory: &Path, seconds_ago: i64, line: &str) -> Ran {
        let clock = WallClock::late_by(seconds_ago);
        self.in_world(directory, Box::new(clock), Box::new(SystemRandomness), line)
    }

    fn in_world(&self, directory: &Path, clock: Box<dyn Clock>, ids: Box<dyn Randomness>, line: &str) -> Ran {
        let (stdout, stderr) = (Captured::default(), Captured::default());
        let mut world = World {
            arguments: line.split_whitespace().map(Into::into).collect(),
            environment: self.environment.clone(),
            directory: directory.to_owned(),
            stdin: Box::new(io::empty()),
            stdout: Box::new(stdout.clone()),
            stderr: Box::new(stderr.clone()),
            colour: false,
            clock,
            ids,
        };
        let code = i32::from(agent_coord::run(&mut world));
        let root = self.root.to_string_lossy().into_owned();
        Ran { code, stdout: stdout.text(&root), stderr: stderr.text(&root) }
    }
}

/// With `AGENT_COORD_TEST_KEEP` set, the folder of a failed test stays for looking at what went wrong.
impl Drop for TestEnv {
    fn drop(&mut self) {
        if std::thread::panicking() && std::env::var_os("AGENT_COORD_TEST_KEEP").is_some() {
            let kept = self.folder.take().map(TempDir::keep);
            eprintln!("kept {kept:?}");
        }
    }
}

const GIT_CONFIG: &str = "[user]\n\tname = Tester\n\temail = tester@example.invalid\n[init]\n\tdefaultBranch = main\n\
                          [advice]\n\tdetachedHead = false\n[commit]\n\tgpgSign = false\n\
                          [protocol \"file\"]\n\tallow = always\n";

/// Parses an instant spelled as records spell it.
pub fn instant(text: &str) -> Timestamp {
    let parsed = DateTime::parse_from_rfc3339(text).unwrap_or_else(|error| panic!("{text} is no instant: {error}"));
    Timestamp::from(parsed.to_utc())
}

/// A stream that remembers what was written.
#[derive(Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    fn text(&self, root: &str) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).replace(root, "$TEST_ENV")
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
