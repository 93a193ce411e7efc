//! Every environment variable the program reads, once.

/// One variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The git configuration key with the same meaning, which it beats.
    pub config_key: Option<&'static str>,
    /// What it is for.
    pub purpose: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $key:expr, $purpose:literal;)*) => {
        $(#[doc = $purpose]
        pub const $constant: Variable = Variable { name: $name, config_key: $key, purpose: $purpose };)*

        /// All variables, in the order they are documented.
        pub const ALL: &[Variable] = &[$($constant),*];
    };
}

variables! {
    GIT_DIR = "AGENT_COORD_GIT_DIR", None, "The git directory whose refs hold the state.";
    REMOTE = "AGENT_COORD_REMOTE", Some("agent-coord.remote"), "The remote, by name or URL, that `init` shares the state through.";
    STATE_ROOT = "AGENT_COORD_STATE_ROOT", None, "Selects the directory store.";
    API_URL = "AGENT_COORD_API_URL", None, "Selects the HTTP store.";
    BACKEND = "AGENT_COORD_BACKEND", None, "Selects the legacy GitHub store.";
    REF = "AGENT_COORD_REF", None, "The ref that the legacy GitHub store keeps its state on; state when unset.";
    STATUS_STATE_ROOT = "AGENT_COORD_STATUS_STATE_ROOT", None, "The directory that read commands look at when no store is selected.";
    LOCAL = "AGENT_COORD_LOCAL", None, "Set to 1, true or yes when state on this machine alone is meant, although a server is configured elsewhere.";
    API_TOKEN = "AGENT_COORD_API_TOKEN", None, "The secret for the HTTP store.";
    POLICY = "AGENT_COORD_POLICY", None, "Whether workflows must coordinate: required, optional or disabled. Only reported.";
    ENV_FILE = "AGENT_COORD_ENV_FILE", None, "The user file, in the place of agent-coord/env in the configuration folder.";
    AGENT_ID = "AGENT_COORD_AGENT_ID", Some("agent-coord.agentId"), "The agent that acts when --agent-id is absent.";
    TIMEOUT = "AGENT_COORD_TIMEOUT", Some("agent-coord.timeout"), "How many seconds a command may take; 20 when unset.";
    CLAIM_TTL_SECONDS = "AGENT_COORD_CLAIM_TTL_SECONDS", Some("agent-coord.claimTtlSeconds"), "How many seconds a claim lasts when --ttl is absent; 14400 when unset.";
    WEDGED_AFTER_SECONDS = "AGENT_COORD_WEDGED_AFTER_SECONDS", Some("agent-coord.wedgedAfterSeconds"), "After how many seconds without a change of worker phase a live agent counts as wedged; 2700 when unset.";
    MACHINE_ID = "AGENT_COORD_MACHINE_ID", None, "The machine that writes are attributed to.";
    SESSION_ID = "AGENT_COORD_SESSION_ID", None, "The chat or process that writes are attributed to.";
    CODEX_THREAD_ID = "CODEX_THREAD_ID", None, "What AGENT_COORD_SESSION_ID means, as Codex sets it; used when that is unset.";
    PRIMARY_BRANCH = "AGENT_COORD_PRIMARY_BRANCH", Some("agent-coord.primaryBranch"), "The branch nobody commits to directly; main when unset.";
    ALLOW_PRIMARY_COMMIT = "AGENT_COORD_ALLOW_PRIMARY_COMMIT", Some("agent-coord.allowPrimaryCommit"), "Set to 1 to let the pre-commit hook pass on the primary branch.";
    PROTECTED_REGEX = "AGENT_COORD_PROTECTED_REGEX", Some("agent-coord.protectedRegex"), "Branches besides the primary one whose push needs the merge phrase.";
    MERGE_PHRASE = "AGENT_COORD_MERGE_PHRASE", Some("agent-coord.mergePhrase"), "What MERGE_INTENT must hold for a push to a protected branch.";
    REQUIRE_CLAIM = "AGENT_COORD_REQUIRE_CLAIM", Some("agent-coord.requireClaim"), "Set to 1 to let the hooks refuse branches that this agent has not claimed.";
    UNKNOWN = "AGENT_COORD_UNKNOWN", Some("agent-coord.unknown"), "What the hooks do when the claims cannot be read: refuse, the default, or warn.";
    HOOK_PROBE = "AGENT_COORD_HOOK_PROBE", None, "Set by `hooks status` for the hooks it runs: they answer and check nothing.";
    CHAINED_HOOK = "AGENT_COORD_CHAINED_HOOK", None, "Set for a hook that runs after ours, so that it does not start itself again.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_listed_once() {
        let names: std::collections::BTreeSet<&str> = ALL.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), ALL.len());
    }
}
