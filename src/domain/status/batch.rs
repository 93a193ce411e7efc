//! The report on one batch (cli-contract.md section 7.5).

use std::collections::BTreeSet;

use super::lanes::{Lanes, Owners};
use super::{HeartbeatRow, Judged, Pass, ReportScope, StatusReport, batch_row, event_row, heartbeat_row, shown};
use crate::domain::batch::lane::{Lane, lanes, split_reference};
use crate::domain::decision::Refusal;
use crate::domain::ids::{AgentId, BatchId};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::record::{Content, Members, Stored};
use crate::domain::snapshot::Snapshot;
use crate::domain::tenure::members_of;

const ELSEWHERE: &str = "not checked in batch scope";

/// Returns every record that the report is made of, as far as what was read already tells: the batch, its owners'
/// heartbeats, the batches its lanes depend on, and the heartbeats of the owners of those lanes.
#[must_use]
pub fn reads_for_batch(snapshot: &Snapshot, batch_id: &BatchId) -> BTreeSet<RecordPath> {
    let mut wanted = BTreeSet::from([RecordPath::batch(batch_id)]);
    let Some(batch) = object(snapshot, &RecordPath::batch(batch_id)) else { return wanted };
    wanted.extend(lanes(batch).filter_map(|lane| row_of(&lane)));
    for reference in Reference::outside(batch, batch_id) {
        wanted.insert(RecordPath::batch(&reference.batch));
        wanted.extend(reference.lane_in(snapshot).and_then(|lane| row_of(&lane)));
    }
    wanted
}

fn object<'a>(snapshot: &'a Snapshot, path: &RecordPath) -> Option<&'a Members> {
    snapshot.records.get(path)?.as_ref()?.object()
}

fn row_of(lane: &Lane<'_>) -> Option<RecordPath> {
    AgentId::parse("agent-id", lane.owner.as_deref()?).ok().map(|agent| RecordPath::heartbeat(&agent))
}

/// A dependency on a lane of another batch.
struct Reference {
    text: String,
    batch: BatchId,
    lane: String,
}

impl Reference {
    fn parse(text: &str) -> Option<Self> {
        let (batch, lane) = split_reference(text)?;
        let batch = BatchId::parse("batch-id", batch).ok()?;
        Some(Self { text: text.to_owned(), batch, lane: lane.to_owned() })
    }

    /// Returns the references to other batches, each once and in order.
    fn outside(batch: &Members, own: &BatchId) -> Vec<Self> {
        let distinct = distinct(lanes(batch).flat_map(|lane| lane.dependencies));
        distinct.iter().filter_map(|text| Self::parse(text)).filter(|reference| reference.batch != *own).collect()
    }

    fn lane_in<'a>(&self, snapshot: &'a Snapshot) -> Option<Lane<'a>> {
        let batch = object(snapshot, &RecordPath::batch(&self.batch))?;
        lanes(batch).find(|lane| lane.name == self.lane)
    }
}

fn distinct(texts: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    texts.filter(|text| seen.insert(text.clone())).collect()
}

/// Returns the report; the snapshot must hold [`reads_for_batch`] and list the batch's events.
///
/// # Errors
/// When the batch is there and is no object.
pub fn batch_report(snapshot: &Snapshot, batch_id: &BatchId, judged: Judged) -> Result<StatusReport, Refusal> {
    let mut pass = Pass::default();
    pass.notes.push(("claims", ELSEWHERE.to_owned()));
    let mut events = pass.rows_under(snapshot, &Prefix::events_of(batch_id), Family::Events, event_row);
    events.sort_by_cached_key(|row| (shown(row, "at"), shown(row, "path")));
    let found = snapshot.records.get(&RecordPath::batch(batch_id)).and_then(Option::as_ref);
    let (heartbeats, batches) = match found {
        Some(stored) => {
            let batch = members_of(stored, "batch")?;
            OneBatch { snapshot, batch_id, stored, batch, judged }.report(&mut pass)
        }
        None => {
            pass.notes.push(("batches", "batch not found".to_owned()));
            (Vec::new(), Vec::new())
        }
    };
    Ok(StatusReport {
        scope: ReportScope::Batch { batch_id: batch_id.to_string() },
        notes: pass.notes,
        claims: Vec::new(),
        heartbeats,
        batches: Some(batches),
        events: Some(events),
        archive: None,
        warnings: pass.warnings,
    })
}

struct OneBatch<'a> {
    snapshot: &'a Snapshot,
    batch_id: &'a BatchId,
    stored: &'a Stored,
    batch: &'a Members,
    judged: Judged,
}

impl OneBatch<'_> {
    fn report(&self, pass: &mut Pass) -> (Vec<Members>, Vec<Members>) {
        let references = Reference::outside(self.batch, self.batch_id);
        let rows = self.owner_rows(&references);
        let notes = [("unreadable", &rows.unreadable), ("mismatched", &rows.mismatched), ("not found", &rows.missing)];
        let parts: Vec<String> = notes
            .into_iter()
            .filter(|(_, owners)| !owners.is_empty())
            .map(|(what, owners)| format!("lane-owner heartbeats {what}: {}", owners.join(", ")))
            .collect();
        if !parts.is_empty() {
            pass.notes.push(("heartbeats", parts.join("; ")));
        }
        let mut in_scope = vec![(self.stored, self.batch)];
        let others: BTreeSet<RecordPath> =
            references.iter().map(|reference| RecordPath::batch(&reference.batch)).collect();
        in_scope.extend(others.iter().filter_map(|path| {
            let stored = self.snapshot.records.get(path)?.as_ref()?;
            Some((stored, stored.object()?))
        }));
        let owners = Owners::of(&rows.valid)
            .with_doubtful(&rows.unreadable, "unreadable")
            .with_doubtful(&rows.mismatched, "mismatched");
        let all_lanes = Lanes::of(&in_scope, &owners);
        let own_lanes = Lanes::of(&in_scope[..1], &owners);
        pass.notes.extend(own_lanes.malformed_note().map(|note| ("lanes", note)));
        self.note_dependencies(pass);
        let batch = batch_row(self.stored, self.batch, &all_lanes);
        (rows.valid.into_iter().map(|row| row.members).collect(), vec![batch])
    }

    /// Reads the heartbeat of every owner once: those of the batch's own lanes first, then those of lanes depended on.
    fn owner_rows(&self, references: &[Reference]) -> OwnerRows {
        let own = lanes(self.batch).filter_map(|lane| lane.owner);
        let depended_on =
            references.iter().filter_map(|reference| reference.lane_in(self.snapshot)).filter_map(|lane| lane.owner);
        let mut rows = OwnerRows::default();
        for owner in distinct(own.chain(depended_on)) {
            rows.read(self.snapshot, owner, self.judged);
        }
        rows
    }

    fn note_dependencies(&self, pass: &mut Pass) {
        let (mut malformed, mut unreadable, mut unresolved) = (Vec::new(), Vec::new(), Vec::new());
        for text in distinct(lanes(self.batch).flat_map(|lane| lane.dependencies)) {
            let Some(reference) = Reference::parse(&text) else {
                malformed.push(text);
                continue;
            };
            let stored = self.snapshot.records.get(&RecordPath::batch(&reference.batch)).and_then(Option::as_ref);
            match stored.map(|stored| &stored.content) {
                None => unresolved.push(reference.text),
                Some(Content::Object(_)) if reference.lane_in(self.snapshot).is_some() => {}
                Some(Content::Object(_)) => malformed.push(reference.text),
                Some(_) => unreadable.push(reference.text),
            }
        }
        let joined = |what: &str, texts: Vec<String>| {
            (!texts.is_empty()).then(|| format!("{what} dependency refs: {}", texts.join(", ")))
        };
        let parts: Vec<String> =
            [joined("malformed", malformed), joined("unreadable", unreadable)].into_iter().flatten().collect();
        if !parts.is_empty() {
            pass.notes.push(("dependencies", parts.join("; ")));
        }
        pass.notes.extend(joined("unresolved", unresolved).map(|note| ("unresolved_dependencies", note)));
    }
}

/// The heartbeats of lane owners, sorted by what they are worth.
#[derive(Default)]
struct OwnerRows {
    valid: Vec<HeartbeatRow>,
    unreadable: Vec<String>,
    mismatched: Vec<String>,
    missing: Vec<String>,
}

impl OwnerRows {
    fn read(&mut self, snapshot: &Snapshot, owner: String, judged: Judged) {
        let path = AgentId::parse("agent-id", &owner).ok().map(|agent| RecordPath::heartbeat(&agent));
        let stored = path.and_then(|path| snapshot.records.get(&path)).and_then(Option::as_ref);
        let Some(stored) = stored else { return self.missing.push(owner) };
        let Some(heartbeat) = stored.object() else { return self.unreadable.push(owner) };
        let row = heartbeat_row(stored, heartbeat, judged);
        if row.agent == owner { self.valid.push(row) } else { self.mismatched.push(owner) }
    }
}
