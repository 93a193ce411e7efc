//! Whether an agent counts as at work, from its heartbeat row alone (state-schema.md section 3.1).

use std::fmt;

use chrono::TimeDelta;

use super::record::{Members, text};
use super::time::Timestamp;

/// How far ahead of us another machine's clock may be before we say so (design.md section 4, "Clocks"), in seconds.
pub const TOLERATED_SKEW: i64 = 120;

/// How many times its own TTL a heartbeat lasts before the agent counts as dead.
pub const DEAD_AFTER_TTLS: i32 = 4;

/// Heartbeat states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// Within the TTL, or from a clock that is ahead of ours.
    Live,
    /// Past the TTL, before the dead threshold. Blocks takeover.
    Stale,
    /// Past the dead threshold. Permits takeover.
    Dead,
    /// The row's timestamps cannot be read.
    Unknown,
}

impl fmt::Display for Liveness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Live => "live",
            Self::Stale => "stale",
            Self::Dead => "dead",
            Self::Unknown => "unknown",
        })
    }
}

/// Returns the liveness of a heartbeat row at `now`.
///
/// At the very instant of `expires_at` the row is stale, at the very instant of the dead threshold dead.
#[must_use]
pub fn of(row: &Members, now: Timestamp) -> Liveness {
    let Some((updated, ttl)) = term(row) else { return Liveness::Unknown };
    if skew(row, now).is_some() {
        return Liveness::Live;
    }
    if ttl <= TimeDelta::zero() {
        return Liveness::Dead;
    }
    let age = now.as_utc().signed_duration_since(updated.as_utc());
    if age < ttl {
        Liveness::Live
    } else if ttl.checked_mul(DEAD_AFTER_TTLS).is_none_or(|threshold| age < threshold) {
        Liveness::Stale
    } else {
        Liveness::Dead
    }
}

/// Returns the liveness of a row that this clone itself saw change `seconds_ago`, whatever the row's own timestamps
/// say of it: the row's TTL is counted from when we saw it.
#[must_use]
pub fn as_witnessed(row: &Members, seconds_ago: i64) -> Liveness {
    let Some((_, ttl)) = term(row) else { return Liveness::Unknown };
    let age = TimeDelta::try_seconds(seconds_ago.max(0)).unwrap_or(TimeDelta::MAX);
    if age < ttl {
        Liveness::Live
    } else if ttl > TimeDelta::zero() && ttl.checked_mul(DEAD_AFTER_TTLS).is_none_or(|threshold| age < threshold) {
        Liveness::Stale
    } else {
        Liveness::Dead
    }
}

/// Returns by how many seconds the row is ahead of `now`, when that is more than [`TOLERATED_SKEW`].
#[must_use]
pub fn skew(row: &Members, now: Timestamp) -> Option<i64> {
    let ahead = instant(row, "updated_at")?.seconds_since(now);
    (ahead > TOLERATED_SKEW).then_some(ahead)
}

/// Returns a member that is a readable timestamp.
#[must_use]
pub fn instant(record: &Members, name: &str) -> Option<Timestamp> {
    text(record, name).and_then(Timestamp::parse_iso)
}

/// Returns when a record was written and for how long.
#[must_use]
pub fn term(record: &Members) -> Option<(Timestamp, TimeDelta)> {
    let updated = instant(record, "updated_at")?;
    let expires = instant(record, "expires_at")?;
    Some((updated, expires.as_utc().signed_duration_since(updated.as_utc())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{at, object};
    use serde_json::json;

    fn row(ttl: i64) -> Members {
        let updated = at(0);
        object(json!({"updated_at": updated.to_string(), "expires_at": updated.plus_seconds(ttl).to_string()}))
    }

    #[test]
    fn each_boundary_belongs_to_the_later_state() {
        let row = row(900);
        assert_eq!(of(&row, at(0)), Liveness::Live);
        assert_eq!(of(&row, at(899)), Liveness::Live);
        assert_eq!(of(&row, at(900)), Liveness::Stale);
        assert_eq!(of(&row, at(3599)), Liveness::Stale);
        assert_eq!(of(&row, at(3600)), Liveness::Dead);
    }

    #[test]
    fn a_row_without_a_positive_ttl_is_dead_from_the_start() {
        assert_eq!(of(&row(0), at(0)), Liveness::Dead);
        assert_eq!(of(&row(-5), at(0)), Liveness::Dead);
    }

    #[test]
    fn unreadable_timestamps_are_unknown_and_never_dead() {
        assert_eq!(
            of(&object(json!({"updated_at": "x", "expires_at": "2026-01-01T00:00:00Z"})), at(0)),
            Liveness::Unknown
        );
        assert_eq!(of(&object(json!({"updated_at": 7})), at(0)), Liveness::Unknown);
    }

    #[test]
    fn a_row_from_beyond_two_minutes_ahead_is_clock_skew_and_live() {
        assert_eq!(skew(&row(0), at(-120)), None);
        assert_eq!(skew(&row(0), at(-121)), Some(121));
        assert_eq!(of(&row(0), at(-121)), Liveness::Live, "a clock ahead of ours never makes its agent dead");
    }

    #[test]
    fn what_this_clone_saw_change_is_judged_from_that_moment() {
        assert_eq!(as_witnessed(&row(900), 899), Liveness::Live);
        assert_eq!(as_witnessed(&row(900), 3599), Liveness::Stale);
        assert_eq!(as_witnessed(&row(900), 3600), Liveness::Dead);
        assert_eq!(as_witnessed(&row(0), 0), Liveness::Dead);
    }
}
