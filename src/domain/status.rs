//! Records as the status report shows them (cli-contract.md section 7.1): pure projections, one row per record.

mod alias;
mod batch;
mod lanes;
mod target;

pub use alias::{Identity, spellings};
pub use batch::{batch_report, reads_for_batch};
pub use target::{Candidate, Faults, Found, TargetReport, holders, target_report};

use serde::Serialize;
use serde_json::{Value, json};

use self::lanes::{Lanes, Owners};
use super::liveness::{self, Liveness};
use super::path::{Family, Prefix};
use super::record::{Content, Members, Stored};
use super::snapshot::{Listing, Snapshot};
use super::time::Timestamp;

/// What a report covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ReportScope {
    /// Everything.
    All,
    /// One target and its alias spellings.
    Target {
        /// The repository.
        repo: String,
        /// The target as typed.
        target: String,
    },
    /// One batch.
    Batch {
        /// Its id.
        batch_id: String,
    },
}

/// A status report. `None` = not read in this scope.
#[derive(Debug, Clone, PartialEq)]
pub struct StatusReport {
    /// What it covers.
    pub scope: ReportScope,
    /// What is missing or doubtful, per section and in order.
    pub notes: Vec<(&'static str, String)>,
    /// Claim rows.
    pub claims: Vec<Members>,
    /// Heartbeat rows.
    pub heartbeats: Vec<Members>,
    /// Batch rows.
    pub batches: Option<Vec<Members>>,
    /// Event rows.
    pub events: Option<Vec<Members>>,
    /// Archive rows, when asked for.
    pub archive: Option<Vec<Members>>,
    /// Records that were passed over, for whoever reads stderr.
    pub warnings: Vec<String>,
}

/// What rows are judged by.
#[derive(Debug, Clone, Copy)]
pub struct Judged {
    /// The instant of the report.
    pub now: Timestamp,
    /// After how many seconds without a change of worker phase a live agent counts as wedged; `None` where the store
    /// does not keep that.
    pub wedged_after: Option<i64>,
}

const CLAIM_METADATA: &[&str] = &[
    "batch_id",
    "thread_handle",
    "chat_handle",
    "host",
    "machine_id",
    "session_id",
    "session_source",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "generation",
    "instance_id",
    "release_mode",
    "handoff_to",
    "handoff_note",
    "terminal",
    "pr_state",
    "evidence_url",
    "workspace",
    "closed_by",
    "synthetic",
    "synthetic_kind",
];
const HEARTBEAT_METADATA: &[&str] = &[
    "batch_id",
    "branch",
    "thread_handle",
    "chat_handle",
    "host",
    "machine_id",
    "session_id",
    "session_source",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "generation",
    "instance_id",
    "status_raw",
    "synthetic",
    "synthetic_kind",
];
const BATCH_METADATA: &[&str] = &[
    "repo",
    "objective",
    "instructions",
    "launch_prompt",
    "operator",
    "dashboard_url",
    "status",
    "updated_at",
    "registered_at",
    "completed_at",
    "synthetic",
    "synthetic_kind",
];
const EVENT_METADATA: &[&str] = &[
    "event_id",
    "lane",
    "agent_id",
    "repo",
    "target",
    "branch",
    "status",
    "status_raw",
    "message",
    "thread_handle",
    "chat_handle",
    "host",
    "machine_id",
    "session_id",
    "session_source",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "previous_phase",
    "generation",
    "instance_id",
    "release_mode",
    "handoff_to",
    "handoff_note",
    "terminal",
    "pr_state",
    "evidence_url",
    "workspace",
    "closed_by",
    "reason",
    "from_route",
    "to_route",
    "evidence",
    "severity",
    "category",
    "kind",
    "synthetic",
    "synthetic_kind",
];
const ARCHIVE_MEMBERS: &[(&str, Option<&str>)] = &[
    ("record_family", Some("unknown")),
    ("source_path", None),
    ("source_paths", None),
    ("reason", Some("unknown")),
    ("synthetic", None),
    ("archived_at", Some("UNKNOWN")),
    ("delete_after", Some("UNKNOWN")),
];

/// Returns the report on everything; the snapshot must list claims, heartbeats, batches and events, and the archive
/// when `archived`.
#[must_use]
pub fn broad_report(snapshot: &Snapshot, judged: Judged, archived: bool) -> StatusReport {
    let mut pass = Pass::default();
    let claims = pass.rows(snapshot, Family::Claims, claim_row);
    let heartbeats = pass.rows(snapshot, Family::Heartbeats, |stored, row| heartbeat_row(stored, row, judged));
    let batch_records = pass.objects(snapshot, Family::Batches);
    let lanes = Lanes::of(&batch_records, &Owners::of(&heartbeats));
    let batches = batch_records.iter().map(|(stored, batch)| batch_row(stored, batch, &lanes)).collect();
    let mut events = pass.rows(snapshot, Family::Events, event_row);
    events.sort_by_cached_key(|row| (shown(row, "at"), shown(row, "path")));
    if let Some(note) = lanes.malformed_note() {
        pass.notes.push(("lanes", note));
    }
    pass.warnings.extend(heartbeats.iter().filter_map(HeartbeatRow::skew_warning));
    let archive = archived.then(|| pass.rows(snapshot, Family::Archive, archive_row));
    StatusReport {
        scope: ReportScope::All,
        notes: pass.notes,
        claims,
        heartbeats: heartbeats.into_iter().map(|row| row.members).collect(),
        batches: Some(batches),
        events: Some(events),
        archive,
        warnings: pass.warnings,
    }
}

/// What was noted while records were projected.
#[derive(Default)]
struct Pass {
    notes: Vec<(&'static str, String)>,
    warnings: Vec<String>,
}

impl Pass {
    fn rows<T>(&mut self, snapshot: &Snapshot, family: Family, row: impl Fn(&Stored, &Members) -> T) -> Vec<T> {
        self.objects(snapshot, family).into_iter().map(|(stored, members)| row(stored, members)).collect()
    }

    /// Returns the rows of one directory of a family.
    fn rows_under<T>(
        &mut self,
        snapshot: &Snapshot,
        prefix: &Prefix,
        family: Family,
        row: impl Fn(&Stored, &Members) -> T,
    ) -> Vec<T> {
        self.objects_under(snapshot, prefix, family).into_iter().map(|(stored, members)| row(stored, members)).collect()
    }

    fn objects<'a>(&mut self, snapshot: &'a Snapshot, family: Family) -> Vec<(&'a Stored, &'a Members)> {
        self.objects_under(snapshot, &Prefix::family(family), family)
    }

    /// Returns the objects of a listing; everything else is noted and never hides the rest.
    fn objects_under<'a>(
        &mut self,
        snapshot: &'a Snapshot,
        prefix: &Prefix,
        family: Family,
    ) -> Vec<(&'a Stored, &'a Members)> {
        let Some(listing) = snapshot.listings.get(prefix) else { return Vec::new() };
        let parts = self.note_parts(listing, family);
        if !parts.is_empty() {
            self.notes.push((family.name(), parts.join("; ")));
        }
        listing.records.iter().filter_map(|stored| stored.object().map(|members| (stored, members))).collect()
    }

    fn note_parts(&mut self, listing: &Listing, family: Family) -> Vec<String> {
        let mut parts = listing.notes.clone();
        let mut strange_heartbeats = false;
        for stored in &listing.records {
            match &stored.content {
                Content::Object(_) => {}
                Content::NotAnObject(_) if family == Family::Heartbeats => {
                    strange_heartbeats = true;
                    self.warnings.push(format!("{} is not a JSON object", stored.path));
                }
                Content::NotAnObject(_) => {
                    parts.push(format!("{} is not a JSON object; it is not reported", stored.path));
                }
                Content::Malformed(reason) => {
                    parts.push(format!("{} is unreadable ({reason}); it is not reported", stored.path));
                }
            }
        }
        if strange_heartbeats {
            parts.push("heartbeat records unreadable".to_owned());
        }
        parts
    }
}

fn claim_row(stored: &Stored, claim: &Members) -> Members {
    let mut row = Row::new(stored);
    row.put("repo", value(claim, "repo").or_else(|| stored.path.repo().map(Value::from)));
    row.put_or(claim, "target", stored.path.stem());
    row.put_or(claim, "status", "unknown");
    for name in ["agent_id", "branch", "expires_at"] {
        row.put_or(claim, name, "UNKNOWN");
    }
    row.copy(claim, CLAIM_METADATA);
    row.members
}

/// A heartbeat row with what lanes need of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeartbeatRow {
    /// The row as shown.
    pub members: Members,
    /// Whose it is, by its own word or its path.
    agent: String,
    liveness: Liveness,
    /// By how many seconds the row is ahead of us, when that is too much (design.md section 4, "Clocks").
    skew: Option<i64>,
}

impl HeartbeatRow {
    fn skew_warning(&self) -> Option<String> {
        let seconds = self.skew?;
        Some(format!("clock skew: the heartbeat of {} is {seconds} s ahead of this machine's clock", self.agent))
    }
}

fn heartbeat_row(stored: &Stored, heartbeat: &Members, judged: Judged) -> HeartbeatRow {
    let liveness = liveness::of(heartbeat, judged.now);
    let mut row = Row::new(stored);
    row.put_or(heartbeat, "agent_id", stored.path.stem());
    row.put_or(heartbeat, "status", "unknown");
    row.put("liveness", Some(liveness.to_string().into()));
    row.put("target", Some(work_item(heartbeat).into()));
    row.put_or(heartbeat, "updated_at", "UNKNOWN");
    row.copy(heartbeat, HEARTBEAT_METADATA);
    if let Some(since) = wedged_since(stored, heartbeat, liveness, judged) {
        row.put("wedged", Some(true.into()));
        row.put("wedged_since", Some(since.into()));
    }
    let agent = shown(&row.members, "agent_id");
    HeartbeatRow { members: row.members, agent, liveness, skew: liveness::skew(heartbeat, judged.now) }
}

/// Returns since when a live agent reports the same worker phase, when that is too long (design.md section 4, "Wedged").
fn wedged_since(stored: &Stored, heartbeat: &Members, liveness: Liveness, judged: Judged) -> Option<String> {
    let threshold = judged.wedged_after?;
    value(heartbeat, "phase").filter(|phase| phase.as_str() != Some(""))?;
    let since = stored.annotations.phase_changed_at.as_deref()?;
    let unchanged_for = judged.now.seconds_since(Timestamp::parse_iso(since)?);
    (liveness == Liveness::Live && unchanged_for > threshold).then(|| since.to_owned())
}

/// Returns repository and target joined with `#`, whichever exist, or `-`.
fn work_item(record: &Members) -> String {
    let parts: Vec<String> =
        ["repo", "target"].iter().filter_map(|name| value(record, name)).map(|v| plain(&v)).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join("#") }
}

fn batch_row(stored: &Stored, batch: &Members, lanes: &Lanes) -> Members {
    let mut row = Row::new(stored);
    row.put_or(batch, "batch_id", stored.path.stem());
    row.put("lanes", Some(Value::Array(lanes.rows_of(stored))));
    row.copy(batch, BATCH_METADATA);
    row.members
}

fn event_row(stored: &Stored, event: &Members) -> Members {
    let mut row = Row::new(stored);
    row.put_or(event, "batch_id", stored.path.batch_of_event().unwrap_or_default());
    row.put_or(event, "type", "unknown");
    row.put_or(event, "at", "UNKNOWN");
    row.copy(event, EVENT_METADATA);
    row.members
}

fn archive_row(stored: &Stored, envelope: &Members) -> Members {
    let mut row = Row::new(stored);
    for (name, default) in ARCHIVE_MEMBERS {
        let default = match (*name, default) {
            ("synthetic", _) => Some(json!(false)),
            (_, default) => default.map(Value::from),
        };
        row.put(name, value(envelope, name).or(default));
    }
    row.members
}

/// A row in the making.
struct Row {
    members: Members,
}

impl Row {
    fn new(stored: &Stored) -> Self {
        let mut members = Members::new();
        members.insert("path".to_owned(), stored.path.as_str().into());
        Self { members }
    }

    fn put(&mut self, name: &str, value: Option<Value>) {
        if let Some(value) = value {
            self.members.insert(name.to_owned(), value);
        }
    }

    fn put_or(&mut self, record: &Members, name: &str, default: &str) {
        self.put(name, value(record, name).or_else(|| Some(default.into())));
    }

    /// Copies what is present, in the report's order.
    fn copy(&mut self, record: &Members, names: &[&str]) {
        for name in names {
            self.put(name, value(record, name));
        }
    }
}

/// Returns a member that is present and not null.
fn value(record: &Members, name: &str) -> Option<Value> {
    record.get(name).filter(|value| !value.is_null()).cloned()
}

/// Returns a member as text; empty when it is absent.
#[must_use]
pub fn shown(record: &Members, name: &str) -> String {
    record.get(name).filter(|value| !value.is_null()).map(plain).unwrap_or_default()
}

pub use super::record::plain;

impl Serialize for StatusReport {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("scope", &self.scope)?;
        map.serialize_entry("degraded", &self.degraded())?;
        let notes: Members =
            self.notes.iter().map(|(section, note)| ((*section).to_owned(), note.as_str().into())).collect();
        map.serialize_entry("section_notes", &notes)?;
        map.serialize_entry("claims", &self.claims)?;
        map.serialize_entry("heartbeats", &self.heartbeats)?;
        map.serialize_entry("batches", &self.batches)?;
        map.serialize_entry("events", &self.events)?;
        if let Some(archive) = &self.archive {
            map.serialize_entry("archive", archive)?;
        }
        map.end()
    }
}

impl StatusReport {
    /// Returns the distinct notes, in order.
    #[must_use]
    pub fn degraded(&self) -> Vec<&str> {
        let mut distinct: Vec<&str> = Vec::new();
        for (_, note) in &self.notes {
            if !distinct.contains(&note.as_str()) {
                distinct.push(note);
            }
        }
        distinct
    }

    /// Returns a section's note.
    #[must_use]
    pub fn note(&self, section: &str) -> Option<&str> {
        self.notes.iter().find(|(name, _)| *name == section).map(|(_, note)| note.as_str())
    }
}

#[cfg(test)]
mod tests;
