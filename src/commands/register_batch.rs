//! `register-batch` (cli-contract.md section 5).

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::StoreArgs;
use crate::cli::context::Context;
use crate::domain::batch::register::Register;
use crate::error::CommandError;

/// Registers a batch: its lanes, their owners and their dependencies.
///
/// A batch that is registered already is replaced, but for what is drained. Register again to change lanes; the file then
/// has to repeat the lanes that are closed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord register-batch --file batch.json
  agent-coord register-batch --file batch.json --launch-prompt - < prompt.md

A batch file:
  {\"batch_id\": \"b1\", \"repo\": \"OWNER/REPO\", \"lanes\": [
    {\"name\": \"backend\", \"owner\": \"w1\", \"targets\": [\"41\"]},
    {\"name\": \"docs\", \"owner\": \"w2\", \"targets\": [\"42\"], \"depends_on\": [\"b1:backend\"]}]}")]
pub struct Args {
    /// The batch, as a JSON object
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
    /// The prompt workers are launched with, word for word; `-` reads it from standard input
    #[arg(long, value_name = "PATH|-")]
    launch_prompt: Option<PathBuf>,
    /// The batch's id, when the file names none
    #[arg(long, value_name = "ID")]
    batch_id: Option<String>,
    /// Mark the record as not from real work
    #[arg(long)]
    synthetic: bool,
    /// What kind of work that is not real: simulation, smoke, ...
    #[arg(long, value_name = "KIND")]
    synthetic_kind: Option<String>,
    #[command(flatten)]
    store: StoreArgs,
}

/// Registers a batch.
///
/// # Errors
/// When the file is no batch, or it is not known whether the batch was registered.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let opened = context.open()?;
    let request = request(args, context)?;
    opened.app().register_batch(&request)?;
    context.printer.line(&format!("registered batch {}", request.batch_id()));
    Ok(0)
}

fn request(args: &Args, context: &mut Context<'_>) -> Result<Register, CommandError> {
    let file = args.file.as_deref().filter(|file| !file.as_os_str().is_empty());
    let file = file.ok_or_else(|| CommandError::usage("missing required --file"))?;
    let bytes = std::fs::read(context.directory.join(file))
        .map_err(|error| CommandError::operational(format!("batch manifest unreadable: {error}")))?;
    let manifest: Value = serde_json::from_slice(&bytes)
        .map_err(|error| CommandError::usage(format!("batch manifest JSON invalid: {error}")))?;
    let mut request = Register::of(&manifest, args.batch_id.as_deref())?;
    request.launch_prompt = args.launch_prompt.as_deref().map(|path| launch_prompt(path, context)).transpose()?;
    request.synthetic = args.synthetic;
    request.synthetic_kind = args.synthetic_kind.clone();
    Ok(request)
}

fn launch_prompt(path: &Path, context: &mut Context<'_>) -> Result<String, CommandError> {
    let read: io::Result<Vec<u8>> = if path.as_os_str() == "-" {
        let mut bytes = Vec::new();
        context.stdin.read_to_end(&mut bytes).map(|_| bytes)
    } else {
        std::fs::read(context.directory.join(path))
    };
    let bytes = read.map_err(|error| CommandError::operational(format!("launch prompt unreadable: {error}")))?;
    String::from_utf8(bytes).map_err(|_| CommandError::usage("launch prompt must be valid UTF-8"))
}
