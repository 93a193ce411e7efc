//! Collecting what a git writes, all of it and no later than it ends.
//!
//! A line that is missing from an answer means "absent", so an answer that was cut short would report what is UNKNOWN
//! as free. Whatever git wrote is in the pipe when it has ended, however late this process gets to read it; and a helper
//! that keeps the pipe open afterwards is not waited for.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

/// More than any answer of a healthy git; past it the pipe is closed, which ends that git.
const OUTPUT_LIMIT: usize = 512 * 1024 * 1024;
/// More than a pipe holds (Linux: 64 KiB, 1 MiB at most for ordinary users): what git left in it when it ended.
const PIPE_LIMIT: usize = 2 * 1024 * 1024;
/// How soon the end of git is noticed while something else keeps the pipe open.
const GLANCE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// Output that is being collected.
pub struct Collected {
    reader: JoinHandle<Vec<u8>>,
    git_has_ended: Arc<AtomicBool>,
}

impl Collected {
    /// Begins to collect from `pipe`.
    pub fn from(pipe: impl Read + AsFd + Send + 'static) -> Self {
        let git_has_ended = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&git_has_ended);
        Self { reader: std::thread::spawn(move || read_all(pipe, &ended)), git_has_ended }
    }

    /// Returns everything that was written before this call; git has ended.
    pub fn finish(self) -> Vec<u8> {
        self.git_has_ended.store(true, Ordering::SeqCst);
        self.reader.join().unwrap_or_default()
    }
}

fn read_all(mut pipe: impl Read + AsFd, git_has_ended: &AtomicBool) -> Vec<u8> {
    let mut output = Vec::new();
    let flags = rustix::fs::fcntl_getfl(&pipe).unwrap_or(OFlags::empty());
    if rustix::fs::fcntl_setfl(&pipe, flags | OFlags::NONBLOCK).is_err() {
        return output;
    }
    loop {
        // Asked before reading: what was written until then is in the pipe now.
        let is_last = git_has_ended.load(Ordering::SeqCst);
        let limit = if is_last { output.len().saturating_add(PIPE_LIMIT).min(OUTPUT_LIMIT) } else { OUTPUT_LIMIT };
        if read_what_is_there(&mut pipe, &mut output, limit) || is_last {
            return output;
        }
        let _ = poll(&mut [PollFd::new(&pipe, PollFlags::IN)], Some(&GLANCE));
    }
}

/// Reads until the pipe is empty; returns whether nothing will follow, or `limit` was reached.
fn read_what_is_there(pipe: &mut impl Read, output: &mut Vec<u8>, limit: usize) -> bool {
    let mut buffer = [0; 64 * 1024];
    while output.len() < limit {
        match pipe.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => output.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Duration;

    #[test]
    fn what_was_written_is_there_even_when_reading_begins_after_the_end() {
        for size in [0, 1, 60_000] {
            let (reader, mut writer) = std::io::pipe().unwrap();
            writer.write_all(&vec![b'x'; size]).unwrap();
            let output = Arc::new(AtomicBool::new(true));
            assert_eq!(read_all(reader, &output).len(), size);
            // A helper of git keeps the pipe open all the while.
            drop(writer);
        }
    }

    #[test]
    fn an_end_is_noticed_while_a_helper_keeps_the_pipe_open() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let collected = Collected::from(reader);
        let written: Vec<u8> = (0..3_000_000_u32).map(|byte| byte.to_le_bytes()[0]).collect();
        writer.write_all(&written).unwrap();
        assert_eq!(collected.finish(), written);
        drop(writer);
    }

    #[test]
    fn a_helper_that_never_stops_writing_is_not_listened_to_for_ever() {
        let (reader, mut writer) = std::io::pipe().unwrap();
        let chatter = std::thread::spawn(move || while writer.write_all(&[b'y'; 4096]).is_ok() {});
        let collected = Collected::from(reader);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!collected.finish().is_empty());
        chatter.join().unwrap();
    }
}
