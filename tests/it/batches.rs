//! Batches of a team: closeouts that race, drains that other clones see, and what a lost reply leaves.

use serde_json::{Value, json};

use crate::support::shared::assert_every_ref_parses;
use crate::support::together::{one_at_a_time, race};
use crate::support::{Manners, Ran, Shared};

const RESERVATION: &str = "closures/b1/lane_closed-10e08a419e850eba.json";

/// Registers `b1` through member 0: backend of w1 on 42, docs of w2 on 43.
fn register(team: &Shared) {
    let manifest = json!({"batch_id": "b1", "repo": "o/r", "lanes": [
        {"name": "backend", "owner": "w1", "targets": ["42"]}, {"name": "docs", "owner": "w2", "targets": ["43"]}
    ]});
    std::fs::write(team.clones[0].join("b1.json"), manifest.to_string()).expect("a manifest");
    team.run(0, "register-batch --file b1.json").ok();
}

/// Returns a record as the remote itself has it, whatever any clone thinks.
fn on_remote(team: &Shared, path: &str) -> Option<Value> {
    let name = format!("refs/agent-coord/{path}");
    let ran = team.git().attempt(&team.bare, ["cat-file", "blob", &name]);
    (ran.code == 0).then(|| ran.json())
}

fn close(terminal: &str) -> String {
    format!("record-event --batch-id b1 --type lane_closed --agent-id w1 --repo o/r --target 42 --terminal {terminal}")
}

fn close_everywhere(team: &Shared, terminal: impl Fn(usize) -> &'static str) -> Vec<Ran> {
    let line = |number| close(terminal(number));
    let lines = (0..team.clones.len()).map(|number| (number, line(number)));
    let commands = lines.map(|(number, line)| team.env.agent_coord(&team.clones[number], line.split_whitespace()));
    race(&team.env, commands.collect())
}

#[test]
fn of_many_equal_closeouts_one_records_and_the_others_are_told_it_is_closed() {
    let _busy = one_at_a_time();
    let team = Shared::over_files(5);
    register(&team);
    let ended = close_everywhere(&team, |_| "done");
    let recorded = ended.iter().filter(|ran| ran.stdout.starts_with("recorded event b1 ")).count();
    assert_eq!(recorded, 1, "{ended:?}");
    assert!(ended.iter().all(|ran| ran.code == 0), "saying the same is no error: {ended:?}");
    assert_every_ref_parses(team.git(), &team.bare);
}

#[test]
fn of_many_different_closeouts_the_first_is_authoritative_and_reservation_and_lane_agree() {
    let _busy = one_at_a_time();
    let team = Shared::over_files(5);
    register(&team);
    let ended = close_everywhere(&team, |number| ["done", "abandoned", "superseded"][number % 3]);
    let recorded: Vec<&Ran> = ended.iter().filter(|ran| ran.stdout.starts_with("recorded event b1 ")).collect();
    assert_eq!(recorded.len(), 1, "{ended:?}");
    let conflict = "conflicting terminal closeout for lane backend; first closeout is authoritative\n";
    let in_words =
        |ran: &Ran| ran.code == 1 && ran.stderr == conflict || ran.stdout == "lane already closed for o/r#42\n";
    assert!(ended.iter().filter(|ran| !recorded.contains(ran)).all(in_words), "{ended:?}");
    let reserved = on_remote(&team, RESERVATION).expect("the lane is closed");
    let batch = on_remote(&team, "batches/b1.json").expect("the batch is there");
    assert_eq!(batch["lanes"][0]["terminal"], reserved["terminal"]);
    assert_eq!(batch["lanes"][0]["closed_at"], reserved["at"]);
    assert_eq!(batch["lanes"][1].get("terminal"), None, "the other lane is nobody's business");
}

#[test]
fn the_lanes_of_one_batch_close_at_the_same_time_and_none_is_lost() {
    let _busy = one_at_a_time();
    let team = Shared::over_files(2);
    register(&team);
    let line = |agent: &str, target: &str| close("done").replace("w1", agent).replace("42", target);
    let lines = [line("w1", "42"), line("w2", "43")];
    let commands =
        lines.iter().zip(&team.clones).map(|(line, clone)| team.env.agent_coord(clone, line.split_whitespace()));
    race(&team.env, commands.collect()).into_iter().for_each(|ran| drop(ran.ok()));
    let batch = on_remote(&team, "batches/b1.json").expect("the batch is there");
    assert_eq!(batch["status"], "completed", "{batch}");
}

#[test]
fn a_closeout_whose_reply_was_lost_is_a_success_that_happened_once() {
    let team = Shared::over_http(2);
    register(&team);
    team.run(0, "claim 42 --agent-id w1 --batch-id b1").ok();
    team.server().behave(Manners::LosePushReplies(1));
    let ran = team.run(0, "release 42 --agent-id w1 --terminal done").ok();
    assert_eq!(ran.stdout, "released o/r#42 by w1\n");
    team.server().behave(Manners::Serve);
    let again = team.run(1, "release 42 --agent-id w1 --terminal done").ok();
    assert_eq!(again.stdout, "lane already closed for o/r#42\n", "another clone finds all of it");
    let ids = [RESERVATION, "batches/b1.json", "claims/o/r/42.json"]
        .map(|path| on_remote(&team, path).expect("it landed")["$store"]["transaction_id"].clone());
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "all of one transaction: {ids:?}");
}

#[test]
fn a_claim_from_an_old_cache_is_refused_by_a_drain_it_has_never_seen() {
    let team = Shared::over_files(2);
    register(&team);
    team.run(1, "sync").ok();
    team.run(0, "drain --batch-id b1 --reason stop").ok();
    let refused = team.run(1, "claim 43 --agent-id w2 --batch-id b1").expect_error(3);
    assert_eq!(refused.stderr, "CLAIM_REFUSED: lane docs of batch b1 is drained: stop\n");
    assert_eq!(team.holder("43"), None);
}

#[test]
fn a_worker_elsewhere_hears_of_a_drain_at_its_next_beat() {
    let team = Shared::over_files(2);
    register(&team);
    team.run(1, "claim 43 --agent-id w2 --batch-id b1").ok();
    team.run(1, "heartbeat 43 --agent-id w2 --batch-id b1").ok();
    team.run(0, "drain --batch-id b1 --lane docs --reason stop").ok();
    let ran = team.run(1, "heartbeat --agent-id w2").ok();
    assert_eq!(ran.stderr, "warning: lane docs of batch b1 is drained: stop\n");
    team.run(0, "register-batch --file b1.json").ok();
    team.run(1, "heartbeat --agent-id w2").ok().expect_stderr("is drained: stop");
    team.run(0, "drain --batch-id b1 --lane docs --cancel").ok();
    assert_eq!(team.run(1, "heartbeat --agent-id w2").ok().stderr, "");
}

#[test]
fn a_clone_that_never_saw_the_batch_hears_of_its_drain_all_the_same() {
    let team = Shared::over_files(2);
    register(&team);
    team.run(0, "drain --batch-id b1 --reason stop").ok();
    let ran = team.run(1, "heartbeat 43 --agent-id w2 --batch-id b1").ok();
    assert_eq!(ran.stderr, "warning: lane docs of batch b1 is drained: stop\n");
}

#[test]
fn every_clone_sorts_and_audits_the_same() {
    let team = Shared::over_files(2);
    register(&team);
    team.run(0, "claim 42 --agent-id w1 --batch-id b1").ok();
    let waiting = "ready\n- lane docs owner w2 targets 43\nwaiting\n\
                   - lane backend owner w1 targets 42 claim on 42 held by w1 no-heartbeat\n";
    assert_eq!(team.run(1, "ready --batch-id b1").ok().stdout, waiting);
    team.run(0, "release 42 --agent-id w1 --terminal done --host codex").ok();
    let audit = team.run(1, "batch-audit --batch-id b1").expect_code(1);
    assert_eq!(
        audit.stdout,
        "batch-audit b1 incomplete\n- lane backend owner w1 complete\n\
         - lane docs owner w2 incomplete missing claim.acquired,terminal\n"
    );
}
