//! Which events of a group outlive compaction (state-schema.md section 7.2).

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::ids::is_repo;
use crate::domain::record::{Members, integer, text};
use crate::domain::time::Timestamp;

/// Groups up to this size are kept whole.
const KEPT_WHOLE: usize = 2;

/// Returns the indexes of the events to keep, in chronological order. `group` holds each event with its path.
#[must_use]
pub fn retained(group: &[(&str, &Members)]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..group.len()).collect();
    order.sort_by_cached_key(|&index| {
        let (path, event) = group[index];
        (record_time(event), is_terminal_event(event), path)
    });
    let (Some(&first), Some(&last)) = (order.first(), order.last()) else { return order };
    if order.len() <= KEPT_WHOLE {
        return order;
    }
    let mut kept = BTreeSet::from([first, last]);
    let mut phase = None;
    for &index in &order {
        let event = group[index].1;
        let current = text(event, "phase").filter(|phase| !phase.is_empty());
        if is_terminal_event(event) || (current.is_some() && current != phase) {
            kept.insert(index);
        }
        phase = current.or(phase);
    }
    order.retain(|index| kept.contains(index));
    order
}

/// Returns when a record was last touched, as far as it tells; `None` sorts first.
#[must_use]
pub fn record_time(record: &Members) -> Option<Timestamp> {
    let first =
        ["updated_at", "at", "released_at", "completed_at", "expires_at"].iter().find_map(|name| present(record, name));
    Timestamp::parse_iso(first?.as_str()?)
}

/// Tells whether an event is a valid closeout of a lane.
#[must_use]
pub fn is_terminal_event(event: &Members) -> bool {
    let filled = |name: &str| text(event, name).is_some_and(|text| !text.is_empty());
    let filled_or_absent = |name: &str| present(event, name).is_none() || filled(name);
    let link_or_absent = |name: &str| present(event, name).is_none() || text(event, name).is_some_and(is_link);
    event.get("schema_version").is_some_and(Value::is_number)
        && integer(event, "schema_version") == Some(2)
        && text(event, "type") == Some("lane_closed")
        && matches!(text(event, "terminal"), Some("done" | "abandoned" | "superseded"))
        && ["event_id", "target", "workspace"].into_iter().all(filled)
        && text(event, "repo").is_some_and(is_repo)
        && event.get("closed_by").is_some_and(is_closer)
        && text(event, "at").is_some_and(|at| Timestamp::parse_strict(at).is_some())
        && ["batch_id", "lane", "branch", "pr_state"].into_iter().all(filled_or_absent)
        && ["pr_url", "evidence_url"].into_iter().all(link_or_absent)
}

fn present<'a>(record: &'a Members, name: &str) -> Option<&'a Value> {
    record.get(name).filter(|value| !value.is_null())
}

fn is_closer(closed_by: &Value) -> bool {
    let Some(members) = closed_by.as_object() else { return false };
    members.len() == 2
        && ["agent_id", "machine"].iter().all(|name| text(members, name).is_some_and(|text| !text.is_empty()))
}

/// Tells whether text is an http or https address with a host and no whitespace.
fn is_link(text: &str) -> bool {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let host = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let host = host.map(|host| host.rsplit('@').next().unwrap_or_default());
    host.is_some_and(|host| !host.is_empty() && !host.starts_with(':')) && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{object, when};
    use serde_json::json;

    fn phase(second: i64, phase: &str) -> Members {
        object(json!({ "type": "phase", "at": when(second), "phase": phase }))
    }

    fn closed(second: i64) -> Members {
        object(json!({
            "schema_version": 2, "type": "lane_closed", "event_id": "e", "target": "1", "repo": "o/r", "terminal": "done",
            "workspace": "default", "at": when(second), "closed_by": { "agent_id": "a", "machine": "m" },
        }))
    }

    fn kept(events: &[Members]) -> Vec<usize> {
        let paths: Vec<String> = (0..events.len()).map(|index| format!("events/b/{index}.json")).collect();
        let group: Vec<(&str, &Members)> = paths.iter().map(String::as_str).zip(events).collect();
        retained(&group)
    }

    #[test]
    fn two_events_are_kept_in_order() {
        assert_eq!(kept(&[phase(2, "a"), phase(1, "a")]), [1, 0]);
        assert_eq!(kept(&[]), Vec::<usize>::new());
    }

    #[test]
    fn ends_closeouts_and_changes_of_phase_are_kept() {
        let events =
            [phase(1, "a"), phase(2, "a"), phase(3, ""), phase(4, "a"), phase(5, "b"), closed(6), phase(7, "b")];
        assert_eq!(kept(&events), [0, 4, 5, 6]);
    }

    #[test]
    fn a_closeout_comes_last_among_events_of_its_second() {
        assert_eq!(kept(&[closed(1), phase(1, "a")]), [1, 0]);
    }

    #[test]
    fn a_closeout_with_anything_amiss_is_none() {
        assert!(is_terminal_event(&closed(1)));
        for (name, value) in [
            ("schema_version", json!(1)),
            ("schema_version", json!("2")),
            ("terminal", json!("finished")),
            ("repo", json!("r")),
            ("workspace", json!("")),
            ("closed_by", json!({ "agent_id": "a", "machine": "m", "x": 1 })),
            ("at", json!("2026-12-01T00:00:00")),
            ("lane", json!("")),
            ("pr_url", json!("https:///x")),
            ("pr_url", json!("HTTPS://host")),
        ] {
            let mut event = closed(1);
            event.insert(name.to_owned(), value);
            assert!(!is_terminal_event(&event), "{name}");
        }
    }
}
