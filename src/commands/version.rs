//! `version` (cli-contract.md section 12).

use serde::Serialize;

use crate::cli::context::Context;
use crate::error::CommandError;
use crate::output::json;
use crate::report::CONTRACT_VERSION;

/// Shows the versions of the command line and of the records.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Versions {
    version: &'static str,
    schema_version: u32,
    lane_closed_schema_version: u32,
    archive_schema_version: u32,
    default_backend: Option<&'static str>,
    default_ref: &'static str,
}

const VERSIONS: Versions = Versions {
    version: CONTRACT_VERSION,
    schema_version: 1,
    lane_closed_schema_version: 2,
    archive_schema_version: 1,
    default_backend: None,
    default_ref: "state",
};

/// Prints the versions.
///
/// # Errors
/// Never.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    if args.json {
        json::print(&mut context.printer, &VERSIONS);
        return Ok(0);
    }
    let Versions { version, schema_version, lane_closed_schema_version, archive_schema_version, .. } = VERSIONS;
    context.printer.data(&format!(
        "agent-coord {version}\n\
         schema_version: {schema_version}\n\
         lane_closed_schema_version: {lane_closed_schema_version}\n\
         archive_schema_version: {archive_schema_version}\n\
         default_backend: {}\n\
         default_ref: {}\n",
        VERSIONS.default_backend.unwrap_or("none"),
        VERSIONS.default_ref,
    ));
    Ok(0)
}
