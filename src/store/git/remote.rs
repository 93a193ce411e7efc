//! The shared remote: which URL, one leased atomic push, one fetch that changes no ref, and what their lines mean
//! (design.md section 3.4).

use std::collections::BTreeMap;
use std::path::Path;

use gix::ObjectId;

use super::names;
use super::refs::{RefEdit, Refs};
use crate::git::redact::redact;
use crate::git::{Call, Finished, GitError, Repository};
use crate::store::{StoreError, StoreErrorKind};
use crate::world::Deadline;

/// The name under which the shared remote is made up on the command line of each git. The user's own remote of any name
/// may carry a mirror, several push URLs or push options, all of which would break a coordination push.
const OWN_NAME: &str = "agent-coord-shared";

/// Where the team's coordination state is shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    url: String,
    label: String,
    /// The URL is what `pushInsteadOf` made of the configured one, and is not to be rewritten again.
    is_rewritten: bool,
}

impl Remote {
    /// Resolves what `agent-coord.remote` or a flag names: a configured remote, or a URL or path.
    ///
    /// # Errors
    /// When it names no remote, one with several push URLs, or something git would take for an option.
    pub fn resolve(repository: &Repository, named: &str) -> Result<Self, StoreError> {
        if named.starts_with('-') {
            return Err(policy(format!("remote {named} looks like an option")));
        }
        let push_urls = repository.config_values(&format!("remote.{named}.pushurl"));
        let has_push_url = !push_urls.is_empty();
        let urls = if has_push_url { push_urls } else { repository.config_values(&format!("remote.{named}.url")) };
        let url = match urls.as_slice() {
            [] if looks_like_url(named) => named.to_owned(),
            [] => {
                return Err(policy(format!("remote {named} is not configured in this repository"))
                    .with_hint("`git remote -v` lists the configured remotes; a URL works too"));
            }
            [only] => only.clone(),
            several => {
                return Err(policy(format!(
                    "remote {named} has {} push URLs; claims need exactly one arbiter",
                    several.len()
                ))
                .with_hint("give `agent-coord init --remote` the URL that decides"));
            }
        };
        if url.starts_with('-') || url.contains(char::is_control) {
            return Err(policy(format!("the URL of remote {named} is not one git can be given safely")));
        }
        let label = if url == named { redact(named) } else { named.to_owned() };
        // There is one arbiter: what pushes decide is what fetches read, so `pushInsteadOf` counts for both.
        let pushed_to = if has_push_url { None } else { repository.push_instead_of(&url) };
        let is_rewritten = pushed_to.is_some();
        Ok(Self { url: anchored(repository, pushed_to.unwrap_or(url)), label, is_rewritten })
    }

    /// Returns how messages name the remote; never holds a secret.
    #[must_use]
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the URL that git is given. It may hold a secret.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    fn call(&self, subcommand: &str) -> Call<'static> {
        let call = Call::new(subcommand)
            .config(format!("remote.{OWN_NAME}.url"), &self.url)
            // Without a push URL of its own, git would send pushes where `pushInsteadOf` says.
            .config(format!("remote.{OWN_NAME}.pushurl"), &self.url)
            .config(format!("remote.{OWN_NAME}.fetch"), format!("+{0}*:{0}*", names::ROOT))
            .config("core.logAllRefUpdates", "false");
        // The longest match wins, and nothing is longer than the whole. Git cannot be told so of a URL with `=`.
        if self.is_rewritten && !self.url.contains('=') {
            call.config(format!("url.{0}.insteadOf", self.url), &self.url)
        } else {
            call
        }
    }
}

fn looks_like_url(text: &str) -> bool {
    text.contains("://") || text.contains('/') || text.contains(':') || text == "." || text == ".."
}

/// Git runs in the git directory, so a path relative to the checkout is made absolute.
fn anchored(repository: &Repository, url: String) -> String {
    let first_slash = url.find('/').unwrap_or(url.len());
    let is_path = !url.contains("://") && !url[..first_slash].contains(':');
    if !is_path || Path::new(&url).is_absolute() || url.starts_with('~') {
        return url;
    }
    let base = repository.work_tree().unwrap_or_else(|| repository.git_dir());
    base.join(&url).display().to_string()
}

fn policy(message: String) -> StoreError {
    StoreError::new(StoreErrorKind::Policy, message)
}

/// What became of one push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// Every edit landed, in one atomic step.
    Landed,
    /// Nothing landed: these refs were not in the expected state, or were locked on the remote.
    Lost(Vec<String>),
    /// Every ref is in the wanted state, but these were so before: their bytes were already there.
    AlreadyThere(Vec<String>),
    /// Nothing landed, and trying again does not help.
    Refused(StoreError),
    /// Nothing landed because the remote was busy with itself (pruning, repacking).
    Busy(String),
    /// The connection broke, or the deadline came: it may have landed.
    Unclear(StoreError),
}

/// Pushes `edits` in one atomic step, each under its own lease.
///
/// # Errors
/// When git cannot be started at all.
pub fn push(
    repository: &Repository,
    remote: &Remote,
    edits: &[RefEdit],
    deadline: &Deadline<'_>,
) -> Result<Pushed, StoreError> {
    let mut call = remote
        .call("push")
        .config("push.pushOption", "")
        .config("pack.window", "0")
        .config("pack.threads", "1")
        .config("push.followTags", "false")
        .args(["--porcelain", "--atomic", "--no-verify", "--no-signed", "--no-follow-tags", "--no-mirror"])
        .args(["--recurse-submodules=no", "--no-force-if-includes"]);
    for edit in edits {
        let expected = edit.expected.map(|id| id.to_string()).unwrap_or_default();
        call = call.arg(format!("--force-with-lease={}:{expected}", edit.name));
    }
    call = call.args(["--", OWN_NAME]);
    for edit in edits {
        let new = edit.new.map(|id| id.to_string()).unwrap_or_default();
        call = call.arg(format!("{new}:{}", edit.name));
    }
    match repository.run(call, deadline) {
        Ok(finished) => Ok(read_push(remote, edits, &finished)),
        Err(error @ GitError::TimedOut { .. }) => Ok(Pushed::Unclear(unreachable(remote, &error.to_string()))),
        Err(error) => Err(super::trouble(error)),
    }
}

/// One line of `git push --porcelain`: `<flag> TAB <from>:<to> TAB <summary>`.
#[derive(Debug, PartialEq, Eq)]
struct PushLine<'a> {
    flag: char,
    to: &'a str,
    summary: &'a str,
}

fn push_lines(text: &str) -> Vec<PushLine<'_>> {
    let parse = |line| -> Option<PushLine<'_>> {
        let mut fields = str::splitn(line, 3, '\t');
        let (flag, pair, summary) = (fields.next()?, fields.next()?, fields.next()?);
        let mut flag = flag.chars();
        let (Some(flag), None) = (flag.next(), flag.next()) else { return None };
        Some(PushLine { flag, to: pair.split_once(':')?.1, summary })
    };
    text.lines().filter_map(parse).collect()
}

/// Decides the outcome from our own refs' lines. Text that git prints beside them only words the message.
fn read_push(remote: &Remote, edits: &[RefEdit], finished: &Finished) -> Pushed {
    let text = finished.text();
    let lines: BTreeMap<&str, PushLine<'_>> = push_lines(&text).into_iter().map(|line| (line.to, line)).collect();
    let ours: Vec<(&RefEdit, Option<&PushLine<'_>>)> =
        edits.iter().map(|edit| (edit, lines.get(edit.name.as_str()))).collect();
    if lines.is_empty() && finished.stderr.contains("does not support --atomic") {
        return Pushed::Refused(
            policy(format!("{} does not support atomic pushes, which claims need", remote.label))
                .with_hint("use a remote that does; `agent-coord init --remote` tries it out"),
        );
    }
    let rejected: Vec<&PushLine<'_>> =
        ours.iter().filter_map(|(_, line)| line.filter(|line| line.flag == '!')).collect();
    if let Some(outcome) = read_rejections(remote, &rejected, finished) {
        return outcome;
    }
    if !finished.succeeded() || ours.iter().any(|(_, line)| line.is_none()) {
        return Pushed::Unclear(unreachable(remote, &finished.last_words()));
    }
    let already: Vec<String> = ours
        .iter()
        .filter(|(edit, line)| !edit.is_guard() && line.is_some_and(|line| line.flag == '='))
        .map(|(edit, _)| edit.name.clone())
        .collect();
    if already.is_empty() { Pushed::Landed } else { Pushed::AlreadyThere(already) }
}

fn read_rejections(remote: &Remote, rejected: &[&PushLine<'_>], finished: &Finished) -> Option<Pushed> {
    let any = |marks: &[&str]| rejected.iter().find(|line| marks.iter().any(|mark| line.summary.contains(mark)));
    if rejected.is_empty() {
        return None;
    }
    if let Some(line) =
        any(&["hook declined", "hidden ref", "denied", "deny ", "protected", "not allowed", "prohibited"])
    {
        let words = reason(line.summary);
        return Some(Pushed::Refused(
            policy(format!("{} refuses coordination refs: {words}{}", remote.label, remote_words(finished)))
                .with_hint(format!("ask its owner to accept pushes of {}*", names::ROOT)),
        ));
    }
    let busy =
        ["unpacker error", "missing necessary objects", "unable to migrate objects", "bad pack", "n/a (unpacker"];
    if let Some(line) = any(&busy) {
        return Some(Pushed::Busy(reason(line.summary).to_owned()));
    }
    // `(atomic push failed)` only says that a neighbour was rejected.
    let lost: Vec<String> = rejected
        .iter()
        .filter(|line| !line.summary.contains("(atomic push failed)"))
        .map(|line| line.to.to_owned())
        .collect();
    let all = || rejected.iter().map(|line| line.to.to_owned()).collect();
    Some(Pushed::Lost(if lost.is_empty() { all() } else { lost }))
}

fn reason(summary: &str) -> &str {
    summary.rsplit_once('(').map_or(summary, |(_, inner)| inner.trim_end_matches(')'))
}

/// Returns the first line the remote itself said, for a refusal's message.
fn remote_words(finished: &Finished) -> String {
    let said = finished.stderr.lines().find_map(|line| line.strip_prefix("remote: ")).map(str::trim);
    match said.filter(|line| !line.is_empty()) {
        Some(line) => {
            format!(" ({})", line.chars().filter(|character| !character.is_control()).take(200).collect::<String>())
        }
        None => String::new(),
    }
}

fn unreachable(remote: &Remote, words: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Unreachable,
        format!("cannot reach the shared remote {}: {words}; the state of claims is UNKNOWN", remote.label),
    )
}

/// Fetches what the remote has under `patterns`, objects included, and changes no ref: the lines of this very git are the
/// answer, and an absent line means an absent ref.
///
/// A pattern is a full ref name, or a prefix that ends with `/`.
///
/// # Errors
/// When the remote cannot be asked.
pub fn fetch(
    repository: &Repository,
    remote: &Remote,
    patterns: &[String],
    deadline: &Deadline<'_>,
) -> Result<Refs, StoreError> {
    let mut call = remote
        .call("fetch")
        .config("fetch.negotiationAlgorithm", "noop")
        .config("fetch.writeCommitGraph", "false")
        .config("fetch.showForcedUpdates", "false")
        .args(["--dry-run", "--verbose", "--porcelain", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance"])
        .args(["--no-filter", "--no-prune", "--no-recurse-submodules", "--", OWN_NAME]);
    for pattern in patterns {
        // A pattern with `*` tolerates absence; neighbours that it brings are filtered below.
        call = call.arg(format!("+{pattern}*:{pattern}*"));
    }
    let finished = repository.run(call, deadline).map_err(|error| match error {
        GitError::TimedOut { .. } => unreachable(remote, &error.to_string()),
        other => super::trouble(other),
    })?;
    if !finished.succeeded() {
        return Err(unreachable(remote, &finished.last_words()));
    }
    let mut refs = fetch_lines(&finished.text());
    refs.retain(|name, _| patterns.iter().any(|pattern| covers(pattern, name)));
    Ok(refs)
}

/// Tells whether `pattern`, a full ref name or a prefix ending with `/`, means `name`.
#[must_use]
pub fn covers(pattern: &str, name: &str) -> bool {
    if pattern.ends_with('/') { name.starts_with(pattern) } else { name == pattern }
}

/// Parses `git fetch --porcelain`: `<flag> SP <old> SP <new> SP <local ref>`.
fn fetch_lines(text: &str) -> Refs {
    let parse = |line: &str| -> Option<(String, ObjectId)> {
        let rest = line.get(2..)?;
        let mut fields = rest.splitn(3, ' ');
        let (_, new, name) = (fields.next()?, fields.next()?, fields.next()?);
        let id = ObjectId::from_hex(new.as_bytes()).ok().filter(|id| !id.is_null())?;
        Some((name.to_owned(), id))
    };
    text.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote() -> Remote {
        Remote { url: "file:///r.git".to_owned(), label: "origin".to_owned(), is_rewritten: false }
    }

    fn id(digit: char) -> ObjectId {
        ObjectId::from_hex(digit.to_string().repeat(40).as_bytes()).unwrap()
    }

    fn edit(name: &str, expected: Option<ObjectId>, new: Option<ObjectId>) -> RefEdit {
        RefEdit { name: name.to_owned(), expected, new }
    }

    fn outcome(edits: &[RefEdit], code: i32, stdout: &str, stderr: &str) -> Pushed {
        let finished = Finished { code: Some(code), signal: None, stdout: stdout.into(), stderr: stderr.to_owned() };
        read_push(&remote(), edits, &finished)
    }

    #[test]
    fn a_push_landed_only_when_every_ref_says_so() {
        let edits = [edit("refs/a", None, Some(id('1'))), edit("refs/s", Some(id('2')), Some(id('2')))];
        let both = "To r\n*\t1:refs/a\t[new reference]\n=\t2:refs/s\t[up to date]\nDone\n";
        assert_eq!(outcome(&edits, 0, both, ""), Pushed::Landed);
        let one = "To r\n*\t1:refs/a\t[new reference]\nDone\n";
        assert!(matches!(outcome(&edits, 0, one, ""), Pushed::Unclear(_)));
        assert!(matches!(
            outcome(&edits, 128, "", "fatal: Could not read from remote repository."),
            Pushed::Unclear(_)
        ));
    }

    #[test]
    fn bytes_that_were_there_before_are_not_a_win() {
        let edits = [edit("refs/a", None, Some(id('1')))];
        let same = "To r\n=\t1:refs/a\t[up to date]\nDone\n";
        assert_eq!(outcome(&edits, 0, same, ""), Pushed::AlreadyThere(vec!["refs/a".to_owned()]));
    }

    #[test]
    fn a_moved_lease_is_a_lost_race_and_its_neighbours_are_not_to_blame() {
        let edits = [edit("refs/a", None, Some(id('1'))), edit("refs/b", None, Some(id('2')))];
        let stale = "To r\n!\t1:refs/a\t[rejected] (stale info)\n!\t2:refs/b\t[rejected] (atomic push failed)\nDone\n";
        assert_eq!(outcome(&edits, 1, stale, ""), Pushed::Lost(vec!["refs/a".to_owned()]));
        for text in
            ["failed to update ref", "atomic transaction failed", "cannot lock ref", "incorrect old value provided"]
        {
            let line = format!("!\t1:refs/a\t[remote rejected] ({text})\n");
            assert!(matches!(outcome(&edits[..1], 1, &line, ""), Pushed::Lost(_)), "{text}");
        }
    }

    #[test]
    fn a_policy_is_told_from_a_race_and_from_a_busy_remote() {
        let edits = [edit("refs/a", None, Some(id('1')))];
        let say =
            |text: &str| outcome(&edits, 1, &format!("!\t1:refs/a\t[remote rejected] ({text})\n"), "remote: no way\n");
        let Pushed::Refused(error) = say("pre-receive hook declined") else { panic!("a policy") };
        assert_eq!(error.kind, StoreErrorKind::Policy);
        assert!(error.message.contains("pre-receive hook declined (no way)"), "{error}");
        assert!(matches!(say("deny updating a hidden ref"), Pushed::Refused(_)));
        assert!(matches!(say("unpacker error"), Pushed::Busy(_)));
        assert!(matches!(say("missing necessary objects"), Pushed::Busy(_)));
        let unsupported = outcome(&edits, 1, "", "fatal: the receiving end does not support --atomic push\n");
        assert!(matches!(unsupported, Pushed::Refused(_)));
    }

    #[test]
    fn deletions_and_odd_lines_parse() {
        let lines = push_lines("To x\n-\t:refs/a\t[deleted]\n \t1:refs/b\t1..2\nDone\n");
        assert_eq!(
            lines.iter().map(|line| (line.flag, line.to)).collect::<Vec<_>>(),
            [('-', "refs/a"), (' ', "refs/b")]
        );
    }

    #[test]
    fn fetch_lines_give_the_new_id_whatever_the_flag() {
        let zero = "0".repeat(40);
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        let text =
            format!("* {zero} {one} refs/a\n= {two} {two} refs/b\n+ {one} {two} refs/c\n- {one} {zero} refs/d\n");
        let refs = fetch_lines(&text);
        assert_eq!(refs.keys().collect::<Vec<_>>(), ["refs/a", "refs/b", "refs/c"]);
    }

    #[test]
    fn a_pattern_means_the_ref_itself_or_what_is_below_a_slash() {
        assert!(covers("refs/x/1.json", "refs/x/1.json") && !covers("refs/x/1.json", "refs/x/1.json2"));
        assert!(covers("refs/x/", "refs/x/1.json") && !covers("refs/x/", "refs/xy/1.json"));
    }
}
