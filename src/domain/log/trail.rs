//! From listings to a trail, in one pass over each.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::claims::{self, ReportedClaim};
use super::provenance::Provenance;
use super::query::Query;
use super::row::{Row, is_synthetic};
use crate::domain::archive::{Envelope, canonical};
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::record::{Content, Members, Stored, text};
use crate::domain::snapshot::{Listing, Snapshot};
use crate::domain::time::Timestamp;

/// A trail and what is doubtful about it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trail {
    /// The rows to show, oldest first.
    pub rows: Vec<Row>,
    /// There are rows, and the filters hide all of them.
    pub suppressed: bool,
    /// The targets of the matched rows, before any limit, and of the reported claims.
    pub matched_targets: BTreeSet<String>,
    /// Claims that no row is newer than, oldest first.
    pub claims: Vec<ReportedClaim>,
    /// For stderr, in order.
    pub warnings: Vec<String>,
    /// Where the rows came from, when the archive has to do with it.
    pub note: Option<String>,
    /// The prefixes that could not be read in full; empty = the trail is complete.
    pub degraded: Vec<&'static str>,
}

const EVENTS: &str = "events";
const ARCHIVE: &str = "archive/events";
const CLAIMS: &str = "claims";
/// What a store says of a listing it does not have.
const UNSUPPORTED: &str = "not supported by backend";

/// Returns what a query reads.
#[must_use]
pub fn prefixes(query: &Query) -> Vec<Prefix> {
    let claims = (query.reports_claims() || query.mirror).then(|| Prefix::family(Family::Claims));
    [Prefix::family(Family::Events), Prefix::archived(Family::Events)].into_iter().chain(claims).collect()
}

/// Returns the trail that a snapshot of [`prefixes`] holds.
///
/// # Errors
/// When a live record is no JSON: what it says is unknown.
pub fn trail(snapshot: &Snapshot, query: &Query, now: Timestamp) -> Result<Trail, Refusal> {
    let empty = Listing::default();
    let listing = |prefix: Prefix| snapshot.listings.get(&prefix).unwrap_or(&empty);
    let mut reading = Reading { query, trail: Trail::default(), rows: Vec::new(), live: Live::default() };
    reading.live_events(listing(Prefix::family(Family::Events)))?;
    let provenance = reading.archived_events(listing(Prefix::archived(Family::Events)));
    let Reading { mut trail, mut rows, .. } = reading;
    trail.note = provenance.note(rows.len(), query.mirror);
    rows.sort_by(|one, other| (one.instant, &one.event_id).cmp(&(other.instant, &other.event_id)));
    let any = !rows.is_empty();
    rows.retain(|row| query.narrowing.admits(row));
    if query.reports_claims() || query.mirror {
        read_claims(listing(Prefix::family(Family::Claims)), query, &rows, now, &mut trail)?;
    }
    let of_rows = rows.iter().filter_map(|row| row.target.clone());
    let of_claims = trail.claims.iter().map(|claim| claim.target.clone());
    trail.matched_targets = of_rows.chain(of_claims).collect();
    if let Some(limit) = query.narrowing.limit {
        rows.drain(..rows.len().saturating_sub(limit));
    }
    trail.suppressed = any && rows.is_empty();
    trail.rows = rows;
    Ok(trail)
}

/// What the live events say about archived ones.
#[derive(Default)]
struct Live {
    /// Every live event.
    identities: HashSet<String>,
    /// Those that are rows of this trail.
    rows: HashSet<String>,
}

struct Reading<'a> {
    query: &'a Query,
    trail: Trail,
    rows: Vec<Row>,
    live: Live,
}

impl Reading<'_> {
    fn live_events(&mut self, listing: &Listing) -> Result<(), Refusal> {
        for note in &listing.notes {
            self.trail.degrade(EVENTS, format!("{}; this trail may be incomplete", of_listing("events", note)));
        }
        for stored in &listing.records {
            let event = match &stored.content {
                Content::Object(event) => event,
                Content::NotAnObject(_) => {
                    let what = format!("live event record is not an object at {}", stored.path);
                    self.trail.degrade(EVENTS, format!("{what}; this trail may be incomplete"));
                    continue;
                }
                Content::Malformed(reason) => return Err(unreadable(&stored.path, reason)),
            };
            let identity = identity(event);
            if self.query.takes(event) {
                self.rows.push(Row::of(event));
                self.live.rows.insert(identity.clone());
            }
            self.live.identities.insert(identity);
        }
        Ok(())
    }

    fn archived_events(&mut self, listing: &Listing) -> Provenance {
        for note in &listing.notes {
            match note.as_str() {
                UNSUPPORTED => {
                    let text = "archived events not supported by backend; nothing can have been archived there";
                    self.trail.warnings.push(text.to_owned());
                }
                note => {
                    let what = of_listing("archived events", note);
                    self.trail.degrade(ARCHIVE, format!("{what}; this trail may be incomplete"));
                }
            }
        }
        let mut provenance = Provenance::default();
        let mut seen = HashSet::new();
        for stored in &listing.records {
            self.envelope(stored, &mut provenance, &mut seen);
        }
        provenance
    }

    fn envelope(&mut self, stored: &Stored, provenance: &mut Provenance, seen: &mut HashSet<String>) {
        let nothing = Members::new();
        let envelope = match &stored.content {
            Content::Object(members) => Envelope::read(members),
            Content::NotAnObject(_) => Envelope::read(&nothing),
            Content::Malformed(reason) => {
                let what = format!("archived events unreadable ({reason}) at {}", stored.path);
                self.trail.degrade(ARCHIVE, format!("{what}; this trail may be incomplete"));
                if self.query.item.is_none() {
                    provenance.add_illegible();
                }
                return;
            }
        };
        if let Some(defect) = envelope.reported_defect() {
            self.trail.degrade(ARCHIVE, format!("{defect} at {}; this trail may be incomplete", stored.path));
        }
        if self.is_in_scope(&envelope) {
            provenance.add(&envelope, envelope.records.iter().map(|record| identity(record)));
        }
        let query = self.query;
        for event in envelope.records.iter().filter(|event| query.takes(event)) {
            let identity = identity(event);
            if !seen.insert(identity.clone()) {
                continue;
            }
            if !self.live.identities.contains(&identity) {
                provenance.archived_rows += 1;
                self.rows.push(Row::of(event));
            } else if self.live.rows.contains(&identity) {
                provenance.held_again += 1;
            }
        }
    }

    fn is_in_scope(&self, envelope: &Envelope<'_>) -> bool {
        let hidden = envelope.synthetic && envelope.records.iter().all(|record| is_synthetic(record));
        let about = envelope.records.iter().any(|record| self.query.covers(record));
        (about || self.query.item.is_none()) && (self.query.include_synthetic || !hidden)
    }
}

impl Trail {
    fn degrade(&mut self, prefix: &'static str, warning: String) {
        self.warnings.push(warning);
        if !self.degraded.contains(&prefix) {
            self.degraded.push(prefix);
        }
    }
}

fn read_claims(
    listing: &Listing,
    query: &Query,
    rows: &[Row],
    now: Timestamp,
    trail: &mut Trail,
) -> Result<(), Refusal> {
    let lost = if query.mirror {
        "claim data would not be reported"
    } else {
        "a claim for this work item would not be reported"
    };
    for note in &listing.notes {
        trail.degrade(CLAIMS, format!("{}; {lost}", of_listing("claims", note)));
    }
    for stored in &listing.records {
        if query.item.as_ref().is_some_and(|item| !claims::may_be_on(&stored.path, item)) {
            continue;
        }
        match &stored.content {
            Content::Object(_) => {}
            Content::NotAnObject(_) => {
                let what = format!("live claim record is not an object at {}", stored.path);
                trail.degrade(CLAIMS, format!("{what}; this trail may be incomplete"));
            }
            Content::Malformed(reason) => return Err(unreadable(&stored.path, reason)),
        }
    }
    if let Some(item) = query.item.as_ref().filter(|_| query.reports_claims()) {
        trail.claims = claims::reported(listing, item, query, rows, now);
    }
    Ok(())
}

/// Words a listing's note. The contract's reasons complete the sentence; others, which name what they are about, follow it.
fn of_listing(what: &str, note: &str) -> String {
    let completes = ["filtered by ", "not readable ", "not supported ", "unreadable "];
    let colon = if completes.iter().any(|start| note.starts_with(start)) { "" } else { ":" };
    format!("{what}{colon} {note}")
}

/// Returns what makes two copies of an event the same one.
fn identity(event: &Members) -> String {
    let filled = |name: &str| text(event, name).filter(|text| !text.is_empty());
    match (filled("batch_id"), filled("event_id")) {
        (Some(batch), Some(id)) => format!("{batch}\0{id}"),
        _ => canonical(&Value::Object(event.clone())),
    }
}

fn unreadable(path: &RecordPath, reason: &str) -> Refusal {
    let message = if reason.starts_with("invalid unicode code point") {
        format!("state unreadable: invalid UTF-8 in persisted log record at {path}")
    } else {
        format!("state unreadable: {reason} at {path}")
    };
    Refusal::new(RefusalKind::Unknown, message)
}
