//! Rewriting of addresses and ports (RFC 3022), for all that translate: keys of flows
//! ([`mod@tuple`]), and packets with their checksums and the packets that ICMP errors quote
//! ([`packet`] for IPv4, RFC 5508; [`v6`]).

pub mod packet;
pub mod tuple;
pub mod v6;
