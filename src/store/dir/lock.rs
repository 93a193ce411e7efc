//! `<file>.lock`: an exclusive flock that every writer of a record takes, and that is left behind.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::layout::{no_follow, plain};
use crate::store::{StoreError, StoreErrorKind};
use crate::world::Deadline;

const PAUSE: Duration = Duration::from_millis(2);

/// A lock that is held; the system gives it back when this is dropped or the process dies.
pub(super) struct Lock {
    _file: File,
}

/// Locks the record whose file is `record`, whose directory exists.
///
/// # Errors
/// When the lock file cannot be opened, or is still another's when the deadline has passed.
pub(super) fn take(record: &Path, deadline: &Deadline<'_>) -> Result<Lock, StoreError> {
    let path = lock_file(record);
    let failed = |error: &io::Error| {
        let message = format!("cannot lock {}: {}", path.display(), plain(error));
        StoreError::new(StoreErrorKind::Broken, message)
    };
    loop {
        let file = open(&path).map_err(|error| failed(&error))?;
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) if is_still_there(&file, &path).map_err(|error| failed(&error))? => return Ok(Lock { _file: file }),
            // Somebody took the lock file away: whoever comes now locks another one.
            Ok(()) => continue,
            Err(Errno::WOULDBLOCK | Errno::INTR) => {}
            Err(error) => return Err(failed(&error.into())),
        }
        if deadline.has_passed() {
            let seconds = deadline.whole().as_secs();
            let message = format!("another process kept {} locked for {seconds} s", path.display());
            return Err(StoreError::new(StoreErrorKind::Unreachable, message).with_hint(
                "the lock ends with the process that holds it; try again, or see what that process waits for",
            ));
        }
        deadline.pause(PAUSE);
    }
}

fn lock_file(record: &Path) -> PathBuf {
    let mut name = OsString::from(record);
    name.push(".lock");
    PathBuf::from(name)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = no_follow();
    let file = OpenOptions::new().read(true).write(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn is_still_there(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
