//! Who acts, and for which tenure (design.md section 4, "Tenure", and section 5).
//!
//! An agent that somebody named acts for its own tenures only. One that would only be made up acts as whoever the
//! remembered tenure names: the worktree claimed under that name.

use super::context::{Context, Opened};
use crate::domain::request::{Metadata, Tenure};
use crate::error::CommandError;
use crate::worktree::held;

/// The agent that acts and what it remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acting {
    /// The agent.
    pub agent: String,
    /// The tenure it acts for.
    pub tenure: Option<Tenure>,
}

impl Acting {
    /// Finds out who acts on one target.
    ///
    /// # Errors
    /// When `--agent-id` is empty, or an agent id cannot be kept.
    pub fn on(context: &Context<'_>, opened: &Opened<'_>, repo: &str, target: &str) -> Result<Self, CommandError> {
        let named = named(context, opened)?;
        let tenure = tenure_of(opened, repo, target).filter(|tenure| is_for(tenure, named.as_deref()));
        Self::new(context, opened, named, tenure)
    }

    /// Finds out who acts on the target claimed last.
    ///
    /// # Errors
    /// When `--agent-id` is empty, or an agent id cannot be kept.
    pub fn on_latest(context: &Context<'_>, opened: &Opened<'_>) -> Result<Self, CommandError> {
        let named = named(context, opened)?;
        let latest = remembered(opened).into_iter().rev().find(|tenure| is_for(tenure, named.as_deref()));
        Self::new(context, opened, named, latest)
    }

    /// Finds out who acts without any tenure.
    ///
    /// # Errors
    /// When `--agent-id` is empty, or an agent id cannot be kept.
    pub fn without_tenure(context: &Context<'_>, opened: &Opened<'_>) -> Result<Self, CommandError> {
        Self::new(context, opened, named(context, opened)?, None)
    }

    fn new(
        context: &Context<'_>,
        opened: &Opened<'_>,
        named: Option<String>,
        tenure: Option<Tenure>,
    ) -> Result<Self, CommandError> {
        let agent = match named.or_else(|| tenure.as_ref().map(|tenure| tenure.agent.clone())) {
            Some(agent) => agent,
            None => context.sources(opened.repository.as_deref()).agent(context.ids)?.value,
        };
        Ok(Self { agent, tenure })
    }

    /// Returns `given` with the tenure's instance and generation where the flags were absent.
    #[must_use]
    pub fn complete(&self, mut given: Metadata) -> Metadata {
        if let Some(tenure) = &self.tenure {
            given.generation = given.generation.or(Some(tenure.generation));
            given.instance_id = given.instance_id.or_else(|| tenure.instance.clone());
        }
        given
    }
}

/// Returns the tenures that the agent of this command could give back, the most recent last.
///
/// # Errors
/// When `--agent-id` is empty.
pub fn held_here(context: &Context<'_>, opened: &Opened<'_>) -> Result<Vec<Tenure>, CommandError> {
    let named = named(context, opened)?;
    Ok(remembered(opened).into_iter().filter(|tenure| is_for(tenure, named.as_deref())).collect())
}

/// Returns the tenure of a target, whoever acts.
#[must_use]
pub fn tenure_of(opened: &Opened<'_>, repo: &str, target: &str) -> Option<Tenure> {
    held::of(opened.repository.as_deref()?, repo, target)
}

fn remembered(opened: &Opened<'_>) -> Vec<Tenure> {
    opened.repository.as_deref().map(held::load).unwrap_or_default()
}

fn named(context: &Context<'_>, opened: &Opened<'_>) -> Result<Option<String>, CommandError> {
    context.require(opened, &["agent-id"])?;
    Ok(context.sources(opened.repository.as_deref()).named_agent()?.map(|setting| setting.value))
}

fn is_for(tenure: &Tenure, named: Option<&str>) -> bool {
    named.is_none_or(|agent| tenure.agent == agent)
}
