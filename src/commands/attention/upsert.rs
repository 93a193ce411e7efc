//! `attention-upsert`.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use serde_json::Value;

use super::super::StoreArgs;
use super::{print_changed, required};
use crate::cli::context::Context;
use crate::domain::attention::{Record, validate};
use crate::error::CommandError;

/// The most bytes of a record that are read (state-schema.md section 1.5).
const LIMIT: usize = 262_144;

/// Asks a person a question, or refreshes one that is open.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  agent-coord attention-upsert --record-json question.json")]
pub struct Args {
    /// The record, as JSON; - reads it from stdin
    #[arg(long, value_name = "PATH|-")]
    record_json: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Stores the record.
///
/// # Errors
/// When the record is not valid, the stored one is newer, or it is not known whether it was written.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let path = args.record_json.as_deref();
    required("record-json", path.map(|path| if path.as_os_str().is_empty() { "" } else { "given" }))?;
    let record = parse(&read(args, context)?)?;
    let stored = opened.app().upsert_attention(&record)?;
    print_changed(&stored, "open", args.json, context);
    Ok(0)
}

fn read(args: &Args, context: &mut Context<'_>) -> Result<Vec<u8>, CommandError> {
    let path = args.record_json.clone().unwrap_or_default();
    let bytes = if path.as_os_str() == "-" {
        bounded(&mut *context.stdin)
    } else {
        File::open(context.directory.join(path)).and_then(bounded)
    };
    let bytes = bytes.map_err(|error| CommandError::operational(format!("attention record unreadable: {error}")))?;
    if bytes.len() > LIMIT {
        return Err(CommandError::usage(format!("attention record exceeds {LIMIT} bytes")));
    }
    Ok(bytes)
}

fn bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(LIMIT as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn parse(bytes: &[u8]) -> Result<Record, CommandError> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(CommandError::usage("attention record JSON must not be empty"));
    }
    let text =
        std::str::from_utf8(bytes).map_err(|_| CommandError::usage("attention record JSON must be valid UTF-8"))?;
    let value: Value = serde_json::from_str(text)
        .map_err(|error| CommandError::usage(format!("attention record JSON invalid: {error}")))?;
    Ok(validate(&value, true)?)
}
