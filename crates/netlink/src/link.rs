//! Network interfaces as the kernel reports them (rtnetlink(7)): those of this thread's network
//! namespace, whatever is mounted at `/sys`.

use std::io;

use netlink_packet_core::{NlaBuffer, NlasIterator, ParseableParametrized};
use netlink_packet_route::link::{LinkAttribute, LinkMessage, Stats64};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, until_nul};

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
const IFLA_QDISC: u16 = 6;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_INFO_KIND: u16 = 1;

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
    /// Counters.
    pub statistics: LinkStats,
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
        Some(link)
    }

    fn learn(&mut self, attribute: &NlaBuffer<&[u8]>) {
        let value = attribute.value();
        match attribute.kind() {
            IFLA_LINKINFO => {
                let kind = Attributes::new(value).flatten().find(|a| a.kind == IFLA_INFO_KIND);
                self.kind = kind.map(|a| text(a.value)).unwrap_or_default();
            }
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

    /// Whether it is administratively up (`IFF_UP`).
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.flags & IFF_UP != 0
    }

    /// Whether it has a carrier (`IFF_RUNNING`).
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

    /// All interfaces of this thread's namespace, by index.
    ///
    /// # Errors
    /// If a system call fails.
    pub fn all() -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        ask(LinkMessage::default(), Question::all(RTM_NEWLINK), |link| links.push(link))?;
        links.sort_by_key(|link: &Link| link.index);
        Ok(links)
    }
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(until_nul(value)).into_owned()
}

fn one(message: LinkMessage) -> io::Result<Option<Link>> {
    let mut found = None;
    match ask(message, Question::one(RTM_NEWLINK), |link| found = Some(link)) {
        Err(error) if error.raw_os_error() != Some(NO_DEVICE) => Err(error),
        _ => Ok(found),
    }
}

fn ask(message: LinkMessage, question: Question, mut each: impl FnMut(Link)) -> io::Result<()> {
    let message = RouteNetlinkMessage::GetLink(message);
    Port::open(Protocol::Route)?.ask_with(question, message, |payload| {
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
        assert!(link.is_up() && !link.is_running());
        let s = link.statistics;
        assert_eq!((s.rx_packets, s.tx_bytes, s.tx_dropped, s.multicast), (1, 4, 8, 9));
        assert_eq!(s.rx_missed_errors, 16);
        assert_eq!(Link::parse(&message[16..30]), None);
        // Whatever is cut off is missing, nothing else.
        for end in 32..message.len() {
            assert_eq!(Link::parse(&message[16..end]).map(|l| l.index), Some(7));
        }
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
