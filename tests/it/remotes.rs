//! Remotes that are down, silent, closed, picky or oddly configured: an answer inside the deadline, no prompt, nothing
//! half written, and UNKNOWN is never reported as free.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::support::git::file_url;
use crate::support::listener::nobody;
use crate::support::shared::{claim_at, holder};
use crate::support::within::within;
use crate::support::{HangingListener, Manners, Ran, Shared, TestEnv};

/// `AGENT_COORD_TIMEOUT` of these tests, and what a command may take in all: the grace of a git that must be stopped,
/// and a busy machine.
const TIMEOUT: &str = "3";
const LIMIT: Duration = Duration::from_secs(9);

/// A write that needs the remote, of each kind.
const WRITES: [&str; 4] = [
    "claim u --repo o/r --agent-id a",
    "heartbeat --agent-id a --repo o/r --target t",
    "release t --repo o/r --agent-id a",
    "record-event --batch-id b1 --type note --message hello",
];

fn impatient(mut team: Shared) -> Shared {
    team.env.set("AGENT_COORD_TIMEOUT", TIMEOUT);
    team.run(0, "claim t --repo o/r --agent-id a").ok();
    team
}

/// Checks that every kind of write, and a read, reports UNKNOWN in time and leaves the remote as it is.
fn assert_unknown(team: &Shared, says: &[&str]) {
    let before = refs(team);
    for line in WRITES.iter().chain(&["status --repo o/r --target t", "status"]) {
        let ran = within(LIMIT, || team.run(0, line)).expect_error(2);
        assert!(says.iter().any(|word| ran.stderr.contains(word)), "{line} should say one of {says:?}\n{ran}");
        assert_is_harmless(&ran);
    }
    assert_eq!(refs(team), before, "nothing was half written");
    let cached = team.run(0, "status --repo o/r --target t --cached --json").ok();
    assert_eq!(cached.json()["claims"][0]["agent_id"], "a", "the cache is still there to look at");
}

fn refs(team: &Shared) -> BTreeMap<String, String> {
    team.git().coordination_refs(&team.bare)
}

/// Trap 14: what is printed may be pasted by an agent.
fn assert_is_harmless(ran: &Ran) {
    for destructive in ["rm ", "--force", "update-ref -d", "reset --hard", "push -f", "--delete", "unlink"] {
        assert!(!ran.stderr.contains(destructive), "an error text never offers `{destructive}`\n{ran}");
    }
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("RUST_BACKTRACE"), "{ran}");
}

fn point_at(team: &Shared, url: &str) {
    team.git().run(&team.clones[0], &format!("remote set-url origin {url}"));
}

#[test]
fn a_remote_that_is_down_is_unknown() {
    let team = impatient(Shared::over_http(1));
    point_at(&team, &nobody());
    assert_unknown(&team, &["origin"]);
}

#[test]
fn a_remote_whose_repository_is_gone_is_unknown() {
    let team = impatient(Shared::over_files(1));
    point_at(&team, &file_url(&team.env.path("nowhere.git")));
    assert_unknown(&team, &["origin"]);
}

#[test]
fn a_remote_that_never_answers_is_unknown_by_the_deadline() {
    let team = impatient(Shared::over_http(1));
    let listener = HangingListener::start();
    point_at(&team, &listener.url());
    assert_unknown(&team, &["did not answer", "origin"]);
}

#[test]
fn a_remote_that_wants_a_password_is_unknown_and_nobody_is_asked() {
    let mut team = impatient(Shared::over_http(1));
    team.server().behave(Manners::AskForPassword);
    team.env.set("DISPLAY", ":99");
    assert_unknown(&team, &["origin"]);
}

#[test]
fn a_password_in_the_url_is_never_shown() {
    let team = impatient(Shared::over_http(1));
    let url = team.server().url(&team.bare).replace("http://", "http://agent:hunter2@");
    team.server().behave(Manners::AskForPassword);
    point_at(&team, &url);
    for line in ["claim u --repo o/r --agent-id a", "status", "sync", "init --remote origin"] {
        let ran = within(LIMIT, || team.run(0, line)).expect_error(2);
        assert!(!ran.stderr.contains("hunter2"), "{line}\n{ran}");
    }
    let by_url = within(LIMIT, || team.run(0, &format!("init --remote {url}"))).expect_error(2);
    assert!(!by_url.stderr.contains("hunter2"), "{by_url}");
}

#[test]
fn a_remote_hook_that_declines_is_a_policy_and_not_tried_again() {
    for (hook, body) in [("pre-receive", "echo no coordination here >&2; exit 1"), ("update", "exit 1")] {
        let team = impatient(Shared::over_http(1));
        team.git().install_hook(&team.bare, hook, body);
        let (before, pushes) = (refs(&team), team.server().pushes());
        for line in WRITES {
            let ran = within(LIMIT, || team.run(0, line)).expect_error(2);
            assert_is_harmless(&ran);
            assert!(ran.stderr.contains("hook") || ran.stderr.contains("declined"), "{hook}: {line}\n{ran}");
        }
        assert_eq!(refs(&team), before, "{hook}: nothing was half written");
        assert_eq!(team.server().pushes() - pushes, WRITES.len(), "{hook}: a policy is not tried again");
    }
}

#[test]
fn a_remote_that_hides_coordination_refs_is_a_policy() {
    let team = impatient(Shared::over_files(1));
    team.git().run(&team.bare, "config receive.hideRefs refs/agent-coord");
    let before = refs(&team);
    for line in WRITES {
        assert_is_harmless(&within(LIMIT, || team.run(0, line)).expect_error(2));
    }
    assert_eq!(refs(&team), before);
}

#[test]
fn a_remote_that_takes_no_pushes_is_an_error() {
    let team = impatient(Shared::over_http(1));
    team.git().run(&team.bare, "config http.receivepack false");
    let before = refs(&team);
    for line in WRITES {
        assert_is_harmless(&within(LIMIT, || team.run(0, line)).expect_error(2));
    }
    assert_eq!(refs(&team), before);
    assert_eq!(team.run(0, "status --repo o/r --target t --json").ok().json()["claims"][0]["agent_id"], "a");
}

#[test]
fn a_remote_without_atomic_pushes_is_refused_in_clear_words() {
    let team = impatient(Shared::over_files(1));
    team.git().run(&team.bare, "config receive.advertiseAtomic false");
    let before = refs(&team);
    for line in WRITES.iter().chain(&["init --remote origin"]) {
        let ran = within(LIMIT, || team.run(0, line)).expect_error(2);
        assert!(ran.stderr.contains("atomic"), "{line}\n{ran}");
    }
    assert_eq!(refs(&team), before, "nothing was half written");
}

#[test]
fn several_push_urls_are_refused_because_they_have_no_single_arbiter() {
    let team = impatient(Shared::over_files(1));
    for name in ["one.git", "two.git"] {
        let url = file_url(&team.git().remote(name));
        team.git().run(&team.clones[0], &format!("remote set-url --add --push origin {url}"));
    }
    for line in WRITES.iter().chain(&["init --remote origin"]) {
        let ran = within(LIMIT, || team.run(0, line)).expect_error(2);
        assert!(ran.stderr.contains("push URLs"), "{line}\n{ran}");
    }
    for name in ["one.git", "two.git"] {
        assert_eq!(team.git().coordination_refs(&team.env.path(name)), BTreeMap::new());
    }
}

/// Trap 12: what the user configured for their own pushes must not reach ours.
#[test]
fn settings_for_the_users_own_pushes_do_not_get_in_the_way() {
    let team = impatient(Shared::over_files(2));
    let clone = &team.clones[0];
    for setting in [
        "push.gpgSign true",
        "push.pushOption ci.skip",
        "push.followTags true",
        "push.recurseSubmodules on-demand",
        "push.default matching",
        "push.negotiate true",
        "remote.origin.mirror true",
        "remote.origin.push refs/heads/*:refs/heads/*",
        "remote.origin.prune true",
        "remote.pushDefault elsewhere",
        "fetch.prune true",
        "fetch.pruneTags true",
        "fetch.recurseSubmodules true",
        "fetch.fsckObjects true",
        "transfer.fsckObjects true",
        "core.logAllRefUpdates always",
        "commit.gpgSign true",
        "protocol.version 0",
        "color.ui always",
        "core.hooksPath /nowhere",
    ] {
        team.git().run(clone, &format!("config {setting}"));
    }
    let branches = team.git().run(&team.bare, "for-each-ref refs/heads refs/tags");
    team.run(0, "claim u --repo o/r --agent-id a --batch-id b1").ok();
    team.run(0, "heartbeat --agent-id a --repo o/r --target u").ok();
    assert_eq!(team.run(1, "status --repo o/r --target u --json").ok().json()["claims"][0]["agent_id"], "a");
    team.run(0, "release u --repo o/r --agent-id a").ok();
    team.run(0, "sync").ok();
    assert_eq!(holder(team.git(), &team.bare, "u"), None);
    assert_eq!(team.git().run(&team.bare, "for-each-ref refs/heads refs/tags"), branches, "nothing else was pushed");
}

/// Trap 2: the claim lands, and the reply is lost.
#[test]
fn a_claim_whose_reply_is_lost_is_found_and_not_doubled() {
    let team = Shared::over_http(2);
    for (losses, target) in [(1, "t1"), (2, "t2")] {
        team.server().behave(Manners::LosePushReplies(losses));
        team.run(0, &format!("claim {target} --repo o/r --agent-id a --batch-id b1")).ok();
        team.server().behave(Manners::Serve);
        let claim = claim_at(team.git(), &team.bare, target).expect("it landed");
        assert_eq!(claim["$store"]["revision"], 1, "it landed once");
        let status = team.run(1, "status --json").ok().json();
        let events = status["events"].as_array().expect("events are a list").clone();
        assert_eq!(events.iter().filter(|event| event["target"] == target).count(), 1, "and so did its event");
    }
}

#[test]
fn a_write_whose_reply_never_comes_is_found_or_reported_unknown() {
    let team = impatient(Shared::over_http(2));
    team.server().behave(Manners::HangAfterPush);
    let ran = within(LIMIT, || team.run(0, "claim u --repo o/r --agent-id a"));
    assert!(ran.code == 0 || ran.code == 2, "the claim is there, or the outcome is unknown\n{ran}");
    team.server().behave(Manners::Serve);
    let _ = team.run(1, "claim u --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
    team.run(0, "claim u --repo o/r --agent-id a").ok();
    assert_eq!(claim_at(team.git(), &team.bare, "u").expect("a claim")["generation"], 1, "still the first tenure");
}

#[test]
fn a_remote_that_comes_back_is_used_again() {
    let team = impatient(Shared::over_http(1));
    team.server().behave(Manners::Hang);
    within(LIMIT, || team.run(0, "claim u --repo o/r --agent-id a")).expect_error(2);
    team.server().behave(Manners::Serve);
    team.run(0, "claim u --repo o/r --agent-id a").ok();
    assert_eq!(holder(team.git(), &team.bare, "u").as_deref(), Some("a"));
}

#[test]
fn a_git_that_is_too_old_is_named_with_what_is_needed() {
    let env = TestEnv::new();
    let Some(version) = version_of(&env, Path::new("/usr/bin/git")).filter(|version| *version < (2, 41)) else {
        eprintln!("skipped: /usr/bin/git is missing or new enough");
        return;
    };
    let clone = env.git().repository("clone");
    let mut command = env.agent_coord(&clone, ["claim", "t", "--repo", "o/r", "--agent-id", "a"]);
    let ran = env.finish(command.env("PATH", "/usr/bin")).expect_error(2);
    let found = format!("{}.{}", version.0, version.1);
    let _ = ran.expect_stderr("is too old").expect_stderr("2.41").expect_stderr(&found);
    let mut command = env.agent_coord(&clone, ["claim", "t", "--repo", "o/r", "--agent-id", "a"]);
    let none = env.finish(command.env("PATH", env.path("home"))).expect_error(2);
    let _ = none.expect_stderr("git was not found on PATH");
}

fn version_of(env: &TestEnv, git: &Path) -> Option<(u32, u32)> {
    let output = env.program(git, env.root()).arg("version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut parts = text.split_whitespace().nth(2)?.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// `url.<base>.pushInsteadOf` may send pushes to another repository than fetches: a mirror for reading, say.
#[test]
fn pushes_that_are_sent_elsewhere_take_the_fetches_with_them() {
    let team = Shared::over_files(2);
    let git = team.git();
    let copy = team.env.path("copy.git");
    git.run(team.env.root(), &format!("clone --quiet --mirror {} {}", team.bare.display(), copy.display()));
    let (arbiter, reading) = (file_url(&team.bare), file_url(&copy));
    git.run(&team.clones[0], &format!("config remote.origin.url {reading}"));
    git.run(&team.clones[0], &format!("config url.{arbiter}.pushInsteadOf {reading}"));
    let before = git.coordination_refs(&copy);
    for pushes_are_rewritten_back in [false, true] {
        if pushes_are_rewritten_back {
            let start = |url: &str| url.trim_end_matches(".git").to_owned();
            git.run(&team.clones[0], &format!("config url.{}.insteadOf {}", start(&reading), start(&arbiter)));
        }
        let target = format!("t{pushes_are_rewritten_back}");
        team.run(0, &format!("claim {target} --repo o/r --agent-id a")).ok();
        assert_eq!(team.holder(&target).as_deref(), Some("a"), "the arbiter has it");
        let refused = team.run(1, &format!("claim {target} --repo o/r --agent-id b")).expect_error(3);
        let _ = refused.expect_stderr("held by a");
        team.run(1, &format!("claim {target}x --repo o/r --agent-id b")).ok();
        let status = team.run(0, &format!("status --repo o/r --target {target}x --json")).ok().json();
        assert_eq!(status["claims"][0]["agent_id"], "b", "reads come from the arbiter, too");
    }
    assert_eq!(git.coordination_refs(&copy), before, "nothing of ours went to the copy");
}

#[test]
fn a_push_url_of_its_own_is_not_rewritten_by_push_instead_of() {
    let team = Shared::over_files(1);
    let (arbiter, elsewhere) = (file_url(&team.bare), file_url(&team.env.path("elsewhere.git")));
    team.git().run(&team.clones[0], &format!("config remote.origin.pushurl {arbiter}"));
    team.git().run(&team.clones[0], &format!("config url.{elsewhere}.pushInsteadOf {arbiter}"));
    team.run(0, "claim t --repo o/r --agent-id a").ok();
    assert_eq!(team.holder("t").as_deref(), Some("a"));
}
