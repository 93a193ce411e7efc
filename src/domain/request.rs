//! What a caller asks of a rule, already validated and resolved: no flag spelling, no environment, no clock.

use super::ids::{AgentId, BatchId, EventId, RepoName, Target};
use super::record::Members;
use super::time::Timestamp;

/// The optional members that claims, heartbeats, releases and events share, each written only when given
/// (cli-contract.md section 1.3, "Metadata flags").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// `--thread-handle`
    pub thread_handle: Option<String>,
    /// `--chat-handle`
    pub chat_handle: Option<String>,
    /// `--host`
    pub host: Option<String>,
    /// `--pr-url`
    pub pr_url: Option<String>,
    /// `--dashboard-url`
    pub dashboard_url: Option<String>,
    /// `--operator`
    pub operator: Option<String>,
    /// `--phase`: the worker phase
    pub phase: Option<String>,
    /// `--generation`
    pub generation: Option<i64>,
    /// `--instance-id`
    pub instance_id: Option<String>,
    /// `--synthetic`
    pub synthetic: bool,
    /// `--synthetic-kind`
    pub synthetic_kind: Option<String>,
}

/// Which machine and session a write comes from (state-schema.md section 1.6). Blank values are already absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attribution {
    /// `AGENT_COORD_MACHINE_ID`
    pub machine_id: Option<String>,
    /// `AGENT_COORD_SESSION_ID`, else `CODEX_THREAD_ID`
    pub session_id: Option<String>,
    /// `agent_coord_session_id` or `codex_thread_id`; present with `session_id`
    pub session_source: Option<String>,
}

/// What is fixed before the retry loop, so that every retry says the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    /// The instant of the step.
    pub now: Timestamp,
    /// The id of the event that the step may leave.
    pub event_id: EventId,
    /// The id of the step's transaction, in hex.
    pub transaction_id: String,
    /// Whether the store keeps generations and fences.
    pub fencing: bool,
}

/// The tenure a worktree remembers after a won claim (design.md section 4, "Tenure").
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Tenure {
    /// The repository.
    pub repo: String,
    /// The target.
    pub target: String,
    /// The agent that won.
    pub agent: String,
    /// Its instance, when it named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// The generation it won.
    pub generation: i64,
}

/// Asks for a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acquire {
    /// Who asks. Not checked to be a segment: cli-contract.md section 2.
    pub agent: String,
    /// The repository.
    pub repo: RepoName,
    /// The target.
    pub target: Target,
    /// `--batch-id`
    pub batch_id: Option<String>,
    /// `--branch`
    pub branch: Option<String>,
    /// The branch checked out here, stored only when none is (git store only, never a primary branch).
    pub current_branch: Option<String>,
    /// The metadata flags; `instance_id` and `generation` already filled from the tenure where the flags were absent.
    pub metadata: Metadata,
    /// `--supersede`
    pub supersede: bool,
    /// How long the claim lasts, in seconds; positive.
    pub ttl_seconds: i64,
    /// Where the write comes from.
    pub attribution: Attribution,
    /// The tenure this worktree remembers of this target, if any.
    pub tenure: Option<Tenure>,
    /// How long ago, in seconds on the boot clock, this clone saw each row change: `(record path, updated_at)` is the
    /// key, so that a row rewritten for other reasons does not count as a beat. Rows seen only once are absent.
    pub seen_changing: Vec<SeenChange>,
}

/// A change of a row that this clone itself witnessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenChange {
    /// The row's path.
    pub path: String,
    /// The `updated_at` it changed to.
    pub updated_at: String,
    /// Seconds since then on the boot clock.
    pub seconds_ago: i64,
}

/// Asks to give a claim back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Who asks.
    pub agent: String,
    /// The repository.
    pub repo: RepoName,
    /// The target.
    pub target: Target,
    /// `--branch`
    pub branch: Option<String>,
    /// The metadata flags; `instance_id` and `generation` already filled from the tenure where the flags were absent.
    pub metadata: Metadata,
    /// `--handoff-to`
    pub handoff_to: Option<String>,
    /// `--handoff-note`
    pub handoff_note: Option<String>,
    /// Where the write comes from.
    pub attribution: Attribution,
}

/// Says that an agent is at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beat {
    /// Who.
    pub agent: AgentId,
    /// `--repo` (or the tenure's), stored unvalidated.
    pub repo: Option<String>,
    /// `--target` (or the tenure's), stored unvalidated.
    pub target: Option<String>,
    /// `--batch-id`, stored unvalidated.
    pub batch_id: Option<String>,
    /// `--branch`
    pub branch: Option<String>,
    /// `--status` as typed; the default `in_progress` already applied.
    pub status: String,
    /// The metadata flags; `instance_id` and `generation` already filled from the tenure where the flags were absent.
    pub metadata: Metadata,
    /// How long the beat lasts, in seconds.
    pub ttl_seconds: i64,
    /// Where the write comes from.
    pub attribution: Attribution,
    /// The tenure this worktree remembers of the target, if any.
    pub tenure: Option<Tenure>,
    /// Transaction ids of beats whose report of a fence this clone is known to have printed.
    pub told: Vec<String>,
}

/// Adds an event to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEvent {
    /// The batch.
    pub batch_id: BatchId,
    /// The type, a segment.
    pub event_type: String,
    /// `--lane`
    pub lane: Option<String>,
    /// `--agent-id`; never an inferred one.
    pub agent: Option<String>,
    /// `--repo`
    pub repo: Option<String>,
    /// `--target`
    pub target: Option<String>,
    /// `--branch`
    pub branch: Option<String>,
    /// `--status` as typed
    pub status: Option<String>,
    /// `--message`
    pub message: Option<String>,
    /// The metadata flags.
    pub metadata: Metadata,
    /// `reason`, `from_route`, `to_route`, `evidence`, `severity`, `category`, `kind`, as given.
    pub typed: Members,
    /// Where the write comes from.
    pub attribution: Attribution,
    /// The tenure that this worktree remembers of the claim the event names, if any: the event is refused when that
    /// tenure is over.
    pub tenure: Option<Tenure>,
}
