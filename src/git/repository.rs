//! Finding a repository and reading its configuration.

use std::path::{Path, PathBuf};

use super::{Call, Finished, Git, GitError, parameters};
use crate::world::{Deadline, Environment};

/// One repository, seen from one worktree.
pub struct Repository {
    git: Git,
    inner: gix::ThreadSafeRepository,
    options: gix::open::Options,
    git_dir: PathBuf,
    common_dir: PathBuf,
    work_tree: Option<PathBuf>,
}

/// How a repository keeps its refs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefStorage {
    /// Loose files and `packed-refs`, which gix reads.
    Files,
    /// `extensions.refStorage=reftable`, which only git reads.
    Reftable,
}

impl Repository {
    /// Finds the repository that contains `directory`, or the one `GIT_DIR` names.
    ///
    /// Returns `None` when there is none.
    ///
    /// # Errors
    /// When there is one that must not or cannot be used.
    pub fn discover(directory: &Path, environment: &Environment) -> Result<Option<Self>, GitError> {
        if let Some(git_dir) = environment.raw("GIT_DIR").filter(|value| !value.is_empty()) {
            return Self::open(&directory.join(git_dir), environment).map(Some);
        }
        let (path, _) = match gix::discover::upwards(directory) {
            Ok(found) => found,
            Err(error) if error.classify().is_not_found() => return broken_link(directory).map_or(Ok(None), Err),
            Err(error) => return Err(GitError::Unusable(one_line(&error))),
        };
        let (git_dir, _) = path.into_repository_and_work_tree_directories();
        Self::open(&directory.join(git_dir), environment).map(Some)
    }

    /// Opens the repository at `path`: a git directory, bare or not, or a worktree's root.
    ///
    /// # Errors
    /// When it belongs to somebody else, or is no repository.
    pub fn open(path: &Path, environment: &Environment) -> Result<Self, GitError> {
        let git = Git::find(environment)?;
        let options = options(environment);
        let inner = open(&options, path)?;
        let local = inner.to_thread_local();
        let git_dir = absolute(local.git_dir());
        let common_dir = absolute(local.common_dir());
        let work_tree = local.workdir().map(absolute);
        let has_ssh_command = local.config_snapshot().string("core.sshCommand").is_some();
        Ok(Self { git: git.with_silent_ssh(has_ssh_command), inner, options, git_dir, common_dir, work_tree })
    }

    /// Returns the git to run.
    #[must_use]
    pub fn git(&self) -> &Git {
        &self.git
    }

    /// Returns a handle to read objects and refs with.
    #[must_use]
    pub fn reader(&self) -> gix::Repository {
        self.inner.to_thread_local()
    }

    /// Returns a handle that shares no cached refs with [`reader`](Self::reader).
    ///
    /// # Errors
    /// When the repository cannot be opened again.
    pub fn reopened_reader(&self) -> Result<gix::Repository, GitError> {
        open(&self.options, &self.git_dir).map(|fresh| fresh.to_thread_local())
    }

    /// Returns this worktree's private git directory.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// Returns the git directory all worktrees share.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Returns the root of the checkout; a bare repository has none.
    #[must_use]
    pub fn work_tree(&self) -> Option<&Path> {
        self.work_tree.as_deref()
    }

    /// Returns the directory of files that belong to this worktree alone: tenure, agent id.
    #[must_use]
    pub fn private_dir(&self) -> PathBuf {
        self.git_dir.join("agent-coord")
    }

    /// Returns the directory of files that all worktrees of this clone share: the flock, notes, observations.
    #[must_use]
    pub fn shared_dir(&self) -> PathBuf {
        self.common_dir.join("agent-coord")
    }

    /// Returns the hash that names objects here.
    #[must_use]
    pub fn object_hash(&self) -> gix::hash::Kind {
        self.inner.to_thread_local().object_hash()
    }

    /// Returns how refs are kept.
    #[must_use]
    pub fn ref_storage(&self) -> RefStorage {
        match self.config("extensions.refStorage").as_deref() {
            Some("reftable") => RefStorage::Reftable,
            _ => RefStorage::Files,
        }
    }

    /// Returns the last value of a configuration key, worktree configuration included.
    #[must_use]
    pub fn config(&self, key: &str) -> Option<String> {
        let value = self.inner.to_thread_local().config_snapshot().string(key)?;
        Some(value.to_string()).filter(|text| !text.trim().is_empty())
    }

    /// Returns a configuration key as a yes or no; `None` when it is unset or neither.
    #[must_use]
    pub fn config_flag(&self, key: &str) -> Option<bool> {
        self.inner.to_thread_local().config_snapshot().try_boolean(key).ok().flatten()
    }

    /// Returns all values of a configuration key.
    #[must_use]
    pub fn config_values(&self, key: &str) -> Vec<String> {
        let reader = self.inner.to_thread_local();
        let snapshot = reader.config_snapshot();
        let values = snapshot.plumbing().strings(key).unwrap_or_default();
        values.into_iter().map(|value| value.to_string()).collect()
    }

    /// Returns where a push to `url` goes by `url.<base>.pushInsteadOf`; `None` when none of these matches.
    #[must_use]
    pub fn push_instead_of(&self, url: &str) -> Option<String> {
        let reader = self.inner.to_thread_local();
        let snapshot = reader.config_snapshot();
        let mut longest: Option<(String, String)> = None;
        for section in snapshot.plumbing().sections_by_name("url").into_iter().flatten() {
            let Some(base) = section.header().subsection_name() else { continue };
            for prefix in section.body().values("pushInsteadOf") {
                let prefix = prefix.to_string();
                let is_longer = longest.as_ref().is_none_or(|(known, _)| prefix.len() > known.len());
                if is_longer && url.starts_with(&prefix) {
                    longest = Some((prefix, base.to_string()));
                }
            }
        }
        longest.map(|(prefix, base)| format!("{base}{}", &url[prefix.len()..]))
    }

    /// Sets a key in the configuration that all worktrees share.
    ///
    /// # Errors
    /// When git refuses.
    pub fn set_config(&self, key: &str, value: &str, deadline: &Deadline<'_>) -> Result<(), GitError> {
        let call = Call::new("config").in_repository(&self.common_dir).args(["--local", "--replace-all", key, value]);
        self.git.run(&call, deadline)?.checked("config").map(drop)
    }

    /// Removes a key from the configuration that all worktrees share; it may be absent.
    ///
    /// # Errors
    /// When git cannot be run.
    pub fn unset_config(&self, key: &str, deadline: &Deadline<'_>) -> Result<(), GitError> {
        let call = Call::new("config").in_repository(&self.common_dir).args(["--local", "--unset-all", key]);
        let finished = self.git.run(&call, deadline)?;
        const NOT_SET: i32 = 5;
        if finished.code == Some(NOT_SET) { Ok(()) } else { finished.checked("config").map(drop) }
    }

    /// Runs git in this worktree's repository.
    ///
    /// # Errors
    /// When it cannot be run or does not end by the deadline.
    pub fn run(&self, call: Call<'_>, deadline: &Deadline<'_>) -> Result<Finished, GitError> {
        let call = call.in_repository(&self.git_dir);
        self.git.run(&call, deadline)
    }
}

/// A worktree whose clone has moved away is no plain folder: its state is elsewhere.
fn broken_link(directory: &Path) -> Option<GitError> {
    let link = directory.ancestors().map(|ancestor| ancestor.join(".git")).find(|link| link.is_file())?;
    Some(GitError::Unusable(format!("{} names no repository", link.display())))
}

fn options(environment: &Environment) -> gix::open::Options {
    let parameters = environment.text("GIT_CONFIG_PARAMETERS").unwrap_or_default();
    let mut permissions = gix::open::Permissions::secure();
    permissions.config.git_binary = false;
    permissions.env = gix::open::permissions::Environment::isolated();
    permissions.env.home = gix::sec::Permission::Allow;
    permissions.env.xdg_config_home = gix::sec::Permission::Allow;
    permissions.env.git_prefix = gix::sec::Permission::Allow;
    gix::open::Options::default()
        .bail_if_untrusted(true)
        .permissions(permissions)
        .cli_overrides(parameters::settings(&parameters))
}

/// Opens a repository without the `GIT_NAMESPACE` of the environment: the git that writes our refs runs without it, so
/// reading through it would miss every record.
fn open(options: &gix::open::Options, path: &Path) -> Result<gix::ThreadSafeRepository, GitError> {
    let mut opened = options.clone().open(path).map_err(|error| explain_open(path, &error))?.to_thread_local();
    opened.clear_namespace();
    Ok(opened.into_sync())
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path)
        .ok()
        .and_then(|path| path.canonicalize().ok().or(Some(path)))
        .unwrap_or_else(|| path.to_owned())
}

fn one_line(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text = format!("{text}: {next}");
        cause = next.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn explain_open(path: &Path, error: &gix::Error) -> GitError {
    let text = error.to_string();
    if text.contains("unsafe") || text.contains("trust") || text.contains("owned") {
        GitError::Untrusted(path.display().to_string())
    } else {
        GitError::Unusable(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }
}
