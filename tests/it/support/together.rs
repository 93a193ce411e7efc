//! Starting many things at the same instant.

use std::process::Command;
use std::sync::{Barrier, Mutex, MutexGuard, PoisonError};

use super::{Ran, TestEnv};

/// Waits until no other test that keeps the whole machine busy is running, and is the only one until it is dropped.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static BUSY: Mutex<()> = Mutex::new(());
    BUSY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs every job in a thread of its own, all let go at once, and returns what they gave in their order.
pub fn together<T: Send>(jobs: Vec<impl FnOnce() -> T + Send>) -> Vec<T> {
    let start = Barrier::new(jobs.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = jobs
            .into_iter()
            .map(|job| {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    job()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no job panics")).collect()
    })
}

/// Runs every command, all let go at once, and returns how they ended in their order.
pub fn race(env: &TestEnv, commands: Vec<Command>) -> Vec<Ran> {
    together(commands.into_iter().map(|mut command| move || env.finish(&mut command)).collect())
}
