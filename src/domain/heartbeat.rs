//! Recording a heartbeat, and telling a displaced holder (cli-contract.md section 4, design.md section 4).

use super::batch::drain::Notice;
use super::decision::{Decision, Edit, Halt, Put, Verdict};
use super::fence::{self, Claimed, Fate};
use super::heartbeat_record::{compose, phase_changed};
use super::ids::{RepoName, Target};
use super::path::RecordPath;
use super::record::{Annotations, Fence, Members, Stored, text};
use super::request::{Beat, Stamp};
use super::snapshot::{Freshness, Snapshot};
use super::tenure::{Actor, Holding, Loss, loss, lost_message, members_of};

/// A heartbeat that was recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Beaten {
    /// The row as stored, without `$store`.
    pub record: Members,
    /// Whether the row was renewed. A beat of an instance that was superseded does not renew the row it shares with
    /// its successor.
    pub renewed: bool,
    /// `CLAIM_LOST: …`, when the claim that the beat is about is lost: exit 3.
    pub lost: Option<String>,
    /// What to warn of, without `warning: `: an unknown status, other targets that were lost, an event not recorded.
    pub warnings: Vec<String>,
    /// The transaction to leave a note of, once this outcome has been printed; absent = nothing was reported.
    pub note: Option<String>,
    /// The drain of the lane that the beat is about.
    pub drained: Option<Notice>,
}

/// Decides a beat.
///
/// # Errors
/// [`Halt::Read`] for the row, the claim it is about, and the claims that marks on the row speak of;
/// [`Halt::Refused`] when the agent's own row is there and cannot be read.
pub fn beat(snapshot: &Snapshot, request: &Beat, stamp: &Stamp) -> Verdict<Beaten> {
    let path = RecordPath::heartbeat(&request.agent);
    let stored = snapshot.get(&path)?;
    let prior = stored.map(|stored| members_of(stored, "heartbeat")).transpose()?;
    let (row, status_warning) = compose(request, stamp, prior);
    let news = if stamp.fencing { News::of(snapshot, request, stamp, stored, &row)? } else { News::default() };
    let mut edits = Vec::new();
    let mut warnings: Vec<String> = status_warning.into_iter().chain(news.warnings).collect();
    let before = stored.map_or_else(Annotations::default, |stored| stored.annotations.clone());
    let mut annotations = Annotations { fenced: news.fenced, ..before.clone() };
    let record = if news.superseded { prior.cloned().unwrap_or_default() } else { row };
    if !news.superseded {
        if stamp.fencing {
            annotations.phase_changed_at = phase_changed_at(prior, &before, &record, stamp);
        }
        phase_changed(request, stamp, prior).add_to(&mut edits, &mut warnings);
    }
    if !news.superseded || annotations != before {
        edits.push(Edit::Put(Put { annotations, ..Put::upsert(path, stored, record.clone()) }));
    }
    let note = news.reported.then(|| stamp.transaction_id.clone());
    let outcome = Beaten { record, renewed: !news.superseded, lost: news.lost, warnings, note, drained: None };
    Ok(Decision { edits, outcome, basis: news.basis })
}

/// Returns since when the row's worker phase is what it is; absent without a phase.
fn phase_changed_at(prior: Option<&Members>, before: &Annotations, row: &Members, stamp: &Stamp) -> Option<String> {
    let phase = text(row, "phase").filter(|phase| !phase.is_empty())?;
    let same = prior.and_then(|prior| text(prior, "phase")) == Some(phase);
    let known = before.phase_changed_at.clone().filter(|_| same);
    Some(known.unwrap_or_else(|| stamp.now.to_string()))
}

/// What a beat has to tell of claims.
struct News {
    lost: Option<String>,
    warnings: Vec<String>,
    fenced: Vec<Fence>,
    /// A mark was reported.
    reported: bool,
    /// The row belongs to the successor by now.
    superseded: bool,
    basis: Freshness,
}

impl Default for News {
    fn default() -> Self {
        Self {
            lost: None,
            warnings: Vec::new(),
            fenced: Vec::new(),
            reported: false,
            superseded: false,
            basis: Freshness::Cached,
        }
    }
}

impl News {
    fn of(
        snapshot: &Snapshot,
        request: &Beat,
        stamp: &Stamp,
        stored: Option<&Stored>,
        row: &Members,
    ) -> Result<Self, Halt> {
        let actor = Actor::of(Some(request.agent.as_str()), &request.metadata);
        let mut news = Self::default();
        if actor.acts_for_a_tenure() {
            news.compare(snapshot, &actor, row)?;
        }
        for fence in stored.map(|stored| stored.annotations.fenced.as_slice()).unwrap_or_default() {
            news.meet(snapshot, request, stamp, &actor, fence, row)?;
        }
        Ok(news)
    }

    /// Compares what the actor acts for with the claim it names.
    fn compare(&mut self, snapshot: &Snapshot, actor: &Actor<'_>, row: &Members) -> Result<(), Halt> {
        let (Some(repo), Some(target)) = (text(row, "repo"), text(row, "target")) else { return Ok(()) };
        match claim_of(snapshot, repo, target)? {
            Claim::Held(holding) => {
                if let Some(loss) = loss(&format!("{repo}#{target}"), &holding, actor) {
                    self.lose(loss);
                }
            }
            // An absence cannot be guarded, so it has to be fetched.
            Claim::Absent => self.basis = Freshness::Fetched,
            Claim::Unreadable(reason) => self.warnings.push(reason),
            Claim::Nameless => {}
        }
        Ok(())
    }

    fn lose(&mut self, loss: Loss) {
        self.superseded |= loss.to_own_successor;
        self.lost.get_or_insert(loss.message);
        self.basis = Freshness::Fetched;
    }

    /// Meets a mark on the row.
    fn meet(
        &mut self,
        snapshot: &Snapshot,
        request: &Beat,
        stamp: &Stamp,
        actor: &Actor<'_>,
        fence: &Fence,
        row: &Members,
    ) -> Result<(), Halt> {
        let claim = claim_of(snapshot, &fence.repo, &fence.target)?;
        let outlived = fence::is_about(fence, row) && actor.generation.is_some_and(|ours| ours > fence.generation);
        match fence::fate(fence, claim.as_claimed(), actor, &request.told, stamp.now) {
            Fate::Drop => {}
            Fate::Tell if !outlived => self.tell(fence, &claim, actor, stamp, row),
            Fate::Tell | Fate::Keep => self.fenced.push(fence.clone()),
        }
        Ok(())
    }

    fn tell(&mut self, fence: &Fence, claim: &Claim, actor: &Actor<'_>, stamp: &Stamp, row: &Members) {
        let item = fence::item(fence);
        if fence::is_about(fence, row) {
            let message = match claim {
                Claim::Held(holding) => lost_message(&item, holding, actor.agent),
                _ => gone_message(&item, fence),
            };
            self.lose(Loss { message, to_own_successor: actor.agent == Some(fence.by.as_str()) });
        } else {
            self.warnings
                .push(format!("generation {} of {item} was lost to {} at {}", fence.generation, fence.by, fence.at));
        }
        self.reported = true;
        self.basis = Freshness::Fetched;
        self.fenced.push(Fence { told_by: Some(stamp.transaction_id.clone()), ..fence.clone() });
    }
}

/// Words a loss whose claim has been released and put away since.
fn gone_message(item: &str, fence: &Fence) -> String {
    let Fence { generation, by, at, .. } = fence;
    format!("CLAIM_LOST: {item} generation {generation} was lost to {by} at {at}; no claim is held now")
}

/// A claim, as far as it can be known.
enum Claim {
    Held(Holding),
    Absent,
    Unreadable(String),
    /// What the row names can be no claim.
    Nameless,
}

impl Claim {
    fn as_claimed(&self) -> Claimed<'_> {
        match self {
            Self::Held(holding) => Claimed::Held(holding),
            Self::Absent => Claimed::Absent,
            Self::Unreadable(_) | Self::Nameless => Claimed::Unreadable,
        }
    }
}

fn claim_of(snapshot: &Snapshot, repo: &str, target: &str) -> Result<Claim, Halt> {
    let Some(path) = claim_path(repo, target) else { return Ok(Claim::Nameless) };
    Ok(match snapshot.get(&path)? {
        None => Claim::Absent,
        Some(stored) => match Holding::of(stored) {
            Ok(holding) => Claim::Held(holding),
            Err(refusal) => Claim::Unreadable(refusal.message),
        },
    })
}

/// Returns the path of the claim that unvalidated text names.
#[must_use]
pub fn claim_path(repo: &str, target: &str) -> Option<RecordPath> {
    let repo = RepoName::parse("target", repo).ok()?;
    let target = Target::parse("target", target).ok()?;
    RecordPath::claim(&repo, &target).ok()
}

#[cfg(test)]
mod tests;
