//! Histories that random runs miss (design.md section 10).

use serde_json::json;

use super::*;
use crate::app::record_event::record_event;
use crate::app::{claim, heartbeat, release};
use crate::domain::claim::Way;
use crate::domain::decision::{Edit, Put};
use crate::domain::fixtures::{acquire_by, beat_of, claim_path, event_of, object, release_by, tenure_of};
use crate::domain::ids::TransactionId;
use crate::domain::path::RecordPath;
use crate::domain::request::{Metadata, Tenure};
use crate::world::Randomness;

const CLAIM: &str = "claims/o/r/42.json";
const DEAD: u64 = 3_600;

fn metadata(instance: Option<&str>, generation: Option<i64>) -> Metadata {
    Metadata { instance_id: instance.map(str::to_owned), generation, ..Metadata::default() }
}

fn asking(agent: &str, instance: Option<&str>) -> Acquire {
    Acquire { metadata: metadata(instance, None), ..acquire_by(agent) }
}

fn beating(tenure: &Tenure) -> Beat {
    Beat {
        repo: Some("o/r".into()),
        target: Some("42".into()),
        metadata: metadata(tenure.instance.as_deref(), Some(tenure.generation)),
        tenure: Some(tenure.clone()),
        ..beat_of(&tenure.agent)
    }
}

fn releasing(tenure: &Tenure) -> Release {
    Release { metadata: metadata(tenure.instance.as_deref(), Some(tenure.generation)), ..release_by(&tenure.agent) }
}

fn in_batch(request: Acquire) -> Acquire {
    Acquire { batch_id: Some("b1".into()), ..request }
}

#[test]
fn a_day_of_work_leaves_one_claim_its_generations_and_its_events() {
    let lab = Lab::new();
    let first = lab.claim(&in_batch(acquire_by("a"))).unwrap();
    assert_eq!((first.way, first.generation), (Way::Free, Some(1)));
    let tenure = first.tenure.unwrap();
    assert_eq!(lab.beat(&beating(&tenure)).lost, None);
    lab.pass(60);
    assert_eq!(lab.claim(&acquire_by("a")).unwrap().way, Way::Renewed);
    lab.release(&releasing(&tenure)).unwrap();
    assert_eq!(lab.claim(&acquire_by("b")).unwrap().generation, Some(2));
    let events = crate::domain::path::Prefix::events_of(&event_of("x").batch_id);
    let app = lab.app();
    let scope = Scope::of_prefixes([events.clone()]);
    let listed = app.store.snapshot(&scope, Freshness::Fetched, &app.deadline).unwrap();
    let types: Vec<_> = listed.listings[&events].records.iter().filter_map(|event| event.text("type")).collect();
    assert_eq!(types, ["claim.acquired", "claim.released"]);
}

#[test]
fn a_holder_that_died_is_told_at_its_next_beat_release_and_claim() {
    let lab = Lab::new();
    let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
    lab.beat(&beating(&tenure));
    lab.pass(DEAD);
    assert_eq!(lab.claim(&acquire_by("b")).unwrap().way, Way::TakenOver);

    let beaten = lab.beat(&beating(&tenure));
    assert_eq!(beaten.lost.unwrap(), "CLAIM_LOST: o/r#42 generation 2 is held by b since 2026-12-01T01:00:00Z");
    let said = told(lab.release(&releasing(&tenure)));
    assert_eq!(said, (RefusalKind::Invalid, "claim belongs to b; a cannot release it".to_owned()));
    let again = Acquire { metadata: metadata(None, Some(1)), tenure: Some(tenure), ..acquire_by("a") };
    assert!(refused(lab.claim(&again)).hint.unwrap().contains("was lost: generation 2 went to b"));
}

#[test]
fn a_report_lost_with_its_process_is_made_again_and_a_printed_one_is_not() {
    let lab = Lab::new();
    lab.claim(&acquire_by("a")).unwrap();
    lab.beat(&Beat { repo: Some("o/r".into()), target: Some("42".into()), ..beat_of("a") });
    lab.pass(DEAD);
    lab.claim(&acquire_by("b")).unwrap();
    let killed = lab.beat(&beat_of("a"));
    let printed = lab.beat(&beat_of("a"));
    assert!(killed.lost.is_some() && printed.lost.is_some(), "the first report may never have been read");
    let note = printed.note.unwrap();
    let after = lab.beat(&Beat { told: vec![note], ..beat_of("a") });
    assert_eq!((after.lost, after.note), (None, None));
    assert!(lab.read("heartbeats/a.json").unwrap().annotations.fenced.is_empty());
}

#[test]
fn a_holder_without_heartbeat_whose_first_beat_lands_during_a_takeover_keeps_its_claim() {
    let lab = Lab::new();
    let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
    lab.pass(14_400);
    let company = Between::new(&lab.store, |commit| {
        if commit == 1 {
            assert_eq!(lab.beat(&beating(&tenure)).lost, None);
        }
    });
    let answer = claim::claim(&lab.app_on(&company), &acquire_by("b"), &mut FirstRead::default());
    let refusal = (RefusalKind::Claimed, "CLAIM_REFUSED: active claim for o/r#42 held by a; heartbeat live".to_owned());
    assert_eq!(told(answer), refusal);
}

#[test]
fn a_beat_of_a_dead_holder_that_lands_during_a_takeover_breaks_it() {
    let lab = Lab::new();
    let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
    lab.beat(&beating(&tenure));
    lab.pass(DEAD);
    let company = Between::new(&lab.store, |commit| {
        if commit == 1 {
            lab.beat(&beating(&tenure));
        }
    });
    let answer = claim::claim(&lab.app_on(&company), &acquire_by("b"), &mut FirstRead::default());
    assert!(told(answer).1.ends_with("heartbeat live"), "a beating holder is never displaced");
}

#[test]
fn one_agent_id_that_races_itself_wins_once_and_is_told_of_contention_otherwise() {
    let lab = Lab::new();
    let company = Between::new(&lab.store, |commit| {
        if commit == 1 {
            lab.claim(&acquire_by("a")).unwrap();
        }
    });
    let answer = claim::claim(&lab.app_on(&company), &acquire_by("a"), &mut FirstRead::default());
    let text = "claim write contention for o/r#42; state already exists at claims/o/r/42.json";
    assert_eq!(told(answer), (RefusalKind::Unknown, text.to_owned()));
}

#[test]
fn a_beat_that_races_a_takeover_of_its_claim_is_told_in_the_same_breath() {
    let lab = Lab::new();
    let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
    lab.beat(&beating(&tenure));
    lab.pass(DEAD);
    let company = Between::new(&lab.store, |commit| {
        if commit == 1 {
            lab.claim(&acquire_by("b")).unwrap();
        }
    });
    let beaten = heartbeat::heartbeat(&lab.app_on(&company), &beating(&tenure)).unwrap();
    assert!(beaten.lost.is_some(), "the beat was sent for a claim that was lost before it landed");
}

#[test]
fn a_beat_that_races_a_new_holder_is_told_although_nobody_wrote_its_row() {
    let lab = Lab::new();
    let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
    lab.beat(&beating(&tenure));
    let company = Between::new(&lab.store, |commit| {
        if commit == 1 {
            lab.release(&release_by("a")).unwrap();
            lab.claim(&acquire_by("b")).unwrap();
        }
    });
    let beaten = heartbeat::heartbeat(&lab.app_on(&company), &beating(&tenure)).unwrap();
    assert!(beaten.lost.is_some(), "the claim that the beat rests on is guarded");
}

#[test]
fn a_superseded_instance_can_neither_renew_release_nor_keep_its_successor_alive() {
    let lab = Lab::new();
    let old = lab.claim(&asking("a", Some("i1"))).unwrap().tenure.unwrap();
    lab.beat(&beating(&old));
    lab.pass(60);
    let request = Acquire { supersede: true, ..asking("a", Some("i2")) };
    let new = lab.claim(&request).unwrap().tenure.unwrap();
    assert_eq!(new, tenure_of("a", Some("i2"), 2));

    lab.pass(60);
    let beaten = lab.beat(&beating(&old));
    assert!(!beaten.renewed && beaten.lost.unwrap().contains("held by a instance i2"));
    let row = lab.read("heartbeats/a.json").unwrap();
    assert_eq!(row.text("updated_at"), Some("2026-12-01T00:00:00Z"), "the row was not renewed");
    assert_eq!(told(lab.release(&releasing(&old))).0, RefusalKind::Claimed);
    let renewal = Acquire { metadata: metadata(Some("i1"), Some(1)), tenure: Some(old), ..acquire_by("a") };
    assert_eq!(told(lab.claim(&renewal)).0, RefusalKind::Claimed);
    assert_eq!(lab.beat(&beating(&new)).lost, None);
    lab.release(&releasing(&new)).unwrap();
}

#[test]
fn a_stand_in_row_does_not_cost_a_silent_holder_its_other_claims() {
    let lab = Lab::new();
    let short = Acquire { ttl_seconds: 60, ..acquire_by("a") };
    let other = Acquire { target: crate::domain::ids::Target::parse("target", "7").unwrap(), ..acquire_by("a") };
    lab.claim(&short).unwrap();
    lab.claim(&other).unwrap();
    lab.pass(60);
    lab.claim(&acquire_by("b")).unwrap();
    let greedy = Acquire { agent: "b".to_owned(), ..other };
    assert!(told(lab.claim(&greedy)).1.contains("heartbeat missing; fallback claim expires at"));
}

#[test]
fn a_claim_that_was_deleted_leaves_its_generation_as_the_floor() {
    let lab = Lab::new();
    for agent in ["a", "b", "c"] {
        lab.claim(&acquire_by(agent)).unwrap();
        lab.release(&release_by(agent)).unwrap();
    }
    let stored = lab.read(CLAIM).unwrap();
    let edits = vec![Edit::Delete { path: stored.path, version: stored.version }];
    let transaction = Transaction { id: TransactionId::from_hex("gc"), edits, message: String::new() };
    let app = lab.app();
    app.store.commit(&transaction, &app.deadline).unwrap();
    assert_eq!(lab.claim(&acquire_by("a")).unwrap().generation, Some(4));
}

#[test]
fn a_record_that_is_no_claim_is_never_written_over() {
    let lab = Lab::new();
    let put = Put::create(claim_path(), object(json!({"generation": 1e300})));
    let transaction =
        Transaction { id: TransactionId::from_hex("odd"), edits: vec![Edit::Put(put)], message: String::new() };
    let app = lab.app();
    app.store.commit(&transaction, &app.deadline).unwrap();
    assert_eq!(told(lab.claim(&acquire_by("a"))).0, RefusalKind::Unknown);
    assert_eq!(told(lab.release(&release_by("a"))).0, RefusalKind::Unknown);
}

/// Where the contract counts attempts, every commit loses its race here.
mod on_a_counting_store {
    use super::*;

    #[test]
    fn a_claim_is_tried_once() {
        let lab = Lab::new();
        let company = Between::new(&lab.store, |_| drop(lab.claim(&acquire_by("b")).unwrap())).counting();
        let answer = claim::claim(&lab.app_on(&company), &acquire_by("a"), &mut FirstRead::default());
        let text = "claim write contention for o/r#42; state already exists at claims/o/r/42.json";
        assert_eq!(told(answer), (RefusalKind::Unknown, text.to_owned()));
        assert_eq!(*company.commits.lock().unwrap(), 1);
    }

    #[test]
    fn a_release_is_tried_once() {
        let lab = Lab::new();
        lab.claim(&acquire_by("a")).unwrap();
        let company = Between::new(&lab.store, |_| drop(lab.claim(&acquire_by("a")).unwrap())).counting();
        let answer = release::release(&lab.app_on(&company), &release_by("a"));
        assert_eq!(told(answer), (RefusalKind::Unknown, format!("state changed at {CLAIM}")));
    }

    #[test]
    fn a_beat_is_tried_twice() {
        let lab = Lab::new();
        let company = Between::new(&lab.store, |_| drop(lab.beat(&beat_of("a")))).counting();
        let answer = heartbeat::heartbeat(&lab.app_on(&company), &beat_of("a"));
        let text = "state changed while writing heartbeats/a.json";
        assert_eq!(told(answer), (RefusalKind::Unknown, text.to_owned()));
        assert_eq!(*company.commits.lock().unwrap(), 2);
    }

    #[test]
    fn an_event_that_was_not_recorded_is_a_warning() {
        let lab = Lab::new();
        let company = Between { loses_events: true, ..Between::new(&lab.store, |_| ()) }.counting();
        let app = lab.app_on(&company);
        let acquired = claim::claim(&app, &in_batch(acquire_by("a")), &mut FirstRead::default()).unwrap();
        assert_eq!(acquired.warnings, ["claim.acquired event not recorded: no room"]);
        let released = release::release(&app, &release_by("a")).unwrap();
        assert_eq!(released.warnings, ["claim.released event not recorded: no room"]);
    }
}

mod events {
    use super::*;

    /// Randomness that repeats itself as often as it is told to.
    struct Repeating(Mutex<u32>);

    impl Randomness for Repeating {
        fn fill(&self, buffer: &mut [u8]) {
            let mut left = self.0.lock().unwrap();
            buffer.fill(if *left == 0 { 9 } else { 7 });
            *left = left.saturating_sub(u32::from(buffer.len() == 4));
        }
    }

    fn record_with(lab: &Lab, repeats: u32) -> Result<String, NotTaken> {
        let ids = Repeating(Mutex::new(repeats));
        let app = App { ids: &ids, ..lab.app() };
        record_event(&app, &event_of("phase")).map(|recorded| recorded.event_id)
    }

    #[test]
    fn an_id_that_is_taken_is_made_anew_up_to_three_times() {
        let lab = Lab::new();
        let first = record_with(&lab, 1).unwrap();
        assert!(first.ends_with("-07070707"), "{first}");
        let second = event_of("other");
        let ids = Repeating(Mutex::new(2));
        let recorded = record_event(&App { ids: &ids, ..lab.app() }, &second).unwrap();
        assert_ne!(recorded.event_id, first);
        assert!(lab.read(&format!("events/b1/{first}.json")).unwrap().text("type") == Some("phase"));
    }

    #[test]
    fn three_taken_ids_are_a_collision() {
        let lab = Lab::new();
        let app = lab.app();
        // The clock stands still, so that an id differs from another by its random bytes alone.
        let stopped = SteppedClock::at(at(0));
        record_event(&App { ids: &Repeating(Mutex::new(9)), clock: &Still(&stopped), ..app }, &event_of("phase"))
            .unwrap();
        let app = App { ids: &Repeating(Mutex::new(9)), clock: &Still(&stopped), ..lab.app() };
        let answer = record_event(&app, &event_of("other"));
        let text = "event id collision while recording event for b1";
        assert_eq!(told(answer), (RefusalKind::Unknown, text.to_owned()));
    }

    struct Still<'a>(&'a SteppedClock);

    impl crate::world::Clock for Still<'_> {
        fn now(&self) -> crate::domain::time::Timestamp {
            self.0.now()
        }
        fn elapsed(&self) -> Duration {
            self.0.elapsed()
        }
        fn boot(&self) -> Option<crate::world::BootTime> {
            self.0.boot()
        }
        fn pause(&self, _: Duration) {}
    }

    #[test]
    fn an_event_of_a_lost_tenure_is_refused_with_nothing_written() {
        let lab = Lab::new();
        let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
        lab.pass(14_400);
        lab.claim(&acquire_by("b")).unwrap();
        let request = crate::domain::request::RecordEvent { tenure: Some(tenure), ..event_of("phase") };
        let (kind, message) = told(record_event(&lab.app(), &request).map(|recorded| recorded.event_id));
        assert_eq!(kind, RefusalKind::Claimed);
        assert!(message.starts_with("CLAIM_LOST: o/r#42 generation 2 is held by b since"), "{message}");
    }

    #[test]
    fn an_event_that_races_the_end_of_its_tenure_is_refused_with_nothing_written() {
        let lab = Lab::new();
        let tenure = lab.claim(&acquire_by("a")).unwrap().tenure.unwrap();
        lab.pass(14_400);
        let company = Between::new(&lab.store, |commit| {
            if commit == 1 {
                lab.claim(&acquire_by("b")).unwrap();
            }
        });
        let request = crate::domain::request::RecordEvent { tenure: Some(tenure), ..event_of("phase") };
        let answer = record_event(&lab.app_on(&company), &request);
        assert_eq!(told(answer.map(|recorded| recorded.event_id)).0, RefusalKind::Claimed);
        let events = crate::domain::path::Prefix::events_of(&request.batch_id);
        let app = lab.app();
        let listed = app.store.snapshot(&Scope::of_prefixes([events.clone()]), Freshness::Fetched, &app.deadline);
        assert!(listed.unwrap().listings[&events].records.is_empty(), "the claim that it rests on is guarded");
    }

    #[test]
    fn an_event_path_is_read_only_after_a_lost_race() {
        let lab = Lab::new();
        let recorded = record_event(&lab.app(), &event_of("phase")).unwrap();
        let path = RecordPath::parse(&format!("events/b1/{}.json", recorded.event_id)).unwrap();
        assert_eq!(lab.read(path.as_str()).unwrap().object(), Some(&recorded.record));
    }
}
