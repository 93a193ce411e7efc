//! Killing a process at a chosen moment: alone, or with everything it started.

use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

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

/// Starts `command`, kills it after `delay`, and returns what it had said; code 137 when it was still running.
pub fn killed_after(env: &TestEnv, mut command: Command, delay: Duration, victim: Victim) -> Ran {
    let child = command.spawn().expect("the command starts");
    std::thread::sleep(delay);
    let below = if victim == Victim::WholeTree { descendants(child.id()) } else { BTreeSet::new() };
    kill(child.id());
    let mut doomed = below;
    while !doomed.is_empty() {
        // What was born since the list was made has a parent on it.
        let born: BTreeSet<u32> = doomed.iter().flat_map(|id| descendants(*id)).collect();
        doomed.iter().for_each(|id| kill(*id));
        doomed = born.difference(&doomed).copied().collect();
    }
    // Whoever inherited the pipes keeps them open; when the client died alone that is its git, which ends by itself.
    Ran::of(&child.wait_with_output().expect("the command ends"), &env.root().to_string_lossy())
}

fn kill(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _ = kill_process(pid, Signal::KILL);
    }
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
    ids.filter_map(|id| {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        // The name in parentheses may hold anything, so count from the last one.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()?;
        Some((id, parent))
    })
    .collect()
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
