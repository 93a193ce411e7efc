//! `claim` (cli-contract.md section 2).

use super::StoreArgs;
use super::arguments::{MetadataArgs, WorkItemArgs};
use crate::app;
use crate::cli::acting::Acting;
use crate::cli::context::{Context, Opened};
use crate::cli::settings::DEFAULT_CLAIM_TTL_SECONDS;
use crate::domain::claim::{Acquired, FirstRead, Way};
use crate::domain::ids::Target;
use crate::domain::record::text;
use crate::domain::request::Acquire;
use crate::error::CommandError;
use crate::report::Written;
use crate::worktree::{held, observations};

/// Claims a target, or renews the claim this agent holds on it.
///
/// Of any number of simultaneous claimers exactly one is told that it holds the claim; the others end with exit code 3.
/// A claim whose holder is dead is taken over. Any answer but success means: do not begin.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord claim 42
  agent-coord claim issue:42 --branch fix-42 --ttl 7200
  agent-coord claim 42 --instance-id second --supersede     replaces an earlier instance of this agent")]
pub struct Args {
    #[command(flatten)]
    item: WorkItemArgs,
    /// The batch the claim belongs to
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// The branch the work happens on; the one checked out when absent
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How many seconds the claim lasts
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    ttl: Option<i64>,
    /// Replace a live or stale instance of this same agent
    #[arg(long)]
    supersede: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// Claims a target.
///
/// # Errors
/// When the claim is refused, or it is not known whether it is held.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args, context, &opened)?;
    let mut first = FirstRead::default();
    let result = app::claim::claim(&opened.app(), &request, &mut first);
    if let Some(repository) = &opened.repository
        && let Err(error) = observations::record(repository, &first.sightings, context.clock)
    {
        context.printer.warning(&format!("cannot keep what was seen of the holder: {error}"));
    }
    let acquired = result?;
    let warnings = after_winning(&opened, &acquired);
    for warning in &warnings {
        context.printer.warning(warning);
    }
    if let Some(drained) = &acquired.drained {
        context.printer.warning(&drained.message());
    }
    let (repo, target, agent) = (&request.repo, &request.target, &request.agent);
    let until = text(&acquired.record, "expires_at").unwrap_or_default();
    let line = format!("claimed {repo}#{target} by {agent} until {until}");
    let written = Written::new(outcome(acquired.way), acquired.record, warnings).with_drain(acquired.drained);
    written.print(&mut context.printer, args.json && opened.repository.is_some(), &line);
    Ok(0)
}

fn request(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Acquire, CommandError> {
    context.require(opened, &["agent-id", "repo", "target"])?;
    let sources = context.sources(opened.repository.as_deref());
    let wanted = args.item.required_target()?;
    let ttl_seconds = match args.ttl {
        Some(seconds) if seconds <= 0 => return Err(CommandError::usage("--ttl must be positive")),
        Some(seconds) => seconds,
        None if opened.repository.is_none() => DEFAULT_CLAIM_TTL_SECONDS,
        None => sources.claim_ttl_seconds()?.value,
    };
    let repo = context.target_repo(opened)?;
    let target = Target::parse("target", wanted)?;
    let acting = Acting::on(context, opened, repo.as_str(), target.as_str())?;
    Ok(Acquire {
        metadata: acting.complete(args.metadata.to_metadata()),
        agent: acting.agent,
        repo,
        target,
        batch_id: args.batch_id.clone(),
        branch: args.branch.clone(),
        current_branch: current_branch(context, opened)?,
        supersede: args.supersede,
        ttl_seconds,
        attribution: sources.attribution(),
        tenure: acting.tenure,
        seen_changing: opened
            .repository
            .as_deref()
            .map(|repository| observations::seen_changing(repository, context.clock))
            .unwrap_or_default(),
    })
}

/// Returns the branch checked out here, unless it is a primary one (design.md section 4, "Branch").
fn current_branch(context: &Context<'_>, opened: &Opened<'_>) -> Result<Option<String>, CommandError> {
    let Some(repository) = &opened.repository else { return Ok(None) };
    let branch = repository.head(&opened.deadline)?.branch;
    let set = context.sources(Some(repository)).primary_branch();
    let is_primary = |branch: &str| match &set {
        Some(primary) => branch == primary,
        None => matches!(branch, "main" | "master"),
    };
    Ok(branch.filter(|branch| repository.work_tree().is_some() && !is_primary(branch)))
}

/// Remembers the tenure and returns what to warn of. The claim is won, whatever happens here.
fn after_winning(opened: &Opened<'_>, acquired: &Acquired) -> Vec<String> {
    let mut warnings = acquired.warnings.clone();
    warnings.extend(acquired.lost_tenure.clone());
    if let (Some(tenure), Some(repository)) = (&acquired.tenure, &opened.repository) {
        let branch = text(&acquired.record, "branch");
        if let Err(error) = held::remember_on(repository, tenure, branch) {
            warnings.push(format!("the claim is won, but this worktree cannot remember it: {error}"));
        }
    }
    warnings
}

fn outcome(way: Way) -> &'static str {
    match way {
        Way::Free | Way::LaneChanged => "claimed",
        Way::Renewed => "renewed",
        Way::TakenOver => "taken_over",
        Way::Superseded => "superseded",
    }
}
