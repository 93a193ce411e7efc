//! `record-event` (cli-contract.md section 6).

use super::StoreArgs;
use super::arguments::{ClosingArgs, MetadataArgs, required};
use crate::app;
use crate::cli::acting;
use crate::cli::context::{Context, Opened};
use crate::domain::closeout::{Asked, Closing, closes_a_lane};
use crate::domain::ids::BatchId;
use crate::domain::record::{Members, text};
use crate::domain::record_event::check_lane;
use crate::domain::request::{RecordEvent, Tenure};
use crate::error::CommandError;
use crate::report::Written;

/// Adds an event to a batch.
///
/// help_requested, escalation_requested, error and human_intervention have options of their own. lane_closed closes a
/// lane, once and for all. Any other type is free.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord record-event --batch-id b1 --type help_requested --lane docs --reason question --message 'which branch?'
  agent-coord record-event --batch-id b1 --type error --severity P1 --category ci --message 'runner is gone'")]
pub struct Args {
    /// The batch
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// The type of event
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// The lane the event is about
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,
    /// The agent the event is from; none when absent
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// The repository the event is about
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// The target the event is about
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// The branch the event is about
    #[arg(long, value_name = "NAME")]
    branch: Option<String>,
    /// How the work stands
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// What happened, in a sentence
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
    #[command(flatten)]
    typed: TypedArgs,
    #[command(flatten)]
    closing: ClosingArgs,
    #[command(flatten)]
    metadata: MetadataArgs,
}

/// The options that belong to one type of event each.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Options of some types")]
pub struct TypedArgs {
    /// help_requested: blocked-user-input, question, permission
    #[arg(long, value_name = "REASON")]
    reason: Option<String>,
    /// escalation_requested: where the work is
    #[arg(long, value_name = "ROUTE")]
    from_route: Option<String>,
    /// escalation_requested: where it should go
    #[arg(long, value_name = "ROUTE")]
    to_route: Option<String>,
    /// escalation_requested: what speaks for it
    #[arg(long, value_name = "TEXT")]
    evidence: Option<String>,
    /// error: P0, P1, P2, P3
    #[arg(long, value_name = "SEVERITY")]
    severity: Option<String>,
    /// error: what kind
    #[arg(long, value_name = "TEXT")]
    category: Option<String>,
    /// human_intervention: takeover, supersede, manual-fix, drain
    #[arg(long, value_name = "KIND")]
    kind: Option<String>,
}

impl TypedArgs {
    fn to_members(&self) -> Members {
        let given = [
            ("reason", &self.reason),
            ("from_route", &self.from_route),
            ("to_route", &self.to_route),
            ("evidence", &self.evidence),
            ("severity", &self.severity),
            ("category", &self.category),
            ("kind", &self.kind),
        ];
        given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into()))).collect()
    }
}

/// Records an event.
///
/// # Errors
/// When the event breaks a rule of its type, or it is not known whether it was recorded.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args, context, &opened)?;
    if closes_a_lane(&request.event_type) {
        return close(args, context, &opened, &request);
    }
    let recorded = app::record_event::record_event(&opened.app(), &request)?;
    for warning in &recorded.warnings {
        context.printer.warning(warning);
    }
    let line = format!("recorded event {} {}", request.batch_id, recorded.event_id);
    let as_json = args.json && opened.repository.is_some();
    Written::new("recorded", recorded.record, recorded.warnings).print(&mut context.printer, as_json, &line);
    Ok(0)
}

/// Closes a lane by an event alone.
fn close(
    args: &Args,
    context: &mut Context<'_>,
    opened: &Opened<'_>,
    request: &RecordEvent,
) -> Result<u8, CommandError> {
    let closing = args.closing.to_closing();
    closing.as_ref().map_or(Ok(()), Closing::check)?;
    let closing = closing.ok_or_else(|| CommandError::usage("missing required --terminal"))?;
    required("agent-id", request.agent.as_deref())?;
    let repo = required("repo", request.repo.as_deref())?;
    let target = required("target", request.target.as_deref())?;
    let asked = Asked::Event(request, &closing);
    asked.check()?;
    check_lane(request)?;
    let closed = opened.app().close(asked)?;
    let event_id = text(&closed.reserved.event, "event_id").unwrap_or_default();
    let (outcome, line) = match (closed.reserved.created, closed.changed()) {
        (true, _) => ("recorded", format!("recorded event {} {event_id}", request.batch_id)),
        (false, true) => ("reconciled", format!("reconciled terminal closeout for {repo}#{target}")),
        (false, false) => ("already_closed", format!("lane already closed for {repo}#{target}")),
    };
    Written::new(outcome, closed.reserved.event, Vec::new()).print(&mut context.printer, args.json, &line);
    Ok(0)
}

fn request(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<RecordEvent, CommandError> {
    let batch_id = required("batch-id", args.batch_id.as_deref())?;
    let event_type = required("type", args.event_type.as_deref())?;
    Ok(RecordEvent {
        batch_id: BatchId::parse("batch-id", batch_id)?,
        event_type: event_type.to_owned(),
        lane: args.lane.clone(),
        agent: args.agent_id.clone(),
        repo: args.repo.clone(),
        target: args.target.clone(),
        branch: args.branch.clone(),
        status: args.status.clone(),
        message: args.message.clone(),
        metadata: args.metadata.to_metadata(),
        typed: args.typed.to_members(),
        attribution: context.sources(opened.repository.as_deref()).attribution(),
        tenure: tenure(args, context, opened)?,
    })
}

/// Returns the tenure of the claim the event names, unless the event is from another agent.
fn tenure(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Option<Tenure>, CommandError> {
    let named = args.target.as_deref().filter(|target| !target.is_empty());
    let Some(target) = named.filter(|_| opened.repository.is_some()) else { return Ok(None) };
    let repo = match args.repo.clone() {
        Some(repo) => repo,
        None => context.repo(opened)?.value,
    };
    let by_another = |tenure: &Tenure| args.agent_id.as_deref().is_some_and(|agent| agent != tenure.agent);
    Ok(acting::tenure_of(opened, &repo, target).filter(|tenure| !by_another(tenure)))
}
