//! Taking secrets out of text that goes to a person or a log (config-and-security.md section 12).

/// Returns `text` with the user part of every URL replaced: `https://token@host/x` becomes `https://***@host/x`, and
/// `user:pass@host` becomes `***@host`.
#[must_use]
pub fn redact(text: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    for (index, word) in
        text.split_inclusive(|character: char| character.is_whitespace() || "'\"<>()".contains(character)).enumerate()
    {
        let _ = index;
        cleaned.push_str(&redact_word(word));
    }
    cleaned
}

fn redact_word(word: &str) -> String {
    if let Some((scheme, rest)) = word.split_once("://") {
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        // What follows a colon is a port, or else a password that holds one of these characters itself.
        let is_cut =
            rest[..end].split_once(':').is_some_and(|(_, port)| port.bytes().any(|byte| !byte.is_ascii_digit()));
        let end = if is_cut { rest.len() } else { end };
        return match rest[..end].rfind('@') {
            Some(at) => format!("{scheme}://***@{}", &rest[at + 1..]),
            None => word.to_owned(),
        };
    }
    match word.split_once('@') {
        Some((user, host))
            if user.contains(':') && !user.starts_with(':') && !host.trim().is_empty() && !user.contains('/') =>
        {
            format!("***@{host}")
        }
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::redact;

    #[test]
    fn the_user_part_of_a_url_never_survives() {
        assert_eq!(
            redact("fatal: unable to access 'https://u:p@h/x.git/': no"),
            "fatal: unable to access 'https://***@h/x.git/': no"
        );
        assert_eq!(redact("https://ghp_secret@github.com/o/r"), "https://***@github.com/o/r");
        assert_eq!(redact("https://h/a@b"), "https://h/a@b");
        assert_eq!(redact("user:pass@host"), "***@host");
        assert_eq!(redact("git@github.com:o/r.git"), "git@github.com:o/r.git");
        assert_eq!(redact("https://a@b:c@h/x"), "https://***@h/x");
        for unescaped in ["https://u:pa/ss@h/x", "https://u:p#ss@h/x", "https://u:p?s/s@h/x", "https://u:p@s/s@h/x"] {
            assert_eq!(redact(unescaped), "https://***@h/x", "{unescaped}");
        }
        assert_eq!(redact("ssh://h:2222/a@b"), "ssh://h:2222/a@b");
        assert_eq!(redact("https://[::1]:8080/x"), "https://[::1]:8080/x");
    }
}
