//! The `agent-coord` command: the real world in, an exit code out, and nothing else.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut world = agent_coord::world::World::real();
    ExitCode::from(agent_coord::run(&mut world))
}
