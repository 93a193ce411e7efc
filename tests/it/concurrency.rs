//! Many processes, one claim: exactly one is told it won, and everybody else is told who did.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::support::shared::{REPO, agent, assert_all_agree, assert_every_ref_parses, only_winner, race_for};
use crate::support::shared::{claim_at, holder};
use crate::support::together::{one_at_a_time, race};
use crate::support::{Shared, TestEnv};

const CLAIMERS: usize = 16;
const ROUNDS: usize = 20;

#[test]
fn of_sixteen_clones_racing_through_a_file_remote_exactly_one_wins() {
    let _alone = one_at_a_time();
    race_in_clones(&patient(Shared::over_files(CLAIMERS)));
}

#[test]
fn of_sixteen_clones_racing_over_smart_http_exactly_one_wins() {
    let _alone = one_at_a_time();
    race_in_clones(&patient(Shared::over_http(CLAIMERS)));
}

/// Sixteen claimers on two cores are slow, and their deadline is not what these tests are about.
fn patient(mut team: Shared) -> Shared {
    team.env.set("AGENT_COORD_TIMEOUT", "90");
    team
}

fn race_in_clones(team: &Shared) {
    let mut holders = Vec::new();
    for round in 0..ROUNDS {
        let target = format!("t{round}");
        let winner = race_for(&team.env, &team.clones, &target);
        assert_eq!(team.holder(&target), Some(agent(winner)), "the remote holds what the winner was told");
        let claim = claim_at(team.git(), &team.bare, &target).expect("the claim is there");
        assert_eq!(claim["$store"]["revision"], 1, "the claim was written once, not once per claimer");
        assert_eq!(claim["generation"], 1);
        holders.push((target, agent(winner)));
    }
    assert_all_agree(&team.env, &team.clones, &holders);
    assert_one_target_is_seen_by_all(team, &holders[ROUNDS - 1]);
    assert_every_ref_parses(team.git(), &team.bare);
}

fn assert_one_target_is_seen_by_all(team: &Shared, (target, holder): &(String, String)) {
    for clone in &team.clones {
        let ran = team.env.run(clone, ["status", "--repo", REPO, "--target", target, "--json"]).ok();
        assert_eq!(ran.json()["claims"][0]["agent_id"], holder.as_str());
    }
}

#[test]
fn of_sixteen_worktrees_of_one_clone_exactly_one_wins() {
    let _alone = one_at_a_time();
    let (env, worktrees) = worktrees();
    race_in_worktrees(&env, &worktrees, 0..ROUNDS);
}

#[test]
fn exactly_one_wins_while_git_packs_refs_and_collects_garbage() {
    let _alone = one_at_a_time();
    let (env, worktrees) = worktrees();
    let (done, passes) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                env.git().run(&worktrees[0], "pack-refs --all");
                env.git().run(&worktrees[0], "gc --quiet");
                passes.fetch_add(1, Ordering::SeqCst);
            }
        });
        let stop = StopWhenDropped(&done);
        race_in_worktrees(&env, &worktrees, 0..ROUNDS / 2);
        drop(stop);
    });
    assert!(passes.load(Ordering::SeqCst) > 0, "git packed at least once meanwhile");
}

/// Lets the other thread end also when an assertion fails.
struct StopWhenDropped<'a>(&'a AtomicBool);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn worktrees() -> (TestEnv, Vec<PathBuf>) {
    let mut env = TestEnv::new();
    env.set("AGENT_COORD_TIMEOUT", "90");
    let clone = env.git().repository("clone");
    // The first command here says that only this clone sees the state; a read leaves the store unmade.
    env.coord(&clone, "status").ok();
    let linked = (1..CLAIMERS).map(|number| env.git().worktree(&clone, &format!("tree{number}")));
    let all = std::iter::once(clone.clone()).chain(linked).collect();
    (env, all)
}

fn race_in_worktrees(env: &TestEnv, worktrees: &[PathBuf], rounds: std::ops::Range<usize>) {
    let mut holders = Vec::new();
    for round in rounds {
        let target = format!("t{round}");
        let winner = race_for(env, worktrees, &target);
        assert_eq!(holder(env.git(), &worktrees[0], &target), Some(agent(winner)));
        holders.push((target, agent(winner)));
    }
    assert_all_agree(env, worktrees, &holders);
    assert_every_ref_parses(env.git(), &worktrees[0]);
}

/// Trap 11: the same agent id on many machines. Without instances nobody can tell the processes apart, so the losers
/// are not told "refused by yourself" but that the outcome is not theirs to use.
#[test]
fn one_agent_id_racing_itself_without_instances_wins_once_and_contends_otherwise() {
    let _alone = one_at_a_time();
    let team = patient(Shared::over_files(CLAIMERS));
    for round in 0..4 {
        let target = format!("t{round}");
        let commands = team
            .clones
            .iter()
            .map(|clone| team.env.agent_coord(clone, ["claim", &target, "--repo", REPO, "--agent-id", "same"]));
        let ended = race(&team.env, commands.collect());
        let winner = only_winner(&ended, &target);
        let message = format!(
            "claim write contention for {REPO}#{target}; state already exists at claims/{REPO}/{target}.json\n"
        );
        for (number, ran) in ended.into_iter().enumerate().filter(|(number, _)| *number != winner) {
            let ran = ran.expect_error(2);
            assert_eq!(ran.stderr, message, "claimer {number}");
        }
        let claim = claim_at(team.git(), &team.bare, &target).expect("the claim is there");
        assert_eq!(claim["$store"]["revision"], 1, "nobody renewed what was not there when it first looked");
    }
}

#[test]
fn one_agent_id_racing_itself_with_instances_wins_once_and_is_refused_otherwise() {
    let _alone = one_at_a_time();
    let team = patient(Shared::over_files(CLAIMERS));
    for round in 0..4 {
        let target = format!("t{round}");
        let commands = team.clones.iter().enumerate().map(|(number, clone)| {
            let instance = format!("i{number}");
            let arguments = ["claim", &target, "--repo", REPO, "--agent-id", "same", "--instance-id", &instance];
            team.env.agent_coord(clone, arguments)
        });
        let ended = race(&team.env, commands.collect());
        let winner = only_winner(&ended, &target);
        let refusal = format!("CLAIM_REFUSED: active claim for {REPO}#{target} held by same");
        for (_, ran) in ended.into_iter().enumerate().filter(|(number, _)| *number != winner) {
            let _ = ran.expect_error(3).expect_stderr(&refusal);
        }
        let claim = claim_at(team.git(), &team.bare, &target).expect("the claim is there");
        assert_eq!(claim["instance_id"], format!("i{winner}"));
    }
}

/// Many agents at work on targets of their own do not get in each other's way, and none of their writes is lost.
#[test]
fn many_agents_beat_and_release_side_by_side_and_nothing_is_lost() {
    let _alone = one_at_a_time();
    let team = patient(Shared::over_files(8));
    let step = |line: &dyn Fn(usize) -> String| {
        let lines: Vec<String> = (0..8).map(line).collect();
        let commands = team.clones.iter().zip(&lines).map(|(clone, line)| team.env.agent_coord(clone, line.split(' ')));
        for ran in race(&team.env, commands.collect()) {
            ran.ok();
        }
    };
    step(&|number| format!("claim t{number} --repo o/r --agent-id w{number} --batch-id b1"));
    step(&|number| format!("heartbeat --agent-id w{number} --batch-id b1 --phase implementing"));
    step(&|number| format!("record-event --batch-id b1 --type note --message hello{number}"));
    step(&|number| format!("release t{number} --repo o/r --agent-id w{number}"));
    let status = team.run(0, "status --json").ok().json();
    let rows = |name: &str| status[name].as_array().map_or(0, Vec::len);
    assert_eq!((rows("claims"), rows("heartbeats")), (8, 8));
    let kinds = |kind: &str| {
        let events = status["events"].as_array().expect("events are a list");
        events.iter().filter(|event| event["type"] == kind).count()
    };
    assert_eq!((kinds("claim.acquired"), kinds("note"), kinds("claim.released")), (8, 8, 8));
    assert_every_ref_parses(team.git(), &team.bare);
}
