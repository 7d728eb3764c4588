//! The figures behind the metrics, read on the main thread.

use super::state::{OfWorkers, State};
use std::sync::Arc;
use thalweg_api::Clients;
use thalweg_buffer::PoolAudit;
use thalweg_device::interface::Interfaces;
use thalweg_engine::Rates;
use thalweg_feat_sflow::state::Report as SFlowReport;
use thalweg_graph::stats::IfTotals;
use thalweg_graph::{Control, ErrorDecl, NodeId, clock};

/// Figures of an interface.
#[derive(Clone, Debug)]
pub(super) struct Interface {
    pub name: String,
    pub index: String,
    pub kind: &'static str,
    pub mac: String,
    pub tag: String,
    pub admin_up: bool,
    pub link_up: bool,
    /// Layer 3 MTU in bytes.
    pub mtu: u32,
    pub speed_kbps: u32,
    pub totals: IfTotals,
}

/// Figures of a graph node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub name: Arc<str>,
    /// Calls, vectors, clocks and suspends, per worker.
    pub counts: Vec<[u64; 4]>,
}

/// An error counter of a node, summed over all workers.
#[derive(Clone, Debug)]
pub(super) struct Error {
    pub node: Arc<str>,
    pub decl: &'static ErrorDecl,
    pub count: u64,
}

/// Figures of a worker.
#[derive(Clone, Debug)]
pub(super) struct Worker {
    /// Index of the worker, from 0.
    pub number: String,
    pub tid: i32,
    pub rates: Rates,
    pub loops: u64,
    pub busy_loops: u64,
    pub busy_seconds: f64,
    pub sleeps: u64,
    pub events_lost: u64,
    /// Packets by origin and outcome, each with its label value.
    pub packets: [(&'static str, u64); 8],
}

/// All figures that the main thread reads.
#[derive(Clone, Debug)]
pub struct Figures {
    pub(super) interfaces: Vec<Interface>,
    pub(super) nodes: Vec<Node>,
    pub(super) errors: Vec<Error>,
    pub(super) workers: Vec<Worker>,
    pub(super) buffers: PoolAudit,
    pub(super) main_loops: u64,
    pub(super) main_sleeps: u64,
    pub(super) api_clients: usize,
    pub(super) api_waiting: usize,
    pub(super) uptime: f64,
    pub(super) sflow: Option<SFlowReport>,
    pub(super) state: State,
}

impl Figures {
    /// Reads all figures, and continues with them once workers have answered. Workers keep counting
    /// meanwhile, so sums may differ by a few packets.
    pub fn read_then(c: &mut Control, then: impl FnOnce(Figures) + 'static) {
        OfWorkers::then(c, |c, known| then(Figures::of(c, known)));
    }

    fn of(c: &Control, known: OfWorkers) -> Figures {
        let state = State::with(c, known);
        let clients = c.state::<Clients>().borrow().list();
        Figures {
            interfaces: interfaces(c),
            nodes: nodes(c),
            errors: errors(c),
            workers: (0..c.workers()).map(|number| worker(c, number)).collect(),
            buffers: c.pool().audit(),
            main_loops: c.main_stats().loops,
            main_sleeps: c.main_stats().sleeps,
            api_clients: clients.len(),
            api_waiting: clients.iter().map(|client| client.waiting).sum(),
            uptime: c.uptime().as_secs_f64(),
            sflow: Some(thalweg_feat_sflow::state::report(c)),
            state,
        }
    }
}

fn interfaces(c: &Control) -> Vec<Interface> {
    let state = c.state::<Interfaces>();
    let state = state.borrow();
    let one = |view: &thalweg_device::InterfaceView| Interface {
        name: view.name.clone(),
        index: view.sw_if.to_string(),
        kind: view.dev_type,
        mac: view.mac.to_string(),
        tag: view.tag.clone(),
        admin_up: view.admin_up,
        link_up: view.link_up,
        mtu: view.mtu.l3,
        speed_kbps: view.speed_kbps,
        totals: c.interface_totals(view.sw_if),
    };
    state.iter().map(one).collect()
}

fn nodes(c: &Control) -> Vec<Node> {
    let counts = |id| (0..c.workers()).map(|worker| c.node_counts(worker, id)).collect();
    let all = c.nodes().iter().enumerate().filter(|(_, node)| node.live);
    all.map(|(i, node)| Node { name: node.name.clone(), counts: counts(NodeId(i as u16)) })
        .collect()
}

fn errors(c: &Control) -> Vec<Error> {
    let sum = |error: usize| (0..c.workers()).map(|w| c.error_count(w, error as u32)).sum();
    let one = |(i, (node, decl)): (usize, &(NodeId, &'static ErrorDecl))| Error {
        node: c.nodes()[usize::from(node.0)].name.clone(),
        decl,
        count: sum(i),
    };
    c.errors().iter().enumerate().map(one).collect()
}

fn worker(c: &Control, number: usize) -> Worker {
    let t = &c.worker_stats(number).totals;
    let tid = c.threads().get(number + 1).map_or(0, |thread| thread.tid);
    Worker {
        number: number.to_string(),
        tid,
        rates: thalweg_engine::rates(c, number + 1),
        loops: t.loops.get(),
        busy_loops: t.busy_loops.get(),
        busy_seconds: t.busy_clocks.get() as f64 / clock::hz(),
        sleeps: t.sleeps.get(),
        events_lost: t.events_lost.get(),
        packets: [
            ("received", t.rx.get()),
            ("originated", t.originated.get()),
            ("handed-in", t.handed_in.get()),
            ("sent", t.tx.get()),
            ("delivered", t.delivered.get()),
            ("dropped", t.dropped.get()),
            ("consumed", t.consumed.get()),
            ("handed-out", t.handed_out.get()),
        ],
    }
}
