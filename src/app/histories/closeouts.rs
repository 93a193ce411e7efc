//! Closeouts and drains as histories: who is told what, on stores that land all at once and on those that do not.

use serde_json::{Value, json};

use super::{Between, Lab, told};
use crate::app::transact::NotTaken;
use crate::domain::audit::Finding;
use crate::domain::batch::drain::Drain;
use crate::domain::batch::register::Register;
use crate::domain::closeout::{Asked, Closed, Closing};
use crate::domain::decision::{Edit, Put, RefusalKind};
use crate::domain::fixtures::{acquire_by, beat_of, event_of, object, release_by};
use crate::domain::ids::{BatchId, TransactionId};
use crate::domain::path::RecordPath;
use crate::domain::record::Members;
use crate::domain::request::{Acquire, Attribution, RecordEvent};
use crate::store::{Store, Transaction};

const CLAIM: &str = "claims/o/r/42.json";
const BATCH: &str = "batches/b1.json";
const RESERVATION: &str = "events/b1/lane_closed-10e08a419e850eba.json";

impl Lab {
    fn register(&self, owner: &str) {
        let manifest = json!({"batch_id": "b1", "repo": "o/r", "lanes": [
            {"name": "backend", "owner": owner, "targets": ["42"]}, {"name": "docs", "owner": "w2", "targets": ["43"]}
        ]});
        self.app().register_batch(&Register::of(&manifest, None).unwrap()).unwrap();
    }

    fn claimed_lane(&self, agent: &str) {
        self.register("w1");
        self.claim(&in_batch(agent)).unwrap();
    }

    fn member(&self, path: &str, name: &str) -> Value {
        self.read(path).and_then(|stored| stored.object()?.get(name).cloned()).unwrap_or_default()
    }

    /// Writes over a record behind everybody's back.
    fn overwrite(&self, path: &str, change: impl FnOnce(&mut Members)) {
        let current = self.read(path).unwrap();
        let mut members = current.object().cloned().unwrap();
        change(&mut members);
        self.commit(Edit::Put(Put::replace(&current, members)));
    }

    fn commit(&self, edit: Edit) {
        let id = TransactionId::from_hex("another");
        let transaction = Transaction { id, edits: vec![edit], message: String::new() };
        self.store.commit(&transaction, &self.app().deadline).unwrap();
    }
}

fn in_batch(agent: &str) -> Acquire {
    Acquire { batch_id: Some("b1".to_owned()), ..acquire_by(agent) }
}

fn closing(terminal: &str) -> Closing {
    Closing { terminal: terminal.to_owned(), ..Closing::default() }
}

fn release_on(lab: &Lab, store: &dyn Store, terminal: &str) -> Result<Closed, NotTaken> {
    lab.app_on(store).close(Asked::Release(&release_by("w1"), &closing(terminal)))
}

fn event_on(lab: &Lab, store: &dyn Store, terminal: &str) -> Result<Closed, NotTaken> {
    let given = |text: &str| Some(text.to_owned());
    let request =
        RecordEvent { agent: given("w1"), repo: given("o/r"), target: given("42"), ..event_of("lane_closed") };
    lab.app_on(store).close(Asked::Event(&request, &closing(terminal)))
}

#[test]
fn one_transaction_closes_a_lane_where_the_store_is_atomic() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let store = Between::new(&lab.store, |_| {});
    release_on(&lab, &store, "done").unwrap();
    assert_eq!(*store.commits.lock().unwrap(), 1);
    let landed = [RESERVATION, CLAIM, BATCH].map(|path| lab.read(path).unwrap().annotations.transaction_id);
    assert!(landed.windows(2).all(|pair| pair[0] == pair[1]), "all by the same transaction: {landed:?}");
}

#[test]
fn two_closeouts_race_and_the_second_is_told_which_came_first() {
    for fenced in [true, false] {
        for (first, refused) in [("done", false), ("abandoned", true)] {
            let lab = Lab::new();
            lab.claimed_lane("w1");
            let between = Between::new(&lab.store, |commit| {
                if commit == 1 {
                    event_on(&lab, &lab.store, first).unwrap();
                }
            });
            let store = if fenced { between } else { between.counting() };
            let answer = release_on(&lab, &store, "done");
            if refused {
                let conflict = "conflicting terminal closeout for lane backend; first closeout is authoritative";
                assert_eq!(told(answer), (RefusalKind::Invalid, conflict.to_owned()));
                assert_eq!(lab.member(CLAIM, "status"), "active", "a refused closeout gives nothing back");
            } else {
                let closed = answer.unwrap();
                assert!(!closed.reserved.created && closed.claim_changed && !closed.batch_changed);
            }
            assert_eq!(lab.member(RESERVATION, "terminal"), first);
        }
    }
}

#[test]
fn without_transactions_the_three_records_are_written_in_the_contracts_order() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let seen = std::sync::Mutex::new(Vec::new());
    let store = Between::new(&lab.store, |_| {
        let state = (lab.read(RESERVATION).is_some(), lab.member(CLAIM, "status") == "released");
        seen.lock().unwrap().push(state);
    })
    .counting();
    let closed = release_on(&lab, &store, "done").unwrap();
    assert!(closed.reserved.created && closed.claim_changed && closed.batch_changed);
    drop(store);
    assert_eq!(*seen.lock().unwrap(), [(false, false), (true, false), (true, true)]);
    let again = release_on(&lab, &Between::new(&lab.store, |_| {}).counting(), "done").unwrap();
    assert!(!again.changed());
}

#[test]
fn a_claim_that_moves_between_reservation_and_release_is_not_written_over() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let store = Between::new(&lab.store, |commit| {
        if commit == 2 {
            lab.overwrite(CLAIM, |claim| drop(claim.insert("host".to_owned(), json!("elsewhere"))));
        }
    })
    .counting();
    let answer = told(release_on(&lab, &store, "done"));
    assert_eq!(answer, (RefusalKind::Unknown, format!("state changed at {CLAIM}")));
    drop(store);
    assert!(lab.read(RESERVATION).is_some(), "the reservation stands");
    let resumed = release_on(&lab, &Between::new(&lab.store, |_| {}).counting(), "done").unwrap();
    assert!(!resumed.reserved.created && resumed.claim_changed && resumed.batch_changed);
}

#[test]
fn a_batch_that_keeps_changing_is_tried_three_times() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let store = Between::new(&lab.store, |commit| {
        if commit >= 2 {
            lab.overwrite(BATCH, |batch| drop(batch.insert("n".to_owned(), commit.into())));
        }
    })
    .counting();
    let answer = told(event_on(&lab, &store, "done"));
    assert_eq!(answer, (RefusalKind::Unknown, "batch b1 changed repeatedly during terminal closeout".to_owned()));
    assert_eq!(*store.commits.lock().unwrap(), 4, "one for the reservation, three for the batch");
}

#[test]
fn registering_against_somebody_else_says_who_moved_what() {
    let lab = Lab::new();
    lab.register("w1");
    let store = Between::new(&lab.store, |_| {
        lab.overwrite(BATCH, |batch| drop(batch.insert("n".to_owned(), 1.into())));
    })
    .counting();
    let manifest = json!({"batch_id": "b1", "lanes": [{"name": "a", "owner": "w", "targets": ["1"]}]});
    let answer = lab.app_on(&store).register_batch(&Register::of(&manifest, None).unwrap());
    let message = format!("batch registration write contention for b1; state changed at {BATCH}");
    assert_eq!(told(answer), (RefusalKind::Unknown, message));
}

#[test]
fn who_took_a_lane_over_closes_it_and_the_audit_finds_the_whole_story() {
    let lab = Lab::new();
    lab.claimed_lane("x");
    let mut release = release_by("x");
    release.metadata.host = Some("codex".to_owned());
    lab.pass(5);
    lab.app().close(Asked::Release(&release, &closing("done"))).unwrap();
    let audit = lab.app().audit(&BatchId::parse("", "b1").unwrap());
    assert_eq!(audit.verdict, Finding::Incomplete, "docs has not begun");
    assert!(audit.lanes[0].complete, "{audit:?}");
    assert_eq!(audit.lanes[0].event_count, 2);
    lab.app().close(Asked::Release(&release, &closing("done"))).unwrap();
}

fn drain(lab: &Lab, lane: Option<&str>, cancel: bool) {
    let request = Drain {
        batch: BatchId::parse("", "b1").unwrap(),
        lane: lane.map(str::to_owned),
        reason: Some("stop".to_owned()),
        cancel,
        by: None,
        attribution: Attribution::default(),
    };
    lab.app().drain(&request).unwrap();
}

#[test]
fn a_worker_of_a_drained_lane_is_told_at_every_beat_and_its_renewal() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let beat = crate::domain::request::Beat {
        batch_id: Some("b1".to_owned()),
        repo: Some("o/r".to_owned()),
        target: Some("42".to_owned()),
        ..beat_of("w1")
    };
    assert_eq!(lab.beat(&beat).drained, None);
    drain(&lab, Some("backend"), false);
    let told_of = |notice: Option<crate::domain::batch::drain::Notice>| notice.map(|notice| notice.message());
    let message = "lane backend of batch b1 is drained: stop".to_owned();
    assert_eq!(told_of(lab.beat(&beat).drained), Some(message.clone()));
    let kept = lab.beat(&beat_of("w1"));
    assert_eq!(told_of(kept.drained), Some(message.clone()), "the row remembers batch and target");
    let tenure = lab.claim(&Acquire { tenure: None, ..acquire_by("w1") }).unwrap();
    assert_eq!(told_of(tenure.drained), Some(message.clone()), "a renewal that names no batch goes on");
    let refused = told(lab.claim(&in_batch("w1")));
    assert_eq!(refused, (RefusalKind::Claimed, format!("CLAIM_REFUSED: {message}")));
    lab.register("w1");
    assert_eq!(told_of(lab.beat(&beat).drained), Some(message), "registering again does not end it");
    drain(&lab, Some("backend"), true);
    assert_eq!(lab.beat(&beat).drained, None);
    lab.claim(&in_batch("w1")).unwrap();
}

#[test]
fn a_drain_that_lands_during_a_claim_refuses_it() {
    let lab = Lab::new();
    lab.register("w1");
    let store = Between::new(&lab.store, |commit| {
        if commit == 1 {
            drain(&lab, None, false);
        }
    });
    let answer = crate::app::claim::claim(&lab.app_on(&store), &in_batch("w1"), &mut Default::default());
    assert_eq!(told(answer).1, "CLAIM_REFUSED: lane backend of batch b1 is drained: stop");
    assert!(lab.read(CLAIM).is_none());
}

#[test]
fn a_closeout_and_a_drain_of_the_same_batch_both_last() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let store = Between::new(&lab.store, |commit| {
        if commit == 1 {
            drain(&lab, Some("docs"), false);
        }
    });
    release_on(&lab, &store, "done").unwrap();
    drop(store);
    assert_eq!(lab.member(BATCH, "lanes")[0]["terminal"], "done");
    assert_eq!(lab.member(BATCH, "drained")[0]["lane"], "docs");
}

#[test]
fn a_reservation_that_somebody_writes_by_hand_decides_all_the_same() {
    let lab = Lab::new();
    lab.claimed_lane("w1");
    let foreign = object(json!({"type": "lane_closed", "terminal": "superseded", "agent_id": "w1"}));
    lab.commit(Edit::Put(Put::create(RecordPath::parse(RESERVATION).unwrap(), foreign)));
    assert_eq!(told(release_on(&lab, &lab.store, "done")).0, RefusalKind::Invalid);
    assert!(release_on(&lab, &lab.store, "superseded").unwrap().claim_changed);
}
