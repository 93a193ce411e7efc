//! Where the state is when nobody says: this repository, or a directory of this machine.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Around, Asking, Chosen, Selected, Tier, in_git, made_absolute};
use crate::cli::env_vars;
use crate::cli::user_config::{keys, paths};
use crate::domain::path::Family;
use crate::error::CommandError;
use crate::git::Repository;

/// Commands that look where they are told to look, and make nothing.
const READS: [&str; 6] = ["status", "log", "doctor", "batch-audit", "attention-get", "attention-list"];
/// In the clone, once the notice was given.
const TOLD: &str = "told-this-clone-only";

impl Asking<'_> {
    pub(super) fn implicit(&self, around: Around) -> Result<Selected, CommandError> {
        let status_root = self.environment.raw(env_vars::STATUS_STATE_ROOT.name);
        let status_root = status_root.filter(|_| self.environment.text(env_vars::STATUS_STATE_ROOT.name).is_some());
        if let Some(root) = status_root.filter(|_| self.reads()) {
            return Ok(directory(made_absolute(self.directory, Path::new(root))));
        }
        self.check_token()?;
        let around = around?;
        let in_worktree = around.as_ref().is_some_and(|repository| repository.work_tree().is_some());
        let default_root = paths::default_state_root(self.process);
        let is_unused = || default_root.as_ref().map_or(true, |root| !holds_records(root));
        match around {
            Some(repository) if in_worktree && status_root.is_none() && is_unused() => Ok(implicit_git(repository)),
            _ => self.implicit_directory(default_root, in_worktree),
        }
    }

    fn implicit_directory(
        &self,
        default_root: Result<PathBuf, CommandError>,
        in_worktree: bool,
    ) -> Result<Selected, CommandError> {
        if let Some(root) = self.installation_root().filter(|_| self.reads()) {
            return Ok(directory(root));
        }
        let root = default_root?;
        let mut notices =
            vec![format!("notice: local mode \u{2014} single-machine only; state root: {}", root.display())];
        if in_worktree {
            notices.push(
                "notice: this repository can hold its own coordination state: `agent-coord init` begins it, \
                 `agent-coord migrate` copies the records over"
                    .to_owned(),
            );
        }
        Ok(Selected { notices, ..directory(root) })
    }

    fn reads(&self) -> bool {
        READS.contains(&self.command)
    }

    /// A secret without a server means that a server was meant.
    fn check_token(&self) -> Result<(), CommandError> {
        let token = self.process.text(keys::API_TOKEN.name());
        // What `config show` has to say does not depend on it.
        if self.command == "config" || token.is_none() && self.config.set(keys::API_TOKEN).is_none() {
            return Ok(());
        }
        Err(CommandError::operational(
            "AGENT_COORD_API_TOKEN is set but AGENT_COORD_API_URL is missing or empty; set AGENT_COORD_API_URL or unset \
             AGENT_COORD_API_TOKEN",
        ))
    }

    /// Returns the parent of the directory the program lies in, when state is kept there.
    fn installation_root(&self) -> Option<PathBuf> {
        let root = self.process.program()?.parent()?.parent()?;
        let is_state = ["claims", "heartbeats", "batches"].iter().all(|family| root.join(family).is_dir());
        is_state.then(|| root.to_owned())
    }
}

fn directory(root: PathBuf) -> Selected {
    Selected::new(Chosen::Directory(root), Tier::Implicit)
}

fn implicit_git(repository: Repository) -> Selected {
    let told = Some(repository.shared_dir().join(TOLD)).filter(|told| !told.exists());
    let notice = "notice: coordination state of this clone only; `agent-coord init --remote NAME` shares it";
    let notices = told.iter().map(|_| notice.to_owned()).collect();
    Selected { notices, told, ..Selected::new(in_git(repository), Tier::Implicit) }
}

/// Tells whether a state directory holds anything. One that cannot be looked into may.
fn holds_records(root: &Path) -> bool {
    Family::ALL.into_iter().any(|family| holds_record(&root.join(family.name())))
}

fn holds_record(directory: &Path) -> bool {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return error.kind() != std::io::ErrorKind::NotFound,
    };
    entries.into_iter().any(|entry| {
        let Ok(entry) = entry else { return true };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => holds_record(&entry.path()),
            Ok(_) => entry.path().extension().is_some_and(|extension| extension == "json"),
            Err(_) => true,
        }
    })
}
