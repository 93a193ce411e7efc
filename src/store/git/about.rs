//! `store.json`: what a git store keeps about itself (design.md section 3.2).

use serde_json::{Map, Value};

use crate::domain::record::{Content, Members};
use crate::domain::snapshot::StoreFacts;

use super::codec;

/// The format this version reads and writes.
pub const FORMAT: u64 = 1;

/// The record `store.json`. Members of later versions are kept.
#[derive(Debug, Clone, PartialEq)]
pub struct About {
    members: Members,
}

impl About {
    /// Returns the record of a new store.
    #[must_use]
    pub fn new(store_id: &str, default_repo: Option<&str>) -> Self {
        let mut members = Map::new();
        members.insert("store_id".to_owned(), store_id.into());
        members.insert("format".to_owned(), FORMAT.into());
        if let Some(repo) = default_repo {
            members.insert("default_repo".to_owned(), repo.into());
        }
        members.insert("floors".to_owned(), Value::Object(Map::new()));
        Self { members }
    }

    /// Reads the record; the error says what is wrong with it.
    ///
    /// # Errors
    /// When it is no record of a store this version can work with.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let members = match codec::decode(None, bytes).content {
            Content::Object(members) => members,
            Content::NotAnObject(_) => return Err("store.json is not a JSON object".to_owned()),
            Content::Malformed(reason) => return Err(format!("store.json is not readable: {reason}")),
        };
        if members.get("store_id").and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err("store.json names no store_id".to_owned());
        }
        match members.get("format").and_then(Value::as_u64) {
            Some(FORMAT) => Ok(Self { members }),
            Some(format) => {
                Err(format!("the store has format {format}; this version of agent-coord reads format {FORMAT}"))
            }
            None => Err("store.json names no format".to_owned()),
        }
    }

    /// Returns the record's bytes. They are a function of the record, so that two clones that raise the same floor agree.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        codec::pretty(&Value::Object(self.members.clone()))
    }

    /// Returns the store's identity.
    #[must_use]
    pub fn store_id(&self) -> &str {
        self.members.get("store_id").and_then(Value::as_str).unwrap_or_default()
    }

    /// Returns what the domain may know.
    #[must_use]
    pub fn facts(&self) -> StoreFacts {
        let floors = self.members.get("floors").and_then(Value::as_object);
        let floors = floors.into_iter().flatten().filter_map(|(repo, floor)| Some((repo.clone(), floor.as_i64()?)));
        let default_repo = self.members.get("default_repo").and_then(Value::as_str).map(str::to_owned);
        StoreFacts { default_repo, floors: floors.collect(), fetched_at: None }
    }

    /// Raises the floor of `repo` to `generation`; a floor never goes down.
    pub fn raise_floor(&mut self, repo: &str, generation: i64) {
        if self.facts().floor(repo) >= generation {
            return;
        }
        let floors = self.members.entry("floors").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(floors) = floors {
            floors.insert(repo.to_owned(), generation.into());
        }
    }

    /// Names the default repository where none is named yet. Returns whether that changed the record.
    pub fn set_default_repo(&mut self, repo: &str) -> bool {
        let absent = self.facts().default_repo.is_none();
        if absent {
            self.members.insert("default_repo".to_owned(), repo.into());
        }
        absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_of_another_format_is_refused_and_not_rewritten() {
        assert!(About::read(br#"{"store_id": "x", "format": 2}"#).unwrap_err().contains("format 2"));
        assert!(About::read(br#"{"format": 1}"#).is_err());
        assert!(About::read(b"[]").is_err());
    }

    #[test]
    fn floors_only_rise_and_unknown_members_stay() {
        let mut about = About::read(br#"{"store_id": "x", "format": 1, "floors": {"o/r": 5}, "later": [1]}"#).unwrap();
        about.raise_floor("o/r", 3);
        about.raise_floor("o/other", 2);
        let again = About::read(&about.bytes()).unwrap();
        assert_eq!(
            (again.facts().floor("o/r"), again.facts().floor("o/other"), again.facts().floor("none")),
            (5, 2, 0)
        );
        assert!(String::from_utf8(about.bytes()).unwrap().contains("later"));
    }
}
