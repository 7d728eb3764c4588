//! What a session knows beside its keys.

use crate::tuple::{self, Key};
use thalweg_tables::flow::Millis;
use thalweg_wire::ip::protocol;

/// A session's words, as the table keeps them: those that packets need lie on one line with its keys.
pub type Words = [u64; 3];
/// The other ones; four are free, so that sessions begin with lines.
pub type Rest = [u64; 6];

/// Packets from the inside need no second look.
pub const FAST_IN: u64 = 1 << 32;
/// Packets from the outside need no second look.
pub const FAST_OUT: u64 = 2 << 32;
/// Position of the TCP state in the first word.
const STATE: u32 = 40;
/// Position of the number of the timeout.
const CLASS: u32 = 48;

/// Opened from the outside, by a static mapping.
pub const FROM_OUTSIDE: u16 = 1;
/// The inside's address and port are from a static mapping.
pub const STATIC: u16 = 2;
/// Both addresses are translated.
pub const TWICE: u16 = 4;
/// Both ends are inside: packets from the inside go to out2in.
pub const HAIRPIN: u16 = 8;
/// Its ends are in different routing tables: what comes from the outside is looked up in another one.
pub const ACROSS: u16 = 32;
/// What comes from the inside is looked up in the table of the outside; always with [`ACROSS`].
pub const VIA: u16 = 64;
/// Not for the fast way.
pub const SLOW: u16 = HAIRPIN | ACROSS;
/// Of a load balance.
pub const BALANCED: u16 = 16;

/// SessionFilter timeout holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Class {
    /// UDP, and whatever else there is.
    Udp,
    /// TCP, both sides of which have said that it stands.
    TcpEstablished,
    /// TCP that comes up or goes down.
    TcpTransitory,
    /// ICMP queries.
    Icmp,
}

impl Class {
    /// All of them, in the order of their numbers.
    pub const ALL: [Class; 4] =
        [Class::Udp, Class::TcpEstablished, Class::TcpTransitory, Class::Icmp];

    fn of(number: u64) -> Class {
        Class::ALL[(number & 3) as usize]
    }
}

/// TCP: which side has said what.
pub mod tcp {
    /// The inside has sent a SYN; the outside has, one bit further.
    pub const SYN: u8 = 1;
    /// The inside has sent a FIN; the outside has, one bit further.
    pub const FIN: u8 = 4;
    /// One side has reset the connection.
    pub const RST: u8 = 16;
    /// It stands.
    pub const ESTABLISHED: u8 = 32;

    /// Flag bits of the header.
    pub mod flag {
        /// No more data.
        pub const FIN: u8 = 1;
        /// First packet.
        pub const SYN: u8 = 2;
        /// It is over.
        pub const RST: u8 = 4;
        /// Acknowledges.
        pub const ACK: u8 = 16;
    }

    /// The state after a packet with these flags, from the outside or not (RFC 7857 section 2).
    pub fn after(state: u8, flags: u8, outside: bool) -> u8 {
        let side = u8::from(outside);
        if flags & flag::RST != 0 {
            return state | RST;
        }
        let mut state = state;
        if flags & flag::SYN != 0 {
            if is_closing(state) {
                // Both were through with each other: a new connection.
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

    /// Whether it is over: reset, or ended from both sides.
    pub fn is_closing(state: u8) -> bool {
        state & RST != 0 || state & (FIN * 3) == FIN * 3
    }

    /// Whether packets without SYN, FIN and RST change nothing.
    pub fn is_steady(state: u8) -> bool {
        state & ESTABLISHED != 0 && state & (RST | (FIN * 3)) == 0
    }
}

/// A session's words with names.
#[derive(Clone, Copy, Debug, Default)]
pub struct Session {
    /// What each packet needs.
    pub words: Words,
    /// What is needed when it comes, goes, or is looked at.
    pub rest: Rest,
}

impl Session {
    /// A session that packets from the inside with the first key make, and packets from the outside
    /// with the second.
    pub fn new(inside: &Key, outside: &Key, now: Millis) -> Session {
        let from = (inside[0], inside[1] as u32);
        let to = (tuple::reversed_addresses(outside), tuple::reversed_ports(outside));
        let addresses = tuple::address_delta(from.0, to.0);
        let ip = (inside[1] >> 32) as u8;
        let (l4, class) = match ip {
            // ICMP has no pseudo-header, and its identifier stands in both places of the key.
            protocol::ICMP => (tuple::port_delta(from.1 & 0xffff, to.1 & 0xffff), Class::Icmp),
            protocol::TCP | protocol::UDP => {
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

    /// Deltas of the sums over addresses, and over addresses and ports, towards the outside.
    #[inline(always)]
    pub fn deltas(&self) -> (u16, u16) {
        (self.words[0] as u16, (self.words[0] >> 16) as u16)
    }
    /// TCP state.
    pub fn state(&self) -> u8 {
        (self.words[0] >> STATE) as u8
    }
    /// SessionFilter timeout holds.
    pub fn class(&self) -> Class {
        Class::of(self.words[0] >> CLASS)
    }
    /// Packets of both directions.
    pub fn packets(&self) -> u64 {
        self.words[1]
    }
    /// Bytes of both directions, IP headers included.
    pub fn bytes(&self) -> u64 {
        self.words[2]
    }
    /// When it began.
    pub fn created(&self) -> Millis {
        self.rest[0] as u32
    }
    /// Position of the address of which it has a port, if it has one.
    pub fn pool(&self) -> Option<u16> {
        Some((self.rest[0] >> 32) as u16).filter(|p| *p != NO_POOL)
    }
    /// Marks.
    pub fn marks(&self) -> u16 {
        marks(&self.rest)
    }
    /// Says which address it has a port of.
    pub fn set_pool(&mut self, pool: u16) {
        self.rest[0] = self.rest[0] & !(0xffff << 32) | u64::from(pool) << 32;
    }
    /// Position of the address of which the host outside has a port, seen from the inside.
    pub fn twice_pool(&self) -> Option<u16> {
        (self.rest[1] as u16).checked_sub(1)
    }
    /// Says which address that is.
    pub fn set_twice_pool(&mut self, pool: u16) {
        self.rest[1] = u64::from(pool) + 1;
    }
    /// Sets the TCP state, the timeout that holds, and whether packets need a second look.
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

/// Notes a packet's flags in a session's first word; TCP only.
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

/// A session's marks.
pub fn marks(rest: &Rest) -> u16 {
    (rest[0] >> 48) as u16
}

/// The number of the timeout in a session's first word, below 4.
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
