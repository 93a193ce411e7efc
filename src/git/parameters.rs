//! What `git -c key=value` hands down to the hooks it runs: `GIT_CONFIG_PARAMETERS`, which gix does not read.
//!
//! Only the settings that agent-coord decides by are taken over. Anything else in there is for git itself, which gets
//! the variable as it is.

/// Returns the settings in `GIT_CONFIG_PARAMETERS` that matter here, each as `key=value`, in the order given.
///
/// What cannot be understood ends the list: git refuses such a variable, so nothing of it is in force.
#[must_use]
pub fn settings(parameters: &str) -> Vec<String> {
    pairs(parameters)
        .into_iter()
        .filter(|(key, _)| matters(key))
        .map(|(key, value)| format!("{key}={}", value.as_deref().unwrap_or("true")))
        .collect()
}

fn matters(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let section = key.split_once('.').map(|(section, _)| section);
    matches!(section, Some("agent-coord" | "remote" | "url"))
        || matches!(key.as_str(), "core.hookspath" | "core.sshcommand")
}

/// Parses both spellings: `'key'='value'` and, of a git before 2.30, `'key=value'`. No value = yes.
fn pairs(parameters: &str) -> Vec<(String, Option<String>)> {
    let mut pairs = Vec::new();
    let mut rest = parameters.trim_start();
    while let Some((word, after)) = quoted(rest) {
        let Some(after) = after.strip_prefix('=') else {
            let (key, value) = word.split_once('=').map_or((word.as_str(), None), |(key, value)| (key, Some(value)));
            pairs.push((key.to_owned(), value.map(str::to_owned)));
            rest = after.trim_start();
            continue;
        };
        let (value, after) = match quoted(after) {
            Some((value, after)) => (Some(value), after),
            None => (None, after),
        };
        pairs.push((word, value));
        rest = after.trim_start();
    }
    pairs
}

/// Takes one word in shell quotes off the front: `'it'\''s'` is `it's`.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut rest = text.strip_prefix('\'')?;
    loop {
        let end = rest.find('\'')?;
        word.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        let mut after = rest.chars();
        match (after.next(), after.next(), after.next()) {
            (Some('\\'), Some(escaped @ ('\'' | '!')), Some('\'')) => {
                word.push(escaped);
                rest = after.as_str();
            }
            _ => return Some((word, rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::settings;

    #[test]
    fn both_spellings_are_read_and_a_missing_value_means_yes() {
        for text in ["'remote.o.mirror'='true'", "'remote.o.mirror=true'", "'remote.o.mirror'=", "'remote.o.mirror'"] {
            assert_eq!(settings(text), ["remote.o.mirror=true"], "{text}");
        }
        let several = "'core.pager'='cat' 'agent-coord.agentId'='it'\\''s'\\!'' 'remote.a=b.url'='x y=z'";
        assert_eq!(settings(several), ["agent-coord.agentId=it's!", "remote.a=b.url=x y=z"]);
    }

    #[test]
    fn what_is_for_git_alone_or_makes_no_sense_is_left_out() {
        for text in ["'core.worktree'='/x'", "'extensions.objectFormat'='sha256'", "nonsense", "'open", "", "  "] {
            assert!(settings(text).is_empty(), "{text}");
        }
        assert_eq!(settings("'core.hooksPath'='/h'"), ["core.hooksPath=/h"]);
    }
}
