//! Text of others, made safe to print on one line. Records are untrusted: any of their strings may hold anything.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns `text` with every character that could end the line, move the cursor or turn the reading direction spelled
/// as `\u{..}` (or `\n`, `\r`, `\t`). Ordinary text is returned as it is.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if is_unsafe(character) {
            let _ = write!(shown, "{}", character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Returns `text` as `log` and attention print it: runs of TAB, CR and LF are one space, and other control characters
/// are gone (cli-contract.md section 1.5).
#[must_use]
pub fn scrubbed(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut in_run = false;
    for character in text.chars() {
        let separates = matches!(character, '\t' | '\r' | '\n');
        if separates && !in_run {
            shown.push(' ');
        } else if !character.is_control() {
            shown.push(character);
        }
        in_run = separates;
    }
    Cow::Owned(shown)
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        assert_eq!(printable("w1 é 日本"), "w1 é 日本");
    }

    #[test]
    fn scrubbing_joins_lines_and_drops_other_controls() {
        assert_eq!(scrubbed("a\r\n\tb\u{1b}[2J\u{7f}\u{85}\u{b}c"), "a b[2Jc");
        assert_eq!(scrubbed("a é 日本\u{a0}"), "a é 日本\u{a0}");
    }

    #[test]
    fn nothing_can_end_the_line_or_turn_it_around() {
        assert_eq!(printable("a\nb\u{1b}[2J\u{202e}c\u{85}"), "a\\nb\\u{1b}[2J\\u{202e}c\\u{85}");
    }
}
