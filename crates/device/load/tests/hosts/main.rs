//! Hosts of the load tester: over lines that lose, damage, repeat and delay, and with the kernel's
//! TCP on the other side.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod impaired;
mod kernel;
mod mixed;
mod shared;

use std::time::{Duration, Instant};

use thalweg_buffer::PoolConfig;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_device_load::Report;
use thalweg_engine::Feature;
use thalweg_graph::{Control, EngineConfig};
use thalweg_load::talk::{Opening, Plan};

/// A graph with a port for clients and one for servers.
struct Tester {
    control: Control,
    ports: [SwIfIndex; 2],
}

const FEATURES: [&Feature; 4] = [
    &thalweg_feat_ethernet::FEATURE,
    &thalweg_feat_l2::FEATURE,
    &thalweg_device_af_packet::FEATURE,
    &thalweg_device_load::FEATURE,
];

impl Tester {
    fn new() -> Tester {
        Tester::with(1)
    }

    fn with(workers: usize) -> Tester {
        let pool = PoolConfig { buffers: 16 * 1024, ..PoolConfig::default() };
        let workers = vec![None; workers];
        let mut control =
            Control::new(EngineConfig { pool, workers, ..EngineConfig::default() }).unwrap();
        thalweg_engine::start(&mut control, &thalweg_engine::with_needs(&FEATURES)).unwrap();
        let ports = [0, 1].map(|at: u8| {
            let mac = MacAddr([2, 0, 0, 0, 9, at]);
            thalweg_device_load::create(&mut control, &format!("load{at}"), mac).unwrap()
        });
        Tester { control, ports }
    }

    fn give_clients(&mut self, plan: &Plan) {
        thalweg_device_load::set_clients(&mut self.control, self.ports[0], plan, 1).unwrap();
    }

    fn give_servers(&mut self, plan: &Plan) {
        thalweg_device_load::set_servers(&mut self.control, self.ports[1], plan, 1).unwrap();
    }

    fn run(&mut self, lines: &str) {
        let tree = thalweg_engine::command_tree(&self.control).unwrap();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (_, end) = tree.run_line(&mut self.control, line);
            end.unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        self.control.sync();
    }

    /// Output of a command.
    fn said(&mut self, line: &str) -> String {
        let tree = thalweg_engine::command_tree(&self.control).unwrap();
        let (text, end) = tree.run_line(&mut self.control, line);
        end.unwrap_or_else(|error| panic!("{line}: {error}"));
        text
    }

    /// Error of a command that fails.
    fn refused(&mut self, line: &str) -> String {
        let tree = thalweg_engine::command_tree(&self.control).unwrap();
        tree.run_line(&mut self.control, line).1.unwrap_err().to_string()
    }

    fn open(&mut self, rate: f64) {
        let opening = Opening { rate, hold: None, total: None };
        thalweg_device_load::set_opening(&mut self.control, self.ports[0], 0, opening);
    }

    fn reports(&mut self) -> [Report; 2] {
        let answers = thalweg_device_load::ask(&mut self.control, &self.ports);
        let mut reports = None;
        self.until("the hosts answer", |_| {
            reports = answers.try_recv().ok();
            reports.is_some()
        });
        let reports = reports.unwrap();
        [0, 1].map(|at| reports[at].first().copied().unwrap_or_default())
    }

    /// Runs until a condition holds.
    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Control) -> bool) {
        let end = Instant::now() + Duration::from_secs(120);
        while !is_so(&mut self.control) {
            assert!(Instant::now() < end, "{what}: not within two minutes");
            self.control.run_once(Some(Duration::from_millis(1)));
        }
    }

    /// Opens connections until this number has begun, then waits until all have ended.
    fn open_and_end(&mut self, rate: f64, begun: u64) -> [Report; 2] {
        self.open(rate);
        loop {
            let reports = self.reports();
            if reports[0].counts.begun >= begun {
                break;
            }
            self.control.run_once(Some(Duration::from_millis(5)));
        }
        self.open(0.0);
        let end = Instant::now() + Duration::from_secs(120);
        loop {
            let reports = self.reports();
            let open = reports.map(|report| report.open + report.time_wait);
            if open == [0, 0] {
                return reports;
            }
            assert!(Instant::now() < end, "still open: {open:?} {reports:?}");
            self.control.run_once(Some(Duration::from_millis(5)));
        }
    }

    /// Packets counted with a reason.
    fn count(&self, reason: &str) -> u64 {
        let errors = self.control.errors().iter().enumerate();
        let found = errors.filter(|(_, (_, decl))| decl.text == reason);
        found.map(|(index, _)| self.control.error_count(0, index as u32)).sum()
    }
}

impl Drop for Tester {
    fn drop(&mut self) {
        self.control.shut_down();
    }
}
