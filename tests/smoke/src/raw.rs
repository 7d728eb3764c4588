//! Frames of any bytes on a link, sent and received through a packet socket.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::ifaddrs::getifaddrs;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, bind, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use thalweg_testkit::{Netns, WAIT_LIMIT};

/// The largest frame that can come from a link with offloads off.
const LARGEST: usize = 65_536;

/// One end of a link, below the kernel's own stack (which sees all that arrives as well).
pub struct RawLink {
    socket: File,
}

impl RawLink {
    /// Opens interface `dev` of `ns`.
    ///
    /// # Errors
    /// If there is no such interface, or no right to do so.
    pub fn open(ns: &Netns, dev: &str) -> Result<RawLink> {
        ns.run(|| {
            let socket = socket(
                AddressFamily::Packet,
                SockType::Raw,
                SockFlag::SOCK_CLOEXEC,
                SockProtocol::EthAll,
            )
            .context("open a packet socket")?;
            let all = getifaddrs().context("list the interfaces")?;
            let found = all
                .filter(|entry| entry.interface_name == dev)
                .find_map(|entry| entry.address?.as_link_addr().copied());
            let Some(address) = found else {
                bail!("no interface {dev} in namespace {}", ns.label());
            };
            // The address names no protocol; the socket keeps "all".
            bind(socket.as_raw_fd(), &address).with_context(|| format!("bind to {dev}"))?;
            Ok(RawLink { socket: File::from(socket) })
        })?
    }

    /// Sends one frame, beginning with its Ethernet header.
    ///
    /// # Errors
    /// If the kernel refuses it, as it does below 14 bytes or above the MTU, or if its queue stays
    /// full.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        let deadline = Instant::now() + WAIT_LIMIT;
        loop {
            match (&self.socket).write(frame) {
                // A full queue empties by itself.
                Err(error)
                    if error.raw_os_error() == Some(nix::libc::ENOBUFS)
                        && Instant::now() < deadline => {}
                Err(error) => return Err(error),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Reads frames, own ones included, until `probe` gives a value for one.
    ///
    /// # Errors
    /// If none comes within `budget`.
    pub fn receive<T>(
        &self,
        budget: Duration,
        what: &str,
        mut probe: impl FnMut(&[u8]) -> Option<T>,
    ) -> Result<T> {
        let deadline = Instant::now() + budget;
        let mut frame = vec![0; LARGEST];
        let mut seen = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            // Other frames may come without end.
            if left.is_zero() && seen > 0 {
                bail!("waited {budget:?} for {what}; {seen} other frames came");
            }
            let timeout = Timespec {
                tv_sec: left.as_secs().try_into().unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            match poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&timeout)) {
                Ok(0) => bail!("waited {budget:?} for {what}; {seen} other frames came"),
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => return Err(error).context("poll the packet socket"),
            }
            let length = (&self.socket).read(&mut frame).context("read a frame")?;
            seen += 1;
            if let Some(value) = probe(&frame[..length]) {
                return Ok(value);
            }
        }
    }
}

impl AsFd for RawLink {
    /// The socket, for options.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
