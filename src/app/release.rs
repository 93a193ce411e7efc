//! `release`: one claim given back, one transaction.

use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::event::CLAIM_RELEASED;
use crate::domain::path::RecordPath;
use crate::domain::release::{self, Released};
use crate::domain::request::Release;
use crate::domain::snapshot::Scope;

use super::App;
use super::stamp::{lost_events, step};
use super::transact::{NotTaken, contention_text};

/// A lost race is not tried again where the contract counts (cli-contract.md section 3).
const ATTEMPTS: u32 = 1;

/// Gives a claim back.
///
/// # Errors
/// A refusal in the contract's words, or that the store did not answer.
pub fn release(app: &App<'_>, request: &Release) -> Result<Released, NotTaken> {
    let stamp = app.stamp();
    let reads = Scope::of_records(RecordPath::claim(&request.repo, &request.target));
    let step = step(&stamp, reads, ATTEMPTS, format!("Release {}#{}", request.repo, request.target));
    let taken = app.transact(&step, |snapshot| release::release(snapshot, request, &stamp)).map_err(in_words)?;
    let mut released = taken.outcome;
    released.warnings.extend(lost_events(CLAIM_RELEASED, &taken.receipt));
    Ok(released)
}

fn in_words(not_taken: NotTaken) -> NotTaken {
    match not_taken {
        NotTaken::Contention { path, expected } => {
            Refusal::new(RefusalKind::Unknown, contention_text(&path, &expected)).into()
        }
        other => other,
    }
}
