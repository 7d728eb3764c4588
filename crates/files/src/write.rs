//! Writing: the place of a file, and what is done there.

use crate::client::Lease;
use crate::{FileError, at, open_regular, temporary, wrong};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// The place of a file, which need not exist: a name in a directory that is open, so that nobody
/// can put another directory there.
#[derive(Debug)]
pub(crate) struct Spot {
    dir: OwnedFd,
    name: OsString,
    path: PathBuf,
}

/// Flags for a directory that is only gone through.
pub(crate) const PASSING: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Spot {
    /// The place of a file that the program itself chose, or who started it.
    pub(crate) fn own(path: &Path) -> Result<Spot, FileError> {
        check_directory(path)?;
        let dir = directory(path);
        let opened = rustix::fs::openat(CWD, dir, PASSING, Mode::empty());
        Spot::in_directory(opened.map_err(|e| at("write in", dir)(e.into()))?, path)
    }

    /// The place of a file in its directory, which is open.
    pub(crate) fn in_directory(dir: OwnedFd, path: &Path) -> Result<Spot, FileError> {
        match path.file_name() {
            Some(name) => Ok(Spot { dir, name: name.to_owned(), path: path.to_owned() }),
            None => Err(at("write", path)(wrong("it names no file"))),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the file itself, never what a link leads to.
    pub(crate) fn open(&self, flags: OFlags) -> Result<File, FileError> {
        let flags = flags | OFlags::NOFOLLOW;
        open_regular(&self.dir, Path::new(&self.name), flags).map_err(at("write", &self.path))
    }

    fn append(&self) -> Result<File, FileError> {
        self.open(OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)
    }

    pub(crate) fn write_new(&self, bytes: &[u8]) -> Result<File, FileError> {
        self.fill_new(|file| file.write_all(bytes))
    }

    fn fill_new(&self, fill: impl FnOnce(&mut File) -> io::Result<()>) -> Result<File, FileError> {
        let mut file = self.open(OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)?;
        match fill(&mut file) {
            Ok(()) => Ok(file),
            Err(e) => {
                // Half a file would keep the next attempt from its name.
                let _ = rustix::fs::unlinkat(&self.dir, &self.name, AtFlags::empty());
                Err(at("write", &self.path)(e))
            }
        }
    }

    /// Checks that what has the name, if anything, may be replaced.
    fn check_replaceable(&self) -> io::Result<()> {
        match rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(rustix::io::Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile | FileType::Symlink => Ok(()),
                FileType::Directory => Err(wrong("it is a directory")),
                _ => Err(wrong("not a regular file")),
            },
        }
    }
}

/// Creates a file that must not exist, and writes its first bytes. If that fails, e.g. since the
/// disk is full, there is no file.
///
/// # Errors
/// If it exists, also as a symbolic link, or cannot be written.
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<File, FileError> {
    Spot::own(path)?.write_new(bytes)
}

/// Opens a file to append to it, and creates it if it does not exist.
///
/// # Errors
/// If it is a symbolic link, not a regular file, or cannot be opened.
pub fn append(path: &Path) -> Result<File, FileError> {
    Spot::own(path)?.append()
}

/// The new content of a file. When complete, it takes the file's place; until then, and if it is
/// dropped, the file stays as it was.
#[derive(Debug)]
pub struct Replacement {
    spot: Spot,
    new: File,
    /// Name of the new file; `None` once it has its final one.
    temporary: Option<OsString>,
}

impl Replacement {
    /// Begins new content for a file that may exist. A symbolic link of that name is replaced, not
    /// followed.
    ///
    /// # Errors
    /// If its directory cannot be written to, or what has its name is not a regular file.
    pub fn new(path: &Path) -> Result<Self, FileError> {
        Replacement::at(Spot::own(path)?)
    }

    pub(crate) fn at(spot: Spot) -> Result<Self, FileError> {
        spot.check_replaceable().map_err(at("write", &spot.path))?;
        // The temporary file's name would only confuse.
        let failed = |e| at("write in", directory(&spot.path))(e);
        temporary::remove_leftovers(&spot.dir);
        loop {
            let name = temporary::name();
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
            match open_regular(&spot.dir, Path::new(&name), flags) {
                Ok(new) if temporary::hold(&new).map_err(failed)? => {
                    return Ok(Replacement { spot, new, temporary: Some(name) });
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(failed(e)),
            }
        }
    }

    /// The file to write to, e.g. for seeking.
    pub fn file(&mut self) -> &mut File {
        &mut self.new
    }

    /// Lets everyone read the file: it holds nothing private.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn for_everyone(&mut self) -> Result<(), FileError> {
        let mode = Mode::from_bits_truncate(0o644);
        rustix::fs::fchmod(&self.new, mode).map_err(|e| at("write", &self.spot.path)(e.into()))
    }

    /// Syncs all that was written so far to disk: little can go wrong any more then.
    ///
    /// # Errors
    /// If that fails.
    pub fn sync(&mut self) -> Result<(), FileError> {
        self.new.sync_all().map_err(at("write", &self.spot.path))
    }

    /// Puts the content into place, and returns when it is on disk.
    ///
    /// # Errors
    /// If that fails; the file is as it was then.
    pub fn commit(self) -> Result<(), FileError> {
        self.put(None).map(drop)
    }

    /// Does the same if the file is still reserved for it; returns whether it was.
    ///
    /// # Errors
    /// The errors of [`Replacement::commit`].
    pub fn commit_for(self, lease: &Lease) -> Result<bool, FileError> {
        self.put(Some(lease))
    }

    fn put(mut self, lease: Option<&Lease>) -> Result<bool, FileError> {
        let Spot { dir, name, path } = &self.spot;
        self.new.sync_all().map_err(at("write", path))?;
        // The file may have become something else meanwhile.
        self.spot.check_replaceable().map_err(at("write", path))?;
        if let Some(temporary) = &self.temporary {
            let rename = || rustix::fs::renameat(dir, temporary, dir, name);
            let renamed = match lease {
                Some(lease) => lease.with(rename),
                None => Some(rename()),
            };
            let Some(renamed) = renamed else { return Ok(false) };
            renamed.map_err(|e| at("write", path)(e.into()))?;
        }
        self.temporary = None;
        // The entry in the directory must last, too.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = rustix::fs::openat(dir, ".", flags, Mode::empty()).and_then(rustix::fs::fsync);
        synced.map_err(|e| at("write in", directory(path))(e.into()))?;
        Ok(true)
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            let _ = rustix::fs::unlinkat(&self.spot.dir, name, AtFlags::empty());
        }
    }
}

impl Write for Replacement {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.new.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.new.flush()
    }
}

/// Replaces a file as a whole.
///
/// # Errors
/// The errors of [`Replacement`].
pub fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    fill(Replacement::new(path)?, bytes)
}

pub(crate) fn fill(mut new: Replacement, bytes: &[u8]) -> Result<(), FileError> {
    let written = new.write_all(bytes);
    written.map_err(at("write", &new.spot.path))?;
    new.commit()
}

/// Checks that the directory of a new file exists.
///
/// # Errors
/// If it does not; the error says what makes it.
pub fn check_directory(path: &Path) -> Result<(), FileError> {
    let dir = directory(path);
    match dir.metadata() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Err(no_directory(dir)),
        _ => Ok(()),
    }
}

pub(crate) fn no_directory(dir: &Path) -> FileError {
    at("write in", dir)(wrong(format!("no such directory; `mkdir -p {}` makes it", dir.display())))
}

pub(crate) fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_that_cannot_be_filled_leaves_its_name_free() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let full = |file: &mut File| {
            file.write_all(b"half")?;
            Err(io::ErrorKind::StorageFull.into())
        };
        assert!(Spot::own(&path).unwrap().fill_new(full).is_err());
        write_new(&path, b"whole").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
    }
}
