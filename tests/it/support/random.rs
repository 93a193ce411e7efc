//! Random choices that can be made again from the seed printed with a failure.

use std::time::Duration;

/// A small generator (SplitMix64); quality enough for choosing moments.
pub struct Dice {
    seed: u64,
    state: u64,
}

impl Dice {
    /// Returns dice seeded from `AGENT_COORD_TEST_SEED`, or from the time.
    pub fn new() -> Self {
        let given = std::env::var("AGENT_COORD_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let nanos =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |since| since.subsec_nanos());
        Self::seeded(given.unwrap_or(u64::from(nanos)))
    }

    /// Returns dice that always fall the same way.
    pub fn seeded(seed: u64) -> Self {
        Self { seed, state: seed }
    }

    /// Returns how to get the same throws again, for messages.
    pub fn recipe(&self) -> String {
        format!("run again with AGENT_COORD_TEST_SEED={}", self.seed)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }

    /// Returns a duration below `bound`, in steps of a microsecond.
    pub fn duration_below(&mut self, bound: Duration) -> Duration {
        Duration::from_micros(self.below(u64::try_from(bound.as_micros()).unwrap_or(u64::MAX)))
    }
}
