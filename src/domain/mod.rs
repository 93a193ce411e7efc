//! Every rule of coordination, without I/O: records and an instant go in, edits and an outcome come out.
//!
//! Nothing here reads a clock, the environment, a file or a ref. A rule that needs a record it was not given answers
//! [`decision::Halt::Read`], and the caller comes back with it.

pub mod archive;
pub mod attention;

pub mod attribution;
pub mod audit;
pub mod batch;
pub mod canary;
pub mod claim;
pub mod claim_record;
pub mod closeout;
pub mod decision;
pub mod event;
pub mod fence;
pub mod heartbeat;
pub mod heartbeat_record;
pub mod holder;
pub mod ids;
pub mod liveness;
pub mod log;
pub mod metadata;
pub mod path;
pub mod printable;
pub mod record;
pub mod record_event;
pub mod release;
pub mod request;
pub mod snapshot;
pub mod status;
pub mod tenure;
pub mod time;
pub mod vocabulary;

#[cfg(test)]
pub(crate) mod fixtures;
