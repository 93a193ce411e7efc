//! Ordinary events (state-schema.md section 4.1 and 4.2).

use super::decision::Edit;
use super::ids::{BatchId, EventId};
use super::metadata::{NAMES, pick, set, set_all};
use super::path::RecordPath;
use super::record::{Members, text};
use super::request::{Attribution, Stamp};
use super::time::Timestamp;

/// A claim was acquired, by anybody and in whatever way.
pub const CLAIM_ACQUIRED: &str = "claim.acquired";
/// A claim was given back.
pub const CLAIM_RELEASED: &str = "claim.released";
/// An agent's worker phase changed.
pub const PHASE_CHANGED: &str = "phase.changed";

/// The members between `type` and the attribution, in the writer's order. `at` is the event's own.
const BEFORE_METADATA: [&str; 10] =
    ["lane", "agent_id", "repo", "target", "branch", "message", "at", "status", "status_raw", "previous_phase"];
const AFTER_METADATA: [&str; 10] = [
    "release_mode",
    "handoff_to",
    "handoff_note",
    "reason",
    "from_route",
    "to_route",
    "evidence",
    "severity",
    "category",
    "kind",
];

/// Returns the id of an event made at `now`: `20260708T235500.123456Z-deadbeef`.
#[must_use]
pub fn event_id(now: Timestamp, random: [u8; 4]) -> EventId {
    let instant = now.as_utc().format("%Y%m%dT%H%M%S%.6fZ");
    let text = format!("{instant}-{:08x}", u32::from_be_bytes(random));
    EventId::parse("event-id", &text).expect("digits, T, Z, a hyphen and one dot between digits make a segment")
}

/// Composes an ordinary event of `fields`, which may be in any order.
#[must_use]
pub fn ordinary(
    batch_id: &str,
    event_type: &str,
    mut fields: Members,
    stamp: &Stamp,
    attribution: &Attribution,
) -> Members {
    fields.insert("at".to_owned(), stamp.now.to_string().into());
    let mut event = Members::new();
    event.insert("schema_version".to_owned(), 1.into());
    event.insert("event_id".to_owned(), stamp.event_id.as_str().into());
    event.insert("batch_id".to_owned(), batch_id.into());
    event.insert("type".to_owned(), event_type.into());
    for names in [&BEFORE_METADATA[..], &NAMES[..], &AFTER_METADATA[..]] {
        set_all(&mut event, pick(&fields, names));
    }
    attribution.stamp(&mut event, None);
    event
}

/// An event that goes with a change of another record, or what keeps it from being recorded.
#[derive(Debug, Clone, PartialEq)]
pub enum Lifecycle {
    /// There is nothing to tell, or no batch to tell it to.
    None,
    /// To be appended in the same transaction.
    Append(Edit),
    /// The change goes ahead without it; the text is a warning.
    Lost(String),
}

impl Lifecycle {
    /// Builds the event of `event_type` for the batch that `fields` or a flag name.
    #[must_use]
    pub fn of(
        event_type: &str,
        batch_id: Option<&str>,
        fields: Members,
        stamp: &Stamp,
        attribution: &Attribution,
    ) -> Self {
        let Some(batch_id) = batch_id else { return Self::None };
        match BatchId::parse("batch-id", batch_id) {
            Ok(batch) => Self::Append(Edit::Append {
                path: RecordPath::event(&batch, &stamp.event_id),
                members: ordinary(batch_id, event_type, fields, stamp, attribution),
            }),
            Err(error) => Self::Lost(not_recorded(event_type, &super::printable::printable(&error.to_string()))),
        }
    }

    /// Adds the event to a decision's edits, or the warning to its warnings.
    pub fn add_to(self, edits: &mut Vec<Edit>, warnings: &mut Vec<String>) {
        match self {
            Self::None => {}
            Self::Append(edit) => edits.push(edit),
            Self::Lost(warning) => warnings.push(warning),
        }
    }
}

/// Words the warning that a change went ahead without its event.
#[must_use]
pub fn not_recorded(event_type: &str, reason: &str) -> String {
    format!("{event_type} event not recorded: {reason}")
}

/// Builds `claim.acquired` from the record as it will be stored.
#[must_use]
pub fn claim_acquired(claim: &Members, stamp: &Stamp, attribution: &Attribution) -> Lifecycle {
    Lifecycle::of(CLAIM_ACQUIRED, text(claim, "batch_id"), claim_fields(claim), stamp, attribution)
}

/// Builds `claim.released` from the record as it will be stored. Its status is the claim's, never normalised.
#[must_use]
pub fn claim_released(claim: &Members, stamp: &Stamp, attribution: &Attribution) -> Lifecycle {
    let mut fields = claim_fields(claim);
    fields.insert("status".to_owned(), "released".into());
    set(&mut fields, "message", text(claim, "handoff_note"));
    set_all(&mut fields, pick(claim, &["release_mode", "handoff_to", "handoff_note"]));
    Lifecycle::of(CLAIM_RELEASED, text(claim, "batch_id"), fields, stamp, attribution)
}

fn claim_fields(claim: &Members) -> Members {
    let mut fields = pick(claim, &["agent_id", "repo", "target", "branch"]);
    set_all(&mut fields, pick(claim, &NAMES));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{keys, object, stamp, when};
    use serde_json::json;

    #[test]
    fn an_event_id_holds_microseconds_and_four_random_bytes() {
        let now = Timestamp::parse_iso("2026-07-08T23:55:00.1234567Z").unwrap();
        assert_eq!(event_id(now, [0xde, 0xad, 0xbe, 0xef]).as_str(), "20260708T235500.123456Z-deadbeef");
        let whole = Timestamp::parse_iso("2026-07-08T23:55:00Z").unwrap();
        assert_eq!(event_id(whole, [0, 0, 0, 1]).as_str(), "20260708T235500.000000Z-00000001");
    }

    #[test]
    fn an_event_has_the_writers_key_order_whatever_the_order_of_its_fields() {
        let fields = object(json!({
            "kind": "k", "reason": "r", "synthetic": true, "thread_handle": "t", "previous_phase": "p", "status": "done",
            "status_raw": "Done", "message": "m", "branch": "b", "target": "1", "repo": "o/r", "agent_id": "a",
            "lane": "l", "handoff_to": "h", "unknown": 1, "host": null
        }));
        let event = ordinary("b1", "x", fields, &stamp(0), &Attribution::resolve(Some("m"), Some("s"), None));
        let order = "schema_version event_id batch_id type lane agent_id repo target branch message at status \
                     status_raw previous_phase thread_handle synthetic handoff_to reason kind machine_id session_id \
                     session_source";
        assert_eq!(keys(&event).join(" "), order);
        assert_eq!(event["at"], when(0));
    }

    #[test]
    fn an_acquired_event_tells_of_the_claim_as_stored() {
        let claim = object(json!({"schema_version": 1, "repo": "o/r", "target": "42", "agent_id": "a",
                                  "batch_id": "b1", "status": "active", "generation": 3, "machine_id": "m"}));
        let Lifecycle::Append(Edit::Append { path, members }) =
            claim_acquired(&claim, &stamp(0), &Attribution::default())
        else {
            panic!("no event")
        };
        assert_eq!(path.as_str(), "events/b1/20261201T000000.000000Z-deadbeef.json");
        let order = "schema_version event_id batch_id type agent_id repo target at generation";
        assert_eq!(keys(&members).join(" "), order, "the event's own attribution is that of this process");
    }

    #[test]
    fn a_handoff_is_told_in_the_released_event() {
        let claim = object(json!({"agent_id": "a", "repo": "o/r", "target": "42", "batch_id": "b1",
                                  "release_mode": "handoff", "handoff_to": "w2", "handoff_note": "half done"}));
        let Lifecycle::Append(Edit::Append { members, .. }) =
            claim_released(&claim, &stamp(0), &Attribution::default())
        else {
            panic!("no event")
        };
        assert_eq!((&members["status"], &members["message"]), (&json!("released"), &json!("half done")));
        assert_eq!(members["handoff_to"], "w2");
    }

    #[test]
    fn a_batch_id_that_is_no_segment_costs_the_event_and_not_the_claim() {
        let claim = object(json!({"batch_id": "b/1"}));
        let lost = claim_acquired(&claim, &stamp(0), &Attribution::default());
        assert_eq!(lost, Lifecycle::Lost("claim.acquired event not recorded: invalid batch-id: b/1".to_owned()));
        assert_eq!(claim_acquired(&object(json!({})), &stamp(0), &Attribution::default()), Lifecycle::None);
    }
}
