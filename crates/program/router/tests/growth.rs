//! One more of many, or one less, takes as long as the first did: interfaces with what features
//! keep of each, ports, rules and hosts.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::Range;
use std::time::Duration;
use thalweg_buffer::PoolConfig;
use thalweg_cli::CommandTree;
use thalweg_graph::{Control, EngineConfig};
use thalweg_program_router::features::FEATURES;
use thalweg_testkit::{processor_time, sized};

/// Few fill the pages of the tables that changes share.
const FEW: usize = 260;
const MEASURED: usize = 20;
/// Factor by which one more may take longer with many. The list of a bridge's members, in whose
/// order frames are flooded, is copied.
const MOST: f64 = 2.5;
const MOST_OF_A_BRIDGE: f64 = 5.0;
/// Tries of a kind: other programs, on the other thread of a core, disturb one, not each.
const TRIES: usize = 3;
/// Time below which other programs decide.
const FLOOR: Duration = Duration::from_micros(100);

struct Kind {
    name: &'static str,
    before: &'static str,
    add: fn(usize) -> String,
    delete: fn(usize) -> String,
}

fn no_loopback(n: usize) -> String {
    format!("delete loopback interface intfc loop{n}")
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "interface with IPv6",
        before: "set ip6 dad enable",
        add: |n| {
            format!(
                "create loopback interface instance {n}
                 set interface ip address loop{n} 2001:db8:{n:x}::1/64
                 set interface state loop{n} up"
            )
        },
        delete: no_loopback,
    },
    Kind {
        name: "unnumbered interface inside NAT44",
        before: "nat44 plugin enable\nset interface nat44 out pg1",
        add: |n| {
            format!(
                "create loopback interface instance {n}
                 set interface unnumbered loop{n} use pg0
                 set interface nat44 in loop{n}"
            )
        },
        delete: no_loopback,
    },
    Kind {
        name: "host that is proxied",
        before: "enable ip6 interface pg0\nenable ip6 interface pg1
                 set interface state pg0 up\nset interface state pg1 up",
        add: |n| format!("set ip6 nd proxy pg1 2001:db8:99::{n:x}"),
        delete: |n| format!("set ip6 nd proxy pg1 del 2001:db8:99::{n:x}"),
    },
    Kind {
        name: "filter of an interface's own",
        before: "",
        add: |n| {
            format!(
                "create loopback interface instance {n}
                 flow add {n} 'priority=1,in_port=loop{n},actions=normal'
                 set interface flow loop{n} {n}"
            )
        },
        delete: |n| format!("set interface flow loop{n} disable\nflow del {n}\n{}", no_loopback(n)),
    },
    Kind {
        name: "rule for one of many ports",
        before: "flow add 9 'actions=normal'",
        add: |n| {
            format!(
                "create loopback interface instance {n}
                 flow add 9 'priority=1,in_port=loop{n},actions=normal'"
            )
        },
        delete: |n| format!("flow del 9 strict 'priority=1,in_port=loop{n}'\n{}", no_loopback(n)),
    },
    Kind {
        name: "bridge member with rules",
        before: "flow add 7 'actions=normal'",
        add: |n| {
            format!(
                "create loopback interface instance {n}
                 set interface l2 bridge loop{n} 7"
            )
        },
        delete: no_loopback,
    },
    Kind {
        name: "interface with a table of its own",
        before: "",
        add: |n| {
            format!(
                "ip table add {n}
                 create loopback interface instance {n}
                 set interface ip table loop{n} {n}
                 set interface ip address loop{n} 10.9.0.1/24"
            )
        },
        delete: |n| format!("{}\nip table del {n}", no_loopback(n)),
    },
];

struct Router {
    c: Control,
    tree: CommandTree<Control>,
}

impl Router {
    fn start() -> Router {
        let pool = PoolConfig { buffers: 512, ..Default::default() };
        let mut c = Control::new(EngineConfig { pool, ..Default::default() }).unwrap();
        thalweg_engine::start(&mut c, FEATURES).unwrap();
        let tree = thalweg_engine::command_tree(&c).unwrap();
        Router { c, tree }
    }

    fn run(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim) {
            let (text, end) = self.tree.run_line(&mut self.c, line);
            end.unwrap_or_else(|e| panic!("{line}: {e}\n{text}"));
        }
    }

    /// The shortest time of some: other programs disturb only some.
    fn shortest(&mut self, numbers: Range<usize>, lines: fn(usize) -> String) -> Duration {
        let all = numbers.map(|n| {
            let (lines, began) = (lines(n), processor_time());
            self.run(&lines);
            processor_time() - began
        });
        all.min().unwrap_or_default()
    }

    fn more_and_less(&mut self, kind: &Kind, from: usize) -> [Duration; 2] {
        let some = from..from + MEASURED;
        [self.shortest(some.clone(), kind.add), self.shortest(some, kind.delete)]
    }
}

/// Lists parts of a kind that cost more with many than with few.
fn dearer(kind: &Kind) -> Vec<String> {
    let mut r = Router::start();
    r.run(
        "create packet-generator interface pg0
         create packet-generator interface pg1
         set interface ip address pg0 10.0.0.1/24",
    );
    r.run(kind.before);
    // Proxied hosts and tables have a limit.
    let is_limited = ["proxied", "table"].iter().any(|word| kind.name.contains(word));
    let many = if is_limited { 900 } else { sized(1000, 5000) };
    (1..FEW).for_each(|n| r.run(&(kind.add)(n)));
    let few = r.more_and_less(kind, FEW);
    (FEW..many).for_each(|n| r.run(&(kind.add)(n)));
    let much = r.more_and_less(kind, many);
    eprintln!("{}: {few:?} {much:?}", kind.name);
    let most = if kind.name.contains("bridge") { MOST_OF_A_BRIDGE } else { MOST };
    let mut slow = Vec::new();
    for (what, (few, much)) in ["", ", deleted"].into_iter().zip(few.into_iter().zip(much)) {
        if much.as_secs_f64() > most * few.max(FLOOR).as_secs_f64() {
            slow.push(format!("{}{what}: {few:?}, with many {much:?}", kind.name));
        }
    }
    assert_eq!(r.c.shut_down().in_use, 0);
    slow
}

#[test]
fn one_more_interface_of_many_costs_what_the_first_did() {
    for kind in KINDS {
        let mut tries = Vec::new();
        while tries.len() < TRIES && tries.last().is_none_or(|slow: &Vec<_>| !slow.is_empty()) {
            tries.push(dearer(&kind));
        }
        assert!(tries.last().is_some_and(Vec::is_empty), "{tries:#?}");
    }
}
