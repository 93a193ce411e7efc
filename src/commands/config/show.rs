//! `config show`: what holds, and who said so. Nothing is opened and nobody is asked.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::cli::context::Context;
use crate::cli::selection::Tier;
use crate::cli::settings::DEFAULT_CLAIM_TTL_SECONDS;
use crate::cli::user_config::policy;
use crate::commands::heartbeat::DEFAULT_TTL_SECONDS;
use crate::domain::liveness::DEAD_AFTER_TTLS;
use crate::domain::vocabulary::{ALIASES, SATISFYING, TERMINAL, WORKING};
use crate::error::{CommandError, Kind};
use crate::output::json;
use crate::report::CONTRACT_VERSION;

/// The options of `config show`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    schema_version: u32,
    lane_closed_schema_version: u32,
    archive_schema_version: u32,
    default_backend: Option<&'static str>,
    default_ref: &'static str,
    default_claim_ttl_seconds: i64,
    default_heartbeat_ttl_seconds: i64,
    heartbeat_dead_after_ttl_multiplier: i32,
    retention_policy: Retention,
    dependency_terminal_statuses: [&'static str; 7],
    heartbeat_status_vocabulary: Vocabulary,
    exit_codes: ExitCodes,
    coordination: Coordination,
}

#[derive(Serialize)]
struct Retention {
    hot_days: u32,
    archive_days: u32,
    synthetic_hot_days: u32,
}

#[derive(Serialize)]
struct Vocabulary {
    working: [&'static str; 7],
    terminal: [&'static str; 7],
    aliases: Aliases,
}

/// The aliases as one object, in their order.
struct Aliases;

impl Serialize for Aliases {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(ALIASES.len()))?;
        for (alias, canonical) in ALIASES {
            map.serialize_entry(alias, canonical)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct ExitCodes {
    usage: u8,
    stack_usage: u8,
    operational: u8,
    claim_refused: u8,
}

#[derive(Serialize)]
struct Coordination {
    policy: String,
    configured: bool,
    backend: &'static str,
    source: Source,
    /// Nobody is asked, so nobody knows.
    available: Option<bool>,
}

#[derive(Serialize)]
struct Source {
    backend: &'static str,
    policy: &'static str,
}

/// What `doctor --stack-json` exits with on a bad command line (cli-contract.md section 1.2).
const STACK_USAGE: u8 = 64;

/// Prints the configuration.
///
/// # Errors
/// When a policy is invalid, or nothing tells which store would be used.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let report = report(context)?;
    if args.json {
        json::print(&mut context.printer, &report);
    } else {
        context.printer.data(&text(&report));
    }
    Ok(0)
}

fn report(context: &Context<'_>) -> Result<Report, CommandError> {
    let bypasses = context.supplied.has("ignore-user-config");
    if bypasses && policy::of_process(context.process)?.is_none() {
        return Err(CommandError::usage(
            "config show with --ignore-user-config requires an explicit process AGENT_COORD_POLICY (required, optional, \
             or disabled)",
        ));
    }
    let (policy, policy_source) = policy::effective(context.process, &context.user_config)?;
    let selected = context.select()?;
    Ok(Report {
        version: CONTRACT_VERSION,
        schema_version: 1,
        lane_closed_schema_version: 2,
        archive_schema_version: 1,
        default_backend: None,
        default_ref: "state",
        default_claim_ttl_seconds: DEFAULT_CLAIM_TTL_SECONDS,
        default_heartbeat_ttl_seconds: DEFAULT_TTL_SECONDS,
        heartbeat_dead_after_ttl_multiplier: DEAD_AFTER_TTLS,
        retention_policy: Retention { hot_days: 7, archive_days: 30, synthetic_hot_days: 1 },
        dependency_terminal_statuses: SATISFYING,
        heartbeat_status_vocabulary: Vocabulary { working: WORKING, terminal: TERMINAL, aliases: Aliases },
        exit_codes: ExitCodes {
            usage: Kind::Usage.exit_code(),
            stack_usage: STACK_USAGE,
            operational: Kind::Operational.exit_code(),
            claim_refused: Kind::ClaimRefused.exit_code(),
        },
        coordination: Coordination {
            policy: policy.to_string(),
            configured: selected.tier != Tier::Implicit,
            backend: selected.chosen.backend(),
            source: Source { backend: selected.tier.name(), policy: policy_source.name() },
            available: None,
        },
    })
}

fn text(report: &Report) -> String {
    let Retention { hot_days, archive_days, synthetic_hot_days } = report.retention_policy;
    let ExitCodes { usage, stack_usage, operational, claim_refused } = report.exit_codes;
    let Vocabulary { working, terminal, .. } = &report.heartbeat_status_vocabulary;
    let Coordination { policy, configured, backend, .. } = &report.coordination;
    [
        "agent-coord config".to_owned(),
        format!("version: {}", report.version),
        format!("default_backend: {}", report.default_backend.unwrap_or("none")),
        format!("default_claim_ttl_seconds: {}", report.default_claim_ttl_seconds),
        format!("default_heartbeat_ttl_seconds: {}", report.default_heartbeat_ttl_seconds),
        format!("heartbeat_dead_after_ttl_multiplier: {}", report.heartbeat_dead_after_ttl_multiplier),
        format!("retention_policy: hot={hot_days}d,archive={archive_days}d,synthetic_hot={synthetic_hot_days}d"),
        format!("dependency_terminal_statuses: {}", report.dependency_terminal_statuses.join(",")),
        format!("heartbeat_working_statuses: {}", working.join(",")),
        format!("heartbeat_terminal_statuses: {}", terminal.join(",")),
        format!(
            "exit_codes: usage={usage},stack_usage={stack_usage},operational={operational},claim_refused={claim_refused}"
        ),
        format!("coordination_policy: {policy}"),
        format!("coordination_backend: {backend}"),
        format!("coordination_configured: {configured}"),
    ]
    .map(|line| line + "\n")
    .concat()
}
