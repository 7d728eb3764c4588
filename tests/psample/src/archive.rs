//! The file system that the kernel unpacks at its start: a cpio archive of the "new ASCII" kind.

use anyhow::{Context, Result, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const DIRECTORY: u32 = 0o040_755;
const PROGRAM: u32 = 0o100_755;

/// An archive in the making.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    /// Directories that are in it.
    directories: BTreeSet<PathBuf>,
    files: BTreeSet<PathBuf>,
}

impl Archive {
    fn entry(&mut self, name: &str, mode: u32, data: &[u8]) -> Result<()> {
        let number = self.directories.len() + self.files.len() + 1;
        let length = u32::try_from(data.len()).context("a file of 4 GiB")?;
        self.bytes.extend(b"070701");
        // Inode, mode, user, group, links, time, length, device numbers, name's length, checksum.
        let fields =
            [number as u32, mode, 0, 0, 1, 0, length, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(data);
        self.pad();
        Ok(())
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Adds a directory and those above it.
    pub(crate) fn directory(&mut self, path: &Path) -> Result<()> {
        let above: Vec<PathBuf> = path.ancestors().map(Path::to_path_buf).collect();
        for dir in above.into_iter().rev() {
            let name = dir.strip_prefix("/").unwrap_or(&dir).to_string_lossy().into_owned();
            if !name.is_empty() && self.directories.insert(dir) {
                self.entry(&name, DIRECTORY, &[])?;
            }
        }
        Ok(())
    }

    /// Adds a file of the host under a path of its own.
    pub(crate) fn file(&mut self, from: &Path, path: &Path) -> Result<()> {
        ensure!(path.is_absolute(), "{} is not absolute", path.display());
        if !self.files.insert(path.to_path_buf()) {
            return Ok(());
        }
        let data = fs::read(from).with_context(|| format!("read {}", from.display()))?;
        self.directory(path.parent().unwrap_or(Path::new("/")))?;
        let name = path.strip_prefix("/").unwrap_or(path).to_string_lossy().into_owned();
        self.entry(&name, PROGRAM, &data)
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>> {
        self.entry("TRAILER!!!", 0, &[])?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_whole() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("f");
        fs::write(&from, b"hello").unwrap();
        let mut archive = Archive::default();
        archive.file(&from, Path::new("/bin/deep/x")).unwrap();
        archive.file(&from, Path::new("/bin/deep/x")).unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let text = String::from_utf8_lossy(&bytes);
        // /bin, /bin/deep, the file once, the end.
        assert_eq!(text.matches("070701").count(), 4);
        assert!(text.contains("bin/deep/x\0") && text.contains("hello"));
        assert!(text.contains("TRAILER!!!\0"));
    }
}
