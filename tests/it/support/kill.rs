//! Killing a process at a chosen moment: alone, or with everything it started.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Ran, TestEnv};

/// How much dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The client; the git it started lives on in its own process group.
    Client,
    /// The client and everything below it, the git on the other end of a `file://` remote included.
    WholeTree,
}

/// A command that was killed, or that had ended before its time came.
pub struct Killed {
    /// What it had said; code 137 when it was still running.
    pub ran: Ran,
    /// What it had started and what was not killed with it.
    orphans: BTreeSet<u32>,
}

impl Killed {
    /// Waits until nothing that the command had started is at work any more.
    pub fn settle(&self) {
        let patience = Instant::now() + Duration::from_secs(30);
        while self.orphans.iter().any(|id| is_alive(*id)) {
            assert!(Instant::now() < patience, "what a client starts ends within half a minute of its death");
            std::thread::sleep(Duration::from_millis(3));
        }
    }
}

/// Starts `command` and kills it after `delay`.
pub fn killed_after(env: &TestEnv, mut command: Command, delay: Duration, victim: Victim) -> Killed {
    let child = command.spawn().expect("the command starts");
    std::thread::sleep(delay);
    // A process that stands still starts nothing that the list would miss.
    signal(child.id(), Signal::STOP);
    let mut below = descendants(child.id());
    if victim == Victim::WholeTree {
        while below.iter().any(|id| is_alive(*id)) {
            below.iter().for_each(|id| signal(*id, Signal::STOP));
            let born = descendants(child.id());
            if born.is_subset(&below) {
                below.iter().for_each(|id| signal(*id, Signal::KILL));
                break;
            }
            below.extend(born);
        }
    }
    signal(child.id(), Signal::KILL);
    let output = child.wait_with_output().expect("the command ends");
    Killed { ran: Ran::of(&output, &env.root().to_string_lossy()), orphans: below }
}

fn signal(id: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process(pid, signal);
    }
}

/// A zombie that nobody waits for does nothing any more.
fn is_alive(id: u32) -> bool {
    state_and_parent(id).is_some_and(|(state, _)| state != "Z" && state != "X")
}

/// Returns the ids of all processes below `ancestor`.
fn descendants(ancestor: u32) -> BTreeSet<u32> {
    let parents = parents();
    let mut found = BTreeSet::new();
    let mut queue = vec![ancestor];
    while let Some(parent) = queue.pop() {
        for (id, _) in parents.iter().filter(|(_, of)| *of == parent) {
            if found.insert(*id) {
                queue.push(*id);
            }
        }
    }
    found
}

/// Returns every process of this machine with its parent.
fn parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    ids.filter_map(|id| Some((id, state_and_parent(id)?.1))).collect()
}

fn state_and_parent(id: u32) -> Option<(String, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything, so count from the last one.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.to_owned(), fields.next()?.parse().ok()?))
}

/// Returns every `*.lock` below the refs and beside the packed refs of a git directory.
pub fn locks_in(git_dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![git_dir.join("refs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "lock") {
                found.push(path);
            }
        }
    }
    let packed = git_dir.join("packed-refs.lock");
    found.extend(packed.exists().then_some(packed));
    found
}
