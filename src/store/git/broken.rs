//! A cache that a crash broke: refs that hold nonsense, or name objects that are not there.
//!
//! Git itself refuses to fetch while one of them is there, so no fetch would ever mend it. The remote has the truth, so
//! what is broken is dropped here, and `store.json` before all else: without it the cache says nothing, for hooks too,
//! until a whole fetch has brought everything back.

use std::fs;
use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::prelude::FindExt;

use super::names::{ROOT, STORE};
use super::refs::{self, Flock, RefEdit, Refs, Update};
use super::{GitStore, trouble};
use crate::git::files;
use crate::git::repository::RefStorage;
use crate::store::StoreError;
use crate::world::Deadline;

impl GitStore<'_> {
    /// Tells whether the cache holds no `store.json`, so that nothing in it may be relied on.
    pub(super) fn has_no_cache(&self, deadline: &Deadline<'_>) -> bool {
        !refs::read(&self.repository, &[STORE.to_owned()], deadline).is_ok_and(|found| !found.is_empty())
    }

    /// Lists the cache; one that a crash broke is listed without what is broken.
    pub(super) fn list_cache(&self, deadline: &Deadline<'_>) -> Result<Refs, StoreError> {
        match refs::list(&self.repository, ROOT, deadline) {
            Err(_) if self.drop_broken_cache(deadline) => refs::list(&self.repository, ROOT, deadline),
            listed => listed,
        }
    }

    /// Drops the refs of the cache that are broken, with `store.json`; tells whether there were any.
    pub(super) fn drop_broken_cache(&self, deadline: &Deadline<'_>) -> bool {
        let is_cache = self.remote.is_some() && self.repository.ref_storage() == RefStorage::Files;
        is_cache && self.drop_broken(deadline).unwrap_or(false)
    }

    fn drop_broken(&self, deadline: &Deadline<'_>) -> Result<bool, StoreError> {
        let held = Flock::take(&self.repository, deadline)?;
        let nonsense = self.loose_nonsense();
        let store = self.repository.common_dir().join(STORE);
        if nonsense.contains(&store) {
            remove(&store)?;
        }
        let dangling = if nonsense.is_empty() { self.dangling(deadline)? } else { Refs::new() };
        if nonsense.is_empty() && dangling.is_empty() {
            return Ok(false);
        }
        let about = refs::read(&self.repository, &[STORE.to_owned()], deadline)?;
        self.delete(&about, &held, deadline)?;
        for file in nonsense.iter().filter(|file| **file != store) {
            remove(file)?;
        }
        let dangling = self.dangling(deadline)?;
        self.delete(&dangling, &held, deadline)?;
        for id in dangling.values() {
            self.remove_if_empty(*id);
        }
        Ok(true)
    }

    fn delete(&self, gone: &Refs, held: &Flock, deadline: &Deadline<'_>) -> Result<(), StoreError> {
        let edits: Vec<RefEdit> =
            gone.iter().map(|(name, id)| RefEdit { name: name.clone(), expected: Some(*id), new: None }).collect();
        if edits.is_empty() {
            return Ok(());
        }
        match refs::update(&self.repository, &edits, held, deadline)? {
            Update::Landed => Ok(()),
            Update::Refused(said) | Update::Interrupted(said) => Err(trouble(said)),
        }
    }

    /// Returns the loose refs of ours that hold no object id.
    fn loose_nonsense(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.repository.common_dir().join(ROOT), &mut found);
        found.retain(|file| {
            let text = files::read(file).unwrap_or_default();
            let id = ObjectId::from_hex(text.trim_end().as_bytes());
            id.map_or(true, |id| id.kind() != self.repository.object_hash())
        });
        found
    }

    /// Returns the refs of ours whose object is missing or cannot be read.
    fn dangling(&self, deadline: &Deadline<'_>) -> Result<Refs, StoreError> {
        let reader = self.repository.reader();
        let mut buffer = Vec::new();
        let mut refs = refs::list(&self.repository, ROOT, deadline)?;
        refs.retain(|_, id| reader.objects.find(id, &mut buffer).is_err());
        Ok(refs)
    }

    /// A crash leaves objects without content; while such a file is there, git does not write the object again.
    fn remove_if_empty(&self, id: ObjectId) {
        let hex = id.to_string();
        let file = self.repository.common_dir().join("objects").join(&hex[..2]).join(&hex[2..]);
        if fs::symlink_metadata(&file).is_ok_and(|data| data.is_file() && data.len() == 0) {
            let _ = fs::remove_file(file);
        }
    }
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&path, found),
            Ok(_) if path.extension().is_none_or(|extension| extension != "lock") => found.push(path),
            _ => {}
        }
    }
}

/// Removes a loose ref while holding git's own lock on it.
fn remove(file: &Path) -> Result<(), StoreError> {
    let mut lock = file.as_os_str().to_owned();
    lock.push(".lock");
    fs::File::create_new(&lock).map_err(trouble)?;
    let removed = fs::remove_file(file).map_err(trouble);
    let unlocked = fs::remove_file(&lock).map_err(trouble);
    removed.and(unlocked)
}
