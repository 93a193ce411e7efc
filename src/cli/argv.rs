//! The one place that reads argv (cli-contract.md sections 1.1 and 1.3).
//!
//! A command line is turned into a canonical one, which clap then gives its types: options by their full names as
//! `--name=value`, once each, integers in decimal, then `--` and the positionals. Shared options that the command does
//! not define are checked and remembered, but not passed on.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::integer;
use super::options::{Kind, Known, Lookup, Options};
use crate::error::CommandError;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// The overview of all commands.
    GlobalHelp,
    /// The options of one command, named by its path (`hooks`, `install`).
    CommandHelp(Vec<String>),
    /// A command to be run.
    Run(Line),
}

/// A command line in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The command, and its action where it has some.
    pub path: Vec<String>,
    /// What clap is given after the path.
    pub arguments: Vec<OsString>,
    /// Every option on the line, the command's own and the shared ones.
    pub supplied: Supplied,
    /// Positionals beyond those the command takes.
    pub leftover: Vec<String>,
    /// Whether `--deep` is on the line of a command that has no such option.
    pub foreign_deep: bool,
}

impl Line {
    /// Returns the command's name.
    #[must_use]
    pub fn command(&self) -> &str {
        self.path.first().map_or("", String::as_str)
    }
}

/// The options on a command line with all their values, by full name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Supplied {
    values: BTreeMap<String, Vec<OsString>>,
    positionals: Vec<String>,
}

impl Supplied {
    /// Tells whether the option is on the line.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// Returns what stands on the line besides options.
    #[must_use]
    pub fn positionals(&self) -> &[String] {
        &self.positionals
    }

    /// Returns how often the option is on the line.
    #[must_use]
    pub fn count(&self, name: &str) -> usize {
        self.values.get(name).map_or(0, Vec::len)
    }

    /// Returns the value that counts, the last one; empty for a flag.
    #[must_use]
    pub fn raw(&self, name: &str) -> Option<&OsStr> {
        self.values.get(name)?.last().map(OsString::as_os_str)
    }

    /// Returns the value that counts as text, when it is not blank.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        self.raw(name).map(|value| value.to_string_lossy().into_owned()).filter(|value| !value.trim().is_empty())
    }

    /// Tells whether the option is on the line with a blank value.
    #[must_use]
    pub fn is_blank(&self, name: &str) -> bool {
        self.has(name) && self.text(name).is_none()
    }

    fn add(&mut self, name: &str, value: OsString) {
        self.values.entry(name.to_owned()).or_default().push(value);
    }
}

/// A command line whose command is known and whose options are not judged yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// The command, and its action where it has some.
    pub path: Vec<String>,
    /// Whether it asks for help.
    pub asks_help: bool,
    /// Every option of a known name, as often as it is there.
    pub options: Vec<String>,
}

/// Reads a command line. `root` must have been built, so that every command knows its name.
///
/// # Errors
/// A usage error, worded as the contract words it.
pub fn read(arguments: &[OsString], root: &clap::Command) -> Result<Asked, CommandError> {
    read_with(arguments, root, |_| Ok(()))
}

/// Reads a command line, and has `before_options` do what comes before a bad option is reported.
///
/// # Errors
/// A usage error, worded as the contract words it, or that of `before_options`.
pub fn read_with(
    arguments: &[OsString],
    root: &clap::Command,
    before_options: impl FnOnce(&Outline) -> Result<(), CommandError>,
) -> Result<Asked, CommandError> {
    let Some((first, rest)) = arguments.split_first() else { return Ok(Asked::GlobalHelp) };
    let found = first.to_str().and_then(|name| root.find_subcommand(name));
    let (path, command, rest) = match found {
        Some(command) => descend(command, rest),
        None => (Vec::new(), root, rest),
    };
    let options = if path.is_empty() { Options::shared() } else { Options::of(command) };
    let tokens = tokenize(rest, &options);
    check_utf8(first, rest, &tokens)?;
    if matches!(first.to_str(), Some("-h" | "--help" | "help")) {
        return Ok(Asked::GlobalHelp);
    }
    if path.is_empty() {
        return Err(CommandError::usage(format!("unknown command: {}", first.to_string_lossy())));
    }
    before_options(&outline(&path, &tokens))?;
    canonical(path, command, tokens)
}

fn outline(path: &[String], tokens: &[(Token<'_>, Option<OsString>)]) -> Outline {
    let name = |(token, _): &(Token<'_>, Option<OsString>)| match token {
        Token::Option(known, _) => Some(known.name.clone()),
        _ => None,
    };
    Outline {
        path: path.to_vec(),
        asks_help: tokens.iter().any(|(token, _)| matches!(token, Token::Help)),
        options: tokens.iter().filter_map(name).collect(),
    }
}

/// Follows the actions that come right after a command's name.
fn descend<'a, 'b>(
    command: &'a clap::Command,
    mut rest: &'b [OsString],
) -> (Vec<String>, &'a clap::Command, &'b [OsString]) {
    let mut path = vec![command.get_name().to_owned()];
    let mut command = command;
    while let Some((next, after)) = rest.split_first() {
        let Some(action) = next.to_str().and_then(|name| command.find_subcommand(name)) else { break };
        path.push(action.get_name().to_owned());
        command = action;
        rest = after;
    }
    // The one command whose action may be left out.
    if path == ["config"]
        && let Some(show) = command.find_subcommand("show")
    {
        path.push("show".to_owned());
        command = show;
    }
    (path, command, rest)
}

#[derive(Debug)]
enum Token<'a> {
    /// An option with its value, already checked; flags have an empty one.
    Option(&'a Known, OsString),
    Help,
    Positional(OsString),
    /// A usage error; `--deep` is one that is reported before all others.
    Bad {
        message: String,
        deep: bool,
    },
}

/// Splits a command line. `raw` of each token is what may have to be UTF-8: nothing for the values of paths.
fn tokenize<'a>(arguments: &[OsString], options: &'a Options) -> Vec<(Token<'a>, Option<OsString>)> {
    let mut tokens = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let bytes = argument.as_bytes();
        if bytes == b"--" {
            tokens.extend(rest.map(|argument| (Token::Positional(argument.clone()), Some(argument.clone()))));
            break;
        }
        let token = match bytes.strip_prefix(b"--") {
            Some(long) => long_option(argument, long, &mut rest, options),
            None if bytes == b"-h" => (Token::Help, None),
            None if bytes.starts_with(b"-") && bytes.len() > 1 => {
                (bad("invalid option", argument), Some(argument.clone()))
            }
            None => (Token::Positional(argument.clone()), Some(argument.clone())),
        };
        tokens.push(token);
    }
    tokens
}

fn long_option<'a>(
    argument: &OsString,
    long: &[u8],
    rest: &mut std::slice::Iter<'_, OsString>,
    options: &'a Options,
) -> (Token<'a>, Option<OsString>) {
    let (name, value) = match long.iter().position(|byte| *byte == b'=') {
        Some(at) => (&long[..at], Some(OsStr::from_bytes(&long[at + 1..]).to_owned())),
        None => (long, None),
    };
    let name = String::from_utf8_lossy(name);
    let known = match options.find(&name) {
        Lookup::Found(known) => known,
        Lookup::Help if value.is_some() => return (bad("needless argument", argument), Some(argument.clone())),
        Lookup::Help => return (Token::Help, None),
        Lookup::Ambiguous => return (bad("ambiguous option", argument), Some(argument.clone())),
        Lookup::Unknown => {
            let deep = name.eq_ignore_ascii_case("deep");
            let message = format!("invalid option: {}", argument.to_string_lossy());
            return (Token::Bad { message, deep }, Some(argument.clone()));
        }
    };
    if known.kind == Kind::Flag {
        let token =
            if value.is_some() { bad("needless argument", argument) } else { Token::Option(known, OsString::new()) };
        return (token, Some(argument.clone()));
    }
    let joined = value.is_some();
    let Some(value) = value.or_else(|| rest.next().cloned()) else {
        return (bad("missing argument", argument), Some(argument.clone()));
    };
    let checked = if known.kind == Kind::Path { None } else { Some(value.clone()) };
    if known.kind != Kind::Integer {
        return (Token::Option(known, value), checked);
    }
    match value.to_str().and_then(integer::parse) {
        Some(number) => (Token::Option(known, number.to_string().into()), checked),
        None if joined => (bad("invalid argument", argument), checked),
        None => {
            let message = format!("invalid argument: {} {}", argument.to_string_lossy(), value.to_string_lossy());
            (Token::Bad { message, deep: false }, checked)
        }
    }
}

fn bad<'a>(what: &str, argument: &OsStr) -> Token<'a> {
    Token::Bad { message: format!("{what}: {}", argument.to_string_lossy()), deep: false }
}

fn check_utf8(first: &OsStr, rest: &[OsString], tokens: &[(Token<'_>, Option<OsString>)]) -> Result<(), CommandError> {
    let must_be_text = std::iter::once(first).chain(tokens.iter().filter_map(|(_, raw)| raw.as_deref()));
    let Some(found) = must_be_text.into_iter().find(|raw| raw.to_str().is_none()) else { return Ok(()) };
    // The whole argument is echoed, `--ttl=` included.
    let whole = rest.iter().find(|argument| argument.as_bytes().ends_with(found.as_bytes()));
    let shown = whole.map_or(found, OsString::as_os_str).to_string_lossy().into_owned();
    Err(CommandError::usage(format!("command-line argument must be valid UTF-8: {shown}")))
}

fn canonical(
    path: Vec<String>,
    command: &clap::Command,
    tokens: Vec<(Token<'_>, Option<OsString>)>,
) -> Result<Asked, CommandError> {
    let foreign_deep = tokens.iter().any(|(token, _)| matches!(token, Token::Bad { deep: true, .. }));
    if foreign_deep {
        return Ok(Asked::Run(Line {
            path,
            arguments: Vec::new(),
            supplied: Supplied::default(),
            leftover: Vec::new(),
            foreign_deep,
        }));
    }
    let mut supplied = Supplied::default();
    let mut own: Vec<(&Known, OsString)> = Vec::new();
    let mut positionals = Vec::new();
    for (token, _) in tokens {
        match token {
            Token::Help => return Ok(Asked::CommandHelp(path)),
            Token::Bad { message, .. } => return Err(CommandError::usage(message)),
            Token::Positional(text) => positionals.push(text),
            Token::Option(known, value) => {
                supplied.add(&known.name, value.clone());
                if known.own {
                    if !known.accumulates {
                        own.retain(|(other, _)| other.name != known.name);
                    }
                    own.push((known, value));
                }
            }
        }
    }
    supplied.positionals = positionals.iter().map(|text| text.to_string_lossy().into_owned()).collect();
    let room = room_for_positionals(command);
    let leftover = positionals.iter().skip(room).map(|text| text.to_string_lossy().into_owned()).collect();
    positionals.truncate(room);
    let mut arguments: Vec<OsString> = own.into_iter().map(|(known, value)| spelled(known, &value)).collect();
    arguments.push("--".into());
    arguments.extend(positionals);
    Ok(Asked::Run(Line { path, arguments, supplied, leftover, foreign_deep }))
}

fn spelled(known: &Known, value: &OsStr) -> OsString {
    let mut text = OsString::from(format!("--{}", known.name));
    if known.kind != Kind::Flag {
        text.push("=");
        text.push(value);
    }
    text
}

/// Returns how many positionals the command takes at most.
fn room_for_positionals(command: &clap::Command) -> usize {
    command
        .get_positionals()
        .map(|positional| positional.get_num_args().map_or(1, |range| range.max_values()))
        .fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command};

    fn root() -> Command {
        let integer = clap::value_parser!(i64);
        let mut root = Command::new("agent-coord")
            .subcommand(
                Command::new("claim")
                    .arg(Arg::new("target-position"))
                    .arg(Arg::new("target").long("target"))
                    .arg(Arg::new("ttl").long("ttl").value_parser(integer).allow_negative_numbers(true))
                    .arg(Arg::new("synthetic").long("synthetic").action(ArgAction::SetTrue))
                    .arg(Arg::new("prefix").long("prefix").action(ArgAction::Append)),
            )
            .subcommand(Command::new("hooks").subcommand(Command::new("install")));
        root.build();
        root
    }

    fn read_words(words: &[&str]) -> Result<Asked, String> {
        let arguments: Vec<OsString> = words.iter().map(OsString::from).collect();
        read(&arguments, &root()).map_err(|error| error.message)
    }

    fn canonical_of(words: &[&str]) -> Vec<String> {
        match read_words(words) {
            Ok(Asked::Run(line)) => line.arguments.iter().map(|text| text.to_string_lossy().into_owned()).collect(),
            other => panic!("{other:?}"),
        }
    }

    fn error_of(words: &[&str]) -> String {
        read_words(words).unwrap_err()
    }

    #[test]
    fn a_command_line_becomes_canonical() {
        assert_eq!(canonical_of(&["claim", "--TTL", "0x10", "42"]), ["--ttl=16", "--", "42"]);
        assert_eq!(canonical_of(&["claim", "42", "--tt=-5"]), ["--ttl=-5", "--", "42"]);
    }

    #[test]
    fn an_option_takes_the_next_argument_even_when_it_looks_like_one() {
        assert_eq!(canonical_of(&["claim", "--target", "--ttl"]), ["--target=--ttl", "--"]);
        assert_eq!(canonical_of(&["claim", "--target", "--"]), ["--target=--", "--"]);
    }

    #[test]
    fn two_dashes_end_the_options() {
        assert_eq!(canonical_of(&["claim", "--", "--ttl"]), ["--", "--ttl"]);
    }

    #[test]
    fn the_last_value_wins_except_where_values_accumulate() {
        assert_eq!(canonical_of(&["claim", "--ttl", "1", "--ttl=2"]), ["--ttl=2", "--"]);
        assert_eq!(canonical_of(&["claim", "--prefix", "a", "--prefix", "b"]), ["--prefix=a", "--prefix=b", "--"]);
    }

    #[test]
    fn shared_options_of_other_commands_are_checked_remembered_and_dropped() {
        let Ok(Asked::Run(line)) = read_words(&["claim", "--severity", "P0", "--backend=o/r"]) else { panic!() };
        assert_eq!(line.arguments, ["--"]);
        assert_eq!(line.supplied.text("backend").as_deref(), Some("o/r"));
        assert_eq!(error_of(&["claim", "--generation", "x"]), "invalid argument: --generation x");
    }

    #[test]
    fn usage_errors_read_as_the_contract_says() {
        assert_eq!(error_of(&["frobnicate"]), "unknown command: frobnicate");
        assert_eq!(error_of(&["claim", "--x"]), "invalid option: --x");
        assert_eq!(error_of(&["claim", "-x"]), "invalid option: -x");
        assert_eq!(error_of(&["claim", "--ttl"]), "missing argument: --ttl");
        assert_eq!(error_of(&["claim", "--ttl", "abc"]), "invalid argument: --ttl abc");
        assert_eq!(error_of(&["claim", "--ttl=abc"]), "invalid argument: --ttl=abc");
        assert_eq!(error_of(&["claim", "--a"]), "ambiguous option: --a");
        assert_eq!(error_of(&["claim", "--json=1"]), "needless argument: --json=1");
    }

    #[test]
    fn help_wins_over_what_follows_it_and_loses_to_what_precedes_it() {
        assert_eq!(read_words(&["claim", "-h", "--x"]), Ok(Asked::CommandHelp(vec!["claim".into()])));
        assert_eq!(error_of(&["claim", "--x", "-h"]), "invalid option: --x");
        assert!(read_words(&["claim", "help"]).is_ok(), "the bare word is a positional");
        for words in [&[][..], &["help", "claim"], &["-h"], &["--help"]] {
            assert_eq!(read_words(words), Ok(Asked::GlobalHelp));
        }
    }

    #[test]
    fn positionals_beyond_those_taken_are_kept_for_the_message() {
        let Ok(Asked::Run(line)) = read_words(&["claim", "1", "a", "b"]) else { panic!() };
        assert_eq!(line.leftover, ["a", "b"]);
    }

    #[test]
    fn an_action_follows_its_command() {
        let Ok(Asked::Run(line)) = read_words(&["hooks", "install"]) else { panic!() };
        assert_eq!(line.path, ["hooks", "install"]);
    }

    #[test]
    fn only_the_values_of_paths_may_be_raw_bytes() {
        let raw = OsStr::from_bytes(b"a\xff").to_owned();
        let with = |words: [OsString; 3]| read(&words, &root()).map_err(|error| error.message);
        assert!(with(["claim".into(), "--state-root".into(), raw.clone()]).is_ok());
        let refused = Err("command-line argument must be valid UTF-8: a\u{fffd}".to_owned());
        assert_eq!(with(["claim".into(), "--target".into(), raw.clone()]), refused);
        assert_eq!(with(["frobnicate".into(), "x".into(), raw]), refused, "checked before anything else");
    }
}
