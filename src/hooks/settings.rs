//! What a team may set for its hooks. Each has an environment variable and a git config key; the variable wins.

use regex_lite::Regex;
use thiserror::Error;

use crate::git::Repository;
use crate::world::Environment;

/// One setting's two names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// The environment variable.
    pub variable: &'static str,
    /// The git config key.
    pub key: &'static str,
}

/// The branch that nobody commits to directly.
pub const PRIMARY_BRANCH: Names = Names { variable: "AGENT_COORD_PRIMARY_BRANCH", key: "agent-coord.primaryBranch" };
/// Whether commits on the primary branch are allowed.
pub const ALLOW_PRIMARY_COMMIT: Names =
    Names { variable: "AGENT_COORD_ALLOW_PRIMARY_COMMIT", key: "agent-coord.allowPrimaryCommit" };
/// The branches that take the merge phrase, beside the primary branch.
pub const PROTECTED_REGEX: Names = Names { variable: "AGENT_COORD_PROTECTED_REGEX", key: "agent-coord.protectedRegex" };
/// What `MERGE_INTENT` has to hold for a push to a protected branch.
pub const MERGE_PHRASE: Names = Names { variable: "AGENT_COORD_MERGE_PHRASE", key: "agent-coord.mergePhrase" };
/// Whether a branch that nobody claimed is refused.
pub const REQUIRE_CLAIM: Names = Names { variable: "AGENT_COORD_REQUIRE_CLAIM", key: "agent-coord.requireClaim" };
/// What a push does when the claims cannot be read: `refuse` or `warn`.
pub const UNKNOWN: Names = Names { variable: "AGENT_COORD_UNKNOWN", key: "agent-coord.unknown" };

const DEFAULT_PRIMARY_BRANCH: &str = "main";
const DEFAULT_PROTECTED_REGEX: &str = "^(release|hotfix)/";

/// The settings of both hooks.
#[derive(Debug, Clone)]
pub struct HookSettings {
    /// The branch that nobody commits to directly.
    pub primary_branch: String,
    /// Commits on it are allowed all the same.
    pub allow_primary_commit: bool,
    /// Which other branches are protected.
    pub protected: Regex,
    /// The phrase that lets a push to a protected branch pass; unset = none does.
    pub merge_phrase: Option<String>,
    /// A branch that nobody claimed is refused.
    pub require_claim: bool,
    /// A push whose claims cannot be read passes with a warning.
    pub pass_unknown: bool,
}

/// A setting has a value that means nothing. Guessing would leave a branch unprotected, so the hook refuses.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{origin} is {value:?}, but must be {needed}")]
pub struct BadSetting {
    /// The variable or key the value came from.
    pub origin: &'static str,
    /// The value.
    pub value: String,
    /// What would do.
    pub needed: String,
}

impl HookSettings {
    /// Reads the settings that hold in `repository`.
    ///
    /// # Errors
    /// When one of them means nothing.
    pub fn load(environment: &Environment, repository: &Repository) -> Result<Self, BadSetting> {
        let given = |names| given(environment, repository, names);
        let protected = given(PROTECTED_REGEX)
            .unwrap_or(Given { origin: PROTECTED_REGEX.key, value: DEFAULT_PROTECTED_REGEX.to_owned() });
        Ok(Self {
            primary_branch: given(PRIMARY_BRANCH).map_or(DEFAULT_PRIMARY_BRANCH.to_owned(), |given| given.value),
            allow_primary_commit: flag(environment, repository, ALLOW_PRIMARY_COMMIT)?,
            protected: Regex::new(&protected.value).map_err(|error| protected.bad(format!("a regex ({error})")))?,
            merge_phrase: given(MERGE_PHRASE).map(|given| given.value),
            require_claim: flag(environment, repository, REQUIRE_CLAIM)?,
            pass_unknown: given(UNKNOWN).map(|given| given.passes_unknown()).transpose()?.unwrap_or(false),
        })
    }

    /// Tells whether pushes to `branch` take the merge phrase.
    #[must_use]
    pub fn is_protected(&self, branch: &str) -> bool {
        branch == self.primary_branch || self.protected.is_match(branch)
    }
}

struct Given {
    origin: &'static str,
    value: String,
}

impl Given {
    fn bad(&self, needed: impl Into<String>) -> BadSetting {
        BadSetting { origin: self.origin, value: self.value.clone(), needed: needed.into() }
    }

    fn passes_unknown(&self) -> Result<bool, BadSetting> {
        match self.value.trim() {
            "warn" => Ok(true),
            "refuse" => Ok(false),
            _ => Err(self.bad("warn or refuse")),
        }
    }
}

fn given(environment: &Environment, repository: &Repository, names: Names) -> Option<Given> {
    let variable = environment.text(names.variable).map(|value| Given { origin: names.variable, value });
    variable.or_else(|| repository.config(names.key).map(|value| Given { origin: names.key, value }))
}

/// Reads a yes or no as git spells them.
fn flag(environment: &Environment, repository: &Repository, names: Names) -> Result<bool, BadSetting> {
    if environment.text(names.variable).is_none()
        && let Some(value) = repository.config_flag(names.key)
    {
        return Ok(value);
    }
    let Some(given) = given(environment, repository, names) else { return Ok(false) };
    match given.value.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(given.bad("true or false")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worktree::{open, test_repository};

    fn load(variables: &[(&str, &str)], config: &str) -> Result<HookSettings, BadSetting> {
        let (_directory, repository) = test_repository();
        std::fs::write(repository.common_dir().join("config"), config).unwrap();
        let mut environment = Environment::default();
        for (name, value) in variables {
            environment.set(name, value);
        }
        HookSettings::load(&environment, &open(repository.common_dir()))
    }

    #[test]
    fn without_settings_main_and_release_branches_are_protected() {
        let settings = load(&[], "").unwrap();
        for branch in ["main", "release/1", "hotfix/x"] {
            assert!(settings.is_protected(branch), "{branch}");
        }
        for branch in ["mainline", "feat/release/1", "master"] {
            assert!(!settings.is_protected(branch), "{branch}");
        }
        assert!(!settings.allow_primary_commit && !settings.require_claim && !settings.pass_unknown);
        assert_eq!(settings.merge_phrase, None);
    }

    #[test]
    fn the_variable_wins_over_the_key_and_a_blank_variable_is_none() {
        let config = "[agent-coord]\n\tprimaryBranch = trunk\n\trequireClaim\n\tunknown = warn\n";
        let settings = load(&[("AGENT_COORD_PRIMARY_BRANCH", " ")], config).unwrap();
        assert_eq!(settings.primary_branch, "trunk");
        assert!(settings.require_claim && settings.pass_unknown);
        let variables = [
            ("AGENT_COORD_PRIMARY_BRANCH", "dev"),
            ("AGENT_COORD_REQUIRE_CLAIM", "0"),
            ("AGENT_COORD_UNKNOWN", "refuse"),
        ];
        let settings = load(&variables, config).unwrap();
        assert_eq!(settings.primary_branch, "dev");
        assert!(!settings.require_claim && !settings.pass_unknown);
    }

    #[test]
    fn a_value_that_means_nothing_names_itself_and_is_never_a_default() {
        for (variable, value) in [
            ("AGENT_COORD_PROTECTED_REGEX", "^(release"),
            ("AGENT_COORD_ALLOW_PRIMARY_COMMIT", "maybe"),
            ("AGENT_COORD_UNKNOWN", "ignore"),
        ] {
            assert_eq!(load(&[(variable, value)], "").unwrap_err().origin, variable);
        }
        let bad = load(&[], "[agent-coord]\n\tprotectedRegex = \"*\"\n").unwrap_err();
        assert_eq!(bad.origin, "agent-coord.protectedRegex");
    }
}
