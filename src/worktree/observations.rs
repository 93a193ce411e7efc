//! Changes of rows that this clone has witnessed itself (design.md section 4, "Clocks").
//!
//! A holder whose own clock is wrong looks dead by its timestamps. If this clone has seen its row change a minute ago,
//! it is not. The boot clock measures the minute, so that setting the wall clock changes nothing. Losing the file costs
//! that knowledge only; timestamps then decide alone.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::files;
use crate::domain::request::SeenChange;
use crate::git::Repository;
use crate::world::{BootTime, Clock};

/// Rows nobody has looked at for this long are forgotten, in seconds.
const KEPT_FOR: u64 = 7 * 24 * 60 * 60;
/// The most rows that are remembered; beyond it the ones looked at longest ago are forgotten.
const ROW_LIMIT: usize = 4096;

/// What was seen during one boot.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Seen {
    boot_id: String,
    rows: BTreeMap<String, Row>,
}

/// One row. Instants are seconds on the boot clock.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    /// The value last seen.
    updated_at: String,
    /// When the value was first seen in the place of another; absent for the first value ever seen, whose age is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    changed: Option<u64>,
    /// When the row was last looked at.
    looked: u64,
}

fn file(repository: &Repository) -> PathBuf {
    repository.shared_dir().join("observations.json")
}

/// Returns how long ago rows were seen to change; rows seen with one value only are absent.
#[must_use]
pub fn seen_changing(repository: &Repository, clock: &dyn Clock) -> Vec<SeenChange> {
    let Some(boot) = clock.boot() else { return Vec::new() };
    let now = boot.since_boot.as_secs();
    let change = |(path, row): (String, Row)| {
        // An instant ahead of the clock was not measured by it (a time namespace): it proves nothing.
        let seconds = now.checked_sub(row.changed?)?;
        Some(SeenChange { path, updated_at: row.updated_at, seconds_ago: i64::try_from(seconds).ok()? })
    };
    load(repository, &boot).rows.into_iter().filter_map(change).collect()
}

/// Records rows as just fetched: `(record path, updated_at)`.
///
/// Only state that was fetched for this command may be given: an old cached value would look like a change.
///
/// # Errors
/// When the file cannot be written.
pub fn record(repository: &Repository, rows: &[(String, String)], clock: &dyn Clock) -> io::Result<()> {
    let Some(boot) = clock.boot().filter(|_| !rows.is_empty()) else { return Ok(()) };
    let file = file(repository);
    files::in_turn(&file, || {
        let mut seen = load(repository, &boot);
        let now = boot.since_boot.as_secs();
        for (path, updated_at) in rows {
            seen.look(path, updated_at, now);
        }
        seen.prune(now);
        files::write(&file, &format!("{}\n", serde_json::to_string(&seen)?))
    })
}

/// Returns what was seen in this boot; another boot's instants do not compare, so they are forgotten.
fn load(repository: &Repository, boot: &BootTime) -> Seen {
    let kept = files::read(&file(repository)).and_then(|text| serde_json::from_str::<Seen>(&text).ok());
    kept.filter(|seen| seen.boot_id == boot.boot_id)
        .unwrap_or_else(|| Seen { boot_id: boot.boot_id.clone(), rows: BTreeMap::new() })
}

impl Seen {
    fn look(&mut self, path: &str, updated_at: &str, now: u64) {
        match self.rows.get_mut(path) {
            None => {
                let row = Row { updated_at: updated_at.to_owned(), changed: None, looked: now };
                self.rows.insert(path.to_owned(), row);
            }
            Some(row) => {
                row.looked = now;
                if row.updated_at != updated_at {
                    updated_at.clone_into(&mut row.updated_at);
                    row.changed = Some(now);
                }
            }
        }
    }

    fn prune(&mut self, now: u64) {
        self.rows.retain(|_, row| now.saturating_sub(row.looked) <= KEPT_FOR);
        let surplus = self.rows.len().saturating_sub(ROW_LIMIT);
        if surplus > 0 {
            let mut by_age: Vec<(u64, String)> =
                self.rows.iter().map(|(path, row)| (row.looked, path.clone())).collect();
            by_age.sort_unstable();
            for (_, path) in &by_age[..surplus] {
                self.rows.remove(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::Timestamp;
    use crate::worktree::test_repository;
    use crate::world::SteppedClock;
    use std::time::Duration;

    const ROW: &str = "heartbeats/b.json";

    fn clock() -> SteppedClock {
        SteppedClock::at(Timestamp::from(chrono::DateTime::UNIX_EPOCH))
    }

    fn look(repository: &Repository, updated_at: &str, clock: &dyn Clock) {
        record(repository, &[(ROW.to_owned(), updated_at.to_owned())], clock).unwrap();
    }

    /// A clock of another boot.
    struct Rebooted;
    impl Clock for Rebooted {
        fn now(&self) -> Timestamp {
            Timestamp::from(chrono::DateTime::UNIX_EPOCH)
        }
        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
        fn boot(&self) -> Option<BootTime> {
            Some(BootTime { boot_id: "another".to_owned(), since_boot: Duration::from_secs(1000) })
        }
        fn pause(&self, _: Duration) {}
    }

    #[test]
    fn the_first_value_ever_seen_proves_nothing() {
        let (_directory, repository) = test_repository();
        look(&repository, "one", &clock());
        look(&repository, "one", &clock());
        assert_eq!(seen_changing(&repository, &clock()), []);
    }

    #[test]
    fn a_change_is_dated_by_the_look_that_first_saw_it() {
        let (_directory, repository) = test_repository();
        let clock = clock();
        look(&repository, "one", &clock);
        clock.advance(Duration::from_secs(60));
        look(&repository, "two", &clock);
        clock.advance(Duration::from_secs(30));
        look(&repository, "two", &clock);
        let change = SeenChange { path: ROW.to_owned(), updated_at: "two".to_owned(), seconds_ago: 30 };
        assert_eq!(seen_changing(&repository, &clock), [change]);
    }

    #[test]
    fn another_boot_forgets_everything() {
        let (_directory, repository) = test_repository();
        look(&repository, "one", &clock());
        look(&repository, "two", &clock());
        assert_eq!(seen_changing(&repository, &Rebooted), []);
        look(&repository, "three", &Rebooted);
        assert_eq!(seen_changing(&repository, &Rebooted), [], "the first value of this boot proves nothing either");
    }

    #[test]
    fn the_file_stays_bounded_and_a_broken_one_is_made_anew() {
        let (_directory, repository) = test_repository();
        let clock = clock();
        files::write(&file(&repository), "[[[").unwrap();
        look(&repository, "one", &clock);
        clock.advance(Duration::from_secs(KEPT_FOR + 1));
        let many: Vec<_> = (0..ROW_LIMIT).map(|row| (format!("heartbeats/{row}.json"), "x".to_owned())).collect();
        record(&repository, &many, &clock).unwrap();
        let seen = load(&repository, &clock.boot().unwrap());
        assert_eq!(seen.rows.len(), ROW_LIMIT, "the row nobody looked at for a week is gone");
        clock.advance(Duration::from_secs(1));
        look(&repository, "one", &clock);
        let seen = load(&repository, &clock.boot().unwrap());
        assert!(seen.rows.len() == ROW_LIMIT && seen.rows.contains_key(ROW), "the row just looked at is kept");
    }
}
