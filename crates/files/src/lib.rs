//! Files that users name and the programs read or write. No other crate opens such files itself.
//!
//! Reading: regular files only, up to a bound. A pipe or a device is refused and never waited for.
//!
//! Writing: new files are readable by their owner only (0600), and no symbolic link is followed,
//! since the directory may belong to others. A file that is [replaced](Replacement) keeps its old
//! content until the new one is complete and on disk; a device or a pipe is never replaced.
//!
//! Files that clients of a router's sockets name are opened by [`client`]: the router may read and
//! write more than those who may use its sockets. Programs at a prompt write for their user with
//! the usual mode, and follow links ([`put`]).
#![forbid(unsafe_code)]

mod appended;
pub mod client;
mod pid;
mod put;
mod temporary;
mod write;

pub use appended::Appended;
pub use pid::PidFile;
pub use put::put;
pub use write::{Replacement, append, check_directory, replace, write_new};

use rustix::fs::{CWD, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Reason why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempt} {}: {source}", path.display())]
pub struct FileError {
    /// Attempted operation: `read`, `write`.
    pub attempt: &'static str,
    /// Path of the file.
    pub path: PathBuf,
    /// Reason.
    pub source: io::Error,
}

impl FileError {
    /// True if there is no such file.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

fn at<'a>(attempt: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
    move |source| FileError { attempt, path: path.to_owned(), source }
}

fn wrong(text: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.into())
}

/// Opens a file with `flags`, without waiting, and refuses what is not a regular file.
fn open_regular(dir: impl AsFd, path: &Path, flags: OFlags) -> io::Result<File> {
    // Without NONBLOCK opening a pipe waits for its other end; regular files ignore it.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let private = Mode::RUSR | Mode::WUSR;
    let file = File::from(rustix::fs::openat(dir, path, flags, private).map_err(|e| match e {
        rustix::io::Errno::LOOP if flags.contains(OFlags::NOFOLLOW) => {
            wrong("it is a symbolic link, which is not followed: name the file it points to")
        }
        // A pipe without a reader.
        rustix::io::Errno::NXIO => wrong("not a regular file"),
        e => e.into(),
    })?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(wrong("not a regular file")) }
}

/// Returns whether not everyone may read an open file. Errors that clients see do not quote it.
///
/// # Errors
/// If the system does not say.
pub fn is_private(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.permissions().mode() & 0o004 == 0)
}

/// Opens a file for reading.
///
/// # Errors
/// If it cannot be opened or is not a regular file.
pub fn open(path: &Path) -> Result<File, FileError> {
    open_regular(CWD, path, OFlags::RDONLY).map_err(at("read", path))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    read_all(&open(path)?, path, most)
}

fn read_all(file: &File, path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(at("read", path))?;
    if bytes.len() as u64 > most {
        let text = match most {
            0..0x10_0000 => format!("larger than {} KiB", most >> 10),
            _ => format!("larger than {} MiB", most >> 20),
        };
        return Err(at("read", path)(wrong(text)));
    }
    Ok(bytes)
}

/// Reads a text of at most `most` bytes.
///
/// # Errors
/// The errors of [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    text(read(path, most)?, path)
}

fn text(bytes: Vec<u8>, path: &Path) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|e| not_text(path, e.as_bytes(), e.utf8_error()))
}

fn not_text(path: &Path, bytes: &[u8], e: std::str::Utf8Error) -> FileError {
    let line = bytes[..e.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1;
    at("read", path)(wrong(format!("line {line} is not UTF-8 text")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn pipes_devices_and_directories_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), dir.path()] {
            for result in [read(path, 100).map(drop), append(path).map(drop)] {
                let text = result.unwrap_err().to_string();
                let fits = text.contains("not a regular file") || text.contains("directory");
                assert!(fits, "{text}");
            }
        }
        for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/null"), dir.path()] {
            assert!(Replacement::new(path).is_err(), "{}", path.display());
        }
        let error = Replacement::new(&dir.path().join("a/b")).unwrap_err().to_string();
        assert!(error.contains("no such directory; `mkdir -p "), "{error}");
    }

    #[test]
    fn reading_is_bounded_and_says_where_text_ends() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, vec![b'x'; 2048]).unwrap();
        assert_eq!(read(&path, 2048).unwrap().len(), 2048);
        let error = read(&path, 2047).unwrap_err().to_string();
        assert!(error.ends_with("larger than 1 KiB"), "{error}");
        fs::write(&path, b"a\nb\n\xff").unwrap();
        let error = read_text(&path, 100).unwrap_err().to_string();
        assert!(error.ends_with("line 3 is not UTF-8 text"), "{error}");
        assert!(read(&dir.path().join("none"), 1).unwrap_err().is_missing());
    }

    #[test]
    fn links_are_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("link"));
        fs::write(&victim, "mine").unwrap();
        symlink(&victim, &link).unwrap();
        assert!(write_new(&link, b"").is_err());
        let error = append(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        replace(&link, b"theirs").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert_eq!(fs::read(&link).unwrap(), b"theirs");
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
        // A link to nothing creates nothing elsewhere.
        let (far, dangling) = (dir.path().join("far"), dir.path().join("dangling"));
        symlink(&far, &dangling).unwrap();
        assert!(write_new(&dangling, b"").is_err());
        assert!(append(&dangling).is_err());
        assert!(!far.exists());
    }

    #[test]
    fn new_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|n| dir.path().join(n));
        write_new(&a, b"").unwrap();
        append(&b).unwrap();
        replace(&c, b"").unwrap();
        assert_eq!([&a, &b, &c].map(|p| mode(p)), [0o600; 3]);
        let mut open = Replacement::new(&c).unwrap();
        open.for_everyone().unwrap();
        open.commit().unwrap();
        assert_eq!(mode(&c), 0o644);
        assert!(write_new(&a, b"").is_err());
    }

    #[test]
    fn a_replacement_that_is_not_complete_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "old").unwrap();
        let mut new = Replacement::new(&path).unwrap();
        new.write_all(b"new").unwrap();
        drop(new);
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
