//! The commands, one file each: what it takes and what it does. This file is the dispatch table.

pub mod arguments;
pub mod attention;
pub mod batch_audit;
pub mod canary;
pub mod claim;
pub mod config;
pub mod drain;
pub mod heartbeat;
pub mod help;
pub mod hook;
pub mod hooks;
pub mod init;
pub mod log;
pub mod ready;
pub mod record_event;
pub mod register_batch;
pub mod release;
pub mod status;
pub mod sync;
pub mod version;

#[cfg(test)]
mod tests;

use clap::{CommandFactory, Parser};

use crate::cli::context::Context;
use crate::error::CommandError;

/// A command with its arguments. The help of each is the doc comment of its arguments.
#[derive(Debug, Parser)]
#[expect(missing_docs, reason = "a doc comment here would take the place of that help")]
#[allow(clippy::large_enum_variant, reason = "a process makes one")]
#[command(
    name = "agent-coord",
    about = "Git-native coordination for coding agents",
    disable_help_subcommand = true,
    disable_version_flag = true
)]
pub enum Command {
    Init(init::Args),
    Claim(claim::Args),
    Heartbeat(heartbeat::Args),
    Release(release::Args),
    RegisterBatch(register_batch::Args),
    RecordEvent(record_event::Args),
    Status(status::Args),
    Log(log::Args),
    AttentionUpsert(attention::upsert::Args),
    AttentionResolve(attention::resolve::Args),
    AttentionGet(attention::get::Args),
    AttentionList(attention::list::Args),
    BatchAudit(batch_audit::Args),
    Ready(ready::Args),
    Drain(drain::Args),
    Sync(sync::Args),
    Hooks(hooks::Args),
    Hook(hook::Args),
    Canary(canary::Args),
    Config(config::Args),
    Version(version::Args),
}

impl Command {
    /// Runs the command and returns its exit code.
    ///
    /// # Errors
    /// When it did not do what was asked.
    pub fn run(self, context: &mut Context<'_>) -> Result<u8, CommandError> {
        match self {
            Self::Init(args) => init::run(&args, context),
            Self::Claim(args) => claim::run(&args, context),
            Self::Heartbeat(args) => heartbeat::run(&args, context),
            Self::Release(args) => release::run(&args, context),
            Self::RecordEvent(args) => record_event::run(&args, context),
            Self::Status(args) => status::run(&args, context),
            Self::Log(args) => log::run(&args, context),
            Self::AttentionUpsert(args) => attention::upsert::run(&args, context),
            Self::AttentionResolve(args) => attention::resolve::run(&args, context),
            Self::AttentionGet(args) => attention::get::run(&args, context),
            Self::AttentionList(args) => attention::list::run(&args, context),
            Self::RegisterBatch(args) => register_batch::run(&args, context),
            Self::BatchAudit(args) => batch_audit::run(&args, context),
            Self::Ready(args) => ready::run(&args, context),
            Self::Drain(args) => drain::run(&args, context),
            Self::Sync(args) => sync::run(&args, context),
            Self::Hooks(args) => hooks::run(&args, context),
            Self::Hook(args) => hook::run(&args, context),
            Self::Canary(args) => canary::run(&args, context),
            Self::Config(args) => config::run(&args, context),
            Self::Version(args) => version::run(&args, context),
        }
    }
}

/// Returns the description of the whole command line.
#[must_use]
pub fn root() -> clap::Command {
    let mut root = Command::command();
    root.build();
    root
}

/// Options of a command that is about the git store and no other.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct GitArgs {
    /// The git directory whose refs hold the state; the repository around when absent
    #[arg(long, value_name = "PATH")]
    pub git_dir: Option<std::path::PathBuf>,
}

/// Options that every command with a store has.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StoreArgs {
    /// The git directory whose refs hold the state; the repository around when absent
    #[arg(long, value_name = "PATH")]
    pub git_dir: Option<std::path::PathBuf>,
    /// The directory that holds the state, on this machine alone
    #[arg(long, value_name = "PATH")]
    pub state_root: Option<std::path::PathBuf>,
}
