//! What a command is given to work with.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::argv::Supplied;
use super::selection::split_brain::SplitBrain;
use super::selection::{self, Asking, Chosen, Selected};
use super::settings::{Origin, Setting, Sources};
use super::user_config::UserConfig;
use super::{env_vars, repo_name};
use crate::app::App;
use crate::domain::ids::RepoName;
use crate::domain::snapshot::{Freshness, Scope};
use crate::error::CommandError;
use crate::git::Repository;
use crate::output::Printer;
use crate::store::{self, Store, StoreError};
use crate::worktree::files;
use crate::world::{Clock, Deadline, Environment, Randomness};

/// Makes stores; tests put their own in.
pub trait Stores {
    /// Opens a store.
    ///
    /// # Errors
    /// When it cannot be used.
    fn open<'world>(&self, request: OpenStore<'world>) -> Result<Box<dyn Store + 'world>, StoreError>;
}

/// Which store to open, and for whom.
pub struct OpenStore<'world> {
    /// The store.
    pub selection: store::open::Selection,
    /// Randomness.
    pub ids: &'world dyn Randomness,
    /// When the command must have answered.
    pub deadline: Deadline<'world>,
}

/// The stores of the real world.
pub struct RealStores;

impl Stores for RealStores {
    fn open<'world>(&self, request: OpenStore<'world>) -> Result<Box<dyn Store + 'world>, StoreError> {
        let OpenStore { selection, ids, deadline } = request;
        store::open::open(selection, ids, &deadline)
    }
}

/// What every command is given.
pub struct Context<'world> {
    /// The command's name.
    pub command: String,
    /// The options on the command line.
    pub supplied: Supplied,
    /// The environment as the process got it, which is what selects a store.
    pub process: &'world Environment,
    /// The environment with what the user file adds to it.
    pub environment: &'world Environment,
    /// The user file; empty for commands that do not read it.
    pub user_config: UserConfig,
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

/// A store that is open.
pub struct Opened<'world> {
    /// The store.
    pub store: Box<dyn Store + 'world>,
    /// How it came to be selected.
    pub selected: Selected,
    /// The repository worked in: its configuration and the private files of its worktree. Only with the git store, and
    /// usually the one that holds the refs; another when the state is kept in a repository of its own. Without it
    /// nothing is inferred, remembered or enforced: the options say everything.
    pub repository: Option<Arc<Repository>>,
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
    /// Finds the repository of a command about the git store, and starts the clock of the command.
    ///
    /// # Errors
    /// When there is none, it cannot be used, or another kind of store is selected.
    pub fn place(&self) -> Result<Place<'world>, CommandError> {
        let repository = selection::repository(&self.asking())?;
        let timeout: Duration = self.sources(Some(&repository)).timeout()?.value;
        Ok(Place { repository, deadline: Deadline::after(self.clock, timeout) })
    }

    /// Selects a store without saying anything about it.
    ///
    /// # Errors
    /// When none can be selected.
    pub fn select(&self) -> Result<Selected, CommandError> {
        selection::select(&self.asking())
    }

    fn asking(&self) -> Asking<'_> {
        Asking {
            command: &self.command,
            supplied: &self.supplied,
            process: self.process,
            environment: self.environment,
            config: &self.user_config,
            directory: self.directory,
        }
    }

    /// Selects a store, says what is to be said of that, and opens it.
    ///
    /// # Errors
    /// When none can be selected or used, or this command may not use it.
    pub fn open(&mut self) -> Result<Opened<'world>, CommandError> {
        let selected = self.select()?;
        if !matches!(selected.chosen, Chosen::Git { .. }) {
            self.refuse_what_only_git_takes()?;
        }
        self.announce(&selected)?;
        self.open_selected(selected)
    }

    fn refuse_what_only_git_takes(&self) -> Result<(), CommandError> {
        let positionals = self.supplied.positionals();
        let takes_one_anywhere = self.command == "log";
        if !positionals.is_empty() && !takes_one_anywhere {
            return Err(CommandError::usage(format!("unexpected arguments: {}", positionals.join(" "))));
        }
        if self.supplied.has("supersede") {
            return Err(CommandError::usage("--supersede is only valid with the git backend"));
        }
        Ok(())
    }

    /// Says on stderr how the store came to be selected; nothing else may precede it.
    fn announce(&mut self, selected: &Selected) -> Result<(), CommandError> {
        let reported_anyway = matches!(selected.split_brain, SplitBrain::Refuses(_) | SplitBrain::Reports { .. });
        // Of several commands that begin together one gives the notice.
        let is_told = selected.told.as_deref().is_some_and(|told| !reported_anyway && !files::is_first(told));
        let is_quiet = |notice: &str| notice.starts_with("notice: ") && (reported_anyway || is_told);
        for notice in selected.notices.iter().filter(|notice| !is_quiet(notice)) {
            self.printer.message(notice);
        }
        match &selected.split_brain {
            SplitBrain::Refuses(message) => return Err(CommandError::operational(message)),
            SplitBrain::Advises(message) => drop(self.printer.warning(message)),
            SplitBrain::No | SplitBrain::Reports { .. } => {}
        }
        Ok(())
    }

    /// Opens a store that was selected.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn open_selected(&self, selected: Selected) -> Result<Opened<'world>, CommandError> {
        let repository = match &selected.chosen {
            Chosen::Git { here, .. } => Some(Arc::clone(here)),
            _ => None,
        };
        let timeout = match &selected.chosen {
            Chosen::Git { store, .. } => self.sources(Some(store)).timeout()?.value,
            _ => self.sources(None).timeout()?.value,
        };
        let deadline = Deadline::after(self.clock, timeout);
        let selection = match &selected.chosen {
            Chosen::Git { store, here } => store::open::Selection::Git {
                repository: Arc::clone(store),
                remote: self.environment.text(env_vars::REMOTE.name),
                default_repo: Some(self.proposed_repo(here)),
            },
            Chosen::Directory(root) => store::open::Selection::Directory(root.clone()),
            Chosen::Http(_) => store::open::Selection::Http,
            Chosen::Github { .. } => store::open::Selection::Github,
        };
        let store = self.stores.open(OpenStore { selection, ids: self.ids, deadline })?;
        Ok(Opened { store, selected, repository, deadline, clock: self.clock, ids: self.ids })
    }

    /// Returns what settings are read from.
    #[must_use]
    pub fn sources<'a>(&'a self, repository: Option<&'a Repository>) -> Sources<'a> {
        Sources { supplied: &self.supplied, environment: self.environment, repository }
    }

    /// Checks that the options named are there and not empty, where nothing could be inferred in their place.
    ///
    /// # Errors
    /// `missing required --X` for the first that is not.
    pub fn require(&self, opened: &Opened<'_>, names: &[&str]) -> Result<(), CommandError> {
        if opened.repository.is_some() {
            return Ok(());
        }
        let is_missing = |name: &&&str| self.supplied.raw(name).is_none_or(|value| value.is_empty());
        match names.iter().find(is_missing) {
            Some(name) => Err(CommandError::usage(format!("missing required --{name}"))),
            None => Ok(()),
        }
    }

    /// Returns the repository the command is about: `--repo`, git configuration, the store's own, or the proposed one.
    ///
    /// # Errors
    /// When the store cannot be asked, or `--repo` is empty, or missing where nothing is inferred.
    pub fn repo(&self, opened: &Opened<'_>) -> Result<Setting<String>, CommandError> {
        self.require(opened, &["repo"])?;
        if let Some(known) = self.sources(opened.repository.as_deref()).repo()? {
            return Ok(known);
        }
        let snapshot = opened.store.snapshot(&Scope::default(), Freshness::Cached, &opened.deadline)?;
        if let Some(repo) = snapshot.store.default_repo {
            return Ok(Setting { value: repo, origin: Origin::Store });
        }
        let proposed = opened.repository.as_deref().map(repo_name::derive).unwrap_or_default();
        Ok(Setting { value: proposed, origin: Origin::Default })
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
}
