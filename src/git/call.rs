//! Running one git: a fixed program, a clean environment, a process group of its own, and a deadline
//! (design.md section 3.5).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal};

use super::GitError;
use super::output::Collected;
use super::redact::redact;
use crate::world::{Deadline, Environment};

/// Variables that would make a spawned git look at another repository, index or object store. It is what
/// `git rev-parse --local-env-vars` lists, without those that carry configuration (sandboxes pass credentials there).
const REPOSITORY_VARIABLES: [&str; 16] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_CONFIG",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_NAMESPACE",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
    "GIT_WORK_TREE",
];

/// How long a git that was asked to stop may take before it is killed.
const GRACE: Duration = Duration::from_millis(500);

/// The git to run and the environment to run it in.
#[derive(Debug, Clone)]
pub struct Git {
    program: PathBuf,
    environment: Environment,
}

impl Git {
    /// Finds git on `PATH`, absolute directories only.
    ///
    /// # Errors
    /// [`GitError::NotFound`].
    pub fn find(environment: &Environment) -> Result<Self, GitError> {
        let path = environment.raw("PATH").ok_or(GitError::NotFound)?;
        let program = std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| directory.join("git"))
            .find(|candidate| rustix::fs::access(candidate, rustix::fs::Access::EXEC_OK).is_ok() && candidate.is_file())
            .ok_or(GitError::NotFound)?;
        Ok(Self { program, environment: cleaned(environment) })
    }

    /// Returns the absolute path of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Makes ssh refuse to ask, unless the user chose a command of their own.
    pub fn with_silent_ssh(mut self, configured: bool) -> Self {
        let own = configured || self.environment.is_set("GIT_SSH_COMMAND") || self.environment.is_set("GIT_SSH");
        if !own {
            self.environment.set("GIT_SSH_COMMAND", "ssh -o BatchMode=yes");
        }
        self
    }

    /// Runs `call` to its end, or stops it at the deadline.
    ///
    /// # Errors
    /// [`GitError::Spawn`] when it cannot be started, [`GitError::TimedOut`] when it was stopped: what it had begun may
    /// have happened.
    pub fn run(&self, call: &Call<'_>, deadline: &Deadline<'_>) -> Result<Finished, GitError> {
        let timed_out = || GitError::TimedOut { command: call.name(), seconds: deadline.whole().as_secs() };
        if deadline.has_passed() {
            return Err(timed_out());
        }
        let mut child = self.spawn(call)?;
        let input = match (child.stdin.take(), &call.input) {
            (Some(pipe), Input::Bytes(bytes)) => Some(feed(pipe, bytes.clone())),
            _ => None,
        };
        let output = child.stdout.take().map(Collected::from);
        let errors = child.stderr.take().map(Collected::from);
        let (status, stopped) =
            wait(&mut child, deadline.remaining()).map_err(|error| GitError::Spawn(error.to_string()))?;
        drop(input);
        let stdout = output.map(Collected::finish).unwrap_or_default();
        let stderr = errors.map(Collected::finish).unwrap_or_default();
        if stopped {
            return Err(timed_out());
        }
        let stderr = redact(&String::from_utf8_lossy(&stderr));
        Ok(Finished { code: status.code(), signal: status.signal(), stdout, stderr })
    }

    fn spawn(&self, call: &Call<'_>) -> Result<Child, GitError> {
        let mut command = Command::new(&self.program);
        command.env_clear();
        command.envs(self.environment.iter());
        command.envs(call.variables.iter().map(|(name, value)| (name, value)));
        command.args(["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"]);
        command.args(["-c", "submodule.recurse=false", "-c", "maintenance.auto=false", "-c", "gc.auto=0"]);
        for (key, value) in &call.configuration {
            command.arg("-c").arg(format!("{key}={value}"));
        }
        if let Some(directory) = call.git_dir {
            let mut option = OsString::from("--git-dir=");
            option.push(directory);
            command.arg(option);
        }
        command.args(&call.arguments);
        if let Some(directory) = call.directory.or(call.git_dir) {
            command.current_dir(directory);
        }
        command.stdin(match &call.input {
            Input::None => Stdio::null(),
            Input::Bytes(_) => Stdio::piped(),
            Input::File(file) => file.try_clone().map_err(|error| GitError::Spawn(error.to_string()))?.into(),
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0);
        command.spawn().map_err(|error| GitError::Spawn(format!("{}: {error}", self.program.display())))
    }
}

/// One git command to run.
#[derive(Debug, Clone, Default)]
pub struct Call<'a> {
    git_dir: Option<&'a Path>,
    directory: Option<&'a Path>,
    configuration: Vec<(String, String)>,
    variables: Vec<(OsString, OsString)>,
    arguments: Vec<OsString>,
    input: Input,
}

/// What git reads.
#[derive(Debug, Clone, Default)]
enum Input {
    #[default]
    None,
    Bytes(Vec<u8>),
    File(Arc<File>),
}

impl<'a> Call<'a> {
    /// Returns a call of `git <subcommand>`.
    #[must_use]
    pub fn new(subcommand: &str) -> Self {
        Self { arguments: vec![subcommand.into()], ..Self::default() }
    }

    /// Names the repository; its directory is where git runs.
    #[must_use]
    pub fn in_repository(mut self, git_dir: &'a Path) -> Self {
        self.git_dir = Some(git_dir);
        self
    }

    /// Names the directory git runs in.
    #[must_use]
    pub fn in_directory(mut self, directory: &'a Path) -> Self {
        self.directory = Some(directory);
        self
    }

    /// Adds `-c key=value`.
    #[must_use]
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.configuration.push((key.into(), value.into()));
        self
    }

    /// Sets an environment variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(|argument| argument.as_ref().to_owned()));
        self
    }

    /// Feeds stdin; without it stdin is empty.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(input.into());
        self
    }

    /// Gives git a file as its stdin. Git shares the open file, and with it a flock.
    #[must_use]
    pub fn input_file(mut self, file: File) -> Self {
        self.input = Input::File(Arc::new(file));
        self
    }

    /// Returns the subcommand, for messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }
}

/// A git that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The exit code, absent when a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it said, secrets taken out.
    pub stderr: String,
}

impl Finished {
    /// Tells whether it ended with exit code 0.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.code == Some(0)
    }

    /// Returns stdout as text, undecodable bytes replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Returns stdout when it succeeded, the failure otherwise.
    ///
    /// # Errors
    /// [`GitError::Failed`].
    pub fn checked(self, command: &str) -> Result<Vec<u8>, GitError> {
        if self.succeeded() {
            Ok(self.stdout)
        } else {
            Err(GitError::Failed { command: command.to_owned(), message: self.last_words() })
        }
    }

    /// Returns what it said in one line, the most telling line first.
    #[must_use]
    pub fn last_words(&self) -> String {
        let telling = ["fatal: ", "error: ", "remote: "];
        let lines = || self.stderr.lines().map(str::trim).filter(|line| !line.is_empty());
        telling
            .iter()
            .find_map(|mark| lines().find(|line| line.starts_with(mark)))
            .or_else(|| lines().next())
            .map(|line| line.chars().filter(|character| !character.is_control()).take(300).collect())
            .unwrap_or_else(|| match (self.code, self.signal) {
                (Some(code), _) => format!("exit code {code}"),
                (None, Some(signal)) => format!("signal {signal}"),
                (None, None) => "no answer".to_owned(),
            })
    }
}

fn cleaned(environment: &Environment) -> Environment {
    let mut cleaned = environment.clone();
    for name in REPOSITORY_VARIABLES {
        cleaned.remove(name);
    }
    cleaned
        .set("LC_ALL", "C")
        .set("LANGUAGE", "C")
        .set("GIT_TERMINAL_PROMPT", "0")
        .set("GIT_ALLOW_PROTOCOL", "https:http:ssh:git:file")
        .set("GIT_OPTIONAL_LOCKS", "0");
    cleaned
}

/// Waits for `child`; past `limit` its process group is asked to stop, and killed after a grace.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<(ExitStatus, bool)> {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let (done, ended) = channel::<()>();
    let watchdog = std::thread::spawn(move || stop_when_late(group, &ended, limit));
    let status = child.wait();
    drop(done);
    let stopped = watchdog.join().unwrap_or(false);
    Ok((status?, stopped))
}

fn stop_when_late(group: Option<Pid>, ended: &Receiver<()>, limit: Duration) -> bool {
    if ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
        return false;
    }
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(group) = group {
            // The group may be gone already.
            let _ = rustix::process::kill_process_group(group, signal);
        }
        if ended.recv_timeout(GRACE) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    true
}

fn feed(mut pipe: impl Write + Send + 'static, input: Vec<u8>) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        // Git may end without reading all of it; its exit code says what that means.
        let _ = pipe.write_all(&input);
    })
}
