//! The only place where reading, deciding and writing meet.

pub mod attention;
pub mod batch;
pub mod claim;
pub mod closeout;
pub mod heartbeat;
pub mod log;
pub mod mirror;
pub mod record_event;
pub mod release;
pub mod stamp;
pub mod status;
pub mod transact;

#[cfg(test)]
mod histories;

use crate::store::Store;
use crate::world::{Clock, Deadline, Randomness};

/// What a command is given to act on.
pub struct App<'world> {
    /// The state.
    pub store: &'world dyn Store,
    /// Time.
    pub clock: &'world dyn Clock,
    /// Randomness.
    pub ids: &'world dyn Randomness,
    /// When the command must have answered.
    pub deadline: Deadline<'world>,
}
