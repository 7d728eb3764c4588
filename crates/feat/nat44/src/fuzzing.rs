//! Fuzzing entries: arbitrary packets, commands and files, after which all counters and resources
//! must agree.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use crate::config::{Addresses, Config, Timeouts};
use crate::limits::LimitSettings;
use crate::mapping::{Mapping, Mappings, TwiceNat};
use crate::pool::Pool;
use crate::ports::Scheme;
use crate::saved::{Header, RECORD, Saved};
use crate::worker::{Nat, Outside, Sweep};
use crate::{kernel, session, translate};
use std::collections::HashSet;
use std::net::Ipv4Addr;
use thalweg_fib::TableId;
use thalweg_wire::build::Packet;
use thalweg_wire::nat::packet::{self, Kind};
use thalweg_wire::nat::tuple::Tuple;

const ROOM: u32 = 8;
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

fn config() -> Config {
    let mapping = Mapping {
        protocol: 6,
        external: SHARED,
        external_port: 80,
        local: Ipv4Addr::new(10, 0, 0, 1),
        local_port: 1,
        table: TableId(0),
        twice: TwiceNat::Never,
        out2in_only: false,
        backends: Vec::new(),
        affinity: 0,
        exact: None,
    };
    let twice =
        Mapping { external_port: 81, local_port: 2, twice: TwiceNat::Always, ..mapping.clone() };
    Config {
        addresses: Addresses {
            pooled: [SHARED.to_bits()].into_iter().collect(),
            ..Addresses::default()
        },
        mappings: Mappings::new(vec![mapping, twice], &HashSet::default()),
        timeouts: Timeouts { udp: 3, tcp_established: 9, tcp_transitory: 2, icmp: 1 }.by_class(),
        mss: 1000,
        ..Config::default()
    }
}

fn pool(twice: bool) -> Pool {
    let scheme = Scheme::Range(2000, 2011);
    Pool::new(SHARED.to_bits() + u32::from(twice), None, twice, scheme, (0, 1))
}

fn made(b: &[u8; 8], outside: bool, ports: &[u16]) -> Vec<u8> {
    let host = (Ipv4Addr::from_bits(0x0a00_0001 + u32::from(b[1] & 3)), 1 + u16::from(b[2] & 7));
    let far = (Ipv4Addr::from_bits(0xc633_6401 + u32::from(b[3] & 1)), 80 + u16::from(b[4] & 1));
    let known = ports.get(usize::from(b[2]) % ports.len().max(1)).copied();
    let name = (SHARED, known.filter(|_| b[1] & 4 == 0).unwrap_or(80 + u16::from(b[2] & 3)));
    let (from, to) = match (outside, b[4] & 0x30) {
        (true, _) => (far, name),
        (false, 0x30) => (host, name),
        (false, _) => (host, far),
    };
    let ip = Packet::new().ipv4(from.0, to.0);
    match b[5] & 7 {
        0..=2 => ip.tcp(from.1, to.1).flags(b[6]).tcp_options(&[2, 4, b[7], 1]).build(),
        3..=5 => ip.udp(from.1, to.1).payload_len(b[7].into()).build(),
        6 => ip.icmp_echo_request(from.1, 1).build(),
        _ => ip.udp(from.1, to.1).payload_len(9).no_checksum().build(),
    }
}

/// Translates one packet as the nodes do.
fn pass(nat: &mut Nat, config: &Config, l3: &mut [u8], outside: bool, now: u32) {
    let parsed = packet::parse(l3, 0);
    if matches!(parsed.kind, Kind::Fragment | Kind::Unknown) {
        return;
    }
    let mut found = nat.find(&parsed.key, now);
    if found.is_none() && !matches!(parsed.kind, Kind::Error(_)) {
        let t = Tuple::of(&parsed.key);
        let mapping = config.mappings.by_external(t.dst.to_bits(), t.dport, t.protocol);
        let opened = match mapping {
            Some(m) if outside => nat.open_mapped(config, &t, m, 0, now),
            None if outside => return,
            Some(_) => nat.open(config, &t, Outside::Table(0), session::HAIRPIN, now),
            None => nat.open(config, &t, Outside::Table(0), 0, now),
        };
        if opened.is_ok() {
            found = nat.find(&parsed.key, now);
            assert!(found.is_some(), "a session that is not found: {parsed:?}");
        }
    }
    let Some(found) = found else { return };
    let change = kernel::change(nat, found);
    if let Kind::Error(_) = parsed.kind {
        packet::rewrite_error(l3, &parsed, &change, !found.by_second());
    } else if packet::rewrite(l3, &parsed, &change, false) {
        packet::clamp_mss(l3, &parsed, config.mss, false);
        translate::note(nat, found, &parsed, false, l3.len() as u64, config, now);
    }
}

fn command(nat: &mut Nat, config: &Config, b: &[u8; 8], now: u32) {
    match b[1] & 7 {
        0 => nat.sweep(Sweep::All),
        1 => nat.drop_pool(SHARED.to_bits(), false),
        2 => {
            nat.drop_pool(SHARED.to_bits(), false);
            nat.add_pool(pool(false));
        }
        3 => {
            let most = u32::from(b[2] & 3);
            let orders =
                LimitSettings::new(vec![(TableId(0), 6)], most, ROOM, now).expect("room for eight");
            nat.limit(orders);
        }
        4 => nat.reserve(SHARED.to_bits(), 6, 2000 + u16::from(b[2] & 15), b[3] & 1 == 1),
        _ => drop(nat.expire(config, now)),
    }
}

/// Arbitrary packets from both sides and commands between them: nothing panics, new sessions are
/// found, and after all have ended no resource is in use.
///
/// # Panics
/// Panics if counters and resources disagree.
pub fn fuzz_sessions(data: &[u8]) {
    let mut config = config();
    let mut nat = Nat::new(ROOM, 0).expect("room for eight");
    nat.add_pool(pool(false));
    nat.add_pool(pool(true));
    let (mut now, mut ports) = (0u32, Vec::new());
    for bytes in data.chunks(40) {
        let Some((how, rest)) = bytes.split_first_chunk::<8>() else { break };
        now = now.wrapping_add(u32::from(how[0] >> 4) << (how[7] & 7));
        config.refuse = how[0] & 8 != 0;
        let outside = how[0] & 1 == 1;
        match how[0] >> 1 & 3 {
            0 | 1 => {
                let mut packet = made(how, outside, &ports);
                if let [at, value, ..] = rest
                    && let Some(byte) = packet.get_mut(usize::from(*at))
                {
                    *byte = *value;
                }
                pass(&mut nat, &config, &mut packet, outside, now);
            }
            2 => pass(&mut nat, &config, &mut rest.to_vec(), outside, now),
            _ => command(&mut nat, &config, how, now),
        }
        assert!(nat.table.len() <= ROOM);
        let mut from = 0;
        let flows: Vec<_> = nat.table.list(&mut from, ROOM).collect();
        ports = flows.iter().map(|f| Tuple::of(&nat.keys(*f).1).dport).collect();
    }
    end(nat, &config, now);
}

/// Ends all sessions and checks that nothing is left in use.
fn end(mut nat: Box<Nat>, config: &Config, now: u32) {
    nat.sweep(Sweep::All);
    while nat.expire(config, now) {}
    assert_eq!((nat.table.len(), nat.counts.by_protocol), (0, [0; 4]));
    for pool in nat.pools.iter() {
        assert_eq!(pool.used, 0, "{pool:?}");
        for (space, ports) in pool.ports.iter().enumerate() {
            // Ports reserved for mappings are in use by no session.
            let kept = ports.kept();
            assert_eq!(ports.left() + kept, ports.count(), "port space {space}");
        }
    }
    assert!(
        (0..4).all(|n| nat.limits.of_host(Ipv4Addr::from_bits(0x0a00_0001 + n), TableId(0)) == 0)
    );
}

/// Arbitrary bytes as a session file: no panic, and no invalid session.
///
/// # Panics
/// Panics if counters and resources disagree.
pub fn fuzz_saved(data: &[u8]) {
    let (records, _) = data.as_chunks::<RECORD>();
    let Some((first, records)) = records.split_first() else { return };
    let _ = Header::read(first, data.len() as u64 - RECORD as u64);
    let (config, mut nat) = (config(), Nat::new(ROOM, 0).expect("room for eight"));
    nat.add_pool(pool(false));
    nat.add_pool(pool(true));
    let all: Vec<Saved> = records.iter().filter_map(Saved::read).collect();
    let (done, _) = nat.restore(&config, &all, 0, 7);
    let sum = done.done + done.expired + done.no_mapping + done.taken + done.full;
    assert_eq!(sum, all.len() as u64);
    assert_eq!(done.done, u64::from(nat.table.len()));
    // Restored sessions are saved again unchanged, except for their remaining time.
    let mut from = 0;
    for s in nat.save_some(&mut from, ROOM, 7) {
        let same = |o: &&Saved| Saved { left: s.left, ..**o } == s;
        assert!(all.iter().any(|o| same(&o)), "{s:?}");
    }
    end(nat, &config, 7);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn any_packets(data in prop::collection::vec(any::<u8>(), 0..8000)) {
            fuzz_sessions(&data);
        }

        #[test]
        fn any_file(data in prop::collection::vec(any::<u8>(), 0..2000)) {
            fuzz_saved(&data);
        }
    }

    /// Valid sessions, intact and with one byte changed.
    #[test]
    fn nearly_a_file() {
        let key = |src: [u8; 4], sport, dst: [u8; 4], dport| {
            Tuple { src: src.into(), sport, dst: dst.into(), dport, protocol: 17, table: 0 }.key()
        };
        let far = [198, 51, 100, 1];
        let one = |n: u8| Saved {
            inside: key([10, 0, 0, n], 5, far, 53),
            outside: key(far, 53, [192, 0, 2, 1], 2000 + u16::from(n)),
            packets: 3,
            bytes: 90,
            left: 2000,
            age: 50,
            state: 0,
            class: session::Class::Udp,
            marks: 0,
            has_port: true,
            has_twice_port: false,
            grown: n.is_multiple_of(2),
        };
        let mut file = Header::default().bytes().to_vec();
        (1..6).for_each(|n| file.extend(one(n).record()));
        fuzz_saved(&file);
        for at in 0..file.len() {
            for bit in [1, 0x80] {
                let mut other = file.clone();
                other[at] ^= bit;
                fuzz_saved(&other);
            }
        }
    }
}
