//! Asking and answering: both are decided against what is stored.

use chrono::SecondsFormat;
use serde_json::Value;

use super::list::stored_record;
use super::record::{Key, Record, validate};
use crate::domain::decision::{Decision, Edit, Put, Refusal, RefusalKind, Verdict};
use crate::domain::record::text;
use crate::domain::snapshot::{Freshness, Snapshot};
use crate::domain::time::Timestamp;

/// Stores an open record, over an older one of the same key.
///
/// # Errors
/// When the stored record is newer, or is not readable.
pub fn upsert(snapshot: &Snapshot, requested: &Record) -> Verdict<Record> {
    let path = requested.key.path();
    let current = snapshot.get(&path)?;
    let Some(current) = current else {
        let edits = vec![Edit::Put(Put::create(path, requested.members.clone()))];
        return Ok(Decision { edits, outcome: requested.clone(), basis: Freshness::Cached });
    };
    let stored = stored_record(current)?;
    check_generation(requested.generation, &stored)?;
    if !stored.is_open() && requested.generation <= stored.generation {
        return Err(refused(format!(
            "reopening attention must advance beyond resolved generation {}",
            stored.generation
        ))
        .into());
    }
    if requested.refreshed < stored.refreshed {
        return Err(refused(format!(
            "attention refresh is older than the stored refresh at generation {}",
            stored.generation
        ))
        .into());
    }
    let mut members = requested.members.clone();
    if let Some(created) = stored.members.get("created_at") {
        members.insert("created_at".to_owned(), created.clone());
    }
    members.shift_remove("resolved_at");
    // The stored creation may lie after the requested refresh, so the whole is checked again.
    let merged = validate(&Value::Object(members), true)
        .map_err(|error| Refusal::new(RefusalKind::Invalid, error.to_string()))?;
    let edits = vec![Edit::Put(Put::replace(current, merged.members.clone()))];
    Ok(Decision { edits, outcome: merged, basis: Freshness::Fetched })
}

/// Marks a record as resolved at `generation`.
///
/// # Errors
/// When there is none, the stored one is newer, or it is not readable.
pub fn resolve(snapshot: &Snapshot, key: &Key, generation: i64, now: Timestamp) -> Verdict<Record> {
    let Some(current) = snapshot.get(&key.path())? else { return Err(not_found(key).into()) };
    let stored = stored_record(current)?;
    check_generation(generation, &stored)?;
    let mut members = stored.members.clone();
    if stored.is_open() || generation != stored.generation {
        let refreshed_at = refresh_text(&stored, now);
        members.insert("status".to_owned(), "resolved".into());
        members.insert("source_generation".to_owned(), generation.into());
        members.insert("refreshed_at".to_owned(), refreshed_at.as_str().into());
        if stored.is_open() {
            members.insert("resolved_at".to_owned(), refreshed_at.into());
        }
    }
    let resolved = validate(&Value::Object(members), false).map_err(|error| refused(error.to_string()))?;
    let edits = vec![Edit::Put(Put::replace(current, resolved.members.clone()))];
    Ok(Decision { edits, outcome: resolved, basis: Freshness::Fetched })
}

/// Words that a record is not there.
pub(super) fn not_found(key: &Key) -> Refusal {
    refused(format!("attention record not found: {}", key.id()))
}

pub(super) fn refused(message: String) -> Refusal {
    Refusal::new(RefusalKind::Unknown, message)
}

fn check_generation(requested: i64, stored: &Record) -> Result<(), Refusal> {
    if requested < stored.generation {
        let stored = stored.generation;
        return Err(refused(format!("source generation {requested} is older than stored generation {stored}")));
    }
    Ok(())
}

/// Returns the instant of a resolution as text: now, unless the record already tells of something later.
fn refresh_text(stored: &Record, now: Timestamp) -> String {
    let told = [
        (Some(stored.created), "created_at"),
        (Some(stored.refreshed), "refreshed_at"),
        (stored.resolved, "resolved_at"),
    ];
    let latest =
        told.into_iter().filter_map(|(instant, name)| Some((instant?, name))).max_by_key(|(instant, _)| *instant);
    match latest {
        Some((instant, name)) if instant >= now => text(&stored.members, name).unwrap_or_default().to_owned(),
        _ => precise(now),
    }
}

/// Returns UTC with as many fraction digits as the instant needs, nine at most.
fn precise(instant: Timestamp) -> String {
    let text = instant.as_utc().to_rfc3339_opts(SecondsFormat::Nanos, false);
    let plain = text.split('+').next().unwrap_or(&text);
    format!("{}Z", plain.trim_end_matches('0').trim_end_matches('.'))
}
