//! The texts of `batch-audit` (cli-contract.md section 9.1) and `ready`.

use crate::domain::audit::{Audit, Finding, LaneAudit};
use crate::domain::batch::ready::{LaneName, Ready, Wait};
use crate::domain::printable::printable;

/// Returns an audit as text.
#[must_use]
pub fn audit(audit: &Audit) -> String {
    let verdict = match audit.verdict {
        Finding::Complete => "complete",
        Finding::Incomplete => "incomplete",
        Finding::Unknown => "unknown",
    };
    let head = format!("batch-audit {} {verdict}", audit.batch_id);
    let reason = audit.reason.iter().map(|reason| format!("- {reason}"));
    page([head].into_iter().chain(reason).chain(audit.lanes.iter().map(audited)))
}

fn audited(lane: &LaneAudit) -> String {
    let head = format!("- lane {} owner {}", lane.name, lane.owner);
    if lane.complete {
        format!("{head} complete")
    } else {
        format!("{head} incomplete missing {}", lane.missing.join(","))
    }
}

/// Returns the sorted lanes of a batch as text.
#[must_use]
pub fn ready(ready: &Ready) -> String {
    let or_none = |lines: Vec<String>| if lines.is_empty() { vec!["- none".to_owned()] } else { lines };
    let can_start = ready.ready.iter().map(|lane| format!("- {}", named(lane))).collect();
    let waiting = ready.waiting.iter().map(|waiting| {
        let waits: Vec<String> = waiting.waits_for.iter().map(wait).collect();
        format!("- {} {}", named(&waiting.lane), waits.join("; "))
    });
    let sections = [("ready", or_none(can_start)), ("waiting", or_none(waiting.collect()))];
    page(sections.into_iter().flat_map(|(header, lines)| std::iter::once(header.to_owned()).chain(lines)))
}

fn named(lane: &LaneName) -> String {
    let targets = if lane.targets.is_empty() { "-".to_owned() } else { lane.targets.join(",") };
    format!("lane {} owner {} targets {targets}", lane.name, lane.owner)
}

fn wait(wait: &Wait) -> String {
    match wait {
        Wait::Ended { status } => format!("ended {status}"),
        Wait::Drained { reason } => format!("drained: {reason}"),
        Wait::Dependency { lane } => format!("waits for {lane}"),
        Wait::Claim { target, agent_id, liveness } => format!("claim on {target} held by {agent_id} {liveness}"),
        Wait::Unreadable { path } => format!("{path} cannot be read"),
    }
}

fn page(lines: impl Iterator<Item = String>) -> String {
    lines.map(|line| format!("{}\n", printable(&line))).collect()
}
