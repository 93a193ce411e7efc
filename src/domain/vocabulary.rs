//! The status words of heartbeats and ordinary events (state-schema.md section 3.2).

/// Statuses of work that goes on.
pub const WORKING: [&str; 7] = [
    "in_progress",
    "blocked",
    "blocked_user_input",
    "waiting_on_checks_or_review",
    "external_gate_failing",
    "no_pr_evidence",
    "failed",
];

/// Statuses of work that has ended.
pub const TERMINAL: [&str; 7] =
    ["done", "merged", "ready", "ready_gates_clean", "ready_no_merge_authority", "abandoned", "superseded"];

/// Other spellings, each with the canonical status it stands for. `released` is not one: it can mean a handoff.
pub const ALIASES: [(&str, &str); 10] = [
    ("complete", "done"),
    ("completed", "done"),
    ("ready_to_merge", "ready"),
    ("ready_handoff", "ready"),
    ("ready_for_coordinator", "ready"),
    ("in_process", "in_progress"),
    ("claimed", "in_progress"),
    ("implementing", "in_progress"),
    ("validating", "in_progress"),
    ("pushing", "in_progress"),
];

/// Lane statuses that satisfy a dependency, compared exactly as stored.
pub const SATISFYING: [&str; 7] =
    ["done", "merged", "ready", "ready_gates_clean", "ready_no_merge_authority", "complete", "completed"];

/// A status as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Normalised {
    /// The member `status`.
    pub status: String,
    /// The member `status_raw`: the caller's own spelling, where it is not the canonical one.
    pub raw: Option<String>,
    /// What to tell the caller, without `warning: `, when the status is in neither the vocabulary nor the aliases.
    pub warning: Option<String>,
}

/// Returns `raw` as it is stored.
#[must_use]
pub fn normalise(raw: &str) -> Normalised {
    let folded = raw.trim().to_lowercase().replace('-', "_");
    let alias = || ALIASES.iter().find(|(alias, _)| *alias == folded).map(|(_, canonical)| *canonical);
    let Some(canonical) = canonical(&folded).or_else(alias) else {
        return Normalised { status: raw.to_owned(), raw: Some(raw.to_owned()), warning: Some(unknown(raw)) };
    };
    let spelled_otherwise = (canonical != raw).then(|| raw.to_owned());
    Normalised { status: canonical.to_owned(), raw: spelled_otherwise, warning: None }
}

fn canonical(word: &str) -> Option<&'static str> {
    WORKING.into_iter().chain(TERMINAL).find(|known| *known == word)
}

fn unknown(raw: &str) -> String {
    let known = WORKING.into_iter().chain(TERMINAL).collect::<Vec<_>>().join(", ");
    format!(
        "status {raw:?} is not in the canonical status vocabulary; preserving it verbatim with a status_raw copy. \
         Canonical statuses: {known}."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(raw: &str) -> (String, Option<String>) {
        let normalised = normalise(raw);
        (normalised.status, normalised.raw)
    }

    #[test]
    fn a_canonical_status_is_stored_alone() {
        for status in WORKING.into_iter().chain(TERMINAL) {
            assert_eq!(parts(status), (status.to_owned(), None));
        }
    }

    #[test]
    fn another_spelling_is_kept_untrimmed_beside_the_canonical_one() {
        assert_eq!(parts(" In-Progress "), ("in_progress".to_owned(), Some(" In-Progress ".to_owned())));
        assert_eq!(parts("Completed"), ("done".to_owned(), Some("Completed".to_owned())));
        assert_eq!(parts("ready-handoff"), ("ready".to_owned(), Some("ready-handoff".to_owned())));
    }

    #[test]
    fn an_unknown_status_is_kept_verbatim_with_a_one_line_warning() {
        let normalised = normalise("re\nleased");
        assert_eq!(normalised.status, "re\nleased");
        assert_eq!(normalised.raw.as_deref(), Some("re\nleased"));
        assert_eq!(
            normalised.warning.unwrap(),
            "status \"re\\nleased\" is not in the canonical status vocabulary; preserving it verbatim with a \
             status_raw copy. Canonical statuses: in_progress, blocked, blocked_user_input, \
             waiting_on_checks_or_review, external_gate_failing, no_pr_evidence, failed, done, merged, ready, \
             ready_gates_clean, ready_no_merge_authority, abandoned, superseded."
        );
        assert!(normalise("released").warning.is_some(), "released is not an alias");
    }
}
