//! The canary file of a worktree, `<git-dir>/AGENT_HEAD_AT_START`.

use std::io;
use std::path::PathBuf;

use super::files;
use crate::domain::canary::Canary;
use crate::git::Repository;

/// What the file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remembered {
    /// No canary is set.
    Nothing,
    /// This one is.
    Set(Canary),
    /// There is a file, but it makes no sense.
    Unreadable(PathBuf),
}

fn file(repository: &Repository) -> PathBuf {
    repository.git_dir().join("AGENT_HEAD_AT_START")
}

/// Returns what the worktree remembers.
#[must_use]
pub fn load(repository: &Repository) -> Remembered {
    let file = file(repository);
    if std::fs::symlink_metadata(&file).is_err() {
        return Remembered::Nothing;
    }
    match files::read(&file).as_deref().and_then(Canary::parse) {
        Some(canary) => Remembered::Set(canary),
        None => Remembered::Unreadable(file),
    }
}

/// Remembers a canary in the place of an earlier one.
///
/// # Errors
/// When the file cannot be written.
pub fn set(repository: &Repository, canary: &Canary) -> io::Result<()> {
    files::write(&file(repository), &format!("{canary}\n"))
}

/// Forgets the canary and tells whether there was one.
///
/// # Errors
/// When the file cannot be taken away.
pub fn clear(repository: &Repository) -> io::Result<bool> {
    match std::fs::remove_file(file(repository)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::test_repository;

    #[test]
    fn a_canary_is_set_read_and_cleared() {
        let (_directory, repository) = test_repository();
        assert_eq!(load(&repository), Remembered::Nothing);
        let canary = Canary { commit: "a".repeat(40), branch: "x".to_owned() };
        set(&repository, &canary).unwrap();
        assert_eq!(load(&repository), Remembered::Set(canary));
        assert!(clear(&repository).unwrap());
        assert!(!clear(&repository).unwrap());
    }

    #[test]
    fn a_broken_file_is_told_apart_from_none() {
        let (_directory, repository) = test_repository();
        std::fs::write(file(&repository), "nonsense").unwrap();
        assert_eq!(load(&repository), Remembered::Unreadable(file(&repository)));
    }
}
