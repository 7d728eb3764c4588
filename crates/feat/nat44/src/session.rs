//! The value of a session.

use thalweg_tables::flow::Millis;
use thalweg_wire::ip::{has_ports, protocol};
use thalweg_wire::nat::tuple::{self, Key};

/// The words that each packet needs; they share a cache line with the keys.
pub type Words = [u64; 3];
/// The other words. Four are unused, so that sessions begin at cache lines.
pub type Rest = [u64; 6];

/// Packets from inside can take the fast path.
pub const FAST_IN: u64 = 1 << 32;
/// Packets from outside can take the fast path.
pub const FAST_OUT: u64 = 2 << 32;
/// Position of the TCP state in the first word.
const STATE: u32 = 40;
/// Position of the timeout class in the first word.
const CLASS: u32 = 48;

/// Opened from outside, by a static mapping.
pub const FROM_OUTSIDE: u16 = 1;
/// External address and port are those of a static mapping.
pub const STATIC: u16 = 2;
/// Both addresses are translated (twice-NAT).
pub const TWICE: u16 = 4;
/// Both endpoints are inside: packets from inside continue in out2in.
pub const HAIRPIN: u16 = 8;
/// The endpoints are in different routing tables: packets from outside are looked up in the inside
/// table.
pub const ACROSS: u16 = 32;
/// Packets from inside are looked up in the outside table; only together with [`ACROSS`].
pub const VIA: u16 = 64;
/// Excluded from the fast path.
pub const SLOW: u16 = HAIRPIN | ACROSS;
/// Belongs to a load-balancing mapping.
pub const BALANCED: u16 = 16;
/// Opened from outside by a packet straight to the inside host, which was forwarded as it was: its
/// answers are not translated, either.
pub const DIRECT: u16 = 128;

/// Timeout class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// UDP and other protocols.
    Udp,
    /// TCP, established on both sides.
    TcpEstablished,
    /// TCP during setup and teardown.
    TcpTransitory,
    /// ICMP queries.
    Icmp,
}

impl Class {
    /// All classes, by number.
    pub const ALL: [Class; 4] =
        [Class::Udp, Class::TcpEstablished, Class::TcpTransitory, Class::Icmp];

    fn of(number: u64) -> Class {
        Class::ALL[(number & 3) as usize]
    }
}

/// TCP state: flags seen from each side.
pub mod tcp {
    /// SYN seen from inside; one bit further, from outside.
    pub const SYN: u8 = 1;
    /// FIN seen from inside; one bit further, from outside.
    pub const FIN: u8 = 4;
    /// RST seen from either side.
    pub const RST: u8 = 16;
    /// The connection is established.
    pub const ESTABLISHED: u8 = 32;

    /// TCP header flags.
    pub mod flag {
        /// FIN.
        pub const FIN: u8 = 1;
        /// SYN.
        pub const SYN: u8 = 2;
        /// RST.
        pub const RST: u8 = 4;
        /// ACK.
        pub const ACK: u8 = 16;
    }

    /// The state after a packet with these flags, from inside or outside (RFC 7857 section 2).
    pub fn after(state: u8, flags: u8, outside: bool) -> u8 {
        let side = u8::from(outside);
        if flags & flag::RST != 0 {
            return state | RST;
        }
        let mut state = state;
        if flags & flag::SYN != 0 {
            if is_closing(state) {
                // The old connection has ended: this opens a new one.
                state = 0;
            }
            state |= SYN << side;
        }
        if flags & flag::FIN != 0 {
            state |= FIN << side;
        }
        if flags & flag::ACK != 0 && state & (SYN * 3) == SYN * 3 && flags & flag::SYN == 0 {
            state |= ESTABLISHED;
        }
        state
    }

    /// Returns whether the connection was reset, or closed from both sides.
    pub fn is_closing(state: u8) -> bool {
        state & RST != 0 || state & (FIN * 3) == FIN * 3
    }

    /// Returns whether packets without SYN, FIN and RST leave the state unchanged.
    pub fn is_steady(state: u8) -> bool {
        state & ESTABLISHED != 0 && state & (RST | (FIN * 3)) == 0
    }
}

/// The value of a session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// The words that each packet needs.
    pub words: Words,
    /// The words for creation, removal and display.
    pub rest: Rest,
}

impl Session {
    /// A session for packets from inside with the first key, and from outside with the second.
    pub fn new(inside: &Key, outside: &Key, now: Millis) -> Session {
        let from = (inside[0], inside[1] as u32);
        let to = (tuple::reversed_addresses(outside), tuple::reversed_ports(outside));
        let addresses = tuple::address_delta(from.0, to.0);
        let ip = (inside[1] >> 32) as u8;
        let (l4, class) = match ip {
            // ICMP has no pseudo-header, and both ports of the key are the identifier.
            protocol::ICMP => (tuple::port_delta(from.1 & 0xffff, to.1 & 0xffff), Class::Icmp),
            _ if has_ports(ip) => {
                let ports = tuple::port_delta(from.1, to.1);
                let class = if ip == protocol::TCP { Class::TcpTransitory } else { Class::Udp };
                (tuple::fold(u32::from(addresses) + u32::from(ports)), class)
            }
            _ => (0, Class::Udp),
        };
        let mut s = Session::default();
        s.words[0] = u64::from(addresses) | u64::from(l4) << 16 | (class as u64) << CLASS;
        s.rest[0] = u64::from(now) | u64::from(NO_POOL) << 32;
        s
    }

    /// TCP state.
    pub fn state(&self) -> u8 {
        (self.words[0] >> STATE) as u8
    }
    /// Timeout class.
    pub fn class(&self) -> Class {
        Class::of(self.words[0] >> CLASS)
    }
    /// Packets in both directions.
    pub fn packets(&self) -> u64 {
        self.words[1]
    }
    /// Bytes in both directions, IP headers included.
    pub fn bytes(&self) -> u64 {
        self.words[2]
    }
    /// Time of creation.
    pub fn created(&self) -> Millis {
        self.rest[0] as u32
    }
    /// Index of the pool address that its external port is from.
    pub fn pool(&self) -> Option<u16> {
        Some((self.rest[0] >> 32) as u16).filter(|p| *p != NO_POOL)
    }
    /// Marks.
    pub fn marks(&self) -> u16 {
        marks(&self.rest)
    }
    /// Sets the pool address.
    pub fn set_pool(&mut self, pool: u16) {
        self.rest[0] = self.rest[0] & !(0xffff << 32) | u64::from(pool) << 32;
    }
    /// Index of the twice-NAT pool address that the external host is translated to.
    pub fn twice_pool(&self) -> Option<u16> {
        (self.rest[1] as u16).checked_sub(1)
    }
    /// Sets the twice-NAT pool address.
    pub fn set_twice_pool(&mut self, pool: u16) {
        self.rest[1] = u64::from(pool) + 1;
    }
    /// Sets the TCP state, the timeout class, and the fast path flags.
    pub fn set_standing(&mut self, state: u8, class: Class, fast: u64) {
        let kept = self.words[0] & 0xffff_ffff;
        self.words[0] = kept | fast | u64::from(state) << STATE | (class as u64) << CLASS;
    }
    /// Adds marks.
    pub fn mark(&mut self, marks: u16) {
        self.rest[0] |= u64::from(marks) << 48;
    }
}

const NO_POOL: u16 = u16::MAX;

/// Updates the first word of a TCP session for a packet's flags.
pub fn note_tcp(word: &mut u64, flags: u8, outside: bool, slow: bool) {
    let state = tcp::after((*word >> STATE) as u8, flags, outside);
    let class = match () {
        () if tcp::is_closing(state) => Class::TcpTransitory,
        () if state & tcp::ESTABLISHED != 0 => Class::TcpEstablished,
        () => Class::TcpTransitory,
    };
    let steady = tcp::is_steady(state) && !slow;
    let fast = if steady { FAST_IN | FAST_OUT } else { 0 };
    let kept = *word & 0xffff_ffff;
    *word = kept | fast | u64::from(state) << STATE | (class as u64) << CLASS;
}

/// The marks of a session.
pub fn marks(rest: &Rest) -> u16 {
    (rest[0] >> 48) as u16
}

/// The timeout class in the first word of a session, below 4.
#[inline(always)]
pub fn class_number(word: u64) -> usize {
    (word >> CLASS & 3) as usize
}

#[cfg(test)]
mod tests {
    use super::tcp::{self, flag};
    use super::*;

    fn run(steps: &[(u8, bool)]) -> Session {
        let mut s = Session::default();
        for (flags, outside) in steps {
            note_tcp(&mut s.words[0], *flags, *outside, false);
        }
        s
    }

    #[test]
    fn a_connection_comes_up_and_goes_down() {
        let up = [(flag::SYN, false), (flag::SYN | flag::ACK, true), (flag::ACK, false)];
        assert_eq!(run(&up[..1]).class(), Class::TcpTransitory);
        assert_eq!(run(&up[..2]).class(), Class::TcpTransitory);
        assert_eq!(run(&up).class(), Class::TcpEstablished);
        assert_ne!(run(&up).words[0] & FAST_OUT, 0);
        let fin = flag::FIN | flag::ACK;
        let half = [&up[..], &[(fin, false)]].concat();
        assert_eq!(run(&half).class(), Class::TcpEstablished);
        assert_eq!(run(&half).words[0] & (FAST_IN | FAST_OUT), 0);
        let down = [&half[..], &[(fin, true), (flag::ACK, false)]].concat();
        assert_eq!(run(&down).class(), Class::TcpTransitory);
        let again = [&down[..], &up].concat();
        assert_eq!(run(&again).class(), Class::TcpEstablished);
    }

    #[test]
    fn a_reset_ends_it() {
        let up = [(flag::SYN, true), (flag::SYN | flag::ACK, false), (flag::ACK, true)];
        let reset = [&up[..], &[(flag::RST, true)]].concat();
        assert_eq!(run(&reset).class(), Class::TcpTransitory);
        assert!(tcp::is_closing(run(&reset).state()));
        let after = [&reset[..], &[(flag::ACK, false)]].concat();
        assert_eq!(run(&after).class(), Class::TcpTransitory);
    }

    #[test]
    fn simultaneous_opening_stands() {
        let both = [
            (flag::SYN, false),
            (flag::SYN, true),
            (flag::SYN | flag::ACK, false),
            (flag::SYN | flag::ACK, true),
            (flag::ACK, false),
        ];
        assert_eq!(run(&both).class(), Class::TcpEstablished);
    }
}
