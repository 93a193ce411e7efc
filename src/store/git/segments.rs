//! Events: trees of at most 64 blobs, one chain of segments per batch and writer (design.md section 3.2).
//!
//! One ref per event would make every push slower for everybody; one shared ref would make every writer retry. A chain of
//! a clone's own is neither.

use std::collections::BTreeMap;

use gix::ObjectId;

use super::names::{self, Name};
use super::view::View;
use super::{objects, refs::RefEdit};
use crate::store::StoreError;

/// How many events a segment holds before its writer begins the next.
pub const CAPACITY: usize = 64;

/// The segments of one batch.
pub struct Segments {
    batch: String,
    all: Vec<Segment>,
}

struct Segment {
    name: String,
    writer: String,
    number: u32,
    id: ObjectId,
    /// Absent when the ref points at no tree.
    events: Option<BTreeMap<String, ObjectId>>,
}

impl Segments {
    /// Reads the segments of `batch`.
    ///
    /// # Errors
    /// When the refs cannot be read.
    pub fn read(view: &View<'_>, batch: &str) -> Result<Self, StoreError> {
        let mut all = Vec::new();
        for (name, id) in view.list(&names::of_segments(batch))? {
            if let Name::Segment { writer, number, .. } = names::read(&name) {
                // What another client left there and is no segment hides nobody else's events; listings report it.
                let events = objects::read_tree(view.repository(), id).ok();
                all.push(Segment { name, writer, number, id, events });
            }
        }
        Ok(Self { batch: batch.to_owned(), all })
    }

    /// Returns the blob of an event, whoever wrote it.
    #[must_use]
    pub fn event(&self, file: &str) -> Option<ObjectId> {
        self.all.iter().flat_map(|segment| &segment.events).find_map(|events| events.get(file).copied())
    }

    /// Returns the edit that adds `events` (file name to blob) to `writer`'s chain. `skip` segments past the last are
    /// left alone: a lock left on the server can make one unwritable.
    ///
    /// # Errors
    /// When the new tree cannot be written.
    pub fn append(
        &self,
        view: &View<'_>,
        writer: &str,
        events: &BTreeMap<String, ObjectId>,
        skip: u32,
    ) -> Result<RefEdit, StoreError> {
        let own = self.all.iter().filter(|segment| segment.writer == writer).max_by_key(|segment| segment.number);
        let has_room = |held: &BTreeMap<String, ObjectId>| skip == 0 && held.len() + events.len() <= CAPACITY;
        match own.and_then(|own| Some((own, own.events.as_ref().filter(|held| has_room(held))?))) {
            Some((own, held)) => {
                let mut tree = held.clone();
                tree.extend(events.clone());
                let new = objects::write_tree(view.repository(), &tree)?;
                Ok(RefEdit { name: own.name.clone(), expected: Some(own.id), new: Some(new) })
            }
            None => {
                let number = own.map_or(0, |own| own.number + 1) + skip.saturating_sub(u32::from(own.is_some()));
                let new = objects::write_tree(view.repository(), events)?;
                let name = names::of_segment(&self.batch, writer, number);
                Ok(RefEdit { name, expected: None, new: Some(new) })
            }
        }
    }
}
