//! Random histories: whatever several clients do one after another, every store answers as the reference does.

use std::collections::BTreeMap;

use agent_coord::domain::decision::{Edit, Put};
use agent_coord::domain::path::{Family, Prefix, RecordPath};
use agent_coord::domain::record::{Members, Stored};
use agent_coord::store::CommitError;
use agent_coord::store::memory::MemoryStore;
use serde_json::json;

use super::client::{Backend, Client, claim, members, path};
use super::with_clients;
use crate::support::Dice;

const CLIENTS: usize = 3;
const STEPS_PER_EFFORT: usize = 12;
const FAMILIES: [Family; 4] = [Family::Claims, Family::Heartbeats, Family::Batches, Family::Events];

/// What a listing says, without the marks in which stores differ.
type State = BTreeMap<RecordPath, (Option<Members>, u64)>;

pub fn random_histories_give_what_the_reference_gives(backend: &Backend) {
    with_clients(backend, CLIENTS, |team| {
        let reference = Client::new(Box::new(MemoryStore::new()));
        let mut dice = Dice::new();
        let mut history = Vec::new();
        for step in 0..STEPS_PER_EFFORT * backend.effort {
            let client = &team.clients[usize::try_from(dice.below(3)).expect("small")];
            let wishes = within_abilities(wishes(&mut dice, step), client);
            history.push(wishes.iter().map(|wish| format!("{wish:?}")).collect::<Vec<_>>().join(" + "));
            let story = || format!("{}\n{}", dice.recipe(), history.join("\n"));
            let [given, due] = [client, &reference].map(|client| client.commit(edits_for(client, &wishes, step)));
            match (&given, &due) {
                (Ok(_), Ok(_)) => {}
                (Err(CommitError::Conflict { path: given, .. }), Err(CommitError::Conflict { path: due, .. }))
                    if given == due || wishes.len() > 1 => {}
                _ => panic!("{}: {given:?} instead of {due:?}\n{}", backend.name, story()),
            }
            let reader = &team.clients[step % CLIENTS];
            let [seen, due] = [reader, &reference].map(|client| state(client, reader.abilities().fencing));
            assert_eq!(seen, due, "{}\n{}", backend.name, story());
            if reader.abilities().fencing {
                assert_eq!(reader.floor("o/r"), reference.floor("o/r"), "{}\n{}", backend.name, story());
            }
        }
    });
}

/// What a client would like to do with one record.
#[derive(Debug, Clone)]
enum Wish {
    /// Create it, present or not.
    Create(RecordPath),
    /// Replace what is there, or create it.
    Write(RecordPath),
    /// Delete it when it is there.
    Delete(RecordPath),
    /// Insist on what is there.
    Guard(RecordPath),
    /// Add an event, new or not.
    Append(RecordPath),
}

impl Wish {
    fn path(&self) -> &RecordPath {
        match self {
            Self::Create(path) | Self::Write(path) | Self::Delete(path) | Self::Guard(path) | Self::Append(path) => {
                path
            }
        }
    }
}

/// Returns one to three wishes about different records.
fn wishes(dice: &mut Dice, step: usize) -> Vec<Wish> {
    let mut wishes: Vec<Wish> = Vec::new();
    for _ in 0..=dice.below(3) {
        let number = dice.below(3);
        let record = match dice.below(3) {
            0 => path(&format!("claims/o/r/{number}.json")),
            1 => path(&format!("heartbeats/a{number}.json")),
            _ => path(&format!("batches/b{number}.json")),
        };
        let wish = match dice.below(10) {
            0..=1 => Wish::Create(record),
            2..=4 => Wish::Write(record),
            5..=6 => Wish::Delete(record),
            7 => Wish::Guard(record),
            8 => Wish::Append(path(&format!("events/b{number}/once.json"))),
            _ => Wish::Append(path(&format!("events/b{number}/e{step}.json"))),
        };
        if wishes.iter().all(|other| other.path() != wish.path()) {
            wishes.push(wish);
        }
    }
    wishes
}

/// Where edits do not land together, an event that accompanies a change may get lost, so each comes alone.
fn within_abilities(mut wishes: Vec<Wish>, client: &Client) -> Vec<Wish> {
    let is_event = |wish: &Wish| matches!(wish, Wish::Append(_));
    if !client.abilities().atomic && wishes.iter().any(is_event) {
        wishes.retain(is_event);
        wishes.truncate(1);
    }
    wishes
}

/// Turns wishes into edits on what `client` reads first, as a decision would.
fn edits_for(client: &Client, wishes: &[Wish], step: usize) -> Vec<Edit> {
    wishes.iter().filter_map(|wish| edit_for(client, wish, step)).collect()
}

fn edit_for(client: &Client, wish: &Wish, step: usize) -> Option<Edit> {
    let current = client.read(wish.path());
    let version = current.as_ref().map(|stored| stored.version.clone());
    let content = || match wish.path().family() {
        Family::Claims => claim("a", i64::try_from(step).expect("few steps")),
        _ => members(json!({ "step": step })),
    };
    match wish {
        Wish::Create(path) => Some(Edit::Put(Put::create(path.clone(), content()))),
        Wish::Write(path) => Some(Edit::Put(Put::upsert(path.clone(), current.as_ref(), content()))),
        Wish::Append(path) => Some(Edit::Append { path: path.clone(), members: content() }),
        Wish::Delete(path) => Some(Edit::Delete { path: path.clone(), version: version? }),
        Wish::Guard(path) => Some(Edit::Guard { path: path.clone(), version: version? }),
    }
}

/// Revisions are compared only where they are kept.
fn state(client: &Client, with_revisions: bool) -> State {
    let seen = |stored: Stored| {
        let content = stored.object().cloned();
        (stored.path, (content, if with_revisions { stored.annotations.revision } else { 0 }))
    };
    FAMILIES.into_iter().flat_map(|family| client.list(&Prefix::family(family)).records).map(seen).collect()
}
