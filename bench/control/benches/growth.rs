//! The time of one more setting, and of one less, with few of its kind and with many: a list that
//! is gone through, or a table that is compiled again, shows.

use std::time::Instant;

use anyhow::Result;
use thalweg_bench_common::{Args, Cell, Column, Report, Series, Table};
use thalweg_bench_pg::paths::{self, PORTS};
use thalweg_bench_pg::{Router, cores};

const FEW: usize = 60;
const MANY: usize = 60_000;
/// Settings that are added one by one, and measured.
const MEASURED: usize = 60;
const ROUNDS: usize = 5;
/// Maximum ratio of the times that one more setting takes, with many and with few.
const GUIDE: f64 = 3.0;

/// A kind of settings.
struct Kind {
    name: &'static str,
    before: &'static str,
    /// Number that counts as many.
    many: usize,
    /// The commands that add one, by number.
    add: fn(usize) -> String,
    /// The command that deletes it.
    delete: fn(usize) -> String,
}

/// An address within a network of 24 bits.
fn address(first: u8, n: usize) -> String {
    format!("{first}.{}.{}.{}", n >> 16, n >> 8 & 255, n & 255)
}

/// Command that creates the nth of interfaces that have no device, of all kinds in turn.
fn interface(n: usize) -> String {
    let of = n / 4;
    match n % 4 {
        0 => format!("create loopback interface instance {of}"),
        1 => format!("bvi create instance {of}"),
        2 => format!("mpls tunnel add mpls-tunnel{of} via 10.1.0.1 pg1 out-labels 40"),
        _ => format!(
            "create sub-interfaces pg0 {} dot1q {} inner-dot1q {} exact-match",
            of + 1,
            of / 4000 + 1,
            of % 4000 + 1
        ),
    }
}

/// Command that deletes the nth of these interfaces.
fn no_interface(n: usize) -> String {
    let of = n / 4;
    match n % 4 {
        0 => format!("delete loopback interface intfc loop{of}"),
        1 => format!("bvi delete bvi{of}"),
        2 => format!("mpls tunnel del mpls-tunnel{of}"),
        _ => format!("delete sub-interface pg0.{}", of + 1),
    }
}

/// Commands that make a loopback interface with a setting of each feature that keeps some by
/// interface.
fn busy_interface(n: usize) -> String {
    let (high, low) = (n >> 8, n & 255);
    format!(
        "create loopback interface instance {n}
         set interface ip address loop{n} 2001:db8:{high:x}:{low:x}::1/64
         set interface state loop{n} up
         set interface proxy-arp loop{n} enable
         set interface tcp-mss-clamp loop{n} ip4 enable ip4-mss 1000 ip6 disable"
    )
}

/// Commands that make an interface that borrows addresses and translates.
fn translating_interface(n: usize) -> String {
    format!(
        "create loopback interface instance {n}
         set interface unnumbered loop{n} use pg0
         set interface nat44 in loop{n}"
    )
}

const NAT: &str = "nat44 plugin enable\nset interface nat44 in pg0 out pg1";

fn mapping(n: usize) -> String {
    let (local, external) = (address(10, n), address(48, n));
    format!("nat44 add static mapping tcp local {local} 80 external {external} 80")
}

/// A mapping of the address of an interface, by port.
fn interface_mapping(n: usize) -> String {
    format!("nat44 add static mapping tcp local {} 80 external pg1 {}", address(10, n), n + 1)
}

/// A mapping of a whole address, which is one of the pool.
fn whole_mapping(n: usize) -> String {
    format!("nat44 add static mapping local {} external {}", address(10, n), address(49, n))
}

fn pool_address(n: usize) -> String {
    format!("nat44 add address {}", address(50, n))
}

fn back_end(n: usize) -> String {
    let local = address(10, n);
    format!(
        "nat44 add load-balancing back-end protocol tcp external 192.0.2.9:80 local {local}:80 \
         probability 1"
    )
}

fn rule(table: u32, n: usize) -> String {
    let (source, priority) = (address(10, n), n % 1000 + 1);
    format!("flow add {table} 'priority={priority},ip,nw_src={source},actions=normal'")
}

fn no_rule(table: u32, n: usize) -> String {
    let (source, priority) = (address(10, n), n % 1000 + 1);
    format!("flow del {table} strict 'priority={priority},ip,nw_src={source}'")
}

/// Commands that make an interface with rules of its own, of which one names it. Sub-interfaces may
/// be more than loopback interfaces.
fn filter(n: usize) -> String {
    let (set, sub) = (n + 10, n + 1);
    format!(
        "create sub-interfaces pg0 {sub} dot1q {} inner-dot1q {} exact-match
         flow add {set} 'priority=1,in_port=pg0.{sub},actions=normal'
         set interface flow pg0.{sub} {set}",
        n / 4000 + 1,
        n % 4000 + 1
    )
}

fn no_filter(n: usize) -> String {
    let (set, sub) = (n + 10, n + 1);
    format!(
        "set interface flow pg0.{sub} disable
         flow del {set}
         delete sub-interface pg0.{sub}"
    )
}

/// Commands that make an interface with a rule in a set for all.
fn filtered_port(n: usize) -> String {
    format!(
        "create loopback interface instance {n}
         flow add 9 'priority=1,in_port=loop{n},actions=normal'"
    )
}

fn no_filtered_port(n: usize) -> String {
    format!(
        "flow del 9 strict 'priority=1,in_port=loop{n}'
         delete loopback interface intfc loop{n}"
    )
}

/// Commands that make a port of a bridge domain with rules.
fn bridge_member(n: usize) -> String {
    format!(
        "create loopback interface instance {n}
         set interface l2 bridge loop{n} 7"
    )
}

fn mac(n: usize) -> String {
    format!("02:00:00:{:02x}:{:02x}:{:02x}", n >> 16, n >> 8 & 255, n & 255)
}

/// A neighbour of a network of 10 bits.
fn neighbor(n: usize) -> String {
    format!("pg1 {} {}", address(100, n + (64 << 16) + 2), mac(n))
}

fn neighbor6(n: usize) -> String {
    format!("pg1 2001:db8:1::{:x}:{:x} {}", n >> 16, (n & 0xffff) + 2, mac(n))
}

/// A prefix of IPv6 for each.
fn prefix6(n: usize) -> String {
    format!("2001:db8:{:x}:{:x}::/64", 0x100 + (n >> 16), n & 0xffff)
}

/// An endpoint that keeps its address.
fn identity(n: usize) -> String {
    format!("nat44 add identity mapping {} tcp 80", address(10, n))
}

fn own_address(del: &str, n: usize) -> String {
    format!("set interface ip address {del} pg1 {}/30", address(60, 4 * n + 1))
}

/// A host that the router answers for on the other port.
fn proxied_host(del: &str, n: usize) -> String {
    format!("set ip6 nd proxy pg1 {del} 2001:db8:99::{n:x}")
}

/// Commands that make an interface with an address in a table of its own.
fn tabled_interface(n: usize) -> String {
    let table = n + 10;
    format!(
        "ip table add {table}
         create loopback interface instance {n}
         set interface ip table loop{n} {table}
         set interface ip address loop{n} 10.0.0.1/24"
    )
}

fn no_tabled_interface(n: usize) -> String {
    format!(
        "delete loopback interface intfc loop{n}
         ip table del {}",
        n + 10
    )
}

fn label(n: usize) -> usize {
    n + 1000
}

fn deleted(add: fn(usize) -> String, n: usize) -> String {
    add(n) + " del"
}

const ALL: [Kind; 26] = [
    Kind {
        name: "static mapping of NAT44",
        before: NAT,
        many: MANY,
        add: mapping,
        delete: |n| deleted(mapping, n),
    },
    Kind {
        name: "identity mapping of NAT44",
        before: NAT,
        many: MANY,
        add: identity,
        delete: |n| deleted(identity, n),
    },
    Kind {
        name: "static mapping of an interface's address",
        before: NAT,
        many: MANY,
        add: interface_mapping,
        delete: |n| deleted(interface_mapping, n),
    },
    Kind {
        name: "static mapping of a whole pool address",
        before: "nat44 plugin enable\nset interface nat44 in pg0 out pg1\n\
                 nat44 add address 49.0.0.0 - 49.0.15.255",
        many: 4000,
        add: whole_mapping,
        delete: |n| deleted(whole_mapping, n),
    },
    Kind {
        name: "pool address of NAT44",
        before: NAT,
        many: 4000,
        add: pool_address,
        delete: |n| deleted(pool_address, n),
    },
    Kind {
        name: "back end of one mapping",
        before: "nat44 plugin enable\nset interface nat44 in pg0 out pg1\n\
                 nat44 add load-balancing static mapping protocol tcp external 192.0.2.9:80 \
                 local 10.255.0.1:80 probability 1 local 10.255.0.2:80 probability 1",
        many: 1000,
        add: back_end,
        delete: |n| deleted(back_end, n),
    },
    Kind {
        name: "flow rule, in use",
        before: "flow add 7 'actions=normal'\nset interface flow pg0 7",
        many: MANY,
        add: |n| rule(7, n),
        delete: |n| no_rule(7, n),
    },
    Kind {
        name: "flow rule, not in use",
        before: "",
        many: MANY,
        add: |n| rule(8, n),
        delete: |n| no_rule(8, n),
    },
    Kind {
        name: "route",
        before: "",
        many: MANY,
        add: |n| format!("ip route add {}/32 via 10.1.0.1 pg1", address(48, n)),
        delete: |n| format!("ip route del {}/32", address(48, n)),
    },
    Kind {
        name: "route of IPv6",
        before: "enable ip6 interface pg1",
        many: MANY,
        add: |n| format!("ip route add {} via 2001:db8:1::1 pg1", prefix6(n)),
        delete: |n| format!("ip route del {}", prefix6(n)),
    },
    Kind {
        name: "labelled route to an unresolved neighbour",
        before: "",
        many: MANY,
        add: |n| {
            let (to, label) = (address(48, n), n + 16);
            format!("ip route add {to}/32 via 10.1.0.77 pg1 out-labels {label}")
        },
        delete: |n| format!("ip route del {}/32", address(48, n)),
    },
    Kind {
        name: "interface without a device",
        before: "",
        many: MANY,
        add: interface,
        delete: no_interface,
    },
    Kind {
        name: "interface with IPv6, proxy ARP and an MSS",
        before: "set ip6 dad enable",
        many: 10_000,
        add: busy_interface,
        delete: |n| format!("delete loopback interface intfc loop{n}"),
    },
    Kind {
        name: "unnumbered interface inside NAT44",
        before: NAT,
        many: 10_000,
        add: translating_interface,
        delete: |n| format!("delete loopback interface intfc loop{n}"),
    },
    Kind {
        name: "filter of an interface's own",
        before: "",
        many: MANY,
        add: filter,
        delete: no_filter,
    },
    Kind {
        name: "rule for one of many ports",
        before: "flow add 9 'actions=normal'\nset interface flow pg0 9",
        many: 10_000,
        add: filtered_port,
        delete: no_filtered_port,
    },
    Kind {
        name: "bridge member with rules",
        before: "flow add 7 'actions=normal'",
        many: 10_000,
        add: bridge_member,
        delete: |n| format!("delete loopback interface intfc loop{n}"),
    },
    Kind {
        name: "static MAC address",
        before: "set interface l2 bridge pg1 7",
        many: MANY,
        add: |n| format!("l2fib add {} 7 pg1 static", mac(n)),
        delete: |n| format!("l2fib del {} 7", mac(n)),
    },
    Kind {
        name: "static neighbour",
        before: "set ip neighbor-config ip4 limit 100000\n\
                 set interface ip address pg1 100.64.0.1/10",
        many: MANY,
        add: |n| format!("set ip neighbor {} static", neighbor(n)),
        delete: |n| format!("set ip neighbor del {}", neighbor(n)),
    },
    Kind {
        name: "static neighbour of IPv6",
        before: "set ip neighbor-config ip6 limit 100000\n\
                 set interface ip address pg1 2001:db8:1::1/64",
        many: MANY,
        add: |n| format!("set ip neighbor {} static", neighbor6(n)),
        delete: |n| format!("set ip neighbor del {}", neighbor6(n)),
    },
    Kind {
        name: "address of one interface",
        before: "",
        many: 1000,
        add: |n| own_address("", n),
        delete: |n| own_address("del", n),
    },
    Kind {
        name: "label",
        before: "mpls table add 0",
        many: MANY,
        add: |n| format!("mpls local-label add {} eos via 10.1.0.1 pg1", label(n)),
        delete: |n| format!("mpls local-label del {} eos", label(n)),
    },
    Kind {
        name: "label that follows a route",
        before: "mpls table add 0",
        many: MANY,
        add: |n| {
            let (to, label) = (address(48, n), label(n));
            format!(
                "ip route add {to}/32 via 10.1.0.1 pg1
                 mpls local-label add {label} {to}/32"
            )
        },
        delete: |n| {
            let (to, label) = (address(48, n), label(n));
            format!(
                "mpls local-label del {label} {to}/32
                 ip route del {to}/32"
            )
        },
    },
    Kind {
        name: "host that is proxied",
        before: "enable ip6 interface pg0\nenable ip6 interface pg1",
        many: 900,
        add: |n| proxied_host("", n),
        delete: |n| proxied_host("del", n),
    },
    Kind {
        name: "interface with a table of its own",
        before: "",
        many: 900,
        add: tabled_interface,
        delete: no_tabled_interface,
    },
    Kind {
        name: "interface of the packet generator",
        before: "",
        many: 1500,
        add: |n| format!("create packet-generator interface pg{}", n + 10),
        delete: |n| format!("delete packet-generator interface pg{}", n + 10),
    },
];

/// Runs commands one by one; gives the median time in microseconds.
fn each(r: &mut Router, numbers: std::ops::Range<usize>, line: fn(usize) -> String) -> f64 {
    let mut times: Vec<f64> = numbers
        .map(|n| {
            let line = line(n);
            let begin = Instant::now();
            line.lines().for_each(|line| r.command(line.trim()));
            begin.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Adds some to the existing ones, and deletes them.
fn more_and_less(r: &mut Router, kind: &Kind, from: usize) -> [f64; 2] {
    let some = from..from + MEASURED;
    [each(r, some.clone(), kind.add), each(r, some, kind.delete)]
}

fn round(kind: &Kind, of: &mut [[Series; 2]; 2]) {
    let mut r = Router::start(&[Some(cores() - 1)]);
    r.cli(PORTS);
    paths::address(&mut r);
    r.cli(kind.before);
    let mut there = 0;
    for (at, number) in [FEW, kind.many].into_iter().enumerate() {
        for n in there..number {
            (kind.add)(n).lines().for_each(|line| r.command(line.trim()));
        }
        there = number;
        let times = more_and_less(&mut r, kind, number);
        for (series, time) in of.iter_mut().zip(times) {
            series[at].push(time);
        }
    }
    r.stop();
}

fn main() -> Result<()> {
    let Some(args) = Args::from_env()? else { return Ok(()) };
    let mut report = Report::start("growth", "One more of many settings");
    report.about("One worker on a core of its own; the main thread has the other one.");
    let columns = vec![
        Column::text("one more or less"),
        Column::text("many"),
        Column::values("with 60", "µs"),
        Column::values("with many", "µs"),
        Column::text("guide"),
    ];
    let mut table = Table::new("One more setting, with few and with many of its kind", columns);
    for kind in ALL.iter().filter(|kind| args.wants(kind.name)) {
        let mut times: [[Series; 2]; 2] = Default::default();
        for n in 0..ROUNDS {
            eprintln!("{}: round {} of {ROUNDS}", kind.name, n + 1);
            round(kind, &mut times);
        }
        for (what, times) in ["", ", deleted"].into_iter().zip(&times) {
            let [few, many] = times.each_ref().map(|series| series.spread().median);
            let guide = Cell::Guide(format!("≤ {GUIDE} ×"), many <= GUIDE * few);
            let [few, many] = times.each_ref().map(|series| Cell::series(series, 1));
            let name = format!("{}{what}", kind.name);
            table.row(vec![name.into(), kind.many.to_string().into(), few, many, guide]);
        }
    }
    table.note(format!("Medians of {MEASURED} commands. Each is in force when it returns."));
    report.table(table);
    report.finish(&args)
}
