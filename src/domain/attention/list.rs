//! Reading stored records, each of which is checked before it is believed.

use serde_json::Value;

use super::change::{not_found, refused};
use super::record::{Key, Record, validate};
use crate::domain::decision::Refusal;
use crate::domain::path::RecordPath;
use crate::domain::record::{Content, Stored};
use crate::domain::snapshot::Listing;

/// The most records of one repository that are looked at.
pub const SCAN_MAXIMUM: usize = 1000;

/// Returns the record at a key.
///
/// # Errors
/// When there is none, or it is not readable.
pub fn single(stored: Option<&Stored>, key: &Key) -> Result<Record, Refusal> {
    stored_record(stored.ok_or_else(|| not_found(key))?)
}

/// Returns the records of a listing in the order a person should look at them: by priority, then the oldest first.
///
/// # Errors
/// When the listing is not whole, is too long, or holds a record that is not readable.
pub fn list(listing: &Listing, prefix: &str, include_resolved: bool) -> Result<Vec<Record>, Refusal> {
    if let Some(note) = listing.notes.first() {
        return Err(refused(incomplete(note)));
    }
    if listing.records.len() > SCAN_MAXIMUM {
        return Err(refused(format!("state prefix {prefix} exceeds scan maximum {SCAN_MAXIMUM}")));
    }
    let mut records = listing.records.iter().map(stored_record).collect::<Result<Vec<Record>, Refusal>>()?;
    records.retain(|record| include_resolved || record.is_open());
    records
        .sort_by(|one, other| (one.rank, one.created, one.key.id()).cmp(&(other.rank, other.created, other.key.id())));
    Ok(records)
}

/// Reads a stored record.
///
/// # Errors
/// When it is no valid record, or is another than its path says.
pub(super) fn stored_record(stored: &Stored) -> Result<Record, Refusal> {
    let value = match &stored.content {
        Content::Object(members) => Value::Object(members.clone()),
        Content::NotAnObject(value) => value.clone(),
        Content::Malformed(reason) => {
            return Err(refused(format!("malformed stored JSON at {}: {reason}", stored.path)));
        }
    };
    let record = validate(&value, false)
        .map_err(|error| refused(format!("invalid stored attention record at {}: {error}", stored.path)))?;
    check_identity(&record, &stored.path)?;
    Ok(record)
}

fn check_identity(record: &Record, path: &RecordPath) -> Result<(), Refusal> {
    if record.key.path() == *path {
        return Ok(());
    }
    Err(refused(format!("stored attention identity does not match path {path}")))
}

fn incomplete(note: &str) -> String {
    if note.contains("scoped token") {
        return "attention list is filtered and incomplete for the scoped token".to_owned();
    }
    format!("attention list is incomplete: {note}")
}
