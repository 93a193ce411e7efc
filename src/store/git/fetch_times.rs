//! When each part of the cache was last fetched, kept beside it, so that `status --cached` and the hooks can say how old
//! their answer is. A hint for people: losing it makes an answer "of unknown age", never wrong.

use std::collections::BTreeMap;

use crate::domain::time::Timestamp;
use crate::git::{Repository, files};

/// More scopes than anybody asks for; the oldest go.
const KEPT: usize = 400;

/// Notes that `patterns` were fetched at `now`.
pub fn note(repository: &Repository, patterns: &[String], now: Timestamp) {
    let mut times = load(repository);
    for pattern in patterns {
        times.retain(|known, _| !known.starts_with(pattern.as_str()));
        times.insert(pattern.clone(), now.to_string());
    }
    while times.len() > KEPT {
        let Some(oldest) = times.iter().min_by_key(|(_, at)| (*at).clone()).map(|(known, _)| known.clone()) else {
            break;
        };
        times.remove(&oldest);
    }
    // Losing a note is harmless.
    let _ = save(repository, &times);
}

/// Returns when the least recently fetched of `patterns` was fetched; `None` when one never was.
#[must_use]
pub fn of(repository: &Repository, patterns: &[String]) -> Option<Timestamp> {
    let times = load(repository);
    let fetched = |pattern: &String| {
        let covering = times
            .iter()
            .filter(|(known, _)| *known == pattern || (known.ends_with('/') && pattern.starts_with(known.as_str())));
        covering.filter_map(|(_, at)| instant(at)).max()
    };
    patterns.iter().map(fetched).collect::<Option<Vec<_>>>()?.into_iter().min()
}

fn instant(text: &str) -> Option<Timestamp> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|at| Timestamp::from(at.to_utc()))
}

fn load(repository: &Repository) -> BTreeMap<String, String> {
    files::read(&path(repository)).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn save(repository: &Repository, times: &BTreeMap<String, String>) -> std::io::Result<()> {
    files::write(&path(repository), &serde_json::to_string(times)?)
}

fn path(repository: &Repository) -> std::path::PathBuf {
    repository.shared_dir().join("fetched.json")
}
