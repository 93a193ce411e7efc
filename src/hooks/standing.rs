//! The question both hooks ask (design.md section 6): would `claim` by this agent be refused for a claim of this
//! repository that stores this branch, or whose target is its name; or was our own claim for it lost?
//!
//! The rule itself is [`acquire`]'s. Here it is only asked, for each claim that concerns the branch.

use super::verdict::{Objection, ObjectionKind};
use crate::domain::claim::{FirstRead, acquire};
use crate::domain::decision::{Halt, Refusal, RefusalKind};
use crate::domain::ids::{EventId, RepoName, Target};
use crate::domain::liveness::{self, Liveness};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::record::{Content, Members, Stored};
use crate::domain::request::{Acquire, Attribution, Metadata, SeenChange, Stamp};
use crate::domain::snapshot::Snapshot;
use crate::domain::tenure::{Actor, Holding, loss};
use crate::domain::time::Timestamp;
use crate::worktree::held::Held;

/// Who asks, and what is known beside the store's records.
#[derive(Debug, Clone)]
pub struct Asker<'a> {
    /// The agent that acts here.
    pub agent: &'a str,
    /// Somebody named that agent. One that was only made up acts as whoever a tenure names.
    pub agent_is_named: bool,
    /// The repository.
    pub repo: &'a RepoName,
    /// The tenures this worktree remembers.
    pub held: &'a [Held],
    /// The changes this clone has witnessed.
    pub seen_changing: &'a [SeenChange],
    /// The instant of the question.
    pub now: Timestamp,
}

/// How a branch stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Standing {
    /// What speaks against working on it.
    pub objections: Vec<Objection>,
    /// A claim of this agent covers it.
    pub is_ours: bool,
}

/// Answers the question for one branch.
///
/// # Errors
/// The record that has to be read first.
pub fn of_branch(snapshot: &Snapshot, asker: &Asker<'_>, branch: &str) -> Result<Standing, RecordPath> {
    let mut standing = Standing::default();
    for claim in claims_of(snapshot, asker.repo) {
        let Some(concern) = Concern::of(claim, asker, branch) else { continue };
        match concern.ask(snapshot, asker) {
            Ok(is_ours) => standing.is_ours |= is_ours,
            Err(Halt::Read(path)) => return Err(path),
            Err(Halt::Refused(refusal)) => standing.objections.push(objection(refusal, claim, branch, asker.repo)),
        }
    }
    Ok(standing)
}

/// Returns what is wrong with the listing itself, worded: what could not be read may hold a claim.
#[must_use]
pub fn unreadable(snapshot: &Snapshot, repo: &RepoName) -> Vec<String> {
    let notes =
        snapshot.listings.get(&Prefix::claims_of(repo)).map(|listing| listing.notes.clone()).unwrap_or_default();
    let bad = claims_of(snapshot, repo).filter(|claim| claim.object().is_none());
    notes
        .into_iter()
        .chain(bad.map(|claim| format!("{} cannot be read, so the branch it may be about is not checked", claim.path)))
        .collect()
}

/// Makes UNKNOWN of heartbeats that look dead but were cached longer ago than their dead threshold: their agent may have
/// beaten since, so the claim's own term decides. `age` is that of the cache in seconds; `None` = never fetched.
pub fn distrust_old_heartbeats(snapshot: &mut Snapshot, age: Option<i64>, now: Timestamp) {
    for (path, row) in &mut snapshot.records {
        let Some(row) = row.as_mut().filter(|_| path.family() == Family::Heartbeats) else { continue };
        let Some(members) = row.object() else { continue };
        let beats = liveness::term(members).is_some_and(|(_, ttl)| ttl.num_seconds() > 0);
        let looks_dead = liveness::of(members, now) == Liveness::Dead;
        let is_old = age.is_none_or(|age| liveness::as_witnessed(members, age) == Liveness::Dead);
        if beats && looks_dead && is_old {
            row.content = Content::Object(Members::new());
        }
    }
}

fn claims_of<'a>(snapshot: &'a Snapshot, repo: &RepoName) -> impl Iterator<Item = &'a Stored> {
    snapshot.listings.get(&Prefix::claims_of(repo)).into_iter().flat_map(|listing| &listing.records)
}

/// A claim that concerns the branch.
struct Concern<'a> {
    claim: &'a Stored,
    target: Target,
    held: Option<&'a Held>,
    /// The claim covers the branch. Otherwise only the loss of a tenure whose branch nobody knows brings it up.
    covers: bool,
}

impl<'a> Concern<'a> {
    fn of(claim: &'a Stored, asker: &'a Asker<'_>, branch: &str) -> Option<Self> {
        let target = Target::parse("target", claim.path.stem()).ok()?;
        let is_target = |held: &&Held| {
            held.tenure.repo == asker.repo.as_str()
                && held.tenure.target == target.as_str()
                && (held.tenure.agent == asker.agent || !asker.agent_is_named)
        };
        let held = asker.held.iter().rev().find(is_target);
        let remembered_branch = held.and_then(|held| held.branch.as_deref());
        let covers =
            claim.text("branch").is_some_and(|name| name.strip_prefix("refs/heads/").unwrap_or(name) == branch)
                || target.as_str() == branch
                || (remembered_branch == Some(branch) && claim.object().is_some());
        let may_be_lost = held.is_some() && remembered_branch.is_none() && claim.object().is_some();
        (covers || may_be_lost).then_some(Self { claim, target, held, covers })
    }

    /// Returns whether the claim is ours, or why a claim by us would be refused.
    fn ask(&self, snapshot: &Snapshot, asker: &Asker<'_>) -> Result<bool, Halt> {
        let holding = Holding::of(self.claim)?;
        let request = self.request(asker);
        self.check_tenure(&holding, &request)?;
        if !self.covers {
            return Ok(false);
        }
        let mut records = snapshot.records.clone();
        records.insert(self.claim.path.clone(), Some(self.claim.clone()));
        let known = Snapshot {
            freshness: snapshot.freshness,
            records,
            listings: Default::default(),
            store: snapshot.store.clone(),
        };
        // Only whether it would be granted matters; the decision itself is never committed.
        let _granted = acquire(&known, &request, &stamp(asker.now)?, &mut FirstRead::default())?;
        Ok(holding.active && holding.is_of(&request.agent))
    }

    /// A tenure that is over stays over, even where a new claim would be granted.
    fn check_tenure(&self, holding: &Holding, request: &Acquire) -> Result<(), Refusal> {
        if self.held.is_none() {
            return Ok(());
        }
        let item = format!("{}#{}", request.repo, request.target);
        let actor = Actor::of(Some(&request.agent), &request.metadata);
        match loss(&item, holding, &actor) {
            None => Ok(()),
            Some(loss) => {
                let target = &request.target;
                let next = format!(
                    "`agent-coord claim {target}` claims it anew, if its holder is gone; `agent-coord release {target}` \
                     lets go of it here"
                );
                Err(Refusal::new(RefusalKind::Claimed, loss.message).with_hint(next))
            }
        }
    }

    fn request(&self, asker: &Asker<'_>) -> Acquire {
        let tenure = self.held.map(|held| held.tenure.clone());
        let metadata = Metadata {
            instance_id: tenure.as_ref().and_then(|tenure| tenure.instance.clone()),
            generation: tenure.as_ref().map(|tenure| tenure.generation),
            ..Metadata::default()
        };
        Acquire {
            agent: tenure.as_ref().map_or_else(|| asker.agent.to_owned(), |tenure| tenure.agent.clone()),
            repo: asker.repo.clone(),
            target: self.target.clone(),
            batch_id: None,
            branch: None,
            current_branch: None,
            metadata,
            supersede: false,
            ttl_seconds: 1,
            attribution: Attribution::default(),
            tenure,
            seen_changing: asker.seen_changing.to_vec(),
        }
    }
}

/// Nothing is written, so the ids of the step only have to be well formed.
fn stamp(now: Timestamp) -> Result<Stamp, Refusal> {
    let event_id = EventId::parse("event-id", "asked-by-a-hook")
        .map_err(|error| Refusal::new(RefusalKind::Invalid, error.to_string()))?;
    Ok(Stamp { now, event_id, transaction_id: String::new(), fencing: true })
}

fn objection(refusal: Refusal, claim: &Stored, branch: &str, repo: &RepoName) -> Objection {
    let kind = match refusal.kind {
        RefusalKind::Claimed => ObjectionKind::Claimed,
        RefusalKind::Invalid => ObjectionKind::Policy,
        RefusalKind::Unknown => ObjectionKind::Unknown,
    };
    let covers = format!(
        "that claim covers branch {}; work on a branch of your own, or see `agent-coord status --repo {repo} --target {}`",
        branch.escape_debug(),
        claim.path.stem()
    );
    let mut objection = Objection::new(kind, refusal.message);
    objection.hints.extend(refusal.hint);
    objection.hint(covers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::fixtures::{at, malformed, repo, snapshot, stored, tenure_of, when};
    use crate::domain::snapshot::Listing;
    use serde_json::{Value, json};

    const BRANCH: &str = "feat-x";

    fn claim(target: &str, holder: &str, branch: Option<&str>, generation: i64) -> Stored {
        let mut record = json!({
            "status": "active", "agent_id": holder, "generation": generation,
            "claimed_at": when(0), "updated_at": when(0), "expires_at": when(14_400),
        });
        if let Some(branch) = branch {
            record["branch"] = Value::from(branch);
        }
        stored(&format!("claims/o/r/{target}.json"), record)
    }

    fn heartbeat(agent: &str, seconds: i64) -> Stored {
        let row = json!({"agent_id": agent, "updated_at": when(seconds), "expires_at": when(seconds + 900)});
        stored(&format!("heartbeats/{agent}.json"), row)
    }

    fn read(claims: Vec<Stored>, rows: Vec<Stored>, absent: &[&str]) -> Snapshot {
        let mut read = snapshot(rows, absent);
        read.listings.insert(Prefix::claims_of(&repo()), Listing { records: claims, notes: Vec::new() });
        read
    }

    /// Asks as agent `a` at `seconds`.
    fn ask(read: &Snapshot, held: &[Held], seconds: i64) -> Standing {
        let repo = repo();
        let asker = Asker { agent: "a", agent_is_named: true, repo: &repo, held, seen_changing: &[], now: at(seconds) };
        of_branch(read, &asker, BRANCH).expect("every record was read")
    }

    fn messages(standing: &Standing) -> Vec<&str> {
        standing.objections.iter().map(|objection| objection.message.as_str()).collect()
    }

    fn held(generation: i64, branch: Option<&str>) -> Held {
        Held { tenure: tenure_of("a", None, generation), branch: branch.map(str::to_owned) }
    }

    #[test]
    fn a_branch_that_a_living_agent_claimed_is_refused_in_the_words_of_claim() {
        let read = read(vec![claim("42", "b", Some(BRANCH), 1)], vec![heartbeat("b", 0)], &[]);
        let standing = ask(&read, &[], 60);
        assert_eq!(messages(&standing), ["CLAIM_REFUSED: active claim for o/r#42 held by b; heartbeat live"]);
        assert_eq!(standing.objections[0].kind, ObjectionKind::Claimed);
    }

    #[test]
    fn a_target_of_the_branchs_name_counts_as_its_claim() {
        let read = read(vec![claim(BRANCH, "b", None, 1)], vec![heartbeat("b", 0)], &[]);
        assert_eq!(ask(&read, &[], 60).objections.len(), 1);
    }

    #[test]
    fn other_branches_released_claims_and_dead_holders_are_in_nobodys_way() {
        let mut released = claim("7", "b", Some(BRANCH), 1);
        if let crate::domain::record::Content::Object(members) = &mut released.content {
            members.insert("status".to_owned(), Value::from("released"));
        }
        let claims = vec![claim("1", "b", Some("feat-y"), 1), released, claim("8", "c", Some(BRANCH), 1)];
        let read = read(claims, vec![heartbeat("c", -100_000)], &[]);
        assert_eq!(ask(&read, &[], 60), Standing::default());
    }

    #[test]
    fn our_own_claim_covers_the_branch() {
        let read = read(vec![claim("42", "a", Some(BRANCH), 3)], vec![], &[]);
        for held in [vec![held(3, None)], vec![]] {
            assert_eq!(ask(&read, &held, 60), Standing { objections: vec![], is_ours: true });
        }
    }

    #[test]
    fn a_heartbeat_that_was_not_read_is_asked_for_and_never_taken_as_absent() {
        let read = read(vec![claim("42", "b", Some(BRANCH), 1)], vec![], &[]);
        let repo = repo();
        let asker = Asker { agent: "a", agent_is_named: true, repo: &repo, held: &[], seen_changing: &[], now: at(60) };
        assert_eq!(of_branch(&read, &asker, BRANCH).unwrap_err().as_str(), "heartbeats/b.json");
    }

    #[test]
    fn a_claim_we_lost_stops_us_even_when_its_new_holder_is_dead_or_works_on_another_branch() {
        for branch in [Some(BRANCH), Some("feat-of-b"), None] {
            let read = read(vec![claim("42", "b", branch, 4)], vec![heartbeat("b", -100_000)], &[]);
            let standing = ask(&read, &[held(3, Some(BRANCH))], 60);
            let lost = format!("CLAIM_LOST: o/r#42 generation 4 is held by b since {}", when(0));
            assert_eq!(messages(&standing), [lost], "{branch:?}");
        }
    }

    #[test]
    fn a_lost_claim_of_another_branch_does_not_matter_here() {
        let read = read(vec![claim("42", "b", Some("feat-of-b"), 4)], vec![heartbeat("b", 0)], &[]);
        assert_eq!(ask(&read, &[held(3, Some("feat-y"))], 60), Standing::default());
    }

    #[test]
    fn a_named_agent_is_not_bound_by_the_tenure_of_another_and_an_unnamed_one_acts_for_it() {
        let read = read(vec![claim("42", "b", Some(BRANCH), 4)], vec![heartbeat("b", 0)], &[]);
        let theirs = [Held { tenure: tenure_of("b", None, 4), branch: None }];
        assert_eq!(ask(&read, &theirs, 60).objections.len(), 1, "agent a was named, and b holds the claim");
        let repo = repo();
        let unnamed = Asker {
            agent: "made-up",
            agent_is_named: false,
            repo: &repo,
            held: &theirs,
            seen_changing: &[],
            now: at(60),
        };
        let standing = of_branch(&read, &unnamed, BRANCH).unwrap();
        assert_eq!(standing, Standing { objections: vec![], is_ours: true });
    }

    #[test]
    fn an_old_instance_of_the_same_agent_is_refused() {
        let mut successor = claim("42", "a", Some(BRANCH), 4);
        if let crate::domain::record::Content::Object(members) = &mut successor.content {
            members.insert("instance_id".to_owned(), Value::from("i2"));
        }
        let read = read(vec![successor], vec![heartbeat("a", 0)], &[]);
        let old = Held { tenure: tenure_of("a", Some("i1"), 3), branch: None };
        assert_eq!(ask(&read, &[old], 60).objections.len(), 1);
    }

    #[test]
    fn a_record_that_cannot_be_read_is_told_and_unknown_where_its_target_is_the_branch() {
        let claims = vec![malformed("claims/o/r/42.json"), malformed(&format!("claims/o/r/{BRANCH}.json"))];
        let read = read(claims, vec![], &[]);
        let standing = ask(&read, &[], 60);
        assert_eq!(standing.objections.len(), 1);
        assert_eq!(standing.objections[0].kind, ObjectionKind::Unknown);
        assert_eq!(unreadable(&read, &repo()).len(), 2);
    }

    #[test]
    fn a_heartbeat_cached_too_long_ago_proves_nothing_so_the_term_of_the_claim_decides() {
        let build = || read(vec![claim("42", "b", Some(BRANCH), 1)], vec![heartbeat("b", 0)], &[]);
        let now = 4000;
        assert_eq!(ask(&build(), &[], now), Standing::default(), "by its own timestamps the holder is dead");
        let mut old = build();
        distrust_old_heartbeats(&mut old, Some(3600), at(now));
        let refused = ask(&old, &[], now);
        assert!(
            messages(&refused)[0].ends_with(&format!("heartbeat unknown; fallback claim expires at {}", when(14_400)))
        );
        assert_eq!(ask(&old, &[], 14_401), Standing::default(), "past the term");
        let mut young = build();
        distrust_old_heartbeats(&mut young, Some(3599), at(now));
        assert_eq!(ask(&young, &[], now), Standing::default(), "a young cache is believed");
        let mut never = build();
        distrust_old_heartbeats(&mut never, None, at(now));
        assert_eq!(ask(&never, &[], now).objections.len(), 1);
    }
    #[test]
    fn a_heartbeat_that_is_live_by_its_own_timestamps_stays_live_in_a_cache_of_unknown_age() {
        let now = 20_000;
        let mut read = read(vec![claim("42", "b", Some(BRANCH), 1)], vec![heartbeat("b", now - 60)], &[]);
        distrust_old_heartbeats(&mut read, None, at(now));
        assert!(messages(&ask(&read, &[], now))[0].ends_with("heartbeat live"), "the claim's own term is over by then");
    }

    #[test]
    fn a_lost_tenure_whose_branch_nobody_knows_stops_us_everywhere_and_a_held_one_covers_nothing() {
        let lost = read(vec![claim("42", "b", Some("feat-of-b"), 4)], vec![heartbeat("b", 0)], &[]);
        assert!(messages(&ask(&lost, &[held(3, None)], 60))[0].starts_with("CLAIM_LOST: o/r#42"));
        let ours = read(vec![claim("42", "a", None, 3)], vec![], &[]);
        assert_eq!(ask(&ours, &[held(3, None)], 60), Standing::default());
    }

    #[test]
    fn a_branch_stored_by_its_full_name_is_the_same_branch() {
        let read = read(vec![claim("42", "b", Some("refs/heads/feat-x"), 1)], vec![heartbeat("b", 0)], &[]);
        assert_eq!(ask(&read, &[], 60).objections.len(), 1);
    }
}
