//! Killed between any two steps: no torn record, no second holder, nothing that blocks for ever, and the next command
//! heals or reports.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::kill::{Killed, Victim, killed_after, locks_in};
use crate::support::shared::{assert_every_ref_parses, claim_at, holder};
use crate::support::within::within;
use crate::support::{Dice, Ran, Shared, TestEnv};

/// Kills for each of the eight combinations: 200 in all.
const KILLS: usize = 25;
/// The default deadline of a command, and something for a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// Where the members of a test keep their coordination, and where one of them is killed.
struct Field<'a> {
    env: &'a TestEnv,
    /// Where the command that is killed runs.
    first: &'a Path,
    /// Where somebody else looks afterwards.
    second: &'a Path,
    /// The git directory whose refs decide.
    arbiter: PathBuf,
}

#[test]
fn a_claim_killed_in_one_clone_heals() {
    in_one_clone(|field| kill_claims(field, Victim::Client));
}

#[test]
fn a_claim_killed_with_its_git_in_one_clone_heals() {
    in_one_clone(|field| kill_claims(field, Victim::WholeTree));
}

#[test]
fn a_release_killed_in_one_clone_heals() {
    in_one_clone(|field| kill_releases(field, Victim::Client));
}

#[test]
fn a_release_killed_with_its_git_in_one_clone_heals() {
    in_one_clone(|field| kill_releases(field, Victim::WholeTree));
}

#[test]
fn a_claim_killed_through_a_remote_heals() {
    through_a_remote(|field| kill_claims(field, Victim::Client));
}

#[test]
fn a_claim_killed_with_its_git_and_the_remote_end_heals() {
    through_a_remote(|field| kill_claims(field, Victim::WholeTree));
}

#[test]
fn a_release_killed_through_a_remote_heals() {
    through_a_remote(|field| kill_releases(field, Victim::Client));
}

#[test]
fn a_release_killed_with_its_git_and_the_remote_end_heals() {
    through_a_remote(|field| kill_releases(field, Victim::WholeTree));
}

fn in_one_clone(check: impl Fn(&Field<'_>)) {
    let env = TestEnv::new();
    let first = env.git().repository("clone");
    let second = env.git().worktree(&first, "tree");
    check(&Field { env: &env, first: &first, second: &second, arbiter: first.join(".git") });
}

fn through_a_remote(check: impl Fn(&Field<'_>)) {
    let team = Shared::over_files(2);
    let (first, second) = (&team.clones[0], &team.clones[1]);
    check(&Field { env: &team.env, first, second, arbiter: team.bare.clone() });
}

impl Field<'_> {
    fn claim_line(target: &str, agent: &str) -> String {
        format!("claim {target} --repo o/r --agent-id {agent} --batch-id b1")
    }

    fn release_line(target: &str, agent: &str) -> String {
        format!("release {target} --repo o/r --agent-id {agent}")
    }

    /// Measures how long `line` takes when nobody interferes; the kills fall into that time and a little after.
    fn usual_time(&self, line: &str) -> Duration {
        let started = Instant::now();
        self.env.coord(self.first, line).ok();
        started.elapsed()
    }

    fn kill(&self, line: &str, delay: Duration, victim: Victim) -> Killed {
        killed_after(self.env, self.env.agent_coord(self.first, line.split(' ')), delay, victim)
    }

    /// Runs a command that must answer in time. A lock that a killed git left on the remote may only be reported;
    /// then whoever runs the remote removes it, and the command must work.
    fn next(&self, directory: &Path, line: &str, story: &str) -> Ran {
        let ran = within(PATIENCE, || self.env.coord(directory, line));
        let left = locks_in(&self.arbiter);
        if ran.code != 2 || left.is_empty() || !self.is_shared() {
            assert_ne!(ran.code, 2, "nothing is in the way, so the state is known\n{ran}\n{story}");
            return ran;
        }
        for lock in left {
            std::fs::remove_file(lock).expect("the lock of a dead git can be removed");
        }
        let ran = within(PATIENCE, || self.env.coord(directory, line));
        assert_ne!(ran.code, 2, "the lock is gone\n{ran}\n{story}");
        ran
    }

    /// Lets the killed agent claim once more. Through a remote its cache may not know of the claim that landed, and a
    /// claim found under its own name could as well be another process of that name, winning this very moment: without
    /// an instance id that is reported first, and healed by the command after that.
    fn claim_again(&self, target: &str, story: &str) -> Ran {
        let line = Self::claim_line(target, "a");
        let ran = within(PATIENCE, || self.env.coord(self.first, &line));
        let is_reported = ran.code == 2 && ran.stderr.starts_with("claim write contention for o/r#");
        if self.is_shared() && is_reported { self.next(self.first, &line, story) } else { ran }
    }

    /// A lock in a clone is gone once somebody came by. One on the remote may stay where nobody had to pass, such as on
    /// a segment of events that its writer has left for the next.
    fn assert_no_lock_is_left(&self, story: &str) {
        if self.is_shared() {
            return;
        }
        let left: Vec<PathBuf> = locks_in(&self.arbiter);
        assert!(left.is_empty(), "{left:?} would block whoever comes next\n{story}");
    }

    fn is_shared(&self) -> bool {
        self.arbiter != self.first.join(".git")
    }
}

fn kill_claims(field: &Field<'_>, victim: Victim) {
    let mut dice = Dice::new();
    let usual = field.usual_time(&Field::claim_line("warm", "a"));
    for round in 0..KILLS {
        let target = format!("t{round}");
        let delay = dice.duration_below(usual.mul_f64(1.3));
        let killed = field.kill(&Field::claim_line(&target, "a"), delay, victim);
        let story = format!("round {round}, {victim:?} killed after {delay:?}\n{}\n{}", killed.ran, dice.recipe());
        let next = field.next(field.second, &Field::claim_line(&target, "b"), &story);
        killed.settle();
        let now = holder(field.env.git(), &field.arbiter, &target);
        match next.code {
            0 => {
                assert!(!killed.ran.stdout.contains("claimed "), "two were told they hold {target}\n{story}");
                assert_eq!(now.as_deref(), Some("b"), "{story}");
                let told = field.next(field.first, &Field::claim_line(&target, "a"), &story);
                assert_eq!(told.code, 3, "the killed one is told that it lost\n{told}\n{story}");
            }
            3 => {
                assert_eq!(now.as_deref(), Some("a"), "{story}");
                let healed = field.claim_again(&target, &story);
                assert_eq!(healed.code, 0, "the killed one still holds what it had won\n{healed}\n{story}");
                assert_eq!(claim_at(field.env.git(), &field.arbiter, &target).expect("a claim")["generation"], 1);
            }
            _ => panic!("{next}\n{story}"),
        }
        assert_every_ref_parses(field.env.git(), &field.arbiter);
        field.assert_no_lock_is_left(&story);
        assert_holders_have_events(field, &target, &story);
    }
}

/// The claim is the commit point: a claim that is there has its event, whoever was killed.
fn assert_holders_have_events(field: &Field<'_>, target: &str, story: &str) {
    let agent = holder(field.env.git(), &field.arbiter, target).expect("somebody holds it by now");
    let status = field.env.coord(field.second, "status --json").ok().json();
    let events = status["events"].as_array().expect("events are a list").clone();
    let own = events.iter().filter(|event| {
        event["type"] == "claim.acquired" && event["target"] == target && event["agent_id"] == agent.as_str()
    });
    assert_eq!(own.count(), 1, "the holder's event is there once\n{story}");
}

fn kill_releases(field: &Field<'_>, victim: Victim) {
    let mut dice = Dice::new();
    field.env.coord(field.first, &Field::claim_line("warm", "a")).ok();
    let usual = field.usual_time(&Field::release_line("warm", "a"));
    for round in 0..KILLS {
        let target = format!("t{round}");
        field.env.coord(field.first, &Field::claim_line(&target, "a")).ok();
        let delay = dice.duration_below(usual.mul_f64(1.3));
        let killed = field.kill(&Field::release_line(&target, "a"), delay, victim);
        let story = format!("round {round}, {victim:?} killed after {delay:?}\n{}\n{}", killed.ran, dice.recipe());
        let next = field.next(field.second, &Field::claim_line(&target, "b"), &story);
        killed.settle();
        let now = holder(field.env.git(), &field.arbiter, &target);
        match next.code {
            0 => assert_eq!(now.as_deref(), Some("b"), "{story}"),
            3 => {
                assert!(!killed.ran.stdout.contains("released "), "an acknowledged release is not lost\n{story}");
                // Its git may have gone on, and released after b was told.
                assert!(matches!(now.as_deref(), None | Some("a")), "{now:?}\n{story}");
                let healed = field.next(field.first, &Field::release_line(&target, "a"), &story);
                assert_eq!(healed.code, 0, "{healed}\n{story}");
                assert_eq!(holder(field.env.git(), &field.arbiter, &target), None, "{story}");
            }
            _ => panic!("{next}\n{story}"),
        }
        assert_every_ref_parses(field.env.git(), &field.arbiter);
        field.assert_no_lock_is_left(&story);
    }
}

/// A lock that a killed git left in this clone holds up the next command for a moment, and no longer.
#[test]
fn a_lock_left_by_a_killed_git_is_removed_after_a_moment() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim t --repo o/r --agent-id a").ok();
    let lock = clone.join(".git/refs/agent-coord/claims/o/r/t.json.lock");
    std::fs::write(&lock, "").expect("a lock can be made");
    let released = within(Duration::from_secs(10), || env.coord(&clone, "release t --repo o/r --agent-id a"));
    released.ok();
    assert!(!lock.exists());
}

/// A git killed while it brought the cache up to date leaves its lock there. The remote decides without the cache, but
/// whoever reads the cache (a renewal, a hook) would never see the claim again.
#[test]
fn a_lock_left_on_the_cache_does_not_keep_it_stale_for_ever() {
    let team = Shared::over_files(1);
    let clone = &team.clones[0];
    team.run(0, "claim t --repo o/r --agent-id a").ok();
    let cached = "refs/agent-coord/claims/o/r/t.json";
    team.git().run(clone, &format!("update-ref -d {cached}"));
    let lock = clone.join(".git").join(format!("{cached}.lock"));
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("a folder");
    std::fs::write(&lock, "").expect("a lock can be made");
    within(PATIENCE, || team.run(0, "sync")).ok();
    assert!(!lock.exists(), "the lock of a dead git is removed");
    assert!(team.git().coordination_refs(clone).contains_key(cached), "the cache says again what the remote says");
    team.run(0, "claim t --repo o/r --agent-id a").ok();
}

/// Somebody else's lock is theirs: it is named, within the deadline, and left alone.
#[test]
fn a_lock_on_packed_refs_is_reported_and_left_alone() {
    let mut env = TestEnv::new();
    env.set("AGENT_COORD_TIMEOUT", "3");
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim t --repo o/r --agent-id a").ok();
    env.git().run(&clone, "pack-refs --all");
    let lock = clone.join(".git/packed-refs.lock");
    std::fs::write(&lock, "").expect("a lock can be made");
    // Changing a packed ref needs no lock on the packed file; whatever the outcome, it comes in time and is true.
    let released = within(Duration::from_secs(8), || env.coord(&clone, "release t --repo o/r --agent-id a"));
    match released.code {
        0 => assert_eq!(holder(env.git(), &clone, "t"), None),
        2 => {
            assert_eq!(holder(env.git(), &clone, "t").as_deref(), Some("a"));
            let _ = released.expect_stderr("packed-refs.lock");
        }
        _ => panic!("{released}"),
    }
    assert!(lock.exists(), "a lock outside of refs/agent-coord/ is not ours to remove");
}

/// Trap 4, the worst moment: everything was written except the last ref.
#[test]
fn an_event_without_its_claim_is_not_a_claim() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim t --repo o/r --agent-id a --batch-id b1").ok();
    env.git().run(&clone, "update-ref -d refs/agent-coord/claims/o/r/t.json");
    env.coord(&clone, "claim t --repo o/r --agent-id b --batch-id b1").ok();
    assert_eq!(holder(env.git(), &clone, "t").as_deref(), Some("b"));
    let told = env.coord(&clone, "claim t --repo o/r --agent-id a --batch-id b1");
    let _ = told.expect_error(3).expect_stderr("held by b");
}

/// The same moment of a takeover: the fence was written, the claim was not. The claim decides whom a fence speaks of.
#[test]
fn a_fence_without_its_takeover_displaces_nobody() {
    const DAY: i64 = 86_400;
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    let other = env.git().worktree(&clone, "tree");
    env.in_the_past(&clone, DAY, "claim t --repo o/r --agent-id a --branch topic").ok();
    env.in_the_past(&clone, DAY, "heartbeat --agent-id a --repo o/r --target t").ok();
    let claim = "refs/agent-coord/claims/o/r/t.json";
    let before = env.git().run(&clone, &format!("rev-parse {claim}"));
    env.coord(&other, "claim t --repo o/r --agent-id b").ok();
    assert!(env.git().show(&clone, "heartbeats/a.json").contains("fenced"), "a takeover fences the row");
    env.git().run(&clone, &format!("update-ref {claim} {before}"));
    env.coord(&clone, "heartbeat --agent-id a --repo o/r --target t").ok();
    assert_eq!(holder(env.git(), &clone, "t").as_deref(), Some("a"));
    let _ = env.coord(&other, "claim t --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
    env.coord(&clone, "release t --repo o/r --agent-id a").ok();
}
