//! The spellings under which one work item may be claimed (cli-contract.md section 7.4).

use crate::domain::ids::{RepoName, Target};
use crate::domain::path::RecordPath;

/// What a target string is about, whatever its decoration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The issue, pull request or name, lower-cased.
    pub base: String,
    /// The lane of it, lower-cased.
    pub lane: Option<String>,
}

impl Identity {
    /// Returns the identity of a target as typed or stored.
    #[must_use]
    pub fn of(target: &str) -> Self {
        let mut parts: Vec<String> = target.trim().split(':').map(str::to_owned).collect();
        if parts.len() > 1 {
            let word = parts[0].to_lowercase();
            let numbered = !parts[1].is_empty() && parts[1].chars().all(|digit| digit.is_ascii_digit());
            match word.as_str() {
                "issue" | "pr" if numbered => drop(parts.remove(0)),
                "adhoc" if !parts[1].is_empty() && !numbered => drop(parts.remove(0)),
                "issue" | "pr" | "adhoc" => {
                    let glued = format!("{}:{}", parts[0], parts[1]);
                    parts.splice(..2, [glued]);
                }
                _ => {}
            }
        }
        let base = parts[0].to_lowercase();
        let lane = (parts.len() > 1).then(|| parts[1..].join(":").to_lowercase());
        Self { base, lane }
    }

    fn alias_spellings(&self) -> Vec<String> {
        let suffix = self.lane.as_ref().map(|lane| format!(":{lane}")).unwrap_or_default();
        ["", "issue:", "pr:", "adhoc:"]
            .iter()
            .map(|decoration| format!("{decoration}{}{suffix}", self.base))
            .filter(|spelling| Self::of(spelling) == *self)
            .collect()
    }
}

/// Returns the targets to look up for `target`: as typed first, then its other spellings.
#[must_use]
pub fn spellings(repo: &RepoName, target: &Target) -> Vec<Target> {
    let mut all = vec![target.clone()];
    for spelling in Identity::of(target.as_str()).alias_spellings() {
        let Ok(alias) = Target::parse("target", &spelling) else { continue };
        if RecordPath::claim(repo, &alias).is_ok() && !all.contains(&alias) {
            all.push(alias);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(target: &str) -> Vec<String> {
        let repo = RepoName::parse("target", "o/r").unwrap();
        let target = Target::parse("target", target).unwrap();
        spellings(&repo, &target).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_spellings_of_the_contract() {
        assert_eq!(spelled("319"), ["319", "issue:319", "pr:319"]);
        assert_eq!(spelled("Issue:319"), ["Issue:319", "319", "issue:319", "pr:319"]);
        assert_eq!(spelled("foo"), ["foo", "adhoc:foo"]);
        assert_eq!(spelled("issue:foo"), ["issue:foo"]);
        assert_eq!(spelled("adhoc:319"), ["adhoc:319"]);
        assert_eq!(spelled("319:qa"), ["319:qa", "issue:319:qa", "pr:319:qa"]);
    }

    #[test]
    fn decoration_is_dropped_and_case_folded() {
        assert_eq!(Identity::of("PR:9:QA"), Identity { base: "9".into(), lane: Some("qa".into()) });
        assert_eq!(Identity::of("adhoc:Foo"), Identity { base: "foo".into(), lane: None });
        assert_eq!(Identity::of("adhoc:"), Identity { base: "adhoc:".into(), lane: None });
    }
}
