//! Acquiring, renewing, taking over and superseding a claim (cli-contract.md section 2, design.md section 4).

use super::batch::drain::Notice;
use super::claim_record::{Carry, changes_lane, compose};
use super::decision::{Decision, Edit, Halt, Put, Refusal, RefusalKind, Verdict};
use super::event::{Lifecycle, claim_acquired};
use super::fence;
use super::holder::{Judgement, Sighting, judge};
use super::liveness::TOLERATED_SKEW;
use super::path::RecordPath;
use super::record::{Fence, Members, Stored, integer, text};
use super::request::{Acquire, Stamp, Tenure};
use super::snapshot::{Freshness, Snapshot};
use super::tenure::{Holding, members_of};
use super::time::Timestamp;

/// The highest generation that can be asked for: what every JSON reader keeps exactly, and far enough from the end of
/// the numbers that no claim runs out of them.
const HIGHEST_ASKED: i64 = 9_007_199_254_740_991;

/// A claim that was acquired or renewed.
#[derive(Debug, Clone, PartialEq)]
pub struct Acquired {
    /// The record as stored, without `$store`.
    pub record: Members,
    /// How it came to be held.
    pub way: Way,
    /// The generation held; absent on stores that enforce none.
    pub generation: Option<i64>,
    /// What the worktree is to remember; absent on stores that enforce no generations.
    pub tenure: Option<Tenure>,
    /// Which earlier tenure of this worktree was lost, in words.
    pub lost_tenure: Option<String>,
    /// What to warn of, without `warning: `.
    pub warnings: Vec<String>,
    /// The drain of the lane that the claim is for, when it was renewed all the same.
    pub drained: Option<Notice>,
}

/// How a claim came to be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Nobody held it.
    Free,
    /// The same holder holds it longer.
    Renewed,
    /// The same holder took it up for another batch or branch.
    LaneChanged,
    /// Another agent held it, and was dead or past its term.
    TakenOver,
    /// Another instance of the same agent held it.
    Superseded,
}

/// What one run of the retry loop remembers from one decision to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FirstRead {
    /// What the first decision that was put to the store rested on, and how fresh that was.
    believed: Option<(Believed, Freshness)>,
    /// The rows that decided, for the clone to remember when it saw them change.
    pub sightings: Vec<Sighting>,
}

#[derive(Debug, Clone, PartialEq)]
enum Believed {
    Absent,
    Present(Holding),
}

impl FirstRead {
    /// Tells whether somebody acquired the claim since the first decision was put to the store: of simultaneous
    /// claimers that one has won, and nobody who set out with it displaces or joins it.
    ///
    /// A belief from an old cache proves nothing about that; then the claim's own date tells a winner of this race from
    /// a holder of long ago.
    fn was_won_since(&self, held: &Holding, now: Timestamp) -> bool {
        let Some((believed, freshness)) = &self.believed else { return false };
        let is_known = *believed == Believed::Present(held.clone());
        !is_known && (*freshness == Freshness::Fetched || !was_held_long_before(held, now))
    }

    /// Remembers what a decision rests on, if it is the first that the store will be asked to take; the first on
    /// fetched state takes the place of one on a cache.
    fn note<T>(&mut self, held: Option<&Holding>, decision: &Decision<T>, snapshot: &Snapshot) {
        let is_first = match &self.believed {
            None => true,
            Some((_, freshness)) => *freshness < snapshot.freshness,
        };
        if is_first && decision.basis <= snapshot.freshness {
            let believed = held.map_or(Believed::Absent, |held| Believed::Present(held.clone()));
            self.believed = Some((believed, snapshot.freshness));
        }
    }

    fn contention(&self, item: &str, path: &RecordPath) -> Refusal {
        let was_absent = self.believed.as_ref().is_none_or(|(believed, _)| *believed == Believed::Absent);
        let lost = if was_absent { "state already exists" } else { "state changed" };
        Refusal::new(RefusalKind::Unknown, format!("claim write contention for {item}; {lost} at {path}"))
    }
}

/// Tells whether a claim was acquired so long before `now` that no clocks within tolerance could make it part of a race
/// that began at `now`.
fn was_held_long_before(held: &Holding, now: Timestamp) -> bool {
    let acquired = held.since.as_deref().and_then(Timestamp::parse_iso);
    acquired.is_some_and(|acquired| now.seconds_since(acquired) > TOLERATED_SKEW)
}

/// Decides a claim.
///
/// # Errors
/// [`Halt::Refused`] with the contract's words, [`Halt::Read`] for the holder's heartbeat.
pub fn acquire(snapshot: &Snapshot, request: &Acquire, stamp: &Stamp, first: &mut FirstRead) -> Verdict<Acquired> {
    let path = RecordPath::claim(&request.repo, &request.target)
        .map_err(|error| Refusal::new(RefusalKind::Invalid, error.to_string()))?;
    let stored = snapshot.get(&path)?;
    let held = stored.map(|stored| Standing::of(stored, request)).transpose()?;
    let asking = Asking { snapshot, request, stamp, path: &path };
    let way = match &held {
        Some(standing) if standing.held.active && standing.held.is_of(&request.agent) => asking.own(standing, first)?,
        Some(standing) if standing.held.active => asking.of_another(standing, first)?,
        _ => Way::Free,
    };
    let decision = asking.decide(held.as_ref(), way)?;
    first.note(held.as_ref().map(|standing| &standing.held), &decision, snapshot);
    Ok(decision)
}

/// The claim as it stands, seen by one who asks for it.
struct Standing<'a> {
    stored: &'a Stored,
    members: &'a Members,
    held: Holding,
    /// It is the very tenure that the asking worktree remembers.
    remembered: bool,
    /// What to say of a tenure of that worktree that is over.
    lost_tenure: Option<String>,
}

impl<'a> Standing<'a> {
    fn of(stored: &'a Stored, request: &Acquire) -> Result<Self, Refusal> {
        let held = Holding::of(stored)?;
        let remembered = request.tenure.as_ref().is_some_and(|tenure| held.is_tenure(tenure));
        let lost_tenure = request.tenure.as_ref().and_then(|tenure| lost_tenure(tenure, &held));
        Ok(Self { stored, members: members_of(stored, "claim")?, held, remembered, lost_tenure })
    }
}

fn lost_tenure(tenure: &Tenure, held: &Holding) -> Option<String> {
    let displaced = held.active && !held.is_of(&tenure.agent);
    (held.generation > tenure.generation || displaced).then(|| {
        format!(
            "generation {} of {}#{}, which this worktree held, was lost: generation {} went to {}",
            tenure.generation,
            tenure.repo,
            tenure.target,
            held.generation,
            held.holder()
        )
    })
}

/// The claim was released and put away without this worktree: it may have been another's in between.
fn gone_tenure(tenure: &Tenure) -> String {
    let Tenure { repo, target, generation, .. } = tenure;
    format!("generation {generation} of {repo}#{target}, which this worktree held, is over: that claim is gone")
}

struct Asking<'a> {
    snapshot: &'a Snapshot,
    request: &'a Acquire,
    stamp: &'a Stamp,
    path: &'a RecordPath,
}

impl Asking<'_> {
    fn item(&self) -> String {
        format!("{}#{}", self.request.repo, self.request.target)
    }

    fn judge(&self, standing: &Standing<'_>, first: &mut FirstRead) -> Result<Judgement, Halt> {
        let now = self.stamp.now;
        judge(self.snapshot, standing.stored, &standing.held, self.request, now, &mut first.sightings)
    }

    fn refuse(&self, standing: &Standing<'_>, holder: &str, reason: &str, hint: Option<String>) -> Refusal {
        let message = format!("CLAIM_REFUSED: active claim for {} held by {holder}; {reason}", self.item());
        let hints: Vec<String> = hint.into_iter().chain(standing.lost_tenure.clone()).collect();
        let refusal = Refusal::new(RefusalKind::Claimed, message);
        if hints.is_empty() { refusal } else { refusal.with_hint(hints.join("; ")) }
    }

    /// Another agent holds the claim.
    fn of_another(&self, standing: &Standing<'_>, first: &mut FirstRead) -> Result<Way, Halt> {
        match self.judge(standing, first)? {
            Judgement::Blocks { reason, hint } => {
                Err(self.refuse(standing, &standing.held.holder(), &reason, hint).into())
            }
            Judgement::Yields if first.was_won_since(&standing.held, self.stamp.now) => {
                Err(first.contention(&self.item(), self.path).into())
            }
            Judgement::Yields => Ok(Way::TakenOver),
        }
    }

    /// The same agent holds the claim, perhaps as another instance.
    fn own(&self, standing: &Standing<'_>, first: &mut FirstRead) -> Result<Way, Halt> {
        if !self.stamp.fencing {
            return Ok(self.renewal(standing));
        }
        let same_instance = self.is_same_instance(standing);
        if first.was_won_since(&standing.held, self.stamp.now) && !standing.remembered {
            return Err(if same_instance {
                first.contention(&self.item(), self.path).into()
            } else {
                self.refuse_instance(standing, "claimed by it just now", None).into()
            });
        }
        match self.claimed_generation(standing)? {
            Asked::Theirs if same_instance && !self.supersedes_itself(standing) => Ok(self.renewal(standing)),
            Asked::Higher if self.request.supersede => Ok(Way::Superseded),
            Asked::Higher => Err(self.refuse_generation(standing, "--supersede acquires a higher one").into()),
            Asked::Theirs | Asked::Outlived => self.replace(standing, first),
        }
    }

    fn renewal(&self, standing: &Standing<'_>) -> Way {
        if changes_lane(self.request, standing.members) { Way::LaneChanged } else { Way::Renewed }
    }

    /// A renewal needs the same instance. The worktree that holds the claim may name its instance later.
    fn is_same_instance(&self, standing: &Standing<'_>) -> bool {
        let asked = self.request.metadata.instance_id.as_deref().filter(|instance| !instance.trim().is_empty());
        asked == standing.held.instance.as_deref() || (standing.held.instance.is_none() && standing.remembered)
    }

    /// `--supersede` of a holder that differs by nothing but the worktree it works in.
    fn supersedes_itself(&self, standing: &Standing<'_>) -> bool {
        self.request.supersede && standing.held.instance.is_none() && !standing.remembered
    }

    /// A predecessor of the same agent gives way when that is asked for, or when it is dead.
    fn replace(&self, standing: &Standing<'_>, first: &mut FirstRead) -> Result<Way, Halt> {
        if self.request.supersede {
            return Ok(Way::Superseded);
        }
        match self.judge(standing, first)? {
            Judgement::Yields => Ok(Way::Superseded),
            Judgement::Blocks { reason, hint } => Err(self.refuse_instance(standing, &reason, hint).into()),
        }
    }

    fn refuse_instance(&self, standing: &Standing<'_>, reason: &str, hint: Option<String>) -> Refusal {
        let next = "--supersede replaces the other instance of this agent".to_owned();
        let hint = hint.map_or(next.clone(), |hint| format!("{hint}; {next}"));
        self.refuse(standing, &standing.held.holder_and_instance(), reason, Some(hint))
    }

    fn refuse_generation(&self, standing: &Standing<'_>, hint: &str) -> Refusal {
        let asked = self.request.metadata.generation.unwrap_or_default();
        let reason = format!("generation is {}, not {asked}", standing.held.generation);
        self.refuse(standing, &standing.held.holder_and_instance(), &reason, Some(hint.to_owned()))
    }

    /// Compares `--generation`, or the tenure's, with that of a claim this agent holds.
    fn claimed_generation(&self, standing: &Standing<'_>) -> Result<Asked, Refusal> {
        match self.request.metadata.generation {
            Some(asked) if asked > standing.held.generation => Ok(Asked::Higher),
            Some(asked) if asked < standing.held.generation && self.is_of_tenure(asked) => Ok(Asked::Outlived),
            Some(asked) if asked < standing.held.generation => {
                Err(self.refuse_generation(standing, "that tenure is over; leave --generation out to claim anew"))
            }
            _ => Ok(Asked::Theirs),
        }
    }

    fn is_of_tenure(&self, generation: i64) -> bool {
        self.request.tenure.as_ref().is_some_and(|tenure| tenure.generation == generation)
    }

    fn decide(&self, standing: Option<&Standing<'_>>, way: Way) -> Verdict<Acquired> {
        let generation = self.generation(standing, way)?;
        let carry = match (way, standing) {
            (Way::Renewed, Some(standing)) => Carry::Renewal(standing.members),
            (Way::Superseded, Some(standing)) if !changes_lane(self.request, standing.members) => {
                Carry::Lane(standing.members)
            }
            _ => Carry::Nothing,
        };
        let record = compose(self.request, self.stamp, carry, generation);
        let mut warnings = Vec::new();
        let mut edits: Vec<Edit> = self.mark(standing, way)?.into_iter().collect();
        self.event(standing, way, &record).add_to(&mut edits, &mut warnings);
        let stored = standing.map(|standing| standing.stored);
        edits.push(Edit::Put(Put::upsert(self.path.clone(), stored, record.clone())));
        let displaces = matches!(way, Way::TakenOver | Way::Superseded);
        let generation = self.stamp.fencing.then(|| integer(&record, "generation").unwrap_or(0));
        let outcome = Acquired {
            tenure: generation.map(|generation| self.tenure(&record, generation)),
            lost_tenure: match standing {
                Some(standing) => standing.lost_tenure.clone().filter(|_| way != Way::Renewed),
                None => self.request.tenure.as_ref().map(gone_tenure),
            },
            record,
            way,
            generation,
            warnings,
            drained: None,
        };
        Ok(Decision { edits, outcome, basis: if displaces { Freshness::Fetched } else { Freshness::Cached } })
    }

    fn tenure(&self, record: &Members, generation: i64) -> Tenure {
        Tenure {
            repo: self.request.repo.to_string(),
            target: self.request.target.to_string(),
            agent: self.request.agent.clone(),
            instance: text(record, "instance_id").map(str::to_owned),
            generation,
        }
    }

    /// Returns the generation to store: one more at every acquisition, above every one this target and every claim
    /// ever deleted from the repository had.
    fn generation(&self, standing: Option<&Standing<'_>>, way: Way) -> Result<Option<i64>, Refusal> {
        let last = standing.map_or(0, |standing| standing.held.generation);
        if !self.stamp.fencing || way == Way::Renewed {
            return Ok(None);
        }
        let continues = matches!(way, Way::LaneChanged | Way::Superseded);
        let highest = last.max(self.snapshot.store.floor(self.request.repo.as_str()));
        match self.request.metadata.generation {
            Some(asked) if asked > highest && asked > HIGHEST_ASKED && !self.is_of_tenure(asked) => Err(Refusal::new(
                RefusalKind::Invalid,
                format!("--generation {asked} is too high to count on from; the highest is {HIGHEST_ASKED}"),
            )),
            Some(asked) if asked > highest => Ok(Some(asked)),
            Some(asked) if !(self.is_of_tenure(asked) || continues && asked == last) => {
                Err(self.refuse_outlived(asked, highest))
            }
            _ => highest.checked_add(1).map(Some).ok_or_else(|| {
                Refusal::new(RefusalKind::Unknown, format!("generation of {} cannot grow any more", self.path))
            }),
        }
    }

    fn refuse_outlived(&self, asked: i64, highest: i64) -> Refusal {
        let message =
            format!("CLAIM_REFUSED: generation {asked} of {} is over; the next must be above {highest}", self.item());
        Refusal::new(RefusalKind::Claimed, message).with_hint("leave --generation out to take the next one")
    }

    /// Returns the edit that tells a displaced holder at its next write.
    fn mark(&self, standing: Option<&Standing<'_>>, way: Way) -> Result<Option<Edit>, Halt> {
        let (Some(standing), Way::TakenOver | Way::Superseded, true) = (standing, way, self.stamp.fencing) else {
            return Ok(None);
        };
        let fence = Fence {
            repo: self.request.repo.to_string(),
            target: self.request.target.to_string(),
            instance: standing.held.instance.clone(),
            generation: standing.held.generation,
            by: self.request.agent.clone(),
            at: self.stamp.now.to_string(),
            told_by: None,
        };
        fence::displace(self.snapshot, standing.stored, &standing.held, fence)
    }

    /// A renewal is worth an event only when it adds or changes `--generation` or `--instance-id`.
    fn event(&self, standing: Option<&Standing<'_>>, way: Way, record: &Members) -> Lifecycle {
        let same = |prior: &Members, name: &str| prior.get(name) == record.get(name);
        let routine = way == Way::Renewed
            && standing
                .is_some_and(|standing| same(standing.members, "generation") && same(standing.members, "instance_id"));
        if routine { Lifecycle::None } else { claim_acquired(record, self.stamp, &self.request.attribution) }
    }
}

/// A generation that was asked for, beside that of the claim.
enum Asked {
    /// None, or the claim's own.
    Theirs,
    /// Above the claim's.
    Higher,
    /// That of an earlier tenure of this worktree.
    Outlived,
}

#[cfg(test)]
mod tests;
