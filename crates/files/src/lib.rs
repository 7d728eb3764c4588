//! Files that users name and the router reads or writes.
//!
//! Reading: regular files only, up to a bound. A pipe or a device is refused and never waited for.
//!
//! Writing: new files are readable by their owner only (0600), and no symbolic link is followed,
//! since the directory may belong to others. A file that is [replaced](Replacement) keeps its old
//! content until the new one is complete and on disk. Programs at a prompt
//! write for their user with the usual mode, and follow links ([`put`]).

mod put;

pub use put::put;

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Why a file cannot be read or written.
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
    /// Whether there is no such file.
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
fn open_regular(path: &Path, flags: OFlags) -> io::Result<File> {
    // Without NONBLOCK opening a pipe waits for its other end; regular files ignore it.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let private = Mode::RUSR | Mode::WUSR;
    let file = File::from(rustix::fs::open(path, flags, private).map_err(|e| match e {
        rustix::io::Errno::LOOP if flags.contains(OFlags::NOFOLLOW) => {
            wrong("it is a symbolic link, which is not followed: name the file it points to")
        }
        // A pipe without a reader.
        rustix::io::Errno::NXIO => wrong("not a regular file"),
        e => e.into(),
    })?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(wrong("not a regular file")) }
}

/// Opens a file for reading.
///
/// # Errors
/// If it cannot be opened or is not a regular file.
pub fn open(path: &Path) -> Result<File, FileError> {
    open_regular(path, OFlags::RDONLY).map_err(at("read", path))
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes).map_err(at("read", path))?;
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
/// As [`read`], and if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    let bytes = read(path, most)?;
    String::from_utf8(bytes).map_err(|e| {
        let upto = e.utf8_error().valid_up_to();
        let line = e.as_bytes()[..upto].iter().filter(|b| **b == b'\n').count() + 1;
        at("read", path)(wrong(format!("line {line} is not UTF-8 text")))
    })
}

/// Creates a file that must not exist.
///
/// # Errors
/// If it exists, also as a symbolic link, or cannot be created.
pub fn create_new(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    open_regular(path, flags).map_err(at("write", path))
}

/// Opens a file to append to it, and creates it if it does not exist.
///
/// # Errors
/// If it is a symbolic link, not a regular file, or cannot be opened.
pub fn append(path: &Path) -> Result<File, FileError> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW;
    open_regular(path, flags).map_err(at("write", path))
}

/// The new content of a file. It takes the file's place when it is complete; until then, and if it
/// is dropped, the file stays as it was.
#[derive(Debug)]
pub struct Replacement {
    new: NamedTempFile,
    path: PathBuf,
}

impl Replacement {
    /// Begins new content for a file that may exist. A symbolic link of that name is replaced, not
    /// followed.
    ///
    /// # Errors
    /// If its directory cannot be written to.
    pub fn new(path: &Path) -> Result<Self, FileError> {
        if path.is_dir() {
            return Err(at("write", path)(wrong("it is a directory")));
        }
        let dir = directory(path);
        check_directory(path)?;
        // The temporary file's name would only confuse.
        let plain = |e: io::Error| e.raw_os_error().map_or(e, io::Error::from_raw_os_error);
        let new = NamedTempFile::new_in(dir).map_err(plain).map_err(at("write in", dir))?;
        Ok(Self { new, path: path.to_owned() })
    }

    /// The file to write to, e.g. for seeking.
    pub fn file(&mut self) -> &mut File {
        self.new.as_file_mut()
    }

    /// Lets everyone read the file: it holds nothing private.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn for_everyone(&mut self) -> Result<(), FileError> {
        let mode = std::fs::Permissions::from_mode(0o644);
        self.new.as_file().set_permissions(mode).map_err(at("write", &self.path))
    }

    /// Puts the content into place, and returns when it is on disk.
    ///
    /// # Errors
    /// If that fails; the file is as it was then.
    pub fn commit(self) -> Result<(), FileError> {
        let Self { new, path } = self;
        new.as_file().sync_all().map_err(at("write", &path))?;
        new.persist(&path).map_err(|e| at("write", &path)(e.error))?;
        // The entry in the directory must last, too.
        let dir = directory(&path);
        File::open(dir).and_then(|d| d.sync_all()).map_err(at("write in", dir))
    }
}

impl Write for Replacement {
    // Errors of the file itself, without the temporary file's name.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Replaces a file as a whole.
///
/// # Errors
/// As [`Replacement`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let mut new = Replacement::new(path)?;
    new.write_all(bytes).map_err(at("write", path))?;
    new.commit()
}

/// Checks that the directory of a new file exists.
///
/// # Errors
/// If it does not; the error says what makes it.
pub fn check_directory(path: &Path) -> Result<(), FileError> {
    let dir = directory(path);
    match dir.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let text = format!("no such directory; `mkdir -p {}` makes it", dir.display());
            Err(at("write in", dir)(wrong(text)))
        }
        _ => Ok(()),
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
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
        assert!(Replacement::new(dir.path()).is_err());
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
        assert!(create_new(&link).is_err());
        let error = append(&link).unwrap_err().to_string();
        assert!(error.contains("symbolic link"), "{error}");
        replace(&link, b"theirs").unwrap();
        assert_eq!(fs::read(&victim).unwrap(), b"mine");
        assert_eq!(fs::read(&link).unwrap(), b"theirs");
        assert!(!fs::symlink_metadata(&link).unwrap().is_symlink());
        // A link to nothing creates nothing elsewhere.
        let (far, dangling) = (dir.path().join("far"), dir.path().join("dangling"));
        symlink(&far, &dangling).unwrap();
        assert!(create_new(&dangling).is_err());
        assert!(append(&dangling).is_err());
        assert!(!far.exists());
    }

    #[test]
    fn new_files_are_private() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|n| dir.path().join(n));
        create_new(&a).unwrap();
        append(&b).unwrap();
        replace(&c, b"").unwrap();
        assert_eq!([&a, &b, &c].map(|p| mode(p)), [0o600; 3]);
        let mut open = Replacement::new(&c).unwrap();
        open.for_everyone().unwrap();
        open.commit().unwrap();
        assert_eq!(mode(&c), 0o644);
        assert!(create_new(&a).is_err());
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
