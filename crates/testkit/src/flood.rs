//! A generator that sends small packets as often as it can.

use std::io::ErrorKind;
use std::net::{SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};
use nix::sys::socket::{setsockopt, sockopt::UdpGsoSegment};
use rustix::thread::{CpuSet, sched_setaffinity};

use thalweg_netns::Netns;

/// Packets per system call, as many as every kernel takes.
const BATCH: usize = 64;

/// A thread that sends UDP datagrams of one flow, without pause, until the value is dropped.
///
/// The thread hands the kernel 64 datagrams at once for it to cut apart (`UDP_SEGMENT`, Linux 4.18;
/// from interfaces without checksum offload Linux 6.11), which takes a third of the time of sending
/// them one by one. On a virtual Ethernet pair the thread also does what the kernel does with a
/// packet on the other side, up to the first queue: a kernel that bridges or routes does all of it
/// here.
pub struct Flood {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<Result<()>>>,
}

#[derive(Default)]
struct Shared {
    sent: AtomicU64,
    stop: AtomicBool,
}

impl Flood {
    /// Starts to send datagrams with `payload` bytes from `ns` to `to`, whose hardware address or
    /// gateway should be known, on processor `cpu` if one is given.
    ///
    /// # Errors
    /// If there is no way to that address.
    pub fn start(ns: &Netns, to: SocketAddrV4, payload: u16, cpu: Option<usize>) -> Result<Flood> {
        let socket = ns
            .run(|| UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(to).map(|()| s)))?
            .with_context(|| format!("reach {to} from namespace {}", ns.label()))?;
        setsockopt(&socket, UdpGsoSegment, &i32::from(payload)).context("set UDP_SEGMENT")?;
        let shared = Arc::new(Shared::default());
        let mine = shared.clone();
        let body = move || {
            if let Some(cpu) = cpu {
                let mut set = CpuSet::new();
                set.set(cpu);
                sched_setaffinity(None, &set).with_context(|| format!("use processor {cpu}"))?;
            }
            send(&socket, payload.into(), &mine)
        };
        let thread = thread::Builder::new().name("flood".into()).spawn(body)?;
        Ok(Flood { shared, thread: Some(thread) })
    }

    /// Datagrams sent so far.
    pub fn sent(&self) -> u64 {
        self.shared.sent.load(Ordering::Relaxed)
    }

    /// Ends it; gives how many datagrams it has sent.
    ///
    /// # Errors
    /// If it could not send.
    pub fn stop(mut self) -> Result<u64> {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().map_err(|_| anyhow!("the flooding thread panicked"))??;
        }
        Ok(self.sent())
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Callers that want to know of failures call `stop`.
            drop(thread.join());
        }
    }
}

fn send(socket: &UdpSocket, payload: usize, shared: &Shared) -> Result<()> {
    let datagrams = vec![0; payload * BATCH];
    while !shared.stop.load(Ordering::Relaxed) {
        match socket.send(&datagrams) {
            Ok(_) => {
                shared.sent.fetch_add(BATCH as u64, Ordering::Relaxed);
            }
            // A full queue empties by itself; a refusal is about an earlier datagram.
            Err(error)
                if error.raw_os_error() == Some(nix::libc::ENOBUFS)
                    || matches!(
                        error.kind(),
                        ErrorKind::Interrupted
                            | ErrorKind::WouldBlock
                            | ErrorKind::ConnectionRefused
                    ) => {}
            Err(error) => return Err(error).context("send datagrams"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Lab, WAIT_LIMIT, lab_test, wait_until};

    lab_test! {
        fn a_flood_arrives_and_ends() {
            let lab = Lab::new()?;
            lab.left.ns.ip("neighbour add 10.10.1.9 lladdr 02:00:00:00:01:99 dev eth0")?;
            let before = lab.router.link("eth0")?.rx_packets;
            let flood = Flood::start(&lab.left.ns, "10.10.1.9:9".parse()?, 22, Some(0))?;
            wait_until(WAIT_LIMIT, "a thousand packets", || {
                (lab.router.link("eth0").ok()?.rx_packets > 1000).then_some(())
            })?;
            let sent = flood.stop()?;
            let link = lab.router.link("eth0")?;
            assert_eq!(link.rx_packets - before, sent);
            // Counts of `ip` do not include an Ethernet header less: 14 + 20 + 8 + 22.
            assert_eq!(link.rx_bytes / link.rx_packets, 64);
            Ok(())
        }
    }
}
