//! Which secret goes with which URL (config-and-security.md section 6). No text here ever holds a token.

use super::{UserConfig, keys};
use crate::error::CommandError;
use crate::git::redact::redact;
use crate::world::Environment;

/// The secret to use, and what to warn of.
#[derive(Clone, PartialEq, Eq)]
pub struct Bound {
    /// The secret.
    pub token: String,
    /// What to warn of, without `warning: `.
    pub warning: Option<String>,
}

/// A secret is never printed, not even by accident.
impl std::fmt::Debug for Bound {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Bound").field("token", &"***").field("warning", &self.warning).finish()
    }
}

/// Returns the secret for `url`: that of the process, else the saved one when it was saved with this very URL.
///
/// # Errors
/// When there is none for it.
pub fn bind(url: &str, process: &Environment, config: &UserConfig) -> Result<Bound, CommandError> {
    if let Some(token) = process.text(keys::API_TOKEN.name()) {
        return Ok(Bound { token, warning: foreign_token_warning(url, process) });
    }
    let Some(token) = config.set(keys::API_TOKEN) else {
        return Err(CommandError::operational("AGENT_COORD_API_TOKEN is required when using the HTTP backend"));
    };
    if config.set(keys::API_URL) != Some(url) {
        let message =
            "process-scoped AGENT_COORD_API_TOKEN is required when the selected API URL differs from user config";
        return Err(CommandError::operational(message));
    }
    Ok(Bound { token: token.to_owned(), warning: None })
}

fn foreign_token_warning(url: &str, process: &Environment) -> Option<String> {
    let beside = process.text(keys::API_URL.name());
    (beside.as_deref() != Some(url)).then(|| {
        format!(
            "process-scoped AGENT_COORD_API_TOKEN is being used with {}, which it was not set alongside; the process \
             token takes precedence over any saved token.",
            redact(url)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse::Values;
    use super::*;

    const URL: &str = "https://u:p@fleet.example";

    fn bound(process: &[(&str, &str)], saved: &[(keys::Key, &str)]) -> Result<(String, Option<String>), String> {
        let mut environment = Environment::default();
        for (name, value) in process {
            environment.set(name, value);
        }
        let values: Values = saved.iter().map(|(key, value)| (*key, (*value).to_owned())).collect();
        let config = UserConfig { values, ..UserConfig::default() };
        bind(URL, &environment, &config).map(|bound| (bound.token, bound.warning)).map_err(|error| error.message)
    }

    #[test]
    fn the_token_of_the_process_beats_the_saved_one_and_is_warned_of_with_another_url() {
        let own = [("AGENT_COORD_API_TOKEN", "p"), ("AGENT_COORD_API_URL", URL)];
        assert_eq!(bound(&own, &[(keys::API_TOKEN, "s")]), Ok(("p".to_owned(), None)));
        let (token, warning) = bound(&own[..1], &[]).unwrap();
        assert_eq!(token, "p");
        assert_eq!(
            warning.unwrap(),
            "process-scoped AGENT_COORD_API_TOKEN is being used with https://***@fleet.example, which it was not set \
             alongside; the process token takes precedence over any saved token."
        );
    }

    #[test]
    fn the_saved_token_goes_to_the_saved_url_and_to_no_other() {
        let with_url = |url| bound(&[], &[(keys::API_TOKEN, "s"), (keys::API_URL, url)]);
        assert_eq!(with_url(URL), Ok(("s".to_owned(), None)));
        assert!(with_url("https://fleet.example").unwrap_err().starts_with("process-scoped AGENT_COORD_API_TOKEN is"));
        assert_eq!(bound(&[], &[]).unwrap_err(), "AGENT_COORD_API_TOKEN is required when using the HTTP backend");
        assert_eq!(bound(&[("AGENT_COORD_API_TOKEN", " ")], &[]), bound(&[], &[]), "a blank one is none");
    }

    #[test]
    fn a_token_is_not_shown_by_accident() {
        let shown = format!("{:?}", Bound { token: "secret".to_owned(), warning: None });
        assert!(!shown.contains("secret"), "{shown}");
    }
}
