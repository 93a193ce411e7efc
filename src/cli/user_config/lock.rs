//! The lock beside the user file: readers share it, a writer has it alone (config-and-security.md section 5).

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::checks::{self, plain, refuse};
use crate::error::CommandError;
use crate::world::{Clock, Deadline};

const PATIENCE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct ConfigLock {
    _file: File,
}

/// Returns the lock of the file called `name` in a directory without links.
#[must_use]
pub fn lock_file(directory: &Path, name: &std::ffi::OsStr) -> PathBuf {
    let digest = Sha256::digest(directory.join(name).as_os_str().as_bytes());
    let hex: String = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    directory.join(format!(".agent-coord-config-{hex}.lock"))
}

/// Shares the lock for reading, when there is one.
///
/// # Errors
/// When the lock file is not safe, or a writer keeps it for longer than two seconds.
pub fn share(path: &Path, clock: &dyn Clock) -> Result<Option<ConfigLock>, CommandError> {
    let flags = flags();
    match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => take(file, path, Mode::Read, clock).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(cannot_open(path, Mode::Read, &error)),
    }
}

/// Takes the lock for writing, making it when it is not there.
///
/// # Errors
/// When the lock file is not safe, or somebody keeps it for longer than two seconds.
pub fn own(path: &Path, clock: &dyn Clock) -> Result<ConfigLock, CommandError> {
    let open = OpenOptions::new().read(true).write(true).create(true).mode(0o600).custom_flags(flags()).open(path);
    let file = open.map_err(|error| cannot_open(path, Mode::Write, &error))?;
    take(file, path, Mode::Write, clock)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
}

impl Mode {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

fn flags() -> i32 {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    i32::try_from(flags.bits()).unwrap_or_default()
}

fn take(file: File, path: &Path, mode: Mode, clock: &dyn Clock) -> Result<ConfigLock, CommandError> {
    checks::check_file(&file, path)?;
    if mode == Mode::Write {
        // A strict umask may have taken away what the owner needs.
        file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| cannot_acquire(path, mode, &error))?;
    }
    let operation = match mode {
        Mode::Read => FlockOperation::NonBlockingLockShared,
        Mode::Write => FlockOperation::NonBlockingLockExclusive,
    };
    let deadline = Deadline::after(clock, PATIENCE);
    loop {
        match flock(file.as_fd(), operation) {
            Ok(()) => return Ok(ConfigLock { _file: file }),
            Err(Errno::WOULDBLOCK | Errno::INTR) if deadline.has_passed() => {
                let (mode, path) = (mode.name(), path.display());
                return Err(refuse(&format!("timed out acquiring config {mode} lock after 2 seconds: {path}")));
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => deadline.pause(PAUSE),
            Err(error) => return Err(cannot_acquire(path, mode, &error.into())),
        }
    }
}

fn cannot_open(path: &Path, mode: Mode, error: &io::Error) -> CommandError {
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
        return refuse(&format!("config lock must not be a symlink: {}", path.display()));
    }
    cannot_acquire(path, mode, error)
}

fn cannot_acquire(path: &Path, mode: Mode, error: &io::Error) -> CommandError {
    refuse(&format!("cannot acquire config {} lock {}: {}", mode.name(), path.display(), plain(error)))
}

#[cfg(test)]
mod tests {
    use super::super::tests::SafeFolder;
    use super::*;
    use crate::world::SteppedClock;
    use std::os::unix::fs::symlink;

    fn clock() -> SteppedClock {
        SteppedClock::at(crate::domain::time::Timestamp::parse_iso("2026-12-01T00:00:00Z").unwrap())
    }

    #[test]
    fn a_lock_is_named_after_the_place_of_its_file() {
        let path = lock_file(Path::new("/c"), "env".as_ref());
        let hex: String = Sha256::digest(b"/c/env").iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(path, Path::new("/c").join(format!(".agent-coord-config-{hex}.lock")));
    }

    #[test]
    fn readers_share_and_a_writer_waits_for_two_seconds() {
        let folder = SafeFolder::new();
        let path = folder.path("lock");
        assert!(share(&path, &clock()).unwrap().is_none(), "a reader makes no lock");
        drop(own(&path, &clock()).unwrap());
        let first = share(&path, &clock()).unwrap();
        let second = share(&path, &clock()).unwrap();
        let clock = clock();
        let refused = own(&path, &clock).unwrap_err().message;
        assert_eq!(refused, format!("timed out acquiring config write lock after 2 seconds: {}", path.display()));
        assert!(clock.elapsed() >= PATIENCE);
        drop((first, second));
        let _alone = own(&path, &clock).unwrap();
        assert!(share(&path, &clock).unwrap_err().message.starts_with("timed out acquiring config read lock"));
    }

    #[test]
    fn a_lock_is_as_private_as_the_file() {
        let folder = SafeFolder::new();
        let link = folder.path("link");
        symlink("elsewhere", &link).unwrap();
        let refused = format!("config lock must not be a symlink: {}", link.display());
        assert_eq!(own(&link, &clock()).unwrap_err().message, refused);
        assert_eq!(share(&link, &clock()).unwrap_err().message, refused);
        let open = folder.file("open", "");
        fs::set_permissions(&open, Permissions::from_mode(0o666)).unwrap();
        assert!(own(&open, &clock()).unwrap_err().message.starts_with("user config permissions are insecure"));
    }
}
