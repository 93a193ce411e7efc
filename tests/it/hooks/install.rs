//! Putting hooks in place, and seeing that they run.

use std::path::Path;

use crate::hooks_support::Clone;
use crate::support::TestEnv;

fn problems(env: &TestEnv, directory: &Path) -> Vec<(bool, String)> {
    let report = env.coord(directory, "hooks status --json").json();
    let rows = report["hooks"].as_array().expect("rows").clone();
    rows.iter().map(|row| (row["runs"] == true, row["problem"].as_str().unwrap_or_default().to_owned())).collect()
}

#[test]
fn installed_hooks_are_seen_to_run_and_the_probe_leaves_nothing_behind() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    env.coord(&clone.path, "hooks status").ok();
    assert_eq!(problems(&env, &clone.path), [(true, String::new()), (true, String::new())]);
    assert_eq!(clone.git("worktree list").lines().count(), 1, "the throw-away worktree is gone");
    assert_eq!(std::fs::read_dir(env.path("home/tmp")).unwrap().count(), 0, "so is its folder");
}

#[test]
fn status_is_honest_on_an_unborn_branch_in_a_linked_worktree_and_with_sha256() {
    let env = TestEnv::new();
    let unborn = env.git().unborn("unborn");
    env.coord(&unborn, "hooks install").ok();
    env.coord(&unborn, "hooks status").ok();
    let clone = Clone::local(&env);
    env.coord(&clone.worktree("linked").path, "hooks status").ok();
    let longer = env.path("longer");
    env.git().run(env.root(), &format!("init --quiet --object-format=sha256 {}", longer.display()));
    env.coord(&longer, "hooks install").ok();
    env.coord(&longer, "hooks status").ok();
}

#[test]
fn a_hook_that_cannot_run_is_reported_although_its_file_is_there() {
    use std::os::unix::fs::PermissionsExt;
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    let file = clone.path.join(".git/hooks/pre-push");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let found = problems(&env, &clone.path);
    assert!(found[0].0 && !found[1].0, "{found:?}");
    env.coord(&clone.path, "hooks status").expect_code(1);
    env.coord(&clone.path, "hooks install").ok();
    env.coord(&clone.path, "hooks status").ok();
}

#[test]
fn without_the_program_the_hook_refuses_and_says_what_to_do() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    let bare = std::env::split_paths(env.environment().raw("PATH").unwrap()).skip(1);
    let path = std::env::join_paths(bare).unwrap();
    for (line, bypass) in
        [("commit --allow-empty -m x", "git commit --no-verify"), ("push . feat:other", "git push --no-verify")]
    {
        let mut git = env.program("git", &clone.path);
        let ran = env.finish(git.args(line.split_whitespace()).env("PATH", &path));
        assert_ne!(ran.code, 0, "{ran}");
        ran.expect_stderr("agent-coord is not on PATH").expect_stderr(bypass).expect_stderr("to uninstall");
    }
}

#[test]
fn an_existing_hook_is_kept_chained_and_restored() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.git().install_hook(&clone.join(".git"), "pre-commit", "echo theirs >> ran");
    let before = std::fs::read(clone.join(".git/hooks/pre-commit")).unwrap();
    env.git().run(&clone, "switch --quiet -c feat");
    env.coord(&clone, "hooks install").ok();
    env.git().run(&clone, "commit --quiet --allow-empty -m work");
    assert_eq!(std::fs::read_to_string(clone.join("ran")).unwrap(), "theirs\n");
    env.coord(&clone, "hooks uninstall").ok();
    assert_eq!(std::fs::read(clone.join(".git/hooks/pre-commit")).unwrap(), before);
    assert!(!clone.join(".git/hooks/pre-commit.local").exists() && !clone.join(".git/hooks/pre-push").exists());
}

#[test]
fn install_writes_over_nothing_and_does_all_or_nothing() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.git().install_hook(&clone.join(".git"), "pre-push", "exit 0");
    env.git().install_hook(&clone.join(".git"), "pre-push.local", "exit 0");
    env.coord(&clone, "hooks install").expect_error(1).expect_stderr("exists already");
    assert!(!clone.join(".git/hooks/pre-commit").exists(), "the other hook was not installed either");
}

#[test]
fn hooks_that_another_manager_owns_are_left_to_it() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    for (scope, value) in [("--local", ".husky"), ("--global", "/somewhere/hooks")] {
        env.git().run(&clone, &format!("config {scope} core.hooksPath {value}"));
        let ran = env.coord(&clone, "hooks install").expect_error(1);
        ran.expect_stderr(value).expect_stderr("hooks print pre-commit");
        assert!(!clone.join(".git/hooks/pre-commit").exists());
        env.git().run(&clone, &format!("config {scope} --unset core.hooksPath"));
    }
    env.git().run(&clone, "config extensions.worktreeConfig true");
    env.git().run(&clone, "config --worktree core.hooksPath hooks");
    env.coord(&clone, "hooks install").expect_error(1).expect_stderr("worktree");
}

#[test]
fn printed_lines_work_in_a_managers_hook_and_the_chained_hook_is_its_business() {
    let env = TestEnv::new();
    let clone = Clone::local(&env);
    clone.chain("pre-commit", "exit 9");
    clone.git("config core.hooksPath .husky");
    std::fs::create_dir(clone.path.join(".husky")).unwrap();
    let lines = env.coord(&clone.path, "hooks print pre-commit").ok().stdout;
    env.git().install_hook(&clone.path, "x", "");
    let file = clone.path.join(".husky/pre-commit");
    std::fs::copy(clone.path.join("hooks/x"), &file).unwrap();
    std::fs::write(&file, format!("#!/bin/sh\n{lines}")).unwrap();
    clone.commit().ok();
    clone.claim("other", "42", Some("feat"), 0);
    assert_ne!(clone.commit().code, 0);
    let found = problems(&env, &clone.path);
    assert!(!found[0].0, "untracked, so a new worktree has no such hook: {found:?}");
    clone.git("add .husky");
    clone.git("commit --quiet --no-verify -m husky");
    assert!(problems(&env, &clone.path)[0].0);
}
