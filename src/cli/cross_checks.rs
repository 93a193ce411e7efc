//! Checks between options, in the contract's order (cli-contract.md section 1.1 step 6 and the end of section 1.3).

use super::argv::{Line, Outline, Supplied};
use crate::error::CommandError;

/// The options of a terminal closeout, in the order messages name them.
const CLOSEOUT: [&str; 4] = ["terminal", "pr-state", "evidence-url", "workspace"];

/// The options that select a backend.
pub const SELECTORS: [&str; 4] = ["state-root", "git-dir", "api-url", "backend"];

/// Commands that select a store, or report which one is selected.
const BACKEND_COMMANDS: [&str; 21] = [
    "claim",
    "release",
    "heartbeat",
    "register-batch",
    "record-event",
    "status",
    "log",
    "batch-audit",
    "gc",
    "doctor",
    "attention-upsert",
    "attention-resolve",
    "attention-get",
    "attention-list",
    "drain",
    "ready",
    "sync",
    "hook",
    "init",
    "migrate",
    "config",
];

/// Selectors, with the option that goes with one of them, that mean nothing to `config set`.
const FOREIGN_TO_CONFIG_SET: [&str; 4] = ["state-root", "git-dir", "backend", "ref"];

/// Checks a whole command line.
///
/// # Errors
/// The first rule it breaks.
pub fn check(line: &Line) -> Result<(), CommandError> {
    if line.foreign_deep {
        return Err(CommandError::usage("--deep is only valid for doctor"));
    }
    if !line.leftover.is_empty() {
        return Err(CommandError::usage(format!("unexpected arguments: {}", line.leftover.join(" "))));
    }
    check_closeout(line)?;
    if line.supplied.has("launch-prompt") && line.command() != "register-batch" {
        return Err(CommandError::usage("--launch-prompt is only valid for register-batch"));
    }
    check_config_set(line)?;
    check_bypass(line)?;
    check_selectors(&line.supplied)
}

fn check_closeout(line: &Line) -> Result<(), CommandError> {
    let supplied = |names: &[&'static str]| names.iter().copied().find(|name| line.supplied.has(name));
    let message = match line.command() {
        "release" if line.supplied.raw("terminal").is_none_or(|value| value.is_empty()) => {
            supplied(&CLOSEOUT[1..]).map(|name| format!("--{name} requires --terminal"))
        }
        "release" => None,
        "record-event" if line.supplied.raw("type").is_some_and(|value| value == "lane_closed") => None,
        "record-event" => supplied(&CLOSEOUT).map(|_| "terminal-only options require --type lane_closed".to_owned()),
        name if name.starts_with("attention-") => {
            supplied(&CLOSEOUT[..3]).map(|name| format!("--{name} is only valid with terminal closeout"))
        }
        _ => supplied(&CLOSEOUT).map(|name| format!("--{name} is only valid with terminal closeout")),
    };
    message.map_or(Ok(()), |message| Err(CommandError::usage(message)))
}

fn check_config_set(line: &Line) -> Result<(), CommandError> {
    let foreign = FOREIGN_TO_CONFIG_SET.iter().find(|name| is_config_set(&line.path) && line.supplied.has(name));
    foreign.map_or(Ok(()), |name| Err(CommandError::usage(format!("--{name} is not valid for config set"))))
}

fn is_config_set(path: &[String]) -> bool {
    path == ["config", "set"]
}

/// Tells whether a command line, its other options not judged yet, may leave the user file out.
#[must_use]
pub fn accepts_bypass(outline: &Outline) -> bool {
    let has = |name: &str| outline.options.iter().any(|option| option == name);
    let selectors = outline.options.iter().filter(|option| SELECTORS.contains(&option.as_str())).count();
    let command = outline.path.first().map_or("", String::as_str);
    has("ignore-user-config") && selectors == 1 && BACKEND_COMMANDS.contains(&command) && !is_config_set(&outline.path)
}

/// `--ignore-user-config` goes with exactly one selector (config-and-security.md section 9).
fn check_bypass(line: &Line) -> Result<(), CommandError> {
    if !line.supplied.has("ignore-user-config") {
        return Ok(());
    }
    if is_config_set(&line.path) {
        return Err(CommandError::usage("--ignore-user-config is not valid for config set"));
    }
    if !BACKEND_COMMANDS.contains(&line.command()) {
        let message = "--ignore-user-config is only valid for commands that select or report a coordination backend";
        return Err(CommandError::usage(message));
    }
    let selectors: usize = SELECTORS.iter().map(|name| line.supplied.count(name)).sum();
    if selectors == 1 {
        return Ok(());
    }
    let message =
        "--ignore-user-config requires exactly one explicit backend selector: --state-root, --api-url, or --backend";
    Err(CommandError::usage(message))
}

fn check_selectors(supplied: &Supplied) -> Result<(), CommandError> {
    let blank = SELECTORS.iter().chain(&["ref"]).find(|name| supplied.is_blank(name));
    blank.map_or(Ok(()), |name| Err(CommandError::usage(format!("--{name} requires a non-empty value"))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::argv::{self, Asked};
    use std::ffi::OsString;

    fn error_of(words: &[&str]) -> Option<String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        match argv::read(&arguments, &crate::commands::root()) {
            Ok(Asked::Run(line)) => check(&line).err().map(|error| error.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn closeout_options_need_a_closeout() {
        assert_eq!(error_of(&["release", "--pr-state", "x"]).unwrap(), "--pr-state requires --terminal");
        assert_eq!(
            error_of(&["release", "--terminal", "", "--workspace", "x"]).unwrap(),
            "--workspace requires --terminal"
        );
        assert_eq!(error_of(&["release", "--terminal", "done", "--workspace", "x"]), None);
        assert_eq!(
            error_of(&["record-event", "--type", "x", "--terminal", "done"]).unwrap(),
            "terminal-only options require --type lane_closed"
        );
        assert_eq!(error_of(&["record-event", "--type", "lane_closed", "--terminal", "done"]), None);
        assert_eq!(
            error_of(&["status", "--workspace", "x", "--pr-state", "y"]).unwrap(),
            "--pr-state is only valid with terminal closeout"
        );
    }

    #[test]
    fn options_of_one_command_are_refused_elsewhere() {
        assert_eq!(
            error_of(&["claim", "--launch-prompt", "-"]).unwrap(),
            "--launch-prompt is only valid for register-batch"
        );
        assert_eq!(error_of(&["claim", "--nope", "--deep"]).unwrap(), "--deep is only valid for doctor");
    }

    #[test]
    fn the_first_broken_rule_is_the_one_reported() {
        assert_eq!(error_of(&["version", "a", "b", "--workspace", "x"]).unwrap(), "unexpected arguments: a b");
    }

    #[test]
    fn a_selector_is_never_blank_and_the_bypass_needs_exactly_one() {
        assert_eq!(error_of(&["status", "--git-dir", " "]).unwrap(), "--git-dir requires a non-empty value");
        assert_eq!(error_of(&["status", "--ignore-user-config", "--git-dir", "x"]), None);
        assert!(error_of(&["status", "--ignore-user-config"]).unwrap().starts_with("--ignore-user-config requires"));
        assert!(error_of(&["status", "--ignore-user-config", "--git-dir=x", "--git-dir=y"]).is_some());
        assert!(error_of(&["version", "--ignore-user-config", "--git-dir", "x"]).unwrap().contains("only valid for"));
    }
}
