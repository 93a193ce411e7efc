//! Where the envelope of a group of events lives: a path made of what is in it (state-schema.md section 7.1).

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::domain::path::{RecordPath, UnsafePath};
use crate::domain::record::Members;

/// Hex digits of each hash in the path.
const DIGITS: usize = 16;

/// What the events of one envelope have in common, besides their batch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group {
    /// The lane, where there is one.
    pub lane: Option<String>,
    /// The repository as stored.
    pub repo: Option<String>,
    /// The target as text.
    pub target: Option<String>,
}

/// Returns where the envelope of `group` lives. `sources` are its hot events, ordered by path.
///
/// # Errors
/// When the batch cannot be part of a path.
pub fn compaction_path(batch: &str, group: &Group, sources: &[(&str, &Members)]) -> Result<RecordPath, UnsafePath> {
    let target = json!({ "lane": group.lane, "repo": group.repo, "target": group.target });
    let mut content = String::from("[");
    for (index, (path, data)) in sources.iter().enumerate() {
        if index > 0 {
            content.push(',');
        }
        content.push_str("{\"data\":");
        write_object(data, &mut content);
        content.push_str(",\"path\":");
        write_text(path, &mut content);
        content.push('}');
    }
    content.push(']');
    let (target, content) = (fingerprint(&canonical(&target)), fingerprint(&content));
    RecordPath::parse(&format!("archive/events/{batch}/compact-{target}-{content}.json"))
}

/// Returns the one spelling of a value: members ordered by key, no whitespace.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_value(value, &mut text);
    text
}

fn write_value(value: &Value, text: &mut String) {
    match value {
        Value::Object(members) => write_object(members, text),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_value(item, text);
            }
            text.push(']');
        }
        Value::String(string) => write_text(string, text),
        Value::Number(number) => text.push_str(&number_text(&number.to_string())),
        Value::Bool(_) | Value::Null => text.push_str(&value.to_string()),
    }
}

fn write_object(members: &Members, text: &mut String) {
    let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
    sorted.sort_unstable_by_key(|(key, _)| key.as_bytes());
    text.push('{');
    for (index, (key, value)) in sorted.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write_text(key, text);
        text.push(':');
        write_value(value, text);
    }
    text.push('}');
}

fn write_text(string: &str, text: &mut String) {
    text.push_str(&Value::from(string).to_string());
}

/// Integers stay as they are, whatever their size; floats are as short as they can be, with a digit after the point.
fn number_text(number: &str) -> String {
    if !number.contains(['.', 'e', 'E']) {
        return number.to_owned();
    }
    number.parse::<f64>().map_or_else(|_| number.to_owned(), |float| format!("{float:?}"))
}

fn fingerprint(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::object;

    fn path_of(group: &Group, sources: &[(&str, &Members)]) -> String {
        compaction_path("b1", group, sources).unwrap().to_string()
    }

    #[test]
    fn the_vectors_of_the_schema() {
        let docs = Group { lane: Some("docs".into()), repo: Some("o/r".into()), target: Some("2".into()) };
        let data = object(json!({
            "type": "phase", "at": "2026-07-01T00:00:00Z", "note": "é/\n\u{2028}\u{1}\"\\", "n": 3, "f": 1.5, "t": true,
            "z": null, "o": { "b": 1, "a": [] },
        }));
        let sources = [("events/b1/a.json", &data)];
        assert_eq!(path_of(&docs, &sources), "archive/events/b1/compact-be550c99a9526d83-e5f624202682d920.json");
        let nothing = Group { lane: None, repo: None, target: None };
        assert!(path_of(&nothing, &sources).contains("compact-dd538856f7c9ea52-"));
    }

    #[test]
    fn the_order_of_members_does_not_matter_and_the_order_of_items_does() {
        assert_eq!(canonical(&json!({ "b": 1, "a": [2, 1] })), canonical(&json!({ "a": [2, 1], "b": 1 })));
        assert_ne!(canonical(&json!([1, 2])), canonical(&json!([2, 1])));
    }

    #[test]
    fn floats_have_one_spelling_and_integers_any_size() {
        let read = |text: &str| canonical(&serde_json::from_str(text).unwrap());
        assert_eq!(read("1.50"), "1.5");
        assert_eq!(read("1.0"), "1.0");
        assert_eq!(read("123456789012345678901234567890"), "123456789012345678901234567890");
    }
}
