//! Which git was found, and whether it is new enough.

use std::path::Path;

use super::{Call, Git, GitError, files};
use crate::world::Deadline;

/// The oldest git that has `git fetch --porcelain` (design.md section 3.5).
pub const OLDEST: (u32, u32) = (2, 41);

/// Checks the version of `git`, remembering the answer in `cache` for as long as the program's file is the same.
///
/// # Errors
/// [`GitError::TooOld`], or why it could not be asked.
pub fn check(git: &Git, cache: &Path, deadline: &Deadline<'_>) -> Result<(), GitError> {
    let mark = mark_of(git.program());
    let known = files::read(cache).filter(|text| text.lines().next() == Some(mark.as_str()));
    if known.is_some() {
        return Ok(());
    }
    let version = ask(git, deadline)?;
    let needed = format!("{}.{}", OLDEST.0, OLDEST.1);
    if parse(&version).is_none_or(|found| found < OLDEST) {
        return Err(GitError::TooOld { found: version, program: git.program().display().to_string(), needed });
    }
    // Only a saving: without it the next command asks again.
    let _ = files::write(cache, &format!("{mark}\n{version}\n"));
    Ok(())
}

/// Asks git for its version: `2.47.3`.
///
/// # Errors
/// When git cannot be run.
pub fn ask(git: &Git, deadline: &Deadline<'_>) -> Result<String, GitError> {
    let text = git.run(&Call::new("version"), deadline)?.checked("version")?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.split_whitespace().nth(2).unwrap_or("of unknown version").to_owned())
}

fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

fn mark_of(program: &Path) -> String {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(program)
        .map(|data| {
            format!("{} {} {} {}.{}", program.display(), data.ino(), data.len(), data.mtime(), data.mtime_nsec())
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendor_suffixes_do_not_hide_the_version() {
        assert_eq!(parse("2.47.3"), Some((2, 47)));
        assert_eq!(parse("2.39.5.windows.1"), Some((2, 39)));
        assert_eq!(parse("2.50.1 (Apple Git-155)".split(' ').next().unwrap()), Some((2, 50)));
        assert_eq!(parse("of unknown version"), None);
    }
}
