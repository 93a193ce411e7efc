//! What is asked of the trail.

use super::row::{Row, family, is_synthetic, value};
use crate::domain::ids::{RepoName, Target};
use crate::domain::record::Members;
use crate::domain::status::Identity;
use crate::domain::time::Timestamp;

/// A work item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its repository.
    pub repo: RepoName,
    /// Its target as typed.
    pub target: Target,
    /// How the user wrote it, for messages.
    pub typed: String,
    identity: Identity,
}

impl Item {
    /// Returns the work item of a repository and a target.
    #[must_use]
    pub fn new(repo: RepoName, target: Target, typed: String) -> Self {
        let identity = Identity::of(target.as_str());
        Self { repo, target, typed, identity }
    }

    /// Tells whether a record of this repository and target is about the item: under any spelling, and in any lane
    /// unless the item names one.
    #[must_use]
    pub fn matches(&self, repo: &str, target: &str) -> bool {
        if !self.is_in(repo) {
            return false;
        }
        let found = Identity::of(target);
        found.base == self.identity.base && (self.identity.lane.is_none() || found.lane == self.identity.lane)
    }

    /// Tells the same with the lane compared exactly: an item without one does not cover its lanes.
    #[must_use]
    pub fn is_exactly(&self, repo: &str, target: &str) -> bool {
        self.is_in(repo) && Identity::of(target) == self.identity
    }

    fn is_in(&self, repo: &str) -> bool {
        self.repo.as_str().eq_ignore_ascii_case(repo.trim())
    }
}

/// Filters that leave out rows of a trail. A blank one is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Narrowing {
    /// Nothing before this instant.
    pub since: Option<Timestamp>,
    /// This machine's rows only.
    pub machine: Option<String>,
    /// This host family's rows only; any recorded spelling names the family.
    pub host: Option<String>,
    /// Rows of this type only.
    pub event_type: Option<String>,
    /// The last rows only, this many.
    pub limit: Option<usize>,
}

impl Narrowing {
    /// Tells whether a row passes every filter but the limit.
    #[must_use]
    pub fn admits(&self, row: &Row) -> bool {
        let same = |wanted: &Option<String>, found: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.trim().to_lowercase() == found.to_lowercase())
        };
        self.since.is_none_or(|since| row.instant.is_some_and(|instant| instant >= since))
            && same(&self.machine, &row.machine)
            && self.host.as_ref().is_none_or(|host| family(host) == row.host)
            && same(&self.event_type, &row.event_type)
    }

    /// Tells whether it hides rows that would otherwise say where the work is: a limit above zero does not.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.since.is_some()
            || self.machine.is_some()
            || self.host.is_some()
            || self.event_type.is_some()
            || self.limit == Some(0)
    }
}

/// What is asked of the trail.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// The work item; everything when absent.
    pub item: Option<Item>,
    /// Which of its rows to show.
    pub narrowing: Narrowing,
    /// Show rows that are not from real work, too.
    pub include_synthetic: bool,
    /// The rows are for the mirror, which is complete or not written.
    pub mirror: bool,
}

impl Query {
    /// Tells whether claims belong to the answer (cli-contract.md section 8.5).
    #[must_use]
    pub fn reports_claims(&self) -> bool {
        self.item.is_some() && !self.narrowing.is_active() && !self.mirror
    }
}

impl Query {
    /// Tells whether an event is about what is asked.
    #[must_use]
    pub fn covers(&self, event: &Members) -> bool {
        let Some(item) = &self.item else { return true };
        let (Some(repo), Some(target)) = (value(event, "repo"), value(event, "target")) else { return false };
        item.matches(&repo, &target)
    }

    /// Tells whether an event is a row of the trail, before any narrowing.
    #[must_use]
    pub fn takes(&self, event: &Members) -> bool {
        (self.include_synthetic || !is_synthetic(event)) && self.covers(event)
    }
}

/// Reads the value of `--since`: a number of minutes, hours, days or weeks before `now`, or an instant.
#[must_use]
pub fn since(text: &str, now: Timestamp) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(unit) = text.chars().last().and_then(seconds_in) {
        let digits = &text[..text.len() - 1];
        if !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()) {
            let seconds = digits.parse::<i64>().ok()?.checked_mul(unit)?;
            return Some(now.plus_seconds(-seconds));
        }
    }
    Timestamp::parse_iso(text)
}

fn seconds_in(unit: char) -> Option<i64> {
    match unit {
        'm' => Some(60),
        'h' => Some(3600),
        'd' => Some(86_400),
        'w' => Some(604_800),
        _ => None,
    }
}
