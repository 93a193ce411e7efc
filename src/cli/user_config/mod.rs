//! The user file: what a person has configured for every shell and every repository (config-and-security.md).
//!
//! | file | holds |
//! | --- | --- |
//! | [`keys`] | what may be configured |
//! | [`paths`] | where files are |
//! | [`checks`] | whose files are read |
//! | [`lock`] | readers and one writer |
//! | [`parse`] | text to values and back |
//! | [`policy`] | whether workflows must coordinate |
//! | [`token`] | which secret goes with which URL |
//! | [`save`] | changing the file |

pub mod checks;
pub mod keys;
pub mod lock;
pub mod parse;
pub mod paths;
pub mod policy;
pub mod save;
pub mod token;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use self::checks::Leaf;
use self::keys::Key;
use self::parse::Values;
use self::paths::Canonical;
use crate::error::CommandError;
use crate::world::{Clock, Environment};

/// What the user file says. Empty where it is not read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UserConfig {
    canonical: Option<Canonical>,
    values: Values,
}

/// Whether a file that was named outright must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// It must.
    Refused,
    /// It is about to be made.
    Tolerated,
}

impl UserConfig {
    /// Reads the user file.
    ///
    /// # Errors
    /// When it is not safe to read, or says something unclear; never a fallback to something else.
    pub fn load(environment: &Environment, clock: &dyn Clock, missing: Missing) -> Result<Self, CommandError> {
        let Some(canonical) = paths::canonical(environment)? else { return Ok(Self::default()) };
        let values = read(&canonical, clock)?;
        if values.is_none() && canonical.explicit && missing == Missing::Refused {
            let file = canonical.file.display();
            return Err(checks::refuse(&format!("configured user env file does not exist: {file}")));
        }
        Ok(Self { canonical: Some(canonical), values: values.unwrap_or_default() })
    }

    /// Returns a value that is set: there, and not blank.
    #[must_use]
    pub fn set(&self, key: Key) -> Option<&str> {
        self.values.get(&key).map(String::as_str).filter(|value| !value.trim().is_empty())
    }

    /// Returns the file, whether it is there or not; none where the environment names no home.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.canonical.as_ref().map(|canonical| canonical.file.as_path())
    }

    /// Returns the older file that held nothing but a policy.
    #[must_use]
    pub fn legacy_policy_file(&self) -> Option<PathBuf> {
        let canonical = self.canonical.as_ref().filter(|canonical| !canonical.explicit)?;
        Some(canonical.file.with_file_name("policy"))
    }

    /// Returns `process` with what the file adds to it. What selects a store stays out, since its origin counts, and the
    /// saved token goes nowhere but to the saved URL.
    #[must_use]
    pub fn added_to(&self, process: &Environment) -> Environment {
        let mut effective = process.clone();
        for key in [keys::MACHINE_ID, keys::STATUS_STATE_ROOT, keys::LOCAL, keys::POLICY] {
            if let (Some(value), None) = (self.set(key), process.text(key.name())) {
                effective.set(key.name(), value);
            }
        }
        effective
    }
}

/// Reads the file; `None` = it is not there.
fn read(canonical: &Canonical, clock: &dyn Clock) -> Result<Option<Values>, CommandError> {
    let Canonical { file, explicit } = canonical;
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(checks::refuse(&format!("user config must be a regular file: {}", file.display())));
    };
    if !is_there(directory)? || std::fs::symlink_metadata(file).is_err_and(is_missing) {
        return Ok(None);
    }
    let real = checks::check_chain(directory, Leaf { private: !explicit, writable: false })?;
    let _lock = lock::share(&lock::lock_file(&real, name), clock)?;
    checks::read_file(file)?.map(|bytes| parse::parse(file, &bytes)).transpose()
}

/// Tells whether a directory is there, links followed.
fn is_there(directory: &Path) -> Result<bool, CommandError> {
    match directory.canonicalize() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            Err(checks::refuse(&format!("config parent must not be a symlink loop: {}", directory.display())))
        }
        Err(error) => {
            let (directory, reason) = (directory.display(), checks::plain(&error));
            Err(checks::refuse(&format!("cannot resolve config parent {directory}: {reason}")))
        }
    }
}

fn is_missing(error: std::io::Error) -> bool {
    error.kind() == ErrorKind::NotFound
}

#[cfg(test)]
pub(crate) mod tests;
