//! Values that the tests of several rules start from.

use serde_json::Value;

use super::decision::{Decision, Edit, Halt, Put, Refusal};
use super::ids::{AgentId, BatchId, EventId, RepoName, Target};
use super::path::RecordPath;
use super::record::{Annotations, Content, Fence, Members, Stored, Version};
use super::request::{Acquire, Attribution, Beat, Metadata, RecordEvent, Release, Stamp, Tenure};
use super::snapshot::{Freshness, Snapshot, StoreFacts};
use super::time::Timestamp;

/// Returns the instant `seconds` after the tests' zero, 2026-12-01T00:00:00Z.
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::parse_strict("2026-12-01T00:00:00Z").unwrap().plus_seconds(seconds)
}

pub fn when(seconds: i64) -> String {
    at(seconds).to_string()
}

pub fn object(value: Value) -> Members {
    match value {
        Value::Object(members) => members,
        other => panic!("not an object: {other}"),
    }
}

pub fn keys(members: &Members) -> Vec<&str> {
    members.keys().map(String::as_str).collect()
}

pub fn stored(path: &str, value: Value) -> Stored {
    let content = match value {
        Value::Object(members) => Content::Object(members),
        other => Content::NotAnObject(other),
    };
    let path = RecordPath::parse(path).unwrap();
    Stored { path, content, annotations: Annotations::default(), version: Version::new("v1") }
}

pub fn malformed(path: &str) -> Stored {
    let path = RecordPath::parse(path).unwrap();
    let content = Content::Malformed("expected value at line 1 column 1".to_owned());
    Stored { path, content, annotations: Annotations::default(), version: Version::new("v1") }
}

/// Returns fetched state that holds `present` and knows `absent` to be absent.
pub fn snapshot(present: Vec<Stored>, absent: &[&str]) -> Snapshot {
    let present = present.into_iter().map(|stored| (stored.path.clone(), Some(stored)));
    let absent = absent.iter().map(|path| (RecordPath::parse(path).unwrap(), None));
    Snapshot {
        freshness: Freshness::Fetched,
        records: absent.chain(present).collect(),
        listings: Default::default(),
        store: StoreFacts::default(),
    }
}

pub fn stamp(seconds: i64) -> Stamp {
    Stamp {
        now: at(seconds),
        event_id: EventId::parse("event-id", "20261201T000000.000000Z-deadbeef").unwrap(),
        transaction_id: "ours".to_owned(),
        fencing: true,
    }
}

/// Returns the stamp of a store that keeps no generations and no fences.
pub fn plain_stamp(seconds: i64) -> Stamp {
    Stamp { fencing: false, ..stamp(seconds) }
}

pub fn repo() -> RepoName {
    RepoName::parse("target", "o/r").unwrap()
}

pub fn target() -> Target {
    Target::parse("target", "42").unwrap()
}

pub fn claim_path() -> RecordPath {
    RecordPath::claim(&repo(), &target()).unwrap()
}

pub fn acquire_by(agent: &str) -> Acquire {
    Acquire {
        agent: agent.to_owned(),
        repo: repo(),
        target: target(),
        batch_id: None,
        branch: None,
        current_branch: None,
        metadata: Metadata::default(),
        supersede: false,
        ttl_seconds: 14_400,
        attribution: Attribution::default(),
        tenure: None,
        seen_changing: Vec::new(),
    }
}

pub fn release_by(agent: &str) -> Release {
    Release {
        agent: agent.to_owned(),
        repo: repo(),
        target: target(),
        branch: None,
        metadata: Metadata::default(),
        handoff_to: None,
        handoff_note: None,
        attribution: Attribution::default(),
    }
}

pub fn beat_of(agent: &str) -> Beat {
    Beat {
        agent: AgentId::parse("agent-id", agent).unwrap(),
        repo: None,
        target: None,
        batch_id: None,
        branch: None,
        status: "in_progress".to_owned(),
        metadata: Metadata::default(),
        ttl_seconds: 900,
        attribution: Attribution::default(),
        tenure: None,
        told: Vec::new(),
    }
}

pub fn event_of(event_type: &str) -> RecordEvent {
    RecordEvent {
        batch_id: BatchId::parse("batch-id", "b1").unwrap(),
        event_type: event_type.to_owned(),
        lane: None,
        agent: None,
        repo: None,
        target: None,
        branch: None,
        status: None,
        message: None,
        metadata: Metadata::default(),
        typed: Members::new(),
        attribution: Attribution::default(),
        tenure: None,
    }
}

pub fn tenure_of(agent: &str, instance: Option<&str>, generation: i64) -> Tenure {
    Tenure {
        repo: "o/r".to_owned(),
        target: "42".to_owned(),
        agent: agent.to_owned(),
        instance: instance.map(str::to_owned),
        generation,
    }
}

pub fn fence_of(generation: i64, by: &str) -> Fence {
    Fence {
        repo: "o/r".to_owned(),
        target: "42".to_owned(),
        instance: None,
        generation,
        by: by.to_owned(),
        at: when(0),
        told_by: None,
    }
}

/// Returns the refusal that a rule answered with.
pub fn refusal<T: std::fmt::Debug>(verdict: Result<Decision<T>, Halt>) -> Refusal {
    match verdict {
        Err(Halt::Refused(refusal)) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// Returns the edit that writes `path`.
pub fn put<'a, T>(decision: &'a Decision<T>, path: &str) -> &'a Put {
    let found = decision.edits.iter().find_map(|edit| match edit {
        Edit::Put(put) if put.path.as_str() == path => Some(put),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing writes {path}"))
}

/// Returns the event that a decision appends, if any.
pub fn appended<T>(decision: &Decision<T>) -> Option<&Members> {
    decision.edits.iter().find_map(|edit| match edit {
        Edit::Append { members, .. } => Some(members),
        _ => None,
    })
}
