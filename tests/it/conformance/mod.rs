//! What every store must pass: one suite over the numbered contract of `agent_coord::store::Store`, one module per
//! backend, so that a failure names both the rule and the store.

pub mod backends;
pub mod client;
mod rules;
mod rules_history;
mod rules_names;
mod rules_races;

use client::Backend;

macro_rules! suite {
    ($backend:ident: $($module:ident { $($rule:ident),* $(,)? })*) => {
        mod $backend {
            $($(
                #[test]
                fn $rule() {
                    super::$module::$rule(&super::backends::$backend());
                }
            )*)*
        }
    };
}

macro_rules! conforms {
    ($($backend:ident),* $(,)?) => {
        $(suite! { $backend:
            rules {
                what_was_written_is_read_by_every_client,
                an_absent_record_is_reported_absent_and_never_left_out,
                a_create_over_something_conflicts_and_writes_nothing,
                a_write_on_a_state_that_moved_conflicts_and_names_it,
                a_write_on_a_deleted_record_conflicts,
                a_guard_on_a_state_that_moved_stops_the_whole_transaction,
                a_guard_that_holds_lets_the_rest_land_and_changes_nothing,
                all_edits_land_or_none,
                an_event_path_is_taken_once,
                events_outlive_any_number_of_their_kind,
                a_delete_removes_and_needs_the_current_state,
                a_delete_raises_the_floor_and_nothing_lowers_it,
                revisions_count_writes_and_annotations_are_carried,
                a_deadline_in_the_past_is_answered_at_once,
            }
            rules_names {
                listings_are_ordered_and_take_no_neighbours,
                names_that_file_systems_confuse_stay_apart,
                names_that_git_or_windows_dislike_come_back_unchanged,
                values_of_every_kind_come_back_unchanged,
                a_malformed_record_is_a_value_and_hides_nobody_else,
            }
            rules_history {
                random_histories_give_what_the_reference_gives,
            }
            rules_races {
                of_many_creators_of_equal_bytes_one_wins,
                of_many_editors_of_equal_bytes_one_wins,
                of_many_writers_of_the_very_same_bytes_one_wins,
                many_threads_raise_one_counter_and_no_step_is_lost,
                a_loser_leaves_no_event_behind,
                events_of_many_writers_all_arrive,
                delete_and_renew_never_both_win,
            }
        })*
    };
}

conforms!(memory, git_local, git_reftable, git_sha256, git_over_files, git_over_http);

fn with_clients(backend: &Backend, count: usize, check: impl FnOnce(&client::Team)) {
    let team = (backend.open)(count);
    assert_eq!(team.clients.len(), count, "{} opens as many clients as asked", backend.name);
    check(&team);
}
