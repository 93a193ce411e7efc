//! Reading and writing one small private file in a git directory.

use std::fs::OpenOptions;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// More than any of these files grows to.
const SIZE_LIMIT: u64 = 4 * 1024 * 1024;

/// Returns the text of a plain file of bounded size; `None` when there is none, or it is anything else.
///
/// Links are not followed and a pipe does not block: whoever can write into a git directory may have put one there.
pub fn read(path: &Path) -> Option<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > SIZE_LIMIT {
        return None;
    }
    let mut text = String::new();
    file.take(SIZE_LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Replaces the file at `path`: readers see the old text or the new one, never a part.
///
/// # Errors
/// When the directory cannot be made or written.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let directory = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    std::fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn what_is_not_a_plain_small_file_counts_as_absent() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        assert_eq!(read(&file), None);
        write(&file, "text").unwrap();
        assert_eq!(read(&file).as_deref(), Some("text"));
        let pipe = directory.path().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(read(&pipe), None, "a pipe nobody writes into is not waited for");
        write(&pipe, "text").unwrap();
        assert_eq!(read(&pipe).as_deref(), Some("text"), "and a file takes its place");
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link), None, "a link is not followed");
        assert_eq!(read(directory.path()), None, "a directory is not read");
        std::fs::write(&file, [0xff, 0xfe]).unwrap();
        assert_eq!(read(&file), None, "bytes that are no text are not read");
        File::create(&file).unwrap().set_len(SIZE_LIMIT + 1).unwrap();
        assert_eq!(read(&file), None, "a huge file is not read");
    }

    #[test]
    fn a_written_file_is_readable_by_its_owner_alone_and_leaves_nothing_beside_it() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("deep/x");
        write(&file, "one").unwrap();
        write(&file, "two").unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
    }
}
