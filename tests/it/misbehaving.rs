//! The test servers themselves: a server that is not as bad as it says proves nothing.

use std::time::{Duration, Instant};

use crate::support::{HangingListener, HttpRemote, Manners, TestEnv};

#[test]
fn the_http_remote_serves_clones_and_pushes() {
    let env = TestEnv::new();
    let git = env.git();
    let bare = git.remote("team.git");
    let server = HttpRemote::start(&env);
    let clone = git.clone(&server.url(&bare), "clone");
    git.commit(&clone, "a", "b");
    git.run(&clone, "push --quiet --atomic origin HEAD:refs/heads/topic");
    assert_eq!(git.run(&bare, "rev-parse topic"), git.run(&clone, "rev-parse HEAD"));
    assert_eq!(server.pushes(), 1);
}

#[test]
fn the_http_remote_loses_replies_of_pushes_that_landed() {
    let env = TestEnv::new();
    let git = env.git();
    let bare = git.remote("team.git");
    let server = HttpRemote::start(&env);
    let clone = git.clone(&server.url(&bare), "clone");
    git.commit(&clone, "a", "b");
    server.behave(Manners::LosePushReplies(1));
    let lost = git.attempt(&clone, ["push", "origin", "HEAD:refs/heads/topic"]);
    assert_ne!(lost.code, 0, "{lost}");
    assert_eq!(git.run(&bare, "rev-parse topic"), git.run(&clone, "rev-parse HEAD"), "it landed all the same");
    server.behave(Manners::AskForPassword);
    let refused = git.attempt(&clone, ["-c", "credential.helper=", "-c", "core.askPass=false", "fetch"]);
    assert_ne!(refused.code, 0, "{refused}");
}

#[test]
fn the_hanging_listener_hangs() {
    let env = TestEnv::new();
    let listener = HangingListener::start();
    let started = Instant::now();
    let mut command = env.program("timeout", env.root());
    let ran = env.finish(command.args(["1", "git", "ls-remote", &listener.url()]));
    assert_eq!(ran.code, 124, "timeout had to stop git\n{ran}");
    assert!(started.elapsed() >= Duration::from_secs(1));
}
