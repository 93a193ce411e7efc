//! Instants as records spell them (state-schema.md section 1.2).

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, FixedOffset, Local, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone, Utc};

/// An instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(DateTime<Utc>);

impl Timestamp {
    /// Reads the spelling that liveness, retention and log ordering accept ("ISO reader").
    ///
    /// `YYYY-MM-DDThh:mm:ss[.fraction][zone]`, `T` and `Z` in either case, surrounding whitespace tolerated; zone `Z`,
    /// `+hh:mm`, `+hhmm` or `+hh`, and the machine's own zone where it is missing. Second 60 is the next minute,
    /// `24:00:00` the next day. `None` for everything else, dates and minutes alone included.
    #[must_use]
    pub fn parse_iso(text: &str) -> Option<Self> {
        let (naive, zone) = split(text.trim(), true)?;
        let instant = match zone {
            "" => Local.from_local_datetime(&naive).earliest()?.to_utc(),
            zone => in_zone(naive, offset_of(zone, true)?)?,
        };
        Some(Self(instant))
    }

    /// Reads the strict spelling ("RFC3339 reader"): a zone is required and is `Z` or `+hh:mm`, hours end at 23.
    #[must_use]
    pub fn parse_strict(text: &str) -> Option<Self> {
        let (naive, zone) = split(text, false)?;
        in_zone(naive, offset_of(zone, false)?).map(Self)
    }

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

    /// Returns how long after `earlier` this is, in whole seconds, rounded towards zero; negative when it is before.
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

/// Returns the date and time of day that `text` starts with, and the zone it ends with.
fn split(text: &str, midnight_may_be_24: bool) -> Option<(NaiveDateTime, &str)> {
    let clock = text.get(..19)?.as_bytes();
    let separated = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|&(index, byte)| clock[index] == byte);
    if !separated || !clock[10].eq_ignore_ascii_case(&b'T') {
        return None;
    }
    let date =
        NaiveDate::from_ymd_opt(i32::try_from(number(&text[..4])?).ok()?, number(&text[5..7])?, number(&text[8..10])?)?;
    let (hour, minute, second) = (number(&text[11..13])?, number(&text[14..16])?, number(&text[17..19])?);
    let (nanos, zone) = fraction(&text[19..])?;
    let hour_fits = hour < 24 || (midnight_may_be_24 && (hour, minute, second, nanos) == (24, 0, 0, 0));
    if !hour_fits || minute > 59 || second > 60 {
        return None;
    }
    let seconds = i64::from(hour) * 3600 + i64::from(minute) * 60 + i64::from(second);
    let since_midnight = TimeDelta::seconds(seconds) + TimeDelta::nanoseconds(nanos);
    Some((date.and_time(chrono::NaiveTime::MIN).checked_add_signed(since_midnight)?, zone))
}

/// Returns the nanoseconds of a leading `.digits`, which may be missing, and what follows. Finer digits are dropped.
fn fraction(text: &str) -> Option<(i64, &str)> {
    let Some(rest) = text.strip_prefix('.') else { return Some((0, text)) };
    let end = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, zone) = rest.split_at(end);
    let shown = &digits[..digits.len().min(9)];
    let scale = 10_i64.pow(9 - u32::try_from(shown.len()).ok()?);
    (!digits.is_empty()).then_some((i64::from(number(shown)?) * scale, zone))
}

fn offset_of(zone: &str, short_forms: bool) -> Option<FixedOffset> {
    if zone.eq_ignore_ascii_case("z") {
        return FixedOffset::east_opt(0);
    }
    let sign = match zone.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, minutes) = match (zone[1..].split_once(':'), zone.len() - 1) {
        (Some((hours, minutes)), 5) if hours.len() == 2 => (hours, minutes),
        (None, 4) if short_forms => zone[1..].split_at_checked(2)?,
        (None, 2) if short_forms => (&zone[1..], "00"),
        _ => return None,
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    (hours < 24 && minutes < 60).then_some(())?;
    FixedOffset::east_opt(sign * seconds)
}

fn in_zone(naive: NaiveDateTime, offset: FixedOffset) -> Option<DateTime<Utc>> {
    offset.from_local_datetime(&naive).single().map(|instant| instant.to_utc())
}

/// Returns a number of ASCII digits only: `parse` alone would take a sign.
fn number(text: &str) -> Option<u32> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iso(text: &str) -> Option<String> {
        Timestamp::parse_iso(text).map(|instant| instant.to_string())
    }

    fn strict(text: &str) -> Option<String> {
        Timestamp::parse_strict(text).map(|instant| instant.to_string())
    }

    #[test]
    fn what_we_write_both_readers_read_back() {
        let text = "2026-12-01T01:27:16Z";
        assert_eq!(iso(text).as_deref(), Some(text));
        assert_eq!(strict(text).as_deref(), Some(text));
    }

    #[test]
    fn the_iso_reader_is_tolerant_of_case_space_fraction_and_zone() {
        for same in [
            "  2026-12-01t01:27:16z\n",
            "2026-12-01T01:27:16.987654321123Z",
            "2026-12-01T03:27:16+02:00",
            "2026-12-01T03:27:16+0200",
            "2026-12-01T03:27:16+02",
            "2026-11-30T20:57:16-04:30",
        ] {
            assert_eq!(iso(same).as_deref(), Some("2026-12-01T01:27:16Z"), "{same}");
        }
    }

    #[test]
    fn the_iso_reader_rolls_over_second_60_and_hour_24() {
        assert_eq!(iso("2026-12-31T23:59:60Z").as_deref(), Some("2027-01-01T00:00:00Z"));
        assert_eq!(iso("2026-12-31T24:00:00Z").as_deref(), Some("2027-01-01T00:00:00Z"));
        assert_eq!(iso("2026-12-31T24:00:01Z"), None);
    }

    #[test]
    fn the_iso_reader_rejects_what_is_not_a_full_time() {
        for bad in [
            "",
            "2026-12-01",
            "2026-12-01T01:27Z",
            "2026-12-01 01:27:16Z",
            "2026-02-30T01:27:16Z",
            "2026-12-01T25:00:00Z",
            "2026-12-01T01:60:00Z",
            "2026-12-01T01:27:61Z",
            "2026-12-01T01:27:16.Z",
            "2026-12-01T01:27:16+2",
            "2026-12-01T01:27:16+24:00",
            "2026-12-01T01:27:16+00:60",
            "2026-12-01T+1:27:16Z",
            "2026-12-01T01:27:16é",
            "2026-12-01T01:27:1é",
            "2026-12-01T01:27:16+éé",
            "99999-12-01T01:27:16Z",
        ] {
            assert_eq!(iso(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_missing_zone_is_the_machines_own() {
        let here = Local.with_ymd_and_hms(2026, 6, 1, 12, 0, 0).unwrap().to_utc();
        assert_eq!(Timestamp::parse_iso("2026-06-01T12:00:00"), Some(Timestamp::from(here)));
        assert_eq!(Timestamp::parse_strict("2026-06-01T12:00:00"), None);
    }

    #[test]
    fn the_strict_reader_takes_no_short_zone_no_space_and_no_hour_24() {
        assert_eq!(strict("2026-12-01t03:27:16.5+02:00").as_deref(), Some("2026-12-01T01:27:16Z"));
        assert_eq!(strict("2026-12-31T23:59:60Z").as_deref(), Some("2027-01-01T00:00:00Z"));
        for bad in [
            " 2026-12-01T01:27:16Z",
            "2026-12-01T01:27:16+0200",
            "2026-12-01T01:27:16+02",
            "2026-12-31T24:00:00Z",
            "2026-12-01T01:27:16-24:00",
            "2026-02-29T00:00:00Z",
        ] {
            assert_eq!(strict(bad), None, "{bad}");
        }
    }

    #[test]
    fn fractions_order_instants_within_a_second() {
        assert!(Timestamp::parse_iso("2026-12-01T01:27:16.1Z") < Timestamp::parse_iso("2026-12-01T01:27:16.25Z"));
    }
}
