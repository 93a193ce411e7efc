use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::*;
use crate::domain::time::Timestamp;
use crate::world::SteppedClock;

/// A home whose every parent is closed to the pens of others, which the system's temporary folder is not.
pub(crate) struct SafeFolder {
    folder: tempfile::TempDir,
}

impl SafeFolder {
    pub(crate) fn new() -> Self {
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/tmp");
        fs::create_dir_all(&target).unwrap();
        let folder = tempfile::tempdir_in(target.canonicalize().unwrap()).unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let mut path = self.folder.path().to_owned();
        for part in name.split('/') {
            path.push(part);
            if fs::create_dir(&path).is_ok() {
                fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
            }
        }
        path
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> PathBuf {
        if let Some((directory, _)) = name.rsplit_once('/') {
            self.directory(directory);
        }
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    /// Writes the user file of this home.
    pub(crate) fn user_file(&self, text: &str) -> PathBuf {
        self.file(".config/agent-coord/env", text)
    }

    /// Returns an environment with this home and nothing else.
    pub(crate) fn environment(&self) -> Environment {
        let mut environment = Environment::default();
        environment.set("HOME", self.folder.path());
        environment
    }
}

pub(crate) fn clock() -> SteppedClock {
    SteppedClock::at(Timestamp::parse_iso("2026-12-01T00:00:00Z").unwrap())
}

fn load(environment: &Environment) -> Result<UserConfig, String> {
    UserConfig::load(environment, &clock(), Missing::Refused).map_err(|error| {
        assert_eq!(error.kind.exit_code(), 2);
        error.message
    })
}

#[test]
fn no_file_is_an_empty_configuration() {
    let folder = SafeFolder::new();
    let config = load(&folder.environment()).unwrap();
    assert_eq!(config.file(), Some(folder.path(".config/agent-coord/env").as_path()));
    assert_eq!(config.set(keys::API_URL), None);
    folder.directory(".config/agent-coord");
    assert_eq!(load(&folder.environment()), Ok(config));
    assert_eq!(load(&Environment::default()), Ok(UserConfig::default()));
}

#[test]
fn a_file_that_was_named_must_be_there_unless_it_is_about_to_be_made() {
    let folder = SafeFolder::new();
    let mut environment = folder.environment();
    let named = folder.path("here/env");
    environment.set("AGENT_COORD_ENV_FILE", &named);
    let refused = format!("configured user env file does not exist: {}", named.display());
    assert_eq!(load(&environment), Err(refused));
    assert!(UserConfig::load(&environment, &clock(), Missing::Tolerated).is_ok());
    folder.file("here/env", "AGENT_COORD_REF=x\n");
    let config = load(&environment).unwrap();
    assert_eq!(config.set(keys::REF), Some("x"));
    assert_eq!(config.legacy_policy_file(), None, "only the derived file has one beside it");
}

#[test]
fn a_blank_value_is_not_set() {
    let folder = SafeFolder::new();
    folder.user_file("AGENT_COORD_REF=' '\nAGENT_COORD_BACKEND=\n");
    let config = load(&folder.environment()).unwrap();
    assert_eq!((config.set(keys::REF), config.set(keys::BACKEND)), (None, None));
}

#[test]
fn what_the_file_adds_never_replaces_what_the_process_has_nor_selects_anything() {
    let folder = SafeFolder::new();
    folder.user_file(
        "AGENT_COORD_MACHINE_ID=saved\nAGENT_COORD_POLICY=required\nAGENT_COORD_API_TOKEN=secret\n\
         AGENT_COORD_API_URL=https://x\n",
    );
    let mut process = folder.environment();
    process.set("AGENT_COORD_POLICY", "optional").set("AGENT_COORD_MACHINE_ID", " ");
    let effective = load(&process).unwrap().added_to(&process);
    assert_eq!(effective.text("AGENT_COORD_MACHINE_ID").as_deref(), Some("saved"), "a blank one is not set");
    assert_eq!(effective.text("AGENT_COORD_POLICY").as_deref(), Some("optional"));
    assert_eq!(effective.text("AGENT_COORD_API_TOKEN"), None);
    assert_eq!(effective.text("AGENT_COORD_API_URL"), None);
}

#[test]
fn an_insecure_file_or_folder_is_refused_and_never_passed_over() {
    let folder = SafeFolder::new();
    let file = folder.user_file("");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let refused = format!("user config permissions are insecure (expected 0600): {}", file.display());
    assert_eq!(load(&folder.environment()), Err(refused));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let leaf = folder.path(".config/agent-coord");
    fs::set_permissions(&leaf, Permissions::from_mode(0o777)).unwrap();
    let refused = format!("config parent leaf permissions are unsafe (expected 0700): {}", leaf.display());
    assert_eq!(load(&folder.environment()), Err(refused));
}

#[test]
fn the_policy_is_found_in_the_process_then_the_file_then_the_older_file() {
    use policy::{Policy, PolicySource, effective};
    let folder = SafeFolder::new();
    let found = |process: &Environment| effective(process, &load(process).unwrap()).map_err(|error| error.message);
    let mut process = folder.environment();
    assert_eq!(found(&process), Ok((Policy::Optional, PolicySource::Default)));
    let older = folder.file(".config/agent-coord/policy", " required\n");
    assert_eq!(found(&process), Ok((Policy::Required, PolicySource::PolicyFile)));
    fs::write(&older, "often").unwrap();
    let refused = format!("invalid coordination policy in {}: expected required, optional, disabled", older.display());
    assert_eq!(found(&process), Err(refused));
    folder.user_file("AGENT_COORD_POLICY=disabled\n");
    assert_eq!(found(&process), Ok((Policy::Disabled, PolicySource::UserConfig)));
    process.set("AGENT_COORD_POLICY", "required");
    assert_eq!(found(&process), Ok((Policy::Required, PolicySource::ProcessEnv)));
    process.set("AGENT_COORD_POLICY", "x");
    assert_eq!(
        found(&process).unwrap_err(),
        "invalid coordination policy in process environment:AGENT_COORD_POLICY: expected required, optional, disabled"
    );
}
