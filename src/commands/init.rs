//! `init`: makes the coordination store of this clone, or joins the one of a shared remote (design.md section 3.4).

use std::collections::BTreeMap;

use serde::Serialize;

use super::GitArgs;
use crate::cli::context::{Context, Place};
use crate::domain::ids::RepoName;
use crate::error::CommandError;
use crate::output::json;
use crate::report::CONTRACT_VERSION;
use crate::store::git::join::{Initialise, Initialised, initialise};
use crate::store::git::{REMOTE_KEY, STORE_ID_KEY};

/// Makes the coordination store of this clone, or joins the one of a shared remote.
///
/// Without --remote the records stay in this clone, for all its worktrees. With it every claim is decided by that remote;
/// local records are published first, and nothing is overwritten. Everyone who can read the remote can read the records:
/// public code wants a private repository for its coordination.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord init                                    this clone only
  agent-coord init --remote origin                    share through the remote named origin
  agent-coord init --remote git@host:team/coord.git   share through a repository of its own")]
pub struct Args {
    /// The remote that decides: a configured remote's name, or a URL
    #[arg(long, value_name = "NAME|URL")]
    remote: Option<String>,
    /// The repository that commands without --repo mean in this clone
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: GitArgs,
}

#[derive(Serialize)]
struct Report<'a> {
    version: &'static str,
    store_id: &'a str,
    created: bool,
    remote: Option<&'a str>,
    default_repo: Option<&'a str>,
    published: usize,
    holds: &'a BTreeMap<String, usize>,
    round_trip_milliseconds: Option<u128>,
}

/// Makes or joins a store.
///
/// # Errors
/// When the remote cannot be used, or holds other records under the same names.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let Place { repository, deadline } = context.place()?;
    let named = args.repo.as_deref().map(|repo| RepoName::parse("target", repo)).transpose()?;
    let default_repo = match &named {
        Some(repo) => repo.to_string(),
        None => context.proposed_repo(&repository),
    };
    let remote = args.remote.clone().or_else(|| context.environment.text("AGENT_COORD_REMOTE"));
    if remote.as_deref().is_some_and(|remote| remote.trim().is_empty()) {
        return Err(CommandError::usage("--remote requires a non-empty value"));
    }
    warn_of_mirror(context, &repository, remote.as_deref());
    let ask = Initialise { remote, default_repo: Some(default_repo) };
    let done = initialise(&repository, &ask, context.ids, &deadline)?;
    if let Some(repo) = &named {
        repository.set_config("agent-coord.repo", repo.as_str(), &deadline)?;
    }
    if args.json {
        print_json(context, &done);
    } else {
        print_text(context, &done);
    }
    Ok(0)
}

/// `git push --mirror` deletes or rolls back every coordination ref of its remote.
fn warn_of_mirror(context: &mut Context<'_>, repository: &crate::git::Repository, remote: Option<&str>) {
    let configured = repository.config(REMOTE_KEY);
    let Some(name) = remote.or(configured.as_deref()) else { return };
    if repository.config_flag(&format!("remote.{name}.mirror")) == Some(true) {
        context.printer.warning(&format!(
            "remote.{name}.mirror is set: an ordinary `git push` to it rolls back coordination records; unset it, or share through another repository"
        ));
    }
}

fn print_json(context: &mut Context<'_>, done: &Initialised) {
    let report = Report {
        version: CONTRACT_VERSION,
        store_id: &done.store_id,
        created: done.created,
        remote: done.remote.as_deref(),
        default_repo: done.default_repo.as_deref(),
        published: done.published,
        holds: &done.holds,
        round_trip_milliseconds: done.round_trip.map(|time| time.as_millis()),
    };
    json::print(&mut context.printer, &report);
}

fn print_text(context: &mut Context<'_>, done: &Initialised) {
    let printer = &mut context.printer;
    let verb = if done.created { "made" } else { "joined" };
    let place =
        done.remote.as_deref().map_or("this clone only".to_owned(), |remote| format!("shared through {remote}"));
    printer.line(&format!("{verb} coordination store {} ({place})", done.store_id));
    if let Some(repo) = &done.default_repo {
        printer.line(&format!("default repo: {repo}"));
    }
    printer.line(&format!("holds: {}", in_words(&done.holds)));
    if done.published > 0 {
        printer.line(&format!("published {} local records", done.published));
    }
    if let Some(time) = done.round_trip {
        printer.line(&format!("round trip of one push: {} ms", time.as_millis()));
    }
    if let Some(left) = &done.left {
        printer.warning(&format!(
            "this clone knew store {left} before ({STORE_ID_KEY}); its records stay where they are, `agent-coord migrate` copies them"
        ));
    }
    match &done.remote {
        Some(remote) => {
            printer.message(&format!("note: everyone who can read {remote} can read the coordination records"))
        }
        None => printer.message(
            "note: only worktrees of this clone see these records; `agent-coord init --remote NAME` shares them",
        ),
    };
}

/// Returns counts as text: `2 claims, 1 heartbeats`, or `nothing`.
pub(super) fn in_words(holds: &BTreeMap<String, usize>) -> String {
    if holds.is_empty() {
        return "nothing yet".to_owned();
    }
    holds.iter().map(|(family, count)| format!("{count} {family}")).collect::<Vec<_>>().join(", ")
}
