//! The three forms of a trail (cli-contract.md section 8.6).

use serde::Serialize;

use crate::domain::log::{Item, ReportedClaim, Row, Trail, mirror};
use crate::domain::printable::printable;

use super::{Printer, json};

/// Columns that are padded to their widest value; the detail follows them.
const PADDED: usize = 7;
const SYNTHETIC_MARK: &str = "[synthetic] ";

/// Prints a trail as text. `hiding` are the filters that hide rows, as typed.
pub fn print_text(printer: &mut Printer<'_>, trail: &Trail, item: Option<&Item>, hiding: &[String]) {
    let mut page = table(&trail.rows);
    for line in trailer(trail, item, hiding) {
        page.push_str(&printable(&line));
        page.push('\n');
    }
    printer.data(&page);
}

/// Prints a trail as tab-separated values; what is no row goes to stderr.
pub fn print_tsv(printer: &mut Printer<'_>, trail: &Trail, item: Option<&Item>, hiding: &[String]) {
    let page: String = trail.rows.iter().map(|row| mirror::line(row) + "\n").collect();
    printer.data(&page);
    for line in trailer(trail, item, hiding) {
        printer.message(&line);
    }
}

#[derive(Serialize)]
struct Document<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    work_item: Option<WorkItem<'a>>,
    trail: &'static str,
    events_suppressed: bool,
    events: &'a [Row],
    #[serde(skip_serializing_if = "Option::is_none")]
    claim: Option<&'a ReportedClaim>,
    #[serde(skip_serializing_if = "<[ReportedClaim]>::is_empty")]
    claims: &'a [ReportedClaim],
}

#[derive(Serialize)]
struct WorkItem<'a> {
    repo: &'a str,
    target: &'a str,
    matched_targets: Vec<&'a str>,
}

/// Prints a trail as JSON.
pub fn print_json(printer: &mut Printer<'_>, trail: &Trail, item: Option<&Item>) {
    let work_item = item.map(|item| WorkItem {
        repo: item.repo.as_str(),
        target: item.target.as_str(),
        matched_targets: trail.matched_targets.iter().map(String::as_str).collect(),
    });
    let document = Document {
        work_item,
        trail: if trail.degraded.is_empty() { "complete" } else { "incomplete" },
        events_suppressed: trail.suppressed,
        events: &trail.rows,
        claim: trail.claims.last(),
        claims: &trail.claims,
    };
    json::print(printer, &document);
}

fn table(rows: &[Row]) -> String {
    let cells: Vec<Vec<_>> =
        rows.iter().map(|row| row.columns()[..PADDED].iter().map(|text| printable(text)).collect()).collect();
    let widths: Vec<usize> = (0..PADDED)
        .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default())
        .collect();
    let mut page = String::new();
    for (row, cells) in rows.iter().zip(&cells) {
        let start = page.len();
        for (cell, &width) in cells.iter().zip(&widths) {
            page.push_str(&format!("{cell:<width$}  "));
        }
        page.push_str(if row.synthetic { SYNTHETIC_MARK } else { "" });
        page.push_str(&printable(&row.detail));
        page.truncate(start + page[start..].trim_end().len());
        page.push('\n');
    }
    page
}

fn trailer(trail: &Trail, item: Option<&Item>, hiding: &[String]) -> Vec<String> {
    let subject = item.map_or("the current filters", |item| &item.typed);
    let mut lines = Vec::new();
    if trail.suppressed && !hiding.is_empty() {
        lines.push(format!("no events shown for {subject} ({})", hiding.join(", ")));
    } else if trail.rows.is_empty() {
        lines.push(format!("no events for {subject}"));
    }
    lines.extend(trail.claims.iter().map(claim_line));
    lines
}

fn claim_line(claim: &ReportedClaim) -> String {
    let ReportedClaim { status, machine, host, agent_id, phase, updated_at, expires_at, target, .. } = claim;
    let mark = if claim.synthetic { SYNTHETIC_MARK } else { "" };
    let elapsed = if claim.lease_elapsed { format!(" lease elapsed {expires_at}") } else { String::new() };
    format!("claim {status} {mark}{machine} {host} {agent_id} {target} phase {phase} updated {updated_at}{elapsed}")
}
