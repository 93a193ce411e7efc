//! The commands, one file each: what it takes and what it does. This file is the dispatch table.

pub mod help;
pub mod init;
pub mod status;
pub mod sync;
pub mod version;

use clap::{CommandFactory, Parser};

use crate::cli::context::Context;
use crate::error::CommandError;

/// A command with its arguments.
#[derive(Debug, Parser)]
#[command(
    name = "agent-coord",
    about = "Git-native coordination for coding agents",
    disable_help_subcommand = true,
    disable_version_flag = true
)]
pub enum Command {
    /// Make the coordination store of this clone, or join a shared one.
    Init(init::Args),
    /// Show who holds what, and who is at work.
    Status(status::Args),
    /// Bring this clone's cache of the shared store up to date.
    Sync(sync::Args),
    /// Show the versions of the command line and of the records.
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
            Self::Sync(args) => sync::run(&args, context),
            Self::Status(args) => status::run(&args, context),
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

/// Options that every command with a store has.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct StoreArgs {
    /// The git directory whose refs hold the state; the repository around when absent
    #[arg(long, value_name = "PATH")]
    pub git_dir: Option<std::path::PathBuf>,
}
