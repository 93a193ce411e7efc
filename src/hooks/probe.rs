//! Running the installed hooks to see that they run, in a worktree made for it and thrown away after.
//!
//! A file in the right place proves little: it may lack its permission, its interpreter, or the program on the PATH that
//! git passes on; a relative `core.hooksPath` may lead nowhere in a new worktree. So git itself runs the hook, which
//! answers a probe before it does anything else.

use std::path::Path;

use super::body::HookName;
use super::install::{HooksPath, directory};
use crate::git::{Call, GitError, Repository};
use crate::world::{Deadline, Environment};

/// The variable that carries the probe's word.
pub const VARIABLE: &str = "AGENT_COORD_HOOK_PROBE";

/// How one hook did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// The hook.
    pub hook: HookName,
    /// What got in the way; `None` = it ran and reached agent-coord.
    pub problem: Option<String>,
}

/// Returns what a hook that is being probed has to print, if it is being probed.
#[must_use]
pub fn answer(hook: HookName, environment: &Environment) -> Option<String> {
    let word = environment.text(VARIABLE)?;
    Some(reply(hook, &word))
}

fn reply(hook: HookName, word: &str) -> String {
    format!("agent-coord hook {hook} answers {word}")
}

/// Runs `hooks` in a throw-away worktree. `word` is random, so that no other output can pass for the answer.
///
/// # Errors
/// When the worktree cannot be made.
pub fn probe(
    repository: &Repository,
    hooks: &[HookName],
    elsewhere: Option<&HooksPath>,
    word: &str,
    deadline: &Deadline<'_>,
) -> Result<Vec<Probed>, GitError> {
    let place = tempfile::Builder::new()
        .prefix("agent-coord-probe-")
        .tempdir()
        .map_err(|error| GitError::Unusable(format!("no temporary directory: {error}")))?;
    let worktree = place.path().join(format!("probe-{word}"));
    // Files are needed only where a relative path has to find its hooks among them.
    let checkout = if elsewhere.is_some() { "--checkout" } else { "--no-checkout" };
    let commit = commit_to_check_out(repository, deadline)?;
    let add = Call::new("worktree").args(["add", "--quiet", "--detach", checkout, "--end-of-options"]);
    repository.run(add.arg(&worktree).arg(commit), deadline)?.checked("worktree add")?;
    let path =
        elsewhere.map_or_else(|| directory(repository).display().to_string(), |elsewhere| elsewhere.value.clone());
    let probed = hooks.iter().map(|hook| run(repository, *hook, &worktree, &path, word, deadline)).collect();
    // Best effort: what stays behind is an entry that `git worktree prune` and `git gc` drop by themselves.
    let remove = Call::new("worktree").args(["remove", "--force", "--end-of-options"]);
    let _ = repository.run(remove.arg(&worktree), deadline);
    probed
}

fn run(
    repository: &Repository,
    hook: HookName,
    worktree: &Path,
    hooks_path: &str,
    word: &str,
    deadline: &Deadline<'_>,
) -> Result<Probed, GitError> {
    let call = Call::new("hook")
        .in_directory(worktree)
        .config("core.hooksPath", hooks_path)
        .variable(VARIABLE, word)
        .args(["run", hook.as_str(), "--", "agent-coord-probe", "agent-coord-probe"]);
    let finished = repository.git().run(&call, deadline)?;
    let expected = reply(hook, word);
    // Git sends a hook's stdout to its own stderr.
    let answered = finished.stderr.lines().chain(finished.text().lines()).any(|line| line.trim() == expected);
    let problem = match (answered, finished.succeeded()) {
        (true, true) => None,
        (true, false) => Some(format!("it reaches agent-coord, but then fails: {}", finished.last_words())),
        (false, true) => Some("it runs, but not agent-coord".to_owned()),
        (false, false) => Some(finished.last_words()),
    };
    Ok(Probed { hook, problem })
}

/// Returns HEAD's commit, or on an unborn branch an empty one that nothing refers to.
fn commit_to_check_out(repository: &Repository, deadline: &Deadline<'_>) -> Result<String, GitError> {
    if let Some(commit) = repository.head(deadline)?.commit {
        return Ok(commit);
    }
    let said = |call: Call<'_>, name| -> Result<String, GitError> {
        let bytes = repository.run(call, deadline)?.checked(name)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    let tree = said(Call::new("hash-object").args(["-t", "tree", "-w", "--stdin"]).input(""), "hash-object")?;
    let mut commit = Call::new("commit-tree").args([tree.as_str(), "-m", "agent-coord probe"]);
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        commit = commit.variable(name, "agent-coord");
    }
    said(commit, "commit-tree")
}
