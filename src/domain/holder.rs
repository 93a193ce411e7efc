//! Whether the holder of a claim may be displaced (cli-contract.md section 2, design.md section 4 "Clocks").

use super::decision::Halt;
use super::fence::{row_path, stands_in};
use super::liveness::{self, Liveness};
use super::path::RecordPath;
use super::printable::printable;
use super::record::{Content, Members, Stored};
use super::request::{Acquire, SeenChange};
use super::snapshot::Snapshot;
use super::tenure::Holding;
use super::time::Timestamp;

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The holder stays.
    Blocks {
        /// Why, as the refusal ends: `heartbeat live`.
        reason: String,
        /// What the reader should know besides.
        hint: Option<String>,
    },
    /// The holder may be displaced.
    Yields,
}

/// A row that a judgement rested on, as `(record path, updated_at)`: for the clone to remember, so that it can later
/// tell that it saw the row change.
pub type Sighting = (String, String);

/// Judges the holder of `claim`. Every row looked at is added to `sightings`.
///
/// # Errors
/// [`Halt::Read`] when the holder's heartbeat was not read yet.
pub fn judge(
    snapshot: &Snapshot,
    claim: &Stored,
    held: &Holding,
    request: &Acquire,
    now: Timestamp,
    sightings: &mut Vec<Sighting>,
) -> Result<Judgement, Halt> {
    sight(claim, sightings);
    let Some(path) = row_path(held.agent.as_deref()) else { return Ok(fallback(claim, "missing", request, now)) };
    let Some(row) = snapshot.get(&path)? else { return Ok(fallback(claim, "missing", request, now)) };
    sight(row, sightings);
    Ok(match &row.content {
        Content::Object(_) if stands_in(row) => fallback(claim, "missing", request, now),
        Content::Object(members) => match liveness::of(members, now) {
            Liveness::Unknown => fallback(claim, "unknown", request, now),
            Liveness::Dead => dead(&path, members, request),
            alive => by_heartbeat(alive, skew_hint(members, now)),
        },
        Content::NotAnObject(_) | Content::Malformed(_) => fallback(claim, "invalid", request, now),
    })
}

/// Of a row that is read twice only the latest reading stays: the first may have come from the cache, and both together
/// would look like a change that happened just now.
fn sight(record: &Stored, sightings: &mut Vec<Sighting>) {
    if let Some(updated_at) = record.text("updated_at") {
        sightings.retain(|(path, _)| path != record.path.as_str());
        sightings.push((record.path.to_string(), updated_at.to_owned()));
    }
}

fn by_heartbeat(liveness: Liveness, hint: Option<String>) -> Judgement {
    Judgement::Blocks { reason: format!("heartbeat {liveness}"), hint }
}

fn skew_hint(row: &Members, now: Timestamp) -> Option<String> {
    let ahead = liveness::skew(row, now)?;
    Some(format!("clock skew: the holder's heartbeat is {ahead} s ahead of this machine's clock, and counts as live"))
}

/// Timestamps say dead; a clone that saw the row change lately knows better.
fn dead(path: &RecordPath, row: &Members, request: &Acquire) -> Judgement {
    let Some(seen) = witnessed(path, row, request) else { return Judgement::Yields };
    match liveness::as_witnessed(row, seen.seconds_ago) {
        Liveness::Dead | Liveness::Unknown => Judgement::Yields,
        alive => by_heartbeat(alive, Some(witness_hint("heartbeat", seen))),
    }
}

fn witness_hint(what: &str, seen: &SeenChange) -> String {
    format!("clock skew: its timestamps say otherwise, but this clone saw the {what} change {} s ago", seen.seconds_ago)
}

/// Without a usable heartbeat the claim's own term decides.
fn fallback(claim: &Stored, heartbeat: &str, request: &Acquire, now: Timestamp) -> Judgement {
    let Some(members) = claim.object() else { return Judgement::Yields };
    let in_term = liveness::instant(members, "expires_at").is_some_and(|expires| expires > now);
    let seen = witnessed(&claim.path, members, request).filter(|seen| is_within_term(members, seen));
    if !in_term && seen.is_none() {
        return Judgement::Yields;
    }
    let expires_at = claim.text("expires_at").unwrap_or("UNKNOWN").trim();
    Judgement::Blocks {
        reason: format!("heartbeat {heartbeat}; fallback claim expires at {}", printable(expires_at)),
        hint: seen.filter(|_| !in_term).map(|seen| witness_hint("claim", seen)),
    }
}

fn is_within_term(claim: &Members, seen: &SeenChange) -> bool {
    liveness::term(claim).is_some_and(|(_, ttl)| seen.seconds_ago < ttl.num_seconds())
}

fn witnessed<'a>(path: &RecordPath, record: &Members, request: &'a Acquire) -> Option<&'a SeenChange> {
    let updated_at = super::record::text(record, "updated_at")?;
    request.seen_changing.iter().find(|seen| seen.path == path.as_str() && seen.updated_at == updated_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::stored;
    use serde_json::json;

    #[test]
    fn a_row_read_from_the_cache_and_then_fetched_is_seen_once_as_fetched() {
        let mut sightings = Vec::new();
        for updated_at in ["2026-12-01T00:00:00Z", "2026-12-01T00:05:00Z"] {
            sight(&stored("heartbeats/b.json", json!({"updated_at": updated_at})), &mut sightings);
        }
        let fetched = ("heartbeats/b.json".to_owned(), "2026-12-01T00:05:00Z".to_owned());
        assert_eq!(sightings, [fetched], "two readings of one command are no change that this clone has witnessed");
    }
}
