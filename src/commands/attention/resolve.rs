//! `attention-resolve`.

use super::super::StoreArgs;
use super::{KeyArgs, key, print_changed};
use crate::cli::context::Context;
use crate::domain::attention::MAX_GENERATION;
use crate::error::CommandError;

/// Marks a question as answered.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  agent-coord attention-resolve --workspace main --repo OWNER/REPO --attention-id q1 --source-generation 2")]
pub struct Args {
    #[command(flatten)]
    key: KeyArgs,
    /// The generation of the question that was answered
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    source_generation: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Resolves the record.
///
/// # Errors
/// When there is none, the stored one is newer, or it is not known whether it was written.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let parts = args.key.given()?;
    let generation =
        args.source_generation.ok_or_else(|| CommandError::usage("missing required --source-generation"))?;
    if !(0..=MAX_GENERATION).contains(&generation) {
        let message = format!("--source-generation must be an integer between 0 and {MAX_GENERATION}");
        return Err(CommandError::usage(message));
    }
    let resolved = opened.app().resolve_attention(&key(parts)?, generation)?;
    print_changed(&resolved, "resolved", args.json, context);
    Ok(0)
}
