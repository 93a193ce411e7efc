//! What a command is given to work with.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::argv::Supplied;
use super::settings::{self, Origin, Selection, Setting, Sources};
use super::{env_vars, repo_name};
use crate::app::App;
use crate::domain::ids::RepoName;
use crate::domain::snapshot::{Freshness, Scope};
use crate::error::CommandError;
use crate::git::Repository;
use crate::output::Printer;
use crate::store::{self, Store, StoreError};
use crate::world::{Clock, Deadline, Environment, Randomness};

/// Makes stores; tests put their own in.
pub trait Stores {
    /// Opens the store of a repository.
    ///
    /// # Errors
    /// When it cannot be used.
    fn open<'world>(&self, request: OpenStore<'world>) -> Result<Box<dyn Store + 'world>, StoreError>;
}

/// Which store to open, and for whom.
pub struct OpenStore<'world> {
    /// The repository that holds the refs.
    pub repository: Arc<Repository>,
    /// The remote the environment names, in the place of the configured one.
    pub remote: Option<String>,
    /// What a new store names as the repository of commands without `--repo`.
    pub default_repo: Option<String>,
    /// Randomness.
    pub ids: &'world dyn Randomness,
    /// When the command must have answered.
    pub deadline: Deadline<'world>,
}

/// The stores of the real world.
pub struct GitStores;

impl Stores for GitStores {
    fn open<'world>(&self, request: OpenStore<'world>) -> Result<Box<dyn Store + 'world>, StoreError> {
        let OpenStore { repository, remote, default_repo, ids, deadline } = request;
        store::open::open(store::open::Selection::Git { repository, remote, default_repo }, ids, &deadline)
    }
}

/// What every command is given.
pub struct Context<'world> {
    /// The options on the command line.
    pub supplied: Supplied,
    /// The process environment.
    pub environment: &'world Environment,
    /// The directory the command was started in.
    pub directory: &'world Path,
    /// Time.
    pub clock: &'world dyn Clock,
    /// Randomness.
    pub ids: &'world dyn Randomness,
    /// Where input comes from.
    pub stdin: &'world mut (dyn Read + Send),
    /// Where answers go.
    pub printer: Printer<'world>,
    /// Where stores come from.
    pub stores: &'world dyn Stores,
}

/// The repository a command works in.
pub struct Place<'world> {
    /// The repository.
    pub repository: Arc<Repository>,
    /// When the command must have answered.
    pub deadline: Deadline<'world>,
}

/// A repository with its store open.
pub struct Opened<'world> {
    /// The store.
    pub store: Box<dyn Store + 'world>,
    /// The repository: its private files and its configuration.
    pub repository: Arc<Repository>,
    /// When the command must have answered.
    pub deadline: Deadline<'world>,
    clock: &'world dyn Clock,
    ids: &'world dyn Randomness,
}

impl Opened<'_> {
    /// Returns what `app` acts on.
    #[must_use]
    pub fn app(&self) -> App<'_> {
        App { store: &*self.store, clock: self.clock, ids: self.ids, deadline: self.deadline }
    }
}

impl<'world> Context<'world> {
    /// Finds the repository the command line selects, and starts the clock of the command.
    ///
    /// # Errors
    /// When there is none, it cannot be used, or another kind of store is selected.
    pub fn place(&self) -> Result<Place<'world>, CommandError> {
        let repository = match settings::selection(&self.supplied, self.environment)? {
            Selection::GitDir(path) => Repository::open(&self.directory.join(path.value), self.environment)?,
            Selection::Discovered => {
                Repository::discover(self.directory, self.environment)?.ok_or_else(|| self.no_repository())?
            }
        };
        let timeout: Duration = self.sources(&repository).timeout()?.value;
        Ok(Place { repository: Arc::new(repository), deadline: Deadline::after(self.clock, timeout) })
    }

    /// Opens the store the command line selects.
    ///
    /// # Errors
    /// See [`place`](Self::place); and when the store cannot be used.
    pub fn open(&self) -> Result<Opened<'world>, CommandError> {
        let Place { repository, deadline } = self.place()?;
        let request = OpenStore {
            repository: Arc::clone(&repository),
            remote: self.environment.text(env_vars::REMOTE.name),
            default_repo: Some(self.proposed_repo(&repository)),
            ids: self.ids,
            deadline,
        };
        let store = self.stores.open(request)?;
        Ok(Opened { store, repository, deadline, clock: self.clock, ids: self.ids })
    }

    /// Returns what settings are read from.
    #[must_use]
    pub fn sources<'a>(&'a self, repository: &'a Repository) -> Sources<'a> {
        Sources { supplied: &self.supplied, environment: self.environment, repository }
    }

    /// Returns the repository the command is about: `--repo`, git configuration, the store's own, or the proposed one.
    ///
    /// # Errors
    /// When the store cannot be asked, or `--repo` is empty.
    pub fn repo(&self, opened: &Opened<'_>) -> Result<Setting<String>, CommandError> {
        if let Some(known) = self.sources(&opened.repository).repo()? {
            return Ok(known);
        }
        let snapshot = opened.store.snapshot(&Scope::default(), Freshness::Cached, &opened.deadline)?;
        if let Some(repo) = snapshot.store.default_repo {
            return Ok(Setting { value: repo, origin: Origin::Store });
        }
        Ok(Setting { value: repo_name::derive(&opened.repository), origin: Origin::Default })
    }

    /// Returns [`repo`](Self::repo) validated as the repository of a target.
    ///
    /// # Errors
    /// Those of [`repo`](Self::repo), and `invalid target repo: X`.
    pub fn target_repo(&self, opened: &Opened<'_>) -> Result<RepoName, CommandError> {
        Ok(RepoName::parse("target", &self.repo(opened)?.value)?)
    }

    /// Returns what a new store is to name as its default repository.
    #[must_use]
    pub fn proposed_repo(&self, repository: &Repository) -> String {
        repository.config("agent-coord.repo").unwrap_or_else(|| repo_name::derive(repository))
    }

    fn no_repository(&self) -> CommandError {
        CommandError::operational(format!("no git repository at {}", self.directory.display()))
            .with_hint("start agent-coord inside a repository, or name one with --git-dir PATH")
    }
}
