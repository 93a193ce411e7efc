//! A record's value as bytes, whatever the store (state-schema.md section 1.1).

use serde_json::Value;

use crate::domain::record::Content;

/// The member that stores of ours keep their own data in; no record's own.
pub const RESERVED: &str = "$store";

/// Returns any value pretty-printed and newline-terminated.
#[must_use]
pub fn pretty(value: &Value) -> Vec<u8> {
    // Writing a tree of plain values to memory has no way to fail.
    let mut bytes = serde_json::to_vec_pretty(value).expect("a JSON value is always writable");
    bytes.push(b'\n');
    bytes
}

/// Reads a record's bytes, `$store` still among them. Bad ones become [`Content::Malformed`] or
/// [`Content::NotAnObject`], never an error.
#[must_use]
pub fn parse(bytes: &[u8]) -> Content {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(members)) => Content::Object(members),
        Ok(other) => Content::NotAnObject(other),
        Err(error) => Content::Malformed(error.to_string()),
    }
}
