//! A connection for display: the line that Open vSwitch prints, plus counters that it does not
//! have.

use std::fmt;

use thalweg_tables::flow::{FlowId, Millis};
use thalweg_wire::ip::protocol::{ICMP, ICMPV6, SCTP, TCP, UDP};

use crate::entry::{self, Entry, Seen, flag};
use crate::tcp::{Pair, Side};
use crate::tuple::{Key, zone_of};
use crate::{IPV6, Tuple};

/// Protocol state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// TCP.
    Tcp(Pair),
    /// Packets in one direction only.
    Unanswered,
    /// Packets in both directions.
    Answered,
}

/// A connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Tuple of the first packet.
    pub original: Tuple,
    /// Tuple of replies.
    pub reply: Tuple,
    /// Zone.
    pub zone: u16,
    /// Mark.
    pub mark: u32,
    /// Label.
    pub label: u128,
    /// Protocol state.
    pub progress: Progress,
    /// Time until it expires if no more packets arrive, in milliseconds.
    pub left: Millis,
    /// Time since it was committed, in milliseconds.
    pub age: Millis,
    /// Number of packets: original direction, replies.
    pub packets: [u64; 2],
    /// Number of bytes, from the network header on: original direction, replies.
    pub bytes: [u64; 2],
    /// Index in the tracker. The index may be reused once the connection has ended.
    pub id: u32,
}

impl Connection {
    pub(crate) fn new<const W: usize>(
        key: &Key<W>,
        second: Option<&Key<W>>,
        value: &Entry,
        label: u128,
        (left, now): (Millis, Millis),
        flow: FlowId,
    ) -> Connection {
        let original = Tuple::of_key(key, entry::has(value, flag::SWAPPED));
        let reply = match second {
            Some(key) => Tuple::of_key(key, entry::has(value, flag::REPLY_SWAPPED)),
            None => original.reversed(),
        };
        let progress = match (original.protocol, entry::seen(value)) {
            (TCP, _) => Progress::Tcp(entry::pair(value)),
            (_, Seen::Both) => Progress::Answered,
            _ => Progress::Unanswered,
        };
        Connection {
            original,
            reply,
            zone: zone_of(key),
            mark: entry::mark(value),
            label,
            progress,
            left,
            age: now.wrapping_sub(entry::since(value)),
            packets: entry::packets(value),
            bytes: entry::bytes(value),
            // Numbers of IPv6 are above all of IPv4.
            id: flow.index() | u32::from(W == IPV6) << 31,
        }
    }

    /// The connection's line, at a level of detail.
    pub fn line(&self, detail: Detail) -> Line<'_> {
        Line { connection: self, detail }
    }
}

/// Optional parts of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Detail {
    /// Id, both TCP states and window scaling.
    pub more: bool,
    /// Time left, packets, bytes and age.
    pub statistics: bool,
}

/// A connection's line.
#[derive(Clone, Copy, Debug)]
pub struct Line<'a> {
    connection: &'a Connection,
    detail: Detail,
}

/// Name of a protocol, or its number.
pub(crate) struct ProtocolName(pub(crate) u8);

impl fmt::Display for ProtocolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            TCP => f.write_str("tcp"),
            UDP => f.write_str("udp"),
            ICMP => f.write_str("icmp"),
            ICMPV6 => f.write_str("icmpv6"),
            SCTP => f.write_str("sctp"),
            number => write!(f, "{number}"),
        }
    }
}

/// The contents of `orig=(…)`.
impl fmt::Display for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tuple { src, dst, protocol, sport, dport } = self;
        write!(f, "src={src},dst={dst}")?;
        match *protocol {
            ICMP | ICMPV6 => write!(f, ",id={sport},type={dport},code=0"),
            number if thalweg_wire::ip::has_ports(number) => {
                write!(f, ",sport={sport},dport={dport}")
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (c, detail) = (self.connection, self.detail);
        let protocol = ProtocolName(c.original.protocol);
        write!(f, "{protocol},orig=({}),reply=({})", c.original, c.reply)?;
        if detail.more {
            write!(f, ",id={}", c.id)?;
        }
        if c.zone != 0 {
            write!(f, ",zone={}", c.zone)?;
        }
        if detail.statistics {
            write!(f, ",timeout={}", c.left / 1000)?;
        }
        if c.mark != 0 {
            write!(f, ",mark={}", c.mark)?;
        }
        if c.label != 0 {
            write!(f, ",labels={:#x}", c.label)?;
        }
        if let Progress::Tcp(pair) = &c.progress {
            tcp(f, pair, detail)?;
        }
        if detail.statistics {
            let ([to, back], [to_bytes, back_bytes]) = (c.packets, c.bytes);
            write!(f, ",packets={to}/{back},bytes={to_bytes}/{back_bytes},age={}", c.age / 1000)?;
        }
        Ok(())
    }
}

fn tcp(f: &mut fmt::Formatter<'_>, pair: &Pair, detail: Detail) -> fmt::Result {
    if !detail.more {
        return write!(f, ",protoinfo=(state={})", pair.shown().name());
    }
    let [a, b] = &pair.sides;
    write!(f, ",protoinfo=(state_orig={},state_reply={}", a.state.name(), b.state.name())?;
    let scales = |side: &Side| side.scale.is_offered();
    if scales(a) || scales(b) {
        write!(f, ",wscale_orig={},wscale_reply={}", a.scale.shift(), b.scale.shift())?;
        for (name, side) in [("orig", a), ("reply", b)] {
            if scales(side) {
                write!(f, ",flags_{name}=WINDOW_SCALE")?;
            }
        }
    }
    f.write_str(")")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::{Scale, TcpState};

    fn connection(protocol: u8, ports: [u16; 2]) -> Connection {
        let original = Tuple {
            src: [10, 1, 0, 2].into(),
            dst: [10, 1, 0, 3].into(),
            protocol,
            sport: ports[0],
            dport: ports[1],
        };
        Connection {
            original,
            reply: original.reversed(),
            zone: 0,
            mark: 0,
            label: 0,
            progress: Progress::Answered,
            left: 59_700,
            age: 3000,
            packets: [3, 2],
            bytes: [300, 80],
            id: 5,
        }
    }

    #[test]
    fn lines_are_as_those_of_open_vswitch() {
        let mut tcp = connection(6, [11110, 20000]);
        let scale = Scale::offered(10);
        let side = Side { state: TcpState::Established, scale, ..Side::default() };
        tcp.progress = Progress::Tcp(Pair { sides: [side, side] });
        let plain = Detail::default();
        assert_eq!(
            tcp.line(plain).to_string(),
            "tcp,orig=(src=10.1.0.2,dst=10.1.0.3,sport=11110,dport=20000),\
             reply=(src=10.1.0.3,dst=10.1.0.2,sport=20000,dport=11110),\
             protoinfo=(state=ESTABLISHED)"
        );
        let more = tcp.line(Detail { more: true, statistics: false }).to_string();
        assert!(
            more.ends_with(
                ",id=5,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED,wscale_orig=10,\
                 wscale_reply=10,flags_orig=WINDOW_SCALE,flags_reply=WINDOW_SCALE)"
            ),
            "{more}"
        );
        assert_eq!(
            connection(1, [31097, 8]).line(plain).to_string(),
            "icmp,orig=(src=10.1.0.2,dst=10.1.0.3,id=31097,type=8,code=0),\
             reply=(src=10.1.0.3,dst=10.1.0.2,id=31097,type=0,code=0)"
        );
        let mut udp = connection(17, [5303, 6000]);
        udp.reply.dst = [10, 1, 0, 77].into();
        udp.reply.dport = 5002;
        (udp.zone, udp.mark, udp.label) = (1, 7, 9);
        assert_eq!(
            udp.line(Detail { more: false, statistics: true }).to_string(),
            "udp,orig=(src=10.1.0.2,dst=10.1.0.3,sport=5303,dport=6000),\
             reply=(src=10.1.0.3,dst=10.1.0.77,sport=6000,dport=5002),zone=1,timeout=59,mark=7,\
             labels=0x9,packets=3/2,bytes=300/80,age=3"
        );
        let gre = connection(47, [0, 0]).line(plain).to_string();
        assert_eq!(gre, "47,orig=(src=10.1.0.2,dst=10.1.0.3),reply=(src=10.1.0.3,dst=10.1.0.2)");
    }
}
