//! How long things take.

use std::time::{Duration, Instant};

/// Returns what `job` gave, which must take no longer than `limit`.
#[track_caller]
pub fn within<T>(limit: Duration, job: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let given = job();
    let took = started.elapsed();
    assert!(took <= limit, "took {took:?}, which is longer than {limit:?}");
    given
}
