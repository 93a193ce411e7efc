//! Noticing `git push --mirror`.
//!
//! A mirror deletes on the remote what is missing here, coordination refs that this clone has not fetched among them, and
//! git does not tell the hook of those deletions (seen with git 2.47: only refs with a local counterpart are listed). So
//! the push itself is looked at: the remote's configuration, and the command line of the git that runs the hook where the
//! system shows it (Linux). Elsewhere only the configuration is seen.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::git::Repository;

/// How far up the hook's ancestors the push is looked for: another hook manager may stand in between.
const ANCESTORS: usize = 8;

/// Tells whether the push that runs this hook is a mirror, as far as can be seen. `remote` is the hook's first argument.
#[must_use]
pub fn is_mirror(repository: &Repository, remote: Option<&OsStr>) -> bool {
    let configured = remote
        .and_then(OsStr::to_str)
        .and_then(|name| repository.config_flag(&format!("remote.{name}.mirror")))
        .unwrap_or(false);
    configured || running_push().is_some_and(|words| asks_for_mirror(&words))
}

/// Returns the command line of the nearest `git push` above this process.
fn running_push() -> Option<Vec<Vec<u8>>> {
    let mut process = rustix::process::getppid()?.as_raw_nonzero().get();
    for _ in 0..ANCESTORS {
        let words = fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let words: Vec<Vec<u8>> = words.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        if is_push(&words) {
            return Some(words);
        }
        process = parent_of(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)?;
    }
    None
}

/// Reads the fourth field of `/proc/PID/stat`; the second is a name in brackets that may hold anything.
fn parent_of(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn is_push(words: &[Vec<u8>]) -> bool {
    let program = words.first().and_then(|word| Path::new(OsStr::from_bytes(word)).file_name());
    program == Some(OsStr::new("git-push"))
        || (program == Some(OsStr::new("git")) && words.iter().any(|word| word == b"push"))
}

/// Git takes every prefix of an option that no other option shares.
fn asks_for_mirror(words: &[Vec<u8>]) -> bool {
    let options = words.iter().skip_while(|word| !word.ends_with(b"push")).take_while(|word| *word != b"--");
    options.into_iter().any(|word| word.len() > 2 && b"--mirror".starts_with(word) && word.starts_with(b"--"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
    }

    #[test]
    fn a_mirror_is_seen_however_it_is_spelled() {
        for mirror in [
            "git push --mirror origin",
            "/usr/bin/git -C x push origin --mirr",
            "git push -q --m o",
            "/x/git-push --mirror o",
        ] {
            assert!(is_push(&words(mirror)) && asks_for_mirror(&words(mirror)), "{mirror}");
        }
        for other in ["git push origin main", "git push -- --mirror", "git push --tags o", "git-push o"] {
            assert!(!asks_for_mirror(&words(other)), "{other}");
        }
        assert!(!is_push(&words("sh -c push")));
    }

    #[test]
    fn the_parent_is_found_whatever_the_process_is_called() {
        assert_eq!(parent_of("12 (a) b) S 7 12"), Some(7));
        assert_eq!(parent_of("nonsense"), None);
    }
}
