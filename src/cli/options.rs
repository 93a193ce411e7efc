//! The options a command line may hold: those of its command, as clap knows them, and the shared ones
//! (cli-contract.md section 1.3).

use std::any::TypeId;
use std::ffi::OsString;
use std::path::PathBuf;

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nothing.
    Flag,
    /// Text, which must be UTF-8.
    Text,
    /// An integer in any of the accepted spellings.
    Integer,
    /// A path, kept as raw bytes.
    Path,
}

/// One option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Its long name, without dashes.
    pub name: String,
    /// What follows it.
    pub kind: Kind,
    /// Whether each use adds a value; otherwise the last one counts.
    pub accumulates: bool,
    /// Whether the command itself defines it; otherwise it is accepted and dropped.
    pub own: bool,
}

/// Options that every command accepts; a command ignores those it does not define itself.
///
/// A later command adds its rows here only when its options are in the contract's shared list.
const SHARED: &[(&str, Kind)] = &[
    ("backend", Kind::Text),
    ("ref", Kind::Text),
    ("state-root", Kind::Path),
    ("api-url", Kind::Text),
    ("git-dir", Kind::Path),
    ("ignore-user-config", Kind::Flag),
    ("json", Kind::Flag),
    ("agent-id", Kind::Text),
    ("repo", Kind::Text),
    ("target", Kind::Text),
    ("batch-id", Kind::Text),
    ("branch", Kind::Text),
    ("thread-handle", Kind::Text),
    ("chat-handle", Kind::Text),
    ("host", Kind::Text),
    ("pr-url", Kind::Text),
    ("dashboard-url", Kind::Text),
    ("operator", Kind::Text),
    ("phase", Kind::Text),
    ("instance-id", Kind::Text),
    ("generation", Kind::Integer),
    ("ttl", Kind::Integer),
    ("status", Kind::Text),
    ("terminal", Kind::Text),
    ("pr-state", Kind::Text),
    ("evidence-url", Kind::Text),
    ("workspace", Kind::Text),
    ("synthetic", Kind::Flag),
    ("synthetic-kind", Kind::Text),
    ("type", Kind::Text),
    ("lane", Kind::Text),
    ("message", Kind::Text),
    ("reason", Kind::Text),
    ("from-route", Kind::Text),
    ("to-route", Kind::Text),
    ("evidence", Kind::Text),
    ("severity", Kind::Text),
    ("category", Kind::Text),
    ("kind", Kind::Text),
    ("file", Kind::Path),
    ("launch-prompt", Kind::Path),
    ("install-dir", Kind::Path),
    ("status-state-root", Kind::Path),
    ("profile", Kind::Path),
    ("no-profile", Kind::Flag),
];

/// What a long name, as typed, turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// `--help`.
    Help,
    /// This option.
    Found(&'a Known),
    /// A prefix of several.
    Ambiguous,
    /// Nothing we know.
    Unknown,
}

/// All options of one command line.
#[derive(Debug, Clone, Default)]
pub struct Options {
    known: Vec<Known>,
}

impl Options {
    /// Returns the shared options alone, for a command line whose command is not known.
    #[must_use]
    pub fn shared() -> Self {
        let row = |&(name, kind): &(&str, Kind)| Known { name: name.to_owned(), kind, accumulates: false, own: false };
        Self { known: SHARED.iter().map(row).collect() }
    }

    /// Returns the options of `command` and the shared ones.
    #[must_use]
    pub fn of(command: &clap::Command) -> Self {
        let mut options = Self::shared();
        for argument in command.get_arguments() {
            let Some(name) = argument.get_long().filter(|name| *name != "help") else { continue };
            options.known.retain(|known| known.name != name);
            options.known.push(Known {
                name: name.to_owned(),
                kind: kind_of(argument),
                accumulates: matches!(argument.get_action(), clap::ArgAction::Append),
                own: true,
            });
        }
        options
    }

    /// Finds the option meant by a long name: any case, `_` for `-`, any unique prefix; an exact match beats a prefix.
    #[must_use]
    pub fn find(&self, typed: &str) -> Lookup<'_> {
        let wanted = typed.to_ascii_lowercase().replace('_', "-");
        if let Some(exact) = self.known.iter().find(|known| known.name == wanted) {
            return Lookup::Found(exact);
        }
        if wanted.is_empty() {
            return Lookup::Unknown;
        }
        let help = "help".starts_with(&wanted);
        let mut candidates = self.known.iter().filter(|known| known.name.starts_with(&wanted));
        match (help, candidates.next(), candidates.next()) {
            (true, None, _) => Lookup::Help,
            (false, Some(only), None) => Lookup::Found(only),
            (false, None, _) => Lookup::Unknown,
            _ if wanted == "help" => Lookup::Help,
            _ => Lookup::Ambiguous,
        }
    }
}

fn kind_of(argument: &clap::Arg) -> Kind {
    if !argument.get_action().takes_values() {
        return Kind::Flag;
    }
    let value = argument.get_value_parser().type_id();
    if value == TypeId::of::<PathBuf>() || value == TypeId::of::<OsString>() {
        Kind::Path
    } else if value == TypeId::of::<i64>() {
        Kind::Integer
    } else {
        Kind::Text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name_of(typed: &str) -> Option<String> {
        match Options::shared().find(typed) {
            Lookup::Found(known) => Some(known.name.clone()),
            _ => None,
        }
    }

    #[test]
    fn names_match_in_any_case_with_underscores_and_by_unique_prefix() {
        assert_eq!(name_of("AGENT_ID").as_deref(), Some("agent-id"));
        assert_eq!(name_of("ag").as_deref(), Some("agent-id"));
        assert_eq!(name_of("gen").as_deref(), Some("generation"));
    }

    #[test]
    fn an_exact_name_beats_a_longer_one_it_begins() {
        assert_eq!(name_of("synthetic").as_deref(), Some("synthetic"));
        assert_eq!(Options::shared().find("synth"), Lookup::Ambiguous);
        assert_eq!(name_of("evidence").as_deref(), Some("evidence"));
    }

    #[test]
    fn help_is_an_option_of_every_command() {
        assert_eq!(Options::shared().find("HELP"), Lookup::Help);
        assert_eq!(Options::shared().find("he"), Lookup::Help);
        assert_eq!(Options::shared().find("h"), Lookup::Ambiguous, "--help and --host");
        assert_eq!(Options::shared().find("nope"), Lookup::Unknown);
    }
}
