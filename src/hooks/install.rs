//! Putting our hooks in place and taking them away again, without losing anybody else's.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::body::HookName;
use super::chain::chained;
use crate::git::{Call, GitError, Repository};
use crate::world::Deadline;

/// What is in the place of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Present {
    /// Nothing.
    Nothing,
    /// The body shipped today.
    Current,
    /// A body of ours from another version.
    Earlier,
    /// A hook that is not ours.
    Other,
}

/// What installing one hook did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    /// It is in place now.
    Placed,
    /// It is in place now, and the hook that was there runs after it.
    PlacedBefore,
    /// A body from another version was replaced.
    Renewed,
    /// It was in place already.
    Unchanged,
}

/// What uninstalling one hook did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uninstalled {
    /// It is gone.
    Removed,
    /// It is gone, and the hook that was there before is back.
    Restored,
    /// There was none.
    Nothing,
    /// The hook there is not ours, so it stays.
    NotOurs,
}

/// Why hooks cannot be installed here.
#[derive(Debug, Error)]
pub enum InstallError {
    /// Git runs hooks from another directory, which belongs to somebody else.
    #[error(
        "core.hooksPath is {value} ({origin}), so git runs the hooks there; add the lines that `agent-coord hooks print \
         pre-commit` and `agent-coord hooks print pre-push` print to the hooks of that directory, or unset \
         core.hooksPath and run `agent-coord hooks install` again"
    )]
    HooksPath {
        /// The value.
        value: String,
        /// The scope and file it is set in.
        origin: String,
    },
    /// The hooks directory is a link to a place that may be under version control.
    #[error(
        "{} is a link, so the hooks belong to the place it leads to; add the lines that `agent-coord hooks print \
         pre-commit` and `agent-coord hooks print pre-push` print to the hooks there", .0.display()
    )]
    Linked(PathBuf),
    /// There is a hook that is not ours, and its new place is taken.
    #[error(
        "{} is not agent-coord's and cannot move to {}, which exists already; join the two in the latter, move the \
         former elsewhere, and run `agent-coord hooks install` again", .hook.display(), .local.display()
    )]
    LocalExists {
        /// The hook in place.
        hook: PathBuf,
        /// Where it would move.
        local: PathBuf,
    },
    /// A file could not be read or written.
    #[error("cannot change {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Git could not be asked where it looks for hooks.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// Where `core.hooksPath` is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HooksPath {
    /// The value, `~` already expanded; it may be relative.
    pub value: String,
    /// The scope and the file: `local, file:.git/config`.
    pub origin: String,
}

/// Returns the directory of the hooks that all worktrees share.
#[must_use]
pub fn directory(repository: &Repository) -> PathBuf {
    repository.common_dir().join("hooks")
}

/// Returns the `core.hooksPath` that leads away from [`directory`], whatever scope sets it.
///
/// # Errors
/// When git cannot be asked.
pub fn foreign_hooks_path(repository: &Repository, deadline: &Deadline<'_>) -> Result<Option<HooksPath>, GitError> {
    let arguments = ["-z", "--show-scope", "--show-origin", "--type=path", "--get-all", "core.hooksPath"];
    let finished = repository.run(Call::new("config").args(arguments), deadline)?;
    let text = finished.text();
    let fields: Vec<&str> = text.split('\0').collect();
    let (settings, _) = fields.as_chunks::<3>();
    // The one on the command line is our own (git::call keeps hooks out of every git it runs).
    let theirs = settings.iter().rfind(|[scope, _, value]| !(*scope == "command" && *value == "/dev/null"));
    let ours = directory(repository);
    let leads_away =
        |value: &str| Path::new(value).is_relative() || fs::canonicalize(value).ok() != fs::canonicalize(&ours).ok();
    Ok(theirs
        .filter(|[_, _, value]| leads_away(value))
        .map(|[scope, origin, value]| HooksPath { value: (*value).to_owned(), origin: format!("{scope}, {origin}") }))
}

/// Returns the directory to install into.
///
/// # Errors
/// When git looks elsewhere, or the directory is not this clone's own.
pub fn own_directory(repository: &Repository, deadline: &Deadline<'_>) -> Result<PathBuf, InstallError> {
    if let Some(HooksPath { value, origin }) = foreign_hooks_path(repository, deadline)? {
        return Err(InstallError::HooksPath { value, origin });
    }
    let directory = directory(repository);
    if directory.is_symlink() { Err(InstallError::Linked(directory)) } else { Ok(directory) }
}

/// Tells what is in the place of `hook`.
#[must_use]
pub fn present(directory: &Path, hook: HookName) -> Present {
    let file = directory.join(hook.as_str());
    match fs::read(&file) {
        Ok(bytes) if bytes == hook.body().as_bytes() => Present::Current,
        Ok(bytes) if hook.is_ours(&bytes) => Present::Earlier,
        Err(error) if error.kind() == io::ErrorKind::NotFound && !file.is_symlink() => Present::Nothing,
        // What cannot be read is not ours to replace.
        _ => Present::Other,
    }
}

/// Tells whether a hook of ours, of whatever version, is in place.
#[must_use]
pub fn is_in_place(directory: &Path, hook: HookName) -> bool {
    matches!(present(directory, hook), Present::Current | Present::Earlier)
}

/// Checks that [`install`] would not meet a taken place.
///
/// # Errors
/// [`InstallError::LocalExists`].
pub fn check(directory: &Path, hook: HookName) -> Result<(), InstallError> {
    let (file, local) = (directory.join(hook.as_str()), chained(directory, hook));
    let taken = present(directory, hook) == Present::Other && exists(&local) && !is_same_file(&file, &local);
    if taken { Err(InstallError::LocalExists { hook: file, local }) } else { Ok(()) }
}

/// Puts our hook in place. A hook that is not ours moves to `<hook>.local` first, where it is chained.
///
/// At no moment is there no hook: the old one stays until ours replaces it in one step.
///
/// # Errors
/// See [`InstallError`]; nothing is lost.
pub fn install(directory: &Path, hook: HookName) -> Result<Installed, InstallError> {
    check(directory, hook)?;
    let file = directory.join(hook.as_str());
    let before = present(directory, hook);
    if before == Present::Current && is_executable(&file) {
        return Ok(Installed::Unchanged);
    }
    let changing = |error| InstallError::Io { path: file.clone(), error };
    fs::create_dir_all(directory).map_err(changing)?;
    if before == Present::Other {
        keep_as_local(&file, &chained(directory, hook))?;
    }
    place(directory, &file, hook.body()).map_err(changing)?;
    Ok(match before {
        Present::Nothing => Installed::Placed,
        Present::Other => Installed::PlacedBefore,
        Present::Current | Present::Earlier => Installed::Renewed,
    })
}

/// Takes our hook away and puts back the one that was there before.
///
/// # Errors
/// When a file cannot be changed.
pub fn uninstall(directory: &Path, hook: HookName) -> Result<Uninstalled, InstallError> {
    let (file, local) = (directory.join(hook.as_str()), chained(directory, hook));
    let changing = |error| InstallError::Io { path: file.clone(), error };
    match present(directory, hook) {
        Present::Nothing => Ok(Uninstalled::Nothing),
        Present::Other => Ok(Uninstalled::NotOurs),
        Present::Current | Present::Earlier if exists(&local) => {
            fs::rename(&local, &file).map_err(changing)?;
            Ok(Uninstalled::Restored)
        }
        Present::Current | Present::Earlier => {
            fs::remove_file(&file).map_err(changing)?;
            Ok(Uninstalled::Removed)
        }
    }
}

/// Gives the hook at `file` its second name, which must be free; the first goes when ours takes its place.
fn keep_as_local(file: &Path, local: &Path) -> Result<(), InstallError> {
    if is_same_file(file, local) {
        // An earlier install was stopped between its two steps.
        return Ok(());
    }
    let changing = |error| InstallError::Io { path: local.to_owned(), error };
    match fs::hard_link(file, local) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(InstallError::LocalExists { hook: file.to_owned(), local: local.to_owned() })
        }
        // A file system without hard links.
        Err(_) if !exists(local) => fs::rename(file, local).map_err(changing),
        Err(error) => Err(changing(error)),
    }
}

fn place(directory: &Path, file: &Path, body: &str) -> io::Result<()> {
    let mut new = tempfile::Builder::new().prefix(".agent-coord-").tempfile_in(directory)?;
    new.write_all(body.as_bytes())?;
    new.as_file().set_permissions(fs::Permissions::from_mode(0o755))?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

fn exists(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok()
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::symlink_metadata(one), fs::symlink_metadata(other)) {
        (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEIRS: &str = "#!/bin/sh\necho theirs\n";

    fn hooks() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pre-commit");
        let local = directory.path().join("pre-commit.local");
        (directory, file, local)
    }

    fn executable(file: &Path, text: &str) {
        fs::write(file, text).unwrap();
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn an_existing_hook_moves_aside_and_comes_back() {
        let (directory, file, local) = hooks();
        executable(&file, THEIRS);
        assert_eq!(install(directory.path(), HookName::PreCommit).unwrap(), Installed::PlacedBefore);
        assert_eq!(fs::read_to_string(&file).unwrap(), HookName::PreCommit.body());
        assert!(is_executable(&file) && is_executable(&local));
        assert_eq!(fs::read_to_string(&local).unwrap(), THEIRS);
        assert_eq!(install(directory.path(), HookName::PreCommit).unwrap(), Installed::Unchanged);
        assert_eq!(uninstall(directory.path(), HookName::PreCommit).unwrap(), Uninstalled::Restored);
        assert_eq!(fs::read_to_string(&file).unwrap(), THEIRS);
        assert!(!exists(&local));
    }

    #[test]
    fn nothing_is_ever_written_over() {
        let (directory, file, local) = hooks();
        executable(&file, THEIRS);
        fs::write(&local, "another").unwrap();
        assert!(matches!(install(directory.path(), HookName::PreCommit), Err(InstallError::LocalExists { .. })));
        assert_eq!(fs::read_to_string(&file).unwrap(), THEIRS);
        assert_eq!(fs::read_to_string(&local).unwrap(), "another");
        assert_eq!(uninstall(directory.path(), HookName::PreCommit).unwrap(), Uninstalled::NotOurs);
        assert_eq!(fs::read_to_string(&file).unwrap(), THEIRS);
    }

    #[test]
    fn a_body_of_ours_that_somebody_edited_is_theirs() {
        let (directory, file, local) = hooks();
        executable(&file, &format!("{}# edited\n", HookName::PreCommit.body()));
        assert_eq!(present(directory.path(), HookName::PreCommit), Present::Other);
        install(directory.path(), HookName::PreCommit).unwrap();
        assert!(fs::read_to_string(&local).unwrap().ends_with("# edited\n"));
    }

    #[test]
    fn an_install_stopped_between_its_steps_is_finished_by_the_next() {
        let (directory, file, local) = hooks();
        executable(&file, THEIRS);
        keep_as_local(&file, &local).unwrap();
        assert_eq!(install(directory.path(), HookName::PreCommit).unwrap(), Installed::PlacedBefore);
        assert_eq!(fs::read_to_string(&local).unwrap(), THEIRS);
        assert_eq!(present(directory.path(), HookName::PreCommit), Present::Current);
    }

    #[test]
    fn a_link_moves_as_a_link() {
        let (directory, file, local) = hooks();
        executable(&directory.path().join("shared"), THEIRS);
        std::os::unix::fs::symlink("shared", &file).unwrap();
        install(directory.path(), HookName::PreCommit).unwrap();
        assert!(local.is_symlink(), "the hook still follows what it was linked to");
        assert_eq!(fs::read_to_string(directory.path().join("shared")).unwrap(), THEIRS);
        uninstall(directory.path(), HookName::PreCommit).unwrap();
        assert!(file.is_symlink());
    }

    #[test]
    fn a_body_that_lost_its_permission_to_run_gets_it_back() {
        let (directory, file, _) = hooks();
        install(directory.path(), HookName::PreCommit).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(install(directory.path(), HookName::PreCommit).unwrap(), Installed::Renewed);
        assert_eq!(uninstall(directory.path(), HookName::PreCommit).unwrap(), Uninstalled::Removed);
        assert_eq!(uninstall(directory.path(), HookName::PreCommit).unwrap(), Uninstalled::Nothing);
    }
}
