//! A person whose other tools go to a server, while this run would write to a directory that the fleet never reads
//! (config-and-security.md section 8).

use std::path::{Path, PathBuf};

use super::{Asking, Chosen, Selected, Tier};
use crate::cli::env_vars;
use crate::cli::user_config::paths;

/// What there is to say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SplitBrain {
    /// Nothing.
    No,
    /// The command may not write.
    Refuses(String),
    /// The command reads, and warns (without `warning: `).
    Advises(String),
    /// The command reports it itself.
    Reports {
        /// The file that configures a server.
        file: PathBuf,
        /// What to say after the report.
        message: String,
    },
}

const WRITES: [&str; 8] = [
    "claim",
    "release",
    "heartbeat",
    "record-event",
    "register-batch",
    "attention-upsert",
    "attention-resolve",
    "drain",
];
const READS: [&str; 6] = ["status", "log", "batch-audit", "attention-get", "attention-list", "ready"];

/// Judges one run.
pub(super) fn judge(asking: &Asking<'_>, selected: &Selected) -> SplitBrain {
    let implicit = selected.tier == Tier::Implicit;
    let is_local = matches!(selected.chosen, Chosen::Directory(_)) || implicit;
    let role = match asking.command {
        command if WRITES.contains(&command) && implicit => Role::Writes,
        "doctor" if implicit => Role::Reports,
        command if READS.contains(&command) && is_local => Role::Reads,
        _ => return SplitBrain::No,
    };
    let Some(file) = file(asking) else { return SplitBrain::No };
    let place = file.display();
    match role {
        Role::Reads => SplitBrain::Advises(format!(
            "split-brain configuration: {place} configures AGENT_COORD_API_URL, but this CLI is using the local backend. \
             Load that env file for fleet reads or remove it if local mode is intended."
        )),
        Role::Writes => SplitBrain::Refuses(refusal(&file)),
        Role::Reports => SplitBrain::Reports { message: refusal(&file), file },
    }
}

enum Role {
    Writes,
    Reads,
    Reports,
}

fn refusal(file: &Path) -> String {
    let place = file.display();
    format!(
        "split-brain configuration: {place} configures AGENT_COORD_API_URL, but this CLI resolved to the implicit local \
         backend; refusing writes that would land on the local state root while a fleet API URL is configured. Source \
         {place} for fleet writes, pass --state-root PATH to choose a local root explicitly, or set AGENT_COORD_LOCAL=1 \
         to opt into local mode."
    )
}

/// Returns the file that configures a server, unless the person has said that this machine alone is meant.
fn file(asking: &Asking<'_>) -> Option<PathBuf> {
    let settled = asking.process.text(env_vars::API_URL.name).is_some()
        || is_opt_in(asking.environment.text(env_vars::LOCAL.name).as_deref())
        || asking.supplied.has("stack-json")
        || asking.supplied.has("ignore-user-config");
    if settled {
        return None;
    }
    paths::consumer_files(asking.process)
        .into_iter()
        .find(|file| std::fs::read_to_string(file).is_ok_and(|text| configures_url(&text)))
}

fn is_opt_in(value: Option<&str>) -> bool {
    value.is_some_and(|value| matches!(value.trim().to_lowercase().as_str(), "1" | "true" | "yes"))
}

/// Tells whether shell text assigns a URL. It is scanned, never run.
fn configures_url(text: &str) -> bool {
    text.lines().filter_map(assigned).any(|value| !value.trim().is_empty())
}

fn assigned(line: &str) -> Option<String> {
    let line = line.trim_start();
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace));
    let raw = exported.map_or(line, str::trim_start).strip_prefix("AGENT_COORD_API_URL=")?;
    Some(first_word(raw))
}

/// Returns the word that text begins with, quotes taken off; one that is not closed keeps the rest.
fn first_word(raw: &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    for character in raw.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => word.push(character),
            None if character.is_whitespace() || ";&|<>()".contains(character) => break,
            None if matches!(character, '\'' | '"') => quote = Some(character),
            None => word.push(character),
        }
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_found_without_running_anything() {
        for text in [
            "AGENT_COORD_API_URL=https://x",
            "# hello\n  export  AGENT_COORD_API_URL='https://x' # fleet",
            "AGENT_COORD_API_URL=\"\"'https://x'; true",
            "AGENT_COORD_API_URL='https://x",
            "AGENT_COORD_API_URL=#x",
            "AGENT_COORD_API_URL=$FLEET_URL",
        ] {
            assert!(configures_url(text), "{text}");
        }
        for text in [
            "",
            "AGENT_COORD_API_URL=",
            "AGENT_COORD_API_URL= # https://x",
            "AGENT_COORD_API_URL='  '",
            "AGENT_COORD_API_URL=; export AGENT_COORD_API_URL",
            "#AGENT_COORD_API_URL=https://x",
            "MY_AGENT_COORD_API_URL=https://x",
            "echo AGENT_COORD_API_URL=https://x",
        ] {
            assert!(!configures_url(text), "{text}");
        }
    }

    #[test]
    fn only_a_clear_yes_opts_in() {
        for value in ["1", " TRUE ", "Yes"] {
            assert!(is_opt_in(Some(value)));
        }
        for value in [None, Some(""), Some("0"), Some("on"), Some("y")] {
            assert!(!is_opt_in(value));
        }
    }
}
