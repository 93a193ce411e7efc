//! State paths: where each record lives, whatever the store (state-schema.md section 1.4).

use std::fmt;

use thiserror::Error;

use super::ids::{AgentId, BatchId, EventId, RepoName, Target};

/// A kind of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// `claims/OWNER/NAME/TARGET.json`
    Claims,
    /// `heartbeats/AGENT.json`
    Heartbeats,
    /// `batches/BATCH.json`
    Batches,
    /// `events/BATCH/EVENT.json`
    Events,
    /// `attention/WORKSPACE/OWNER/NAME/ID.json`
    Attention,
    /// `archive/` and the path of the archived record
    Archive,
}

impl Family {
    /// All families, in the order reports list them.
    pub const ALL: [Self; 6] =
        [Self::Claims, Self::Heartbeats, Self::Batches, Self::Events, Self::Attention, Self::Archive];

    /// Returns the first component of the family's paths.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claims => "claims",
            Self::Heartbeats => "heartbeats",
            Self::Batches => "batches",
            Self::Events => "events",
            Self::Attention => "attention",
            Self::Archive => "archive",
        }
    }

    /// Returns how many components a record path of the family has, its own name included.
    fn depth(self) -> usize {
        match self {
            Self::Claims => 4,
            Self::Heartbeats | Self::Batches => 2,
            Self::Events => 3,
            Self::Attention => 5,
            Self::Archive => 0,
        }
    }

    fn of(first: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|family| family.name() == first)
    }
}

/// The text is not a path of any family, or not one a store may touch.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unsafe state path: {0}")]
pub struct UnsafePath(pub String);

/// The path of one record, `.json` included.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPath(String);

impl RecordPath {
    /// Returns the path of the claim on `target` in `repo`.
    ///
    /// # Errors
    /// When the repository's name holds a `..`, which no store takes.
    pub fn claim(repo: &RepoName, target: &Target) -> Result<Self, UnsafePath> {
        Self::parse(&format!("claims/{repo}/{target}.json"))
    }

    /// Returns the path of an agent's heartbeat row.
    #[must_use]
    pub fn heartbeat(agent: &AgentId) -> Self {
        Self(format!("heartbeats/{agent}.json"))
    }

    /// Returns the path of a batch.
    #[must_use]
    pub fn batch(batch: &BatchId) -> Self {
        Self(format!("batches/{batch}.json"))
    }

    /// Returns the path of an event.
    #[must_use]
    pub fn event(batch: &BatchId, event: &EventId) -> Self {
        Self(format!("events/{batch}/{event}.json"))
    }

    /// Parses a path read from a store or a user.
    ///
    /// # Errors
    /// When it is not safe (empty, `..`, leading `/`, empty component) or no family has paths of this shape.
    pub fn parse(text: &str) -> Result<Self, UnsafePath> {
        let refuse = || UnsafePath(text.to_owned());
        if !is_safe(text) {
            return Err(refuse());
        }
        let active = text.strip_prefix("archive/").unwrap_or(text);
        let parts: Vec<&str> = active.split('/').collect();
        let family = Family::of(parts[0]).ok_or_else(refuse)?;
        let archived = active.len() != text.len();
        if archived && matches!(family, Family::Archive | Family::Attention) {
            return Err(refuse());
        }
        let last = parts.last().and_then(|last| last.strip_suffix(".json"));
        let shaped = parts.len() == family.depth()
            && last.is_some_and(|stem| !stem.is_empty())
            && parts[1..].iter().all(|part| part.bytes().all(is_path_byte));
        if shaped { Ok(Self(text.to_owned())) } else { Err(refuse()) }
    }

    /// Returns the path's text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the family the path belongs to.
    #[must_use]
    pub fn family(&self) -> Family {
        self.0.split('/').next().and_then(Family::of).unwrap_or(Family::Archive)
    }

    /// Returns the components, the family's name first and `.json` still on the last.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// Returns the last component without `.json`.
    #[must_use]
    pub fn stem(&self) -> &str {
        let last = self.0.rsplit('/').next().unwrap_or(&self.0);
        last.strip_suffix(".json").unwrap_or(last)
    }

    /// Returns `OWNER/NAME` of a claim's path.
    #[must_use]
    pub fn repo(&self) -> Option<String> {
        let mut parts = self.components();
        (parts.next() == Some("claims")).then_some(())?;
        Some(format!("{}/{}", parts.next()?, parts.next()?))
    }

    /// Returns the batch an event's path lies under.
    #[must_use]
    pub fn batch_of_event(&self) -> Option<&str> {
        let mut parts = self.components();
        (parts.next() == Some("events")).then_some(())?;
        parts.next()
    }
}

impl fmt::Display for RecordPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// A directory of records: `claims`, `claims/o/r`, `events/b1`, ...
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix(String);

impl Prefix {
    /// Returns the prefix of a whole family.
    #[must_use]
    pub fn family(family: Family) -> Self {
        Self(family.name().to_owned())
    }

    /// Returns the prefix of a repository's claims.
    #[must_use]
    pub fn claims_of(repo: &RepoName) -> Self {
        Self(format!("claims/{repo}"))
    }

    /// Returns the prefix of a batch's events.
    #[must_use]
    pub fn events_of(batch: &BatchId) -> Self {
        Self(format!("events/{batch}"))
    }

    /// Returns the prefix of a family's archived records.
    #[must_use]
    pub fn archived(family: Family) -> Self {
        Self(format!("{}/{}", Family::Archive.name(), family.name()))
    }

    /// Returns the prefix of a repository's attention records.
    #[must_use]
    pub fn attention_of(workspace: &str, repository: &str) -> Self {
        Self(format!("{}/{workspace}/{repository}", Family::Attention.name()))
    }

    /// Returns the prefix's text, without a trailing `/`.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether `path` lies under this prefix.
    #[must_use]
    pub fn covers(&self, path: &RecordPath) -> bool {
        path.as_str().strip_prefix(&self.0).is_some_and(|rest| rest.starts_with('/'))
    }

    /// Returns the family the prefix belongs to.
    #[must_use]
    pub fn first_component(&self) -> &str {
        self.0.split('/').next().unwrap_or(&self.0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn is_safe(path: &str) -> bool {
    !path.is_empty() && !path.contains("..") && path.split('/').all(|part| !part.is_empty())
}

fn is_path_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_record_or_a_directory_by_its_depth_alone() {
        assert!(RecordPath::parse("claims/o/r/x.json").is_ok());
        assert!(RecordPath::parse("claims/o/x.json").is_err(), "a repository may be named x.json");
        assert!(RecordPath::parse("archive/events/b/e.json").is_ok());
        assert!(RecordPath::parse("archive/attention/w/o/r/i.json").is_err(), "attention is never archived");
    }

    #[test]
    fn unsafe_paths_are_refused() {
        for bad in
            ["", "/claims/o/r/1.json", "claims//r/1.json", "claims/o/../1.json", "claims/o/r/.json", "other/x.json"]
        {
            assert_eq!(RecordPath::parse(bad), Err(UnsafePath(bad.to_owned())));
        }
    }

    #[test]
    fn a_prefix_covers_its_descendants_and_no_neighbours() {
        let prefix = Prefix::claims_of(&RepoName::parse("target", "o/r").unwrap());
        assert!(prefix.covers(&RecordPath::parse("claims/o/r/1.json").unwrap()));
        assert!(!prefix.covers(&RecordPath::parse("claims/o/rx/1.json").unwrap()));
    }
}
