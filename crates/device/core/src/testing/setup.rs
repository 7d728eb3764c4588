//! Features, size and addresses of a lab.

use super::{Accepted, Lab, Sent, TEST, host_mac, ip4, ip6};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use thalweg_buffer::PoolConfig;
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig};
use thalweg_testkit::PacketLog;

/// Shared by all timers of the process: tests that move it run one after the other.
static CLOCK: Mutex<()> = Mutex::new(());

/// A lab before its start: one worker, 2048 buffers, three interfaces without addresses.
#[must_use = "it starts nothing by itself"]
pub struct Setup {
    features: Vec<&'static Feature>,
    workers: usize,
    buffers: usize,
    interfaces: u8,
    alone: bool,
    /// Hosts at each interface.
    ip4: Option<RangeInclusive<u8>>,
    ip6: Option<RangeInclusive<u8>>,
}

impl Setup {
    pub(super) fn new(features: &[&'static Feature]) -> Setup {
        Setup {
            features: features.to_vec(),
            workers: 1,
            buffers: 2048,
            interfaces: 3,
            alone: false,
            ip4: None,
            ip6: None,
        }
    }

    /// Adds a feature, and those that it needs.
    pub fn with(mut self, feature: &'static Feature) -> Setup {
        self.features.push(feature);
        self
    }

    /// Sets the number of workers.
    pub fn workers(self, workers: usize) -> Setup {
        Setup { workers, ..self }
    }

    /// Sets the number of buffers.
    pub fn buffers(self, buffers: usize) -> Setup {
        Setup { buffers, ..self }
    }

    /// Sets the number of interfaces.
    pub fn interfaces(self, interfaces: u8) -> Setup {
        Setup { interfaces, ..self }
    }

    /// Keeps the clock of timers to this lab.
    pub fn alone(self) -> Setup {
        Setup { alone: true, ..self }
    }

    /// Gives `testN` 10.0.N.1/24, and static neighbours 10.0.N.host.
    pub fn ip4(self, hosts: RangeInclusive<u8>) -> Setup {
        Setup { ip4: Some(hosts), ..self }
    }

    /// Gives `testN` 2001:db8:0:N::1/64, and static neighbours 2001:db8:0:N::host.
    pub fn ip6(self, hosts: RangeInclusive<u8>) -> Setup {
        Setup { ip6: Some(hosts), ..self }
    }

    /// Starts the router, and brings its interfaces up.
    ///
    /// # Panics
    /// If it does not start, or a command of the setup fails.
    pub fn start(self) -> Lab {
        let clock = self.alone.then(|| CLOCK.lock().unwrap_or_else(PoisonError::into_inner));
        let pool = PoolConfig { buffers: self.buffers, data_size: 2048, page_size: None };
        let workers = vec![None; self.workers];
        let mut c = Control::new(EngineConfig { pool, workers, ..EngineConfig::default() })
            .expect("engine");
        let features = thalweg_engine::with_needs(&[&self.features[..], &[&TEST]].concat());
        thalweg_engine::start(&mut c, &features).expect("graph");
        let tree = thalweg_engine::command_tree(&c).expect("commands");
        let (sent, accepted) = (Sent::default(), Accepted::default());
        let packets = PacketLog::new();
        let mut lab = Lab { c, tree, sent, accepted, received: 0, packets, clock };
        for n in 0..self.interfaces {
            let sw_if = lab.interface(n);
            assert_eq!(sw_if, lab.sw_if(n));
        }
        // One script: the lab waits for workers after each.
        let lines = self.addresses();
        if !lines.is_empty() {
            lab.ok(&lines);
        }
        lab
    }

    /// Commands that set addresses and neighbours.
    fn addresses(&self) -> String {
        let mut lines = String::new();
        let mut add = |n, hosts: &Option<RangeInclusive<u8>>, length, at: &dyn Fn(u8) -> IpAddr| {
            let Some(hosts) = hosts else { return };
            lines += &format!("set interface ip address test{n} {}/{length}\n", at(1));
            for host in hosts.clone() {
                let mac = host_mac(n, host);
                lines += &format!("set ip neighbor test{n} {} {mac} static\n", at(host));
            }
        };
        for n in 0..self.interfaces {
            add(n, &self.ip4, 24, &|host| ip4::ip(n, host).into());
            add(n, &self.ip6, 64, &|host| ip6::ip(n, host).into());
        }
        lines
    }
}
