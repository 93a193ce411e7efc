//! `attention-get`.

use super::super::StoreArgs;
use super::{Document, KeyArgs, key};
use crate::cli::context::Context;
use crate::error::CommandError;
use crate::output::{attention as text, json};

/// Shows one question.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  agent-coord attention-get --workspace main --repo OWNER/REPO --attention-id q1")]
pub struct Args {
    #[command(flatten)]
    key: KeyArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Prints the record.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let record = opened.app().attention(&key(args.key.given()?)?)?;
    if args.json {
        json::print(&mut context.printer, &Document { record: &record.members });
    } else {
        text::print(&mut context.printer, &record);
    }
    Ok(0)
}
