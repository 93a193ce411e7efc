//! `heartbeat` (cli-contract.md section 4).

use super::StoreArgs;
use super::arguments::{MetadataArgs, WorkItemArgs};
use crate::app;
use crate::cli::acting::Acting;
use crate::cli::context::{Context, Opened};
use crate::domain::heartbeat::Beaten;
use crate::domain::ids::AgentId;
use crate::domain::record::text;
use crate::domain::request::Beat;
use crate::error::CommandError;
use crate::report::Written;
use crate::worktree::told;

/// How long a heartbeat lasts when nobody says, in seconds.
pub const DEFAULT_TTL_SECONDS: i64 = 900;
const DEFAULT_STATUS: &str = "in_progress";

/// Says that this agent is at work, and on what.
///
/// Without TARGET it speaks for the target that this worktree claimed last. Exit code 3 says that the claim was lost to
/// another: stop.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord heartbeat --phase implementing
  agent-coord heartbeat 42 --status blocked --ttl 1800")]
pub struct Args {
    #[command(flatten)]
    item: WorkItemArgs,
    /// The batch the work belongs to
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// The branch the work happens on
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How the work stands
    #[arg(long, value_name = "STATUS", default_value = DEFAULT_STATUS)]
    status: String,
    /// How many seconds the agent counts as live
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_TTL_SECONDS, allow_negative_numbers = true)]
    ttl: i64,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// Records a heartbeat.
///
/// # Errors
/// When the claim was lost, or it is not known whether the heartbeat was recorded.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args, context, &opened)?;
    let beaten = app::heartbeat::heartbeat(&opened.app(), &request)?;
    let mut told = true;
    for warning in &beaten.warnings {
        told &= context.printer.warning(warning);
    }
    if let Some(drained) = &beaten.drained {
        context.printer.warning(&drained.message());
    }
    if let Some(lost) = &beaten.lost {
        told &= context.printer.message(lost);
    }
    if told {
        leave_note(&beaten, &opened, context);
    }
    if beaten.lost.is_some() {
        return Ok(crate::error::Kind::ClaimRefused.exit_code());
    }
    let line = format!("heartbeat {} {}", request.agent, text(&beaten.record, "updated_at").unwrap_or_default());
    let written = Written::new("recorded", beaten.record, beaten.warnings).with_drain(beaten.drained);
    written.print(&mut context.printer, args.json && opened.repository.is_some(), &line);
    Ok(0)
}

fn request(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Beat, CommandError> {
    let (acting, repo, target) = work_item(args, context, opened)?;
    Ok(Beat {
        agent: AgentId::parse("agent-id", &acting.agent)?,
        repo,
        target,
        batch_id: args.batch_id.clone(),
        branch: args.branch.clone(),
        status: args.status.clone(),
        metadata: acting.complete(args.metadata.to_metadata()),
        ttl_seconds: args.ttl,
        attribution: context.sources(opened.repository.as_deref()).attribution(),
        tenure: acting.tenure,
        told: opened.repository.as_deref().map(told::notes).unwrap_or_default(),
    })
}

/// Returns who beats for which repository and target: the ones given, or those of the tenure won last.
fn work_item(
    args: &Args,
    context: &Context<'_>,
    opened: &Opened<'_>,
) -> Result<(Acting, Option<String>, Option<String>), CommandError> {
    if opened.repository.is_none() {
        let (repo, target) = args.item.options();
        return Ok((Acting::without_tenure(context, opened)?, repo, target));
    }
    if let Some(target) = args.item.target()? {
        let repo = context.repo(opened)?.value;
        let acting = Acting::on(context, opened, &repo, target)?;
        return Ok((acting, Some(repo), Some(target.to_owned())));
    }
    if args.item.names_repo() {
        let repo = context.repo(opened)?.value;
        return Ok((Acting::without_tenure(context, opened)?, Some(repo), None));
    }
    let acting = Acting::on_latest(context, opened)?;
    let (repo, target) = acting.tenure.as_ref().map(|tenure| (tenure.repo.clone(), tenure.target.clone())).unzip();
    Ok((acting, repo, target))
}

/// Leaves a note that the report was printed, so that a later beat need not repeat it.
fn leave_note(beaten: &Beaten, opened: &Opened<'_>, context: &mut Context<'_>) {
    let (Some(transaction_id), Some(repository)) = (&beaten.note, &opened.repository) else { return };
    if let Err(error) = told::leave(repository, transaction_id) {
        context.printer.warning(&format!("this report will be repeated: {error}"));
    }
}
