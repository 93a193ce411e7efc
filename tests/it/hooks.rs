//! Real commits and pushes through installed hooks.

mod install;
mod pre_commit;
mod pre_push;
