//! Which machine and session a write comes from (state-schema.md section 1.6).

use super::record::{Members, text};
use super::request::Attribution;

impl Attribution {
    /// Resolves the values of `AGENT_COORD_MACHINE_ID`, `AGENT_COORD_SESSION_ID` and `CODEX_THREAD_ID`: each trimmed,
    /// blank is the same as unset, and the first session named wins.
    #[must_use]
    pub fn resolve(machine: Option<&str>, session: Option<&str>, codex_thread: Option<&str>) -> Self {
        let filled = |value: Option<&str>| value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
        let (session_id, source) = match (filled(session), filled(codex_thread)) {
            (Some(session), _) => (Some(session), Some("agent_coord_session_id")),
            (None, Some(thread)) => (Some(thread), Some("codex_thread_id")),
            (None, None) => (None, None),
        };
        Self { machine_id: filled(machine), session_id, session_source: source.map(str::to_owned) }
    }

    /// Stamps `record`, which overwrites `prior`: what is resolved is set, and the half of the old pair that the new
    /// half does not belong to is taken off, so that no machine is ever paired with another machine's session.
    pub fn stamp(&self, record: &mut Members, prior: Option<&Members>) {
        for (name, value) in self.members() {
            record.insert(name.to_owned(), value.into());
        }
        let Some(prior) = prior else { return };
        match (&self.machine_id, &self.session_id) {
            (Some(machine), None) if text(prior, "machine_id") != Some(machine) => {
                record.shift_remove("session_id");
                record.shift_remove("session_source");
            }
            (None, Some(session)) if text(prior, "session_id") != Some(session) => {
                record.shift_remove("machine_id");
            }
            _ => {}
        }
    }

    /// Returns what is resolved, in the order records hold it.
    fn members(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let session = self.session_id.as_deref();
        let source = session.and(self.session_source.as_deref());
        [("machine_id", self.machine_id.as_deref()), ("session_id", session), ("session_source", source)]
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::object;
    use serde_json::json;

    fn stamped(machine: Option<&str>, session: Option<&str>) -> Members {
        let prior = object(json!({"machine_id": "m1", "session_id": "s1", "session_source": "codex_thread_id"}));
        let mut record = prior.clone();
        Attribution::resolve(machine, session, None).stamp(&mut record, Some(&prior));
        record
    }

    #[test]
    fn blank_values_are_unset_and_the_first_session_wins() {
        let both = Attribution::resolve(Some(" "), Some(" s "), Some("t"));
        assert_eq!((both.machine_id, both.session_id.as_deref()), (None, Some("s")));
        assert_eq!(both.session_source.as_deref(), Some("agent_coord_session_id"));
        let thread = Attribution::resolve(None, Some(""), Some("t"));
        assert_eq!(thread.session_source.as_deref(), Some("codex_thread_id"));
        assert_eq!(Attribution::resolve(None, None, None), Attribution::default());
    }

    #[test]
    fn another_machine_without_a_session_clears_the_old_session() {
        assert_eq!(stamped(Some("m2"), None), object(json!({"machine_id": "m2"})));
        assert_eq!(stamped(Some("m1"), None).len(), 3, "the same machine keeps its session");
    }

    #[test]
    fn another_session_without_a_machine_clears_the_old_machine() {
        let record = stamped(None, Some("s2"));
        assert_eq!(text(&record, "machine_id"), None);
        assert_eq!(text(&record, "session_id"), Some("s2"));
        assert_eq!(text(&stamped(None, Some("s1")), "machine_id"), Some("m1"));
    }

    #[test]
    fn nothing_resolved_changes_nothing_and_both_resolved_replace_both() {
        assert_eq!(text(&stamped(None, None), "session_id"), Some("s1"));
        let both = stamped(Some("m2"), Some("s2"));
        assert_eq!((text(&both, "machine_id"), text(&both, "session_id")), (Some("m2"), Some("s2")));
    }

    #[test]
    fn a_prior_without_a_machine_counts_as_another_machine() {
        let prior = object(json!({"session_id": "s1", "session_source": "codex_thread_id"}));
        let mut record = prior.clone();
        Attribution::resolve(Some("m"), None, None).stamp(&mut record, Some(&prior));
        assert_eq!(record, object(json!({"machine_id": "m"})));
    }
}
