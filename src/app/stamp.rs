//! What is fixed before the retry loop.

use crate::domain::event::event_id;
use crate::domain::ids::TransactionId;
use crate::domain::request::Stamp;
use crate::store::Receipt;

use super::App;
use super::transact::Step;

/// A transaction id has 128 random bits.
const TRANSACTION_ID_BYTES: usize = 16;

impl App<'_> {
    /// Makes the stamp of one step: the instant, the ids, and what the store enforces.
    #[must_use]
    pub fn stamp(&self) -> Stamp {
        let now = self.clock.now();
        let mut random = [0; 4];
        self.ids.fill(&mut random);
        Stamp {
            now,
            event_id: event_id(now, random),
            transaction_id: self.ids.hex(TRANSACTION_ID_BYTES),
            fencing: self.store.abilities().fencing,
        }
    }
}

/// Returns the step that reads `reads` first and is known by the stamp's transaction id.
pub(super) fn step(stamp: &Stamp, reads: crate::domain::snapshot::Scope, attempts: u32, message: String) -> Step {
    Step { reads, attempts, id: TransactionId::from_hex(stamp.transaction_id.clone()), message }
}

/// Words what a store without transactions could not record beside the change itself.
pub(super) fn lost_events(event_type: &str, receipt: &Receipt) -> Vec<String> {
    let reasons = receipt.lost_events.iter().map(|(_, reason)| reason);
    reasons.map(|reason| crate::domain::event::not_recorded(event_type, reason)).collect()
}
