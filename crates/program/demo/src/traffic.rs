//! The traffic: pings and iperf3 between the hosts, and each host's own count of it.

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use thalweg_netns::{
    IperfOptions, IperfResult, Lab, Netns, PingOptions, PingResult, Side, iperf3, ping,
};
use thalweg_sflow::estimate::FlowKey;

/// ICMP, TCP and UDP as IP numbers them.
pub const PROTOCOLS: [(u8, &str); 3] = [(1, "ICMP"), (6, "TCP"), (17, "UDP")];

const PING_INTERVAL: Duration = Duration::from_millis(20);
const UDP_BITS_PER_S: u64 = 50_000_000;
const UDP_BYTES: u32 = 1000;

/// Time that each part takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    pub ping: Duration,
    pub tcp: Duration,
    pub udp: Duration,
}

impl Plan {
    /// Divides the time; some of it goes into setting up and winding down.
    pub fn of(seconds: u64) -> Plan {
        let ping = (seconds / 8).clamp(1, 5);
        let rest = seconds.saturating_sub(ping + 2).max(4);
        let tcp = rest.div_ceil(2);
        let [ping, tcp, udp] = [ping, tcp, rest - tcp].map(Duration::from_secs);
        Plan { ping, tcp, udp }
    }

    pub fn total(&self) -> Duration {
        self.ping + self.tcp + self.udp + Duration::from_secs(2)
    }
}

/// Reports of the programs that made the traffic.
#[derive(Clone, Debug)]
pub struct Traffic {
    pub ping: PingResult,
    pub tcp: IperfResult,
    pub udp: IperfResult,
}

/// The phase of the traffic, as the screen names it.
#[derive(Clone)]
pub struct Phase(Arc<Mutex<&'static str>>);

impl Phase {
    pub fn new() -> Phase {
        Phase(Arc::new(Mutex::new("starting")))
    }
    pub fn set(&self, text: &'static str) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }
    pub fn get(&self) -> &'static str {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the traffic; the result comes when all of it is over.
pub fn start(lab: &Lab, plan: Plan, phase: Phase) -> Result<Receiver<Result<Traffic>>> {
    let (left, right) = (lab.left.clone(), lab.right.clone());
    let (done, result) = channel();
    let run = move || {
        // An interrupted demonstration has no receiver.
        let _ = done.send(run(&left, &right, plan, &phase));
    };
    std::thread::Builder::new().name("traffic".into()).spawn(run).context("start the traffic")?;
    Ok(result)
}

/// Ends the programs that make the traffic, and the thread that runs them: all children of this
/// process but `spared`.
pub fn abandon(result: &Receiver<Result<Traffic>>, spared: u32) {
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end {
        for pid in children().into_iter().filter(|pid| *pid != spared) {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                // The process may have ended by itself just now.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        match result.recv_timeout(Duration::from_millis(20)) {
            Err(RecvTimeoutError::Timeout) => {}
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The processes that this one has started. Any of its threads may have done so.
fn children() -> Vec<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::parse).collect::<Vec<_>>())
        .flatten()
        .collect()
}

fn run(left: &Side, right: &Side, plan: Plan, phase: &Phase) -> Result<Traffic> {
    phase.set("ping, left to right");
    let count = (plan.ping.as_millis() / PING_INTERVAL.as_millis()) as u32;
    let options = PingOptions { count, interval: PING_INTERVAL, ..PingOptions::default() };
    let pinged = ping(&left.ns, right.addr, &options)?;
    phase.set("iperf3 TCP, left to right");
    let options = IperfOptions { duration: plan.tcp, ..IperfOptions::default() };
    let tcp = iperf3(&left.ns, &right.ns, right.addr, &options)?;
    phase.set("iperf3 UDP at 50 Mbit/s, right to left");
    let options = IperfOptions {
        duration: plan.udp,
        udp_bits_per_s: Some(UDP_BITS_PER_S),
        length: Some(UDP_BYTES),
        ..IperfOptions::default()
    };
    let udp = iperf3(&right.ns, &left.ns, left.addr, &options)?;
    phase.set("waiting for the last samples");
    Ok(Traffic { ping: pinged, tcp, udp })
}

/// Packets that the hosts' kernels have sent, by conversation: the truth that estimates are
/// compared with. Each host talks only to the other, so source and protocol identify a
/// conversation.
pub struct Truth {
    hosts: [(Netns, IpAddr, IpAddr); 2],
    before: [BTreeMap<u8, u64>; 2],
}

impl Truth {
    /// Counts from now on.
    pub fn since_now(lab: &Lab) -> Result<Truth> {
        let (left, right) = (&lab.left, &lab.right);
        let hosts = [
            (left.ns.clone(), left.addr.into(), right.addr.into()),
            (right.ns.clone(), right.addr.into(), left.addr.into()),
        ];
        let before = [sent(&left.ns)?, sent(&right.ns)?];
        Ok(Truth { hosts, before })
    }

    /// Returns the conversations with their packets.
    pub fn packets(&self) -> Result<Vec<(FlowKey, u64)>> {
        let mut all = Vec::new();
        for ((ns, source, destination), before) in self.hosts.iter().zip(&self.before) {
            for (protocol, count) in sent(ns)? {
                let count = count.saturating_sub(before.get(&protocol).copied().unwrap_or(0));
                let key = FlowKey { source: *source, destination: *destination, protocol };
                all.push((key, count));
            }
        }
        all.retain(|(_, count)| *count > 0);
        Ok(all)
    }
}

/// Packets that a host has sent, by protocol. `Tcp.OutSegs` leaves out retransmissions.
fn sent(ns: &Netns) -> Result<BTreeMap<u8, u64>> {
    let counters = ns.snmp()?;
    let sum = |names: &[&str]| {
        let all = names.iter().filter_map(|name| counters.get(*name));
        all.map(|n| u64::try_from(*n).unwrap_or(0)).sum()
    };
    Ok(BTreeMap::from([
        (1, sum(&["Icmp.OutMsgs"])),
        (6, sum(&["Tcp.OutSegs", "Tcp.RetransSegs"])),
        (17, sum(&["Udp.OutDatagrams"])),
    ]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_fills_the_time() {
        for seconds in 8..120 {
            assert_eq!(Plan::of(seconds).total().as_secs(), seconds, "{:?}", Plan::of(seconds));
        }
        assert!(Plan::of(0).udp.as_secs() >= 2);
    }
}
