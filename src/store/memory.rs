//! The reference store: a map behind a mutex, short enough to read in a sitting.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::domain::decision::{Edit, Expect};
use crate::domain::path::RecordPath;
use crate::domain::record::{Annotations, Content, Members, Stored, Version};
use crate::domain::snapshot::{Freshness, Listing, Scope, Snapshot, StoreFacts};
use crate::world::Deadline;

use super::{Abilities, CommitError, Receipt, Store, StoreError, Transaction};

/// State that lives as long as the value.
#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
}

#[derive(Default, Clone)]
struct State {
    records: BTreeMap<RecordPath, Stored>,
    floors: BTreeMap<String, i64>,
}

impl MemoryStore {
    /// Returns an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Store for MemoryStore {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn abilities(&self) -> Abilities {
        Abilities { atomic: true, fencing: true, retries_until_deadline: true }
    }

    fn snapshot(&self, scope: &Scope, _: Freshness, _: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let records = scope.records.iter().map(|path| (path.clone(), state.records.get(path).cloned())).collect();
        let listings = scope
            .prefixes
            .iter()
            .map(|prefix| {
                let records = state.records.values().filter(|stored| prefix.covers(&stored.path)).cloned().collect();
                (prefix.clone(), Listing { records, notes: Vec::new() })
            })
            .collect();
        let store = StoreFacts { floors: state.floors.clone(), ..StoreFacts::default() };
        Ok(Snapshot { freshness: Freshness::Fetched, records, listings, store })
    }

    fn commit(&self, transaction: &Transaction, _: &Deadline<'_>) -> Result<Receipt, CommitError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        for edit in &transaction.edits {
            let expected = match edit {
                Edit::Put(put) => put.expect.clone(),
                Edit::Append { .. } => Expect::Absent,
                Edit::Delete { version, .. } | Edit::Guard { version, .. } => Expect::At(version.clone()),
            };
            let found = state.records.get(edit.path()).map(|stored| stored.version.clone());
            let holds = match (&expected, &found) {
                (Expect::Absent, None) => true,
                (Expect::At(wanted), Some(found)) => wanted == found,
                _ => false,
            };
            if !holds {
                return Err(CommitError::Conflict { path: edit.path().clone(), expected, found: Some(found) });
            }
        }
        for edit in &transaction.edits {
            state.apply(edit, transaction);
        }
        Ok(Receipt::default())
    }
}

impl State {
    fn apply(&mut self, edit: &Edit, transaction: &Transaction) {
        match edit {
            Edit::Put(put) => self.write(&put.path, &put.members, &put.annotations, transaction),
            Edit::Append { path, members } => self.write(path, members, &Annotations::default(), transaction),
            Edit::Guard { .. } => {}
            Edit::Delete { path, .. } => {
                if let Some(removed) = self.records.remove(path) {
                    self.raise_floor(&removed);
                }
            }
        }
    }

    fn write(&mut self, path: &RecordPath, members: &Members, annotations: &Annotations, transaction: &Transaction) {
        let annotations = Annotations {
            transaction_id: Some(transaction.id.clone()),
            revision: annotations.revision.saturating_add(1),
            ..annotations.clone()
        };
        let mut digest = Sha256::new();
        digest.update(serde_json::to_vec(members).unwrap_or_default());
        digest.update(transaction.id.as_str());
        digest.update(annotations.revision.to_le_bytes());
        let version = Version::new(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>());
        let content = Content::Object(members.clone());
        self.records.insert(path.clone(), Stored { path: path.clone(), content, annotations, version });
    }

    /// A deleted claim's generation stays as the floor of its repository.
    fn raise_floor(&mut self, removed: &Stored) {
        let generation = removed.object().and_then(|members| crate::domain::record::integer(members, "generation"));
        if let (Some(repo), Some(generation)) = (removed.path.repo(), generation) {
            let floor = self.floors.entry(repo).or_insert(0);
            *floor = (*floor).max(generation);
        }
    }
}
