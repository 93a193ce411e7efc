//! A team: clones that share their coordination through one remote.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::git::file_url;
use super::together::together;
use super::{Git, HttpRemote, Ran, TestEnv};

/// The repository that every test claims in.
pub const REPO: &str = "o/r";

/// Clones of one remote, each of them initialised with it.
pub struct Shared {
    pub env: TestEnv,
    /// The remote's repository.
    pub bare: PathBuf,
    /// One clone for each member.
    pub clones: Vec<PathBuf>,
    /// Present when the remote is reached over HTTP.
    pub server: Option<HttpRemote>,
}

impl Shared {
    /// Returns `count` clones that reach the remote as `file://`.
    pub fn over_files(count: usize) -> Self {
        let env = TestEnv::new();
        let bare = env.git().remote("team.git");
        let url = file_url(&bare);
        Self { env, bare, clones: Vec::new(), server: None }.with_clones(&url, count)
    }

    /// Returns `count` clones that reach the remote over smart HTTP.
    pub fn over_http(count: usize) -> Self {
        let env = TestEnv::new();
        let bare = env.git().remote("team.git");
        let server = HttpRemote::start(&env);
        let url = server.url(&bare);
        Self { env, bare, clones: Vec::new(), server: Some(server) }.with_clones(&url, count)
    }

    fn with_clones(mut self, url: &str, count: usize) -> Self {
        for number in 0..count {
            let clone = self.env.git().clone(url, &format!("clone{number}"));
            self.env.coord(&clone, "init --remote origin --repo o/r").ok();
            self.clones.push(clone);
        }
        self
    }

    pub fn git(&self) -> Git<'_> {
        self.env.git()
    }

    /// Returns the server, for tests that opened the team over HTTP.
    pub fn server(&self) -> &HttpRemote {
        self.server.as_ref().expect("this team was opened over HTTP")
    }

    /// Runs a command line in the clone of one member.
    pub fn run(&self, member: usize, line: &str) -> Ran {
        self.env.coord(&self.clones[member], line)
    }

    /// Returns who holds `target` according to the remote itself, whatever any clone thinks.
    pub fn holder(&self, target: &str) -> Option<String> {
        holder(self.git(), &self.bare, target)
    }
}

/// Returns who holds an active claim on `target` according to the refs of `repository`.
pub fn holder(git: Git<'_>, repository: &Path, target: &str) -> Option<String> {
    let claim = claim_at(git, repository, target)?;
    (claim["status"] == "active").then(|| claim["agent_id"].as_str().expect("an active claim has a holder").to_owned())
}

/// Returns the claim on `target` as the refs of `repository` have it.
pub fn claim_at(git: Git<'_>, repository: &Path, target: &str) -> Option<Value> {
    let name = format!("{}claims/o/r/{target}.json", super::git::ROOT);
    let ran = git.attempt(repository, ["cat-file", "blob", &name]);
    (ran.code == 0).then(|| ran.json())
}

/// Checks that every coordination ref holds what belongs there: nothing torn, nothing half written.
#[track_caller]
pub fn assert_every_ref_parses(git: Git<'_>, repository: &Path) {
    for (name, object) in git.coordination_refs(repository) {
        let kind = git.run(repository, &format!("cat-file -t {object}"));
        match kind.trim() {
            "blob" => assert_record(git, repository, &name, &object),
            "tree" => {
                for line in git.run(repository, &format!("ls-tree {object}")).lines() {
                    let blob = line.split_whitespace().nth(2).expect("a line of ls-tree names an object");
                    assert_record(git, repository, &name, blob);
                }
            }
            other => panic!("{name} points at a {other}"),
        }
    }
}

#[track_caller]
fn assert_record(git: Git<'_>, repository: &Path, name: &str, blob: &str) {
    let text = git.run(repository, &format!("cat-file blob {blob}"));
    let value: Result<Value, _> = serde_json::from_str(&text);
    assert!(value.as_ref().is_ok_and(Value::is_object), "{name} is torn: {text:?}");
}

/// Lets `agents` claim `target` at the same instant, each in its own folder, and checks that exactly one is told it
/// won while every other is told who did. Returns the winner's number.
#[track_caller]
pub fn race_for(env: &TestEnv, folders: &[PathBuf], target: &str) -> usize {
    let commands: Vec<Command> = (0..folders.len())
        .map(|number| {
            let agent = agent(number);
            env.agent_coord(&folders[number], ["claim", target, "--repo", REPO, "--agent-id", &agent])
        })
        .collect();
    let ended = super::together::race(env, commands);
    let winner = only_winner(&ended, target);
    assert!(ended[winner].stdout.starts_with(&format!("claimed {REPO}#{target} by {}", agent(winner))));
    let refusal = format!("CLAIM_REFUSED: active claim for {REPO}#{target} held by {}", agent(winner));
    for (number, ran) in ended.into_iter().enumerate().filter(|(number, _)| *number != winner) {
        let ran = ran.expect_error(3).expect_stderr(&refusal);
        assert_eq!(ran.stderr.lines().count(), 1, "agent {number}: a refusal is one line\n{ran}");
    }
    winner
}

/// Returns the number of the only command that succeeded.
#[track_caller]
pub fn only_winner(ended: &[Ran], target: &str) -> usize {
    let winners: Vec<usize> = (0..ended.len()).filter(|&number| ended[number].code == 0).collect();
    let said: Vec<String> = ended.iter().map(|ran| format!("{} {}{}", ran.code, ran.stdout, ran.stderr)).collect();
    assert_eq!(winners.len(), 1, "exactly one is told it holds {target}:\n{}", said.join(""));
    winners[0]
}

/// Returns the agent id of member `number`.
pub fn agent(number: usize) -> String {
    format!("w{number}")
}

/// Checks that `status` of every folder names the same holders, `(target, agent)`.
#[track_caller]
pub fn assert_all_agree(env: &TestEnv, folders: &[PathBuf], holders: &[(String, String)]) {
    let jobs: Vec<_> = folders.iter().map(|folder| move || env.coord(folder, "status --json").ok().json()).collect();
    for (folder, status) in folders.iter().zip(together(jobs)) {
        for (target, holder) in holders {
            let claims = status["claims"].as_array().expect("claims are a list");
            let found: Vec<&Value> = claims.iter().filter(|claim| claim["target"] == target.as_str()).collect();
            assert_eq!(found.len(), 1, "{}: one row for {target}", folder.display());
            assert_eq!(found[0]["agent_id"], holder.as_str(), "{}: the holder of {target}", folder.display());
        }
    }
}
