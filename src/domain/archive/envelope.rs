//! Reading an envelope, whatever somebody put in its place.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::domain::path::{Family, RecordPath};
use crate::domain::record::{Members, text};
use crate::domain::time::Timestamp;

/// Which of the two envelopes it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `archived_record`: one record as it was.
    Record,
    /// `compacted_events`: the retained events of one group.
    Compacted,
    /// Neither.
    Unknown,
}

/// One archive record, as far as it can be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope<'a> {
    /// Which envelope it is.
    pub kind: Kind,
    /// The archived payloads that are objects.
    pub records: Vec<&'a Members>,
    /// The hot paths the payloads come from, those that were not retained included.
    pub sources: Vec<&'a str>,
    /// Whether it is marked as not from real work.
    pub synthetic: bool,
    /// When it is to be deleted, as written, when that can be read.
    pub delete_after: Option<&'a str>,
    /// The first thing that is wrong with its body or its sources: what compaction dropped is then unknown.
    pub defect: Option<String>,
}

impl<'a> Envelope<'a> {
    /// Reads an envelope.
    #[must_use]
    pub fn read(members: &'a Members) -> Self {
        let kind = match text(members, "record_family") {
            Some("archived_record") => Kind::Record,
            Some("compacted_events") => Kind::Compacted,
            _ => Kind::Unknown,
        };
        let delete_after = text(members, "delete_after").filter(|text| Timestamp::parse_iso(text).is_some());
        let synthetic = members.get("synthetic") == Some(&Value::Bool(true));
        let empty = Self { kind, records: Vec::new(), sources: Vec::new(), synthetic, delete_after, defect: None };
        match kind {
            Kind::Record => empty.with_record(members),
            Kind::Compacted => empty.with_compacted(members),
            Kind::Unknown => Self { defect: Some("unknown archived record family".to_owned()), ..empty },
        }
    }

    /// Returns the one defect to report: that of the body or the sources, then that of the expiry.
    #[must_use]
    pub fn reported_defect(&self) -> Option<String> {
        let expiry = || self.delete_after.is_none().then(|| "unreadable archive expiry".to_owned());
        self.defect.clone().or_else(expiry)
    }

    fn with_record(self, members: &'a Members) -> Self {
        let record = members.get("data").and_then(Value::as_object);
        let source = text(members, "source_path").filter(|path| is_source(path));
        let defect = match (record, source) {
            (None, _) => Some(counted(1, "unreadable archived record")),
            (_, None) => Some(MALFORMED_SOURCES.to_owned()),
            _ => None,
        };
        Self { records: record.into_iter().collect(), sources: source.into_iter().collect(), defect, ..self }
    }

    fn with_compacted(self, members: &'a Members) -> Self {
        let body = members.get("records").and_then(Value::as_array);
        let records: Vec<&Members> = body.into_iter().flatten().filter_map(Value::as_object).collect();
        let named = members.get("source_paths").and_then(Value::as_array).filter(|paths| !paths.is_empty());
        let sources: Option<Vec<&str>> =
            named.and_then(|paths| paths.iter().map(|path| path.as_str().filter(|path| is_source(path))).collect());
        let defect = match (body, &sources) {
            (None, _) => Some("malformed archived record body".to_owned()),
            (_, None) => Some(MALFORMED_SOURCES.to_owned()),
            (Some(body), Some(sources)) => counted_defect(body.len(), records.len(), sources),
        };
        Self { records, sources: sources.unwrap_or_default(), defect, ..self }
    }
}

const MALFORMED_SOURCES: &str = "malformed archived source paths";

fn counted_defect(held: usize, legible: usize, sources: &[&str]) -> Option<String> {
    let unique: BTreeSet<&&str> = sources.iter().collect();
    if unique.len() < sources.len() {
        return Some("duplicate archived source paths".to_owned());
    }
    let named = counted(sources.len(), "source path");
    if held == 0 {
        return Some(format!("no retained records for {named}"));
    }
    if held > sources.len() {
        return Some(format!("{} exceed {named}", counted(held, "retained record")));
    }
    (legible < held).then(|| counted(held - legible, "unreadable archived record"))
}

fn counted(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

fn is_source(path: &str) -> bool {
    RecordPath::parse(path).is_ok_and(|path| !matches!(path.family(), Family::Archive | Family::Attention))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::object;
    use serde_json::json;

    const LATER: &str = "2026-12-31T00:00:00Z";

    fn defect(envelope: Value) -> Option<String> {
        Envelope::read(&object(envelope)).reported_defect()
    }

    fn compacted(paths: Value, records: Value) -> Value {
        json!({ "record_family": "compacted_events", "source_paths": paths, "records": records, "delete_after": LATER })
    }

    #[test]
    fn a_sound_envelope_tells_its_records_its_sources_and_its_end() {
        let members = object(compacted(json!(["events/b/1.json", "events/b/2.json"]), json!([{ "event_id": "1" }])));
        let envelope = Envelope::read(&members);
        assert_eq!((envelope.kind, envelope.reported_defect()), (Kind::Compacted, None));
        assert_eq!((envelope.records.len(), envelope.sources.len(), envelope.delete_after), (1, 2, Some(LATER)));
    }

    #[test]
    fn one_defect_is_reported_by_priority() {
        let one = json!(["events/b/1.json"]);
        for (envelope, expected) in [
            (json!({ "record_family": "x" }), "unknown archived record family"),
            (compacted(json!(3), json!(3)), "malformed archived record body"),
            (compacted(json!(["events/../1.json"]), json!([])), "malformed archived source paths"),
            (compacted(json!(["events/b/1.json", "events/b/1.json"]), json!([])), "duplicate archived source paths"),
            (compacted(one.clone(), json!([])), "no retained records for 1 source path"),
            (compacted(one.clone(), json!([{}, {}])), "2 retained records exceed 1 source path"),
            (compacted(one, json!([7])), "1 unreadable archived record"),
            (json!({ "record_family": "archived_record", "data": 1 }), "1 unreadable archived record"),
            (json!({ "record_family": "archived_record", "data": {} }), "malformed archived source paths"),
            (
                json!({ "record_family": "archived_record", "data": {}, "source_path": "claims/o/r/1.json" }),
                "unreadable archive expiry",
            ),
        ] {
            assert_eq!(defect(envelope.clone()).as_deref(), Some(expected), "{envelope}");
        }
    }

    #[test]
    fn what_is_legible_is_kept_beside_what_is_not() {
        let members = object(compacted(json!(["events/b/1.json", "events/b/2.json"]), json!([7, { "event_id": "1" }])));
        let envelope = Envelope::read(&members);
        assert_eq!(envelope.records.len(), 1);
        assert!(envelope.defect.is_some());
    }
}
