//! What git tells a pre-push hook on stdin: one line a ref (githooks(5)).

use thiserror::Error;

/// More than any push has to say: at some 300 bytes a line, over 50,000 refs.
pub const STDIN_LIMIT: u64 = 16 * 1024 * 1024;

/// One ref of a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushedRef {
    /// What is pushed, as typed: a ref, an expression, or `(delete)`.
    pub local_name: String,
    /// Its object id; absent = the remote ref is deleted.
    pub local_id: Option<String>,
    /// The full name of the remote ref.
    pub remote_name: String,
    /// What the remote has there now; absent = nothing.
    pub remote_id: Option<String>,
}

impl PushedRef {
    /// Returns the remote branch; a tag or any other ref is none.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        self.remote_name.strip_prefix("refs/heads/")
    }

    /// Tells whether coordination state is pushed, or would be changed.
    #[must_use]
    pub fn is_coordination(&self) -> bool {
        [&self.remote_name, &self.local_name].into_iter().any(|name| name.starts_with("refs/agent-coord/"))
    }
}

/// A line is not as git writes it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("cannot understand what git says it pushes: {}", line.escape_debug())]
pub struct Unreadable {
    /// The line.
    pub line: String,
}

/// Reads git's list. No line at all = nothing is pushed.
///
/// # Errors
/// When a line is not as git writes it: a hook that guesses would let something through.
pub fn parse(stdin: &[u8]) -> Result<Vec<PushedRef>, Unreadable> {
    let text = String::from_utf8_lossy(stdin);
    text.lines().filter(|line| !line.is_empty()).map(parse_line).collect()
}

fn parse_line(line: &str) -> Result<PushedRef, Unreadable> {
    let unreadable = || Unreadable { line: line.chars().take(200).collect() };
    // Only the first field may hold blanks (`HEAD^{/fix a bug}`), so the line is taken apart from its end.
    let mut fields = line.rsplitn(4, ' ');
    let mut field = || fields.next().filter(|field| !field.is_empty()).ok_or_else(unreadable);
    let (remote_id, remote_name, local_id, local_name) = (field()?, field()?, field()?, field()?);
    Ok(PushedRef {
        local_name: local_name.to_owned(),
        local_id: object_id(local_id).ok_or_else(unreadable)?,
        remote_name: remote_name.to_owned(),
        remote_id: object_id(remote_id).ok_or_else(unreadable)?,
    })
}

/// Returns an object id of either length, its absence for all zeros, or `None` for anything else.
#[expect(clippy::option_option, reason = "not an id, no object, and an object are three different things")]
fn object_id(text: &str) -> Option<Option<String>> {
    let well_formed = matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    well_formed.then(|| text.bytes().any(|byte| byte != b'0').then(|| text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_creations_and_deletions_are_told_apart_at_both_id_lengths() {
        for length in [40, 64] {
            let (old, new, none) = ("a".repeat(length), "b".repeat(length), "0".repeat(length));
            let stdin = format!(
                "refs/heads/x {new} refs/heads/x {old}\nHEAD {new} refs/heads/y {none}\n(delete) {none} refs/heads/z {old}\n"
            );
            let pushed = parse(stdin.as_bytes()).unwrap();
            let ids: Vec<_> = pushed.iter().map(|one| (one.local_id.is_some(), one.remote_id.is_some())).collect();
            assert_eq!(ids, [(true, true), (true, false), (false, true)]);
            assert_eq!(pushed.iter().filter_map(PushedRef::branch).collect::<Vec<_>>(), ["x", "y", "z"]);
        }
    }

    #[test]
    fn blanks_in_what_was_typed_do_not_shift_the_other_fields() {
        let id = "a".repeat(40);
        let pushed = parse(format!("HEAD^{{/fix a bug}} {id} refs/tags/v1 {}\n", "0".repeat(40)).as_bytes()).unwrap();
        assert_eq!(pushed[0].local_name, "HEAD^{/fix a bug}");
        assert_eq!(pushed[0].branch(), None, "a tag is no branch");
    }

    #[test]
    fn nothing_is_pushed_when_nothing_is_said_and_nonsense_is_an_error() {
        assert_eq!(parse(b"").unwrap(), []);
        for bad in ["x", "refs/heads/x abc refs/heads/x abc", "a b c d e"] {
            assert!(parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn coordination_is_recognised_on_both_sides() {
        let id = "a".repeat(40);
        for (local, remote) in [("refs/agent-coord/store.json", "refs/heads/x"), ("HEAD", "refs/agent-coord/x.json")] {
            let pushed = parse(format!("{local} {id} {remote} {id}").as_bytes()).unwrap();
            assert!(pushed[0].is_coordination());
        }
    }
}
