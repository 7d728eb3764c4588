//! Network interfaces as the kernel reports them (rtnetlink(7)): those of this process's network
//! namespace, whatever is mounted at `/sys`.

use std::io;

use crate::netlink::wire::{Attribute, Attributes, Generic, Writer};
use crate::netlink::{Family, Port, Protocol, Question};
use crate::value::Mac;

const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
/// `struct ifinfomsg`: family, type, index, flags, change.
const INFO_BYTES: usize = 16;
/// `ENODEV`.
const NO_DEVICE: i32 = 19;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_OPERSTATE: u16 = 16;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_INFO_KIND: u16 = 1;

const ETHTOOL: &str = "ethtool";
const ETHTOOL_MSG_LINKMODES_GET: u8 = 4;
const ETHTOOL_A_LINKMODES_HEADER: u16 = 1;
const ETHTOOL_A_HEADER_DEV_INDEX: u16 = 1;
const ETHTOOL_A_LINKMODES_SPEED: u16 = 5;
const ETHTOOL_A_LINKMODES_DUPLEX: u16 = 6;

/// Those of `struct rtnl_link_stats64` that sFlow has a place for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Statistics {
    pub rx_packets: u64,
    pub tx_packets: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
    pub rx_errors: u64,
    pub tx_errors: u64,
    pub rx_dropped: u64,
    pub tx_dropped: u64,
    pub multicast: u64,
    pub rx_missed: u64,
}

impl Statistics {
    fn of(bytes: &[u8]) -> Statistics {
        let words = bytes.as_chunks::<8>().0;
        let at = |i: usize| words.get(i).map_or(0, |word| u64::from_ne_bytes(*word));
        Statistics {
            rx_packets: at(0),
            tx_packets: at(1),
            rx_bytes: at(2),
            tx_bytes: at(3),
            rx_errors: at(4),
            tx_errors: at(5),
            rx_dropped: at(6),
            tx_dropped: at(7),
            multicast: at(8),
            rx_missed: at(15),
        }
    }
}

/// A network interface.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Link {
    pub index: u32,
    pub name: String,
    /// Its ARPHRD.
    pub hardware: u16,
    /// `IFF_`.
    pub flags: u32,
    /// Its Ethernet address, if it has one.
    pub mac: Option<Mac>,
    /// `IF_OPER_`.
    pub state: u8,
    /// Which driver made it, such as `bridge`; a device of hardware says nothing.
    pub kind: String,
    pub statistics: Statistics,
}

impl Link {
    /// Of the payload of a message; `None` if that is too short.
    fn parse(payload: &[u8]) -> Option<Link> {
        let (info, attributes) = payload.split_first_chunk::<INFO_BYTES>()?;
        let word =
            |at: usize| u32::from_ne_bytes([info[at], info[at + 1], info[at + 2], info[at + 3]]);
        let hardware = u16::from_ne_bytes([info[2], info[3]]);
        let mut link = Link { index: word(4), hardware, flags: word(8), ..Link::default() };
        let text = |a: &Attribute<'_>| a.text().to_str().into_owned();
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                IFLA_ADDRESS => {
                    link.mac = a.value.try_into().ok().filter(|m| *m != [0; 6]).map(Mac)
                }
                IFLA_IFNAME => link.name = text(&a),
                IFLA_OPERSTATE => link.state = a.value.first().copied().unwrap_or(0),
                IFLA_STATS64 => link.statistics = Statistics::of(a.value),
                IFLA_LINKINFO => {
                    let kind = a.attributes().flatten().find(|a| a.kind == IFLA_INFO_KIND);
                    link.kind = kind.as_ref().map(text).unwrap_or_default();
                }
                _ => {}
            }
        }
        Some(link)
    }

    /// The interface of that index in this process's namespace; `None` if there is none.
    ///
    /// # Errors
    /// If the system call fails.
    pub(super) fn find(index: u32) -> io::Result<Option<Link>> {
        let mut found = None;
        let question = Question::one(RTM_GETLINK, RTM_NEWLINK);
        match ask(question, index, |link| found = Some(link)) {
            Err(error) if error.raw_os_error() != Some(NO_DEVICE) => Err(error),
            _ => Ok(found),
        }
    }

    /// All interfaces of this process's namespace, by index.
    ///
    /// # Errors
    /// If the system call fails.
    pub(super) fn all() -> io::Result<Vec<Link>> {
        let mut links = Vec::new();
        ask(Question::all(RTM_GETLINK, RTM_NEWLINK), 0, |link| links.push(link))?;
        links.sort_by_key(|link: &Link| link.index);
        Ok(links)
    }
}

fn ask(question: Question, index: u32, mut each: impl FnMut(Link)) -> io::Result<()> {
    let port = Port::open(Protocol::Route)?;
    let encode = |out: &mut Vec<u8>, header| {
        let mut info = [0; INFO_BYTES];
        info[4..8].copy_from_slice(&index.to_ne_bytes());
        Writer::with_payload(out, header, &info).finish();
    };
    port.ask(question, encode, |payload| Link::parse(payload).into_iter().for_each(&mut each))
}

/// Speed in Mb/s and duplex (0 half, 1 full) of an interface, as far as its driver knows.
pub(super) fn modes(index: u32) -> (Option<u32>, Option<u8>) {
    let (mut speed, mut duplex) = (None, None);
    let Ok(Some(family)) = Family::resolve(ETHTOOL) else { return (None, None) };
    let Ok(port) = Port::open(Protocol::Generic) else { return (None, None) };
    let encode = |out: &mut Vec<u8>, header| {
        let generic = Generic { command: ETHTOOL_MSG_LINKMODES_GET, version: 1 };
        let mut w = Writer::generic(out, header, generic);
        w.nest(ETHTOOL_A_LINKMODES_HEADER, |w| _ = w.u32(ETHTOOL_A_HEADER_DEV_INDEX, index));
        w.finish();
    };
    // A device without modes refuses: then nothing is known.
    let _ = port.ask(Question::one(family.id, family.id), encode, |payload| {
        let Ok((_, attributes)) = Generic::split(payload) else { return };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                ETHTOOL_A_LINKMODES_SPEED => speed = a.u32().ok().filter(|s| *s != u32::MAX),
                ETHTOOL_A_LINKMODES_DUPLEX => duplex = a.value.first().copied().filter(|d| *d < 2),
                _ => {}
            }
        }
    });
    (speed, duplex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_there_with_its_counters() {
        let all = Link::all().unwrap();
        let lo = all.iter().find(|link| link.name == "lo").expect("every namespace has one");
        assert_eq!((lo.hardware, lo.mac, lo.index), (772, None, 1));
        assert!(all.windows(2).all(|pair| pair[0].index < pair[1].index), "{all:?}");
        let again = Link::find(1).unwrap().unwrap();
        assert_eq!((again.name.as_str(), again.flags), ("lo", lo.flags));
        assert!(again.statistics.rx_packets >= lo.statistics.rx_packets);
        assert_eq!(Link::find(i32::MAX as u32).unwrap(), None);
        assert_eq!(modes(i32::MAX as u32), (None, None));
    }

    #[test]
    fn a_message_is_read() {
        let mut payload = vec![0, 0, 1, 0];
        payload.extend(7_u32.to_ne_bytes());
        payload.extend(0x1003_u32.to_ne_bytes());
        payload.extend([0; 4]);
        let header = crate::netlink::wire::Header::default();
        let mut message = Vec::new();
        let mut w = Writer::with_payload(&mut message, header, &payload);
        w.text(IFLA_IFNAME, "br0".into()).bytes(IFLA_ADDRESS, &[2, 0, 0, 0, 0, 9]);
        w.u8(IFLA_OPERSTATE, 6)
            .nest(IFLA_LINKINFO, |w| _ = w.text(IFLA_INFO_KIND, "bridge".into()));
        let counts: Vec<u8> = (1..=25_u64).flat_map(u64::to_ne_bytes).collect();
        w.bytes(IFLA_STATS64, &counts);
        w.finish();
        let link = Link::parse(&message[16..]).unwrap();
        let mac = Some(Mac([2, 0, 0, 0, 0, 9]));
        assert_eq!((link.index, link.hardware, link.flags, link.mac), (7, 1, 0x1003, mac));
        assert_eq!((link.name.as_str(), link.kind.as_str(), link.state), ("br0", "bridge", 6));
        let s = link.statistics;
        assert_eq!((s.rx_packets, s.tx_bytes, s.tx_dropped, s.multicast), (1, 4, 8, 9));
        assert_eq!(Link::parse(&message[16..30]), None);
        // Whatever is cut off is missing, nothing else.
        for end in 32..message.len() {
            assert_eq!(Link::parse(&message[16..end]).map(|l| l.index), Some(7));
        }
    }
}
