//! The trail of one work item, or of everything: events oldest first, archived ones among them
//! (cli-contract.md section 8).

mod claims;
pub mod mirror;
mod provenance;
mod query;
mod row;
mod trail;

#[cfg(test)]
mod tests;

pub use claims::ReportedClaim;
pub use query::{Item, Narrowing, Query, since};
pub use row::{Row, family};
pub use trail::{Trail, prefixes, trail};
