//! Names, labels and helps. What is here is an interface: dashboards and alerts rest on it.

use super::figures::{Figures, Interface};
use super::process::{self, Process};
use std::fmt::Result;
use std::sync::Arc;
use thalweg_feat_sflow::service::Status;
use thalweg_graph::stats::IfTotals;
use thalweg_sflow::netlink::Channel;
use thalweg_stats::metrics::{Page, Source};

/// Everything that is told.
#[derive(Debug)]
pub(super) struct All {
    pub figures: Arc<Figures>,
    pub process: Process,
}

impl Source for All {
    fn write(&self, page: &mut Page<'_>) -> Result {
        let figures = &*self.figures;
        router(figures, page)?;
        interfaces(&figures.interfaces, page)?;
        nodes(figures, page)?;
        workers(figures, page)?;
        sflow(figures, page)?;
        figures.state.write(page)?;
        self::process(&self.process, page)
    }
}

fn router(f: &Figures, page: &mut Page<'_>) -> Result {
    page.gauge("thalweg_build_info", "The program's version; the value is 1", |v| {
        v.add(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64)
    })?;
    page.gauge("thalweg_uptime_seconds", "Time since the router started", |v| {
        v.add(&[], f.uptime)
    })?;
    page.gauge("thalweg_buffers", "Packet buffers, by what they are doing", |v| {
        let pool = ("pool", "default-numa-0");
        v.add(&[pool, ("state", "available")], f.buffers.depot)?;
        v.add(&[pool, ("state", "cached")], f.buffers.cached)?;
        v.add(&[pool, ("state", "used")], f.buffers.in_use)
    })?;
    page.counter("thalweg_main_loops", "Loops of the main thread", |v| v.add(&[], f.main_loops))?;
    page.counter("thalweg_main_sleeps", "Times that the main thread went to sleep", |v| {
        v.add(&[], f.main_sleeps)
    })?;
    page.gauge("thalweg_api_clients", "Clients of the binary API that are connected", |v| {
        v.add(&[], f.api_clients)
    })?;
    page.gauge(
        "thalweg_api_waiting_bytes",
        "Bytes that clients of the API have not read yet",
        |v| v.add(&[], f.api_waiting),
    )
}

/// A counter of each interface, with labels beside the interface's name.
type Counter = (&'static [(&'static str, &'static str)], fn(&IfTotals) -> u64);

const PACKETS: &[Counter] =
    &[(&[("direction", "rx")], |t| t.rx_packets), (&[("direction", "tx")], |t| t.tx_packets)];
const BYTES: &[Counter] =
    &[(&[("direction", "rx")], |t| t.rx_bytes), (&[("direction", "tx")], |t| t.tx_bytes)];
const GROUPS: &[Counter] = &[
    (&[("direction", "rx"), ("cast", "multicast")], |t| t.rx_multicast),
    (&[("direction", "rx"), ("cast", "broadcast")], |t| t.rx_broadcast),
    (&[("direction", "tx"), ("cast", "multicast")], |t| t.tx_multicast),
    (&[("direction", "tx"), ("cast", "broadcast")], |t| t.tx_broadcast),
];
const GROUP_BYTES: &[Counter] = &[
    (&[("direction", "rx"), ("cast", "multicast")], |t| t.rx_multicast_bytes),
    (&[("direction", "rx"), ("cast", "broadcast")], |t| t.rx_broadcast_bytes),
    (&[("direction", "tx"), ("cast", "multicast")], |t| t.tx_multicast_bytes),
    (&[("direction", "tx"), ("cast", "broadcast")], |t| t.tx_broadcast_bytes),
];
const GSO: &[Counter] =
    &[(&[("direction", "rx")], |t| t.rx_gso), (&[("direction", "tx")], |t| t.tx_gso)];
const GSO_BYTES: &[Counter] =
    &[(&[("direction", "rx")], |t| t.rx_gso_bytes), (&[("direction", "tx")], |t| t.tx_gso_bytes)];
const PROTOCOLS: &[Counter] =
    &[(&[("protocol", "ip4")], |t| t.ip4), (&[("protocol", "ip6")], |t| t.ip6)];
const ERRORS: &[Counter] = &[
    (&[("direction", "rx"), ("reason", "rx-no-buf")], |t| t.rx_no_buf),
    (&[("direction", "rx"), ("reason", "rx-miss")], |t| t.rx_miss),
    (&[("direction", "rx"), ("reason", "rx-error")], |t| t.rx_error),
    (&[("direction", "tx"), ("reason", "tx-error")], |t| t.tx_error),
];

/// Counters of interfaces: name, help, what there is of it.
const INTERFACE: &[(&str, &str, &[Counter])] = &[
    ("thalweg_interface_packets", "Packets received and sent", PACKETS),
    ("thalweg_interface_bytes", "Bytes received and sent, from the Ethernet header on", BYTES),
    ("thalweg_interface_group_packets", "Packets to groups and to all, by kind", GROUPS),
    ("thalweg_interface_group_bytes", "Bytes of such packets", GROUP_BYTES),
    ("thalweg_interface_gso_packets", "Packets in super-packets beyond one of each", GSO),
    ("thalweg_interface_gso_bytes", "Bytes of headers that these have on the wire", GSO_BYTES),
    ("thalweg_interface_protocol_packets", "Packets received, by protocol", PROTOCOLS),
    ("thalweg_interface_drops", "Received packets that were dropped", &[(&[], |t| t.drops)]),
    (
        "thalweg_interface_punts",
        "Received packets handed to the control plane",
        &[(&[], |t| t.punt)],
    ),
    ("thalweg_interface_errors", "Packets lost at the device or bad, by reason", ERRORS),
];

fn interfaces(all: &[Interface], page: &mut Page<'_>) -> Result {
    page.gauge("thalweg_interface_info", "What an interface is; the value is 1", |v| {
        all.iter().try_for_each(|i| {
            let labels = [
                ("interface", i.name.as_str()),
                ("index", &i.index),
                ("type", i.kind),
                ("mac", &i.mac),
                ("tag", &i.tag),
            ];
            v.add(&labels, 1_u64)
        })
    })?;
    type State = (&'static str, &'static str, fn(&Interface) -> u64);
    let states: [State; 4] = [
        ("thalweg_interface_admin_up", "1 if it is administratively up", |i| i.admin_up.into()),
        ("thalweg_interface_link_up", "1 if its link is up", |i| i.link_up.into()),
        ("thalweg_interface_mtu_bytes", "Largest packet that it may carry", |i| i.mtu.into()),
        ("thalweg_interface_speed_bits", "Bits per second, 0 if that is not known", |i| {
            u64::from(i.speed_kbps) * 1000
        }),
    ];
    for (name, help, value) in states {
        page.gauge(name, help, |v| {
            all.iter().try_for_each(|i| v.add(&[("interface", &i.name)], value(i)))
        })?;
    }
    for (name, help, counters) in INTERFACE {
        page.counter(name, help, |v| {
            let mut labels = Vec::new();
            for i in all {
                for (more, value) in *counters {
                    labels.clear();
                    labels.push(("interface", i.name.as_str()));
                    labels.extend_from_slice(more);
                    v.add(&labels, value(&i.totals))?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn nodes(f: &Figures, page: &mut Page<'_>) -> Result {
    let counters = [
        ("thalweg_node_calls", "Times that a node ran"),
        ("thalweg_node_vectors", "Packets that a node handled"),
        ("thalweg_node_clocks", "Clocks that a node took"),
        ("thalweg_node_suspends", "Times that a node went to sleep"),
    ];
    for (at, (name, help)) in counters.into_iter().enumerate() {
        page.counter(name, help, |v| {
            for node in &f.nodes {
                for (worker, counts) in f.workers.iter().zip(&node.counts) {
                    let labels = [("node", &*node.name), ("worker", &worker.number)];
                    v.add(&labels, counts[at])?;
                }
            }
            Ok(())
        })?;
    }
    page.counter("thalweg_node_errors", "What nodes counted, as `show errors' has it", |v| {
        for error in &f.errors {
            let labels = [
                ("node", &*error.node),
                ("reason", error.decl.text),
                ("severity", error.decl.severity.word()),
            ];
            v.add(&labels, error.count)?;
        }
        Ok(())
    })
}

fn workers(f: &Figures, page: &mut Page<'_>) -> Result {
    page.gauge("thalweg_worker_vector_rate", "Packets per call of a node, over 10 s", |v| {
        let mut workers = f.workers.iter();
        workers.try_for_each(|w| v.add(&[("worker", &w.number)], w.rates.vector_rate))
    })?;
    page.gauge("thalweg_worker_input_rate", "Packets received per second, over 10 s", |v| {
        let mut workers = f.workers.iter();
        workers.try_for_each(|w| v.add(&[("worker", &w.number)], w.rates.rx))
    })?;
    type Counter = (&'static str, &'static str, fn(&super::figures::Worker) -> u64);
    let counters: [Counter; 4] = [
        ("thalweg_worker_loops", "Loops of a worker", |w| w.loops),
        ("thalweg_worker_busy_loops", "Loops in which there was something to do", |w| w.busy_loops),
        ("thalweg_worker_sleeps", "Times that a worker went to sleep", |w| w.sleeps),
        ("thalweg_worker_events_lost", "Events that did not reach the main thread", |w| {
            w.events_lost
        }),
    ];
    for (name, help, value) in counters {
        page.counter(name, help, |v| {
            f.workers.iter().try_for_each(|w| v.add(&[("worker", &w.number)], value(w)))
        })?;
    }
    let help = "Time spent in loops with something to do; the rest of the time a worker is idle";
    page.counter("thalweg_worker_busy_seconds", help, |v| {
        f.workers.iter().try_for_each(|w| v.add(&[("worker", &w.number)], w.busy_seconds))
    })?;
    page.counter(
        "thalweg_worker_cpu_seconds",
        "Processor time of a worker, waiting included",
        |v| {
            for w in &f.workers {
                if let Some(seconds) = process::thread_seconds(w.tid) {
                    v.add(&[("worker", &w.number)], seconds)?;
                }
            }
            Ok(())
        },
    )?;
    let help = "Packets by where they came from and where they ended; both sides agree at rest";
    page.counter("thalweg_worker_packets", help, |v| {
        for w in &f.workers {
            for (what, packets) in w.packets {
                v.add(&[("worker", &w.number), ("fate", what)], packets)?;
            }
        }
        Ok(())
    })
}

fn sflow(f: &Figures, page: &mut Page<'_>) -> Result {
    let Some(report) = &f.sflow else { return Ok(()) };
    let none = Status::default();
    let status = report.service.as_ref().unwrap_or(&none);
    type Port = (&'static str, &'static str, fn(&thalweg_feat_sflow::state::PortReport) -> u64);
    let ports: [Port; 4] = [
        ("thalweg_sflow_pool_packets", "Packets that could have been sampled", |p| p.totals.seen),
        ("thalweg_sflow_samples_taken", "Packet samples taken", |p| p.totals.taken),
        ("thalweg_sflow_samples_sent", "Packet samples sent", |p| p.sent),
        ("thalweg_sflow_samples_overrun", "Packet samples lost as a ring was full", |p| {
            p.totals.dropped
        }),
    ];
    for (name, help, value) in ports {
        page.counter(name, help, |v| {
            report.ports.iter().try_for_each(|p| v.add(&[("interface", &p.name)], value(p)))
        })?;
    }
    let overrun = report.ports.iter().map(|p| p.totals.dropped).sum::<u64>();
    page.counter("thalweg_sflow_lost", "Samples that were not sent, by kind and reason", |v| {
        let lost = [
            ("packet", "ring full", overrun),
            ("packet", "too large", status.samples_refused),
            ("packet", "no collector", status.samples_unwanted),
            ("packet", "interface gone", status.samples_stale),
            ("counter", "too large", status.counters_refused),
            ("drop", "rate limit", report.drops_suppressed),
            ("drop", "too large", status.drops_refused),
        ];
        lost.into_iter()
            .try_for_each(|(kind, reason, n)| v.add(&[("kind", kind), ("reason", reason)], n))
    })?;
    page.counter("thalweg_sflow_sent", "Samples sent, by kind", |v| {
        let sent = [
            ("packet", status.samples_sent),
            ("counter", status.counters_sent),
            ("drop", status.drops_sent),
            ("host", status.host_samples),
        ];
        sent.into_iter().try_for_each(|(kind, n)| v.add(&[("kind", kind)], n))
    })?;
    sflow_outputs(status, page)
}

fn sflow_outputs(status: &Status, page: &mut Page<'_>) -> Result {
    type Stat = fn(&thalweg_sflow::agent::CollectorStats) -> u64;
    let stats: [(&str, &str, Stat); 3] = [
        ("thalweg_sflow_collector_datagrams", "Datagrams sent to a collector", |s| s.datagrams),
        ("thalweg_sflow_collector_bytes", "Bytes sent to a collector", |s| s.bytes),
        ("thalweg_sflow_collector_errors", "Datagrams that could not be sent", |s| s.send_errors),
    ];
    for (name, help, value) in stats {
        page.counter(name, help, |v| {
            status.collectors.iter().try_for_each(|(config, stats)| {
                v.add(&[("collector", &config.to_string())], value(stats))
            })
        })?;
    }
    page.counter("thalweg_sflow_netlink_messages", "What was told over netlink, by result", |v| {
        for (channel, line) in Channel::ALL.iter().zip(&status.netlink) {
            let channel = channel.to_string();
            v.add(&[("channel", &channel), ("result", "sent")], line.stats.sent)?;
            v.add(&[("channel", &channel), ("result", "failed")], line.stats.failed)?;
        }
        Ok(())
    })
}

/// Under the names that all programs use.
fn process(p: &Process, page: &mut Page<'_>) -> Result {
    page.counter("process_cpu_seconds", "Processor time of all threads", |v| {
        v.add(&[], p.cpu_seconds)
    })?;
    page.gauge("process_resident_memory_bytes", "Memory that is resident", |v| {
        v.add(&[], p.resident_bytes)
    })?;
    page.gauge("process_virtual_memory_bytes", "Memory that is mapped", |v| {
        v.add(&[], p.virtual_bytes)
    })?;
    page.gauge("process_start_time_seconds", "When the process started, since 1970", |v| {
        v.add(&[], p.start_seconds)
    })?;
    page.gauge("process_threads", "Threads", |v| v.add(&[], p.threads))?;
    page.gauge("process_open_fds", "Descriptors that are open", |v| v.add(&[], p.open_fds))?;
    page.gauge("process_max_fds", "Descriptors that may be open", |v| match p.max_fds {
        Some(most) => v.add(&[], most),
        None => v.add(&[], f64::INFINITY),
    })
}
