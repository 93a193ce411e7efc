//! What commands have to say: typed, serialisable, unformatted.

use serde::Serialize;

use crate::domain::batch::drain::Notice;
use crate::domain::record::{self, Members};

/// The version of the command line's contract: texts, exit codes and JSON.
pub const CONTRACT_VERSION: &str = "0.1.0";

/// The JSON of claim, heartbeat, release and record-event (design.md section 2).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Written {
    version: &'static str,
    outcome: &'static str,
    record: Members,
    generation: Option<i64>,
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drained: Option<Notice>,
}

impl Written {
    /// Returns the report of a record that was written.
    #[must_use]
    pub fn new(outcome: &'static str, record: Members, warnings: Vec<String>) -> Self {
        let generation = record::integer(&record, "generation");
        Self { version: CONTRACT_VERSION, outcome, record, generation, warnings, drained: None }
    }

    /// Adds the drain of the lane that the record is about (design.md section 4).
    #[must_use]
    pub fn with_drain(mut self, drained: Option<Notice>) -> Self {
        self.drained = drained;
        self
    }
}
