//! One event as the trail shows it (cli-contract.md section 8.1).

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;

use crate::domain::printable::scrubbed;
use crate::domain::record::{Members, text};
use crate::domain::status::plain;
use crate::domain::time::Timestamp;

/// What stands for a value that is missing.
pub const MISSING: &str = "?";

/// One row, its values scrubbed. The order of the members is that of the columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Row {
    /// When it happened, as recorded.
    pub at: String,
    /// The machine it happened on.
    pub machine: String,
    /// The family of the host.
    pub host: String,
    /// `OWNER/REPO#TARGET`
    pub work_item: String,
    /// The type of event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The worker phase, or what comes closest.
    pub phase: String,
    /// Who it is from.
    pub agent_id: String,
    /// The batch.
    pub batch_id: String,
    /// What happened, in words.
    pub detail: String,
    /// The host as recorded.
    pub host_raw: String,
    /// The event's id.
    pub event_id: String,
    /// Whether it is marked as not from real work.
    pub synthetic: bool,
    /// What kind of work that is not real.
    pub synthetic_kind: String,
    /// The parsed instant, which orders the rows; `None` is before all others.
    #[serde(skip)]
    pub instant: Option<Timestamp>,
    /// The target as recorded.
    #[serde(skip)]
    pub target: Option<String>,
}

impl Row {
    /// Returns the row of an event.
    #[must_use]
    pub fn of(event: &Members) -> Self {
        let at = value(event, "at");
        let host_raw = value(event, "host");
        let target = value(event, "target");
        let work_item = match (value(event, "repo"), &target) {
            (None, None) => "-".to_owned(),
            (repo, target) => {
                shown(Some(format!("{}#{}", repo.as_deref().unwrap_or(MISSING), target.as_deref().unwrap_or(MISSING))))
            }
        };
        Self {
            instant: at.as_deref().and_then(Timestamp::parse_iso),
            at: shown(at),
            machine: shown(value(event, "machine_id").or_else(|| closer(event, "machine"))),
            host: shown(host_raw.as_deref().map(family)),
            work_item,
            phase: shown(first(event, &["phase", "new_phase", "terminal", "status"])),
            agent_id: shown(value(event, "agent_id").or_else(|| closer(event, "agent_id"))),
            batch_id: shown(value(event, "batch_id")),
            detail: scrubbed(&detail(event)).trim().to_owned(),
            event_type: shown(value(event, "type")),
            host_raw: shown(host_raw),
            event_id: shown(value(event, "event_id")),
            synthetic: is_synthetic(event),
            synthetic_kind: shown(value(event, "synthetic_kind")),
            target,
        }
    }

    /// Returns the columns of the tab-separated form, in order.
    #[must_use]
    pub fn columns(&self) -> [&str; 13] {
        [
            &self.at,
            &self.machine,
            &self.host,
            &self.work_item,
            &self.event_type,
            &self.phase,
            &self.agent_id,
            &self.batch_id,
            &self.detail,
            &self.host_raw,
            &self.event_id,
            if self.synthetic { "true" } else { "false" },
            &self.synthetic_kind,
        ]
    }
}

/// Returns the family of a host: `codex`, `claude`, or the host itself in lower case.
#[must_use]
pub fn family(host: &str) -> String {
    let host = host.trim().to_lowercase();
    match ["codex", "claude"].into_iter().find(|family| host.starts_with(family)) {
        Some(family) => family.to_owned(),
        None => host,
    }
}

/// Tells whether a record is marked as not from real work: by anything but `false` and `null`.
pub fn is_synthetic(record: &Members) -> bool {
    !matches!(record.get("synthetic"), None | Some(Value::Null | Value::Bool(false)))
}

/// Returns a member's trimmed text; a blank one is absent.
pub fn value(record: &Members, name: &str) -> Option<String> {
    let value = record.get(name).filter(|value| !value.is_null())?;
    let text = value.as_str().map_or_else(|| Cow::Owned(plain(value)), Cow::Borrowed);
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

/// Returns what a column shows of a value.
pub fn shown(value: Option<String>) -> String {
    let scrubbed = value.map(|value| scrubbed(&value).trim().to_owned());
    scrubbed.filter(|text| !text.is_empty()).unwrap_or_else(|| MISSING.to_owned())
}

fn first(event: &Members, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| value(event, name))
}

fn closer(event: &Members, name: &str) -> Option<String> {
    value(event.get("closed_by")?.as_object()?, name)
}

fn detail(event: &Members) -> String {
    let part = |name: &str| value(event, name);
    match text(event, "type").map(str::trim) {
        Some("phase.changed") => {
            match (first(event, &["old_phase", "previous_phase"]), first(event, &["phase", "new_phase"])) {
                (Some(old), Some(new)) => joined([Some(old), Some("->".to_owned()), Some(new)]),
                _ => joined([part("message")]),
            }
        }
        Some("claim.released" | "handoff") => {
            let heir = part("handoff_to").map(|heir| format!("-> {heir}"));
            joined([heir, first(event, &["handoff_note", "message"])])
        }
        Some("escalation_requested") => {
            let [from, to] = ["from_route", "to_route"].map(|name| part(name).unwrap_or_else(|| MISSING.to_owned()));
            joined([Some(from), Some("->".to_owned()), Some(to)])
        }
        Some("error") => joined(["severity", "category", "message"].map(part)),
        Some("help_requested") => joined(["reason", "message"].map(part)),
        Some("human_intervention") => joined(["kind", "message"].map(part)),
        _ => joined([part("message")]),
    }
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| part.replace(['\t', '\n'], " ")).collect();
    parts.join(" ")
}
