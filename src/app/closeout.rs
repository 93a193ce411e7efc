//! Terminal closeouts: one transaction where the store is atomic, and the contract's three steps where it is not
//! (cli-contract.md section 3).

use crate::domain::closeout::{self, Asked, Closed, Reserved};
use crate::domain::decision::{Decision, Refusal, RefusalKind};
use crate::domain::path::{Family, RecordPath};
use crate::domain::request::Stamp;
use crate::domain::snapshot::Scope;

use super::App;
use super::stamp::step;
use super::transact::{NotTaken, contention_text};

/// A reservation that is in the way is read: it decides.
const RESERVATION_ATTEMPTS: u32 = 2;
/// A claim that moved is read, to see whether it is closed by now.
const CLAIM_ATTEMPTS: u32 = 2;
const BATCH_ATTEMPTS: u32 = 3;

impl App<'_> {
    /// Closes a lane. Whoever says the same again is told that it is closed already.
    ///
    /// # Errors
    /// A refusal in the contract's words, or that the store did not answer.
    pub fn close(&self, asked: Asked<'_>) -> Result<Closed, NotTaken> {
        asked.check()?;
        let stamp = self.stamp();
        if self.store.abilities().atomic {
            self.close_at_once(asked, &stamp)
        } else {
            self.close_in_steps(asked, &stamp)
        }
    }

    fn close_at_once(&self, asked: Asked<'_>, stamp: &Stamp) -> Result<Closed, NotTaken> {
        let step = step(stamp, reads(asked), 1, message(asked));
        let taken = self.transact(&step, |snapshot| closeout::close(snapshot, asked, stamp));
        Ok(taken.map_err(in_words)?.outcome)
    }

    fn close_in_steps(&self, asked: Asked<'_>, stamp: &Stamp) -> Result<Closed, NotTaken> {
        let reserve = step(stamp, reads(asked), RESERVATION_ATTEMPTS, message(asked));
        let reserved =
            self.transact(&reserve, |snapshot| closeout::reserve(snapshot, asked, stamp)).map_err(in_words)?;
        let mut closed = Closed { reserved: reserved.outcome, claim: None, claim_changed: false, batch_changed: false };
        if let Asked::Release(request, closing) = asked {
            let step = step(stamp, reads(asked), CLAIM_ATTEMPTS, message(asked));
            let event = &closed.reserved.event;
            let mut tried = false;
            let taken = self.transact(&step, |snapshot| {
                let decision = closeout::close_claim(snapshot, request, closing, event, stamp)?;
                if tried && let Some(edit) = decision.edits.first() {
                    let message = format!("state changed at {}", edit.path());
                    return Err(Refusal::new(RefusalKind::Unknown, message).into());
                }
                tried = !decision.edits.is_empty();
                let Decision { edits, outcome, basis } = decision;
                Ok(Decision { outcome: (outcome, !edits.is_empty()), edits, basis })
            });
            let (claim, changed) = taken.map_err(in_words)?.outcome;
            (closed.claim, closed.claim_changed) = (Some(claim), changed);
        }
        closed.batch_changed = self.stamp_batch(&closed.reserved, stamp, message(asked))?;
        Ok(closed)
    }

    fn stamp_batch(&self, reserved: &Reserved, stamp: &Stamp, message: String) -> Result<bool, NotTaken> {
        let reads = Scope::of_records([RecordPath::batch(&reserved.batch)]);
        let step = step(stamp, reads, BATCH_ATTEMPTS, message);
        let taken = self.transact(&step, |snapshot| {
            let Decision { edits, basis, .. } = closeout::stamp_batch(snapshot, reserved, stamp)?;
            Ok(Decision { outcome: !edits.is_empty(), edits, basis })
        });
        Ok(taken.map_err(in_words)?.outcome)
    }
}

fn reads(asked: Asked<'_>) -> Scope {
    match asked {
        Asked::Release(request, _) => Scope::of_records(RecordPath::claim(&request.repo, &request.target)),
        Asked::Event(request, _) => Scope::of_records([RecordPath::batch(&request.batch_id)]),
    }
}

fn message(asked: Asked<'_>) -> String {
    match asked {
        Asked::Release(request, closing) => {
            format!("Close {}#{} as {}", request.repo, request.target, closing.terminal)
        }
        Asked::Event(request, closing) => format!("Close a lane of {} as {}", request.batch_id, closing.terminal),
    }
}

fn in_words(not_taken: NotTaken) -> NotTaken {
    let NotTaken::Contention { path, expected } = not_taken else { return not_taken };
    let message = match path.family() {
        Family::Batches => format!("batch {} changed repeatedly during terminal closeout", path.stem()),
        Family::Events => format!("terminal closeout reservation disappeared at {path}"),
        _ => contention_text(&path, &expected),
    };
    Refusal::new(RefusalKind::Unknown, message).into()
}
