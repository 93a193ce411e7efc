//! Notes that a report of a lost tenure was printed (design.md section 4, "Being told").
//!
//! One empty file per reporting transaction, in the directory all worktrees share. Losing a note only makes the
//! report come once more.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::git::Repository;

/// Twice as long as a fence entry lives, so that a note outlives the entry it speaks of.
const KEPT_FOR: Duration = Duration::from_secs(60 * 24 * 60 * 60);

fn directory(repository: &Repository) -> PathBuf {
    repository.shared_dir().join("told")
}

/// Returns the ids of the transactions whose report this clone has printed, in order.
#[must_use]
pub fn notes(repository: &Repository) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory(repository)) else { return Vec::new() };
    let mut notes: Vec<String> = entries
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_note(name))
        .collect();
    notes.sort_unstable();
    notes
}

/// Leaves a note that the report of `transaction_id` was printed, and drops notes older than 60 days.
///
/// # Errors
/// When the note cannot be left: the report will come again.
pub fn leave(repository: &Repository, transaction_id: &str) -> io::Result<()> {
    if !is_note(transaction_id) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a transaction id"));
    }
    let directory = directory(repository);
    std::fs::create_dir_all(&directory)?;
    let note = directory.join(transaction_id);
    match std::fs::OpenOptions::new().write(true).create_new(true).open(&note) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(error),
    }
    // The new note's own time is now, as the file system sees it: both ages come from one clock.
    if let Ok(now) = std::fs::metadata(&note).and_then(|metadata| metadata.modified()) {
        prune(repository, now);
    }
    Ok(())
}

fn prune(repository: &Repository, now: SystemTime) {
    let Ok(entries) = std::fs::read_dir(directory(repository)) else { return };
    for entry in entries.flatten() {
        let named = entry.file_name().to_str().is_some_and(is_note);
        let age =
            entry.metadata().and_then(|metadata| metadata.modified()).ok().and_then(|at| now.duration_since(at).ok());
        if named && age.is_some_and(|age| age > KEPT_FOR) {
            // Another command may have dropped it first.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

fn is_note(name: &str) -> bool {
    (1..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::test_repository;

    #[test]
    fn a_note_is_there_once_it_was_left_and_leaving_it_twice_is_no_error() {
        let (_directory, repository) = test_repository();
        assert!(notes(&repository).is_empty());
        leave(&repository, "b2").unwrap();
        leave(&repository, "a1").unwrap();
        leave(&repository, "b2").unwrap();
        assert_eq!(notes(&repository), ["a1", "b2"]);
        assert!(leave(&repository, "../x").is_err(), "an id never names a path");
    }

    #[test]
    fn notes_older_than_sixty_days_are_dropped_and_strangers_stay() {
        let (_directory, repository) = test_repository();
        leave(&repository, "old").unwrap();
        let file = std::fs::File::options().write(true).open(directory(&repository).join("old")).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        file.set_modified(modified - KEPT_FOR - Duration::from_secs(60)).unwrap();
        std::fs::write(directory(&repository).join("not-a.note"), "").unwrap();
        leave(&repository, "new").unwrap();
        assert_eq!(notes(&repository), ["new"]);
        assert!(directory(&repository).join("not-a.note").exists());
    }
}
