//! Adding an ordinary or typed event to a batch (cli-contract.md section 6).

use super::decision::{Decision, Edit, Halt, Refusal, RefusalKind, Verdict};
use super::event::ordinary;
use super::heartbeat::claim_path;
use super::ids::is_segment;
use super::metadata::{set, set_all};
use super::path::RecordPath;
use super::printable::printable;
use super::record::{Members, text};
use super::request::{RecordEvent, Stamp};
use super::snapshot::{Freshness, Snapshot};
use super::tenure::{Actor, Holding, loss};
use super::vocabulary::normalise;

/// An event that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// The event as stored.
    pub record: Members,
    /// Its id.
    pub event_id: String,
    /// What to warn of, without `warning: `.
    pub warnings: Vec<String>,
}

/// Decides an event.
///
/// # Errors
/// A refusal when the event breaks a rule of its type, or the tenure it is told from is over; [`Halt::Read`] for the
/// claim of that tenure.
pub fn record(snapshot: &Snapshot, request: &RecordEvent, stamp: &Stamp) -> Verdict<Recorded> {
    validate(request)?;
    let basis = if stamp.fencing { refuse_lost_tenure(snapshot, request)? } else { Freshness::Cached };
    let (fields, warning) = fields(request);
    let event = ordinary(request.batch_id.as_str(), &request.event_type, fields, stamp, &request.attribution);
    let append = Edit::Append { path: RecordPath::event(&request.batch_id, &stamp.event_id), members: event.clone() };
    let event_id = stamp.event_id.to_string();
    let outcome = Recorded { record: event, event_id, warnings: warning.into_iter().collect() };
    Ok(Decision { edits: vec![append], outcome, basis })
}

fn fields(request: &RecordEvent) -> (Members, Option<String>) {
    let mut fields = request.typed.clone();
    for (name, value) in [
        ("lane", &request.lane),
        ("agent_id", &request.agent),
        ("repo", &request.repo),
        ("target", &request.target),
        ("branch", &request.branch),
        ("message", &request.message),
    ] {
        set(&mut fields, name, value.clone());
    }
    set_all(&mut fields, request.metadata.members());
    let status = request.status.as_deref().map(normalise);
    let warning = status.as_ref().and_then(|status| status.warning.clone());
    if let Some(status) = status {
        set(&mut fields, "status", Some(status.status));
        set(&mut fields, "status_raw", status.raw);
    }
    (fields, warning)
}

/// Refuses to speak for a tenure that is over, and returns how fresh the state has to be for that answer.
pub(super) fn refuse_lost_tenure(snapshot: &Snapshot, request: &RecordEvent) -> Result<Freshness, Halt> {
    let tenure = request.tenure.as_ref();
    let generation = request.metadata.generation.or(tenure.map(|tenure| tenure.generation));
    let repo = request.repo.as_deref().or(tenure.map(|tenure| tenure.repo.as_str()));
    let target = request.target.as_deref().or(tenure.map(|tenure| tenure.target.as_str()));
    let (Some(_), Some(repo), Some(target)) = (generation, repo, target) else { return Ok(Freshness::Cached) };
    let Some(path) = claim_path(repo, target) else { return Ok(Freshness::Cached) };
    // An absence cannot be guarded, so it has to be fetched.
    let Some(stored) = snapshot.get(&path)? else { return Ok(Freshness::Fetched) };
    let instance = request.metadata.instance_id.as_deref().or(tenure.and_then(|tenure| tenure.instance.as_deref()));
    let agent = tenure.map(|tenure| tenure.agent.as_str()).or(request.agent.as_deref());
    let actor = Actor { agent, instance, generation };
    match loss(&format!("{repo}#{target}"), &Holding::of(stored)?, &actor) {
        Some(loss) => Err(Refusal::new(RefusalKind::Claimed, loss.message).into()),
        None => Ok(Freshness::Cached),
    }
}

/// The one type whose events are versioned, reserved and built by closeouts alone (state-schema.md section 4.3).
const LANE_CLOSED: &str = "lane_closed";

/// The rule of one flag of a typed event.
struct Rule {
    member: &'static str,
    /// The values allowed; empty = anything that is not blank.
    allowed: &'static [&'static str],
}

const fn one_of(member: &'static str, allowed: &'static [&'static str]) -> Rule {
    Rule { member, allowed }
}

const fn not_blank(member: &'static str) -> Rule {
    Rule { member, allowed: &[] }
}

/// The members that typed flags write, in the order they are checked.
const TYPED: [&str; 7] = ["reason", "from_route", "to_route", "evidence", "severity", "category", "kind"];

const HELP_REQUESTED: &[Rule] = &[one_of("reason", &["blocked-user-input", "question", "permission"])];
const ESCALATION_REQUESTED: &[Rule] = &[not_blank("from_route"), not_blank("to_route"), not_blank("evidence")];
const ERROR: &[Rule] = &[one_of("severity", &["P0", "P1", "P2", "P3"]), not_blank("category"), not_blank("message")];
const HUMAN_INTERVENTION: &[Rule] = &[one_of("kind", &["takeover", "supersede", "manual-fix", "drain"])];

fn rules(event_type: &str) -> Option<&'static [Rule]> {
    match event_type {
        "help_requested" => Some(HELP_REQUESTED),
        "escalation_requested" => Some(ESCALATION_REQUESTED),
        "error" => Some(ERROR),
        "human_intervention" => Some(HUMAN_INTERVENTION),
        _ => None,
    }
}

fn validate(request: &RecordEvent) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalKind::Invalid, message));
    let event_type = printable(&request.event_type);
    if !is_segment(&request.event_type) {
        return refuse(format!("invalid event type: {event_type}"));
    }
    if request.event_type == LANE_CLOSED {
        return refuse(format!("--type {LANE_CLOSED} is a terminal closeout and no ordinary event"));
    }
    if let Some(rules) = rules(&request.event_type) {
        let foreign =
            |member: &&&str| request.typed.contains_key(**member) && rules.iter().all(|rule| rule.member != **member);
        if let Some(member) = TYPED.iter().find(foreign) {
            return refuse(format!("--{} is not valid for --type {event_type}", flag(member)));
        }
        rules.iter().try_for_each(|rule| check(rule, request))?;
    }
    check_lane(request)
}

/// Checks the name of the lane an event is about.
///
/// # Errors
/// When it is empty or holds a `:`.
pub fn check_lane(request: &RecordEvent) -> Result<(), Refusal> {
    let refuse = |message: String| Err(Refusal::new(RefusalKind::Invalid, message));
    match request.lane.as_deref() {
        Some("") => refuse("--lane must not be empty".to_owned()),
        Some(lane) if lane.contains(':') => refuse(format!("event lane {} cannot contain ':'", printable(lane))),
        _ => Ok(()),
    }
}

fn check(rule: &Rule, request: &RecordEvent) -> Result<(), Refusal> {
    let value = match rule.member {
        "message" => request.message.as_deref(),
        member => text(&request.typed, member),
    };
    let flag = flag(rule.member);
    let message = match value.filter(|value| !value.trim().is_empty()) {
        None => format!("missing required --{flag}"),
        Some(value) if rule.allowed.is_empty() || rule.allowed.contains(&value) => return Ok(()),
        Some(_) => format!("--{flag} must be one of: {}", rule.allowed.join(", ")),
    };
    Err(Refusal::new(RefusalKind::Invalid, message))
}

fn flag(member: &str) -> String {
    member.replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{
        event_of, keys, object, plain_stamp, refusal, snapshot, stamp, stored, tenure_of, when,
    };
    use serde_json::{Value, json};

    fn nothing() -> Snapshot {
        snapshot(vec![], &[])
    }

    fn typed(event_type: &str, typed: Value) -> RecordEvent {
        RecordEvent { typed: object(typed), ..event_of(event_type) }
    }

    fn says(request: &RecordEvent) -> String {
        match record(&nothing(), request, &stamp(0)) {
            Ok(_) => "ok".to_owned(),
            Err(Halt::Refused(refusal)) => refusal.message,
            Err(Halt::Read(path)) => panic!("asks for {path}"),
            Err(Halt::List(prefix)) => panic!("asks for {prefix}"),
        }
    }

    #[test]
    fn a_free_form_event_takes_any_flag_and_has_the_writers_order() {
        let request = RecordEvent {
            lane: Some("docs".into()),
            status: Some("Completed".into()),
            message: Some("hi".into()),
            ..typed("phase", json!({"kind": "k", "reason": "r"}))
        };
        let decision = record(&nothing(), &request, &stamp(0)).unwrap();
        let order = "schema_version event_id batch_id type lane message at status status_raw reason kind";
        assert_eq!(keys(&decision.outcome.record).join(" "), order);
        assert_eq!(decision.outcome.record["status"], "done");
        let path = decision.edits[0].path().as_str();
        assert_eq!(path, "events/b1/20261201T000000.000000Z-deadbeef.json");
    }

    #[test]
    fn an_unknown_status_is_warned_of_and_kept() {
        let request = RecordEvent { status: Some("weird".into()), ..event_of("x") };
        let outcome = record(&nothing(), &request, &stamp(0)).unwrap().outcome;
        assert_eq!(outcome.record["status_raw"], "weird");
        assert!(outcome.warnings[0].starts_with("status \"weird\" is not in the canonical"));
    }

    #[test]
    fn typed_events_need_their_flags_with_values_they_allow() {
        assert_eq!(says(&event_of("help_requested")), "missing required --reason");
        assert_eq!(
            says(&typed("help_requested", json!({"reason": "bored"}))),
            "--reason must be one of: blocked-user-input, question, permission"
        );
        assert_eq!(says(&typed("help_requested", json!({"reason": "question"}))), "ok");
        let routes = json!({"from_route": "a", "to_route": " "});
        assert_eq!(says(&typed("escalation_requested", routes)), "missing required --to-route");
        assert_eq!(says(&typed("error", json!({"severity": "P1", "category": "c"}))), "missing required --message");
        assert_eq!(says(&typed("error", json!({"severity": "P9"}))), "--severity must be one of: P0, P1, P2, P3");
        assert_eq!(says(&typed("human_intervention", json!({"kind": "drain"}))), "ok");
    }

    #[test]
    fn a_closeout_cannot_pass_as_an_ordinary_event() {
        assert_eq!(says(&event_of("lane_closed")), "--type lane_closed is a terminal closeout and no ordinary event");
    }

    #[test]
    fn a_foreign_flag_is_refused_before_a_missing_one() {
        let request = typed("help_requested", json!({"from_route": "x"}));
        assert_eq!(says(&request), "--from-route is not valid for --type help_requested");
    }

    #[test]
    fn names_are_checked_in_the_contracts_order() {
        assert_eq!(says(&event_of("a b")), "invalid event type: a b");
        let request = RecordEvent { lane: Some(String::new()), ..event_of("help_requested") };
        assert_eq!(says(&request), "missing required --reason");
        assert_eq!(says(&RecordEvent { lane: Some(String::new()), ..event_of("x") }), "--lane must not be empty");
        let colon = RecordEvent { lane: Some("a:b".into()), ..event_of("x") };
        assert_eq!(says(&colon), "event lane a:b cannot contain ':'");
    }

    fn claim(agent: &str, generation: i64) -> Snapshot {
        let value = json!({"status": "active", "agent_id": agent, "generation": generation, "claimed_at": when(1)});
        snapshot(vec![stored("claims/o/r/42.json", value)], &[])
    }

    fn from_tenure() -> RecordEvent {
        RecordEvent { tenure: Some(tenure_of("a", None, 1)), ..event_of("x") }
    }

    #[test]
    fn an_event_of_a_tenure_that_is_over_is_refused() {
        let told = refusal(record(&claim("b", 2), &from_tenure(), &stamp(0)));
        assert_eq!(told.kind, RefusalKind::Claimed);
        assert_eq!(told.message, "CLAIM_LOST: o/r#42 generation 2 is held by b since 2026-12-01T00:00:01Z");
        assert!(record(&claim("a", 1), &from_tenure(), &stamp(0)).is_ok());
        assert!(record(&claim("b", 2), &event_of("x"), &stamp(0)).is_ok(), "an event that names no tenure is free");
        assert!(record(&claim("b", 2), &from_tenure(), &plain_stamp(0)).is_ok(), "nothing is enforced there");
    }

    #[test]
    fn a_claim_that_is_not_there_has_to_be_fetched_and_one_that_cannot_be_read_is_unknown() {
        let absent = snapshot(vec![], &["claims/o/r/42.json"]);
        assert_eq!(record(&absent, &from_tenure(), &stamp(0)).unwrap().basis, Freshness::Fetched);
        let odd = snapshot(vec![stored("claims/o/r/42.json", json!(1))], &[]);
        assert_eq!(refusal(record(&odd, &from_tenure(), &stamp(0))).kind, RefusalKind::Unknown);
    }
}
