//! Status of a software router over `NETLINK_USERSOCK`: that it lives, and its
//! interfaces' counters. The attributes are VPP's.

use thalweg_netlink::wire::{Attributes, Fault, Header, MessageError, Writer};
use thalweg_sflow::value::Text;

/// The multicast group.
pub const GROUP: u32 = 29;

/// The message's number of a [`Status`].
pub const STATUS: u16 = 1;
/// The message's number of [`PortCounters`].
pub const IF_COUNTERS: u16 = 2;

const PORTNAME: u16 = 0;
const IFINDEX: u16 = 1;
const IFTYPE: u16 = 2;
const IFSPEED: u16 = 3;
const IFDIRECTION: u16 = 4;
const OPER_UP: u16 = 5;
const ADMIN_UP: u16 = 6;
const RX_OCTETS: u16 = 7;
const TX_OCTETS: u16 = 8;
const RX_PKTS: u16 = 9;
const TX_PKTS: u16 = 10;
const RX_BCASTS: u16 = 11;
const TX_BCASTS: u16 = 12;
const RX_MCASTS: u16 = 13;
const TX_MCASTS: u16 = 14;
const RX_DISCARDS: u16 = 15;
const TX_DISCARDS: u16 = 16;
const RX_ERRORS: u16 = 17;
const TX_ERRORS: u16 = 18;
const HW_ADDRESS: u16 = 19;
const UPTIME_S: u16 = 20;
const OSINDEX: u16 = 21;
const DROPS: u16 = 22;
const SEQ: u16 = 23;

/// The router's word that it lives, each second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Status {
    /// Seconds since sampling started.
    pub uptime_s: u32,
    /// Samples lost. VPP counts from its start on, and hsflowd adds that number to what every
    /// following sample says was lost; a sender that reports losses by gaps in its samples' numbers
    /// says 0 here.
    pub drops: u32,
    /// Counts the sender's messages of either kind.
    pub sequence: Option<u32>,
    /// Attributes that are not known here.
    pub unknown: u16,
}

/// An interface and its counters. Fields that a sender leaves out are 0 or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortCounters<'a> {
    /// Its name.
    pub name: Text<'a>,
    /// Its number in the router, not 0.
    pub index: u32,
    /// Its number in the system, if it has a counterpart there; 0 if it has none.
    pub os_index: Option<u32>,
    /// IANA's ifType: 6 Ethernet, 24 loopback.
    pub if_type: u32,
    /// Bits per second, 0 unknown.
    pub speed: u64,
    /// 1 full duplex, 2 half.
    pub direction: u32,
    /// The interface works.
    pub oper_up: bool,
    /// The interface is meant to work.
    pub admin_up: bool,
    /// Bytes received.
    pub rx_octets: u64,
    /// Bytes sent.
    pub tx_octets: u64,
    /// Packets received, of all kinds.
    pub rx_packets: u64,
    /// Packets sent, of all kinds.
    pub tx_packets: u64,
    /// Broadcasts among the packets received.
    pub rx_broadcasts: u64,
    /// Broadcasts sent.
    pub tx_broadcasts: u64,
    /// Multicasts received.
    pub rx_multicasts: u64,
    /// Multicasts sent.
    pub tx_multicasts: u64,
    /// Received and discarded.
    pub rx_discards: u64,
    /// Packets that were discarded instead of sent.
    pub tx_discards: u64,
    /// Packets that were not received for errors.
    pub rx_errors: u64,
    /// Packets that were not sent for errors.
    pub tx_errors: u64,
    /// Its MAC address.
    pub hw_address: Option<[u8; 6]>,
    /// Counts the sender's messages of either kind.
    pub sequence: Option<u32>,
    /// Attributes that are not known here.
    pub unknown: u16,
}

impl Status {
    /// Reads the payload of a message [`STATUS`].
    ///
    /// # Errors
    /// If its lengths are wrong.
    pub fn decode(payload: &[u8]) -> Result<Self, MessageError> {
        let mut status = Status::default();
        for attribute in Attributes::new(payload) {
            let a = attribute?;
            match a.kind {
                UPTIME_S => status.uptime_s = a.u32()?,
                DROPS => status.drops = a.u32()?,
                SEQ => status.sequence = Some(a.u32()?),
                _ => status.unknown = status.unknown.saturating_add(1),
            }
        }
        Ok(status)
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>, header: Header) {
        let mut w = Writer::new(out, Header { kind: STATUS, ..header });
        w.u32(UPTIME_S, self.uptime_s).u32(DROPS, self.drops);
        if let Some(sequence) = self.sequence {
            w.u32(SEQ, sequence);
        }
        w.finish();
    }
}

impl<'a> PortCounters<'a> {
    /// Reads the payload of a message [`IF_COUNTERS`].
    ///
    /// # Errors
    /// If its lengths are wrong or it names no interface.
    pub fn decode(payload: &'a [u8]) -> Result<Self, MessageError> {
        let mut port = PortCounters::default();
        for attribute in Attributes::new(payload) {
            let a = attribute?;
            match a.kind {
                PORTNAME => port.name = Text(a.text()),
                IFINDEX => port.index = a.u32()?,
                OSINDEX => port.os_index = Some(a.u32()?),
                IFTYPE => port.if_type = a.u32()?,
                IFDIRECTION => port.direction = a.u32()?,
                OPER_UP => port.oper_up = a.u64()? != 0,
                ADMIN_UP => port.admin_up = a.u64()? != 0,
                HW_ADDRESS => port.hw_address = a.value.try_into().ok(),
                SEQ => port.sequence = Some(a.u32()?),
                kind => match port.wide(kind) {
                    Some(field) => *field = a.u64()?,
                    None => port.unknown = port.unknown.saturating_add(1),
                },
            }
        }
        if port.index == 0 {
            let fault = Fault::Missing(IFINDEX, "the interface's number");
            return Err(MessageError { at: 0, fault });
        }
        Ok(port)
    }

    /// The number of 64 bits that an attribute is.
    fn wide(&mut self, kind: u16) -> Option<&mut u64> {
        Some(match kind {
            IFSPEED => &mut self.speed,
            RX_OCTETS => &mut self.rx_octets,
            TX_OCTETS => &mut self.tx_octets,
            RX_PKTS => &mut self.rx_packets,
            TX_PKTS => &mut self.tx_packets,
            RX_BCASTS => &mut self.rx_broadcasts,
            TX_BCASTS => &mut self.tx_broadcasts,
            RX_MCASTS => &mut self.rx_multicasts,
            TX_MCASTS => &mut self.tx_multicasts,
            RX_DISCARDS => &mut self.rx_discards,
            TX_DISCARDS => &mut self.tx_discards,
            RX_ERRORS => &mut self.rx_errors,
            TX_ERRORS => &mut self.tx_errors,
            _ => return None,
        })
    }

    /// Appends the message. The name goes without a NUL, as VPP sends it.
    pub fn encode(&self, out: &mut Vec<u8>, header: Header) {
        let mut w = Writer::new(out, Header { kind: IF_COUNTERS, ..header });
        w.bytes(PORTNAME, self.name.0)
            .u32(IFINDEX, self.index)
            .u32(IFTYPE, self.if_type)
            .u64(IFSPEED, self.speed)
            .u32(IFDIRECTION, self.direction)
            .u32(OPER_UP, self.oper_up.into())
            .u32(ADMIN_UP, self.admin_up.into());
        let mut all = *self;
        for kind in RX_OCTETS..=TX_ERRORS {
            if let Some(value) = all.wide(kind) {
                w.u64(kind, *value);
            }
        }
        if let Some(address) = &self.hw_address {
            w.bytes(HW_ADDRESS, address);
        }
        if let Some(index) = self.os_index {
            w.u32(OSINDEX, index);
        }
        if let Some(sequence) = self.sequence {
            w.u32(SEQ, sequence);
        }
        w.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option::of;
    use proptest::prelude::*;
    use thalweg_netlink::wire::Messages;

    proptest! {
        #[test]
        fn counters_survive_the_way(
            name in "[ -~]{0,40}",
            index in 1..=u32::MAX,
            (os_index, sequence) in (of(any::<u32>()), of(any::<u32>())),
            (if_type, direction, oper_up, admin_up) in any::<(u32, u32, bool, bool)>(),
            counts in any::<[u64; 13]>(),
            hw_address in of(any::<[u8; 6]>()),
        ) {
            let mut port = PortCounters {
                name: Text(name.as_bytes()), index, os_index, if_type, direction, oper_up,
                admin_up, hw_address, sequence, ..PortCounters::default()
            };
            for (kind, count) in (RX_OCTETS..=TX_ERRORS).chain([IFSPEED]).zip(counts) {
                *port.wide(kind).unwrap() = count;
            }
            let mut out = Vec::new();
            port.encode(&mut out, Header::default());
            let raw = Messages::new(&out).next().unwrap().unwrap();
            prop_assert_eq!(raw.header.kind, IF_COUNTERS);
            prop_assert_eq!(PortCounters::decode(raw.payload), Ok(port));
        }

        #[test]
        fn status_survives_the_way(
            (uptime_s, drops) in any::<(u32, u32)>(),
            sequence in of(any::<u32>()),
        ) {
            let status = Status { uptime_s, drops, sequence, unknown: 0 };
            let mut out = Vec::new();
            status.encode(&mut out, Header::default());
            let raw = Messages::new(&out).next().unwrap().unwrap();
            prop_assert_eq!(raw.header.kind, STATUS);
            prop_assert_eq!(Status::decode(raw.payload), Ok(status));
        }

        #[test]
        fn any_payload_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = (Status::decode(&bytes), PortCounters::decode(&bytes));
        }
    }

    #[test]
    fn narrow_numbers_are_read_and_none_is_refused() {
        let mut out = Vec::new();
        let mut w = Writer::new(&mut out, Header::default());
        w.text(PORTNAME, Text(b"eth0")).u8(IFINDEX, 4).u16(RX_PKTS, 512).u8(OPER_UP, 1).u32(77, 1);
        w.finish();
        let raw = Messages::new(&out).next().unwrap().unwrap();
        let port = PortCounters::decode(raw.payload).unwrap();
        assert_eq!((port.name, port.index, port.rx_packets), (Text(b"eth0"), 4, 512));
        assert_eq!((port.oper_up, port.os_index, port.unknown), (true, None, 1));
        let error = PortCounters::decode(&[]).unwrap_err().to_string();
        assert_eq!(error, "byte 0: attribute 1 (the interface's number) is missing");
    }
}
