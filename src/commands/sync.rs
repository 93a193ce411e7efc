//! `sync`: brings this clone's cache of the shared store up to date, or re-creates a store the remote lost.

use std::collections::BTreeMap;

use serde::Serialize;

use super::GitArgs;
use super::init::in_words;
use crate::cli::context::Context;
use crate::error::CommandError;
use crate::output::json;
use crate::report::CONTRACT_VERSION;
use crate::store::git::sync::Synced;
use crate::store::open;

/// Brings this clone's cache of the shared store up to date.
///
/// The hooks decide commits from this cache, without network. With --restore a store that the remote lost is re-created
/// from what this clone still holds; a remote that has a store is left alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord sync
  agent-coord sync --restore     after the remote was wiped")]
pub struct Args {
    /// Re-create the store on a remote that lost it
    #[arg(long)]
    restore: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: GitArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    remote: Option<&'a str>,
    holds: &'a BTreeMap<String, usize>,
    changed: usize,
    removed: usize,
    restored: &'a [String],
}

/// Synchronises.
///
/// # Errors
/// When the remote cannot be reached or holds another store; a restore also when there is nothing to restore.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let place = context.place()?;
    let remote = context.environment.text("AGENT_COORD_REMOTE");
    let store = open::git(place.repository, remote, None, context.ids, &place.deadline)?;
    let done = if args.restore { store.restore(&place.deadline)? } else { store.sync(&place.deadline)? };
    match done {
        None if args.restore => {
            return Err(CommandError::usage("nothing to restore: this clone shares its records with no remote"));
        }
        None if args.json => {
            let report = Report {
                version: CONTRACT_VERSION,
                remote: None,
                holds: &BTreeMap::new(),
                changed: 0,
                removed: 0,
                restored: &[],
            };
            json::print(&mut context.printer, &report);
        }
        None => {
            context.printer.line("nothing to sync: the records are in this clone only");
        }
        Some(done) if args.json => print_json(context, &done),
        Some(done) => print_text(context, &done),
    }
    Ok(0)
}

fn print_json(context: &mut Context<'_>, done: &Synced) {
    let report = Report {
        version: CONTRACT_VERSION,
        remote: Some(&done.remote),
        holds: &done.holds,
        changed: done.changed,
        removed: done.removed,
        restored: &done.restored,
    };
    json::print(&mut context.printer, &report);
}

fn print_text(context: &mut Context<'_>, done: &Synced) {
    let Synced { remote, holds, changed, removed, restored } = done;
    for path in restored {
        context.printer.line(&format!("restored {path}"));
    }
    context.printer.line(&format!("synced from {remote}: {} ({changed} changed, {removed} removed)", in_words(holds)));
}
