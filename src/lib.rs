//! Git-native coordination for coding agents.
//!
//! The way of the data is the way of the folders:
//!
//! ```text
//! argv -> parsed command -> pure decision on (records, clock) -> one transaction on a store -> rendered output
//!  cli       commands                 domain                       app + store                     output
//! ```
//!
//! * [`domain`] holds every rule and does no I/O: records and an instant go in, edits and an outcome come out.
//! * [`app`] is the only place where reading, deciding and writing meet; its retry loop is the only one.
//! * [`store`] is the trait with its contract, [`store::memory`] the readable reference, [`store::git`] the main store.
//! * [`git`] is the only place that spawns git or opens a repository.
//! * [`worktree`] keeps the private files of a clone: tenure, identity, notes, observations.
//! * [`hooks`] turns facts into the verdict of a git hook.
//! * [`cli`] and [`commands`] join the parts; [`output`] is the only place that words an answer.
//! * [`world`] is the one home of arguments, environment, streams, clock and randomness.

pub mod app;
pub mod cli;
pub mod commands;
pub mod domain;
pub mod error;
pub mod git;
pub mod hooks;
pub mod output;
pub mod report;
pub mod store;
pub mod worktree;
pub mod world;

pub use cli::run;
