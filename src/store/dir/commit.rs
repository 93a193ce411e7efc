//! A transaction on files: the locks of all its records, one look at all of them, then the edits in order.
//!
//! A conflict is found before anything is written. A process that dies in between leaves the edits that came first.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

use super::atomic_write::{self, Failed};
use super::lock::{self, Lock};
use super::{DirStore, layout};
use crate::domain::decision::{Edit, Expect};
use crate::domain::path::RecordPath;
use crate::domain::record::Members;
use crate::store::content::{self, RESERVED};
use crate::store::{CommitError, Receipt, StoreError, StoreErrorKind, Transaction};
use crate::world::Deadline;

pub(super) fn commit(
    store: &DirStore<'_>,
    transaction: &Transaction,
    deadline: &Deadline<'_>,
) -> Result<Receipt, CommitError> {
    let edits = &transaction.edits;
    let files = files_of(store, edits).map_err(CommitError::Failed)?;
    let _locks = take_locks(store, edits, &files, deadline)?;
    let mut commit =
        Commit { store, files, side_events: is_side_event(edits), written: false, receipt: Receipt::default() };
    let lost = commit.check(edits)?;
    let (events, others): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(|edit| matches!(edit, Edit::Append { .. }));
    for edit in others {
        commit.apply(edit)?;
    }
    for edit in events.into_iter().filter(|edit| !lost.contains(edit.path())) {
        commit.apply(edit)?;
    }
    Ok(commit.receipt)
}

/// Tells whether an event only accompanies a change; one that is the whole step is not lost but refused.
fn is_side_event(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| matches!(edit, Edit::Put(_) | Edit::Delete { .. }))
}

/// Returns the file of each record, ordered: whoever takes several locks takes them in this order.
fn files_of(store: &DirStore<'_>, edits: &[Edit]) -> Result<BTreeMap<RecordPath, PathBuf>, StoreError> {
    let file = |edit: &Edit| Ok((edit.path().clone(), layout::file_of(store.root(), edit.path())?));
    edits.iter().map(file).collect()
}

fn take_locks(
    store: &DirStore<'_>,
    edits: &[Edit],
    files: &BTreeMap<RecordPath, PathBuf>,
    deadline: &Deadline<'_>,
) -> Result<Vec<Lock>, CommitError> {
    for edit in edits {
        match expected(edit) {
            Expect::Absent => layout::make_directories(store.root(), edit.path()).map_err(CommitError::Failed)?,
            // What is not there needs no lock, and no directory for one.
            expected => {
                if layout::find(store.root(), edit.path()).map_err(CommitError::Failed)?.is_none() {
                    return Err(CommitError::Conflict { path: edit.path().clone(), expected, found: Some(None) });
                }
            }
        }
    }
    files.values().map(|file| lock::take(file, deadline)).collect::<Result<_, _>>().map_err(CommitError::Failed)
}

fn expected(edit: &Edit) -> Expect {
    match edit {
        Edit::Put(put) => put.expect.clone(),
        Edit::Append { .. } => Expect::Absent,
        Edit::Delete { version, .. } | Edit::Guard { version, .. } => Expect::At(version.clone()),
    }
}

/// A transaction whose locks are held.
struct Commit<'a, 'world> {
    store: &'a DirStore<'world>,
    files: BTreeMap<RecordPath, PathBuf>,
    side_events: bool,
    written: bool,
    receipt: Receipt,
}

impl Commit<'_, '_> {
    /// Compares every record with what is expected of it. Returns the events whose place is taken.
    fn check(&mut self, edits: &[Edit]) -> Result<BTreeSet<RecordPath>, CommitError> {
        let mut lost = BTreeSet::new();
        for edit in edits {
            let (path, expected) = (edit.path(), expected(edit));
            let found = layout::version(self.store.root(), path).map_err(CommitError::Failed)?;
            let holds = match (&expected, &found) {
                (Expect::Absent, None) => true,
                (Expect::At(wanted), Some(found)) => wanted == found,
                _ => false,
            };
            match edit {
                _ if holds => {}
                Edit::Append { .. } if self.side_events => {
                    lost.insert(path.clone());
                    self.receipt.lost_events.push((path.clone(), format!("state already exists at {path}")));
                }
                _ => return Err(CommitError::Conflict { path: path.clone(), expected, found: Some(found) }),
            }
        }
        Ok(lost)
    }

    fn apply(&mut self, edit: &Edit) -> Result<(), CommitError> {
        let file = &self.files[edit.path()];
        let done = match edit {
            Edit::Guard { .. } => return Ok(()),
            Edit::Put(put) => atomic_write::replace(file, &bytes_of(&put.members), self.store.ids),
            Edit::Append { members, .. } => atomic_write::replace(file, &bytes_of(members), self.store.ids),
            Edit::Delete { .. } => atomic_write::remove(file),
        };
        let is_event = matches!(edit, Edit::Append { .. });
        match done {
            Ok(()) => self.written = true,
            Err(Failed::Before(error) | Failed::After(error)) if is_event && self.side_events => {
                let reason = format!("cannot write {}: {}", edit.path(), layout::plain(&error));
                self.receipt.lost_events.push((edit.path().clone(), reason));
            }
            Err(failed) => return Err(self.failure(edit.path(), failed)),
        }
        Ok(())
    }

    fn failure(&self, path: &RecordPath, failed: Failed) -> CommitError {
        let (error, written) = match failed {
            Failed::Before(error) => (error, self.written),
            Failed::After(error) => (error, true),
        };
        let message = format!("cannot write {path}: {}", layout::plain(&error));
        let error = StoreError::new(StoreErrorKind::Broken, message);
        if written { CommitError::Unknown(error) } else { CommitError::Failed(error) }
    }
}

fn bytes_of(members: &Members) -> Vec<u8> {
    let mut members = members.clone();
    members.shift_remove(RESERVED);
    content::pretty(&Value::Object(members))
}
