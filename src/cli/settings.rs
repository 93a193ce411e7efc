//! What the flags, the environment, git configuration and defaults amount to, each value with where it came from.

use std::time::Duration;

use super::argv::Supplied;
use super::env_vars::{self, Variable};
use crate::domain::request::Attribution;
use crate::error::CommandError;
use crate::git::Repository;
use crate::worktree::identity;
use crate::world::{Environment, Randomness};

const DEFAULT_TIMEOUT_SECONDS: i64 = 20;
/// How long a claim lasts when nobody says, in seconds.
pub const DEFAULT_CLAIM_TTL_SECONDS: i64 = 14_400;
const DEFAULT_WEDGED_AFTER_SECONDS: i64 = 45 * 60;

/// Where a value came from, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// The command line.
    Flag,
    /// The process environment.
    Environment,
    /// Git configuration, that of the worktree included.
    GitConfig,
    /// The store's own record.
    Store,
    /// Nobody said anything.
    Default,
}

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting<T> {
    /// The value.
    pub value: T,
    /// Where it came from.
    pub origin: Origin,
}

impl<T> Setting<T> {
    fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// What a command reads its settings from.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    /// The options on the command line.
    pub supplied: &'a Supplied,
    /// The process environment.
    pub environment: &'a Environment,
    /// Git configuration; none with a store that is not in git.
    pub repository: Option<&'a Repository>,
}

impl Sources<'_> {
    /// Returns how long the command may take.
    ///
    /// # Errors
    /// When the value is no positive number of seconds.
    pub fn timeout(&self) -> Result<Setting<Duration>, CommandError> {
        let setting = self.seconds(env_vars::TIMEOUT, DEFAULT_TIMEOUT_SECONDS)?;
        Ok(Setting::new(Duration::from_secs(setting.value.unsigned_abs()), setting.origin))
    }

    /// Returns how long a claim lasts, in seconds, when `--ttl` is absent.
    ///
    /// # Errors
    /// When the value is no positive number of seconds.
    pub fn claim_ttl_seconds(&self) -> Result<Setting<i64>, CommandError> {
        self.seconds(env_vars::CLAIM_TTL_SECONDS, DEFAULT_CLAIM_TTL_SECONDS)
    }

    /// Returns after how many seconds without a change of worker phase a live agent counts as wedged.
    ///
    /// # Errors
    /// When the value is no positive number of seconds.
    pub fn wedged_after_seconds(&self) -> Result<Setting<i64>, CommandError> {
        self.seconds(env_vars::WEDGED_AFTER_SECONDS, DEFAULT_WEDGED_AFTER_SECONDS)
    }

    /// Returns the agent that was named: on the command line, in the environment or in git configuration.
    ///
    /// # Errors
    /// When `--agent-id` is empty.
    pub fn named_agent(&self) -> Result<Option<Setting<String>>, CommandError> {
        match self.flag("agent-id")? {
            Some(given) => Ok(Some(given)),
            None => Ok(self.variable(env_vars::AGENT_ID)),
        }
    }

    /// Returns the agent that acts (design.md section 5).
    ///
    /// # Errors
    /// When `--agent-id` is empty, or an id has to be made and cannot be kept.
    pub fn agent(&self, ids: &dyn Randomness) -> Result<Setting<String>, CommandError> {
        if let Some(named) = self.named_agent()? {
            return Ok(named);
        }
        let Some(repository) = self.repository else { return Err(CommandError::usage("missing required --agent-id")) };
        let made = identity::agent_id(repository, self.environment, ids)
            .map_err(|error| CommandError::private_file("an agent id for this worktree", &error))?;
        Ok(Setting::new(made, Origin::Default))
    }

    /// Returns the branch nobody works on directly, when one is set.
    #[must_use]
    pub fn primary_branch(&self) -> Option<String> {
        self.variable(env_vars::PRIMARY_BRANCH).map(|setting| setting.value)
    }

    /// Returns the repository a target belongs to, as far as the command line and git configuration tell.
    ///
    /// # Errors
    /// When `--repo` is empty.
    pub fn repo(&self) -> Result<Option<Setting<String>>, CommandError> {
        if let Some(given) = self.flag("repo")? {
            return Ok(Some(given));
        }
        let configured = self.repository.and_then(|repository| repository.config("agent-coord.repo"));
        Ok(configured.map(|repo| Setting::new(repo, Origin::GitConfig)))
    }

    /// Returns which machine and chat writes are attributed to (state-schema.md section 1.6).
    #[must_use]
    pub fn attribution(&self) -> Attribution {
        attribution(self.environment)
    }

    fn flag(&self, name: &str) -> Result<Option<Setting<String>>, CommandError> {
        if !self.supplied.has(name) {
            return Ok(None);
        }
        match self.supplied.raw(name).filter(|value| !value.is_empty()) {
            Some(value) => Ok(Some(Setting::new(value.to_string_lossy().into_owned(), Origin::Flag))),
            None => Err(CommandError::usage(format!("missing required --{name}"))),
        }
    }

    fn variable(&self, variable: Variable) -> Option<Setting<String>> {
        if let Some(value) = self.environment.text(variable.name) {
            return Some(Setting::new(value, Origin::Environment));
        }
        let value = self.repository?.config(variable.config_key?)?;
        Some(Setting::new(value, Origin::GitConfig))
    }

    fn seconds(&self, variable: Variable, default: i64) -> Result<Setting<i64>, CommandError> {
        let Some(set) = self.variable(variable) else { return Ok(Setting::new(default, Origin::Default)) };
        match super::integer::parse(set.value.trim()).filter(|seconds| *seconds > 0) {
            Some(seconds) => Ok(Setting::new(seconds, set.origin)),
            None => {
                let name = match set.origin {
                    Origin::GitConfig => variable.config_key.unwrap_or(variable.name),
                    _ => variable.name,
                };
                Err(CommandError::operational(format!(
                    "{name} must be a positive number of seconds, got {}",
                    set.value
                )))
            }
        }
    }
}

/// Returns which machine and chat writes are attributed to (state-schema.md section 1.6).
#[must_use]
pub fn attribution(environment: &Environment) -> Attribution {
    let trimmed = |variable: Variable| environment.text(variable.name).map(|value| value.trim().to_owned());
    let own = trimmed(env_vars::SESSION_ID).map(|id| (id, "agent_coord_session_id"));
    let other = || trimmed(env_vars::CODEX_THREAD_ID).map(|id| (id, "codex_thread_id"));
    let (session_id, session_source) = own.or_else(other).unzip();
    Attribution {
        machine_id: trimmed(env_vars::MACHINE_ID),
        session_id,
        session_source: session_source.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::argv::{self, Asked};
    use std::ffi::OsString;

    fn supplied(words: &[&str]) -> Supplied {
        let words: Vec<OsString> = std::iter::once(&"claim").chain(words).map(OsString::from).collect();
        match argv::read(&words, &crate::commands::root()) {
            Ok(Asked::Run(line)) => line.supplied,
            other => panic!("{other:?}"),
        }
    }

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let mut environment = Environment::default();
        for (name, value) in pairs {
            environment.set(name, value);
        }
        environment
    }

    fn repository(config: &str) -> (tempfile::TempDir, Repository) {
        let directory = tempfile::tempdir().unwrap();
        gix::init(directory.path()).unwrap();
        let file = directory.path().join(".git/config");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, format!("{text}{config}")).unwrap();
        let mut process = Environment::of_process();
        process.remove("GIT_DIR");
        let repository = Repository::open(directory.path(), &process).unwrap();
        (directory, repository)
    }

    #[test]
    fn a_flag_beats_the_environment_which_beats_git_configuration_which_beats_the_default() {
        let (_directory, repository) = repository("[agent-coord]\n\tagentId = from-config\n");
        let origin = |words: &[&str], pairs: &[(&str, &str)]| {
            let (supplied, environment) = (supplied(words), environment(pairs));
            let sources = Sources { supplied: &supplied, environment: &environment, repository: Some(&repository) };
            let agent = sources.agent(&crate::world::CountedRandomness::default()).unwrap();
            (agent.value, agent.origin)
        };
        let set = [("AGENT_COORD_AGENT_ID", "from-environment")];
        assert_eq!(origin(&["--agent-id", "w"], &set), ("w".to_owned(), Origin::Flag));
        assert_eq!(origin(&[], &set), ("from-environment".to_owned(), Origin::Environment));
        assert_eq!(origin(&[], &[("AGENT_COORD_AGENT_ID", "  ")]), ("from-config".to_owned(), Origin::GitConfig));
    }

    #[test]
    fn an_empty_flag_is_missing_and_never_inferred_over() {
        let (_directory, repository) = repository("");
        let (supplied, environment) = (supplied(&["--agent-id="]), Environment::default());
        let sources = Sources { supplied: &supplied, environment: &environment, repository: Some(&repository) };
        let error = sources.agent(&crate::world::CountedRandomness::default()).unwrap_err();
        assert_eq!((error.message.as_str(), error.kind.exit_code()), ("missing required --agent-id", 1));
    }

    #[test]
    fn a_bad_value_is_named_and_never_becomes_the_default() {
        let (_directory, repository) = repository("[agent-coord]\n\ttimeout = soon\n");
        let supplied = supplied(&[]);
        let error_with = |pairs: &[(&str, &str)]| {
            let environment = environment(pairs);
            let sources = Sources { supplied: &supplied, environment: &environment, repository: Some(&repository) };
            sources.timeout().map(|setting| setting.value).map_err(|error| error.message)
        };
        assert_eq!(error_with(&[("AGENT_COORD_TIMEOUT", "3")]), Ok(Duration::from_secs(3)));
        assert_eq!(
            error_with(&[("AGENT_COORD_TIMEOUT", "0")]).unwrap_err(),
            "AGENT_COORD_TIMEOUT must be a positive number of seconds, got 0"
        );
        assert_eq!(error_with(&[]).unwrap_err(), "agent-coord.timeout must be a positive number of seconds, got soon");
    }

    #[test]
    fn an_own_chat_id_beats_the_one_codex_sets() {
        let both = environment(&[("AGENT_COORD_SESSION_ID", " s "), ("CODEX_THREAD_ID", "t")]);
        let found = attribution(&both);
        assert_eq!(found.session_id.as_deref(), Some("s"));
        assert_eq!(found.session_source.as_deref(), Some("agent_coord_session_id"));
        let codex = attribution(&environment(&[("AGENT_COORD_SESSION_ID", ""), ("CODEX_THREAD_ID", "t")]));
        assert_eq!(codex.session_source.as_deref(), Some("codex_thread_id"));
        assert_eq!(attribution(&Environment::default()), Attribution::default());
    }
}
