//! Committing in this clone: the flock, one look, one `git update-ref`.

use std::time::Duration;

use super::plan::{Plan, Role};
use super::refs::{self, Flock, Update};
use super::{GitStore, trouble};
use crate::domain::decision::Expect;
use crate::domain::record::Version;
use crate::store::{CommitError, Receipt, StoreError, Transaction};
use crate::world::Deadline;

const PAUSE: Duration = Duration::from_millis(10);

impl GitStore<'_> {
    pub(super) fn commit_local(
        &self,
        transaction: &Transaction,
        deadline: &Deadline<'_>,
    ) -> Result<Receipt, CommitError> {
        let held = Flock::take(&self.repository, deadline).map_err(CommitError::Failed)?;
        let fresh = self.fresh_about();
        let view = self.view(deadline);
        let mut resending = false;
        loop {
            let about = self.about(&view).map_err(CommitError::Failed)?;
            let mut planner = self.planner(&view, about, &fresh).map_err(CommitError::Failed)?;
            planner.resending = resending;
            let plan = planner.plan(transaction)?;
            let said = match refs::update(&self.repository, &plan.ref_edits(), &held, deadline) {
                Ok(Update::Landed) => return Ok(Receipt::default()),
                Ok(Update::Refused(said)) => said,
                Ok(Update::Interrupted(said)) => {
                    resending = true;
                    if self.has_landed(&plan, deadline)? {
                        return Ok(Receipt::default());
                    }
                    said
                }
                Err(error) => return Err(CommitError::Failed(error)),
            };
            if !resending {
                self.check_moved(&plan, deadline)?;
            }
            let names: Vec<&str> = plan.edits.iter().map(|planned| planned.edit.name.as_str()).collect();
            let removed = refs::remove_abandoned_locks(&self.repository, &names, &held, deadline);
            if deadline.has_passed() && !removed {
                return Err(CommitError::Failed(self.explain_refusal(&said)));
            }
            deadline.pause(PAUSE);
        }
    }

    /// Tells whether the commit point of `plan` is there. Git is dead by now and the flock is ours, so this is final.
    fn has_landed(&self, plan: &Plan, deadline: &Deadline<'_>) -> Result<bool, CommitError> {
        let Some(point) = plan.commit_point() else { return Ok(false) };
        // The deadline may be what interrupted git; looking is still owed.
        let grace = Deadline::after(deadline.clock(), deadline.remaining().max(Duration::from_secs(2)));
        let name = point.edit.name.clone();
        let found = refs::read(&self.repository, &[name], &grace).map_err(CommitError::Unknown)?;
        Ok(found.get(&point.edit.name).copied() == point.edit.new)
    }

    /// Reports the first record that is not in the expected state. What the store itself chose is planned again.
    fn check_moved(&self, plan: &Plan, deadline: &Deadline<'_>) -> Result<(), CommitError> {
        let names: Vec<String> = plan.edits.iter().map(|planned| planned.edit.name.clone()).collect();
        let found = refs::read(&self.repository, &names, deadline).map_err(CommitError::Failed)?;
        for planned in &plan.edits {
            let (Role::Record(path), now) = (&planned.role, found.get(&planned.edit.name)) else { continue };
            if now != planned.edit.expected.as_ref() {
                let version = |id: gix::ObjectId| Version::new(id.to_string());
                let expected = planned.edit.expected.map_or(Expect::Absent, |id| Expect::At(version(id)));
                return Err(CommitError::Conflict {
                    path: path.clone(),
                    expected,
                    found: Some(now.map(|id| version(*id))),
                });
            }
        }
        Ok(())
    }

    fn explain_refusal(&self, said: &str) -> StoreError {
        match refs::foreign_lock(&self.repository) {
            Some(lock) => trouble(format!("git could not change the coordination refs: {lock}")),
            None => trouble(format!("git could not change the coordination refs: {said}")),
        }
    }
}
