//! The hooks there are, and the files git runs for them.

use std::fmt;

/// A hook that enforces claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookName {
    /// Before a commit is made.
    PreCommit,
    /// Before refs are pushed.
    PrePush,
}

/// Every body ever shipped as `pre-commit`, today's first. Never take one away: it may be installed somewhere.
const PRE_COMMIT: &[&str] = &[include_str!("../../hooks/pre-commit")];
/// Every body ever shipped as `pre-push`, today's first.
const PRE_PUSH: &[&str] = &[include_str!("../../hooks/pre-push")];

impl HookName {
    /// All hooks, in the order reports list them.
    pub const ALL: [Self; 2] = [Self::PreCommit, Self::PrePush];

    /// Returns the name git knows the hook by.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PreCommit => "pre-commit",
            Self::PrePush => "pre-push",
        }
    }

    /// Returns the hook git calls `name`, if it is one of ours.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|hook| hook.as_str() == name)
    }

    /// Returns what the hook keeps from happening, as the word for messages: `commit` or `push`.
    #[must_use]
    pub fn act(self) -> &'static str {
        match self {
            Self::PreCommit => "commit",
            Self::PrePush => "push",
        }
    }

    /// Returns the file that is installed today.
    #[must_use]
    pub fn body(self) -> &'static str {
        self.shipped()[0]
    }

    /// Tells whether `bytes` are a body that was ever shipped for this hook, byte for byte.
    #[must_use]
    pub fn is_ours(self, bytes: &[u8]) -> bool {
        self.shipped().iter().any(|body| body.as_bytes() == bytes)
    }

    fn shipped(self) -> &'static [&'static str] {
        match self {
            Self::PreCommit => PRE_COMMIT,
            Self::PrePush => PRE_PUSH,
        }
    }

    /// Returns the lines that another hook manager is to run, with a word on where they go.
    #[must_use]
    pub fn for_managers(self) -> String {
        let entry = match self {
            Self::PreCommit => "agent-coord hook pre-commit",
            Self::PrePush => ENTRY_FOR_PRE_COMMIT_FRAMEWORK,
        };
        format!(
            "\
# agent-coord {self}, for a hook manager that owns core.hooksPath. The exit code decides; arguments and stdin must arrive
# as git gave them.
# husky: add the last line to .husky/{self}
# lefthook, in lefthook.yml:
#   {self}:
#     commands:
#       agent-coord:
#         run: agent-coord hook {self} {{0}}
#         use_stdin: true
# pre-commit, in .pre-commit-config.yaml (of several refs in one push it shows the first only):
#   - repo: local
#     hooks:
#       - id: agent-coord-{self}
#         name: agent-coord
#         language: system
#         stages: [{self}]
#         always_run: true
#         pass_filenames: false
#         entry: {entry}
agent-coord hook {self} \"$@\"
"
        )
    }
}

/// The pre-commit framework keeps git's stdin to itself and tells the same in variables.
const ENTRY_FOR_PRE_COMMIT_FRAMEWORK: &str = r#"sh -c 'printf "%s %s %s %s\n" "$PRE_COMMIT_LOCAL_BRANCH" "$PRE_COMMIT_TO_REF" "$PRE_COMMIT_REMOTE_BRANCH" "$PRE_COMMIT_FROM_REF" | agent-coord hook pre-push "$PRE_COMMIT_REMOTE_NAME" "$PRE_COMMIT_REMOTE_URL"'"#;

impl fmt::Display for HookName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    /// The hashes of every body ever shipped. A changed body adds a line here and to the list above; none goes away.
    const EVER_SHIPPED: [(HookName, &str); 2] = [
        (HookName::PreCommit, "ff9aa6cd34c6045dd0e5a1029cac7782264cda22944fd5d3d77af314da89deb7"),
        (HookName::PrePush, "029357b17e7118d59fe80c55ea6b5e81741f7807736d6569fe837508501d604d"),
    ];

    fn hash(body: &str) -> String {
        Sha256::digest(body).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_body_once_shipped_is_recognised_for_ever() {
        for (hook, shipped) in EVER_SHIPPED {
            assert!(hook.shipped().iter().any(|body| hash(body) == shipped), "{hook} forgot {shipped}");
        }
        let known: usize = HookName::ALL.iter().map(|hook| hook.shipped().len()).sum();
        assert_eq!(known, EVER_SHIPPED.len(), "a new body needs its hash above");
    }

    #[test]
    fn one_byte_more_or_less_is_somebody_elses_hook() {
        for hook in HookName::ALL {
            let body = hook.body().as_bytes();
            assert!(hook.is_ours(body));
            assert!(!hook.is_ours(&body[1..]));
            assert!(!hook.is_ours(&[body, b"\n"].concat()));
        }
    }

    #[test]
    fn a_body_bakes_no_path_in_and_prints_nothing_that_destroys() {
        for hook in HookName::ALL {
            for destructive in ["rm ", "--force", "update-ref", "reset"] {
                assert!(!hook.body().contains(destructive), "{hook}: {destructive}");
            }
            assert!(hook.body().contains(&format!("exec agent-coord hook {hook} \"$@\"")));
        }
    }
}
