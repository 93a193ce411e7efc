//! The keys a user file may assign (config-and-security.md section 2).

/// One key. Keys are ordered as they are listed and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key(usize);

const NAMES: [&str; 9] = [
    "AGENT_COORD_API_URL",
    "AGENT_COORD_API_TOKEN",
    "AGENT_COORD_MACHINE_ID",
    "AGENT_COORD_BACKEND",
    "AGENT_COORD_REF",
    "AGENT_COORD_STATE_ROOT",
    "AGENT_COORD_STATUS_STATE_ROOT",
    "AGENT_COORD_LOCAL",
    "AGENT_COORD_POLICY",
];

/// The URL of the HTTP store.
pub const API_URL: Key = Key(0);
/// The secret that goes with the saved URL, and with no other.
pub const API_TOKEN: Key = Key(1);
/// The machine that writes are attributed to.
pub const MACHINE_ID: Key = Key(2);
/// The repository of the legacy GitHub store.
pub const BACKEND: Key = Key(3);
/// The ref of the legacy GitHub store.
pub const REF: Key = Key(4);
/// The directory of the directory store.
pub const STATE_ROOT: Key = Key(5);
/// The directory that read commands look at when no store is selected.
pub const STATUS_STATE_ROOT: Key = Key(6);
/// Whether state on this machine alone is meant.
pub const LOCAL: Key = Key(7);
/// Whether workflows must coordinate.
pub const POLICY: Key = Key(8);

impl Key {
    /// Returns the key of this name.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        NAMES.iter().position(|known| *known == name).map(Self)
    }

    /// Returns the key's name, which is that of the environment variable with the same meaning.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_the_name_it_is_called_by() {
        let keys = [API_URL, API_TOKEN, MACHINE_ID, BACKEND, REF, STATE_ROOT, STATUS_STATE_ROOT, LOCAL, POLICY];
        for key in keys {
            assert_eq!(Key::of(key.name()), Some(key));
        }
        assert_eq!(POLICY.name(), "AGENT_COORD_POLICY");
        assert_eq!(STATUS_STATE_ROOT.name(), "AGENT_COORD_STATUS_STATE_ROOT");
    }
}
