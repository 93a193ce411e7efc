//! What pre-push refuses (design.md section 6).

use super::claims::Claims;
use super::pre_commit::unclaimed;
use super::pushed::PushedRef;
use super::settings::HookSettings;
use super::verdict::{HookVerdict, Objection, ObjectionKind};

const BY_NAME: &str = "push branches and tags by name, without --mirror and remote.<name>.mirror";

/// One ref of a push, with what the repository knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushFacts {
    /// What git said.
    pub pushed: PushedRef,
    /// What the remote has there is an ancestor of what is pushed; true for a new ref, false for a deletion.
    pub fast_forward: bool,
}

/// Judges what the repository alone can tell.
#[must_use]
pub fn branch_rules(refs: &[PushFacts], intent: Option<&str>, settings: &HookSettings) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    if let Some(coordination) = refs.iter().find(|facts| facts.pushed.is_coordination()) {
        verdict.objections.push(coordination_refs(&coordination.pushed.remote_name));
    }
    for facts in refs {
        let Some(branch) = facts.pushed.branch().filter(|branch| settings.is_protected(branch)) else { continue };
        if facts.pushed.local_id.is_none() {
            verdict.objections.push(forbidden(branch, "this push would delete it"));
        } else if !facts.fast_forward {
            verdict.objections.push(forbidden(branch, "this push would rewrite its history (it is no fast-forward)"));
        } else {
            verdict.objections.extend(merge_phrase(branch, intent, settings));
        }
    }
    verdict
}

/// Tells whether the push rests on the merge phrase, which is then used up.
#[must_use]
pub fn uses_intent(refs: &[PushFacts], settings: &HookSettings) -> bool {
    refs.iter().filter_map(|facts| facts.pushed.branch()).any(|branch| settings.is_protected(branch))
}

/// Returns the branches whose claims have to be asked, each once.
#[must_use]
pub fn branches(refs: &[PushFacts]) -> Vec<&str> {
    let mut branches: Vec<&str> = refs.iter().filter_map(|facts| facts.pushed.branch()).collect();
    branches.sort_unstable();
    branches.dedup();
    branches
}

/// Judges what the claims say of `branches`, which they were asked for in this order.
#[must_use]
pub fn claim_rules(refs: &[PushFacts], branches: &[&str], claims: Claims, settings: &HookSettings) -> HookVerdict {
    let mut verdict = HookVerdict { objections: Vec::new(), warnings: claims.warnings };
    for (branch, standing) in branches.iter().zip(claims.standings) {
        let is_deleted =
            refs.iter().any(|facts| facts.pushed.branch() == Some(branch) && facts.pushed.local_id.is_none());
        let needs_claim = settings.require_claim && !is_deleted && *branch != settings.primary_branch;
        if standing.objections.is_empty() && needs_claim && !standing.is_ours {
            verdict.objections.push(unclaimed(branch));
        }
        verdict.objections.extend(standing.objections);
    }
    verdict
}

/// Returns the objection to a push that makes the remote a copy of this clone.
#[must_use]
pub fn mirror() -> Objection {
    let message = "a mirror takes away coordination state that this clone has not fetched, which only agent-coord may";
    Objection::new(ObjectionKind::Policy, message).hint(BY_NAME)
}

fn coordination_refs(name: &str) -> Objection {
    let message = format!("{} is coordination state, which only agent-coord itself pushes", name.escape_debug());
    Objection::new(ObjectionKind::Policy, message).hint(BY_NAME)
}

fn forbidden(branch: &str, what: &str) -> Objection {
    Objection::new(ObjectionKind::Policy, format!("{} is protected, and {what}", branch.escape_debug()))
        .hint("bring the change in as new commits on top of what the remote has")
}

fn merge_phrase(branch: &str, intent: Option<&str>, settings: &HookSettings) -> Option<Objection> {
    let branch = branch.escape_debug();
    let Some(phrase) = &settings.merge_phrase else {
        let message = format!("{branch} is protected, and no merge phrase is set that could let a push to it pass");
        return Some(Objection::new(ObjectionKind::Policy, message).hint(
            "merge through your host's review, or have a person set agent-coord.mergePhrase and write it into MERGE_INTENT",
        ));
    };
    if intent == Some(phrase.as_str()) {
        return None;
    }
    let what = if intent.is_some() { "does not hold the merge phrase" } else { "is missing" };
    let message = format!("{branch} is protected, and MERGE_INTENT {what}");
    Some(
        Objection::new(ObjectionKind::Policy, message)
            .hint("a person allows one push by writing the merge phrase into MERGE_INTENT in the git directory"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::standing::Standing;
    use regex_lite::Regex;

    fn settings() -> HookSettings {
        HookSettings {
            primary_branch: "main".to_owned(),
            allow_primary_commit: false,
            protected: Regex::new("^(release|hotfix)/").unwrap(),
            merge_phrase: Some("ship it".to_owned()),
            require_claim: false,
            pass_unknown: false,
        }
    }

    fn push(remote_name: &str, fast_forward: bool) -> PushFacts {
        let pushed = PushedRef {
            local_name: "refs/heads/feat".to_owned(),
            local_id: Some("b".repeat(40)),
            remote_name: remote_name.to_owned(),
            remote_id: Some("a".repeat(40)),
        };
        PushFacts { pushed, fast_forward }
    }

    fn deletion(remote_name: &str) -> PushFacts {
        let mut facts = push(remote_name, false);
        facts.pushed.local_id = None;
        facts
    }

    fn objections(refs: &[PushFacts], intent: Option<&str>) -> usize {
        branch_rules(refs, intent, &settings()).objections.len()
    }

    #[test]
    fn the_merge_phrase_must_be_exact_and_only_protected_branches_need_it() {
        for branch in ["refs/heads/main", "refs/heads/release/1"] {
            let refs = [push(branch, true)];
            assert_eq!(objections(&refs, Some("ship it")), 0, "{branch}");
            assert!(uses_intent(&refs, &settings()));
            for wrong in [None, Some(""), Some("ship it "), Some("Ship it"), Some("ship it\nship it")] {
                assert_eq!(objections(&refs, wrong), 1, "{branch} {wrong:?}");
            }
        }
        for free in ["refs/heads/feat", "refs/tags/release/1", "refs/tags/main"] {
            assert_eq!(objections(&[push(free, false)], None), 0, "{free}");
            assert!(!uses_intent(&[push(free, true)], &settings()));
        }
    }

    #[test]
    fn no_phrase_lets_a_protected_branch_be_rewritten_or_deleted() {
        assert_eq!(objections(&[push("refs/heads/main", false)], Some("ship it")), 1);
        assert_eq!(objections(&[deletion("refs/heads/release/1")], Some("ship it")), 1);
        assert_eq!(objections(&[deletion("refs/heads/feat")], None), 0);
    }

    #[test]
    fn without_a_phrase_set_no_push_to_a_protected_branch_passes() {
        let unset = HookSettings { merge_phrase: None, ..settings() };
        assert_eq!(branch_rules(&[push("refs/heads/main", true)], Some(""), &unset).objections.len(), 1);
    }

    #[test]
    fn one_bad_ref_among_several_refuses_the_push() {
        let refs =
            [push("refs/heads/feat", true), push("refs/agent-coord/store.json", true), push("refs/tags/v1", true)];
        assert_eq!(objections(&refs, None), 1);
    }

    #[test]
    fn where_claims_are_required_a_deletion_needs_none() {
        let required = HookSettings { require_claim: true, ..settings() };
        let refs = [push("refs/heads/feat", true), deletion("refs/heads/old"), push("refs/heads/mine", true)];
        let names = branches(&refs);
        let standings = names.iter().map(|name| Standing { objections: vec![], is_ours: *name == "mine" }).collect();
        let claims = Claims { standings, warnings: vec![], cached: false, fetched_at: None };
        let verdict = claim_rules(&refs, &names, claims, &required);
        assert_eq!(verdict.objections.len(), 1);
        assert!(verdict.objections[0].message.contains("branch feat"));
    }
}
