//! What must be true of every directory and record below the root, checked without following links.
//!
//! The root itself belongs to whoever names it and may be a link. The checks look first and use afterwards: they guard
//! against a tree that is not what it seems, not against somebody who rewrites it at the same moment.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use sha2::{Digest, Sha256};

use crate::domain::path::RecordPath;
use crate::domain::record::{Annotations, Content, Stored, Version};
use crate::store::content::{self, RESERVED};
use crate::store::{RecordFault, StoreError, StoreErrorKind};

/// More than any record is meant to have; what is larger is not read into memory.
const SIZE_LIMIT: usize = 16 * 1024 * 1024;

/// Returns where the record of `path` lies.
///
/// # Errors
/// `.` and `..` are names to a record path, but places to a file system.
pub(super) fn file_of(root: &Path, path: &RecordPath) -> Result<PathBuf, StoreError> {
    if path.components().any(|part| part == ".") {
        return Err(StoreError::new(StoreErrorKind::Policy, format!("unsafe state path: {path}")));
    }
    Ok(root.join(path.as_str()))
}

/// Reads the record at `path`; `None` = it is not there.
pub(super) fn read(root: &Path, path: &RecordPath) -> Result<Option<Stored>, StoreError> {
    let Some(file) = find(root, path)? else { return Ok(None) };
    let (bytes, version) = read_all(file).map_err(|error| unreadable(path, &error))?;
    let content = match bytes {
        Some(bytes) => without_reserved(content::parse(&bytes)),
        None => Content::Malformed(format!("record exceeds {SIZE_LIMIT} bytes")),
    };
    Ok(Some(Stored { path: path.clone(), content, annotations: Annotations::default(), version }))
}

/// Returns the version of the record at `path`; `None` = it is not there.
pub(super) fn version(root: &Path, path: &RecordPath) -> Result<Option<Version>, StoreError> {
    let Some(file) = find(root, path)? else { return Ok(None) };
    let (_, version) = read_all(file).map_err(|error| unreadable(path, &error))?;
    Ok(Some(version))
}

/// Opens the file of a record, every directory above it checked; `None` = it is not there.
pub(super) fn find(root: &Path, path: &RecordPath) -> Result<Option<File>, StoreError> {
    let file = file_of(root, path)?;
    if check_directories(root, path)? { open(&file, path) } else { Ok(None) }
}

fn without_reserved(mut content: Content) -> Content {
    if let Content::Object(members) = &mut content {
        members.shift_remove(RESERVED);
    }
    content
}

/// Tells whether all directories above a record are there.
fn check_directories(root: &Path, path: &RecordPath) -> Result<bool, StoreError> {
    if !check_root(root)? {
        return Ok(false);
    }
    directories_above(path)
        .try_fold(true, |present, directory| Ok(present && check_directory(root, &directory, RECORD_SEARCH)?))
}

/// Returns `claims`, `claims/o`, `claims/o/r` for `claims/o/r/1.json`.
fn directories_above(path: &RecordPath) -> impl Iterator<Item = String> {
    let text = path.as_str();
    text.match_indices('/').map(|(at, _)| text[..at].to_owned())
}

/// Tells whether the root is there; it may be a link to a directory.
pub(super) fn check_root(root: &Path) -> Result<bool, StoreError> {
    let refuse = |why: &str| {
        let message = format!("state root is not accessible: {} ({why})", root.display());
        Err(StoreError::new(StoreErrorKind::Broken, message))
    };
    match fs::metadata(root) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => refuse("it is not a directory"),
        Err(error) if error.kind() == ErrorKind::NotFound && fs::symlink_metadata(root).is_err() => Ok(false),
        Err(error) => refuse(&plain(&error)),
    }
}

/// How a directory that cannot be searched is named in the error.
type Search = &'static str;
pub(super) const RECORD_SEARCH: Search = "state record path";
pub(super) const PREFIX_SEARCH: Search = "state prefix";

/// Tells whether the directory at `relative` below the root is there.
pub(super) fn check_directory(root: &Path, relative: &str, search: Search) -> Result<bool, StoreError> {
    match fs::symlink_metadata(root.join(relative)) {
        Ok(metadata) if metadata.is_symlink() => Err(broken(relative, "is a symlink", RecordFault::UnderSymlink)),
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(broken(relative, "is not a directory", RecordFault::UnderNonDirectory)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if is_too_long(&error) => Err(too_long(relative)),
        Err(error) => Err(unsearchable(search, relative, &error)),
    }
}

pub(super) fn unsearchable(search: Search, relative: &str, error: &io::Error) -> StoreError {
    let reason =
        if error.kind() == ErrorKind::PermissionDenied { String::new() } else { format!(" ({})", plain(error)) };
    let message = format!("{search} is not readable or searchable: {relative}{reason}");
    StoreError::new(StoreErrorKind::Record(RecordFault::NotReadable), message)
}

/// Checks that what lies at a record's place is a file; `false` = nothing is there.
pub(super) fn check_file(found: io::Result<Metadata>, path: &RecordPath) -> Result<bool, StoreError> {
    match found {
        Ok(metadata) if metadata.is_symlink() => Err(broken(path.as_str(), "is a symlink", RecordFault::Symlink)),
        Ok(metadata) if metadata.is_file() => Ok(true),
        Ok(_) => Err(broken(path.as_str(), "is not a regular file", RecordFault::NotRegular)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if is_too_long(&error) => Err(too_long(path.as_str())),
        Err(error) => Err(unsearchable(RECORD_SEARCH, path.as_str(), &error)),
    }
}

fn open(file: &Path, path: &RecordPath) -> Result<Option<File>, StoreError> {
    if !check_file(fs::symlink_metadata(file), path)? {
        return Ok(None);
    }
    match OpenOptions::new().read(true).custom_flags(no_follow()).open(file) {
        Ok(opened) if check_file(opened.metadata(), path)? => Ok(Some(opened)),
        Ok(_) => Ok(None),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) if is_loop(&error) => Err(broken(path.as_str(), "is a symlink", RecordFault::Symlink)),
        Err(error) => Err(unreadable(path, &error)),
    }
}

/// Returns the flags of every open below the root: no links, and a pipe does not block.
pub(super) fn no_follow() -> i32 {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    i32::try_from(flags.bits()).unwrap_or_default()
}

/// Returns the bytes, unless there are too many to keep, and their sha256.
fn read_all(mut file: File) -> io::Result<(Option<Vec<u8>>, Version)> {
    let mut digest = Sha256::new();
    let mut bytes = Some(Vec::new());
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => return Ok((bytes, version_of(digest))),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(&buffer[..count]);
        bytes = bytes.filter(|kept| kept.len() + count <= SIZE_LIMIT);
        if let Some(kept) = &mut bytes {
            kept.extend_from_slice(&buffer[..count]);
        }
    }
}

fn version_of(digest: Sha256) -> Version {
    Version::new(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

/// Makes the root and every directory above a record that is not there yet.
pub(super) fn make_directories(root: &Path, path: &RecordPath) -> Result<(), StoreError> {
    let failed = |place: &Path, error: &io::Error| {
        let message = format!("cannot make {}: {}", place.display(), plain(error));
        StoreError::new(StoreErrorKind::Broken, message)
    };
    if !check_root(root)? {
        fs::create_dir_all(root).map_err(|error| failed(root, &error))?;
    }
    for relative in directories_above(path) {
        let directory = root.join(&relative);
        match DirBuilder::new().create(&directory) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists && !directory.exists() => {
                return Err(failed(&directory, &error));
            }
            _ => drop(check_directory(root, &relative, RECORD_SEARCH)?),
        }
    }
    Ok(())
}

fn broken(relative: &str, what: &str, fault: RecordFault) -> StoreError {
    StoreError::new(StoreErrorKind::Record(fault), format!("state layout invalid: {relative} {what}"))
}

fn too_long(relative: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Record(RecordFault::TooLong), format!("state path too long: {relative}"))
}

fn unreadable(path: &RecordPath, error: &io::Error) -> StoreError {
    let reason =
        if error.kind() == ErrorKind::PermissionDenied { String::new() } else { format!(" ({})", plain(error)) };
    let message = format!("state record is not readable: {path}{reason}");
    StoreError::new(StoreErrorKind::Record(RecordFault::NotReadable), message)
}

fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NAMETOOLONG.raw_os_error())
}

fn is_loop(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Returns what the system says of a failure, without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
