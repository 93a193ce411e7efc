//! Writing the mirror of a trail: one file that outlives the store's own copies (cli-contract.md section 8.7).

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::App;
use crate::domain::log::{Row, mirror};

/// The mirror's name in its directory.
pub const NAME: &str = "log.tsv";
const LOCK_PAUSE: Duration = Duration::from_millis(20);

impl App<'_> {
    /// Adds the rows that the mirror in `root` does not hold yet. Returns how many those are, and the mirror's path.
    ///
    /// Readers see the old file or the new one, never a part; two writers take turns.
    ///
    /// # Errors
    /// When the directory cannot be made, read or written, or another writer keeps its turn past the deadline.
    pub fn write_mirror(&self, root: &Path, rows: &[Row]) -> io::Result<(usize, PathBuf)> {
        let path = root.join(NAME);
        std::fs::create_dir_all(root)?;
        let _turn = self.mirror_turn(&root.join(format!("{NAME}.lock")))?;
        let existing = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            answer => answer?,
        };
        let Some((text, added)) = mirror::merged(&existing, rows) else { return Ok((0, path)) };
        let temporary = root.join(format!("{NAME}.tmp-{}-{}", std::process::id(), self.ids.hex(8)));
        let written = replace(&temporary, &path, &text);
        if written.is_err() {
            // The first error is the one to report.
            let _ = std::fs::remove_file(&temporary);
        }
        written?;
        sync_directory(root)?;
        Ok((added, path))
    }

    /// Takes the turn, which the kernel gives back when the process ends.
    fn mirror_turn(&self, lock: &Path) -> io::Result<File> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(lock)?;
        loop {
            match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(file),
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) if !self.deadline.has_passed() => {
                    self.deadline.pause(LOCK_PAUSE);
                }
                Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "another agent-coord log --sync is at it"));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn replace(temporary: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).open(temporary)?;
    match std::fs::metadata(path) {
        Ok(old) => file.set_permissions(old.permissions())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    file.write_all(text)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Makes the rename last. Not every file system can do that for a directory.
fn sync_directory(root: &Path) -> io::Result<()> {
    match File::open(root)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => Ok(()),
        answer => answer,
    }
}
