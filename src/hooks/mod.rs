//! Git hooks: facts go in, a verdict comes out (design.md section 6).
//!
//! The files git runs are a few lines of sh that call back into this program; the rules live here. [`install`] puts
//! those files in place, [`probe`] runs them, [`chain`] runs the hook that was there before. [`facts`] reads what a rule
//! needs to know; [`pre_commit`], [`pre_push`] and [`standing`] decide and read nothing.

pub mod body;
pub mod chain;
pub mod claims;
pub mod facts;
pub mod install;
pub mod mirror;
pub mod pre_commit;
pub mod pre_push;
pub mod probe;
pub mod pushed;
pub mod settings;
pub mod standing;
pub mod verdict;
