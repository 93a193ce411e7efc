//! The agent id of a worktree that was given none: made once, kept in its private git directory (design.md section 5).
//!
//! It is kept with a hash of the machine and the path, and made anew where that does not match: a copied folder, or a
//! sandbox from the same image, must not act under the id of the original.

use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::files;
use crate::domain::ids::is_segment;
use crate::git::Repository;
use crate::world::{Environment, Randomness};

/// The longest part of an id; longer names of users, hosts and folders are cut.
const PART_LIMIT: usize = 40;

/// Returns this worktree's agent id, `<user>.<host>.<worktree>-<8 hex digits>`, which is always a segment.
///
/// # Errors
/// When it has to be made and cannot be kept: an id that changes with every command would be worse than none.
pub fn agent_id(repository: &Repository, environment: &Environment, ids: &dyn Randomness) -> io::Result<String> {
    let file = repository.private_dir().join("agent-id");
    let place = place_hash(repository);
    if let Some(id) = kept(&file, &place) {
        return Ok(id);
    }
    files::in_turn(&file, || {
        if let Some(id) = kept(&file, &place) {
            return Ok(id);
        }
        let id = make(repository, environment, ids);
        files::write(&file, &format!("{id}\n{place}\n"))?;
        Ok(id)
    })
}

fn kept(file: &Path, place: &str) -> Option<String> {
    let text = files::read(file)?;
    let mut lines = text.lines();
    let id = lines.next().filter(|id| is_segment(id))?;
    (lines.next() == Some(place)).then(|| id.to_owned())
}

fn make(repository: &Repository, environment: &Environment, ids: &dyn Randomness) -> String {
    let user = environment.text("USER").or_else(|| environment.text("LOGNAME")).unwrap_or_default();
    let host = host_name();
    let host = host.split('.').next().unwrap_or_default();
    let folder = checkout(repository);
    let folder = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let [user, host, folder] =
        [part(&user, "user"), part(host, "host"), part(folder.trim_end_matches(".git"), "worktree")];
    format!("{user}.{host}.{folder}-{}", ids.hex(4))
}

/// Returns `text` as one part of a segment, without dots, so that the id always has three parts.
fn part(text: &str, otherwise: &str) -> String {
    let kept = |character: char| if character.is_ascii_alphanumeric() || character == '_' { character } else { '-' };
    let clean: String = text.chars().take(PART_LIMIT).map(kept).collect();
    let clean = clean.trim_matches('-');
    if clean.is_empty() { otherwise.to_owned() } else { clean.to_owned() }
}

fn place_hash(repository: &Repository) -> String {
    let machine = std::fs::read_to_string("/etc/machine-id").ok().filter(|id| !id.trim().is_empty());
    let machine = machine.unwrap_or_else(host_name);
    let mut digest = Sha256::new();
    for piece in [machine.trim().as_bytes(), path_bytes(&checkout(repository)), path_bytes(repository.git_dir())] {
        digest.update(piece);
        digest.update([0]);
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

fn checkout(repository: &Repository) -> PathBuf {
    repository.work_tree().unwrap_or_else(|| repository.git_dir()).to_owned()
}

fn path_bytes(path: &Path) -> &[u8] {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str())
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::{copy_of, open, test_repository};
    use crate::world::{CountedRandomness, SystemRandomness};

    fn environment(user: &str) -> Environment {
        let mut environment = Environment::default();
        environment.set("USER", user);
        environment
    }

    #[test]
    fn an_id_is_made_once_and_is_a_segment_whatever_the_names() {
        let (_directory, repository) = test_repository();
        let ids = CountedRandomness::default();
        let first = agent_id(&repository, &environment("Ü ser..x"), &ids).unwrap();
        assert!(is_segment(&first), "{first}");
        assert_eq!(agent_id(&repository, &environment("other"), &ids).unwrap(), first);
        for hostile in ["", "...", "a/b", "é", &"x".repeat(500)] {
            assert!(is_segment(&make(&repository, &environment(hostile), &ids)), "{hostile}");
        }
    }

    #[test]
    fn a_copied_folder_gets_an_id_of_its_own() {
        let (directory, repository) = test_repository();
        let ids = CountedRandomness::default();
        let original = agent_id(&repository, &environment("u"), &ids).unwrap();
        let copy = copy_of(directory.path(), &repository);
        assert_ne!(agent_id(&copy, &environment("u"), &ids).unwrap(), original);
        assert_eq!(agent_id(&repository, &environment("u"), &ids).unwrap(), original, "the original keeps its own");
    }

    #[test]
    fn a_broken_file_is_made_anew() {
        let (_directory, repository) = test_repository();
        let ids = CountedRandomness::default();
        let first = agent_id(&repository, &environment("u"), &ids).unwrap();
        files::write(&repository.private_dir().join("agent-id"), "../../etc\n").unwrap();
        let second = agent_id(&repository, &environment("u"), &ids).unwrap();
        assert!(is_segment(&second) && second != first);
    }

    #[test]
    fn commands_that_start_together_agree_on_one_id() {
        let (directory, _) = test_repository();
        let answers: std::collections::BTreeSet<String> = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let repository = open(&directory.path().join("clone"));
                        agent_id(&repository, &environment("u"), &SystemRandomness).unwrap()
                    })
                })
                .collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert_eq!(answers.len(), 1);
    }
}
