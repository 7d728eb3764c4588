//! Tests of every driver, by two TAPs; their ends in the kernel are outside.

use crate::support::{Raw, in_namespace, ip};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::drivers::{Abilities, MTU, Outside, Statement};
use thalweg_device_tap::{FEATURE, Flags, HostSide, TapConfig, create, delete};
use thalweg_engine::Feature;
use thalweg_graph::{Control, RxMode};

/// `in0` and `in1`, devices that were there before, with two queues each.
#[derive(Default)]
struct Devices {
    ends: [Option<Raw>; 2],
    ports: [Option<SwIfIndex>; 2],
}

impl Devices {
    fn make(&mut self, n: usize, mtu: u32) {
        ip(&format!("tuntap add in{n} mode tap multi_queue"));
        ip(&format!("link set in{n} mtu {mtu}"));
        ip(&format!("link set in{n} up"));
        self.ends[n] = Some(Raw::open(&format!("in{n}")));
    }
}

impl Outside for Devices {
    fn feature(&self) -> &'static Feature {
        &FEATURE
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            shortest: 14,
            // Each of two queues holds as many as its device's transmit queue.
            burst: 4000,
            rx_queues: 2,
            modes: &RxMode::ALL,
            hears_while_down: true,
            sets_mac: true,
            mtu: Some(65_521),
            carrier: true,
            unplugs: true,
            steers: true,
        }
    }

    fn create(&mut self, c: &mut Control, n: usize) -> SwIfIndex {
        if self.ends[n].is_none() {
            self.make(n, MTU);
        }
        let host = HostSide { name: Some(format!("in{n}")), ..HostSide::default() };
        let id = Some(n as u32);
        let config =
            TapConfig { id, rx_queues: 2, flags: Flags::ATTACH, host, ..TapConfig::default() };
        let made = create(c, config).unwrap();
        self.ports[n] = Some(made);
        made
    }

    fn delete(&mut self, c: &mut Control, n: usize) {
        delete(c, self.ports[n].unwrap()).unwrap();
    }

    fn send(
        &mut self,
        _: &mut Control,
        n: usize,
        _: usize,
        frames: &[Vec<u8>],
    ) -> Result<(), String> {
        let end = self.ends[n].as_ref().unwrap();
        frames.iter().try_for_each(|frame| end.send(frame))
    }

    fn take(&mut self, _: &mut Control, n: usize) -> Vec<Vec<u8>> {
        let Some(end) = &self.ends[n] else { return Vec::new() };
        std::iter::from_fn(|| end.take()).collect()
    }

    fn set_carrier(&mut self, n: usize, on: bool) {
        ip(&format!("link set in{n} {}", if on { "up" } else { "down" }));
    }

    fn unplug(&mut self, n: usize) {
        self.ends[n] = None;
        ip(&format!("link del in{n}"));
    }

    fn plug(&mut self, n: usize, mtu: u32) {
        self.make(n, mtu);
    }
}

fn run(name: &str, statement: Statement) {
    in_namespace(name, || statement(Box::<Devices>::default()));
}

thalweg_device::driver_statements!(run);
