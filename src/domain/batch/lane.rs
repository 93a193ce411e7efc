//! One lane of a batch as stored: a named owner with its targets and dependencies.

use serde_json::Value;

use crate::domain::record::{Members, plain, present, text, texts};

/// What is shown in place of a name or an owner that is missing.
pub const UNKNOWN: &str = "UNKNOWN";

/// The outcomes of a closed lane.
pub const OUTCOMES: [&str; 3] = ["done", "abandoned", "superseded"];

/// A lane.
#[derive(Debug, Clone, PartialEq)]
pub struct Lane<'a> {
    /// The lane as stored.
    pub members: &'a Members,
    /// `name`, else the older `id`, else `UNKNOWN`.
    pub name: String,
    /// `owner`, else the older `agent_id`; absent when blank.
    pub owner: Option<String>,
    /// `targets`, else the older `target`, as texts.
    pub targets: Vec<String>,
    /// `depends_on`, as texts: `BATCH:LANE` each.
    pub dependencies: Vec<String>,
}

impl<'a> Lane<'a> {
    /// Reads a lane.
    #[must_use]
    pub fn of(members: &'a Members) -> Self {
        let either = |first: &str, second: &str| present(members, first).or_else(|| present(members, second));
        Self {
            members,
            name: either("name", "id").map_or_else(|| UNKNOWN.to_owned(), plain),
            owner: either("owner", "agent_id").map(plain).filter(|owner| !owner.trim().is_empty()),
            targets: texts(either("targets", "target")),
            dependencies: texts(members.get("depends_on")),
        }
    }

    /// Returns the owner as shown.
    #[must_use]
    pub fn owner_shown(&self) -> &str {
        self.owner.as_deref().unwrap_or(UNKNOWN)
    }

    /// Returns the outcome the lane was closed with.
    #[must_use]
    pub fn outcome(&self) -> Option<&'a str> {
        text(self.members, "terminal").filter(|outcome| OUTCOMES.contains(outcome))
    }

    /// Tells whether the lane covers `target`.
    #[must_use]
    pub fn covers(&self, target: &str) -> bool {
        self.targets.iter().any(|own| own == target)
    }
}

/// Returns what a batch lists as lanes, objects or not.
#[must_use]
pub fn listed(batch: &Members) -> &[Value] {
    batch.get("lanes").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Returns the lanes of a batch that are objects.
pub fn lanes(batch: &Members) -> impl Iterator<Item = Lane<'_>> {
    listed(batch).iter().filter_map(Value::as_object).map(Lane::of)
}

/// Splits a dependency at its last colon into batch and lane.
#[must_use]
pub fn split_reference(reference: &str) -> Option<(&str, &str)> {
    reference.rsplit_once(':').filter(|(_, lane)| !lane.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::object;
    use serde_json::json;

    #[test]
    fn older_spellings_of_a_lane_are_understood() {
        let members = object(json!({"id": "docs", "agent_id": "w2", "target": 2, "depends_on": "b1:backend"}));
        let lane = Lane::of(&members);
        assert_eq!((lane.name.as_str(), lane.owner_shown()), ("docs", "w2"));
        assert_eq!(
            (lane.targets.clone(), lane.dependencies.clone()),
            (vec!["2".to_owned()], vec!["b1:backend".to_owned()])
        );
        assert!(lane.covers("2") && !lane.covers("02"));
    }

    #[test]
    fn what_is_missing_is_unknown() {
        let members = object(json!({"owner": " "}));
        let lane = Lane::of(&members);
        assert_eq!((lane.name.as_str(), lane.owner_shown(), lane.outcome()), (UNKNOWN, UNKNOWN, None));
    }

    #[test]
    fn a_reference_is_split_at_the_last_colon() {
        assert_eq!(split_reference("team:b1:docs"), Some(("team:b1", "docs")));
        assert_eq!(split_reference("b1:"), None);
        assert_eq!(split_reference("docs"), None);
    }
}
