//! Names that can only be made by validating (state-schema.md section 1.3).

use std::fmt;

use thiserror::Error;

/// A name was refused. The text is the contract's: `invalid <field>: <value>`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {field}: {value}")]
pub struct InvalidName {
    /// What the value was meant to be, as the contract spells it (`target`, `agent-id`, `target repo`, ...).
    pub field: String,
    /// The value as given.
    pub value: String,
}

/// Tells whether `text` is a segment: `[A-Za-z0-9_:-]+(\.[A-Za-z0-9_:-]+)*`.
#[must_use]
pub fn is_segment(text: &str) -> bool {
    !text.is_empty()
        && text.split('.').all(|part| {
            !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_:-".contains(&byte))
        })
}

/// Tells whether `text` is a repository name: `[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+`.
#[must_use]
pub fn is_repo(text: &str) -> bool {
    let good = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    text.split_once('/').is_some_and(|(owner, name)| good(owner) && good(name))
}

macro_rules! segment {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Validates `text`; `field` names it in the error.
            ///
            /// # Errors
            /// When `text` is not a segment.
            pub fn parse(field: &str, text: &str) -> Result<Self, InvalidName> {
                if is_segment(text) {
                    Ok(Self(text.to_owned()))
                } else {
                    Err(InvalidName { field: field.to_owned(), value: text.to_owned() })
                }
            }

            /// Returns the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }
    };
}

segment! {
    /// The stable id of one agent; also the name of its heartbeat row.
    AgentId
}
segment! {
    /// What is claimed: an issue, a pull request, a lane, or any other name agreed on in one repository.
    Target
}
segment! {
    /// The id of a batch.
    BatchId
}
segment! {
    /// The id of an event inside its batch.
    EventId
}

/// The repository a target belongs to, `OWNER/NAME`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoName(String);

impl RepoName {
    /// Validates `text`; the error reads `invalid <field> repo: <value>`.
    ///
    /// # Errors
    /// When `text` is not `OWNER/NAME`, or a store could not hold it (a `..` in it, or a half that is empty).
    pub fn parse(field: &str, text: &str) -> Result<Self, InvalidName> {
        if is_repo(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName { field: format!("{field} repo"), value: text.to_owned() })
        }
    }

    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RepoName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The id of one transaction: 128 random bits in lower-case hex, made once before the retry loop.
///
/// It makes the bytes of two writers differ even when everything else they say is equal, and lets a writer whose
/// reply was lost find out whether it won (design.md section 3.3, "Nonce").
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(String);

impl TransactionId {
    /// Wraps 16 random bytes already in hex, or an id read back from a record.
    #[must_use]
    pub fn from_hex(hex: impl Into<String>) -> Self {
        Self(hex.into())
    }

    /// Returns the hex text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_never_starts_or_ends_with_a_dot_and_never_holds_two_in_a_row() {
        for good in ["9765", "issue:9765:qa", "a.b", "A_b-c"] {
            assert!(is_segment(good), "{good}");
        }
        for bad in ["", ".a", "a.", "a..b", "a/b", "a b", "é"] {
            assert!(!is_segment(bad), "{bad}");
        }
    }

    #[test]
    fn a_repo_has_exactly_two_parts() {
        assert!(is_repo("o/r") && is_repo("o.x/r.json"));
        for bad in ["o", "o/", "/r", "o/r/x", "o:x/r"] {
            assert!(!is_repo(bad), "{bad}");
        }
    }
}
