//! How each backend is opened for the suite.

use std::sync::Arc;

use agent_coord::domain::snapshot::{Freshness, Scope, Snapshot};
use agent_coord::store::memory::MemoryStore;
use agent_coord::store::{Abilities, CommitError, Receipt, Store, StoreError, Transaction};
use agent_coord::world::Deadline;

use super::client::{Backend, Client, Team};

/// A map behind a mutex.
pub fn memory() -> Backend {
    Backend { name: "memory", open: open_memory, effort: 8 }
}

fn open_memory(count: usize) -> Team {
    let store = Arc::new(MemoryStore::new());
    let clients = (0..count).map(|_| Client::new(Box::new(Handle(Arc::clone(&store))))).collect();
    Team { clients, plant: None, keeps: None }
}

/// One client's hold on a store that all share.
struct Handle(Arc<MemoryStore>);

impl Store for Handle {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        self.0.snapshot(scope, freshness, deadline)
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        self.0.commit(transaction, deadline)
    }
}
