//! The directory store: a tree of JSON files on one machine (cli-contract.md section 19).
//!
//! | file | holds |
//! | --- | --- |
//! | `layout` | the checks of every directory and record, without following links; reading one; making directories |
//! | `listing` | whole prefixes |
//! | `lock` | `<file>.lock` |
//! | `atomic_write` | replacing and removing a file so that readers see the old one or the new one |
//! | `commit` | a transaction: all locks, one look, then the edits in order |
//!
//! The bytes and the locks are those of the predecessor, so both may work on one tree. A record's version is the sha256
//! of its bytes: what was changed and changed back counts as never changed.

mod atomic_write;
mod commit;
mod layout;
mod listing;
mod lock;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::domain::snapshot::{Freshness, Scope, Snapshot, StoreFacts};
use crate::store::{Abilities, CommitError, Receipt, Store, StoreError, Transaction};
use crate::world::{Deadline, Randomness};

/// The state below one directory.
pub struct DirStore<'world> {
    root: PathBuf,
    ids: &'world dyn Randomness,
}

impl<'world> DirStore<'world> {
    /// Returns the store below `root`, an absolute path. A root that is missing reads as empty; the first write makes it.
    #[must_use]
    pub fn new(root: PathBuf, ids: &'world dyn Randomness) -> Self {
        Self { root, ids }
    }

    /// Returns the directory that holds the state.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Store for DirStore<'_> {
    fn describe(&self) -> String {
        format!("directory {}", self.root.display())
    }

    fn abilities(&self) -> Abilities {
        Abilities { atomic: false, fencing: false, retries_until_deadline: false }
    }

    fn snapshot(&self, scope: &Scope, _: Freshness, _: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        let mut records = BTreeMap::new();
        for path in &scope.records {
            records.insert(path.clone(), layout::read(&self.root, path)?);
        }
        let mut listings = BTreeMap::new();
        for prefix in &scope.prefixes {
            listings.insert(prefix.clone(), listing::list(&self.root, prefix)?);
        }
        Ok(Snapshot { freshness: Freshness::Fetched, records, listings, store: StoreFacts::default() })
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        commit::commit(self, transaction, deadline)
    }
}

#[cfg(test)]
mod tests;
