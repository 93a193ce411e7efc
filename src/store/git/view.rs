//! What this clone knows of the refs right now: what a fetch of this very process said, else the refs on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use gix::ObjectId;

use super::remote::covers;
use super::{names, refs};
use crate::git::Repository;
use crate::store::StoreError;
use crate::world::Deadline;

/// The answers of this process's own fetches. They outrank the refs on disk, which another process of the clone may
/// overwrite with older news at any moment (design.md section 10, trap 15).
#[derive(Default)]
pub struct Fetched {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What each ref was; `None` = absent.
    refs: BTreeMap<String, Option<ObjectId>>,
    /// Patterns whose absent refs are known to be absent.
    covered: BTreeSet<String>,
}

impl Fetched {
    /// Remembers the answer to a fetch of `patterns`.
    pub fn remember(&self, patterns: &[String], answer: &refs::Refs) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, known) in &mut state.refs {
            if patterns.iter().any(|pattern| covers(pattern, name)) {
                *known = answer.get(name).copied();
            }
        }
        state.refs.extend(answer.iter().map(|(name, id)| (name.clone(), Some(*id))));
        state.covered.extend(patterns.iter().cloned());
    }

    /// Remembers what this process's own push made of a ref.
    pub fn set(&self, name: &str, id: Option<ObjectId>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.refs.insert(name.to_owned(), id);
    }

    /// Returns what is known of `name`; the outer `None` = nothing was fetched.
    fn get(&self, name: &str) -> Option<Option<ObjectId>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.refs.get(name) {
            Some(known) => Some(*known),
            None => state.covered.iter().any(|pattern| covers(pattern, name)).then_some(None),
        }
    }

    /// Lays the answers under `prefix` over what is on disk.
    fn overlay(&self, prefix: &str, on_disk: &mut refs::Refs) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        on_disk.retain(|name, _| !state.covered.iter().any(|pattern| covers(pattern, name)));
        for (name, known) in state.refs.iter().filter(|(name, _)| name.starts_with(prefix)) {
            match known {
                Some(id) => on_disk.insert(name.clone(), *id),
                None => on_disk.remove(name),
            };
        }
    }
}

/// Reads refs through the answers of this process.
pub struct View<'a> {
    repository: &'a Repository,
    fetched: &'a Fetched,
    deadline: &'a Deadline<'a>,
}

impl<'a> View<'a> {
    /// Returns a view of `repository`.
    #[must_use]
    pub fn new(repository: &'a Repository, fetched: &'a Fetched, deadline: &'a Deadline<'a>) -> Self {
        Self { repository, fetched, deadline }
    }

    /// Returns the repository the view reads.
    #[must_use]
    pub fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// Reads single refs; an absent one is left out.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn read(&self, names: &[String]) -> Result<refs::Refs, StoreError> {
        let mut found = refs::Refs::new();
        let mut unknown = Vec::new();
        for name in names {
            match self.fetched.get(name) {
                Some(Some(id)) => drop(found.insert(name.clone(), id)),
                Some(None) => {}
                None => unknown.push(name.clone()),
            }
        }
        if !unknown.is_empty() {
            found.extend(refs::read(self.repository, &unknown, self.deadline)?);
        }
        Ok(found)
    }

    /// Reads one ref.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn one(&self, name: &str) -> Result<Option<ObjectId>, StoreError> {
        Ok(self.read(&[name.to_owned()])?.remove(name))
    }

    /// Reads all refs that begin with `prefix`, which ends with `/`.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn list(&self, prefix: &str) -> Result<refs::Refs, StoreError> {
        let mut found = refs::list(self.repository, prefix, self.deadline)?;
        self.fetched.overlay(prefix, &mut found);
        Ok(found)
    }

    /// Reads one blob that must be there.
    ///
    /// # Errors
    /// When it is not.
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>, StoreError> {
        let mut blobs = super::objects::read_blobs(self.repository, &[id], self.deadline)?;
        blobs.remove(&id).ok_or_else(|| super::trouble(format!("object {id} is missing from this clone")))
    }

    /// Reads `store.json` with the id of its blob; `None` when there is no store.
    ///
    /// # Errors
    /// When it is there and cannot be understood.
    pub fn about(&self) -> Result<Option<(ObjectId, super::about::About)>, StoreError> {
        let Some(id) = self.one(names::STORE)? else { return Ok(None) };
        let about = super::about::About::read(&self.blob(id)?).map_err(super::trouble)?;
        Ok(Some((id, about)))
    }
}
