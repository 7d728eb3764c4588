//! One more of many settings, or one less, takes as long as the first did.

use crate::nat::Nat;
use std::net::Ipv4Addr;
use std::time::Duration;
use thalweg_testkit::processor_time;

const FEW: u32 = 20;
const MANY: u32 = 800;
/// Changes that are measured. The shortest one counts, as other programs disturb only some.
const MEASURED: u32 = 20;
/// Factor by which one more may take longer with many: a list that is gone through makes it dozens.
const MOST: u32 = 8;
/// Time below which other programs decide.
const FLOOR: Duration = Duration::from_micros(20);

/// The nth address of a network.
fn address(first: u8, n: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits((u32::from(first) << 24) + n)
}

/// A kind of settings, and the command that adds one, by number.
type Kind = (&'static str, fn(u32) -> String);

const KINDS: [Kind; 8] = [
    ("mapping of an interface", |n| {
        format!("nat44 add static mapping tcp local {} 80 external test1 {}", address(11, n), n + 1)
    }),
    ("mapping of a pool address", |n| {
        format!(
            "nat44 add static mapping tcp local {} 80 external 192.0.2.1 {}",
            address(11, n),
            n + 1
        )
    }),
    ("mapping of a whole address", |n| {
        format!("nat44 add static mapping local {} external {}", address(11, n), address(48, n))
    }),
    ("mapping of a whole pool address", |n| {
        format!("nat44 add static mapping local {} external {}", address(11, n), address(49, n))
    }),
    ("pool address", |n| format!("nat44 add address {}", address(50, n))),
    ("back end", |n| {
        format!(
            "nat44 add load-balancing back-end protocol tcp external 192.0.2.9:80 \
             local {}:80 probability 1",
            address(11, n)
        )
    }),
    ("role of an interface", |n| format!("set interface nat44 in loop{n}")),
    ("identity mapping of an endpoint", |n| {
        format!("nat44 add identity mapping 10.0.0.2 tcp 80 vrf {}", n + 1)
    }),
];

fn shortest(n: &mut Nat, lines: impl Iterator<Item = String>) -> Duration {
    let time = |line: String| {
        let began = processor_time();
        n.lab.ok(&line);
        processor_time() - began
    };
    lines.map(time).min().unwrap_or_default()
}

fn measure((name, add): &Kind, many: u32) -> [Duration; 4] {
    let mut n = Nat::of(1);
    if name.contains("whole pool") {
        let last = address(49, many + MEASURED);
        n.lab.ok(&format!("nat44 add address {} - {last}", address(49, 0)));
    }
    if name.contains("role") {
        let ports = 0..many + MEASURED;
        ports.for_each(|of| _ = n.lab.cli(&format!("create loopback interface instance {of}")));
    }
    n.lab.ok("nat44 add load-balancing static mapping protocol tcp external 192.0.2.9:80 \
              local 10.9.0.1:80 probability 1 local 10.9.0.2:80 probability 1");
    let adds = |range: std::ops::Range<u32>| range.map(add);
    let dels = |range: std::ops::Range<u32>| range.map(|n| format!("{} del", add(n)));
    adds(0..FEW).for_each(|line| n.lab.ok(&line));
    let add_few = shortest(&mut n, adds(FEW..FEW + MEASURED));
    let del_few = shortest(&mut n, dels(FEW..FEW + MEASURED));
    adds(FEW..many).for_each(|line| n.lab.ok(&line));
    let add_many = shortest(&mut n, adds(many..many + MEASURED));
    let del_many = shortest(&mut n, dels(many..many + MEASURED));
    eprintln!("{name}: add {add_few:?} {add_many:?}, delete {del_few:?} {del_many:?}");
    n.close();
    [add_few, add_many, del_few, del_many]
}

#[test]
fn one_more_of_many_settings_costs_what_the_first_did() {
    let mut slow = Vec::new();
    for kind in KINDS {
        let [add_few, add_many, del_few, del_many] = measure(&kind, MANY);
        let changes = [("add", add_few, add_many), ("delete", del_few, del_many)];
        slow.extend(
            changes
                .into_iter()
                .filter(|(_, few, many)| *many > MOST * (*few).max(FLOOR))
                .map(|(what, few, many)| format!("{what} {}: {few:?}, with many {many:?}", kind.0)),
        );
    }
    assert!(slow.is_empty(), "{slow:#?}");
}
