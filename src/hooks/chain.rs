//! Running the hook that was there before ours: same arguments, same stdin, same environment, same directory.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::body::HookName;
use crate::world::Environment;

/// Set for a chained hook, so that one that calls agent-coord again does not run itself without end.
const RUNNING: &str = "AGENT_COORD_CHAINED_HOOK";

/// What a chained hook gets on stdin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stdin<'a> {
    /// These bytes, which were read to decide.
    Bytes(&'a [u8]),
    /// Whatever this process has there; nothing of it was read.
    Inherited,
}

/// Returns the file of the hook that was in place before ours.
#[must_use]
pub fn chained(hooks_directory: &Path, hook: HookName) -> PathBuf {
    hooks_directory.join(format!("{hook}.local"))
}

/// Runs the chained hook, if there is an executable one, and returns its exit code; 0 without one.
///
/// # Errors
/// When it is there and cannot be run.
pub fn run(
    hooks_directory: &Path,
    hook: HookName,
    arguments: &[OsString],
    stdin: Stdin<'_>,
    environment: &Environment,
    directory: &Path,
) -> io::Result<u8> {
    let program = chained(hooks_directory, hook);
    let executable = program.is_file() && rustix::fs::access(&program, rustix::fs::Access::EXEC_OK).is_ok();
    let mark = program.as_os_str();
    if !executable || environment.raw(RUNNING) == Some(mark) || holds_our_body(&program, hook) {
        return Ok(0);
    }
    let mut environment = environment.clone();
    environment.set(RUNNING, mark);
    let mut child = start(&program, arguments, stdin, &environment, directory)?;
    if let (Some(mut pipe), Stdin::Bytes(bytes)) = (child.stdin.take(), stdin) {
        // A hook that does not read its stdin closes it: that is its right, and its exit code counts.
        let _ = pipe.write_all(bytes);
    }
    let status = child.wait()?;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    Ok(u8::try_from(code).unwrap_or(1))
}

fn start(
    program: &Path,
    arguments: &[OsString],
    stdin: Stdin<'_>,
    environment: &Environment,
    directory: &Path,
) -> io::Result<Child> {
    let command = |program: &Path| {
        let mut command = Command::new(program);
        command.env_clear().envs(environment.iter()).current_dir(directory);
        command.stdin(match stdin {
            Stdin::Bytes(_) => Stdio::piped(),
            Stdin::Inherited => Stdio::inherit(),
        });
        command
    };
    match command(program).args(arguments).spawn() {
        // A script without a first line that names its interpreter: git gives it to sh, and so do we.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            command(Path::new("sh")).arg(program).args(arguments).spawn()
        }
        started => started,
    }
}

/// A body of ours under this name would call us, and we it.
fn holds_our_body(program: &Path, hook: HookName) -> bool {
    std::fs::read(program).is_ok_and(|bytes| hook.is_ours(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn script(directory: &Path, hook: HookName, text: &str) {
        let file = chained(directory, hook);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn run_in(directory: &Path, arguments: &[&str], stdin: &[u8], environment: &Environment) -> u8 {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        run(directory, HookName::PrePush, &arguments, Stdin::Bytes(stdin), environment, directory).unwrap()
    }

    #[test]
    fn it_gets_the_same_arguments_and_the_same_stdin_and_its_exit_code_counts() {
        let directory = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\nprintf '%s|' \"$@\" > arguments\ncat > stdin\nexit 7\n";
        script(directory.path(), HookName::PrePush, text);
        let stdin: Vec<u8> = (0..200_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        assert_eq!(run_in(directory.path(), &["origin", "a url"], &stdin, &Environment::of_process()), 7);
        assert_eq!(std::fs::read(directory.path().join("stdin")).unwrap(), stdin);
        assert_eq!(std::fs::read_to_string(directory.path().join("arguments")).unwrap(), "origin|a url|");
    }

    #[test]
    fn one_that_ignores_stdin_or_names_no_interpreter_runs_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        script(directory.path(), HookName::PrePush, "exit 0\n");
        assert_eq!(run_in(directory.path(), &[], &vec![b'x'; 1 << 20], &Environment::of_process()), 0);
        script(directory.path(), HookName::PrePush, "#!/bin/sh\nkill -TERM $$\n");
        assert_eq!(run_in(directory.path(), &[], b"", &Environment::of_process()), 143);
    }

    #[test]
    fn none_at_all_or_one_that_is_not_executable_passes() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(run_in(directory.path(), &[], b"", &Environment::of_process()), 0);
        std::fs::write(chained(directory.path(), HookName::PrePush), "#!/bin/sh\nexit 1\n").unwrap();
        assert_eq!(run_in(directory.path(), &[], b"", &Environment::of_process()), 0);
    }

    #[test]
    fn a_hook_that_calls_us_again_is_not_run_again_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        script(directory.path(), HookName::PrePush, "#!/bin/sh\nexit 9\n");
        let mut environment = Environment::of_process();
        environment.set(RUNNING, chained(directory.path(), HookName::PrePush));
        assert_eq!(run_in(directory.path(), &[], b"", &environment), 0);
        environment.set(RUNNING, "/another/clone/hooks/pre-push.local");
        assert_eq!(run_in(directory.path(), &[], b"", &environment), 9, "another clone's hook is another hook");
        script(directory.path(), HookName::PrePush, HookName::PrePush.body());
        assert_eq!(run_in(directory.path(), &[], b"", &Environment::of_process()), 0);
    }
}
