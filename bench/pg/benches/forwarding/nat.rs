//! What translation adds to IPv4: sessions that stand, few and many, in order and at random; and
//! sessions that begin.

use std::net::Ipv4Addr;

use thalweg_bench_common::{Cell, Column, Series, Table};
use thalweg_bench_pg::paths::{self, PORTS, flow_packet, stream_of};
use thalweg_bench_pg::scaling::{Scaling, of_workers};
use thalweg_bench_pg::turns::{Plan, Turns, in_turn};
use thalweg_bench_pg::{Router, cores};
use thalweg_feat_nat44::worker::owner;
use thalweg_graph::clock;
use thalweg_tables::hash::mix64;

/// Where all flows go.
const SERVER: (Ipv4Addr, u16) = (Ipv4Addr::new(48, 0, 0, 1), 443);

/// Flows of a host inside.
const PORTS_EACH: u32 = 16;

/// The source of a flow: hosts from 10.64.0.0 on.
fn source(flow: u32) -> (Ipv4Addr, u16) {
    let host = Ipv4Addr::from_bits(0x0a40_0000 + flow / PORTS_EACH);
    (host, 1024 + (flow % PORTS_EACH) as u16)
}

fn set_up(workers: &[Option<usize>], sessions: u32) -> Router {
    let mut r = Router::start(workers);
    r.cli(PORTS);
    paths::address(&mut r);
    r.cli(&format!(
        "ip route add 48.0.0.0/8 via 10.1.0.1 pg1
         nat44 plugin enable sessions {sessions}
         nat44 add address 203.0.113.0 - 203.0.113.63"
    ));
    r
}

/// Turns translation on or off; sessions stay.
fn translate(r: &mut Router, was: &mut bool, on: bool) {
    if *was != on {
        let end = if on { "" } else { " del" };
        r.cli(&format!("set interface nat44 in pg0 out pg1{end}"));
    }
    *was = on;
}

/// IPv4 alone and with translation, the same packets.
fn standing(plan: Plan, sessions: u32, random: bool) -> [Turns; 2] {
    let title = format!("{sessions} sessions");
    let mut r = set_up(&[Some(cores() - 1)], sessions + sessions / 8 + 1024);
    let packets = sessions.max(1 << 10);
    let nth = move |n: u32| {
        if random { (mix64(u64::from(n)) % u64::from(sessions)) as u32 } else { n % sessions }
    };
    let all = (0..sessions).map(|n| flow_packet(source(n), SERVER));
    stream_of(&mut r, "all", 0, all);
    stream_of(&mut r, "s0", 0, (0..packets).map(|n| flow_packet(source(nth(n)), SERVER)));
    let mut on = false;
    translate(&mut r, &mut on, true);
    // All of them once, in order, so that each has a session before it is measured.
    r.cli(&format!("packet-generator configure all limit {sessions}"));
    r.cli("packet-generator enable-stream all");
    let there = format!("total sessions: {sessions}\n");
    while !r.cli("show nat44 summary").contains(&there) {
        r.wait(plan.warm_up);
    }
    r.cli("packet-generator disable-stream all\npacket-generator enable-stream s0");
    r.wait(plan.warm_up * 4);
    let turns = in_turn(plan, &title, &mut r, &[false, true], |r, nat| translate(r, &mut on, *nat));
    r.stop();
    let mut turns = turns.into_iter();
    std::array::from_fn(|_| turns.next().unwrap_or_default())
}

fn sessions(plan: Plan) -> Table {
    let mut table = Table::new(
        "NAT44",
        vec![
            Column::text("sessions"),
            Column::text("order"),
            Column::values("rate", "Mpps"),
            Column::values("IPv4 alone", "clocks/packet"),
            Column::values("with NAT44", "clocks/packet"),
            Column::values("of it, the translator", "clocks/packet"),
            Column::values("ratio", ""),
        ],
    );
    let cases = [(1, false), (16_384, false), (16_384, true), (1 << 20, false), (1 << 20, true)];
    for (n, random) in cases {
        let [alone, nat] = standing(plan, n, random);
        let order = if random { "random" } else { "sequential" };
        let mut node = Series::default();
        nat.windows.iter().for_each(|w| node.push(w.clocks_of("nat44-ed-in2out")));
        table.row(vec![
            n.to_string().into(),
            order.into(),
            Cell::series(&nat.mpps, 1),
            Cell::series(&alone.clocks, 1),
            Cell::series(&nat.clocks, 1),
            Cell::series(&node, 1),
            Cell::ratio(nat.clocks.over(&alone.clocks)),
        ]);
    }
    table.note(
        "UDP with checksums, from the inside to the outside; clocks without the generator's input. \
         64 addresses, a port of which each session has for itself.",
    );
    table
}

/// Sessions that begin, a million of them, one packet each.
fn beginning(plan: Plan) -> Table {
    const ALL: u32 = 1 << 20;
    let mut table = Table::new(
        "New NAT44 sessions",
        vec![
            Column::values("per second, one worker", "million"),
            Column::values("whole loop", "clocks/session"),
            Column::values("the translator", "clocks/session"),
        ],
    );
    let mut r = set_up(&[Some(cores() - 1)], ALL + 1024);
    stream_of(&mut r, "s0", 0, (0..ALL).map(|n| flow_packet(source(n), SERVER)));
    r.cli("set interface nat44 in pg0 out pg1");
    let (mut rate, mut whole, mut node) = (Series::default(), Series::default(), Series::default());
    // The first round has the memory of all sessions come into being.
    for round in 0..=plan.rounds {
        eprintln!("new sessions: round {round} of {}", plan.rounds);
        r.cli(&format!("packet-generator configure s0 limit {ALL}"));
        r.command("packet-generator enable-stream s0");
        let w = r.measure(plan.window * 8);
        if round > 0 {
            rate.push(clock::hz() / w.loop_clocks / 1e6);
            whole.push(w.loop_clocks);
            node.push(w.clocks_of("nat44-ed-in2out"));
        }
        r.cli("packet-generator disable-stream\nclear nat44 sessions");
        while !r.cli("show nat44 summary").contains("total sessions: 0\n") {
            r.wait(plan.warm_up);
        }
    }
    r.stop();
    table.row(vec![Cell::series(&rate, 2), Cell::series(&whole, 0), Cell::series(&node, 0)]);
    table.note(
        "A million sessions of one packet each, in a table with room for them, from memory that is \
         there; the loop has the generator's input in it.",
    );
    table
}

/// One worker and two, each with hosts of its own, and with hosts of either.
fn workers(plan: Plan) -> Table {
    let mut columns = vec![Column::text("hosts")];
    columns.extend(Scaling::columns("Mpps"));
    let mut table = Table::new("NAT44 workers", columns);
    if cores() < 2 {
        table.row(vec!["all".into(), Cell::Missing("there is one processor only".into())]);
        return table;
    }
    for spread in [true, false] {
        let scaling = of_workers(plan, "NAT44 workers", spread, || {
            let mut r = set_up(&[Some(0), Some(1)], 40_000);
            for worker in 0..2 {
                let mine = |n: &u32| !spread || owner(source(*n).0, 2) == worker;
                let flows = (0..1 << 20).map(|n| n + (worker as u32) * (1 << 20)).filter(mine);
                let packets = flows.take(8192).map(|n| flow_packet(source(n), SERVER));
                stream_of(&mut r, &format!("s{worker}"), worker, packets);
            }
            r.cli("set interface nat44 in pg0 out pg1");
            r
        });
        let hosts = if spread { "of the worker that receives" } else { "of either worker" };
        table.row([hosts.into()].into_iter().chain(scaling.cells(1)).collect());
    }
    table.note(
        "8192 sessions for each stream. One is the mean of either stream alone. Hosts of the worker \
         that receives: a device that spreads by source address. Hosts of either: half of the packets \
         are handed over. Turns and the last column as of other workers.",
    );
    table
}

/// Measures.
pub fn tables(plan: Plan) -> Vec<Table> {
    vec![sessions(plan), beginning(plan), workers(plan)]
}
