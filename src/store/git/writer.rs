//! The writer id of a clone: 64 random bits, made once. Never an agent id: two clones with one agent id must not share a
//! chain of segments (design.md section 3.2).

use std::io::Write;

use super::trouble;
use crate::git::{Repository, files};
use crate::store::StoreError;
use crate::world::Randomness;

/// Returns this clone's writer id, making it at the first call.
///
/// # Errors
/// When it can be neither read nor made.
pub fn id_of(repository: &Repository, ids: &dyn Randomness) -> Result<String, StoreError> {
    let directory = repository.shared_dir();
    let path = directory.join("writer");
    let read = || files::read(&path).map(|text| text.trim().to_owned()).filter(|text| is_id(text));
    if let Some(known) = read() {
        return Ok(known);
    }
    let made = ids.hex(8);
    let explain = |error: std::io::Error| trouble(format!("cannot write {}: {error}", path.display()));
    std::fs::create_dir_all(&directory).map_err(explain)?;
    let mut file = tempfile::NamedTempFile::new_in(&directory).map_err(explain)?;
    writeln!(file, "{made}").map_err(explain)?;
    match file.persist_noclobber(&path) {
        Ok(_) => Ok(made),
        // Another process of the clone was first, or a broken file is in the way.
        Err(refused) => match read() {
            Some(known) => Ok(known),
            None => refused.file.persist(&path).map(|_| made).map_err(|error| explain(error.error)),
        },
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}
