//! Linux control plane with two workers: packets to and from a twin take either.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{
    IperfOptions, LinkOptions, Netns, PingOptions, WAIT_LIMIT, iperf3, lab_test, ping, veth,
    wait_until_seen,
};

/// The router's address on the link, which its twin has, and the peer's.
const US: [u8; 4] = [10, 1, 0, 1];
const PEER: [u8; 4] = [10, 1, 0, 2];
/// Flows each way.
const FLOWS: usize = 4;

struct Edge {
    router: Netns,
    plane: Netns,
    peer: Netns,
}

impl Edge {
    fn new() -> Result<Edge> {
        let [router, plane, peer] = ["lcpw-router", "lcpw-plane", "lcpw-peer"].map(Netns::new);
        let (router, plane, peer) = (router?, plane?, peer?);
        plane.ip("link set lo up")?;
        let link = LinkOptions { queues: 2, ..LinkOptions::default() };
        veth((&router, "e0", &link), (&peer, "eth0", &link.clone().address("10.1.0.2/24")))?;
        router.capture("e0")?;
        Ok(Edge { router, plane, peer })
    }

    fn start(&self) -> Result<Router> {
        let config = Config::empty().stanza("cpu { workers 2 }").commands(&format!(
            "create host-interface name e0 num-rx-queues 2
             set interface ip address host-e0 10.1.0.1/24
             set interface state host-e0 up
             set punt class other 1000000
             lcp lcp-sync on
             lcp default netns {}
             lcp create host-e0 host-if e0",
            self.plane.descriptor_path().display()
        ));
        let router = Router::start(&self.router, &config)?;
        self.await_twin()?;
        Ok(router)
    }

    fn await_twin(&self) -> Result<()> {
        wait_until_seen(WAIT_LIMIT, "the twin", || {
            let shown = self.plane.ip("-br address show dev e0")?;
            ensure!(shown.contains("10.1.0.1/24") && shown.contains("UP"), "{shown}");
            Ok(())
        })
    }

    /// Starts flows both ways.
    fn streams(&self) -> Result<[Stream; 2]> {
        let to_twin = Stream::start((&self.peer, PEER), (&self.plane, US))?;
        Ok([to_twin, Stream::start((&self.plane, US), (&self.peer, PEER))?])
    }
}

/// Gives all queues of an interface to a worker.
fn place(router: &Router, interface: &str, worker: usize) -> Result<()> {
    for queue in 0..2 {
        let of = format!("{interface} queue {queue}");
        router.cli(&format!("set interface rx-placement {of} worker {worker}"))?;
    }
    Ok(())
}

/// Waits until the interface and its twin have brought more packets.
fn await_more(router: &Router, packets: u64) -> Result<()> {
    for name in ["host-e0", "tap4096"] {
        let now = router.interface_counter(name, "rx_packets")?;
        router.await_received(name, now + packets)?;
    }
    Ok(())
}

/// Packets that each worker has received.
fn received(router: &Router) -> Result<Vec<u64>> {
    let shown = router.json("show packet accounting")?;
    let rows = shown["threads"].as_array().context("threads")?;
    rows.iter().take(2).map(|row| row["rx"].as_u64().context("a number")).collect()
}

/// Packets that went to twins.
fn punted(router: &Router) -> Result<u64> {
    let shown = router.json("show punt")?;
    let rows = shown.as_array().context("a list")?;
    ensure!(rows.iter().all(|row| row["limited"] == 0), "{shown}");
    Ok(rows.iter().filter_map(|row| row["passed"].as_u64()).sum())
}

/// Numbered datagrams of some flows.
struct Stream {
    stop: Arc<AtomicBool>,
    sender: JoinHandle<BTreeMap<u16, u64>>,
    receiver: JoinHandle<Result<BTreeMap<u16, Vec<u64>>>>,
    to: Netns,
    full_before: u64,
}

/// Number of the datagrams that end a flow.
const END: u64 = u64::MAX;
/// Ends of each flow that are waited for, so that what is late has time to come.
const ENDS: usize = 5;

impl Stream {
    fn start((from, own): (&Netns, [u8; 4]), (to, there): (&Netns, [u8; 4])) -> Result<Stream> {
        let bind = |ns: &Netns, ip: [u8; 4]| -> Result<UdpSocket> {
            Ok(ns.run(|| UdpSocket::bind((Ipv4Addr::from(ip), 0)))??)
        };
        let socket = bind(to, there)?;
        let target = socket.local_addr()?;
        let flows = (0..FLOWS).map(|_| bind(from, own)).collect::<Result<Vec<_>>>()?;
        let (stop, is_over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (stopped, over) = (stop.clone(), is_over.clone());
        let sender = thread::spawn(move || {
            let mut sent = BTreeMap::new();
            while !over.load(Ordering::Relaxed) {
                let has_ended = stopped.load(Ordering::Relaxed);
                for flow in &flows {
                    let Ok(port) = flow.local_addr().map(|own| own.port()) else { continue };
                    let next = sent.entry(port).or_insert(0_u64);
                    let number = if has_ended { END } else { *next };
                    // The twin may be away.
                    let is_sent = flow.send_to(&number.to_be_bytes(), target).is_ok();
                    *next += u64::from(is_sent && !has_ended);
                }
                // Paced: 2,000 datagrams per second.
                thread::sleep(Duration::from_millis(2));
            }
            sent
        });
        let receiver = thread::spawn(move || {
            let seen = receive(&socket);
            is_over.store(true, Ordering::Relaxed);
            seen
        });
        let full_before = full(to)?;
        Ok(Stream { stop, sender, receiver, to: to.clone(), full_before })
    }

    /// Ends it; returns the numbers sent and received of each flow.
    fn stop(self) -> Result<Ended> {
        self.stop.store(true, Ordering::Relaxed);
        let seen = self.receiver.join().map_err(|_| anyhow!("the receiver panicked"))??;
        let sent = self.sender.join().map_err(|_| anyhow!("the sender panicked"))?;
        Ok(Ended { sent, seen, full: full(&self.to)? - self.full_before })
    }
}

/// Datagrams for which sockets had no room.
fn full(ns: &Netns) -> Result<u64> {
    ns.snmp_sum(&["Udp.RcvbufErrors"])
}

fn receive(socket: &UdpSocket) -> Result<BTreeMap<u16, Vec<u64>>> {
    socket.set_read_timeout(Some(WAIT_LIMIT))?;
    let mut seen = BTreeMap::<u16, Vec<u64>>::new();
    let (mut ends, mut data) = (BTreeMap::<u16, usize>::new(), [0; 8]);
    while ends.len() < FLOWS || ends.values().any(|n| *n < ENDS) {
        let (_, from) = match socket.recv_from(&mut data) {
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            got => got.context("no datagram")?,
        };
        match u64::from_be_bytes(data) {
            END => *ends.entry(from.port()).or_default() += 1,
            n => seen.entry(from.port()).or_default().push(n),
        }
    }
    Ok(seen)
}

/// A stream that has ended.
struct Ended {
    sent: BTreeMap<u16, u64>,
    seen: BTreeMap<u16, Vec<u64>>,
    /// Datagrams for which the receiver's kernel had no room.
    full: u64,
}

impl Ended {
    fn count(&self) -> u64 {
        self.sent.values().sum()
    }

    /// Checks that nothing was lost or came twice.
    fn is_whole(&self) -> Result<()> {
        let mut missing = 0;
        for (port, sent) in &self.sent {
            let seen = self.seen.get(port).map_or(&[][..], Vec::as_slice);
            let once: BTreeSet<u64> = seen.iter().copied().collect();
            ensure!(once.len() == seen.len(), "flow {port} has duplicates");
            missing += sent - once.len() as u64;
        }
        ensure!(missing <= self.full, "{missing} of {} lost, {} unread", self.count(), self.full);
        Ok(())
    }

    /// Checks that each flow came in order.
    fn is_in_order(&self) -> Result<()> {
        for (port, seen) in &self.seen {
            let late = seen.windows(2).filter(|pair| pair[0] > pair[1]).count();
            ensure!(late == 0, "flow {port}: {late} of {} out of order", seen.len());
        }
        Ok(())
    }
}

lab_test! {
    /// Packets come whole and in order whichever worker has the queues of the interface and of the
    /// twin, and counters add up.
    fn packets_of_a_twin_take_either_worker() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        ping(&edge.peer, US, &PingOptions::default())?.all_answered()?;
        ping(&edge.plane, PEER, &PingOptions::default())?.all_answered()?;
        for (wire, twin) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            place(&router, "host-e0", wire)?;
            place(&router, "tap4096", twin)?;
            let (before, punted_before) = (received(&router)?, punted(&router)?);
            let [to, from] = edge.streams()?;
            await_more(&router, 500)?;
            let (to, from) = (to.stop()?, from.stop()?);
            for (what, ended) in [("to", &to), ("from", &from)] {
                ended.is_whole().and_then(|()| ended.is_in_order()).with_context(|| {
                    format!("{what} the twin, wire by worker {wire}, twin by worker {twin}")
                })?;
            }
            let now = received(&router)?;
            let mut least = [0; 2];
            least[wire] += to.count();
            least[twin] += from.count();
            let grown = [now[0] - before[0], now[1] - before[1]];
            ensure!(grown[0] >= least[0] && grown[1] >= least[1], "{grown:?}, at least {least:?}");
            ensure!(punted(&router)? - punted_before >= to.count());
        }
        // All that was passed to the twin was sent to it.
        router.await_rest()?;
        wait_until_seen(WAIT_LIMIT, "the sums to agree", || {
            let passed = punted(&router)?;
            let counted = router.interface_counter("host-e0", "punt")?;
            let sent = router.interface_counter("tap4096", "tx_packets")?;
            ensure!(passed == counted && passed == sent, "{passed} passed, {counted}, {sent} sent");
            Ok(())
        })?;
        for reverse in [false, true] {
            let options = IperfOptions { reverse, parallel: 4, ..IperfOptions::default() };
            let result = iperf3(&edge.peer, &edge.plane, US, &options)?;
            ensure!(result.bits_per_s > 1e6, "reverse {reverse}: {result:?}");
        }
        for ns in [&edge.peer, &edge.plane] {
            ensure!(ns.snmp()?["Tcp.InErrs"] == 0, "{}: TCP input errors", ns.label());
        }
        router.stop().map(drop)
    }

    /// Queues move between workers under flows: nothing is lost, and nothing comes twice.
    fn queues_of_a_twin_move_under_flows() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        ping(&edge.peer, US, &PingOptions::default())?.all_answered()?;
        let [to, from] = edge.streams()?;
        for turn in 0..24 {
            place(&router, ["host-e0", "tap4096"][turn % 2], turn / 2 % 2)?;
            await_more(&router, 20)?;
        }
        to.stop()?.is_whole().context("to the twin")?;
        from.stop()?.is_whole().context("from the twin")?;
        router.stop().map(drop)
    }

    /// Twins go and come under flows both ways; every packet has an end, and every buffer comes
    /// home.
    fn twins_go_and_come_under_flows() {
        let edge = Edge::new()?;
        let router = edge.start()?;
        ping(&edge.peer, US, &PingOptions::default())?.all_answered()?;
        let [to, from] = edge.streams()?;
        for _ in 0..8 {
            router.cli("lcp delete host-e0")?;
            router.cli("lcp create host-e0 host-if e0")?;
            edge.await_twin()?;
            let one = PingOptions { count: 1, ..PingOptions::default() };
            wait_until_seen(WAIT_LIMIT, "an answer to the twin", || {
                let got = ping(&edge.plane, PEER, &one)?;
                ensure!(got.received == 1, "{}", got.text);
                Ok(())
            })?;
        }
        let (to, from) = (to.stop()?, from.stop()?);
        ensure!(to.seen.len() == FLOWS && from.seen.len() == FLOWS, "flows have ended");
        ensure!(punted(&router)? > 0);
        router.stop().map(drop)
    }
}
