//! `release` (cli-contract.md section 3).

use super::StoreArgs;
use super::arguments::{MetadataArgs, WorkItemArgs};
use crate::app;
use crate::app::transact::NotTaken;
use crate::cli::acting::{self, Acting};
use crate::cli::context::{Context, Opened};
use crate::domain::decision::RefusalKind;
use crate::domain::ids::{RepoName, Target};
use crate::domain::request::Release;
use crate::error::CommandError;
use crate::report::Written;
use crate::worktree::held;

const TERMINAL: [&str; 3] = ["done", "abandoned", "superseded"];

/// Gives a claim back.
///
/// Without TARGET it gives back the one claim that this worktree holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord release 42
  agent-coord release 42 --handoff-to w2 --handoff-note 'tests are red'")]
pub struct Args {
    #[command(flatten)]
    item: WorkItemArgs,
    /// The branch the work happened on
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// The agent that is to go on
    #[arg(long, value_name = "ID")]
    handoff_to: Option<String>,
    /// What that agent should know
    #[arg(long, value_name = "TEXT")]
    handoff_note: Option<String>,
    /// The outcome of the lane
    #[arg(long, value_name = "OUTCOME", hide = true)]
    terminal: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// Gives a claim back.
///
/// # Errors
/// When the claim is not this agent's to give, or it is not known whether it was given back.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    refuse_closeout(args)?;
    let opened = context.open()?;
    let request = request(args, context, &opened)?;
    let result = app::release::release(&opened.app(), &request);
    let forgotten = match &result {
        Ok(_) => forget(&opened, &request),
        // Given back, and not ours any more: nothing is left to remember. A claim that a successor of this agent holds
        // stays remembered, or the next try would give back the successor's.
        Err(NotTaken::Refused(refusal)) if refusal.kind == RefusalKind::Invalid => forget(&opened, &request),
        Err(_) => None,
    };
    let released = result?;
    let warnings: Vec<String> = released.warnings.into_iter().chain(forgotten).collect();
    for warning in &warnings {
        context.printer.warning(warning);
    }
    let line = format!("released {}#{} by {}", request.repo, request.target, request.agent);
    let as_json = args.json && opened.repository.is_some();
    Written::new("released", released.record, warnings).print(&mut context.printer, as_json, &line);
    Ok(0)
}

/// Refuses a terminal closeout: a wrong one in the contract's words, a right one because this version has none.
fn refuse_closeout(args: &Args) -> Result<(), CommandError> {
    let Some(terminal) = args.terminal.as_deref().filter(|terminal| !terminal.is_empty()) else { return Ok(()) };
    if !TERMINAL.contains(&terminal) {
        return Err(CommandError::usage(format!("--terminal must be one of: {}", TERMINAL.join(", "))));
    }
    if args.handoff_to.is_some() || args.handoff_note.is_some() {
        return Err(CommandError::usage("--terminal cannot be combined with --handoff-to or --handoff-note"));
    }
    Err(CommandError::unsupported("a terminal closeout (--terminal) is"))
}

fn request(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Release, CommandError> {
    context.require(opened, &["agent-id", "repo", "target"])?;
    let (repo, target) = match args.item.target()? {
        Some(target) => (context.target_repo(opened)?, Target::parse("target", target)?),
        None => the_one_held(args, context, opened)?,
    };
    let acting = Acting::on(context, opened, repo.as_str(), target.as_str())?;
    Ok(Release {
        metadata: acting.complete(args.metadata.to_metadata()),
        agent: acting.agent,
        repo,
        target,
        branch: args.branch.clone(),
        handoff_to: args.handoff_to.clone(),
        handoff_note: args.handoff_note.clone(),
        attribution: context.sources(opened.repository.as_deref()).attribution(),
    })
}

/// Returns the one claim that this worktree holds; giving back one of several would be a guess.
fn the_one_held(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<(RepoName, Target), CommandError> {
    let repo = if args.item.names_repo() { Some(context.target_repo(opened)?) } else { None };
    let held = acting::held_here(context, opened)?;
    let held: Vec<_> =
        held.iter().filter(|tenure| repo.as_ref().is_none_or(|repo| tenure.repo == repo.as_str())).collect();
    match held.as_slice() {
        [] => Err(CommandError::usage("missing required --target")),
        [one] => Ok((RepoName::parse("target", &one.repo)?, Target::parse("target", &one.target)?)),
        several => {
            let names: Vec<String> =
                several.iter().map(|tenure| format!("{}#{}", tenure.repo, tenure.target)).collect();
            let message = format!("this worktree holds several claims; name one of: {}", names.join(", "));
            Err(CommandError::usage(message))
        }
    }
}

fn forget(opened: &Opened<'_>, request: &Release) -> Option<String> {
    let error = held::forget(opened.repository.as_deref()?, request.repo.as_str(), request.target.as_str()).err()?;
    Some(format!("this worktree cannot forget the claim: {error}"))
}
