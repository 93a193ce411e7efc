//! The contract under simultaneous clients.

use agent_coord::domain::ids::BatchId;
use agent_coord::domain::path::Prefix;
use agent_coord::domain::record::{Stored, integer};
use agent_coord::store::{CommitError, Receipt};
use serde_json::json;

use super::client::{Backend, Client, PATIENCE, Team, append, claim, create, delete, members, path, replace};
use super::with_clients;
use crate::support::together::together;

/// Contract 1 for creations. The bytes differ in nothing but the transaction's id.
pub fn of_many_creators_of_equal_bytes_one_wins(backend: &Backend) {
    with_clients(backend, 8, |team| {
        for round in 0..backend.effort {
            let at = path(&format!("claims/o/r/{round}.json"));
            let given = all_at_once(team, |client| client.commit(vec![create(&at, claim("same", 1))]));
            assert_one_winner(&given, round);
            let written = team.clients[0].present(&at);
            for client in &team.clients {
                assert_eq!(client.present(&at), written, "everyone sees what the winner wrote");
                if client.abilities().fencing {
                    assert_eq!(client.present(&at).annotations.revision, 1, "it was written exactly once");
                }
            }
        }
    });
}

/// Contract 1 for edits, which a store can mistake for "nothing to do" when the bytes are equal.
pub fn of_many_editors_of_equal_bytes_one_wins(backend: &Backend) {
    with_clients(backend, 8, |team| {
        let at = path("claims/o/r/1.json");
        team.clients[0].must(create(&at, claim("before", 1)));
        for round in 0..backend.effort {
            let generation = i64::try_from(round).expect("few rounds") + 2;
            let before: Vec<Stored> = team.clients.iter().map(|client| client.present(&at)).collect();
            assert!(before.windows(2).all(|pair| pair[0].version == pair[1].version), "all begin from one state");
            let jobs: Vec<_> = team
                .clients
                .iter()
                .zip(&before)
                .map(|(client, seen)| move || client.commit(vec![replace(seen, claim("same", generation))]))
                .collect();
            assert_one_winner(&together(jobs), round);
            let after = team.clients[0].present(&at);
            assert_ne!(after.version, before[0].version, "it was written");
            if team.clients[0].abilities().fencing {
                assert_eq!(after.annotations.revision, before[0].annotations.revision + 1, "and exactly once");
            }
        }
    });
}

/// Contract 1 for reservations: each closeout brings a record along, and only the winner's lands.
pub fn of_many_closeouts_of_a_lane_one_reserves_it(backend: &Backend) {
    with_clients(backend, 6, |team| {
        for round in 0..backend.effort {
            let reservation = path(&format!("events/b{round}/lane_closed-0f5a0caebfed6139.json"));
            let close = |client: &Client| {
                client
                    .commit(vec![create(&reservation, members(json!({ "event_id": "lane_closed-0f5a0caebfed6139" })))])
            };
            assert_one_winner(&all_at_once(team, close), round);
            let seen = team.clients[0].present(&reservation);
            team.clients.iter().for_each(|client| assert_eq!(client.present(&reservation), seen));
        }
    });
}

/// Clients whose clocks stand still and whose ids are counted write the very same bytes.
pub fn of_many_writers_of_the_very_same_bytes_one_wins(backend: &Backend) {
    const FROZEN: &str = "000102030405060708090a0b0c0d0e0f";
    with_clients(backend, 4, |team| {
        for round in 0..backend.effort {
            let at = path(&format!("claims/o/r/{round}.json"));
            let commit = |client: &Client, edit| client.commit_as(FROZEN, vec![edit], PATIENCE);
            let given = all_at_once(team, |client| commit(client, create(&at, claim("same", 1))));
            assert_one_winner(&given, round);
            let seen = team.clients[0].present(&at);
            team.clients.iter().for_each(|client| assert_eq!(client.present(&at), seen));
            let given = all_at_once(team, |client| commit(client, replace(&seen, claim("same", 2))));
            assert_one_winner(&given, round);
        }
    });
}

pub fn many_threads_raise_one_counter_and_no_step_is_lost(backend: &Backend) {
    const CLIENTS: usize = 5;
    with_clients(backend, CLIENTS, |team| {
        let at = path("batches/counter.json");
        team.clients[0].must(create(&at, members(json!({ "count": 0 }))));
        all_at_once(team, |client| (0..backend.effort).for_each(|_| client.raise(&at)));
        let stored = team.clients[0].present(&at);
        let count = stored.object().and_then(|members| integer(members, "count"));
        assert_eq!(count, i64::try_from(CLIENTS * backend.effort).ok(), "every acknowledged step is in the total");
    });
}

/// Contract 4 under a race: the event of a claim is there if and only if the claim was won.
pub fn a_loser_leaves_no_event_behind(backend: &Backend) {
    with_clients(backend, 6, |team| {
        for round in 0..backend.effort {
            let at = path(&format!("claims/o/r/{round}.json"));
            let batch = format!("b{round}");
            let jobs: Vec<_> = team
                .clients
                .iter()
                .enumerate()
                .map(|(number, client)| {
                    let (at, batch) = (&at, &batch);
                    move || {
                        let agent = format!("a{number}");
                        let event = members(json!({ "agent_id": agent, "type": "claim.acquired" }));
                        let event = append(&format!("events/{batch}/e{number}.json"), event);
                        client.commit(vec![create(at, claim(&agent, 1)), event])
                    }
                })
                .collect();
            let winner = assert_one_winner(&together(jobs), round);
            let client = &team.clients[(winner + 1) % team.clients.len()];
            assert_eq!(client.present(&at).text("agent_id"), Some(format!("a{winner}").as_str()));
            let events = client.list(&Prefix::events_of(&BatchId::parse("batch-id", &batch).expect("a batch")));
            let agents: Vec<Option<&str>> = events.records.iter().map(|event| event.text("agent_id")).collect();
            assert_eq!(agents, [Some(format!("a{winner}").as_str())], "one event, and it is the winner's");
        }
    });
}

pub fn events_of_many_writers_all_arrive(backend: &Backend) {
    const CLIENTS: usize = 6;
    with_clients(backend, CLIENTS, |team| {
        let jobs: Vec<_> = team
            .clients
            .iter()
            .enumerate()
            .map(|(number, client)| {
                move || {
                    for count in 0..backend.effort {
                        let at = format!("events/b1/w{number}-{count:02}.json");
                        client.must(append(&at, members(json!({ "writer": number, "count": count }))));
                    }
                }
            })
            .collect();
        together(jobs);
        let prefix = Prefix::events_of(&BatchId::parse("batch-id", "b1").expect("a batch"));
        for client in &team.clients {
            assert_eq!(client.list(&prefix).records.len(), CLIENTS * backend.effort, "nothing acknowledged is lost");
        }
    });
}

/// A fold or release of a claim against its renewal: whichever comes second must be told.
pub fn delete_and_renew_never_both_win(backend: &Backend) {
    with_clients(backend, 2, |team| {
        for round in 0..backend.effort {
            let at = path(&format!("claims/o/r/{round}.json"));
            let seen = team.clients[0].make(&at, claim("a", 1));
            team.clients[1].present(&at);
            type Job<'a> = Box<dyn FnOnce() -> Result<Receipt, CommitError> + Send + 'a>;
            let jobs: Vec<Job<'_>> = vec![
                Box::new(|| team.clients[0].commit(vec![replace(&seen, claim("a", 2))])),
                Box::new(|| team.clients[1].commit(vec![delete(&seen)])),
            ];
            let given = together(jobs);
            let winner = assert_one_winner(&given, round);
            assert_eq!(team.clients[0].read(&at).is_some(), winner == 0, "the state is what the winner made of it");
        }
    });
}

fn all_at_once<T: Send>(team: &Team, job: impl Fn(&Client) -> T + Sync) -> Vec<T> {
    let job = &job;
    together(team.clients.iter().map(|client| move || job(client)).collect())
}

/// Returns which job won; the others must all have been told that they did not.
#[track_caller]
fn assert_one_winner(given: &[Result<Receipt, CommitError>], round: usize) -> usize {
    let winners: Vec<usize> = (0..given.len()).filter(|&number| given[number].is_ok()).collect();
    assert_eq!(winners.len(), 1, "round {round}: exactly one is told it won: {given:?}");
    let told = given.iter().filter(|given| matches!(given, Err(CommitError::Conflict { .. }))).count();
    assert_eq!(told, given.len() - 1, "round {round}: the others are told that they lost: {given:?}");
    winners[0]
}
