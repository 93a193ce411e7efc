//! `log` (cli-contract.md section 8).

use std::path::PathBuf;

use serde::Serialize;

use super::StoreArgs;
use super::status::age_notice;
use crate::app::log::ReadTrail;
use crate::cli::context::Context;
use crate::domain::ids::{RepoName, Target};
use crate::domain::log::{Item, Narrowing, Query, since};
use crate::domain::snapshot::Freshness;
use crate::error::CommandError;
use crate::output::{json, log as text};

/// Shows what happened on a work item, oldest first: who, where and when.
///
/// Events that gc has compacted into the archive are part of the trail.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord log OWNER/REPO#42
  agent-coord log --repo OWNER/REPO --target 42 --json
  agent-coord log --since 3d --host codex
  agent-coord log --sync")]
pub struct Args {
    /// The work item
    #[arg(value_name = "OWNER/REPO#TARGET")]
    positional: Option<String>,
    /// The repository of the work item
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// The target of the work item
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Nothing before this: 30m, 12h, 3d, 2w or an ISO 8601 time
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only what happened on this machine
    #[arg(long, value_name = "ID")]
    machine: Option<String>,
    /// Only what came from this host or its family: codex, claude, ...
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    /// Only events of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only the last N events
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// text or tsv
    #[arg(long, value_name = "FORM")]
    format: Option<String>,
    /// Show what is not from real work, too
    #[arg(long)]
    include_synthetic: bool,
    /// Add what is new to the mirror of the whole trail
    #[arg(long)]
    sync: bool,
    /// Show what this clone last saw, without asking the remote
    #[arg(long)]
    cached: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Tsv,
    Json,
}

#[derive(Serialize)]
struct Synced {
    synced: usize,
    path: String,
}

/// Prints the trail, or mirrors it.
///
/// # Errors
/// When the options do not go together, the state cannot be read, or the mirror cannot be written.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let item = args.item()?;
    let form = args.form()?;
    if args.sync {
        args.check_sync(item.as_ref(), context)?;
    }
    let query = args.query(item, context)?;
    let opened = context.open()?;
    let freshness = if args.cached { Freshness::Cached } else { Freshness::Fetched };
    let app = opened.app();
    let read = app.trail(&query, freshness)?;
    report_doubts(&read, args, context);
    if !args.sync {
        print(&read, &query, args, form, context);
        return Ok(0);
    }
    let trail = &read.trail;
    if !trail.degraded.is_empty() {
        let prefixes = trail.degraded.join(", ");
        return Err(CommandError::operational(format!("refusing to sync an incomplete trail: {prefixes}")));
    }
    let root = mirror_root(context)?;
    let (synced, path) = app
        .write_mirror(&root, &trail.rows)
        .map_err(|error| CommandError::operational(format!("log mirror unwritable: {error}")))?;
    let path = path.display().to_string();
    if form == Form::Json {
        json::print(&mut context.printer, &Synced { synced, path });
    } else {
        let events = if synced == 1 { "event" } else { "events" };
        context.printer.line(&format!("synced {synced} new {events} to {path}"));
    }
    Ok(0)
}

fn print(read: &ReadTrail, query: &Query, args: &Args, form: Form, context: &mut Context<'_>) {
    let (trail, item, printer) = (&read.trail, query.item.as_ref(), &mut context.printer);
    match form {
        Form::Text => text::print_text(printer, trail, item, &args.hiding()),
        Form::Tsv => text::print_tsv(printer, trail, item, &args.hiding()),
        Form::Json => text::print_json(printer, trail, item),
    }
}

fn report_doubts(read: &ReadTrail, args: &Args, context: &mut Context<'_>) {
    if args.cached && read.freshness == Freshness::Cached {
        let notice = age_notice(context, read.fetched_at);
        context.printer.message(&notice);
    }
    for warning in &read.trail.warnings {
        context.printer.warning(warning);
    }
    if let Some(note) = &read.trail.note {
        context.printer.message(note);
    }
}

/// Returns the directory of the mirror: the local state root in force, or the default one (section 8.7).
fn mirror_root(context: &Context<'_>) -> Result<PathBuf, CommandError> {
    if let Some(root) = context.supplied.raw("state-root") {
        return Ok(context.directory.join(root));
    }
    let environment = context.environment;
    for name in ["AGENT_COORD_STATE_ROOT", "AGENT_COORD_STATUS_STATE_ROOT"] {
        if let Some(root) = environment.raw(name).filter(|_| environment.text(name).is_some()) {
            return Ok(context.directory.join(root));
        }
    }
    let state_home = environment.raw("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment.raw("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let base = state_home.or_else(|| home().map(|home| home.join(".local/state")));
    base.map(|base| base.join("agent-coordination")).ok_or_else(|| {
        CommandError::operational("log mirror unwritable: neither XDG_STATE_HOME nor HOME says where it goes")
    })
}

impl Args {
    fn item(&self) -> Result<Option<Item>, CommandError> {
        let given = |value: &Option<String>| value.clone().filter(|text| !text.trim().is_empty());
        let (positional, repo, target) = (given(&self.positional), given(&self.repo), given(&self.target));
        let (repo, target, typed) = match (positional, repo, target) {
            (None, None, None) => return Ok(None),
            (Some(typed), None, None) => {
                let (repo, target) = typed.rsplit_once('#').unwrap_or((&typed, ""));
                (repo.to_owned(), target.to_owned(), typed)
            }
            (None, Some(repo), Some(target)) => {
                let typed = format!("{repo}#{target}");
                (repo, target, typed)
            }
            (Some(_), _, _) => {
                let message = "give the work item either positionally or with --repo/--target, not both";
                return Err(CommandError::usage(message));
            }
            (None, _, _) => return Err(CommandError::usage("--repo and --target must be given together")),
        };
        let repo = RepoName::parse("work item", &repo)?;
        Ok(Some(Item::new(repo, Target::parse("work item target", &target)?, typed)))
    }

    fn form(&self) -> Result<Form, CommandError> {
        let form = match self.format.as_deref() {
            None | Some("" | "text") => Form::Text,
            Some("tsv") => Form::Tsv,
            Some(_) => return Err(CommandError::usage("--format must be text or tsv")),
        };
        match (self.json, self.format.as_deref().filter(|format| !format.is_empty())) {
            (true, Some(_)) => Err(CommandError::usage("--json and --format are mutually exclusive")),
            (true, None) => Ok(Form::Json),
            (false, _) => Ok(form),
        }
    }

    fn check_sync(&self, item: Option<&Item>, context: &Context<'_>) -> Result<(), CommandError> {
        let limit = self.limit.map(|_| "--limit");
        let named: Vec<&str> = self
            .filters()
            .into_iter()
            .filter_map(|(name, value)| value.map(|_| name))
            .chain(limit)
            .chain(item.map(|_| "a work item"))
            .collect();
        if !named.is_empty() {
            let named = named.join(", ");
            return Err(CommandError::usage(format!(
                "--sync mirrors the complete trail and cannot be narrowed by {named}"
            )));
        }
        if context.supplied.has("ignore-user-config") && !context.supplied.has("state-root") {
            let message = "--sync with --ignore-user-config requires --state-root as its explicit backend selector";
            return Err(CommandError::usage(message));
        }
        Ok(())
    }

    fn query(&self, item: Option<Item>, context: &Context<'_>) -> Result<Query, CommandError> {
        let [(_, since_text), (_, machine), (_, host), (_, event_type)] = self.filters();
        let limit = self.limit.map(|limit| {
            usize::try_from(limit)
                .map_err(|_| CommandError::usage(format!("--limit must not be negative, got {limit}")))
        });
        let limit = limit.transpose()?;
        let since = since_text.map(|text| {
            since(text, context.clock.now()).ok_or_else(|| {
                let message = format!("--since expects a duration like 3d or an ISO8601 timestamp, got {text:?}");
                CommandError::usage(message)
            })
        });
        let narrowing = Narrowing {
            since: since.transpose()?,
            machine: machine.map(str::to_owned),
            host: host.map(str::to_owned),
            event_type: event_type.map(str::to_owned),
            limit,
        };
        Ok(Query { item, narrowing, include_synthetic: self.include_synthetic, mirror: self.sync })
    }

    /// Returns the filters but the limit, in the order messages name them; a blank one is absent.
    fn filters(&self) -> [(&'static str, Option<&str>); 4] {
        let given = [
            ("--since", &self.since),
            ("--machine", &self.machine),
            ("--host", &self.host),
            ("--type", &self.event_type),
        ];
        given.map(|(name, value)| (name, value.as_deref().filter(|text| !text.trim().is_empty())))
    }

    /// Returns the filters that hide rows, as typed.
    fn hiding(&self) -> Vec<String> {
        let limit = self.limit.filter(|&limit| limit == 0).map(|limit| format!("--limit {limit}"));
        let filters = self.filters().into_iter().filter_map(|(name, value)| Some(format!("{name} {}", value?)));
        filters.chain(limit).collect()
    }
}
