//! The contract, one client after another. A client writes over what it has read itself, as `app::transact` does: a store
//! that keeps a cache may answer a version it never saw with a conflict, which costs a retry and nothing else.

use std::time::Duration;

use agent_coord::domain::decision::{Edit, Expect, Put};
use agent_coord::domain::path::Prefix;
use agent_coord::domain::record::{Fence, Stored};
use agent_coord::domain::snapshot::Scope;
use agent_coord::store::CommitError;
use serde_json::json;

use super::client::{
    Backend, append, assert_conflict, claim, create, delete, guard, members, path, replace, unheard_of,
};
use super::with_clients;
use crate::support::within::within;

pub fn what_was_written_is_read_by_every_client(backend: &Backend) {
    with_clients(backend, 3, |team| {
        let at = path("claims/o/r/1.json");
        let written = claim("a", 1);
        team.clients[0].must(create(&at, written.clone()));
        for client in &team.clients {
            assert_eq!(client.present(&at).object(), Some(&written), "an acknowledged write is seen by everyone");
        }
        let current = team.clients[1].present(&at);
        team.clients[1].must(replace(&current, claim("b", 2)));
        for client in &team.clients {
            assert_eq!(client.present(&at).object(), Some(&claim("b", 2)), "and so is what is written over it");
        }
    });
}

pub fn an_absent_record_is_reported_absent_and_never_left_out(backend: &Backend) {
    with_clients(backend, 1, |team| {
        let client = &team.clients[0];
        let (there, missing) = (path("claims/o/r/1.json"), path("claims/o/r/10.json"));
        client.must(create(&there, claim("a", 1)));
        let snapshot = client.snapshot(&Scope::of_records([there.clone(), missing.clone()]));
        assert!(snapshot.records[&there].is_some());
        assert_eq!(snapshot.records.get(&missing), Some(&None), "known to be absent differs from not asked");
        assert_eq!(snapshot.records.len(), 2, "nothing is in the answer that was not asked for");
    });
}

pub fn a_create_over_something_conflicts_and_writes_nothing(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = path("claims/o/r/1.json");
        let before = team.clients[0].make(&at, claim("a", 1));
        let given = team.clients[1].commit(vec![create(&at, claim("b", 1))]);
        assert_conflict(&given, &at);
        assert!(matches!(given, Err(CommitError::Conflict { expected: Expect::Absent, .. })));
        assert_eq!(team.clients[0].present(&at), before, "a lost create changes nothing");
        let same_bytes = team.clients[1].commit(vec![create(&at, claim("a", 1))]);
        assert_conflict(&same_bytes, &at);
        assert_eq!(team.clients[0].present(&at), before, "a lost create of equal bytes changes nothing either");
    });
}

pub fn a_write_on_a_state_that_moved_conflicts_and_names_it(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = path("claims/o/r/1.json");
        let first = team.clients[0].make(&at, claim("a", 1));
        team.clients[0].must(replace(&first, claim("a", 2)));
        let second = team.clients[1].present(&at);
        let given = team.clients[1].commit(vec![replace(&first, claim("b", 2))]);
        assert_conflict(&given, &at);
        let expected = Expect::At(first.version.clone());
        assert!(
            matches!(&given, Err(CommitError::Conflict { expected: named, .. }) if *named == expected),
            "{given:?}"
        );
        assert_eq!(team.clients[0].present(&at), second);
        if !team.clients[0].abilities().fencing {
            eprintln!("skipped: a version of {} may be that of equal bytes written before", backend.name);
            return;
        }
        team.clients[0].must(replace(&second, claim("a", 1)));
        let third = team.clients[0].present(&at);
        assert_ne!(third.version, first.version, "equal members written twice are two states: no ABA");
        assert_conflict(&team.clients[1].commit(vec![replace(&first, claim("b", 2))]), &at);
    });
}

pub fn a_write_on_a_deleted_record_conflicts(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = path("heartbeats/a.json");
        let row = team.clients[0].make(&at, members(json!({ "agent_id": "a" })));
        team.clients[1].present(&at);
        team.clients[0].must(delete(&row));
        assert_conflict(&team.clients[1].commit(vec![replace(&row, members(json!({ "agent_id": "b" })))]), &at);
        assert_eq!(team.clients[1].read(&at), None, "a lost write does not bring a deleted record back");
    });
}

pub fn a_guard_on_a_state_that_moved_stops_the_whole_transaction(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let (row, at) = (path("heartbeats/a.json"), path("claims/o/r/1.json"));
        let seen = team.clients[0].make(&row, members(json!({ "beat": 1 })));
        let beat = replace(&team.clients[1].present(&row), members(json!({ "beat": 2 })));
        team.clients[1].must(beat);
        let given = team.clients[0].commit(vec![create(&at, claim("b", 1)), guard(&seen)]);
        assert_conflict(&given, &row);
        assert_eq!(team.clients[1].read(&at), None, "what rested on the old state was not written");
        let now = team.clients[1].present(&row);
        let never = Edit::Guard { path: row.clone(), version: unheard_of(&now.version) };
        assert_conflict(&team.clients[0].commit(vec![never, create(&at, claim("b", 1))]), &row);
        let gone = Edit::Guard { path: path("heartbeats/z.json"), version: now.version };
        assert_conflict(&team.clients[0].commit(vec![create(&at, claim("b", 1)), gone]), &path("heartbeats/z.json"));
        assert_eq!(team.clients[1].read(&at), None, "a guard on a record that is not there never holds");
    });
}

pub fn a_guard_that_holds_lets_the_rest_land_and_changes_nothing(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let (row, at) = (path("heartbeats/a.json"), path("claims/o/r/1.json"));
        let seen = team.clients[0].make(&row, members(json!({ "beat": 1 })));
        let read = team.clients[1].present(&row);
        team.clients[1].commit(vec![guard(&read), create(&at, claim("b", 1))]).expect("the guard holds");
        assert_eq!(team.clients[0].present(&row), seen, "a guard writes nothing");
        assert!(team.clients[0].read(&at).is_some());
    });
}

pub fn all_edits_land_or_none(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let [first, taken, last] = ["claims/o/r/1.json", "claims/o/r/2.json", "heartbeats/b.json"].map(path);
        team.clients[0].must(create(&taken, claim("a", 1)));
        let event = || append("events/b1/e1.json", members(json!({ "event_id": "e1" })));
        let row = || create(&last, members(json!({ "agent_id": "b" })));
        for order in 0..3 {
            let mut edits = vec![create(&first, claim("b", 1)), row(), event()];
            edits.insert(order, create(&taken, claim("b", 1)));
            assert_conflict(&team.clients[1].commit(edits), &taken);
            for absent in [&first, &last, &path("events/b1/e1.json")] {
                assert_eq!(team.clients[0].read(absent), None, "{absent}: half a transaction is worse than none");
            }
        }
        let now = team.clients[1].present(&taken);
        let edits = vec![create(&first, claim("b", 1)), row(), event(), replace(&now, claim("b", 2))];
        team.clients[1].commit(edits).expect("nothing is in the way now");
        for present in [&first, &taken, &last, &path("events/b1/e1.json")] {
            assert!(team.clients[0].read(present).is_some(), "{present} landed with the rest");
        }
    });
}

pub fn an_event_path_is_taken_once(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = "events/b1/e1.json";
        let event = |by: &str| append(at, members(json!({ "event_id": "e1", "agent_id": by })));
        team.clients[0].must(event("a"));
        assert_eq!(team.clients[1].present(&path(at)).text("agent_id"), Some("a"));
        assert_conflict(&team.clients[1].commit(vec![event("b")]), &path(at));
        assert_conflict(&team.clients[0].commit(vec![event("a")]), &path(at));
        assert_eq!(team.clients[1].present(&path(at)).text("agent_id"), Some("a"));
        team.clients[1].must(append("events/b2/e1.json", members(json!({ "event_id": "e1" }))));
    });
}

pub fn a_reservation_is_an_event_that_one_closeout_creates(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = "events/b1/lane_closed-0f5a0caebfed6139.json";
        let closed = |by: &str| members(json!({ "event_id": "lane_closed-0f5a0caebfed6139", "agent_id": by }));
        let batch = team.clients[0].make(&path("batches/b1.json"), members(json!({ "batch_id": "b1" })));
        team.clients[0].must(append("events/b1/e1.json", members(json!({ "event_id": "e1" }))));
        let stamped = replace(&batch, members(json!({ "batch_id": "b1", "status": "completed" })));
        let landed = team.clients[0].commit(vec![create(&path(at), closed("a")), stamped]);
        landed.expect("nobody reserved it before");
        let reserved = team.clients[1].present(&path(at));
        assert_eq!(reserved.text("agent_id"), Some("a"));
        for late in [create(&path(at), closed("b")), append(at, closed("b")), create(&path(at), closed("a"))] {
            assert_conflict(&team.clients[1].commit(vec![late]), &path(at));
        }
        team.clients[1].must(guard(&reserved));
        team.clients[1].must(append("events/b1/z1.json", members(json!({ "event_id": "z1" }))));
        let listed = |batch: &str| {
            let batch = agent_coord::domain::ids::BatchId::parse("", batch).unwrap();
            let listing = team.clients[0].list(&Prefix::events_of(&batch));
            assert!(listing.notes.is_empty(), "{:?}", listing.notes);
            listing.records.into_iter().map(|stored| stored.path.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(listed("b1"), ["events/b1/e1.json", at, "events/b1/z1.json"], "one trail, in order");
        team.clients[1].must(create(&path("events/b2/lane_closed-0f5a0caebfed6139.json"), closed("b")));
        assert_eq!(listed("b2").len(), 1, "every batch reserves for itself");
        team.clients[0].must(delete(&reserved));
        assert_eq!(team.clients[1].read(&path(at)), None);
    });
}

pub fn events_outlive_any_number_of_their_kind(backend: &Backend) {
    const EVENTS: usize = 70;
    with_clients(backend, 2, |team| {
        let name = |number: usize| format!("events/b1/e{number:03}.json");
        for number in 0..EVENTS {
            team.clients[number % 2].must(append(&name(number), members(json!({ "number": number }))));
        }
        let listed =
            team.clients[0].list(&Prefix::events_of(&agent_coord::domain::ids::BatchId::parse("", "b1").unwrap()));
        let paths: Vec<&str> = listed.records.iter().map(|stored| stored.path.as_str()).collect();
        assert_eq!(paths, (0..EVENTS).map(name).collect::<Vec<_>>(), "every event once, in order, across segments");
        assert!(listed.notes.is_empty(), "{:?}", listed.notes);
    });
}

pub fn a_delete_removes_and_needs_the_current_state(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let at = path("batches/b1.json");
        let first = team.clients[0].make(&at, members(json!({ "batch_id": "b1", "n": 1 })));
        team.clients[0].must(replace(&first, members(json!({ "batch_id": "b1", "n": 2 }))));
        let second = team.clients[1].present(&at);
        assert_conflict(&team.clients[1].commit(vec![delete(&first)]), &at);
        assert_eq!(team.clients[0].present(&at), second, "a delete of an older state removes nothing");
        team.clients[1].must(delete(&second));
        for client in &team.clients {
            assert_eq!(client.read(&at), None, "a delete is seen by everyone");
        }
        assert_conflict(&team.clients[0].commit(vec![delete(&second)]), &at);
        team.clients[0].must(create(&at, members(json!({ "batch_id": "b1", "n": 3 }))));
    });
}

pub fn a_delete_raises_the_floor_and_nothing_lowers_it(backend: &Backend) {
    with_clients(backend, 2, |team| {
        if !team.clients[0].abilities().fencing {
            eprintln!("skipped: {} keeps no generations", backend.name);
            return;
        }
        let client = &team.clients[0];
        let remove_at = |name: &str, generation: i64| {
            let stored = client.make(&path(name), claim("a", generation));
            client.must(delete(&stored));
        };
        assert_eq!(team.clients[1].floor("o/r"), 0);
        remove_at("claims/o/r/1.json", 7);
        assert_eq!(team.clients[1].floor("o/r"), 7, "the next tenure of a deleted claim must be told apart from it");
        remove_at("claims/o/r/2.json", 3);
        assert_eq!(team.clients[1].floor("o/r"), 7, "a floor never sinks");
        remove_at("claims/o/r/1.json", 8);
        assert_eq!(team.clients[1].floor("o/r"), 8);
        assert_eq!(team.clients[1].floor("o/other"), 0, "a floor is a repository's own");
    });
}

pub fn revisions_count_writes_and_annotations_are_carried(backend: &Backend) {
    with_clients(backend, 2, |team| {
        if !team.clients[0].abilities().fencing {
            eprintln!("skipped: {} keeps nothing beside a record", backend.name);
            return;
        }
        let at = path("heartbeats/a.json");
        let fence = Fence {
            repo: "o/r".into(),
            target: "1".into(),
            instance: Some("i1".into()),
            generation: 4,
            by: "b".into(),
            at: "2026-12-01T00:00:00Z".into(),
            told_by: None,
        };
        let first = team.clients[0].make(&at, members(json!({ "beat": 1 })));
        assert_eq!(first.annotations.revision, 1);
        let mut put = Put::replace(&team.clients[1].present(&at), members(json!({ "beat": 2 })));
        put.annotations.fenced = vec![fence.clone()];
        put.annotations.phase_changed_at = Some("2026-12-01T00:00:01Z".to_owned());
        team.clients[1].must(Edit::Put(put));
        let second = team.clients[0].present(&at);
        assert_eq!(second.annotations.revision, 2, "each write counts one");
        team.clients[0].must(replace(&second, members(json!({ "beat": 3 }))));
        let third: Stored = team.clients[1].present(&at);
        assert_eq!(third.annotations.revision, 3);
        assert_eq!(third.annotations.fenced, [fence], "whoever writes the row carries its fences");
        assert_eq!(third.annotations.phase_changed_at.as_deref(), Some("2026-12-01T00:00:01Z"));
        assert!(!third.object().expect("a row").contains_key("$store"), "the store's own data is no member");
        let ids = [&first, &second, &third].map(|stored| stored.annotations.transaction_id.clone());
        assert!(ids.iter().all(Option::is_some), "every state says which transaction wrote it");
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
    });
}

pub fn a_deadline_in_the_past_is_answered_at_once(backend: &Backend) {
    with_clients(backend, 1, |team| {
        let at = path("claims/o/r/1.json");
        let edits = vec![create(&at, claim("a", 1))];
        let given = within(Duration::from_secs(5), || team.clients[0].commit_within(edits, Duration::ZERO));
        let landed = team.clients[0].read(&at).is_some();
        match given {
            Ok(_) => assert!(landed, "what was acknowledged is there"),
            Err(CommitError::Failed(_) | CommitError::Conflict { .. }) => assert!(!landed, "failed means not written"),
            Err(CommitError::Unknown(_)) => {}
        }
    });
}
