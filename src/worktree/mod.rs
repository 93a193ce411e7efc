//! The private files of a clone: tenure, identity, notes, observations.
//!
//! None of them is the truth about a claim: the store is. They are written atomically (a temporary file of mode 0600,
//! then a rename), read with a bound, and never trusted: a file that is broken, too large or not a plain file counts as
//! absent and is made anew by the next write. What that costs is said at each of them, and it is never a claim.

pub(crate) mod files;

pub mod canary;
pub mod held;
pub mod identity;
pub mod observations;
pub mod told;

/// Makes a repository of its own for one test.
#[cfg(test)]
pub(crate) fn test_repository() -> (tempfile::TempDir, crate::git::Repository) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("clone");
    gix::init(&path).expect("a new repository");
    let repository = open(&path);
    (directory, repository)
}

#[cfg(test)]
pub(crate) fn open(path: &std::path::Path) -> crate::git::Repository {
    let mut environment = crate::world::Environment::of_process();
    environment.remove("GIT_DIR");
    crate::git::Repository::open(path, &environment).expect("a repository")
}

/// Copies the private files of a repository into another, as copying the folder does.
#[cfg(test)]
fn copy_of(directory: &std::path::Path, repository: &crate::git::Repository) -> crate::git::Repository {
    let path = directory.join("copy");
    gix::init(&path).expect("a new repository");
    let copy = open(&path);
    std::fs::create_dir_all(copy.private_dir()).expect("a directory");
    for entry in std::fs::read_dir(repository.private_dir()).expect("private files").flatten() {
        std::fs::copy(entry.path(), copy.private_dir().join(entry.file_name())).expect("a copy");
    }
    copy
}
