//! Where the files of a user are (config-and-security.md section 1).

use std::path::{Path, PathBuf};

use crate::error::CommandError;
use crate::world::Environment;

/// The variable that names the user file in the place of the derived one.
pub const ENV_FILE: &str = "AGENT_COORD_ENV_FILE";
const FOLDER: &str = "agent-coord";

/// Where the user file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canonical {
    /// The file.
    pub file: PathBuf,
    /// It was named outright: it must be there, and its directory is nobody's business but its owner's.
    pub explicit: bool,
}

/// Returns where the user file is; nowhere, when the environment names no home.
///
/// # Errors
/// When a variable that decides is relative.
pub fn canonical(environment: &Environment) -> Result<Option<Canonical>, CommandError> {
    if let Some(file) = absolute(environment, ENV_FILE)? {
        return Ok(Some(Canonical { file, explicit: true }));
    }
    let home = config_home(environment)?;
    Ok(home.map(|home| Canonical { file: home.join(FOLDER).join("env"), explicit: false }))
}

/// Returns the directory that programs keep their configuration in.
///
/// # Errors
/// When the variable that decides is relative.
pub fn config_home(environment: &Environment) -> Result<Option<PathBuf>, CommandError> {
    if let Some(home) = absolute(environment, "XDG_CONFIG_HOME")? {
        return Ok(Some(home));
    }
    Ok(absolute(environment, "HOME")?.map(|home| home.join(".config")))
}

/// Returns every file of a user that may configure an API URL, in the order they are examined
/// (config-and-security.md section 8).
#[must_use]
pub fn consumer_files(environment: &Environment) -> Vec<PathBuf> {
    let explicit = absolute(environment, ENV_FILE).ok().flatten();
    let home = config_home(environment).ok().flatten();
    let derived = home.iter().flat_map(|home| ["env", "http-env.sh"].map(|name| home.join(FOLDER).join(name)));
    explicit.into_iter().chain(derived).collect()
}

/// Returns the directory of the directory store that nobody selected.
///
/// # Errors
/// When the environment names no place for it.
pub fn default_state_root(environment: &Environment) -> Result<PathBuf, CommandError> {
    let absolute = |name: &str| {
        let value = environment.raw(name).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let root = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    root.map(|root| root.join("agent-coordination")).ok_or_else(|| {
        CommandError::operational(
            "cannot determine local state root; set XDG_STATE_HOME or HOME to an absolute path, or pass --state-root",
        )
    })
}

fn absolute(environment: &Environment, name: &str) -> Result<Option<PathBuf>, CommandError> {
    if environment.text(name).is_none() {
        return Ok(None);
    }
    let path = environment.raw(name).map(PathBuf::from);
    match path {
        Some(path) if !path.is_absolute() => Err(CommandError::operational(format!("{name} must be an absolute path"))),
        path => Ok(path),
    }
}

/// Returns `path` as seen from `directory`, without `.` and `..`.
#[must_use]
pub fn made_absolute(directory: &Path, path: &Path) -> PathBuf {
    use std::path::Component;
    let mut clean = PathBuf::new();
    for component in directory.join(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(clean.pop()),
            other => clean.push(other),
        }
    }
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        let mut environment = Environment::default();
        for (name, value) in pairs {
            environment.set(name, value);
        }
        environment
    }

    #[test]
    fn the_user_file_is_named_or_derived_from_a_home() {
        let found = |pairs: &[(&str, &str)]| {
            canonical(&environment(pairs)).map(|found| found.map(|found| (found.file, found.explicit)))
        };
        let home = ("HOME", "/h");
        assert_eq!(found(&[home, ("AGENT_COORD_ENV_FILE", "/e")]), Ok(Some(("/e".into(), true))));
        let config = ("XDG_CONFIG_HOME", "/x");
        assert_eq!(found(&[home, config]), Ok(Some(("/x/agent-coord/env".into(), false))));
        let blank = ("XDG_CONFIG_HOME", " ");
        assert_eq!(found(&[home, blank]), Ok(Some(("/h/.config/agent-coord/env".into(), false))));
        assert_eq!(found(&[]), Ok(None));
        for name in ["AGENT_COORD_ENV_FILE", "XDG_CONFIG_HOME", "HOME"] {
            let error = found(&[(name, "relative")]).unwrap_err();
            assert_eq!((error.message, error.kind.exit_code()), (format!("{name} must be an absolute path"), 2));
        }
    }

    #[test]
    fn a_relative_state_home_counts_as_none() {
        let root = |pairs: &[(&str, &str)]| default_state_root(&environment(pairs)).map_err(|error| error.message);
        assert_eq!(root(&[("XDG_STATE_HOME", "/s")]), Ok("/s/agent-coordination".into()));
        let fallback = Ok("/h/.local/state/agent-coordination".into());
        assert_eq!(root(&[("XDG_STATE_HOME", "s"), ("HOME", "/h")]), fallback);
        assert!(root(&[("HOME", "h")]).unwrap_err().starts_with("cannot determine local state root; "));
    }

    #[test]
    fn a_root_is_absolute_and_plain() {
        assert_eq!(made_absolute(Path::new("/a/b"), Path::new("./c/../d")), Path::new("/a/b/d"));
        assert_eq!(made_absolute(Path::new("/a"), Path::new("/x/..")), Path::new("/"));
    }
}
