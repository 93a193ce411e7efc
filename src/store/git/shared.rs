//! Committing through the shared remote, and finding out what happened when the reply was lost.
//!
//! One connection when nobody is in the way. After an error, a time-out or a kill the outcome is unknown until re-read:
//! we look for our own bytes, then send the same transaction again; "not there" is final only once one of the leases
//! has moved, since a push can land long after its client gave up (design.md section 3.3).

use std::time::Duration;

use gix::ObjectId;

use super::plan::{Plan, Planned, Role};
use super::remote::{self, Pushed, Remote};
use super::segments::Segments;
use super::view::View;
use super::{GitStore, codec, names};
use crate::domain::decision::{Edit, Expect};
use crate::domain::path::{Family, RecordPath};
use crate::domain::record::Version;
use crate::store::{CommitError, Receipt, StoreError, StoreErrorKind, Transaction};
use crate::world::Deadline;

/// How often a remote that does not answer is asked, the first push included.
const UNREACHABLE_ATTEMPTS: u32 = 3;
/// A segment whose swap is refused this often with its value unchanged is left alone: a lock stays on the server.
const SEGMENT_REFUSALS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(800);

/// What a commit has been through so far.
#[derive(Default)]
struct Course {
    /// A sending may have landed.
    unclear: bool,
    /// How often the remote did not answer in a row.
    unanswered: u32,
    /// How often the remote was busy or our segment refused.
    retries: u32,
    segment_refusals: u32,
    skip_segments: u32,
}

enum Next {
    Return(Result<Receipt, CommitError>),
    Again,
}

impl GitStore<'_> {
    pub(super) fn commit_shared(
        &self,
        remote: &Remote,
        transaction: &Transaction,
        deadline: &Deadline<'_>,
    ) -> Result<Receipt, CommitError> {
        let view = self.view(deadline);
        let unused = self.fresh_about();
        let mut course = Course::default();
        loop {
            let about = match self.about(&view) {
                Ok(about) => about,
                // The cache lost store.json, or it is from before a change: only the remote can tell.
                Err(_) => {
                    self.fetch(remote, &[], deadline).map_err(CommitError::Failed)?;
                    self.about(&view).map_err(CommitError::Failed)?
                }
            };
            let mut planner = self.planner(&view, about, &unused).map_err(CommitError::Failed)?;
            planner.resending = course.unclear;
            planner.skip_segments = course.skip_segments;
            let plan = planner.plan(transaction)?;
            match self.send(remote, transaction, &plan, &mut course, deadline)? {
                Next::Return(result) => return result,
                Next::Again => deadline.pause(self.pause_after(course.retries + course.unanswered)),
            }
        }
    }

    fn send(
        &self,
        remote: &Remote,
        transaction: &Transaction,
        plan: &Plan,
        course: &mut Course,
        deadline: &Deadline<'_>,
    ) -> Result<Next, CommitError> {
        // Absence cannot be guarded over the wire, and such an edit changes nothing.
        let edits: Vec<_> = plan.ref_edits().into_iter().filter(|edit| edit.expected.or(edit.new).is_some()).collect();
        match remote::push(&self.repository, remote, &edits, &deadline.with_reserve()).map_err(CommitError::Failed)? {
            Pushed::Landed => Ok(Next::Return(Ok(self.landed(plan)))),
            Pushed::AlreadyThere(_) if course.unclear => Ok(Next::Return(Ok(self.landed(plan)))),
            Pushed::AlreadyThere(names) | Pushed::Lost(names) if !course.unclear => {
                self.lost(remote, plan, &names, course, deadline)
            }
            Pushed::Refused(error) => Ok(Next::Return(Err(CommitError::Failed(error)))),
            Pushed::Lost(_) | Pushed::AlreadyThere(_) => self.look(remote, transaction, plan, None, course, deadline),
            Pushed::Busy(said) => {
                course.retries += 1;
                if deadline.has_passed() {
                    let message = format!("{} stayed busy: {said}", remote.label());
                    let error = StoreError::new(StoreErrorKind::Unreachable, message);
                    return Ok(Next::Return(Err(CommitError::Failed(error))));
                }
                self.look(remote, transaction, plan, None, course, deadline)
            }
            Pushed::Unclear(error) => {
                course.unclear = true;
                course.unanswered += 1;
                self.look(remote, transaction, plan, Some(error), course, deadline)
            }
        }
    }

    /// A push that certainly did not land: either a record moved, which the caller decides about, or only what the
    /// store itself chose, which is chosen again.
    fn lost(
        &self,
        remote: &Remote,
        plan: &Plan,
        lost: &[String],
        course: &mut Course,
        deadline: &Deadline<'_>,
    ) -> Result<Next, CommitError> {
        let is_lost = |planned: &&Planned| lost.contains(&planned.edit.name);
        let due = plan.edits.iter().filter(is_lost).map(pattern_of);
        self.due.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend(due);
        let record = plan.edits.iter().filter(is_lost).find_map(|planned| match &planned.role {
            Role::Record(path) => Some((path, planned)),
            _ => None,
        });
        if let Some((path, planned)) = record {
            return Ok(Next::Return(Err(conflict(path, planned, None))));
        }
        course.retries += 1;
        let before = self.own_segments(plan, deadline).map_err(CommitError::Failed)?;
        self.fetch(remote, &[], deadline).map_err(CommitError::Failed)?;
        if before == self.own_segments(plan, deadline).map_err(CommitError::Failed)? {
            course.segment_refusals += 1;
            if course.segment_refusals >= SEGMENT_REFUSALS {
                course.segment_refusals = 0;
                course.skip_segments += 1;
            }
        }
        if deadline.has_passed() {
            return Ok(Next::Return(Err(CommitError::Failed(self.past_deadline(remote)))));
        }
        Ok(Next::Again)
    }

    /// Re-reads what the transaction touches and tells landed from moved from not yet.
    fn look(
        &self,
        remote: &Remote,
        transaction: &Transaction,
        plan: &Plan,
        error: Option<StoreError>,
        course: &mut Course,
        deadline: &Deadline<'_>,
    ) -> Result<Next, CommitError> {
        let patterns: Vec<String> = plan.edits.iter().map(pattern_of).collect();
        if let Err(silence) = self.fetch(remote, &patterns, deadline) {
            if silence.kind != StoreErrorKind::Unreachable {
                return Ok(Next::Return(Err(outcome_of_silence(course, silence))));
            }
            if course.unanswered >= UNREACHABLE_ATTEMPTS || deadline.has_passed() {
                return Ok(Next::Return(Err(outcome_of_silence(course, error.unwrap_or(silence)))));
            }
            course.unanswered += 1;
            return Ok(Next::Again);
        }
        let view = self.view(deadline);
        let moved = self.moved(&view, plan).map_err(CommitError::Unknown)?;
        match moved {
            Moved::Landed => Ok(Next::Return(Ok(self.landed(plan)))),
            Moved::Not if deadline.has_passed() => {
                let error = error.unwrap_or_else(|| self.past_deadline(remote));
                Ok(Next::Return(Err(outcome_of_silence(course, error))))
            }
            Moved::Not => Ok(Next::Again),
            Moved::Record(path, planned, found) => {
                let verdict = self.after_a_move(&view, transaction, &path, &planned, found, course);
                Ok(Next::Return(verdict.map_err(CommitError::Unknown).and_then(|verdict| verdict)))
            }
        }
    }

    fn moved(&self, view: &View<'_>, plan: &Plan) -> Result<Moved, StoreError> {
        let names: Vec<String> = plan.edits.iter().map(|planned| planned.edit.name.clone()).collect();
        let found = view.read(&names)?;
        let now = |planned: &Planned| found.get(&planned.edit.name).copied();
        if plan.commit_point().is_some_and(|point| now(point) == point.edit.new) {
            return Ok(Moved::Landed);
        }
        for planned in &plan.edits {
            if let Role::Record(path) = &planned.role
                && now(planned) != planned.edit.expected
                && now(planned) != planned.edit.new
            {
                return Ok(Moved::Record(path.clone(), planned.clone(), now(planned)));
            }
        }
        Ok(Moved::Not)
    }

    /// A record moved while the outcome was unclear. Ours may have been there in between.
    fn after_a_move(
        &self,
        view: &View<'_>,
        transaction: &Transaction,
        path: &RecordPath,
        planned: &Planned,
        found: Option<ObjectId>,
        course: &Course,
    ) -> Result<Result<Receipt, CommitError>, StoreError> {
        let conflict = conflict(path, planned, Some(found));
        if !course.unclear {
            return Ok(Err(conflict));
        }
        if self.left_an_event(view, transaction)? {
            return Ok(Ok(Receipt::default()));
        }
        let is_idempotent = path.family() == Family::Heartbeats;
        if is_idempotent || self.was_never_ours(view, planned, found)? {
            return Ok(Err(conflict));
        }
        let message = format!("{path} changed while the outcome of this write was unclear; it may have landed");
        let error = StoreError::new(StoreErrorKind::Unreachable, message)
            .with_hint("`agent-coord status` shows who holds what now");
        Ok(Err(CommitError::Unknown(error)))
    }

    /// Our events and our reservation land with our records or not at all.
    fn left_an_event(&self, view: &View<'_>, transaction: &Transaction) -> Result<bool, StoreError> {
        for edit in &transaction.edits {
            if names::is_reservation(edit.path()) && !matches!(edit, Edit::Guard { .. }) {
                if self.holds_ours(view, edit.path(), transaction)? {
                    return Ok(true);
                }
                continue;
            }
            let Edit::Append { path, .. } = edit else { continue };
            let Some(batch) = path.batch_of_event() else { continue };
            if Segments::read(view, batch)?.event(&format!("{}.json", path.stem())).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reservations are created once and never written over, so what is there says whose it is.
    fn holds_ours(&self, view: &View<'_>, path: &RecordPath, transaction: &Transaction) -> Result<bool, StoreError> {
        let Some(id) = view.one(&names::of_record(path))? else { return Ok(false) };
        let written_by = codec::decode(Some(path.family()), &view.blob(id)?).annotations.transaction_id;
        Ok(written_by.as_ref() == Some(&transaction.id))
    }

    /// The record counts its writes: one that was written over ours has a higher count than ours would have.
    fn was_never_ours(&self, view: &View<'_>, planned: &Planned, found: Option<ObjectId>) -> Result<bool, StoreError> {
        let (Some(found), Some(ours)) = (found, planned.edit.new) else { return Ok(false) };
        let revision = |id| view.blob(id).map(|bytes| codec::decode(None, &bytes).annotations.revision);
        Ok(revision(found)? <= revision(ours)?)
    }

    fn own_segments(&self, plan: &Plan, deadline: &Deadline<'_>) -> Result<Vec<Option<ObjectId>>, StoreError> {
        let view = self.view(deadline);
        let segments = plan.edits.iter().filter(|planned| matches!(planned.role, Role::Segment(_)));
        segments.map(|planned| view.one(&planned.edit.name)).collect()
    }

    fn landed(&self, plan: &Plan) -> Receipt {
        for planned in &plan.edits {
            self.fetched.set(&planned.edit.name, planned.edit.new);
        }
        Receipt::default()
    }

    fn past_deadline(&self, remote: &Remote) -> StoreError {
        let message = format!("{} did not take the write in time", remote.label());
        StoreError::new(StoreErrorKind::Unreachable, message).with_hint("try again; nothing was written")
    }

    fn pause_after(&self, failures: u32) -> Duration {
        let bound = FIRST_PAUSE.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE);
        let mut random = [0; 1];
        self.ids.fill(&mut random);
        bound.mul_f64(0.5 + f64::from(random[0]) / 510.0)
    }
}

enum Moved {
    Landed,
    Not,
    Record(RecordPath, Planned, Option<ObjectId>),
}

fn outcome_of_silence(course: &Course, error: StoreError) -> CommitError {
    if course.unclear { CommitError::Unknown(error) } else { CommitError::Failed(error) }
}

fn pattern_of(planned: &Planned) -> String {
    match &planned.role {
        Role::Segment(batch) => names::of_segments(batch),
        Role::Record(_) | Role::Store => planned.edit.name.clone(),
    }
}

fn conflict(path: &RecordPath, planned: &Planned, found: Option<Option<ObjectId>>) -> CommitError {
    let version = |id: ObjectId| Version::new(id.to_string());
    let expected = planned.edit.expected.map_or(Expect::Absent, |id| Expect::At(version(id)));
    CommitError::Conflict { path: path.clone(), expected, found: found.map(|found| found.map(version)) }
}
