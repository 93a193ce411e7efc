//! Integers as option values spell them (cli-contract.md section 1.3).

/// Reads decimal, `0x`, `0b` and octal (`010`) integers with an optional sign and single `_` between digits.
///
/// Returns `None` when the text is none of these or does not fit.
#[must_use]
pub fn parse(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = radix_of(digits);
    let well_formed = !digits.is_empty()
        && !digits.starts_with('_')
        && !digits.ends_with('_')
        && !digits.contains("__")
        && digits.chars().all(|digit| digit == '_' || digit.is_digit(radix));
    if !well_formed {
        return None;
    }
    let magnitude = i128::from_str_radix(&digits.replace('_', ""), radix).ok()?;
    i64::try_from(if negative { -magnitude } else { magnitude }).ok()
}

fn radix_of(digits: &str) -> (u32, &str) {
    let Some(rest) = digits.strip_prefix('0').filter(|rest| !rest.is_empty()) else { return (10, digits) };
    match rest.as_bytes()[0] {
        b'x' | b'X' => (16, &rest[1..]),
        b'b' | b'B' => (2, &rest[1..]),
        b'_' => (8, &rest[1..]),
        _ => (8, rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_contract_is_read() {
        for (text, value) in [
            ("0", 0),
            ("+7", 7),
            ("-5", -5),
            ("14_400", 14400),
            ("0x10", 16),
            ("0XfF", 255),
            ("0b101", 5),
            ("010", 8),
            ("-0x1", -1),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse(text), Some(value), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_integer() {
        for text in ["", "-", "abc", "1.5", "08", "0x", "_1", "1_", "1__0", "1e3", " 1", "é", "9223372036854775808"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
