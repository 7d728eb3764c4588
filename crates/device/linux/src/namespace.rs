//! Network namespaces, as `ip netns` and VPP name them.

use rustix::fs::{Mode, OFlags, fstat, fstatfs, open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::thread;

/// The directory in which `ip netns` keeps names.
const NAMES: &str = "/run/netns";
/// File system of namespaces (`NSFS_MAGIC`, statfs(2)).
const NSFS: u64 = 0x6e73_6673;

/// A namespace that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// No namespace has this name.
    #[error("no network namespace `{name}': there is no {}; `ip netns add' makes one", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file looked for.
        path: PathBuf,
    },
    /// The file is not a namespace.
    #[error("{} is not a network namespace", .0.display())]
    NotOne(PathBuf),
    /// The kernel refuses to enter it.
    #[error(
        "not allowed to enter the network namespace `{0}': this needs CAP_SYS_ADMIN (run as root)"
    )]
    Permission(String),
    /// Another system call failed.
    #[error("cannot {what} the network namespace `{name}'")]
    System {
        /// The attempt.
        what: &'static str,
        /// The name.
        name: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// Number of a namespace, which no other one has while it exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamespaceId(u64);

impl NamespaceId {
    /// The namespace of the calling thread; 0 if the system does not say.
    pub fn own() -> NamespaceId {
        let file =
            open("/proc/thread-self/ns/net", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
        file.ok()
            .and_then(|file| fstat(&file).ok())
            .map_or(NamespaceId(0), |s| NamespaceId(s.st_ino))
    }

    /// Returns the inode number that it is known by.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// A network namespace, which exists as long as this.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    file: OwnedFd,
    id: NamespaceId,
}

/// Returns the file of a namespace: a name of `ip netns`, `pid:N` for that of a process, or a path.
fn path(name: &str) -> PathBuf {
    match name.strip_prefix("pid:") {
        _ if name.starts_with('/') => PathBuf::from(name),
        Some(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        None => PathBuf::from(format!("{NAMES}/{name}")),
    }
}

impl Namespace {
    /// Opens the namespace of a name: one of `ip netns`, `pid:N` for that of a process, or a path.
    ///
    /// # Errors
    /// If there is none, or the file is none.
    pub fn open(name: &str) -> Result<Namespace, NamespaceError> {
        let at = path(name);
        let known = !name.is_empty() && (name.starts_with('/') || !name.contains('/'));
        // A FIFO would hold the caller, and a device might do something: only a namespace is opened
        // for use.
        let file = known.then(|| open(&at, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()));
        let file = match file {
            Some(Ok(file)) => file,
            Some(Err(e)) if e != rustix::io::Errno::NOENT => {
                let (what, name) = ("open", name.to_owned());
                return Err(NamespaceError::System { what, name, source: e.into() });
            }
            _ => return Err(NamespaceError::Unknown { name: name.to_owned(), path: at }),
        };
        // `ip netns add` makes an empty file first.
        if !fstatfs(&file).is_ok_and(|s| s.f_type as u64 == NSFS) {
            return Err(NamespaceError::NotOne(at));
        }
        let failed = |e: rustix::io::Errno| NamespaceError::System {
            what: "look at",
            name: name.to_owned(),
            source: e.into(),
        };
        let this = format!("/proc/self/fd/{}", file.as_raw_fd());
        let file = open(this, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).map_err(failed)?;
        let id = NamespaceId(fstat(&file).map_err(failed)?.st_ino);
        Ok(Namespace { name: name.to_owned(), file, id })
    }

    /// The name that it was opened by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its number.
    pub fn id(&self) -> NamespaceId {
        self.id
    }

    /// Returns whether its name still leads to it.
    pub fn is_current(&self) -> bool {
        Namespace::open(&self.name).is_ok_and(|now| now.id == self.id)
    }

    /// Moves the calling thread into it; the thread stays there.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn enter(&self) -> Result<(), NamespaceError> {
        let moved = move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network));
        moved.map_err(|e| match e {
            rustix::io::Errno::PERM => NamespaceError::Permission(self.name.clone()),
            rustix::io::Errno::INVAL => NamespaceError::NotOne(path(&self.name)),
            e => {
                NamespaceError::System { what: "enter", name: self.name.clone(), source: e.into() }
            }
        })
    }

    /// Runs a job in it, in a thread of its own, and waits for that.
    ///
    /// # Errors
    /// If the thread does not start or the kernel refuses.
    pub fn run<T: Send>(&self, job: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        let failed = |source| NamespaceError::System {
            what: "start a thread in",
            name: self.name.clone(),
            source,
        };
        thread::scope(|scope| {
            let inside = || self.enter().map(|()| job());
            let thread = thread::Builder::new().name("namespace".into());
            let running = thread.spawn_scoped(scope, inside).map_err(failed)?;
            let panicked = |_| failed(io::Error::other("a job panicked"));
            running.join().map_err(panicked)?
        })
    }

    /// A second handle.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Namespace> {
        Ok(Namespace { name: self.name.clone(), file: self.file.try_clone()?, id: self.id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_files() {
        assert_eq!(path("lab"), PathBuf::from("/run/netns/lab"));
        assert_eq!(path("pid:7"), PathBuf::from("/proc/7/ns/net"));
        assert_eq!(path("/x/y"), PathBuf::from("/x/y"));
    }

    #[test]
    fn the_own_one_is_found_by_path_and_process() {
        let by_path = Namespace::open("/proc/self/ns/net").unwrap();
        let by_process = Namespace::open(&format!("pid:{}", std::process::id())).unwrap();
        assert_eq!(by_path.id(), by_process.id());
        assert_eq!(by_path.id(), NamespaceId::own());
        assert!(by_path.is_current());
    }

    #[test]
    fn mistakes_are_explained() {
        let error = |name: &str| Namespace::open(name).unwrap_err().to_string();
        assert!(error("no-such-one").contains("ip netns add"), "{}", error("no-such-one"));
        assert!(error("pid:0").contains("/proc/0/ns/net"));
        assert!(error("../etc").contains("no network namespace"));
        assert!(error("").contains("no network namespace"));
        assert!(error("/etc/hostname").contains("not a network namespace"));
        assert!(error("/etc").contains("not a network namespace"));
        // Opening one without a writer would not return.
        let fifo = std::env::temp_dir().join(format!("thalweg-fifo-{}", std::process::id()));
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        let said = error(fifo.to_str().unwrap());
        std::fs::remove_file(&fifo).unwrap();
        assert!(said.contains("not a network namespace"), "{said}");
    }
}
