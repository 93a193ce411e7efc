//! Whether workflows must coordinate (config-and-security.md section 10). Only reported; no command decides by it.

use std::fmt;

use super::{UserConfig, checks, keys};
use crate::error::CommandError;
use crate::world::Environment;

/// A coordination policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Workflows must not go on without coordination.
    Required,
    /// Workflows may go on without coordination.
    Optional,
    /// Workflows do not coordinate.
    Disabled,
}

/// Where a policy was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PolicySource {
    /// The process environment.
    ProcessEnv,
    /// The user file.
    UserConfig,
    /// The older file beside it.
    PolicyFile,
    /// Nowhere.
    Default,
}

impl Policy {
    /// Reads a policy that was found at `place`.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str, place: &str) -> Result<Self, CommandError> {
        Self::named(text).ok_or_else(|| {
            let message = format!("invalid coordination policy in {place}: expected required, optional, disabled");
            CommandError::operational(message)
        })
    }

    /// Returns the policy of this name.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        [Self::Required, Self::Optional, Self::Disabled].into_iter().find(|policy| policy.to_string() == text)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Required => "required",
            Self::Optional => "optional",
            Self::Disabled => "disabled",
        })
    }
}

impl PolicySource {
    /// Returns the source as `config show` names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ProcessEnv => "process_env",
            Self::UserConfig => "user_config",
            Self::PolicyFile => "policy_file",
            Self::Default => "default",
        }
    }
}

/// Returns the policy of the process environment, when it is set there.
///
/// # Errors
/// When it is none of the three.
pub fn of_process(process: &Environment) -> Result<Option<Policy>, CommandError> {
    let place = format!("process environment:{}", keys::POLICY.name());
    process.text(keys::POLICY.name()).map(|text| Policy::parse(&text, &place)).transpose()
}

/// Returns the policy that holds, and where it was found.
///
/// # Errors
/// When one of the places holds something else, or the older file is not safe to read.
pub fn effective(process: &Environment, config: &UserConfig) -> Result<(Policy, PolicySource), CommandError> {
    if let Some(policy) = of_process(process)? {
        return Ok((policy, PolicySource::ProcessEnv));
    }
    // The file was checked when it was parsed.
    if let Some(policy) = config.set(keys::POLICY).and_then(Policy::named) {
        return Ok((policy, PolicySource::UserConfig));
    }
    let Some(file) = config.legacy_policy_file() else { return Ok((Policy::Optional, PolicySource::Default)) };
    let Some(bytes) = checks::read_file(&file)? else { return Ok((Policy::Optional, PolicySource::Default)) };
    let text = String::from_utf8_lossy(&bytes);
    Ok((Policy::parse(text.trim(), &file.display().to_string())?, PolicySource::PolicyFile))
}
