//! Things outside the router that settings name and that may come later.
//!
//! A command that fails as such a thing is not there says so by [`absent`]. Settings that wait for
//! one have it looked for by [`await_all`]: a thread sleeps until something is made in the
//! directories that lead there, or a file system is mounted, and has [`Came`] published. Devices
//! are looked for by their drivers.

use crate::Came;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::fs::statfs;
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use thalweg_graph::{Control, Remote};

/// File system of namespaces (`NSFS_MAGIC`, statfs(2)).
const NSFS: u64 = 0x6e73_6673;

/// Most things that are looked for at once. A try for one of them is one for all.
const MOST: usize = 1024;

/// Pause after a change, so that a directory in which much happens does not keep a processor busy.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// Something outside the router that is not there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Absent {
    /// A network device of the kernel, by its name.
    Device(String),
    /// A network namespace: its name, and the file that it is bound to.
    Namespace(String, PathBuf),
    /// A directory.
    Directory(PathBuf),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absent::Device(name) => write!(f, "device {name}"),
            Absent::Namespace(name, _) => write!(f, "network namespace {name}"),
            Absent::Directory(path) => write!(f, "directory {}", path.display()),
        }
    }
}

impl Absent {
    /// Returns the directory that a file of this name would be in, if there is none.
    pub fn directory_of(file: &Path) -> Option<Absent> {
        let dir = file.parent().filter(|dir| !dir.as_os_str().is_empty())?;
        let is_missing = dir.metadata().is_err_and(|e| e.kind() == io::ErrorKind::NotFound);
        is_missing.then(|| Absent::Directory(dir.to_owned()))
    }

    /// Returns the file to look for.
    fn path(&self) -> Option<&Path> {
        match self {
            Absent::Device(_) => None,
            Absent::Namespace(_, path) | Absent::Directory(path) => Some(path),
        }
    }

    /// Returns whether it is there by now. A namespace is bound to its file after that was made.
    fn is_there(&self) -> bool {
        match self {
            Absent::Device(_) => false,
            Absent::Namespace(_, path) => statfs(path).is_ok_and(|s| s.f_type as u64 == NSFS),
            Absent::Directory(path) => path.is_dir(),
        }
    }
}

/// Things that are not there.
#[derive(Default)]
struct Things {
    /// The one that a command failed for last.
    last: Option<Absent>,
    /// Things that are waited for; true once their coming was announced.
    awaited: BTreeMap<Absent, bool>,
    /// Ends the thread that looks for them when it is closed.
    looking: Option<OwnedFd>,
}

pub(crate) fn init(c: &mut Control) {
    c.insert(Things::default());
}

/// Notes that a command fails because something is missing.
pub fn absent(c: &Control, what: Absent) {
    c.state::<Things>().borrow_mut().last = Some(what);
}

/// Returns what the last failed command reported to be absent, once.
pub fn take_absent(c: &Control) -> Option<Absent> {
    c.state::<Things>().borrow_mut().last.take()
}

/// Publishes [`Came`] when one of these comes; earlier ones are replaced. A thing that came and did
/// not help is announced again only if it goes and comes again.
pub fn await_all(c: &mut Control, all: BTreeSet<Absent>) {
    let things = c.state::<Things>();
    let mut things = things.borrow_mut();
    let all = all.into_iter().filter(|a| a.path().is_some()).take(MOST);
    let before = std::mem::take(&mut things.awaited);
    things.awaited = all
        .map(|a| {
            let came = before.get(&a).is_some_and(|came| *came);
            (a, came)
        })
        .collect();
    if things.awaited.keys().eq(before.keys()) {
        return;
    }
    things.looking = None;
    if things.awaited.is_empty() {
        return;
    }
    let looks = things.awaited.iter().map(|(a, came)| (a.clone(), *came)).collect();
    match start(looks, c.remote()) {
        Ok(end) => things.looking = Some(end),
        Err(e) => tracing::warn!("namespaces and directories that come are seen late: {e}"),
    }
}

/// Starts a thread that looks for things; returns what ends it.
fn start(mut looks: Vec<(Absent, bool)>, remote: Remote) -> io::Result<OwnedFd> {
    let (until, end) = pipe_with(PipeFlags::CLOEXEC)?;
    // Binding a namespace to its file is no event of a directory, but one of mounts.
    let mounts = File::open("/proc/self/mountinfo").ok();
    let look = move || {
        while let Ok(watch) = watch(&looks) {
            let come = news(&mut looks);
            if !come.is_empty() && !remote.submit(move |c| announce(c, &come)) {
                return;
            }
            if !sleep(&watch, mounts.as_ref(), &until) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("awaited".into()).spawn(look)?;
    Ok(end)
}

/// Returns what was not there at the last look and is now.
fn news(looks: &mut [(Absent, bool)]) -> Vec<Absent> {
    let mut come = Vec::new();
    for (what, was_there) in looks {
        let is_there = what.is_there();
        if is_there && !*was_there {
            come.push(what.clone());
        }
        *was_there = is_there;
    }
    come
}

fn announce(c: &mut Control, come: &[Absent]) {
    let things = c.state::<Things>();
    for what in come {
        if let Some(came) = things.borrow_mut().awaited.get_mut(what) {
            *came = true;
        }
        tracing::info!("{what} is there");
    }
    c.publish(Came);
}

/// Watches the directories that lead to things, as far as they exist.
fn watch(looks: &[(Absent, bool)]) -> io::Result<OwnedFd> {
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    let names = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE;
    let gone = WatchFlags::MOVED_FROM | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
    for path in looks.iter().filter_map(|(what, _)| what.path()) {
        for dir in path.ancestors().skip(1) {
            let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
            let flags = names | gone | WatchFlags::ONLYDIR;
            if inotify::add_watch(&watch, dir, flags).is_ok() {
                break;
            }
        }
    }
    Ok(watch)
}

/// Sleeps until something changes. Returns false if nobody waits any more.
fn sleep(watch: &OwnedFd, mounts: Option<&File>, until: &OwnedFd) -> bool {
    let mut fds = vec![PollFd::new(until, PollFlags::IN), PollFd::new(watch, PollFlags::IN)];
    fds.extend(mounts.map(|mounts| PollFd::new(mounts, PollFlags::PRI)));
    let _ = poll(&mut fds, None);
    let mut end = [PollFd::new(until, PollFlags::IN)];
    let _ = poll(&mut end, Some(&PAUSE));
    end[0].revents().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn directories_are_missed_until_they_are_there() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/log");
        let what = Absent::directory_of(&file).unwrap();
        assert_eq!(what, Absent::Directory(dir.path().join("a/b")));
        let mut looks = vec![(what.clone(), false)];
        assert!(news(&mut looks).is_empty());
        fs::create_dir_all(dir.path().join("a/b")).unwrap();
        assert_eq!(news(&mut looks), [what]);
        assert!(news(&mut looks).is_empty(), "once");
        assert_eq!(Absent::directory_of(&file), None);
        fs::remove_dir(dir.path().join("a/b")).unwrap();
        assert!(news(&mut looks).is_empty());
        fs::create_dir(dir.path().join("a/b")).unwrap();
        assert_eq!(news(&mut looks).len(), 1, "again");
    }

    #[test]
    fn a_change_on_the_way_wakes() {
        let dir = tempfile::tempdir().unwrap();
        let (until, _end) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let looks = [(Absent::Directory(dir.path().join("a/b")), false)];
        for step in ["a", "a/b"] {
            let watch = watch(&looks).unwrap();
            fs::create_dir(dir.path().join(step)).unwrap();
            assert!(sleep(&watch, None, &until));
        }
    }

    #[test]
    fn a_file_is_no_namespace() {
        let of = |path: &str| Absent::Namespace("x".into(), path.into()).is_there();
        assert!(!of("/proc/self/status") && !of("/no/such/file"));
        assert!(of("/proc/self/ns/net"));
    }
}
