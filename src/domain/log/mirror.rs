//! Merging a trail into the lines of its mirror (cli-contract.md section 8.7).

use std::collections::HashSet;

use super::row::Row;
use crate::domain::time::Timestamp;

/// The column that holds an event's id.
const EVENT_ID_COLUMN: usize = 10;

/// Returns a row as a line of the tab-separated form, without its end.
#[must_use]
pub fn line(row: &Row) -> String {
    row.columns().join("\t")
}

/// Returns the new text of a mirror that holds `existing`, and how many lines are new; `None` when none is.
///
/// No line is ever dropped: the mirror outlives the store's own copies.
#[must_use]
pub fn merged(existing: &[u8], rows: &[Row]) -> Option<(Vec<u8>, usize)> {
    let mut lines: Vec<Vec<u8>> =
        existing.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect();
    let mut known: HashSet<Vec<u8>> = lines.iter().cloned().collect();
    let before = lines.len();
    lines.extend(rows.iter().map(|row| line(row).into_bytes()).filter(|line| known.insert(line.clone())));
    let added = lines.len() - before;
    if added == 0 {
        return None;
    }
    lines.sort_by_cached_key(|line| order(line));
    let mut text = lines.join(&b'\n');
    text.push(b'\n');
    Some((text, added))
}

fn order(line: &[u8]) -> (Option<Timestamp>, Vec<u8>) {
    let mut columns = line.split(|&byte| byte == b'\t');
    let at = columns.next().and_then(|at| std::str::from_utf8(at).ok()).and_then(Timestamp::parse_iso);
    (at, columns.nth(EVENT_ID_COLUMN - 1).unwrap_or_default().to_vec())
}
