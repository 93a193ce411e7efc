//! The canary: the commit a branch stood at when work on it began (design.md section 4, "Canary").
//!
//! As long as that commit is an ancestor of HEAD, nobody has rewritten the history under the agent.

use std::fmt;

/// What the worktree remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// The commit, in hex.
    pub commit: String,
    /// The branch it was HEAD of.
    pub branch: String,
}

impl Canary {
    /// Reads the line `<commit> <branch>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (commit, branch) = text.strip_suffix('\n').unwrap_or(text).split_once(' ')?;
        let is_id = matches!(commit.len(), 40 | 64) && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_name = !branch.is_empty() && !branch.chars().any(|character| character.is_control() || character == ' ');
        (is_id && is_name).then(|| Self { commit: commit.to_owned(), branch: branch.to_owned() })
    }
}

impl fmt::Display for Canary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.commit, self.branch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back_at_both_id_lengths() {
        for length in [40, 64] {
            let canary = Canary { commit: "a".repeat(length), branch: "feat/x".to_owned() };
            assert_eq!(Canary::parse(&format!("{canary}\n")), Some(canary));
        }
    }

    #[test]
    fn anything_else_is_no_canary() {
        let id = "a".repeat(40);
        for bad in ["", "abc main", &id, &format!("{id} "), &format!("{id} a b"), &format!("{id} a\n{id} b\n")] {
            assert_eq!(Canary::parse(bad), None, "{bad:?}");
        }
    }
}
