//! Work that may take long and must not hold up those who send: a thread for each piece of it.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Something that a thread of its own works out.
#[derive(Debug)]
pub struct BackgroundTask<T>(Receiver<T>);

impl<T: Send + 'static> BackgroundTask<T> {
    /// Starts it. `name` is the thread's, of at most 15 bytes.
    ///
    /// # Errors
    /// If the system refuses a thread.
    pub fn start(name: &str, work: impl FnOnce() -> T + Send + 'static) -> io::Result<Self> {
        let (done, result) = sync_channel(1);
        std::thread::Builder::new().name(name.into()).spawn(move || {
            // Nobody may be waiting any more.
            let _ = done.send(work());
        })?;
        Ok(BackgroundTask(result))
    }

    /// What came of it: `None` while it goes on, an error if its thread came to grief.
    pub fn poll(&self) -> Option<io::Result<T>> {
        match self.0.try_recv() {
            Ok(result) => Some(Ok(result)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err(io::Error::other("its thread failed"))),
        }
    }

    /// Waits for it.
    ///
    /// # Errors
    /// If its thread came to grief.
    pub fn wait(self) -> io::Result<T> {
        self.0.recv().map_err(|_| io::Error::other("its thread failed"))
    }
}

/// Where `ip netns` keeps network namespaces.
const NAMESPACES: &str = "/var/run/netns";

/// The file that stands for a namespace.
pub(super) fn namespace_file(name: &str) -> PathBuf {
    Path::new(NAMESPACES).join(name)
}

/// Moves this thread into a namespace, for good.
///
/// # Errors
/// If there is none of that name, or this process may not enter it.
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
