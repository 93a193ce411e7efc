//! `status` (cli-contract.md section 7).

use serde::Serialize;

use crate::app::status::{NoReport, Read};
use crate::cli::context::{Context, Opened};
use crate::domain::ids::{BatchId, RepoName, Target};
use crate::domain::snapshot::Freshness;
use crate::domain::status::StatusReport;
use crate::domain::time::Timestamp;
use crate::error::CommandError;
use crate::output::{json, status as text};
use crate::report::CONTRACT_VERSION;

use super::StoreArgs;

/// Shows claims, heartbeats, batches and events: all of them, those of one target under all its spellings, or those of
/// one batch.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord status
  agent-coord status --repo OWNER/REPO --target 42 --json
  agent-coord status --batch-id b1
  agent-coord status --cached")]
pub struct Args {
    /// The repository of the target to report on
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// The target to report on
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// The batch to report on
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// List archived records, too
    #[arg(long)]
    include_archived: bool,
    /// Show what this clone last saw, without asking the remote
    #[arg(long)]
    cached: bool,
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
    report: &'a StatusReport,
}

/// Prints the report.
///
/// # Errors
/// When the state cannot be read, or the options do not go together.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let read = read(args, context, &opened)?;
    if args.cached && read.freshness == Freshness::Cached {
        context.printer.message(&age_notice(context, read.fetched_at));
    }
    for warning in &read.report.warnings {
        context.printer.warning(warning);
    }
    if args.json {
        json::print(&mut context.printer, &Document { version: CONTRACT_VERSION, report: &read.report });
    } else {
        let page = text::text(&read.report, context.printer.colour());
        context.printer.data(&page);
    }
    Ok(0)
}

fn read(args: &Args, context: &Context<'_>, opened: &Opened<'_>) -> Result<Read, CommandError> {
    let freshness = if args.cached { Freshness::Cached } else { Freshness::Fetched };
    // A directory does not keep since when an agent reports the same phase.
    let wedged_after = match opened.repository.as_deref() {
        Some(repository) => context.sources(Some(repository)).wedged_after_seconds()?.value,
        None => i64::MAX,
    };
    let given = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
    let (repo, target, batch) = (given(&args.repo), given(&args.target), given(&args.batch_id));
    if batch.is_some() && (repo.is_some() || target.is_some()) {
        return Err(CommandError::usage("--batch-id cannot be combined with --repo or --target"));
    }
    let app = opened.app();
    let read = match (repo, target) {
        (None, None) if batch.is_some() => {
            let batch = BatchId::parse("batch-id", &batch.unwrap_or_default())?;
            app.batch_status(&batch, freshness, wedged_after)?
        }
        (None, None) => return Ok(app.status(freshness, wedged_after, args.include_archived)?),
        (Some(_), None) => return Err(CommandError::usage("missing required --target")),
        (None, Some(_)) => return Err(CommandError::usage("missing required --repo")),
        (Some(repo), Some(target)) => {
            let (repo, target) = (RepoName::parse("target", &repo)?, Target::parse("target", &target)?);
            app.target_status(&repo, &target, freshness, wedged_after)?
        }
    };
    if args.include_archived {
        return Err(CommandError::usage("--include-archived is only valid for unscoped status"));
    }
    Ok(read)
}

/// Words how old the answer of a command with `--cached` is.
pub(super) fn age_notice(context: &Context<'_>, fetched_at: Option<Timestamp>) -> String {
    match fetched_at {
        Some(at) => {
            let age = context.clock.now().seconds_since(at).max(0);
            format!("notice: read from this clone's cache, fetched {age} s ago ({at})")
        }
        None => "notice: read from this clone's cache, which was never fetched".to_owned(),
    }
}

impl From<NoReport> for CommandError {
    fn from(reason: NoReport) -> Self {
        match reason {
            NoReport::Store(error) => error.into(),
            NoReport::Refused(refusal) => refusal.into(),
        }
    }
}
