//! Packets that come alone, and how long each takes through a forwarder.
//!
//! A packet is stamped by the kernel twice, by one clock: as it comes to the forwarder's interface
//! on the left, and to the host's interface on the right. On a virtual Ethernet pair that is when
//! it leaves the forwarder. The sockets that learn the stamps are read later, so that nobody is
//! woken but the forwarder.

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt::ReceiveTimestampns,
};
use nix::sys::time::TimeSpec;
use thalweg_smoke::RawLink;
use thalweg_testkit::{Lab, Netns};

use crate::side::{PAYLOAD, Path, SINK_MAC, SINK_PORT};

/// Mark of our packets, ahead of their numbers.
const MAGIC: [u8; 8] = *b"lone pkt";
/// Packets after which the taps are read: far fewer than a socket holds.
const READ_EVERY: u64 = 64;
/// Time that a packet may take before it counts as lost.
const LOST: Duration = Duration::from_secs(2);

/// Latencies in µs, in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// Latencies of these values, in µs.
    pub fn of(mut values: Vec<f64>) -> Latencies {
        values.sort_by(f64::total_cmp);
        Latencies(values)
    }

    /// Adds others to these.
    pub fn add(&mut self, other: &Latencies) {
        self.0.extend(&other.0);
        self.0.sort_by(f64::total_cmp);
    }

    /// Number of packets.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The value that a part of them, from 0 to 1, does not exceed. `None` if there are too few for
    /// one to be expected beyond it.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        if (self.0.len() as f64) * (1.0 - part) < 1.0 - 1e-9 {
            return None;
        }
        let rank = (part * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.saturating_sub(1)).copied()
    }

    /// The greatest.
    pub fn most(&self) -> Option<f64> {
        self.0.last().copied()
    }
}

/// Sends packets one by one through a lab, and measures them.
pub struct Lone {
    from: UdpSocket,
    arrival: Tap,
    departure: Tap,
    next: u64,
    random: u64,
}

impl Lone {
    /// Opens both taps. `gateway` is the forwarder's hardware address on the left; the forwarder
    /// has to know [`SINK`](Self::sink)'s.
    ///
    /// # Errors
    /// If the lab is not as it should be.
    pub fn new(lab: &Lab, gateway: &str) -> Result<Lone> {
        let (left, right) = (&lab.left, &lab.right);
        let (address, dev) = (left.gateway, left.dev);
        left.ns.ip(&format!("neighbour replace {address} lladdr {gateway} dev {dev}"))?;
        let to = SocketAddrV4::new(Path::Ipv4.sink(), SINK_PORT);
        let from = left
            .ns
            .run(|| UdpSocket::bind("0.0.0.0:0").and_then(|s| s.connect(to).map(|()| s)))?
            .with_context(|| format!("reach {to} from namespace {}", left.ns.label()))?;
        Ok(Lone {
            from,
            arrival: Tap::open(&lab.router, left.router_dev)?,
            departure: Tap::open(&right.ns, right.dev)?,
            next: 0,
            random: 0x9e37_79b9_7f4a_7c15,
        })
    }

    /// Destination of the packets: an address beyond the forwarder, and its hardware address, which
    /// the host on the right does not have.
    pub fn sink() -> (std::net::Ipv4Addr, &'static str) {
        (Path::Ipv4.sink(), SINK_MAC)
    }

    /// Sends `count` packets, after a pause each that is `pause` on average and between half and
    /// one and a half of it.
    ///
    /// # Errors
    /// If one is lost.
    pub fn send(&mut self, pause: Duration, count: u64) -> Result<Latencies> {
        let (mut came, mut left) = (BTreeMap::new(), BTreeMap::new());
        let first = self.next;
        for sent in 1..=count {
            let part = 0.5 + self.draw();
            std::thread::sleep(pause.mul_f64(part));
            let mut payload = [0; PAYLOAD as usize];
            payload[..8].copy_from_slice(&MAGIC);
            payload[8..16].copy_from_slice(&self.next.to_be_bytes());
            self.next += 1;
            self.from.send(&payload).context("send a packet")?;
            if sent % READ_EVERY == 0 || sent == count {
                self.await_packet(self.next - 1, &mut came, &mut left)?;
            }
        }
        let latency = |n| -> Result<f64> {
            let (came, left): (&Duration, &Duration) =
                came.get(&n).zip(left.get(&n)).with_context(|| format!("packet {n} is lost"))?;
            ensure!(left >= came, "packet {n} left before it came: was the clock set?");
            Ok((*left - *came).as_secs_f64() * 1e6)
        };
        let all: Result<Vec<f64>> = (first..self.next).map(latency).collect();
        Ok(Latencies::of(all?))
    }

    /// Reads the taps until packet `n` has left.
    fn await_packet(
        &self,
        n: u64,
        came: &mut BTreeMap<u64, Duration>,
        left: &mut BTreeMap<u64, Duration>,
    ) -> Result<()> {
        let begin = Instant::now();
        while !left.contains_key(&n) {
            ensure!(begin.elapsed() < LOST, "packet {n} has not left after {LOST:?}");
            self.departure.read(left)?;
            std::thread::yield_now();
        }
        self.arrival.read(came)
    }

    /// A number from 0 to 1, of a short xorshift generator.
    fn draw(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Device on which packets are seen and stamped.
struct Tap(RawLink);

impl Tap {
    fn open(ns: &Netns, dev: &str) -> Result<Tap> {
        let link = RawLink::open(ns, dev)?;
        setsockopt(&link, ReceiveTimestampns, &true).context("set SO_TIMESTAMPNS")?;
        Ok(Tap(link))
    }

    /// Takes what has been seen, and keeps when each of our packets was seen first.
    fn read(&self, seen: &mut BTreeMap<u64, Duration>) -> Result<()> {
        let fd = self.0.as_fd().as_raw_fd();
        let mut frame = [0; 256];
        let mut control = cmsg_space!(TimeSpec);
        loop {
            let mut pieces = [IoSliceMut::new(&mut frame)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let (len, stamp) = match recvmsg::<()>(fd, &mut pieces, Some(&mut control), flags) {
                Ok(message) => {
                    let stamp = message.cmsgs()?.find_map(|c| match c {
                        ControlMessageOwned::ScmTimestampns(at) => Some(at),
                        _ => None,
                    });
                    (message.bytes, stamp)
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error).context("read a tap"),
            };
            let Some(number) = number(&frame[..len]) else { continue };
            let Some(stamp) = stamp else { bail!("the kernel does not stamp packets") };
            seen.entry(number).or_insert_with(|| stamp.into());
        }
    }
}

/// The number of one of our packets, which follows Ethernet, IPv4 and UDP headers.
fn number(frame: &[u8]) -> Option<u64> {
    let payload = frame.get(14 + 20 + 8..)?.strip_prefix(&MAGIC)?;
    Some(u64::from_be_bytes(*payload.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_testkit::lab_test;

    #[test]
    fn quantiles_need_enough_packets() {
        let all = Latencies::of((1..=100).rev().map(f64::from).collect());
        assert_eq!(all.quantile(0.5), Some(50.0));
        assert_eq!(all.quantile(0.99), Some(99.0));
        assert_eq!(all.quantile(0.999), None);
        assert_eq!(all.most(), Some(100.0));
        let mut few = Latencies::of(vec![2.0]);
        assert_eq!(few.quantile(0.5), None);
        few.add(&Latencies::of(vec![1.0]));
        assert_eq!((few.count(), few.quantile(0.5)), (2, Some(1.0)));
        assert_eq!(Latencies::default().most(), None);
    }

    lab_test! {
        fn the_kernel_is_measured() {
            let lab = Lab::kernel_router()?;
            let (address, mac) = Lone::sink();
            let dev = lab.right.router_dev;
            lab.router.ip(&format!("neighbour add {address} lladdr {mac} dev {dev}"))?;
            let mut lone = Lone::new(&lab, lab.left.router_mac)?;
            let got = lone.send(Duration::from_millis(1), 100)?;
            assert_eq!(got.count(), 100);
            assert!(got.quantile(0.5).is_some_and(|us| us > 0.0 && us < 10_000.0), "{got:?}");
            Ok(())
        }
    }
}
