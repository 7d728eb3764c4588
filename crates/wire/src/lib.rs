//! Headers on the wire: views over bytes, emitters, checksums and pretty printing.
//!
//! Each format is one file with the same structure: its numbers, a `FooView` that borrows the
//! bytes, a `FooRepr` that is the parsed value, and tests with real bytes.
//!
//! # The panic contract
//!
//! `FooView::parse` checks lengths once and keeps the fixed header as an array reference
//! (`&[u8; N]`), so that getters index with constants inside the bounds: they cannot panic and the
//! compiler needs no check. Nothing in this crate panics on the content of a packet, however
//! mangled. Bytes after the header are always reached through slices that `parse` cut to size.
//!
//! `FooRepr::emit` writes a header at the start of a buffer and returns its length; it refuses a
//! buffer that is too short with [`WireError::NoRoom`] and leaves it unchanged.
//!
//! # Modules
//!
//! | module | format |
//! | --- | --- |
//! | [`ethernet`], [`vlan`], [`llc`] | Ethernet II, 802.1Q/802.1ad, LLC and SNAP |
//! | [`arp`] | ARP for IPv4 over Ethernet |
//! | [`ipv4`], [`icmpv4`] | IPv4 with the checks of RFC 1812, ICMP |
//! | [`ipv6`], [`icmpv6`] | IPv6 with its extension headers, ICMPv6 |
//! | [`nd`], [`mld`] | neighbor discovery, multicast listener discovery |
//! | [`udp`], [`tcp`] | the transports |
//! | [`mpls`], [`vxlan`], [`gre`] | encapsulations |
//! | [`checksum`], [`crc32c`] | RFC 1071 sums, RFC 1624 updates, completing offloaded checksums; that of SCTP |
//! | [`gso`] | segmentation of TSO and USO packets |
//! | [`packet`] | the one reading of addresses, protocol, ports, flags and fragment of a packet |
//! | [`flow`], [`owner`] | five-tuples and their hashes; which of several keeps a frame's flow |
//! | [`bytes`] | big- and little-endian fields |
//! | [`nat`] | rewriting of addresses and ports |
//! | [`number`](mod@number) | types for numbers that must not be taken for one another |
//! | [`fmt`](mod@fmt) | text for packet traces |
//! | [`pcap`] | headers of capture files (pcapng allocates) |
//! | [`build`] | whole packets for tests and generators (allocates) |

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod arp;
pub mod build;
pub mod bytes;
pub mod checksum;
pub mod crc32c;
mod error;
pub mod ethernet;
pub mod flow;
pub mod fmt;
pub mod gre;
pub mod gso;
pub mod icmpv4;
pub mod icmpv6;
pub mod ip;
pub mod ipv4;
pub mod ipv6;
pub mod llc;
pub mod mld;
pub mod mpls;
pub mod nat;
pub mod nd;
pub mod number;
pub mod owner;
pub mod packet;
pub mod pcap;
pub mod tcp;
pub mod udp;
pub mod vlan;
pub mod vxlan;

pub use error::{Result, WireError};
pub use ethernet::MacAddr;
