//! Packets per second and clocks per packet, from the packet generator to the packet generator, one
//! worker: layer 2 cross connect and IPv4, without sFlow and with it at several rates. Settings
//! alternate within each round, so that the machine's drift meets them all; medians are printed with
//! their spread.

use serde_json::json;
use std::time::Duration;
use thalweg_bench_pg::{NodeRow, Router, Window, spread};

const ROUNDS: usize = 5;
const WINDOW: Duration = Duration::from_millis(400);
const WARM_UP: Duration = Duration::from_millis(100);
const RATES: [(&str, Option<u32>); 5] = [
    ("off", None),
    ("1:1M", Some(1_000_000)),
    ("1:10k", Some(10_000)),
    ("1:1k", Some(1_000)),
    ("1:100", Some(100)),
];

struct Case {
    name: &'static str,
    setup: String,
    stream: &'static str,
}

const PORTS: &str = "create packet-generator interface pg0
    create packet-generator interface pg1
    set interface state pg0 up
    set interface state pg1 up";

const ADDRESSES: &str = "set interface mac address pg0 02:fe:00:00:00:01
    set interface mac address pg1 02:fe:00:00:00:02
    set interface ip address pg0 10.0.0.254/24
    set interface ip address pg1 10.1.0.254/24
    set ip neighbor pg1 10.1.0.1 02:00:00:00:00:99 static
    set ip neighbor pg1 10.1.0.2 02:00:00:00:00:98 static";

fn cases() -> Vec<Case> {
    let one = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
               data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> 48.0.0.1 \
               UDP: 1234 -> 4321 incrementing 22 } }";
    let many = "packet-generator new { name s0 limit -1 size 64-64 interface pg0 worker 0 \
                data { IP4: 0200.0000.00aa -> 02fe.0000.0001 UDP: 10.0.0.1 -> \
                48.0.0.0 - 48.0.39.15 UDP: 1234 -> 4321 incrementing 22 } }";
    vec![
        Case {
            name: "L2 cross connect",
            setup: format!("{PORTS}\nset interface l2 xconnect pg0 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 1 flow",
            setup: format!("{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/8 via 10.1.0.1 pg1"),
            stream: one,
        },
        Case {
            name: "IPv4, 10,000 flows over 10,000 /32 routes",
            setup: format!(
                "{PORTS}\n{ADDRESSES}\nip route add 48.0.0.0/32 count 10000 via 10.1.0.1 pg1"
            ),
            stream: many,
        },
    ]
}

fn set_sflow(r: &mut Router, was: Option<u32>, rate: Option<u32>) {
    match (was, rate) {
        (None, None) => {}
        (Some(_), None) => {
            r.cli("sflow enable-disable pg0 disable");
        }
        (was, Some(n)) => {
            r.cli(&format!("sflow sampling-rate {n}"));
            if was.is_none() {
                r.cli("sflow enable-disable pg0");
            }
        }
    }
}

struct Outcome {
    name: &'static str,
    /// Per rate: packets per second and clocks per packet of each round.
    rates: Vec<(&'static str, Vec<f64>, Vec<f64>)>,
    nodes: Vec<(String, NodeRow)>,
}

fn run(case: &Case) -> Outcome {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut r = Router::start(&[Some(cores - 1)]);
    r.cli(&case.setup);
    r.cli(case.stream);
    r.cli("packet-generator enable-stream");
    let mut rates: Vec<_> = RATES.iter().map(|(n, _)| (*n, Vec::new(), Vec::new())).collect();
    let mut plain: Vec<Window> = Vec::new();
    let mut now = None;
    for round in 0..ROUNDS {
        eprint!("\r{}: round {} of {ROUNDS} ", case.name, round + 1);
        for (i, (_, rate)) in RATES.iter().enumerate() {
            set_sflow(&mut r, now, *rate);
            now = *rate;
            r.wait(WARM_UP);
            let w = r.measure(WINDOW);
            rates[i].1.push(w.tx_pps);
            rates[i].2.push(w.clocks_without_input());
            if rate.is_none() {
                plain.push(w);
            }
        }
    }
    eprintln!();
    set_sflow(&mut r, now, None);
    r.stop();
    let mut names: Vec<&String> = plain.iter().flat_map(|w| w.nodes.keys()).collect();
    names.sort();
    names.dedup();
    let median_row = |name: &String| {
        let rows: Vec<NodeRow> = plain.iter().filter_map(|w| w.nodes.get(name).copied()).collect();
        let of = |f: fn(&NodeRow) -> f64| spread(&rows.iter().map(f).collect::<Vec<_>>()).0;
        NodeRow { packets: rows[0].packets, clocks: of(|r| r.clocks), per_call: of(|r| r.per_call) }
    };
    let nodes = names.into_iter().map(|n| (n.clone(), median_row(n))).collect();
    Outcome { name: case.name, rates, nodes }
}

fn print(outcomes: &[Outcome]) {
    println!("## Packet generator, 64-byte packets, one worker\n");
    println!("Clocks per packet are without the generator's input. Medians of {ROUNDS}; spread is");
    println!("(greatest - least) / median.\n");
    println!("| path | sFlow | Mpps | of unsampled | clocks/packet | spread |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for o in outcomes {
        let base = spread(&o.rates[0].1).0;
        for (rate, pps, clocks) in &o.rates {
            let (m, lo, hi) = spread(pps);
            println!(
                "| {} | {rate} | {:.2} | {:.1} % | {:.1} | {:.1} %{} |",
                o.name,
                m / 1e6,
                100.0 * m / base,
                spread(clocks).0,
                100.0 * (hi - lo) / m,
                if (hi - lo) / m > 0.1 { " noisy" } else { "" }
            );
        }
    }
    println!("\n## Clocks per node, without sFlow\n");
    println!("| path | node | clocks/packet | packets/call |");
    println!("| --- | --- | ---: | ---: |");
    for o in outcomes {
        for (name, row) in &o.nodes {
            println!("| {} | {name} | {:.2} | {:.0} |", o.name, row.clocks, row.per_call);
        }
    }
}

fn save(outcomes: &[Outcome]) -> std::io::Result<()> {
    let rows: Vec<_> = outcomes
        .iter()
        .map(|o| {
            let rates: Vec<_> = o
                .rates
                .iter()
                .map(|(rate, pps, clocks)| json!({"sflow": rate, "pps": pps, "clocks": clocks}))
                .collect();
            let nodes: Vec<_> = o
                .nodes
                .iter()
                .map(|(n, r)| json!({"node": n, "clocks": r.clocks, "per_call": r.per_call}))
                .collect();
            json!({"path": o.name, "rates": rates, "nodes": nodes})
        })
        .collect();
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
    std::fs::create_dir_all(&dir)?;
    std::fs::write(dir.join("forwarding.json"), serde_json::to_string_pretty(&rows)?)
}

fn main() {
    // `cargo test --benches` calls us too; there is nothing to measure then.
    if !std::env::args().any(|a| a == "--bench") {
        return;
    }
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |c: &Case| only.is_empty() || only.iter().any(|o| c.name.contains(o.as_str()));
    let outcomes: Vec<Outcome> = cases().iter().filter(|c| wanted(c)).map(run).collect();
    print(&outcomes);
    if let Err(e) = save(&outcomes) {
        eprintln!("cannot save target/bench/forwarding.json: {e}");
    }
}
