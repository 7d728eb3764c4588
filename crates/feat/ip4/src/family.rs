//! IPv4's part of tables, addresses and `ping`.

use crate::tables::{Fib, IfIp4, Lengths, Tables};
use crate::{directed, echo};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::ping::Echo;
use thalweg_feat_ip::published::{Published, PublishedTable, Rows};
use thalweg_feat_ip::{Family, Ip4, Leaves, Path, PathKind, Settings};
use thalweg_feat_neighbor::{Neighbor, Neighbors};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_tables::{CowTable, Ipv4Prefix, Lpm4, LpmError, Pages, lpm4};

/// The protocol.
pub struct Ipv4;

/// Its section of the configuration.
pub(crate) static SETTINGS: Settings<u32> = Settings(&Ipv4);

pub(crate) fn init(c: &mut Control) {
    let (interfaces, members) = (CowTable::default(), CowTable::default());
    let (writer, snapshot) =
        snapshot::channel(Tables { fibs: Arc::default(), interfaces, members });
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(snapshot.clone());
    let lengths = Lengths { tables: snapshot, dpos: c.shared(), addrs: c.shared() };
    c.shared::<thalweg_fib::RouteBook>().add(Arc::new(lengths));
    c.insert(Published::new(writer));
    thalweg_feat_ip::register(c, &Ipv4);
}

impl PublishedTable for Fib {
    fn id(&self) -> TableId {
        self.id
    }
    fn serial(&self) -> u32 {
        self.serial
    }
    fn set_unreachables(&mut self, on: bool) {
        self.unreachables = on;
    }
}

impl Rows for Tables {
    type Address = u32;
    type Table = Fib;
    type Member = SwIfIndex;

    fn tables(&mut self) -> &mut Arc<[Fib]> {
        &mut self.fibs
    }
    fn members(&mut self) -> &mut CowTable<Option<SwIfIndex>> {
        &mut self.members
    }
    fn set_interface(&mut self, ip4: &Ip4, sw_if: SwIfIndex, place: u16) {
        let first = ip4.usable_addresses(sw_if).next();
        let address = first.map(|a| Ipv4Addr::from_bits(a.addr));
        self.interfaces.set(sw_if, IfIp4 { fib: place, address });
    }
    fn member(ip4: &Ip4, table: TableId) -> Option<SwIfIndex> {
        ip4.first_addressed(table)
    }
    fn interface(member: SwIfIndex) -> SwIfIndex {
        member
    }
}

impl Family<u32> for Ipv4 {
    fn leaves(&self, c: &Control, id: TableId, serial: u32) -> Result<Leaves<u32>, LpmError> {
        // Small tables should not use huge pages.
        let pages = if id == TableId(0) { Pages::Huge } else { Pages::Normal };
        let lpm = Lpm4::new(lpm4::Lpm4Config { pages, ..Default::default() })?;
        let fib = Fib { id, serial, routes: lpm.reader(), unreachables: false };
        c.state::<Published<Tables>>().borrow_mut().keep(fib);
        Ok(Box::new(lpm))
    }

    fn publish(&self, c: &mut Control, id: TableId) {
        let (ip4, published) = (c.state::<Ip4>(), c.state::<Published<Tables>>());
        published.borrow_mut().publish(c, &ip4.borrow(), id);
    }

    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex) {
        let (ip4, published) = (c.state::<Ip4>(), c.state::<Published<Tables>>());
        published.borrow_mut().publish_interface(c, &ip4.borrow(), sw_if);
    }

    fn dropped(&self) -> &'static [(u32, u8)] {
        &[(0, 32), (0xf000_0000, 4), (0xe000_0000, 4), (u32::MAX, 32)]
    }

    fn unusable(&self, addr: u32, subnet: Ipv4Prefix) -> Option<&'static str> {
        let ip = Ipv4Addr::from_bits(addr);
        Some(if ip.is_multicast() {
            "it is a multicast address"
        } else if ip.is_loopback() {
            "it is a loopback address"
        } else if ip.octets()[0] == 0 || ip.octets()[0] >= 240 {
            "it is a reserved address"
        } else if subnet.len() < 31 && addr == subnet.addr() {
            "it is the subnet address"
        } else if subnet.len() < 31 && addr == subnet.last() {
            "it is the subnet's broadcast address"
        } else {
            return None;
        })
    }

    fn routes(&self, sw_if: SwIfIndex, addr: u32, subnet: Ipv4Prefix) -> Vec<(Ipv4Prefix, Path)> {
        let mut all = Vec::new();
        if subnet.len() < 32 {
            all.push((subnet, Path::connected(sw_if)));
        }
        if subnet.len() < 31 {
            let drop = Path::special(PathKind::Drop);
            all.push((Ipv4Prefix::host(subnet.addr()), drop));
            all.push((Ipv4Prefix::host(subnet.last()), drop));
        }
        let own = Path { sw_if: Some(sw_if), ..Path::special(PathKind::Local) };
        all.push((Ipv4Prefix::host(addr), own));
        all
    }

    fn adjust(
        &self,
        c: &Control,
        sw_if: SwIfIndex,
        subnet: Ipv4Prefix,
        routes: &mut Vec<(Ipv4Prefix, Path)>,
    ) {
        if directed::is_on(c, sw_if) && subnet.len() < 31 {
            let last = Ipv4Prefix::host(subnet.last());
            let path = Path::via(Ipv4Addr::from_bits(subnet.last()), Some(sw_if));
            routes.iter_mut().filter(|(p, _)| *p == last).for_each(|(_, to)| *to = path);
        }
    }

    fn routed(&self, c: &Control, sw_if: SwIfIndex, subnet: Ipv4Prefix) {
        directed::routed(c, sw_if, subnet);
    }

    fn neighbors(&self, c: &Control, sw_if: SwIfIndex, prefix: Ipv4Prefix) -> Vec<(u32, bool)> {
        let [first, last] = [prefix.addr(), prefix.last()].map(Ipv4Addr::from_bits);
        let all = c.state::<Neighbors>();
        let all = all.borrow();
        let routed = all.between(sw_if, first.into(), last.into()).filter(|n| !n.no_fib_entry);
        let address = |n: Neighbor| match n.ip {
            IpAddr::V4(ip) if n.mac.is_some() => Some((ip.to_bits(), n.is_static)),
            _ => None,
        };
        routed.filter_map(address).collect()
    }

    fn lookup_node(&self) -> &'static str {
        "ip4-lookup"
    }

    fn max_echo(&self) -> u16 {
        echo::MAX_DATA
    }

    fn echo_request(&self, from: u32, to: u32, echo: Echo<'_>) -> Option<Vec<u8>> {
        echo::request(Ipv4Addr::from_bits(from), Ipv4Addr::from_bits(to), echo)
    }
}
