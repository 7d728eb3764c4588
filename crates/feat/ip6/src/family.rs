//! IPv6's part of tables, addresses and `ping`.

use crate::tables::{Fib, Lengths, Member, Tables};
use crate::{dad, echo, link_local};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::address::AddressError;
use thalweg_feat_ip::ping::Echo;
use thalweg_feat_ip::places::Places;
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

/// State published to workers.
struct Published {
    writer: snapshot::Writer<Tables>,
    /// Tables that were created, until they are published.
    new: Vec<Fib>,
    places: Places,
    /// Tables of which an interface is the first with an address.
    members: BTreeMap<SwIfIndex, TableId>,
}

pub(crate) fn init(c: &mut Control) {
    let (interfaces, members) = (CowTable::default(), CowTable::default());
    let (writer, snapshot) =
        snapshot::channel(Tables { fibs: Arc::default(), interfaces, members });
    let snapshot: Arc<Snapshot<Tables>> = snapshot;
    c.share(snapshot.clone());
    let lengths = Lengths { tables: snapshot, dpos: c.shared(), addrs: c.shared() };
    c.shared::<thalweg_fib::RouteBook>().add(Arc::new(lengths));
    let (places, members) = (Places::default(), BTreeMap::new());
    c.insert(Published { writer, new: Vec::new(), places, members });
    thalweg_feat_ip::register(c, &Ipv6);
}

/// The first interface of a table that has addresses of its own, and the first of these.
fn member(ip6: &Ip6, table: TableId) -> Option<Member> {
    let sw_if = ip6.first_with_own(table)?;
    ip6.addresses(sw_if).first().map(|a| (sw_if, Ipv6Addr::from_bits(a.addr)))
}

impl Published {
    /// Returns the place of an interface's table.
    fn row(&self, ip6: &Ip6, sw_if: SwIfIndex) -> u16 {
        self.places.of(ip6.table_of(sw_if)).unwrap_or(0)
    }

    /// Notes which interface is the first with an address of a table.
    fn note_member(&mut self, tables: &mut Tables, ip6: &Ip6, id: TableId) {
        let Some(at) = self.places.of(id) else { return };
        let before = tables.members.get(at).copied().flatten();
        let now = member(ip6, id);
        if before == now {
            return;
        }
        tables.members.set(at, now);
        if let Some((before, _)) = before.filter(|(i, _)| self.members.get(i) == Some(&id)) {
            self.members.remove(&before);
        }
        self.members.extend(now.map(|(now, _)| (now, id)));
    }

    /// Takes out a table that has gone. The last one moves to its place.
    fn remove(&mut self, tables: &mut Tables, ip6: &Ip6, id: TableId) {
        let Some((at, moved)) = self.places.remove(id) else { return };
        let last = tables.fibs.len() - 1;
        let of_place =
            |place: usize| &tables.fibs[if place == usize::from(at) { last } else { place }];
        let fibs = (0..last).map(of_place).cloned().collect();
        tables.fibs = fibs;
        let members = [u32::from(at), last as u32].map(|at| tables.members.get(at).copied());
        let [gone, of_last] = members.map(Option::flatten);
        if let Some((gone, _)) = gone.filter(|(i, _)| self.members.get(i) == Some(&id)) {
            self.members.remove(&gone);
        }
        tables.members.set(last as u32, None);
        if let Some(moved) = moved {
            tables.members.set(at, of_last);
            for sw_if in ip6.bound_to(moved) {
                tables.interfaces.set(sw_if, self.row(ip6, sw_if));
            }
        }
    }
}

impl Family<u128> for Ipv6 {
    fn leaves(&self, c: &Control, id: TableId, serial: u32) -> Result<Leaves<u128>, LpmError> {
        // Small tables should not use huge pages.
        let pages = if id == TableId(0) { Pages::Huge } else { Pages::Normal };
        let lpm = Lpm6::new(Lpm6Config { pages, ..Default::default() })?;
        let fib = Fib { id, serial, routes: lpm.reader(), unreachables: false };
        c.state::<Published>().borrow_mut().new.push(fib);
        Ok(Box::new(lpm))
    }

    fn publish(&self, c: &mut Control, id: TableId) {
        let (ip6, published) = (c.state::<Ip6>(), c.state::<Published>());
        let (ip6, mut published) = (ip6.borrow(), published.borrow_mut());
        let mut tables = published.writer.get().clone();
        let unreachables = ip6.answers_unreachable(id);
        match (published.places.of(id), ip6.serial(id)) {
            (Some(_), None) => published.remove(&mut tables, &ip6, id),
            (Some(_), Some(_)) => {
                let mut fibs = tables.fibs.to_vec();
                fibs.iter_mut().filter(|f| f.id == id).for_each(|f| f.unreachables = unreachables);
                tables.fibs = fibs.into();
            }
            (None, serial) => {
                // Others were created for tables that could not be added.
                let new = std::mem::take(&mut published.new);
                let Some(new) = new.into_iter().find(|f| Some(f.serial) == serial) else { return };
                published.places.add(id);
                let new = Fib { unreachables, ..new };
                // Workers take the first for interfaces that they do not know: table 0.
                tables.fibs = tables.fibs.iter().cloned().chain([new]).collect();
                published.note_member(&mut tables, &ip6, id);
            }
        }
        published.writer.publish(c.domain(), tables);
    }

    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex) {
        let (ip6, published) = (c.state::<Ip6>(), c.state::<Published>());
        let (ip6, mut published) = (ip6.borrow(), published.borrow_mut());
        let mut tables = published.writer.get().clone();
        tables.interfaces.set(sw_if, published.row(&ip6, sw_if));
        // Its table, and the one in which it was.
        let before = published.members.get(&sw_if).copied();
        for id in [Some(ip6.table_of(sw_if)), before].into_iter().flatten() {
            published.note_member(&mut tables, &ip6, id);
        }
        published.writer.publish(c.domain(), tables);
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
