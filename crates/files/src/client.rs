//! Files that clients of the router's sockets name.
//!
//! The router is often root, and members of its sockets' group are not. Errors about a file that
//! not everyone may read therefore do not [quote](Text::explain) it, and files are written only to
//! places that the router's user [allows](allow_below):
//!
//! - anything directly in `/tmp`, where names are everyone's,
//! - anything below the directories that it names,
//! - except for packets and requests that others have sent, anything below those of the router.
//!
//! Files whose bytes clients get to see, such as captures that are sent again, are [read
//! ](read_shown) only if everyone may read them, or below the directories that the user names.
//!
//! No link is followed on the way there, and a file is replaced only by one of its kind, or
//! appended to if it is one. Files that the router itself writes to later are [reserved](reserve)
//! by what says so: a setting, or a capture that runs. A thread that writes for it has a
//! [`Lease`], which ends with the setting at once, whatever the thread does then.

use crate::write::{PASSING, Spot, directory, fill, no_directory};
use crate::{FileError, Replacement, at, is_private, open, read_all, wrong};
use rustix::fs::{CWD, Mode, OFlags};
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Directory in which everyone may make files, and clients may name some.
pub const FOR_ALL: &str = "/tmp";

/// Replacement in errors for a text that not everyone may read.
pub const NOT_SHOWN: &str = "the error is not shown, since not everyone may read the file";

/// Directories below which clients may name files. A process that serves no clients has none, and
/// does not restrict.
static ALLOWED: OnceLock<Allowed> = OnceLock::new();

/// Directories below which clients may name files.
#[derive(Clone, Debug, Default)]
pub struct Allowed {
    /// Directories of the router, which has files of its own there.
    pub own: Vec<PathBuf>,
    /// Directories named by the user who started it.
    pub named: Vec<PathBuf>,
}

/// Lets clients name files below these directories and in [`FOR_ALL`], and nowhere else. Only the
/// first call in a process has an effect.
pub fn allow_below(directories: Allowed) {
    let absolute = |dir: PathBuf| std::path::absolute(&dir).unwrap_or(dir);
    let all = |dirs: Vec<PathBuf>| dirs.into_iter().map(absolute).collect();
    let Allowed { own, named } = directories;
    let _ = ALLOWED.set(Allowed { own: all(own), named: all(named) });
}

/// A kind of files that clients write.
#[derive(Debug)]
pub struct Kind {
    /// Name in words, for errors: `a capture`.
    pub name: &'static str,
    /// First bytes of such a file; empty if they say nothing.
    pub magic: &'static [&'static [u8]],
    /// True if it holds what others have sent; such files are not where the router has its own.
    pub is_foreign: bool,
}

/// Finds the place of a file, and opens its directory.
fn place(path: &Path, kind: &Kind, allowed: Option<&Allowed>) -> Result<Spot, FileError> {
    let Some(allowed) = allowed else { return Spot::own(path) };
    let path = std::path::absolute(path).map_err(at("write", path))?;
    let dir = directory(&path);
    let own = allowed.own.iter().filter(|_| !kind.is_foreign);
    let allowed: Vec<&PathBuf> = own.chain(&allowed.named).collect();
    let below = allowed.iter().find_map(|top| Some((top, dir.strip_prefix(top).ok()?)));
    let walked = match below {
        Some((top, rest)) => walk(top, rest),
        None if dir == Path::new(FOR_ALL) => walk(dir, Path::new("")),
        None => Err(wrong(elsewhere(kind, &allowed))),
    };
    let missing = |e: io::Error| match e.kind() {
        ErrorKind::NotFound => no_directory(dir),
        _ => at("write in", dir)(e),
    };
    Spot::in_directory(walked.map_err(missing)?, &path)
}

fn elsewhere(kind: &Kind, allowed: &[&PathBuf]) -> String {
    let all = allowed.iter().map(|dir| format!(", below {}", dir.display())).collect::<String>();
    format!(
        "clients of the router write {} directly in {FOR_ALL}{all}; `unix {{ files DIRECTORY }}` \
         of the start allows more",
        kind.name
    )
}

/// Opens a directory below another one, by directories only.
fn walk(top: &Path, rest: &Path) -> io::Result<OwnedFd> {
    let mut dir = rustix::fs::openat(CWD, top, PASSING, Mode::empty())?;
    for part in rest.components() {
        let Component::Normal(name) = part else { return Err(wrong("`..` is not taken here")) };
        let next = rustix::fs::openat(&dir, name, PASSING | OFlags::NOFOLLOW, Mode::empty());
        dir = next.map_err(|e| match e {
            rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP => {
                wrong(format!("`{}` is not a directory, or a link to one", name.display()))
            }
            e => e.into(),
        })?;
    }
    Ok(dir)
}

fn spot(path: &Path, kind: &Kind) -> Result<Spot, FileError> {
    let full = std::path::absolute(path).map_err(at("write", path))?;
    match taken(&full, |by| by.kind.name != kind.name) {
        Some(name) => Err(at("write", path)(wrong(is_taken(name)))),
        None => place(path, kind, ALLOWED.get()),
    }
}

fn is_taken(name: &str) -> String {
    format!("the router writes {name} there: name another file")
}

/// A file, or all below a directory, that is for one kind of content.
#[derive(Debug)]
struct Entry {
    at: PathBuf,
    kind: &'static Kind,
    /// Nothing else of its kind is written there either.
    is_alone: bool,
}

/// Files that parts of the router write to later.
static RESERVED: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn reserved() -> MutexGuard<'static, Vec<Entry>> {
    // No list is left half changed.
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the kind of what has reserved a path, if one that is in the way has.
fn taken(full: &Path, is_in_the_way: impl Fn(&Entry) -> bool) -> Option<&'static str> {
    let all = reserved();
    let by = all.iter().find(|by| full.starts_with(&by.at) && is_in_the_way(by));
    by.map(|by| by.kind.name)
}

/// A file, or all below a directory, that is for one kind of content as long as this exists.
#[derive(Debug)]
pub struct Reserved {
    at: PathBuf,
    kind: &'static Kind,
    is_alone: bool,
    lease: Lease,
}

/// The right to write to a file for what has [reserved](Reserved) it, as long as that lasts.
#[derive(Clone, Debug, Default)]
pub struct Lease(Arc<Mutex<bool>>);

impl Lease {
    fn has_ended(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the file is still reserved. Only work done within the lease keeps it so.
    #[must_use]
    pub fn is_held(&self) -> bool {
        !*self.has_ended()
    }

    /// Does something short that gives the file's name to new content; `None` if the file is not
    /// reserved any more. The end of the reservation waits for that.
    pub(crate) fn with<T>(&self, job: impl FnOnce() -> T) -> Option<T> {
        let has_ended = self.has_ended();
        if *has_ended { None } else { Some(job()) }
    }
}

/// Has no client write another kind of content to a file that the router will write to later. The
/// same kind may be reserved several times.
///
/// # Errors
/// If clients may not write there, or it is reserved for another kind, or by one
/// [alone](reserve_alone).
pub fn reserve(path: &Path, kind: &'static Kind) -> Result<Reserved, FileError> {
    claim(path, kind, false)
}

/// Like [`reserve`], for a file that is written as a whole, so that two would overwrite each other.
///
/// # Errors
/// If clients may not write there, or it is reserved already.
pub fn reserve_alone(path: &Path, kind: &'static Kind) -> Result<Reserved, FileError> {
    claim(path, kind, true)
}

fn claim(path: &Path, kind: &'static Kind, is_alone: bool) -> Result<Reserved, FileError> {
    spot(path, kind)?;
    let full = std::path::absolute(path).map_err(at("write", path))?;
    match taken(&full, |by| is_alone || by.is_alone) {
        Some(name) => Err(at("write", path)(wrong(is_taken(name)))),
        None => Ok(enter(full, kind, is_alone)),
    }
}

/// Like [`reserve`], for a file that no client has named.
#[must_use]
pub fn reserve_own(path: &Path, kind: &'static Kind) -> Reserved {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    enter(full, kind, false)
}

fn enter(at: PathBuf, kind: &'static Kind, is_alone: bool) -> Reserved {
    reserved().push(Entry { at: at.clone(), kind, is_alone });
    Reserved { at, kind, is_alone, lease: Lease::default() }
}

impl Reserved {
    /// Returns the right of a writer, which ends with this.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        // The lease ends before the name is free: a late writer would replace the next file.
        *self.lease.has_ended() = true;
        let mut all = reserved();
        let is_own = |by: &Entry| {
            by.at == self.at && by.kind.name == self.kind.name && by.is_alone == self.is_alone
        };
        let own = all.iter().position(is_own);
        own.map(|at| all.swap_remove(at));
    }
}

/// Checks that clients may name a file, e.g. of a socket, that something else opens.
///
/// # Errors
/// If it is elsewhere.
pub fn check(path: &Path, kind: &Kind) -> Result<(), FileError> {
    spot(path, kind).map(drop)
}

/// Opens a file to append to it, and creates it if it does not exist.
///
/// # Errors
/// The errors of [`crate::append`]; if clients may not write there, or the file is another user's
/// or of another kind.
pub fn append(path: &Path, kind: &Kind) -> Result<File, FileError> {
    append_at(&spot(path, kind)?, kind)
}

fn append_at(spot: &Spot, kind: &Kind) -> Result<File, FileError> {
    let file = spot.open(OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
    let failed = at("write", spot.path());
    let meta = match file.metadata() {
        Ok(meta) => meta,
        Err(e) => return Err(failed(e)),
    };
    // Others may have made it in a directory for all, to read it or as a second name of a file.
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Err(failed(wrong(format!("it belongs to another user (uid {})", meta.uid()))));
    }
    if meta.nlink() > 1 {
        return Err(failed(wrong("it has another name elsewhere (a hard link)")));
    }
    let mut first = vec![0; longest(kind)];
    let length = file.read_at(&mut first, 0);
    let is_fine = length.and_then(|length| check_first(&first[..length], kind));
    is_fine.map_err(at("write", spot.path()))?;
    Ok(file)
}

/// Returns the number of first bytes that tell a file of a kind from others; 0 if none do.
fn longest(kind: &Kind) -> usize {
    kind.magic.iter().map(|magic| magic.len()).max().unwrap_or(0)
}

/// Checks by its first bytes that a file is empty or one of a kind.
fn check_first(first: &[u8], kind: &Kind) -> io::Result<()> {
    let is_it = first.is_empty() || kind.magic.iter().any(|magic| first.starts_with(magic));
    let other = || wrong(format!("the file that is there is not {}: remove it first", kind.name));
    if is_it { Ok(()) } else { Err(other()) }
}

/// Creates a file that must not exist, and writes its first bytes.
///
/// # Errors
/// The errors of [`crate::write_new`], and if clients may not write there.
pub fn write_new(path: &Path, kind: &Kind, bytes: &[u8]) -> Result<File, FileError> {
    spot(path, kind)?.write_new(bytes)
}

/// Begins new content for a file that need not exist.
///
/// # Errors
/// The errors of [`Replacement::new`]; if clients may not write there, or a file of another kind is
/// there.
pub fn replacement(path: &Path, kind: &Kind) -> Result<Replacement, FileError> {
    replacement_at(spot(path, kind)?, kind)
}

fn replacement_at(spot: Spot, kind: &Kind) -> Result<Replacement, FileError> {
    let longest = longest(kind);
    // A link is replaced; what it leads to does not matter.
    if longest > 0
        && let Ok(old) = spot.open(OFlags::RDONLY)
    {
        let mut first = Vec::new();
        let read = old.take(longest as u64).read_to_end(&mut first);
        let is_fine = read.and_then(|_| check_first(&first, kind));
        is_fine.map_err(at("write", spot.path()))?;
    }
    Replacement::at(spot)
}

/// Checks that a file can be replaced later, by one of its kind.
///
/// # Errors
/// The errors of [`replacement`].
pub fn check_replaceable(path: &Path, kind: &Kind) -> Result<(), FileError> {
    replacement(path, kind).map(drop)
}

/// Replaces a file as a whole.
///
/// # Errors
/// The errors of [`replacement`].
pub fn replace(path: &Path, kind: &Kind, bytes: &[u8]) -> Result<(), FileError> {
    fill(replacement(path, kind)?, bytes)
}

/// The content of a file that a client named.
#[derive(Debug)]
pub struct Text {
    bytes: Vec<u8>,
    path: PathBuf,
    is_private: bool,
}

/// Reads a file of at most `most` bytes that a client named.
///
/// # Errors
/// The errors of [`crate::read`].
pub fn read(path: &Path, most: u64) -> Result<Text, FileError> {
    let file = open(path)?;
    let is_private = is_private(&file).map_err(at("read", path))?;
    Ok(Text { bytes: read_all(&file, path, most)?, path: path.to_owned(), is_private })
}

/// Reads a file of at most `most` bytes that a client named, and whose bytes it will see.
///
/// # Errors
/// The errors of [`crate::read`]; if not everyone may read the file, and it is not below a
/// directory that the router's user named.
pub fn read_shown(path: &Path, most: u64) -> Result<Vec<u8>, FileError> {
    read_shown_at(path, most, ALLOWED.get())
}

fn read_shown_at(path: &Path, most: u64, allowed: Option<&Allowed>) -> Result<Vec<u8>, FileError> {
    let file = open(path)?;
    let Some(allowed) = allowed.filter(|_| is_private(&file).unwrap_or(true)) else {
        return read_all(&file, path, most);
    };
    drop(file);
    let full = std::path::absolute(path).map_err(at("read", path))?;
    let dir = directory(&full);
    let named = allowed.named.iter().find_map(|top| Some((top, dir.strip_prefix(top).ok()?)));
    let Some((top, rest)) = named else { return Err(at("read", path)(wrong(not_for_all()))) };
    let dir = walk(top, rest).map_err(at("read", path))?;
    let opened = Spot::in_directory(dir, &full)?.open(OFlags::RDONLY);
    read_all(&opened.map_err(|e| FileError { attempt: "read", ..e })?, path, most)
}

fn not_for_all() -> String {
    "not everyone may read it, and what it holds would be shown: `chmod o+r FILE` lets everyone, \
     and `unix { files DIRECTORY }` of the start clients of the router"
        .into()
}

impl Text {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The text.
    ///
    /// # Errors
    /// If it is not UTF-8.
    pub fn text(&self) -> Result<&str, FileError> {
        std::str::from_utf8(&self.bytes).map_err(|e| crate::not_text(&self.path, &self.bytes, e))
    }

    /// True if not everyone may read the file.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// An error about the content for clients: in full, or its place only.
    pub fn explain<'a>(&self, place: &str, error: &'a (impl Display + ?Sized)) -> Cow<'a, str> {
        match self.is_private {
            true => Cow::Owned(format!("{place}: {NOT_SHOWN}")),
            false => Cow::Owned(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    const NOTES: Kind = Kind { name: "notes", magic: &[b"note"], is_foreign: false };
    const PACKETS: Kind = Kind { name: "captures", magic: &[], is_foreign: true };

    /// An allowed directory, and one that is not.
    fn lab() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let (allowed, other) = (dir.path().join("allowed"), dir.path().join("other"));
        fs::create_dir_all(allowed.join("deep")).unwrap();
        fs::create_dir(&other).unwrap();
        (dir, allowed, other)
    }

    fn own(dir: &Path) -> Allowed {
        Allowed { own: vec![dir.to_owned()], ..Allowed::default() }
    }

    fn refused(path: &Path, kind: &Kind, allowed: &Path) -> String {
        place(path, kind, Some(&own(allowed))).unwrap_err().to_string()
    }

    #[test]
    fn what_the_router_writes_to_is_left_to_it() {
        static OTHER: Kind = Kind { name: "a log", magic: &[], is_foreign: false };
        static SAVED: Kind = Kind { name: "a file of sessions", magic: &[], is_foreign: false };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let twice = [reserve(&path, &SAVED).unwrap(), reserve(&path, &SAVED).unwrap()];
        let [first, second] = twice;
        drop(first);
        for refused in [
            replace(&path, &OTHER, b"x").map(drop),
            reserve(&path.join("below"), &OTHER).map(drop),
            append(&dir.path().join("./a"), &OTHER).map(drop),
            write_new(&path, &OTHER, b"x").map(drop),
            reserve(&path, &OTHER).map(drop),
        ] {
            let text = refused.unwrap_err().to_string();
            assert!(text.contains("the router writes a file of sessions there"), "{text}");
        }
        replace(&path, &SAVED, b"x").unwrap();
        drop(second);
        let log = crate::Appended::of_client(&path, &OTHER).unwrap();
        assert!(replace(&path, &SAVED, b"x").is_err());
        drop(log);
        replace(&path, &SAVED, b"x").unwrap();
    }

    #[test]
    fn a_name_is_free_as_soon_as_nothing_says_otherwise() {
        static LOG: Kind = Kind { name: "a log of clients", magic: &[b"{"], is_foreign: false };
        static SAVED: Kind = Kind { name: "saved states", magic: &[b"state"], is_foreign: false };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let (mut log, reserved) = crate::Appended::of_client(&path, &LOG).unwrap();
        assert!(reserve(&path, &SAVED).is_err());
        // The writer is still there, and has something to write.
        drop(reserved);
        let saved = reserve(&path, &SAVED).unwrap();
        let mut new = replacement(&path, &SAVED).unwrap();
        new.write_all(b"state 1").unwrap();
        assert!(new.commit_for(&saved.lease()).unwrap());
        log.write_all(b"{}\n").unwrap();
        log.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"state 1");
        // The other way round: a file that is being written when its name is given to a log.
        let mut late = replacement(&path, &SAVED).unwrap();
        late.write_all(b"state 2").unwrap();
        let lease = saved.lease();
        drop(saved);
        fs::remove_file(&path).unwrap();
        let (mut log, _reserved) = crate::Appended::of_client(&path, &LOG).unwrap();
        assert!(!late.commit_for(&lease).unwrap());
        log.write_all(b"{}\n").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}\n");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_written_as_a_whole_is_not_written_twice() {
        static WHOLE: Kind = Kind { name: "a whole", magic: &[], is_foreign: false };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let alone = reserve_alone(&path, &WHOLE).unwrap();
        assert!(reserve_alone(&path, &WHOLE).is_err() && reserve(&path, &WHOLE).is_err());
        replace(&path, &WHOLE, b"x").unwrap();
        drop(alone);
        let shared = reserve(&path, &WHOLE).unwrap();
        assert!(reserve_alone(&path, &WHOLE).is_err());
        drop(shared);
        reserve_alone(&path, &WHOLE).unwrap();
    }

    #[test]
    fn a_file_of_another_kind_is_not_appended_to() {
        let (_dir, allowed, _) = lab();
        let path = allowed.join("a");
        fs::write(&path, "root:x:0:0").unwrap();
        let text = append(&path, &NOTES).unwrap_err().to_string();
        assert!(text.ends_with("is not notes: remove it first"), "{text}");
        fs::write(&path, "").unwrap();
        append(&path, &NOTES).unwrap().write_all(b"note 1").unwrap();
        append(&path, &NOTES).unwrap().write_all(b", 2").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"note 1, 2");
    }

    #[test]
    fn files_are_written_below_allowed_directories_only() {
        let (_dir, allowed, other) = lab();
        for path in [allowed.join("a"), allowed.join("deep/a"), "/tmp/a".into()] {
            place(&path, &NOTES, Some(&own(&allowed))).unwrap();
        }
        for path in [
            other.join("a"),
            allowed.join("../other/a"),
            allowed.clone(),
            "/etc/cron.d/a".into(),
            "/tmp/../etc/a".into(),
            "/tmp".into(),
        ] {
            let text = refused(&path, &NOTES, &allowed);
            let fits = text.contains("directly in /tmp, below ") || text.contains("`..`");
            assert!(fits, "{}: {text}", path.display());
        }
    }

    #[test]
    fn what_others_have_sent_is_not_kept_where_the_router_has_its_files() {
        let (_dir, allowed, other) = lab();
        place(Path::new("/tmp/a"), &PACKETS, Some(&own(&allowed))).unwrap();
        let text = refused(&allowed.join("a"), &PACKETS, &allowed);
        assert!(text.contains("clients of the router write captures directly in /tmp; "), "{text}");
        let named = Allowed { named: vec![other.clone()], ..own(&allowed) };
        place(&other.join("a"), &PACKETS, Some(&named)).unwrap();
    }

    #[test]
    fn no_link_leads_out_of_an_allowed_directory() {
        let (_dir, allowed, other) = lab();
        symlink(&other, allowed.join("way")).unwrap();
        let text = refused(&allowed.join("way/a"), &NOTES, &allowed);
        assert!(text.contains("`way` is not a directory"), "{text}");
    }

    #[test]
    fn a_missing_directory_is_named() {
        let (_dir, allowed, _) = lab();
        let text = refused(&allowed.join("none/a"), &NOTES, &allowed);
        assert!(text.contains("no such directory; `mkdir -p "), "{text}");
    }

    #[test]
    fn a_file_is_replaced_by_one_of_its_kind_only() {
        let (_dir, allowed, _) = lab();
        let path = allowed.join("a");
        replace(&path, &NOTES, b"note 1").unwrap();
        replace(&path, &NOTES, b"note 2").unwrap();
        fs::write(&path, "root:x:0:0").unwrap();
        let text = replace(&path, &NOTES, b"note 3").unwrap_err().to_string();
        assert!(text.ends_with("is not notes: remove it first"), "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"root:x:0:0");
        fs::write(&path, "").unwrap();
        replace(&path, &NOTES, b"note 4").unwrap();
    }

    #[test]
    fn a_file_with_a_second_name_is_not_appended_to() {
        let (_dir, allowed, other) = lab();
        let (victim, name) = (other.join("victim"), allowed.join("name"));
        fs::write(&victim, "mine").unwrap();
        fs::hard_link(&victim, &name).unwrap();
        assert!(append(&name, &NOTES).unwrap_err().to_string().contains("hard link"));
        let own = allowed.join("own");
        append(&own, &NOTES).unwrap().write_all(b"note a").unwrap();
        append(&own, &NOTES).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(&own).unwrap(), b"note ab");
    }

    #[test]
    fn only_files_for_everyone_are_shown() {
        let (_dir, allowed, other) = lab();
        let named = Allowed { named: vec![other.clone()], ..own(&allowed) };
        let private = |path: &Path| {
            fs::write(path, "secret").unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        let (file, shown, link) = (allowed.join("a"), other.join("a"), other.join("link"));
        private(&file);
        private(&shown);
        symlink(&file, &link).unwrap();
        for path in [&file, &link, &other.join("../allowed/a")] {
            let error = read_shown_at(path, 100, Some(&named)).unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
        let error = read_shown_at(&file, 100, Some(&named)).unwrap_err().to_string();
        assert!(error.contains("not everyone may read it"), "{error}");
        assert_eq!(read_shown_at(&shown, 100, Some(&named)).unwrap(), b"secret");
        // A process without clients reads what its user may.
        assert_eq!(read_shown_at(&file, 100, None).unwrap(), b"secret");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(read_shown_at(&file, 100, Some(&named)).unwrap(), b"secret");
    }

    #[test]
    fn only_files_for_everyone_are_quoted() {
        let (_dir, allowed, _) = lab();
        let path = allowed.join("a");
        fs::write(&path, "secret").unwrap();
        for (mode, text) in [(0o600, NOT_SHOWN), (0o640, NOT_SHOWN), (0o644, "`secret' is wrong")] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let read = read(&path, 100).unwrap();
            let error = read.explain("line 1", "`secret' is wrong");
            assert!(error.ends_with(text), "{error}");
            assert_eq!(error.contains("secret"), mode == 0o644);
        }
    }
}
