//! The event that closes a lane: how it is named, composed, checked and compared (state-schema.md sections 4.3, 7.2).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::domain::batch::lane::{OUTCOMES, UNKNOWN};
use crate::domain::ids::{BatchId, EventId};
use crate::domain::metadata::{set, set_all};
use crate::domain::path::RecordPath;
use crate::domain::record::{Members, plain, present, text};
use crate::domain::request::{Attribution, Stamp};
use crate::domain::time::Timestamp;

/// The type of the event.
pub const LANE_CLOSED: &str = "lane_closed";
/// The workspace of a closeout that names none.
pub const DEFAULT_WORKSPACE: &str = "default";
const SCHEMA_VERSION: i64 = 2;
const ID_BYTES: usize = 8;

/// Returns the id of a lane's closeout: `lane_closed-` and 16 hex digits of the lane's name.
#[must_use]
pub fn closeout_id(lane: &str) -> EventId {
    let digest: String =
        Sha256::digest(lane.as_bytes()).iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
    EventId::parse("event-id", &format!("{LANE_CLOSED}-{digest}"))
        .expect("a word, a hyphen and hex digits make a segment")
}

/// Returns where a lane's closeout is reserved.
#[must_use]
pub fn closeout_path(batch: &BatchId, lane: &str) -> RecordPath {
    RecordPath::event(batch, &closeout_id(lane))
}

/// Composes the event. `closed` holds the members that the closeout gives, in any order.
#[must_use]
pub fn compose(batch: &BatchId, lane: &str, closed: &Members, stamp: &Stamp, attribution: &Attribution) -> Members {
    let given = |name: &str| present(closed, name).cloned();
    let mut event = Members::new();
    let mut put = |name: &str, value: Option<Value>| set(&mut event, name, value);
    put("schema_version", Some(SCHEMA_VERSION.into()));
    put("event_id", Some(closeout_id(lane).as_str().into()));
    put("batch_id", Some(batch.as_str().into()));
    put("type", Some(LANE_CLOSED.into()));
    put("lane", Some(lane.into()));
    for name in ["agent_id", "repo", "target", "branch", "terminal", "pr_state", "evidence_url"] {
        put(name, given(name));
    }
    put("workspace", Some(given("workspace").unwrap_or_else(|| DEFAULT_WORKSPACE.into())));
    put("closed_by", Some(closed_by(closed, attribution)));
    put("at", Some(stamp.now.to_string().into()));
    for name in ["host", "pr_url", "synthetic", "synthetic_kind"] {
        put(name, given(name));
    }
    attribution.stamp(&mut event, None);
    event
}

fn closed_by(closed: &Members, attribution: &Attribution) -> Value {
    let machine = attribution.machine_id.as_deref().or_else(|| text(closed, "host")).unwrap_or(UNKNOWN);
    json!({ "agent_id": text(closed, "agent_id").unwrap_or(UNKNOWN), "machine": machine })
}

/// Returns who closed: `closed_by.agent_id`, else the record's own `agent_id`.
#[must_use]
pub fn closer(record: &Members) -> Option<&str> {
    match present(record, "closed_by") {
        Some(closed_by) => closed_by.get("agent_id").and_then(Value::as_str),
        None => text(record, "agent_id"),
    }
}

/// The evidence that two closeouts are compared by.
pub const EVIDENCE: [&str; 3] = ["pr_url", "pr_state", "evidence_url"];

/// Tells whether two records speak of the same closeout. The machine is ignored.
#[must_use]
pub fn is_same(one: &Members, other: &Members) -> bool {
    is_same_outcome(one, other) && EVIDENCE.iter().all(|name| present(one, name) == present(other, name))
}

/// Tells whether a lane carries the closeout that `event` tells of. What the event does not say, the lane may have from
/// its registration.
#[must_use]
pub fn lane_carries(lane: &Members, event: &Members) -> bool {
    let agrees = |name: &&str| present(event, name).is_none_or(|value| present(lane, name) == Some(value));
    is_same_outcome(lane, event) && EVIDENCE.iter().all(agrees)
}

fn is_same_outcome(one: &Members, other: &Members) -> bool {
    let workspace = |record: &Members| present(record, "workspace").map_or_else(|| DEFAULT_WORKSPACE.to_owned(), plain);
    present(one, "terminal") == present(other, "terminal")
        && workspace(one) == workspace(other)
        && closer(one) == closer(other)
}

/// Tells whether a stored event is a valid closeout.
#[must_use]
pub fn is_valid(event: &Members) -> bool {
    let filled = |name: &str| text(event, name).is_some_and(|value| !value.is_empty());
    let filled_if_there = |name: &&str| present(event, name).is_none() || filled(name);
    let url_if_there = |name: &&str| present(event, name).is_none_or(|url| url.as_str().is_some_and(is_web_address));
    event.get("schema_version").and_then(Value::as_i64) == Some(SCHEMA_VERSION)
        && text(event, "type") == Some(LANE_CLOSED)
        && text(event, "terminal").is_some_and(|terminal| OUTCOMES.contains(&terminal))
        && ["event_id", "target", "workspace"].into_iter().all(filled)
        && text(event, "repo").is_some_and(is_two_parts)
        && is_closer(event.get("closed_by"))
        && text(event, "at").is_some_and(|at| Timestamp::parse_strict(at).is_some())
        && ["batch_id", "lane", "branch", "pr_state"].iter().all(filled_if_there)
        && ["pr_url", "evidence_url"].iter().all(url_if_there)
}

fn is_two_parts(repo: &str) -> bool {
    repo.split_once('/').is_some_and(|(owner, name)| !owner.is_empty() && !name.is_empty() && !name.contains('/'))
}

fn is_closer(closed_by: Option<&Value>) -> bool {
    let Some(Value::Object(closed_by)) = closed_by else { return false };
    let filled = |name: &str| text(closed_by, name).is_some_and(|value| !value.is_empty());
    closed_by.len() == 2 && filled("agent_id") && filled("machine")
}

/// Tells whether a stored URL is HTTP(S) with a host and no whitespace.
fn is_web_address(url: &str) -> bool {
    let lower = url.get(..8.min(url.len())).unwrap_or_default().to_ascii_lowercase();
    let scheme = ["https://", "http://"].into_iter().find(|scheme| lower.starts_with(scheme));
    scheme.is_some_and(|scheme| has_host(&url[scheme.len()..]))
}

/// Tells whether a URL given on the command line may be stored: as stored ones, with the scheme in lower case.
#[must_use]
pub fn is_acceptable_address(url: &str) -> bool {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    rest.is_some_and(has_host)
}

fn has_host(rest: &str) -> bool {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    !rest.contains(char::is_whitespace) && !host_and_port.is_empty() && !host_and_port.starts_with(':')
}

/// Copies what a closeout says onto a record, and takes off what it does not say.
pub fn copy_closeout(record: &mut Members, event: &Members) {
    for name in CLAIM_MEMBERS {
        match present(event, name) {
            Some(value) => drop(record.insert(name.to_owned(), value.clone())),
            None => drop(record.shift_remove(name)),
        }
    }
}

/// Tells whether a record says of its closeout exactly what the event says.
#[must_use]
pub fn tells_all_of(record: &Members, event: &Members) -> bool {
    CLAIM_MEMBERS.iter().all(|name| present(record, name) == present(event, name))
}

/// What a claim takes from the event that closes its lane.
const CLAIM_MEMBERS: [&str; 6] = ["terminal", "workspace", "closed_by", "pr_url", "pr_state", "evidence_url"];

/// Stamps a lane as closed. What is already set of when, by whom and where stays.
pub fn stamp_lane(lane: &mut Members, event: &Members) {
    let terminal = present(event, "terminal").cloned().unwrap_or_default();
    lane.insert("status".to_owned(), terminal.clone());
    lane.insert("terminal".to_owned(), terminal);
    let kept = [("closed_at", "at"), ("closed_by", "closed_by"), ("workspace", "workspace")];
    for (name, source) in kept {
        if present(lane, name).is_none() {
            set(lane, name, present(event, source).cloned());
        }
    }
    let evidence: Members =
        EVIDENCE.iter().filter_map(|name| Some(((*name).to_owned(), present(event, name)?.clone()))).collect();
    set_all(lane, evidence);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{keys, object, stamp, when};

    fn closed() -> Members {
        object(json!({
            "pr_url": "https://x.test/pull/1", "host": "codex", "terminal": "done", "pr_state": "merged",
            "evidence_url": "https://x.test/1", "agent_id": "w1", "repo": "o/r", "target": "1", "branch": "br"
        }))
    }

    fn event() -> Members {
        let batch = BatchId::parse("batch-id", "b1").unwrap();
        compose(&batch, "backend", &closed(), &stamp(0), &Attribution::default())
    }

    #[test]
    fn the_id_follows_from_the_lanes_name_alone() {
        for (lane, id) in [
            ("ac-a-i51", "lane_closed-0f5a0caebfed6139"),
            ("backend", "lane_closed-10e08a419e850eba"),
            ("docs", "lane_closed-46b42b4229cd7a39"),
        ] {
            assert_eq!(closeout_id(lane).as_str(), id);
        }
    }

    #[test]
    fn the_event_is_the_contracts_example() {
        let expected = object(json!({
            "schema_version": 2, "event_id": "lane_closed-10e08a419e850eba", "batch_id": "b1", "type": "lane_closed",
            "lane": "backend", "agent_id": "w1", "repo": "o/r", "target": "1", "branch": "br", "terminal": "done",
            "pr_state": "merged", "evidence_url": "https://x.test/1", "workspace": "default",
            "closed_by": { "agent_id": "w1", "machine": "codex" }, "at": when(0), "host": "codex",
            "pr_url": "https://x.test/pull/1"
        }));
        assert_eq!(event(), expected);
        assert_eq!(keys(&event()), keys(&expected));
        assert!(is_valid(&event()));
    }

    #[test]
    fn the_machine_is_the_environments_before_the_hosts() {
        let batch = BatchId::parse("batch-id", "b1").unwrap();
        let attribution = Attribution::resolve(Some("m5"), None, None);
        let event = compose(&batch, "backend", &closed(), &stamp(0), &attribution);
        assert_eq!((&event["closed_by"]["machine"], &event["machine_id"]), (&json!("m5"), &json!("m5")));
        let bare = compose(&batch, "backend", &object(json!({"agent_id": "w1"})), &stamp(0), &Attribution::default());
        assert_eq!(bare["closed_by"]["machine"], "UNKNOWN");
    }

    #[test]
    fn the_machine_does_not_tell_two_closeouts_apart_and_everything_else_does() {
        let mut other = event();
        other.insert("closed_by".to_owned(), json!({"agent_id": "w1", "machine": "elsewhere"}));
        other.insert("at".to_owned(), json!(when(9)));
        assert!(is_same(&event(), &other));
        for (name, value) in [
            ("terminal", json!("abandoned")),
            ("workspace", json!("w")),
            ("closed_by", json!({"agent_id": "w2", "machine": "codex"})),
            ("pr_url", json!(null)),
            ("pr_state", json!("open")),
            ("evidence_url", json!("https://x.test/2")),
        ] {
            let mut different = event();
            different.insert(name.to_owned(), value);
            assert!(!is_same(&event(), &different), "{name}");
        }
        let mut implied = event();
        implied.shift_remove("workspace");
        implied.shift_remove("closed_by");
        assert!(is_same(&event(), &implied), "the default workspace, and the agent of the record");
    }

    #[test]
    fn a_lane_may_know_more_than_the_event_says() {
        let mut lane = object(json!({"name": "backend", "pr_url": "https://x.test/own", "closed_at": when(-5)}));
        let mut bare = event();
        bare.shift_remove("pr_url");
        stamp_lane(&mut lane, &bare);
        assert_eq!((&lane["pr_url"], &lane["closed_at"]), (&json!("https://x.test/own"), &json!(when(-5))));
        assert!(lane_carries(&lane, &bare) && !lane_carries(&lane, &event()));
        let order = "name pr_url closed_at status terminal closed_by workspace pr_state evidence_url";
        assert_eq!(keys(&lane).join(" "), order);
    }

    #[test]
    fn a_closeout_with_anything_amiss_is_not_valid() {
        for (name, value) in [
            ("schema_version", json!(1)),
            ("type", json!("phase")),
            ("terminal", json!("merged")),
            ("event_id", json!("")),
            ("repo", json!("o/r/x")),
            ("target", json!(1)),
            ("workspace", json!("")),
            ("closed_by", json!({"agent_id": "w1"})),
            ("closed_by", json!({"agent_id": "w1", "machine": "m", "more": 1})),
            ("at", json!("2026-12-01")),
            ("lane", json!("")),
            ("pr_url", json!("ftp://x.test/")),
            ("evidence_url", json!("https://x y.test/")),
        ] {
            let mut bad = event();
            bad.insert(name.to_owned(), value);
            assert!(!is_valid(&bad), "{name}");
        }
        let mut loud = event();
        loud.insert("pr_url".to_owned(), json!("HTTPS://x.test"));
        assert!(is_valid(&loud), "stored schemes may be in either case");
    }

    #[test]
    fn an_address_has_a_lower_case_scheme_a_host_and_no_whitespace() {
        for good in ["https://x.test", "http://u@x.test:80/a?b#c", "https://[::1]/"] {
            assert!(is_acceptable_address(good), "{good}");
        }
        for bad in [
            "",
            "x.test",
            "HTTPS://x.test",
            "https://",
            "https:///a",
            "https://u@/a",
            "http://:80",
            "https://x.test/a b",
            "ftp://x",
        ] {
            assert!(!is_acceptable_address(bad), "{bad}");
        }
    }
}
