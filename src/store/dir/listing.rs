//! Whole prefixes: every `*.json` file below a directory, ordered by path. Names that begin with a dot are invisible, so
//! temporary files are; lock files are because of their ending.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::layout::{self, PREFIX_SEARCH};
use crate::domain::path::{Family, Prefix, RecordPath};
use crate::domain::snapshot::Listing;
use crate::store::StoreError;

/// Lists the records below `prefix`. A directory that is missing is an empty list.
pub(super) fn list(root: &Path, prefix: &Prefix) -> Result<Listing, StoreError> {
    let mut walk = Walk { root, hidden: prefix.first_component() == Family::Attention.name(), ..Walk::below(root) };
    if layout::check_root(root)? && walk.is_there(prefix)? {
        walk.directory(prefix.as_str())?;
    }
    let Walk { mut paths, mut notes, .. } = walk;
    paths.sort();
    notes.sort();
    let mut records = Vec::with_capacity(paths.len());
    for path in paths {
        // A record that was deleted meanwhile is simply absent.
        records.extend(layout::read(root, &path)?);
    }
    Ok(Listing { records, notes })
}

struct Walk<'a> {
    root: &'a Path,
    /// Directories whose names begin with a dot are looked into: an attention workspace may be called so.
    hidden: bool,
    paths: Vec<RecordPath>,
    notes: Vec<String>,
}

impl<'a> Walk<'a> {
    fn below(root: &'a Path) -> Self {
        Self { root, hidden: false, paths: Vec::new(), notes: Vec::new() }
    }

    fn is_there(&self, prefix: &Prefix) -> Result<bool, StoreError> {
        let text = prefix.as_str();
        let ends = text.match_indices('/').map(|(at, _)| at).chain([text.len()]);
        for end in ends {
            if !layout::check_directory(self.root, &text[..end], PREFIX_SEARCH)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn directory(&mut self, relative: &str) -> Result<(), StoreError> {
        let entries = match fs::read_dir(self.root.join(relative)) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(layout::unsearchable(PREFIX_SEARCH, relative, &error)),
        };
        for entry in entries {
            let entry = entry.map_err(|error| layout::unsearchable(PREFIX_SEARCH, relative, &error))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else {
                self.note(&format!("{relative}/{}", name.to_string_lossy()));
                continue;
            };
            self.entry(&format!("{relative}/{name}"), name)?;
        }
        Ok(())
    }

    fn entry(&mut self, relative: &str, name: &str) -> Result<(), StoreError> {
        let found = fs::symlink_metadata(self.root.join(relative));
        let is_directory = found.as_ref().is_ok_and(fs::Metadata::is_dir);
        if name.starts_with('.') && !(is_directory && self.hidden) {
            return Ok(());
        }
        match RecordPath::parse(relative) {
            Ok(path) => {
                if layout::check_file(found, &path)? {
                    self.paths.push(path);
                }
                Ok(())
            }
            Err(_) if is_directory => self.directory(relative),
            Err(_) if found.is_ok_and(|metadata| metadata.is_symlink()) => {
                layout::check_directory(self.root, relative, PREFIX_SEARCH).map(drop)
            }
            Err(_) => {
                if name.ends_with(".json") {
                    self.note(relative);
                }
                Ok(())
            }
        }
    }

    fn note(&mut self, relative: &str) {
        self.notes.push(format!("{relative} is not a state path; it is not reported"));
    }
}
