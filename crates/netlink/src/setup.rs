//! Requests that set up a link: its properties, addresses and routes (rtnetlink(7)).
//!
//! Each is sent by a port, and so concerns the namespace in which that was opened.

use std::io;
use std::net::IpAddr;

use crate::address::{RTM_DELADDR, RTM_NEWADDR};
use crate::socket::{Port, Question};
use crate::wire::{Header, Writer, put_address};

const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;
const RTM_SETLINK: u16 = 19;
const RTM_NEWROUTE: u16 = 24;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_MASTER: u16 = 10;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;

const IFF_UP: u32 = 1;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// Properties of a link to be set; what is `None` stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkSettings {
    /// Administrative state.
    pub up: Option<bool>,
    /// MAC address.
    pub mac: Option<[u8; 6]>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// Index of the bridge, bond or VRF to be a member of; 0 for none.
    pub master: Option<u32>,
    /// Length of the transmit queue in packets.
    pub queue_length: Option<u32>,
}

impl LinkSettings {
    /// Sets them on the link of an index.
    ///
    /// # Errors
    /// If there is no such link, or the kernel refuses.
    pub fn set(&self, port: &Port, index: u32) -> io::Result<()> {
        if *self == LinkSettings::default() {
            return Ok(());
        }
        // `struct ifinfomsg`: family, type, index, flags, change.
        let mut head = [0; 16];
        head[4..8].copy_from_slice(&index.to_ne_bytes());
        if let Some(up) = self.up {
            let flags = if up { IFF_UP } else { 0 };
            head[8..12].copy_from_slice(&flags.to_ne_bytes());
            head[12..].copy_from_slice(&IFF_UP.to_ne_bytes());
        }
        let encode = |out: &mut Vec<u8>, header: Header| {
            let mut w = Writer::with_payload(out, header, &head);
            if let Some(mac) = self.mac {
                w.bytes(IFLA_ADDRESS, &mac);
            }
            let words = [
                (IFLA_MTU, self.mtu),
                (IFLA_MASTER, self.master),
                (IFLA_TXQLEN, self.queue_length),
            ];
            for (kind, value) in words {
                if let Some(value) = value {
                    w.u32(kind, value);
                }
            }
            w.finish();
        };
        port.ask(Question::one(0), RTM_SETLINK, encode, |_| {})
    }
}

/// Makes a VLAN link, of those frames of another link that have a tag. `protocol` is the tag's
/// TPID.
///
/// # Errors
/// If the name is in use, there is no such link, or the kernel refuses: `EOPNOTSUPP` without its
/// module `8021q`.
pub fn add_vlan(port: &Port, name: &str, lower: u32, protocol: u16, id: u16) -> io::Result<()> {
    let encode = |out: &mut Vec<u8>, header: Header| {
        let mut w = Writer::with_payload(out, header, &[0; 16]);
        w.text(IFLA_IFNAME, name).u32(IFLA_LINK, lower);
        w.nest(IFLA_LINKINFO, |w| {
            w.text(IFLA_INFO_KIND, "vlan");
            w.nest(IFLA_INFO_DATA, |w| {
                w.u16(IFLA_VLAN_ID, id).bytes(IFLA_VLAN_PROTOCOL, &protocol.to_be_bytes());
            });
        });
        w.finish();
    };
    port.ask(Question::new(), RTM_NEWLINK, encode, |_| {})
}

/// Deletes the link of an index.
///
/// # Errors
/// If there is no such link, or the kernel refuses.
pub fn delete_link(port: &Port, index: u32) -> io::Result<()> {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&index.to_ne_bytes());
    let encode = |out: &mut Vec<u8>, header: Header| {
        Writer::with_payload(out, header, &head).finish();
    };
    port.ask(Question::one(0), RTM_DELLINK, encode, |_| {})
}

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { AF_INET } else { AF_INET6 }
}

/// Gives a link an address with its prefix length; one that is there stays.
///
/// # Errors
/// If there is no such link, or the kernel refuses.
pub fn add_address(port: &Port, index: u32, address: IpAddr, length: u8) -> io::Result<()> {
    port.ask(Question::put(), RTM_NEWADDR, encode_address(index, address, length), |_| {})
}

/// Takes an address from a link.
///
/// # Errors
/// If there is no such link, it has no such address, or the kernel refuses.
pub fn delete_address(port: &Port, index: u32, address: IpAddr, length: u8) -> io::Result<()> {
    port.ask(Question::one(0), RTM_DELADDR, encode_address(index, address, length), |_| {})
}

fn encode_address(index: u32, address: IpAddr, length: u8) -> impl FnOnce(&mut Vec<u8>, Header) {
    // `struct ifaddrmsg`: family, prefix length, flags, scope, index.
    let mut head = [family(address), length, 0, 0, 0, 0, 0, 0];
    head[4..].copy_from_slice(&index.to_ne_bytes());
    move |out, header| {
        let mut w = Writer::with_payload(out, header, &head);
        put_address(&mut w, IFA_LOCAL, address);
        put_address(&mut w, IFA_ADDRESS, address);
        w.finish();
    }
}

/// Adds a default route by a gateway on a link, to the main table.
///
/// # Errors
/// If there is a default route already, the gateway cannot be reached, or the kernel refuses.
pub fn add_default_route(port: &Port, index: u32, gateway: IpAddr) -> io::Result<()> {
    // `struct rtmsg`: family, prefix lengths, TOS, table, protocol, scope, type, flags.
    let head = [family(gateway), 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, 0, RTN_UNICAST, 0, 0, 0, 0];
    let encode = |out: &mut Vec<u8>, header: Header| {
        let mut w = Writer::with_payload(out, header, &head);
        put_address(&mut w, RTA_GATEWAY, gateway);
        w.u32(RTA_OIF, index);
        w.finish();
    };
    port.ask(Question::new(), RTM_NEWROUTE, encode, |_| {})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::Protocol;

    #[test]
    fn a_link_that_is_not_there_is_refused() {
        let port = Port::open(Protocol::Route).unwrap();
        let none = i32::MAX as u32;
        let up = LinkSettings { up: Some(true), ..LinkSettings::default() };
        assert!(up.set(&port, none).is_err());
        assert!(add_address(&port, none, "192.0.2.1".parse().unwrap(), 24).is_err());
        assert!(delete_address(&port, none, "192.0.2.1".parse().unwrap(), 24).is_err());
        assert!(add_default_route(&port, none, "192.0.2.2".parse().unwrap()).is_err());
        assert!(add_vlan(&port, "never", none, 0x8100, 7).is_err());
        assert!(delete_link(&port, none).is_err());
        // Nothing is asked for.
        assert!(LinkSettings::default().set(&port, none).is_ok());
    }
}
