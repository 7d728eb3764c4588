//! NET_DM: packets that were dropped, and why (generic netlink family `NET_DM`,
//! linux/net_dropmon.h).
//!
//! The kernel's drop monitor sends them once it was started, and so do VPP and this router, whose
//! drops look like a device's: a trap group names the node, the trap its reason.

use thalweg_netlink::wire::{Attribute, Attributes, Generic, Header, MessageError, Writer};
use thalweg_sflow::model::DiscardReason;
use thalweg_sflow::value::Text;

/// The family's name.
pub const FAMILY: &str = "NET_DM";
/// The group that alerts are sent to.
pub const GROUP: &str = "events";
/// Name of the kernel module.
pub const MODULE: &str = "drop_monitor";
/// Maximum length of the name of a trap or group in bytes, without NUL.
pub const MAX_NAME: usize = 63;

const PACKET_ALERT_VERSION: u8 = 0;
const CONTROL_VERSION: u8 = 2;
const CMD_CONFIG: u8 = 2;
const CMD_START: u8 = 3;
const CMD_STOP: u8 = 4;
const CMD_PACKET_ALERT: u8 = 5;
const ALERT_MODE_PACKET: u8 = 1;

const ALERT_MODE: u16 = 1;
const PC: u16 = 2;
const SYMBOL: u16 = 3;
const IN_PORT: u16 = 4;
const TIMESTAMP: u16 = 5;
const PROTO: u16 = 6;
const PAYLOAD: u16 = 7;
const PAD: u16 = 8;
const TRUNC_LEN: u16 = 9;
const ORIG_LEN: u16 = 10;
const QUEUE_LEN: u16 = 11;
const ORIGIN: u16 = 14;
const TRAP_GROUP_NAME: u16 = 15;
const TRAP_NAME: u16 = 16;
const SW_DROPS: u16 = 20;
const HW_DROPS: u16 = 21;
const COOKIE: u16 = 22;
const REASON: u16 = 23;

/// Attribute in an `IN_PORT`.
const PORT_IFINDEX: u16 = 0;
const PORT_NAME: u16 = 1;

/// A dropped packet. Fields that a sender does not know are 0 or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketDrop<'a> {
    /// Interface that it came in by, 0 unknown.
    pub input: u32,
    /// Name of that interface.
    pub input_name: Option<Text<'a>>,
    /// Ethernet type; hsflowd passes over drops without it.
    pub protocol: u16,
    /// The packet's first bytes.
    pub data: &'a [u8],
    /// Bytes of `data` as the sender cut it.
    pub truncated_length: Option<u32>,
    /// Bytes of the packet.
    pub original_length: Option<u32>,
    /// 0 software, 1 hardware.
    pub origin: Option<u16>,
    /// Trap group, if a device or router reports it.
    pub trap_group: Option<Text<'a>>,
    /// Trap name, if a device or router reports it.
    pub trap: Option<Text<'a>>,
    /// Address in the kernel's code.
    pub pc: Option<u64>,
    /// The same as a name.
    pub symbol: Option<Text<'a>>,
    /// Reason, if the kernel reports it.
    pub reason: Option<Text<'a>>,
    /// Nanoseconds since 1970.
    pub timestamp_ns: Option<u64>,
    /// Attributes that are not known here.
    pub unknown: u16,
}

impl<'a> PacketDrop<'a> {
    /// Bytes of the packet, as far as is known.
    #[must_use]
    pub fn length(&self) -> u32 {
        self.original_length.unwrap_or(0).max(self.data.len() as u32)
    }

    /// Reads what follows the message's header; `None` if it is not about a packet.
    ///
    /// # Errors
    /// If its lengths are wrong.
    pub fn decode(payload: &'a [u8]) -> Result<Option<Self>, MessageError> {
        let (generic, attributes) = Generic::split(payload)?;
        if generic.command != CMD_PACKET_ALERT {
            return Ok(None);
        }
        let mut drop = PacketDrop::default();
        for attribute in Attributes::new(attributes) {
            let a = attribute?;
            match a.kind {
                IN_PORT => drop.port(&a)?,
                PROTO => drop.protocol = a.u16()?,
                PAYLOAD => drop.data = a.value,
                TRUNC_LEN => drop.truncated_length = Some(a.u32()?),
                ORIG_LEN => drop.original_length = Some(a.u32()?),
                ORIGIN => drop.origin = Some(a.u16()?),
                TRAP_GROUP_NAME => drop.trap_group = Some(Text(a.text())),
                TRAP_NAME => drop.trap = Some(Text(a.text())),
                PC => drop.pc = Some(a.u64()?),
                SYMBOL => drop.symbol = Some(Text(a.text())),
                REASON => drop.reason = Some(Text(a.text())),
                TIMESTAMP => drop.timestamp_ns = Some(a.u64()?),
                PAD | COOKIE => {}
                _ => drop.unknown = drop.unknown.saturating_add(1),
            }
        }
        Ok(Some(drop))
    }

    /// The port: attributes in the kernel's messages, a bare number in VPP's.
    fn port(&mut self, a: &Attribute<'a>) -> Result<(), MessageError> {
        // Old kernels do not flag what is nested, but it is longer than a number.
        if !a.nested && !looks_nested(a.value) {
            self.input = a.u32()?;
            return Ok(());
        }
        for inner in a.attributes() {
            let inner = inner?;
            match inner.kind {
                PORT_IFINDEX => self.input = inner.u32()?,
                PORT_NAME => self.input_name = Some(Text(inner.text())),
                _ => {}
            }
        }
        Ok(())
    }

    /// Appends the message, its port nested as the kernel does it.
    pub fn encode(&self, out: &mut Vec<u8>, header: Header) {
        let generic = Generic { command: CMD_PACKET_ALERT, version: PACKET_ALERT_VERSION };
        let mut w = Writer::generic(out, header, generic);
        if let Some(pc) = self.pc {
            w.u64(PC, pc);
        }
        if let Some(symbol) = self.symbol {
            w.text(SYMBOL, symbol);
        }
        if self.input != 0 || self.input_name.is_some() {
            w.nest(IN_PORT, |w| {
                w.u32(PORT_IFINDEX, self.input);
                if let Some(name) = self.input_name {
                    w.text(PORT_NAME, name);
                }
            });
        }
        if let Some(at) = self.timestamp_ns {
            w.u64(TIMESTAMP, at);
        }
        w.u16(PROTO, self.protocol).bytes(PAYLOAD, self.data);
        for (kind, value) in [(TRUNC_LEN, self.truncated_length), (ORIG_LEN, self.original_length)]
        {
            if let Some(value) = value {
                w.u32(kind, value);
            }
        }
        if let Some(origin) = self.origin {
            w.u16(ORIGIN, origin);
        }
        for (kind, name) in
            [(TRAP_GROUP_NAME, self.trap_group), (TRAP_NAME, self.trap), (REASON, self.reason)]
        {
            if let Some(name) = name {
                w.text(kind, name);
            }
        }
        w.finish();
    }
}

/// True if bytes that are not flagged can be attributes: with an index of the usual width, not 0.
fn looks_nested(value: &[u8]) -> bool {
    let mut index = false;
    let fits = Attributes::new(value).all(|a| {
        a.is_ok_and(|a| {
            index |= a.kind == PORT_IFINDEX && a.value.len() == 4 && a.value != [0; 4];
            a.kind <= PORT_NAME
        })
    });
    fits && index
}

/// Requests to the kernel's drop monitor, in the order in which it must get them. Each is a message
/// to the family with its header still to be filled in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Whole packets rather than counts, with a length and a queue limit. Refused
    /// while the monitor runs.
    Configure {
        /// Bytes of each packet.
        truncate: u32,
        /// Packets that may wait per processor.
        queue: u32,
    },
    /// Begin.
    Start {
        /// The kernel's own drops.
        software: bool,
        /// Drops of devices.
        hardware: bool,
    },
    /// End.
    Stop {
        /// The kernel's own drops.
        software: bool,
        /// Drops of devices.
        hardware: bool,
    },
}

impl Control {
    /// Appends the message.
    pub fn encode(&self, out: &mut Vec<u8>, header: Header) {
        let command = match self {
            Control::Configure { .. } => CMD_CONFIG,
            Control::Start { .. } => CMD_START,
            Control::Stop { .. } => CMD_STOP,
        };
        let generic = Generic { command, version: CONTROL_VERSION };
        let mut w = Writer::generic(out, header, generic);
        match *self {
            Control::Configure { truncate, queue } => {
                w.u8(ALERT_MODE, ALERT_MODE_PACKET).u32(TRUNC_LEN, truncate).u32(QUEUE_LEN, queue);
            }
            Control::Start { software, hardware } | Control::Stop { software, hardware } => {
                for (kind, wanted) in [(SW_DROPS, software), (HW_DROPS, hardware)] {
                    if wanted {
                        w.flag(kind);
                    }
                }
            }
        }
        w.finish();
    }
}

/// A name for a trap or its group, as VPP makes them: `vpp_` and what it is about, in small
/// letters, spaces as underscores, cut to [`MAX_NAME`] bytes.
pub fn trap_name(about: &str, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"vpp_");
    let small = about.bytes().map(|b| match b {
        b if b.is_ascii_whitespace() => b'_',
        0 => b'?',
        b => b.to_ascii_lowercase(),
    });
    out.extend(small.take(MAX_NAME - out.len()));
}

/// The word for a reason: the kernel's (include/net/dropreason-core.h), of those that hsflowd
/// translates back into the same reason; the standard's where the kernel has none, over which
/// hsflowd passes to the trap. `None` if the reason is unknown.
#[must_use]
pub fn reason_word(reason: DiscardReason) -> Option<&'static str> {
    Some(match reason {
        DiscardReason::UNKNOWN => return None,
        DiscardReason::NET_UNREACHABLE => "IP_INNOROUTES",
        DiscardReason::HOST_UNREACHABLE => "IP_INADDRERRORS",
        DiscardReason::PORT_UNREACHABLE => "NO_SOCKET",
        DiscardReason::DST_HOST_UNKNOWN => "OTHERHOST",
        DiscardReason::ACL => "NETFILTER_DROP",
        DiscardReason::NO_BUFFER_SPACE => "NOMEM",
        DiscardReason::TRAFFIC_SHAPING => "QDISC_DROP",
        DiscardReason::PKT_TOO_BIG => "PKT_TOO_BIG",
        DiscardReason::UC_DIP_OVER_MC_DMAC => "UNICAST_IN_L2_MULTICAST",
        DiscardReason::UNRESOLVED_NEIGH => "NEIGH_FAILED",
        DiscardReason::IP_1_PARSING => "IP_INHDR",
        DiscardReason::UDP_PARSING => "UDP_CSUM",
        DiscardReason::TCP_PARSING => "TCP_CSUM",
        DiscardReason::PKT_TOO_SMALL => "PKT_TOO_SMALL",
        DiscardReason::UNHANDLED_PROTO => "UNHANDLED_PROTO",
        DiscardReason::INVALID_PROTO => "INVALID_PROTO",
        DiscardReason::IP_NOPROTO => "IP_NOPROTO",
        DiscardReason::SKB_CSUM => "SKB_CSUM",
        DiscardReason::SKB_GSO_SEG => "SKB_GSO_SEG",
        DiscardReason::DEV_READY => "DEV_READY",
        DiscardReason::DEV_HDR => "DEV_HDR",
        other => return other.name(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::option::of;
    use proptest::prelude::*;
    use thalweg_netlink::wire::Messages;

    fn name() -> impl Strategy<Value = Option<String>> {
        of("[ -~]{0,63}")
    }

    proptest! {
        #[test]
        fn drops_survive_the_way(
            input in 1..=u32::MAX,
            (input_name, symbol, reason) in (name(), name(), name()),
            (trap_group, trap) in (name(), name()),
            (protocol, origin) in (any::<u16>(), of(any::<u16>())),
            data in prop::collection::vec(any::<u8>(), 0..260),
            (truncated_length, original_length) in (of(any::<u32>()), of(any::<u32>())),
            (pc, timestamp_ns) in (of(any::<u64>()), of(any::<u64>())),
        ) {
            fn text(name: &Option<String>) -> Option<Text<'_>> {
                name.as_deref().map(Text::from)
            }
            let drop = PacketDrop {
                input, input_name: text(&input_name), protocol, data: &data, truncated_length,
                original_length, origin, trap_group: text(&trap_group), trap: text(&trap), pc,
                symbol: text(&symbol), reason: text(&reason), timestamp_ns, unknown: 0,
            };
            let mut out = Vec::new();
            drop.encode(&mut out, Header { kind: 33, ..Header::default() });
            let raw = Messages::new(&out).next().unwrap().unwrap();
            prop_assert_eq!(PacketDrop::decode(raw.payload), Ok(Some(drop)));
        }

        #[test]
        fn any_payload_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = PacketDrop::decode(&bytes);
        }

        #[test]
        fn names_fit(about in ".{0,100}") {
            let mut out = Vec::new();
            trap_name(&about, &mut out);
            prop_assert!(out.len() <= MAX_NAME && !out.contains(&b' ') && !out.contains(&0));
        }
    }

    fn decode(fill: impl FnOnce(&mut Writer<'_>)) -> Result<PacketDrop<'static>, MessageError> {
        let mut out = Vec::new();
        let generic = Generic { command: CMD_PACKET_ALERT, version: 0 };
        let mut w = Writer::generic(&mut out, Header::default(), generic);
        fill(&mut w);
        w.finish();
        let out: &'static [u8] = out.leak();
        let raw = Messages::new(out).next().unwrap().unwrap();
        PacketDrop::decode(raw.payload).map(Option::unwrap)
    }

    #[test]
    fn every_form_of_the_port_is_read() {
        let input = |fill: fn(&mut Writer<'_>)| decode(fill).map(|drop| drop.input);
        let bare = |w: &mut Writer<'_>| {
            w.u32(IN_PORT, 4);
        };
        assert_eq!(input(bare), Ok(4));
        let wide = |w: &mut Writer<'_>| {
            w.u64(IN_PORT, 5);
        };
        assert_eq!(input(wide), Ok(5));
        let nested = |w: &mut Writer<'_>| {
            w.nest(IN_PORT, |w| {
                w.u32(PORT_IFINDEX, 6).text(PORT_NAME, Text(b"eth6")).u32(9, 9);
            });
        };
        assert_eq!(input(nested), Ok(6));
        assert_eq!(decode(nested).unwrap().input_name, Some(Text(b"eth6")));
        // Nested, but not flagged.
        let unflagged = |w: &mut Writer<'_>| {
            w.bytes(IN_PORT, &[8u16.to_ne_bytes(), [0, 0], 7u16.to_ne_bytes(), [0, 0]].concat());
        };
        assert_eq!(input(unflagged), Ok(7));
    }

    #[test]
    fn other_commands_and_attributes_are_passed_over() {
        assert_eq!(PacketDrop::decode(&[1, 0, 0, 0]), Ok(None));
        let drop = decode(|w| {
            w.u32(PAD, 0).bytes(COOKIE, b"x").u32(77, 0).bytes(PAYLOAD, &[1; 60]);
        });
        let drop = drop.unwrap();
        assert_eq!((drop.unknown, drop.length()), (1, 60));
        assert!(decode(drop_of_three).is_err());
    }

    fn drop_of_three(w: &mut Writer<'_>) {
        w.bytes(ORIG_LEN, &[1, 2, 3]);
    }

    #[test]
    fn control_messages_are_what_the_kernel_takes() {
        let attributes = |control: Control| -> Vec<(u16, Vec<u8>)> {
            let mut out = Vec::new();
            control.encode(&mut out, Header::default());
            let raw = Messages::new(&out).next().unwrap().unwrap();
            let (_, rest) = Generic::split(raw.payload).unwrap();
            Attributes::new(rest).map(|a| a.unwrap()).map(|a| (a.kind, a.value.to_vec())).collect()
        };
        let configure = attributes(Control::Configure { truncate: 128, queue: 1000 });
        let word = |n: u32| n.to_ne_bytes().to_vec();
        assert_eq!(configure, [(1, vec![1]), (9, word(128)), (11, word(1000))]);
        let start = attributes(Control::Start { software: true, hardware: false });
        assert_eq!(start, [(20, vec![])]);
    }

    #[test]
    fn words_are_not_ambiguous() {
        let words = DiscardReason::ALL.iter().filter_map(|(reason, _)| reason_word(*reason));
        let mut words: Vec<&str> = words.collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!((count, words.len()), (DiscardReason::ALL.len() - 1, count), "{words:?}");
        assert_eq!(reason_word(DiscardReason::TTL_EXCEEDED), Some("ttl_exceeded"));
    }

    #[test]
    fn names_are_those_of_vpp() {
        let mut out = Vec::new();
        trap_name("IP4 TTL <= 1", &mut out);
        assert_eq!(out, b"vpp_ip4_ttl_<=_1");
        trap_name("ip4-input", &mut out);
        assert_eq!(out, b"vpp_ip4-input");
    }
}
