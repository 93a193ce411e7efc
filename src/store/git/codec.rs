//! Records as bytes: pretty JSON with the store's own data in a reserved last member (state-schema.md section 1.1,
//! design.md section 3.3, `"$store"`).

use serde_json::{Map, Value};

use crate::domain::ids::TransactionId;
use crate::domain::path::{Family, RecordPath};
use crate::domain::record::{Annotations, Content, Fence, Members};
use crate::store::content;

pub use crate::store::content::{RESERVED, pretty};

/// The largest record that is read (state-schema.md section 1.5): 256 KiB, and 1 MiB for archive envelopes.
const RECORD_LIMIT: usize = 262_144;
const ARCHIVE_LIMIT: usize = 1_048_576;
/// What `$store` and pretty-printing may add to a record of the largest size.
const SLACK: usize = 65_536;

/// Returns the bytes of a record: its members, then `$store`, pretty-printed, newline-terminated.
#[must_use]
pub fn encode(members: &Members, annotations: &Annotations, full_path: Option<&RecordPath>) -> Vec<u8> {
    let mut all = members.clone();
    all.shift_remove(RESERVED);
    all.insert(RESERVED.to_owned(), Value::Object(reserved(annotations, full_path)));
    pretty(&Value::Object(all))
}

/// What came out of a record's bytes.
pub struct Decoded {
    /// The record without `$store`.
    pub content: Content,
    /// What `$store` said.
    pub annotations: Annotations,
    /// The path `$store` gives, present on records whose ref name is cut.
    pub path: Option<String>,
}

/// Reads a record's bytes. Bad ones become [`Content::Malformed`] or [`Content::NotAnObject`], never an error.
#[must_use]
pub fn decode(family: Option<Family>, bytes: &[u8]) -> Decoded {
    let limit = if family == Some(Family::Archive) { ARCHIVE_LIMIT } else { RECORD_LIMIT } + SLACK;
    let bad = |content| Decoded { content, annotations: Annotations::default(), path: None };
    if bytes.len() > limit {
        return bad(Content::Malformed(format!("record of {} bytes exceeds {limit} bytes", bytes.len())));
    }
    let mut members = match content::parse(bytes) {
        Content::Object(members) => members,
        other => return bad(other),
    };
    let reserved = members.shift_remove(RESERVED);
    let reserved = reserved.as_ref().and_then(Value::as_object);
    let annotations = reserved.map(read_reserved).unwrap_or_default();
    let path = reserved.and_then(|reserved| reserved.get("path")).and_then(Value::as_str).map(str::to_owned);
    Decoded { content: Content::Object(members), annotations, path }
}

fn reserved(annotations: &Annotations, full_path: Option<&RecordPath>) -> Members {
    let mut reserved = Map::new();
    if let Some(id) = &annotations.transaction_id {
        reserved.insert("transaction_id".to_owned(), id.as_str().into());
    }
    reserved.insert("revision".to_owned(), annotations.revision.into());
    if let Some(path) = full_path {
        reserved.insert("path".to_owned(), path.as_str().into());
    }
    if !annotations.fenced.is_empty() {
        // A fence is strings and an integer: it has no way to fail.
        let fenced = serde_json::to_value(&annotations.fenced).expect("a fence is always writable");
        reserved.insert("fenced".to_owned(), fenced);
    }
    if let Some(at) = &annotations.phase_changed_at {
        reserved.insert("phase_changed_at".to_owned(), at.as_str().into());
    }
    reserved
}

fn read_reserved(reserved: &Members) -> Annotations {
    let text = |name: &str| reserved.get(name).and_then(Value::as_str);
    let fenced = reserved.get("fenced").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Annotations {
        transaction_id: text("transaction_id").map(TransactionId::from_hex),
        revision: reserved.get("revision").and_then(Value::as_u64).unwrap_or(0),
        fenced: fenced.iter().filter_map(|entry| serde_json::from_value::<Fence>(entry.clone()).ok()).collect(),
        phase_changed_at: text("phase_changed_at").map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_the_reserved_member_comes_last() {
        let mut members = Members::new();
        members.insert("b".to_owned(), 1.into());
        members.insert("a".to_owned(), "é/\u{2028}".into());
        let annotations = Annotations {
            transaction_id: Some(TransactionId::from_hex("00ff")),
            revision: 3,
            fenced: vec![Fence {
                repo: "o/r".to_owned(),
                target: "1".to_owned(),
                instance: None,
                generation: 2,
                by: "w2".to_owned(),
                at: "2026-12-01T00:00:00Z".to_owned(),
                told_by: None,
            }],
            phase_changed_at: Some("2026-12-01T00:00:00Z".to_owned()),
        };
        let bytes = encode(&members, &annotations, None);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with("{\n  \"b\": 1,\n  \"a\": \"é/\u{2028}\",\n  \"$store\": {"), "{text}");
        assert!(text.ends_with("}\n"));
        let decoded = decode(None, &bytes);
        assert_eq!(decoded.content, Content::Object(members));
        assert_eq!(decoded.annotations, annotations);
    }

    #[test]
    fn bad_bytes_are_values_and_never_fatal() {
        let deep = "[".repeat(100_000);
        for bytes in [&b"{"[..], b"\xff\xfe", b"", deep.as_bytes()] {
            assert!(matches!(decode(None, bytes).content, Content::Malformed(_)));
        }
        assert!(matches!(decode(None, b"[1]").content, Content::NotAnObject(_)));
        assert!(matches!(decode(None, &vec![b' '; 400_000]).content, Content::Malformed(_)));
        let odd = br#"{"$store": {"revision": "x", "fenced": [1, {"repo": 2}]}, "a": 1}"#;
        assert_eq!(decode(None, odd).annotations, Annotations::default());
    }

    #[test]
    fn integers_of_any_size_stay_integers() {
        let bytes = br#"{"n": 123456789012345678901234567890, "f": 1.0}"#;
        let Content::Object(members) = decode(None, bytes).content else { panic!("an object") };
        let text = String::from_utf8(encode(&members, &Annotations::default(), None)).unwrap();
        assert!(text.contains("123456789012345678901234567890") && text.contains("1.0"), "{text}");
    }
}
