//! Objects: blobs for records, trees for event segments. gix reads and writes them; many at once go through one
//! `git cat-file --batch`, which beats reading them one by one (design.md section 3.3).

use std::collections::BTreeMap;
use std::fs::File;

use gix::ObjectId;
use gix::objs::tree::{Entry, EntryKind};

use super::trouble;
use crate::git::{Call, Repository};
use crate::store::StoreError;
use crate::world::Deadline;

/// From here on one `cat-file --batch` is faster than reading each object by itself.
const BATCH_FROM: usize = 400;
/// `git gc` may remove a fan-out folder between our making it and our writing into it.
const WRITE_ATTEMPTS: u32 = 5;

/// Writes a blob and returns its id.
///
/// # Errors
/// When the object database cannot be written.
pub fn write_blob(repository: &Repository, bytes: &[u8]) -> Result<ObjectId, StoreError> {
    write(repository, || repository.reader().write_blob(bytes).map(|id| id.detach()))
}

/// Writes a tree of blobs and returns its id. Names are sorted as git wants them.
///
/// # Errors
/// When the object database cannot be written.
pub fn write_tree(repository: &Repository, entries: &BTreeMap<String, ObjectId>) -> Result<ObjectId, StoreError> {
    let entries = entries
        .iter()
        .map(|(name, id)| Entry { mode: EntryKind::Blob.into(), filename: name.as_str().into(), oid: *id })
        .collect();
    let tree = gix::objs::Tree { entries };
    write(repository, || repository.reader().write_object(&tree).map(|id| id.detach()))
}

fn write(repository: &Repository, once: impl Fn() -> gix::Result<ObjectId>) -> Result<ObjectId, StoreError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        match once() {
            Ok(id) => {
                sync_if_asked(repository, id);
                return Ok(id);
            }
            Err(error) if attempt == WRITE_ATTEMPTS => {
                return Err(trouble(format!(
                    "cannot write an object into {}: {error}",
                    repository.common_dir().display()
                )));
            }
            Err(_) => {}
        }
    }
}

/// Honours `core.fsync` for a loose object, which gix leaves to the operating system.
fn sync_if_asked(repository: &Repository, id: ObjectId) {
    let asked = repository.config("core.fsync").is_some_and(|value| fsync_covers_loose_objects(&value))
        || repository.config_flag("core.fsyncObjectFiles") == Some(true);
    if asked {
        let hex = id.to_hex().to_string();
        let path = repository.common_dir().join("objects").join(&hex[..2]).join(&hex[2..]);
        // A pack may hold it instead; then it is as durable as that pack.
        let _ = File::open(path).and_then(|file| file.sync_all());
    }
}

fn fsync_covers_loose_objects(value: &str) -> bool {
    let mut covered = false;
    for component in value.split(',').map(str::trim) {
        match component {
            "all" | "loose-object" | "objects" | "committed" | "added" => covered = true,
            "none" | "-loose-object" | "-objects" | "-all" => covered = false,
            _ => {}
        }
    }
    covered
}

/// Reads blobs. An object that is missing or no blob is left out.
///
/// # Errors
/// When git, asked for many at once, does not answer.
pub fn read_blobs(
    repository: &Repository,
    ids: &[ObjectId],
    deadline: &Deadline<'_>,
) -> Result<BTreeMap<ObjectId, Vec<u8>>, StoreError> {
    if ids.len() >= BATCH_FROM {
        return read_batch(repository, ids, deadline);
    }
    let reader = repository.reader();
    let read = |id: &ObjectId| match reader.try_find_object(*id) {
        Ok(Some(object)) if object.kind == gix::objs::Kind::Blob => Some((*id, object.detach().data)),
        _ => None,
    };
    Ok(ids.iter().filter_map(read).collect())
}

fn read_batch(
    repository: &Repository,
    ids: &[ObjectId],
    deadline: &Deadline<'_>,
) -> Result<BTreeMap<ObjectId, Vec<u8>>, StoreError> {
    let input: String = ids.iter().map(|id| format!("{id}\n")).collect();
    let call = Call::new("cat-file").args(["--batch", "--buffer"]).input(input);
    let finished = repository.run(call, deadline).map_err(trouble)?;
    let output = finished.checked("cat-file").map_err(trouble)?;
    Ok(parse_batch(&output))
}

/// Parses `<oid> SP <type> SP <size> LF <contents> LF`; `<oid> missing LF` is skipped.
fn parse_batch(mut output: &[u8]) -> BTreeMap<ObjectId, Vec<u8>> {
    let mut blobs = BTreeMap::new();
    while let Some(end) = output.iter().position(|&byte| byte == b'\n') {
        let header = String::from_utf8_lossy(&output[..end]).into_owned();
        output = &output[end + 1..];
        let mut words = header.split(' ');
        let (id, kind, size) = (words.next(), words.next(), words.next().and_then(|size| size.parse::<usize>().ok()));
        let Some(size) = size.filter(|size| *size < output.len()) else { continue };
        if let (Some(id), Some("blob")) = (id.and_then(|id| ObjectId::from_hex(id.as_bytes()).ok()), kind) {
            blobs.insert(id, output[..size].to_vec());
        }
        output = &output[size + 1..];
    }
    blobs
}

/// Reads the tree of a segment: file name to blob. Entries that are no blobs are left out.
///
/// # Errors
/// When the object is missing or no tree.
pub fn read_tree(repository: &Repository, id: ObjectId) -> Result<BTreeMap<String, ObjectId>, StoreError> {
    let reader = repository.reader();
    let object = reader.find_object(id).map_err(|error| trouble(format!("cannot read event segment {id}: {error}")))?;
    let tree = object.try_into_tree().map_err(|_| trouble(format!("event segment {id} is not a tree")))?;
    let decoded = tree.decode().map_err(|error| trouble(format!("cannot read event segment {id}: {error}")))?;
    Ok(decoded
        .entries
        .iter()
        .filter(|entry| entry.mode.is_blob())
        .filter_map(|entry| Some((std::str::from_utf8(entry.filename).ok()?.to_owned(), entry.oid.to_owned())))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_answer_with_missing_and_foreign_objects_yields_the_blobs_alone() {
        let one = "1".repeat(40);
        let two = "2".repeat(40);
        let output = format!("{one} blob 3\na\nb\n{two} missing\n{two} tree 1\nx\n");
        let blobs = parse_batch(output.as_bytes());
        assert_eq!(blobs.len(), 1);
        assert_eq!(blobs.values().next().map(Vec::as_slice), Some(&b"a\nb"[..]));
    }

    #[test]
    fn core_fsync_is_read_as_git_reads_it() {
        for (value, covered) in [
            ("all", true),
            ("committed", true),
            ("committed,-loose-object", false),
            ("loose-object", true),
            ("none", false),
        ] {
            assert_eq!(fsync_covers_loose_objects(value), covered, "{value}");
        }
    }
}
