//! The shape of a record, checked in the schema's order.

use serde_json::Value;
use thiserror::Error;

use crate::domain::ids::{is_repo, is_segment};
use crate::domain::path::{Prefix, RecordPath};
use crate::domain::record::{Members, text};
use crate::domain::time::Timestamp;

/// The highest generation of a source: what every JSON reader holds exactly.
pub const MAX_GENERATION: i64 = 9_007_199_254_740_991;
/// The classes of priority, the most urgent first.
const PRIORITIES: [&str; 4] = ["urgent-risk", "unblocks-work", "current-head-merge", "product-architecture"];
const REQUIRED: [&str; 16] = [
    "schema_version",
    "workspace",
    "id",
    "repository",
    "target",
    "status",
    "kind",
    "question",
    "choices",
    "priority_class",
    "priority_reason",
    "source",
    "source_generation",
    "safe_resume",
    "created_at",
    "refreshed_at",
];
const SOURCE_REQUIRED: [&str; 5] = ["provider", "host_id", "task_id", "last_seen_at", "capabilities"];
const CAPABILITIES: [&str; 2] = ["native_open", "prompt_forwarding"];
/// Texts that must not be empty, with the most characters each may have, in the order they are checked.
const TEXTS: [(&str, usize); 5] =
    [("target", 2000), ("kind", 100), ("question", 4000), ("priority_reason", 4000), ("safe_resume", 4000)];
const KEY_LENGTH: usize = 160;
const TIMESTAMP_LENGTH: usize = 64;

/// What is wrong with a record, in the contract's words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Invalid(pub String);

/// What names a record: workspace, repository and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    workspace: String,
    repository: String,
    id: String,
}

impl Key {
    /// Validates the parts of a key.
    ///
    /// # Errors
    /// The first part that is too long or not of its grammar.
    pub fn new(workspace: &str, repository: &str, id: &str) -> Result<Self, Invalid> {
        for (name, value) in [("workspace", workspace), ("id", id), ("repository", repository)] {
            check_length(name, value)?;
        }
        check_segment("workspace", workspace)?;
        check_segment("id", id)?;
        check_repository(repository)?;
        Ok(Self { workspace: workspace.to_owned(), repository: repository.to_owned(), id: id.to_owned() })
    }

    /// Returns the directory of a workspace's records on a repository.
    ///
    /// # Errors
    /// The first part that is too long or not of its grammar.
    pub fn prefix(workspace: &str, repository: &str) -> Result<Prefix, Invalid> {
        for (name, value) in [("workspace", workspace), ("repository", repository)] {
            check_length(name, value)?;
        }
        check_segment("workspace", workspace)?;
        check_repository(repository)?;
        Ok(Prefix::attention_of(workspace, repository))
    }

    /// Returns the id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns where the record lives.
    #[must_use]
    pub fn path(&self) -> RecordPath {
        let text = format!("attention/{}/{}/{}.json", self.workspace, self.repository, self.id);
        RecordPath::parse(&text).expect("the parts were validated, and their grammars are those of path components")
    }
}

/// A record that keeps the schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What names it.
    pub key: Key,
    /// Its members, the generation an integer.
    pub members: Members,
    /// The generation of its source.
    pub generation: i64,
    /// Its place among the classes of priority.
    pub rank: usize,
    /// When it was created.
    pub created: Timestamp,
    /// When it was last refreshed.
    pub refreshed: Timestamp,
    /// When it was resolved.
    pub resolved: Option<Timestamp>,
}

impl Record {
    /// Tells whether the question is still open.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.resolved.is_none()
    }
}

/// Checks a record. `open_only` is set for what a caller upserts.
///
/// # Errors
/// The first rule it breaks.
pub fn validate(value: &Value, open_only: bool) -> Result<Record, Invalid> {
    let members = value.as_object().ok_or_else(|| Invalid("attention record must be a JSON object".to_owned()))?;
    check_names(members)?;
    if !is_integer(members.get("schema_version"), 1) {
        return fail("attention schema_version must be 1");
    }
    let key = key_of(members)?;
    for (name, limit) in TEXTS {
        check_text(members, name, limit)?;
    }
    check_choices(members)?;
    let priority = text(members, "priority_class").and_then(|class| PRIORITIES.iter().position(|name| *name == class));
    let Some(rank) = priority else {
        return fail(&format!("attention priority_class must be {}", PRIORITIES.join(", ")));
    };
    let open = match text(members, "status") {
        Some("open") => true,
        Some("resolved") if open_only => return fail("attention-upsert requires status open"),
        Some("resolved") => false,
        _ => return fail("attention status must be open or resolved"),
    };
    let Some(generation) = members.get("source_generation").and_then(generation_of) else {
        return fail(&format!("attention source_generation must be an integer between 0 and {MAX_GENERATION}"));
    };
    check_source(members)?;
    let (created, refreshed) = (timestamp(members, "created_at", "")?, timestamp(members, "refreshed_at", "")?);
    if refreshed < created {
        return fail("attention refreshed_at must not precede created_at");
    }
    let resolved = resolution(members, open, created)?;
    let mut members = members.clone();
    members.insert("source_generation".to_owned(), generation.into());
    Ok(Record { key, members, generation, rank, created, refreshed, resolved })
}

fn fail<T>(message: &str) -> Result<T, Invalid> {
    Err(Invalid(message.to_owned()))
}

fn check_names(members: &Members) -> Result<(), Invalid> {
    if let Some(name) = REQUIRED.iter().find(|name| !members.contains_key(**name)) {
        return fail(&format!("attention record missing {name}"));
    }
    let known = |name: &str| REQUIRED.contains(&name) || name == "resolved_at";
    match members.keys().find(|name| !known(name)) {
        Some(name) => fail(&format!("attention record contains unknown field {name}")),
        None => Ok(()),
    }
}

fn key_of(members: &Members) -> Result<Key, Invalid> {
    let component = |name: &str| {
        let found = text(members, name).ok_or_else(|| Invalid(format!("attention {name} must be a string")))?;
        check_length(name, found).map(|()| found)
    };
    let (workspace, id, repository) = (component("workspace")?, component("id")?, component("repository")?);
    Key::new(workspace, repository, id)
}

fn check_length(name: &str, value: &str) -> Result<(), Invalid> {
    if value.chars().count() > KEY_LENGTH {
        return fail(&format!("attention {name} must be at most {KEY_LENGTH} characters"));
    }
    Ok(())
}

fn check_segment(name: &str, value: &str) -> Result<(), Invalid> {
    if is_segment(value) { Ok(()) } else { fail(&format!("invalid attention {name}: {value}")) }
}

fn check_repository(repository: &str) -> Result<(), Invalid> {
    let sound = is_repo(repository) && !repository.contains("..") && repository.split('/').all(|half| half != ".");
    if sound { Ok(()) } else { fail(&format!("invalid attention repo: {repository}")) }
}

fn check_text(members: &Members, name: &str, limit: usize) -> Result<(), Invalid> {
    if text(members, name).is_some_and(|text| is_filled(text, limit)) {
        return Ok(());
    }
    fail(&format!("attention {name} must be a non-empty string of at most {limit} characters"))
}

fn is_filled(text: &str, limit: usize) -> bool {
    !text.is_empty() && text.chars().count() <= limit
}

fn check_choices(members: &Members) -> Result<(), Invalid> {
    let choices = members.get("choices").and_then(Value::as_array);
    let sound = |choice: &Value| choice.as_str().is_some_and(|text| is_filled(text, 2000));
    if choices.is_some_and(|choices| (1..=10).contains(&choices.len()) && choices.iter().all(sound)) {
        return Ok(());
    }
    fail("attention choices must contain 1 to 10 non-empty strings of at most 2000 characters")
}

fn is_integer(value: Option<&Value>, wanted: i64) -> bool {
    value.filter(|value| value.is_number()).and_then(Value::as_i64) == Some(wanted)
}

/// Returns a generation; a float without a fraction is an integer, too.
fn generation_of(value: &Value) -> Option<i64> {
    let Value::Number(number) = value else { return None };
    let integer = number.as_i64().or_else(|| integral(number.as_f64()?))?;
    (0..=MAX_GENERATION).contains(&integer).then_some(integer)
}

fn integral(float: f64) -> Option<i64> {
    // Exact: the decimal text of a float without a fraction is its value.
    (float.fract() == 0.0).then(|| format!("{float:.0}").parse().ok())?
}

fn check_source(members: &Members) -> Result<(), Invalid> {
    let Some(source) = members.get("source").and_then(Value::as_object) else {
        return fail("attention source must be a JSON object");
    };
    if let Some(name) = SOURCE_REQUIRED.iter().find(|name| !source.contains_key(**name)) {
        return fail(&format!("attention source missing {name}"));
    }
    let known = |name: &str| SOURCE_REQUIRED.contains(&name) || name == "open_uri";
    if let Some(name) = source.keys().find(|name| !known(name)) {
        return fail(&format!("attention source contains unknown field {name}"));
    }
    for (name, limit) in [("provider", 100), ("host_id", 255), ("task_id", 255)] {
        let Some(found) = text(source, name).filter(|text| !text.is_empty()) else {
            return fail(&format!("attention source {name} must be non-empty"));
        };
        if found.chars().count() > limit {
            return fail(&format!("attention source {name} must be at most {limit} characters"));
        }
    }
    if source.contains_key("open_uri") && !text(source, "open_uri").is_some_and(is_absolute_uri) {
        return fail("attention source open_uri must be an absolute URI");
    }
    timestamp(source, "last_seen_at", "source ")?;
    check_capabilities(source.get("capabilities"))
}

/// Tells whether text is a scheme, a colon and something after it, all of it printable ASCII without spaces.
fn is_absolute_uri(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let named = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    named && !rest.is_empty() && text.len() <= 2000 && text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn check_capabilities(value: Option<&Value>) -> Result<(), Invalid> {
    let found = value.and_then(Value::as_object);
    let Some(found) =
        found.filter(|found| found.len() == 2 && CAPABILITIES.iter().all(|name| found.contains_key(*name)))
    else {
        return fail("attention capabilities must contain only native_open and prompt_forwarding");
    };
    for name in CAPABILITIES {
        if !matches!(text(found, name), Some("available" | "unavailable" | "unknown")) {
            return fail(&format!("attention {name} must be available, unavailable, or unknown"));
        }
    }
    Ok(())
}

/// Reads an RFC 3339 instant; a leap second is none here.
fn timestamp(members: &Members, name: &str, owner: &str) -> Result<Timestamp, Invalid> {
    let spelled = text(members, name).filter(|text| text.chars().count() <= TIMESTAMP_LENGTH);
    let leap = |text: &str| text.get(17..19) == Some("60");
    spelled.filter(|text| !leap(text)).and_then(Timestamp::parse_strict).ok_or_else(|| {
        Invalid(format!(
            "attention {owner}{name} must be an RFC 3339 timestamp of at most {TIMESTAMP_LENGTH} characters"
        ))
    })
}

fn resolution(members: &Members, open: bool, created: Timestamp) -> Result<Option<Timestamp>, Invalid> {
    match (open, members.contains_key("resolved_at")) {
        (true, false) => Ok(None),
        (true, true) => fail("open attention must not contain resolved_at"),
        (false, false) => fail("resolved attention requires resolved_at"),
        (false, true) => {
            let resolved = timestamp(members, "resolved_at", "")?;
            if resolved < created {
                return fail("attention resolved_at must not precede created_at");
            }
            Ok(Some(resolved))
        }
    }
}
