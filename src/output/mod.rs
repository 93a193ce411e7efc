//! The only place that words an answer: text for people, JSON for programs, errors for both.
//!
//! Data goes to stdout, everything else to stderr (cli-contract.md section 1.4).

pub mod error;
pub mod json;
pub mod printer;
pub mod status;
mod written;

pub use printer::Printer;
