//! Temporary files, which take another one's place once they are complete.
//!
//! A process that is killed leaves what it had begun. A writer therefore holds a lock on its file,
//! and the next process that writes in the directory removes files that nobody holds.

use crate::open_regular;
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags, flock, fstat, openat, unlinkat};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::{CStr, OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const PREFIX: &str = ".thalweg-";

/// Characters of the number in a name.
const DIGITS: usize = 16;

/// Directories, by device and number, whose leftovers this process has removed: it leaves none
/// itself.
static CLEAN: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// Returns a name that others who may write in the directory cannot guess.
pub(crate) fn name() -> OsString {
    let number = RandomState::new().build_hasher().finish();
    format!("{PREFIX}{number:0DIGITS$x}").into()
}

/// Marks a new file as one that this process writes. False if another process has just taken it for
/// a leftover.
///
/// # Errors
/// If the system does not say.
pub(crate) fn hold(file: &File) -> io::Result<bool> {
    // Other errors mean that there are no locks here: nobody removes it then.
    let is_taken = flock(file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
    Ok(!is_taken && fstat(file)?.st_nlink > 0)
}

/// Removes what killed processes of this user have left in a directory. Only the first call for it
/// looks.
pub(crate) fn remove_leftovers(dir: impl AsFd) {
    let Ok(place) = fstat(&dir) else { return };
    let place = (place.st_dev, place.st_ino);
    if !CLEAN.lock().unwrap_or_else(PoisonError::into_inner).insert(place) {
        return;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(listed) = openat(&dir, ".", flags, Mode::empty()).and_then(Dir::read_from) else {
        return;
    };
    for entry in listed.flatten().filter(|entry| is_temporary(entry.file_name())) {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_left(&dir, name) {
            // Another process may do the same.
            let _ = unlinkat(&dir, name, AtFlags::empty());
        }
    }
}

fn is_temporary(name: &CStr) -> bool {
    let number = name.to_bytes().strip_prefix(PREFIX.as_bytes());
    number.is_some_and(|n| n.len() == DIGITS && n.iter().all(u8::is_ascii_hexdigit))
}

/// Returns true for a file of this user's that nobody writes.
fn is_left(dir: impl AsFd, name: &OsStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW;
    let Ok(file) = open_regular(dir, Path::new(name), flags) else { return false };
    let own = rustix::process::geteuid().as_raw();
    fstat(&file).is_ok_and(|found| found.st_uid == own)
        && flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replacement;
    use std::fs;
    use std::io::Write;

    #[test]
    fn only_what_nobody_writes_is_removed() {
        // A directory of another test that is gone may have had the same number.
        let is_new = |dir: &tempfile::TempDir| {
            let place = fstat(File::open(dir.path()).unwrap()).unwrap();
            !CLEAN.lock().unwrap().contains(&(place.st_dev, place.st_ino))
        };
        let mut known = Vec::new();
        let dir = loop {
            let dir = tempfile::tempdir().unwrap();
            if is_new(&dir) {
                break dir;
            }
            known.push(dir);
        };
        let at = |name: &str| dir.path().join(name);
        let [left, other, short] =
            [".thalweg-0123456789abcdef", ".thalweg-0123456789abcdeg", ".thalweg-1"].map(at);
        for file in [&left, &other, &short] {
            fs::write(file, "half").unwrap();
        }
        // Another process writes this one.
        let held = at(".thalweg-fedcba9876543210");
        let mut writer = File::create(&held).unwrap();
        assert!(hold(&writer).unwrap());
        let mut new = Replacement::new(&at("a")).unwrap();
        assert!(!left.exists() && held.exists() && other.exists() && short.exists());
        writer.write_all(b"whole").unwrap();
        new.write_all(b"new").unwrap();
        new.commit().unwrap();
        assert_eq!(fs::read(at("a")).unwrap(), b"new");
        // A process looks once.
        fs::write(&left, "half").unwrap();
        Replacement::new(&at("a")).unwrap();
        assert!(left.exists());
    }

    #[test]
    fn what_was_taken_for_a_leftover_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(".thalweg-0123456789abcdef");
        let new = File::create(&path).unwrap();
        let other = File::open(&path).unwrap();
        flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
        assert!(!hold(&new).unwrap());
        fs::remove_file(&path).unwrap();
        drop(other);
        assert!(!hold(&new).unwrap());
    }
}
