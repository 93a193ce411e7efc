use serde_json::{Value, json};

use super::*;
use crate::domain::decision::Refusal;
use crate::domain::fixtures::{at, malformed, object, snapshot, stored, when};
use crate::domain::ids::{RepoName, Target};
use crate::domain::path::{Family, Prefix};
use crate::domain::record::Stored;
use crate::domain::snapshot::Listing;

fn event(second: i64, id: &str, more: Value) -> Stored {
    let mut event = object(json!({
        "event_id": id, "batch_id": "b", "type": "note", "repo": "o/r", "target": "9", "at": when(second),
    }));
    event.extend(object(more));
    stored(&format!("events/b/{id}.json"), Value::Object(event))
}

fn compacted(id: &str, sources: &[&str], held: &[&Stored]) -> Stored {
    let records: Vec<Value> = held.iter().map(|stored| Value::Object(stored.object().unwrap().clone())).collect();
    let sources: Vec<String> = sources.iter().map(|id| format!("events/b/{id}.json")).collect();
    let envelope = json!({
        "record_family": "compacted_events", "source_paths": sources, "records": records,
        "delete_after": "2026-12-31T00:00:00Z",
    });
    stored(&format!("archive/events/b/{id}.json"), envelope)
}

fn claim(target: &str, second: i64) -> Stored {
    let record = json!({
        "repo": "o/r", "target": target, "status": "active", "agent_id": "w1", "updated_at": when(second),
        "expires_at": when(second + 60),
    });
    stored(&format!("claims/o/r/{target}.json"), record)
}

#[derive(Default)]
struct State {
    events: Vec<Stored>,
    archive: Vec<Stored>,
    claims: Vec<Stored>,
    notes: [&'static str; 3],
}

impl State {
    fn try_read(&self, query: &Query) -> Result<Trail, Refusal> {
        let mut state = snapshot(Vec::new(), &[]);
        let parts = [
            (Prefix::family(Family::Events), &self.events),
            (Prefix::archived(Family::Events), &self.archive),
            (Prefix::family(Family::Claims), &self.claims),
        ];
        for ((prefix, records), note) in parts.into_iter().zip(self.notes) {
            let notes = Some(note.to_owned()).filter(|note| !note.is_empty()).into_iter().collect();
            state.listings.insert(prefix, Listing { records: records.clone(), notes });
        }
        trail(&state, query, at(1000))
    }

    fn read(&self, query: &Query) -> Trail {
        self.try_read(query).unwrap()
    }
}

fn of(target: &str) -> Query {
    let repo = RepoName::parse("work item", "O/R").unwrap();
    let item = Item::new(repo, Target::parse("work item target", target).unwrap(), format!("O/R#{target}"));
    Query { item: Some(item), ..Query::default() }
}

fn ids(trail: &Trail) -> Vec<&str> {
    trail.rows.iter().map(|row| row.event_id.as_str()).collect()
}

fn row(record: Value) -> Row {
    Row::of(&object(record))
}

#[test]
fn the_detail_of_each_type_tells_what_changed() {
    for (event, expected) in [
        (json!({ "type": "phase.changed", "previous_phase": "a", "phase": "b", "message": "m" }), "a -> b"),
        (json!({ "type": "phase.changed", "phase": "b", "message": "m" }), "m"),
        (json!({ "type": "claim.released", "handoff_to": "w2", "handoff_note": "n", "message": "m" }), "-> w2 n"),
        (json!({ "type": "handoff", "message": "m" }), "m"),
        (json!({ "type": "escalation_requested", "to_route": "x" }), "? -> x"),
        (json!({ "type": "error", "severity": "P1", "category": " ", "message": "m" }), "P1 m"),
        (json!({ "type": "help_requested", "reason": "question", "message": "a\tb\nc" }), "question a b c"),
        (json!({ "type": "human_intervention", "kind": "takeover" }), "takeover"),
        (json!({ "type": "x", "message": "  a\u{1b}[0m  " }), "a[0m"),
    ] {
        assert_eq!(row(event.clone()).detail, expected, "{event}");
    }
}

#[test]
fn missing_values_are_shown_as_such_and_what_stands_in_for_them_is_found() {
    let empty = row(json!({}));
    assert_eq!(empty.columns(), ["?", "?", "?", "-", "?", "?", "?", "?", "", "?", "?", "false", "?"]);
    let closed = row(json!({
        "closed_by": { "machine": "m", "agent_id": "a" }, "terminal": "done", "target": 9, "host": "Claude-Code",
        "synthetic": "no",
    }));
    assert_eq!((closed.machine.as_str(), closed.agent_id.as_str(), closed.phase.as_str()), ("m", "a", "done"));
    assert_eq!((closed.work_item.as_str(), closed.host.as_str()), ("?#9", "claude"));
    assert_eq!(closed.host_raw, "Claude-Code");
    assert!(closed.synthetic, "anything but false and null marks it");
}

#[test]
fn rows_are_ordered_by_instant_then_id_and_unreadable_times_come_first() {
    let state = State {
        events: vec![
            event(5, "b", json!({})),
            event(5, "a", json!({})),
            event(1, "c", json!({ "at": "soon" })),
            event(1, "d", json!({ "at": "2026-12-01T01:00:02+01:00" })),
        ],
        ..State::default()
    };
    assert_eq!(ids(&state.read(&of("9"))), ["c", "d", "a", "b"]);
    let since = Query { narrowing: Narrowing { since: Some(at(2)), ..Narrowing::default() }, ..of("9") };
    assert_eq!(ids(&state.read(&since)), ["d", "a", "b"]);
}

#[test]
fn an_item_covers_its_spellings_and_lanes_and_a_lane_only_itself() {
    let state = State {
        events: vec![
            event(1, "a", json!({ "target": "issue:9" })),
            event(2, "b", json!({ "target": "PR:9:QA" })),
            event(3, "c", json!({ "target": "90" })),
            event(4, "d", json!({ "repo": "o/other" })),
        ],
        ..State::default()
    };
    let trail = state.read(&of("9"));
    assert_eq!(ids(&trail), ["a", "b"]);
    assert_eq!(trail.matched_targets.into_iter().collect::<Vec<_>>(), ["PR:9:QA", "issue:9"]);
    assert_eq!(ids(&state.read(&of("9:qa"))), ["b"]);
    assert_eq!(state.read(&Query::default()).rows.len(), 4);
}

#[test]
fn the_limit_keeps_the_last_rows_after_every_other_filter() {
    let state = State {
        events: vec![
            event(1, "a", json!({ "host": "codex-subagent" })),
            event(2, "b", json!({ "host": "CODEX" })),
            event(3, "c", json!({ "host": "claude" })),
        ],
        ..State::default()
    };
    let narrowing = Narrowing { host: Some("codex".into()), limit: Some(1), ..Narrowing::default() };
    let trail = state.read(&Query { narrowing, ..of("9") });
    assert_eq!(ids(&trail), ["b"]);
    let nothing = Narrowing { machine: Some("m9".into()), ..Narrowing::default() };
    let trail = state.read(&Query { narrowing: nothing, ..of("9") });
    assert!(trail.suppressed && trail.rows.is_empty());
}

#[test]
fn archived_and_live_events_interleave_and_the_live_copy_wins() {
    let [a, b, c] = [event(1, "a", json!({})), event(2, "b", json!({})), event(3, "c", json!({}))];
    let archived_b = event(2, "b", json!({ "message": "archived" }));
    let state = State {
        events: vec![b, c],
        archive: vec![compacted("one", &["a", "b", "x", "y"], &[&a, &archived_b])],
        ..State::default()
    };
    let trail = state.read(&of("9"));
    assert_eq!(ids(&trail), ["a", "b", "c"]);
    assert_eq!(trail.rows[1].detail, "");
    assert_eq!(
        trail.note.as_deref(),
        Some(
            "note: 1 of 3 events read from the archive; 1 more held there too; 2 source events were dropped by \
             compaction; archive deleted after 2026-12-31T00:00:00Z; mirror it with log --sync"
        )
    );
    assert!(trail.degraded.is_empty());
}

#[test]
fn an_envelope_about_something_else_is_not_mentioned() {
    let other = event(1, "a", json!({ "target": "10" }));
    let state = State { archive: vec![compacted("one", &["a"], &[&other])], ..State::default() };
    assert_eq!(state.read(&of("9")).note, None);
    assert!(state.read(&Query::default()).note.is_some());
}

#[test]
fn an_event_held_only_again_or_not_at_all_is_told_so() {
    let live = event(1, "a", json!({}));
    let hidden = event(2, "h", json!({ "synthetic": true }));
    let held_again =
        State { events: vec![live.clone()], archive: vec![compacted("one", &["a"], &[&live])], ..State::default() };
    let note = held_again.read(&of("9")).note.unwrap();
    assert!(note.starts_with("note: 1 of 1 events are also held in the archive; archive deleted"), "{note}");
    let not_held = State { archive: vec![compacted("one", &["h"], &[&hidden])], ..State::default() };
    let note = not_held.read(&of("9")).note.unwrap();
    assert!(note.starts_with("note: the archive holds a compacted record for this trail; "), "{note}");
}

#[test]
fn what_is_wrong_with_an_envelope_degrades_the_trail_and_hides_nothing_legible() {
    let a = event(1, "a", json!({}));
    let state = State {
        archive: vec![compacted("one", &["a", "a"], &[&a]), malformed("archive/events/b/two.json")],
        ..State::default()
    };
    let trail = state.read(&of("9"));
    assert_eq!(ids(&trail), ["a"]);
    assert_eq!(trail.degraded, ["archive/events"]);
    assert_eq!(
        trail.warnings,
        [
            "duplicate archived source paths at archive/events/b/one.json; this trail may be incomplete",
            "archived events unreadable (expected value at line 1 column 1) at archive/events/b/two.json; this trail \
             may be incomplete",
        ]
    );
    assert!(trail.note.unwrap().contains("compaction loss unknown for 1 unreadable envelope;"));
}

#[test]
fn a_listing_with_a_hole_is_incomplete_but_one_that_cannot_exist_is_not() {
    let state = State { notes: ["filtered by scoped token", "not supported by backend", ""], ..State::default() };
    let trail = state.read(&of("9"));
    assert_eq!(trail.degraded, ["events"]);
    assert_eq!(
        trail.warnings,
        [
            "events filtered by scoped token; this trail may be incomplete",
            "archived events not supported by backend; nothing can have been archived there",
        ]
    );
    let state = State { notes: ["unknown ref x was not read", "", ""], ..State::default() };
    assert_eq!(state.read(&of("9")).warnings, ["events: unknown ref x was not read; this trail may be incomplete"]);
    let state = State { notes: ["", "", "filtered by scoped token"], ..State::default() };
    let claims = state.read(&of("9"));
    assert_eq!(claims.warnings, ["claims filtered by scoped token; a claim for this work item would not be reported"]);
}

#[test]
fn a_live_record_that_is_no_json_is_unknown_and_one_that_is_no_object_is_warned_of() {
    let broken = State { events: vec![malformed("events/b/x.json")], ..State::default() };
    let refusal = broken.try_read(&of("9")).unwrap_err();
    assert!(refusal.message.starts_with("state unreadable: "), "{refusal}");
    let odd = State { events: vec![stored("events/b/x.json", json!([1]))], ..State::default() };
    assert_eq!(
        odd.read(&of("9")).warnings,
        ["live event record is not an object at events/b/x.json; this trail may be incomplete"]
    );
    let elsewhere = State { claims: vec![stored("claims/o/r/10.json", json!([1]))], ..State::default() };
    assert!(elsewhere.read(&of("9")).warnings.is_empty());
}

#[test]
fn claims_newer_than_the_trail_are_reported_oldest_first_and_only_when_nothing_is_hidden() {
    let state = State {
        events: vec![event(20, "a", json!({ "target": "issue:9" }))],
        claims: vec![claim("9", 30), claim("issue:9", 10), claim("pr:9", 5), claim("9:qa", 40)],
        ..State::default()
    };
    let targets =
        |query: &Query| -> Vec<String> { state.read(query).claims.into_iter().map(|claim| claim.target).collect() };
    assert_eq!(targets(&of("9")), ["pr:9", "9"], "issue:9 has a newer row, and a lane is not asked for");
    assert_eq!(targets(&of("9:qa")), ["9:qa"]);
    assert_eq!(targets(&Query { narrowing: Narrowing { limit: Some(0), ..Narrowing::default() }, ..of("9") }), [""; 0]);
    assert_eq!(targets(&Query { narrowing: Narrowing { limit: Some(9), ..Narrowing::default() }, ..of("9") }).len(), 2);
    assert_eq!(targets(&Query::default()), [""; 0]);
}

#[test]
fn synthetic_rows_are_shown_only_when_asked_for() {
    let state = State { events: vec![event(1, "a", json!({ "synthetic": true }))], ..State::default() };
    let trail = state.read(&of("9"));
    assert!(trail.rows.is_empty() && !trail.suppressed);
    assert_eq!(state.read(&Query { include_synthetic: true, ..of("9") }).rows.len(), 1);
}

#[test]
fn since_takes_durations_and_instants_and_nothing_else() {
    assert_eq!(since("3m", at(1000)), Some(at(820)));
    assert_eq!(since("1w", at(0)), Some(at(-604_800)));
    assert_eq!(since(&when(7), at(1000)), Some(at(7)));
    for bad in ["", "d", "3", "3y", "-3d", "2026-12-01", "99999999999999999999d"] {
        assert_eq!(since(bad, at(0)), None, "{bad}");
    }
}

#[test]
fn the_mirror_gains_lines_in_order_and_never_loses_one() {
    let rows = [row(json!({ "at": when(5), "event_id": "b" })), row(json!({ "at": when(1), "event_id": "a" }))];
    let (first, added) = mirror::merged(b"", &rows).unwrap();
    assert_eq!(added, 2);
    assert_eq!(mirror::merged(&first, &rows), None);
    let old = format!("{}\nno time at all\n\n", mirror::line(&row(json!({ "at": when(3) }))));
    let (text, added) = mirror::merged(old.as_bytes(), &rows).unwrap();
    assert_eq!(added, 2);
    let text = String::from_utf8(text).unwrap();
    let starts: Vec<&str> = text.lines().map(|line| line.split('\t').next().unwrap()).collect();
    assert_eq!(starts, ["no time at all", &when(1), &when(3), &when(5)]);
}

#[test]
fn ten_thousand_records_are_one_pass() {
    let events: Vec<Stored> = (0..5000).map(|index| event(index, &format!("e{index}"), json!({}))).collect();
    let archive: Vec<Stored> = (0..5000)
        .map(|index| {
            let id = format!("a{index}");
            compacted(&id, &[&id], &[&event(index, &id, json!({}))])
        })
        .collect();
    let trail = State { events, archive, ..State::default() }.read(&of("9"));
    assert_eq!(trail.rows.len(), 10_000);
    assert!(trail.note.unwrap().starts_with("note: 5000 of 10000 events read from the archive; archive deleted after"));
}

#[test]
fn bad_utf8_in_a_live_record_is_named_as_such() {
    let mut broken = malformed("events/b/x.json");
    let reason = serde_json::from_slice::<Value>(b"{\"message\":\"\xff\"}").unwrap_err().to_string();
    broken.content = crate::domain::record::Content::Malformed(reason);
    let state = State { events: vec![broken], ..State::default() };
    assert_eq!(
        state.try_read(&of("9")).unwrap_err().message,
        "state unreadable: invalid UTF-8 in persisted log record at events/b/x.json"
    );
}
