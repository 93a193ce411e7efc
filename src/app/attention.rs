//! Attention records: each written in one transaction.

use super::App;
use super::stamp::step;
use super::status::NoReport;
use super::transact::NotTaken;
use crate::domain::attention::{self, Key, Record};
use crate::domain::decision::{Refusal, RefusalKind, Verdict};
use crate::domain::path::Prefix;
use crate::domain::snapshot::{Freshness, Listing, Scope, Snapshot};

/// How often a store that counts may be asked (cli-contract.md section 10).
const ATTEMPTS: u32 = 2;

impl App<'_> {
    /// Stores an open record.
    ///
    /// # Errors
    /// When the stored one is newer or not readable, or the store did not answer.
    pub fn upsert_attention(&self, record: &Record) -> Result<Record, NotTaken> {
        self.change_attention("Ask", &record.key, |snapshot| attention::upsert(snapshot, record))
    }

    /// Marks a record as resolved.
    ///
    /// # Errors
    /// When there is none, the stored one is newer or not readable, or the store did not answer.
    pub fn resolve_attention(&self, key: &Key, generation: i64) -> Result<Record, NotTaken> {
        let now = self.clock.now();
        self.change_attention("Resolve", key, |snapshot| attention::resolve(snapshot, key, generation, now))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When there is none, it is not readable, or the store did not answer.
    pub fn attention(&self, key: &Key) -> Result<Record, NoReport> {
        let path = key.path();
        let scope = Scope::of_records([path.clone()]);
        let snapshot = self.store.snapshot(&scope, Freshness::Fetched, &self.deadline)?;
        let stored = snapshot.records.get(&path).and_then(Option::as_ref);
        Ok(attention::single(stored, key)?)
    }

    /// Reads the records of a directory, ordered for whoever looks at them.
    ///
    /// # Errors
    /// When any of them is not readable, there are too many, or the store did not answer.
    pub fn attention_list(&self, prefix: &Prefix, include_resolved: bool) -> Result<Vec<Record>, NoReport> {
        let scope = Scope::of_prefixes([prefix.clone()]);
        let snapshot = self.store.snapshot(&scope, Freshness::Fetched, &self.deadline)?;
        let empty = Listing::default();
        let listing = snapshot.listings.get(prefix).unwrap_or(&empty);
        Ok(attention::list(listing, prefix.as_str(), include_resolved)?)
    }

    fn change_attention(
        &self,
        verb: &str,
        key: &Key,
        decide: impl FnMut(&Snapshot) -> Verdict<Record>,
    ) -> Result<Record, NotTaken> {
        let stamp = self.stamp();
        let reads = Scope::of_records([key.path()]);
        let step = step(&stamp, reads, ATTEMPTS, format!("{verb} attention {}", key.id()));
        self.transact(&step, decide).map(|taken| taken.outcome).map_err(in_words)
    }
}

fn in_words(not_taken: NotTaken) -> NotTaken {
    match not_taken {
        NotTaken::Contention { path, .. } => {
            Refusal::new(RefusalKind::Unknown, format!("state changed while writing {path}")).into()
        }
        other => other,
    }
}
