//! The second article's three ways through a router, L2XC, IPv4 and MPLS, as its listing sets them
//! up, and samples of each at several rates.

use anyhow::{Context, Result, ensure};
use thalweg_smoke::vppctl::vppctl;
use thalweg_smoke::{Collector, Config, Router};
use thalweg_testkit::{Lab, WAIT_LIMIT, lab_test, wait_until_seen};

/// Packets that come each way at each rate.
const PACKETS: u64 = 100_000;
/// One in how many packets is sampled; 0: sFlow is off.
const RATES: [u64; 6] = [0, 1_000_000, 10_000, 1_000, 100, 10];

/// The ways: name, port of entry, port of exit, what comes.
const WAYS: [(&str, &str, &str, &str); 3] = [
    (
        "L2XC",
        "pg0",
        "pg1",
        "IP4: 0200.0000.00aa -> 0200.0000.00bb UDP: 16.0.0.1 -> 48.0.0.1 UDP: 1234 -> 4321",
    ),
    (
        "IPv4",
        "pg2",
        "pg3",
        "IP4: 0200.0000.00aa -> 02fe.0000.0002 UDP: 48.0.0.1 -> 16.0.0.1 UDP: 1234 -> 4321",
    ),
    (
        "MPLS",
        "pg4",
        "pg5",
        "MPLS: 0200.0000.00aa -> 02fe.0000.0004 label 16 IP4: UDP: 10.0.0.1 -> 10.0.0.2 \
         UDP: 1234 -> 4321",
    ),
];

/// The article's commands, for ports of the packet generator.
const LISTING: &str = "\
set interface state pg0 up
set interface state pg1 up
set interface state pg2 up
set interface state pg3 up
set interface state pg4 up
set interface state pg5 up
set interface l2 xconnect pg0 pg1
set interface l2 xconnect pg1 pg0
set interface ip address pg2 100.64.0.1/31
set interface ip address pg3 100.64.1.1/31
ip route add 16.0.0.0/24 via 100.64.1.0
ip route add 48.0.0.0/24 via 100.64.0.0
ip neighbor pg2 100.64.0.0 02:00:00:00:02:00 static
ip neighbor pg3 100.64.1.0 02:00:00:00:03:00 static
mpls table add 0
set interface ip address pg4 100.64.4.1/31
set interface ip address pg5 100.64.5.1/31
ip neighbor pg4 100.64.4.0 02:00:00:00:04:00 static
ip neighbor pg5 100.64.5.0 02:00:00:00:05:00 static
set interface mpls pg4 enable
set interface mpls pg5 enable
mpls local-label add 16 eos via 100.64.5.0 pg5 out-labels 17
mpls local-label add 17 eos via 100.64.4.0 pg4 out-labels 16
sflow header-bytes 128
sflow polling-interval 10";

/// Returns a port's counts so far: packets seen, samples taken, sent and dropped.
fn sampled(router: &Router, port: &str) -> Result<[u64; 4]> {
    let shown = router.json("show sflow")?;
    let all = shown["interfaces"].as_array().context("no list of interfaces")?;
    let Some(of) = all.iter().find(|of| of["name"] == port) else { return Ok([0; 4]) };
    let number = |key: &str| of[key].as_u64().with_context(|| format!("no {key}: {of}"));
    let (kept, dropped) = (number("samples")?, number("drops")?);
    Ok([number("pool")?, kept + dropped, number("sent")?, dropped])
}

/// Sends a stream through one of the ways; returns samples taken, sent and dropped.
fn stream(router: &Router, way: &(&str, &str, &str, &str), rate: u64) -> Result<[u64; 3]> {
    let (name, entry, exit, data) = way;
    let left = || router.interface_counter(exit, "tx_packets");
    let (before, left_before) = (sampled(router, entry)?, left()?);
    router.cli(&format!(
        "packet-generator new {{ name {name} limit {PACKETS} size 64-64 interface {entry} data {{ {data} \
         incrementing 8 }} }}"
    ))?;
    router.cli(&format!("packet-generator enable-stream {name}"))?;
    // All of it has left, and been sampled; and whatever was taken has found its end.
    wait_until_seen(WAIT_LIMIT, "the end of the stream", || {
        let after = sampled(router, entry).map_err(|e| format!("{e:#}"))?;
        let passed = left().map_err(|e| format!("{e:#}"))? - left_before;
        let [pool, taken, sent, dropped] = std::array::from_fn(|i| after[i] - before[i]);
        let seen = if rate == 0 { 0 } else { PACKETS };
        match passed == PACKETS && pool == seen && taken == sent + dropped {
            true => Ok([taken, sent, dropped]),
            false => Err(format!("{passed} left; {after:?}")),
        }
    })
    .and_then(|found| router.cli(&format!("packet-generator delete {name}")).map(|_| found))
}

lab_test! {
    /// Every packet leaves whatever the rate is, and samples are as many as it says: none is lost
    /// between worker and collector.
    fn samples_of_three_ways_at_each_rate() {
        let lab = Lab::new()?;
        let collector = Collector::listen(&lab.router)?;
        let ports: String = (0..6).map(|n| format!(
            "create packet-generator interface pg{n} hw-addr 02:fe:00:00:00:0{n}\n"
        )).collect();
        let router = Router::start(&lab.router, &Config::empty().commands(&ports))?;
        for command in LISTING.lines() {
            let text = vppctl(router.socket(), command)?;
            ensure!(text.trim().is_empty(), "`{command}' said {text}");
        }
        router.cli("sflow collector add 127.0.0.1")?;
        let text = vppctl(router.socket(), "show mpls fib")?;
        for part in ["MPLS-VRF:0", "16:eos/21", "labels:[[17 pipe ttl:0 exp:0]]", "mpls via 100.64.5.0 pg5"] {
            ensure!(text.contains(part), "no {part:?} in\n{text}");
        }
        println!("| one in | L2XC: taken, sent, dropped | IPv4 | MPLS |");
        for rate in RATES {
            if rate > 0 {
                router.cli(&format!("sflow sampling-rate {rate}"))?;
                if rate == RATES[1] {
                    // sFlow is enabled from here on.
                    for (_, entry, ..) in WAYS {
                        router.cli(&format!("sflow enable {entry}"))?;
                    }
                }
            }
            let mut row = Vec::new();
            for way in &WAYS {
                let [taken, sent, dropped] = stream(&router, way, rate)?;
                let usual = PACKETS.checked_div(rate).unwrap_or(0);
                // Far more than random skips make it differ.
                ensure!(taken.abs_diff(usual) <= 20 + usual / 3, "{taken} samples at 1:{rate}");
                row.push(format!("{taken}, {sent}, {dropped}"));
            }
            let what = if rate == 0 { "no sFlow".to_owned() } else { rate.to_string() };
            println!("| {what} | {} |", row.join(" | "));
        }
        // The collector gets labels before and after.
        let shown = router.json("show sflow")?;
        let errors = &shown["collectors"][0]["errors"];
        ensure!(errors == 0, "{shown}");
        drop(collector);
        router.stop().map(drop)
    }
}
