//! `attention-upsert`, `attention-resolve`, `attention-get` and `attention-list` (cli-contract.md section 10).

pub mod get;
pub mod list;
pub mod resolve;
pub mod upsert;

use serde::Serialize;

use crate::cli::context::Context;
use crate::domain::attention::{Invalid, Key, Record};
use crate::domain::record::Members;
use crate::error::CommandError;
use crate::output::json;

/// Which record.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct KeyArgs {
    /// The workspace the question belongs to
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,
    /// The repository the question is about
    #[arg(long, value_name = "OWNER/REPO")]
    repo: Option<String>,
    /// The question's id
    #[arg(long, value_name = "ID")]
    attention_id: Option<String>,
}

impl KeyArgs {
    fn given(&self) -> Result<[&str; 3], CommandError> {
        Ok([
            required("workspace", self.workspace.as_deref())?,
            required("repo", self.repo.as_deref())?,
            required("attention-id", self.attention_id.as_deref())?,
        ])
    }
}

#[derive(Serialize)]
struct Document<'a> {
    record: &'a Members,
}

fn key(parts: [&str; 3]) -> Result<Key, CommandError> {
    let [workspace, repo, id] = parts;
    Ok(Key::new(workspace, repo, id)?)
}

fn required<'a>(name: &str, value: Option<&'a str>) -> Result<&'a str, CommandError> {
    value.filter(|value| !value.is_empty()).ok_or_else(|| CommandError::usage(format!("missing required --{name}")))
}

/// Prints what was written: the record, or one line.
fn print_changed(record: &Record, verb: &str, as_json: bool, context: &mut Context<'_>) {
    if as_json {
        json::print(&mut context.printer, &Document { record: &record.members });
    } else {
        context.printer.line(&format!("attention {} {verb} at generation {}", record.key.id(), record.generation));
    }
}

impl From<Invalid> for CommandError {
    fn from(error: Invalid) -> Self {
        Self::usage(error.to_string())
    }
}
