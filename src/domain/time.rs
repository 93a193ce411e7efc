//! Instants as records spell them (state-schema.md section 1.2).

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Returns the instant `seconds` later; the last representable one when that is out of range.
    #[must_use]
    pub fn plus_seconds(self, seconds: i64) -> Self {
        let moved = TimeDelta::try_seconds(seconds).and_then(|delta| self.0.checked_add_signed(delta));
        Self(moved.unwrap_or(if seconds < 0 { DateTime::<Utc>::MIN_UTC } else { DateTime::<Utc>::MAX_UTC }))
    }

    /// Returns the instant `duration` later.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        let moved = TimeDelta::from_std(duration).ok().and_then(|delta| self.0.checked_add_signed(delta));
        Self(moved.unwrap_or(DateTime::<Utc>::MAX_UTC))
    }

    /// Returns how long after `earlier` this is, in whole seconds, rounded down; negative when it is before.
    #[must_use]
    pub fn seconds_since(self, earlier: Self) -> i64 {
        self.0.signed_duration_since(earlier.0).num_seconds()
    }

    /// Returns the underlying instant.
    #[must_use]
    pub fn as_utc(self) -> DateTime<Utc> {
        self.0
    }
}

impl From<DateTime<Utc>> for Timestamp {
    fn from(instant: DateTime<Utc>) -> Self {
        Self(instant)
    }
}

/// Whole seconds, UTC: `2026-12-01T01:27:16Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_rfc3339_opts(SecondsFormat::Secs, true))
    }
}
