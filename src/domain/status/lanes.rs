//! Lanes of batches: whose they are, how they stand, and what blocks them (cli-contract.md section 7.1).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{HeartbeatRow, plain, value};
use crate::domain::batch::drain;
use crate::domain::batch::lane::{self, lanes};
use crate::domain::path::RecordPath;
use crate::domain::record::{Members, Stored};
use crate::domain::vocabulary::SATISFYING;

const METADATA: &[&str] = &[
    "thread_handle",
    "chat_handle",
    "host",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "branch",
    "terminal",
    "closed_at",
    "closed_by",
    "pr_state",
    "evidence_url",
];

/// The heartbeats that lanes are judged by.
#[derive(Default)]
pub(super) struct Owners<'a> {
    rows: BTreeMap<&'a str, &'a HeartbeatRow>,
    /// Owners whose row is there and says nothing, with the word for it.
    doubtful: BTreeMap<String, &'static str>,
}

impl<'a> Owners<'a> {
    pub(super) fn of(heartbeats: &'a [HeartbeatRow]) -> Self {
        let rows = heartbeats.iter().rev().map(|row| (row.agent.as_str(), row)).collect();
        Self { rows, doubtful: BTreeMap::new() }
    }

    /// Adds owners whose row cannot be believed.
    pub(super) fn with_doubtful(mut self, owners: &[String], word: &'static str) -> Self {
        self.doubtful.extend(owners.iter().map(|owner| (owner.clone(), word)));
        self
    }

    fn liveness(&self, owner: Option<&str>) -> String {
        let Some(owner) = owner else { return "no-heartbeat".to_owned() };
        match self.rows.get(owner) {
            Some(row) => row.liveness.to_string(),
            None => self.doubtful.get(owner).copied().unwrap_or("no-heartbeat").to_owned(),
        }
    }
}

/// The lanes of all batches in scope.
pub(super) struct Lanes {
    rows: BTreeMap<RecordPath, Vec<Value>>,
    malformed: Vec<String>,
}

/// One lane before its dependencies are looked up.
struct Lane<'a> {
    lane: lane::Lane<'a>,
    status: String,
    liveness: String,
    drained: Option<drain::Notice>,
}

impl Lanes {
    /// Reads the lanes of `batches`; statuses come from their owners' heartbeats.
    pub(super) fn of(batches: &[(&Stored, &Members)], owners: &Owners<'_>) -> Self {
        let lanes: Vec<(&Stored, String, Vec<Lane<'_>>)> = batches
            .iter()
            .map(|(stored, batch)| {
                let id = value(batch, "batch_id").map_or_else(|| stored.path.stem().to_owned(), |id| plain(&id));
                let lanes = lanes(batch).map(|lane| Lane::of(lane, owners, &id, batch)).collect();
                (*stored, id, lanes)
            })
            .collect();
        let statuses: BTreeMap<String, &str> = lanes
            .iter()
            .flat_map(|(_, id, lanes)| {
                lanes.iter().map(move |lane| (format!("{id}:{}", lane.lane.name), lane.status.as_str()))
            })
            .collect();
        let malformed = lanes
            .iter()
            .flat_map(|(_, _, lanes)| lanes.iter().map(|lane| lane.lane.name.clone()))
            .filter(|name| name.contains(':'))
            .collect();
        let rows = lanes
            .iter()
            .map(|(stored, _, lanes)| (stored.path.clone(), lanes.iter().map(|lane| lane.row(&statuses)).collect()))
            .collect();
        Self { rows, malformed }
    }

    /// Returns the lane rows of one batch.
    pub(super) fn rows_of(&self, batch: &Stored) -> Vec<Value> {
        self.rows.get(&batch.path).cloned().unwrap_or_default()
    }

    /// Returns the note on lanes whose name holds a `:`, which no dependency can name.
    pub(super) fn malformed_note(&self) -> Option<String> {
        (!self.malformed.is_empty()).then(|| format!("malformed lane names: {}", self.malformed.join(", ")))
    }
}

impl<'a> Lane<'a> {
    fn of(lane: lane::Lane<'a>, owners: &Owners<'_>, batch_id: &str, batch: &Members) -> Self {
        let heartbeat = lane.owner.as_deref().and_then(|owner| owners.rows.get(owner));
        let status = value(lane.members, "terminal")
            .or_else(|| heartbeat.and_then(|row| value(&row.members, "status")))
            .or_else(|| value(lane.members, "status"));
        Self {
            status: status.map_or_else(|| "unknown".to_owned(), |status| plain(&status)),
            liveness: owners.liveness(lane.owner.as_deref()),
            drained: drain::of_lane(batch_id, batch, Some(&lane.name)),
            lane,
        }
    }

    fn row(&self, statuses: &BTreeMap<String, &str>) -> Value {
        let satisfied =
            |dependency: &&String| statuses.get(*dependency).is_some_and(|status| SATISFYING.contains(status));
        let dependencies = &self.lane.dependencies;
        let blocked_on: Vec<String> =
            dependencies.iter().filter(|dependency| !satisfied(dependency)).cloned().collect();
        let mut row = Members::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("name", self.lane.name.clone().into());
        put("owner", self.lane.owner_shown().into());
        put("targets", self.lane.targets.clone().into());
        put("status", self.status.clone().into());
        put("liveness", self.liveness.clone().into());
        put("deps", dependencies.clone().into());
        put("blocked_on", blocked_on.into());
        for name in METADATA {
            if let Some(value) = value(self.lane.members, name) {
                put(name, value);
            }
        }
        if let Some(drained) = &self.drained {
            put("drained", drained.on_its_lane());
        }
        Value::Object(row)
    }
}
