//! Network interfaces as the kernel reports them (rtnetlink(7)): those of this thread's network
//! namespace, whatever is mounted at `/sys`.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NlaBuffer, NlasIterator, ParseableParametrized};
use netlink_packet_route::link::{LinkAttribute, LinkMessage, Stats64};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, address, until_nul};

pub(crate) const RTM_NEWLINK: u16 = 16;
pub(crate) const RTM_DELLINK: u16 = 17;
/// `struct ifinfomsg`: family, type, index, flags, change.
const INFO_BYTES: usize = 16;
/// `ENODEV`.
const NO_DEVICE: i32 = 19;
const AF_UNSPEC: u8 = 0;

const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_LINK: u16 = 5;
const IFLA_QDISC: u16 = 6;
const IFLA_MASTER: u16 = 10;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_LINK_NETNSID: u16 = 37;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const IFLA_VRF_TABLE: u16 = 1;
const IFLA_VXLAN_LINK: u16 = 3;
const IFLA_VLAN_ID: u16 = 1;
const IFLA_VLAN_PROTOCOL: u16 = 5;
/// TPID of a tag, unless a link has another.
const DOT1Q: u16 = 0x8100;

const IFF_UP: u32 = 1;
const IFF_RUNNING: u32 = 0x40;

/// An interface's counters (`struct rtnl_link_stats64`).
pub type LinkStats = Stats64;

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    /// Index in its namespace.
    pub index: u32,
    /// Name.
    pub name: String,
    /// ARP hardware type: 1 is Ethernet.
    pub hardware: u16,
    /// Flags (`IFF_*`, netdevice(7)).
    pub flags: u32,
    /// Its address, if it has one of six bytes.
    pub mac: Option<[u8; 6]>,
    /// MTU in bytes.
    pub mtu: u32,
    /// Queueing discipline, such as `noqueue`.
    pub qdisc: String,
    /// Operational state (`IF_OPER_*`).
    pub state: u8,
    /// The driver of a virtual device, such as `bridge`; a device of hardware has none.
    pub kind: String,
    /// Index of the bridge, bond, team or VRF that it is a member of.
    pub master: Option<u32>,
    /// Index of the interface of this namespace that it sends by: the one below a VLAN, a macvlan
    /// or a tunnel, the other end of a virtual Ethernet pair.
    pub lower: Option<u32>,
    /// Routing table of a VRF.
    pub table: Option<u32>,
    /// Tag of a VLAN link: its TPID and VLAN id.
    pub vlan: Option<(u16, u16)>,
    /// Address of a tunnel's other end, if it is fixed.
    pub remote: Option<IpAddr>,
    /// Counters.
    pub statistics: LinkStats,
}

/// The attribute with the address of a tunnel's other end, by the tunnel's kind.
fn remotes(kind: &[u8]) -> &'static [u16] {
    match kind {
        b"ipip" | b"sit" | b"ip6tnl" => &[3],
        b"vti" | b"vti6" => &[5],
        b"gre" | b"gretap" | b"erspan" | b"ip6gre" | b"ip6gretap" | b"ip6erspan" => &[7],
        b"vxlan" => &[2, 16],
        b"geneve" => &[2, 7],
        _ => &[],
    }
}

impl Link {
    /// Reads the payload of an `RTM_NEWLINK` or `RTM_DELLINK` message; `None` if it is too short or
    /// of another address family: with one, a bridge reports that a device is no longer its port.
    #[must_use]
    pub fn parse(payload: &[u8]) -> Option<Link> {
        let (info, attributes) = payload.split_first_chunk::<INFO_BYTES>()?;
        if info[0] != AF_UNSPEC {
            return None;
        }
        let word =
            |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let hardware = u16::from_ne_bytes([info[2], info[3]]);
        let mut link = Link { index: word(4), hardware, flags: word(8), ..Link::default() };
        for attribute in NlasIterator::new(attributes).flatten() {
            link.learn(&attribute);
        }
        let elsewhere = Attributes::new(attributes).flatten().any(|a| a.kind == IFLA_LINK_NETNSID);
        if elsewhere {
            // An index of another namespace.
            link.lower = None;
        }
        Some(link)
    }

    /// Takes what only interfaces of this kind have.
    fn learn_data(&mut self, kind: &[u8], data: Attributes<'_>) {
        for a in data.flatten() {
            match (kind, a.kind) {
                (b"vrf", IFLA_VRF_TABLE) => self.table = a.u32().ok(),
                (b"vlan", IFLA_VLAN_ID) => {
                    let id = a.u16().ok().filter(|id| *id < 4096);
                    self.vlan = id.map(|id| (self.vlan.map_or(DOT1Q, |v| v.0), id));
                }
                (b"vlan", IFLA_VLAN_PROTOCOL) => {
                    let tpid = a.value.try_into().map(u16::from_be_bytes).unwrap_or(DOT1Q);
                    self.vlan = Some((tpid, self.vlan.map_or(0, |v| v.1)));
                }
                (b"vxlan", IFLA_VXLAN_LINK) => self.lower = index(a.value),
                (_, number) if remotes(kind).contains(&number) => {
                    let known = address(a.value).filter(|remote| !remote.is_unspecified());
                    self.remote = known.or(self.remote);
                }
                _ => {}
            }
        }
    }

    fn learn(&mut self, attribute: &NlaBuffer<&[u8]>) {
        let value = attribute.value();
        match attribute.kind() {
            IFLA_LINKINFO => {
                let part = |kind| Attributes::new(value).flatten().find(|a| a.kind == kind);
                let kind = part(IFLA_INFO_KIND);
                if let (Some(kind), Some(data)) = (&kind, part(IFLA_INFO_DATA)) {
                    self.learn_data(kind.text(), data.attributes());
                }
                self.kind = kind.map(|a| text(a.value)).unwrap_or_default();
            }
            IFLA_MASTER => self.master = index(value),
            // A link on itself has no lower one.
            IFLA_LINK => self.lower = index(value).filter(|lower| *lower != self.index),
            IFLA_IFNAME => self.name = text(value),
            IFLA_QDISC => self.qdisc = text(value),
            IFLA_ADDRESS | IFLA_MTU | IFLA_OPERSTATE | IFLA_STATS64 => {
                match LinkAttribute::parse_with_param(attribute, AddressFamily::Unspec) {
                    Ok(LinkAttribute::Address(bytes)) => {
                        self.mac = bytes.try_into().ok().filter(|mac| *mac != [0; 6]);
                    }
                    Ok(LinkAttribute::Mtu(mtu)) => self.mtu = mtu,
                    Ok(LinkAttribute::OperState(state)) => self.state = state.into(),
                    Ok(LinkAttribute::Stats64(counters)) => self.statistics = counters,
                    _ => {}
                }
            }
            // Some of the others are of forms that the library refuses or does not check.
            _ => {}
        }
    }

    /// Returns true if it is administratively up (`IFF_UP`).
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.flags & IFF_UP != 0
    }

    /// Returns true if it has a carrier (`IFF_RUNNING`).
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.flags & IFF_RUNNING != 0
    }

    /// The interface of that index in this thread's namespace; `None` if there is none.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn find(index: u32) -> io::Result<Option<Link>> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        one(message)
    }

    /// The interface of that name in this thread's namespace; `None` if there is none.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn named(name: &str) -> io::Result<Option<Link>> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        one(message)
    }

    /// The interface of that index in a port's namespace; `None` if there is none.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn find_by(port: &Port, index: u32) -> io::Result<Option<Link>> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        one_by(port, message)
    }

    /// The interface of that name in a port's namespace; `None` if there is none.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn named_by(port: &Port, name: &str) -> io::Result<Option<Link>> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.to_owned()));
        one_by(port, message)
    }

    /// All interfaces of this thread's namespace, by index.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn all() -> io::Result<Vec<Link>> {
        Link::all_by(&Port::open(Protocol::Route)?)
    }

    /// All interfaces of a port's namespace, by index.
    ///
    /// # Errors
    /// If a system call fails, or the kernel refuses.
    pub fn all_by(port: &Port) -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        let all = Question::all(RTM_NEWLINK);
        ask_by(port, LinkMessage::default(), all, |link| links.push(link))?;
        links.sort_by_key(|link: &Link| link.index);
        Ok(links)
    }
}

/// The number of an interface.
fn index(value: &[u8]) -> Option<u32> {
    value.try_into().ok().map(u32::from_ne_bytes).filter(|index| *index > 0)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(value)).into_owned()
}

fn one(message: LinkMessage) -> io::Result<Option<Link>> {
    one_by(&Port::open(Protocol::Route)?, message)
}

fn one_by(port: &Port, message: LinkMessage) -> io::Result<Option<Link>> {
    let mut found = None;
    match ask_by(port, message, Question::one(RTM_NEWLINK), |link| found = Some(link)) {
        Err(error) if error.raw_os_error() != Some(NO_DEVICE) => Err(error),
        _ => Ok(found),
    }
}

fn ask_by(
    port: &Port,
    message: LinkMessage,
    question: Question,
    mut each: impl FnMut(Link),
) -> io::Result<()> {
    port.ask_with(question, RouteNetlinkMessage::GetLink(message), |payload| {
        Link::parse(payload).into_iter().for_each(&mut each);
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Header, Writer};
    use proptest::prelude::*;

    #[test]
    fn the_loopback_is_there_with_its_counters() {
        let all = Link::all().unwrap();
        let lo = all.iter().find(|link| link.name == "lo").expect("every namespace has one");
        assert_eq!((lo.hardware, lo.mac, lo.index), (772, None, 1));
        assert!(all.windows(2).all(|pair| pair[0].index < pair[1].index), "{all:?}");
        let again = Link::find(1).unwrap().unwrap();
        assert_eq!((again.name.as_str(), again.flags), ("lo", lo.flags));
        assert!(again.statistics.rx_packets >= lo.statistics.rx_packets);
        assert_eq!(Link::named("lo").unwrap().unwrap().index, 1);
        assert_eq!(Link::find(i32::MAX as u32).unwrap(), None);
        assert_eq!(Link::named("no-such-dev").unwrap(), None);
    }

    fn message() -> Vec<u8> {
        let mut payload = vec![0, 0, 1, 0];
        payload.extend(7_u32.to_ne_bytes());
        payload.extend(0x1003_u32.to_ne_bytes());
        payload.extend([0; 4]);
        let mut message = Vec::new();
        let mut w = Writer::with_payload(&mut message, Header::default(), &payload);
        w.text(IFLA_IFNAME, "br0").bytes(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]);
        w.u32(IFLA_MTU, 9000).text(IFLA_QDISC, "noqueue").u8(IFLA_OPERSTATE, 6);
        w.u32(IFLA_LINK, 3).u32(IFLA_MASTER, 4);
        w.nest(IFLA_LINKINFO, |w| _ = w.text(IFLA_INFO_KIND, "bridge"));
        let counts: Vec<u8> = (1..=25_u64).flat_map(u64::to_ne_bytes).collect();
        w.bytes(IFLA_STATS64, &counts);
        w.finish();
        message
    }

    #[test]
    fn a_message_is_read() {
        let message = message();
        let link = Link::parse(&message[16..]).unwrap();
        let mac = Some([2, 0, 0, 0, 0, 9]);
        assert_eq!((link.index, link.hardware, link.flags, link.mac), (7, 1, 0x1003, mac));
        assert_eq!((link.name.as_str(), link.kind.as_str(), link.state), ("br0", "bridge", 6));
        assert_eq!((link.mtu, link.qdisc.as_str()), (9000, "noqueue"));
        assert_eq!(
            (link.lower, link.master, link.table, link.remote),
            (Some(3), Some(4), None, None)
        );
        assert!(link.is_up() && !link.is_running());
        let s = link.statistics;
        assert_eq!((s.rx_packets, s.tx_bytes, s.tx_dropped, s.multicast), (1, 4, 8, 9));
        assert_eq!(s.rx_missed_errors, 16);
        assert_eq!(Link::parse(&message[16..30]), None);
        // Only what is cut off is missing.
        for end in 32..message.len() {
            assert_eq!(Link::parse(&message[16..end]).map(|l| l.index), Some(7));
        }
    }

    /// The link of a message with more attributes.
    fn link(fill: impl FnOnce(&mut Writer<'_>)) -> Link {
        let mut message = Vec::new();
        let payload = [0, 0, 1, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut w = Writer::with_payload(&mut message, Header::default(), &payload);
        fill(&mut w);
        w.finish();
        Link::parse(&message[16..]).unwrap()
    }

    #[test]
    fn what_is_below_is_of_this_namespace() {
        assert_eq!(link(|w| _ = w.u32(IFLA_LINK, 7)).lower, None, "its own index");
        assert_eq!(link(|w| _ = w.u32(IFLA_LINK, 0)).lower, None);
        assert_eq!(link(|w| _ = w.u32(IFLA_LINK, 9)).lower, Some(9));
        let elsewhere = link(|w| _ = w.u32(IFLA_LINK, 9).u32(IFLA_LINK_NETNSID, 0));
        assert_eq!(elsewhere.lower, None);
    }

    #[test]
    fn kinds_have_a_table_a_tag_or_another_end() {
        let of = |kind: &str, number: u16, value: &[u8]| {
            link(|w| {
                w.nest(IFLA_LINKINFO, |w| {
                    w.text(IFLA_INFO_KIND, kind);
                    w.nest(IFLA_INFO_DATA, |w| _ = w.bytes(number, value));
                });
            })
        };
        assert_eq!(of("vrf", 1, &10_u32.to_ne_bytes()).table, Some(10));
        assert_eq!(of("vlan", 1, &100_u16.to_ne_bytes()).vlan, Some((0x8100, 100)));
        assert_eq!(of("vlan", 5, &[0x88, 0xa8]).vlan, Some((0x88a8, 0)));
        assert_eq!(of("vlan", 1, &5000_u16.to_ne_bytes()).vlan, None);
        assert_eq!(of("vxlan", 3, &4_u32.to_ne_bytes()).lower, Some(4));
        let end = Some(IpAddr::from([192, 0, 2, 1]));
        for (kind, number) in [("gretap", 7), ("ipip", 3), ("vti", 5), ("geneve", 2), ("vxlan", 2)]
        {
            assert_eq!(of(kind, number, &[192, 0, 2, 1]).remote, end, "{kind}");
        }
        assert_eq!(of("gretap", 7, &[0; 4]).remote, None, "any end");
        assert_eq!(of("bridge", 7, &[192, 0, 2, 1]).remote, None);
    }

    #[test]
    fn a_bridges_words_about_its_ports_are_left_alone() {
        let mut message = message();
        message[16] = 7;
        assert_eq!(Link::parse(&message[16..]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            attribute in prop::sample::select(&[1u16, 3, 4, 6, 16, 18, 23][..]),
            length in 0u16..64,
        ) {
            let mut bytes = bytes;
            if bytes.len() > 20 {
                bytes[0] = 0;
                bytes[16..18].copy_from_slice(&length.to_ne_bytes());
                bytes[18..20].copy_from_slice(&attribute.to_ne_bytes());
            }
            let _ = Link::parse(&bytes);
            crate::fuzz_datagram(&bytes);
        }
    }
}
