//! A steady stream of numbered datagrams to addresses all over the table, and what became of each.

use anyhow::{Context, Result};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use thalweg_netns::Netns;

/// Datagrams a second.
pub const RATE: u32 = 10_000;
/// Destinations. Each gets a datagram every 5 ms.
pub const DESTINATIONS: u32 = 50;
const PORT: u16 = 5005;
const TICK: Duration = Duration::from_millis(1);
/// Bytes of a datagram.
const BYTES: usize = 64;
/// Bytes that may wait for the receiver, which a busy machine keeps from reading.
const WAITING_BYTES: usize = 4 << 20;
/// A receiver looks this often whether it must end.
const LOOK: Duration = Duration::from_millis(100);

/// Datagrams by number.
#[derive(Default)]
struct Sent {
    /// When each was sent, in microseconds since the begin.
    at: Vec<u32>,
    /// Arrival of each.
    arrived: Vec<bool>,
}

struct Shared {
    begin: Instant,
    sent: Mutex<Sent>,
    received: AtomicU64,
    stop: AtomicBool,
}

impl Shared {
    fn sent(&self) -> MutexGuard<'_, Sent> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running stream.
pub struct Stream {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// Losses of a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Losses {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Destinations that lost some.
    pub destinations: u32,
    /// Time until the first and the last destination had its datagrams again for good, from the
    /// beginning of the span. `None` if none lost any.
    pub back: Option<(Duration, Duration)>,
    /// One of the destinations has not got its last datagrams.
    pub still: bool,
}

impl Losses {
    /// The mean time that a destination was away, by its lost datagrams.
    pub fn mean(&self) -> Duration {
        Duration::from_secs_f64(self.lost as f64 / f64::from(RATE))
    }
}

impl Stream {
    /// Starts to send from a namespace, and to receive in another one.
    pub fn start(from: &Netns, to: &Netns, addresses: &[Ipv4Addr]) -> Result<Stream> {
        let out = from.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)))??;
        let into = to.run(|| UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)))??;
        into.set_read_timeout(Some(LOOK))?;
        // Without rights in the first user namespace there is a limit.
        if set_socket_recv_buffer_size_force(&into, WAITING_BYTES).is_err() {
            set_socket_recv_buffer_size(&into, WAITING_BYTES)?;
        }
        let shared = Arc::new(Shared {
            begin: Instant::now(),
            sent: Mutex::default(),
            received: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        });
        let addresses: Vec<SocketAddrV4> =
            addresses.iter().map(|ip| SocketAddrV4::new(*ip, PORT)).collect();
        let (sender, receiver) = (shared.clone(), shared.clone());
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        let threads = vec![
            thread("receiver")
                .spawn(move || receive(&receiver, &into))
                .context("start a thread")?,
            thread("sender").spawn(move || send(&sender, &out, &addresses)).context("start")?,
        ];
        Ok(Stream { shared, threads })
    }

    /// Returns the numbers of datagrams that were sent and that arrived.
    pub fn counts(&self) -> (u64, u64) {
        let sent = self.shared.sent().at.len() as u64;
        (sent, self.shared.received.load(Ordering::Relaxed))
    }

    /// Returns what was lost of that sent in a span of time.
    pub fn losses(&self, from: Instant, to: Instant) -> Losses {
        let since = |at: Instant| micros(at.saturating_duration_since(self.shared.begin));
        losses(&self.shared.sent(), since(from), since(to))
    }

    /// Tells if each destination has got all datagrams that were sent in a span of time.
    pub fn all_arrive(&self, from: Instant, to: Instant) -> bool {
        let losses = self.losses(from, to);
        losses.sent >= u64::from(DESTINATIONS) && losses.lost == 0
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic was printed.
            let _ = thread.join();
        }
    }
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

fn send(shared: &Shared, out: &UdpSocket, to: &[SocketAddrV4]) {
    let mut datagram = [0; BYTES];
    let mut number = 0_u32;
    while !shared.stop.load(Ordering::Acquire) {
        let now = shared.begin.elapsed();
        let due = (now.as_secs_f64() * f64::from(RATE)) as u32;
        while number < due {
            let at = micros(shared.begin.elapsed());
            {
                let mut sent = shared.sent();
                sent.at.push(at);
                sent.arrived.push(false);
            }
            datagram[..4].copy_from_slice(&number.to_be_bytes());
            // One that the kernel refuses is as lost as others.
            let _ = out.send_to(&datagram, to[number as usize % to.len()]);
            number += 1;
        }
        std::thread::sleep(TICK);
    }
}

fn receive(shared: &Shared, from: &UdpSocket) {
    let mut datagram = [0; BYTES];
    while !shared.stop.load(Ordering::Acquire) {
        let Ok(BYTES) = from.recv(&mut datagram) else { continue };
        let [a, b, c, d, ..] = datagram;
        let number = u32::from_be_bytes([a, b, c, d]) as usize;
        let mut sent = shared.sent();
        if let Some(arrived) = sent.arrived.get_mut(number).filter(|arrived| !**arrived) {
            *arrived = true;
            shared.received.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn losses(all: &Sent, from: u32, to: u32) -> Losses {
    let first = all.at.partition_point(|at| *at < from);
    let end = all.at.partition_point(|at| *at < to);
    let mut found = Losses { sent: (end - first) as u64, ..Losses::default() };
    for destination in 0..DESTINATIONS as usize {
        let of = DESTINATIONS as usize;
        let begin = first + (destination + of - first % of) % of;
        let numbers = (begin..end).step_by(of);
        let lost = numbers.clone().filter(|n| !all.arrived[*n]).count() as u64;
        found.lost += lost;
        let Some(last) = numbers.rev().find(|n| !all.arrived[*n]) else { continue };
        found.destinations += 1;
        let Some(next) = Some(last + of).filter(|next| *next < end) else {
            found.still = true;
            continue;
        };
        let back = Duration::from_micros(u64::from(all.at[next].saturating_sub(from)));
        let (soonest, latest) = found.back.unwrap_or((back, back));
        found.back = Some((soonest.min(back), latest.max(back)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Datagrams, one every 100 µs, but for some that did not arrive.
    fn sent(count: u32, is_lost: impl Fn(u32) -> bool) -> Sent {
        Sent {
            at: (0..count).map(|n| n * 100).collect(),
            arrived: (0..count).map(|n| !is_lost(n)).collect(),
        }
    }

    #[test]
    fn losses_are_counted_by_destination() {
        let all = sent(1000, |_| false);
        assert_eq!(losses(&all, 0, 50_000), Losses { sent: 500, ..Losses::default() });
        // Destination 3 loses one, destination 7 two in a row.
        let all = sent(1000, |n| [103, 107, 157].contains(&n));
        let found = losses(&all, 10_000, 100_000);
        assert_eq!((found.sent, found.lost, found.destinations), (900, 3, 2));
        let ms = |n: u64| Duration::from_micros(n * 100);
        assert_eq!(found.back, Some((ms(153 - 100), ms(207 - 100))));
        assert!(!found.still);
        // The last datagram of a destination in the span.
        let found = losses(&all, 10_100, 15_800);
        assert!(found.still && found.lost == 3, "{found:?}");
        assert_eq!(losses(&all, 20_000, 20_000), Losses::default());
        assert_eq!(Losses { lost: 10, ..Losses::default() }.mean(), Duration::from_millis(1));
    }

    #[test]
    fn a_span_may_begin_with_any_destination() {
        for first in 0..u64::from(2 * DESTINATIONS) {
            let all = sent(4 * DESTINATIONS, |n| u64::from(n) >= first);
            let found = losses(&all, first as u32 * 100, u32::MAX);
            assert_eq!(found.lost, found.sent, "{first}");
            assert!(found.back.is_none() && found.still);
        }
    }
}
