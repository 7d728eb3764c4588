//! Claims of the demonstration, and checks that they hold.

use super::figures::{Accounting, Samples};
use super::traffic::Traffic;
use super::view::{grouped, si};
use serde_json::{Value, json};
use thalweg_sflow::estimate::{Estimate, FlowKey};

/// TCP must reach this many bits per second.
const LEAST_TCP: f64 = 50e6;
/// Maximum share of UDP datagrams that may be lost on the way, in percent.
const MOST_LOSS: f64 = 1.0;

/// A conversation: estimated from samples, and counted by its sender's kernel.
#[derive(Clone, Debug)]
pub struct Talker {
    pub key: FlowKey,
    pub packets: Estimate,
    pub bytes: Estimate,
    pub truth: u64,
}

impl Talker {
    /// True if the truth is in the 95 % interval.
    pub fn holds(&self) -> bool {
        self.within(1.0)
    }

    /// True if the truth is in the interval widened by `factor`.
    fn within(&self, factor: f64) -> bool {
        let (e, truth) = (&self.packets, self.truth as f64);
        let low = e.value - factor * (e.value - e.low);
        let high = e.value + factor * (e.high - e.value);
        (low..=high).contains(&truth)
    }
}

/// Measurements of a run.
pub struct Evidence {
    pub traffic: Traffic,
    pub samples: Samples,
    /// Flow samples that the collector received, and what it could not decode.
    pub received: u64,
    pub malformed: u64,
    pub talkers: Vec<Talker>,
    pub accounting: Accounting,
    /// Interfaces, each with its name, what the host's kernel sent, what the router received or
    /// knows that it missed.
    pub wires: Vec<(String, u64, u64)>,
    /// End of the router: its exit status and last words. `None` if it goes on.
    pub ending: Option<Ended>,
}

/// End of the router.
pub struct Ended {
    pub clean: bool,
    pub words: String,
}

/// One claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    pub name: &'static str,
    pub holds: bool,
    pub text: String,
}

/// Judges each claim.
pub fn judge(e: &Evidence) -> Vec<Claim> {
    let talkers = estimates(&e.talkers);
    let mut claims = vec![ping(e), tcp(e), udp(e), samples(e), talkers, wires(e), accounting(e)];
    if let Some(ended) = &e.ending {
        let text = ended.words.clone();
        claims.push(Claim { name: "clean exit", holds: ended.clean, text });
    }
    claims
}

fn ping(e: &Evidence) -> Claim {
    let p = &e.traffic.ping;
    let rtt = p.median_us().map(|us| format!(", median {us:.0} µs")).unwrap_or_default();
    Claim {
        name: "ping",
        holds: p.sent > 0 && p.missing() == 0 && p.duplicates == 0,
        text: format!("{} of {} answered{rtt}", p.sent - p.missing(), p.sent),
    }
}

fn tcp(e: &Evidence) -> Claim {
    let t = &e.traffic.tcp;
    let again = t.retransmits.map(|n| format!(", {n} segments sent again")).unwrap_or_default();
    Claim {
        name: "TCP",
        holds: t.bits_per_s >= LEAST_TCP,
        text: format!("{}bit/s{again}", si(t.bits_per_s)),
    }
}

/// Datagrams that the receiving program was too slow to read are not losses: they were forwarded.
fn udp(e: &Evidence) -> Claim {
    let u = &e.traffic.udp;
    let (sent, on_the_way) = (u.packets.unwrap_or(0), u.lost_on_the_way().unwrap_or(u64::MAX));
    let share = on_the_way as f64 / sent.max(1) as f64;
    let slow = match u.unread_packets {
        0 => String::new(),
        n => format!("; {} arrived, but were not read in time", grouped(n)),
    };
    Claim {
        name: "UDP",
        holds: sent > 0 && share * 100.0 <= MOST_LOSS,
        text: format!(
            "{}bit/s, {} of {} datagrams lost on the way{slow}",
            si(u.bits_per_s),
            grouped(on_the_way),
            grouped(sent)
        ),
    }
}

fn samples(e: &Evidence) -> Claim {
    let Samples { taken, sent, dropped } = e.samples;
    let undecoded = match e.malformed {
        0 => String::new(),
        n => format!("; {n} could not be decoded"),
    };
    Claim {
        name: "samples",
        holds: taken > 0 && dropped == 0 && e.received == taken && e.malformed == 0,
        text: format!(
            "{} taken, {} sent, {} dropped, {} received by the collector{undecoded}",
            grouped(taken),
            grouped(sent),
            grouped(dropped),
            grouped(e.received)
        ),
    }
}

/// One interval in twenty misses its truth by chance alone, so that a miss is no failure; one by
/// more than twice the interval (four standard deviations) is.
fn estimates(talkers: &[Talker]) -> Claim {
    let hold = talkers.iter().filter(|t| t.holds()).count();
    let far = talkers.iter().filter(|t| !t.within(2.0)).count();
    let rest = match far {
        0 => "none is off by more than twice that".to_owned(),
        n => format!("{n} are off by more than twice that"),
    };
    Claim {
        name: "estimates",
        holds: !talkers.is_empty() && far == 0,
        text: format!("{hold} of {} hold the truth in their 95 % interval; {rest}", talkers.len()),
    }
}

fn accounting(e: &Evidence) -> Claim {
    let a = &e.accounting;
    Claim {
        name: "accounting",
        holds: a.in_flight >= 0 && a.in_flight as u64 <= a.buffers_used,
        text: format!(
            "{} packets received, {} sent, {} dropped, {} held in {} buffers",
            grouped(a.received),
            grouped(a.sent),
            grouped(a.dropped),
            a.in_flight,
            a.buffers_used
        ),
    }
}

/// The hosts' kernels and the router agree on what went over the wires.
fn wires(e: &Evidence) -> Claim {
    let wire = |(name, sent, seen): &(String, u64, u64)| {
        format!("{name} counted {} of {} packets", grouped(*seen), grouped(*sent))
    };
    Claim {
        name: "wires",
        holds: !e.wires.is_empty() && e.wires.iter().all(|(_, sent, seen)| sent == seen),
        text: e.wires.iter().map(wire).collect::<Vec<_>>().join(", "),
    }
}

/// Everything, as JSON.
pub fn to_json(e: &Evidence, claims: &[Claim]) -> Value {
    let claim = |c: &Claim| json!({ "claim": c.name, "holds": c.holds, "found": c.text });
    let talker = |t: &Talker| {
        let interval = |e: &Estimate| json!({ "value": e.value, "low": e.low, "high": e.high });
        json!({
            "source": t.key.source.to_string(),
            "destination": t.key.destination.to_string(),
            "protocol": t.key.protocol,
            "samples": t.packets.samples,
            "packets": interval(&t.packets),
            "bytes": interval(&t.bytes),
            "true_packets": t.truth,
            "in_interval": t.holds(),
        })
    };
    let t = &e.traffic;
    json!({
        "ok": claims.iter().all(|c| c.holds),
        "claims": claims.iter().map(claim).collect::<Vec<_>>(),
        "ping": { "sent": t.ping.sent, "received": t.ping.received,
                  "median_us": t.ping.median_us(), "p99_us": t.ping.percentile_us(99.0) },
        "tcp": { "bits_per_s": t.tcp.bits_per_s, "retransmits": t.tcp.retransmits },
        "udp": { "bits_per_s": t.udp.bits_per_s, "packets": t.udp.packets,
                 "lost": t.udp.lost_packets, "not_read_in_time": t.udp.unread_packets },
        "samples": { "taken": e.samples.taken, "sent": e.samples.sent,
                     "dropped": e.samples.dropped, "received": e.received },
        "talkers": e.talkers.iter().map(talker).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use thalweg_netns::{IperfResult, PingResult};

    fn iperf(bits_per_s: f64) -> IperfResult {
        IperfResult {
            bits_per_s,
            sent_bits_per_s: bits_per_s,
            retransmits: Some(0),
            packets: Some(1000),
            lost_packets: Some(0),
            unread_packets: 0,
            lost_percent: Some(0.0),
            jitter_ms: None,
            seconds: 1.0,
            client_cpu_percent: 0.0,
            report: Value::Null,
        }
    }

    fn talker(truth: u64) -> Talker {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let key = FlowKey { source, destination, protocol: 6 };
        let packets = Estimate::packets(1000, 100.0);
        Talker { key, packets, bytes: packets, truth }
    }

    fn good() -> Evidence {
        let ping =
            PingResult { sent: 9, received: 9, rtts_us: vec![50.0; 9], ..Default::default() };
        Evidence {
            traffic: Traffic { ping, tcp: iperf(1e9), udp: iperf(5e7) },
            samples: Samples { taken: 1000, sent: 1000, dropped: 0 },
            received: 1000,
            malformed: 0,
            talkers: vec![talker(100_100)],
            accounting: Accounting { received: 10, sent: 9, dropped: 1, ..Default::default() },
            wires: vec![("host-eth0".into(), 10, 10)],
            ending: Some(Ended { clean: true, words: "all buffers are back".into() }),
        }
    }

    fn broken(change: impl Fn(&mut Evidence)) -> Vec<&'static str> {
        let mut evidence = good();
        change(&mut evidence);
        let claims = judge(&evidence);
        let ok = claims.iter().all(|c| c.holds);
        assert_eq!(to_json(&evidence, &claims)["ok"], ok);
        claims.iter().filter(|c| !c.holds).map(|c| c.name).collect()
    }

    #[test]
    fn each_claim_can_fail() {
        assert!(broken(|_| {}).is_empty());
        assert_eq!(broken(|e| e.traffic.ping.received = 8), ["ping"]);
        assert_eq!(broken(|e| e.traffic.tcp.bits_per_s = 1e6), ["TCP"]);
        assert_eq!(broken(|e| e.traffic.udp.lost_packets = Some(11)), ["UDP"]);
        assert_eq!(broken(|e| e.traffic.udp.lost_packets = None), ["UDP"]);
        assert_eq!(broken(|e| e.traffic.udp.packets = None), ["UDP"]);
        assert_eq!(broken(|e| e.received = 999), ["samples"]);
        assert_eq!(broken(|e| e.samples.dropped = 1), ["samples"]);
        assert_eq!(broken(|e| e.talkers.clear()), ["estimates"]);
        assert_eq!(broken(|e| e.talkers[0].truth = 120_000), ["estimates"]);
        assert_eq!(broken(|e| e.accounting.in_flight = 1), ["accounting"]);
        assert_eq!(broken(|e| e.accounting.in_flight = -1), ["accounting"]);
        assert_eq!(broken(|e| e.wires[0].2 = 9), ["wires"]);
        assert_eq!(broken(|e| e.ending.as_mut().unwrap().clean = false), ["clean exit"]);
    }

    #[test]
    fn a_slow_receiver_fails_no_claim() {
        let lossy = |unread| {
            broken(|e| {
                e.traffic.udp.lost_packets = Some(100);
                e.traffic.udp.unread_packets = unread;
            })
        };
        assert_eq!(lossy(80), ["UDP"]);
        assert!(lossy(90).is_empty());
    }

    #[test]
    fn chance_alone_fails_no_claim() {
        // The interval is 100000 +- 6 %.
        assert!(broken(|e| e.talkers[0].truth = 93_000).is_empty());
        assert!(!talker(93_000).holds() && talker(94_500).holds());
        assert!(judge(&good())[4].text.starts_with("1 of 1 hold"));
    }
}
