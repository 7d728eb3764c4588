//! Files that grow, and that others move away meanwhile.

use crate::client::{self, Kind, Lease, Reserved};
use crate::{FileError, append};
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A log: a private file that is appended to. Once it has been moved or removed, as by `logrotate`,
/// the next lines go to a new file of its name; no signal is needed.
#[derive(Debug)]
pub struct Appended {
    file: File,
    path: PathBuf,
    /// Kind of the file, if a client has named it.
    kind: Option<&'static Kind>,
    /// The name is its own: without it, what is left goes to the file that is open.
    lease: Lease,
    /// The name of one that no client has named.
    _own: Option<Reserved>,
}

/// Logs that no client has named.
static LOGS: Kind = Kind { name: "a log of its own", magic: &[], is_foreign: false };

impl Appended {
    /// Opens the file, or creates it with mode 0600.
    ///
    /// # Errors
    /// The errors of [`append`].
    pub fn open(path: &Path) -> Result<Appended, FileError> {
        let file = append(path)?;
        let own = client::reserve_own(path, &LOGS);
        let (path, lease) = (path.to_owned(), own.lease());
        Ok(Appended { file, path, kind: None, lease, _own: Some(own) })
    }

    /// Opens or creates a file that a client of the router has named. Its name is free again once
    /// the reservation is dropped, also while a thread still writes the last lines.
    ///
    /// # Errors
    /// The errors of [`client::append`].
    pub fn of_client(path: &Path, kind: &'static Kind) -> Result<(Appended, Reserved), FileError> {
        let file = client::append(path, kind)?;
        let reserved = client::reserve(path, kind)?;
        let (path, lease) = (path.to_owned(), reserved.lease());
        Ok((Appended { file, path, kind: Some(kind), lease, _own: None }, reserved))
    }

    /// Opens the file again if its name leads to another one. If that fails, the old one goes on.
    fn follow(&mut self) {
        let inode = |m: io::Result<Metadata>| m.map(|m| (m.dev(), m.ino())).ok();
        let is_same = inode(std::fs::symlink_metadata(&self.path)) == inode(self.file.metadata());
        if is_same || !self.lease.is_held() {
            return;
        }
        let again = match self.kind {
            Some(kind) => client::append(&self.path, kind),
            None => append(&self.path),
        };
        if let Ok(file) = again {
            // The name may have become another one's since.
            let _ = self.lease.with(|| self.file = file);
        }
    }
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.follow();
        self.file.write(bytes)
    }

    /// Makes the new file of a moved one; there is nothing else to do.
    fn flush(&mut self) -> io::Result<()> {
        self.follow();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_follow_the_name() {
        let dir = tempfile::tempdir().unwrap();
        let [path, moved] = ["log", "log.1"].map(|name| dir.path().join(name));
        let mut log = Appended::open(&path).unwrap();
        log.write_all(b"one\n").unwrap();
        std::fs::rename(&path, &moved).unwrap();
        log.write_all(b"two\n").unwrap();
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two\n");
        std::fs::remove_file(&path).unwrap();
        log.write_all(b"three\n").unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "three\n");
    }

    #[test]
    fn a_link_in_its_place_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let [path, victim, moved] = ["log", "victim", "log.1"].map(|name| dir.path().join(name));
        std::fs::write(&victim, "private").unwrap();
        let mut log = Appended::open(&path).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        log.write_all(b"one\n").unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "private");
        assert_eq!(std::fs::read_to_string(&moved).unwrap(), "one\n");
    }
}
