//! What selects a store, who said it, and what else was said (config-and-security.md section 7, design.md section 2).

use std::ffi::OsString;

use super::Tier;
use crate::cli::argv::Supplied;
use crate::cli::env_vars::{self, Variable};
use crate::cli::user_config::UserConfig;
use crate::cli::user_config::keys::{self, Key};
use crate::world::Environment;

const DEFAULT_REF: &str = "state";

/// One way to select a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selector {
    /// A directory of files.
    StateRoot,
    /// The refs of a repository.
    GitDir,
    /// A server.
    ApiUrl,
    /// A repository on GitHub, through its API.
    Backend,
}

/// Flags, the strongest first.
const FLAGS: [Selector; 4] = [Selector::StateRoot, Selector::GitDir, Selector::ApiUrl, Selector::Backend];
/// Variables and saved values, the strongest first.
const CONFIGURED: [Selector; 4] = [Selector::ApiUrl, Selector::GitDir, Selector::StateRoot, Selector::Backend];
/// In which order what lost is warned of, once.
const WARNED_OF: [Selector; 4] = [Selector::ApiUrl, Selector::StateRoot, Selector::Backend, Selector::GitDir];

impl Selector {
    /// Returns the option, without dashes.
    #[must_use]
    pub fn flag(self) -> &'static str {
        match self {
            Self::StateRoot => "state-root",
            Self::GitDir => "git-dir",
            Self::ApiUrl => "api-url",
            Self::Backend => "backend",
        }
    }

    /// Returns the variable.
    #[must_use]
    pub fn variable(self) -> Variable {
        match self {
            Self::StateRoot => env_vars::STATE_ROOT,
            Self::GitDir => env_vars::GIT_DIR,
            Self::ApiUrl => env_vars::API_URL,
            Self::Backend => env_vars::BACKEND,
        }
    }

    /// Returns the key of the user file; none for what only a process can say.
    fn key(self) -> Option<Key> {
        match self {
            Self::StateRoot => Some(keys::STATE_ROOT),
            Self::GitDir => None,
            Self::ApiUrl => Some(keys::API_URL),
            Self::Backend => Some(keys::BACKEND),
        }
    }

    fn backend(self) -> &'static str {
        match self {
            Self::StateRoot => "local",
            Self::GitDir => "git",
            Self::ApiUrl => "HTTP",
            Self::Backend => "legacy GitHub",
        }
    }
}

/// A store that was selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pick {
    /// What selects it.
    pub selector: Selector,
    /// The path, URL or name.
    pub value: OsString,
    /// Who said so.
    pub tier: Tier,
    /// The ref of a legacy GitHub store.
    pub reference: String,
    /// What else was said and does not count, to be warned of, without `warning: `.
    pub conflict: Option<String>,
}

/// What stores are selected by.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    /// The command line.
    pub supplied: &'a Supplied,
    /// The environment as the process got it.
    pub process: &'a Environment,
    /// The user file.
    pub config: &'a UserConfig,
}

impl Said<'_> {
    /// Returns what the command line or the process environment selects.
    #[must_use]
    pub fn by_caller(&self) -> Option<Pick> {
        let flags: Vec<Selector> = FLAGS.into_iter().filter(|selector| self.supplied.has(selector.flag())).collect();
        if let Some(&selector) = flags.first() {
            let value = self.supplied.raw(selector.flag())?.to_owned();
            let conflict = conflict(selector, true, &flags, &self.configured());
            return Some(self.pick(selector, value, Tier::Flag, conflict));
        }
        let set = self.of_process();
        let selector = CONFIGURED.into_iter().find(|selector| set.contains(selector))?;
        let value = self.process.raw(selector.variable().name)?.to_owned();
        Some(self.pick(selector, value, Tier::Environment, conflict(selector, false, &[], &set)))
    }

    /// Returns what the user file selects.
    #[must_use]
    pub fn by_user(&self) -> Option<Pick> {
        let set = self.of_user();
        let selector = CONFIGURED.into_iter().find(|selector| set.contains(selector))?;
        let value = self.config.set(selector.key()?)?;
        Some(self.pick(selector, value.into(), Tier::UserConfig, conflict(selector, false, &[], &set)))
    }

    fn pick(&self, selector: Selector, value: OsString, tier: Tier, conflict: Option<String>) -> Pick {
        let quiet = self.supplied.has("stack-json");
        let conflict = conflict.filter(|_| !quiet);
        Pick { selector, value, tier, reference: self.reference(tier), conflict }
    }

    /// The recovery bypass lets only the command line select.
    fn of_process(&self) -> Vec<Selector> {
        let set = |selector: &Selector| self.process.text(selector.variable().name).is_some();
        if self.bypasses() { Vec::new() } else { CONFIGURED.into_iter().filter(set).collect() }
    }

    fn of_user(&self) -> Vec<Selector> {
        let set = |selector: &Selector| selector.key().is_some_and(|key| self.config.set(key).is_some());
        CONFIGURED.into_iter().filter(set).collect()
    }

    /// What is configured where it counts: in the process when it selects anything, else in the user file.
    fn configured(&self) -> Vec<Selector> {
        let process = self.of_process();
        if process.is_empty() { self.of_user() } else { process }
    }

    fn reference(&self, tier: Tier) -> String {
        let process = || self.process.text(env_vars::REF.name).filter(|_| !self.bypasses());
        let user = || self.config.set(keys::REF).map(str::to_owned);
        let configured = || match tier {
            Tier::Flag => process().or_else(user),
            Tier::Environment => process(),
            _ => user(),
        };
        self.supplied.text("ref").or_else(configured).unwrap_or_else(|| DEFAULT_REF.to_owned())
    }

    fn bypasses(&self) -> bool {
        self.supplied.has("ignore-user-config")
    }
}

/// Words the first thing that was said besides, for another kind of store than the one that counts.
fn conflict(winner: Selector, by_flag: bool, flags: &[Selector], configured: &[Selector]) -> Option<String> {
    let among = |said: &[Selector]| WARNED_OF.into_iter().find(|other| *other != winner && said.contains(other));
    let flag = |selector: Selector| format!("--{}", selector.flag());
    let variable = |selector: Selector| selector.variable().name.to_owned();
    let won = if by_flag { flag(winner) } else { variable(winner) };
    let (other, lost) = match among(flags) {
        Some(other) => (other, flag(other)),
        None => among(configured).map(|other| (other, variable(other)))?,
    };
    let backend = winner.backend();
    // The name that comes last is the one to change; where a flag would decide, it is named as well.
    Some(match way_out(winner, other, by_flag, flags.contains(&other)) {
        Some(way_out) => format!("{won} and {lost} are both set; using the {backend} backend. {way_out}"),
        None => format!("{lost} and {won} are both set; using the {backend} backend."),
    })
}

/// Returns which flag would have the other store, where it is likely to be wanted.
fn way_out(winner: Selector, other: Selector, by_flag: bool, other_by_flag: bool) -> Option<&'static str> {
    match (winner, other) {
        (Selector::ApiUrl, Selector::StateRoot) if !other_by_flag => Some("Pass --state-root to force local."),
        _ if by_flag => None,
        (_, Selector::StateRoot) => Some("Pass --state-root to force local."),
        (_, Selector::Backend) => Some("Pass --backend to force the legacy GitHub backend."),
        (_, Selector::GitDir) => Some("Pass --git-dir to force git."),
        (_, Selector::ApiUrl) => Some("Pass --api-url to force HTTP."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::argv::{self, Asked};
    use crate::cli::user_config::tests::{SafeFolder, clock};
    use crate::cli::user_config::{Missing, UserConfig};

    fn supplied(words: &[&str]) -> Supplied {
        let words: Vec<OsString> = std::iter::once(&"status").chain(words).map(OsString::from).collect();
        match argv::read(&words, &crate::commands::root()) {
            Ok(Asked::Run(line)) => line.supplied,
            other => panic!("{other:?}"),
        }
    }

    fn environment(names: &[&str]) -> Environment {
        let mut environment = Environment::default();
        for name in names {
            environment.set(format!("AGENT_COORD_{name}"), format!("/{name}"));
        }
        environment
    }

    fn user(names: &[&str]) -> UserConfig {
        let folder = SafeFolder::new();
        let lines: String = names.iter().map(|name| format!("AGENT_COORD_{name}=/saved/{name}\n")).collect();
        folder.user_file(&lines);
        UserConfig::load(&folder.environment(), &clock(), Missing::Refused).unwrap()
    }

    fn picked(flags: &[&str], process: &[&str], saved: &[&str]) -> Option<Pick> {
        let words: Vec<String> = flags
            .iter()
            .map(|flag| if flag.contains("-") { (*flag).to_owned() } else { format!("--{flag}=x") })
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (supplied, process, config) = (supplied(&words), environment(process), user(saved));
        let said = Said { supplied: &supplied, process: &process, config: &config };
        said.by_caller().or_else(|| said.by_user())
    }

    fn won(flags: &[&str], process: &[&str], saved: &[&str]) -> (Selector, Tier) {
        let pick = picked(flags, process, saved).unwrap();
        (pick.selector, pick.tier)
    }

    #[test]
    fn flags_beat_the_process_which_beats_the_user_file() {
        use Selector::{ApiUrl, Backend, GitDir, StateRoot};
        let all = ["API_URL", "GIT_DIR", "STATE_ROOT", "BACKEND"];
        let saved = ["API_URL", "STATE_ROOT", "BACKEND"];
        let flags = ["--state-root=x", "--git-dir=x", "--api-url=x", "--backend=x"];
        for (at, selector) in [StateRoot, GitDir, ApiUrl, Backend].into_iter().enumerate() {
            assert_eq!(won(&flags[at..], &all, &saved), (selector, Tier::Flag));
        }
        for (at, selector) in [ApiUrl, GitDir, StateRoot, Backend].into_iter().enumerate() {
            assert_eq!(won(&[], &all[at..], &saved), (selector, Tier::Environment));
        }
        for (at, selector) in [ApiUrl, StateRoot, Backend].into_iter().enumerate() {
            assert_eq!(won(&[], &[], &saved[at..]), (selector, Tier::UserConfig));
        }
        assert_eq!(picked(&[], &[], &[]), None);
    }

    #[test]
    fn a_process_that_selects_anything_leaves_the_user_file_out() {
        let pick = picked(&[], &["BACKEND"], &["API_URL", "REF"]).unwrap();
        assert_eq!((pick.selector, pick.conflict), (Selector::Backend, None));
        assert_eq!(pick.reference, "state", "its ref as well");
    }

    #[test]
    fn the_ref_is_that_of_whoever_selects() {
        let reference =
            |flags: &[&str], process: &[&str], saved: &[&str]| picked(flags, process, saved).unwrap().reference;
        assert_eq!(reference(&["--backend=o/r", "--ref=mine"], &["REF"], &["REF"]), "mine");
        assert_eq!(reference(&["--backend=o/r"], &["REF"], &["REF"]), "/REF");
        assert_eq!(reference(&["--backend=o/r"], &[], &["REF"]), "/saved/REF");
        assert_eq!(reference(&["--backend=o/r", "--ignore-user-config"], &["REF"], &[]), "state");
        assert_eq!(reference(&[], &["BACKEND", "REF"], &["REF"]), "/REF");
        assert_eq!(reference(&[], &[], &["BACKEND", "REF"]), "/saved/REF");
    }

    #[test]
    fn each_conflict_is_warned_of_once_in_the_words_of_the_contract() {
        let warned = |flags: &[&str], configured: &[&str]| {
            let by_process = picked(flags, configured, &[]).unwrap().conflict;
            let saved: Vec<&str> = configured.iter().copied().filter(|name| *name != "GIT_DIR").collect();
            if saved.len() == configured.len() {
                assert_eq!(by_process, picked(flags, &[], configured).unwrap().conflict, "whoever configured it");
            }
            by_process.unwrap_or_default()
        };
        let (root, url, backend) = ("--state-root=x", "--api-url=x", "--backend=x");
        for (flags, configured, text) in [
            (&[root, url, backend][..], &[][..], "--api-url and --state-root are both set; using the local backend."),
            (&[root, backend], &["API_URL"], "--backend and --state-root are both set; using the local backend."),
            (&[root], &["API_URL"], "AGENT_COORD_API_URL and --state-root are both set; using the local backend."),
            (&[root], &["BACKEND"], "AGENT_COORD_BACKEND and --state-root are both set; using the local backend."),
            (&[url, backend], &["STATE_ROOT"], "--backend and --api-url are both set; using the HTTP backend."),
            (
                &[url],
                &["STATE_ROOT", "BACKEND"],
                "--api-url and AGENT_COORD_STATE_ROOT are both set; using the HTTP backend. Pass --state-root to force local.",
            ),
            (&[url], &["BACKEND"], "AGENT_COORD_BACKEND and --api-url are both set; using the HTTP backend."),
            (
                &[backend],
                &["API_URL", "STATE_ROOT"],
                "AGENT_COORD_API_URL and --backend are both set; using the legacy GitHub backend.",
            ),
            (
                &[backend],
                &["STATE_ROOT"],
                "AGENT_COORD_STATE_ROOT and --backend are both set; using the legacy GitHub backend.",
            ),
            (
                &[],
                &["API_URL", "STATE_ROOT", "BACKEND"],
                "AGENT_COORD_API_URL and AGENT_COORD_STATE_ROOT are both set; using the HTTP backend. Pass --state-root to force local.",
            ),
            (
                &[],
                &["API_URL", "BACKEND"],
                "AGENT_COORD_API_URL and AGENT_COORD_BACKEND are both set; using the HTTP backend. Pass --backend to force the legacy GitHub backend.",
            ),
            (
                &[],
                &["STATE_ROOT", "BACKEND"],
                "AGENT_COORD_STATE_ROOT and AGENT_COORD_BACKEND are both set; using the local backend. Pass --backend to force the legacy GitHub backend.",
            ),
            (&["--git-dir=x"], &["API_URL"], "AGENT_COORD_API_URL and --git-dir are both set; using the git backend."),
            (&[root], &["GIT_DIR"], "AGENT_COORD_GIT_DIR and --state-root are both set; using the local backend."),
            (
                &[],
                &["GIT_DIR", "STATE_ROOT"],
                "AGENT_COORD_GIT_DIR and AGENT_COORD_STATE_ROOT are both set; using the git backend. Pass --state-root to force local.",
            ),
        ] {
            assert_eq!(warned(flags, configured), text);
        }
    }

    #[test]
    fn the_same_kind_replaced_by_its_own_flag_is_silent() {
        for (flag, name) in [
            ("--state-root=x", "STATE_ROOT"),
            ("--api-url=x", "API_URL"),
            ("--backend=x", "BACKEND"),
            ("--git-dir=x", "GIT_DIR"),
        ] {
            assert_eq!(picked(&[flag], &[name], &[]).unwrap().conflict, None);
        }
        assert_eq!(picked(&["--state-root=x", "--ignore-user-config"], &["API_URL"], &[]).unwrap().conflict, None);
    }

    #[test]
    fn a_blank_variable_selects_nothing() {
        let mut process = environment(&["STATE_ROOT"]);
        process.set("AGENT_COORD_API_URL", "  ");
        let (supplied, config) = (supplied(&[]), UserConfig::default());
        let pick = Said { supplied: &supplied, process: &process, config: &config }.by_caller().unwrap();
        assert_eq!((pick.selector, pick.conflict), (Selector::StateRoot, None));
    }
}
