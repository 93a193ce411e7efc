//! Snapshots: from the refs of this clone, or from one fetch of the shared remote.

use std::collections::{BTreeMap, BTreeSet};

use gix::ObjectId;

use super::names::{self, Name};
use super::refs::{self, Flock, RefEdit, Refs, Update};
use super::remote::{self, Remote};
use super::segments::Segments;
use super::view::View;
use super::{GitStore, codec, fetch_times, objects};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::record::{Annotations, Content, Stored, Version};
use crate::domain::snapshot::{Freshness, Listing, Scope, Snapshot, StoreFacts};
use crate::store::{StoreError, StoreErrorKind};
use crate::world::Deadline;

/// Whether the cache could be compared with an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cache {
    Readable,
    Unreadable,
}

impl GitStore<'_> {
    pub(super) fn read_snapshot(
        &self,
        scope: &Scope,
        freshness: Freshness,
        deadline: &Deadline<'_>,
    ) -> Result<Snapshot, StoreError> {
        let patterns = patterns_of(scope);
        let mut freshness = freshness;
        let view = self.view(deadline);
        match &self.remote {
            None => freshness = Freshness::Fetched,
            Some(remote) if freshness == Freshness::Fetched => self.fetch(remote, &patterns, deadline)?,
            // A cache without store.json says nothing about what the remote holds.
            Some(remote) if !matches!(view.one(names::STORE), Ok(Some(_))) => {
                freshness = Freshness::Fetched;
                self.fetch(remote, &patterns, deadline)?;
            }
            Some(_) => {}
        }
        let mut store = self.about(&view)?.map(|(_, about)| about.facts()).unwrap_or_default();
        if self.remote.is_some() {
            store.fetched_at = fetch_times::of(&self.repository, &patterns);
        }
        let assembled = self.assemble(scope, &view, freshness, store, deadline);
        assembled.map_err(|error| match (&self.remote, &error.hint) {
            (Some(_), None) => error.with_hint("`agent-coord sync` mends the copy of the shared claims in this clone"),
            _ => error,
        })
    }

    fn assemble(
        &self,
        scope: &Scope,
        view: &View<'_>,
        freshness: Freshness,
        store: StoreFacts,
        deadline: &Deadline<'_>,
    ) -> Result<Snapshot, StoreError> {
        let records = self.read_records(scope, view, deadline)?;
        let mut listings = BTreeMap::new();
        for prefix in &scope.prefixes {
            listings.insert(prefix.clone(), self.read_listing(prefix, view, deadline)?);
        }
        Ok(Snapshot { freshness, records, listings, store })
    }

    fn read_records(
        &self,
        scope: &Scope,
        view: &View<'_>,
        deadline: &Deadline<'_>,
    ) -> Result<BTreeMap<RecordPath, Option<Stored>>, StoreError> {
        let (events, others): (Vec<&RecordPath>, Vec<&RecordPath>) =
            scope.records.iter().partition(|path| is_in_segments(path));
        let names: Vec<String> = others.iter().map(|path| names::of_record(path)).collect();
        let found = view.read(&names)?;
        let mut blobs_at: BTreeMap<&RecordPath, Option<ObjectId>> =
            others.iter().zip(&names).map(|(path, name)| (*path, found.get(name).copied())).collect();
        for path in events {
            let segments = Segments::read(view, path.batch_of_event().unwrap_or_default())?;
            blobs_at.insert(path, segments.event(&format!("{}.json", path.stem())));
        }
        let ids: Vec<ObjectId> = blobs_at.values().flatten().copied().collect();
        let blobs = objects::read_blobs(&self.repository, &ids, deadline)?;
        let read = |(path, id): (&RecordPath, Option<ObjectId>)| {
            let stored = id.map(|id| stored(path.clone(), id, blobs.get(&id).map(Vec::as_slice)));
            (path.clone(), stored)
        };
        Ok(blobs_at.into_iter().map(read).collect())
    }

    fn read_listing(&self, prefix: &Prefix, view: &View<'_>, deadline: &Deadline<'_>) -> Result<Listing, StoreError> {
        let mut found: Vec<(Option<RecordPath>, String, ObjectId)> = Vec::new();
        let mut notes = BTreeSet::new();
        let mut refs = Refs::new();
        for begin in names::of_prefix(prefix) {
            refs.extend(view.list(&begin)?);
        }
        for (name, id) in refs {
            match names::read(&name) {
                Name::Record(path) => found.push((Some(path), name, id)),
                Name::LongRecord => found.push((None, name, id)),
                Name::Segment { batch: Some(batch), .. } => match objects::read_tree(&self.repository, id) {
                    Ok(events) => found.extend(events.into_iter().filter_map(|(file, blob)| {
                        let path = RecordPath::parse(&format!("events/{batch}/{file}")).ok()?;
                        Some((Some(path), name.clone(), blob))
                    })),
                    Err(error) => drop(notes.insert(error.message)),
                },
                Name::Segment { batch: None, .. } | Name::Store | Name::Foreign => {
                    notes.insert(format!("unknown ref {name} was not read"));
                }
            }
        }
        let ids: Vec<ObjectId> = found.iter().map(|(_, _, id)| *id).collect();
        let blobs = objects::read_blobs(&self.repository, &ids, deadline)?;
        let mut records = BTreeMap::new();
        for (path, name, id) in found {
            let bytes = blobs.get(&id).map(Vec::as_slice);
            match path.or_else(|| path_inside(&name, bytes)) {
                Some(path) => drop(records.insert(path.clone(), stored(path, id, bytes))),
                None => drop(notes.insert(format!("unknown ref {name} was not read"))),
            }
        }
        Ok(Listing { records: records.into_values().collect(), notes: notes.into_iter().collect() })
    }

    /// Fetches `patterns`, `store.json` and whatever a lost push left due, in one connection; checks that it is the
    /// store this clone knows; and only then brings the cache up to date. A cache that is gone or broken is fetched whole:
    /// once `store.json` is back, hooks take what is not there for free.
    pub(super) fn fetch(
        &self,
        remote: &Remote,
        patterns: &[String],
        deadline: &Deadline<'_>,
    ) -> Result<(), StoreError> {
        let whole = [names::ROOT.to_owned()];
        let mut wanted = self.take_due();
        wanted.extend(patterns.iter().cloned());
        wanted.insert(names::STORE.to_owned());
        let wanted: Vec<String> =
            if self.has_no_cache(deadline) { whole.to_vec() } else { wanted.into_iter().collect() };
        let fetched = self.fetch_once(remote, &wanted, deadline);
        let may_be_broken = match &fetched {
            Ok(cache) => *cache == Cache::Unreadable,
            Err(error) => matches!(error.kind, StoreErrorKind::Unreachable | StoreErrorKind::Broken),
        };
        if may_be_broken && self.drop_broken_cache(deadline) {
            return self.fetch_once(remote, &whole, deadline).map(drop);
        }
        fetched.map(drop)
    }

    fn fetch_once(&self, remote: &Remote, wanted: &[String], deadline: &Deadline<'_>) -> Result<Cache, StoreError> {
        let answer = remote::fetch(&self.repository, remote, wanted, deadline)?;
        self.check_identity(&answer, deadline)?;
        self.fetched.remember(wanted, &answer);
        let cache = self.refresh_cache(wanted, &answer, deadline);
        fetch_times::note(&self.repository, wanted, deadline.clock().now());
        Ok(cache)
    }

    fn check_identity(&self, answer: &Refs, deadline: &Deadline<'_>) -> Result<(), StoreError> {
        let Some(id) = answer.get(names::STORE) else { return Err(self.no_store()) };
        let bytes = self.view(deadline).blob(*id)?;
        let about = super::about::About::read(&bytes).map_err(super::trouble)?;
        match &self.store_id {
            Some(known) if known != about.store_id() => Err(self.another_store(about.store_id())),
            _ => Ok(()),
        }
    }

    /// Brings the cached refs in line with an answer, by compare-and-swap. A cache that could not be brought up to date
    /// costs the next command a retry, so a failure here is not reported.
    fn refresh_cache(&self, patterns: &[String], answer: &Refs, deadline: &Deadline<'_>) -> Cache {
        let Ok(edits) = self.cache_edits(patterns, answer, deadline) else { return Cache::Unreadable };
        let attempt = || -> Result<(), StoreError> {
            if edits.is_empty() {
                return Ok(());
            }
            let held = Flock::take(&self.repository, deadline)?;
            if let Update::Refused(_) = refs::update(&self.repository, &edits, &held, deadline)? {
                // A git killed in mid-push may have left a lock here, and then the cache would never change again.
                let names: Vec<&str> = edits.iter().map(|edit| edit.name.as_str()).collect();
                if refs::remove_abandoned_locks(&self.repository, &names, &held, deadline) {
                    refs::update(&self.repository, &edits, &held, deadline)?;
                }
            }
            Ok(())
        };
        let _ = attempt();
        Cache::Readable
    }

    fn cache_edits(
        &self,
        patterns: &[String],
        answer: &Refs,
        deadline: &Deadline<'_>,
    ) -> Result<Vec<RefEdit>, StoreError> {
        let (prefixes, single): (Vec<&String>, Vec<&String>) =
            patterns.iter().partition(|pattern| pattern.ends_with('/'));
        let single: Vec<String> = single.into_iter().cloned().collect();
        let mut cached = refs::read(&self.repository, &single, deadline)?;
        for prefix in prefixes {
            cached.extend(refs::list(&self.repository, prefix, deadline)?);
        }
        let names: BTreeSet<&String> = cached.keys().chain(answer.keys()).collect();
        let edits = names.into_iter().map(|name| RefEdit {
            name: name.clone(),
            expected: cached.get(name).copied(),
            new: answer.get(name).copied(),
        });
        Ok(edits.filter(|edit| !edit.is_guard()).collect())
    }
}

/// Returns the refs and prefixes that a scope is read from.
pub(super) fn patterns_of(scope: &Scope) -> Vec<String> {
    let records = scope.records.iter().map(|path| match path.batch_of_event() {
        Some(batch) if is_in_segments(path) => names::of_segments(batch),
        _ => names::of_record(path),
    });
    let patterns: BTreeSet<String> = records.chain(scope.prefixes.iter().flat_map(names::of_prefix)).collect();
    patterns.into_iter().collect()
}

/// Every event but the reservations, which have refs of their own.
fn is_in_segments(path: &RecordPath) -> bool {
    path.family() == Family::Events && !names::is_reservation(path)
}

fn stored(path: RecordPath, id: ObjectId, bytes: Option<&[u8]>) -> Stored {
    let version = Version::new(id.to_string());
    match bytes {
        Some(bytes) => {
            let decoded = codec::decode(Some(path.family()), bytes);
            Stored { path, content: decoded.content, annotations: decoded.annotations, version }
        }
        None => {
            let content = Content::Malformed(format!("object {id} is missing or is no blob"));
            Stored { path, content, annotations: Annotations::default(), version }
        }
    }
}

/// Returns the path a record with a cut ref name gives, when its name agrees.
fn path_inside(name: &str, bytes: Option<&[u8]>) -> Option<RecordPath> {
    let path = codec::decode(None, bytes?).path?;
    RecordPath::parse(&path).ok().filter(|path| names::of_record(path) == name)
}
