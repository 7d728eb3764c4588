//! Contents of the statistics segment, under VPP's names.
//!
//! The main thread brings it up to date: whenever a client connects, and from the first one on ten
//! times a second. From then on a new interface is in it, with its counters and those of its nodes,
//! when the call that made it returns. Without clients there is no work.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime};

use thalweg_config::StartupConfig;
use thalweg_device::{InterfaceEvent, Interfaces, SwIfIndex};
use thalweg_feat_arp::ArpCounters;
use thalweg_feat_nd::NdCounters;
use thalweg_fib::{Dpo, Forwarding};
use thalweg_graph::Control;
use thalweg_graph::stats::{IfCounter, IfTotals, Unit};
use thalweg_stats::{Change, Segment, SegmentError, Server, Slot};

use super::RunError;
use super::nat_statistics::NatCounters;
use super::node_statistics::{Errors, Nodes};
use crate::metrics::state::Nat;

/// Default size of the segment in bytes, which are used as needed.
const DEFAULT_SIZE: u64 = 32 << 20;
/// Maximum age of the values of interfaces and errors.
const PERIOD: Duration = Duration::from_millis(100);
/// Maximum age of those of nodes unless another is set.
const NODE_PERIOD: Duration = Duration::from_secs(10);
/// Number of nodes that have links to their counters unless all are asked for: the room is for
/// interfaces, each of which has two nodes.
const LINKED_NODES: usize = 4096;
/// Time that a client may wait for the main thread to bring values up to date.
const PATIENCE: Duration = Duration::from_millis(500);
/// Permissions of the socket: for its owner and group.
const MODE: u32 = 0o660;

/// Counters of an interface under one name, and their column of the segment.
struct IfSlot {
    name: &'static str,
    slot: Slot,
    packets: fn(&IfTotals) -> u64,
    /// Bytes, if they are counted as well.
    bytes: Option<fn(&IfTotals) -> u64>,
}

impl IfSlot {
    /// Makes room for all counters of interfaces: pairs first.
    fn all(s: &mut Change<'_>, rows: usize) -> Result<Vec<IfSlot>, SegmentError> {
        let named = |c: &IfCounter| Some((c.segment?, c.unit, c.value));
        let all = || IfCounter::ALL.iter().filter_map(named);
        let pairs =
            all().filter(|(_, unit, _)| *unit == Unit::Packets).map(|(name, _, packets)| {
                let bytes = all().find(|(of, unit, _)| *of == name && *unit == Unit::Bytes);
                (name, packets, bytes.map(|(_, _, bytes)| bytes))
            });
        let (pairs, single): (Vec<_>, Vec<_>) = pairs.partition(|(_, _, bytes)| bytes.is_some());
        let make = |(name, packets, bytes): (&'static str, _, Option<_>)| {
            let at = format!("/if/{name}");
            let slot = if bytes.is_some() { s.combined(&at, rows) } else { s.simple(&at, rows) }?;
            Ok(IfSlot { name, slot, packets, bytes })
        };
        pairs.into_iter().chain(single).map(make).collect()
    }
}

/// Counters of ARP of each interface, below `/net/arp`.
const ARP: [&str; 6] = thalweg_feat_arp::counters::NAMES;
/// Counters of neighbour discovery of each interface, below `/net/ip6-nd`.
const ND: [&str; 4] = thalweg_feat_nd::counters::NAMES;

struct System {
    heartbeat: Slot,
    boottime: Slot,
    last_clear: Slot,
    vector_rate: Slot,
    input_rate: Slot,
    workers: Slot,
    vector_rates: Slot,
    loops: Slot,
    buffers: [Slot; 3],
    /// Sessions of translation by worker, and the most that one may have.
    sessions: Slot,
    sessions_max: Slot,
}

/// Lives on the main thread.
struct Statistics {
    segment: Segment,
    started: SystemTime,
    heartbeat: u64,
    system: System,
    names: Slot,
    counters: Vec<IfSlot>,
    /// Interfaces as they are in the segment, with the links to their counters.
    interfaces: Vec<Option<(String, Vec<Slot>)>>,
    /// Choice of those that are counted, and a digest of what they had counted then.
    turns: Turns,
    digests: Vec<Option<u64>>,
    /// Interfaces that may have come or gone since.
    changed: BTreeSet<SwIfIndex>,
    errors: Errors,
    nodes: Option<Nodes>,
    routes: Routes,
    nat: NatCounters,
    /// Counters of ARP by interface.
    arp: [Slot; ARP.len()],
    /// Counters of neighbour discovery by interface.
    nd: [Slot; ND.len()],
    /// True once a full segment was logged.
    full: bool,
}

/// Makes the segment, and serves it until the server is dropped.
pub(super) fn start(
    c: &mut Control,
    config: &StartupConfig,
    dir: &Path,
    group: Option<u32>,
) -> Result<Server, RunError> {
    let settings = &config.statseg;
    let size = usize::try_from(settings.size.unwrap_or(DEFAULT_SIZE)).unwrap_or(usize::MAX);
    let linked = match settings.per_node_counters {
        None => Some(LINKED_NODES),
        Some(true) => Some(usize::MAX),
        Some(false) => None,
    };
    let period = settings.update_interval.map_or(NODE_PERIOD, Duration::from_secs_f64);
    let nodes = linked.map(|linked| (linked, period));
    let statistics = Statistics::new(Segment::new(size)?, c, nodes)?;
    let file = statistics
        .segment
        .reader()
        .map_err(|source| SegmentError::Memory { bytes: size, source })?;
    c.insert(statistics);
    let running = Arc::new(AtomicBool::new(false));
    let has_clients = running.clone();
    c.subscribe(move |c, event: &InterfaceEvent| {
        let (sw_if, deleted) = match event {
            InterfaceEvent::Created(sw_if) => (*sw_if, false),
            InterfaceEvent::Deleted(sw_if) => (*sw_if, true),
            _ => return,
        };
        let state = c.state::<Statistics>();
        let mut state = state.borrow_mut();
        if has_clients.load(Ordering::Relaxed) {
            if deleted {
                // The interface is still listed while its end is announced.
                let _ = state.describe_interface(sw_if.index(), None);
            } else {
                state.changed.insert(sw_if);
                state.describe_or_warn(c);
                return;
            }
        }
        state.changed.insert(sw_if);
    });
    c.subscribe(|c, _: &thalweg_feat_nat44::state::RolesChanged| {
        let state = c.state::<Statistics>();
        let Statistics { nat, segment, .. } = &mut *state.borrow_mut();
        // The next refresh reports missing room.
        let _ = nat.describe(c, segment);
    });
    let path = settings.socket_name.clone().unwrap_or_else(|| dir.join("stats.sock"));
    let remote = c.remote();
    let fresh = move || {
        let (done, wait) = mpsc::sync_channel(1);
        let running = running.clone();
        let refresh = move |c: &mut Control| {
            self::refresh(c, move |_| _ = done.send(()));
            if !running.swap(true, Ordering::Relaxed) {
                c.every(PERIOD, |c| {
                    self::refresh(c, |_| ());
                    true
                });
            }
        };
        if remote.submit(refresh) {
            let _ = wait.recv_timeout(PATIENCE);
        }
    };
    Ok(Server::start(&path, MODE, group, file, fresh)?)
}

fn all_interfaces(c: &Control) -> BTreeSet<SwIfIndex> {
    c.state::<Interfaces>().borrow().iter().map(|view| view.sw_if).collect()
}

/// Brings all values up to date, then calls `then`.
fn refresh(c: &mut Control, then: impl FnOnce(&mut Control) + 'static) {
    Nat::then(c, |c, nat| {
        let state = c.state::<Statistics>();
        let mut statistics = state.borrow_mut();
        statistics.refresh(c);
        statistics.sessions(nat.as_ref());
        drop(statistics);
        then(c);
    });
}

impl Statistics {
    fn new(
        mut segment: Segment,
        c: &Control,
        nodes: Option<(usize, Duration)>,
    ) -> Result<Statistics, SegmentError> {
        let rows = c.workers() + 1;
        segment
            .change(|s| {
                let heartbeat = s.scalar("/sys/heartbeat")?;
                let last_clear = s.scalar("/sys/last_stats_clear")?;
                let system = System::new(s, heartbeat, last_clear, rows)?;
                let names = s.names("/if/names")?;
                let counters = IfSlot::all(s, rows)?;
                let errors = Errors::new(s, rows)?;
                // A name that VPP's clients look up: it counts nothing there, either.
                let none = s.simple("/node/no-errors", rows)?;
                s.widen(none, 1)?;
                s.link("/err/ethernet-input/no error", none, 0)?;
                let nodes = nodes.map(|of| Nodes::new(s, rows, of)).transpose()?;
                let arp = slots(ARP, |name| s.simple(&format!("/net/arp/{name}"), rows))?;
                let nd = slots(ND, |name| s.simple(&format!("/net/ip6-nd/{name}"), rows))?;
                let more = (Routes::new(s, rows)?, NatCounters::new(s, rows)?, arp, nd);
                Ok((system, names, counters, errors, nodes, more))
            })
            .map(|(system, names, counters, errors, nodes, (routes, nat, arp, nd))| Statistics {
                segment,
                started: SystemTime::now() - c.uptime(),
                heartbeat: 0,
                system,
                names,
                counters,
                interfaces: Vec::new(),
                turns: Turns::default(),
                digests: Vec::new(),
                changed: all_interfaces(c),
                errors,
                nodes,
                routes,
                nat,
                arp,
                nd,
                full: false,
            })
    }

    /// Enters what came, and takes out what went. A segment without room is reported once.
    fn describe_or_warn(&mut self, c: &Control) {
        if let Err(error) = self.describe(c)
            && !std::mem::replace(&mut self.full, true)
        {
            tracing::warn!("{error}");
        }
    }

    fn refresh(&mut self, c: &Control) {
        self.describe_or_warn(c);
        self.system(c);
        self.count_interfaces(c);
        self.count_neighbors(c);
        self.errors.count(c, &self.segment);
        self.routes.count(c, &self.segment);
        self.nat.count(c, &self.segment);
        let now = Instant::now();
        if let Some(nodes) = &mut self.nodes {
            nodes.count_if_due(c, &self.segment, now);
        }
    }

    fn system(&mut self, c: &Control) {
        self.heartbeat += 1;
        let (s, system) = (&self.segment, &self.system);
        s.set(system.heartbeat, self.heartbeat);
        let since = self.started.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        s.set(system.boottime, since.as_secs());
        let cleared = c.baseline.cleared.unwrap_or(SystemTime::UNIX_EPOCH);
        let cleared = cleared.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        s.set(system.last_clear, cleared.as_secs());
        s.set(system.workers, c.workers() as u64);
        let rates: Vec<_> =
            (0..=c.workers()).map(|thread| thalweg_engine::rates(c, thread)).collect();
        for (thread, rates) in rates.iter().enumerate() {
            s.count(system.vector_rates, thread, 0, [rates.vector_rate as u64]);
            s.count(system.loops, thread, 0, [rates.loops as u64]);
        }
        let workers = rates.iter().skip(1);
        let sum: f64 = workers.clone().map(|r| r.vector_rate).sum();
        s.set(system.vector_rate, (sum / c.workers() as f64) as u64);
        s.set(system.input_rate, workers.map(|r| r.rx).sum::<f64>() as u64);
        let pool = c.pool().audit();
        for (slot, value) in system.buffers.iter().zip([pool.cached, pool.in_use, pool.depot]) {
            s.set(*slot, value as u64);
        }
    }

    /// Sessions; none while there is no translation.
    fn sessions(&self, nat: Option<&Nat>) {
        let (s, system) = (&self.segment, &self.system);
        s.set(system.sessions_max, nat.map_or(0, |nat| nat.most.into()));
        for (worker, view) in nat.iter().flat_map(|nat| nat.workers.iter().enumerate()) {
            s.count(system.sessions, worker + 1, 0, [view.sessions.into()]);
        }
    }

    /// Copies the counters of interfaces that count, and looks at some of the others.
    fn count_interfaces(&mut self, c: &Control) {
        let Statistics { segment, counters, interfaces, digests, turns, .. } = self;
        digests.resize(interfaces.len(), None);
        turns.next(interfaces.len(), |column| {
            if interfaces[column].is_none() {
                return false;
            }
            let counts = c.interface_counts(SwIfIndex(column as u32));
            let digest = counts.iter().fold(0, digest);
            if digests[column].replace(digest) == Some(digest) {
                return false;
            }
            for (row, totals) in counts.iter().enumerate() {
                for IfSlot { slot, packets, bytes, .. } in &*counters {
                    let packets = packets(totals);
                    match bytes {
                        Some(bytes) => {
                            segment.count(*slot, row + 1, column, [packets, bytes(totals)]);
                        }
                        None => segment.count(*slot, row + 1, column, [packets]),
                    }
                }
            }
            true
        });
    }

    /// Copies the counters of ARP and neighbour discovery. Only interfaces with hosts have any, and
    /// these are few.
    fn count_neighbors(&self, c: &Control) {
        let (arp, nd) = (c.shared::<ArpCounters>(), c.shared::<NdCounters>());
        let there = self.interfaces.iter().enumerate().filter(|(_, known)| known.is_some());
        for (column, _) in there {
            for thread in 0..=c.workers() {
                let sw_if = SwIfIndex(column as u32);
                let arp = self.arp.iter().zip(arp.read(thread, sw_if));
                let nd = self.nd.iter().zip(nd.read(thread, sw_if));
                for (slot, count) in arp.chain(nd) {
                    self.segment.count(*slot, thread, column, [count]);
                }
            }
        }
    }

    /// Enters interfaces, errors and nodes that came, and takes out those that went.
    fn describe(&mut self, c: &Control) -> Result<(), SegmentError> {
        let state = c.state::<Interfaces>();
        let interfaces = state.borrow();
        while let Some(sw_if) = self.changed.first().copied() {
            let now = interfaces.get(sw_if).map(|view| view.name.as_str());
            let known = self.interfaces.get(sw_if.index()).and_then(Option::as_ref);
            if now != known.map(|(name, _)| name.as_str()) {
                self.describe_interface(sw_if.index(), now)?;
            }
            self.changed.remove(&sw_if);
        }
        self.errors.describe(c, &mut self.segment)?;
        let nat = self.nat.describe(c, &mut self.segment);
        let routes = self.routes.describe(c, &mut self.segment);
        // The last, as nobody may need them.
        if let Some(nodes) = &mut self.nodes {
            nodes.describe(c, &mut self.segment)?;
        }
        nat.and(routes)
    }

    fn describe_interface(&mut self, sw_if: usize, name: Option<&str>) -> Result<(), SegmentError> {
        if self.interfaces.len() <= sw_if {
            self.interfaces.resize(sw_if + 1, None);
        }
        if let Some(digest) = self.digests.get_mut(sw_if) {
            *digest = None;
        }
        let (names, counters) = (self.names, &self.counters);
        let neighbors: Vec<Slot> = self.arp.into_iter().chain(self.nd).collect();
        let known = &mut self.interfaces[sw_if];
        self.segment.change(|s| {
            // Its column stays, and so does a name that says that it is gone.
            for link in known.take().into_iter().flat_map(|(_, links)| links) {
                s.remove(link);
            }
            s.name(names, sw_if, Some(name.unwrap_or("deleted")))?;
            for slot in neighbors {
                s.widen(slot, sw_if + 1)?;
            }
            let Some(name) = name else { return Ok(()) };
            let (_, links) = known.insert((name.to_owned(), Vec::new()));
            for IfSlot { name: counter, slot, .. } in counters {
                s.widen(*slot, sw_if + 1)?;
                let link = format!("/interfaces/{}/{counter}", name.replace('/', "_"));
                links.push(s.link(&link, *slot, sw_if as u32)?);
            }
            Ok(())
        })
    }
}

impl System {
    fn new(
        s: &mut Change<'_>,
        heartbeat: Slot,
        last_clear: Slot,
        rows: usize,
    ) -> Result<System, SegmentError> {
        Ok(System {
            heartbeat,
            last_clear,
            boottime: s.scalar("/sys/boottime")?,
            vector_rate: s.gauge("/sys/vector_rate")?,
            workers: s.gauge("/sys/num_worker_threads")?,
            input_rate: s.gauge("/sys/input_rate")?,
            vector_rates: s.simple("/sys/vector_rate_per_worker", rows)?,
            loops: s.simple("/sys/loops_per_worker", rows)?,
            buffers: slots(["cached", "used", "available"], |name| {
                s.gauge(&format!("/buffer-pools/default-numa-0/{name}"))
            })?,
            sessions: s.simple("/nat44-ed/total-sessions", rows)?,
            sessions_max: s.gauge("/nat44-ed/max-cfg-sessions")?,
        })
    }
}

/// Counters of routes and adjacencies, by forwarding object.
struct Routes {
    to: Slot,
    via: Slot,
    known: u32,
}

impl Routes {
    fn new(s: &mut Change<'_>, rows: usize) -> Result<Routes, SegmentError> {
        let [to, via] =
            slots(["to", "via"], |name| s.combined(&format!("/net/route/{name}"), rows))?;
        Ok(Routes { to, via, known: 0 })
    }

    /// Makes room for all objects: replies to clients have their indices.
    fn describe(&mut self, c: &Control, segment: &mut Segment) -> Result<(), SegmentError> {
        let objects = c.state::<Forwarding>().borrow().high_water();
        if objects > self.known {
            // Some more, as changes keep readers waiting.
            let columns = objects.next_power_of_two() as usize;
            segment.change(|s| {
                s.widen(self.to, columns)?;
                s.widen(self.via, columns)
            })?;
            self.known = columns as u32;
        }
        Ok(())
    }

    fn count(&self, c: &Control, segment: &Segment) {
        let state = c.state::<Forwarding>();
        let state = state.borrow();
        if !state.counting() {
            return;
        }
        for dpo in 0..state.high_water() {
            for (worker, counts) in state.counts_by_worker(Dpo(dpo)).enumerate() {
                let [to, via] = [counts.to, counts.via].map(|n| [n.packets, n.bytes]);
                segment.count(self.to, worker + 1, dpo as usize, to);
                segment.count(self.via, worker + 1, dpo as usize, via);
            }
        }
    }
}

/// Adds a worker's counters of an interface to a number that differs when one of them does.
fn digest(so_far: u64, t: &IfTotals) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let all = IfCounter::ALL.iter().map(|counter| (counter.value)(t));
    all.fold(so_far, |digest, value| (digest ^ value).wrapping_mul(MULTIPLIER).rotate_left(29))
}

/// Interfaces that are looked at in turn each time; there may be 65,536.
const PER_TURN: usize = 4096;

/// Interfaces that are looked at: those that had counted when they were looked at last, and a
/// number of the others, one after the other.
#[derive(Default)]
struct Turns {
    active: Vec<usize>,
    is_active: Vec<bool>,
    next: usize,
}

impl Turns {
    /// Calls `look`, which says whether an interface has counted, for those whose turn it is.
    fn next(&mut self, all: usize, mut look: impl FnMut(usize) -> bool) {
        self.is_active.resize(all, false);
        self.active.retain(|column| {
            self.is_active[*column] = look(*column);
            self.is_active[*column]
        });
        for _ in 0..all.min(PER_TURN) {
            let column = self.next % all;
            self.next = column + 1;
            if !self.is_active[column] && look(column) {
                self.is_active[column] = true;
                self.active.push(column);
            }
        }
    }
}

/// A slot for each name.
pub(super) fn slots<const N: usize>(
    names: [&str; N],
    mut make: impl FnMut(&str) -> Result<Slot, SegmentError>,
) -> Result<[Slot; N], SegmentError> {
    let mut made = Vec::with_capacity(N);
    for name in names {
        made.push(make(name)?);
    }
    // One slot is made per name.
    Ok(std::array::from_fn(|i| made[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interfaces that count are looked at each time, and those that begin to count within a round.
    #[test]
    fn interfaces_take_turns() {
        let mut turns = Turns::default();
        let all = 3 * PER_TURN + 5;
        let mut counts = vec![false; all];
        counts[7] = true;
        let mut looks = vec![0; all];
        let mut turn = |counts: &[bool], looks: &mut Vec<u32>| {
            let mut n = 0;
            turns.next(all, |column| {
                n += 1;
                looks[column] += 1;
                counts[column]
            });
            n
        };
        for _ in 0..8 {
            assert!(turn(&counts, &mut looks) <= PER_TURN + 1);
        }
        assert_eq!(looks[7], 8);
        assert!(looks.iter().all(|n| (1..=3).contains(n) || *n == 8));
        counts[7] = false;
        counts[all - 1] = true;
        for _ in 0..4 {
            turn(&counts, &mut looks);
        }
        let before = looks[all - 1];
        for _ in 0..3 {
            turn(&counts, &mut looks);
        }
        assert_eq!(looks[all - 1], before + 3);
        assert!(looks[7] < 13);
        // Few are all looked at each time.
        let (mut few, mut seen) = (Turns::default(), 0);
        for _ in 0..5 {
            few.next(100, |_| {
                seen += 1;
                false
            });
        }
        few.next(0, |_| panic!("there is none"));
        assert_eq!(seen, 500);
    }

    /// The names and their order are VPP's clients' business.
    #[test]
    fn counters_of_interfaces_have_vpps_names() {
        let mut segment = Segment::new(1 << 20).unwrap();
        let counters = segment.change(|s| IfSlot::all(s, 2)).unwrap();
        let (pairs, single): (Vec<_>, Vec<_>) = counters.iter().partition(|c| c.bytes.is_some());
        let names = |all: Vec<&IfSlot>| all.iter().map(|c| c.name).collect::<Vec<_>>().join(" ");
        assert_eq!(
            names(pairs),
            "rx tx rx-unicast rx-multicast rx-broadcast tx-unicast tx-multicast tx-broadcast"
        );
        let all = "drops punt ip4 ip6 rx-no-buf rx-miss rx-error tx-error mpls";
        assert_eq!(names(single), all);
    }

    #[test]
    fn a_digest_differs_when_a_counter_does() {
        let digest_of = |change: fn(&mut IfTotals)| {
            let mut t = IfTotals { rx_packets: 5, rx_bytes: 300, ..IfTotals::default() };
            change(&mut t);
            digest(0, &t)
        };
        let changes: [fn(&mut IfTotals); 5] = [
            |t| t.rx_packets += 1,
            |t| t.tx_bytes += 1,
            |t| t.tx_error += 1,
            |t| (t.rx_packets, t.rx_bytes) = (300, 5),
            |t| t.drops = 1,
        ];
        let mut all: Vec<u64> = changes.into_iter().map(digest_of).collect();
        all.push(digest_of(|_| {}));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 6);
    }
}
