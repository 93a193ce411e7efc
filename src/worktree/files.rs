//! Changing one small private file in turn with other processes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

pub use crate::git::files::{read, write};

/// Whoever writes one of these files is done in well under a millisecond.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Makes an empty file and tells whether it was not there before. Where it cannot be made, everybody is the first.
#[must_use]
pub fn is_first(path: &Path) -> bool {
    if let Some(directory) = path.parent() {
        // A failure shows at the next step.
        let _ = std::fs::create_dir_all(directory);
    }
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    made.map_or_else(|error| error.kind() != io::ErrorKind::AlreadyExists, |_| true)
}

/// Runs `work` while no other process runs one on the same file.
///
/// The kernel gives the turn back when a process dies, so nothing is left behind.
///
/// # Errors
/// When the directory cannot be written, another process keeps its turn for a second, or `work` fails.
pub fn in_turn<T>(path: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    std::fs::create_dir_all(directory)?;
    let turn = path.with_extension("turn");
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or_default();
    let turn =
        OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(turn).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot write in {}: {error}", directory.display()))
        })?;
    wait_for_turn(&turn)?;
    work()
}

fn wait_for_turn(turn: &File) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match flock(turn.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => std::thread::sleep(PAUSE),
            // A file system without flock: the rename still keeps the file whole.
            Err(rustix::io::Errno::NOTSUP | rustix::io::Errno::NOSYS | rustix::io::Errno::NOLCK) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "another agent-coord command keeps a private file busy; try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_do_not_overlap() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("count");
        write(&file, "0").unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    in_turn(&file, || {
                        let count: u32 = read(&file).unwrap().parse().unwrap();
                        write(&file, &(count + 1).to_string())
                    })
                    .unwrap();
                });
            }
        });
        assert_eq!(read(&file).as_deref(), Some("8"));
    }
}
