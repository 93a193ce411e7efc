//! Reading a trail.

use super::App;
use super::status::NoReport;
use crate::domain::log::{self, Query, Trail};
use crate::domain::snapshot::{Freshness, Scope};
use crate::domain::time::Timestamp;

/// A trail and how old it may be.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadTrail {
    /// The trail.
    pub trail: Trail,
    /// How fresh the records are.
    pub freshness: Freshness,
    /// When they were fetched, where the store knows.
    pub fetched_at: Option<Timestamp>,
}

impl App<'_> {
    /// Reads the trail a query asks for.
    ///
    /// # Errors
    /// When the store cannot be read, or a live record is no JSON.
    pub fn trail(&self, query: &Query, freshness: Freshness) -> Result<ReadTrail, NoReport> {
        let scope = Scope::of_prefixes(log::prefixes(query));
        let snapshot = self.store.snapshot(&scope, freshness, &self.deadline)?;
        let trail = log::trail(&snapshot, query, self.clock.now())?;
        Ok(ReadTrail { trail, freshness: snapshot.freshness, fetched_at: snapshot.store.fetched_at })
    }
}
