//! `ready`: which lanes of a batch can start now.

use serde::Serialize;

use super::StoreArgs;
use super::arguments::required;
use crate::cli::context::Context;
use crate::domain::batch::ready::Ready;
use crate::domain::ids::BatchId;
use crate::error::CommandError;
use crate::output::{batch, json};
use crate::report::CONTRACT_VERSION;

/// Shows the lanes of a batch that can start now, and what every other lane waits for.
///
/// A lane can start when its dependencies are met, nobody has claimed any of its targets, and it is not drained.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord ready --batch-id b1
  agent-coord ready --batch-id b1 --json")]
pub struct Args {
    /// The batch
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    version: &'static str,
    #[serde(flatten)]
    ready: &'a Ready,
}

/// Sorts the lanes of a batch.
///
/// # Errors
/// When the batch is not registered, or the state cannot be read.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let batch_id = BatchId::parse("batch-id", required("batch-id", args.batch_id.as_deref())?)?;
    let repo = context.target_repo(&opened)?;
    let wedged_after = context.sources(opened.repository.as_deref()).wedged_after_seconds()?.value;
    let ready = opened.app().ready(&batch_id, &repo, wedged_after)?;
    for note in &ready.degraded {
        context.printer.warning(note);
    }
    if args.json {
        json::print(&mut context.printer, &Document { version: CONTRACT_VERSION, ready: &ready });
    } else {
        context.printer.data(&batch::ready(&ready));
    }
    Ok(0)
}
