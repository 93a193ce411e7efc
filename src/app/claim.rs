//! `claim`: one claim, one transaction.

use crate::domain::claim::{Acquired, FirstRead, acquire};
use crate::domain::decision::{Refusal, RefusalKind};
use crate::domain::event::CLAIM_ACQUIRED;
use crate::domain::path::RecordPath;
use crate::domain::request::Acquire;
use crate::domain::snapshot::Scope;

use super::App;
use super::stamp::{lost_events, step};
use super::transact::{NotTaken, contention_text};

/// A lost race is not tried again where the contract counts (cli-contract.md section 2).
const ATTEMPTS: u32 = 1;

/// Acquires or renews a claim.
///
/// `first` is given empty. Afterwards its `sightings` are the rows that decided, won or not: a clone that remembers
/// them can tell later that it saw one change.
///
/// # Errors
/// A refusal in the contract's words, or that the store did not answer.
pub fn claim(app: &App<'_>, request: &Acquire, first: &mut FirstRead) -> Result<Acquired, NotTaken> {
    let stamp = app.stamp();
    let item = format!("{}#{}", request.repo, request.target);
    let reads = Scope::of_records(RecordPath::claim(&request.repo, &request.target));
    let step = step(&stamp, reads, ATTEMPTS, format!("Claim {item}"));
    let taken =
        app.transact(&step, |snapshot| acquire(snapshot, request, &stamp, first)).map_err(
            |not_taken| match not_taken {
                NotTaken::Contention { path, expected } => {
                    let lost = contention_text(&path, &expected);
                    Refusal::new(RefusalKind::Unknown, format!("claim write contention for {item}; {lost}")).into()
                }
                other => other,
            },
        )?;
    let mut acquired = taken.outcome;
    acquired.warnings.extend(lost_events(CLAIM_ACQUIRED, &taken.receipt));
    Ok(acquired)
}
