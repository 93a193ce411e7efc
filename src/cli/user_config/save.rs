//! Changing the user file: one writer at a time, and never half a file (config-and-security.md section 11).

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::checks::{self, Leaf, plain, refuse};
use super::keys::{self, Key};
use super::parse::{self, Values};
use super::paths::Canonical;
use super::{UserConfig, lock};
use crate::error::CommandError;
use crate::world::{Clock, Randomness};

/// What is to be saved; the rest stays as it is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The URL of the HTTP store.
    pub api_url: Option<String>,
    /// The secret for it.
    pub token: Option<String>,
    /// The machine that writes are attributed to.
    pub machine_id: Option<String>,
    /// Whether workflows must coordinate.
    pub policy: Option<String>,
}

impl Changes {
    /// Returns the values by key, in the order of the keys.
    #[must_use]
    pub fn by_key(&self) -> Vec<(Key, &str)> {
        let all = [
            (keys::API_URL, &self.api_url),
            (keys::API_TOKEN, &self.token),
            (keys::MACHINE_ID, &self.machine_id),
            (keys::POLICY, &self.policy),
        ];
        all.into_iter().filter_map(|(key, value)| Some((key, value.as_deref()?))).collect()
    }
}

/// Saves `changes` and returns the file. `loaded` is what the command found when it began.
///
/// # Errors
/// When the file or its directory is not safe, a token would part from its URL, or the file cannot be written.
pub fn save(
    loaded: &UserConfig,
    changes: &Changes,
    clock: &dyn Clock,
    ids: &dyn Randomness,
) -> Result<PathBuf, CommandError> {
    let canonical = loaded
        .canonical
        .as_ref()
        .ok_or_else(|| refuse("cannot persist user config; set XDG_CONFIG_HOME, HOME, or AGENT_COORD_ENV_FILE"))?;
    let Canonical { file, explicit } = canonical;
    let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
        return Err(refuse(&format!("user config must be a regular file: {}", file.display())));
    };
    make_directories(directory)?;
    let leaf = Leaf { private: !explicit, writable: true };
    let real = checks::check_chain(directory, leaf)?;
    let _lock = lock::own(&lock::lock_file(&real, name), clock)?;
    let saved = checks::read_file(file)?.map(|bytes| parse::parse(file, &bytes)).transpose()?.unwrap_or_default();
    let saved = UserConfig { canonical: Some(canonical.clone()), values: saved };
    check_token(loaded, &saved, changes)?;
    write(&real.join(name), parse::render(&merged(saved.values, changes)).as_bytes(), ids)
        .and_then(|()| checks::check_chain(directory, leaf).map_err(|error| error.message))
        .and_then(|real| sync(&real).map_err(|error| plain(&error)))
        .map_err(|reason| refuse(&format!("cannot persist canonical user configuration: {reason}")))?;
    Ok(file.clone())
}

/// A token is only ever kept with the URL it was given for.
fn check_token(loaded: &UserConfig, saved: &UserConfig, changes: &Changes) -> Result<(), CommandError> {
    let url = saved.set(keys::API_URL);
    let message = match (&changes.token, &changes.api_url) {
        (Some(_), None) if url != loaded.set(keys::API_URL) => {
            "saved API URL changed while reading --token-stdin; retry with --api-url in the same transaction"
        }
        (Some(_), None) if url.is_none() => {
            "--token-stdin requires a saved API URL or --api-url in the same transaction"
        }
        (None, Some(new)) if url != Some(new) && saved.set(keys::API_TOKEN).is_some() => {
            "--token-stdin is required when changing an API URL that has a saved token"
        }
        _ => return Ok(()),
    };
    Err(CommandError::usage(message))
}

fn merged(mut values: Values, changes: &Changes) -> Values {
    values.extend(changes.by_key().into_iter().map(|(key, value)| (key, value.to_owned())));
    values
}

/// Makes what is missing of a directory, closed to others whatever the umask.
fn make_directories(directory: &Path) -> Result<(), CommandError> {
    let failed = |error: io::Error| checks::cannot_validate(directory, &error);
    let missing: Vec<&Path> =
        directory.ancestors().take_while(|ancestor| fs::symlink_metadata(ancestor).is_err()).collect();
    for ancestor in missing.into_iter().rev() {
        match DirBuilder::new().mode(0o700).create(ancestor) {
            Ok(()) => fs::set_permissions(ancestor, Permissions::from_mode(0o700)).map_err(failed)?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(())
}

/// Puts a file in the place of `file`; the new one is removed again when that fails.
fn write(file: &Path, bytes: &[u8], ids: &dyn Randomness) -> Result<(), String> {
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".tmp-{}-{}", std::process::id(), ids.hex(6)));
    let temporary = file.with_file_name(name);
    let written = fill(&temporary, bytes).and_then(|()| fs::rename(&temporary, file));
    written.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        plain(&error)
    })
}

fn fill(temporary: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits()).unwrap_or_default();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).custom_flags(flags).open(temporary)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the change last. Some file systems cannot do that for a directory, and say so.
fn sync(directory: &Path) -> io::Result<()> {
    match File::open(directory)?.sync_all() {
        Err(error) if ![Errno::INVAL, Errno::NOTSUP, Errno::NOSYS].iter().any(|number| is(&error, *number)) => {
            Err(error)
        }
        _ => Ok(()),
    }
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::super::Missing;
    use super::super::tests::{SafeFolder, clock};
    use super::*;
    use crate::world::CountedRandomness;
    use std::os::unix::fs::MetadataExt;

    fn load(folder: &SafeFolder) -> UserConfig {
        UserConfig::load(&folder.environment(), &clock(), Missing::Tolerated).unwrap()
    }

    fn save_from(loaded: &UserConfig, changes: &Changes) -> Result<PathBuf, String> {
        save(loaded, changes, &clock(), &CountedRandomness::default()).map_err(|error| error.message)
    }

    fn url(url: &str) -> Changes {
        Changes { api_url: Some(url.to_owned()), ..Changes::default() }
    }

    fn token(token: &str) -> Changes {
        Changes { token: Some(token.to_owned()), ..Changes::default() }
    }

    #[test]
    fn a_first_save_makes_closed_directories_and_a_closed_file() {
        let folder = SafeFolder::new();
        let changes = Changes { machine_id: Some("m1".to_owned()), ..url("https://fleet.example/a?b") };
        let file = save_from(&load(&folder), &changes).unwrap();
        assert_eq!(file, folder.path(".config/agent-coord/env"));
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(text, "AGENT_COORD_API_URL=https://fleet.example/a\\?b\nAGENT_COORD_MACHINE_ID=m1\n");
        let mode = |path: &str| fs::metadata(folder.path(path)).unwrap().mode() & 0o777;
        assert_eq!(
            (mode(".config"), mode(".config/agent-coord"), mode(".config/agent-coord/env")),
            (0o700, 0o700, 0o600)
        );
        assert_eq!(load(&folder).set(keys::MACHINE_ID), Some("m1"));
    }

    #[test]
    fn what_is_not_named_is_kept_and_what_is_foreign_is_dropped() {
        let folder = SafeFolder::new();
        folder.user_file("# mine\nPATH=/x\nAGENT_COORD_REF=main\nAGENT_COORD_MACHINE_ID=old\n");
        let changes = Changes { machine_id: Some("new".to_owned()), ..Changes::default() };
        let file = save_from(&load(&folder), &changes).unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), "AGENT_COORD_MACHINE_ID=new\nAGENT_COORD_REF=main\n");
        let left: Vec<String> = fs::read_dir(folder.path(".config/agent-coord"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name.contains("tmp"))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }

    #[test]
    fn a_token_never_parts_from_its_url() {
        let folder = SafeFolder::new();
        let none = load(&folder);
        assert_eq!(
            save_from(&none, &token("s")).unwrap_err(),
            "--token-stdin requires a saved API URL or --api-url in the same transaction"
        );
        save_from(&none, &Changes { token: Some("s".to_owned()), ..url("https://a") }).unwrap();
        assert_eq!(
            save_from(&none, &token("t")).unwrap_err(),
            "saved API URL changed while reading --token-stdin; retry with --api-url in the same transaction"
        );
        assert_eq!(
            save_from(&load(&folder), &url("https://b")).unwrap_err(),
            "--token-stdin is required when changing an API URL that has a saved token"
        );
        save_from(&load(&folder), &url("https://a")).unwrap();
        save_from(&load(&folder), &token("t")).unwrap();
        assert_eq!(load(&folder).set(keys::API_TOKEN), Some("t"));
    }

    #[test]
    fn a_file_that_is_not_safe_is_never_replaced() {
        let folder = SafeFolder::new();
        let loaded = load(&folder);
        let file = folder.user_file("AGENT_COORD_REF='a\n");
        assert!(save_from(&loaded, &url("https://a")).unwrap_err().starts_with("unsafe user config value"));
        assert_eq!(fs::read_to_string(file).unwrap(), "AGENT_COORD_REF='a\n");
        let nowhere = save_from(&UserConfig::default(), &url("https://a")).unwrap_err();
        assert_eq!(nowhere, "cannot persist user config; set XDG_CONFIG_HOME, HOME, or AGENT_COORD_ENV_FILE");
    }
}
