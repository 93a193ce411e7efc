//! The text of the user file: assignments, read as data and never run (config-and-security.md section 3).

use std::collections::BTreeMap;
use std::path::Path;

use super::keys::{self, Key};
use crate::error::CommandError;

/// What a file assigns, blank values included.
pub type Values = BTreeMap<Key, String>;

/// Reads the bytes of the file at `path`.
///
/// # Errors
/// The first line that is no plain assignment, or a value that no command could use.
pub fn parse(path: &Path, bytes: &[u8]) -> Result<Values, CommandError> {
    let place = path.display();
    let text = std::str::from_utf8(bytes)
        .map_err(|_| CommandError::operational(format!("user config contains invalid UTF-8: {place}")))?;
    let mut values = Values::new();
    for (number, line) in (1..).zip(text.split('\n')) {
        let refuse = |what: &str, at: &str| Err(CommandError::operational(format!("{what} at {place}:{number}{at}")));
        let Some(assignment) = statement(line) else { continue };
        let Some((name, raw)) = split(assignment) else { return refuse("unsafe user config syntax", "") };
        let Some(key) = Key::of(name) else {
            if name.starts_with("AGENT_COORD_") {
                return refuse("unsupported agent-coord key", &format!(": {name}"));
            }
            continue;
        };
        if values.contains_key(&key) {
            return refuse("duplicate user config key", &format!(": {name}"));
        }
        if key == keys::API_TOKEN && raw.contains(['\r', '\0']) {
            return Err(CommandError::operational(format!("{name} in {place}:{number} must be one line")));
        }
        match value(raw) {
            Ok(value) => drop(values.insert(key, value)),
            Err(Bad::Ambiguous) => return refuse("ambiguous user config value", ""),
            Err(Bad::Unbalanced) => return refuse("unsafe user config value", ""),
        }
    }
    check(path, &values)?;
    Ok(values)
}

/// Returns what a line says, without `export`; nothing for a blank line or a comment.
fn statement(line: &str) -> Option<&str> {
    let line = line.trim_start();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let exported = line.strip_prefix("export").filter(|rest| rest.starts_with(char::is_whitespace));
    Some(exported.map_or(line, str::trim_start))
}

/// Splits an assignment into its name, capitals and digits and `_`, and its raw value.
fn split(assignment: &str) -> Option<(&str, &str)> {
    let (name, raw) = assignment.split_once('=')?;
    let first = name.bytes().next()?;
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    (first.is_ascii_uppercase() && name.bytes().all(plain)).then_some((name, raw))
}

/// Why a value is none.
#[derive(Debug, PartialEq, Eq)]
enum Bad {
    /// It is not exactly one word.
    Ambiguous,
    /// A quote or an escape is not closed.
    Unbalanced,
}

/// Returns the value a shell would assign, without expanding anything.
fn value(raw: &str) -> Result<String, Bad> {
    if raw.is_empty() {
        return Ok(String::new());
    }
    let Words { words, had_comment } = words(raw)?;
    match <[String; 1]>::try_from(words) {
        Ok([word]) => Ok(word),
        Err(words) if words.is_empty() && had_comment => Ok(String::new()),
        Err(_) => Err(Bad::Ambiguous),
    }
}

struct Words {
    words: Vec<String>,
    had_comment: bool,
}

/// Splits text as a POSIX shell splits a word list.
fn words(raw: &str) -> Result<Words, Bad> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut after_space = false;
    let mut rest = raw.chars();
    while let Some(character) = rest.next() {
        if character.is_whitespace() {
            words.extend(word.take());
            after_space = true;
            continue;
        }
        if character == '#' && after_space {
            return Ok(Words { words, had_comment: true });
        }
        after_space = false;
        let word = word.get_or_insert_default();
        match character {
            '\'' => single_quoted(&mut rest, word)?,
            '"' => double_quoted(&mut rest, word)?,
            '\\' => word.push(rest.next().ok_or(Bad::Unbalanced)?),
            '\0' => return Err(Bad::Unbalanced),
            plain => word.push(plain),
        }
    }
    words.extend(word);
    Ok(Words { words, had_comment: false })
}

fn single_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Bad> {
    loop {
        match rest.next().ok_or(Bad::Unbalanced)? {
            '\'' => return Ok(()),
            character => word.push(character),
        }
    }
}

/// Inside double quotes a backslash is one unless it stands before a character with a meaning there.
fn double_quoted(rest: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), Bad> {
    loop {
        match rest.next().ok_or(Bad::Unbalanced)? {
            '"' => return Ok(()),
            '\\' => match rest.next().ok_or(Bad::Unbalanced)? {
                special @ ('$' | '`' | '"' | '\\') => word.push(special),
                other => word.extend(['\\', other]),
            },
            character => word.push(character),
        }
    }
}

fn check(path: &Path, values: &Values) -> Result<(), CommandError> {
    let set = |key: Key| values.get(&key).map(String::as_str).filter(|value| !value.trim().is_empty());
    if let Some(policy) = set(keys::POLICY) {
        super::policy::Policy::parse(policy, &format!("{}:{}", path.display(), keys::POLICY.name()))?;
    }
    for key in [keys::STATE_ROOT, keys::STATUS_STATE_ROOT] {
        if set(key).is_some_and(|root| !Path::new(root).is_absolute()) {
            let message = format!("{} in {} must be an absolute path", key.name(), path.display());
            return Err(CommandError::operational(message));
        }
    }
    Ok(())
}

/// Returns the text of a file that assigns `values`, in the order of the keys.
#[must_use]
pub fn render(values: &Values) -> String {
    values.iter().map(|(key, value)| format!("{}={}\n", key.name(), escaped(value))).collect()
}

/// Returns a value as [`parse`] and a shell read it back.
fn escaped(value: &str) -> String {
    if value.is_empty() {
        return "''".to_owned();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.,:+/@".contains(c);
    value.chars().flat_map(|c| if plain(c) { vec![c] } else { vec!['\\', c] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<(&'static str, String)>, String> {
        let values = parse(Path::new("/c/env"), text.as_bytes()).map_err(|error| {
            assert_eq!(error.kind.exit_code(), 2);
            error.message
        })?;
        Ok(values.into_iter().map(|(key, value)| (key.name(), value)).collect())
    }

    fn machine(raw: &str) -> Result<String, String> {
        parsed(&format!("AGENT_COORD_MACHINE_ID={raw}")).map(|values| values[0].1.clone())
    }

    #[test]
    fn lines_are_assignments_comments_or_blank() {
        let text = "# hello\n\n  export AGENT_COORD_BACKEND=o/r\n\tAGENT_COORD_REF='a b' # why\nPATH=$(anything \"\n";
        assert_eq!(
            parsed(text).unwrap(),
            [("AGENT_COORD_BACKEND", "o/r".to_owned()), ("AGENT_COORD_REF", "a b".to_owned())]
        );
    }

    #[test]
    fn a_value_is_one_shell_word_without_expansion() {
        for (raw, value) in [
            ("", ""),
            ("''", ""),
            ("m1", "m1"),
            ("'a b'\"c\\\"d\"e\\ f", "a bc\"de f"),
            ("\"\\$x\\n\"", "$x\\n"),
            ("$HOME", "$HOME"),
            ("#x", "#x"),
            ("a#b", "a#b"),
            (" # nothing", ""),
            ("a # b", "a"),
            ("'a # b'", "a # b"),
            ("a\r", "a"),
        ] {
            assert_eq!(machine(raw).as_deref(), Ok(value), "{raw}");
        }
    }

    #[test]
    fn what_is_unclear_is_refused_with_its_line() {
        for (text, message) in [
            ("x=1", "unsafe user config syntax at /c/env:1"),
            ("\nAGENT_COORD_REF", "unsafe user config syntax at /c/env:2"),
            ("exportAGENT_COORD_REF=x", "unsafe user config syntax at /c/env:1"),
            ("AGENT_COORD_GIT_DIR=/x", "unsupported agent-coord key at /c/env:1: AGENT_COORD_GIT_DIR"),
            ("AGENT_COORD_REF=a\nAGENT_COORD_REF=b", "duplicate user config key at /c/env:2: AGENT_COORD_REF"),
            ("AGENT_COORD_API_TOKEN='a\r'", "AGENT_COORD_API_TOKEN in /c/env:1 must be one line"),
            ("AGENT_COORD_REF=a b", "ambiguous user config value at /c/env:1"),
            ("AGENT_COORD_REF=  ", "ambiguous user config value at /c/env:1"),
            ("AGENT_COORD_REF='a", "unsafe user config value at /c/env:1"),
            ("AGENT_COORD_REF=\"a", "unsafe user config value at /c/env:1"),
            ("AGENT_COORD_REF=a\\", "unsafe user config value at /c/env:1"),
            (
                "AGENT_COORD_POLICY=often",
                "invalid coordination policy in /c/env:AGENT_COORD_POLICY: expected required, optional, disabled",
            ),
            ("AGENT_COORD_STATE_ROOT=x", "AGENT_COORD_STATE_ROOT in /c/env must be an absolute path"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), message);
        }
        let error = parse(Path::new("/c/env"), b"\xff").unwrap_err();
        assert_eq!(error.message, "user config contains invalid UTF-8: /c/env");
    }

    #[test]
    fn whatever_is_rendered_is_read_back() {
        for value in ["", "plain-1.2:+/@", "a b", "é'\"$`\\#", " lead", "tab\there"] {
            let values = Values::from([(keys::MACHINE_ID, value.to_owned())]);
            let text = render(&values);
            assert_eq!(parse(Path::new("/c/env"), text.as_bytes()).unwrap(), values, "{text}");
        }
    }
}
