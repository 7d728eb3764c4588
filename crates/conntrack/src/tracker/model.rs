//! A slow reference model of the tracker: a list of connections and the rules spelled out. Property
//! tests compare it with the real one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN, URG};

/// A packet of the tests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet {
    /// True for IPv6.
    pub(super) six: bool,
    pub(super) zone: u16,
    /// Source address and port; the identifier for ICMP.
    pub(super) src: (u32, u16),
    pub(super) dst: (u32, u16),
    pub(super) protocol: u8,
    pub(super) icmp_type: u8,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: u8,
    pub(super) window: u16,
    pub(super) scale: Option<u8>,
    pub(super) payload: u16,
}

/// Kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    New,
    Established { reply: bool },
    Invalid,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Side {
    highest: i64,
    acceptable: i64,
    window: i64,
    /// `None` if not offered. A side picked up midstream has 14 and `guessed`.
    scale: Option<u32>,
    guessed: bool,
    state: u8,
    spoke: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Conn {
    six: bool,
    zone: u16,
    protocol: u8,
    from: (u32, u16),
    to: (u32, u16),
    icmp_type: u8,
    tcp: [Side; 2],
    /// 0: one packet; 1: several in one direction; 2: both directions.
    seen: u8,
    end: u64,
    pub(super) packets: [u64; 2],
}

/// Numbers of the states in use.
const CLOSED: u8 = 0;
const SYN_SENT: u8 = 2;
const ESTABLISHED: u8 = 4;
const CLOSING: u8 = 7;
const FIN_WAIT_2: u8 = 9;
const TIME_WAIT: u8 = 10;

pub(super) struct Model {
    pub(super) conns: Vec<Conn>,
    pub(super) check: bool,
    pub(super) limit: usize,
}

/// The number nearest to `near` that is `n` modulo 2³².
fn unwrap(n: u32, near: i64) -> i64 {
    near + i64::from((n.wrapping_sub(near as u32)) as i32)
}

fn end_of(p: &Packet, seq: i64) -> i64 {
    let one = |flag: u8| i64::from(p.flags & flag != 0);
    seq + i64::from(p.payload) + one(SYN) + one(FIN)
}

fn flags_make_sense(flags: u8) -> bool {
    let has = |f: u8| flags & f != 0;
    if has(SYN) && (has(RST) || has(FIN)) {
        return false;
    }
    if !has(SYN) && !has(ACK) && !has(RST) {
        return false;
    }
    has(ACK) || has(SYN) || !(has(FIN) || has(PSH) || has(URG))
}

/// A host of the tests. Some of IPv6 differ in the upper half, some in the lower.
pub(super) fn host(six: bool, n: u32) -> IpAddr {
    if !six {
        return Ipv4Addr::from_bits(n).into();
    }
    let n = u128::from(n);
    Ipv6Addr::from_bits(0x2001_0db8 << 96 | (n & 1) << 64 | n >> 1).into()
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, 1 | 58)
}

fn query(kind: u8) -> Option<(u8, bool)> {
    Some(match kind {
        128 => (128, true),
        129 => (128, false),
        8 | 13 | 15 => (kind, true),
        0 => (8, false),
        14 | 16 => (kind - 1, false),
        _ => return None,
    })
}

impl Model {
    pub(super) fn new(limit: usize) -> Model {
        Model { conns: Vec::new(), check: true, limit }
    }

    fn find(&self, p: &Packet, now: u64) -> Option<(usize, bool)> {
        self.conns.iter().enumerate().find_map(|(i, c)| {
            if c.six != p.six || c.zone != p.zone || c.protocol != p.protocol || c.end <= now {
                return None;
            }
            if is_icmp(p.protocol) {
                let (kind, asks) = query(p.icmp_type)?;
                let (from, to) = if asks { (p.src, p.dst) } else { (p.dst, p.src) };
                let same = c.icmp_type == kind
                    && (c.from.0, c.to.0) == (from.0, to.0)
                    && c.from.1 == p.src.1;
                return same.then_some((i, !asks));
            }
            if (c.from, c.to) == (p.src, p.dst) {
                Some((i, false))
            } else if (c.to, c.from) == (p.src, p.dst) {
                Some((i, true))
            } else {
                None
            }
        })
    }

    /// Tracks a packet, and commits it if it is new.
    pub(super) fn packet(&mut self, p: &Packet, now: u64) -> Class {
        let ports = matches!(p.protocol, 6 | 17);
        if ports && (p.src.1 == 0 || p.dst.1 == 0) {
            return Class::Invalid;
        }
        if is_icmp(p.protocol) && query(p.icmp_type).is_none() {
            return Class::Invalid;
        }
        let Some((i, reply)) = self.find(p, now) else { return self.unknown(p, now) };
        if p.protocol != 6 {
            let c = &mut self.conns[i];
            c.packets[usize::from(reply)] += 1;
            if reply {
                c.seen = 2;
            } else if c.seen == 0 && !is_icmp(p.protocol) {
                c.seen = 1;
            }
            let seconds = if c.seen == 2 { 30 } else { 60 };
            c.end = now + seconds * 1000;
            return if c.seen == 2 { Class::Established { reply } } else { Class::New };
        }
        if !flags_make_sense(p.flags) {
            return Class::Invalid;
        }
        let [a, b] = self.conns[i].tcp;
        let (src, dst) = if reply { (b, a) } else { (a, b) };
        if p.flags & (SYN | ACK) == SYN {
            if src.state >= FIN_WAIT_2 && dst.state >= FIN_WAIT_2 {
                self.conns.remove(i);
                return self.unknown(p, now);
            }
            if src.state <= SYN_SENT {
                let c = &mut self.conns[i];
                c.tcp[usize::from(reply)].state = SYN_SENT;
                c.packets[usize::from(reply)] += 1;
                c.end = now + 30_000;
                return Class::New;
            }
        }
        match segment(src, dst, p, self.check) {
            None => Class::Invalid,
            Some((src, dst, restart)) => {
                let c = &mut self.conns[i];
                c.tcp = if reply { [dst, src] } else { [src, dst] };
                c.packets[usize::from(reply)] += 1;
                if restart {
                    c.end = now + seconds(&c.tcp) * 1000;
                }
                Class::Established { reply }
            }
        }
    }

    fn unknown(&mut self, p: &Packet, now: u64) -> Class {
        let opens = match p.protocol {
            6 => flags_make_sense(p.flags) && p.flags & (SYN | ACK) != SYN | ACK,
            1 | 58 => query(p.icmp_type).is_some_and(|(_, asks)| asks),
            _ => true,
        };
        if !opens {
            return Class::Invalid;
        }
        // An expired connection that is not swept yet still counts, but is not found.
        let stale = self.conns.iter().position(|c| {
            let same = (c.from, c.to) == (p.src, p.dst) || (c.to, c.from) == (p.src, p.dst);
            let icmp = c.icmp_type == p.icmp_type && c.from == p.src && c.to.0 == p.dst.0;
            let same = (if is_icmp(p.protocol) { icmp } else { same }) && c.six == p.six;
            c.zone == p.zone && c.protocol == p.protocol && same && c.end <= now
        });
        if self.conns.len() >= self.limit {
            return Class::New;
        }
        if let Some(i) = stale {
            self.conns.remove(i);
        }
        let seconds = if p.protocol == 6 { 30 } else { 60 };
        self.conns.push(Conn {
            six: p.six,
            zone: p.zone,
            protocol: p.protocol,
            from: p.src,
            to: p.dst,
            icmp_type: p.icmp_type,
            tcp: begin(p),
            seen: 0,
            end: now + seconds * 1000,
            packets: [1, 0],
        });
        Class::New
    }

    pub(super) fn expire(&mut self, now: u64) {
        self.conns.retain(|c| c.end > now);
    }

    /// Source port of the first packet, and packets of both directions, like the tracker's own
    /// list.
    pub(super) fn packets(&self, now: u64) -> Vec<(u16, IpAddr, u16, IpAddr, [u64; 2])> {
        let live = self.conns.iter().filter(|c| c.end > now);
        let mut all: Vec<_> = live
            .map(|c| {
                let ip = |n: u32| host(c.six, n);
                (c.zone, ip(c.from.0), c.from.1, ip(c.to.0), c.packets)
            })
            .collect();
        all.sort();
        all
    }
}

fn begin(p: &Packet) -> [Side; 2] {
    let syn = p.flags & SYN != 0;
    let scale = if syn { p.scale.map(u32::from) } else { Some(14) };
    let divide = if syn { scale.unwrap_or(0) } else { 0 };
    let window = (i64::from(p.window) + (1 << divide) - 1) >> divide;
    let seq = i64::from(p.seq);
    let opener = Side {
        highest: seq,
        acceptable: end_of(p, seq),
        window: window.max(1),
        scale,
        guessed: !syn,
        state: SYN_SENT,
        spoke: true,
    };
    let other = Side {
        highest: 0,
        acceptable: 1,
        window: 1,
        scale: if syn { None } else { scale },
        guessed: !syn,
        state: CLOSED,
        spoke: false,
    };
    [opener, other]
}

fn seconds(tcp: &[Side; 2]) -> u64 {
    let (low, high) = (tcp[0].state.min(tcp[1].state), tcp[0].state.max(tcp[1].state));
    match (low, high) {
        (FIN_WAIT_2.., _) => 30,
        (CLOSING.., _) => 45,
        (..ESTABLISHED, _) => 30,
        (_, CLOSING..) => 900,
        _ => 86400,
    }
}

fn shift(a: &Side, b: &Side, which: &Side) -> u32 {
    match (a.scale, b.scale) {
        (Some(_), Some(_)) if a.guessed == b.guessed => which.scale.unwrap_or(0),
        _ => 0,
    }
}

/// Both sides after the segment, and whether the timer restarts; `None` if it is out of the window.
fn segment(mut src: Side, mut dst: Side, p: &Packet, check: bool) -> Option<(Side, Side, bool)> {
    const OFF: i64 = 67035;
    let syn = p.flags & SYN != 0;
    let mut window = i64::from(p.window);
    let (mut my_shift, mut your_shift) = match syn {
        true => (0, 0),
        false => (shift(&src, &dst, &src), shift(&src, &dst, &dst)),
    };
    // The first packet of a side says where it is, whatever it acknowledges.
    let mut judged = true;
    if src.state < SYN_SENT {
        if syn && dst.scale.is_some() && !dst.guessed {
            match p.scale {
                Some(n) => {
                    (src.scale, src.guessed) = (Some(u32::from(n.min(14))), false);
                    my_shift = u32::from(n.min(14));
                    your_shift = dst.scale.unwrap_or(0);
                    window = (window + (1 << my_shift) - 1) >> my_shift;
                }
                None => {
                    dst.window = (dst.window << dst.scale.unwrap_or(0)).min(65535);
                    dst.scale = None;
                }
            }
        }
        let near = src.acceptable;
        let seq = unwrap(p.seq, near);
        src.highest = seq;
        src.state = SYN_SENT;
        let limit = end_of(p, seq) + (dst.window << your_shift).max(1);
        if src.acceptable as u32 == 1 || limit >= src.acceptable {
            src.acceptable = limit;
            judged = false;
        }
        src.window = src.window.max(window);
        src.spoke = true;
    }
    let seq = unwrap(p.seq, src.highest);
    let mut span = (seq, end_of(p, seq));
    if span.0 == span.1 {
        span = (src.highest, src.highest);
    }
    let acks = p.flags & ACK != 0 && !(p.ack == 0 && p.flags & RST != 0);
    let ack = if acks { unwrap(p.ack, dst.highest) } else { dst.highest };
    let reset = p.flags & RST != 0;
    let near = |highest: i64| ack - highest <= OFF && highest - ack <= OFF << my_shift;
    if !judged && !near(dst.highest) {
        (dst.highest, dst.acceptable) = (ack, ack);
    }
    let limit = unwrap(src.acceptable as u32, span.1);
    let inside = span.1 <= limit
        && span.0 >= src.highest - (dst.window << your_shift)
        && near(dst.highest)
        && (!reset || (seq - src.highest).abs() <= 1);
    let loose = dst.state < SYN_SENT || dst.state >= FIN_WAIT_2 || src.state >= FIN_WAIT_2;
    let outside = unwrap((src.acceptable + OFF) as u32, span.1);
    let nearly = loose && span.1 <= outside && span.0 >= src.highest - OFF;
    if check && !inside && !nearly {
        return None;
    }
    src.window = src.window.max(window);
    src.highest = src.highest.max(span.1);
    let offered = ack + (window << my_shift);
    let yours = unwrap(dst.acceptable as u32, offered);
    if offered >= yours {
        dst.acceptable = ack + (window << my_shift).max(1);
    }
    if p.flags & FIN != 0 && src.state < CLOSING {
        src.state = CLOSING;
    }
    let strict = inside || !check;
    if strict && p.flags & ACK != 0 {
        dst.state = match dst.state {
            SYN_SENT => ESTABLISHED,
            CLOSING => FIN_WAIT_2,
            other => other,
        };
    }
    if reset {
        (src.state, dst.state) = (TIME_WAIT, TIME_WAIT);
    }
    Some((src, dst, strict))
}
