//! The last packets of interfaces in namespaces, read from packet sockets by one thread.
//!
//! A socket takes the packets that its interface receives and sends. The socket puts none on the
//! link and does not make the interface promiscuous. An open one keeps its namespace alive, so it
//! is closed with the namespace's last [`Netns`]. Packets are read in rounds of limited length:
//! during a flood the kernel drops those that do not fit into the socket's buffer, and counts them.
//!
//! [`Netns`]: crate::Netns

use std::env;
use std::fmt;
use std::io::IoSliceMut;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
    UnknownCmsg, bind, getsockopt, recvmsg, setsockopt, socket,
};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use thalweg_wire::pcap::Direction;

use crate::failure;
use crate::packets::{Ring, SharedRing, lock, now};
use thalweg_netns::Netns;

/// `0` in the environment: nothing is captured.
const CAPTURE: &str = "THALWEG_TEST_CAPTURE";

/// Bytes that are kept of a packet.
const SNAP: usize = 256;
/// Size of a socket's buffer: some thousand small packets.
const BUFFER: usize = 4 << 20;
/// Packets that are read of an interface in a round, and the time from one round to the next: of a
/// flood, 25,600 packets per second, for a few percent of a processor.
const ROUND: usize = 256;
const PACE: Duration = Duration::from_millis(10);
/// Packets that are read at most when a socket is closed or a file is written: more than its buffer
/// holds.
const REST: usize = 16_384;
/// Bytes before a VLAN tag.
const ADDRESSES: usize = 12;

/// Socket options of packet(7).
mod option {
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    sockopt_impl!(
        /// Packets that did not fit; reading the counters sets them to zero.
        PacketStatistics,
        GetOnly,
        libc::SOL_PACKET,
        libc::PACKET_STATISTICS,
        libc::tpacket_stats
    );
    sockopt_impl!(
        /// VLAN tags that the kernel took out of packets come as control messages.
        PacketAuxdata,
        SetOnly,
        libc::SOL_PACKET,
        libc::PACKET_AUXDATA,
        bool
    );
}

/// Captures on `dev` of `ns` until the namespace's last [`Netns`] is dropped, if a test runs
/// ([`run_lab_test`](crate::run_lab_test)) and capturing is not switched off.
pub(crate) fn start(ns: &Netns, dev: &str) -> Result<()> {
    let off = env::var_os(CAPTURE).is_some_and(|value| value == "0");
    let Some(test) = failure::current().filter(|_| !off) else { return Ok(()) };
    let reader = reader()?;
    let (socket, interface) = ns
        .run(|| open(dev))?
        .with_context(|| format!("capture on {dev} of namespace {}", ns.label()))?;
    let ring = Ring::shared(format!("{} {dev}", ns.label()), SNAP as u32);
    test.add_ring(ring.clone());
    let number = reader.add(Source { socket, interface, ring });
    ns.hold(Watch(number));
    Ok(())
}

fn open(dev: &str) -> Result<(OwnedFd, usize)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)
        .context("open a packet socket")?;
    let all = getifaddrs().context("list the interfaces")?;
    let mut found = all.filter(|entry| entry.interface_name == dev);
    let address = found.find_map(|entry| entry.address?.as_link_addr().copied());
    let address = address.context("there is no such interface")?;
    // Only root of the system may exceed the system's limit.
    if setsockopt(&socket, RcvBufForce, &BUFFER).is_err() {
        setsockopt(&socket, RcvBuf, &BUFFER).context("set the size of its buffer")?;
    }
    setsockopt(&socket, ReceiveTimestampns, &true).context("ask for times")?;
    setsockopt(&socket, option::PacketAuxdata, &true).context("ask for VLAN tags")?;
    bind(socket.as_raw_fd(), &address).context("bind it")?;
    Ok((socket, address.ifindex()))
}

/// A capture, which ends when this is dropped.
pub(crate) struct Watch(u64);

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(reader) = READER.get() {
            reader.ask(|done| Order::Close(self.0, done));
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watch({})", self.0)
    }
}

/// Returns when all packets so far are in their rings.
pub(crate) fn sync() {
    if let Some(reader) = READER.get() {
        reader.ask(Order::Sync);
    }
}

static READER: OnceLock<Reader> = OnceLock::new();

struct Reader {
    orders: Mutex<Orders>,
}

struct Orders {
    sender: Sender<Order>,
    wake: OwnedFd,
    next: u64,
}

enum Order {
    Open(u64, Source),
    Close(u64, Sender<()>),
    Sync(Sender<()>),
}

fn reader() -> Result<&'static Reader> {
    if let Some(reader) = READER.get() {
        return Ok(reader);
    }
    let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("eventfd")?;
    let woken = wake.try_clone().context("eventfd")?;
    let (sender, orders) = channel();
    let mut fresh = false;
    let reader = READER.get_or_init(|| {
        fresh = true;
        Reader { orders: Mutex::new(Orders { sender, wake, next: 0 }) }
    });
    if fresh {
        let thread = thread::Builder::new().name("packet-reader".into());
        thread.spawn(move || read_all(&woken, &orders)).context("start a thread")?;
    }
    Ok(reader)
}

impl Reader {
    fn add(&self, source: Source) -> u64 {
        let mut orders = lock(&self.orders);
        orders.next += 1;
        let number = orders.next;
        orders.send(Order::Open(number, source));
        number
    }

    /// Sends an order and waits until it is carried out.
    fn ask(&self, order: impl FnOnce(Sender<()>) -> Order) {
        let (done, wait) = channel();
        lock(&self.orders).send(order(done));
        // Waiting fails only if the thread is gone, and the sockets with it.
        let _ = wait.recv();
    }
}

impl Orders {
    fn send(&self, order: Order) {
        if self.sender.send(order).is_ok() {
            // The counter cannot overflow: the reader sets it to zero.
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// A socket and the ring for its packets.
struct Source {
    socket: OwnedFd,
    /// Index of the interface: the socket may have seen packets of others before it was bound.
    interface: usize,
    ring: SharedRing,
}

/// The reader's thread: sleeps until there are packets or orders, and after each round of packets
/// for the rest of the pace.
fn read_all(wake: &OwnedFd, orders: &Receiver<Order>) {
    let mut sources: Vec<(u64, Source)> = Vec::new();
    let mut buffer = [0; SNAP];
    let mut next = Instant::now();
    loop {
        let pause = next.saturating_duration_since(Instant::now());
        let readable = wait(wake, &sources, pause);
        let _ = rustix::io::read(wake, &mut [0; 8]);
        for order in orders.try_iter() {
            match order {
                Order::Open(number, source) => sources.push((number, source)),
                Order::Close(number, done) => {
                    if let Some(at) = sources.iter().position(|(n, _)| *n == number) {
                        sources.swap_remove(at).1.finish(&mut buffer);
                    }
                    let _ = done.send(());
                }
                Order::Sync(done) => {
                    sources.iter_mut().for_each(|(_, source)| source.finish(&mut buffer));
                    let _ = done.send(());
                }
            }
        }
        if readable {
            sources.retain_mut(|(_, source)| source.read(ROUND, &mut buffer).is_ok());
            next = Instant::now() + PACE;
        }
    }
}

/// Waits for orders and, unless there is a pause, for packets; returns whether there are packets.
fn wait(wake: &OwnedFd, sources: &[(u64, Source)], pause: Duration) -> bool {
    let mut fds = vec![PollFd::new(wake, PollFlags::IN)];
    let timeout = (!pause.is_zero())
        .then(|| Timespec { tv_sec: 0, tv_nsec: pause.min(PACE).subsec_nanos().into() });
    if timeout.is_none() {
        fds.extend(sources.iter().map(|(_, s)| PollFd::new(&s.socket, PollFlags::IN)));
    }
    let ready = poll(&mut fds, timeout.as_ref());
    ready.is_ok() && fds[1..].iter().any(|fd| !fd.revents().is_empty())
}

impl Source {
    /// Reads what is there, and how much there was no room for.
    fn finish(&mut self, buffer: &mut [u8; SNAP]) {
        let _ = self.read(REST, buffer);
        if let Ok(statistics) = getsockopt(&self.socket, option::PacketStatistics) {
            lock(&self.ring).add_missed(statistics.tp_drops.into());
        }
    }

    /// Reads up to `limit` packets.
    ///
    /// # Errors
    /// If the socket cannot be used any longer.
    fn read(&mut self, limit: usize, buffer: &mut [u8; SNAP]) -> nix::Result<()> {
        let mut control = nix::cmsg_space!(libc::timespec, libc::tpacket_auxdata);
        for _ in 0..limit {
            let mut parts = [IoSliceMut::new(&mut buffer[..])];
            let (fd, flags) = (self.socket.as_raw_fd(), MsgFlags::MSG_TRUNC);
            let message = match recvmsg::<LinkAddr>(fd, &mut parts, Some(&mut control), flags) {
                Ok(message) => message,
                Err(nix::Error::EAGAIN) => return Ok(()),
                // Reported once when the interface goes down.
                Err(nix::Error::EINTR | nix::Error::ENETDOWN) => continue,
                Err(error) => return Err(error),
            };
            let (mut at, mut tag) = (None, None);
            for one in message.cmsgs().into_iter().flatten() {
                match one {
                    ControlMessageOwned::ScmTimestampns(time) => {
                        at = Some(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64);
                    }
                    ControlMessageOwned::Unknown(other) => tag = vlan_tag(&other),
                    _ => {}
                }
            }
            // The result is the packet's length because of MSG_TRUNC.
            let length = message.bytes;
            let Some(address) = message.address else { continue };
            if address.ifindex() != self.interface {
                continue;
            }
            let direction = match address.pkttype() {
                libc::PACKET_OUTGOING => Direction::Outbound,
                _ => Direction::Inbound,
            };
            let (addresses, rest) = buffer[..length.min(SNAP)].split_at(length.min(ADDRESSES));
            let tag = tag.as_ref().map_or(&[][..], |tag| tag);
            let (at, length) = (at.unwrap_or_else(now), length + tag.len());
            lock(&self.ring).push(at, direction, length, [addresses, tag, rest]);
        }
        Ok(())
    }
}

/// The VLAN tag that the kernel took out of a packet (`struct tpacket_auxdata`).
fn vlan_tag(message: &UnknownCmsg) -> Option<[u8; 4]> {
    let header = &message.cmsg_header;
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    let data: &[u8; 20] = message.data_bytes.first_chunk()?;
    let [s0, s1, s2, s3, .., c0, c1, p0, p1] = *data;
    let status = u32::from_ne_bytes([s0, s1, s2, s3]);
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = match u16::from_ne_bytes([p0, p1]) {
        0 => 0x8100,
        protocol => protocol,
    };
    let ([a, b], [c, d]) = (protocol.to_be_bytes(), u16::from_ne_bytes([c0, c1]).to_be_bytes());
    Some([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::{Lab, lab_test, wait_until, wait_until_seen};

    lab_test! {
        fn what_does_not_fit_is_counted() {
            let lab = Lab::kernel_router()?;
            lab.ping_all()?;
            let (socket, interface) = lab.left.ns.run(|| open(lab.left.dev))??;
            // The kernel makes it a few packets.
            setsockopt(&socket, RcvBuf, &1)?;
            let ring = Ring::shared("left", SNAP as u32);
            let mut source = Source { socket, interface, ring: ring.clone() };
            let sent = 100;
            lab.left.ns.run(|| -> Result<()> {
                let out = UdpSocket::bind("0.0.0.0:0")?;
                for _ in 0..sent {
                    out.send_to(&[7; 1000], (lab.left.gateway, 9))?;
                }
                Ok(())
            })??;
            let mut buffer = [0; SNAP];
            source.finish(&mut buffer);
            let ring = lock(&ring);
            assert!(ring.kept_and_missed().0 > 0 && ring.kept_and_missed().1 > 0, "{ring}");
            // Port unreachable comes back, and others may have something to say.
            assert!(ring.kept_and_missed().0 + ring.kept_and_missed().1 >= sent, "{ring}");
            Ok(())
        }

        fn tags_are_where_they_were_on_the_link() {
            let lab = Lab::kernel_router()?;
            let (socket, _) = lab.router.run(|| open(lab.left.router_dev))??;
            // Priority 3, VLAN 7.
            let mut frame = [0xff; 60];
            frame[6..18].copy_from_slice(&[2, 0, 0, 0, 1, 1, 0x81, 0, 0x60, 7, 0x88, 0xb5]);
            rustix::io::write(&socket, &frame)?;
            let test = failure::current().expect("a test");
            let rings = test.rings();
            wait_until(Duration::from_secs(20), "the frame", || {
                sync();
                let mut ring = lock(&rings[0]);
                ring.packets().any(|packet| packet == (Direction::Inbound, &frame[..])).then_some(())
            })
        }

        fn a_capture_lets_its_namespace_end() {
            let lab = Lab::kernel_router()?;
            lab.ping_all()?;
            let Lab { left: _left, router, right } = lab;
            right.ns.remove();
            wait_until_seen(Duration::from_secs(20), "the link to go", || {
                router.link("eth1").map_or(Ok(()), |link| Err(link.operstate))
            })
        }
    }
}
