//! Which store a clone knows: wiped, replaced or switched remotes, clones that join late, and caches that were removed.

use std::collections::BTreeMap;
use std::path::Path;

use crate::support::git::file_url;
use crate::support::shared::{claim_at, holder};
use crate::support::{Shared, TestEnv};

const FOREIGN: &str = "not the store this clone knows";

fn team_with_claims() -> Shared {
    let team = Shared::over_files(2);
    team.run(0, "claim t1 --repo o/r --agent-id a --batch-id b1").ok();
    team.run(1, "claim t2 --repo o/r --agent-id b --batch-id b1").ok();
    team.run(0, "heartbeat --agent-id a --repo o/r --target t1").ok();
    team.run(0, "sync").ok();
    team
}

fn wipe(team: &Shared) {
    for name in team.git().coordination_refs(&team.bare).keys() {
        team.git().run(&team.bare, &format!("update-ref -d {name}"));
    }
}

#[test]
fn a_wiped_remote_is_noticed_and_restored_from_a_cache() {
    let team = team_with_claims();
    let before = team.git().coordination_refs(&team.bare);
    wipe(&team);
    for line in
        ["claim t3 --repo o/r --agent-id a", "heartbeat --agent-id a", "status", "claim t2 --repo o/r --agent-id a"]
    {
        let _ = team.run(0, line).expect_error(2).expect_stderr(FOREIGN);
    }
    assert_eq!(team.git().coordination_refs(&team.bare), BTreeMap::new(), "nothing begins a store by accident");
    let cached = team.run(0, "status --cached --json").ok().json();
    assert_eq!(cached["claims"].as_array().map(Vec::len), Some(2), "the cache outlives the remote");
    team.run(0, "sync --restore").ok();
    let after = team.git().coordination_refs(&team.bare);
    for (name, object) in before.iter().filter(|(name, _)| !name.ends_with("/store.json")) {
        assert_eq!(after.get(name), Some(object), "{name} is back as it was");
    }
    let _ = team.run(1, "claim t1 --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
    team.run(1, "release t2 --repo o/r --agent-id b").ok();
}

#[test]
fn two_caches_restore_more_than_either_holds() {
    let team = team_with_claims();
    team.run(1, "claim t9 --repo o/r --agent-id b").ok();
    wipe(&team);
    // Clone 0 never saw t9, clone 1 never saw the beat of a.
    let first = team.run(0, "sync --restore").ok();
    let second = team.run(1, "sync --restore");
    assert!(second.code == 0 || second.code == 2, "{first}\n{second}");
    assert_eq!(team.holder("t1").as_deref(), Some("a"));
    assert_eq!(team.holder("t2").as_deref(), Some("b"));
    if second.code == 2 {
        let _ = second.expect_stderr("nothing to restore");
    }
}

#[test]
fn restoring_what_is_not_lost_is_refused() {
    let team = team_with_claims();
    let before = team.git().coordination_refs(&team.bare);
    team.run(0, "sync --restore").expect_error(2);
    assert_eq!(team.git().coordination_refs(&team.bare), before);
}

#[test]
fn a_replaced_remote_is_noticed_and_neither_store_is_written() {
    let team = team_with_claims();
    let other = Shared::over_files(1);
    other.run(0, "claim x --repo o/r --agent-id z").ok();
    let before = (team.git().coordination_refs(&team.bare), other.git().coordination_refs(&other.bare));
    team.git().run(&team.clones[0], &format!("remote set-url origin {}", file_url(&other.bare)));
    for line in ["claim t3 --repo o/r --agent-id a", "heartbeat --agent-id a --repo o/r --target t1", "status"] {
        let _ = team.run(0, line).expect_error(2).expect_stderr(FOREIGN);
    }
    let after = (team.git().coordination_refs(&team.bare), other.git().coordination_refs(&other.bare));
    assert_eq!(after, before);
    team.run(0, "init --remote origin").ok();
    let _ = team.run(0, "claim x --repo o/r --agent-id a").expect_error(3).expect_stderr("held by z");
    let names = |git_dir: &Path| team.git().coordination_refs(git_dir).into_keys().collect::<Vec<_>>();
    assert_eq!(names(&team.clones[0]), names(&other.bare), "the cache of the old store was dropped");
    assert_eq!(team.git().coordination_refs(&team.bare), before.0, "the old store was left as it is");
}

#[test]
fn a_clone_that_joins_publishes_its_local_records_and_overwrites_nothing() {
    let team = team_with_claims();
    let late = team.git().clone(&file_url(&team.bare), "late");
    team.env.coord(&late, "claim local --repo o/r --agent-id c --batch-id b2").ok();
    team.env.coord(&late, "heartbeat --agent-id c --repo o/r --target local").ok();
    let before = team.git().coordination_refs(&team.bare);
    team.env.coord(&late, "init --remote origin").ok();
    let after = team.git().coordination_refs(&team.bare);
    for (name, object) in before.iter().filter(|(name, _)| !name.ends_with("/store.json")) {
        assert_eq!(after.get(name), Some(object), "{name} was there first");
    }
    assert_eq!(team.holder("local").as_deref(), Some("c"), "what was claimed alone is claimed for all");
    let _ =
        team.run(0, "claim local --repo o/r --agent-id a").expect_error(3).expect_stderr("held by c; heartbeat live");
    let events = team.run(0, "status --json").ok().json();
    let published = events["events"].as_array().expect("a list").iter().any(|event| event["batch_id"] == "b2");
    assert!(published, "events are published, too");
    team.env.coord(&late, "release local --repo o/r --agent-id c").ok();
}

#[test]
fn a_clone_whose_local_records_collide_stays_local_and_says_where() {
    let team = team_with_claims();
    let late = team.git().clone(&file_url(&team.bare), "late");
    team.env.coord(&late, "claim t1 --repo o/r --agent-id c").ok();
    team.env.coord(&late, "claim other --repo o/r --agent-id c").ok();
    let before = team.git().coordination_refs(&team.bare);
    let refused = team.env.coord(&late, "init --remote origin").expect_error(2);
    let _ = refused.expect_stderr("claims/o/r/t1.json");
    assert_eq!(team.git().coordination_refs(&team.bare), before, "nothing was published in part");
    assert_eq!(holder(team.git(), &late, "t1").as_deref(), Some("c"), "nothing was overwritten here either");
    let local = team.env.coord(&late, "status --json").ok().json();
    assert_eq!(local["claims"].as_array().map(Vec::len), Some(2), "the clone stays local");
}

#[test]
fn a_cache_removed_by_hand_is_fetched_again() {
    let team = team_with_claims();
    let names: Vec<String> = team.git().coordination_refs(&team.clones[1]).into_keys().collect();
    for name in names {
        team.git().run(&team.clones[1], &format!("update-ref -d {name}"));
    }
    let _ = team.run(1, "claim t1 --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
    team.run(1, "release t2 --repo o/r --agent-id b").ok();
    team.run(1, "claim t3 --repo o/r --agent-id b").ok();
    assert_eq!(team.holder("t1").as_deref(), Some("a"));
}

/// Trap 10: a mirror refspec makes `git fetch --prune` remove what that other remote does not have.
#[test]
fn a_cache_pruned_by_a_mirror_fetch_is_fetched_again() {
    let team = team_with_claims();
    let upstream = team.git().remote("upstream.git");
    let clone = &team.clones[0];
    team.git().run(clone, &format!("remote add upstream {}", file_url(&upstream)));
    team.git().run(clone, "fetch --quiet --prune upstream +refs/agent-coord/*:refs/agent-coord/*");
    assert_eq!(team.git().coordination_refs(clone), BTreeMap::new(), "the fetch pruned the cache");
    let _ = team.run(0, "claim t2 --repo o/r --agent-id a").expect_error(3).expect_stderr("held by b");
    team.run(0, "release t1 --repo o/r --agent-id a").ok();
    assert_eq!(team.holder("t2").as_deref(), Some("b"));
}

#[test]
fn a_store_of_one_clone_that_lost_its_refs_is_not_free_for_all() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "init --repo o/r").ok();
    env.coord(&clone, "claim t --repo o/r --agent-id a").ok();
    let names: Vec<String> = env.git().coordination_refs(&clone).into_keys().collect();
    for name in names {
        env.git().run(&clone, &format!("update-ref -d {name}"));
    }
    let _ = env.coord(&clone, "claim t --repo o/r --agent-id b").expect_error(2).expect_stderr(FOREIGN);
}

/// Trap 10: `git push --mirror` from a clone that knows nothing of coordination deletes all of it.
#[test]
fn a_mirror_push_from_an_old_clone_loses_nothing_that_a_cache_still_holds() {
    let team = team_with_claims();
    let claim = claim_at(team.git(), &team.bare, "t1").expect("a claim");
    let old = team.git().clone(&file_url(&team.bare), "old");
    team.git().run(&old, "push --quiet --mirror origin");
    assert_eq!(team.git().coordination_refs(&team.bare), BTreeMap::new(), "that is what --mirror does");
    for (member, line) in [(0, "heartbeat --agent-id a"), (1, "claim t1 --repo o/r --agent-id b"), (1, "status")] {
        let _ = team.run(member, line).expect_error(2).expect_stderr(FOREIGN).expect_stderr("sync --restore");
    }
    team.run(0, "sync --restore").ok();
    assert_eq!(claim_at(team.git(), &team.bare, "t1"), Some(claim));
    let _ = team.run(1, "claim t1 --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
}

#[test]
fn clones_that_initialise_at_the_same_instant_make_one_store() {
    let env = TestEnv::new();
    let bare = env.git().remote("team.git");
    let clones: Vec<_> = (0..6).map(|number| env.git().clone(&file_url(&bare), &format!("clone{number}"))).collect();
    let commands = clones.iter().map(|clone| env.agent_coord(clone, ["init", "--remote", "origin", "--repo", "o/r"]));
    for ran in crate::support::together::race(&env, commands.collect()) {
        ran.ok();
    }
    let ids: Vec<String> = clones.iter().map(|clone| env.git().run(clone, "config agent-coord.storeId")).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "all know the same store: {ids:?}");
    for (number, clone) in clones.iter().enumerate() {
        env.coord(clone, &format!("claim t{number} --agent-id w{number}")).ok();
    }
}

#[test]
fn init_says_who_can_read_and_gives_the_default_repository_to_later_clones() {
    let team = Shared::over_files(1);
    let late = team.git().clone(&file_url(&team.bare), "late");
    let joined = team.env.coord(&late, "init --remote origin").ok();
    let said = format!("{}{}", joined.stdout, joined.stderr);
    assert!(said.contains("read"), "records can be read by everyone who can read the remote\n{joined}");
    team.env.coord(&late, "claim t --agent-id c").ok();
    assert_eq!(team.holder("t").as_deref(), Some("c"), "o/r came from the store, not from the URL");
}
