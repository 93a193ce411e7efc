//! Commits through the installed hook.

use crate::hooks_support::Clone;
use crate::support::TestEnv;

const DAY: i64 = 86_400;

#[test]
fn a_branch_claimed_by_another_is_refused_and_the_refusal_names_holder_and_target() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.commit().ok();
    clone.claim("other", "42", Some("feat"), 0);
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("CLAIM_REFUSED: active claim for o/r#42 held by other").expect_stderr("branch feat");
    clone.attempt("commit --quiet --allow-empty --no-verify -m overruled").ok();
}

#[test]
fn the_claim_of_a_living_holder_a_target_of_the_branchs_name_and_linked_worktrees_count_alike() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    let linked = clone.worktree("linked");
    linked.commit().ok();
    clone.claim("other", "linked", None, 0);
    clone.beat("other", 0, 900);
    assert_ne!(linked.commit().code, 0);
    clone.commit().ok();
}

#[test]
fn our_own_claim_and_that_of_a_dead_holder_let_us_work() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.claim("me", "42", Some("feat"), 0);
    clone.commit().ok();
    clone.claim("gone", "43", Some("feat"), DAY);
    clone.commit().ok();
    clone.claim("gone-too", "44", Some("feat"), 3000);
    clone.beat("gone-too", 3000, 60);
    clone.commit().ok();
}

#[test]
fn a_claim_that_was_lost_stops_its_former_holder() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.claim("me", "42", Some("feat"), DAY);
    clone.commit().ok();
    clone.claim("other", "42", Some("their-branch"), 0);
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("CLAIM_LOST: o/r#42 generation 2 is held by other").expect_stderr("agent-coord claim 42");
}

#[test]
fn a_clone_that_nobody_coordinates_in_is_left_alone() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.git().run(&clone, "switch --quiet -c feat");
    env.git().run(&clone, "config agent-coord.requireClaim true");
    env.coord(&clone, "hooks install").ok();
    env.git().run(&clone, "commit --quiet --allow-empty -m work");
    assert!(env.git().coordination_refs(&clone).is_empty(), "a hook makes no store");
}

#[test]
fn the_primary_branch_is_closed_unless_a_setting_opens_it() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.git("switch --quiet main");
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("main is the primary branch").expect_stderr("AGENT_COORD_ALLOW_PRIMARY_COMMIT=1");
    clone.git("config agent-coord.allowPrimaryCommit true");
    clone.commit().ok();
    clone.git("config agent-coord.allowPrimaryCommit maybe");
    clone.commit().expect_stderr("agent-coord.allowPrimaryCommit is \"maybe\"");
    clone.git("config --unset agent-coord.allowPrimaryCommit");
    clone.git("config agent-coord.primaryBranch trunk");
    clone.commit().ok();
}

#[test]
fn a_required_claim_is_missed_until_it_is_made() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.git("config agent-coord.requireClaim true");
    clone.commit().expect_stderr("branch feat is not claimed by this agent");
    clone.claim("me", "42", Some("feat"), 0);
    clone.commit().ok();
}

#[test]
fn a_detached_head_is_on_no_branch_and_a_rebase_is_on_the_branch_it_rebases() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.commit().ok();
    clone.claim("other", "42", Some("feat"), 0);
    clone.git("switch --quiet --detach");
    clone.commit().ok();
    clone.git("switch --quiet feat");
    let mut git = env.program("git", &clone.path);
    env.finish(git.args(["rebase", "-i", "HEAD~1", "--keep-empty"]).env("GIT_SEQUENCE_EDITOR", "sed -i 1ibreak")).ok();
    let ran = clone.commit();
    assert_ne!(ran.code, 0, "HEAD is detached, but the commit is meant for feat");
    ran.expect_stderr("CLAIM_REFUSED");
    clone.git("rebase --abort");
}

#[test]
fn conflicts_of_a_merge_and_a_cherry_pick_are_committed_on_their_branch() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    env.git().commit(&clone.path, "file", "ours");
    clone.git("switch --quiet -c side HEAD~1");
    env.git().commit(&clone.path, "file", "theirs");
    clone.git("switch --quiet feat");
    clone.claim("other", "42", Some("feat"), 0);
    for start in ["merge side", "cherry-pick side"] {
        assert_ne!(clone.attempt(start).code, 0, "{start} conflicts");
        std::fs::write(clone.path.join("file"), "both").unwrap();
        clone.git("add file");
        let ran = clone.attempt("commit --no-edit");
        assert_ne!(ran.code, 0, "{start}");
        ran.expect_stderr("CLAIM_REFUSED");
        clone.git("reset --quiet --hard");
    }
}

#[test]
fn the_first_commit_of_all_may_go_to_any_branch_and_the_second_may_not_go_to_the_primary_one() {
    let env = TestEnv::new();
    let clone = env.git().unborn("clone");
    env.coord(&clone, "hooks install").ok();
    env.git().run(&clone, "commit --quiet --allow-empty -m first");
    let ran = env.git().attempt(&clone, ["commit", "--allow-empty", "-m", "second"]);
    assert_ne!(ran.code, 0);
    ran.expect_stderr("main is the primary branch");
    env.git().run(&clone, "switch --quiet --orphan topic");
    env.git().run(&clone, "commit --quiet --allow-empty -m first");
}

#[test]
fn with_nothing_but_commands_a_claim_made_on_main_guards_the_branch_made_after_it_until_it_is_let_go() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "init").ok();
    env.coord(&clone, "hooks install").ok();
    env.coord(&clone, "claim 42").ok();
    env.git().run(&clone, "switch --quiet -c feat");
    env.git().run(&clone, "commit --quiet --allow-empty -m work");
    // The holder goes silent for two days and another agent takes over.
    let elsewhere = env.git().worktree(&clone, "theirs");
    env.in_the_past(&clone, 2 * DAY, "release 42").ok();
    env.in_the_past(&clone, 2 * DAY, "claim 42").ok();
    env.coord(&elsewhere, "claim 42 --agent-id other").ok();
    let ran = env.git().attempt(&clone, ["commit", "--allow-empty", "-m", "late"]);
    assert_ne!(ran.code, 0);
    ran.expect_stderr("CLAIM_LOST").expect_stderr("is held by other").expect_stderr("agent-coord release 42");
    env.coord(&clone, "release 42").expect_error(1);
    env.git().run(&clone, "commit --quiet --allow-empty -m on-my-own-branch");
    env.git().run(&elsewhere, "commit --quiet --allow-empty -m theirs");
}

#[test]
fn a_clone_without_a_copy_of_the_shared_claims_knows_nothing_and_asks_nobody() {
    let env = TestEnv::new();
    let remote = env.git().remote("remote.git");
    let clone = Clone::shared(&env, &remote);
    clone.commit().ok();
    for name in env.git().coordination_refs(&clone.path).keys() {
        clone.git(&format!("update-ref -d {name}"));
    }
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("UNKNOWN").expect_stderr("agent-coord sync");
    assert!(env.git().coordination_refs(&clone.path).is_empty(), "a commit takes no network");
    env.coord(&clone.path, "sync").ok();
    clone.commit().ok();
}

#[test]
fn a_hooks_path_that_is_the_own_folder_still_runs_the_hook_that_was_there() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.chain("pre-commit", "exit 9");
    clone.git(&format!("config core.hooksPath {}", clone.path.join(".git/hooks").display()));
    assert_ne!(clone.commit().code, 0);
    env.coord(&clone.path, "hooks status").ok();
    env.coord(&clone.path, "hooks install").ok();
}

#[test]
fn a_rewritten_history_trips_the_canary_of_this_worktree_and_branch_alone() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.commit().ok();
    let linked = clone.worktree("linked");
    env.coord(&clone.path, "canary").ok();
    clone.commit().ok();
    clone.git("reset --quiet --hard HEAD~2");
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("canary: the history of feat was rewritten").expect_stderr("agent-coord canary --clear");
    linked.commit().ok();
    clone.git("switch --quiet -c elsewhere");
    clone.commit().ok();
    clone.git("switch --quiet feat");
    env.coord(&clone.path, "canary --clear").ok();
    clone.commit().ok();
}

#[test]
fn an_amended_commit_that_others_may_have_seen_trips_the_next_commit() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.commit().ok();
    env.coord(&clone.path, "canary").ok();
    clone.attempt("commit --quiet --amend --allow-empty -m other").ok();
    assert_ne!(clone.commit().code, 0);
}

#[test]
fn the_hook_that_was_there_gets_arguments_environment_and_stdin_and_its_exit_code_counts() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    let linked = clone.worktree("linked");
    clone.chain("pre-commit", "echo \"$# $GIT_INDEX_FILE\" > seen; pwd -P >> seen; exit ${CODE:-0}");
    linked.commit().ok();
    let seen = std::fs::read_to_string(linked.path.join("seen")).unwrap();
    let mut lines = seen.lines();
    assert!(lines.next().unwrap().contains("worktrees/linked/index"), "{seen}");
    assert_eq!(lines.next().unwrap(), linked.path.to_str().unwrap(), "the directory is the one git chose");
    let mut git = env.program("git", &linked.path);
    let ran = env.finish(git.args(["commit", "--allow-empty", "-m", "x"]).env("CODE", "5"));
    assert_ne!(ran.code, 0, "{ran}");
}

#[test]
fn the_hook_that_was_there_does_not_run_when_ours_refuses() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.chain("pre-commit", "echo ran > seen");
    clone.claim("other", "42", Some("feat"), 0);
    assert_ne!(clone.commit().code, 0);
    assert!(!clone.path.join("seen").exists());
}

#[test]
fn a_commit_takes_no_network_and_says_how_old_the_claims_are() {
    let env = TestEnv::new();
    let remote = env.git().remote("remote.git");
    let theirs = Clone::of_another(&env, &remote);
    theirs.claim("other", "42", Some("feat"), 0);
    let clone = Clone::shared(&env, &remote);
    std::fs::rename(&remote, env.path("gone.git")).unwrap();
    let ran = clone.commit();
    assert_ne!(ran.code, 0);
    ran.expect_stderr("CLAIM_REFUSED").expect_stderr("agent-coord sync");
    clone.git("switch --quiet -c free");
    clone.commit().ok();
}

#[test]
fn a_heartbeat_cached_too_long_ago_counts_as_unknown_so_the_term_of_the_claim_decides() {
    let env = TestEnv::new();
    let remote = env.git().remote("remote.git");
    let theirs = Clone::of_another(&env, &remote);
    theirs.claim("other", "42", Some("feat"), 0);
    theirs.beat("other", 0, 1);
    let clone = Clone::shared(&env, &remote);
    // Past the dead threshold of that heartbeat, which was never fetched again.
    std::thread::sleep(std::time::Duration::from_secs(6));
    let ran = clone.commit();
    assert_ne!(ran.code, 0, "the holder may have sent many heartbeats since");
    ran.expect_stderr("heartbeat unknown; fallback claim expires at").expect_stderr("ago");
}

#[test]
fn sha256_repositories_are_guarded_too() {
    let env = TestEnv::new();
    let path = env.path("clone");
    env.git().run(env.root(), &format!("init --quiet --object-format=sha256 {}", path.display()));
    env.git().commit(&path, "README", "first");
    env.git().run(&path, "switch --quiet -c feat");
    env.coord(&path, "hooks install").ok();
    env.coord(&path, "canary").ok();
    let clone = Clone { env: &env, path };
    clone.commit().ok();
    clone.claim("other", "42", Some("feat"), 0);
    clone.commit().expect_stderr("CLAIM_REFUSED");
}
