//! The one reversible mapping between state paths and ref names (design.md section 3.1).
//!
//! Ref names must survive case-insensitive file systems, the rules of `git check-ref-format`, and each other: two
//! targets never share a ref and never block one another.

use sha2::{Digest, Sha256};

use crate::domain::path::{Family, Prefix, RecordPath};

/// Where all coordination state lives.
pub const ROOT: &str = "refs/agent-coord/";
/// The store's own record.
pub const STORE: &str = "refs/agent-coord/store.json";
const EVENTS: &str = "events";
/// Where reservations live, which are events by their paths.
const CLOSURES: &str = "closures";
const RESERVATION: &str = "lane_closed-";
/// Encoded components longer than this are cut; their full path is kept in `$store.path`.
const LONGEST_COMPONENT: usize = 200;
const KEPT_OF_LONG: usize = 100;
const CUT_MARK: &str = "%%";

/// Returns the ref of a record that has one of its own: every family but events, and of the events the reservations.
#[must_use]
pub fn of_record(path: &RecordPath) -> String {
    let mut components: Vec<String> = path.components().map(encode).collect();
    if is_reservation(path) {
        CLOSURES.clone_into(&mut components[0]);
    }
    format!("{ROOT}{}", components.join("/"))
}

/// Returns what the refs of everything under `prefix` begin with, the final `/` included. Events have two such places:
/// their segments, and the reservations.
#[must_use]
pub fn of_prefix(prefix: &Prefix) -> Vec<String> {
    let components: Vec<String> = prefix.as_str().split('/').map(encode).collect();
    let mut begins = vec![format!("{ROOT}{}/", components.join("/"))];
    if components[0] == EVENTS {
        let rest = [CLOSURES].into_iter().chain(components[1..].iter().map(String::as_str));
        begins.push(format!("{ROOT}{}/", rest.collect::<Vec<_>>().join("/")));
    }
    begins
}

/// Tells whether `path` is that of a reservation: `events/BATCH/lane_closed-<16 hex digits>.json`. Its name follows from
/// the lane, so it has a ref of its own that only one closeout can create (design.md section 3.2).
#[must_use]
pub fn is_reservation(path: &RecordPath) -> bool {
    let digits = path.stem().strip_prefix(RESERVATION).filter(|_| path.family() == Family::Events);
    digits.is_some_and(|digits| {
        digits.len() == 16 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// Returns what the event segments of a batch begin with, the final `/` included.
#[must_use]
pub fn of_segments(batch: &str) -> String {
    format!("{ROOT}events/{}/", encode(batch))
}

/// Returns the ref of a writer's `number`th segment of a batch's events.
#[must_use]
pub fn of_segment(batch: &str, writer: &str, number: u32) -> String {
    format!("{}{writer}.{number}.log", of_segments(batch))
}

/// What a ref under [`ROOT`] holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Name {
    /// One record.
    Record(RecordPath),
    /// One record whose path is too long for a ref name; it is told by `$store.path`.
    LongRecord,
    /// A segment of events.
    Segment {
        /// The batch, when its name is short enough to be told by the ref.
        batch: Option<String>,
        /// The clone that writes it.
        writer: String,
        /// Its place among that clone's segments of the batch.
        number: u32,
    },
    /// `store.json`
    Store,
    /// Not written by any version of this store.
    Foreign,
}

/// Returns what the ref `name` holds.
#[must_use]
pub fn read(name: &str) -> Name {
    if name == STORE {
        return Name::Store;
    }
    let Some(rest) = name.strip_prefix(ROOT) else { return Name::Foreign };
    let components: Vec<&str> = rest.split('/').collect();
    if let ["events", batch, file] = components.as_slice()
        && let Some(file) = file.strip_suffix(".log")
    {
        let Some((writer, number)) = file.rsplit_once('.') else { return Name::Foreign };
        let Ok(number) = number.parse() else { return Name::Foreign };
        return Name::Segment { batch: decode(batch), writer: writer.to_owned(), number };
    }
    if components.iter().any(|component| component.contains(CUT_MARK)) {
        return Name::LongRecord;
    }
    let mut decoded: Option<Vec<String>> = components.into_iter().map(decode).collect();
    if let Some([first, ..]) = decoded.as_deref_mut()
        && first == CLOSURES
    {
        EVENTS.clone_into(first);
    }
    match decoded.and_then(|decoded| RecordPath::parse(&decoded.join("/")).ok()) {
        Some(path) if of_record(&path) == name => Name::Record(path),
        _ => Name::Foreign,
    }
}

/// Tells whether the ref of `path` cannot be read back into the path.
#[must_use]
pub fn is_cut(name: &str) -> bool {
    name.contains(CUT_MARK)
}

fn encode(component: &str) -> String {
    let bytes = component.as_bytes();
    let mut encoded = String::with_capacity(bytes.len() + 8);
    for (index, &byte) in bytes.iter().enumerate() {
        let keep = match byte {
            b'a'..=b'z' => !(index == 0 && is_reserved_on_windows(component)),
            b'0'..=b'9' | b'_' | b'-' => true,
            b'.' => !is_awkward_dot(bytes, index),
            _ => false,
        };
        if keep {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02x}"));
        }
    }
    if encoded.len() <= LONGEST_COMPONENT {
        return encoded;
    }
    let digest: String = Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("{}{CUT_MARK}{digest}", &encoded[..KEPT_OF_LONG])
}

fn is_awkward_dot(bytes: &[u8], index: usize) -> bool {
    index == 0 || index + 1 == bytes.len() || bytes[index - 1] == b'.' || bytes[index..].eq_ignore_ascii_case(b".lock")
}

fn is_reserved_on_windows(component: &str) -> bool {
    let stem = component.split('.').next().unwrap_or(component).to_ascii_lowercase();
    match stem.as_str() {
        "con" | "prn" | "aux" | "nul" => true,
        _ => {
            stem.len() == 4
                && (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.ends_with(|last: char| last.is_ascii_digit())
        }
    }
}

fn decode(component: &str) -> Option<String> {
    if component.contains(CUT_MARK) {
        return None;
    }
    percent_encoding::percent_decode_str(component).decode_utf8().ok().map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn claim(repo: &str, target: &str) -> RecordPath {
        RecordPath::parse(&format!("claims/{repo}/{target}.json")).unwrap()
    }

    #[test]
    fn the_examples_of_the_design_hold() {
        assert_eq!(of_record(&claim("shakacode/hichee", "9765")), "refs/agent-coord/claims/shakacode/hichee/9765.json");
        assert_eq!(
            of_record(&claim("ShakaCode/hichee", "issue:9765:qa")),
            "refs/agent-coord/claims/%53haka%43ode/hichee/issue%3a9765%3aqa.json"
        );
    }

    #[test]
    fn names_that_file_systems_or_git_would_confuse_stay_apart() {
        for (left, right) in [("Foo", "foo"), ("a", "a.b"), ("x.lock", "x"), ("con", "CON"), ("feat-a", "feat:a")] {
            let (left, right) = (of_record(&claim("o/r", left)), of_record(&claim("o/r", right)));
            assert_ne!(left.to_lowercase(), right.to_lowercase());
        }
        assert_eq!(of_record(&claim("o/r", "con")), "refs/agent-coord/claims/o/r/%63on.json");
        assert_eq!(of_record(&claim(".x/r.lock", "1")), "refs/agent-coord/claims/%2ex/r%2elock/1.json");
    }

    #[test]
    fn a_name_too_long_for_a_file_is_cut_and_still_unique() {
        let long = "a".repeat(300);
        let (one, two) = (of_record(&claim("o/r", &format!("{long}1"))), of_record(&claim("o/r", &format!("{long}2"))));
        assert_ne!(one, two);
        assert!(one.rsplit('/').next().unwrap().len() <= LONGEST_COMPONENT);
        assert_eq!(read(&one), Name::LongRecord);
    }

    #[test]
    fn segments_and_strangers_are_told_apart() {
        let name = of_segment("B:1", "0123456789abcdef", 7);
        assert_eq!(
            read(&name),
            Name::Segment { batch: Some("B:1".to_owned()), writer: "0123456789abcdef".to_owned(), number: 7 }
        );
        assert_eq!(read("refs/agent-coord/claims/O/r/1.json"), Name::Foreign, "capitals are always encoded");
        assert_eq!(read("refs/agent-coord/claims/o/r/1.json.lock"), Name::Foreign);
    }

    #[test]
    fn a_reservation_is_an_event_with_a_ref_of_its_own() {
        let parse = |path: &str| RecordPath::parse(path).unwrap();
        let reservation = parse("events/B:1/lane_closed-0f5a0caebfed6139.json");
        let name = of_record(&reservation);
        assert_eq!(name, "refs/agent-coord/closures/%42%3a1/lane_closed-0f5a0caebfed6139.json");
        assert_eq!(read(&name), Name::Record(reservation));
        for ordinary in ["lane_closed-0f5a0caebfed613", "lane_closed-0F5a0caebfed6139", "xlane_closed-0f5a0caebfed6139"]
        {
            assert!(!is_reservation(&parse(&format!("events/b1/{ordinary}.json"))), "{ordinary}");
        }
        assert!(!is_reservation(&parse("batches/lane_closed-0f5a0caebfed6139.json")));
        let batch = crate::domain::ids::BatchId::parse("batch-id", "b1").unwrap();
        assert_eq!(
            of_prefix(&Prefix::events_of(&batch)),
            ["refs/agent-coord/events/b1/", "refs/agent-coord/closures/b1/"]
        );
    }

    #[test]
    fn an_event_of_any_other_name_has_no_ref_among_the_reservations() {
        assert_eq!(read("refs/agent-coord/closures/b1/e1.json"), Name::Foreign);
    }

    proptest! {
        #[test]
        fn every_record_path_comes_back_from_its_ref(target in "[A-Za-z0-9_:-]{1,20}(\\.[A-Za-z0-9_:-]{1,9}){0,3}", owner in "[A-Za-z0-9_-]{1,12}") {
            let path = claim(&format!("{owner}/r.x"), &target);
            prop_assert_eq!(read(&of_record(&path)), Name::Record(path));
        }

        #[test]
        fn every_ref_is_one_that_git_accepts(target in "[A-Za-z0-9_:-]{1,20}(\\.[A-Za-z0-9_:-]{1,9}){0,3}") {
            let name = of_record(&claim("o/r", &target));
            prop_assert!(!name.contains("..") && !name.contains("/.") && !name.ends_with(".lock") && !name.contains(':'));
            prop_assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"/._-%".contains(&byte)));
        }
    }
}
