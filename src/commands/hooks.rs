//! `hooks install | uninstall | status | print` (design.md section 6).

use serde::Serialize;

use super::hook::local;
use crate::cli::context::{Context, Place};
use crate::error::CommandError;
use crate::git::GitError;
use crate::hooks::body::HookName;
use crate::hooks::chain::chained;
use crate::hooks::install::{self, HooksPath, InstallError, Installed, Present, Uninstalled};
use crate::hooks::probe;
use crate::output::json;
use crate::report::CONTRACT_VERSION;

/// Manages the pre-commit and pre-push hooks that enforce claims.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agent-coord hooks install\n  agent-coord hooks status --json\n  \
                        agent-coord hooks print pre-commit")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Put the hooks in place, for all worktrees of this clone; hooks that were there run after them
    Install,
    /// Take the hooks away and put back the ones that were there before
    Uninstall,
    /// Run the installed hooks in a throw-away worktree and tell whether they work
    Status {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a hook's lines for husky, lefthook or pre-commit
    Print {
        /// The hook: pre-commit or pre-push
        name: String,
    },
}

/// Runs one action.
///
/// # Errors
/// When hooks cannot be installed here, or a file cannot be changed.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    match &args.action {
        Action::Install => install(context),
        Action::Uninstall => uninstall(context),
        Action::Status { json } => status(context, *json),
        Action::Print { name } => print(context, name),
    }
}

impl From<InstallError> for CommandError {
    fn from(error: InstallError) -> Self {
        match error {
            InstallError::Git(error) => error.into(),
            InstallError::Io { .. } => Self::operational(error.to_string()),
            _ => Self::usage(error.to_string()),
        }
    }
}

fn install(context: &mut Context<'_>) -> Result<u8, CommandError> {
    let place = local(context)?;
    let directory = install::own_directory(&place.repository, &place.deadline)?;
    // Both or none: the second must not fail on what could be seen before the first.
    for hook in HookName::ALL {
        install::check(&directory, hook)?;
    }
    for hook in HookName::ALL {
        let local = chained(&directory, hook);
        let said = match install::install(&directory, hook)? {
            Installed::Placed if local.exists() => format!("installed {hook}; {} runs after it", local.display()),
            Installed::Placed => format!("installed {hook}"),
            Installed::PlacedBefore => {
                format!("installed {hook}; the hook that was there is {} now and runs after it", local.display())
            }
            Installed::Renewed => format!("installed {hook} anew"),
            Installed::Unchanged => format!("{hook} is installed already"),
        };
        context.printer.line(&said);
    }
    for row in examine(context, &place)?.hooks {
        if let Some(problem) = row.problem {
            context.printer.warning(&format!("{} does not run: {problem}", row.hook));
        }
    }
    Ok(0)
}

fn uninstall(context: &mut Context<'_>) -> Result<u8, CommandError> {
    let place = local(context)?;
    let directory = install::directory(&place.repository);
    for hook in HookName::ALL {
        let file = directory.join(hook.as_str());
        match install::uninstall(&directory, hook)? {
            Uninstalled::Removed => context.printer.line(&format!("uninstalled {hook}")),
            Uninstalled::Restored => {
                context.printer.line(&format!("uninstalled {hook}; the hook that was there before is back"))
            }
            Uninstalled::Nothing => context.printer.line(&format!("{hook} is not installed")),
            Uninstalled::NotOurs => {
                context.printer.warning(&format!("{} is not agent-coord's, so it stays", file.display()))
            }
        };
    }
    Ok(0)
}

/// What `hooks status` has to say.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    directory: String,
    hooks_path: Option<HooksPathReport>,
    hooks: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct HooksPathReport {
    value: String,
    origin: String,
}

#[derive(Debug, Serialize)]
struct Row {
    hook: &'static str,
    /// What is in the place of the hook in the common git dir: `current`, `earlier`, `other` or `none`.
    installed: &'static str,
    chained: bool,
    runs: bool,
    problem: Option<String>,
}

fn status(context: &mut Context<'_>, as_json: bool) -> Result<u8, CommandError> {
    let place = local(context)?;
    let report = examine(context, &place)?;
    let all_run = report.hooks.iter().all(|row| row.runs);
    if as_json {
        json::print(&mut context.printer, &report);
        return Ok(u8::from(!all_run));
    }
    for row in &report.hooks {
        let after = if row.chained { format!("; {}.local runs after it", row.hook) } else { String::new() };
        context.printer.line(&match &row.problem {
            None => format!("{}: runs{after}", row.hook),
            Some(problem) => format!("{}: does not run: {problem}{after}", row.hook),
        });
    }
    if let Some(path) = &report.hooks_path {
        context.printer.line(&format!("core.hooksPath is {} ({})", path.value, path.origin));
    }
    Ok(u8::from(!all_run))
}

fn examine(context: &Context<'_>, place: &Place<'_>) -> Result<Report, CommandError> {
    let elsewhere = install::foreign_hooks_path(&place.repository, &place.deadline)?;
    let directory = install::directory(&place.repository);
    let hooks = rows(context, place, elsewhere.as_ref())?;
    Ok(Report {
        version: CONTRACT_VERSION,
        directory: directory.display().to_string(),
        hooks_path: elsewhere.map(|HooksPath { value, origin }| HooksPathReport { value, origin }),
        hooks,
    })
}

fn rows(context: &Context<'_>, place: &Place<'_>, elsewhere: Option<&HooksPath>) -> Result<Vec<Row>, GitError> {
    let directory = install::directory(&place.repository);
    let present: Vec<(HookName, Present)> =
        HookName::ALL.into_iter().map(|hook| (hook, install::present(&directory, hook))).collect();
    // A hook that is not ours is run only where its owner may have put our line in it.
    let worth_a_run = |present: Present| elsewhere.is_some() || matches!(present, Present::Current | Present::Earlier);
    let to_run: Vec<HookName> =
        present.iter().filter(|(_, present)| worth_a_run(*present)).map(|(hook, _)| *hook).collect();
    let probed = if to_run.is_empty() {
        Vec::new()
    } else {
        probe::probe(&place.repository, &to_run, elsewhere, &context.ids.hex(8), &place.deadline)?
    };
    let row = |(hook, present): (HookName, Present)| {
        let problem = match probed.iter().find(|probed| probed.hook == hook) {
            Some(probed) => probed.problem.clone(),
            None if present == Present::Nothing => Some("it is not installed".to_owned()),
            None => Some("the hook there is not agent-coord's".to_owned()),
        };
        Row {
            hook: hook.as_str(),
            installed: word(present),
            chained: elsewhere.is_none() && chained(&directory, hook).exists(),
            runs: problem.is_none(),
            problem,
        }
    };
    Ok(present.into_iter().map(row).collect())
}

fn word(present: Present) -> &'static str {
    match present {
        Present::Current => "current",
        Present::Earlier => "earlier",
        Present::Other => "other",
        Present::Nothing => "none",
    }
}

fn print(context: &mut Context<'_>, name: &str) -> Result<u8, CommandError> {
    let hook = HookName::parse(name).ok_or_else(|| {
        CommandError::usage(format!("unknown hook: {name}")).with_hint("agent-coord has pre-commit and pre-push")
    })?;
    context.printer.data(&hook.for_managers());
    Ok(0)
}
