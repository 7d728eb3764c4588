//! Metrics of sessions, connections, learned MAC addresses and flow rules.
//!
//! Sessions and connections belong to workers, which are queried once per scrape, and only while
//! the feature is in use.

use super::twins::Twins;
use std::collections::BTreeMap;
use std::fmt::Result;
use std::net::Ipv4Addr;
use thalweg_cli::{CliError, Outcome, Output};
use thalweg_conntrack::tracker::{Counts, Live};
use thalweg_feat_flow::{SetTotals, Sums, SumsAsked, Tracking};
use thalweg_feat_l2::L2;
use thalweg_feat_nat44::Nat44;
use thalweg_feat_nat44::view::{self, WorkerView};
use thalweg_graph::Control;
use thalweg_stats::metrics::Page;

/// Figures of NAT44.
#[derive(Clone, Debug)]
pub(crate) struct Nat {
    /// Maximum number of sessions per worker.
    pub most: u32,
    pub workers: Vec<WorkerView>,
}

impl Nat {
    /// Asks the workers, and continues with their answers; with `None` while NAT44 is disabled.
    pub(crate) fn then(c: &mut Control, then: impl FnOnce(&mut Control, Option<Nat>) + 'static) {
        let most = c.state::<Nat44>().borrow().sessions();
        match most {
            None => then(c, None),
            Some(most) => view::workers_then(c, move |c, workers| {
                then(c, Some(Nat { most, workers }));
            }),
        }
    }
}

/// Workers' sums of sessions and connections; `None` for a feature that is not in use.
pub(crate) struct OfWorkers {
    pub nat: Option<Nat>,
    pub connections: Option<Sums>,
}

/// A request to workers about connections.
type Asked = Option<SumsAsked>;

impl OfWorkers {
    fn begin(c: &mut Control) -> Asked {
        let tracks = c.state::<Tracking>().borrow().is_prepared();
        tracks.then(|| SumsAsked::begin(c))
    }

    fn of(c: &Control, workers: Vec<WorkerView>, asked: Asked) -> OfWorkers {
        let nat = c.state::<Nat44>().borrow().sessions().map(|most| Nat { most, workers });
        OfWorkers { nat, connections: asked.map(SumsAsked::collect) }
    }

    /// Asks the workers, and continues with their answers.
    pub(crate) fn then(c: &mut Control, then: impl FnOnce(&Control, OfWorkers) + 'static) {
        let asked = OfWorkers::begin(c);
        view::workers_then(c, |c, workers| then(c, OfWorkers::of(c, workers, asked)));
    }

    /// Continues a command with their answers.
    ///
    /// # Errors
    /// None.
    pub(crate) fn with(
        c: &mut Control,
        out: &mut Output,
        then: impl FnOnce(&Control, OfWorkers, &mut Output) + Send + 'static,
    ) -> std::result::Result<Outcome<Control>, CliError> {
        let asked = OfWorkers::begin(c);
        view::with_workers(c, out, move |c, workers, out| {
            then(c, OfWorkers::of(c, workers, asked), out);
        })
    }
}

/// Figures of connection tracking.
#[derive(Clone, Debug)]
struct Connections {
    limit: u32,
    counts: Counts,
    live: Live,
    /// Hits and misses of the megaflow caches.
    cache: [u64; 2],
    /// Zones with their own limit: number of connections, limit.
    zones: BTreeMap<u16, (u32, u32)>,
}

impl Connections {
    fn of(c: &Control, sums: Sums) -> Connections {
        let tracking = c.state::<Tracking>();
        let tracking = tracking.borrow();
        let limit_of = |zone: u16| tracking.zone_limits.get(&Some(zone)).copied();
        let zones = sums.zones.into_iter();
        let zones = zones.map(|(zone, n)| (zone, (n, limit_of(zone).unwrap_or_default())));
        Connections {
            limit: tracking.limit,
            counts: sums.counts,
            live: sums.live,
            cache: sums.cache,
            zones: zones.collect(),
        }
    }
}

/// Figures of one bridge domain.
#[derive(Clone, Debug)]
struct Bridge {
    id: String,
    ports: usize,
    learned: u32,
    limit: u32,
}

/// Figures of all bridge domains.
#[derive(Clone, Debug, Default)]
struct Bridges {
    all: Vec<Bridge>,
    macs: u32,
    most: u32,
    events: [(&'static str, u64); 4],
}

impl Bridges {
    fn read(c: &Control) -> Bridges {
        let state = c.state::<L2>();
        let l2 = state.borrow();
        let (bridges, counts) = (l2.bridges(), l2.bridges().counts());
        let one = |(id, d): (u32, &thalweg_feat_l2::Domain)| Bridge {
            id: id.to_string(),
            ports: d.ports().count(),
            learned: d.learned(),
            limit: d.learn_limit,
        };
        Bridges {
            all: bridges.list().map(one).collect(),
            macs: bridges.count().0,
            most: bridges.limit(),
            events: [
                ("learned", counts.learned),
                ("moved", counts.moved),
                ("aged", counts.aged),
                ("refused", counts.refused),
            ],
        }
    }
}

/// Figures of all stateful features.
#[derive(Clone, Debug)]
pub(crate) struct State {
    nat: Option<Nat>,
    connections: Option<Connections>,
    bridges: Bridges,
    rules: BTreeMap<u32, SetTotals>,
    twins: Twins,
}

impl State {
    /// Reads all figures but those of workers.
    pub(crate) fn with(c: &Control, known: OfWorkers) -> State {
        State {
            nat: known.nat,
            connections: known.connections.map(|sums| Connections::of(c, sums)),
            bridges: Bridges::read(c),
            rules: thalweg_feat_flow::totals(c),
            twins: Twins::read(c),
        }
    }

    /// Writes them as metrics.
    pub(crate) fn write(&self, page: &mut Page<'_>) -> Result {
        if let Some(nat) = &self.nat {
            sessions(nat, page)?;
            addresses(nat, page)?;
        }
        if let Some(connections) = &self.connections {
            tracked(connections, page)?;
        }
        bridges(&self.bridges, page)?;
        rules(&self.rules, page)?;
        self.twins.write(page)
    }
}

const PROTOCOLS: [&str; 4] = ["tcp", "udp", "icmp", "other"];

fn sessions(nat: &Nat, page: &mut Page<'_>) -> Result {
    let workers = || nat.workers.iter().enumerate().map(|(n, w)| (n.to_string(), w));
    page.gauge("thalweg_nat44_sessions", "NAT44 sessions of a worker, by protocol", |v| {
        for (number, w) in workers() {
            for (protocol, n) in PROTOCOLS.iter().zip(w.counts.by_protocol) {
                v.add(&[("worker", &number), ("protocol", protocol)], u64::from(n))?;
            }
        }
        Ok(())
    })?;
    page.gauge("thalweg_nat44_sessions_max", "Session limit of a worker", |v| {
        let mut workers = workers();
        workers.try_for_each(|(n, _)| v.add(&[("worker", &n)], u64::from(nat.most)))
    })?;
    let help = "Session events; `refused' means that the session table was full";
    page.counter("thalweg_nat44_session_events", help, |v| {
        for (number, w) in workers() {
            let events = [
                ("created", w.flows.added),
                ("expired", w.flows.expired),
                ("removed", w.flows.removed),
                ("recycled", w.flows.recycled),
                ("refused", w.flows.refused),
            ];
            for (event, n) in events {
                v.add(&[("worker", &number), ("event", event)], n)?;
            }
        }
        Ok(())
    })
}

fn addresses(nat: &Nat, page: &mut Page<'_>) -> Result {
    let mut busy: BTreeMap<(u32, bool), [u64; 3]> = BTreeMap::new();
    for (address, twice, ports) in nat.workers.iter().flat_map(|w| &w.busy) {
        let sum = busy.entry((*address, *twice)).or_default();
        sum.iter_mut().zip(ports).for_each(|(sum, n)| *sum += u64::from(*n));
    }
    let help = "Ports in use on an external address, of about 64,500 per protocol";
    page.gauge("thalweg_nat44_address_ports", help, |v| {
        for ((address, twice), ports) in &busy {
            let address = Ipv4Addr::from_bits(*address).to_string();
            let pool = if *twice { "twice-nat" } else { "nat" };
            for (protocol, n) in PROTOCOLS.iter().zip(ports) {
                v.add(&[("address", &address), ("pool", pool), ("protocol", protocol)], *n)?;
            }
        }
        Ok(())
    })
}

fn tracked(t: &Connections, page: &mut Page<'_>) -> Result {
    page.gauge("thalweg_conntrack_connections", "Tracked connections, by protocol", |v| {
        let live = [t.live.tcp, t.live.udp, t.live.icmp, t.live.other];
        let mut all = PROTOCOLS.iter().zip(live);
        all.try_for_each(|(protocol, n)| v.add(&[("protocol", protocol)], u64::from(n)))
    })?;
    page.gauge("thalweg_conntrack_connections_max", "Limit of tracked connections", |v| {
        v.add(&[], u64::from(t.limit))
    })?;
    page.counter("thalweg_conntrack_events", "Connection tracking events", |v| {
        t.counts.keyed().try_for_each(|(event, n)| v.add(&[("event", event)], n))
    })?;
    page.gauge(
        "thalweg_conntrack_zone_connections",
        "Tracked connections of a zone with a limit",
        |v| {
            let mut zones = t.zones.iter();
            zones
                .try_for_each(|(zone, (n, _))| v.add(&[("zone", &zone.to_string())], u64::from(*n)))
        },
    )?;
    page.gauge("thalweg_conntrack_zone_connections_max", "Connection limit of the zone", |v| {
        let mut zones = t.zones.iter();
        zones.try_for_each(|(zone, (_, most))| {
            v.add(&[("zone", &zone.to_string())], u64::from(*most))
        })
    })?;
    page.counter("thalweg_flow_cache_lookups", "Lookups in the megaflow cache, by result", |v| {
        v.add(&[("result", "hit")], t.cache[0])?;
        v.add(&[("result", "miss")], t.cache[1])
    })
}

fn bridges(b: &Bridges, page: &mut Page<'_>) -> Result {
    type One = (&'static str, &'static str, fn(&Bridge) -> u64);
    let each: [One; 3] = [
        ("thalweg_bridge_ports", "Ports of a bridge domain", |b| b.ports as u64),
        ("thalweg_bridge_macs_learned", "MAC addresses learned", |b| b.learned.into()),
        ("thalweg_bridge_macs_learned_max", "Limit of learned MAC addresses", |b| b.limit.into()),
    ];
    for (name, help, value) in each {
        page.gauge(name, help, |v| {
            b.all.iter().try_for_each(|one| v.add(&[("bridge_domain", &one.id)], value(one)))
        })?;
    }
    page.gauge("thalweg_bridge_macs", "MAC addresses in all bridge domains", |v| {
        v.add(&[], u64::from(b.macs))
    })?;
    page.gauge("thalweg_bridge_macs_max", "Limit of MAC addresses in all bridge domains", |v| {
        v.add(&[], u64::from(b.most))
    })?;
    let help = "MAC table events; `refused' means that the table was full";
    page.counter("thalweg_bridge_mac_events", help, |v| {
        b.events.iter().try_for_each(|(event, n)| v.add(&[("event", event)], *n))
    })
}

fn rules(sets: &BTreeMap<u32, SetTotals>, page: &mut Page<'_>) -> Result {
    page.gauge("thalweg_flow_rules", "Flow rules in a rule set", |v| {
        let mut sets = sets.iter();
        sets.try_for_each(|(set, t)| v.add(&[("set", &set.to_string())], t.rules))
    })?;
    page.counter("thalweg_flow_rule_packets", "Packets matched by the rules of a rule set", |v| {
        let mut sets = sets.iter();
        sets.try_for_each(|(set, t)| v.add(&[("set", &set.to_string())], t.packets))
    })?;
    page.counter("thalweg_flow_rule_bytes", "Bytes matched by the rules of a rule set", |v| {
        sets.iter().try_for_each(|(set, t)| v.add(&[("set", &set.to_string())], t.bytes))
    })
}
