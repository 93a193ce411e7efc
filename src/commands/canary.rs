//! `canary` (design.md section 4, "Canary").

use super::hook::local;
use crate::cli::context::Context;
use crate::domain::canary::Canary;
use crate::error::CommandError;
use crate::hooks::facts;
use crate::worktree::canary;

/// Remembers the commit a branch stands at now.
///
/// As long as that commit is an ancestor of HEAD, nobody has rewritten the branch under you. The pre-commit hook refuses
/// once it is not.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agent-coord canary\n  agent-coord canary --clear")]
pub struct Args {
    /// Forget it
    #[arg(long)]
    clear: bool,
}

/// Sets or clears the canary of this worktree.
///
/// # Errors
/// When no branch with a commit is checked out, or the file cannot be changed.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let place = local(context)?;
    let keep = |error| CommandError::private_file("the canary", &error);
    if args.clear {
        let was_set = canary::clear(&place.repository).map_err(keep)?;
        context.printer.line(if was_set { "canary cleared" } else { "no canary was set" });
        return Ok(0);
    }
    let head = facts::here(&place.repository, &place.deadline)?;
    let branch =
        head.branch.ok_or_else(|| CommandError::usage("no branch is checked out, so there is nothing to watch"))?;
    let commit =
        head.commit.ok_or_else(|| CommandError::usage(format!("branch {branch} has no commit yet to remember")))?;
    let set = Canary { commit, branch };
    canary::set(&place.repository, &set).map_err(keep)?;
    context.printer.line(&format!("canary set on {} at {}", set.branch, set.commit));
    Ok(0)
}
