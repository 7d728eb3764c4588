//! Polling of interface counters, spread over the interval.

use super::Service;
use std::time::Instant;
use thalweg_device::SwIfIndex;
use thalweg_graph::stats::IfTotals;
use thalweg_sflow::model::{HostAdapter, HostAdapters, InterfaceCounters};
use thalweg_sflow_agent::agent::InterfaceCountersIn;

use super::PortSetup;
use crate::state::is_port;

/// ifType (RFC 2863, IANAifType) of Ethernet, of loopbacks, and of interfaces that carry IP packets
/// without a link header.
const ETHERNET: u32 = 6;
const SOFTWARE_LOOPBACK: u32 = 24;
const TUNNEL: u32 = 131;
/// VPP's speed of interfaces that have none, in bits per second.
const NOMINAL_SPEED: u64 = 1_000_000_000;

impl Service {
    /// Sends the counters of interfaces whose turn has come.
    pub(super) fn poll_counters(&mut self, now: Instant) {
        let second = self.seconds(now);
        if second == self.polled_until {
            return;
        }
        let passed = (self.polled_until, second);
        self.polled_until = second;
        let interval = u64::from(self.setup.polling_interval.max(1));
        for sw_if in 0..self.ports.len() {
            let Some(port) = &mut self.ports[sw_if] else { continue };
            if !port.setup.enabled || (port.polled && !due(passed, interval, sw_if as u64)) {
                continue;
            }
            let agent = self.exporter.agent();
            if agent.is_none() && !self.netlink.takes_counters() {
                continue;
            }
            let mut totals = IfTotals::default();
            self.workers.iter().for_each(|w| totals.add(w.interface(SwIfIndex(sw_if as u32))));
            // Samples count GSO packets as segments, too.
            let totals = totals.since(&port.setup.born).on_wire();
            let counters = record(&port.setup, &totals);
            let (if_type, speed) = (counters.network_type, counters.speed);
            let reported = self.netlink.counters(&port.setup, &totals, if_type, speed);
            port.polled = true;
            let name = Some(port.setup.view.name.as_str());
            let all = InterfaceCountersIn { counters, name, ethernet: None };
            let packed = agent.is_some_and(|agent| agent.interface_counters(now, &all));
            if reported || packed {
                self.status.counters_sent += 1;
            } else {
                self.status.counters_refused += 1;
            }
        }
    }
}

/// True if one of the seconds after `passed.0` up to `passed.1` is the turn of interface `sw_if`.
fn due(passed: (u64, u64), interval: u64, sw_if: u64) -> bool {
    let turns = |second: u64| (second + interval - sw_if % interval) / interval;
    turns(passed.1) > turns(passed.0)
}

/// The record (0:2001) of interfaces that are up.
pub(super) fn adapters<'p>(ports: impl Iterator<Item = &'p PortSetup>) -> HostAdapters {
    let up = ports.filter(|port| port.view.admin_up && is_port(&port.view));
    let adapter =
        |port: &PortSetup| HostAdapter { index: port.view.sw_if.get(), macs: vec![port.view.mac] };
    HostAdapters(up.map(adapter).collect())
}

/// The generic record (0:1) of an interface.
fn record(port: &PortSetup, t: &IfTotals) -> InterfaceCounters {
    let view = &port.view;
    let loopback = view.name.starts_with("loop");
    let speed = match view.speed_kbps {
        0 if loopback || view.name.starts_with("tap") => NOMINAL_SPEED,
        kbps => u64::from(kbps) * 1000,
    };
    let mib = t.mib();
    InterfaceCounters {
        index: view.sw_if.get(),
        network_type: match loopback {
            true => SOFTWARE_LOOPBACK,
            false if !view.ethernet => TUNNEL,
            false => ETHERNET,
        },
        speed,
        direction: 1,
        status: u32::from(view.admin_up) | u32::from(view.is_up()) << 1,
        in_octets: mib.in_octets,
        in_unicast: mib.in_unicast as u32,
        in_multicast: mib.in_multicast as u32,
        in_broadcast: mib.in_broadcast as u32,
        in_discards: mib.in_discards as u32,
        in_errors: mib.in_errors as u32,
        in_unknown_protocols: 0,
        out_octets: mib.out_octets,
        out_unicast: mib.out_unicast as u32,
        out_multicast: mib.out_multicast as u32,
        out_broadcast: mib.out_broadcast as u32,
        out_discards: 0,
        out_errors: mib.out_errors as u32,
        promiscuous: u32::from(view.promiscuous),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_interface_is_due_once_an_interval(
            from in 0u64..1000,
            steps in 1u64..200,
            interval in 1u64..50,
            sw_if in 0u64..100,
        ) {
            let hit = |second: u64| second % interval == sw_if % interval;
            let to = from + steps;
            prop_assert_eq!(due((from, to), interval, sw_if), (from + 1..=to).any(hit));
        }
    }
}
