//! How each backend is opened for the suite.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent_coord::domain::snapshot::{Freshness, Scope, Snapshot};
use agent_coord::git::Repository;
use agent_coord::store::git::join::{Initialise, initialise};
use agent_coord::store::memory::MemoryStore;
use agent_coord::store::open::{Selection, open};
use agent_coord::store::{Abilities, CommitError, Receipt, Store, StoreError, Transaction};
use agent_coord::world::{Deadline, SystemClock, SystemRandomness};

use super::client::{Backend, Client, Plant, Team};
use crate::support::git::file_url;
use crate::support::{HttpRemote, TestEnv};

/// A map behind a mutex.
pub fn memory() -> Backend {
    Backend { name: "memory", open: open_memory, effort: 8 }
}

/// The refs of one clone; each client sits in a worktree of its own.
pub fn git_local() -> Backend {
    Backend { name: "git in one clone", open: open_git_local, effort: 5 }
}

/// The same where refs live in a reftable, which only git reads and writes.
pub fn git_reftable() -> Backend {
    Backend { name: "git with a reftable", open: open_git_reftable, effort: 2 }
}

/// The same with object ids of 64 digits.
pub fn git_sha256() -> Backend {
    Backend { name: "git with sha256", open: open_git_sha256, effort: 2 }
}

/// The refs of a bare repository reached as `file://`; each client has a clone of its own.
pub fn git_over_files() -> Backend {
    Backend { name: "git through file://", open: open_git_over_files, effort: 3 }
}

/// The same over smart HTTP.
pub fn git_over_http() -> Backend {
    Backend { name: "git through http://", open: open_git_over_http, effort: 2 }
}

fn open_memory(count: usize) -> Team {
    let store = Arc::new(MemoryStore::new());
    let clients = (0..count).map(|_| Client::new(Box::new(Handle(Arc::clone(&store))))).collect();
    Team { clients, plant: None, keeps: None }
}

fn open_git_local(count: usize) -> Team {
    open_worktrees(count, "")
}

fn open_git_reftable(count: usize) -> Team {
    open_worktrees(count, "--ref-format=reftable")
}

fn open_git_sha256(count: usize) -> Team {
    open_worktrees(count, "--object-format=sha256")
}

fn open_worktrees(count: usize, options: &str) -> Team {
    let env = Arc::new(TestEnv::new());
    let git = env.git();
    let clone = env.path("clone");
    git.run(env.root(), &format!("init --quiet {options} {}", clone.display()));
    git.commit(&clone, "README", "first");
    initialise_store(&env, &clone, None);
    let open = |number: usize| match number {
        0 => open_git(&env, &clone),
        _ => open_git(&env, &git.worktree(&clone, &format!("worktree-{number}"))),
    };
    let clients = (0..count).map(open).collect();
    Team { clients, plant: Some(planter(&env, &clone)), keeps: None }
}

fn open_git_over_files(count: usize) -> Team {
    let env = Arc::new(TestEnv::new());
    let bare = env.git().remote("team.git");
    let clients = open_clones(&env, &file_url(&bare), count);
    Team { clients, plant: Some(planter(&env, &bare)), keeps: None }
}

fn open_git_over_http(count: usize) -> Team {
    let env = Arc::new(TestEnv::new());
    let bare = env.git().remote("team.git");
    let server = HttpRemote::start(&env);
    let clients = open_clones(&env, &server.url(&bare), count);
    Team { clients, plant: Some(planter(&env, &bare)), keeps: Some(Box::new(server)) }
}

/// Clones `url` this often, each clone joined to the store there.
pub fn open_clones(env: &TestEnv, url: &str, count: usize) -> Vec<Client> {
    let open = |number| {
        let clone = env.git().clone(url, &format!("clone-{number}"));
        initialise_store(env, &clone, Some("origin"));
        open_git(env, &clone)
    };
    (0..count).map(open).collect()
}

fn initialise_store(env: &TestEnv, clone: &Path, remote: Option<&str>) {
    let ask = Initialise { remote: remote.map(str::to_owned), default_repo: Some("o/r".to_owned()) };
    let clock = SystemClock::start();
    let deadline = Deadline::after(&clock, Duration::from_secs(30));
    initialise(&repository(env, clone), &ask, &IDS, &deadline).expect("the store can be made or joined");
}

static IDS: SystemRandomness = SystemRandomness;

fn open_git(env: &TestEnv, clone: &Path) -> Client {
    let clock = SystemClock::start();
    let deadline = Deadline::after(&clock, Duration::from_secs(30));
    let selection = Selection::Git { repository: repository(env, clone), remote: None, default_repo: None };
    Client::new(open(selection, &IDS, &deadline).expect("a store that was made can be opened"))
}

fn repository(env: &TestEnv, clone: &Path) -> Arc<Repository> {
    Arc::new(Repository::open(clone, env.environment()).expect("a clone can be opened"))
}

/// Writes bytes where records belong; keeps the environment, and with it every clone, for as long as the team lives.
fn planter(env: &Arc<TestEnv>, repository: &Path) -> Plant {
    let (env, repository) = (Arc::clone(env), repository.to_owned());
    Box::new(move |path, bytes| {
        env.git().plant(&repository, path, bytes);
    })
}

/// One client's hold on a store that all share.
struct Handle(Arc<MemoryStore>);

impl Store for Handle {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn snapshot(&self, scope: &Scope, freshness: Freshness, deadline: &Deadline<'_>) -> Result<Snapshot, StoreError> {
        self.0.snapshot(scope, freshness, deadline)
    }

    fn commit(&self, transaction: &Transaction, deadline: &Deadline<'_>) -> Result<Receipt, CommitError> {
        self.0.commit(transaction, deadline)
    }
}
