//! Questions that wait for a person (state-schema.md section 6, cli-contract.md section 10).

mod change;
mod list;
mod record;

#[cfg(test)]
mod tests;

pub use change::{resolve, upsert};
pub use list::{SCAN_MAXIMUM, list, single};
pub use record::{Invalid, Key, MAX_GENERATION, Record, validate};
