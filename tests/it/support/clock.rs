//! A wall clock that tests set, over real time.
//!
//! A command that runs inside this process may have to wait for others: a descriptor that its git inherits can also end
//! up in a process that another test starts at that very moment. A clock that jumps over its pauses would see the deadline
//! pass at once.

use std::time::Duration;

use agent_coord::domain::time::Timestamp;
use agent_coord::world::{BootTime, Clock, SystemClock};

/// Tells an instant of the test's choosing; waits for real.
pub struct WallClock {
    wall: Wall,
    real: SystemClock,
}

enum Wall {
    StandsAt(Timestamp),
    LateBy(i64),
}

impl WallClock {
    /// Returns a clock whose wall stands at `now`.
    pub fn standing_at(now: Timestamp) -> Self {
        Self { wall: Wall::StandsAt(now), real: SystemClock::start() }
    }

    /// Returns a clock that runs `seconds` late.
    pub fn late_by(seconds: i64) -> Self {
        Self { wall: Wall::LateBy(seconds), real: SystemClock::start() }
    }
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        match self.wall {
            Wall::StandsAt(now) => now,
            Wall::LateBy(seconds) => self.real.now().plus_seconds(-seconds),
        }
    }

    fn elapsed(&self) -> Duration {
        self.real.elapsed()
    }

    fn boot(&self) -> Option<BootTime> {
        self.real.boot()
    }

    fn pause(&self, duration: Duration) {
        self.real.pause(duration);
    }
}
