//! Refs: gix reads them (git does in reftable repositories), `git update-ref --stdin` alone writes them, under our flock
//! (design.md section 3.3 has the measurements that forbid anything else).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{Seek, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use gix::ObjectId;

use super::trouble;
use crate::git::repository::RefStorage;
use crate::git::{Call, Finished, GitError, Repository};
use crate::store::StoreError;
use crate::world::Deadline;

/// How often a reading that a `git pack-refs` overtook is repeated.
const READ_ATTEMPTS: u32 = 50;
/// A `.lock` of ours that stays the same for this long was left by a killed git.
const ABANDONED_AFTER: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

/// Every ref under a name, with what it points at.
pub type Refs = BTreeMap<String, ObjectId>;

/// Reads all refs that begin with `prefix`.
///
/// # Errors
/// When they cannot be read: the state is UNKNOWN.
pub fn list(repository: &Repository, prefix: &str, deadline: &Deadline<'_>) -> Result<Refs, StoreError> {
    match repository.ref_storage() {
        RefStorage::Files => undisturbed(repository, |reader| list_with_gix(reader, prefix)),
        RefStorage::Reftable => list_with_git(repository, &[prefix.to_owned()], deadline),
    }
}

/// Reads single refs; an absent one is left out.
///
/// # Errors
/// When they cannot be read: the state is UNKNOWN.
pub fn read(repository: &Repository, names: &[String], deadline: &Deadline<'_>) -> Result<Refs, StoreError> {
    match repository.ref_storage() {
        RefStorage::Files => undisturbed(repository, |reader| read_with_gix(reader, names)),
        RefStorage::Reftable if names.is_empty() => Ok(Refs::new()),
        RefStorage::Reftable => {
            let mut found = list_with_git(repository, names, deadline)?;
            found.retain(|name, _| names.contains(name));
            Ok(found)
        }
    }
}

/// Repeats a reading until no `git pack-refs` came in between: gix looks at the packed refs first, so a ref that is
/// packed and pruned while it looks would be seen in neither place, and UNKNOWN would pass for absent.
fn undisturbed(
    repository: &Repository,
    read: impl Fn(&gix::Repository) -> Result<Refs, StoreError>,
) -> Result<Refs, StoreError> {
    let packed = repository.common_dir().join("packed-refs");
    let mut reader = repository.reader();
    let mut before = mark(&packed);
    for _ in 0..READ_ATTEMPTS {
        let refs = read(&reader);
        let after = mark(&packed);
        if before == after {
            return refs;
        }
        before = after;
        reader = repository.reopened_reader().map_err(trouble)?;
    }
    Err(trouble("the refs of this repository are packed again faster than they can be read"))
}

fn mark(path: &Path) -> Option<(u64, u64, i64, i64)> {
    std::fs::metadata(path).ok().map(|data| (data.ino(), data.len(), data.mtime(), data.mtime_nsec()))
}

fn list_with_gix(reader: &gix::Repository, prefix: &str) -> Result<Refs, StoreError> {
    let platform = reader.references().map_err(|error| trouble(format!("cannot read refs: {error}")))?;
    let iter = platform
        .prefixed(prefix.as_bytes())
        .map_err(|error| trouble(format!("cannot read refs under {prefix}: {error}")))?;
    let mut refs = Refs::new();
    for reference in iter {
        let reference = reference.map_err(|error| trouble(format!("cannot read a ref under {prefix}: {error}")))?;
        let name = reference.name().as_bstr().to_string();
        match reference.target().try_id() {
            Some(id) => refs.insert(name, id.to_owned()),
            None => return Err(symbolic(&name)),
        };
    }
    Ok(refs)
}

fn read_with_gix(reader: &gix::Repository, names: &[String]) -> Result<Refs, StoreError> {
    let mut refs = Refs::new();
    for name in names {
        let found = reader
            .try_find_reference(name.as_str())
            .map_err(|error| trouble(format!("cannot read ref {name}: {error}")))?;
        // A partial name could match elsewhere; only the full name counts.
        let Some(reference) = found.filter(|found| found.name().as_bstr() == name.as_bytes()) else { continue };
        match reference.target().try_id() {
            Some(id) => refs.insert(name.clone(), id.to_owned()),
            None => return Err(symbolic(name)),
        };
    }
    Ok(refs)
}

fn symbolic(name: &str) -> StoreError {
    trouble(format!("{name} is a symbolic ref, which no agent-coord writes"))
}

fn list_with_git(repository: &Repository, patterns: &[String], deadline: &Deadline<'_>) -> Result<Refs, StoreError> {
    let call = Call::new("for-each-ref").args(["--format=%(objectname) %(refname)", "--"]).args(patterns);
    let output = repository.run(call, deadline).and_then(|done| done.checked("for-each-ref")).map_err(trouble)?;
    let text = String::from_utf8_lossy(&output);
    let parse = |line: &str| {
        let (id, name) = line.split_once(' ')?;
        Some((name.to_owned(), ObjectId::from_hex(id.as_bytes()).ok()?))
    };
    Ok(text.lines().filter_map(parse).collect())
}

/// One ref to change, with the state it must be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefEdit {
    /// The full name.
    pub name: String,
    /// What must be there now.
    pub expected: Option<ObjectId>,
    /// What will be there; the same as `expected` = a guard, absent = deleted.
    pub new: Option<ObjectId>,
}

impl RefEdit {
    /// Tells whether the edit changes nothing and only insists.
    #[must_use]
    pub fn is_guard(&self) -> bool {
        self.expected == self.new
    }

    fn command(&self) -> String {
        match (self.expected, self.new) {
            (None, Some(new)) => format!("create {} {new}\n", self.name),
            (Some(old), Some(new)) if old == new => format!("verify {} {old}\n", self.name),
            (Some(old), Some(new)) => format!("update {} {new} {old}\n", self.name),
            (Some(old), None) => format!("delete {} {old}\n", self.name),
            // An absent ref is guarded by the all-zero id, whose length git takes from the repository's hash.
            (None, None) => format!("verify {}\n", self.name),
        }
    }
}

/// How an update ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// All edits are there.
    Landed,
    /// Git refused before it changed anything; the text is its own.
    Refused(String),
    /// Git was stopped or died: some of the edits may be there.
    Interrupted(String),
}

/// Applies edits in one `git update-ref` transaction, holding `guard`. Git reads its commands from the very file that is
/// flocked, so the flock lives as long as this process or its git, and no other process can inherit it by accident.
///
/// # Errors
/// When git cannot be started.
pub fn update(
    repository: &Repository,
    edits: &[RefEdit],
    guard: &Flock,
    deadline: &Deadline<'_>,
) -> Result<Update, StoreError> {
    let mut input = String::from("start\n");
    for edit in edits {
        input.push_str("option no-deref\n");
        input.push_str(&edit.command());
    }
    input.push_str("prepare\ncommit\n");
    let stdin = guard.hold(&input).map_err(|error| trouble(format!("cannot write the flock file: {error}")))?;
    let call = Call::new("update-ref").config("core.logAllRefUpdates", "false").args(["--stdin"]).input_file(stdin);
    match repository.run(call, deadline) {
        Ok(finished) => Ok(read_update(&finished)),
        Err(error @ GitError::TimedOut { .. }) => Ok(Update::Interrupted(error.to_string())),
        Err(error) => Err(trouble(error)),
    }
}

fn read_update(finished: &Finished) -> Update {
    let said = |line: &str| finished.text().lines().any(|found| found == line);
    if finished.succeeded() && said("commit: ok") {
        Update::Landed
    } else if said("prepare: ok") || finished.code.is_none() {
        Update::Interrupted(finished.last_words())
    } else {
        Update::Refused(finished.last_words())
    }
}

/// The flock of a clone: whoever holds it may run `git update-ref` here.
pub struct Flock {
    file: File,
}

impl Flock {
    /// Writes `commands` into the flocked file and returns the handle git is to read them from.
    fn hold(&self, commands: &str) -> std::io::Result<File> {
        let mut file = &self.file;
        file.set_len(0)?;
        file.rewind()?;
        file.write_all(commands.as_bytes())?;
        file.rewind()?;
        self.file.try_clone()
    }

    /// Takes the flock, waiting for it until the deadline.
    ///
    /// # Errors
    /// When it cannot be opened, or others hold it for longer than that.
    pub fn take(repository: &Repository, deadline: &Deadline<'_>) -> Result<Self, StoreError> {
        let directory = repository.shared_dir();
        let path = directory.join("flock");
        let explain = |error: std::io::Error| trouble(format!("cannot open {}: {error}", path.display()));
        std::fs::create_dir_all(&directory).map_err(explain)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or(0))
            .open(&path)
            .map_err(explain)?;
        let mut pause = Duration::from_micros(300);
        loop {
            match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self { file }),
                Err(error) if error == rustix::io::Errno::WOULDBLOCK || error == rustix::io::Errno::INTR => {}
                Err(error) => return Err(explain(error.into())),
            }
            if deadline.has_passed() {
                return Err(trouble(format!(
                    "another process of this clone held {} for {} s; try again",
                    path.display(),
                    deadline.whole().as_secs()
                )));
            }
            deadline.pause(pause);
            pause = (pause * 2).min(POLL);
        }
    }
}

/// Removes lock files that a killed git left on `names`: those that stay the same for two seconds while we hold the
/// flock, under which alone our git runs. Returns whether any was removed.
#[must_use]
pub fn remove_abandoned_locks(repository: &Repository, names: &[&str], _held: &Flock, deadline: &Deadline<'_>) -> bool {
    let paths: Vec<PathBuf> = names
        .iter()
        .map(|name| repository.common_dir().join(format!("{name}.lock")))
        .filter(|path| path.exists())
        .collect();
    let first: Vec<_> = paths.iter().map(|path| mark(path)).collect();
    if paths.is_empty() {
        return false;
    }
    let mut waited = Duration::ZERO;
    while waited < ABANDONED_AFTER && !deadline.has_passed() {
        deadline.pause(POLL);
        waited += POLL;
    }
    let mut removed = false;
    for (path, first) in paths.iter().zip(first) {
        if waited >= ABANDONED_AFTER && first.is_some() && mark(path) == first {
            removed |= std::fs::remove_file(path).is_ok();
        }
    }
    removed
}

/// Returns what to say of the lock files that we never remove ourselves.
#[must_use]
pub fn foreign_lock(repository: &Repository) -> Option<String> {
    let path = repository.common_dir().join("packed-refs.lock");
    path.exists().then(|| {
        let mut text = format!("{} is held by another git", path.display());
        let _ = write!(text, "; if no git runs in this repository it was left by a killed one");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(code: Option<i32>, stdout: &str, stderr: &str) -> Finished {
        Finished { code, signal: None, stdout: stdout.into(), stderr: stderr.to_owned() }
    }

    #[test]
    fn an_update_is_landed_only_when_git_says_so_and_refused_only_before_it_prepared() {
        assert_eq!(read_update(&finished(Some(0), "start: ok\nprepare: ok\ncommit: ok\n", "")), Update::Landed);
        assert!(matches!(
            read_update(&finished(Some(128), "start: ok\n", "fatal: prepare: cannot lock ref 'x'")),
            Update::Refused(_)
        ));
        assert!(matches!(read_update(&finished(Some(128), "start: ok\nprepare: ok\n", "")), Update::Interrupted(_)));
        assert!(matches!(read_update(&finished(None, "", "")), Update::Interrupted(_)));
    }
}
