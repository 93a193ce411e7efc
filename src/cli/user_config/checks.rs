//! Whose files are read: nobody else may have been able to write them (config-and-security.md section 4).

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::CommandError;

/// More than any configuration has.
const SIZE_LIMIT: u64 = 1024 * 1024;
/// As many links as the kernel follows.
const LINK_LIMIT: u32 = 40;

/// Reads a private file, validated by the descriptor it is read from; `None` = it is not there.
///
/// # Errors
/// When it is not a plain file of the current user that nobody else can read.
pub fn read_file(path: &Path) -> Result<Option<Vec<u8>>, CommandError> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(open_error(path, &error)),
    };
    check_file(&file, path)?;
    let mut bytes = Vec::new();
    file.take(SIZE_LIMIT).read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    Ok(Some(bytes))
}

fn open_error(path: &Path, error: &io::Error) -> CommandError {
    let is_link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    if is_link {
        return refuse(&format!("user config must be a regular file, not a symlink: {}", path.display()));
    }
    cannot_read(path, error)
}

fn cannot_read(path: &Path, error: &io::Error) -> CommandError {
    refuse(&format!("cannot read user config {}: {}", path.display(), plain(error)))
}

/// Checks an open private file.
///
/// # Errors
/// See [`read_file`].
pub fn check_file(file: &File, path: &Path) -> Result<(), CommandError> {
    let metadata = file.metadata().map_err(|error| cannot_read(path, &error))?;
    let path = path.display();
    if !metadata.is_file() {
        return Err(refuse(&format!("user config must be a regular file: {path}")));
    }
    if metadata.uid() != current_user() {
        return Err(refuse(&format!("user config is not owned by the current user: {path}")));
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(refuse(&format!("user config permissions are insecure (expected 0600): {path}")));
    }
    Ok(())
}

/// What is asked of the directory a file lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// It is ours alone, and closed to others when it is not yet.
    pub private: bool,
    /// Something is to be written there.
    pub writable: bool,
}

/// Validates every directory from `/` down to `directory`, links resolved, and returns where it really is.
///
/// # Errors
/// When somebody else could have changed what is found there. A directory that is missing is an error, too.
pub fn check_chain(directory: &Path, leaf: Leaf) -> Result<PathBuf, CommandError> {
    let mut walk = Walk { real: PathBuf::from("/"), links: 0, asked: directory };
    check_directory(&walk.real, &walk.look(Path::new("/"))?, true)?;
    let mut ahead: Vec<OsString> = parts(directory).into_iter().rev().collect();
    while let Some(part) = ahead.pop() {
        if part == ".." {
            walk.real.pop();
            continue;
        }
        let next = walk.real.join(&part);
        let found = walk.look(&next)?;
        if found.is_symlink() {
            ahead.extend(parts(&walk.follow(&next, &found)?).into_iter().rev());
            continue;
        }
        // What only the leaf must be is checked below, in words of its own.
        let strict = !(leaf.private && ahead.is_empty());
        check_directory(&next, &found, strict)?;
        walk.real = next;
    }
    if leaf.private {
        check_leaf(&walk.real, leaf)?;
    }
    Ok(walk.real)
}

/// Returns the names in a path, `..` among them.
fn parts(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    names.collect()
}

struct Walk<'a> {
    /// What was validated so far; no link is left in it.
    real: PathBuf,
    links: u32,
    asked: &'a Path,
}

impl Walk<'_> {
    fn look(&self, path: &Path) -> Result<Metadata, CommandError> {
        fs::symlink_metadata(path).map_err(|error| cannot_validate(self.asked, &error))
    }

    /// Returns what a link leads to; an absolute one begins at the root again.
    fn follow(&mut self, link: &Path, found: &Metadata) -> Result<PathBuf, CommandError> {
        if !is_trusted(found) {
            let message = format!("config parent must not contain a user-controlled symlink: {}", link.display());
            return Err(refuse(&message));
        }
        self.links += 1;
        if self.links > LINK_LIMIT {
            return Err(refuse(&format!("config parent must not be a symlink loop: {}", self.asked.display())));
        }
        let target = fs::read_link(link).map_err(|error| cannot_validate(self.asked, &error))?;
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        }
        Ok(target)
    }
}

fn check_directory(path: &Path, found: &Metadata, strict: bool) -> Result<(), CommandError> {
    let shown = path.display();
    if !found.is_dir() {
        return Err(refuse(&format!("config parent component is not a directory: {shown}")));
    }
    if !is_trusted(found) {
        return Err(refuse(&format!("config parent component has an unsafe owner: {shown}")));
    }
    if strict && is_writable_by_others(found) {
        return Err(refuse(&format!("config parent permissions are unsafe: {shown}")));
    }
    Ok(())
}

/// Checks the directory that is ours alone, and closes it when others may merely look into it.
fn check_leaf(path: &Path, leaf: Leaf) -> Result<(), CommandError> {
    let found = fs::symlink_metadata(path).map_err(|error| cannot_validate(path, &error))?;
    if found.uid() != current_user() {
        return Err(refuse(&format!("config parent leaf is not owned by the current user: {}", path.display())));
    }
    if is_writable_by_others(&found) || (leaf.writable && found.mode() & 0o700 != 0o700) {
        let message = format!("config parent leaf permissions are unsafe (expected 0700): {}", path.display());
        return Err(refuse(&message));
    }
    if found.mode() & 0o077 != 0 { harden(path, &found) } else { Ok(()) }
}

/// Closes a directory through a descriptor that is known to be the one that was checked.
fn harden(path: &Path, checked: &Metadata) -> Result<(), CommandError> {
    let shown = path.display();
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let directory = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|error| {
        if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
            return refuse(&format!("config parent leaf must not be a symlink: {shown}"));
        }
        cannot_validate(path, &error)
    })?;
    let look = || directory.metadata().map_err(|error| cannot_validate(path, &error));
    let found = look()?;
    if (found.dev(), found.ino()) != (checked.dev(), checked.ino()) {
        return Err(refuse(&format!("config parent leaf changed while hardening permissions: {shown}")));
    }
    let unsafe_now = || refuse(&format!("config parent leaf became unsafe while hardening permissions: {shown}"));
    if found.uid() != current_user() || is_writable_by_others(&found) {
        return Err(unsafe_now());
    }
    directory.set_permissions(Permissions::from_mode(0o700)).map_err(|error| cannot_validate(path, &error))?;
    if look()?.mode() & 0o777 == 0o700 { Ok(()) } else { Err(unsafe_now()) }
}

fn is_trusted(found: &Metadata) -> bool {
    found.uid() == 0 || found.uid() == current_user()
}

/// A sticky bit excuses nothing.
fn is_writable_by_others(found: &Metadata) -> bool {
    found.mode() & 0o022 != 0
}

fn current_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(super) fn cannot_validate(directory: &Path, error: &io::Error) -> CommandError {
    refuse(&format!("cannot validate config parent {}: {}", directory.display(), plain(error)))
}

pub(super) fn refuse(message: &str) -> CommandError {
    CommandError::operational(message)
}

/// Returns what the system says of a failure, without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::tests::SafeFolder;
    use super::*;
    use std::os::unix::fs::symlink;

    const PRIVATE: Leaf = Leaf { private: true, writable: false };
    const FOREIGN: Leaf = Leaf { private: false, writable: false };

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_is_ours_plain_and_closed_to_others() {
        let folder = SafeFolder::new();
        let file = folder.file("env", "x");
        assert_eq!(read_file(&file).unwrap().unwrap(), b"x");
        assert_eq!(read_file(&folder.path("nothing")), Ok(None));
        mode(&file, 0o640);
        let message = |path: &Path| read_file(path).unwrap_err().message;
        let shown = file.display();
        assert_eq!(message(&file), format!("user config permissions are insecure (expected 0600): {shown}"));
        let link = folder.path("link");
        symlink(&file, &link).unwrap();
        assert_eq!(message(&link), format!("user config must be a regular file, not a symlink: {}", link.display()));
        let directory = folder.directory("directory");
        assert_eq!(message(&directory), format!("user config must be a regular file: {}", directory.display()));
    }

    #[test]
    fn every_directory_of_the_chain_is_closed_to_the_pens_of_others() {
        let folder = SafeFolder::new();
        let leaf = folder.directory("open/leaf");
        assert_eq!(check_chain(&leaf, FOREIGN), Ok(leaf.clone()));
        mode(&folder.path("open"), 0o1777);
        let refused = check_chain(&leaf, FOREIGN).unwrap_err().message;
        assert_eq!(refused, format!("config parent permissions are unsafe: {}", folder.path("open").display()));
        let file = folder.file("file", "");
        let refused = check_chain(&file, FOREIGN).unwrap_err().message;
        assert_eq!(refused, format!("config parent component is not a directory: {}", file.display()));
    }

    #[test]
    fn a_link_is_resolved_and_its_target_validated_the_same_way() {
        let folder = SafeFolder::new();
        let real = folder.directory("dotfiles/config/agent-coord");
        symlink("dotfiles/config", folder.path(".config")).unwrap();
        let through = folder.path(".config/agent-coord");
        assert_eq!(check_chain(&through, FOREIGN), Ok(real));
        mode(&folder.path("dotfiles"), 0o775);
        let refused = check_chain(&through, FOREIGN).unwrap_err().message;
        assert_eq!(refused, format!("config parent permissions are unsafe: {}", folder.path("dotfiles").display()));
        symlink("loop", folder.path("loop")).unwrap();
        let around = folder.path("loop");
        let refused = check_chain(&around, FOREIGN).unwrap_err().message;
        assert_eq!(refused, format!("config parent must not be a symlink loop: {}", around.display()));
    }

    #[test]
    fn a_leaf_of_our_own_is_closed_and_another_is_left_alone() {
        let folder = SafeFolder::new();
        let leaf = folder.directory("agent-coord");
        mode(&leaf, 0o755);
        check_chain(&leaf, FOREIGN).unwrap();
        assert_eq!(fs::metadata(&leaf).unwrap().mode() & 0o777, 0o755);
        check_chain(&leaf, PRIVATE).unwrap();
        assert_eq!(fs::metadata(&leaf).unwrap().mode() & 0o777, 0o700);
        mode(&leaf, 0o770);
        let refused = format!("config parent leaf permissions are unsafe (expected 0700): {}", leaf.display());
        assert_eq!(check_chain(&leaf, PRIVATE).unwrap_err().message, refused);
        mode(&leaf, 0o500);
        check_chain(&leaf, PRIVATE).unwrap();
        let writing = Leaf { private: true, writable: true };
        assert_eq!(check_chain(&leaf, writing).unwrap_err().message, refused);
    }
}
