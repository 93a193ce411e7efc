//! The text of a status report (cli-contract.md section 7.2).

use std::fmt::Write as _;

use serde_json::Value;

use crate::domain::printable::printable;
use crate::domain::record::Members;
use crate::domain::status::{StatusReport, plain, shown};

/// Returns the report as text.
#[must_use]
pub fn text(report: &StatusReport, colour: bool) -> String {
    let mut page = Page { text: String::new(), colour };
    page.section(report, "claims", Some(&report.claims), |page, row| page.item(&claim(row)));
    page.section(report, "heartbeats", Some(&report.heartbeats), |page, row| page.item(&heartbeat(row)));
    page.section(report, "batches", report.batches.as_deref(), Page::batch);
    page.section(report, "events", report.events.as_deref(), |page, row| page.item(&event(row)));
    if let Some(archive) = &report.archive {
        page.section(report, "archive", Some(archive), |page, row| page.item(&archived(row)));
    }
    let degraded = report.degraded();
    if !degraded.is_empty() {
        page.header("degraded");
        degraded.iter().for_each(|note| page.item(note));
    }
    page.text
}

struct Page {
    text: String,
    colour: bool,
}

impl Page {
    fn section(
        &mut self,
        report: &StatusReport,
        name: &str,
        rows: Option<&[Members]>,
        mut each: impl FnMut(&mut Self, &Members),
    ) {
        self.header(name);
        match rows.filter(|rows| !rows.is_empty()) {
            Some(rows) => rows.iter().for_each(|row| each(self, row)),
            None => self.item(report.note(name).unwrap_or("none")),
        }
    }

    fn header(&mut self, name: &str) {
        let bold = if self.colour { anstyle::Style::new().bold() } else { anstyle::Style::new() };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{bold}{name}{bold:#}");
    }

    fn item(&mut self, text: &str) {
        self.indented("- ", text);
    }

    fn indented(&mut self, lead: &str, text: &str) {
        self.text.push_str(lead);
        self.text.push_str(&printable(text));
        self.text.push('\n');
    }

    fn batch(&mut self, batch: &Members) {
        self.item(&shown(batch, "batch_id"));
        let lanes: Vec<&Members> =
            batch.get("lanes").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object).collect();
        if lanes.is_empty() {
            self.indented("  - ", "lanes -");
        }
        for row in lanes {
            self.indented("  - ", &lane(row));
        }
    }
}

fn claim(row: &Members) -> String {
    let [repo, target, status, agent, branch, expires] =
        ["repo", "target", "status", "agent_id", "branch", "expires_at"].map(|name| shown(row, name));
    format!("{repo}#{target} {status} {agent} branch {branch} expires {expires}")
}

fn heartbeat(row: &Members) -> String {
    let [agent, status, liveness, target, updated] =
        ["agent_id", "status", "liveness", "target", "updated_at"].map(|name| shown(row, name));
    let since = row.get("wedged_since").map(|since| format!(" wedged since {}", plain(since))).unwrap_or_default();
    format!("{agent} {status} {liveness} {target} updated {updated}{since}")
}

fn lane(row: &Members) -> String {
    let [name, owner, status, liveness] = ["name", "owner", "status", "liveness"].map(|member| shown(row, member));
    let [targets, deps, blocked_on] = ["targets", "deps", "blocked_on"].map(|member| joined(row.get(member)));
    format!(
        "lane {name} owner {owner} targets {targets} status {status} {liveness} deps {deps} blocked_on {blocked_on}"
    )
}

fn event(row: &Members) -> String {
    let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
    let first_of = |names: &[&str]| {
        or_dash(names.iter().map(|name| shown(row, name)).find(|text| !text.is_empty()).unwrap_or_default())
    };
    let [batch, kind, at, message] = ["batch_id", "type", "at", "message"].map(|name| shown(row, name));
    let (lane, state, agent) = (first_of(&["lane"]), first_of(&["phase", "status"]), first_of(&["agent_id"]));
    let message = if message.is_empty() { message } else { format!(" {message}") };
    format!("{batch} {lane} {kind} {state} by {agent} at {at}{message}")
}

fn archived(row: &Members) -> String {
    let [path, family, delete_after] = ["path", "record_family", "delete_after"].map(|name| shown(row, name));
    let source = Some(shown(row, "source_path")).filter(|source| !source.is_empty());
    let source = source.unwrap_or_else(|| joined(row.get("source_paths")));
    format!("{path} {family} source {source} delete_after {delete_after}")
}

/// Returns a list joined with `,`; `-` when there is nothing in it.
fn joined(list: Option<&Value>) -> String {
    let parts: Vec<String> = list.and_then(Value::as_array).into_iter().flatten().map(plain).collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(",") }
}
