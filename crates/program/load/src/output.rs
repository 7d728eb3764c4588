//! Files that results go to.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};

/// Checks that a file can be written, and leaves it as it is: an hour of measuring must not end
/// with one that cannot.
///
/// # Errors
/// Names the option, the file, and what is wrong with it.
pub(super) fn check(option: &str, file: &Path) -> Result<()> {
    let what = || format!("{option} {}", file.display());
    let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty());
    ensure!(dir.is_none_or(Path::is_dir), "{}: there is no such directory", what());
    let tried = match fs::metadata(file) {
        Ok(of) if of.is_dir() => bail!("{}: it is a directory; name a file", what()),
        Ok(of) if of.is_file() => File::options().write(true).open(file).map(drop),
        // Opening a pipe waits for its reader, and closing it ends the reader's input.
        Ok(_) => Ok(()),
        // A link to a file that is yet to be made.
        Err(_) if fs::symlink_metadata(file).is_ok() => Ok(()),
        Err(_) => File::create_new(file).and_then(|_| fs::remove_file(file)),
    };
    tried.with_context(|| format!("{}: cannot be written", what()))
}

/// Writes files, each whatever becomes of the others.
///
/// # Errors
/// Names all that could not be written.
pub(super) fn write<'a>(all: impl IntoIterator<Item = (&'a Path, Result<String>)>) -> Result<()> {
    let write = |(file, text): (&Path, Result<String>)| {
        let written =
            text.map_err(|error| format!("cannot write {}: {error:#}", file.display())).and_then(
                |text| thalweg_files::put(file, text.as_bytes()).map_err(|error| error.to_string()),
            );
        written.err()
    };
    let failed: Vec<String> = all.into_iter().filter_map(write).collect();
    if failed.is_empty() { Ok(()) } else { Err(anyhow!(failed.join("; "))) }
}

/// Returns the measurement if its files were written, too. The error of measuring goes first, and
/// then that of the files is printed.
pub(super) fn both<T>(measured: Result<T>, written: Result<()>) -> Result<T> {
    if let (Err(_), Err(error)) = (&measured, &written) {
        crate::report!("{error:#}");
    }
    let measured = measured?;
    written.map(|()| measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_checked_and_left_as_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let [old, new, link] = ["old.json", "new.json", "link.json"].map(|n| dir.path().join(n));
        fs::write(&old, "old").unwrap();
        std::os::unix::fs::symlink(&new, &link).unwrap();
        for file in [&old, &new, &link, &"/dev/full".into()] {
            check("--report", file).unwrap();
        }
        assert_eq!(fs::read_to_string(&old).unwrap(), "old");
        assert!(!new.exists() && fs::symlink_metadata(&link).is_ok());
        let wrong = check("--report", dir.path()).unwrap_err().to_string();
        assert!(wrong.starts_with("--report /") && wrong.contains("it is a directory"), "{wrong}");
        let wrong = check("-o", &dir.path().join("no/x.json")).unwrap_err().to_string();
        assert!(wrong.starts_with("-o /") && wrong.ends_with("no such directory"), "{wrong}");
    }

    #[test]
    fn a_file_that_cannot_be_written_does_not_keep_others_from_it() {
        let dir = tempfile::tempdir().unwrap();
        let good = dir.path().join("good.json");
        let text = || Ok("text".to_owned());
        let all = [(dir.path(), text()), (Path::new("/dev/full"), text()), (&good, text())];
        let error = write(all).unwrap_err().to_string();
        assert_eq!(error.matches("cannot write ").count(), 2, "{error}");
        assert!(error.contains("cannot write /dev/full: No space left"), "{error}");
        assert_eq!(fs::read_to_string(&good).unwrap(), "text");
        assert!(both(Ok(1), write([])).is_ok() && both(Ok(1), Err(anyhow!("x"))).is_err());
        let first = both::<()>(Err(anyhow!("a")), Err(anyhow!("b"))).unwrap_err();
        assert_eq!(first.to_string(), "a");
    }
}
