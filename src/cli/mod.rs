//! From argv to a command, and from its answer to an exit code.

pub mod acting;
pub mod argv;
pub mod context;
pub mod cross_checks;
pub mod env_vars;
pub mod integer;
pub mod options;
pub mod repo_name;
pub mod selection;
pub mod settings;
pub mod user_config;

use std::cell::OnceCell;

use clap::FromArgMatches;

use self::argv::{Asked, Line, Outline};
use self::context::{Context, RealStores, Stores};
use self::user_config::{Missing, UserConfig};
use crate::commands::{self, Command};
use crate::error::CommandError;
use crate::output::{self, Printer};
use crate::world::{Environment, World};

/// Runs the command that the world's arguments name and returns its exit code.
pub fn run(world: &mut World) -> u8 {
    run_with(world, &RealStores)
}

/// Runs a command on stores of the caller's choice.
pub fn run_with(world: &mut World, stores: &dyn Stores) -> u8 {
    let World { arguments, environment, directory, stdin, stdout, stderr, colour, clock, ids } = world;
    let (process, completed): (&Environment, _) = (environment, OnceCell::new());
    let mut context = Context {
        command: String::new(),
        supplied: argv::Supplied::default(),
        process,
        environment: process,
        user_config: UserConfig::default(),
        directory,
        clock: &**clock,
        ids: &**ids,
        stdin: &mut **stdin,
        printer: Printer::new(&mut **stdout, &mut **stderr, *colour),
        stores,
    };
    let result = dispatch(arguments, &mut context, &completed);
    let lost_output = context.printer.take_failure();
    let result = match (result, lost_output) {
        (Ok(_), Some(error)) => Err(CommandError::operational(format!("cannot write the answer: {error}"))),
        (result, _) => result,
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::error::print(&mut context.printer, &error);
            error.kind.exit_code()
        }
    }
}

/// `completed` is where the environment with what the user file adds is kept.
fn dispatch<'world>(
    arguments: &[std::ffi::OsString],
    context: &mut Context<'world>,
    completed: &'world OnceCell<Environment>,
) -> Result<u8, CommandError> {
    let root = commands::root();
    let asked = argv::read_with(arguments, &root, |outline| {
        context.user_config = user_config(outline, context)?;
        Ok(())
    })?;
    context.environment = completed.get_or_init(|| context.user_config.added_to(context.process));
    match asked {
        Asked::GlobalHelp => {
            context.printer.data(&commands::help::overview(&root));
            Ok(0)
        }
        Asked::CommandHelp(path) => {
            let help = commands::help::of_command(&root, &path, context.printer.colour());
            context.printer.data(&help);
            Ok(0)
        }
        Asked::Run(line) => {
            cross_checks::check(&line)?;
            let command = typed(root, &line)?;
            warn_of_bypass(&line, &mut context.printer);
            context.command = line.command().to_owned();
            context.supplied = line.supplied;
            command.run(context)
        }
    }
}

/// Commands that need nothing a user has configured, so that they work while that is broken.
const CONFIGURED_BY_NOBODY: [&str; 8] = ["version", "bootstrap", "demo", "tour", "init", "sync", "hooks", "canary"];

/// Reads the user file, before any option is judged (cli-contract.md section 1.1 step 4).
fn user_config(outline: &Outline, context: &Context<'_>) -> Result<UserConfig, CommandError> {
    let command = outline.path.first().map_or("", String::as_str);
    if CONFIGURED_BY_NOBODY.contains(&command) || outline.asks_help || cross_checks::accepts_bypass(outline) {
        return Ok(UserConfig::default());
    }
    let missing = if outline.path == ["config", "set"] { Missing::Tolerated } else { Missing::Refused };
    UserConfig::load(context.process, context.clock, missing)
}

/// Gives a canonical command line its types.
fn typed(root: clap::Command, line: &Line) -> Result<Command, CommandError> {
    let words = std::iter::once("agent-coord".into())
        .chain(line.path.iter().map(std::ffi::OsString::from))
        .chain(line.arguments.iter().cloned());
    let asked = line.path.iter().try_fold(&root, |command, name| command.find_subcommand(name));
    let actions: Vec<&str> =
        asked.into_iter().flat_map(clap::Command::get_subcommands).map(clap::Command::get_name).collect();
    if !actions.is_empty() {
        return Err(CommandError::usage(format!("missing action: one of {}", actions.join(", "))));
    }
    let matches = root.try_get_matches_from(words).map_err(|error| usage_of(&error))?;
    Command::from_arg_matches(&matches).map_err(|error| usage_of(&error))
}

/// Words what clap found wrong with a canonical command line: a positional that is missing, or not one of its values.
fn usage_of(error: &clap::Error) -> CommandError {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => Some(texts.join(" ")),
        _ => None,
    };
    let message = match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            named(ContextKind::InvalidArg).map(|names| format!("missing argument: {names}"))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            named(ContextKind::InvalidValue).map(|value| format!("invalid argument: {value}"))
        }
        _ => None,
    };
    let first_line = || error.to_string().lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    CommandError::usage(message.unwrap_or_else(first_line))
}

fn warn_of_bypass(line: &Line, printer: &mut Printer<'_>) {
    if !line.supplied.has("ignore-user-config") {
        return;
    }
    if let Some(selector) = cross_checks::SELECTORS.iter().find(|name| line.supplied.has(name)) {
        printer.warning(&format!(
            "canonical user configuration bypassed by --ignore-user-config; backend selected explicitly by --{selector}."
        ));
    }
}
