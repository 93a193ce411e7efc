//! Random interleavings and random histories, and what must hold in all of them.

use proptest::prelude::*;

use super::*;
use crate::app::transact::with_guards;
use crate::domain::claim::acquire;
use crate::domain::decision::{Decision, Edit, Halt};
use crate::domain::fixtures::{acquire_by, beat_of, claim_path, release_by};
use crate::domain::ids::TransactionId;
use crate::domain::path::RecordPath;
use crate::domain::record::integer;
use crate::domain::request::{Metadata, Stamp, Tenure};

const CLAIM: &str = "claims/o/r/42.json";

/// One `claim` command, stopped between reading and writing.
struct Claimer<'a> {
    lab: &'a Lab,
    request: Acquire,
    stamp: Stamp,
    first: FirstRead,
    scope: Scope,
    decided: Option<(Snapshot, Decision<Acquired>)>,
    answer: Option<Result<Acquired, Refusal>>,
}

impl<'a> Claimer<'a> {
    fn new(lab: &'a Lab, request: Acquire) -> Self {
        let (stamp, scope) = (lab.app().stamp(), Scope::of_records([claim_path()]));
        Self { lab, request, stamp, first: FirstRead::default(), scope, decided: None, answer: None }
    }

    /// Reads and decides, or writes what was decided.
    fn step(&mut self) {
        if self.answer.is_some() {
            return;
        }
        match self.decided.take() {
            None => self.read_and_decide(),
            Some((snapshot, decision)) => self.write(&snapshot, decision),
        }
    }

    fn read_and_decide(&mut self) {
        let app = self.lab.app();
        loop {
            let snapshot = app.store.snapshot(&self.scope, Freshness::Fetched, &app.deadline).unwrap();
            match acquire(&snapshot, &self.request, &self.stamp, &mut self.first) {
                Err(Halt::Read(path)) => {
                    self.scope.records.insert(path);
                }
                Err(Halt::List(prefix)) => {
                    self.scope.prefixes.insert(prefix);
                }
                Err(Halt::Refused(refusal)) => return self.answer = Some(Err(refusal)),
                Ok(decision) => return self.decided = Some((snapshot, decision)),
            }
        }
    }

    fn write(&mut self, snapshot: &Snapshot, decision: Decision<Acquired>) {
        let app = self.lab.app();
        let id = TransactionId::from_hex(self.stamp.transaction_id.clone());
        let edits = with_guards(decision.edits, snapshot);
        let transaction = Transaction { id, edits, message: String::new() };
        if app.store.commit(&transaction, &app.deadline).is_ok() {
            self.answer = Some(Ok(decision.outcome));
        }
    }
}

/// Lets the claimers go on in the order of `schedule`, then each to its end.
fn run(claimers: &mut [Claimer<'_>], schedule: &[usize]) {
    for turn in schedule {
        let count = claimers.len();
        claimers[turn % count].step();
    }
    for claimer in claimers {
        while claimer.answer.is_none() {
            claimer.step();
        }
    }
}

fn winners(claimers: &[Claimer<'_>]) -> Vec<Acquired> {
    claimers.iter().filter_map(|claimer| claimer.answer.clone()?.ok()).collect()
}

/// What the target looks like before the race.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Released,
    HeldByTheDead,
    HeldPastItsTerm,
}

fn prepare(lab: &Lab, before: Before, old_heartbeats: bool) {
    if old_heartbeats {
        for agent in ["a", "b", "c"] {
            lab.beat(&beat_of(agent));
        }
    }
    if !matches!(before, Before::Nothing) {
        lab.claim(&acquire_by("d")).unwrap();
    }
    match before {
        Before::Released => drop(lab.release(&release_by("d")).unwrap()),
        Before::HeldByTheDead => drop(lab.beat(&beat_of("d"))),
        Before::Nothing | Before::HeldPastItsTerm => {}
    }
    lab.pass(14_400);
}

fn a_beginning() -> impl Strategy<Value = Before> {
    prop_oneof![
        Just(Before::Nothing),
        Just(Before::Released),
        Just(Before::HeldByTheDead),
        Just(Before::HeldPastItsTerm)
    ]
}

fn an_instance() -> impl Strategy<Value = Option<String>> {
    prop_oneof![Just(None), Just(Some("i1".to_owned())), Just(Some("i2".to_owned()))]
}

fn a_claim() -> impl Strategy<Value = Acquire> {
    (prop_oneof![Just("a"), Just("b"), Just("c")], an_instance(), any::<bool>()).prop_map(
        |(agent, instance_id, supersede)| Acquire {
            metadata: Metadata { instance_id, ..Metadata::default() },
            supersede,
            ..acquire_by(agent)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// All have read and decided before the first writes; then they go on in any order. Their ids may be the same,
    /// their old heartbeats dead, and they may ask to supersede.
    #[test]
    fn of_simultaneous_claimers_exactly_one_is_told_that_it_won(
        before in a_beginning(),
        old_heartbeats in any::<bool>(),
        requests in prop::collection::vec(a_claim(), 1..7),
        schedule in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let lab = Lab::new();
        prepare(&lab, before, old_heartbeats);
        let mut claimers: Vec<_> = requests.into_iter().map(|request| Claimer::new(&lab, request)).collect();
        for claimer in &mut claimers {
            claimer.step();
        }
        run(&mut claimers, &schedule);
        let winners = winners(&claimers);
        prop_assert_eq!(winners.len(), 1);
        let stored = lab.read(CLAIM).unwrap();
        prop_assert_eq!(stored.object(), Some(&winners[0].record));
    }

    /// Each begins whenever it likes. Different agents, and nobody is dead yet.
    #[test]
    fn of_any_interleaving_of_different_agents_exactly_one_wins(
        before in a_beginning(),
        count in 1_usize..7,
        schedule in prop::collection::vec(any::<usize>(), 0..40),
    ) {
        let lab = Lab::new();
        prepare(&lab, before, false);
        let names = ["a", "b", "c", "e", "f", "g"];
        let mut claimers: Vec<_> =
            names[..count].iter().map(|agent| Claimer::new(&lab, acquire_by(agent))).collect();
        run(&mut claimers, &schedule);
        prop_assert_eq!(winners(&claimers).len(), 1);
        for claimer in &claimers {
            if let Some(Err(refusal)) = &claimer.answer {
                prop_assert!(refusal.message.starts_with("CLAIM_REFUSED: "), "{}", refusal);
            }
        }
    }
}

/// One worktree: an identity, the tenure it remembers, and the notes of what it printed.
struct Worker {
    agent: &'static str,
    instance: Option<&'static str>,
    tenure: Option<Tenure>,
    notes: Vec<String>,
    /// It was told of the end of the tenure it remembers.
    knows: bool,
}

impl Worker {
    fn new(agent: &'static str, instance: Option<&'static str>) -> Self {
        Self { agent, instance, tenure: None, notes: Vec::new(), knows: false }
    }

    fn metadata(&self) -> Metadata {
        let generation = self.tenure.as_ref().map(|tenure| tenure.generation);
        Metadata { instance_id: self.instance.map(str::to_owned), generation, ..Metadata::default() }
    }

    fn claim(&self, supersede: bool) -> Acquire {
        let tenure = self.tenure.clone();
        Acquire { metadata: self.metadata(), tenure, supersede, ..acquire_by(self.agent) }
    }

    fn beat(&self) -> Beat {
        let named = self.tenure.as_ref().map(|tenure| (tenure.repo.clone(), tenure.target.clone()));
        let (repo, target) = named.unzip();
        let told = self.notes.clone();
        Beat { repo, target, metadata: self.metadata(), tenure: self.tenure.clone(), told, ..beat_of(self.agent) }
    }

    fn release(&self) -> Release {
        Release { metadata: self.metadata(), ..release_by(self.agent) }
    }
}

#[derive(Debug, Clone)]
enum Act {
    Claim {
        supersede: bool,
    },
    /// `printed`: the process lives long enough to print what it has to tell and to leave its note.
    Beat {
        printed: bool,
    },
    Release,
    /// Deletes a released claim, as retention does.
    PutAway,
    Wait(u64),
}

fn an_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => any::<bool>().prop_map(|supersede| Act::Claim { supersede }),
        4 => any::<bool>().prop_map(|printed| Act::Beat { printed }),
        2 => Just(Act::Release),
        1 => Just(Act::PutAway),
        3 => prop_oneof![Just(60), Just(1_800), Just(4_000), Just(15_000)].prop_map(Act::Wait),
    ]
}

/// The history, and what has to be true of it so far.
struct History {
    lab: Lab,
    workers: Vec<Worker>,
    highest: i64,
}

impl History {
    fn new() -> Self {
        let workers = vec![
            Worker::new("a", None),
            Worker::new("b", Some("i1")),
            Worker::new("b", Some("i2")),
            Worker::new("b", None),
            Worker::new("c", None),
        ];
        Self { lab: Lab::new(), workers, highest: 0 }
    }

    fn stored_generation(&self) -> Option<i64> {
        self.lab.read(CLAIM)?.object().and_then(|claim| integer(claim, "generation"))
    }

    /// The worker's tenure ended by somebody else's acquisition.
    fn is_displaced(&self, worker: usize) -> bool {
        self.workers[worker].tenure.as_ref().is_some_and(|tenure| self.highest > tenure.generation)
    }

    fn act(&mut self, worker: usize, act: &Act) -> Result<(), TestCaseError> {
        self.lab.pass(1);
        match act {
            Act::Claim { supersede } => self.claim(worker, *supersede)?,
            Act::Beat { printed } => self.beat(worker, *printed)?,
            Act::Release => self.release(worker)?,
            Act::PutAway => self.put_away(),
            Act::Wait(seconds) => self.lab.pass(*seconds),
        }
        let now = self.stored_generation();
        prop_assert!(now.is_none_or(|now| now == self.highest), "{now:?} after {}", self.highest);
        Ok(())
    }

    fn claim(&mut self, worker: usize, supersede: bool) -> Result<(), TestCaseError> {
        let displaced = self.is_displaced(worker);
        let Ok(acquired) = self.lab.claim(&self.workers[worker].claim(supersede)) else { return Ok(()) };
        let generation = acquired.generation.unwrap();
        if acquired.way == crate::domain::claim::Way::Renewed {
            prop_assert_eq!(generation, self.highest, "a renewal keeps the generation");
            prop_assert!(!displaced, "a displaced holder does not renew");
        } else {
            prop_assert!(generation > self.highest, "an acquisition is above all before it");
            prop_assert!(!displaced || acquired.lost_tenure.is_some(), "a later claim says what was lost");
        }
        self.highest = generation;
        self.workers[worker].tenure = acquired.tenure;
        self.workers[worker].knows = false;
        Ok(())
    }

    fn beat(&mut self, worker: usize, printed: bool) -> Result<(), TestCaseError> {
        let displaced = self.is_displaced(worker);
        let beaten = self.lab.beat(&self.workers[worker].beat());
        let worker = &mut self.workers[worker];
        if worker.tenure.is_some() {
            prop_assert!(!displaced || worker.knows || beaten.lost.is_some(), "a displaced holder is told");
            prop_assert!(displaced || beaten.lost.is_none(), "a holder is left in peace: {:?}", beaten.lost);
        }
        if printed {
            worker.knows |= beaten.lost.is_some();
            worker.notes.extend(beaten.note);
        }
        Ok(())
    }

    fn release(&mut self, worker: usize) -> Result<(), TestCaseError> {
        if self.workers[worker].tenure.is_none() {
            return Ok(());
        }
        let displaced = self.is_displaced(worker);
        let answer = self.lab.release(&self.workers[worker].release());
        prop_assert!(!displaced || answer.is_err(), "a displaced holder gives nothing back");
        if answer.is_ok() {
            self.workers[worker].tenure = None;
        }
        Ok(())
    }

    fn put_away(&mut self) {
        let Some(claim) = self.lab.read(CLAIM).filter(|claim| claim.text("status") == Some("released")) else { return };
        let edits = vec![Edit::Delete { path: RecordPath::parse(CLAIM).unwrap(), version: claim.version }];
        let app = self.lab.app();
        let transaction = Transaction { id: TransactionId::from_hex("gc"), edits, message: String::new() };
        app.store.commit(&transaction, &app.deadline).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generations_never_fall_and_the_displaced_are_told_at_their_next_write(
        acts in prop::collection::vec((0_usize..5, an_act()), 1..60),
    ) {
        let mut history = History::new();
        for (worker, act) in &acts {
            history.act(*worker, act)?;
        }
    }
}
