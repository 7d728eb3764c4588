//! Background tasks: slow work on a thread of its own, so that it does not delay sending.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The result of work on a thread of its own.
#[derive(Debug)]
pub struct BackgroundTask<T>(Receiver<T>);

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts a thread with a name of at most 15 bytes.
    ///
    /// # Errors
    /// If the system cannot create a thread.
    pub fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (done, result) = sync_channel(1);
        std::thread::Builder::new().name(name.into()).spawn(move || {
            // The receiver may be gone.
            let _ = done.send(work());
        })?;
        Ok(BackgroundTask(result))
    }

    /// Returns the result, `None` while the task runs, an error if its thread panicked.
    pub fn poll(&self) -> Option<io::Result<T>> {
        match self.0.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(io::Error::other("its thread panicked"))),
        }
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// If its thread panicked.
    pub fn wait(self) -> io::Result<T> {
        self.0.recv().map_err(|_| io::Error::other("its thread panicked"))
    }
}

/// Directory in which `ip netns` keeps network namespaces.
const NAMESPACES: &str = "/var/run/netns";

/// Returns the file of a namespace.
pub(super) fn namespace_file(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// Moves this thread into a namespace permanently.
///
/// # Errors
/// If the namespace does not exist or this process may not enter it.
pub(super) fn enter_namespace(name: &str) -> io::Result<()> {
    let path = namespace_file(name);
    let say = |error: io::Error, why: &str| {
        io::Error::new(error.kind(), format!("namespace `{name}': {why}"))
    };
    let file = File::open(&path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => say(error, &format!("there is no {}", path.display())),
        _ => say(io::Error::new(error.kind(), ""), &format!("{}: {error}", path.display())),
    })?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).map_err(|error| {
        match error {
            rustix::io::Errno::PERM => {
                say(error.into(), "this process may not enter it (CAP_SYS_ADMIN is needed)")
            }
            _ => say(error.into(), &format!("{error}")),
        }
    })
}
