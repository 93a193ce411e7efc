//! Replacing and removing one file: a reader, and a machine that comes back after a crash, sees the old state or the new.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::layout::no_follow;
use crate::world::Randomness;

/// The longest name most file systems take.
const NAME_LIMIT: usize = 255;
/// A name left behind by a killed process may be met again where random bits are counted.
const NAMES_TRIED: u32 = 16;

/// How far a change got before it failed.
#[derive(Debug)]
pub(super) enum Failed {
    /// The file is as it was.
    Before(io::Error),
    /// The change is there, but may not outlive a crash.
    After(io::Error),
}

/// Writes `bytes` to `file`, keeping its mode when it is there.
pub(super) fn replace(file: &Path, bytes: &[u8], ids: &dyn Randomness) -> Result<(), Failed> {
    let temporary = Temporary::create(file, ids).map_err(Failed::Before)?;
    temporary.fill(bytes, mode_of(file)).map_err(Failed::Before)?;
    temporary.persist(file).map_err(Failed::Before)?;
    sync_directory(file).map_err(Failed::After)
}

/// Removes `file`.
pub(super) fn remove(file: &Path) -> Result<(), Failed> {
    fs::remove_file(file).map_err(Failed::Before)?;
    sync_directory(file).map_err(Failed::After)
}

fn mode_of(file: &Path) -> Option<u32> {
    fs::symlink_metadata(file).ok().map(|metadata| metadata.permissions().mode() & 0o7777)
}

/// A file beside the one that is to be replaced; removed unless it took its place.
struct Temporary {
    path: PathBuf,
    file: File,
}

impl Temporary {
    fn create(file: &Path, ids: &dyn Randomness) -> io::Result<Self> {
        let mut last = io::Error::from(ErrorKind::AlreadyExists);
        for _ in 0..NAMES_TRIED {
            let path = temporary_name(file, &ids.hex(8));
            match OpenOptions::new().write(true).create_new(true).mode(0o666).custom_flags(no_follow()).open(&path) {
                Ok(file) => return Ok(Self { path, file }),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn fill(&self, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        if let Some(mode) = mode {
            self.file.set_permissions(Permissions::from_mode(mode))?;
        }
        (&self.file).write_all(bytes)?;
        self.file.sync_all()
    }

    fn persist(&self, file: &Path) -> io::Result<()> {
        fs::rename(&self.path, file)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename nothing is left under this name.
        let _ = fs::remove_file(&self.path);
    }
}

/// Returns `.<name>.tmp-<pid>-<random>`; a name too long for that is cut.
fn temporary_name(file: &Path, random: &str) -> PathBuf {
    let ending = format!(".tmp-{}-{random}", std::process::id());
    let name = file.file_name().unwrap_or_default().as_bytes();
    let kept = name.len().min(NAME_LIMIT - 1 - ending.len());
    let name = [b".", &name[..kept], ending.as_bytes()].concat();
    file.with_file_name(OsStr::from_bytes(&name))
}

/// Makes a rename or removal last. Some file systems cannot, and say so.
fn sync_directory(file: &Path) -> io::Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error) if !is_unsupported(&error) => Err(error),
        _ => Ok(()),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    let unsupported = [Errno::INVAL, Errno::NOTSUP, Errno::NOSYS, Errno::BADF, Errno::ISDIR, Errno::ACCESS];
    unsupported.iter().any(|number| error.raw_os_error() == Some(number.raw_os_error()))
}
