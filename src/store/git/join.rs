//! `init`: making a store in this clone, and joining the one a remote holds (design.md section 3.4, "Identity").

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::about::About;
use super::names::{self, Name, ROOT, STORE};
use super::refs::{self, Flock, RefEdit, Refs, Update};
use super::remote::{self, Pushed, Remote};
use super::view::{Fetched, View};
use super::{GitStore, REMOTE_KEY, STORE_ID_KEY, objects, trouble};
use crate::git::{Repository, version};
use crate::store::{StoreError, StoreErrorKind};
use crate::world::{Deadline, Randomness};

/// The most refs one push may change (design.md section 3.2).
pub(super) const REFS_A_PUSH: usize = 64;

/// What `init` is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Initialise {
    /// A configured remote's name, or a URL; absent = this clone only.
    pub remote: Option<String>,
    /// The repository that commands without `--repo` are to mean, when the store names none yet.
    pub default_repo: Option<String>,
}

/// What `init` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initialised {
    /// The identity of the store.
    pub store_id: String,
    /// The repository that commands without `--repo` mean.
    pub default_repo: Option<String>,
    /// The remote that decides, by the name messages use; absent = this clone only.
    pub remote: Option<String>,
    /// Whether the store was made just now.
    pub created: bool,
    /// How many local refs were published to the remote.
    pub published: usize,
    /// How many refs the store holds, by family.
    pub holds: BTreeMap<String, usize>,
    /// The store this clone knew before, when it was another one.
    pub left: Option<String>,
    /// How long one push to the remote took, as tried with a scratch ref.
    pub round_trip: Option<Duration>,
}

/// Makes or joins a store.
///
/// # Errors
/// When the remote cannot be used, or holds other records than this clone under the same names: then nothing was
/// overwritten and the clone stays as it was.
pub fn initialise(
    repository: &Arc<Repository>,
    ask: &Initialise,
    ids: &dyn Randomness,
    deadline: &Deadline<'_>,
) -> Result<Initialised, StoreError> {
    version::check(repository.git(), &repository.shared_dir().join("git-version"), deadline)?;
    let joined = repository.config(REMOTE_KEY);
    let Some(named) = ask.remote.clone().or_else(|| joined.clone()) else {
        return make_local(repository, ask, ids, deadline);
    };
    let remote = Remote::resolve(repository, &named)?;
    let round_trip = probe(repository, &remote, ids, deadline)?;
    let joining = Joining { repository, remote, named, ask, ids, was_shared: joined.is_some() };
    joining.join(round_trip, deadline)
}

fn make_local(
    repository: &Arc<Repository>,
    ask: &Initialise,
    ids: &dyn Randomness,
    deadline: &Deadline<'_>,
) -> Result<Initialised, StoreError> {
    let held = Flock::take(repository, deadline)?;
    let fetched = Fetched::default();
    let view = View::new(repository, &fetched, deadline);
    let found = view.about()?;
    let created = found.is_none();
    let expected = found.as_ref().map(|(id, _)| *id);
    let mut about = found.map_or_else(|| About::new(&ids.hex(16), ask.default_repo.as_deref()), |(_, about)| about);
    let renamed = ask.default_repo.as_deref().is_some_and(|repo| about.set_default_repo(repo));
    if created || renamed {
        let new = Some(objects::write_blob(repository, &about.bytes())?);
        let edit = RefEdit { name: STORE.to_owned(), expected, new };
        match refs::update(repository, &[edit], &held, deadline)? {
            Update::Landed => {}
            Update::Refused(said) | Update::Interrupted(said) => return Err(trouble(said)),
        }
    }
    repository.set_config(STORE_ID_KEY, about.store_id(), deadline)?;
    let holds = count(&refs::list(repository, ROOT, deadline)?);
    Ok(Initialised {
        store_id: about.store_id().to_owned(),
        default_repo: about.facts().default_repo,
        remote: None,
        created,
        published: 0,
        holds,
        left: None,
        round_trip: None,
    })
}

/// Tries a remote with a scratch ref: create, swap, delete. Returns the quickest of the three.
///
/// # Errors
/// What gets in the way, worded for the user.
pub fn probe(
    repository: &Repository,
    remote: &Remote,
    ids: &dyn Randomness,
    deadline: &Deadline<'_>,
) -> Result<Duration, StoreError> {
    let name = format!("{ROOT}probe/{}", ids.hex(8));
    let one = objects::write_blob(repository, format!("{}\n", ids.hex(8)).as_bytes())?;
    let two = objects::write_blob(repository, format!("{}\n", ids.hex(8)).as_bytes())?;
    let steps = [(None, Some(one)), (Some(one), Some(two)), (Some(two), None)];
    let mut quickest = Duration::MAX;
    for (expected, new) in steps {
        let began = deadline.clock().elapsed();
        let edit = RefEdit { name: name.clone(), expected, new };
        match remote::push(repository, remote, &[edit], deadline)? {
            Pushed::Landed => {}
            Pushed::Refused(error) | Pushed::Unclear(error) => return Err(error),
            Pushed::Lost(_) | Pushed::AlreadyThere(_) | Pushed::Busy(_) => {
                let message = format!("{} did not take a change of a scratch ref", remote.label());
                return Err(StoreError::new(StoreErrorKind::Policy, message));
            }
        }
        quickest = quickest.min(deadline.clock().elapsed().saturating_sub(began));
    }
    Ok(quickest)
}

struct Joining<'a> {
    repository: &'a Arc<Repository>,
    remote: Remote,
    named: String,
    ask: &'a Initialise,
    ids: &'a dyn Randomness,
    was_shared: bool,
}

impl Joining<'_> {
    fn join(&self, round_trip: Duration, deadline: &Deadline<'_>) -> Result<Initialised, StoreError> {
        let known = self.repository.config(STORE_ID_KEY);
        loop {
            let here = refs::list(self.repository, ROOT, deadline)?;
            let there = remote::fetch(self.repository, &self.remote, &[ROOT.to_owned()], deadline)?;
            let found = self.about_of(&there, deadline)?;
            let left = known.clone().filter(|known| found.as_ref().is_some_and(|about| about.store_id() != known));
            if self.was_shared && found.is_none() && here.len() > 1 {
                return Err(self.still_holds(here.len() - 1));
            }
            let publish = if self.was_shared { Refs::new() } else { here.clone() };
            self.refuse_conflicts(&publish, &there)?;
            let about = self.about_to_be(found.as_ref(), &publish, deadline)?;
            if !self.push_all(&about, &publish, &there, deadline)? {
                // Somebody else changed the remote meanwhile: look again.
                deadline.pause(Duration::from_millis(50));
                continue;
            }
            self.repository.set_config(STORE_ID_KEY, about.store_id(), deadline)?;
            self.repository.set_config(REMOTE_KEY, &self.named, deadline)?;
            let holds = self.refresh(about.store_id(), deadline)?;
            let published = publish.keys().filter(|name| *name != STORE && !there.contains_key(*name)).count();
            return Ok(Initialised {
                store_id: about.store_id().to_owned(),
                default_repo: about.facts().default_repo,
                remote: Some(self.remote.label().to_owned()),
                created: found.is_none(),
                published,
                holds,
                left: left.filter(|_| self.was_shared),
                round_trip: Some(round_trip),
            });
        }
    }

    fn about_of(&self, refs: &Refs, deadline: &Deadline<'_>) -> Result<Option<About>, StoreError> {
        let Some(id) = refs.get(STORE) else { return Ok(None) };
        let fetched = Fetched::default();
        let view = View::new(self.repository, &fetched, deadline);
        About::read(&view.blob(*id)?).map(Some).map_err(trouble)
    }

    /// Returns what `store.json` is to say: the remote's identity wins, and floors are the higher of both.
    fn about_to_be(&self, there: Option<&About>, publish: &Refs, deadline: &Deadline<'_>) -> Result<About, StoreError> {
        let here = self.about_of(publish, deadline)?;
        let begun = || About::new(&self.ids.hex(16), self.ask.default_repo.as_deref());
        let mut about = there.or(here.as_ref()).cloned().unwrap_or_else(begun);
        for (repo, floor) in here.iter().flat_map(|here| here.facts().floors) {
            about.raise_floor(&repo, floor);
        }
        let here_default = here.and_then(|here| here.facts().default_repo);
        if let Some(repo) = here_default.as_deref().or(self.ask.default_repo.as_deref()) {
            about.set_default_repo(repo);
        }
        Ok(about)
    }

    fn refuse_conflicts(&self, publish: &Refs, there: &Refs) -> Result<(), StoreError> {
        let differs = |(name, id): &(&String, &gix::ObjectId)| {
            name.as_str() != STORE && there.get(*name).is_some_and(|other| other != *id)
        };
        let conflicts: Vec<String> = publish.iter().filter(differs).map(|(name, _)| readable(name)).collect();
        if conflicts.is_empty() {
            return Ok(());
        }
        let message = format!(
            "{} holds other records than this clone at {}; nothing was published and this clone stays local",
            self.remote.label(),
            conflicts.join(", ")
        );
        Err(StoreError::new(StoreErrorKind::Foreign, message).with_hint(
            "release the claims named here, or let their holders finish, then run `agent-coord init --remote` again",
        ))
    }

    fn still_holds(&self, records: usize) -> StoreError {
        let message = format!(
            "{} holds no coordination store, and this clone still holds {records} records of the one it knew",
            self.remote.label()
        );
        StoreError::new(StoreErrorKind::Foreign, message)
            .with_hint("`agent-coord sync --restore` re-creates the store from them")
    }

    /// Publishes, create-only, in pushes of bounded size, `store.json` in each. Returns whether all landed.
    fn push_all(
        &self,
        about: &About,
        publish: &Refs,
        there: &Refs,
        deadline: &Deadline<'_>,
    ) -> Result<bool, StoreError> {
        let mut store_there = there.get(STORE).copied();
        let wanted = objects::write_blob(self.repository, &about.bytes())?;
        let mut creations: Vec<RefEdit> = publish
            .iter()
            .filter(|(name, _)| name.as_str() != STORE && !there.contains_key(*name))
            .map(|(name, id)| RefEdit { name: name.clone(), expected: None, new: Some(*id) })
            .collect();
        if creations.is_empty() && store_there == Some(wanted) {
            return Ok(true);
        }
        loop {
            let rest = creations.split_off(creations.len().min(REFS_A_PUSH - 1));
            creations.push(RefEdit { name: STORE.to_owned(), expected: store_there, new: Some(wanted) });
            match remote::push(self.repository, &self.remote, &creations, deadline)? {
                Pushed::Landed | Pushed::AlreadyThere(_) => store_there = Some(wanted),
                Pushed::Lost(_) | Pushed::Busy(_) => return Ok(false),
                Pushed::Refused(error) | Pushed::Unclear(error) => return Err(error),
            }
            if rest.is_empty() {
                return Ok(true);
            }
            creations = rest;
        }
    }

    fn refresh(&self, store_id: &str, deadline: &Deadline<'_>) -> Result<BTreeMap<String, usize>, StoreError> {
        let store = GitStore {
            repository: Arc::clone(self.repository),
            ids: self.ids,
            remote: Some(self.remote.clone()),
            store_id: Some(store_id.to_owned()),
            default_repo: None,
            fetched: Fetched::default(),
            due: std::sync::Mutex::default(),
            writer: std::sync::OnceLock::new(),
        };
        store.fetch(&self.remote, &[ROOT.to_owned()], deadline)?;
        Ok(count(&store.view(deadline).list(ROOT)?))
    }
}

/// Counts refs by family.
pub(super) fn count(refs: &Refs) -> BTreeMap<String, usize> {
    let mut holds = BTreeMap::new();
    for name in refs.keys().filter(|name| *name != STORE) {
        let family = name.strip_prefix(ROOT).and_then(|rest| rest.split('/').next()).unwrap_or("other");
        *holds.entry(family.to_owned()).or_insert(0) += 1;
    }
    holds
}

/// Returns the state path a ref stands for, for messages.
pub(super) fn readable(name: &str) -> String {
    match names::read(name) {
        Name::Record(path) => path.to_string(),
        _ => name.to_owned(),
    }
}
