//! The contract: what names and values a store must keep apart and give back.

use agent_coord::domain::ids::RepoName;
use agent_coord::domain::path::{Family, Prefix};
use agent_coord::domain::record::{Content, Members};
use agent_coord::store::CommitError;
use serde_json::{Value, json};

use super::client::{Backend, claim, create, members, path};
use super::with_clients;

pub fn listings_are_ordered_and_take_no_neighbours(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let repo = |name: &str| Prefix::claims_of(&RepoName::parse("target", name).expect("a repository"));
        let of_r = ["claims/o/r/1.json", "claims/o/r/10.json", "claims/o/r/2.json", "claims/o/r/a.b.json"];
        let others = ["claims/o/r.x/1.json", "claims/o/r2/1.json", "claims/o/rx/1.json", "claims/o2/r/1.json"];
        for at in of_r.iter().rev().chain(&others) {
            team.clients[0].must(create(&path(at), claim("a", 1)));
        }
        team.clients[0].must(create(&path("heartbeats/a.json"), members(json!({ "agent_id": "a" }))));
        let listed = |prefix: &Prefix| -> Vec<String> {
            let listing = team.clients[1].list(prefix);
            assert!(listing.notes.is_empty(), "a complete listing has no notes: {:?}", listing.notes);
            listing.records.iter().map(|stored| stored.path.to_string()).collect()
        };
        assert_eq!(listed(&repo("o/r")), of_r, "ordered by path, without neighbours that share a beginning");
        assert_eq!(listed(&repo("o/r2")), ["claims/o/r2/1.json"]);
        assert_eq!(listed(&repo("o/nothing")), Vec::<String>::new(), "an empty directory is an empty list");
        let mut all: Vec<String> = of_r.iter().chain(&others).map(ToString::to_string).collect();
        all.sort();
        assert_eq!(listed(&Prefix::family(Family::Claims)), all);
        assert_eq!(listed(&Prefix::family(Family::Batches)), Vec::<String>::new());
    });
}

/// Trap 6: `feat/a` and `feat-a`, `Foo` and `foo`, `x` and `x/y`.
pub fn names_that_file_systems_confuse_stay_apart(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let names = [
            "claims/o/r/foo.json",
            "claims/o/r/Foo.json",
            "claims/o/r/FOO.json",
            "claims/O/r/foo.json",
            "claims/o/R/foo.json",
            "claims/o/r/foo.json.json",
            "claims/o/r.json/foo.json",
            "claims/o/r/a:b.json",
            "claims/o/r/a-b.json",
            "claims/o/r/a_b.json",
            "claims/o/r/a.b.json",
        ];
        check_all_apart(team, &names.map(str::to_owned));
    });
}

pub fn names_that_git_or_windows_dislike_come_back_unchanged(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let long = |last: char| format!("claims/o/r/{}{last}.json", "n".repeat(230));
        let mut names: Vec<String> = [
            "claims/o/r/x.lock.json",
            "claims/o/x.lock/1.json",
            "claims/con/aux/nul.json",
            "claims/o/r/com1.json",
            "claims/o/r/Con.x.json",
            "claims/o/r/-.json",
            "claims/-o/-r/-1.json",
            "claims/o/r/issue:9765:qa.json",
            "claims/o/r/HEAD.json",
            "claims/o/r/:.json",
            "claims/o/r./1.json",
        ]
        .map(str::to_owned)
        .into();
        names.extend([long('a'), long('b'), long('A')]);
        check_all_apart(team, &names);
    });
}

/// A directory shows no name that begins with a dot, and `.` itself is a place to it. A store may refuse such names or
/// leave them out of listings; it may not put them anywhere else.
pub fn names_that_begin_with_a_dot_come_back_or_are_refused(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let names = ["claims/./r/1.json", "claims/o/.git/1.json", "claims/o/./1.json"];
        for name in names {
            let at = path(name);
            let content = members(json!({ "name": name }));
            match team.clients[0].commit(vec![create(&at, content.clone())]) {
                Ok(_) => assert_eq!(team.clients[1].present(&at).object(), Some(&content), "{name}"),
                Err(CommitError::Failed(error)) => {
                    assert_eq!(error.message, format!("unsafe state path: {name}"));
                    assert!(!team.clients[0].abilities().fencing, "{}: git has a name for everything", backend.name);
                }
                Err(other) => panic!("{}: {other}", backend.name),
            }
        }
        for stored in team.clients[1].list(&Prefix::family(Family::Claims)).records {
            assert!(names.contains(&stored.path.as_str()), "{} was never written", stored.path);
        }
    });
}

fn check_all_apart(team: &super::client::Team, names: &[String]) {
    let content = |name: &str| members(json!({ "name": name }));
    for name in names {
        let given = team.clients[0].commit(vec![create(&path(name), content(name))]);
        assert!(given.is_ok(), "{name} has a place of its own: {given:?}");
    }
    for name in names {
        let stored = team.clients[1].present(&path(name));
        assert_eq!(stored.object(), Some(&content(name)), "{name} comes back as itself");
    }
    let listed = team.clients[1].list(&Prefix::family(Family::Claims));
    let mut expected = names.to_vec();
    expected.sort();
    let found: Vec<String> = listed.records.iter().map(|stored| stored.path.to_string()).collect();
    assert_eq!(found, expected, "a listing finds each under its own name; notes: {:?}", listed.notes);
}

pub fn values_of_every_kind_come_back_unchanged(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let text = r#"{"z":1,"a":[],"o":{},"big":123456789012345678901234567890,"neg":-0.0,"exp":1.0e300,"half":0.5,
            "text":"caf\u00e9 \u2028 \u202e \u0001 \u007f \\ / \"","nothing":null,"yes":true,
            "deep":[[[[{"a":[{}]}]]]],"":"empty name","emoji":"🦀"}"#;
        let written: Members = serde_json::from_str(text).expect("valid JSON");
        let at = path("batches/b1.json");
        team.clients[0].must(create(&at, written.clone()));
        let read = team.clients[1].present(&at);
        let object = read.object().expect("an object");
        assert_eq!(object, &written);
        let order: Vec<&String> = object.keys().collect();
        assert_eq!(order, written.keys().collect::<Vec<_>>(), "members keep their order");
        assert_eq!(object["big"].to_string(), "123456789012345678901234567890", "integers of any size stay integers");
    });
}

pub fn a_malformed_record_is_a_value_and_hides_nobody_else(backend: &Backend) {
    with_clients(backend, 2, |team| {
        let Some(plant) = &team.plant else {
            eprintln!("skipped: nothing but the store itself can write to {}", backend.name);
            return;
        };
        let good = path("claims/o/r/good.json");
        team.clients[0].must(create(&good, claim("a", 1)));
        let deep = format!("{}1{}", "[".repeat(5_000), "]".repeat(5_000));
        let bad: [(&str, &[u8]); 6] = [
            ("array", b"[1, 2]\n"),
            ("broken", b"{\"agent_id\": \n"),
            ("bytes", b"{\"agent_id\": \"\xff\xfe\"}"),
            ("deep", deep.as_bytes()),
            ("empty", b""),
            ("number", b"42"),
        ];
        for (name, bytes) in bad {
            plant(&format!("claims/o/r/{name}.json"), bytes);
        }
        let prefix = Prefix::claims_of(&RepoName::parse("target", "o/r").expect("a repository"));
        let listed = team.clients[1].list(&prefix);
        let names: Vec<&str> = listed.records.iter().map(|stored| stored.path.stem()).collect();
        assert_eq!(names, ["array", "broken", "bytes", "deep", "empty", "good", "number"], "{:?}", listed.notes);
        for (name, _) in bad {
            let stored = team.clients[1].present(&path(&format!("claims/o/r/{name}.json")));
            match (name, &stored.content) {
                ("array" | "number", Content::NotAnObject(Value::Array(_) | Value::Number(_))) => {}
                ("broken" | "bytes" | "deep" | "empty", Content::Malformed(why)) => assert!(!why.is_empty()),
                (_, other) => panic!("{name} was read as {other:?}"),
            }
        }
        assert_eq!(team.clients[1].present(&good).object(), Some(&claim("a", 1)), "the healthy rest is still shown");
        let broken = team.clients[1].present(&path("claims/o/r/broken.json"));
        let over = team.clients[0].commit(vec![create(&broken.path, claim("b", 1))]);
        super::client::assert_conflict(&over, &broken.path);
    });
}
