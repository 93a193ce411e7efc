//! `config show | set` (cli-contract.md sections 13 and 14).

mod set;
mod show;

use crate::cli::context::Context;
use crate::error::CommandError;

/// Shows what agent-coord is configured to, or changes the configuration of this user.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord config
  agent-coord config show --json
  agent-coord config set --machine-id m5 --policy required")]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show defaults, vocabularies, exit codes, and which store is selected by whom (the default)
    Show(show::Args),
    /// Change the user file; what is not named is kept
    Set(set::Args),
}

/// Runs one action.
///
/// # Errors
/// When the configuration cannot be read or written safely.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    match &args.action {
        Action::Show(args) => show::run(args, context),
        Action::Set(args) => set::run(args, context),
    }
}

#[cfg(test)]
mod tests;
