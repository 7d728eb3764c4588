//! Flow records that hold lists: BGP, MPLS, stripped VLAN tags, users and URLs.

use std::fmt;

use crate::value::{Address, Name, Record, Text, Value, Visitor, name};
use crate::xdr::{DecodeError, Reader, Writer};

fn words(r: &mut Reader<'_>, what: &'static str) -> Result<Vec<u32>, DecodeError> {
    let count = r.count(4, what)?;
    (0..count).map(|_| r.u32(what)).collect()
}

fn put_words(w: &mut Writer<'_>, words: &[u32]) {
    w.u32(words.len() as u32);
    for word in words {
        w.u32(*word);
    }
}

/// Shows a list as its items with `-` between them.
struct Dashed<'v, F>(&'v [u32], F);

impl<F: Fn(u32, &mut fmt::Formatter<'_>) -> fmt::Result> fmt::Display for Dashed<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, word) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("-")?;
            }
            (self.1)(*word, f)?;
        }
        Ok(())
    }
}

fn visit_words<V: Visitor>(
    v: &mut V,
    name: &'static Name,
    words: &[u32],
    show: impl Fn(u32, &mut fmt::Formatter<'_>) -> fmt::Result,
) {
    if !words.is_empty() {
        v.field(name, Value::Display(&Dashed(words, show)));
    }
}

/// A piece of a BGP AS path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AsPathSegment {
    /// 1 is an unordered set, 2 a sequence.
    pub kind: u32,
    /// AS numbers.
    pub numbers: Vec<u32>,
}

/// BGP attributes of the route taken.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtendedGateway {
    /// BGP next hop.
    pub next_hop: Address,
    /// AS of the router.
    pub router_as: u32,
    /// AS of the source.
    pub source_as: u32,
    /// AS of the peer towards the source.
    pub source_peer_as: u32,
    /// Path to the destination.
    pub path: Vec<AsPathSegment>,
    /// Communities.
    pub communities: Vec<u32>,
    /// Local preference.
    pub local_preference: u32,
}

impl ExtendedGateway {
    /// AS of the destination: the last one of the path, 0 when it is empty.
    #[must_use]
    pub fn destination_as(&self) -> u32 {
        self.path.last().and_then(|s| s.numbers.last()).copied().unwrap_or(0)
    }

    /// AS of the peer towards the destination: the first one of the path, 0 when it is empty.
    #[must_use]
    pub fn destination_peer_as(&self) -> u32 {
        self.path.first().and_then(|s| s.numbers.first()).copied().unwrap_or(0)
    }
}

/// `1-2(3-4)`: sets stand in parentheses, which set them apart from their neighbours.
struct AsPath<'v>(&'v [AsPathSegment]);

impl fmt::Display for AsPath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut open = false;
        for segment in self.0 {
            let set = segment.kind == 1;
            if set {
                f.write_str("(")?;
            }
            for (i, number) in segment.numbers.iter().enumerate() {
                // A sequence that is longer than a segment goes on in the next.
                if i > 0 || (open && !set) {
                    f.write_str("-")?;
                }
                write!(f, "{number}")?;
            }
            if set {
                f.write_str(")")?;
            }
            open = !set && (open || !segment.numbers.is_empty());
        }
        Ok(())
    }
}

impl<'a> Record<'a> for ExtendedGateway {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let next_hop = Address(r.address("bgp_nexthop")?);
        let router_as = r.u32("my_as")?;
        let source_as = r.u32("src_as")?;
        let source_peer_as = r.u32("src_peer_as")?;
        let count = r.count(8, "dst_as_path")?;
        let mut path = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let kind = r.u32("AS path segment type")?;
            path.push(AsPathSegment { kind, numbers: words(r, "AS path segment")? });
        }
        let communities = words(r, "BGP_communities")?;
        let local_preference = r.u32("BGP_localpref")?;
        Ok(ExtendedGateway {
            next_hop,
            router_as,
            source_as,
            source_peer_as,
            path,
            communities,
            local_preference,
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.address(self.next_hop.0);
        w.u32(self.router_as);
        w.u32(self.source_as);
        w.u32(self.source_peer_as);
        w.u32(self.path.len() as u32);
        for segment in &self.path {
            w.u32(segment.kind);
            put_words(w, &segment.numbers);
        }
        put_words(w, &self.communities);
        w.u32(self.local_preference);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        v.field(name!("extendedType"), Value::Str("GATEWAY"));
        v.field(name!("bgp_nexthop"), Value::Address(self.next_hop.0));
        v.field(name!("my_as"), Value::U32(self.router_as));
        v.field(name!("src_as"), Value::U32(self.source_as));
        v.field(name!("src_peer_as"), Value::U32(self.source_peer_as));
        if !self.path.is_empty() {
            v.field(name!("dst_as_path"), Value::Display(&AsPath(&self.path)));
        }
        v.field(name!("dst_as"), Value::U32(self.destination_as()));
        v.field(name!("dst_peer_as"), Value::U32(self.destination_peer_as()));
        visit_words(v, name!("BGP_communities"), &self.communities, |word, f| write!(f, "{word}"));
        v.field(name!("BGP_localpref"), Value::U32(self.local_preference));
    }
}

/// MPLS label stacks before and after forwarding. An entry is a label stack entry of RFC 3032.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExtendedMpls {
    /// Next hop.
    pub next_hop: Address,
    /// Stack of the packet as it came.
    pub input: Vec<u32>,
    /// Stack of the packet as it went.
    pub output: Vec<u32>,
}

fn show_label(entry: u32, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    write!(f, "{}.{}.{}.{}", entry >> 12, entry >> 9 & 7, entry >> 8 & 1, entry & 255)
}

impl<'a> Record<'a> for ExtendedMpls {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ExtendedMpls {
            next_hop: Address(r.address("mpls_nexthop")?),
            input: words(r, "mpls_input_stack")?,
            output: words(r, "mpls_output_stack")?,
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.address(self.next_hop.0);
        put_words(w, &self.input);
        put_words(w, &self.output);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        v.field(name!("extendedType"), Value::Str("MPLS"));
        v.field(name!("mpls_nexthop"), Value::Address(self.next_hop.0));
        visit_words(v, name!("mpls_input_stack"), &self.input, show_label);
        visit_words(v, name!("mpls_output_stack"), &self.output, show_label);
    }
}

/// VLAN tags that were stripped, outermost first: TPID in the upper half, TCI in the lower.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VlanTunnel(pub Vec<u32>);

impl VlanTunnel {
    pub(super) fn visit_as<V: Visitor>(&self, prefix: &str, name: &'static Name, v: &mut V) {
        let tags = Dashed(&self.0, |tag: u32, f: &mut fmt::Formatter<'_>| {
            let (tpid, tci) = (tag >> 16, tag & 0xffff);
            write!(f, "0x{tpid:04x}.{}.{}.{}", tci >> 13, tci >> 12 & 1, tci & 4095)
        });
        if !self.0.is_empty() {
            v.prefixed(prefix, name, Value::Display(&tags));
        }
    }
}

impl<'a> Record<'a> for VlanTunnel {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        words(r, "vlan_tunnel").map(VlanTunnel)
    }
    fn encode(&self, w: &mut Writer<'_>) {
        put_words(w, &self.0);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        self.visit_as("", name!("vlan_tunnel"), v);
    }
}

/// Users at both ends; character sets are IANA MIBenum numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedUser<'a> {
    /// Character set of the source user.
    pub source_charset: u32,
    /// Source user.
    pub source: Text<'a>,
    /// Character set of the destination user.
    pub destination_charset: u32,
    /// Destination user.
    pub destination: Text<'a>,
}

impl<'a> Record<'a> for ExtendedUser<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ExtendedUser {
            source_charset: r.u32("src_user_charset")?,
            source: Text(r.opaque("src_user")?),
            destination_charset: r.u32("dst_user_charset")?,
            destination: Text(r.opaque("dst_user")?),
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.source_charset);
        w.opaque(self.source.0);
        w.u32(self.destination_charset);
        w.opaque(self.destination.0);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        v.field(name!("extendedType"), Value::Str("USER"));
        v.field(name!("src_user_charset"), Value::U32(self.source_charset));
        v.field(name!("dst_user_charset"), Value::U32(self.destination_charset));
        v.field(name!("src_user"), Value::Text(self.source.0));
        v.field(name!("dst_user"), Value::Text(self.destination.0));
    }
}

/// The URL of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ExtendedUrl<'a> {
    /// 1 when the source of the packet is the server, 2 when the destination is.
    pub direction: u32,
    /// URL.
    pub url: Text<'a>,
    /// Host.
    pub host: Text<'a>,
}

impl<'a> Record<'a> for ExtendedUrl<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(ExtendedUrl {
            direction: r.u32("url_direction")?,
            url: Text(r.opaque("url")?),
            host: Text(r.opaque("host")?),
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.direction);
        w.opaque(self.url.0);
        w.opaque(self.host.0);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        v.field(name!("extendedType"), Value::Str("URL"));
        v.field(name!("url_direction"), Value::U32(self.direction));
        v.field(name!("url"), Value::Text(self.url.0));
        v.field(name!("host"), Value::Text(self.host.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_autonomous_systems_stand_apart() {
        let path = |segments: &[(u32, &[u32])]| {
            let segment = |(kind, numbers): &(u32, &[u32])| AsPathSegment {
                kind: *kind,
                numbers: numbers.to_vec(),
            };
            AsPath(&segments.iter().map(segment).collect::<Vec<_>>()).to_string()
        };
        assert_eq!(path(&[(2, &[1, 2, 3]), (1, &[7, 8])]), "1-2-3(7-8)");
        assert_eq!(path(&[(1, &[7, 8]), (2, &[9])]), "(7-8)9");
        assert_eq!(path(&[(1, &[7]), (1, &[8])]), "(7)(8)");
        assert_eq!(path(&[(2, &[1, 2]), (2, &[3])]), "1-2-3");
        assert_eq!(path(&[]), "");
    }
}
