//! Where rows came from and what is gone for good: the one note on stderr (cli-contract.md section 8.3).

use std::collections::HashSet;

use crate::domain::archive::Envelope;
use crate::domain::printable::scrubbed;
use crate::domain::time::Timestamp;

/// What the archive holds of one trail.
#[derive(Debug, Default)]
pub struct Provenance {
    envelopes: usize,
    unreadable: usize,
    sources: HashSet<String>,
    identities: HashSet<String>,
    earliest_end: Option<(Timestamp, String)>,
    /// Rows that only the archive holds.
    pub archived_rows: usize,
    /// Rows that are live and held in the archive, too.
    pub held_again: usize,
}

impl Provenance {
    /// Counts an envelope of this trail. `identities` are those of the records it retains.
    pub fn add(&mut self, envelope: &Envelope<'_>, identities: impl Iterator<Item = String>) {
        self.envelopes += 1;
        if envelope.defect.is_some() {
            self.unreadable += 1;
        } else {
            self.sources.extend(envelope.sources.iter().map(|&source| source.to_owned()));
            self.identities.extend(identities);
        }
        let Some(text) = envelope.delete_after else { return };
        let Some(end) = Timestamp::parse_iso(text) else { return };
        if self.earliest_end.as_ref().is_none_or(|(earliest, _)| end < *earliest) {
            self.earliest_end = Some((end, text.to_owned()));
        }
    }

    /// Counts an envelope that is no JSON at all.
    pub fn add_illegible(&mut self) {
        self.envelopes += 1;
        self.unreadable += 1;
    }

    /// Returns the note on a trail of `rows` rows; none when no envelope is about it.
    #[must_use]
    pub fn note(&self, rows: usize, mirror: bool) -> Option<String> {
        if self.envelopes == 0 {
            return None;
        }
        let mut parts = self.held(rows);
        let dropped = self.sources.len().saturating_sub(self.identities.len());
        match dropped {
            0 => {}
            1 => parts.push("1 source event was dropped by compaction".to_owned()),
            many => parts.push(format!("{many} source events were dropped by compaction")),
        }
        if self.unreadable > 0 {
            let plural = if self.unreadable == 1 { "" } else { "s" };
            parts.push(format!("compaction loss unknown for {} unreadable envelope{plural}", self.unreadable));
        }
        if let Some((_, end)) = &self.earliest_end {
            parts.push(format!("archive deleted after {end}"));
        }
        if !mirror {
            parts.push("mirror it with log --sync".to_owned());
        }
        Some(scrubbed(&format!("note: {}", parts.join("; "))).into_owned())
    }

    fn held(&self, rows: usize) -> Vec<String> {
        let (archived, again) = (self.archived_rows, self.held_again);
        match (archived, again) {
            (0, 0) => vec!["the archive holds a compacted record for this trail".to_owned()],
            (0, again) => vec![format!("{again} of {rows} events are also held in the archive")],
            (archived, 0) => vec![format!("{archived} of {rows} events read from the archive")],
            (archived, again) => vec![
                format!("{archived} of {rows} events read from the archive"),
                format!("{again} more held there too"),
            ],
        }
    }
}
