//! Reading and writing one small private file.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{FlockOperation, OFlags, flock};

/// More than any of these files grows to.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;
/// Whoever writes one of these files is done in well under a millisecond.
const ATTEMPTS: u32 = 200;
const PAUSE: Duration = Duration::from_millis(5);

/// Returns the text of a plain file of bounded size; `None` when there is none, or it is anything else.
///
/// Links are not followed and a pipe does not block: whoever can write into a git directory may have put one there.
pub fn read(path: &Path) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > SIZE_LIMIT {
        return None;
    }
    let mut text = String::new();
    file.take(SIZE_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Replaces the file at `path`: readers see the old text or the new one, never a part.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

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
    fn what_is_not_a_plain_small_file_counts_as_absent() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        assert_eq!(read(&file), None);
        write(&file, "text").unwrap();
        assert_eq!(read(&file).as_deref(), Some("text"));
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link), None, "a link is not followed");
        assert_eq!(read(directory.path()), None, "a directory is not read");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&file), None, "bytes that are no text are not read");
        File::create(&file).unwrap().set_len(SIZE_LIMIT + 1).unwrap();
        assert_eq!(read(&file), None, "a huge file is not read");
    }

    #[test]
    fn a_written_file_is_readable_by_its_owner_alone_and_leaves_nothing_beside_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deep/x");
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }

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
