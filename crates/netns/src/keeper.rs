//! A service manager that keeps descriptors over restarts, as systemd does.

use std::fmt::Write as _;
use std::io::IoSliceMut;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use rustix::io::dup;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tempfile::TempDir;

/// Descriptors with their names. No program inherits them unless they are handed over.
type Kept = Arc<Mutex<Vec<(String, OwnedFd)>>>;

/// Listens for what a router wants to be kept, and hands it to the next one.
#[derive(Clone, Debug)]
pub struct Keeper {
    dir: Arc<TempDir>,
    kept: Kept,
}

impl Keeper {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the socket cannot be made.
    pub fn new() -> Result<Keeper> {
        let dir = TempDir::with_prefix("thalweg-keeper-").context("make a directory")?;
        let socket = UnixDatagram::bind(dir.path().join("notify")).context("bind")?;
        let keeper = Keeper { dir: Arc::new(dir), kept: Kept::default() };
        let kept = keeper.kept.clone();
        // Ends with the process.
        thread::spawn(move || while listen(&socket, &kept).is_ok() {});
        Ok(keeper)
    }

    /// The socket that a router tells.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("notify")
    }

    /// Names of what is kept.
    pub fn names(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().map(|(name, _)| name.clone()).collect()
    }

    /// Forgets what is kept, as a service manager does with a stopped service.
    pub fn forget(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Makes a program inherit what is kept: gives the words for `bash -c` that start it,
    /// `"$0" "$@"`, and descriptors to hold until `bash` has been started. The caller sets
    /// `NOTIFY_SOCKET` to [`socket`](Keeper::socket).
    ///
    /// # Errors
    /// If there are too many open files.
    pub fn hand_over(&self) -> Result<(String, Vec<OwnedFd>)> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = kept.iter().map(|(name, _)| name.as_str()).collect();
        let mut script = format!(
            "export LISTEN_PID=$$ LISTEN_FDS={} LISTEN_FDNAMES={}; exec \"$0\" \"$@\"",
            kept.len(),
            names.join(":")
        );
        let mut lent = Vec::new();
        for (at, (_, fd)) in kept.iter().enumerate() {
            // A copy is inherited.
            let copy = dup(fd).context("copy a descriptor")?;
            // An open by way of `/proc` would be another queue, of no device.
            // The program has each once, or a device would never go.
            let _ = write!(script, " {to}<&{fd} {fd}<&-", to = at + 3, fd = copy.as_raw_fd());
            lent.push(copy);
        }
        Ok((script, lent))
    }
}

/// Takes a message.
fn listen(socket: &UnixDatagram, kept: &Kept) -> Result<()> {
    let mut text = [0; 4096];
    let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut room);
    let mut pieces = [IoSliceMut::new(&mut text)];
    let got = recvmsg(socket, &mut pieces, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let text = String::from_utf8_lossy(&text[..got.bytes]).into_owned();
    let name = text.lines().find_map(|line| line.strip_prefix("FDNAME=")).unwrap_or("stored");
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if text.contains("FDSTOREREMOVE=1") {
        kept.retain(|(of, _)| of != name);
    }
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            kept.extend(fds.map(|fd| (name.to_owned(), fd)));
        }
    }
    Ok(())
}
