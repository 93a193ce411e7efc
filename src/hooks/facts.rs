//! What a hook needs to know of the repository it runs in.

use std::path::PathBuf;

use super::pre_commit::CanaryFacts;
use crate::git::files;
use crate::git::head::Head;
use crate::git::repository::RefStorage;
use crate::git::{Call, GitError, Repository};
use crate::worktree::canary::{self, Remembered};
use crate::world::Deadline;

/// Returns where a commit made now would go.
///
/// During a rebase HEAD is detached, but the commits are meant for the branch being rebased.
///
/// # Errors
/// When HEAD cannot be read.
pub fn here(repository: &Repository, deadline: &Deadline<'_>) -> Result<Head, GitError> {
    let mut head = repository.head(deadline)?;
    if head.branch.is_none() {
        head.branch = ["rebase-merge/head-name", "rebase-apply/head-name"].into_iter().find_map(|name| {
            let text = files::read(&repository.git_dir().join(name))?;
            text.trim_end().strip_prefix("refs/heads/").map(str::to_owned)
        });
    }
    Ok(head)
}

/// Tells how the canary of this worktree does.
///
/// # Errors
/// When git cannot be run.
pub fn canary(repository: &Repository, head: &Head, deadline: &Deadline<'_>) -> Result<CanaryFacts, GitError> {
    let canary = match canary::load(repository) {
        Remembered::Nothing => return Ok(CanaryFacts::Quiet),
        Remembered::Unreadable(file) => return Ok(CanaryFacts::Unreadable(file)),
        Remembered::Set(canary) => canary,
    };
    if head.branch.as_deref() != Some(&canary.branch) {
        return Ok(CanaryFacts::Quiet);
    }
    let intact = match &head.commit {
        Some(commit) => is_ancestor(repository, &canary.commit, commit, deadline)?,
        None => false,
    };
    Ok(if intact { CanaryFacts::Quiet } else { CanaryFacts::Tripped(canary) })
}

/// Tells whether `ancestor` is `descendant` or one of its ancestors. A commit that is not here is nobody's ancestor.
///
/// # Errors
/// When git cannot be run.
pub fn is_ancestor(
    repository: &Repository,
    ancestor: &str,
    descendant: &str,
    deadline: &Deadline<'_>,
) -> Result<bool, GitError> {
    if ancestor == descendant {
        return Ok(true);
    }
    let call = Call::new("merge-base").args(["--is-ancestor", "--end-of-options", ancestor, descendant]);
    Ok(repository.run(call, deadline)?.succeeded())
}

/// Returns the file that holds a person's word for one push to a protected branch.
#[must_use]
pub fn intent_file(repository: &Repository) -> PathBuf {
    repository.common_dir().join("MERGE_INTENT")
}

/// Returns that word, without the line end an editor adds.
#[must_use]
pub fn intent(repository: &Repository) -> Option<String> {
    let text = files::read(&intent_file(repository))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    Some(text.strip_suffix('\r').unwrap_or(text).to_owned())
}

/// What a clone knows of a coordination store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Coordination {
    /// Nobody ever used one here.
    Nothing,
    /// There is one, in this clone alone.
    Local,
    /// There is one, shared through a remote, and this clone has a copy of it.
    Shared,
    /// There is one, shared through a remote, and this clone has no copy of it.
    SharedWithoutCopy,
}

/// Tells what this clone knows of a coordination store, without asking the store. `is_shared` = a remote is named.
///
/// # Errors
/// When refs cannot be read.
pub fn coordination(
    repository: &Repository,
    is_shared: bool,
    deadline: &Deadline<'_>,
) -> Result<Coordination, GitError> {
    let has_store = has_ref(repository, "refs/agent-coord/store.json", deadline)?;
    Ok(match (is_shared, has_store) {
        (true, true) => Coordination::Shared,
        (true, false) => Coordination::SharedWithoutCopy,
        (false, true) => Coordination::Local,
        // A store that is known but gone is the store's to report.
        (false, false) if repository.config("agent-coord.storeId").is_some() => Coordination::Local,
        (false, false) => Coordination::Nothing,
    })
}

fn has_ref(repository: &Repository, name: &str, deadline: &Deadline<'_>) -> Result<bool, GitError> {
    if repository.ref_storage() == RefStorage::Files {
        let reader = repository.reader();
        let found = reader.try_find_reference(name).map_err(|error| GitError::Unusable(error.to_string()))?;
        return Ok(found.is_some());
    }
    Ok(repository.run(Call::new("show-ref").args(["--verify", "--quiet", name]), deadline)?.succeeded())
}
