//! The file with a process's number.

use crate::{FileError, Replacement, at, read_text};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Bytes that are read of such a file.
const MOST: u64 = 64;

/// A file that holds the number of this process while it runs.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
    /// Open: the process may give up its rights to the directory.
    file: File,
}

impl PidFile {
    /// Writes the file, and makes its directory. A symbolic link is replaced, not followed: it may
    /// lead to anything.
    ///
    /// # Errors
    /// If it cannot be written, or what has its name is not a regular file.
    pub fn write(path: &Path) -> Result<PidFile, FileError> {
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(at("make", dir))?;
        }
        let mut file = Replacement::new(path)?;
        file.for_everyone()?;
        writeln!(file, "{}", std::process::id()).map_err(at("write", path))?;
        let open = file.file().try_clone().map_err(at("write", path))?;
        file.commit()?;
        Ok(PidFile { path: path.to_owned(), file: open })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // A process that was started later may have its number there.
        let ours = read_text(&self.path, MOST).unwrap_or_default();
        if ours.trim() == std::process::id().to_string() && fs::remove_file(&self.path).is_err() {
            // Without the rights to remove it: no number is better than a wrong one.
            let _ = self.file.set_len(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_goes_with_the_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/x.pid");
        let file = PidFile::write(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn a_link_is_replaced_and_its_target_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (victim, link) = (dir.path().join("victim"), dir.path().join("x.pid"));
        fs::write(&victim, "precious").unwrap();
        std::os::unix::fs::symlink(&victim, &link).unwrap();
        drop(PidFile::write(&link).unwrap());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }

    #[test]
    fn the_number_of_another_process_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.pid");
        let file = PidFile::write(&path).unwrap();
        fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "1\n");
    }
}
