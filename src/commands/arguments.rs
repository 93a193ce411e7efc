//! Arguments that several commands share.

use crate::domain::closeout::Closing;
use crate::domain::request::Metadata;
use crate::error::CommandError;

/// The options that describe a worker, each written only when given.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Metadata")]
pub struct MetadataArgs {
    /// The short memorable name shared with hand-off notes
    #[arg(long, value_name = "TEXT")]
    thread_handle: Option<String>,
    /// The name of the chat
    #[arg(long, value_name = "TEXT")]
    chat_handle: Option<String>,
    /// The agent host: codex, claude, ...
    #[arg(long, value_name = "TEXT")]
    host: Option<String>,
    /// The pull request
    #[arg(long, value_name = "URL")]
    pr_url: Option<String>,
    /// Where the work can be watched
    #[arg(long, value_name = "URL")]
    dashboard_url: Option<String>,
    /// The person in charge
    #[arg(long, value_name = "TEXT")]
    operator: Option<String>,
    /// The worker phase
    #[arg(long, value_name = "TEXT")]
    phase: Option<String>,
    /// The generation acted for; that of the held claim when absent
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    generation: Option<i64>,
    /// The instance that acts; that of the held claim when absent
    #[arg(long, value_name = "ID")]
    instance_id: Option<String>,
    /// Mark the record as not from real work
    #[arg(long)]
    synthetic: bool,
    /// What kind of work that is not real: simulation, smoke, ...
    #[arg(long, value_name = "KIND")]
    synthetic_kind: Option<String>,
}

impl MetadataArgs {
    /// Returns what was given.
    #[must_use]
    pub fn to_metadata(&self) -> Metadata {
        Metadata {
            thread_handle: self.thread_handle.clone(),
            chat_handle: self.chat_handle.clone(),
            host: self.host.clone(),
            pr_url: self.pr_url.clone(),
            dashboard_url: self.dashboard_url.clone(),
            operator: self.operator.clone(),
            phase: self.phase.clone(),
            generation: self.generation,
            instance_id: self.instance_id.clone(),
            synthetic: self.synthetic,
            synthetic_kind: self.synthetic_kind.clone(),
        }
    }
}

/// The options that close a lane.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Terminal closeout")]
pub struct ClosingArgs {
    /// The outcome of the lane, which this closes: done, abandoned, superseded
    #[arg(long, value_name = "OUTCOME")]
    terminal: Option<String>,
    /// How the pull request stands
    #[arg(long, value_name = "STATE")]
    pr_state: Option<String>,
    /// What shows the outcome
    #[arg(long, value_name = "URL")]
    evidence_url: Option<String>,
    /// The workspace the work belongs to; `default` when absent
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
}

impl ClosingArgs {
    /// Returns the closeout, when `--terminal` is given.
    #[must_use]
    pub fn to_closing(&self) -> Option<Closing> {
        let terminal = self.terminal.clone()?;
        let (pr_state, evidence_url, workspace) =
            (self.pr_state.clone(), self.evidence_url.clone(), self.workspace.clone());
        Some(Closing { terminal, pr_state, evidence_url, workspace })
    }
}

/// Returns the value of an option that must be given.
///
/// # Errors
/// When it is absent or empty.
pub fn required<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, CommandError> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| CommandError::usage(format!("missing required --{name}")))
}

/// Who acts, and on what.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct WorkItemArgs {
    /// What the command is about: an issue, a pull request, a lane
    #[arg(value_name = "TARGET")]
    positional: Option<String>,
    /// The agent that acts; the one this worktree is known by when absent
    #[arg(long, value_name = "ID")]
    agent_id: Option<String>,
    /// The repository the target belongs to; the store's own when absent
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// The same as TARGET
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
}

impl WorkItemArgs {
    /// Returns the target, given either way; an empty one is missing.
    ///
    /// # Errors
    /// When it is given both ways.
    pub fn target(&self) -> Result<Option<&str>, CommandError> {
        if self.positional.is_some() && self.target.is_some() {
            return Err(CommandError::usage("give the target either positionally or with --target, not both"));
        }
        Ok(self.positional.as_deref().or(self.target.as_deref()).filter(|target| !target.is_empty()))
    }

    /// Returns the target.
    ///
    /// # Errors
    /// When it is missing, or given both ways.
    pub fn required_target(&self) -> Result<&str, CommandError> {
        self.target()?.ok_or_else(|| CommandError::usage("missing required --target"))
    }

    /// Returns repository and target as the options give them.
    #[must_use]
    pub fn options(&self) -> (Option<String>, Option<String>) {
        (self.repo.clone(), self.target.clone())
    }

    /// Tells whether the command line names a repository.
    #[must_use]
    pub fn names_repo(&self) -> bool {
        self.repo.is_some()
    }
}
