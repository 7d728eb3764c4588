//! The router's configuration file and its revisions.
//!
//! `thalweg.yaml` is the last saved configuration; `thalweg.yaml.revisions/` holds it and earlier
//! ones, by number. Files are written to a temporary file, flushed and renamed: at any time either
//! the old or the new text is there. Only the owner may read them.

use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use thalweg_config::declare::MAX_TEXT;
use thalweg_files::client::{self, Kind, Reserved};
use thalweg_files::{FileError, Replacement};

/// Maximum number of revisions kept.
pub const KEPT: usize = 50;

fn at<'a>(attempt: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> FileError + 'a {
    move |source| FileError { attempt, path: path.to_owned(), source }
}

/// A saved revision.
#[derive(Clone, Debug)]
pub struct Revision {
    /// The file.
    pub path: PathBuf,
    /// Its number, ever increasing; `None` is the file itself, edited by hand.
    pub number: Option<u64>,
    /// Time at which it was saved, if known.
    pub saved: Option<SystemTime>,
}

/// A configuration file with its revisions.
#[derive(Clone, Debug)]
pub struct Store {
    file: PathBuf,
    /// Held while saving: two at once would choose the same number.
    saving: Arc<Mutex<()>>,
    _reserved: Arc<[Reserved; 2]>,
}

/// Earlier documents, in a directory of the router.
static REVISIONS: Kind =
    Kind { name: "revisions of its configuration", magic: &[], is_foreign: false };

/// Documents, in the router's own file and elsewhere.
pub(crate) static DOCUMENT: Kind = Kind { name: "a configuration", magic: &[], is_foreign: false };

/// Reads a configuration file.
///
/// # Errors
/// If it is not a regular file, is too long, or is not text.
pub fn read(path: &Path) -> Result<String, FileError> {
    thalweg_files::read_text(path, MAX_TEXT as u64)
}

/// Replaces a file as a whole; a symbolic link is replaced, not followed.
///
/// # Errors
/// If the system fails; the old file is unchanged then.
pub fn write(path: &Path, text: &str) -> Result<(), FileError> {
    thalweg_files::replace(path, text.as_bytes())
}

/// Writes the content of a file that has the old one still.
fn prepare(path: &Path, text: &str) -> Result<Replacement, FileError> {
    let mut new = Replacement::new(path)?;
    new.write_all(text.as_bytes()).map_err(at("write", path))?;
    new.sync()?;
    Ok(new)
}

/// The directory of a file's revisions.
fn revisions(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".revisions");
    name.into()
}

impl Store {
    /// Stores the configuration in a file, which need not exist yet.
    pub fn new(file: impl Into<PathBuf>) -> Store {
        let file = file.into();
        let file = std::path::absolute(&file).unwrap_or(file);
        let reserved = [
            client::reserve_own(&file, &DOCUMENT),
            client::reserve_own(&revisions(&file), &REVISIONS),
        ];
        Store { file, saving: Arc::default(), _reserved: Arc::new(reserved) }
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns true if `path` leads to the file, also by links.
    pub fn is_at(&self, path: &Path) -> bool {
        let resolved = |p: &Path| fs::canonicalize(p).or_else(|_| std::path::absolute(p)).ok();
        resolved(path) == resolved(&self.file)
    }

    /// The last saved text; `None` if there is no file yet.
    ///
    /// # Errors
    /// If the file exists and cannot be read.
    pub fn saved(&self) -> Result<Option<String>, FileError> {
        match read(&self.file) {
            Err(e) if e.is_missing() => Ok(None),
            other => other.map(Some),
        }
    }

    fn dir(&self) -> PathBuf {
        revisions(&self.file)
    }

    /// Returns true if the file's text was edited by hand: it is not that of the last revision.
    fn is_edited(text: &str, revisions: &[Revision]) -> bool {
        // A revision that cannot be read is another text in any case.
        let last = revisions.first().and_then(|r| read(&r.path).ok());
        last.as_deref() != Some(text)
    }

    /// Returns the texts to roll back to, by the number of steps back: revisions, latest first,
    /// after the file itself if that was edited by hand.
    ///
    /// # Errors
    /// If the file or the directory exists and cannot be read.
    pub fn history(&self) -> Result<Vec<Revision>, FileError> {
        let mut all = self.revisions()?;
        if self.saved()?.is_some_and(|text| Store::is_edited(&text, &all)) {
            let saved = fs::metadata(&self.file).ok().and_then(|m| m.modified().ok());
            all.insert(0, Revision { path: self.file.clone(), number: None, saved });
        }
        Ok(all)
    }

    /// Revisions, latest first.
    ///
    /// # Errors
    /// If the directory exists and cannot be read.
    fn revisions(&self) -> Result<Vec<Revision>, FileError> {
        let dir = self.dir();
        let entries = match fs::read_dir(&dir) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(at("read", &dir)(e)),
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry.map_err(at("read", &dir))?;
            let name = entry.file_name();
            let number: Option<u64> =
                name.to_str().and_then(|n| n.strip_suffix(".yaml")?.parse().ok());
            if let Some(number) = number {
                let saved = entry.metadata().ok().and_then(|m| m.modified().ok());
                all.push(Revision { path: entry.path(), number: Some(number), saved });
            }
        }
        all.sort_by_key(|r| std::cmp::Reverse(r.number));
        Ok(all)
    }

    /// Text of the revision `back` steps before the last, as in the [history](Store::history);
    /// `None` if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn revision(&self, back: usize) -> Result<Option<String>, FileError> {
        Ok(self.found(back)?.map(|(_, text)| text))
    }

    /// The same with which revision it is.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn found(&self, back: usize) -> Result<Option<(Revision, String)>, FileError> {
        let revision = self.history()?.into_iter().nth(back);
        revision.map(|r| Ok((r.clone(), read(&r.path)?))).transpose()
    }

    /// The saved texts that can be read, latest first, each with the name of its file; not the file
    /// itself.
    pub fn earlier(&self) -> impl Iterator<Item = (String, String)> {
        let all = self.revisions().unwrap_or_default().into_iter();
        all.filter_map(|r| Some((r.path.display().to_string(), read(&r.path).ok()?)))
    }

    /// Saves a text; returns whether it differs from the current one.
    ///
    /// # Errors
    /// If the system fails; the previous text is unchanged then.
    pub fn save(&self, text: &str) -> Result<bool, FileError> {
        // The lock guards files, which another thread's panic does not change.
        let _alone = self.saving.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.saved()?;
        if before.as_deref() == Some(text) {
            return Ok(false);
        }
        let dir = self.dir();
        thalweg_files::check_directory(&self.file)?;
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(at("make", &dir)(e)),
            _ => {}
        }
        let revisions = self.revisions()?;
        let first = revisions.first().and_then(|r| r.number).map_or(1, |n| n + 1);
        // A text edited by hand must not be lost.
        let edited = before.as_deref().filter(|b| Store::is_edited(b, &revisions));
        let path_of = |number: u64| dir.join(format!("{number:06}.yaml"));
        let mut edited_path = None;
        let mut save_file = || {
            let mut number = first;
            if let Some(edited) = edited {
                write(&path_of(number), edited)?;
                edited_path = Some(path_of(number));
                number += 1;
            }
            // The user who started the router named this file: a link to another place is kept.
            let file = fs::canonicalize(&self.file).unwrap_or_else(|_| self.file.clone());
            // Both are on disk before either has its name. The file comes first: a text that was
            // not saved must not be there to roll back to, even if the router is killed in between.
            let (new, revision) = (prepare(&file, text)?, prepare(&path_of(number), text)?);
            new.commit()?;
            Ok(revision)
        };
        let saved: Result<Replacement, FileError> = save_file();
        if let (Err(_), Some(path)) = (&saved, &edited_path) {
            let _ = fs::remove_file(path);
        }
        if let Err(e) = saved?.commit() {
            // Saving the next text makes a revision of it.
            tracing::warn!("configuration: saved, but not as a revision: {e}");
        }
        for old in self.revisions()?.iter().skip(KEPT) {
            if let Err(e) = fs::remove_file(&old.path) {
                tracing::warn!("configuration: cannot remove {}: {e}", old.path.display());
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::new(dir.path().join("thalweg.yaml"));
        (dir, store)
    }

    #[test]
    fn revisions_are_counted_backwards() {
        let (_dir, store) = store();
        assert_eq!((store.saved().unwrap(), store.revision(0).unwrap()), (None, None));
        for text in ["a", "b", "c"] {
            assert!(store.save(text).unwrap());
        }
        assert!(!store.save("c").unwrap());
        let back = |n| store.revision(n).unwrap();
        assert_eq!([back(0), back(1), back(2)].map(Option::unwrap), ["c", "b", "a"]);
        assert_eq!(back(3), None);
    }

    #[test]
    fn an_edited_file_is_a_revision() {
        let (_dir, store) = store();
        fs::write(store.file(), "by hand").unwrap();
        store.save("a").unwrap();
        assert_eq!(store.revision(1).unwrap().as_deref(), Some("by hand"));
        fs::write(store.file(), "again").unwrap();
        assert_eq!(store.revision(0).unwrap().as_deref(), Some("again"));
        assert_eq!(store.revision(1).unwrap().as_deref(), Some("a"));
        store.save("b").unwrap();
        let back = |n| store.revision(n).unwrap().unwrap();
        assert_eq!([back(0), back(1), back(2), back(3)], ["b", "again", "a", "by hand"]);
    }

    #[test]
    fn the_history_is_what_can_be_rolled_back_to() {
        let (_dir, store) = store();
        let texts = || {
            let all = store.history().unwrap();
            let texts: Vec<String> = all.iter().map(|r| read(&r.path).unwrap()).collect();
            for (back, text) in texts.iter().enumerate() {
                assert_eq!(store.revision(back).unwrap().as_ref(), Some(text));
            }
            assert_eq!(store.revision(texts.len()).unwrap(), None);
            (texts.join(" "), all.iter().filter(|r| r.number.is_none()).count())
        };
        assert_eq!(texts(), (String::new(), 0));
        fs::write(store.file(), "first").unwrap();
        assert_eq!(texts(), ("first".into(), 1));
        store.save("a").unwrap();
        store.save("b").unwrap();
        assert_eq!(texts(), ("b a first".into(), 0));
        fs::write(store.file(), "edited").unwrap();
        assert_eq!(texts(), ("edited b a first".into(), 1));
        // The last revision is the last that was saved, also if the file is lost.
        fs::remove_file(store.file()).unwrap();
        assert_eq!(texts(), ("b a first".into(), 0));
    }

    #[test]
    fn a_path_of_the_file_is_known() {
        let (dir, store) = store();
        assert!(store.is_at(&dir.path().join("thalweg.yaml")));
        fs::write(store.file(), "").unwrap();
        assert!(store.is_at(&dir.path().join("./thalweg.yaml")));
        assert!(!store.is_at(&dir.path().join("other.yaml")));
    }

    #[test]
    fn old_revisions_are_removed_and_files_are_private() {
        let (_dir, store) = store();
        for i in 0..KEPT + 5 {
            store.save(&i.to_string()).unwrap();
        }
        let revisions = store.revisions().unwrap();
        assert_eq!(revisions.len(), KEPT);
        for path in [store.file(), &revisions[0].path] {
            assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(fs::metadata(store.dir()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn special_files_are_refused() {
        let (dir, store) = store();
        assert!(read(dir.path()).unwrap_err().to_string().contains("not a regular file"));
        assert!(read(Path::new("/dev/zero")).is_err());
        let lost = Store::new(dir.path().join("no/such/dir/x.yaml"));
        let error = lost.save("a").unwrap_err().to_string();
        assert!(error.contains("no such directory; `mkdir -p "), "{error}");
        drop(store);
    }

    #[test]
    fn a_text_that_cannot_be_saved_leaves_no_revision() {
        let (_dir, store) = store();
        // Revisions can be written, the file itself cannot.
        std::os::unix::fs::symlink("/proc/sys/kernel/ostype", store.file()).unwrap();
        assert!(store.save("b").is_err());
        assert_eq!(store.revisions().unwrap().len(), 0);
        assert_eq!(store.saved().unwrap().unwrap(), "Linux\n");
    }

    /// Killed between the two, the router has the new text, which no revision has yet.
    #[test]
    fn a_file_without_its_revision_is_the_last_one_saved() {
        let (_dir, store) = store();
        store.save("a").unwrap();
        let revision = prepare(&store.dir().join("000002.yaml"), "b").unwrap();
        prepare(store.file(), "b").unwrap().commit().unwrap();
        drop(revision);
        let back = |n| store.revision(n).unwrap();
        assert_eq!([back(0), back(1), back(2)].map(Option::unwrap_or_default), ["b", "a", ""]);
        store.save("c").unwrap();
        assert_eq!([back(0), back(1), back(2)].map(Option::unwrap), ["c", "b", "a"]);
    }

    #[test]
    fn saving_at_once_uses_different_numbers() {
        let (_dir, store) = store();
        std::thread::scope(|scope| {
            for n in 0..8 {
                let store = &store;
                scope.spawn(move || store.save(&format!("text {n}")).unwrap());
            }
        });
        let revisions = store.revisions().unwrap();
        let numbers: Vec<u64> = revisions.iter().filter_map(|r| r.number).rev().collect();
        assert_eq!(numbers, (1..=8).collect::<Vec<_>>());
        assert_eq!(Some(read(&revisions[0].path).unwrap()), store.saved().unwrap());
    }
}
