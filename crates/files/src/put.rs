//! Files that programs at a prompt write for their user.

use crate::write::directory;
use crate::{FileError, at, temporary};
use rustix::fs::{FallocateFlags, Gid, Uid, fallocate, fchown};
use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Gives a file of the user's its whole content: with the usual mode or the one that it has, behind
/// symbolic links. Pipes and devices are written to as they are.
///
/// A file keeps its old content, and a new one is not there, until all of it is on disk.
///
/// # Errors
/// If it cannot be written, or not all of it.
pub fn put(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    let put = || match fs::metadata(path) {
        _ if is_descriptor(path) => fs::write(path, bytes),
        Ok(old) if old.is_file() => {
            let path = fs::canonicalize(path)?;
            match put_new(&path, bytes, Some(&old)) {
                // Its directory takes no other one, or it is mounted there.
                Err(error) if !is_full(&error) => put_into(&path, bytes),
                done => done,
            }
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            put_new(&behind_links(path)?, bytes, None)
        }
        _ => fs::write(path, bytes),
    };
    put().map_err(at("write", path))
}

/// Returns whether it is a name for an open file, such as `/dev/stdout`: others write to that, too.
fn is_descriptor(path: &Path) -> bool {
    (path.starts_with("/dev") || path.starts_with("/proc")) && path.is_symlink()
}

/// Returns whether there was no room.
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

/// The file that a link leads to, although it is not there.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    const MOST: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST {
        match fs::read_link(&path) {
            Ok(to) => path = path.parent().unwrap_or(&path).join(to),
            Err(_) => return Ok(path),
        }
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Puts a new file in the place of one that is there, or is not.
fn put_new(path: &Path, bytes: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    if let Ok(dir) = File::open(directory(path)) {
        temporary::remove_leftovers(dir);
    }
    let (name, mut file) = temporary_file(path)?;
    let fill = |file: &mut File| {
        if let Some(old) = old {
            // Only root can give it away.
            let _ = fchown(&*file, Some(Uid::from_raw(old.uid())), Some(Gid::from_raw(old.gid())));
            file.set_permissions(Permissions::from_mode(old.mode() & 0o7777))?;
        }
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&name, path)
    };
    let filled = fill(&mut file);
    if filled.is_err() {
        let _ = fs::remove_file(&name);
    }
    filled
}

/// A new file in the directory of another one, with a name that nobody can guess.
fn temporary_file(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let name = path.with_file_name(temporary::name());
        match File::options().write(true).create_new(true).open(&name) {
            Ok(file) if temporary::hold(&file)? => return Ok((name, file)),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes to a file itself, once there is room for all.
fn put_into(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let room = fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes.len().max(1) as u64);
    if let Err(error) = room.map_err(io::Error::from)
        && is_full(&error)
    {
        return Err(error);
    }
    file.write_all_at(bytes, 0)?;
    file.set_len(bytes.len() as u64)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_users_file_is_put_behind_links_with_its_mode() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, link, hop, away] =
            ["old", "new", "link", "hop", "away"].map(|name| dir.path().join(name));
        put(&new, b"new").unwrap();
        let usual = dir.path().join("usual");
        fs::write(&usual, "").unwrap();
        assert_eq!(mode(&new), mode(&usual), "as the umask says");
        fs::write(&old, "longer than the new one").unwrap();
        fs::set_permissions(&old, Permissions::from_mode(0o640)).unwrap();
        symlink("old", &link).unwrap();
        put(&link, b"text").unwrap();
        assert_eq!((fs::read(&old).unwrap(), mode(&old)), (b"text".to_vec(), 0o640));
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        // A link to a link to a file that is yet to be made.
        symlink("away", &hop).unwrap();
        fs::remove_file(&link).unwrap();
        symlink(&hop, &link).unwrap();
        put(&link, b"far").unwrap();
        assert_eq!(fs::read(&away).unwrap(), b"far");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 6, "nothing else is left");
    }

    #[test]
    fn a_file_that_must_stay_where_it_is_is_written_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, "longer than the new one").unwrap();
        let second = dir.path().join("b");
        fs::hard_link(&path, &second).unwrap();
        put_into(&path, b"text").unwrap();
        assert_eq!(fs::read(&second).unwrap(), b"text");
        put_into(&path, b"").unwrap();
        assert!(fs::read(&second).unwrap().is_empty());
    }

    #[test]
    fn a_device_that_is_full_and_a_directory_are_said() {
        let error = put(Path::new("/dev/full"), b"text").unwrap_err();
        assert!(is_full(&error.source), "{error}");
        let dir = tempfile::tempdir().unwrap();
        assert!(put(dir.path(), b"text").is_err());
        let around = dir.path().join("around");
        symlink(&around, &around).unwrap();
        assert!(put(&around, b"text").is_err());
        let missing = put(&dir.path().join("no/file"), b"text").unwrap_err();
        assert!(missing.is_missing(), "{missing}");
    }
}
