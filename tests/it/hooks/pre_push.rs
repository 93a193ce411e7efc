//! Pushes through the installed hook.

use std::path::PathBuf;

use crate::hooks_support::Clone;
use crate::support::TestEnv;

const DAY: i64 = 86_400;

/// A clone of a remote, sharing its claims there, with one commit on `feat` to push.
fn with_remote(env: &TestEnv) -> (Clone<'_>, PathBuf) {
    let remote = env.git().remote("remote.git");
    let clone = Clone::shared(env, &remote);
    clone.commit().ok();
    (clone, remote)
}

#[test]
fn a_push_asks_the_remote_so_a_claim_made_a_moment_ago_counts() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    let theirs = Clone::of_another(&env, &remote);
    theirs.claim("other", "42", Some("feat"), 0);
    clone.commit().ok();
    let ran = clone.attempt("push --quiet origin feat");
    assert_ne!(ran.code, 0);
    ran.expect_stderr("CLAIM_REFUSED: active claim for o/r#42 held by other");
    assert_eq!(clone.at_remote(&remote, "refs/heads/feat"), None);
    clone.commit().expect_stderr("CLAIM_REFUSED");
}

#[test]
fn our_own_branch_an_unclaimed_one_and_a_dead_holders_are_pushed() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.attempt("push --quiet origin feat").ok();
    clone.claim("me", "42", Some("feat"), 0);
    clone.claim("gone", "43", Some("feat"), DAY);
    clone.commit().ok();
    clone.attempt("push --quiet origin feat").ok();
    assert_eq!(clone.at_remote(&remote, "refs/heads/feat"), Some(clone.git("rev-parse HEAD").trim().to_owned()));
}

#[test]
fn the_remote_branch_decides_whatever_the_local_one_is_called_and_whatever_the_remote() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.claim("other", "42", Some("theirs"), 0);
    let elsewhere = env.git().remote("elsewhere.git");
    for url in [remote, elsewhere] {
        let url = url.display();
        clone.attempt(&format!("push --quiet {url} feat:theirs")).expect_stderr("CLAIM_REFUSED");
        clone.attempt(&format!("push --quiet {url} HEAD:refs/heads/theirs")).expect_stderr("CLAIM_REFUSED");
        clone.attempt(&format!("push --quiet {url} feat:feat")).ok();
    }
}

#[test]
fn one_claimed_branch_among_several_holds_the_whole_push_back() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.git("branch second");
    clone.git("tag v1");
    clone.claim("other", "42", Some("second"), 0);
    assert_ne!(clone.attempt("push --quiet origin feat second v1").code, 0);
    assert_eq!(clone.at_remote(&remote, "refs/heads/feat"), None);
    clone.attempt("push --quiet origin feat v1").ok();
}

#[test]
fn deleting_a_branch_that_another_claimed_is_refused_and_deleting_ones_own_is_not() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.attempt("push --quiet origin feat feat:second").ok();
    clone.claim("other", "42", Some("second"), 0);
    clone.attempt("push --quiet origin :second").expect_stderr("CLAIM_REFUSED");
    clone.attempt("push --quiet origin :feat").ok();
    assert!(clone.at_remote(&remote, "refs/heads/second").is_some());
}

#[test]
fn a_push_of_nothing_new_and_one_from_a_detached_head_pass() {
    let env = TestEnv::new();
    let (clone, _) = with_remote(&env);
    clone.attempt("push --quiet origin feat").ok();
    clone.attempt("push --quiet origin feat").ok();
    clone.git("switch --quiet --detach");
    clone.commit().ok();
    clone.attempt("push --quiet origin HEAD:refs/heads/another").ok();
    clone.attempt("push --quiet origin HEAD^:refs/tags/v2").ok();
}

#[test]
fn a_protected_branch_takes_the_merge_phrase_which_one_push_uses_up() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    let ran = clone.attempt("push --quiet origin feat:main");
    assert_ne!(ran.code, 0);
    ran.expect_stderr("main is protected").expect_stderr("agent-coord.mergePhrase");
    clone.git("config agent-coord.mergePhrase ship-it");
    clone.attempt("push --quiet origin feat:release/1").expect_stderr("MERGE_INTENT is missing");
    let intent = clone.path.join(".git/MERGE_INTENT");
    std::fs::write(&intent, "ship-it-not\n").unwrap();
    clone.attempt("push --quiet origin feat:main").expect_stderr("does not hold the merge phrase");
    std::fs::write(&intent, "ship-it\n").unwrap();
    clone.attempt("push --quiet origin feat").ok();
    assert!(intent.exists(), "a push of another branch does not use it up");
    clone.chain("pre-push", "exit 1");
    assert_ne!(clone.attempt("push --quiet origin feat:main").code, 0);
    assert!(intent.exists(), "a push that does not pass does not use it up");
    clone.chain("pre-push", "exit 0");
    clone.attempt("push --quiet origin feat:main").ok();
    assert!(!intent.exists());
    assert_eq!(clone.at_remote(&remote, "refs/heads/main"), Some(clone.git("rev-parse feat").trim().to_owned()));
}

#[test]
fn a_protected_branch_is_never_rewritten_or_deleted() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.git("config agent-coord.mergePhrase ship-it");
    std::fs::write(clone.path.join(".git/MERGE_INTENT"), "ship-it").unwrap();
    let before = clone.at_remote(&remote, "refs/heads/main");
    clone.git("switch --quiet --orphan other");
    clone.commit().ok();
    clone.attempt("push --quiet --force origin other:main").expect_stderr("rewrite its history");
    clone.attempt("push --quiet origin :main").expect_stderr("would delete it");
    assert_eq!(clone.at_remote(&remote, "refs/heads/main"), before);
    assert!(clone.path.join(".git/MERGE_INTENT").exists());
    clone.attempt("push --quiet --force origin other:feat").ok();
}

#[test]
fn coordination_refs_are_pushed_by_nobody_but_us() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.claim("me", "42", Some("feat"), 0);
    // A mirror of this clone would take away what the others did since it last fetched.
    Clone::of_another(&env, &remote).claim("other", "43", None, 0);
    let before = env.git().coordination_refs(&remote);
    let lines = [
        "push --quiet --mirror origin",
        "-c remote.origin.mirror=true push --quiet origin",
        "-c alias.publish=push publish --quiet --mirror origin",
        "push --quiet origin :refs/agent-coord/store.json",
        "push --quiet --prune origin refs/*:refs/*",
        "config remote.origin.mirror true",
        "push --quiet origin",
    ];
    for line in lines {
        if line.starts_with("config") {
            clone.git(line);
            continue;
        }
        let ran = clone.attempt(line);
        assert_ne!(ran.code, 0, "{line}\n{ran}");
        ran.expect_stderr("coordination state");
    }
    assert_eq!(env.git().coordination_refs(&remote), before);
}

#[test]
fn claims_that_cannot_be_fetched_are_unknown_and_not_free() {
    let env = TestEnv::new();
    let (clone, remote) = with_remote(&env);
    clone.claim("other", "42", Some("theirs"), 0);
    let elsewhere = env.git().remote("elsewhere.git");
    std::fs::rename(&remote, env.path("gone.git")).unwrap();
    let url = elsewhere.display();
    let ran = clone.attempt(&format!("push --quiet {url} feat"));
    assert_ne!(ran.code, 0);
    ran.expect_stderr("UNKNOWN").expect_stderr("agent-coord.unknown");
    clone.git("config agent-coord.unknown warn");
    clone.attempt(&format!("push --quiet {url} feat")).ok().expect_stderr("warning: UNKNOWN");
    clone.attempt(&format!("push --quiet {url} feat:theirs")).expect_stderr("CLAIM_REFUSED");
}

#[test]
fn a_bad_regex_refuses_and_is_named() {
    let env = TestEnv::new();
    let (clone, _) = with_remote(&env);
    clone.git("config agent-coord.protectedRegex ^(release");
    let ran = clone.attempt("push --quiet origin feat");
    assert_ne!(ran.code, 0);
    ran.expect_stderr("agent-coord.protectedRegex");
}

#[test]
fn the_hook_that_was_there_gets_the_same_arguments_and_the_same_stdin() {
    let env = TestEnv::new();
    let (clone, _) = with_remote(&env);
    let seen = clone.path.join("seen");
    clone.chain("pre-push", &format!("{{ printf '%s|' \"$@\"; echo; cat; }} > {}", seen.display()));
    clone.git("tag v1");
    clone.attempt("push --quiet origin feat v1").ok();
    let text = std::fs::read_to_string(&seen).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("origin|") && lines[0].ends_with("remote.git|"), "{text}");
    let head = clone.git("rev-parse feat");
    let none = "0".repeat(40);
    assert_eq!(lines[1], format!("refs/heads/feat {0} refs/heads/feat {none}", head.trim()));
    assert_eq!(lines[2], format!("refs/tags/v1 {0} refs/tags/v1 {none}", head.trim()));
}

#[test]
fn a_push_from_a_linked_worktree_is_judged_like_any_other() {
    let env = TestEnv::new();
    let (clone, _) = with_remote(&env);
    let linked = clone.worktree("linked");
    linked.commit().ok();
    linked.attempt("push --quiet origin linked").ok();
    clone.claim("other", "42", Some("linked"), 0);
    linked.attempt("push --quiet origin linked").ok();
    linked.commit().expect_stderr("CLAIM_REFUSED");
    linked.attempt("commit --quiet --no-verify --allow-empty -m x").ok();
    linked.attempt("push --quiet origin linked").expect_stderr("CLAIM_REFUSED");
}

#[test]
fn the_entry_for_the_pre_commit_framework_checks_the_pushed_branch() {
    let env = TestEnv::new();
    let (clone, _) = with_remote(&env);
    clone.claim("other", "42", Some("theirs"), 0);
    let printed = env.coord(&clone.path, "hooks print pre-push").ok().stdout;
    let entry = printed.lines().find_map(|line| line.trim_start_matches('#').trim().strip_prefix("entry: ")).unwrap();
    let run = |branch: &str, from: &str| {
        let mut shell = env.program("sh", &clone.path);
        shell.args(["-c", entry]).envs([
            ("PRE_COMMIT_LOCAL_BRANCH", "refs/heads/feat"),
            ("PRE_COMMIT_TO_REF", clone.git("rev-parse feat").trim()),
            ("PRE_COMMIT_REMOTE_BRANCH", branch),
            ("PRE_COMMIT_FROM_REF", from),
            ("PRE_COMMIT_REMOTE_NAME", "origin"),
        ]);
        env.finish(&mut shell)
    };
    let base = clone.git("rev-parse main");
    run("refs/heads/feat", base.trim()).ok();
    run("refs/heads/theirs", base.trim()).expect_error(3).expect_stderr("CLAIM_REFUSED");
    assert_ne!(run("refs/heads/feat", "").code, 0, "what is not understood does not pass");
}
