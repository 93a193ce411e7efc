//! `batch-audit` (cli-contract.md section 9).

use super::StoreArgs;
use super::arguments::required;
use crate::cli::context::Context;
use crate::domain::audit::{Audit, Finding};
use crate::domain::ids::BatchId;
use crate::error::CommandError;
use crate::output::{batch, json};

/// Checks that the events of a batch tell, lane by lane, that the work was begun and ended.
///
/// Exit codes: 0 complete, 1 incomplete, 2 unknown.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord batch-audit --batch-id b1
  agent-coord batch-audit --batch-id b1 --json")]
pub struct Args {
    /// The batch to audit
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Audits a batch and returns the verdict as an exit code.
///
/// # Errors
/// When no batch is named or no store can be opened. A store that cannot be read is a verdict.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let batch_id = required("batch-id", args.batch_id.as_deref())?;
    let audit = match BatchId::parse("batch-id", batch_id) {
        Ok(batch) => opened.app().audit(&batch),
        Err(error) => Audit::unreadable(batch_id, &error.to_string()),
    };
    if args.json {
        json::print(&mut context.printer, &audit);
    } else {
        context.printer.data(&batch::audit(&audit));
    }
    Ok(match audit.verdict {
        Finding::Complete => 0,
        Finding::Incomplete => 1,
        Finding::Unknown => 2,
    })
}
