//! IPv6's part of tables, addresses and `ping`.

use crate::tables::{Fib, Lengths, Member, Tables};
use crate::{dad, echo, link_local};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::address::AddressError;
use thalweg_feat_ip::ping::Echo;
use thalweg_feat_ip::published::{Published, PublishedTable, Rows};
use thalweg_feat_ip::{Family, IfAddress, Ip6, Leaves, Path, Settings};
use thalweg_feat_neighbor::{Neighbor, Neighbors};
use thalweg_fib::TableId;
use thalweg_fib::rib::PathKind;
use thalweg_graph::Control;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_tables::{CowTable, Ipv6Prefix, Lpm6, Lpm6Config, LpmError, Pages};

/// The protocol.
pub struct Ipv6;

/// Its section of the configuration.
pub(crate) static SETTINGS: Settings<u128> = Settings(&Ipv6);

pub(crate) fn init(c: &mut Control) {
    let (interfaces, members) = (CowTable::default(), CowTable::default());
    let (writer, snapshot) =
        snapshot::channel(Tables { fibs: Arc::default(), interfaces, members });
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(snapshot.clone());
    let lengths = Lengths { tables: snapshot, dpos: c.shared(), addrs: c.shared() };
    c.shared::<thalweg_fib::RouteBook>().add(Arc::new(lengths));
    c.insert(Published::new(writer));
    thalweg_feat_ip::register(c, &Ipv6);
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
    type Address = u128;
    type Table = Fib;
    type Member = Member;

    fn tables(&mut self) -> &mut Arc<[Fib]> {
        &mut self.fibs
    }
    fn members(&mut self) -> &mut CowTable<Option<Member>> {
        &mut self.members
    }
    fn set_interface(&mut self, _: &Ip6, sw_if: SwIfIndex, place: u16) {
        self.interfaces.set(sw_if, place);
    }
    /// Returns the first interface of a table that has addresses of its own, and its first one.
    fn member(ip6: &Ip6, table: TableId) -> Option<Member> {
        let sw_if = ip6.first_with_own(table)?;
        ip6.addresses(sw_if).first().map(|a| (sw_if, Ipv6Addr::from_bits(a.addr)))
    }
    fn interface((sw_if, _): Member) -> SwIfIndex {
        sw_if
    }
}

impl Family<u128> for Ipv6 {
    fn leaves(&self, c: &Control, id: TableId, serial: u32) -> Result<Leaves<u128>, LpmError> {
        // Small tables should not use huge pages.
        let pages = if id == TableId(0) { Pages::Huge } else { Pages::Normal };
        let lpm = Lpm6::new(Lpm6Config { pages, ..Default::default() })?;
        let fib = Fib { id, serial, routes: lpm.reader(), unreachables: false };
        c.state::<Published<Tables>>().borrow_mut().keep(fib);
        Ok(Box::new(lpm))
    }

    fn publish(&self, c: &mut Control, id: TableId) {
        let (ip6, published) = (c.state::<Ip6>(), c.state::<Published<Tables>>());
        published.borrow_mut().publish(c, &ip6.borrow(), id);
    }

    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex) {
        let (ip6, published) = (c.state::<Ip6>(), c.state::<Published<Tables>>());
        published.borrow_mut().publish_interface(c, &ip6.borrow(), sw_if);
    }

    fn dropped(&self) -> &'static [(u128, u8)] {
        &[(0, 0), (0xfe80 << 112, 10)]
    }

    fn unusable(&self, addr: u128, subnet: Ipv6Prefix) -> Option<&'static str> {
        let ip = Ipv6Addr::from_bits(addr);
        Some(if ip.is_multicast() {
            "it is a multicast address"
        } else if ip.is_loopback() {
            "it is the loopback address"
        } else if ip.is_unspecified() {
            "it is the unspecified address"
        } else if ip.is_unicast_link_local() && subnet.len() != 128 {
            "a link-local address has the prefix length 128"
        } else if ip.to_ipv4_mapped().is_some() {
            "it is an IPv4-mapped address"
        } else {
            return None;
        })
    }

    fn routes(&self, sw_if: SwIfIndex, addr: u128, subnet: Ipv6Prefix) -> Vec<(Ipv6Prefix, Path)> {
        let connected = (subnet.len() < 128).then(|| (subnet, Path::connected(sw_if)));
        let own = Path { sw_if: Some(sw_if), ..Path::special(PathKind::Local) };
        connected.into_iter().chain([(Ipv6Prefix::host(addr), own)]).collect()
    }

    /// An address that is being tested is not reached, and one that another host has is there.
    fn adjust(
        &self,
        c: &Control,
        sw_if: SwIfIndex,
        _: Ipv6Prefix,
        routes: &mut Vec<(Ipv6Prefix, Path)>,
    ) {
        let own = |prefix: &Ipv6Prefix| Ipv6Addr::from_bits(prefix.addr());
        routes.retain(|(prefix, path)| {
            path.kind != PathKind::Local || !dad::is_duplicate(c, sw_if, own(prefix))
        });
        for (prefix, path) in routes.iter_mut().filter(|(_, path)| path.kind == PathKind::Local) {
            if dad::holds(c, sw_if, own(prefix)) {
                *path = Path::special(PathKind::Drop);
            }
        }
    }

    fn neighbors(&self, c: &Control, sw_if: SwIfIndex, prefix: Ipv6Prefix) -> Vec<(u128, bool)> {
        let [first, last] = [prefix.addr(), prefix.last()].map(Ipv6Addr::from_bits);
        let all = c.state::<Neighbors>();
        let all = all.borrow();
        let routed = all.between(sw_if, first.into(), last.into()).filter(|n| !n.no_fib_entry);
        let address = |n: Neighbor| match n.ip {
            IpAddr::V6(ip) if n.mac.is_some() && !ip.is_unicast_link_local() => {
                Some((ip.to_bits(), n.is_static))
            }
            _ => None,
        };
        routed.filter_map(address).collect()
    }

    fn lookup_node(&self) -> &'static str {
        "ip6-lookup"
    }

    fn max_echo(&self) -> u16 {
        echo::MAX_DATA
    }

    fn echo_request(&self, from: u128, to: u128, echo: Echo<'_>) -> Option<Vec<u8>> {
        echo::request(Ipv6Addr::from_bits(from), Ipv6Addr::from_bits(to), echo)
    }

    fn is_of_link(&self, addr: u128) -> bool {
        let ip = Ipv6Addr::from_bits(addr);
        ip.is_unicast_link_local() || matches!(ip.segments()[0], 0xff01 | 0xff02)
    }

    fn link_source(&self, c: &Control, sw_if: SwIfIndex) -> Option<u128> {
        link_local::of(c, sw_if).map(Ipv6Addr::to_bits)
    }

    fn set_link_address(
        &self,
        c: &mut Control,
        sw_if: SwIfIndex,
        addr: u128,
        add: bool,
    ) -> Result<(), AddressError> {
        link_local::change(c, sw_if, Ipv6Addr::from_bits(addr), add)
    }

    fn link_addresses(&self, c: &Control, sw_if: SwIfIndex) -> Vec<IfAddress<u128>> {
        let own = link_local::configured(c, sw_if);
        own.into_iter().map(|ip| IfAddress { addr: ip.to_bits(), len: 128 }).collect()
    }
}
