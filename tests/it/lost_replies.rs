//! Contract 6 of the store: a push whose reply is lost is looked up, never doubled, and never called lost too early.

use std::time::Duration;

use agent_coord::domain::decision::Edit;
use agent_coord::domain::ids::BatchId;
use agent_coord::domain::path::Prefix;
use agent_coord::domain::record::integer;
use agent_coord::store::{CommitError, Receipt};
use serde_json::json;

use crate::conformance::backends::open_clones;
use crate::conformance::client::{Client, append, assert_conflict, claim, create, delete, members, path, replace};
use crate::support::within::within;
use crate::support::{HttpRemote, Manners, TestEnv};

/// What a command may take beyond its deadline: the grace of a killed git, twice, and a slow machine.
const GRACE: Duration = Duration::from_secs(4);

#[test]
fn a_push_that_landed_without_a_reply_is_a_success_and_is_counted_once() {
    for lost in [1, 2] {
        let team = Team::new(2);
        team.server.behave(Manners::LosePushReplies(lost));
        let given = team.clients[0].commit(claim_with_event("a", 1));
        assert!(given.is_ok(), "the claim landed, and was found to have: {given:?}");
        team.server.behave(Manners::Serve);
        let stored = team.clients[1].present(&path(CLAIM));
        assert_eq!((stored.text("agent_id"), stored.annotations.revision), (Some("a"), 1));
        assert_eq!(team.events(1), 1, "its event is there once");
        assert_conflict(&team.clients[1].commit(claim_with_event("b", 1)), &path(CLAIM));
    }
}

#[test]
fn an_edit_and_a_delete_that_landed_without_a_reply_are_successes() {
    let team = Team::new(2);
    let first = team.clients[0].make(&path(CLAIM), claim("a", 1));
    team.server.behave(Manners::LosePushReplies(1));
    let given = team.clients[0].commit(vec![replace(&first, claim("a", 2))]);
    assert!(given.is_ok(), "{given:?}");
    let second = team.clients[1].present(&path(CLAIM));
    assert_eq!(second.annotations.revision, 2, "it was written exactly once");
    team.server.behave(Manners::LosePushReplies(1));
    let given = team.clients[1].commit(vec![delete(&second)]);
    assert!(given.is_ok(), "{given:?}");
    assert_eq!(team.clients[0].read(&path(CLAIM)), None);
}

#[test]
fn a_server_that_lets_pushes_land_and_hangs_does_not_hide_that_they_landed() {
    let team = Team::new(2);
    team.server.behave(Manners::HangAfterPush);
    let patience = Duration::from_secs(5);
    let given = within(patience + GRACE, || team.clients[0].commit_within(claim_with_event("a", 1), patience));
    assert!(given.is_ok(), "the claim landed, and was found to have: {given:?}");
    team.server.behave(Manners::Serve);
    assert_eq!(team.clients[1].present(&path(CLAIM)).text("agent_id"), Some("a"));
    assert_eq!(team.events(1), 1);
}

#[test]
fn a_server_that_never_answers_leaves_the_outcome_unknown() {
    let team = Team::new(2);
    team.server.behave(Manners::Hang);
    let patience = Duration::from_secs(2);
    let given = within(patience + GRACE, || team.clients[0].commit_within(claim_with_event("a", 1), patience));
    assert!(matches!(given, Err(CommitError::Unknown(_))), "unknown is neither won nor lost: {given:?}");
    team.server.behave(Manners::Serve);
    assert_eq!(team.clients[1].read(&path(CLAIM)), None);
}

/// A push can land after its client gave up. Until one of its leases has moved, "not there" is no answer.
#[test]
fn a_push_that_stalls_beyond_the_deadline_is_not_called_lost() {
    let team = Team::new(2);
    team.server.behave(Manners::DelayPushes(Duration::from_secs(4)));
    let patience = Duration::from_secs(2);
    let given = within(patience + GRACE, || team.clients[0].commit_within(claim_with_event("a", 1), patience));
    assert!(matches!(given, Err(CommitError::Unknown(_))), "it may still land: {given:?}");
    team.server.behave(Manners::Serve);
    std::thread::sleep(Duration::from_secs(4));
    let stored = team.clients[1].present(&path(CLAIM));
    assert_eq!((stored.text("agent_id"), stored.annotations.revision), (Some("a"), 1), "and it did land, once");
    assert_eq!(team.events(1), 1);
}

/// The stalled push lands late; meanwhile the same client decided again. One of the two may be there, never both.
#[test]
fn a_stalled_push_cannot_land_over_what_came_after_it() {
    let team = Team::new(2);
    team.server.behave(Manners::DelayPushes(Duration::from_secs(3)));
    let given = team.clients[0].commit_within(vec![create(&path(CLAIM), claim("a", 1))], Duration::from_secs(1));
    assert!(matches!(given, Err(CommitError::Unknown(_))), "{given:?}");
    team.server.behave(Manners::Serve);
    let b = team.clients[1].commit(vec![create(&path(CLAIM), claim("b", 1))]);
    std::thread::sleep(Duration::from_secs(4));
    let stored = team.clients[1].present(&path(CLAIM));
    match b {
        Ok(_) => assert_eq!(stored.text("agent_id"), Some("b"), "what was acknowledged stays"),
        Err(CommitError::Conflict { .. }) => assert_eq!(stored.text("agent_id"), Some("a")),
        other => panic!("a healthy server answers: {other:?}"),
    }
    assert_eq!(stored.annotations.revision, 1);
}

#[test]
fn raising_one_counter_over_a_server_that_loses_every_other_reply_loses_no_step() {
    let team = Team::new(3);
    let at = path("batches/counter.json");
    team.clients[0].must(create(&at, members(json!({ "count": 0 }))));
    team.server.behave(Manners::LosePushReplies(6));
    let steps: Vec<Vec<Known>> = crate::support::together::together(
        team.clients.iter().map(|client| || (0..4).map(|_| raise_once(client)).collect()).collect(),
    );
    team.server.behave(Manners::Serve);
    let steps: Vec<Known> = steps.into_iter().flatten().collect();
    let (sure, open) = (of(&steps, Known::Landed), of(&steps, Known::Open));
    let count = integer(team.clients[0].present(&at).object().expect("a counter"), "count").expect("a count");
    let count = usize::try_from(count).expect("a count is positive");
    assert!((sure..=sure + open).contains(&count), "{sure} steps landed, {open} are open, the counter says {count}");
}

#[derive(PartialEq)]
enum Known {
    Landed,
    Lost,
    Open,
}

fn of(steps: &[Known], kind: Known) -> usize {
    steps.iter().filter(|step| **step == kind).count()
}

fn raise_once(client: &Client) -> Known {
    let current = client.present(&path("batches/counter.json"));
    let next = integer(current.object().expect("a counter"), "count").expect("a count") + 1;
    match client.commit(vec![replace(&current, members(json!({ "count": next })))]) {
        Ok(Receipt { .. }) => Known::Landed,
        Err(CommitError::Conflict { .. } | CommitError::Failed(_)) => Known::Lost,
        Err(CommitError::Unknown(_)) => Known::Open,
    }
}

const CLAIM: &str = "claims/o/r/1.json";

fn claim_with_event(agent: &str, generation: i64) -> Vec<Edit> {
    let event = members(json!({ "type": "claim.acquired", "agent_id": agent }));
    vec![create(&path(CLAIM), claim(agent, generation)), append(&format!("events/b1/{agent}-{generation}.json"), event)]
}

/// Clones of one remote behind a server whose manners can be changed.
struct Team {
    clients: Vec<Client>,
    server: HttpRemote,
    _env: TestEnv,
}

impl Team {
    fn new(count: usize) -> Self {
        let env = TestEnv::new();
        let bare = env.git().remote("team.git");
        let server = HttpRemote::start(&env);
        let clients = open_clones(&env, &server.url(&bare), count);
        Self { clients, server, _env: env }
    }

    fn events(&self, client: usize) -> usize {
        let batch = BatchId::parse("batch-id", "b1").expect("a batch");
        self.clients[client].list(&Prefix::events_of(&batch)).records.len()
    }
}
