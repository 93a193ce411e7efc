//! What the tests stand on: a clean environment, git repositories, remotes that misbehave, and races.

pub mod clock;
pub mod env;
pub mod git;
pub mod kill;
pub mod listener;
pub mod ran;
pub mod random;
pub mod remote;
pub mod shared;
pub mod together;
pub mod within;

pub use env::TestEnv;
pub use git::Git;
pub use listener::HangingListener;
pub use ran::Ran;
pub use random::Dice;
pub use remote::{HttpRemote, Manners};
pub use shared::Shared;
