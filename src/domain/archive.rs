//! What `gc` leaves behind: archive envelopes, which events they retain and where they live
//! (state-schema.md section 7).

mod compaction;
mod envelope;
mod retained;

pub use compaction::{Group, canonical, compaction_path};
pub use envelope::{Envelope, Kind};
pub use retained::{is_terminal_event, record_time, retained};
