//! Which store a run works on (design.md section 2, config-and-security.md sections 7 to 9).
//!
//! The first that says anything decides: flags, the process environment, this repository's own configuration, the user
//! file, and what lies around.

mod implicit;
pub mod selectors;
pub mod split_brain;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::selectors::{Pick, Said, Selector};
use self::split_brain::SplitBrain;
use super::argv::Supplied;
use super::env_vars;
use super::user_config::UserConfig;
use super::user_config::paths::made_absolute;
use crate::error::CommandError;
use crate::git::{GitError, Repository};
use crate::store::git::{REMOTE_KEY, STORE_ID_KEY};
use crate::world::Environment;

/// Who selected a store, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    /// The command line.
    Flag,
    /// The process environment.
    Environment,
    /// The repository's configuration, as `init` writes it.
    GitConfig,
    /// The user file.
    UserConfig,
    /// Nobody.
    Implicit,
}

impl Tier {
    /// Returns the tier as `config show` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "cli",
            Self::Environment => "process_env",
            Self::GitConfig => "git_config",
            Self::UserConfig => "user_config",
            Self::Implicit => "default",
        }
    }
}

/// A store, not opened yet.
#[derive(Clone)]
pub enum Chosen {
    /// The refs of a repository.
    Git {
        /// The repository that holds the refs.
        store: Arc<Repository>,
        /// The repository worked in; usually the same.
        here: Arc<Repository>,
    },
    /// The directory at this absolute path.
    Directory(PathBuf),
    /// The server at this URL.
    Http(String),
    /// A repository on GitHub, through its API.
    Github {
        /// `OWNER/REPO`
        repo: String,
        /// The ref the state is on.
        reference: String,
    },
}

impl Chosen {
    /// Returns the kind of store as `config show` and `doctor` name it.
    #[must_use]
    pub fn backend(&self) -> &'static str {
        match self {
            Self::Git { .. } => "git",
            Self::Directory(_) => "local",
            Self::Http(_) => "http",
            Self::Github { .. } => "github",
        }
    }
}

/// A store and how it came to be selected.
#[derive(Clone)]
pub struct Selected {
    /// The store.
    pub chosen: Chosen,
    /// Who selected it.
    pub tier: Tier,
    /// Whole lines to say on stderr before anything else, the conflict of selectors first.
    pub notices: Vec<String>,
    /// What another configuration of the same person has to do with it.
    pub split_brain: SplitBrain,
    /// The file that is left when the notices are given, so that they are given once.
    pub told: Option<PathBuf>,
}

/// What a selection rests on.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    /// The command's name.
    pub command: &'a str,
    /// The options on the command line.
    pub supplied: &'a Supplied,
    /// The environment as the process got it.
    pub process: &'a Environment,
    /// The environment with what the user file adds.
    pub environment: &'a Environment,
    /// The user file.
    pub config: &'a UserConfig,
    /// The directory the command was started in.
    pub directory: &'a Path,
}

/// Selects a store.
///
/// # Errors
/// When a repository that is meant cannot be used, or nothing tells where the state is to be.
pub fn select(asking: &Asking<'_>) -> Result<Selected, CommandError> {
    let mut selected = asking.selected()?;
    selected.split_brain = split_brain::judge(asking, &selected);
    Ok(selected)
}

impl Asking<'_> {
    fn selected(&self) -> Result<Selected, CommandError> {
        let said = Said { supplied: self.supplied, process: self.process, config: self.config };
        if let Some(pick) = said.by_caller() {
            return self.picked(pick);
        }
        let around = Repository::discover(self.directory, self.environment);
        if let Ok(Some(repository)) = &around
            && self.is_initialised(repository)
        {
            let Ok(Some(repository)) = around else { return Err(self.no_repository()) };
            return Ok(Selected::new(in_git(repository), Tier::GitConfig));
        }
        match said.by_user() {
            // A repository that cannot be used is no reason to distrust what the person chose.
            Some(pick) => self.picked(pick),
            None => self.implicit(around),
        }
    }

    /// A clone belongs to the git store when `init` made or joined one here, or the environment names the remote.
    fn is_initialised(&self, repository: &Repository) -> bool {
        repository.config(STORE_ID_KEY).is_some()
            || repository.config(REMOTE_KEY).is_some()
            || self.process.text(env_vars::REMOTE.name).is_some()
    }

    fn picked(&self, pick: Pick) -> Result<Selected, CommandError> {
        let text = || pick.value.to_string_lossy().into_owned();
        let chosen = match pick.selector {
            Selector::GitDir => self.git_dir(Path::new(&pick.value))?,
            Selector::StateRoot => Chosen::Directory(made_absolute(self.directory, Path::new(&pick.value))),
            Selector::ApiUrl => Chosen::Http(text()),
            Selector::Backend => Chosen::Github { repo: text(), reference: pick.reference },
        };
        let mut selected = Selected::new(chosen, pick.tier);
        selected.notices.extend(pick.conflict.map(|conflict| format!("warning: {conflict}")));
        Ok(selected)
    }

    fn git_dir(&self, path: &Path) -> Result<Chosen, CommandError> {
        let store = Arc::new(Repository::open(&self.directory.join(path), self.environment)?);
        let here = Repository::discover(self.directory, self.environment)?;
        Ok(Chosen::Git { here: here.map_or_else(|| Arc::clone(&store), Arc::new), store })
    }

    fn no_repository(&self) -> CommandError {
        CommandError::operational(format!("no git repository at {}", self.directory.display()))
            .with_hint("start agent-coord inside a repository, or name one with --git-dir PATH")
    }
}

/// Finds the repository of a command that is about the git store and no other.
///
/// # Errors
/// When there is none, it cannot be used, or the caller selects another kind of store.
pub fn repository(asking: &Asking<'_>) -> Result<Arc<Repository>, CommandError> {
    let said = Said { supplied: asking.supplied, process: asking.process, config: asking.config };
    match said.by_caller() {
        Some(Pick { selector: Selector::GitDir, value, .. }) => {
            Ok(Arc::new(Repository::open(&asking.directory.join(value), asking.environment)?))
        }
        Some(Pick { selector, tier, .. }) => {
            let by =
                if tier == Tier::Flag { format!("--{}", selector.flag()) } else { selector.variable().name.to_owned() };
            let message = format!("{} is about the git store, but {by} selects another", asking.command);
            Err(CommandError::operational(message)
                .with_hint("leave it out to use git, or name a repository with --git-dir PATH"))
        }
        None => Repository::discover(asking.directory, asking.environment)?
            .map(Arc::new)
            .ok_or_else(|| asking.no_repository()),
    }
}

impl Selected {
    fn new(chosen: Chosen, tier: Tier) -> Self {
        Self { chosen, tier, notices: Vec::new(), split_brain: SplitBrain::No, told: None }
    }
}

fn in_git(repository: Repository) -> Chosen {
    let here = Arc::new(repository);
    Chosen::Git { store: Arc::clone(&here), here }
}

/// What was found around the directory a command was started in.
type Around = Result<Option<Repository>, GitError>;
