//! A displaced holder is told at its next write, whichever write that is (design.md section 4, "Being told").

use std::path::PathBuf;

use serde_json::Value;

use crate::support::shared::{claim_at, holder};
use crate::support::{Git, Ran, Shared, TestEnv};

/// Two members of one store, in one clone or through a remote.
struct Two {
    shared: Option<Shared>,
    alone: Option<TestEnv>,
    first: PathBuf,
    second: PathBuf,
    arbiter: PathBuf,
}

const DAY: i64 = 86_400;

impl Two {
    fn through_a_remote() -> Self {
        let shared = Shared::over_files(2);
        let (first, second, arbiter) = (shared.clones[0].clone(), shared.clones[1].clone(), shared.bare.clone());
        Self { shared: Some(shared), alone: None, first, second, arbiter }
    }

    fn in_one_clone() -> Self {
        let env = TestEnv::new();
        let first = env.git().repository("clone");
        let second = env.git().worktree(&first, "tree");
        Self { shared: None, alone: Some(env), arbiter: first.clone(), first, second }
    }

    fn env(&self) -> &TestEnv {
        self.shared.as_ref().map(|shared| &shared.env).or(self.alone.as_ref()).expect("one of both")
    }

    fn git(&self) -> Git<'_> {
        self.env().git()
    }

    fn first(&self, line: &str) -> Ran {
        self.env().coord(&self.first, line)
    }

    fn second(&self, line: &str) -> Ran {
        self.env().coord(&self.second, line)
    }

    /// Lets the first member claim and beat a day ago, and be silent since.
    fn first_died_holding(&self, target: &str) {
        self.env().in_the_past(&self.first, DAY, &format!("claim {target} --repo o/r --agent-id a")).ok();
        self.env().in_the_past(&self.first, DAY, &format!("heartbeat --agent-id a --repo o/r --target {target}")).ok();
    }

    fn holder(&self, target: &str) -> Option<String> {
        holder(self.git(), &self.arbiter, target)
    }

    fn claim(&self, target: &str) -> Value {
        claim_at(self.git(), &self.arbiter, target).expect("the claim is there")
    }

    fn row(&self, agent: &str) -> Value {
        serde_json::from_str(&self.git().show(&self.arbiter, &format!("heartbeats/{agent}.json"))).expect("a row")
    }
}

fn both(check: impl Fn(&Two)) {
    check(&Two::in_one_clone());
    check(&Two::through_a_remote());
}

#[test]
fn a_dead_holder_is_taken_over_and_told_by_its_next_beat() {
    both(|two| {
        two.first_died_holding("t");
        let taken = two.second("claim t --repo o/r --agent-id b").ok();
        assert!(taken.stdout.starts_with("claimed o/r#t by b until "), "{taken}");
        assert_eq!(two.claim("t")["generation"], 2, "a takeover begins the next generation");
        let before = two.row("a")["updated_at"].clone();
        let told = two.first("heartbeat --agent-id a --repo o/r --target t").expect_code(3);
        assert!(told.stderr.contains("CLAIM_LOST: o/r#t generation 2 is held by b since "), "{told}");
        assert_ne!(two.row("a")["updated_at"], before, "a beat is recorded whatever it is told");
        assert_eq!(two.holder("t").as_deref(), Some("b"), "the beat of a displaced holder takes nothing back");
        // The worktree remembers what it lost until it lets go, so that no old process goes on unaware.
        two.first("heartbeat --agent-id a").expect_code(3);
        two.first("release t --repo o/r --agent-id a").expect_error(1);
        two.first("claim next --repo o/r --agent-id a").ok();
        two.first("heartbeat --agent-id a").ok();
        assert_eq!(two.row("a")["target"], "next", "who was told and went on is left in peace");
    });
}

#[test]
fn a_beat_that_names_no_target_still_speaks_for_the_claim_its_worktree_holds() {
    both(|two| {
        two.first_died_holding("t");
        two.second("claim t --repo o/r --agent-id b").ok();
        let told = two.first("heartbeat --agent-id a").expect_code(3);
        assert!(told.stderr.contains("CLAIM_LOST: o/r#t generation 2 is held by b"), "{told}");
    });
}

#[test]
fn a_dead_holder_is_told_when_it_renews() {
    both(|two| {
        two.first_died_holding("t");
        two.second("claim t --repo o/r --agent-id b").ok();
        two.second("heartbeat --agent-id b --repo o/r --target t").ok();
        let refusal = "CLAIM_REFUSED: active claim for o/r#t held by b; heartbeat live";
        let _ = two.first("claim t --repo o/r --agent-id a").expect_error(3).expect_stderr(refusal);
        assert_eq!(two.holder("t").as_deref(), Some("b"));
    });
}

#[test]
fn a_dead_holder_is_told_when_it_releases() {
    both(|two| {
        two.first_died_holding("t");
        two.second("claim t --repo o/r --agent-id b").ok();
        let told = two.first("release t --repo o/r --agent-id a").expect_error(1);
        assert_eq!(told.stderr, "claim belongs to b; a cannot release it\n");
        assert_eq!(two.holder("t").as_deref(), Some("b"));
    });
}

#[test]
fn a_dead_holder_is_told_when_its_claim_was_taken_over_and_released_since() {
    both(|two| {
        two.first_died_holding("t");
        two.second("claim t --repo o/r --agent-id b").ok();
        two.second("release t --repo o/r --agent-id b").ok();
        two.first("release t --repo o/r --agent-id a").expect_error(1);
        assert_eq!(two.claim("t")["agent_id"], "b", "a released claim still says whose it was");
    });
}

#[test]
fn a_holder_whose_row_never_was_is_taken_over_only_when_its_claim_expired() {
    both(|two| {
        two.env().in_the_past(&two.first, 3600, "claim t --repo o/r --agent-id a --ttl 7200").ok();
        let refusal = "CLAIM_REFUSED: active claim for o/r#t held by a; heartbeat missing; fallback claim expires at ";
        let _ = two.second("claim t --repo o/r --agent-id b").expect_error(3).expect_stderr(refusal);
        two.env().in_the_past(&two.first, DAY, "claim u --repo o/r --agent-id a --ttl 60").ok();
        two.second("claim u --repo o/r --agent-id b").ok();
        assert_eq!(two.claim("u")["generation"], 2);
        let told = two.first("heartbeat --agent-id a --repo o/r --target u").expect_code(3);
        assert!(told.stderr.contains("CLAIM_LOST: o/r#u generation 2 is held by b"), "{told}");
    });
}

#[test]
fn a_beating_holder_is_never_displaced_however_old_its_claim_is() {
    both(|two| {
        two.env().in_the_past(&two.first, 30 * DAY, "claim t --repo o/r --agent-id a --ttl 60").ok();
        two.first("heartbeat --agent-id a --repo o/r --target t").ok();
        let refusal = "CLAIM_REFUSED: active claim for o/r#t held by a; heartbeat live";
        let _ = two.second("claim t --repo o/r --agent-id b").expect_error(3).expect_stderr(refusal);
        two.env().in_the_past(&two.first, 20 * 60, "heartbeat --agent-id a --repo o/r --target t").ok();
        let refusal = "CLAIM_REFUSED: active claim for o/r#t held by a; heartbeat stale";
        let _ = two.second("claim t --repo o/r --agent-id b").expect_error(3).expect_stderr(refusal);
        assert_eq!(two.holder("t").as_deref(), Some("a"));
    });
}

#[test]
fn another_instance_of_the_holder_needs_to_supersede_and_the_old_one_is_told() {
    both(|two| {
        two.first("claim t --repo o/r --agent-id a --instance-id i1").ok();
        two.first("heartbeat --agent-id a --instance-id i1 --repo o/r --target t").ok();
        let refusal = "CLAIM_REFUSED: active claim for o/r#t held by a";
        let line = "claim t --repo o/r --agent-id a --instance-id i2";
        let _ = two.second(line).expect_error(3).expect_stderr(refusal);
        assert_eq!(two.claim("t")["instance_id"], "i1");
        two.second(&format!("{line} --supersede")).ok();
        assert_eq!(two.claim("t")["instance_id"], "i2");
        assert_eq!(two.claim("t")["generation"], 2);
        let told = two.first("heartbeat --agent-id a --instance-id i1 --repo o/r --target t").expect_code(3);
        assert!(told.stderr.contains("CLAIM_LOST: o/r#t generation 2 is held by a"), "{told}");
        two.first("release t --repo o/r --agent-id a --instance-id i1 --generation 1").expect_error(3);
        assert_eq!(two.holder("t").as_deref(), Some("a"));
        two.second("release t --repo o/r --agent-id a").ok();
        assert_eq!(two.holder("t"), None, "the instance that holds the claim acts from its worktree's tenure");
    });
}

/// The race that matters most: the holder comes back to life at the very moment it is declared dead.
#[test]
fn of_a_takeover_and_a_beat_at_the_same_instant_either_the_beat_is_told_or_the_takeover_is_refused() {
    both(|two| {
        for round in 0..6 {
            let target = format!("t{round}");
            let agent = format!("a{round}");
            let line = format!("claim {target} --repo o/r --agent-id {agent}");
            two.env().in_the_past(&two.first, DAY, &line).ok();
            let beat = format!("heartbeat --agent-id {agent} --repo o/r --target {target}");
            two.env().in_the_past(&two.first, DAY, &beat).ok();
            let take = format!("claim {target} --repo o/r --agent-id b");
            let commands = vec![
                two.env().agent_coord(&two.first, beat.split(' ')),
                two.env().agent_coord(&two.second, take.split(' ')),
            ];
            let ended = crate::support::together::race(two.env(), commands);
            match (ended[0].code, ended[1].code) {
                // The beat came first: the holder lives, nobody takes over.
                (0, 3) => assert_eq!(two.holder(&target), Some(agent)),
                // The takeover came first: the beat was told.
                (3, 0) => assert_eq!(two.holder(&target).as_deref(), Some("b")),
                _ => panic!("round {round}:\n{}\n{}", ended[0], ended[1]),
            }
        }
    });
}
