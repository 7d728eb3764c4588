//! Local sockets, for clients on the same machine: of the CLI, the API, statistics and events.
//!
//! Clients [check](connect) who is at the other end: in a directory for all, such as `/tmp`, the
//! first to come may have made the directory or the socket that a user's router would have.
#![forbid(unsafe_code)]

mod peer;

pub use peer::{Peer, connect, crowding, peer_of, stranger_of};

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Error of creating a socket.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Another process listens on it.
    #[error("socket {} is in use by a running process; stop it or choose another path", .0.display())]
    InUse(PathBuf),
    /// A file that is not a socket has this path.
    #[error("cannot create socket {}: a file that is not a socket is there", .0.display())]
    NotASocket(PathBuf),
    /// A system call failed.
    #[error("cannot {what} socket {}: {source}", path.display())]
    Failed {
        /// The operation.
        what: &'static str,
        /// The socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// Configuration of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalConfig {
    /// Bytes ([`SocketType::STREAM`]) or packets ([`SocketType::SEQPACKET`]).
    pub kind: SocketType,
    /// Permissions of the file.
    pub mode: u32,
    /// Group of the file; `None` leaves it unchanged.
    pub group: Option<u32>,
}

impl LocalConfig {
    /// A stream for the router's own user.
    pub const OWN: LocalConfig = LocalConfig { kind: SocketType::STREAM, mode: 0o600, group: None };
}

/// A listening socket that never blocks. Its file is removed with it.
#[derive(Debug)]
pub struct LocalSocket {
    fd: OwnedFd,
    path: PathBuf,
    /// Device and inode, so that only our own socket is removed.
    id: Option<(u64, u64)>,
}

impl LocalSocket {
    /// Listens at `path`, whose directory is created if it is missing. A socket left there by a
    /// process that has ended is replaced.
    ///
    /// # Errors
    /// [`LocalError`] if a process listens there, another file is there, or the system refuses.
    pub fn listen(path: &Path, config: LocalConfig) -> Result<LocalSocket, LocalError> {
        let fail = |what| move |source| LocalError::Failed { what, path: path.to_owned(), source };
        if let Some(dir) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            let mut builder = fs::DirBuilder::new();
            builder
                .recursive(true)
                .mode(0o755)
                .create(dir)
                .map_err(fail("create the directory of"))?;
        }
        remove_stale(path, config.kind)?;
        let fresh = temporary_path(path);
        remove_stale(&fresh, config.kind)?;
        // Clients could not connect to a longer one.
        SocketAddrUnix::new(path).map_err(|e| fail("listen on")(e.into()))?;
        let fd = bind(&fresh, config.kind).map_err(|e| fail("listen on")(e.into()))?;
        let file = File::of(&fresh).map_err(fail("find"))?;
        let mut socket = LocalSocket { fd, path: fresh, id: Some(file.id) };
        if let Some(group) = config.group {
            file.set_group(group).map_err(fail("set the group of"))?;
        }
        file.set_mode(config.mode).map_err(fail("set the permissions of"))?;
        // A client that waits for the file to appear finds it ready.
        fs::rename(&socket.path, path).map_err(fail("rename"))?;
        path.clone_into(&mut socket.path);
        Ok(socket)
    }

    /// Accepts the next client's connection.
    ///
    /// # Errors
    /// [`io::ErrorKind::WouldBlock`] if none waits, or the system's error.
    pub fn accept(&self) -> io::Result<OwnedFd> {
        Ok(rustix::net::accept_with(&self.fd, SocketFlags::CLOEXEC)?)
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for LocalSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        if self.id.is_some() && inode(&self.path) == self.id {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The file of a socket of ours. In a directory of another user, a link may stand in its place by
/// now: what is changed is this file, not what has its path.
struct File {
    fd: OwnedFd,
    id: (u64, u64),
}

impl File {
    fn of(path: &Path) -> io::Result<File> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&fd)?;
        let is_socket = FileType::from_raw_mode(stat.st_mode) == FileType::Socket;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_nlink == 1;
        match is_socket && is_ours {
            true => Ok(File { fd, id: (stat.st_dev, stat.st_ino) }),
            false => Err(io::Error::other("another user has put something in its place")),
        }
    }

    fn set_group(&self, group: u32) -> io::Result<()> {
        let group = Some(Gid::from_raw(group));
        Ok(rustix::fs::chownat(&self.fd, "", None, group, AtFlags::EMPTY_PATH)?)
    }

    fn set_mode(&self, mode: u32) -> io::Result<()> {
        // No call changes the permissions of a file that is open by its place only.
        let link = format!("/proc/self/fd/{}", self.fd.as_raw_fd());
        fs::set_permissions(link, fs::Permissions::from_mode(mode))
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

fn open(kind: SocketType) -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)
}

/// Returns the path at which a socket is created first: clients that saw it before it listens would
/// be refused.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

/// Creates a listening socket with access for its owner only.
fn bind(path: &Path, kind: SocketType) -> Result<OwnedFd, Errno> {
    let (fd, address) = (open(kind)?, SocketAddrUnix::new(path)?);
    // The file gets the permissions of its socket (unix(7) mentions only the mask), so there is no
    // window.
    rustix::fs::fchmod(&fd, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&fd, &address)?;
    rustix::net::listen(&fd, BACKLOG)?;
    Ok(fd)
}

/// Connects without waiting for room in the backlog.
fn try_to_connect(path: &Path, kind: SocketType) -> Result<(), Errno> {
    rustix::net::connect(open(kind)?, &SocketAddrUnix::new(path)?)
}

/// Removes the socket of a process that ended without doing so.
fn remove_stale(path: &Path, kind: SocketType) -> Result<(), LocalError> {
    let fail = |what| move |source| LocalError::Failed { what, path: path.to_owned(), source };
    let found = match fs::symlink_metadata(path) {
        Ok(meta) => meta.file_type(),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(fail("inspect")(e)),
    };
    if !found.is_socket() {
        return Err(LocalError::NotASocket(path.to_owned()));
    }
    match try_to_connect(path, kind) {
        Err(Errno::CONNREFUSED) => fs::remove_file(path).map_err(fail("remove the stale")),
        // The socket may be busy, or of another type: a process listens in any case.
        Ok(()) | Err(Errno::AGAIN | Errno::PROTOTYPE) => Err(LocalError::InUse(path.to_owned())),
        Err(e) => Err(fail("probe")(e.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    const CONFIG: LocalConfig = LocalConfig::OWN;

    #[test]
    fn a_socket_comes_and_goes_with_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("below/s.sock");
        let socket = LocalSocket::listen(&path, CONFIG).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(socket.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        let _client = UnixStream::connect(&path).unwrap();
        socket.accept().unwrap();
        for kind in [SocketType::STREAM, SocketType::SEQPACKET] {
            let again = LocalSocket::listen(&path, LocalConfig { kind, ..CONFIG });
            assert!(matches!(again, Err(LocalError::InUse(_))), "{kind:?}: {again:?}");
        }
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn a_socket_is_its_owners_before_it_is_anybodys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let _fd = bind(&path, SocketType::STREAM).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
    }

    /// The owner of the directory may replace the new socket by a link to another user's file.
    #[test]
    fn what_stands_in_place_of_a_new_socket_is_left_alone() {
        use std::os::unix::fs::symlink;
        let dir = tempfile::tempdir().unwrap();
        let [victim, link, twice] = ["victim", "link", "twice"].map(|name| dir.path().join(name));
        fs::write(&victim, "").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&victim, &link).unwrap();
        let _fd = bind(&twice, SocketType::STREAM).unwrap();
        fs::hard_link(&twice, dir.path().join("other")).unwrap();
        for path in [&victim, &link, &twice] {
            let error = File::of(path).err().unwrap();
            assert!(error.to_string().contains("something in its place"), "{error}");
        }
        assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
        // Changes are of the file, wherever it is by now.
        let [path, moved] = ["s.sock", "moved"].map(|name| dir.path().join(name));
        let _fd = bind(&path, SocketType::STREAM).unwrap();
        let file = File::of(&path).unwrap();
        fs::rename(&path, &moved).unwrap();
        symlink(&victim, &path).unwrap();
        file.set_group(rustix::process::getegid().as_raw()).unwrap();
        file.set_mode(0o660).unwrap();
        let mode = |path| fs::symlink_metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&moved), mode(&victim)), (0o660, 0o600));
    }

    /// A client that polls for the file finds it with its final permissions.
    #[test]
    fn a_socket_is_there_when_all_of_it_is_done() {
        use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
        use std::time::{Duration, Instant};
        const LIMIT: Duration = Duration::from_secs(60);
        let (began, meetings) = (Instant::now(), AtomicUsize::new(0));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let client = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let Ok(meta) = fs::metadata(&path) else { continue };
                    assert_eq!(meta.mode() & 0o777, 0o660);
                    let met = usize::from(try_to_connect(&path, SocketType::STREAM).is_ok());
                    meetings.fetch_add(met, Ordering::Relaxed);
                }
            });
            let config = LocalConfig { mode: 0o660, ..CONFIG };
            for turn in 0..200 {
                let met = meetings.load(Ordering::Relaxed);
                let socket = LocalSocket::listen(&path, config).unwrap();
                // Every other one goes at once, the others when the client was there.
                while turn % 2 == 0 && meetings.load(Ordering::Relaxed) == met {
                    assert!(!client.is_finished(), "the client has failed");
                    assert!(began.elapsed() < LIMIT, "the client does not come: {turn}");
                    std::thread::yield_now();
                }
                drop(socket);
            }
            done.store(true, Ordering::Relaxed);
            client.join().unwrap();
            assert!(meetings.load(Ordering::Relaxed) >= 100);
        });
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn stale_sockets_are_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.sock");
        drop(UnixListener::bind(&path).unwrap());
        drop(UnixListener::bind(temporary_path(&path)).unwrap());
        let socket = LocalSocket::listen(&path, CONFIG).unwrap();
        // Another process's by now.
        fs::remove_file(&path).unwrap();
        let other = UnixListener::bind(&path).unwrap();
        drop(socket);
        assert!(path.exists());
        drop(other);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "no socket").unwrap();
        let error = LocalSocket::listen(&path, CONFIG).unwrap_err();
        assert!(matches!(error, LocalError::NotASocket(_)), "{error}");
        let long = dir.path().join("x".repeat(200));
        let error = LocalSocket::listen(&long, CONFIG).unwrap_err().to_string();
        assert!(error.contains("cannot listen on socket"), "{error}");
    }
}
