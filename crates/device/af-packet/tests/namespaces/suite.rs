//! Tests of every driver, by host interfaces on one end of a veth pair each; the other end is
//! outside.

use crate::support::{in_namespace, ip, until};
use thalweg_device::testing::drivers::{Abilities, MTU, Outside, Statement};
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_device_af_packet::ring::{HostPort, Options, SendError, TxRing, Version};
use thalweg_device_af_packet::{FEATURE, HostConfig, create, delete};
use thalweg_device_linux::{IfInfo, VnetHdr};
use thalweg_engine::Feature;
use thalweg_graph::{Control, RxMode};

/// Two veth pairs: `in0` and `in1` are the router's, `out0` and `out1` are outside.
struct Veths {
    version: Version,
    outer: [Option<HostPort>; 2],
}

impl Veths {
    fn make(&mut self, n: usize, mtu: u32) {
        ip(&format!("link add in{n} mtu {mtu} type veth peer name out{n} mtu {mtu}"));
        ip(&format!("link set in{n} up"));
        ip(&format!("link set out{n} up"));
        self.outer[n] = Some(HostPort::open(&format!("out{n}"), &Options::default()).unwrap());
    }
}

fn flush(tx: &mut TxRing) {
    until("the transmit ring to drain", &tx.socket().clone(), || (!tx.kick()).then_some(()));
}

impl Outside for Veths {
    fn feature(&self) -> &'static Feature {
        &FEATURE
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            shortest: 14,
            // The rings of two queues, with slots for the MTU, or packed.
            burst: if self.version == Version::V2 { 4000 } else { 20_000 },
            rx_queues: 2,
            modes: &RxMode::ALL,
            hears_while_down: true,
            sets_mac: true,
            mtu: Some(MTU),
            carrier: true,
            unplugs: true,
            steers: false,
        }
    }

    fn create(&mut self, c: &mut Control, n: usize) -> SwIfIndex {
        if self.outer[n].is_none() {
            self.make(n, MTU);
        }
        let options = Options { version: self.version, rx_queues: 2, ..Options::default() };
        create(c, HostConfig { name: format!("in{n}"), mac: None, options }).unwrap()
    }

    fn delete(&mut self, c: &mut Control, n: usize) {
        delete(c, &format!("in{n}")).unwrap();
    }

    fn send(
        &mut self,
        _: &mut Control,
        n: usize,
        _: usize,
        frames: &[Vec<u8>],
    ) -> Result<(), String> {
        let tx = &mut self.outer[n].as_mut().unwrap().tx[0];
        for frame in frames {
            let mut sent = tx.send(VnetHdr::default(), [&frame[..]]);
            if sent == Err(SendError::Full) {
                flush(tx);
                sent = tx.send(VnetHdr::default(), [&frame[..]]);
            }
            sent.map_err(|e| e.to_string())?;
        }
        flush(tx);
        Ok(())
    }

    fn take(&mut self, _: &mut Control, n: usize) -> Vec<Vec<u8>> {
        let Some(outer) = &mut self.outer[n] else { return Vec::new() };
        let mut frames = Vec::new();
        outer.rx[0].poll(usize::MAX, |frame| {
            let mut bytes = vec![0; frame.len()];
            frame.copy(0, &mut bytes);
            frames.push(bytes);
            true
        });
        frames
    }

    fn set_carrier(&mut self, n: usize, on: bool) {
        ip(&format!("link set out{n} {}", if on { "up" } else { "down" }));
    }

    fn unplug(&mut self, n: usize) {
        self.outer[n] = None;
        ip(&format!("link del in{n}"));
    }

    fn plug(&mut self, n: usize, mtu: u32) {
        self.make(n, mtu);
    }

    fn takes_all(&self, n: usize) -> Option<bool> {
        Some(!ip(&format!("-d link show in{n}")).contains("promiscuity 0"))
    }

    fn device_mac(&self, n: usize) -> Option<MacAddr> {
        Some(MacAddr(IfInfo::query(&format!("in{n}")).unwrap().mac.0))
    }
}

fn run(name: &str, statement: Statement, version: Version) {
    in_namespace(name, || statement(Box::new(Veths { version, outer: [None, None] })));
}

mod v2 {
    fn run(name: &str, statement: super::Statement) {
        super::run(name, statement, super::Version::V2);
    }
    thalweg_device::driver_statements!(run);
}

/// The other ring layout, in what it has a part in.
mod v3 {
    fn run(name: &str, statement: super::Statement) {
        super::run(name, statement, super::Version::V3);
    }
    thalweg_device::driver_statements! { run:
        frames_of_all_sizes_arrive_whole_and_in_order,
        frames_with_vlan_tags_arrive_whole_and_in_order,
        a_burst_larger_than_the_ring_is_counted_to_the_last_frame,
        frames_without_a_buffer_are_counted,
        an_interface_that_is_down_receives_nothing_then_or_later,
        frames_that_wait_when_an_interface_goes_down_do_not_come_later,
        queues_move_to_every_worker_under_traffic,
        every_receive_mode_works_or_is_refused,
        a_device_that_comes_back_is_used_as_before,
    }
}
