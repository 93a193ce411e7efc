//! What a hook has to say in the end.

use super::settings::HookSettings;
use crate::store::StoreError;

/// Why a hook refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Objection {
    /// Which kind of "no" it is.
    pub kind: ObjectionKind,
    /// One line, without a trailing full stop.
    pub message: String,
    /// What to do next, one line each.
    pub hints: Vec<String>,
}

/// Kinds of "no". Git only asks for an exit code other than 0; these are those of the other commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectionKind {
    /// Another holds the claim, or ours was lost: exit 3.
    Claimed,
    /// The team's rules for branches forbid it: exit 1.
    Policy,
    /// The claims could not be read: exit 2.
    Unknown,
}

impl ObjectionKind {
    /// Returns the exit code that says it.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Policy => 1,
            Self::Unknown => 2,
            Self::Claimed => 3,
        }
    }
}

impl Objection {
    /// Returns an objection without hints.
    #[must_use]
    pub fn new(kind: ObjectionKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hints: Vec::new() }
    }

    /// Adds what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Everything that speaks against it, and what is worth a word although it does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookVerdict {
    /// None = it passes.
    pub objections: Vec<Objection>,
    /// Told in any case.
    pub warnings: Vec<String>,
}

impl HookVerdict {
    /// Returns the verdict of a single objection.
    #[must_use]
    pub fn refuse(objection: Objection) -> Self {
        Self { objections: vec![objection], warnings: Vec::new() }
    }

    /// Returns the verdict on claims that could not be read: UNKNOWN is not free.
    #[must_use]
    pub fn unknown(error: &StoreError, settings: &HookSettings) -> Self {
        let message = format!("UNKNOWN: the claims cannot be read: {}", error.message);
        if settings.pass_unknown {
            return Self { objections: Vec::new(), warnings: vec![message] };
        }
        let mut objection = Objection::new(ObjectionKind::Unknown, message);
        objection.hints.extend(error.hint.clone());
        Self::refuse(objection.hint("try again later; `git config agent-coord.unknown warn` makes this a warning"))
    }

    /// Tells whether nothing speaks against it.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.objections.is_empty()
    }

    /// Returns the exit code: that of the first objection, 0 without one.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.objections.first().map_or(0, |objection| objection.kind.exit_code())
    }

    /// Adds another verdict's objections and warnings.
    pub fn add(&mut self, other: Self) {
        self.objections.extend(other.objections);
        self.warnings.extend(other.warnings);
    }
}
