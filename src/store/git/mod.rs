//! The git store: records as blobs under `refs/agent-coord/`, in this clone alone or shared through a remote.
//!
//! | file | holds |
//! | --- | --- |
//! | [`names`] | state path to ref name and back |
//! | [`codec`] | record to bytes and back, `$store` among them |
//! | [`about`] | `store.json`: identity, floors |
//! | [`objects`], [`segments`] | blobs; trees of events |
//! | [`refs`] | reading refs; `git update-ref` under our flock |
//! | [`view`] | the refs as this process knows them |
//! | [`plan`] | a transaction as ref edits, in landing order |
//! | [`local`] | committing in this clone |
//! | [`remote`] | one push, one fetch, and **what their lines mean** |
//! | [`shared`] | committing through the remote; unknown outcomes |
//! | [`reading`] | snapshots |
//! | [`fetch_times`] | when each scope was last fetched |
//! | [`join`], [`sync`] | becoming shared; refreshing and restoring |

pub mod about;
mod broken;
pub mod codec;
pub mod fetch_times;
pub mod join;
pub mod local;
pub mod names;
pub mod objects;
pub mod plan;
pub mod reading;
pub mod refs;
pub mod remote;
pub mod segments;
pub mod shared;
pub mod sync;
pub mod view;
mod writer;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use gix::ObjectId;

use crate::domain::snapshot::{Freshness, Scope, Snapshot};
use crate::git::{GitError, Repository, version};
use crate::store::{Abilities, CommitError, Receipt, Store, StoreError, StoreErrorKind, Transaction};
use crate::world::{Deadline, Randomness};

use self::about::About;
use self::plan::Planner;
use self::remote::Remote;
use self::view::{Fetched, View};

/// The configuration key that names the shared remote.
pub const REMOTE_KEY: &str = "agent-coord.remote";
/// The configuration key that holds the identity of the store this clone knows.
pub const STORE_ID_KEY: &str = "agent-coord.storeId";

/// The store of one clone.
pub struct GitStore<'world> {
    repository: Arc<Repository>,
    ids: &'world dyn Randomness,
    remote: Option<Remote>,
    /// The identity this clone knows; absent until `init` ran or a first write made a store.
    store_id: Option<String>,
    /// What the first write names as the default repository.
    default_repo: Option<String>,
    fetched: Fetched,
    /// Refs a lost push was about; the next fetch brings them along in its one connection.
    due: Mutex<BTreeSet<String>>,
    writer: OnceLock<String>,
}

impl<'world> GitStore<'world> {
    /// Opens the store of `repository`. `remote` names where it is shared: a configured remote or a URL.
    ///
    /// # Errors
    /// When git is too old, or the remote cannot be used.
    pub fn open(
        repository: Arc<Repository>,
        remote: Option<&str>,
        default_repo: Option<String>,
        ids: &'world dyn Randomness,
        deadline: &Deadline<'_>,
    ) -> Result<Self, StoreError> {
        version::check(repository.git(), &repository.shared_dir().join("git-version"), deadline)?;
        let remote = remote.map(|named| Remote::resolve(&repository, named)).transpose()?;
        let store_id = repository.config(STORE_ID_KEY);
        if let (Some(remote), None) = (&remote, &store_id) {
            let message = format!("this clone has not joined the coordination store of {}", remote.label());
            return Err(StoreError::new(StoreErrorKind::Foreign, message)
                .with_hint("`agent-coord init --remote NAME` joins it"));
        }
        Ok(Self {
            repository,
            ids,
            remote,
            store_id,
            default_repo,
            fetched: Fetched::default(),
            due: Mutex::default(),
            writer: OnceLock::new(),
        })
    }

    /// Returns the remote that decides, when the store is shared.
    #[must_use]
    pub fn remote(&self) -> Option<&Remote> {
        self.remote.as_ref()
    }

    fn view<'a>(&'a self, deadline: &'a Deadline<'a>) -> View<'a> {
        View::new(&self.repository, &self.fetched, deadline)
    }

    fn writer(&self) -> Result<&str, StoreError> {
        if let Some(writer) = self.writer.get() {
            return Ok(writer);
        }
        let writer = writer::id_of(&self.repository, self.ids)?;
        Ok(self.writer.get_or_init(|| writer))
    }

    /// Returns `store.json`, checked against the identity this clone knows.
    fn about(&self, view: &View<'_>) -> Result<Option<(ObjectId, About)>, StoreError> {
        let about = view.about()?;
        match (&about, &self.store_id) {
            (Some((_, found)), Some(known)) if found.store_id() != known => Err(self.another_store(found.store_id())),
            (None, Some(_)) => Err(self.no_store()),
            _ => Ok(about),
        }
    }

    fn planner<'a>(
        &'a self,
        view: &'a View<'a>,
        about: Option<(ObjectId, About)>,
        new_about: &'a About,
    ) -> Result<Planner<'a>, StoreError> {
        Ok(Planner { view, writer: self.writer()?, about, new_about, resending: false, skip_segments: 0 })
    }

    /// Returns the record that a first write would make.
    fn fresh_about(&self) -> About {
        About::new(&self.ids.hex(16), self.default_repo.as_deref())
    }

    fn take_due(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.due.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn place(&self) -> String {
        match &self.remote {
            Some(remote) => remote.label().to_owned(),
            None => "this clone".to_owned(),
        }
    }

    fn no_store(&self) -> StoreError {
        let message = format!("not the store this clone knows: {} no longer holds one", self.place());
        let hint = match &self.remote {
            Some(_) => {
                "`agent-coord sync --restore` re-creates it from what this clone still holds; \
                 `agent-coord init --remote NAME` begins or joins another"
            }
            None => "`agent-coord init` begins a new one",
        };
        StoreError::new(StoreErrorKind::Foreign, message).with_hint(hint)
    }

    fn another_store(&self, found: &str) -> StoreError {
        let known = self.store_id.as_deref().unwrap_or("none");
        let message =
            format!("not the store this clone knows: {} holds store {found}, this clone knows {known}", self.place());
        StoreError::new(StoreErrorKind::Foreign, message).with_hint(
            "if the change is meant, `agent-coord init --remote NAME` joins the new store; \
             `agent-coord migrate` copies records from one store to another",
        )
    }
}

impl Store for GitStore<'_> {
    fn describe(&self) -> String {
        match &self.remote {
            Some(remote) => format!("git (shared through {})", remote.label()),
            None => format!("git ({}, this clone only)", self.repository.common_dir().display()),
        }
    }

    fn abilities(&self) -> Abilities {
        Abilities { atomic: true, fencing: true, retries_until_deadline: true }
    }

    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        self.read_snapshot(scope, freshness, deadline)
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        match &self.remote {
            Some(remote) => self.commit_shared(remote, transaction, deadline),
            None => self.commit_local(transaction, deadline),
        }
    }
}

/// Wraps a failure of git or the file system.
fn trouble(error: impl ToString) -> StoreError {
    StoreError::new(StoreErrorKind::Broken, error.to_string())
}

impl From<GitError> for StoreError {
    fn from(error: GitError) -> Self {
        let kind = match &error {
            GitError::TimedOut { .. } => StoreErrorKind::Unreachable,
            GitError::NotFound | GitError::TooOld { .. } | GitError::Untrusted(_) => StoreErrorKind::Policy,
            GitError::Unusable(_) | GitError::Spawn(_) | GitError::Failed { .. } => StoreErrorKind::Broken,
        };
        let hint = match &error {
            GitError::NotFound | GitError::TooOld { .. } => Some("install a newer git and put it first on PATH"),
            GitError::Untrusted(_) => Some("git's `safe.directory` setting says whose repositories to trust"),
            _ => None,
        };
        Self { kind, message: error.to_string(), hint: hint.map(str::to_owned) }
    }
}

#[cfg(test)]
mod tests;
