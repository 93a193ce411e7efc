//! Records as read from and written to a store.

use std::fmt;

use serde_json::{Map, Value};

use super::ids::TransactionId;
use super::path::RecordPath;

/// The members of a record, in the order they are written.
pub type Members = Map<String, Value>;

/// A store's opaque mark of one state of one record: an object id, a content hash, a version number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(String);

impl Version {
    /// Wraps a store's own token.
    #[must_use]
    pub fn new(token: impl Into<String>) -> Self {
        Self(token.into())
    }

    /// Returns the store's own token.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What was found where a record belongs. Everything read is untrusted, so a bad record is a value, not an error.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// A JSON object; `$store` is already taken off.
    Object(Members),
    /// JSON, but not an object.
    NotAnObject(Value),
    /// Not JSON, too large, or too deeply nested; the text says which.
    Malformed(String),
}

impl Content {
    /// Returns the members when this is an object.
    #[must_use]
    pub fn object(&self) -> Option<&Members> {
        match self {
            Self::Object(members) => Some(members),
            _ => None,
        }
    }
}

/// One record as it stood when it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    /// Where it lives.
    pub path: RecordPath,
    /// What is there.
    pub content: Content,
    /// What the store keeps beside it; empty on stores that keep nothing.
    pub annotations: Annotations,
    /// The state this was read at.
    pub version: Version,
}

impl Stored {
    /// Returns the members when the record is an object.
    #[must_use]
    pub fn object(&self) -> Option<&Members> {
        self.content.object()
    }

    /// Returns a member that is a string.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.object().and_then(|members| text(members, name))
    }
}

/// Returns a member that is a string.
#[must_use]
pub fn text<'a>(members: &'a Members, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

/// Returns a member that is there and not null.
#[must_use]
pub fn present<'a>(members: &'a Members, name: &str) -> Option<&'a Value> {
    members.get(name).filter(|value| !value.is_null())
}

/// Returns text as it is and anything else as compact JSON.
#[must_use]
pub fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns an array, or a single value, as texts; nothing for null.
#[must_use]
pub fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(plain).collect(),
        Some(single) => vec![plain(single)],
    }
}

/// Returns a member that is an integer, or text that spells one.
#[must_use]
pub fn integer(members: &Members, name: &str) -> Option<i64> {
    match members.get(name)? {
        Value::Number(number) => number.as_i64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

/// What the git store keeps in a record's reserved last member `$store` (design.md section 3.3).
///
/// `transaction_id` and `revision` belong to the store alone; `fenced` and `phase_changed_at` are decided by the
/// domain and carried by every writer of the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// The transaction that wrote this state.
    pub transaction_id: Option<TransactionId>,
    /// How often the record was written, from 1.
    pub revision: u64,
    /// Tenures that the agent of this heartbeat row has lost and may not know of.
    pub fenced: Vec<Fence>,
    /// When the row's worker phase last changed.
    pub phase_changed_at: Option<String>,
}

/// The mark of a lost tenure, on the heartbeat row of the agent that lost it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Fence {
    /// The repository of the lost claim.
    pub repo: String,
    /// Its target.
    pub target: String,
    /// The instance that lost it, when the claim named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The generation that was lost.
    pub generation: i64,
    /// Who holds the claim since.
    pub by: String,
    /// When it was taken (UTC, whole seconds).
    pub at: String,
    /// The transaction of the beat that last reported this entry; present = reported, perhaps not yet read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_by: Option<String>,
}
