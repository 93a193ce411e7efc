//! What pre-commit refuses (design.md section 6): no network, only what this clone knows.

use std::path::PathBuf;

use super::claims::Claims;
use super::settings::HookSettings;
use super::verdict::{HookVerdict, Objection, ObjectionKind};
use crate::domain::canary::Canary;
use crate::domain::time::Timestamp;
use crate::git::head::Head;

/// How the canary of a worktree does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CanaryFacts {
    /// None is set for this branch, or its commit is still an ancestor of HEAD.
    Quiet,
    /// Its commit is no longer an ancestor of HEAD.
    Tripped(Canary),
    /// Its file makes no sense.
    Unreadable(PathBuf),
}

/// Judges what the repository alone can tell. The very first commit has to go somewhere, so an unborn branch is free.
#[must_use]
pub fn branch_rules(head: &Head, canary: &CanaryFacts, settings: &HookSettings) -> HookVerdict {
    let mut verdict = HookVerdict::default();
    let is_primary = head.branch.as_deref() == Some(settings.primary_branch.as_str());
    if is_primary && head.commit.is_some() && !settings.allow_primary_commit {
        verdict.objections.push(primary_branch(&settings.primary_branch));
    }
    match canary {
        CanaryFacts::Quiet => {}
        CanaryFacts::Tripped(canary) => verdict.objections.push(tripped(canary)),
        CanaryFacts::Unreadable(file) => verdict.warnings.push(format!(
            "{} cannot be read, so the canary is not checked; `agent-coord canary` sets it anew",
            file.display()
        )),
    }
    verdict
}

/// Judges what the claims say of the branch.
#[must_use]
pub fn claim_rules(branch: &str, claims: Claims, settings: &HookSettings, now: Timestamp) -> HookVerdict {
    let mut verdict = HookVerdict { objections: Vec::new(), warnings: claims.warnings };
    let is_ours = claims.standings.iter().any(|standing| standing.is_ours);
    verdict.objections.extend(claims.standings.into_iter().flat_map(|standing| standing.objections));
    if verdict.passes() && settings.require_claim && !is_ours && branch != settings.primary_branch {
        verdict.objections.push(unclaimed(branch));
    }
    if claims.cached {
        for objection in &mut verdict.objections {
            objection.hints.push(age(claims.fetched_at, now));
        }
    }
    verdict
}

/// Returns the objection to a branch that this agent has not claimed, where claims are required.
#[must_use]
pub fn unclaimed(branch: &str) -> Objection {
    let branch = branch.escape_debug();
    Objection::new(
        ObjectionKind::Policy,
        format!("branch {branch} is not claimed by this agent, and agent-coord.requireClaim is set"),
    )
    .hint(format!("`agent-coord claim TARGET --branch {branch}` claims what you work on"))
}

fn primary_branch(branch: &str) -> Objection {
    let branch = branch.escape_debug();
    Objection::new(ObjectionKind::Policy, format!("{branch} is the primary branch; nobody commits to it directly"))
        .hint("commit on a branch of your own: git switch -c NAME")
        .hint("AGENT_COORD_ALLOW_PRIMARY_COMMIT=1 allows it once, agent-coord.allowPrimaryCommit for this clone")
}

fn tripped(canary: &Canary) -> Objection {
    let (branch, commit) = (canary.branch.escape_debug(), &canary.commit[..12]);
    let message = format!("canary: the history of {branch} was rewritten: {commit} is no longer an ancestor of HEAD");
    Objection::new(ObjectionKind::Policy, message)
        .hint(format!("compare with git log {commit}..HEAD and git reflog {branch}"))
        .hint("once it is understood, `agent-coord canary` remembers the new history; `agent-coord canary --clear` forgets it")
}

fn age(fetched_at: Option<Timestamp>, now: Timestamp) -> String {
    match fetched_at {
        Some(at) => {
            format!(
                "claims as fetched {} ago, at {at}; `agent-coord sync` fetches them anew",
                words(now.seconds_since(at))
            )
        }
        None => "the claims were never fetched here; `agent-coord sync` fetches them".to_owned(),
    }
}

fn words(seconds: i64) -> String {
    match seconds.max(0) {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds @ 7200..172_800 => format!("{} h", seconds / 3600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::at;
    use crate::hooks::standing::Standing;
    use regex_lite::Regex;

    fn settings(allow_primary_commit: bool, require_claim: bool) -> HookSettings {
        HookSettings {
            primary_branch: "trunk".to_owned(),
            allow_primary_commit,
            protected: Regex::new("^release/").unwrap(),
            merge_phrase: None,
            require_claim,
            pass_unknown: false,
        }
    }

    fn head(branch: Option<&str>) -> Head {
        Head { branch: branch.map(str::to_owned), commit: Some("b".repeat(40)) }
    }

    fn refused(branch: Option<&str>, canary: &CanaryFacts, allow: bool) -> bool {
        !branch_rules(&head(branch), canary, &settings(allow, false)).passes()
    }

    #[test]
    fn the_first_commit_of_all_may_go_to_the_primary_branch() {
        let unborn = Head { commit: None, ..head(Some("trunk")) };
        assert!(branch_rules(&unborn, &CanaryFacts::Quiet, &settings(false, false)).passes());
    }

    #[test]
    fn only_the_primary_branch_is_closed_and_the_setting_opens_it() {
        assert!(refused(Some("trunk"), &CanaryFacts::Quiet, false));
        assert!(!refused(Some("trunk"), &CanaryFacts::Quiet, true));
        assert!(!refused(Some("main"), &CanaryFacts::Quiet, false));
        assert!(!refused(None, &CanaryFacts::Quiet, false), "a detached HEAD is on no branch");
    }

    #[test]
    fn a_tripped_canary_refuses_and_an_unreadable_one_warns() {
        let canary = Canary { commit: "a".repeat(40), branch: "feat".to_owned() };
        assert!(refused(Some("feat"), &CanaryFacts::Tripped(canary), false));
        let verdict = branch_rules(&head(Some("feat")), &CanaryFacts::Unreadable("/x".into()), &settings(false, false));
        assert!(verdict.passes() && verdict.warnings.len() == 1);
    }

    fn claims(is_ours: bool, fetched_at: Option<Timestamp>) -> Claims {
        Claims {
            standings: vec![Standing { objections: vec![], is_ours }],
            warnings: vec![],
            cached: fetched_at.is_some(),
            fetched_at,
        }
    }

    #[test]
    fn a_required_claim_is_asked_for_on_every_branch_but_the_primary_one() {
        let judge = |branch, is_ours| claim_rules(branch, claims(is_ours, None), &settings(true, true), at(0)).passes();
        assert!(!judge("feat", false));
        assert!(judge("feat", true));
        assert!(judge("trunk", false));
    }

    #[test]
    fn a_refusal_on_shared_claims_says_how_old_they_are() {
        let verdict = claim_rules("feat", claims(false, Some(at(0))), &settings(false, true), at(7200));
        let hints = verdict.objections[0].hints.join("\n");
        assert!(hints.contains("claims as fetched 2 h ago") && hints.contains("agent-coord sync"), "{hints}");
        let unfetched = Claims { cached: true, ..claims(false, None) };
        let never = claim_rules("feat", unfetched, &settings(false, true), at(0));
        assert!(never.objections[0].hints.join("\n").contains("never fetched"));
    }
}
