//! `attention-list`.

use serde::Serialize;

use super::super::StoreArgs;
use super::required;
use crate::cli::context::Context;
use crate::domain::attention::Key;
use crate::domain::record::Members;
use crate::error::CommandError;
use crate::output::{attention as text, json};

/// The most records listed, and how many when nothing is said.
const LIMIT: usize = 100;

/// Lists open questions, the most urgent first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  agent-coord attention-list --workspace main --repo OWNER/REPO")]
pub struct Args {
    /// The workspace the questions belong to
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// The repository the questions are about
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// List answered questions, too
    #[arg(long)]
    include_resolved: bool,
    /// List this many at most: 1 to 100
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Serialize)]
struct Document<'a> {
    records: Vec<&'a Members>,
    limit: usize,
    truncated: bool,
}

/// Prints the records.
///
/// # Errors
/// When any of them cannot be read: a list with a hole is no list.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let workspace = required("workspace", args.workspace.as_deref())?;
    let repo = required("repo", args.repo.as_deref())?;
    let limit = match args.limit.map(usize::try_from) {
        None => LIMIT,
        Some(Ok(limit @ 1..=LIMIT)) => limit,
        Some(_) => return Err(CommandError::usage(format!("--limit must be between 1 and {LIMIT}"))),
    };
    let mut records = opened.app().attention_list(&Key::prefix(workspace, repo)?, args.include_resolved)?;
    let truncated = records.len() > limit;
    records.truncate(limit);
    if args.json {
        let records = records.iter().map(|record| &record.members).collect();
        json::print(&mut context.printer, &Document { records, limit, truncated });
    } else {
        records.iter().for_each(|record| text::print(&mut context.printer, record));
    }
    Ok(0)
}
