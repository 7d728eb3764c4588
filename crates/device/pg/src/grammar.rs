//! Packet descriptions in the syntax of VPP's packet generator:
//!
//! ```text
//! IP4: 2.0.aa -> 2fe.0.0 [vlan 10]
//!   UDP: 10.0.0.1 - 10.0.0.99 -> 48.0.0.0 + 48.0.3.255 ttl 3
//!     UDP: 1234 -> 4321 incrementing 22
//! MPLS: 2.0.aa -> 2fe.0.0 label 16 ttl 9 label 17 IP4: UDP: 10.0.0.1 -> 48.0.0.1 UDP: 1 -> 2
//! ```
//!
//! `-` counts through a range, `+` draws from it. Each line above is one layer; what is not given
//! (lengths, checksums) is derived from the rest.

use crate::error::PgError;
use crate::scan::{Scan, Span};
use crate::template::{Field, Layers, Network, Payload, Transport, TransportKind};
use thalweg_wire::mpls::{Entry, Label, MAX_LABEL};

/// The outermost layer of a description.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outermost {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 header.
    Ip4,
    /// An IPv6 header.
    Ip6,
}

/// Parses a description.
///
/// # Errors
/// [`PgError::Data`] names what was expected; [`PgError::Range`] names a field.
pub fn parse(text: &str, outermost: Outermost) -> Result<Layers, PgError> {
    let mut p = Parser { s: Scan::new(text), out: Layers::default() };
    if !p.at_payload() {
        match outermost {
            Outermost::Ethernet => p.ethernet()?,
            Outermost::Ip4 => p.ip4()?,
            Outermost::Ip6 => p.ip6()?,
        }
    }
    p.payload()?;
    if p.s.is_end() { Ok(p.out) } else { Err(p.s.error("the end of the description")) }
}

struct Parser<'a> {
    s: Scan<'a>,
    out: Layers,
}

impl Parser<'_> {
    /// Appends a field. If it varies, its bytes are zero and filled in for each packet.
    fn field(&mut self, what: &str, bits: usize, span: Span<u64>) -> Result<(), PgError> {
        let offset = self.out.headers.len();
        self.out.headers.resize(offset + bits / 8, 0);
        self.set(what, offset, bits, span)
    }

    /// Sets an existing field at `offset`.
    fn set(
        &mut self,
        what: &str,
        offset: usize,
        bits: usize,
        span: Span<u64>,
    ) -> Result<(), PgError> {
        let Span { low, high, vary } = span;
        if high < low || (bits < 64 && high >> bits != 0) {
            return Err(PgError::Range { what: what.into(), bits, low, high });
        }
        let width = bits / 8;
        self.out.fields.retain(|f| f.offset != offset);
        let fixed = if low == high { low } else { 0 };
        self.out.headers[offset..offset + width].copy_from_slice(&fixed.to_be_bytes()[8 - width..]);
        if low != high {
            self.out.fields.push(Field { offset, width, low, high, vary });
        }
        Ok(())
    }

    /// Parses a number or range into an existing field at `offset`.
    fn option(&mut self, what: &str, offset: usize, bits: usize) -> Result<(), PgError> {
        let span = self.s.number()?;
        self.set(what, offset, bits, span)
    }

    fn arrow(&mut self) -> Result<(), PgError> {
        if self.s.mark("->") { Ok(()) } else { Err(self.s.error("`->'")) }
    }

    fn at_payload(&self) -> bool {
        matches!(self.s.peek_word(), "incrementing" | "hex") || self.s.is_end()
    }

    fn ethernet(&mut self) -> Result<(), PgError> {
        let expected = "an Ethernet type (IP4:, IP6:, ARP:, MPLS: or 0x1234:)";
        let mut s = self.s.clone();
        let label = s.label().ok_or_else(|| self.s.error(expected))?;
        let ethertype = match label.to_ascii_uppercase().as_str() {
            "IP4" => 0x0800,
            "IP6" => 0x86dd,
            "ARP" => 0x0806,
            "MPLS" => 0x8847,
            other => {
                let hex = other.strip_prefix("0X").and_then(|h| u16::from_str_radix(h, 16).ok());
                hex.or_else(|| other.parse().ok()).ok_or_else(|| self.s.error(expected))?
            }
        };
        self.s = s;
        let src = self.s.mac()?;
        self.arrow()?;
        let dst = self.s.mac()?;
        self.field("destination MAC address", 48, dst)?;
        self.field("source MAC address", 48, src)?;
        while self.s.keyword("vlan") {
            self.vlan()?;
        }
        self.out.headers.extend(u16::to_be_bytes(ethertype));
        match ethertype {
            _ if self.at_payload() => Ok(()),
            0x0800 => self.ip4(),
            0x86dd => self.ip6(),
            0x0806 => self.arp(),
            0x8847 => self.mpls(),
            _ => Ok(()),
        }
    }

    /// `label N [exp N] [s N] [ttl N]` for each entry of the stack, RFC 3032, then `IP4:` or `IP6:`
    /// and that header, or a payload. The last entry is the bottom unless `s` says otherwise.
    fn mpls(&mut self) -> Result<(), PgError> {
        let mut bottom = None;
        while self.s.keyword("label") {
            let label = self.s.one(0, u64::from(MAX_LABEL.get()))? as u32;
            let (mut class, mut said, mut ttl) = (0, None, 64);
            loop {
                if self.s.keyword("exp") {
                    class = self.s.one(0, 7)? as u8;
                } else if self.s.keyword("s") {
                    said = Some(self.s.one(0, 1)? == 1);
                } else if self.s.keyword("ttl") {
                    ttl = self.s.one(0, 255)? as u8;
                } else {
                    break;
                }
            }
            bottom = said.is_none().then_some(self.out.headers.len() + 2);
            let entry = Entry::new(Label(label), class, said.unwrap_or(false), ttl);
            self.out.headers.extend(entry.0.to_be_bytes());
        }
        if let Some(at) = bottom {
            self.out.headers[at] |= 1;
        }
        if self.at_payload() {
            return Ok(());
        }
        let mut s = self.s.clone();
        let header = match s.label() {
            Some("IP4") => Parser::ip4,
            Some("IP6") => Parser::ip6,
            _ => return Err(self.s.error("`label' and a number, IP4:, IP6:, or a payload")),
        };
        self.s = s;
        header(self)
    }

    /// An 802.1Q tag after the word `vlan`.
    fn vlan(&mut self) -> Result<(), PgError> {
        let id = self.s.number()?;
        if id.high > 4095 {
            let Span { low, high, .. } = id;
            return Err(PgError::Range { what: "VLAN".into(), bits: 12, low, high });
        }
        let mut upper = 0;
        loop {
            if self.s.keyword("vlan-priority") {
                upper |= self.s.one(0, 7)? << 13;
            } else if self.s.keyword("vlan-cfi") {
                upper |= 1 << 12;
            } else {
                break;
            }
        }
        self.out.headers.extend(u16::to_be_bytes(0x8100));
        self.field("VLAN", 16, id.map(|id| id | upper))
    }

    /// `request: MAC/IP -> MAC/IP`, RFC 826.
    fn arp(&mut self) -> Result<(), PgError> {
        let expected = "an ARP operation (request: or reply:)";
        let mut s = self.s.clone();
        let operation = match s.label() {
            Some("request") => 1,
            Some("reply") => 2,
            _ => return Err(self.s.error(expected)),
        };
        self.s = s;
        self.out.headers.extend([0, 1, 8, 0, 6, 4, 0, operation]);
        for (i, whose) in ["sender's", "target's"].iter().enumerate() {
            if i == 1 {
                self.arrow()?;
            }
            let mac = self.s.mac()?;
            if !self.s.mark("/") {
                return Err(self.s.error("`/' and an IPv4 address"));
            }
            let ip = self.s.ip4()?.map(|a| u64::from(u32::from(a)));
            self.field(&format!("the {whose} MAC address"), 48, mac)?;
            self.field(&format!("the {whose} IPv4 address"), 32, ip)?;
        }
        Ok(())
    }

    /// `UDP: address -> address`: the protocol, RFC 791.
    fn ip4(&mut self) -> Result<(), PgError> {
        let protocol = self.protocol()?;
        let at = self.out.headers.len();
        self.out.headers.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
        let mut network = Network { offset: at, v6: false, length: true, checksum: true };
        let as_number = |a: std::net::Ipv4Addr| u64::from(u32::from(a));
        if self.at_address() {
            let src = self.s.ip4()?;
            self.arrow()?;
            let dst = self.s.ip4()?;
            self.field("source address", 32, src.map(as_number))?;
            self.field("destination address", 32, dst.map(as_number))?;
        } else {
            self.out.headers.extend([0; 8]);
        }
        loop {
            let flag = |p: &mut Self, bit: u8| p.out.headers[at + 6] |= bit;
            if self.s.keyword("tos") {
                self.option("tos", at + 1, 8)?;
            } else if self.s.keyword("ttl") {
                self.option("ttl", at + 8, 8)?;
            } else if self.s.keyword("length") {
                self.option("length", at + 2, 16)?;
                network.length = false;
            } else if self.s.keyword("checksum") {
                self.option("checksum", at + 10, 16)?;
                network.checksum = false;
            } else if self.s.keyword("version") {
                let low = self.out.headers[at] & 0x0f;
                self.out.headers[at] = (self.s.one(0, 15)? as u8) << 4 | low;
            } else if self.s.keyword("header-length") {
                let high = self.out.headers[at] & 0xf0;
                self.out.headers[at] = high | self.s.one(0, 15)? as u8;
            } else if self.s.keyword("fragment") {
                self.fragment(at)?;
            } else if self.s.keyword("mf") || self.s.keyword("MF") {
                flag(self, 0x20);
            } else if self.s.keyword("df") || self.s.keyword("DF") {
                flag(self, 0x40);
            } else if self.s.keyword("ce") || self.s.keyword("CE") {
                flag(self, 0x80);
            } else {
                break;
            }
        }
        self.out.network = Some(network);
        self.transport(protocol, &["UDP", "TCP", "ICMP"])
    }

    /// `fragment id N offset BYTES`
    fn fragment(&mut self, at: usize) -> Result<(), PgError> {
        if self.s.keyword("id") {
            self.option("fragment id", at + 4, 16)?;
        }
        if self.s.keyword("offset") {
            let words = (self.s.one(0, 65_528)? / 8) as u16;
            let flags = self.out.headers[at + 6] & 0xe0;
            self.out.headers[at + 6] = flags | (words >> 8) as u8;
            self.out.headers[at + 7] = words as u8;
        }
        Ok(())
    }

    /// `UDP: address -> address`, RFC 8200. A range may change the last 64 bits.
    fn ip6(&mut self) -> Result<(), PgError> {
        let protocol = self.protocol()?;
        let at = self.out.headers.len();
        self.out.headers.extend([0x60, 0, 0, 0, 0, 0, protocol, 64]);
        let mut network = Network { offset: at, v6: true, length: true, checksum: false };
        let src = self.s.ip6()?;
        self.arrow()?;
        let dst = self.s.ip6()?;
        for (what, span) in [("source", src), ("destination", dst)] {
            let span = span.map(u128::from);
            if span.low >> 64 != span.high >> 64 {
                let expected = "two IPv6 addresses that share their first 64 bits";
                return Err(self.s.error(expected));
            }
            self.out.headers.extend(((span.low >> 64) as u64).to_be_bytes());
            self.field(&format!("{what} address"), 64, span.map(|a| a as u64))?;
        }
        loop {
            if self.s.keyword("hop-limit") || self.s.keyword("ttl") {
                self.option("hop limit", at + 7, 8)?;
            } else if self.s.keyword("length") {
                self.option("length", at + 4, 16)?;
                network.length = false;
            } else if self.s.keyword("traffic-class") {
                let class = self.s.one(0, 255)? as u8;
                self.out.headers[at] = 0x60 | class >> 4;
                self.out.headers[at + 1] = class << 4;
            } else {
                break;
            }
        }
        self.out.network = Some(network);
        self.transport(protocol, &["UDP", "TCP", "ICMP6"])
    }

    fn at_address(&self) -> bool {
        self.s.peek_word().parse::<std::net::Ipv4Addr>().is_ok()
    }

    fn protocol(&mut self) -> Result<u8, PgError> {
        let expected = "an IP protocol (UDP:, TCP:, ICMP: or a number and a colon)";
        let mut s = self.s.clone();
        let label = s.label().ok_or_else(|| self.s.error(expected))?;
        let protocol = match label.to_ascii_uppercase().as_str() {
            "ICMP" => 1,
            "TCP" => 6,
            "UDP" => 17,
            "GRE" => 47,
            "ESP" => 50,
            "ICMP6" => 58,
            other => other.parse().map_err(|_| self.s.error(expected))?,
        };
        self.s = s;
        Ok(protocol)
    }

    /// Header of a known protocol; anything else is payload.
    fn transport(&mut self, protocol: u8, known: &[&str]) -> Result<(), PgError> {
        let kind = match protocol {
            _ if self.at_payload() => return Ok(()),
            17 => TransportKind::Udp,
            6 => TransportKind::Tcp,
            1 if known.contains(&"ICMP") => TransportKind::Icmp,
            58 if known.contains(&"ICMP6") => TransportKind::Icmp6,
            _ => return Ok(()),
        };
        let offset = self.out.headers.len();
        let length = kind == TransportKind::Udp;
        let mut t = Transport { offset, kind, length, checksum: true };
        match kind {
            TransportKind::Udp => self.udp(&mut t)?,
            TransportKind::Tcp => self.tcp(&mut t)?,
            TransportKind::Icmp | TransportKind::Icmp6 => self.icmp(&mut t)?,
        }
        self.out.transport = Some(t);
        Ok(())
    }

    /// `UDP: port -> port`
    fn ports(&mut self, label: &str) -> Result<(), PgError> {
        let mut s = self.s.clone();
        if !s.label().is_some_and(|l| l.eq_ignore_ascii_case(label)) {
            return Err(self.s.error(format!("`{label}:' with two ports, or a payload")));
        }
        self.s = s;
        let src = self.s.number()?;
        self.arrow()?;
        let dst = self.s.number()?;
        self.field("source port", 16, src)?;
        self.field("destination port", 16, dst)
    }

    fn udp(&mut self, t: &mut Transport) -> Result<(), PgError> {
        self.ports("UDP")?;
        self.out.headers.extend([0; 4]);
        loop {
            if self.s.keyword("length") {
                self.option("length", t.offset + 4, 16)?;
                t.length = false;
            } else if self.s.keyword("checksum") {
                self.option("checksum", t.offset + 6, 16)?;
                t.checksum = false;
            } else {
                return Ok(());
            }
        }
    }

    fn tcp(&mut self, t: &mut Transport) -> Result<(), PgError> {
        self.ports("TCP")?;
        self.out.headers.extend([0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0, 0xff, 0xff, 0, 0, 0, 0]);
        const FLAGS: [&str; 8] = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        loop {
            let at = t.offset;
            let mut s = self.s.clone();
            let flag = FLAGS.iter().position(|f| s.keyword(f) || s.keyword(&f.to_lowercase()));
            if let Some(bit) = flag {
                self.s = s;
                self.out.headers[at + 13] |= 1 << bit;
                continue;
            }
            if self.s.keyword("seqno") {
                self.option("seqno", at + 4, 32)?;
            } else if self.s.keyword("ackno") {
                self.option("ackno", at + 8, 32)?;
            } else if self.s.keyword("window") {
                self.option("window", at + 14, 16)?;
            } else if self.s.keyword("urgent") {
                self.option("urgent", at + 18, 16)?;
            } else if self.s.keyword("checksum") {
                self.option("checksum", at + 16, 16)?;
                t.checksum = false;
            } else {
                return Ok(());
            }
        }
    }

    /// `ICMP echo_request [code N] [id N] [seq N]`, with the types of the IP version.
    fn icmp(&mut self, t: &mut Transport) -> Result<(), PgError> {
        let mut s = self.s.clone();
        let is_name = |l: &str| l.eq_ignore_ascii_case("ICMP") || l.eq_ignore_ascii_case("ICMP6");
        let named = s.label().is_some_and(is_name);
        if !(named || ["ICMP", "icmp", "ICMP6", "icmp6"].iter().any(|word| s.keyword(word))) {
            return Err(self.s.error("`ICMP' with a type, or a payload"));
        }
        self.s = s;
        let v6 = t.kind == TransportKind::Icmp6;
        let kind = match self.s.peek_word() {
            "echo_request" => [8, 128],
            "echo_reply" => [0, 129],
            "destination_unreachable" => [3, 1],
            "time_exceeded" => [11, 3],
            word => {
                [word.parse::<u8>().map_err(|_| {
                    self.s.error("an ICMP type (echo_request, echo_reply, … or a number)")
                })?; 2]
            }
        };
        let kind = kind[usize::from(v6)];
        self.s.span("a word", |w| Some(w.len()))?;
        self.out.headers.extend([kind, 0, 0, 0, 0, 0, 0, 0]);
        loop {
            let at = t.offset;
            if self.s.keyword("code") {
                self.option("code", at + 1, 8)?;
            } else if self.s.keyword("id") {
                self.option("id", at + 4, 16)?;
            } else if self.s.keyword("seq") {
                self.option("seq", at + 6, 16)?;
            } else if self.s.keyword("checksum") {
                self.option("checksum", at + 2, 16)?;
                t.checksum = false;
            } else {
                return Ok(());
            }
        }
    }

    fn payload(&mut self) -> Result<(), PgError> {
        if self.s.keyword("incrementing") {
            self.out.payload = Payload::Incrementing(self.s.one(1, 65_535)? as u16);
        } else if self.s.keyword("hex") {
            self.out.payload = Payload::Bytes(self.s.hex()?);
        }
        Ok(())
    }
}
