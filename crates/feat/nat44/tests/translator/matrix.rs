//! Fates of a packet, for all roles of the two interfaces, kinds of mappings, ways and protocols,
//! with forwarding and without.
//!
//! A host is behind `test0`, the Internet behind `test1`. Each rule has a condition, what is right
//! where it holds, and why; the first that holds decides.

use crate::nat::{FAR, Nat, Out, SHARED, echo, tcp, udp};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use thalweg_device::testing::ip4::ip;
use thalweg_wire::build::Packet;

/// The external address of a mapping of a whole address.
const WHOLE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
/// The twice-NAT address.
const TWICE: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 240);
const HOST_PORT: u16 = 5000;
const FAR_PORT: u16 = 7000;
const MAPPED_PORT: u16 = 8080;
const SYN: u8 = 2;
const SYN_ACK: u8 = 0x12;

/// Role of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Role {
    inside: bool,
    outside: bool,
    output: bool,
}

const fn role(inside: bool, outside: bool, output: bool) -> Role {
    Role { inside, outside, output }
}

const ROLES: [Role; 7] = [
    role(false, false, false),
    role(true, false, false),
    role(false, true, false),
    role(true, true, false),
    role(true, false, true),
    role(false, true, true),
    role(true, true, true),
];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Mapping {
    /// No pool, no mapping.
    Nothing,
    /// A pool.
    Pool,
    /// A pool, and as the name says.
    Port,
    Out2InOnly,
    Balanced,
    Twice,
    Whole,
    Identity,
}

use Mapping::{Balanced, Identity, Nothing, Out2InOnly, Pool, Port, Twice, Whole};

const MAPPINGS: [Mapping; 8] = [Nothing, Pool, Port, Out2InOnly, Balanced, Twice, Whole, Identity];

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Protocol {
    Tcp,
    Udp,
    Icmp,
    Gre,
}

use Protocol::{Gre, Icmp, Tcp, Udp};

/// The first packet of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Way {
    /// Packets from the host to the Internet.
    Outwards,
    /// Packets from the Internet to the external address.
    Inwards,
    /// Packets from the Internet to the host's own address.
    Straight,
}

use Way::{Inwards, Outwards, Straight};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Case {
    /// Role of the host's interface, and of the Internet's.
    near: Role,
    far: Role,
    mapping: Mapping,
    protocol: Protocol,
    way: Way,
    forwarding: bool,
}

impl Case {
    /// Returns whether a packet from the host is translated on its way to the Internet.
    fn leaves_translated(&self) -> bool {
        self.far.outside && (self.far.output || self.near.inside)
    }

    /// Returns whether the mapping is about this protocol.
    fn is_mapped(&self) -> bool {
        match self.mapping {
            Nothing | Pool => false,
            Port | Out2InOnly => self.protocol != Gre,
            Balanced | Twice => matches!(self.protocol, Tcp | Udp),
            Whole | Identity => true,
        }
    }

    /// Returns whether the mapping is about flows that the host begins.
    fn maps_source(&self) -> bool {
        matches!(self.mapping, Port | Balanced | Twice | Whole) && self.is_mapped()
    }

    /// Returns whether whatever comes by the Internet's interface is from outside: with translation
    /// on output only, packets from inside are not translated when they come.
    fn far_is_outside_only(&self) -> bool {
        let mixed = self.near.outside && !self.near.output;
        self.far.outside && (!self.far.inside || self.far.output && !mixed)
    }

    /// The external address and port of the mapping.
    fn external(&self) -> (Ipv4Addr, u16) {
        match self.mapping {
            Whole => (WHOLE, HOST_PORT),
            _ => (SHARED, MAPPED_PORT),
        }
    }

    /// The address and port that the host has for the Internet in flows of its own.
    fn source(&self) -> Seen {
        match self.mapping {
            _ if self.maps_source() => {
                let (address, port) = self.external();
                Seen::From(address, Some(port))
            }
            // A free port is kept.
            _ => Seen::From(SHARED, Some(HOST_PORT)),
        }
    }
}

/// Fate of the first packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Seen {
    /// The packet does not arrive.
    Nowhere,
    /// The packet arrives as it was sent.
    Same,
    /// The packet arrives with another source; the port if it is known.
    From(Ipv4Addr, Option<u16>),
}

use Seen::{From, Nowhere, Same};

/// A rule: where it holds, what is right, and why.
type Rule = (fn(&Case) -> bool, fn(&Case) -> Seen, &'static str);

/// Rules for the first packet of a flow.
const RULES: &[Rule] = &[
    // Packets from the host to the Internet.
    (
        |c| c.way == Outwards && c.near.outside && !c.near.inside && !c.forwarding,
        |_| Nowhere,
        "what comes by an outside interface needs a session or a mapping (RFC 4787 REQ-8)",
    ),
    (
        |c| c.way == Outwards && !c.leaves_translated(),
        |_| Same,
        "it does not go from inside to outside",
    ),
    (
        |c| {
            let by_pool = c.mapping != Nothing && c.far.output;
            c.way == Outwards && c.forwarding && !c.maps_source() && !by_pool
        },
        |_| Same,
        "forwarding: a new flow without a mapping stays as it is, but on output, by a pool",
    ),
    (
        |c| c.way == Outwards && c.mapping == Nothing,
        |_| Nowhere,
        "nothing leaves with its own address (RFC 4787 REQ-2 needs a pool)",
    ),
    (|c| c.way == Outwards && c.mapping == Identity, |_| Same, "its mapping says so"),
    (|c| c.way == Outwards, Case::source, "translated once, by mapping or pool"),
    // Packets from the Internet to the external address.
    (
        |c| c.way == Inwards && !(c.is_mapped() && c.mapping != Identity),
        |_| Nowhere,
        "no session and no mapping (RFC 4787 REQ-8, 5382 REQ-3)",
    ),
    (
        |c| c.way == Inwards && !c.far.inside && !c.far.outside,
        |_| Nowhere,
        "nobody translates there, and no route leads to the address",
    ),
    (
        |c| c.way == Inwards && !c.far.outside && c.protocol == Icmp && c.mapping != Whole,
        |_| Nowhere,
        "a hairpinned query gets another identifier, for which there is no mapping",
    ),
    (
        |c| c.way == Inwards && c.mapping == Twice,
        |_| From(TWICE, None),
        "twice-NAT translates the source, too",
    ),
    (
        |c| c.way == Inwards && !c.far.outside,
        |_| From(SHARED, Some(FAR_PORT)),
        "hairpinning: from inside by external address, with an external source (RFC 4787 REQ-9)",
    ),
    (|c| c.way == Inwards, |_| Same, "the mapping, once; the source stays"),
    // Packets from the Internet to the host's own address.
    (
        |c| c.way == Straight && c.mapping == Identity && c.far_is_outside_only(),
        |_| Same,
        "an identity mapping lets it in, which is its only translation",
    ),
    (
        |c| c.way == Straight && c.far.outside && !c.far.inside && !c.forwarding,
        |_| Nowhere,
        "no session and no mapping (RFC 4787 REQ-8)",
    ),
    (
        |c| c.way == Straight && !(c.near.outside && (c.near.output || c.far.inside)),
        |_| Same,
        "it does not go from inside to outside",
    ),
    (
        |c| c.way == Straight && c.forwarding && (c.mapping == Nothing || !c.near.output),
        |_| Same,
        "forwarding, and no pool, or not on output",
    ),
    (
        |c| c.way == Straight && c.mapping == Nothing,
        |_| Nowhere,
        "nothing leaves by a translating interface with its own address",
    ),
    (
        |c| c.way == Straight,
        |_| From(SHARED, Some(FAR_PORT)),
        "it leaves by an outside interface, from an inside one or one that translates all",
    ),
];

/// Rules for the answer, if the first packet has arrived; its source is the address and port to
/// which the first was sent (`Same`), or another one.
const ANSWERS: &[Rule] = &[
    (
        |c| c.way == Inwards && c.near == NONE && (c.mapping == Twice || !c.far.outside),
        |_| Nowhere,
        "nobody translates it, and no route leads to the translated source",
    ),
    (
        |c| c.way == Inwards && c.near == NONE && !c.far.output,
        |c| own(c),
        "an interface without a role is not inside",
    ),
    (|c| c.way == Inwards, |_| Same, "it has the address that was called"),
    (|_| true, |_| Same, "it goes the way of the first packet"),
];

const NONE: Role = role(false, false, false);

/// The host's own address and port.
fn own(c: &Case) -> Seen {
    From(ip(0, 2), (c.protocol != Gre).then_some(HOST_PORT))
}

/// Returns whether the answer is a matter of the first packet: otherwise it is a flow of its own.
fn answer_counts(c: &Case, first: Seen) -> bool {
    match c.way {
        Outwards => first != Same || c.mapping == Identity && c.leaves_translated(),
        Inwards => true,
        Straight if c.far.inside && c.mapping != Identity => first != Same,
        Straight => first != Same || c.far_is_outside_only(),
    }
}

fn decide(rules: &[Rule], c: &Case) -> (usize, Seen, &'static str) {
    let found = rules.iter().enumerate().find(|(_, rule)| rule.0(c));
    let (n, rule) = found.unwrap_or_else(|| panic!("no rule for {c:?}"));
    let right = match rule.1(c) {
        From(address, port) => From(address, port.filter(|_| c.protocol != Gre)),
        right => right,
    };
    (n, right, rule.2)
}

fn config(c: &Case) -> String {
    let mut all = vec!["nat44 plugin enable sessions 1000".to_owned()];
    for (port, role) in [("test0", c.near), ("test1", c.far)] {
        let feature = if role.output { " output-feature" } else { "" };
        for (is, side) in [(role.inside, "in"), (role.outside, "out")] {
            all.extend(is.then(|| format!("set interface nat44 {side} {port}{feature}")));
        }
    }
    if c.forwarding {
        all.push("nat44 forwarding enable".into());
    }
    if c.mapping != Nothing {
        all.push("nat44 add address 192.0.2.1".into());
    }
    let map = |all: &mut Vec<String>, protocol: &str, words: &str| {
        all.push(format!(
            "nat44 add static mapping {protocol} local 10.0.0.2 {HOST_PORT} external 192.0.2.1 \
             {MAPPED_PORT}{words}"
        ));
    };
    match c.mapping {
        Nothing | Pool => {}
        Port => ["tcp", "udp", "icmp"].iter().for_each(|p| map(&mut all, p, "")),
        Out2InOnly => ["tcp", "udp", "icmp"].iter().for_each(|p| map(&mut all, p, " out2in-only")),
        Balanced => all.extend(["tcp", "udp"].map(|p| {
            format!(
                "nat44 add load-balancing static mapping protocol {p} external 192.0.2.1:8080 \
                 local 10.0.0.2:5000 probability 100"
            )
        })),
        Twice => {
            all.push(format!("nat44 add address {TWICE} twice-nat"));
            ["tcp", "udp"].iter().for_each(|p| map(&mut all, p, " twice-nat"));
        }
        Whole => all.push(format!("nat44 add static mapping local 10.0.0.2 external {WHOLE}")),
        Identity => all.push("nat44 add identity mapping 10.0.0.2".into()),
    }
    all.join("\n")
}

type End = (Ipv4Addr, u16);

/// The first packet of a flow, or its answer. The identifier of a query is the host's port.
fn packet(protocol: Protocol, from: End, to: End, id: u16, answer: bool) -> Packet {
    match protocol {
        Tcp => tcp(from, to, if answer { SYN_ACK } else { SYN }),
        Udp => udp(from, to),
        Icmp if answer => Packet::new().ipv4(from.0, to.0).icmp_echo_reply(id, 1).payload_len(24),
        Icmp => echo(from.0, to.0, id),
        Gre => Packet::new().ipv4(from.0, to.0).gre().payload_len(20),
    }
}

/// A packet that arrived.
struct Arrived {
    from: End,
    to: End,
}

/// Sends a packet from one side; what arrives on the other one.
fn send(n: &mut Nat, port: u8, packet: Packet) -> Option<Arrived> {
    let out: Vec<Out> = n.pass(port, packet).into_iter().filter(|o| o.port != port).collect();
    assert!(out.len() < 2, "{out:02x?}");
    let out = out.first()?;
    let (from, to) = if out.view().protocol() == 47 { (0, 0) } else { out.ports() };
    Some(Arrived { from: (out.src(), from), to: (out.dst(), to) })
}

/// Returns how a packet arrived that was sent from `sent`.
fn seen(c: &Case, arrived: Option<&Arrived>, sent: End, from_host: bool) -> Seen {
    let Some(arrived) = arrived else { return Nowhere };
    // The identifier of a query belongs to the host.
    let has_port = c.protocol != Gre && (c.protocol != Icmp || from_host);
    let port = |port: u16| has_port.then_some(port);
    match (arrived.from.0, port(arrived.from.1)) == (sent.0, port(sent.1)) {
        true => Same,
        false => From(arrived.from.0, port(arrived.from.1)),
    }
}

fn is_right(seen: Seen, right: Seen) -> bool {
    match (seen, right) {
        (From(a, port), From(b, wanted)) => {
            a == b && (port.is_none() || wanted.is_none_or(|w| port == Some(w)))
        }
        (seen, right) => seen == right,
    }
}

/// Sends the packets of a case. Returns how the first one and the answer arrived.
fn run(n: &mut Nat, c: &Case) -> (Seen, Option<Seen>) {
    let (host, far) = ((ip(0, 2), HOST_PORT), (FAR, FAR_PORT));
    let (port, from, to) = match c.way {
        Outwards => (0, host, far),
        Inwards => (1, far, c.external()),
        Straight => (1, far, host),
    };
    let from_host = c.way == Outwards;
    let id = if from_host { from.1 } else { to.1 };
    let first = || packet(c.protocol, from, to, id, false);
    let arrived = send(n, port, first());
    let how = seen(c, arrived.as_ref(), from, from_host);
    let Some(arrived) = arrived else { return (how, None) };
    let wanted = if from_host { far } else { host };
    assert_eq!(arrived.to.0, wanted.0, "{c:?}");
    if !answer_counts(c, how) {
        return (how, None);
    }
    let id = if from_host { arrived.from.1 } else { host.1 };
    let (back_from, back_to) = (if from_host { far } else { host }, arrived.from);
    let back = send(n, 1 - port, packet(c.protocol, back_from, back_to, id, true));
    if let Some(back) = &back {
        assert_eq!(back.to.0, from.0, "the answer reaches who asked: {c:?}");
        assert!(c.protocol == Gre || c.protocol == Icmp || back.to.1 == from.1, "{c:?}");
    }
    let answer = seen(c, back.as_ref(), to, !from_host);
    // Packets come often enough for the fast path.
    if c.protocol == Udp {
        for _ in 0..2 {
            let again = send(n, port, first());
            assert_eq!(seen(c, again.as_ref(), from, from_host), how, "again: {c:?}");
        }
    }
    (how, Some(answer))
}

#[test]
fn packets_are_translated_once_and_by_rule() {
    all_cases(1);
}

#[test]
fn workers_that_hand_over_translate_once_and_by_rule() {
    all_cases(2);
}

fn all_cases(workers: usize) {
    let mut n = Nat::of(workers);
    let (mut used, mut wrong) = (BTreeMap::new(), Vec::new());
    let mut check = |which: &'static str, rules, c: &Case, seen| {
        let (rule, right, why) = decide(rules, c);
        *used.entry((which, rule)).or_insert(0u32) += 1;
        if !is_right(seen, right) {
            wrong.push(format!("{which} {c:?}: {seen:?}, but {right:?} is right: {why}"));
        }
    };
    let pairs = ROLES.iter().flat_map(|near| ROLES.map(|far| (*near, far)));
    for (near, far) in pairs {
        for mapping in MAPPINGS {
            for (forwarding, way) in [false, true]
                .iter()
                .flat_map(|f| [Outwards, Inwards, Straight].map(|way| (*f, way)))
            {
                let case = |protocol| Case { near, far, mapping, protocol, way, forwarding };
                n.lab.ok("nat44 plugin disable");
                n.lab.ok(&config(&case(Tcp)));
                n.lab.c.sync();
                for c in [Tcp, Udp, Icmp, Gre].map(case) {
                    let (first, answer) = run(&mut n, &c);
                    check("first packet", RULES, &c, first);
                    if let Some(answer) = answer {
                        check("answer", ANSWERS, &c, answer);
                    }
                }
            }
        }
    }
    println!("cases by rule: {used:?}");
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(used.len(), RULES.len() + ANSWERS.len(), "every rule decides something");
    n.close();
}
