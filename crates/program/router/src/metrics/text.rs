//! Names, labels and help texts of the metrics: an interface on which dashboards and alerts depend.

use super::figures::{Figures, Interface};
use super::process::{self, Process};
use std::fmt::Result;
use std::sync::Arc;
use thalweg_feat_sflow::service::Status;
use thalweg_graph::stats::{IfCounter, Metric};
use thalweg_sflow_agent::netlink::Channel;
use thalweg_stats::metrics::{Page, Source};

/// All metrics of one scrape.
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
    page.gauge("thalweg_build_info", "Version of the program; the value is always 1", |v| {
        v.add(&[("version", env!("CARGO_PKG_VERSION"))], 1_u64)
    })?;
    page.gauge("thalweg_uptime_seconds", "Time since the router started", |v| {
        v.add(&[], f.uptime)
    })?;
    page.gauge("thalweg_buffers", "Packet buffers, by state", |v| {
        let pool = ("pool", "default-numa-0");
        v.add(&[pool, ("state", "available")], f.buffers.depot)?;
        v.add(&[pool, ("state", "cached")], f.buffers.cached)?;
        v.add(&[pool, ("state", "used")], f.buffers.in_use)
    })?;
    page.counter("thalweg_main_loops", "Iterations of the main thread's loop", |v| {
        v.add(&[], f.main_loops)
    })?;
    page.counter("thalweg_main_sleeps", "Number of times the main thread slept", |v| {
        v.add(&[], f.main_sleeps)
    })?;
    page.gauge("thalweg_api_clients", "Connected clients of the binary API", |v| {
        v.add(&[], f.api_clients)
    })?;
    page.gauge(
        "thalweg_api_waiting_bytes",
        "Bytes queued for binary API clients that have not read them yet",
        |v| v.add(&[], f.api_waiting),
    )
}

fn interfaces(all: &[Interface], page: &mut Page<'_>) -> Result {
    page.gauge(
        "thalweg_interface_info",
        "Properties of an interface; the value is always 1",
        |v| {
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
        },
    )?;
    type State = (&'static str, &'static str, fn(&Interface) -> u64);
    let states: [State; 4] = [
        ("thalweg_interface_admin_up", "1 if the interface is administratively up", |i| {
            i.admin_up.into()
        }),
        ("thalweg_interface_link_up", "1 if the link is up", |i| i.link_up.into()),
        ("thalweg_interface_mtu_bytes", "Layer 3 MTU of the interface", |i| i.mtu.into()),
        ("thalweg_interface_speed_bits", "Link speed in bits per second, 0 if unknown", |i| {
            u64::from(i.speed_kbps) * 1000
        }),
    ];
    for (name, help, value) in states {
        page.gauge(name, help, |v| {
            all.iter().try_for_each(|i| v.add(&[("interface", &i.name)], value(i)))
        })?;
    }
    Metric::ALL.into_iter().try_for_each(|metric| counters(metric, all, page))
}

/// Writes the counters of interfaces that are samples of a metric.
fn counters(metric: Metric, all: &[Interface], page: &mut Page<'_>) -> Result {
    let of_metric = |c: &IfCounter| {
        c.metric.filter(|(of, _)| *of == metric).map(|(_, labels)| (labels, c.value))
    };
    let counters: Vec<_> = IfCounter::ALL.iter().filter_map(of_metric).collect();
    let (name, help) = metric.describe();
    page.counter(name, help, |v| {
        let mut labels = Vec::new();
        for i in all {
            for (more, value) in &counters {
                labels.clear();
                labels.push(("interface", i.name.as_str()));
                labels.extend_from_slice(more);
                v.add(&labels, value(&i.totals))?;
            }
        }
        Ok(())
    })
}

fn nodes(f: &Figures, page: &mut Page<'_>) -> Result {
    let counters = [
        ("thalweg_node_calls", "Number of times a node was dispatched"),
        ("thalweg_node_vectors", "Packets processed by a node"),
        ("thalweg_node_clocks", "Clock cycles spent in a node"),
        ("thalweg_node_suspends", "Number of times a node suspended itself"),
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
    page.counter("thalweg_node_errors", "Counters of nodes, as in `show errors'", |v| {
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
    page.gauge(
        "thalweg_worker_vector_rate",
        "Packets per node dispatch, averaged over 10 s",
        |v| {
            let mut workers = f.workers.iter();
            workers.try_for_each(|w| v.add(&[("worker", &w.number)], w.rates.vector_rate))
        },
    )?;
    page.gauge(
        "thalweg_worker_input_rate",
        "Packets received per second, averaged over 10 s",
        |v| {
            let mut workers = f.workers.iter();
            workers.try_for_each(|w| v.add(&[("worker", &w.number)], w.rates.rx))
        },
    )?;
    type Counter = (&'static str, &'static str, fn(&super::figures::Worker) -> u64);
    let counters: [Counter; 4] = [
        ("thalweg_worker_loops", "Iterations of a worker's loop", |w| w.loops),
        ("thalweg_worker_busy_loops", "Iterations of a worker's loop that had work to do", |w| {
            w.busy_loops
        }),
        ("thalweg_worker_sleeps", "Number of times a worker slept", |w| w.sleeps),
        (
            "thalweg_worker_events_lost",
            "Events lost because the queue to the main thread was full",
            |w| w.events_lost,
        ),
    ];
    for (name, help, value) in counters {
        page.counter(name, help, |v| {
            f.workers.iter().try_for_each(|w| v.add(&[("worker", &w.number)], value(w)))
        })?;
    }
    let help = "Time spent in loop iterations with work; a worker is idle for the rest";
    page.counter("thalweg_worker_busy_seconds", help, |v| {
        f.workers.iter().try_for_each(|w| v.add(&[("worker", &w.number)], w.busy_seconds))
    })?;
    page.counter(
        "thalweg_worker_cpu_seconds",
        "CPU time of a worker thread, including polling without work",
        |v| {
            for w in &f.workers {
                if let Some(seconds) = process::thread_seconds(w.tid) {
                    v.add(&[("worker", &w.number)], seconds)?;
                }
            }
            Ok(())
        },
    )?;
    let help =
        "Packets by origin and outcome; the sums of both are equal when no packet is in flight";
    page.counter("thalweg_worker_packets", help, |v| {
        for w in &f.workers {
            for (what, packets) in w.packets {
                v.add(&[("worker", &w.number), ("event", what)], packets)?;
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
        (
            "thalweg_sflow_pool_packets",
            "Packets that were candidates for sampling (sample pool)",
            |p| p.totals.seen,
        ),
        ("thalweg_sflow_samples_taken", "Packet samples taken", |p| p.totals.taken),
        ("thalweg_sflow_samples_sent", "Packet samples sent", |p| p.sent),
        (
            "thalweg_sflow_samples_overrun",
            "Packet samples lost because the sample ring was full",
            |p| p.totals.dropped,
        ),
    ];
    for (name, help, value) in ports {
        page.counter(name, help, |v| {
            report.ports.iter().try_for_each(|p| v.add(&[("interface", &p.name)], value(p)))
        })?;
    }
    let overrun = report.ports.iter().map(|p| p.totals.dropped).sum::<u64>();
    page.counter(
        "thalweg_sflow_lost",
        "Samples lost before they were sent, by kind and reason",
        |v| {
            let lost = [
                ("packet", "ring full", overrun),
                ("packet", "too large", status.samples_refused),
                ("packet", "no collector", status.samples_unwanted),
                ("packet", "interface deleted", status.samples_stale),
                ("counter", "too large", status.counters_refused),
                ("drop", "rate limit", report.drops_suppressed),
                ("drop", "too large", status.drops_refused),
            ];
            lost.into_iter()
                .try_for_each(|(kind, reason, n)| v.add(&[("kind", kind), ("reason", reason)], n))
        },
    )?;
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
    type Stat = fn(&thalweg_sflow_agent::agent::CollectorStats) -> u64;
    let stats: [(&str, &str, Stat); 3] = [
        ("thalweg_sflow_collector_datagrams", "Datagrams sent to a collector", |s| s.datagrams),
        ("thalweg_sflow_collector_bytes", "Bytes sent to a collector", |s| s.bytes),
        (
            "thalweg_sflow_collector_errors",
            "Datagrams to a collector that could not be sent",
            |s| s.send_errors,
        ),
    ];
    for (name, help, value) in stats {
        page.counter(name, help, |v| {
            status.collectors.iter().try_for_each(|(config, stats)| {
                v.add(&[("collector", &config.to_string())], value(stats))
            })
        })?;
    }
    page.counter(
        "thalweg_sflow_netlink_messages",
        "Messages sent over netlink, by channel and result",
        |v| {
            for (channel, line) in Channel::ALL.iter().zip(&status.netlink) {
                let channel = channel.to_string();
                v.add(&[("channel", &channel), ("result", "sent")], line.stats.sent)?;
                v.add(&[("channel", &channel), ("result", "failed")], line.stats.failed)?;
            }
            Ok(())
        },
    )
}

/// Process metrics under the names that Prometheus client libraries use.
fn process(p: &Process, page: &mut Page<'_>) -> Result {
    page.counter("process_cpu_seconds", "User and system CPU time of the process", |v| {
        v.add(&[], p.cpu_seconds)
    })?;
    page.gauge("process_resident_memory_bytes", "Resident memory", |v| {
        v.add(&[], p.resident_bytes)
    })?;
    page.gauge("process_virtual_memory_bytes", "Virtual memory", |v| v.add(&[], p.virtual_bytes))?;
    page.gauge(
        "process_start_time_seconds",
        "Start time of the process, in seconds since the Unix epoch",
        |v| v.add(&[], p.start_seconds),
    )?;
    page.gauge("process_threads", "Number of threads", |v| v.add(&[], p.threads))?;
    page.gauge("process_open_fds", "Open file descriptors", |v| v.add(&[], p.open_fds))?;
    page.gauge("process_max_fds", "Maximum number of open file descriptors", |v| match p.max_fds {
        Some(most) => v.add(&[], most),
        None => v.add(&[], f64::INFINITY),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use thalweg_graph::stats::IfTotals;
    use thalweg_stats::metrics::{Format, render};

    #[derive(Debug)]
    struct Interfaces(Vec<Interface>);

    impl Source for Interfaces {
        fn write(&self, page: &mut Page<'_>) -> Result {
            interfaces(&self.0, page)
        }
    }

    /// Dashboards depend on the names and labels.
    #[test]
    fn interfaces_have_these_counters() {
        let totals = IfTotals { rx_packets: 5, tx_error: 6, drops: 7, ..IfTotals::default() };
        let one = Interface {
            name: "a".into(),
            index: "1".into(),
            kind: "pg",
            mac: String::new(),
            tag: String::new(),
            admin_up: true,
            link_up: true,
            mtu: 9000,
            speed_kbps: 0,
            totals,
        };
        let page = render(Interfaces(vec![one]), Format::Prometheus);
        let mut counters = String::new();
        for line in page.lines().filter(|line| !line.starts_with('#')) {
            if line.contains("_total{") {
                writeln!(counters, "{}", line.replace("thalweg_interface_", "")).unwrap();
            }
        }
        assert_eq!(counters, COUNTERS);
    }

    const COUNTERS: &str = r#"packets_total{interface="a",direction="rx"} 5
packets_total{interface="a",direction="tx"} 0
bytes_total{interface="a",direction="rx"} 0
bytes_total{interface="a",direction="tx"} 0
non_unicast_packets_total{interface="a",direction="rx",cast="multicast"} 0
non_unicast_packets_total{interface="a",direction="rx",cast="broadcast"} 0
non_unicast_packets_total{interface="a",direction="tx",cast="multicast"} 0
non_unicast_packets_total{interface="a",direction="tx",cast="broadcast"} 0
non_unicast_bytes_total{interface="a",direction="rx",cast="multicast"} 0
non_unicast_bytes_total{interface="a",direction="rx",cast="broadcast"} 0
non_unicast_bytes_total{interface="a",direction="tx",cast="multicast"} 0
non_unicast_bytes_total{interface="a",direction="tx",cast="broadcast"} 0
gso_packets_total{interface="a",direction="rx"} 0
gso_packets_total{interface="a",direction="tx"} 0
gso_bytes_total{interface="a",direction="rx"} 0
gso_bytes_total{interface="a",direction="tx"} 0
protocol_packets_total{interface="a",protocol="ip4"} 0
protocol_packets_total{interface="a",protocol="ip6"} 0
protocol_packets_total{interface="a",protocol="mpls"} 0
drops_total{interface="a"} 7
punts_total{interface="a"} 0
errors_total{interface="a",direction="rx",reason="rx-no-buf"} 0
errors_total{interface="a",direction="rx",reason="rx-miss"} 0
errors_total{interface="a",direction="rx",reason="rx-error"} 0
errors_total{interface="a",direction="tx",reason="tx-error"} 6
"#;
}
