//! cli
/// Runs.
pub fn run(_world: &mut crate::world::World) -> u8 {
    0
}
