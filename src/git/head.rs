//! What this worktree has checked out.

use super::repository::RefStorage;
use super::{Call, GitError, Repository};
use crate::world::Deadline;

/// Where HEAD points.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The branch, without `refs/heads/`; absent when HEAD is detached. Present on an unborn branch.
    pub branch: Option<String>,
    /// The commit's id in hex; absent on an unborn branch.
    pub commit: Option<String>,
}

impl Repository {
    /// Returns where HEAD points.
    ///
    /// # Errors
    /// When HEAD cannot be read.
    pub fn head(&self, deadline: &Deadline<'_>) -> Result<Head, GitError> {
        match self.ref_storage() {
            RefStorage::Files => self.head_from_files(),
            RefStorage::Reftable => self.head_from_git(deadline),
        }
    }

    fn head_from_files(&self) -> Result<Head, GitError> {
        let reader = self.reader();
        let head = reader.head().map_err(|error| GitError::Unusable(error.to_string()))?;
        let branch = head.referent_name().map(|name| name.shorten().to_string());
        let commit = head.id().map(|id| id.to_hex().to_string());
        Ok(Head { branch, commit })
    }

    fn head_from_git(&self, deadline: &Deadline<'_>) -> Result<Head, GitError> {
        let said = |finished: super::Finished| {
            finished.succeeded().then(|| finished.text().trim().to_owned()).filter(|text| !text.is_empty())
        };
        let name = said(self.run(Call::new("symbolic-ref").args(["--quiet", "HEAD"]), deadline)?);
        let commit = said(self.run(Call::new("rev-parse").args(["--quiet", "--verify", "HEAD"]), deadline)?);
        let branch = name.map(|name| name.strip_prefix("refs/heads/").unwrap_or(&name).to_owned());
        Ok(Head { branch, commit })
    }
}
