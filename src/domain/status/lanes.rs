//! Lanes of batches: whose they are, how they stand, and what blocks them (cli-contract.md section 7.1).

use std::collections::BTreeMap;

use serde_json::Value;

use super::{HeartbeatRow, plain, value};
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

/// The lanes of all batches in scope.
pub(super) struct Lanes {
    rows: BTreeMap<RecordPath, Vec<Value>>,
    malformed: Vec<String>,
}

/// One lane before its dependencies are looked up.
struct Lane<'a> {
    members: &'a Members,
    name: String,
    owner: String,
    status: String,
    liveness: String,
    dependencies: Vec<String>,
}

impl Lanes {
    /// Reads the lanes of `batches`; statuses come from their owners' heartbeats.
    pub(super) fn of(batches: &[(&Stored, &Members)], heartbeats: &[HeartbeatRow]) -> Self {
        let by_agent: BTreeMap<&str, &HeartbeatRow> =
            heartbeats.iter().rev().map(|row| (row.agent.as_str(), row)).collect();
        let lanes: Vec<(&Stored, String, Vec<Lane<'_>>)> = batches
            .iter()
            .map(|(stored, batch)| {
                let id = value(batch, "batch_id").map_or_else(|| stored.path.stem().to_owned(), |id| plain(&id));
                let lanes = batch.get("lanes").and_then(Value::as_array).into_iter().flatten();
                (*stored, id, lanes.filter_map(Value::as_object).map(|lane| Lane::of(lane, &by_agent)).collect())
            })
            .collect();
        let statuses: BTreeMap<String, &str> = lanes
            .iter()
            .flat_map(|(_, id, lanes)| {
                lanes.iter().map(move |lane| (format!("{id}:{}", lane.name), lane.status.as_str()))
            })
            .collect();
        let malformed = lanes
            .iter()
            .flat_map(|(_, _, lanes)| lanes.iter().map(|lane| lane.name.clone()))
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
    fn of(lane: &'a Members, heartbeats: &BTreeMap<&str, &HeartbeatRow>) -> Self {
        let either = |first: &str, second: &str| value(lane, first).or_else(|| value(lane, second)).map(|v| plain(&v));
        let owner = either("owner", "agent_id").filter(|owner| !owner.trim().is_empty());
        let heartbeat = owner.as_deref().and_then(|owner| heartbeats.get(owner));
        let status = value(lane, "terminal")
            .or_else(|| heartbeat.and_then(|row| value(&row.members, "status")))
            .or_else(|| value(lane, "status"));
        Self {
            members: lane,
            name: either("name", "id").unwrap_or_else(|| "UNKNOWN".to_owned()),
            owner: owner.unwrap_or_else(|| "UNKNOWN".to_owned()),
            status: status.map_or_else(|| "unknown".to_owned(), |status| plain(&status)),
            liveness: heartbeat.map_or_else(|| "no-heartbeat".to_owned(), |row| row.liveness.to_string()),
            dependencies: texts(lane.get("depends_on")),
        }
    }

    fn row(&self, statuses: &BTreeMap<String, &str>) -> Value {
        let satisfied =
            |dependency: &&String| statuses.get(*dependency).is_some_and(|status| SATISFYING.contains(status));
        let blocked_on: Vec<&String> = self.dependencies.iter().filter(|dependency| !satisfied(dependency)).collect();
        let targets = self.members.get("targets").or_else(|| self.members.get("target"));
        let mut row = Members::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("name", self.name.clone().into());
        put("owner", self.owner.clone().into());
        put("targets", texts(targets).into());
        put("status", self.status.clone().into());
        put("liveness", self.liveness.clone().into());
        put("deps", self.dependencies.clone().into());
        put("blocked_on", blocked_on.into_iter().cloned().collect::<Vec<_>>().into());
        for name in METADATA {
            if let Some(value) = value(self.members, name) {
                put(name, value);
            }
        }
        Value::Object(row)
    }
}

/// Returns an array, or a single value, as texts.
fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(plain).collect(),
        Some(single) => vec![plain(single)],
    }
}
