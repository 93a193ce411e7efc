//! `release` (cli-contract.md section 3).

use super::StoreArgs;
use super::arguments::{ClosingArgs, MetadataArgs, WorkItemArgs};
use crate::app;
use crate::app::transact::NotTaken;
use crate::cli::acting::{self, Acting};
use crate::cli::context::{Context, Opened};
use crate::domain::closeout::{Asked, Closing};
use crate::domain::decision::RefusalKind;
use crate::domain::ids::{RepoName, Target};
use crate::domain::request::Release;
use crate::error::CommandError;
use crate::report::Written;
use crate::worktree::held;

/// Gives a claim back.
///
/// Without TARGET it gives back the one claim that this worktree holds.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord release 42
  agent-coord release 42 --handoff-to w2 --handoff-note 'tests are red'
  agent-coord release 42 --terminal done --pr-state merged --evidence-url https://ci.example/1")]
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
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    closing: ClosingArgs,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// Gives a claim back.
///
/// # Errors
/// When the claim is not this agent's to give, or it is not known whether it was given back.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args, context, &opened)?;
    match args.closing.to_closing() {
        Some(closing) => close(args, context, &opened, &request, &closing),
        None => release(args, context, &opened, &request),
    }
}

fn release(args: &Args, context: &mut Context<'_>, opened: &Opened<'_>, request: &Release) -> Result<u8, CommandError> {
    let result = app::release::release(&opened.app(), request);
    let forgotten = match &result {
        Ok(_) => forget(opened, request),
        // Given back, and not ours any more: nothing is left to remember. A claim that a successor of this agent holds
        // stays remembered, or the next try would give back the successor's.
        Err(NotTaken::Refused(refusal)) if refusal.kind == RefusalKind::Invalid => forget(opened, request),
        Err(_) => None,
    };
    let released = result?;
    let warnings: Vec<String> = released.warnings.into_iter().chain(forgotten).collect();
    let line = format!("released {}#{} by {}", request.repo, request.target, request.agent);
    print(
        args.json && opened.repository.is_some(),
        context,
        Written::new("released", released.record, warnings.clone()),
        &warnings,
        &line,
    )
}

/// Gives the claim back for good, and closes its lane.
fn close(
    args: &Args,
    context: &mut Context<'_>,
    opened: &Opened<'_>,
    request: &Release,
    closing: &Closing,
) -> Result<u8, CommandError> {
    // A closeout can be refused for many reasons while the claim is still held, so only success forgets it.
    let closed = opened.app().close(Asked::Release(request, closing))?;
    let warnings: Vec<String> = forget(opened, request).into_iter().collect();
    let item = format!("{}#{}", request.repo, request.target);
    let (outcome, line) = if closed.changed() {
        ("released", format!("released {item} by {}", request.agent))
    } else {
        ("already_closed", format!("lane already closed for {item}"))
    };
    let written = Written::new(outcome, closed.claim.unwrap_or_default(), warnings.clone());
    print(args.json && opened.repository.is_some(), context, written, &warnings, &line)
}

fn print(
    as_json: bool,
    context: &mut Context<'_>,
    written: Written,
    warnings: &[String],
    line: &str,
) -> Result<u8, CommandError> {
    for warning in warnings {
        context.printer.warning(warning);
    }
    written.print(&mut context.printer, as_json, line);
    Ok(0)
}

fn request(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Release, CommandError> {
    context.require(opened, &["agent-id", "repo", "target"])?;
    let named = args.item.target()?;
    let held = if named.is_none() { Some(the_one_held(args, context, opened)?) } else { None };
    let closing = args.closing.to_closing();
    if let Some(closing) = &closing {
        check_closing(args, closing)?;
    }
    let field = if closing.is_some() { "terminal closeout" } else { "target" };
    let (repo, target) = match held {
        Some(held) => held,
        None => {
            let repo = RepoName::parse(field, &context.repo(opened)?.value)?;
            (repo, Target::parse("target", named.unwrap_or_default())?)
        }
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

fn check_closing(args: &Args, closing: &Closing) -> Result<(), CommandError> {
    closing.check()?;
    if args.handoff_to.is_some() || args.handoff_note.is_some() {
        return Err(CommandError::usage("--terminal cannot be combined with --handoff-to or --handoff-note"));
    }
    Ok(())
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
