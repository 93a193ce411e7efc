//! `drain` (design.md section 4).

use super::StoreArgs;
use super::arguments::required;
use crate::cli::context::Context;
use crate::domain::batch::drain::Drain;
use crate::domain::ids::BatchId;
use crate::error::CommandError;
use crate::report::Written;

/// Tells the workers of a batch, or of one lane, to stop at their next safe checkpoint.
///
/// Their heartbeats, claims and status show it, and claims of the lane's targets that name the batch are refused.
/// Registering the batch again does not end a drain; --cancel does.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord drain --batch-id b1 --reason 'the release is off'
  agent-coord drain --batch-id b1 --lane docs --reason 'superseded by b2'
  agent-coord drain --batch-id b1 --lane docs --cancel")]
pub struct Args {
    /// The batch
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// The lane; the whole batch when absent
    #[arg(long, value_name = "NAME")]
    lane: Option<String>,
    /// Why, in a sentence that workers will read
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Let the work go on
    #[arg(long)]
    cancel: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Drains a batch or a lane, or cancels that.
///
/// # Errors
/// When there is no such batch or lane, or it is not known whether the drain was stored.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args)?;
    if !opened.store.abilities().fencing {
        return Err(CommandError::unsupported("drain on a store that does not show it to workers is")
            .with_hint("drain works on the git store"));
    }
    let sources = context.sources(opened.repository.as_deref());
    let by = sources.named_agent()?.map(|agent| agent.value);
    let request = Drain { by, attribution: sources.attribution(), ..request };
    let outcome = opened.app().drain(&request)?;
    for warning in &outcome.warnings {
        context.printer.warning(warning);
    }
    let (word, line) = words(&request, outcome.changed);
    Written::new(word, outcome.record, outcome.warnings).print(&mut context.printer, args.json, &line);
    Ok(0)
}

fn request(args: &Args) -> Result<Drain, CommandError> {
    let batch_id = required("batch-id", args.batch_id.as_deref())?;
    let reason = args.reason.clone().filter(|reason| !reason.trim().is_empty());
    if reason.is_none() && !args.cancel {
        return Err(CommandError::usage("missing required --reason"));
    }
    if args.lane.as_deref() == Some("") {
        return Err(CommandError::usage("--lane must not be empty"));
    }
    Ok(Drain {
        batch: BatchId::parse("batch-id", batch_id)?,
        lane: args.lane.clone(),
        reason,
        cancel: args.cancel,
        by: None,
        attribution: crate::domain::request::Attribution::default(),
    })
}

fn words(request: &Drain, changed: bool) -> (&'static str, String) {
    let what = match &request.lane {
        Some(lane) => format!("lane {lane} of batch {}", request.batch),
        None => format!("batch {}", request.batch),
    };
    match (request.cancel, changed) {
        (false, true) => ("drained", format!("drained {what}")),
        (false, false) => ("unchanged", format!("already drained {what}")),
        (true, true) => ("cancelled", format!("cancelled the drain of {what}")),
        (true, false) => ("unchanged", format!("nothing to cancel for {what}")),
    }
}
