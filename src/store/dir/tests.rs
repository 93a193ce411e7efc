use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::DirStore;
use crate::domain::decision::{Edit, Expect, Put};
use crate::domain::ids::TransactionId;
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::record::{Content, Members, Stored, Version};
use crate::domain::snapshot::{Freshness, Listing, Scope};
use crate::store::{CommitError, Receipt, Store, StoreError, Transaction};
use crate::world::{Deadline, SystemClock, SystemRandomness};

/// A state tree and a store on it.
struct Tree {
    folder: tempfile::TempDir,
    clock: SystemClock,
}

impl Tree {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap(), clock: SystemClock::start() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn at(&self, relative: &str) -> PathBuf {
        self.root().join(relative)
    }

    fn store(&self) -> DirStore<'static> {
        DirStore::new(self.root(), &SystemRandomness)
    }

    fn plant(&self, relative: &str, text: &str) -> PathBuf {
        let file = self.at(relative);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn commit(&self, edits: Vec<Edit>) -> Result<Receipt, CommitError> {
        self.commit_within(edits, Duration::from_secs(20))
    }

    fn commit_within(&self, edits: Vec<Edit>, patience: Duration) -> Result<Receipt, CommitError> {
        let transaction = Transaction { id: TransactionId::from_hex("00"), edits, message: String::new() };
        self.store().commit(&transaction, &Deadline::after(&self.clock, patience))
    }

    fn read(&self, path: &str) -> Result<Option<Stored>, StoreError> {
        let scope = Scope::of_records([record(path)]);
        let deadline = Deadline::after(&self.clock, Duration::from_secs(20));
        let snapshot = self.store().snapshot(&scope, Freshness::Cached, &deadline)?;
        Ok(snapshot.records.into_values().next().unwrap())
    }

    fn list(&self, family: Family) -> Result<Listing, StoreError> {
        let scope = Scope::of_prefixes([Prefix::family(family)]);
        let deadline = Deadline::after(&self.clock, Duration::from_secs(20));
        let snapshot = self.store().snapshot(&scope, Freshness::Cached, &deadline)?;
        Ok(snapshot.listings.into_values().next().unwrap())
    }

    fn listed(&self, family: Family) -> Vec<String> {
        self.list(family).unwrap().records.iter().map(|stored| stored.path.to_string()).collect()
    }

    fn read_error(&self, path: &str) -> String {
        self.read(path).unwrap_err().message
    }

    fn list_error(&self, family: Family) -> String {
        self.list(family).unwrap_err().message
    }
}

fn record(path: &str) -> RecordPath {
    RecordPath::parse(path).unwrap()
}

fn members(value: serde_json::Value) -> Members {
    value.as_object().unwrap().clone()
}

fn create(path: &str, value: serde_json::Value) -> Edit {
    Edit::Put(Put::create(record(path), members(value)))
}

fn append(path: &str) -> Edit {
    Edit::Append { path: record(path), members: members(json!({"type": "note"})) }
}

const CLAIM: &str = "claims/o/r/1.json";

#[test]
fn a_record_is_written_as_the_predecessor_writes_it() {
    let tree = Tree::new();
    tree.commit(vec![create(CLAIM, json!({"b": 1, "a": "é/\u{2028}", "e": [], "$store": {"revision": 1}}))]).unwrap();
    let text = fs::read_to_string(tree.at(CLAIM)).unwrap();
    assert_eq!(text, "{\n  \"b\": 1,\n  \"a\": \"é/\u{2028}\",\n  \"e\": []\n}\n");
    let lock = fs::metadata(tree.at("claims/o/r/1.json.lock")).unwrap();
    assert_eq!(lock.permissions().mode() & 0o777, 0o600, "the lock file stays");
    let names: Vec<String> = fs::read_dir(tree.at("claims/o/r"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    assert_eq!(names.len(), 2, "no temporary file is left: {names:?}");
}

#[test]
fn a_version_is_the_sha256_of_the_bytes() {
    let tree = Tree::new();
    tree.plant("heartbeats/w1.json", "{}\n");
    let version = tree.read("heartbeats/w1.json").unwrap().unwrap().version;
    assert_eq!(version, Version::new("ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"));
}

#[test]
fn a_mode_is_kept_when_a_record_is_replaced() {
    let tree = Tree::new();
    let file = tree.plant(CLAIM, "{}\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let current = tree.read(CLAIM).unwrap().unwrap();
    tree.commit(vec![Edit::Put(Put::replace(&current, members(json!({"a": 1}))))]).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o7777, 0o640);
}

#[test]
fn a_missing_root_reads_as_empty_and_the_first_write_makes_it() {
    let tree = Tree::new();
    assert_eq!(tree.read(CLAIM), Ok(None));
    assert_eq!(tree.listed(Family::Claims), Vec::<String>::new());
    assert!(!tree.root().exists(), "reading makes nothing");
    tree.commit(vec![create(CLAIM, json!({}))]).unwrap();
    assert!(tree.read(CLAIM).unwrap().is_some());
}

#[test]
fn the_root_may_be_a_link_and_nothing_below_it() {
    let tree = Tree::new();
    fs::create_dir_all(tree.folder.path().join("real/claims/o")).unwrap();
    symlink(tree.folder.path().join("real"), tree.root()).unwrap();
    tree.commit(vec![create(CLAIM, json!({}))]).unwrap();
    assert_eq!(tree.listed(Family::Claims), [CLAIM]);
    symlink("1.json", tree.at("claims/o/r/2.json")).unwrap();
    assert_eq!(tree.read_error("claims/o/r/2.json"), "state layout invalid: claims/o/r/2.json is a symlink");
    assert_eq!(tree.list_error(Family::Claims), "state layout invalid: claims/o/r/2.json is a symlink");
    symlink("r", tree.at("claims/o/s")).unwrap();
    assert_eq!(tree.read_error("claims/o/s/1.json"), "state layout invalid: claims/o/s is a symlink");
    symlink("claims", tree.at("batches")).unwrap();
    assert_eq!(tree.list_error(Family::Batches), "state layout invalid: batches is a symlink");
}

#[test]
fn a_link_is_never_written_through() {
    let tree = Tree::new();
    let outside = tree.folder.path().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::create_dir_all(tree.at("claims/o")).unwrap();
    symlink(&outside, tree.at("claims/o/r")).unwrap();
    let refused = tree.commit(vec![create(CLAIM, json!({}))]);
    let Err(CommitError::Failed(error)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.message, "state layout invalid: claims/o/r is a symlink");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 0);
    fs::create_dir_all(tree.at("heartbeats")).unwrap();
    symlink("elsewhere", tree.at("heartbeats/w1.json")).unwrap();
    assert!(tree.commit(vec![create("heartbeats/w1.json", json!({}))]).is_err(), "not even through a dangling one");
}

#[test]
fn what_is_no_directory_and_no_file_is_named() {
    let tree = Tree::new();
    tree.plant("claims/o", "");
    assert_eq!(tree.read_error(CLAIM), "state layout invalid: claims/o is not a directory");
    fs::create_dir_all(tree.at("heartbeats/w1.json")).unwrap();
    assert_eq!(tree.read_error("heartbeats/w1.json"), "state layout invalid: heartbeats/w1.json is not a regular file");
    assert_eq!(tree.list_error(Family::Heartbeats), "state layout invalid: heartbeats/w1.json is not a regular file");
    let elsewhere = Tree::new();
    fs::write(elsewhere.root(), "").unwrap();
    let message = format!("state root is not accessible: {} (it is not a directory)", elsewhere.root().display());
    assert_eq!(elsewhere.read_error(CLAIM), message);
}

#[test]
fn a_listing_is_sorted_and_shows_records_alone() {
    let tree = Tree::new();
    for name in ["b.json", "a.json", "a.json.lock", ".a.json.tmp-1-00", ".hidden/x.json", "notes.txt"] {
        tree.plant(&format!("claims/o/r/{name}"), "{}");
    }
    tree.plant("claims/o/x.json/1.json", "{}");
    tree.plant("claims/o/stray.json", "{}");
    let listing = tree.list(Family::Claims).unwrap();
    let paths: Vec<&str> = listing.records.iter().map(|stored| stored.path.as_str()).collect();
    assert_eq!(paths, ["claims/o/r/a.json", "claims/o/r/b.json", "claims/o/x.json/1.json"]);
    assert_eq!(listing.notes, ["claims/o/stray.json is not a state path; it is not reported"]);
    tree.plant("attention/.w/o/r/i.json", "{}");
    assert_eq!(tree.listed(Family::Attention), ["attention/.w/o/r/i.json"], "a workspace may begin with a dot");
}

#[test]
fn bad_bytes_are_values() {
    let tree = Tree::new();
    tree.plant(CLAIM, "{");
    assert!(matches!(tree.read(CLAIM).unwrap().unwrap().content, Content::Malformed(_)));
    tree.plant(CLAIM, "[1]");
    assert!(matches!(tree.read(CLAIM).unwrap().unwrap().content, Content::NotAnObject(_)));
}

#[test]
fn conflicts_say_what_was_expected_and_leave_no_directory_behind() {
    let tree = Tree::new();
    let gone = Edit::Delete { path: record(CLAIM), version: Version::new("ab") };
    let expected = Expect::At(Version::new("ab"));
    assert_eq!(
        tree.commit(vec![gone]),
        Err(CommitError::Conflict { path: record(CLAIM), expected, found: Some(None) })
    );
    assert!(!tree.root().exists());
    tree.commit(vec![create(CLAIM, json!({}))]).unwrap();
    let again = tree.commit(vec![create(CLAIM, json!({}))]);
    assert!(matches!(again, Err(CommitError::Conflict { expected: Expect::Absent, .. })), "{again:?}");
}

#[test]
fn an_event_beside_a_change_may_be_lost_and_one_alone_is_refused() {
    let tree = Tree::new();
    tree.commit(vec![append("events/b1/e1.json")]).unwrap();
    let alone = tree.commit(vec![append("events/b1/e1.json")]);
    assert!(matches!(alone, Err(CommitError::Conflict { .. })), "{alone:?}");
    let beside = tree.commit(vec![append("events/b1/e1.json"), create(CLAIM, json!({}))]).unwrap();
    let lost = (record("events/b1/e1.json"), "state already exists at events/b1/e1.json".to_owned());
    assert_eq!(beside.lost_events, [lost]);
    assert!(tree.read(CLAIM).unwrap().is_some());
}

#[test]
fn a_lock_that_another_holds_is_waited_for_until_the_deadline() {
    use rustix::fs::{FlockOperation, flock};
    let tree = Tree::new();
    let lock = fs::File::create(tree.plant("claims/o/r/1.json.lock", "")).unwrap();
    flock(&lock, FlockOperation::LockExclusive).unwrap();
    let refused = tree.commit_within(vec![create(CLAIM, json!({}))], Duration::from_millis(50));
    let Err(CommitError::Failed(error)) = refused else { panic!("{refused:?}") };
    assert!(error.message.starts_with("another process kept "), "{}", error.message);
    drop(lock);
    tree.commit(vec![create(CLAIM, json!({}))]).unwrap();
}

#[test]
fn a_name_as_long_as_a_file_system_takes_can_be_written() {
    let tree = Tree::new();
    let path = format!("heartbeats/{}.json", "n".repeat(245));
    tree.commit(vec![create(&path, json!({}))]).unwrap();
    assert_eq!(tree.listed(Family::Heartbeats), [path]);
    let longer = format!("heartbeats/{}.json", "n".repeat(260));
    assert_eq!(tree.read_error(&longer), format!("state path too long: {longer}"));
}
