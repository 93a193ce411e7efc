//! The report on one target (cli-contract.md section 7.4).

use std::collections::BTreeMap;

use super::{HeartbeatRow, Judged, ReportScope, StatusReport, claim_row, heartbeat_row, plain, shown, value};
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::ids::{AgentId, RepoName, Target};
use crate::domain::path::RecordPath;
use crate::domain::record::{Content, Members, Stored};
use crate::domain::snapshot::Snapshot;

const ELSEWHERE: &str = "not checked in target scope; run `agent-coord log` for this target's history";

/// One spelling to look up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where its claim lives.
    pub path: RecordPath,
    /// It is the spelling that was asked for; the others are aliases.
    pub queried: bool,
}

/// A claim that was found under one of the spellings.
#[derive(Debug, Clone)]
pub struct Found<'a> {
    stored: &'a Stored,
    claim: &'a Members,
}

/// The claims of a target before their holders are looked up.
#[derive(Debug, Clone)]
pub struct TargetReport<'a> {
    faults: &'a Faults,
    found: Vec<Found<'a>>,
    notes: Vec<String>,
}

/// Records that could not be read where they lie, each with the reason as a report words it.
pub type Faults = BTreeMap<RecordPath, String>;

/// Reads the claims found under the spellings of a target.
///
/// # Errors
/// When the queried spelling holds something that is no claim.
pub fn target_report<'a>(
    snapshot: &'a Snapshot,
    candidates: &[Candidate],
    faults: &'a Faults,
) -> Result<TargetReport<'a>, Refusal> {
    let mut report = TargetReport { faults, found: Vec::new(), notes: Vec::new() };
    for candidate in candidates {
        if let Some(reason) = faults.get(&candidate.path) {
            report.note(&candidate.path, reason);
        }
        let Some(stored) = snapshot.records.get(&candidate.path).and_then(Option::as_ref) else { continue };
        match &stored.content {
            Content::Object(claim) => report.add(stored, claim),
            content if candidate.queried => return Err(unreadable(&candidate.path, content)),
            Content::NotAnObject(_) => report.note(&candidate.path, "not a claim record"),
            Content::Malformed(_) => report.note(&candidate.path, "unreadable"),
        }
    }
    Ok(report)
}

fn unreadable(path: &RecordPath, content: &Content) -> Refusal {
    let message = match content {
        Content::Malformed(reason) => format!("state unreadable: {path}: {reason}"),
        _ => format!("state record is not a claim object: {path}"),
    };
    Refusal::new(RefusalKind::Unknown, message)
}

impl<'a> TargetReport<'a> {
    fn note(&mut self, path: &RecordPath, reason: &str) {
        self.notes.push(format!("{path} {reason}; a claim there would not be reported"));
    }

    /// Adds a claim unless one with the same repository, target and holder is there already.
    fn add(&mut self, stored: &'a Stored, claim: &'a Members) {
        let key = |claim: &Members| {
            let repo = value(claim, "repo").map(|repo| plain(&repo));
            Some((repo, plain(&value(claim, "target")?), plain(&value(claim, "agent_id")?)))
        };
        let known =
            key(claim).is_some_and(|new| self.found.iter().any(|found| key(found.claim).as_ref() == Some(&new)));
        if !known {
            self.found.push(Found { stored, claim });
        }
    }

    /// Returns the report, given the heartbeats of the claims' [`holders`].
    #[must_use]
    pub fn finish(self, repo: &RepoName, target: &Target, snapshot: &Snapshot, judged: Judged) -> StatusReport {
        let mut notes = vec![("batches", ELSEWHERE.to_owned()), ("events", ELSEWHERE.to_owned())];
        if !self.notes.is_empty() {
            notes.push(("claims", self.notes.join("; ")));
        }
        let (rows, parts) = self.heartbeats(snapshot, judged);
        if !parts.is_empty() {
            notes.push(("heartbeats", parts.join("; ")));
        }
        StatusReport {
            scope: ReportScope::Target { repo: repo.to_string(), target: target.to_string() },
            notes,
            claims: self.found.iter().map(|found| claim_row(found.stored, found.claim)).collect(),
            warnings: rows.iter().filter_map(HeartbeatRow::skew_warning).collect(),
            heartbeats: rows.into_iter().map(|row| row.members).collect(),
            batches: None,
            events: None,
            archive: None,
        }
    }

    /// Returns the heartbeat rows of the holders, each once, and what is to be said of those that have none.
    fn heartbeats(&self, snapshot: &Snapshot, judged: Judged) -> (Vec<HeartbeatRow>, Vec<String>) {
        let several = self.found.len() > 1;
        let mut seen: Vec<String> = Vec::new();
        let (mut rows, mut parts) = (Vec::new(), Vec::new());
        for found in &self.found {
            let target =
                value(found.claim, "target").map_or_else(|| found.stored.path.stem().to_owned(), |v| plain(&v));
            let Some(holder) = holder_of(found.claim) else {
                parts.push(if several {
                    format!("claim holder not set for {target}")
                } else {
                    "claim holder not set".to_owned()
                });
                continue;
            };
            if seen.contains(&holder) {
                continue;
            }
            match holder_row(snapshot, self.faults, &holder, judged) {
                Ok(row) => rows.push(row),
                Err(reason) if several => parts.push(format!("{reason} for {target} ({holder})")),
                Err(reason) => parts.push(reason.to_owned()),
            }
            seen.push(holder);
        }
        (rows, parts)
    }
}

fn holder_of(claim: &Members) -> Option<String> {
    Some(shown(claim, "agent_id")).filter(|holder| !holder.trim().is_empty())
}

fn holder_row(
    snapshot: &Snapshot,
    faults: &Faults,
    holder: &str,
    judged: Judged,
) -> Result<HeartbeatRow, &'static str> {
    let path = AgentId::parse("agent-id", holder).ok().map(|agent| RecordPath::heartbeat(&agent));
    if path.as_ref().is_some_and(|path| faults.contains_key(path)) {
        return Err("holder heartbeat unreadable");
    }
    let stored = path.as_ref().and_then(|path| snapshot.records.get(path)).and_then(Option::as_ref);
    let stored = stored.ok_or("holder heartbeat not found")?;
    let heartbeat = stored.object().ok_or("holder heartbeat unreadable")?;
    let row = heartbeat_row(stored, heartbeat, judged);
    if row.agent == holder { Ok(row) } else { Err("holder heartbeat mismatched") }
}

/// Returns the heartbeats to read for the claims in a snapshot, each once.
#[must_use]
pub fn holders(snapshot: &Snapshot, candidates: &[Candidate]) -> Vec<RecordPath> {
    let claims = candidates.iter().filter_map(|candidate| snapshot.records.get(&candidate.path)?.as_ref()?.object());
    let agents = claims.filter_map(holder_of).filter_map(|holder| AgentId::parse("agent-id", &holder).ok());
    let unique: BTreeMap<RecordPath, ()> = agents.map(|agent| (RecordPath::heartbeat(&agent), ())).collect();
    unique.into_keys().collect()
}
