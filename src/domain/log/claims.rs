//! Claims that no event tells of yet (cli-contract.md section 8.5).

use std::collections::HashMap;

use serde::Serialize;

use super::query::{Item, Query};
use super::row::{Row, family, is_synthetic, shown, value};
use crate::domain::path::RecordPath;
use crate::domain::record::Members;
use crate::domain::snapshot::Listing;
use crate::domain::time::Timestamp;

/// A claim beside the trail. The order of the members is that of the JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedClaim {
    /// `active`, `released`, ...
    pub status: String,
    /// The holder's machine.
    pub machine: String,
    /// The family of the holder's host.
    pub host: String,
    /// The holder.
    pub agent_id: String,
    /// The holder's worker phase; `-` when there is none.
    pub phase: String,
    /// When it was last written.
    pub updated_at: String,
    /// When its lease ends.
    pub expires_at: String,
    /// The target as claimed.
    pub target: String,
    /// Whether the lease has ended.
    pub lease_elapsed: bool,
    /// Whether it is marked as not from real work.
    pub synthetic: bool,
    /// What kind of work that is not real.
    pub synthetic_kind: String,
    #[serde(skip)]
    updated: Option<Timestamp>,
    #[serde(skip)]
    key: (String, String),
}

impl ReportedClaim {
    fn of(claim: &Members, now: Timestamp) -> Self {
        let part = |name: &str| value(claim, name);
        let instant = |name: &str| part(name).as_deref().and_then(Timestamp::parse_iso);
        let folded = |name: &str| part(name).unwrap_or_default().to_lowercase();
        Self {
            status: shown(part("status")),
            machine: shown(part("machine_id")),
            host: shown(part("host").as_deref().map(family)),
            agent_id: shown(part("agent_id")),
            phase: part("phase").map_or_else(|| "-".to_owned(), |phase| shown(Some(phase))),
            updated_at: shown(part("updated_at")),
            expires_at: shown(part("expires_at")),
            target: shown(part("target")),
            lease_elapsed: instant("expires_at").is_some_and(|end| end < now),
            synthetic: is_synthetic(claim),
            synthetic_kind: shown(part("synthetic_kind")),
            updated: instant("updated_at"),
            key: (folded("repo"), folded("target")),
        }
    }
}

/// Returns the claims on the item that are not older than the newest row about them, oldest first.
pub fn reported(listing: &Listing, item: &Item, query: &Query, rows: &[Row], now: Timestamp) -> Vec<ReportedClaim> {
    let mut newest: HashMap<(String, String), ReportedClaim> = HashMap::new();
    for claim in listing.records.iter().filter_map(|stored| stored.object()) {
        let on_item =
            item.is_exactly(&value(claim, "repo").unwrap_or_default(), &value(claim, "target").unwrap_or_default());
        if !on_item || (is_synthetic(claim) && !query.include_synthetic) {
            continue;
        }
        let claim = ReportedClaim::of(claim, now);
        match newest.get(&claim.key) {
            Some(known) if known.updated >= claim.updated => {}
            _ => drop(newest.insert(claim.key.clone(), claim)),
        }
    }
    let mut claims: Vec<ReportedClaim> =
        newest.into_values().filter(|claim| newest_row(rows, &claim.key.1) <= claim.updated).collect();
    claims.sort_by(|one, other| (one.updated, &one.key).cmp(&(other.updated, &other.key)));
    claims
}

/// Tells whether the claim at `path` may be on the item, as far as the path tells.
pub fn may_be_on(path: &RecordPath, item: &Item) -> bool {
    path.repo().is_none_or(|repo| item.is_exactly(&repo, path.stem()))
}

fn newest_row(rows: &[Row], folded_target: &str) -> Option<Timestamp> {
    let about = |row: &&Row| row.target.as_ref().is_some_and(|target| target.to_lowercase() == folded_target);
    rows.iter().filter(about).filter_map(|row| row.instant).max()
}
