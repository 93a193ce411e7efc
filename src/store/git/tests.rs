//! The git store on real repositories: what the conformance suite cannot see from outside.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::join::{Initialise, initialise};
use super::*;
use crate::domain::decision::{Edit, Put};
use crate::domain::ids::TransactionId;
use crate::domain::path::{Prefix, RecordPath};
use crate::domain::record::Members;
use crate::world::{CountedRandomness, Environment, SystemClock, SystemRandomness};

struct Fixture {
    root: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn git(&self, directory: &Path, arguments: &[&str]) {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(directory)
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(status.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&status.stderr));
    }

    fn clone(&self, name: &str) -> Arc<Repository> {
        let path = self.root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        self.git(&path, &["init", "-q"]);
        Arc::new(Repository::open(&path, &Environment::of_process()).unwrap())
    }

    fn bare(&self) -> PathBuf {
        let path = self.root.path().join("shared.git");
        self.git(self.root.path(), &["init", "-q", "--bare", "shared.git"]);
        path
    }
}

fn members(text: &str) -> Members {
    serde_json::from_str(text).unwrap()
}

fn put(path: &str, text: &str) -> Transaction {
    let path = RecordPath::parse(path).unwrap();
    let edits = vec![Edit::Put(Put::create(path, members(text)))];
    Transaction { id: TransactionId::from_hex("ab".repeat(16)), edits, message: "test".to_owned() }
}

fn joined<'a>(
    repository: &Arc<Repository>,
    remote: &Path,
    ids: &'a CountedRandomness,
    deadline: &Deadline<'_>,
) -> GitStore<'a> {
    let remote = remote.display().to_string();
    let ask = Initialise { remote: Some(remote.clone()), default_repo: Some("o/r".to_owned()) };
    initialise(repository, &ask, &SystemRandomness, deadline).unwrap();
    let repository = Arc::new(Repository::open(repository.git_dir(), &Environment::of_process()).unwrap());
    GitStore::open(repository, Some(&remote), None, ids, deadline).unwrap()
}

#[test]
fn a_local_record_is_created_once_and_read_back() {
    let fixture = Fixture::new();
    let clock = SystemClock::start();
    let deadline = Deadline::after(&clock, Duration::from_secs(20));
    let ids = CountedRandomness::default();
    let store = GitStore::open(fixture.clone("a"), None, None, &ids, &deadline).unwrap();
    let transaction = put("claims/o/r/1.json", r#"{"agent_id": "w1"}"#);
    store.commit(&transaction, &deadline).unwrap();
    assert!(matches!(store.commit(&transaction, &deadline), Err(CommitError::Conflict { .. })), "identical bytes");
    let path = RecordPath::parse("claims/o/r/1.json").unwrap();
    let scope = Scope::of_records([path.clone()]);
    let snapshot = store.snapshot(&scope, Freshness::Cached, &deadline).unwrap();
    let stored = snapshot.get(&path).unwrap().unwrap();
    assert_eq!(stored.text("agent_id"), Some("w1"));
    assert_eq!(stored.annotations.revision, 1);
    let deletion = Transaction {
        edits: vec![Edit::Delete { path: path.clone(), version: stored.version.clone() }],
        ..transaction.clone()
    };
    store.commit(&deletion, &deadline).unwrap();
    let snapshot = store.snapshot(&scope, Freshness::Cached, &deadline).unwrap();
    assert_eq!(snapshot.get(&path).unwrap(), None);
}

#[test]
fn of_two_clones_with_frozen_ids_that_push_the_same_bytes_one_wins() {
    let fixture = Fixture::new();
    let clock = SystemClock::start();
    let deadline = Deadline::after(&clock, Duration::from_secs(20));
    let bare = fixture.bare();
    let (one, two) = (CountedRandomness::default(), CountedRandomness::default());
    let first = joined(&fixture.clone("a"), &bare, &one, &deadline);
    let second = joined(&fixture.clone("b"), &bare, &two, &deadline);
    let transaction = put("claims/o/r/1.json", r#"{"agent_id": "w1"}"#);
    first.commit(&transaction, &deadline).unwrap();
    let lost = second.commit(&transaction, &deadline);
    assert!(matches!(lost, Err(CommitError::Conflict { .. })), "{lost:?}");
    let path = RecordPath::parse("claims/o/r/1.json").unwrap();
    let scope = Scope::of_records([path.clone()]);
    let snapshot = second.snapshot(&scope, Freshness::Fetched, &deadline).unwrap();
    assert_eq!(snapshot.get(&path).unwrap().unwrap().text("agent_id"), Some("w1"));
}

#[test]
fn events_of_two_clones_are_listed_together_and_a_chain_grows_past_one_segment() {
    let fixture = Fixture::new();
    let clock = SystemClock::start();
    let deadline = Deadline::after(&clock, Duration::from_secs(60));
    let bare = fixture.bare();
    let (one, two) = (CountedRandomness::default(), CountedRandomness::from_seed(1 << 40));
    let first = joined(&fixture.clone("a"), &bare, &one, &deadline);
    let second = joined(&fixture.clone("b"), &bare, &two, &deadline);
    let append = |number: usize| {
        let path = RecordPath::parse(&format!("events/b1/e{number:03}.json")).unwrap();
        let edits = vec![Edit::Append { path, members: members(r#"{"type": "x"}"#) }];
        Transaction { id: TransactionId::from_hex(format!("{number:032x}")), edits, message: String::new() }
    };
    for number in 0..70 {
        first.commit(&append(number), &deadline).unwrap();
    }
    second.commit(&append(70), &deadline).unwrap();
    let prefix = Prefix::events_of(&crate::domain::ids::BatchId::parse("batch-id", "b1").unwrap());
    let scope = Scope::of_prefixes([prefix.clone()]);
    for store in [&first, &second] {
        let snapshot = store.snapshot(&scope, Freshness::Fetched, &deadline).unwrap();
        assert_eq!(snapshot.listings[&prefix].records.len(), 71);
        assert!(snapshot.listings[&prefix].notes.is_empty());
    }
    assert_eq!(refs::list(&first.repository, "refs/agent-coord/events/", &deadline).unwrap().len(), 3);
    assert!(matches!(second.commit(&append(3), &deadline), Err(CommitError::Conflict { .. })));
}
