//! Caches that somebody wiped or a crash broke: the next command that may use the network mends them, and until then
//! nobody takes what is missing for free.

use std::path::PathBuf;

use crate::support::{Ran, Shared};

const CLAIM: &str = ".git/refs/agent-coord/claims/o/r/t.json";

/// Two clones with hooks; the first holds `t` for branch `feat`, which the second has checked out as well.
fn team() -> Shared {
    let team = Shared::over_files(2);
    for clone in &team.clones {
        team.git().run(clone, "switch --quiet -c feat");
    }
    team.run(0, "claim t --repo o/r --agent-id a").ok();
    team.run(0, "heartbeat --repo o/r --target t --agent-id a").ok();
    team.run(1, "sync").ok();
    team.run(1, "hooks install").ok();
    team
}

fn commit(team: &Shared) -> Ran {
    team.git().attempt(&team.clones[1], ["commit", "--quiet", "--allow-empty", "-m", "x"])
}

#[track_caller]
fn assert_refused(team: &Shared, after: &str) {
    let ran = commit(team);
    assert_ne!(ran.code, 0, "after {after} the claim of another is not forgotten\n{ran}");
}

#[test]
fn one_record_fetched_into_a_wiped_cache_does_not_make_the_others_free() {
    let lines = [
        "heartbeat --agent-id b",
        "claim other --repo o/r --agent-id b",
        "status --repo o/r --target other",
        "record-event --batch-id b1 --type note --message hello",
    ];
    for line in lines {
        let team = team();
        assert_refused(&team, "sync");
        // What a mirror refspec of the user's own does (trap 10).
        team.git().run(&team.clones[1], "fetch --quiet --prune origin +refs/heads/*:refs/*");
        assert!(team.git().coordination_refs(&team.clones[1]).is_empty(), "the cache is wiped");
        assert_refused(&team, "the wipe");
        team.run(1, line).ok();
        assert_refused(&team, line);
        let _ = commit(&team).expect_stderr("held by a");
    }
}

/// Ways in which a crash, or somebody's hand, breaks the cache.
fn breakages(team: &Shared) -> Vec<(&'static str, PathBuf, Vec<u8>)> {
    let clone = &team.clones[1];
    let object = team.git().coordination_refs(clone)["refs/agent-coord/claims/o/r/t.json"].clone();
    vec![
        ("an empty ref", clone.join(CLAIM), Vec::new()),
        ("a ref of nonsense", clone.join(CLAIM), vec![0; 41]),
        ("a symbolic ref", clone.join(CLAIM), b"ref: refs/heads/main\n".to_vec()),
        ("a ref to no object", clone.join(CLAIM), format!("{}\n", "7".repeat(40)).into_bytes()),
        ("an empty store ref", clone.join(".git/refs/agent-coord/store.json"), Vec::new()),
        ("an empty object", clone.join(".git/objects").join(&object[..2]).join(&object[2..]), Vec::new()),
    ]
}

#[test]
fn a_broken_cache_is_mended_by_the_next_command_that_fetches() {
    let count = breakages(&team()).len();
    for line in ["sync", "heartbeat --agent-id b", "status --repo o/r --target t"] {
        for number in 0..count {
            let team = team();
            let (name, file, content) = breakages(&team).swap_remove(number);
            std::fs::remove_file(&file).unwrap_or_else(|error| panic!("{name}: {}: {error}", file.display()));
            std::fs::write(&file, content).expect("a file can be written");
            let ran = team.run(1, line);
            assert_eq!(ran.code, 0, "{line} with {name}\n{ran}");
            team.run(1, "sync").ok();
            assert_refused(&team, name);
            let ran = team.run(1, "claim t --repo o/r --agent-id b").expect_error(3);
            let _ = ran.expect_stderr("held by a");
            team.git().run(&team.clones[1], "fetch --quiet");
        }
    }
}

#[test]
fn a_cache_that_is_packed_and_broken_is_mended_as_well() {
    let team = team();
    team.git().run(&team.clones[1], "pack-refs --all --prune");
    std::fs::create_dir_all(team.clones[1].join(CLAIM).parent().expect("a folder")).expect("a folder");
    std::fs::write(team.clones[1].join(CLAIM), "").expect("a file");
    team.run(1, "sync").ok();
    assert_refused(&team, "an empty ref over a packed one");
    assert_eq!(team.git().coordination_refs(&team.clones[1]), team.git().coordination_refs(&team.bare));
}
