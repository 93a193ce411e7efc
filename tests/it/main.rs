//! Integration tests: one binary, one module per subject.

#![allow(clippy::disallowed_methods, reason = "tests look at real time and at their own environment")]
#![allow(clippy::print_stderr, reason = "a skipped case says why")]
#![allow(missing_docs, reason = "the names of tests are sentences")]

mod architecture;
mod batches;
mod caches;
mod concurrency;
mod conformance;
mod directory;
mod displaced;
mod documents;
mod faults;
mod faulty;
mod hooks;
mod hooks_support;
mod identity;
mod log;
mod lost_replies;
mod misbehaving;
mod remotes;
mod repositories;
mod reproducible;
mod selection;
mod support;

/// A file that nobody lists is a test that nobody runs.
#[test]
fn every_file_of_this_folder_is_listed_here() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let listed = std::fs::read_to_string(folder.join("main.rs")).expect("this file");
    for entry in std::fs::read_dir(&folder).expect("this folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().replace(".rs", "");
        if name != "main" {
            assert!(listed.lines().any(|line| line == format!("mod {name};")), "tests/it/{name} is not listed");
        }
    }
}
