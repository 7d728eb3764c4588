//! The socket that passes the segment to clients: they connect, get a descriptor, and need nothing
//! more.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketType, sendmsg};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use thalweg_socket::{LocalConfig, LocalError, LocalSocket};

/// Error of serving the segment.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket cannot be created.
    #[error("statistics: {0}")]
    Local(#[from] LocalError),
    /// The thread cannot be started.
    #[error("cannot start the statistics server: {0}")]
    Start(#[from] io::Error),
}

/// Runs until it is dropped.
#[derive(Debug)]
pub struct Server {
    path: PathBuf,
    /// Closed to end the thread.
    stop: Option<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `path` with these permissions, and sends each client a copy of the descriptor of
    /// `segment`. `before` is called first, so that the values are fresh.
    ///
    /// # Errors
    /// [`ServerError`].
    pub fn start(
        path: &Path,
        mode: u32,
        group: Option<u32>,
        segment: OwnedFd,
        before: impl Fn() + Send + 'static,
    ) -> Result<Server, ServerError> {
        let config = LocalConfig { kind: SocketType::SEQPACKET, mode, group };
        let socket = LocalSocket::listen(path, config)?;
        let (stopped, stop) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(io::Error::from)?;
        let serve = move || serve(&socket, &stopped, &segment, before);
        let thread = std::thread::Builder::new().name("thalweg-stats".into()).spawn(serve)?;
        Ok(Server { path: path.to_owned(), stop: Some(stop), thread: Some(thread) })
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &LocalSocket, stopped: &OwnedFd, segment: &OwnedFd, before: impl Fn()) {
    loop {
        let mut fds =
            [PollFd::new(socket, PollFlags::IN), PollFd::new(stopped, PollFlags::empty())];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(error) => return tracing::error!("statistics server: {error}"),
            Ok(_) if !fds[1].revents().is_empty() => return,
            Ok(_) => {}
        }
        match socket.accept() {
            Ok(client) => {
                before();
                if let Err(error) = hand_over(&client, segment) {
                    tracing::debug!("statistics client: {error}");
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!("statistics server: {error}");
                // Descriptors have probably run out: avoid a busy loop.
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
        }
    }
}

fn hand_over(client: &OwnedFd, segment: &OwnedFd) -> io::Result<()> {
    let fds = [segment.as_fd()];
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    // An empty packet would look like the end of the connection to clients that wait for data.
    let byte = [io::IoSlice::new(&[0])];
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(client, &byte, &mut ancillary, flags)?;
    Ok(())
}
