//! The rules of `claim`, one decision at a time. Races and whole histories are in `app/histories.rs`.

use serde_json::{Value, json};

use super::*;
use crate::domain::decision::Expect;
use crate::domain::fixtures::{
    acquire_by, appended, claim_path, fence_of, malformed, plain_stamp, put, refusal, snapshot, stamp, stored,
    tenure_of, when,
};
use crate::domain::record::Version;
use crate::domain::request::{Metadata, SeenChange};

const CLAIM: &str = "claims/o/r/42.json";
const ROW: &str = "heartbeats/a.json";
const LIVE: i64 = 600;
const STALE: i64 = 1_800;
const DEAD: i64 = 7_200;

/// An active claim of `a`, made at zero for four hours.
fn claim(extra: Value) -> Stored {
    let mut value = json!({"schema_version": 1, "repo": "o/r", "target": "42", "agent_id": "a", "status": "active",
                           "claimed_at": when(0), "updated_at": when(0), "expires_at": when(14_400),
                           "generation": 1});
    value.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    stored(CLAIM, value)
}

/// A heartbeat of `a`, sent at zero for 15 minutes.
fn row() -> Stored {
    stored(ROW, json!({"schema_version": 1, "agent_id": "a", "updated_at": when(0), "expires_at": when(900)}))
}

fn held() -> Snapshot {
    snapshot(vec![claim(json!({})), row()], &[])
}

fn held_as(instance: Option<&str>) -> Snapshot {
    snapshot(vec![claim(json!({"instance_id": instance})), row()], &[])
}

fn decide(state: &Snapshot, request: &Acquire, seconds: i64) -> Verdict<Acquired> {
    acquire(state, request, &stamp(seconds), &mut FirstRead::default())
}

fn decide_plain(state: &Snapshot, request: &Acquire, seconds: i64) -> Verdict<Acquired> {
    acquire(state, request, &plain_stamp(seconds), &mut FirstRead::default())
}

fn refused(state: &Snapshot, request: &Acquire, seconds: i64) -> String {
    let refusal = refusal(decide(state, request, seconds));
    assert_eq!(refusal.kind, RefusalKind::Claimed);
    refusal.message
}

fn as_instance(instance: &str) -> Acquire {
    let metadata = Metadata { instance_id: Some(instance.into()), ..Metadata::default() };
    Acquire { metadata, ..acquire_by("a") }
}

fn with_generation(agent: &str, generation: i64) -> Acquire {
    let metadata = Metadata { generation: Some(generation), ..Metadata::default() };
    Acquire { metadata, ..acquire_by(agent) }
}

fn with_tenure(agent: &str, generation: i64) -> Acquire {
    Acquire { tenure: Some(tenure_of(agent, None, generation)), ..with_generation(agent, generation) }
}

mod free {
    use super::*;

    #[test]
    fn an_unclaimed_target_is_created_on_cached_state() {
        let decision = decide(&snapshot(vec![], &[CLAIM]), &acquire_by("b"), 0).unwrap();
        assert_eq!((decision.basis, decision.outcome.way), (Freshness::Cached, Way::Free));
        assert_eq!(put(&decision, CLAIM).expect, Expect::Absent);
        assert_eq!(decision.outcome.tenure, Some(tenure_of("b", None, 1)));
        assert_eq!(decision.edits.len(), 1, "without a batch there is no event");
    }

    /// One more than the highest number could never be granted: the target would be out of reach for everybody.
    #[test]
    fn a_generation_that_leaves_no_room_for_later_ones_is_refused() {
        let granted = |asked: i64| decide(&snapshot(vec![], &[CLAIM]), &with_generation("b", asked), 0);
        for asked in [i64::MAX, i64::MAX - 1, HIGHEST_ASKED + 1] {
            let refusal = refusal(granted(asked));
            assert_eq!(refusal.kind, RefusalKind::Invalid);
            assert!(
                refusal.message.contains("too high") && refusal.message.contains("9007199254740991"),
                "{refusal:?}"
            );
        }
        assert_eq!(granted(HIGHEST_ASKED).unwrap().outcome.generation, Some(HIGHEST_ASKED));
        let highest = claim(json!({"status": "released", "generation": HIGHEST_ASKED}));
        let next = decide(&snapshot(vec![highest], &[]), &acquire_by("b"), 0).unwrap();
        assert_eq!(next.outcome.generation, Some(HIGHEST_ASKED + 1), "counting goes on from there");
    }

    #[test]
    fn a_released_claim_and_every_other_status_is_free_for_anybody() {
        for status in [json!("released"), json!("done"), Value::Null] {
            let state = snapshot(vec![claim(json!({"status": status, "custom": 1, "branch": "br"}))], &[]);
            let decision = decide(&state, &acquire_by("b"), 5).unwrap();
            assert_eq!((decision.outcome.way, decision.outcome.generation), (Way::Free, Some(2)));
            let record = &decision.outcome.record;
            assert!(!record.contains_key("custom") && !record.contains_key("branch"), "nothing of it survives");
        }
    }

    #[test]
    fn what_is_no_claim_object_is_unknown_and_never_free() {
        for bad in [malformed(CLAIM), stored(CLAIM, json!([1]))] {
            let told = refusal(decide(&snapshot(vec![bad], &[]), &acquire_by("b"), 0));
            assert_eq!(told.kind, RefusalKind::Unknown);
            assert!(told.message.contains(CLAIM) && !told.message.contains('\n'));
        }
    }

    #[test]
    fn a_claim_with_a_batch_carries_its_event_in_the_same_transaction() {
        let request = Acquire { batch_id: Some("b1".into()), ..acquire_by("b") };
        let decision = decide(&snapshot(vec![], &[CLAIM]), &request, 0).unwrap();
        let event = appended(&decision).unwrap();
        assert_eq!((&event["type"], &event["generation"]), (&json!("claim.acquired"), &json!(1)));
        let odd = Acquire { batch_id: Some("b/1".into()), ..acquire_by("b") };
        let decision = decide(&snapshot(vec![], &[CLAIM]), &odd, 0).unwrap();
        assert_eq!(decision.outcome.warnings, ["claim.acquired event not recorded: invalid batch-id: b/1"]);
    }
}

mod of_another_agent {
    use super::*;

    #[test]
    fn a_live_or_stale_holder_stays() {
        let told = "CLAIM_REFUSED: active claim for o/r#42 held by a; heartbeat";
        assert_eq!(refused(&held(), &acquire_by("b"), LIVE), format!("{told} live"));
        assert_eq!(refused(&held(), &acquire_by("b"), STALE), format!("{told} stale"));
    }

    #[test]
    fn a_dead_holder_is_taken_over_on_fetched_state_and_its_row_written_with_a_mark() {
        let decision = decide(&held(), &acquire_by("b"), DEAD).unwrap();
        assert_eq!((decision.basis, decision.outcome.way), (Freshness::Fetched, Way::TakenOver));
        assert_eq!(decision.outcome.generation, Some(2));
        let written = put(&decision, ROW);
        assert_eq!(written.expect, Expect::At(row().version), "a beat in between breaks the swap");
        assert_eq!(Some(&written.members), row().object(), "and the row itself stays as it was");
        assert_eq!(written.annotations.fenced, [Fence { at: when(DEAD), ..fence_of(1, "b") }]);
    }

    #[test]
    fn without_a_usable_heartbeat_the_claims_own_term_decides() {
        let unusable = stored(ROW, json!({"agent_id": "a", "updated_at": "yesterday"}));
        for (rows, absent, word) in [
            (vec![], &[ROW][..], "missing"),
            (vec![malformed(ROW)], &[][..], "invalid"),
            (vec![stored(ROW, json!("x"))], &[][..], "invalid"),
            (vec![unusable], &[][..], "unknown"),
        ] {
            let state = snapshot(rows.into_iter().chain([claim(json!({}))]).collect(), absent);
            assert_eq!(
                refused(&state, &acquire_by("b"), 14_399),
                format!(
                    "CLAIM_REFUSED: active claim for o/r#42 held by a; heartbeat {word}; fallback claim expires at {}",
                    when(14_400)
                )
            );
            let decision = decide(&state, &acquire_by("b"), 14_400).unwrap();
            assert_eq!(decision.outcome.way, Way::TakenOver, "{word}");
            assert_eq!(put(&decision, ROW).annotations.fenced.len(), 1, "{word}");
        }
    }

    #[test]
    fn a_first_beat_during_a_takeover_breaks_it_because_the_row_is_created() {
        let state = snapshot(vec![claim(json!({}))], &[ROW]);
        let decision = decide(&state, &acquire_by("b"), 14_400).unwrap();
        assert_eq!(put(&decision, ROW).expect, Expect::Absent);
    }

    #[test]
    fn a_row_that_only_stands_in_says_nothing_of_the_holders_other_claims() {
        let mut stand_in = stored(ROW, json!({"agent_id": "a", "updated_at": when(0), "expires_at": when(0)}));
        stand_in.annotations.fenced.push(Fence { target: "7".into(), ..fence_of(1, "c") });
        let state = snapshot(vec![claim(json!({})), stand_in], &[]);
        assert!(refused(&state, &acquire_by("b"), 60).contains("heartbeat missing; fallback claim expires at"));
    }

    #[test]
    fn an_unreadable_or_missing_term_does_not_hold_a_claim_without_a_heartbeat() {
        for expires_at in [json!("soon"), Value::Null] {
            let state = snapshot(vec![claim(json!({"expires_at": expires_at}))], &[ROW]);
            assert_eq!(decide(&state, &acquire_by("b"), 1).unwrap().outcome.way, Way::TakenOver);
        }
    }

    #[test]
    fn a_holder_whose_id_is_no_segment_has_no_row_to_read_or_write() {
        for (holder, named) in [(json!("a/b"), "a/b"), (Value::Null, "UNKNOWN"), (json!(" "), "UNKNOWN")] {
            let state = snapshot(vec![claim(json!({"agent_id": holder}))], &[]);
            let told = refused(&state, &acquire_by("b"), 0);
            assert!(told.contains(&format!("held by {named}; heartbeat missing")), "{told}");
            assert_eq!(decide(&state, &acquire_by("b"), 14_400).unwrap().edits.len(), 1);
        }
    }

    #[test]
    fn a_hostile_holder_id_cannot_end_the_line() {
        let state = snapshot(vec![claim(json!({"agent_id": "a\nclaimed o/r#42 by b"}))], &[]);
        assert!(!refused(&state, &acquire_by("b"), 0).contains('\n'));
    }

    #[test]
    fn the_holders_heartbeat_is_asked_for_when_it_was_not_read() {
        let state = snapshot(vec![claim(json!({}))], &[]);
        assert_eq!(decide(&state, &acquire_by("b"), 0), Err(Halt::Read(RecordPath::parse(ROW).unwrap())));
    }

    #[test]
    fn where_nothing_is_enforced_a_takeover_writes_the_claim_alone() {
        let decision = decide_plain(&held(), &acquire_by("b"), DEAD).unwrap();
        assert_eq!((decision.edits.len(), decision.outcome.generation), (1, None));
        assert!(!decision.outcome.record.contains_key("generation"));
    }
}

mod clocks {
    use super::*;

    fn saw(path: &str, updated_at: String, seconds_ago: i64) -> Acquire {
        let seen = SeenChange { path: path.into(), updated_at, seconds_ago };
        Acquire { seen_changing: vec![seen], ..acquire_by("b") }
    }

    #[test]
    fn a_heartbeat_from_the_future_counts_as_live_and_is_reported_as_skew() {
        let told = refusal(decide(&held(), &acquire_by("b"), -121));
        assert!(told.message.ends_with("heartbeat live"));
        assert!(told.hint.unwrap().contains("clock skew: the holder's heartbeat is 121 s ahead"));
    }

    #[test]
    fn a_dead_row_that_this_clone_saw_change_within_the_threshold_is_not_dead() {
        assert!(refused(&held(), &saw(ROW, when(0), 899), DEAD).ends_with("heartbeat live"));
        assert!(refused(&held(), &saw(ROW, when(0), 3_599), DEAD).ends_with("heartbeat stale"));
        assert!(decide(&held(), &saw(ROW, when(0), 3_600), DEAD).is_ok());
    }

    #[test]
    fn a_change_to_another_beat_proves_nothing_of_this_one() {
        assert!(decide(&held(), &saw(ROW, when(-60), 10), DEAD).is_ok());
    }

    #[test]
    fn an_expired_claim_without_heartbeat_that_this_clone_saw_change_within_its_term_stays() {
        let state = snapshot(vec![claim(json!({}))], &[ROW]);
        let told = refusal(decide(&state, &saw(CLAIM, when(0), 14_399), 20_000));
        assert!(told.message.contains("heartbeat missing; fallback claim expires at"));
        assert!(told.hint.unwrap().contains("this clone saw the claim change 14399 s ago"));
        assert!(decide(&state, &saw(CLAIM, when(0), 14_400), 20_000).is_ok());
    }

    #[test]
    fn what_decided_is_handed_back_to_be_remembered() {
        let mut first = FirstRead::default();
        let _ = acquire(&held(), &acquire_by("b"), &stamp(0), &mut first).unwrap_err();
        assert_eq!(first.sightings, [(CLAIM.to_owned(), when(0)), (ROW.to_owned(), when(0))]);
    }
}

mod renewal {
    use super::*;

    #[test]
    fn the_holder_renews_without_a_new_generation_or_an_event() {
        let state = snapshot(vec![claim(json!({"batch_id": "b1", "branch": "br"}))], &[]);
        let decision = decide(&state, &acquire_by("a"), 60).unwrap();
        let outcome = &decision.outcome;
        assert_eq!((outcome.way, outcome.generation, decision.basis), (Way::Renewed, Some(1), Freshness::Cached));
        assert_eq!((&outcome.record["claimed_at"], &outcome.record["updated_at"]), (&json!(when(0)), &json!(when(60))));
        assert_eq!((decision.edits.len(), &outcome.record["branch"]), (1, &json!("br")));
    }

    #[test]
    fn naming_a_branch_or_batch_for_the_first_time_is_still_a_renewal() {
        let request = Acquire { batch_id: Some("b1".into()), branch: Some("br".into()), ..acquire_by("a") };
        assert_eq!(decide(&held(), &request, 60).unwrap().outcome.way, Way::Renewed);
    }

    #[test]
    fn another_lane_is_an_acquisition_of_its_own_and_marks_nobody() {
        let state = snapshot(vec![claim(json!({"branch": "br", "batch_id": "b1"}))], &[]);
        let request = Acquire { branch: Some("other".into()), batch_id: Some("b1".into()), ..with_tenure("a", 1) };
        let decision = decide(&state, &request, 60).unwrap();
        assert_eq!((decision.outcome.way, decision.outcome.generation), (Way::LaneChanged, Some(2)));
        assert_eq!(decision.outcome.record["claimed_at"], when(60));
        assert_eq!((decision.edits.len(), appended(&decision).is_some()), (2, true));
        assert_eq!(decide(&state, &Acquire { tenure: None, ..request }, 60).unwrap().outcome.generation, Some(2));
    }

    #[test]
    fn where_nothing_is_enforced_a_new_generation_or_instance_is_worth_an_event() {
        let state = snapshot(vec![claim(json!({"batch_id": "b1"}))], &[]);
        let renew = |request: &Acquire| decide_plain(&state, request, 60).unwrap();
        assert_eq!(appended(&renew(&with_generation("a", 1))), None);
        assert!(appended(&renew(&with_generation("a", 5))).is_some());
        let decision = renew(&as_instance("i9"));
        assert_eq!((decision.outcome.way, appended(&decision).is_some()), (Way::Renewed, true));
    }

    #[test]
    fn the_worktree_that_holds_the_claim_may_name_its_instance_later() {
        let request = Acquire { tenure: Some(tenure_of("a", None, 1)), ..as_instance("i1") };
        let outcome = decide(&held(), &request, 60).unwrap().outcome;
        assert_eq!((outcome.way, outcome.tenure), (Way::Renewed, Some(tenure_of("a", Some("i1"), 1))));
    }
}

mod instances {
    use super::*;

    #[test]
    fn an_instance_other_than_the_stored_one_is_refused_while_that_one_may_live() {
        assert_eq!(
            refused(&held_as(Some("i1")), &as_instance("i2"), LIVE),
            "CLAIM_REFUSED: active claim for o/r#42 held by a instance i1; heartbeat live"
        );
        let told = refusal(decide(&held_as(Some("i1")), &as_instance("i2"), STALE));
        assert_eq!(told.hint.as_deref(), Some("--supersede replaces the other instance of this agent"));
    }

    #[test]
    fn no_instance_is_not_the_stored_one_and_an_instance_is_not_none() {
        assert!(refused(&held_as(Some("i1")), &acquire_by("a"), LIVE).contains("held by a instance i1"));
        assert!(refused(&held_as(None), &as_instance("i2"), LIVE).contains("held by a without an instance"));
    }

    #[test]
    fn the_same_instance_renews() {
        assert_eq!(decide(&held_as(Some("i1")), &as_instance("i1"), LIVE).unwrap().outcome.way, Way::Renewed);
    }

    #[test]
    fn supersede_replaces_a_live_instance_and_marks_the_row_they_share() {
        let request = Acquire { supersede: true, ..as_instance("i2") };
        let decision = decide(&held_as(Some("i1")), &request, LIVE).unwrap();
        let outcome = &decision.outcome;
        assert_eq!((outcome.way, outcome.generation, decision.basis), (Way::Superseded, Some(2), Freshness::Fetched));
        let fence = &put(&decision, ROW).annotations.fenced[0];
        assert_eq!((fence.instance.as_deref(), fence.generation, fence.by.as_str()), (Some("i1"), 1, "a"));
    }

    #[test]
    fn over_a_dead_predecessor_no_flag_is_needed() {
        let decision = decide(&held_as(Some("i1")), &as_instance("i2"), DEAD).unwrap();
        assert_eq!((decision.outcome.way, decision.outcome.generation), (Way::Superseded, Some(2)));
        assert_eq!(put(&decision, ROW).annotations.fenced.len(), 1);
    }

    #[test]
    fn supersede_says_nothing_against_another_agent() {
        let request = Acquire { supersede: true, ..acquire_by("b") };
        assert!(refused(&held(), &request, LIVE).ends_with("heartbeat live"));
    }

    #[test]
    fn supersede_by_the_holder_itself_is_a_renewal() {
        let same = Acquire { supersede: true, ..as_instance("i1") };
        assert_eq!(decide(&held_as(Some("i1")), &same, LIVE).unwrap().outcome.way, Way::Renewed);
        let remembered = Acquire { supersede: true, ..with_tenure("a", 1) };
        assert_eq!(decide(&held(), &remembered, LIVE).unwrap().outcome.way, Way::Renewed);
        let elsewhere = Acquire { supersede: true, ..acquire_by("a") };
        assert_eq!(decide(&held(), &elsewhere, LIVE).unwrap().outcome.way, Way::Superseded);
    }

    #[test]
    fn where_nothing_is_enforced_an_instance_is_metadata() {
        let outcome = decide_plain(&held_as(Some("i1")), &as_instance("i2"), LIVE).unwrap().outcome;
        assert_eq!((outcome.way, &outcome.record["instance_id"]), (Way::Renewed, &json!("i2")));
    }
}

mod generations {
    use super::*;

    fn floor(mut state: Snapshot, floor: i64) -> Snapshot {
        state.store.floors.insert("o/r".to_owned(), floor);
        state
    }

    #[test]
    fn the_next_generation_is_above_the_last_and_the_floor_of_the_repository() {
        let fresh = floor(snapshot(vec![], &[CLAIM]), 7);
        assert_eq!(decide(&fresh, &acquire_by("b"), 0).unwrap().outcome.generation, Some(8));
        let taken = floor(held(), 7);
        assert_eq!(decide(&taken, &acquire_by("b"), DEAD).unwrap().outcome.generation, Some(8));
    }

    #[test]
    fn an_asked_generation_is_taken_when_it_is_above_both_and_refused_otherwise() {
        let fresh = floor(snapshot(vec![], &[CLAIM]), 7);
        assert_eq!(decide(&fresh, &with_generation("b", 12), 0).unwrap().outcome.generation, Some(12));
        assert_eq!(
            refused(&fresh, &with_generation("b", 7), 0),
            "CLAIM_REFUSED: generation 7 of o/r#42 is over; the next must be above 7"
        );
    }

    #[test]
    fn a_holder_must_name_the_generation_it_holds() {
        assert_eq!(decide(&held(), &with_generation("a", 1), LIVE).unwrap().outcome.way, Way::Renewed);
        assert!(refused(&held(), &with_generation("a", 0), LIVE).contains("generation is 1, not 0"));
        assert!(refused(&held(), &with_generation("a", 5), LIVE).contains("generation is 1, not 5"));
        let higher = Acquire { supersede: true, ..with_generation("a", 5) };
        let outcome = decide(&held(), &higher, LIVE).unwrap().outcome;
        assert_eq!((outcome.way, outcome.generation), (Way::Superseded, Some(5)));
        let lower = Acquire { supersede: true, ..with_generation("a", 0) };
        assert!(refused(&held(), &lower, LIVE).contains("not 0"), "lower is refused whatever the flags");
    }

    #[test]
    fn supersede_may_name_the_generation_it_replaces() {
        let mut request = Acquire { supersede: true, ..as_instance("i2") };
        request.metadata.generation = Some(1);
        assert_eq!(decide(&held_as(Some("i1")), &request, LIVE).unwrap().outcome.generation, Some(2));
    }

    #[test]
    fn a_record_without_a_generation_counts_from_zero_and_is_not_given_one_by_a_renewal() {
        let old = snapshot(vec![claim(json!({"generation": null})), row()], &[]);
        let renewed = decide(&old, &acquire_by("a"), LIVE).unwrap().outcome;
        assert_eq!((renewed.generation, renewed.record.contains_key("generation")), (Some(0), false));
        assert_eq!(decide(&old, &acquire_by("b"), DEAD).unwrap().outcome.generation, Some(1));
    }
}

mod tenures {
    use super::*;

    #[test]
    fn an_outlived_tenure_does_not_renew_its_successors_claim() {
        let state = snapshot(vec![claim(json!({"generation": 3})), row()], &[]);
        let told = refusal(decide(&state, &with_tenure("a", 1), LIVE));
        assert!(told.message.starts_with("CLAIM_REFUSED: active claim for o/r#42 held by a"), "{told}");
        let lost = "generation 1 of o/r#42, which this worktree held, was lost: generation 3 went to a";
        assert!(told.hint.unwrap().contains(lost));
    }

    #[test]
    fn an_outlived_tenure_may_supersede_or_follow_a_dead_successor() {
        let state = snapshot(vec![claim(json!({"generation": 3})), row()], &[]);
        let superseding = Acquire { supersede: true, ..with_tenure("a", 1) };
        assert_eq!(decide(&state, &superseding, LIVE).unwrap().outcome.generation, Some(4));
        assert_eq!(decide(&state, &with_tenure("a", 1), DEAD).unwrap().outcome.generation, Some(4));
    }

    #[test]
    fn a_later_claim_says_which_tenure_was_lost() {
        let lost = "generation 1 of o/r#42, which this worktree held, was lost: generation 2 went to b";
        for status in ["released", "active"] {
            let by_b = claim(json!({"agent_id": "b", "generation": 2, "status": status}));
            let state = snapshot(vec![by_b], &["heartbeats/b.json"]);
            let outcome = decide(&state, &with_tenure("a", 1), 14_400).unwrap().outcome;
            assert_eq!((outcome.lost_tenure.as_deref(), outcome.generation), (Some(lost), Some(3)));
        }
        let by_b = claim(json!({"agent_id": "b", "generation": 2}));
        let told = refusal(decide(&snapshot(vec![by_b], &["heartbeats/b.json"]), &with_tenure("a", 1), 0));
        assert_eq!(told.hint.as_deref(), Some(lost));
    }

    #[test]
    fn a_tenure_whose_claim_is_gone_is_over_too() {
        let outcome = decide(&snapshot(vec![], &[CLAIM]), &with_tenure("a", 1), 60).unwrap().outcome;
        assert!(outcome.lost_tenure.unwrap().ends_with("is over: that claim is gone"));
    }

    #[test]
    fn a_tenure_that_was_given_back_was_not_lost() {
        let state = snapshot(vec![claim(json!({"status": "released"}))], &[]);
        let outcome = decide(&state, &with_tenure("a", 1), 60).unwrap().outcome;
        assert_eq!((outcome.lost_tenure, outcome.generation), (None, Some(2)));
    }
}

mod races {
    use super::*;

    /// Decides twice, as the retry loop does after a lost swap.
    fn after(before: &Snapshot, now: &Snapshot, request: &Acquire, seconds: i64) -> Verdict<Acquired> {
        let mut first = FirstRead::default();
        let _ = acquire(before, request, &stamp(seconds), &mut first).unwrap();
        acquire(now, request, &stamp(seconds), &mut first)
    }

    fn nothing() -> Snapshot {
        snapshot(vec![], &[CLAIM, ROW])
    }

    #[test]
    fn one_agent_id_without_instances_does_not_renew_what_was_not_there_at_the_first_read() {
        let told = refusal(after(&nothing(), &held(), &acquire_by("a"), 0));
        assert_eq!(told.kind, RefusalKind::Unknown);
        assert_eq!(
            told.message,
            format!("claim write contention for o/r#42; state already exists at {}", claim_path())
        );
        let released = snapshot(vec![claim(json!({"status": "released", "generation": 0}))], &[]);
        let told = refusal(after(&released, &held(), &acquire_by("a"), 0));
        assert!(told.message.ends_with("state changed at claims/o/r/42.json"), "{told}");
    }

    #[test]
    fn the_same_instance_twice_is_told_of_contention_and_another_instance_is_refused() {
        let told = refusal(after(&nothing(), &held_as(Some("i1")), &as_instance("i1"), 0));
        assert_eq!(told.kind, RefusalKind::Unknown);
        let told = refusal(after(&nothing(), &held_as(Some("i1")), &as_instance("i2"), 0));
        assert_eq!(told.kind, RefusalKind::Claimed);
        assert!(told.message.starts_with("CLAIM_REFUSED: active claim for o/r#42 held by a instance i1"));
    }

    #[test]
    fn supersede_does_not_displace_the_winner_of_its_own_race() {
        let request = Acquire { supersede: true, ..as_instance("i3") };
        let won = snapshot(vec![claim(json!({"instance_id": "i2", "generation": 2})), row()], &[]);
        assert_eq!(refusal(after(&held_as(Some("i1")), &won, &request, LIVE)).kind, RefusalKind::Claimed);
    }

    #[test]
    fn a_winner_whose_old_heartbeat_is_dead_is_not_taken_over_by_who_lost_to_it() {
        let told = refusal(after(&nothing(), &held(), &acquire_by("b"), DEAD));
        assert_eq!(told.kind, RefusalKind::Unknown, "both would have been told that they won");
        assert!(told.message.starts_with("claim write contention for o/r#42"));
    }

    #[test]
    fn a_change_that_is_not_an_acquisition_is_decided_again() {
        let mut beaten = row();
        beaten.version = Version::new("v2");
        let now = snapshot(vec![claim(json!({})), beaten], &[]);
        assert_eq!(after(&held(), &now, &acquire_by("b"), DEAD).unwrap().outcome.way, Way::TakenOver);
    }

    #[test]
    fn the_worktree_that_remembers_the_claim_renews_it_even_when_its_cache_was_empty() {
        assert_eq!(after(&nothing(), &held(), &with_tenure("a", 1), LIVE).unwrap().outcome.way, Way::Renewed);
    }

    #[test]
    fn a_decision_that_was_never_put_to_the_store_is_not_held_against_the_next() {
        let mut cached = held();
        cached.freshness = Freshness::Cached;
        let won = snapshot(vec![claim(json!({"agent_id": "c", "generation": 2})), row()], &["heartbeats/c.json"]);
        let outcome = after(&cached, &won, &acquire_by("b"), 14_400).unwrap().outcome;
        assert_eq!(outcome.way, Way::TakenOver, "a takeover is only put to the store on fetched state");
    }

    #[test]
    fn an_old_cache_proves_no_race_so_a_claim_of_long_ago_is_judged_as_it_stands() {
        let mut cached = nothing();
        cached.freshness = Freshness::Cached;
        assert_eq!(after(&cached, &held(), &acquire_by("b"), DEAD).unwrap().outcome.way, Way::TakenOver);
        assert_eq!(after(&cached, &held(), &acquire_by("a"), DEAD).unwrap().outcome.way, Way::Renewed);
        let just_won = snapshot(vec![claim(json!({"claimed_at": when(DEAD - 60)})), row()], &[]);
        for agent in ["a", "b"] {
            assert_eq!(refusal(after(&cached, &just_won, &acquire_by(agent), DEAD)).kind, RefusalKind::Unknown);
        }
    }

    #[test]
    fn once_decided_on_fetched_state_the_cache_no_longer_counts() {
        let mut cached = nothing();
        cached.freshness = Freshness::Cached;
        let mut first = FirstRead::default();
        let _ = acquire(&cached, &acquire_by("b"), &stamp(DEAD), &mut first).unwrap();
        let _ = acquire(&held(), &acquire_by("b"), &stamp(DEAD), &mut first).unwrap();
        let taken = snapshot(vec![claim(json!({"agent_id": "c", "generation": 2})), row()], &["heartbeats/c.json"]);
        let told = acquire(&taken, &acquire_by("b"), &stamp(DEAD * 10), &mut first);
        assert_eq!(refusal(told).kind, RefusalKind::Unknown, "c won while b was deciding, whatever its clock says");
    }
}
