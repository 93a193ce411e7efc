//! The one retry loop against a store that fails on purpose.

use std::time::Duration;

use agent_coord::app::App;
use agent_coord::app::transact::{NotTaken, Step, Taken};
use agent_coord::domain::decision::{Decision, Edit, Halt, Put, Refusal, RefusalKind};
use agent_coord::domain::ids::TransactionId;
use agent_coord::domain::path::RecordPath;
use agent_coord::domain::record::{Members, integer};
use agent_coord::domain::snapshot::{Freshness, Scope, Snapshot};
use agent_coord::store::faulty::{Fault, FaultyStore};
use agent_coord::store::memory::MemoryStore;
use agent_coord::store::{Abilities, Store, Transaction};
use agent_coord::world::{Clock, CountedRandomness, Deadline, SteppedClock};
use serde_json::json;

use crate::support::env::instant;

type Faulty = FaultyStore<MemoryStore>;

#[test]
fn a_lost_race_is_decided_again_on_fresh_state() {
    let store = faulty([Fault::Conflict, meanwhile(5), Fault::Conflict]);
    let taken = raise(&store, Duration::from_secs(20)).expect("the fourth try finds no fault");
    assert_eq!(taken.outcome, 6, "the count that somebody else wrote in between is the one that was raised");
    assert_eq!(store.commits(), 4);
}

#[test]
fn a_store_that_counts_attempts_is_asked_no_more_often_than_the_step_allows() {
    let counted = Abilities { atomic: false, fencing: false, retries_until_deadline: false };
    let store = faulty((0..10).map(|_| Fault::Conflict)).with_abilities(counted);
    let given = raise(&store, Duration::from_secs(20));
    assert!(matches!(given, Err(NotTaken::Contention { .. })), "{given:?}");
    assert_eq!(store.commits(), 2, "the step allows two attempts");
}

#[test]
fn a_race_that_is_never_won_ends_at_the_deadline() {
    let store = faulty((0..10_000).map(|_| Fault::Conflict));
    let given = raise(&store, Duration::from_secs(20));
    assert!(matches!(given, Err(NotTaken::Contention { .. })), "{given:?}");
    assert_eq!(count(&store), None, "nothing was written");
}

#[test]
fn a_lost_reply_is_never_reported_as_success_nor_sent_twice() {
    for fault in [Fault::LostReply, Fault::Vanishes] {
        let landed = matches!(fault, Fault::LostReply);
        let store = faulty([fault]);
        let given = raise(&store, Duration::from_secs(20));
        assert!(matches!(given, Err(NotTaken::Store(_))), "unknown stays unknown: {given:?}");
        assert_eq!(store.commits(), 1, "only the store itself may send a transaction again");
        assert_eq!(count(&store), landed.then_some(1));
        raise(&store, Duration::from_secs(20)).expect("the next command goes on from what is there");
        assert_eq!(count(&store), Some(if landed { 2 } else { 1 }));
    }
}

#[test]
fn a_record_that_was_only_read_is_guarded() {
    let store =
        faulty([Fault::Meanwhile(Box::new(|inner: &MemoryStore| write(inner, &gate(), json!({ "open": false }))))]);
    write(store.inner(), &gate(), json!({ "open": true }));
    let given = transact(&store, Duration::from_secs(20), |snapshot| {
        let open = snapshot.get(&gate())?.and_then(|stored| stored.object()?.get("open")?.as_bool());
        if open != Some(true) {
            return Err(Refusal::new(RefusalKind::Invalid, "the gate is closed").into());
        }
        raised(snapshot)
    });
    assert!(matches!(given, Err(NotTaken::Refused(_))), "the gate closed between reading and writing: {given:?}");
    assert_eq!(count(&store), None);
}

#[test]
fn a_late_commit_still_answers() {
    let store = faulty([Fault::Late(Duration::from_secs(3))]);
    assert_eq!(raise(&store, Duration::from_secs(20)).expect("late is not lost").outcome, 1);
}

fn faulty(faults: impl IntoIterator<Item = Fault<MemoryStore>>) -> Faulty {
    FaultyStore::new(MemoryStore::new(), faults)
}

fn counter() -> RecordPath {
    RecordPath::parse("batches/counter.json").expect("a path")
}

fn gate() -> RecordPath {
    RecordPath::parse("batches/gate.json").expect("a path")
}

fn meanwhile(value: i64) -> Fault<MemoryStore> {
    Fault::Meanwhile(Box::new(move |inner: &MemoryStore| write(inner, &counter(), json!({ "count": value }))))
}

fn with_clock<T>(patience: Duration, act: impl FnOnce(&dyn Clock, &Deadline<'_>) -> T) -> T {
    let clock = SteppedClock::at(instant("2026-12-01T00:00:00Z"));
    let deadline = Deadline::after(&clock, patience);
    act(&clock, &deadline)
}

fn read(store: &dyn Store, path: &RecordPath) -> Option<agent_coord::domain::record::Stored> {
    with_clock(Duration::from_secs(1), |_, deadline| {
        let snapshot = store.snapshot(&Scope::of_records([path.clone()]), Freshness::Fetched, deadline);
        snapshot.expect("memory answers").records.remove(path).expect("it was asked for")
    })
}

fn count(store: &Faulty) -> Option<i64> {
    read(store.inner(), &counter())?.object().and_then(|members| integer(members, "count"))
}

fn write(store: &MemoryStore, path: &RecordPath, value: serde_json::Value) {
    let members: Members = value.as_object().cloned().expect("an object");
    let edit = Edit::Put(Put::upsert(path.clone(), read(store, path).as_ref(), members));
    let transaction = Transaction { id: TransactionId::from_hex("other"), edits: vec![edit], message: String::new() };
    with_clock(Duration::from_secs(1), |_, deadline| store.commit(&transaction, deadline)).expect("nobody races here");
}

fn raised(snapshot: &Snapshot) -> Result<Decision<i64>, Halt> {
    let current = snapshot.get(&counter())?;
    let next = current.and_then(|stored| integer(stored.object()?, "count")).unwrap_or(0) + 1;
    let members = json!({ "count": next }).as_object().cloned().unwrap_or_default();
    let edits = vec![Edit::Put(Put::upsert(counter(), current, members))];
    Ok(Decision { edits, outcome: next, basis: Freshness::Cached })
}

fn raise(store: &Faulty, patience: Duration) -> Result<Taken<i64>, NotTaken> {
    transact(store, patience, raised)
}

fn transact<T>(
    store: &Faulty,
    patience: Duration,
    decide: impl FnMut(&Snapshot) -> Result<Decision<T>, Halt>,
) -> Result<Taken<T>, NotTaken> {
    with_clock(patience, |clock, deadline| {
        let ids = CountedRandomness::from_seed(1000);
        let app = App { store, clock, ids: &ids, deadline: *deadline };
        let step = Step {
            reads: Scope::of_records([counter(), gate()]),
            attempts: 2,
            id: TransactionId::from_hex("mine"),
            message: "Raise".to_owned(),
        };
        app.transact(&step, decide)
    })
}
