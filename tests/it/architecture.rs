//! Who may use whom, checked on the source itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// One row of the table: files below `part` name only `may` of our own modules.
struct Rule {
    part: &'static str,
    may: &'static [&'static str],
}

/// The longest matching `part` decides. An entry of `may` allows itself and everything below it.
const RULES: [Rule; 19] = [
    Rule { part: "domain", may: &["domain"] },
    Rule { part: "world", may: &["domain::time"] },
    Rule { part: "git", may: &["git", "world"] },
    Rule { part: "store", may: &["store", "domain", "world"] },
    Rule { part: "store/mod", may: &["domain", "world"] },
    Rule { part: "store/memory", may: &["domain", "world"] },
    Rule { part: "store/content", may: &["domain"] },
    Rule { part: "store/dir", may: &["store", "domain", "world"] },
    Rule { part: "store/git", may: &["store", "domain", "git", "world"] },
    Rule { part: "store/open", may: &["store", "domain", "git", "world"] },
    Rule { part: "app", may: &["app", "domain", "store", "world"] },
    Rule { part: "worktree", may: &["worktree", "domain", "git", "world"] },
    Rule { part: "hooks", may: &["hooks", "app", "domain", "git", "store", "worktree", "world"] },
    Rule { part: "report", may: &["domain", "report"] },
    Rule { part: "error", may: &["error", "domain", "app::transact", "store", "git"] },
    Rule { part: "output", may: &["output", "report", "error", "domain", "world"] },
    Rule {
        part: "commands",
        may: &[
            "commands", "cli", "app", "domain", "hooks", "report", "error", "git", "store", "worktree", "output",
            "world",
        ],
    },
    Rule { part: "cli", may: &[""] },
    Rule { part: "main", may: &[""] },
];

#[test]
fn modules_use_only_what_lies_below_them() {
    let mut wrong = Vec::new();
    for (name, text) in sources() {
        let Some(rule) = RULES.iter().filter(|rule| is_below(&name, rule.part)).max_by_key(|rule| rule.part.len())
        else {
            if name != "lib" {
                wrong.push(format!("src/{name}.rs has no row in the table"));
            }
            continue;
        };
        for used in uses_of_ours(&text) {
            let own = name.trim_end_matches("/mod").replace('/', "::");
            if used != own && !rule.may.iter().any(|may| may.is_empty() || covers(may, &used)) {
                wrong.push(format!("src/{name}.rs may not use crate::{used}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_store_and_git_know_a_concrete_backend() {
    // `app/histories` is compiled for tests only, and tries whole histories on the reference store.
    let allowed = ["store/", "cli/", "commands/init", "commands/sync", "app/histories/"];
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|(name, _)| !allowed.iter().any(|part| name.starts_with(part)))
        .flat_map(|(name, text)| {
            let used = uses_of_ours(&text).into_iter().filter(|used| {
                ["store::git", "store::dir", "store::memory"].iter().any(|backend| covers(backend, used))
            });
            used.map(|used| format!("src/{name}.rs uses crate::{used}")).collect::<Vec<_>>()
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_git_and_the_git_store_use_gix() {
    for (name, text) in sources() {
        if !is_below(&name, "git") && !is_below(&name, "store/git") {
            assert!(!mentions(&text, "gix::"), "src/{name}.rs uses gix");
        }
    }
}

#[test]
fn the_domain_does_no_io() {
    const BANNED: [&str; 9] = [
        "std::fs",
        "std::env",
        "std::process",
        "std::net",
        "std::io",
        "std::thread",
        "Utc::now",
        "SystemTime",
        "Instant",
    ];
    for (name, text) in sources().into_iter().filter(|(name, _)| is_below(name, "domain")) {
        for banned in BANNED {
            assert!(!mentions(&text, banned), "src/{name}.rs uses {banned}: the domain is pure");
        }
    }
}

#[test]
fn only_the_streams_of_the_world_are_printed_to() {
    for (name, text) in sources() {
        for macro_name in ["println!", "eprintln!", "print!", "eprint!", "dbg!"] {
            assert!(!mentions(&text, macro_name), "src/{name}.rs uses {macro_name}");
        }
    }
}

#[test]
fn only_one_file_starts_processes_and_one_meets_the_environment() {
    for (name, text) in sources() {
        if !["git/call", "hooks/chain", "hooks/install"].contains(&name.as_str()) {
            assert!(!mentions(&text, "Command::new("), "src/{name}.rs starts a process");
        }
        if name != "world" {
            for banned in ["env::var", "env::vars", "env::args", "SystemTime::now", "Instant::now", "Utc::now"] {
                assert!(!mentions(&text, banned), "src/{name}.rs uses {banned}");
            }
        }
    }
}

#[test]
fn the_scan_itself_sees_what_it_looks_for() {
    let text = "use crate::store::{self, git::{names, plan}, StoreError};\nfn f() { crate::app::transact::run(); }\n";
    let used: Vec<String> = uses_of_ours(text).into_iter().collect();
    assert_eq!(used, ["app::transact::run", "store", "store::StoreError", "store::git::names", "store::git::plan"]);
    assert!(covers("store::git", "store::git::names") && !covers("store::git", "store::gitlab"));
    assert!(sources().len() > 20, "the source is found");
}

fn is_below(name: &str, part: &str) -> bool {
    name == part || name.strip_prefix(part).is_some_and(|rest| rest.starts_with('/'))
}

fn covers(may: &str, used: &str) -> bool {
    used == may || used.strip_prefix(may).is_some_and(|rest| rest.starts_with("::"))
}

/// Tells whether code (not a comment) mentions `word`, at the beginning of an identifier.
fn mentions(text: &str, word: &str) -> bool {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).any(|line| {
        line.match_indices(word).any(|(at, _)| {
            !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_' || before == '"')
        })
    })
}

/// Returns every source file without its unit tests: its name below `src` without `.rs`, and its text.
fn sources() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files
        .into_iter()
        .filter_map(|file| {
            let name = file.strip_prefix(&root).ok()?.with_extension("").to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&file).ok()?;
            let without_tests = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            (!name.ends_with("tests") && !name.contains("/tests/")).then_some((name, without_tests))
        })
        .collect()
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the source").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
}

/// Returns every `crate::...` path that code names, `use` trees taken apart.
fn uses_of_ours(text: &str) -> BTreeSet<String> {
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).flat_map(|line| [line.trim(), " "]).collect();
    let mut used = BTreeSet::new();
    for (at, start) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        take_apart("", &code[at + start.len()..], &mut used);
    }
    used
}

/// Takes one `use` tree apart; returns what follows it.
fn take_apart<'a>(before: &str, tree: &'a str, used: &mut BTreeSet<String>) -> &'a str {
    let end = tree.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(tree.len());
    let (word, rest) = tree.split_at(end);
    let path = format!("{before}{word}");
    let Some(mut branches) = rest.strip_prefix('{').filter(|_| word.ends_with("::") || word.is_empty()) else {
        let whole = path.trim_end_matches("::self").trim_end_matches("::");
        used.insert(whole.to_owned());
        return rest;
    };
    loop {
        branches = take_apart(&path, branches.trim_start(), used);
        branches = branches.trim_start();
        if let Some(alias) = branches.strip_prefix("as ") {
            branches = alias.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start();
        }
        match branches.strip_prefix(',').map(str::trim_start) {
            Some(more) if !more.starts_with('}') => branches = more,
            Some(more) => return more.strip_prefix('}').unwrap_or(more),
            None => return branches.strip_prefix('}').unwrap_or(branches),
        }
    }
}
