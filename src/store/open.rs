//! From a selection to a backend: the only file that names them all.

use std::path::PathBuf;
use std::sync::Arc;

use super::dir::DirStore;
use super::git::{GitStore, REMOTE_KEY};
use super::{Store, StoreError, StoreErrorKind};
use crate::git::Repository;
use crate::world::{Deadline, Randomness};

/// Which store a command works on, already resolved.
#[derive(Clone)]
pub enum Selection {
    /// The coordination refs of a repository.
    Git {
        /// The repository.
        repository: Arc<Repository>,
        /// The remote from the environment; the repository's configuration otherwise.
        remote: Option<String>,
        /// What a first write names as the default repository.
        default_repo: Option<String>,
    },
    /// A directory of files.
    Directory(PathBuf),
    /// A server.
    Http,
    /// A repository on GitHub, through its API.
    Github,
}

/// Opens a store.
///
/// # Errors
/// When it cannot be used at all.
pub fn open<'world>(
    selection: Selection,
    ids: &'world dyn Randomness,
    deadline: &Deadline<'_>,
) -> Result<Box<dyn Store + 'world>, StoreError> {
    match selection {
        Selection::Git { repository, remote, default_repo } => {
            Ok(Box::new(git(repository, remote, default_repo, ids, deadline)?))
        }
        Selection::Directory(root) => Ok(Box::new(DirStore::new(root, ids))),
        Selection::Http => Err(not_here("HTTP")),
        Selection::Github => Err(not_here("legacy GitHub")),
    }
}

fn not_here(backend: &str) -> StoreError {
    let message = format!("agent-coord {} does not have the {backend} backend", env!("CARGO_PKG_VERSION"));
    StoreError::new(StoreErrorKind::Policy, message)
        .with_hint("--git-dir PATH selects the git backend, --state-root PATH a local directory")
}

/// Opens the git store of a repository, for the commands that need more of it than the trait.
///
/// # Errors
/// When it cannot be used at all.
pub fn git<'world>(
    repository: Arc<Repository>,
    remote: Option<String>,
    default_repo: Option<String>,
    ids: &'world dyn Randomness,
    deadline: &Deadline<'_>,
) -> Result<GitStore<'world>, StoreError> {
    let remote = remote.or_else(|| repository.config(REMOTE_KEY));
    GitStore::open(repository, remote.as_deref(), default_repo, ids, deadline)
}
