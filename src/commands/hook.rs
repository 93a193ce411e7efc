//! `hook`: what the installed hooks run (design.md section 6).

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::sync::Arc;

use crate::cli::context::{Context, Opened, Place};
use crate::cli::env_vars;
use crate::cli::selection::Chosen;
use crate::cli::settings::Origin;
use crate::domain::ids::RepoName;
use crate::domain::snapshot::Freshness;
use crate::error::CommandError;
use crate::git::Repository;
use crate::hooks::body::HookName;
use crate::hooks::chain::{self, Stdin};
use crate::hooks::claims::{self, Claims, Reading};
use crate::hooks::facts::{self, Coordination};
use crate::hooks::pre_push::PushFacts;
use crate::hooks::settings::HookSettings;
use crate::hooks::standing::Asker;
use crate::hooks::verdict::HookVerdict;
use crate::hooks::{install, mirror, pre_commit, pre_push, probe, pushed};
use crate::store::{StoreError, StoreErrorKind};
use crate::worktree::{held, observations};
use crate::world::Deadline;

/// Runs the checks of a git hook; the files that `hooks install` puts in place call it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  agent-coord hook pre-commit\n  agent-coord hook pre-push origin URL")]
pub struct Args {
    /// The hook: pre-commit or pre-push
    name: String,
    /// The arguments git gave it
    arguments: Vec<OsString>,
}

/// Runs one hook and returns its exit code.
///
/// # Errors
/// When the checks cannot be made: git then refuses as well.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let hook = HookName::parse(&args.name).ok_or_else(|| {
        CommandError::usage(format!("unknown hook: {}", args.name)).with_hint("agent-coord has pre-commit and pre-push")
    })?;
    if let Some(answer) = probe::answer(hook, context.environment) {
        context.printer.line(&answer);
        return Ok(0);
    }
    let bypass = format!("`git {} --no-verify` does it once without the check", hook.act());
    check(hook, args, context).map_err(|error| error.with_hint(bypass))
}

fn check(hook: HookName, args: &Args, context: &mut Context<'_>) -> Result<u8, CommandError> {
    let stdin = match hook {
        HookName::PreCommit => None,
        HookName::PrePush => Some(read_all(context)?),
    };
    let run = Run::begin(context)?;
    let (verdict, uses_intent) = match &stdin {
        None => (run.pre_commit(context)?, false),
        Some(bytes) => run.pre_push(context, bytes, args.arguments.first().map(OsString::as_os_str))?,
    };
    report(hook, &verdict, context);
    if !verdict.passes() {
        return Ok(verdict.exit_code());
    }
    let code = run.chained(hook, &args.arguments, stdin.as_deref(), context)?;
    if code == 0 && uses_intent {
        run.use_up_intent()?;
    }
    Ok(code)
}

/// Reads what git says it pushes. It can be read only once, so the chained hook gets these very bytes.
fn read_all(context: &mut Context<'_>) -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    let mut bounded = (&mut *context.stdin).take(pushed::STDIN_LIMIT + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|error| CommandError::operational(format!("cannot read what git says it pushes: {error}")))?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > pushed::STDIN_LIMIT) {
        return Err(CommandError::operational("git says it pushes more refs than one push can be checked for")
            .with_hint("push fewer refs at once"));
    }
    Ok(bytes)
}

fn report(hook: HookName, verdict: &HookVerdict, context: &mut Context<'_>) {
    for warning in &verdict.warnings {
        context.printer.warning(warning);
    }
    for objection in &verdict.objections {
        context.printer.message(&objection.message);
        for hint in &objection.hints {
            context.printer.message(&format!("hint: {hint}"));
        }
    }
    if !verdict.passes() {
        context.printer.message(&format!("agent-coord refused this {}", hook.act()));
    }
}

/// Finds the repository that a command about hooks acts on: the one around, whatever store is selected.
///
/// # Errors
/// When there is none, or a setting of it is bad.
pub fn local<'world>(context: &Context<'world>) -> Result<Place<'world>, CommandError> {
    let repository = Repository::discover(context.directory, context.environment)?
        .ok_or_else(|| CommandError::operational(format!("no git repository at {}", context.directory.display())))?;
    let timeout = context.sources(Some(&repository)).timeout()?.value;
    Ok(Place { repository: Arc::new(repository), deadline: Deadline::after(context.clock, timeout) })
}

/// One run of a hook.
struct Run<'world> {
    repository: Arc<Repository>,
    deadline: Deadline<'world>,
    settings: HookSettings,
}

impl<'world> Run<'world> {
    fn begin(context: &Context<'world>) -> Result<Self, CommandError> {
        let Place { repository, deadline } = local(context)?;
        let settings = HookSettings::load(context.environment, &repository)
            .map_err(|error| CommandError::operational(error.to_string()))?;
        Ok(Self { repository, deadline, settings })
    }

    fn pre_commit(&self, context: &Context<'world>) -> Result<HookVerdict, CommandError> {
        let head = facts::here(&self.repository, &self.deadline)?;
        let canary = facts::canary(&self.repository, &head, &self.deadline)?;
        let mut verdict = pre_commit::branch_rules(&head, &canary, &self.settings);
        let Some(branch) = head.branch.as_deref() else { return Ok(verdict) };
        match self.claims(context, &[branch], Freshness::Cached)? {
            Answer::NotUsed => {}
            Answer::Unknown(error) => verdict.add(HookVerdict::unknown(&error, &self.settings)),
            Answer::Known(claims) => {
                let now = context.clock.now();
                verdict.add(pre_commit::claim_rules(branch, claims, &self.settings, now));
            }
        }
        Ok(verdict)
    }

    fn pre_push(
        &self,
        context: &Context<'world>,
        stdin: &[u8],
        remote: Option<&OsStr>,
    ) -> Result<(HookVerdict, bool), CommandError> {
        let pushed = pushed::parse(stdin).map_err(|error| CommandError::operational(error.to_string()))?;
        let refs = pushed.into_iter().map(|one| self.push_facts(one)).collect::<Result<Vec<_>, _>>()?;
        let intent = facts::intent(&self.repository);
        let mut verdict = pre_push::branch_rules(&refs, intent.as_deref(), &self.settings);
        if mirror::is_mirror(&self.repository, remote)
            && self.coordination(context, &context.select()?.chosen)? != Coordination::Nothing
        {
            verdict.objections.insert(0, pre_push::mirror());
        }
        let uses_intent = pre_push::uses_intent(&refs, &self.settings);
        let branches = pre_push::branches(&refs);
        // What the repository alone refuses needs no connection.
        if branches.is_empty() || !verdict.passes() {
            return Ok((verdict, uses_intent));
        }
        let answer = match self.claims(context, &branches, Freshness::Fetched)? {
            Answer::Unknown(error) => {
                verdict.add(HookVerdict::unknown(&error, &self.settings));
                // Let through as unknown, it still is checked against what this clone knows.
                if verdict.passes() { self.claims(context, &branches, Freshness::Cached)? } else { Answer::NotUsed }
            }
            answer => answer,
        };
        if let Answer::Known(claims) = answer {
            verdict.add(pre_push::claim_rules(&refs, &branches, claims, &self.settings));
        }
        Ok((verdict, uses_intent))
    }

    fn push_facts(&self, pushed: pushed::PushedRef) -> Result<PushFacts, CommandError> {
        let protected = pushed.branch().is_some_and(|branch| self.settings.is_protected(branch));
        let fast_forward = match (&pushed.local_id, &pushed.remote_id) {
            (None, _) => false,
            (Some(ours), Some(theirs)) if protected => {
                facts::is_ancestor(&self.repository, theirs, ours, &self.deadline)?
            }
            _ => true,
        };
        Ok(PushFacts { pushed, fast_forward })
    }

    /// Asks how `branches` stand.
    fn claims(
        &self,
        context: &Context<'world>,
        branches: &[&str],
        freshness: Freshness,
    ) -> Result<Answer, CommandError> {
        let selected = match context.select() {
            Ok(selected) => selected,
            Err(error) => return Ok(Answer::unknown(error)),
        };
        let coordination = match self.coordination(context, &selected.chosen) {
            Ok(coordination) => coordination,
            Err(error) => return Ok(Answer::unknown(error)),
        };
        match coordination {
            Coordination::Nothing => return Ok(Answer::NotUsed),
            // The store would fetch; a commit takes no network.
            Coordination::SharedWithoutCopy if freshness == Freshness::Cached => return Ok(Answer::without_copy()),
            Coordination::SharedWithoutCopy | Coordination::Shared | Coordination::Local => {}
        }
        let opened = match context.open_selected(selected) {
            Ok(opened) => opened,
            Err(error) => return Ok(Answer::unknown(error)),
        };
        let reading = Reading { freshness, shared: coordination != Coordination::Local };
        ask(context, &opened, branches, reading, &self.repository, &self.deadline)
    }

    /// Tells what is known of the store that is selected.
    fn coordination(&self, context: &Context<'world>, chosen: &Chosen) -> Result<Coordination, CommandError> {
        let Chosen::Git { store, .. } = chosen else { return Ok(Coordination::Local) };
        Ok(facts::coordination(store, is_shared(context, store), &self.deadline)?)
    }

    /// Runs the hook that was here before ours. Where another manager owns the hooks, it runs its own.
    fn chained(
        &self,
        hook: HookName,
        arguments: &[OsString],
        stdin: Option<&[u8]>,
        context: &Context<'_>,
    ) -> Result<u8, CommandError> {
        let directory = install::directory(&self.repository);
        let is_gits_own = self.repository.config("core.hooksPath").is_none()
            || install::foreign_hooks_path(&self.repository, &self.deadline)?.is_none();
        if !is_gits_own || !install::is_in_place(&directory, hook) {
            return Ok(0);
        }
        let stdin = stdin.map_or(Stdin::Inherited, Stdin::Bytes);
        chain::run(&directory, hook, arguments, stdin, context.environment, context.directory).map_err(|error| {
            let file = chain::chained(&directory, hook);
            CommandError::operational(format!("cannot run {}: {error}", file.display()))
        })
    }

    /// Takes the merge phrase away: of two pushes at the same time only one has it.
    fn use_up_intent(&self) -> Result<(), CommandError> {
        let file = facts::intent_file(&self.repository);
        std::fs::remove_file(&file).map_err(|error| {
            CommandError::operational(format!("cannot use up the merge phrase in {}: {error}", file.display()))
        })
    }
}

/// What is known of the claims.
enum Answer {
    /// Nobody coordinates in this clone.
    NotUsed,
    /// They could not be read.
    Unknown(StoreError),
    /// They were read.
    Known(Claims),
}

impl Answer {
    fn without_copy() -> Self {
        let error = StoreError::new(StoreErrorKind::Broken, "this clone has no copy of the shared claims");
        Self::Unknown(error.with_hint("`agent-coord sync` fetches them"))
    }

    fn unknown(error: CommandError) -> Self {
        let hint = error.hints.into_iter().next();
        Self::Unknown(StoreError { kind: StoreErrorKind::Broken, message: error.message, hint })
    }
}

fn is_shared(context: &Context<'_>, repository: &Repository) -> bool {
    let remote = env_vars::REMOTE;
    context.environment.text(remote.name).is_some()
        || remote.config_key.is_some_and(|key| repository.config(key).is_some())
}

/// A directory names no repository, but the clone that the hook runs in has a name.
fn target_repo(context: &Context<'_>, opened: &Opened<'_>, here: &Repository) -> Result<RepoName, CommandError> {
    if opened.repository.is_some() {
        return context.target_repo(opened);
    }
    Ok(RepoName::parse("target", &context.proposed_repo(here))?)
}

fn ask(
    context: &Context<'_>,
    opened: &Opened<'_>,
    branches: &[&str],
    reading: Reading,
    repository: &Repository,
    deadline: &Deadline<'_>,
) -> Result<Answer, CommandError> {
    let repo = match target_repo(context, opened, repository) {
        Ok(repo) => repo,
        Err(error) => return Ok(Answer::unknown(error)),
    };
    let agent = context.sources(Some(repository)).agent(context.ids)?;
    let held = held::entries(repository);
    let seen_changing = observations::seen_changing(repository, context.clock);
    let asker = Asker {
        agent: &agent.value,
        agent_is_named: agent.origin != Origin::Default,
        repo: &repo,
        held: &held,
        seen_changing: &seen_changing,
        now: context.clock.now(),
    };
    match claims::ask(&*opened.store, &asker, branches, reading, deadline) {
        Ok(claims) => Ok(Answer::Known(claims)),
        Err(error) => Ok(Answer::Unknown(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_of_the_hooks_is_documented_under_both_its_names() {
        use crate::hooks::settings as own;
        for names in [
            own::PRIMARY_BRANCH,
            own::ALLOW_PRIMARY_COMMIT,
            own::PROTECTED_REGEX,
            own::MERGE_PHRASE,
            own::REQUIRE_CLAIM,
            own::UNKNOWN,
        ] {
            let documented = env_vars::ALL.iter().find(|variable| variable.name == names.variable);
            assert_eq!(documented.and_then(|variable| variable.config_key), Some(names.key), "{}", names.variable);
        }
    }
}
