//! `sync`: bringing the whole cache up to date, and re-creating a wiped store from what this clone still holds.

use std::collections::BTreeMap;

use gix::ObjectId;

use super::about::About;
use super::join::{REFS_A_PUSH, count, readable};
use super::names::{self, Name, ROOT, STORE};
use super::refs::{RefEdit, Refs};
use super::remote::{self, Pushed, Remote};
use super::{GitStore, codec, objects};
use crate::domain::record::{Content, integer};
use crate::store::{StoreError, StoreErrorKind};
use crate::world::Deadline;

/// What `sync` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Synced {
    /// The remote, by the name messages use.
    pub remote: String,
    /// How many refs the store holds, by family.
    pub holds: BTreeMap<String, usize>,
    /// How many cached refs are new or changed.
    pub changed: usize,
    /// How many cached refs are gone.
    pub removed: usize,
    /// The state paths that a restore published; empty for a plain sync.
    pub restored: Vec<String>,
}

impl GitStore<'_> {
    /// Fetches everything; `None` when the store is not shared.
    ///
    /// # Errors
    /// When the remote cannot be read, or holds another store.
    pub fn sync(&self, deadline: &Deadline<'_>) -> Result<Option<Synced>, StoreError> {
        let Some(remote) = &self.remote else { return Ok(None) };
        let before = self.list_cache(deadline)?;
        self.fetch(remote, &[ROOT.to_owned()], deadline)?;
        let after = self.view(deadline).list(ROOT)?;
        Ok(Some(Synced {
            remote: remote.label().to_owned(),
            holds: count(&after),
            changed: after.iter().filter(|(name, id)| before.get(*name) != Some(*id)).count(),
            removed: before.keys().filter(|name| !after.contains_key(*name)).count(),
            restored: Vec::new(),
        }))
    }

    /// Re-creates a store that the remote lost from this clone's cache. `store.json` comes last, so that several clones
    /// can restore side by side until one has finished; of two states of a record the one written more often stays.
    ///
    /// # Errors
    /// When the remote still holds a store, or cannot be written.
    pub fn restore(&self, deadline: &Deadline<'_>) -> Result<Option<Synced>, StoreError> {
        let Some(remote) = &self.remote else { return Ok(None) };
        let here = self.list_cache(deadline)?;
        let there = remote::fetch(&self.repository, remote, &[ROOT.to_owned()], deadline)?;
        if there.contains_key(STORE) {
            let message = format!("{} holds a coordination store; there is nothing to restore", remote.label());
            return Err(StoreError::new(StoreErrorKind::Policy, message)
                .with_hint("`agent-coord sync` brings this clone up to date with it"));
        }
        let edits = self.restoring_edits(&here, &there, deadline)?;
        for chunk in edits.chunks(REFS_A_PUSH) {
            self.push_restored(remote, chunk, deadline)?;
        }
        let about = self.restored_about(&here, deadline)?;
        let blob = objects::write_blob(&self.repository, &about.bytes())?;
        let last = RefEdit { name: STORE.to_owned(), expected: None, new: Some(blob) };
        self.push_restored(remote, &[last], deadline)?;
        let restored = edits.iter().map(|edit| readable(&edit.name)).collect();
        Ok(self.sync(deadline)?.map(|synced| Synced { restored, ..synced }))
    }

    fn restoring_edits(&self, here: &Refs, there: &Refs, deadline: &Deadline<'_>) -> Result<Vec<RefEdit>, StoreError> {
        let mut edits = Vec::new();
        for (name, id) in here.iter().filter(|(name, _)| *name != STORE && names::read(name) != Name::Foreign) {
            let found = there.get(name).copied();
            let newer = match found {
                None => true,
                Some(found) if found == *id => false,
                Some(found) => self.is_newer(name, *id, found, deadline)?,
            };
            if newer {
                edits.push(RefEdit { name: name.clone(), expected: found, new: Some(*id) });
            }
        }
        Ok(edits)
    }

    /// Tells whether this clone's state of a ref says more than the remote's: a higher revision, or more events.
    fn is_newer(
        &self,
        name: &str,
        ours: ObjectId,
        theirs: ObjectId,
        deadline: &Deadline<'_>,
    ) -> Result<bool, StoreError> {
        if let Name::Segment { .. } = names::read(name) {
            let (ours, theirs) =
                (objects::read_tree(&self.repository, ours)?, objects::read_tree(&self.repository, theirs)?);
            return Ok(theirs.iter().all(|(file, blob)| ours.get(file) == Some(blob)));
        }
        let view = self.view(deadline);
        let revision = |id| view.blob(id).map(|bytes| codec::decode(None, &bytes).annotations.revision);
        Ok(revision(ours)? > revision(theirs)?)
    }

    /// Returns the cached `store.json`, or one of the same identity whose floors cover every cached claim.
    fn restored_about(&self, here: &Refs, deadline: &Deadline<'_>) -> Result<About, StoreError> {
        let view = self.view(deadline);
        if let Some(id) = here.get(STORE) {
            let about = About::read(&view.blob(*id)?).map_err(super::trouble)?;
            if self.store_id.as_deref() == Some(about.store_id()) {
                return Ok(about);
            }
        }
        let mut about = About::new(self.store_id.as_deref().unwrap_or_default(), self.default_repo.as_deref());
        for (name, id) in here {
            let Name::Record(path) = names::read(name) else { continue };
            let Some(repo) = path.repo() else { continue };
            if let Content::Object(members) = codec::decode(None, &view.blob(*id)?).content {
                about.raise_floor(&repo, integer(&members, "generation").unwrap_or(0));
            }
        }
        Ok(about)
    }

    fn push_restored(&self, remote: &Remote, edits: &[RefEdit], deadline: &Deadline<'_>) -> Result<(), StoreError> {
        match remote::push(&self.repository, remote, edits, deadline)? {
            Pushed::Landed | Pushed::AlreadyThere(_) => Ok(()),
            Pushed::Refused(error) | Pushed::Unclear(error) => Err(error),
            Pushed::Lost(_) | Pushed::Busy(_) => {
                let message = format!("another clone restores {} at the same time", remote.label());
                Err(StoreError::new(StoreErrorKind::Unreachable, message)
                    .with_hint("`agent-coord sync` shows what it restored; run the restore again if it asks for it"))
            }
        }
    }
}
