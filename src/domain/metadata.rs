//! The optional members that claims, heartbeats, releases and events share, in the order every writer keeps.

use serde_json::Value;

use super::record::Members;
use super::request::Metadata;

/// The members' names (state-schema.md section 2).
pub const NAMES: [&str; 11] = [
    "thread_handle",
    "chat_handle",
    "host",
    "pr_url",
    "dashboard_url",
    "operator",
    "phase",
    "generation",
    "instance_id",
    "synthetic",
    "synthetic_kind",
];

impl Metadata {
    /// Returns the members that were given, in order.
    #[must_use]
    pub fn members(&self) -> Members {
        let mut members = Members::new();
        for (name, value) in NAMES.into_iter().zip(self.values()) {
            set(&mut members, name, value);
        }
        members
    }

    fn values(&self) -> [Option<Value>; 11] {
        let words = |value: &Option<String>| value.clone().map(Value::from);
        [
            words(&self.thread_handle),
            words(&self.chat_handle),
            words(&self.host),
            words(&self.pr_url),
            words(&self.dashboard_url),
            words(&self.operator),
            words(&self.phase),
            self.generation.map(Value::from),
            words(&self.instance_id),
            self.synthetic.then_some(Value::Bool(true)),
            words(&self.synthetic_kind),
        ]
    }
}

/// Sets a member when there is a value; a member that is already there keeps its place.
pub fn set(members: &mut Members, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        members.insert(name.to_owned(), value.into());
    }
}

/// Sets every one of `fields`; members that are already there keep their place.
pub fn set_all(members: &mut Members, fields: Members) {
    for (name, value) in fields {
        members.insert(name, value);
    }
}

/// Returns those of `names` that `record` holds, in the order of `names`, without nulls.
#[must_use]
pub fn pick(record: &Members, names: &[&str]) -> Members {
    let held =
        |name: &&str| record.get(*name).filter(|value| !value.is_null()).map(|value| (name.to_string(), value.clone()));
    names.iter().filter_map(held).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{keys, object};
    use serde_json::json;

    #[test]
    fn only_what_was_given_is_written_and_always_in_the_same_order() {
        let metadata = Metadata {
            instance_id: Some("i".into()),
            generation: Some(3),
            host: Some("h".into()),
            synthetic: true,
            ..Metadata::default()
        };
        assert_eq!(keys(&metadata.members()), ["host", "generation", "instance_id", "synthetic"]);
        assert!(Metadata::default().members().is_empty(), "a marker that is not set is absent, not false");
    }

    #[test]
    fn picking_leaves_out_nulls() {
        let record = object(json!({"b": null, "a": 1, "c": 2}));
        assert_eq!(pick(&record, &["c", "b", "a"]), object(json!({"c": 2, "a": 1})));
    }
}
