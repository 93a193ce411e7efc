//! Clones with hooks installed, and claims of others in them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::support::clock::WallClock;
use agent_coord::app::App;
use agent_coord::app::transact::Step;
use agent_coord::domain::claim::{Acquired, FirstRead, acquire};
use agent_coord::domain::decision::{Decision, Edit, Put};
use agent_coord::domain::ids::{AgentId, EventId, RepoName, Target, TransactionId};
use agent_coord::domain::path::RecordPath;
use agent_coord::domain::record::Members;
use agent_coord::domain::request::{Acquire, Attribution, Metadata, Stamp};
use agent_coord::domain::snapshot::{Freshness, Scope};
use agent_coord::git::Repository;
use agent_coord::store::git::join::{Initialise, initialise};
use agent_coord::store::open;
use agent_coord::worktree::held;
use agent_coord::world::{Clock, Deadline, SystemClock, SystemRandomness};

use crate::support::{Ran, TestEnv};

/// The repository every clone of these tests means.
pub const REPO: &str = "o/r";

/// A clone in which commits and pushes are tried.
pub struct Clone<'a> {
    pub env: &'a TestEnv,
    pub path: PathBuf,
}

impl<'a> Clone<'a> {
    /// Returns a clone of its own with the hooks installed and agent `me` at work on branch `feat`.
    pub fn local(env: &'a TestEnv) -> Self {
        let path = env.git().repository("clone");
        Self::prepare(env, path, None)
    }

    /// Returns such a clone that shares its claims through `remote`, which is `origin`.
    pub fn shared(env: &'a TestEnv, remote: &Path) -> Self {
        let path = env.git().clone(&remote.display().to_string(), "clone");
        Self::prepare(env, path, Some("origin"))
    }

    /// Returns another member's clone of `remote`, without hooks.
    pub fn of_another(env: &'a TestEnv, remote: &Path) -> Self {
        let path = env.git().clone(&remote.display().to_string(), "theirs");
        let clone = Self { env, path };
        clone.join(Some("origin"));
        clone
    }

    fn prepare(env: &'a TestEnv, path: PathBuf, remote: Option<&str>) -> Self {
        let clone = Self { env, path };
        clone.git("config agent-coord.agentId me");
        clone.git("switch --quiet -c feat");
        clone.join(remote);
        env.coord(&clone.path, "hooks install").ok();
        clone
    }

    fn join(&self, remote: Option<&str>) {
        let clock = SystemClock::start();
        let deadline = Deadline::after(&clock, Duration::from_secs(20));
        let ask = Initialise { remote: remote.map(str::to_owned), default_repo: Some(REPO.to_owned()) };
        initialise(&self.repository(), &ask, &SystemRandomness, &deadline).expect("the store is made");
        if let Some(remote) = remote {
            self.git(&format!("config agent-coord.remote {remote}"));
        }
    }

    fn repository(&self) -> Arc<Repository> {
        let opened = Repository::discover(&self.path, self.env.environment()).expect("a repository");
        Arc::new(opened.expect("there is one"))
    }

    /// Runs git, which must succeed.
    #[track_caller]
    pub fn git(&self, line: &str) -> String {
        self.env.git().run(&self.path, line)
    }

    /// Returns the same clone seen from a linked worktree on a new branch.
    pub fn worktree(&self, branch: &str) -> Self {
        Self { env: self.env, path: self.env.git().worktree(&self.path, branch) }
    }

    /// Commits nothing new, hooks and all.
    pub fn commit(&self) -> Ran {
        self.attempt("commit --quiet --allow-empty -m work")
    }

    /// Runs git, whatever comes of it.
    pub fn attempt(&self, line: &str) -> Ran {
        self.env.git().attempt(&self.path, line.split_whitespace())
    }

    /// Lets `agent` claim `target` for `branch` as it was `seconds_ago`, and remembers the tenure when `agent` is `me`.
    pub fn claim(&self, agent: &str, target: &str, branch: Option<&str>, seconds_ago: i64) -> Acquired {
        self.in_the_past(seconds_ago, |app, now| {
            let request = ask_of(agent, target, branch);
            let path = RecordPath::claim(&request.repo, &request.target).expect("a safe path");
            let stamp = Stamp {
                now,
                event_id: EventId::parse("event-id", "event").expect("a segment"),
                transaction_id: app.ids.hex(16),
                fencing: true,
            };
            let step = step(&stamp.transaction_id, path);
            let mut first = FirstRead::default();
            let won =
                app.transact(&step, |read| acquire(read, &request, &stamp, &mut first)).expect("the claim is won");
            if let (Some(tenure), "me") = (&won.outcome.tenure, agent) {
                held::remember_on(&self.repository(), tenure, branch).expect("the tenure is kept");
            }
            won.outcome
        })
    }

    /// Writes a heartbeat of `agent` that is `seconds_ago` old and lasts `ttl` seconds.
    pub fn beat(&self, agent: &str, seconds_ago: i64, ttl: i64) {
        self.in_the_past(seconds_ago, |app, now| {
            let path = RecordPath::heartbeat(&AgentId::parse("agent-id", agent).expect("a segment"));
            let mut row = Members::new();
            row.insert("schema_version".to_owned(), 1.into());
            row.insert("agent_id".to_owned(), agent.into());
            row.insert("status".to_owned(), "in_progress".into());
            row.insert("updated_at".to_owned(), now.to_string().into());
            row.insert("expires_at".to_owned(), now.plus_seconds(ttl).to_string().into());
            let step = step(&app.ids.hex(16), path.clone());
            app.transact(&step, |read| {
                let put = Put::upsert(path.clone(), read.get(&path)?, row.clone());
                Ok(Decision { edits: vec![Edit::Put(put)], outcome: (), basis: Freshness::Cached })
            })
            .expect("the heartbeat is written");
        });
    }

    fn in_the_past<T>(
        &self,
        seconds_ago: i64,
        act: impl FnOnce(&App<'_>, agent_coord::domain::time::Timestamp) -> T,
    ) -> T {
        let now = SystemClock::start().now().plus_seconds(-seconds_ago);
        let clock = WallClock::standing_at(now);
        let deadline = Deadline::after(&clock, Duration::from_secs(20));
        let repository = self.repository();
        let selection = open::Selection::Git { repository, remote: None, default_repo: Some(REPO.to_owned()) };
        let store = open::open(selection, &SystemRandomness, &deadline).expect("the store opens");
        act(&App { store: &*store, clock: &clock, ids: &SystemRandomness, deadline }, now)
    }

    /// Puts an executable script where the hook that was there before ours is kept.
    pub fn chain(&self, hook: &str, body: &str) {
        self.env.git().install_hook(&self.path.join(".git"), &format!("{hook}.local"), body);
    }

    /// Returns the commit a remote's branch stands at, if it is there.
    pub fn at_remote(&self, remote: &Path, name: &str) -> Option<String> {
        let ran = self.env.git().attempt(remote, ["rev-parse", "--quiet", "--verify", name]);
        (ran.code == 0).then(|| ran.stdout.trim().to_owned())
    }
}

fn step(id: &str, path: RecordPath) -> Step {
    Step {
        reads: Scope::of_records([path]),
        attempts: 3,
        id: TransactionId::from_hex(id),
        message: "a step of a test".to_owned(),
    }
}

fn ask_of(agent: &str, target: &str, branch: Option<&str>) -> Acquire {
    Acquire {
        agent: agent.to_owned(),
        repo: RepoName::parse("target", REPO).expect("a repository name"),
        target: Target::parse("target", target).expect("a segment"),
        batch_id: None,
        branch: branch.map(str::to_owned),
        current_branch: None,
        metadata: Metadata::default(),
        supersede: false,
        ttl_seconds: 14_400,
        attribution: Attribution::default(),
        tenure: None,
        seen_changing: Vec::new(),
    }
}
