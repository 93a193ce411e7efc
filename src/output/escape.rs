//! Text of records made safe to print: whoever wrote it may have meant to move the cursor or to reverse the line.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns `text` with control and text-direction characters spelled out, so that it stays one line that reads as it is.
#[must_use]
pub fn one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            unsafe_one if is_unsafe(unsafe_one) => {
                // Writing to a string cannot fail.
                let _ = write!(escaped, "\\u{{{:x}}}", u32::from(unsafe_one));
            }
            plain => escaped.push(plain),
        }
    }
    Cow::Owned(escaped)
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_the_cursor_or_turns_the_text_is_spelled_out() {
        assert_eq!(one_line("a\u{1b}[2Jb\nc"), "a\\u{1b}[2Jb\\nc");
        assert_eq!(one_line("safe\u{202e}gpj.exe"), "safe\\u{202e}gpj.exe");
        assert_eq!(one_line("\u{9b}31m"), "\\u{9b}31m");
    }

    #[test]
    fn ordinary_text_of_any_language_stays() {
        assert!(matches!(one_line("Größe — 東京 🙂"), Cow::Borrowed(_)));
    }
}
