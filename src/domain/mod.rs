//! Every rule of coordination, without I/O: records and an instant go in, edits and an outcome come out.
//!
//! Nothing here reads a clock, the environment, a file or a ref. A rule that needs a record it was not given answers
//! [`decision::Halt::Read`], and the caller comes back with it.

pub mod attribution;
pub mod canary;
pub mod claim;
pub mod decision;
pub mod event;
pub mod fence;
pub mod heartbeat;
pub mod ids;
pub mod liveness;
pub mod path;
pub mod record;
pub mod request;
pub mod snapshot;
pub mod status;
pub mod time;
pub mod vocabulary;
