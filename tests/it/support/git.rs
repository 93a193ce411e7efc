//! Repositories of every kind, and raw looks at what is in them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::{Ran, TestEnv};

/// Where coordination refs live.
pub const ROOT: &str = "refs/agent-coord/";

/// Git in a test's environment.
#[derive(Clone, Copy)]
pub struct Git<'a> {
    env: &'a TestEnv,
}

impl<'a> Git<'a> {
    /// Returns the git of `env`.
    pub fn of(env: &'a TestEnv) -> Self {
        Self { env }
    }

    /// Runs git, whatever comes of it.
    pub fn attempt<S: AsRef<OsStr>>(self, directory: &Path, arguments: impl IntoIterator<Item = S>) -> Ran {
        self.env.finish(self.env.program("git", directory).args(arguments))
    }

    /// Runs git with a command line split at spaces, which must succeed, and returns its stdout.
    #[track_caller]
    pub fn run(self, directory: &Path, line: &str) -> String {
        let ran = self.attempt(directory, line.split_whitespace());
        assert_eq!(ran.code, 0, "git {line} in {}\n{ran}", directory.display());
        ran.stdout
    }

    /// Runs git with `input` on stdin, which must succeed, and returns its trimmed stdout.
    #[track_caller]
    pub fn feed(self, directory: &Path, line: &str, input: &[u8]) -> String {
        let mut command = self.env.program("git", directory);
        command.args(line.split_whitespace()).stdin(Stdio::piped());
        let mut child = command.spawn().expect("git runs");
        let mut stdin = child.stdin.take().expect("stdin is piped");
        let input = input.to_vec();
        // Beside the reading below: git answers before it has read everything, and both pipes are short.
        let feeder = std::thread::spawn(move || stdin.write_all(&input));
        let ran = Ran::of(&child.wait_with_output().expect("git ends"), &self.env.root().to_string_lossy());
        assert_eq!(ran.code, 0, "git {line} in {}\n{ran}", directory.display());
        feeder.join().expect("feeding does not panic").expect("git reads its input");
        ran.stdout.trim().to_owned()
    }

    /// Makes a repository with one commit.
    pub fn repository(self, name: &str) -> PathBuf {
        let directory = self.unborn(name);
        self.commit(&directory, "README", "first");
        directory
    }

    /// Makes a repository without any commit.
    pub fn unborn(self, name: &str) -> PathBuf {
        let directory = self.env.path(name);
        std::fs::create_dir_all(&directory).expect("a folder");
        self.run(&directory, "init --quiet");
        directory
    }

    /// Makes a bare repository with one commit on `main`, ready to be a team's remote.
    pub fn remote(self, name: &str) -> PathBuf {
        let seed = self.repository(&format!("{name}.seed"));
        let bare = self.env.path(name);
        self.run(self.env.root(), &format!("clone --quiet --bare {} {}", seed.display(), bare.display()));
        self.run(&bare, "config http.receivepack true");
        self.run(&bare, "remote remove origin");
        bare
    }

    /// Clones `url` with the options of `options` (split at spaces).
    pub fn clone_with(self, url: &str, name: &str, options: &str) -> PathBuf {
        let directory = self.env.path(name);
        self.run(self.env.root(), &format!("clone --quiet {options} {url} {}", directory.display()));
        directory
    }

    /// Clones `url`.
    pub fn clone(self, url: &str, name: &str) -> PathBuf {
        self.clone_with(url, name, "")
    }

    /// Adds a linked worktree with a branch of the same name.
    pub fn worktree(self, of: &Path, name: &str) -> PathBuf {
        let directory = self.env.path(name);
        self.run(of, &format!("worktree add --quiet -b {name} {}", directory.display()));
        directory
    }

    /// Commits a file of this content.
    pub fn commit(self, directory: &Path, file: &str, content: &str) {
        std::fs::write(directory.join(file), content).expect("a file can be written");
        self.run(directory, &format!("add {file}"));
        self.run(directory, &format!("commit --quiet --no-verify -m {file}"));
    }

    /// Returns every coordination ref with the object it points at.
    pub fn coordination_refs(self, directory: &Path) -> BTreeMap<String, String> {
        self.run(directory, &format!("for-each-ref --format=%(refname)=%(objectname) {ROOT}"))
            .lines()
            .filter_map(|line| line.rsplit_once('='))
            .map(|(name, object)| (name.to_owned(), object.to_owned()))
            .collect()
    }

    /// Writes `content` as a blob and points the coordination ref of `path` at it, behind every rule's back.
    pub fn plant(self, directory: &Path, path: &str, content: &[u8]) -> String {
        let blob = self.feed(directory, "hash-object -w --stdin", content);
        self.run(directory, &format!("update-ref {ROOT}{path} {blob}"));
        blob
    }

    /// Returns what the coordination ref of `path` points at, as text.
    pub fn show(self, directory: &Path, path: &str) -> String {
        self.run(directory, &format!("cat-file blob {ROOT}{path}"))
    }

    /// Installs a hook that runs `body` in a repository that has none of that name.
    pub fn install_hook(self, git_dir: &Path, name: &str, body: &str) {
        use std::os::unix::fs::PermissionsExt;
        let file = git_dir.join("hooks").join(name);
        std::fs::create_dir_all(git_dir.join("hooks")).expect("a hooks folder");
        std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).expect("a hook");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).expect("a hook can be run");
    }
}

/// Returns the `file://` URL of a path.
pub fn file_url(path: &Path) -> String {
    format!("file://{}", path.display())
}
