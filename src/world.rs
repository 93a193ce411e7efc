//! The one home of everything that is not a value: arguments, environment, streams, clocks and randomness.
//!
//! The binary makes [`World::real`]; tests make their own with a stepped clock and counted ids, so that a whole
//! command can run in-process and its output can be compared byte for byte.

#![expect(clippy::disallowed_methods, reason = "this is the one home of what clippy.toml bans")]

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::domain::time::Timestamp;

/// Everything a command is given from outside.
pub struct World {
    /// The arguments after the program's name.
    pub arguments: Vec<OsString>,
    /// The process environment, read once.
    pub environment: Environment,
    /// The directory the command was started in.
    pub directory: PathBuf,
    /// Where input comes from (`--launch-prompt -`, hook stdin).
    pub stdin: Box<dyn Read + Send>,
    /// Data goes here.
    pub stdout: Box<dyn Write + Send>,
    /// Everything else goes here.
    pub stderr: Box<dyn Write + Send>,
    /// Whether stdout may carry colours: it is a terminal and nothing (`NO_COLOR`, `TERM=dumb`) speaks against it.
    pub colour: bool,
    /// Time.
    pub clock: Box<dyn Clock>,
    /// Randomness.
    pub ids: Box<dyn Randomness>,
}

impl World {
    /// Returns the world of this process.
    #[must_use]
    pub fn real() -> Self {
        let environment = Environment::of_process();
        let colour = std::io::IsTerminal::is_terminal(&io::stdout())
            && !environment.is_set("NO_COLOR")
            && environment.text("TERM").as_deref() != Some("dumb");
        Self {
            arguments: std::env::args_os().skip(1).collect(),
            environment,
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            stdin: Box::new(io::stdin()),
            stdout: Box::new(io::stdout()),
            stderr: Box::new(io::stderr()),
            colour,
            clock: Box::new(SystemClock::start()),
            ids: Box::new(SystemRandomness),
        }
    }
}

/// The process environment as a value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    program: Option<PathBuf>,
}

impl Environment {
    /// Returns a copy of this process's environment.
    #[must_use]
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect(), program: std::env::current_exe().ok() }
    }

    /// Returns the file of the program that runs; absent in an environment that a test made.
    #[must_use]
    pub fn program(&self) -> Option<&std::path::Path> {
        self.program.as_deref()
    }

    /// Returns the raw value of `name`.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Returns the value of `name` as text, undecodable bytes replaced; absent when it is blank
    /// (config-and-security.md: "set" means not empty after trimming).
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.raw(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.trim().is_empty())
    }

    /// Tells whether `name` is present and not empty.
    #[must_use]
    pub fn is_set(&self, name: &str) -> bool {
        self.raw(name).is_some_and(|value| !value.is_empty())
    }

    /// Sets `name`; used by tests and by commands that run another in a world of its own.
    pub fn set(&mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> &mut Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// Removes `name`.
    pub fn remove(&mut self, name: &str) -> &mut Self {
        self.variables.remove(OsStr::new(name));
        self
    }

    /// Iterates over all variables, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

/// Time as a command sees it.
pub trait Clock: Send + Sync {
    /// Returns the wall clock, for what is written into records.
    fn now(&self) -> Timestamp;
    /// Returns the time since some fixed instant of this process, for deadlines and pauses.
    fn elapsed(&self) -> Duration;
    /// Returns the time since boot, sleep included, with the id of that boot; `None` where the system has neither.
    fn boot(&self) -> Option<BootTime>;
    /// Waits. A stepped clock only moves itself.
    fn pause(&self, duration: Duration);
}

/// An instant on the boot clock. Instants of different boots do not compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootTime {
    /// The system's id of the boot the instant belongs to.
    pub boot_id: String,
    /// Time since that boot.
    pub since_boot: Duration,
}

/// The machine's own clocks.
pub struct SystemClock {
    started: Instant,
}

impl SystemClock {
    /// Returns the system clock, its [`Clock::elapsed`] at zero.
    #[must_use]
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::from(chrono::Utc::now())
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn boot(&self) -> Option<BootTime> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let spec = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let spec = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let seconds = u64::try_from(spec.tv_sec).ok()?;
        let nanos = u32::try_from(spec.tv_nsec).ok()?;
        Some(BootTime { boot_id, since_boot: Duration::new(seconds, nanos) })
    }

    fn pause(&self, duration: Duration) {
        std::thread::sleep(duration);
    }
}

/// Where random bits come from.
pub trait Randomness: Send + Sync {
    /// Fills `buffer` with random bytes.
    fn fill(&self, buffer: &mut [u8]);

    /// Returns `N` random bytes in lower-case hex.
    fn hex(&self, bytes: usize) -> String {
        let mut buffer = vec![0; bytes];
        self.fill(&mut buffer);
        buffer.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// The operating system's random bits.
pub struct SystemRandomness;

impl Randomness for SystemRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        // The system's generator fails only where no process could start either.
        getrandom::fill(buffer).expect("the operating system gives random bytes");
    }
}

/// A clock for tests: it stands still until it is moved or a pause moves it.
pub struct SteppedClock {
    wall: Mutex<Timestamp>,
    elapsed: Mutex<Duration>,
}

impl SteppedClock {
    /// Returns a clock that stands at `now`.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self { wall: Mutex::new(now), elapsed: Mutex::new(Duration::ZERO) }
    }

    /// Moves the clock on.
    pub fn advance(&self, duration: Duration) {
        let mut wall = self.wall.lock().expect("no test panics while it holds the clock");
        *wall = wall.plus(duration);
        *self.elapsed.lock().expect("no test panics while it holds the clock") += duration;
    }
}

impl Clock for SteppedClock {
    fn now(&self) -> Timestamp {
        *self.wall.lock().expect("no test panics while it holds the clock")
    }

    fn elapsed(&self) -> Duration {
        *self.elapsed.lock().expect("no test panics while it holds the clock")
    }

    fn boot(&self) -> Option<BootTime> {
        Some(BootTime { boot_id: "stepped".to_owned(), since_boot: self.elapsed() })
    }

    fn pause(&self, duration: Duration) {
        self.advance(duration);
    }
}

impl<T: Clock + ?Sized> Clock for std::sync::Arc<T> {
    fn now(&self) -> Timestamp {
        (**self).now()
    }
    fn elapsed(&self) -> Duration {
        (**self).elapsed()
    }
    fn boot(&self) -> Option<BootTime> {
        (**self).boot()
    }
    fn pause(&self, duration: Duration) {
        (**self).pause(duration);
    }
}

/// Counted "random" bytes for tests: each call differs from the last, and every run is the same.
#[derive(Default)]
pub struct CountedRandomness {
    next: AtomicU64,
}

impl CountedRandomness {
    /// Returns a source that starts after `seed`.
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self { next: AtomicU64::new(seed) }
    }
}

impl Randomness for CountedRandomness {
    fn fill(&self, buffer: &mut [u8]) {
        let count = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        for (index, byte) in buffer.iter_mut().rev().enumerate() {
            *byte = count.checked_shr(8 * u32::try_from(index).unwrap_or(u32::MAX)).unwrap_or(0).to_le_bytes()[0];
        }
    }
}

/// When a command must have answered.
#[derive(Clone, Copy)]
pub struct Deadline<'clock> {
    clock: &'clock dyn Clock,
    at: Duration,
    whole: Duration,
}

impl<'clock> Deadline<'clock> {
    /// Returns the deadline `whole` from now.
    #[must_use]
    pub fn after(clock: &'clock dyn Clock, whole: Duration) -> Self {
        Self { clock, at: clock.elapsed().saturating_add(whole), whole }
    }

    /// Returns how long is left; zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.at.saturating_sub(self.clock.elapsed())
    }

    /// Returns an earlier deadline of the same command: a fifth of what is left, two seconds at most, is kept back for
    /// finding out what happened.
    #[must_use]
    pub fn with_reserve(&self) -> Self {
        let reserve = (self.remaining() / 5).min(Duration::from_secs(2));
        Self { at: self.at.saturating_sub(reserve), ..*self }
    }

    /// Tells whether it has passed.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Returns how long the command had in all, for messages.
    #[must_use]
    pub fn whole(&self) -> Duration {
        self.whole
    }

    /// Waits for `duration`, but not past the deadline.
    pub fn pause(&self, duration: Duration) {
        let duration = duration.min(self.remaining());
        if !duration.is_zero() {
            self.clock.pause(duration);
        }
    }

    /// Returns the clock it is read from.
    #[must_use]
    pub fn clock(&self) -> &'clock dyn Clock {
        self.clock
    }
}
