//! Repositories of every shape, and records that somebody else got wrong.

use std::path::Path;

use crate::support::git::file_url;
use crate::support::shared::{assert_every_ref_parses, holder};
use crate::support::{Ran, Shared, TestEnv};

/// Claims, beats, looks and releases in `directory`, and checks that the refs of `repository` have it.
fn assert_works(env: &TestEnv, directory: &Path, repository: &Path, target: &str) {
    let line = |words: &str| env.coord(directory, &format!("{words} --repo o/r --target {target}"));
    line("claim --agent-id a --batch-id b1").ok();
    line("heartbeat --agent-id a --phase implementing").ok();
    assert_eq!(holder(env.git(), repository, target).as_deref(), Some("a"), "in {}", directory.display());
    let status = line("status --json").ok().json();
    assert_eq!((&status["claims"][0]["agent_id"], &status["heartbeats"][0]["liveness"]), (&"a".into(), &"live".into()));
    let _ = line("claim --agent-id b").expect_error(3).expect_stderr("held by a; heartbeat live");
    line("release --agent-id a").ok();
    assert_eq!(holder(env.git(), repository, target), None);
    assert_every_ref_parses(env.git(), repository);
}

#[test]
fn main_worktree_linked_worktree_and_subfolder_share_one_store() {
    let env = TestEnv::new();
    let main = env.git().repository("main");
    let linked = env.git().worktree(&main, "linked");
    let below = main.join("a/b/c");
    std::fs::create_dir_all(&below).expect("a folder");
    for (number, directory) in [&main, &linked, &below].into_iter().enumerate() {
        assert_works(&env, directory, &main, &format!("t{number}"));
    }
    let inside = main.join(".git/refs");
    assert_works(&env, &inside, &main, "t-inside");
}

#[test]
fn a_bare_repository_works() {
    let env = TestEnv::new();
    let bare = env.git().remote("bare.git");
    assert_works(&env, &bare, &bare, "t");
    let linked = env.path("linked");
    env.git().run(&bare, &format!("worktree add --quiet --detach {}", linked.display()));
    assert_works(&env, &linked, &bare, "u");
}

#[test]
fn git_dir_names_the_repository_wherever_the_command_runs() {
    let mut env = TestEnv::new();
    let (named, other) = (env.git().repository("named"), env.git().repository("other"));
    let git_dir = named.join(".git");
    env.set("GIT_DIR", &git_dir);
    env.coord(&other, "claim t --repo o/r --agent-id a").ok();
    let mut plain = TestEnv::new();
    assert_eq!(holder(plain.git(), &named, "t").as_deref(), Some("a"));
    assert_eq!(holder(plain.git(), &other, "t"), None, "trap 8: the wrong repository was not written");
    // Inside a hook git exports these, relative ones too.
    plain.set("GIT_DIR", ".git").set("GIT_INDEX_FILE", "/nowhere/index").set("GIT_PREFIX", "sub/");
    plain.coord(&other, "claim u --repo o/r --agent-id a").ok();
    assert_eq!(holder(TestEnv::new().git(), &other, "u").as_deref(), Some("a"));
}

#[test]
fn a_ref_namespace_of_the_environment_hides_no_record() {
    let mut env = TestEnv::new();
    let main = env.git().repository("main");
    env.coord(&main, "claim t --repo o/r --agent-id a").ok();
    env.set("GIT_NAMESPACE", "elsewhere");
    for with_head in [false, true] {
        if with_head {
            env.git().run(&main, "update-ref refs/namespaces/elsewhere/HEAD HEAD");
        }
        let _ = env.coord(&main, "claim t --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
        let status = env.coord(&main, "status --repo o/r --target t --json").ok().json();
        assert_eq!(status["claims"][0]["agent_id"], "a");
    }
}

#[test]
fn outside_of_any_repository_the_error_says_what_is_missing() {
    let env = TestEnv::new();
    let ran = env.coord(env.root(), "claim t --repo o/r --agent-id a");
    assert!(ran.code == 1 || ran.code == 2, "{ran}");
    assert_eq!(ran.stdout, "");
    let _ = ran.expect_stderr("repository");
    let broken = env.path("broken");
    std::fs::create_dir_all(&broken).expect("a folder");
    std::fs::write(broken.join(".git"), "gitdir: /nowhere/at/all\n").expect("a file");
    env.coord(&broken, "claim t --repo o/r --agent-id a").expect_error(2);
}

#[test]
fn sha256_repositories_work_alone_and_shared() {
    let env = TestEnv::new();
    let alone = env.path("alone");
    env.git().run(env.root(), &format!("init --quiet --object-format=sha256 {}", alone.display()));
    env.git().commit(&alone, "a", "a");
    assert_works(&env, &alone, &alone, "t");
    let bare = env.path("bare.git");
    env.git().run(env.root(), &format!("clone --quiet --bare {} {}", alone.display(), bare.display()));
    assert_shared(&env, &file_url(&bare), &bare, "");
}

/// Two fresh clones of `url`, made with `options`, share their coordination.
fn assert_shared(env: &TestEnv, url: &str, bare: &Path, options: &str) {
    let clones = ["one", "two"].map(|name| env.git().clone_with(url, name, options));
    for clone in &clones {
        env.coord(clone, "init --remote origin --repo o/r").ok();
    }
    assert_works(env, &clones[0], bare, "shared");
    env.coord(&clones[0], "claim held --repo o/r --agent-id a").ok();
    let _ = env.coord(&clones[1], "claim held --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
}

#[test]
fn reftable_repositories_work_alone_and_shared() {
    let env = TestEnv::new();
    let alone = env.path("alone");
    let made = env.git().attempt(env.root(), ["init", "--quiet", "--ref-format=reftable", &alone.to_string_lossy()]);
    if made.code != 0 {
        eprintln!("skipped: this git has no reftable: {}", made.stderr.trim());
        return;
    }
    env.git().commit(&alone, "a", "a");
    assert_works(&env, &alone, &alone, "t");
    let bare = env.git().remote("bare.git");
    assert_shared(&env, &file_url(&bare), &bare, "--ref-format=reftable");
}

#[test]
fn partial_and_shallow_clones_work() {
    for options in ["--filter=blob:none", "--depth=1", "--filter=tree:0 --no-checkout"] {
        let env = TestEnv::new();
        let bare = env.git().remote("bare.git");
        env.git().run(&bare, "config uploadpack.allowFilter true");
        assert_shared(&env, &file_url(&bare), &bare, options);
    }
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let env = TestEnv::new();
    let (outer, part) = (env.git().repository("outer"), env.git().remote("part.git"));
    env.git().run(&outer, &format!("submodule --quiet add {} part", file_url(&part)));
    let inner = outer.join("part");
    assert_works(&env, &inner, &inner, "t");
    assert!(env.git().coordination_refs(&outer).is_empty(), "the outer repository was left alone");
    env.coord(&inner, "init --remote origin --repo o/r").ok();
    assert_works(&env, &inner, &part, "u");
}

#[test]
fn unborn_branches_and_detached_heads_work() {
    let env = TestEnv::new();
    let unborn = env.git().unborn("unborn");
    assert_works(&env, &unborn, &unborn, "t");
    let detached = env.git().repository("detached");
    env.git().run(&detached, "checkout --quiet --detach");
    assert_works(&env, &detached, &detached, "t");
}

#[test]
fn coordination_never_shows_up_in_the_users_own_views() {
    let team = Shared::over_files(1);
    let clone = &team.clones[0];
    let views = ["log --all --oneline", "branch --all", "tag", "status --porcelain", "stash list", "reflog --all"];
    let look = || views.map(|view| team.git().run(clone, view));
    let before = look();
    team.run(0, "claim t --repo o/r --agent-id a --batch-id b1").ok();
    team.run(0, "heartbeat --agent-id a").ok();
    assert_eq!(look(), before);
    let fetch = team.git().run(clone, "config --get-all remote.origin.fetch");
    assert_eq!(fetch, "+refs/heads/*:refs/remotes/origin/*\n", "the user's refspecs are theirs");
}

/// Records that a malicious or broken client wrote.
fn hostile() -> Vec<(&'static str, Vec<u8>)> {
    let claim = |agent: &str| {
        format!(
            "{{\"schema_version\":1,\"repo\":\"o/r\",\"target\":\"x\",\"agent_id\":{agent},\"status\":\"active\",\
             \"claimed_at\":\"2026-01-01T00:00:00Z\",\"updated_at\":\"2026-01-01T00:00:00Z\",\
             \"expires_at\":\"2099-01-01T00:00:00Z\"}}"
        )
    };
    vec![
        ("array", b"[]".to_vec()),
        ("broken", b"{\"agent_id\": \"x\"".to_vec()),
        ("bytes", b"{\"agent_id\": \"\xff\xfe\"}".to_vec()),
        ("deep", format!("{}{}", "[".repeat(20_000), "]".repeat(20_000)).into_bytes()),
        ("empty", Vec::new()),
        ("large", format!("{{\"agent_id\":\"{}\"}}", "x".repeat(2_000_000)).into_bytes()),
        ("control", claim("\"evil\\u001b[2J\\u0007\\u202e\\r\\nclaims\\n- forged\"").into_bytes()),
        ("types", claim("{\"a\":[1]}").into_bytes()),
        ("dates", claim("\"d\"").replace("2099-01-01T00:00:00Z", "tomorrow").into_bytes()),
    ]
}

#[test]
fn malformed_records_are_reported_and_the_healthy_rest_is_shown() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim good --repo o/r --agent-id a").ok();
    env.coord(&clone, "heartbeat --agent-id a --repo o/r --target good").ok();
    for (name, bytes) in hostile() {
        env.git().plant(&clone, &format!("claims/o/r/{name}.json"), &bytes);
        env.git().plant(&clone, &format!("heartbeats/{name}.json"), &bytes);
    }
    let text = env.coord(&clone, "status");
    assert!(text.stdout.contains("- o/r#good active a"), "the healthy rest is shown\n{text}");
    let json = env.coord(&clone, "status --json");
    assert_eq!(json.code, text.code);
    let claims = json.json()["claims"].as_array().expect("claims are a list").clone();
    assert!(claims.iter().any(|claim| claim["target"] == "good" && claim["agent_id"] == "a"));
    for name in ["broken", "bytes", "deep", "empty", "large"] {
        let path = format!("claims/o/r/{name}.json");
        let said = format!("{}{}", text.stdout, text.stderr);
        assert!(said.contains(&path), "{path} is reported\n{text}");
    }
    assert_is_printable(&text);
    let release = env.coord(&clone, "release good --repo o/r --agent-id a");
    release.ok();
}

#[test]
fn a_malformed_claim_is_unknown_and_never_free() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim good --repo o/r --agent-id a").ok();
    for (name, bytes) in hostile() {
        let path = format!("claims/o/r/{name}.json");
        let blob = env.git().plant(&clone, &path, &bytes);
        let claimed = env.coord(&clone, &format!("claim {name} --repo o/r --agent-id b"));
        let released = env.coord(&clone, &format!("release {name} --repo o/r --agent-id b"));
        for ran in [&claimed, &released] {
            assert_is_printable(ran);
            assert!(!ran.stderr.contains("panicked"), "{ran}");
            assert!(ran.stderr.lines().all(|line| line.len() < 2_000), "{name}: an error is no dump");
        }
        match name {
            "array" | "broken" | "bytes" | "deep" | "empty" | "large" => {
                let _ = claimed.expect_error(2).expect_stderr(&path);
                let _ = released.expect_error(2).expect_stderr(&path);
            }
            "control" => {
                let _ = claimed.expect_error(3).expect_stderr("CLAIM_REFUSED");
            }
            // A holder that is no text is still somebody.
            "types" => {
                let _ = claimed.expect_error(3).expect_stderr("CLAIM_REFUSED");
                let _ = released.expect_error(1).expect_stderr("b cannot release it");
            }
            // An expiry that cannot be read protects nobody.
            "dates" => continue,
            _ => unreachable!("{name} is one of the records above"),
        }
        assert_eq!(env.git().run(&clone, &format!("rev-parse refs/agent-coord/{path}")).trim(), blob);
    }
}

#[test]
fn a_malformed_heartbeat_protects_its_holder_until_the_claim_expires() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    for (name, bytes) in hostile().into_iter().filter(|(name, _)| !["control", "types", "dates"].contains(name)) {
        env.coord(&clone, &format!("claim t-{name} --repo o/r --agent-id {name}")).ok();
        env.git().plant(&clone, &format!("heartbeats/{name}.json"), &bytes);
        let refusal =
            format!("CLAIM_REFUSED: active claim for o/r#t-{name} held by {name}; heartbeat invalid; fallback");
        let ran = env.coord(&clone, &format!("claim t-{name} --repo o/r --agent-id b"));
        let _ = ran.expect_error(3).expect_stderr(&refusal);
    }
}

#[test]
fn refs_that_are_no_records_are_left_alone() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim good --repo o/r --agent-id a").ok();
    let commit = env.git().run(&clone, "rev-parse HEAD");
    let tree = env.git().run(&clone, "rev-parse HEAD^{tree}");
    for (name, object) in [
        ("claims/o/r/commit.json", &commit),
        ("claims/o/r/tree.json", &tree),
        ("claims/Capital/r/1.json", &commit),
        ("unknown/family", &commit),
        ("events/b1/not-a-segment", &commit),
        ("events/b1/0123456789abcdef.0.log", &commit),
        ("heartbeats/x/y.json", &commit),
    ] {
        env.git().run(&clone, &format!("update-ref refs/agent-coord/{name} {}", object.trim()));
    }
    let text = env.coord(&clone, "status");
    assert!(text.stdout.contains("- o/r#good active a"), "{text}");
    env.coord(&clone, "claim commit --repo o/r --agent-id b").expect_error(2);
    env.coord(&clone, "claim tree --repo o/r --agent-id b").expect_error(2);
    env.coord(&clone, "claim other --repo o/r --agent-id b --batch-id b1").ok();
    env.coord(&clone, "release good --repo o/r --agent-id a").ok();
}

#[test]
fn refs_packed_by_git_are_read_and_changed_like_any_other() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim t --repo o/r --agent-id a --batch-id b1").ok();
    env.git().run(&clone, "pack-refs --all --prune");
    env.git().run(&clone, "gc --quiet");
    let _ = env.coord(&clone, "claim t --repo o/r --agent-id b").expect_error(3).expect_stderr("held by a");
    env.coord(&clone, "release t --repo o/r --agent-id a").ok();
    env.coord(&clone, "claim t --repo o/r --agent-id b").ok();
    assert_eq!(holder(env.git(), &clone, "t").as_deref(), Some("b"));
}

/// Trap 12: no byte of a record may command the terminal of whoever looks, nor forge a line.
#[track_caller]
fn assert_is_printable(ran: &Ran) {
    for (name, text) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        let bad = |c: char| {
            (c.is_control() && c != '\n')
                || ('\u{202a}'..='\u{202e}').contains(&c)
                || ('\u{2066}'..='\u{2069}').contains(&c)
        };
        let found: Vec<char> = text.chars().filter(|c| bad(*c)).collect();
        assert!(found.is_empty(), "{name} holds {found:?} unescaped");
        assert!(!text.lines().any(|line| line == "- forged"), "{name}: a record forged a line\n{ran}");
    }
}

/// Whoever can write into a git directory may leave a pipe there, and a crash may leave anything.
#[test]
fn a_private_file_that_is_a_pipe_or_a_folder_is_waited_for_by_nobody() {
    let mut team = Shared::over_files(1);
    team.env.set("AGENT_COORD_TIMEOUT", "5");
    let clone = team.clones[0].clone();
    for line in ["claim first --repo o/r --agent-id a", "heartbeat --agent-id a", "hooks install"] {
        team.run(0, line).ok();
    }
    let folder = std::fs::read_dir(clone.join(".git/agent-coord")).expect("private files");
    let mut files: Vec<_> = folder.flatten().map(|file| file.path()).collect();
    assert!(files.iter().any(|file| file.ends_with("writer")), "{files:?}");
    files.push(clone.join(".git/MERGE_INTENT"));
    let lines = [
        "agent-coord init",
        "agent-coord claim second --repo o/r --agent-id a",
        "agent-coord heartbeat --agent-id a",
        "agent-coord status",
        "git push --quiet origin HEAD:refs/heads/main",
    ];
    for file in files {
        for kind in ["mkfifo", "mkdir"] {
            let _ = std::fs::remove_file(&file);
            team.env.finish(team.env.program(kind, &clone).arg(&file)).ok();
            for line in lines {
                let words = ["15"].into_iter().chain(line.split(' '));
                let ran = team.env.finish(team.env.program("timeout", &clone).args(words));
                assert_ne!(ran.code, 124, "{line} waits for {} made by {kind}\n{ran}", file.display());
                assert!(!ran.stderr.contains("panicked"), "{line}\n{ran}");
            }
            let _ = std::fs::remove_dir(&file);
        }
    }
}

#[test]
fn a_count_of_writes_at_its_end_stops_nobody() {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    env.coord(&clone, "claim t --repo o/r --agent-id a").ok();
    env.coord(&clone, "heartbeat --agent-id a").ok();
    for path in ["claims/o/r/t.json", "heartbeats/a.json"] {
        let mut record: serde_json::Value = serde_json::from_str(&env.git().show(&clone, path)).expect("a record");
        record["$store"]["revision"] = u64::MAX.into();
        env.git().plant(&clone, path, record.to_string().as_bytes());
    }
    for line in ["claim t --repo o/r --agent-id a", "heartbeat --agent-id a", "release t --repo o/r --agent-id a"] {
        env.coord(&clone, line).ok();
    }
    env.coord(&clone, "claim t --repo o/r --agent-id b").ok();
}
