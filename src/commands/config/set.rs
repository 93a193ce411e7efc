//! `config set`: changes the user file in one step (config-and-security.md section 11).

use std::io::Read;

use crate::cli::context::Context;
use crate::cli::user_config::policy::Policy;
use crate::cli::user_config::save::{self, Changes};
use crate::domain::ids::AgentId;
use crate::error::CommandError;

/// A token longer than this is none.
const TOKEN_LIMIT: usize = 65_536;

/// The options of `config set`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  agent-coord config set --api-url https://coord.example --token-stdin < token
  agent-coord config set --machine-id m5")]
pub struct Args {
    /// The server of the HTTP store
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
    /// Read the secret for it from stdin
    #[arg(long)]
    token_stdin: bool,
    /// The machine that writes are attributed to
    #[arg(long, value_name = "ID")]
    machine_id: Option<String>,
    /// Whether workflows must coordinate: required, optional or disabled
    #[arg(long, value_name = "POLICY")]
    policy: Option<String>,
}

/// Saves the settings.
///
/// # Errors
/// When one is invalid, or the user file cannot be read or written safely.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let changes = changes(args, context)?;
    let file = save::save(&context.user_config, &changes, context.clock, context.ids)?;
    let mut names: Vec<&str> = changes.by_key().into_iter().map(|(key, _)| key.name()).collect();
    names.sort_unstable();
    let file = file.display();
    context.printer.line(&format!("updated user configuration: {file} ({})", names.join(", ")));
    if changes.policy.is_some() {
        context.printer.line(&format!("updated coordination policy in canonical config: {file}"));
    }
    Ok(0)
}

fn changes(args: &Args, context: &mut Context<'_>) -> Result<Changes, CommandError> {
    if let Some(policy) = args.policy.as_deref().filter(|policy| Policy::named(policy).is_none()) {
        return Err(CommandError::usage(format!("invalid argument: --policy {policy}")));
    }
    if let Some(url) = &args.api_url {
        check_url(url).map_err(|problem| CommandError::usage(format!("--api-url {problem}")))?;
    }
    let token = if args.token_stdin { Some(read_token(context.stdin)?) } else { None };
    if let Some(machine) = &args.machine_id {
        // A machine id is a segment, as an agent's is.
        AgentId::parse("machine-id", machine)?;
    }
    let changes = Changes {
        api_url: args.api_url.clone(),
        token,
        machine_id: args.machine_id.clone(),
        policy: args.policy.clone(),
    };
    if changes.by_key().is_empty() {
        return Err(CommandError::usage("config set requires at least one setting"));
    }
    Ok(changes)
}

fn read_token(stdin: &mut (dyn Read + Send)) -> Result<String, CommandError> {
    let refuse = |problem: &str| Err(CommandError::usage(format!("--token-stdin {problem}")));
    let mut bytes = Vec::new();
    let limit = u64::try_from(TOKEN_LIMIT).unwrap_or(u64::MAX) + 1;
    if let Err(error) = stdin.take(limit).read_to_end(&mut bytes) {
        return refuse(&format!("could not read from stdin: {error}"));
    }
    if bytes.len() > TOKEN_LIMIT {
        return refuse("input is too large");
    }
    let Ok(text) = String::from_utf8(bytes) else { return refuse("token must be valid UTF-8") };
    let token = text.strip_suffix('\n').map_or(text.as_str(), |text| text.strip_suffix('\r').unwrap_or(text));
    if token.trim().is_empty() {
        return refuse("requires a non-empty token");
    }
    if token.contains(['\r', '\n', '\0']) {
        return refuse("token must be one line");
    }
    Ok(token.to_owned())
}

/// Checks a URL that a secret may be sent to.
fn check_url(url: &str) -> Result<(), &'static str> {
    const ABSOLUTE: &str = "must be an absolute HTTP(S) URL";
    let (scheme, rest) = url.split_once("://").ok_or(ABSOLUTE)?;
    let scheme = scheme.to_ascii_lowercase();
    let is_plain = url.chars().all(|character| character.is_ascii_graphic() && !"\"<>\\^`{|}".contains(character));
    if !matches!(scheme.as_str(), "http" | "https") || !is_plain {
        return Err(ABSOLUTE);
    }
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let host_and_port = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (host, port) = split_port(host_and_port).ok_or(ABSOLUTE)?;
    if host.is_empty() {
        return Err(ABSOLUTE);
    }
    if rest.contains(['?', '#']) {
        return Err("must not include a query or fragment");
    }
    if port.is_some_and(|port| !port.parse::<u16>().is_ok_and(|number| number > 0)) {
        return Err("port must be between 1 and 65535");
    }
    if scheme == "http" && !is_loopback(host) {
        return Err("must use https unless it points at localhost");
    }
    Ok(())
}

/// Splits `host:port`; an address in brackets keeps its colons. `None` = neither.
fn split_port(text: &str) -> Option<(&str, Option<&str>)> {
    let end = match text.strip_prefix('[') {
        Some(_) => text.find(']')? + 1,
        None => text.find(':').unwrap_or(text.len()),
    };
    let (host, rest) = text.split_at(end);
    match rest.strip_prefix(':') {
        Some(port) => Some((host, Some(port).filter(|port| !port.is_empty()))),
        None => rest.is_empty().then_some((host, None)),
    }
}

fn is_loopback(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host == "[::1]"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}
