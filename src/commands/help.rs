//! The overview of all commands, and the options of one.

use std::fmt::Write as _;

const COMMON_OPTIONS: &str = "\
Common options:
  --agent-id ID       who acts; inferred in a git repository
  --repo OWNER/REPO   the repository a target belongs to; inferred in a git repository
  --target NAME       what is claimed: an issue, a pull request, a lane
  --git-dir PATH      the git directory whose refs hold the state
  --state-root PATH   the directory that holds the state, on this machine alone
  --json              machine output where supported
  -h, --help          the options of a command
";

const EXAMPLES: &str = "\
Examples:
  agent-coord init --remote origin
  agent-coord hooks install
  agent-coord claim 42
  agent-coord heartbeat --phase implementing
  agent-coord status
  agent-coord release 42
";

const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 usage, 2 the state is unknown, 3 the claim is held by another
";

/// Returns the global help (cli-contract.md section 18).
#[must_use]
pub fn overview(root: &clap::Command) -> String {
    let mut text = String::from("Usage: agent-coord <command> [options]\n\nCommands:\n");
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let about = about.trim_end_matches('.');
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<14} {about}", command.get_name());
    }
    format!("{text}\n{COMMON_OPTIONS}\n{EXAMPLES}\n{EXIT_CODES}")
}

/// Returns the help of one command, named by its path.
#[must_use]
pub fn of_command(root: &clap::Command, path: &[String], colour: bool) -> String {
    let found = path.iter().try_fold(root, |command, name| command.find_subcommand(name));
    let help = found.unwrap_or(root).clone().render_long_help();
    if colour { help.ansi().to_string() } else { help.to_string() }
}
