//! From a transaction to the refs it changes, in the order in which they must land.
//!
//! A git that is killed in mid-commit lands a prefix of the edits. So claims come last: the claim's ref is the commit
//! point, and whatever landed without it speaks of a claim that does not agree with it (design.md sections 3.3, 3.4).

use std::collections::BTreeMap;

use gix::ObjectId;

use super::about::About;
use super::refs::RefEdit;
use super::segments::Segments;
use super::view::View;
use super::{codec, names, objects, trouble};
use crate::domain::decision::{Edit, Expect, Put};
use crate::domain::path::{Family, RecordPath};
use crate::domain::record::{Annotations, Content, Version, integer};
use crate::store::{CommitError, StoreError, Transaction};

/// One ref edit with what it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The edit.
    pub edit: RefEdit,
    /// What it is for.
    pub role: Role,
}

/// What a ref edit is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// It holds this record, which the caller's decision rests on.
    Record(RecordPath),
    /// It holds events of this batch; the store itself chose it.
    Segment(String),
    /// It is `store.json`; the store itself added it.
    Store,
}

/// A transaction as ref edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// In landing order.
    pub edits: Vec<Planned>,
}

impl Plan {
    /// Returns the ref edits alone.
    #[must_use]
    pub fn ref_edits(&self) -> Vec<RefEdit> {
        self.edits.iter().map(|planned| planned.edit.clone()).collect()
    }

    /// Returns the last edit that changes anything: once it is there, the transaction has landed.
    #[must_use]
    pub fn commit_point(&self) -> Option<&Planned> {
        self.edits.iter().rev().find(|planned| !planned.edit.is_guard())
    }
}

/// Makes plans against one view.
pub struct Planner<'a> {
    /// The refs as this clone knows them.
    pub view: &'a View<'a>,
    /// This clone's writer id.
    pub writer: &'a str,
    /// The store's own record, with its blob; absent before the first write of a store that is not shared.
    pub about: Option<(ObjectId, About)>,
    /// What `store.json` is to be when there is none.
    pub new_about: &'a About,
    /// An earlier sending of this transaction may have landed in part: what is ours already is left as it is.
    pub resending: bool,
    /// How many segments past the last to leave alone.
    pub skip_segments: u32,
}

impl Planner<'_> {
    /// Returns the plan, or the first record that is not as expected.
    ///
    /// # Errors
    /// [`CommitError::Conflict`], or [`CommitError::Failed`] when an object cannot be read or written.
    pub fn plan(&self, transaction: &Transaction) -> Result<Plan, CommitError> {
        let names: Vec<String> = transaction.edits.iter().map(|edit| names::of_record(edit.path())).collect();
        let current = self.view.read(&names).map_err(CommitError::Failed)?;
        let mut about = self.about.as_ref().map_or_else(|| self.new_about.clone(), |(_, about)| about.clone());
        let mut edits = Vec::new();
        let mut appends: BTreeMap<String, BTreeMap<String, ObjectId>> = BTreeMap::new();
        for edit in &transaction.edits {
            let path = edit.path();
            let found = current.get(&names::of_record(path)).copied();
            let planned = match edit {
                Edit::Append { members, .. } if names::is_reservation(path) => {
                    let put = Put::create(path.clone(), members.clone());
                    let new = self.blob_of(transaction, &put).map_err(CommitError::Failed)?;
                    self.record_edit(path, &put.expect, Some(new), found)?
                }
                Edit::Append { members, .. } => {
                    self.append(transaction, path, members, &mut appends)?;
                    continue;
                }
                Edit::Put(put) => {
                    let new = self.blob_of(transaction, put).map_err(CommitError::Failed)?;
                    self.record_edit(path, &put.expect, Some(new), found)?
                }
                Edit::Guard { version, .. } => {
                    self.record_edit(path, &Expect::At(version.clone()), object_id(version), found)?
                }
                Edit::Delete { version, .. } => {
                    let planned = self.record_edit(path, &Expect::At(version.clone()), None, found)?;
                    if let Some(removed) = planned.expected {
                        self.keep_floor(path, removed, &mut about).map_err(CommitError::Failed)?;
                    }
                    planned
                }
            };
            edits.push(Planned { edit: planned, role: Role::Record(path.clone()) });
        }
        edits.extend(self.segment_edits(appends)?);
        edits.push(self.store_edit(&about).map_err(CommitError::Failed)?);
        edits.sort_by_key(rank);
        Ok(Plan { edits })
    }

    fn record_edit(
        &self,
        path: &RecordPath,
        expect: &Expect,
        new: Option<ObjectId>,
        found: Option<ObjectId>,
    ) -> Result<RefEdit, CommitError> {
        let name = names::of_record(path);
        let expected = match expect {
            Expect::Absent => None,
            Expect::At(version) => object_id(version),
        };
        let is_known = expected.is_some() || *expect == Expect::Absent;
        if is_known && found == expected {
            return Ok(RefEdit { name, expected, new });
        }
        if self.resending && found == new {
            return Ok(RefEdit { name, expected: new, new });
        }
        let found = Some(found.map(|id| Version::new(id.to_string())));
        Err(CommitError::Conflict { path: path.clone(), expected: expect.clone(), found })
    }

    fn blob_of(&self, transaction: &Transaction, put: &Put) -> Result<ObjectId, StoreError> {
        let annotations = Annotations {
            transaction_id: Some(transaction.id.clone()),
            revision: put.annotations.revision.saturating_add(1),
            ..put.annotations.clone()
        };
        let cut = names::is_cut(&names::of_record(&put.path));
        let bytes = codec::encode(&put.members, &annotations, cut.then_some(&put.path));
        objects::write_blob(self.view.repository(), &bytes)
    }

    fn append(
        &self,
        transaction: &Transaction,
        path: &RecordPath,
        members: &crate::domain::record::Members,
        appends: &mut BTreeMap<String, BTreeMap<String, ObjectId>>,
    ) -> Result<(), CommitError> {
        let Some(batch) = path.batch_of_event() else {
            return Err(CommitError::Failed(trouble(format!("{path} is not the path of an event"))));
        };
        let annotations =
            Annotations { transaction_id: Some(transaction.id.clone()), revision: 1, ..Annotations::default() };
        let bytes = codec::encode(members, &annotations, None);
        let blob = objects::write_blob(self.view.repository(), &bytes).map_err(CommitError::Failed)?;
        appends.entry(batch.to_owned()).or_default().insert(format!("{}.json", path.stem()), blob);
        Ok(())
    }

    fn segment_edits(
        &self,
        appends: BTreeMap<String, BTreeMap<String, ObjectId>>,
    ) -> Result<Vec<Planned>, CommitError> {
        let mut edits = Vec::new();
        for (batch, mut events) in appends {
            let segments = Segments::read(self.view, &batch).map_err(CommitError::Failed)?;
            if self.resending {
                events.retain(|file, blob| segments.event(file) != Some(*blob));
            }
            if let Some(path) = events.keys().find(|file| segments.event(file).is_some()) {
                return Err(taken(&batch, path));
            }
            if !events.is_empty() {
                let edit = segments.append(self.view, self.writer, &events, self.skip_segments);
                edits.push(Planned { edit: edit.map_err(CommitError::Failed)?, role: Role::Segment(batch) });
            }
        }
        Ok(edits)
    }

    /// Returns the guard of `store.json`, its creation, or its change when a floor rose.
    fn store_edit(&self, about: &About) -> Result<Planned, StoreError> {
        let expected = self.about.as_ref().map(|(id, _)| *id);
        let unchanged = self.about.as_ref().is_some_and(|(_, old)| old == about);
        let new = if unchanged { expected } else { Some(objects::write_blob(self.view.repository(), &about.bytes())?) };
        let edit = RefEdit { name: names::STORE.to_owned(), expected, new };
        Ok(Planned { edit, role: Role::Store })
    }

    /// A deleted claim's generation becomes the floor of its repository, so that no later claim repeats it.
    fn keep_floor(&self, path: &RecordPath, removed: ObjectId, about: &mut About) -> Result<(), StoreError> {
        let Some(repo) = path.repo() else { return Ok(()) };
        let decoded = codec::decode(Some(path.family()), &self.view.blob(removed)?);
        if let Content::Object(members) = decoded.content
            && let Some(generation) = integer(&members, "generation")
        {
            about.raise_floor(&repo, generation);
        }
        Ok(())
    }
}

fn taken(batch: &str, file: &str) -> CommitError {
    match RecordPath::parse(&format!("events/{batch}/{file}")) {
        Ok(path) => CommitError::Conflict { path, expected: Expect::Absent, found: None },
        Err(error) => CommitError::Failed(trouble(error)),
    }
}

fn object_id(version: &Version) -> Option<ObjectId> {
    ObjectId::from_hex(version.as_str().as_bytes()).ok()
}

/// Heartbeats, events, reservations, batches and the rest, `store.json`, claims.
fn rank(planned: &Planned) -> u8 {
    match &planned.role {
        Role::Record(path) => match path.family() {
            Family::Heartbeats => 0,
            Family::Events => 2,
            Family::Claims => 5,
            _ => 3,
        },
        Role::Segment(_) => 1,
        Role::Store => 4,
    }
}
