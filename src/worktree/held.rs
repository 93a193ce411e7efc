//! The tenures this worktree remembers (design.md section 4, "Tenure").
//!
//! Losing the file costs the protection it gives: commands then act without instance and generation, as if the flags
//! had not been given. The claims themselves stay what the store says.

use std::io;
use std::path::PathBuf;

use serde_json::Value;

use super::files;
use crate::domain::request::Tenure;
use crate::git::Repository;

fn file(repository: &Repository) -> PathBuf {
    repository.private_dir().join("held.json")
}

/// Returns the remembered tenures, the most recent last.
#[must_use]
pub fn load(repository: &Repository) -> Vec<Tenure> {
    files::read(&file(repository)).map(|text| parse(&text)).unwrap_or_default()
}

/// Returns the tenure of one target.
#[must_use]
pub fn of(repository: &Repository, repo: &str, target: &str) -> Option<Tenure> {
    load(repository).into_iter().rev().find(|tenure| tenure.repo == repo && tenure.target == target)
}

/// Remembers a tenure as the most recent one, in the place of an earlier one of the same target.
///
/// # Errors
/// When the file cannot be written: the claim is won all the same.
pub fn remember(repository: &Repository, tenure: &Tenure) -> io::Result<()> {
    change(repository, |tenures| {
        tenures.retain(|other| !(other.repo == tenure.repo && other.target == tenure.target));
        tenures.push(tenure.clone());
    })
}

/// Forgets the tenure of a target, if there is one.
///
/// # Errors
/// When the file cannot be written.
pub fn forget(repository: &Repository, repo: &str, target: &str) -> io::Result<()> {
    if of(repository, repo, target).is_none() {
        return Ok(());
    }
    change(repository, |tenures| tenures.retain(|tenure| !(tenure.repo == repo && tenure.target == target)))
}

fn change(repository: &Repository, edit: impl FnOnce(&mut Vec<Tenure>)) -> io::Result<()> {
    let file = file(repository);
    files::in_turn(&file, || {
        let mut tenures = load(repository);
        edit(&mut tenures);
        let text = serde_json::to_string_pretty(&tenures)?;
        files::write(&file, &format!("{text}\n"))
    })
}

/// Keeps every entry that makes sense: one bad entry does not take the others with it.
fn parse(text: &str) -> Vec<Tenure> {
    let entries: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    entries.into_iter().filter_map(|entry| serde_json::from_value(entry).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::{open, test_repository};

    fn tenure(target: &str, generation: i64) -> Tenure {
        Tenure { repo: "o/r".into(), target: target.into(), agent: "a".into(), instance: None, generation }
    }

    #[test]
    fn the_most_recent_tenure_is_last_and_a_target_is_there_once() {
        let (_directory, repository) = test_repository();
        assert_eq!(load(&repository), []);
        for (target, generation) in [("1", 1), ("2", 1), ("1", 2)] {
            remember(&repository, &tenure(target, generation)).unwrap();
        }
        assert_eq!(load(&repository), [tenure("2", 1), tenure("1", 2)]);
        assert_eq!(of(&repository, "o/r", "1"), Some(tenure("1", 2)));
        assert_eq!(of(&repository, "o/other", "1"), None);
    }

    #[test]
    fn a_forgotten_tenure_is_gone_and_the_others_stay() {
        let (_directory, repository) = test_repository();
        remember(&repository, &tenure("1", 1)).unwrap();
        remember(&repository, &tenure("2", 1)).unwrap();
        forget(&repository, "o/r", "1").unwrap();
        forget(&repository, "o/r", "nothing").unwrap();
        assert_eq!(load(&repository), [tenure("2", 1)]);
    }

    #[test]
    fn a_broken_file_is_made_anew_and_a_broken_entry_is_passed_over() {
        let (_directory, repository) = test_repository();
        files::write(&file(&repository), "{ not json").unwrap();
        assert_eq!(load(&repository), []);
        remember(&repository, &tenure("1", 1)).unwrap();
        assert_eq!(load(&repository), [tenure("1", 1)]);
        let mixed = r#"[7, {"repo":"o/r"}, {"repo":"o/r","target":"1","agent":"a","generation":3,"later":true}]"#;
        files::write(&file(&repository), mixed).unwrap();
        assert_eq!(load(&repository), [tenure("1", 3)]);
    }

    #[test]
    fn claims_won_at_the_same_moment_are_all_remembered() {
        let (directory, repository) = test_repository();
        std::thread::scope(|scope| {
            for target in 0..8 {
                let path = directory.path().join("clone");
                scope.spawn(move || remember(&open(&path), &tenure(&target.to_string(), 1)).unwrap());
            }
        });
        assert_eq!(load(&repository).len(), 8);
    }
}
