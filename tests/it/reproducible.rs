//! With a clock that stands still and counted ids, a run can be repeated byte for byte.

use std::collections::BTreeMap;

use crate::support::{Ran, TestEnv};

const NOW: &str = "2026-12-01T00:00:00Z";

fn history() -> (Vec<Ran>, BTreeMap<String, String>, String) {
    let env = TestEnv::new();
    let clone = env.git().repository("clone");
    let lines = [
        "init --repo o/r",
        "claim t --agent-id a --batch-id b1",
        "heartbeat --agent-id a --phase implementing",
        "status",
        "status --repo o/r --target t --json",
        "claim t --repo o/r --agent-id b",
        "release t --repo o/r --agent-id a",
    ];
    let ran = (1000..).zip(lines).map(|(seed, line)| env.in_process(&clone, NOW, seed, line)).collect();
    let refs = env.git().coordination_refs(&clone);
    (ran, refs, env.git().show(&clone, "claims/o/r/t.json"))
}

#[test]
fn the_same_commands_say_and_store_the_same_bytes() {
    let (first, second) = (history(), history());
    assert_eq!(first, second);
}

#[test]
fn instants_are_those_of_the_clock() {
    let (ran, _, record) = history();
    assert_eq!(ran[1].stdout, "claimed o/r#t by a until 2026-12-01T04:00:00Z\n", "{}", ran[1]);
    assert_eq!(ran[2].stdout, "heartbeat a 2026-12-01T00:00:00Z\n", "{}", ran[2]);
    assert_eq!(ran[5].stderr, "CLAIM_REFUSED: active claim for o/r#t held by a; heartbeat live\n", "{}", ran[5]);
    assert_eq!(ran[6].stdout, "released o/r#t by a\n", "{}", ran[6]);
    assert!(record.contains("\"claimed_at\": \"2026-12-01T00:00:00Z\""), "{record}");
}
