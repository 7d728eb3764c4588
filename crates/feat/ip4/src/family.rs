//! IPv4's part of tables, addresses and `ping`.

use crate::tables::{Fib, IfIp4, Lengths, Tables};
use crate::{directed, echo};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use thalweg_device::SwIfIndex;
use thalweg_feat_ip::ping::Echo;
use thalweg_feat_ip::places::Places;
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
    thalweg_feat_ip::register(c, &Ipv4);
}

impl Published {
    /// Returns the row that workers read of an interface.
    fn row(&self, ip4: &Ip4, sw_if: SwIfIndex) -> IfIp4 {
        IfIp4 {
            fib: self.places.of(ip4.table_of(sw_if)).unwrap_or(0),
            address: ip4.usable_addresses(sw_if).next().map(|a| Ipv4Addr::from_bits(a.addr)),
        }
    }

    /// Notes which interface is the first with an address of a table.
    fn note_member(&mut self, tables: &mut Tables, ip4: &Ip4, id: TableId) {
        let Some(at) = self.places.of(id) else { return };
        let before = tables.members.get(at).copied().flatten();
        let now = ip4.first_addressed(id);
        if before == now {
            return;
        }
        tables.members.set(at, now);
        if let Some(before) = before.filter(|i| self.members.get(i) == Some(&id)) {
            self.members.remove(&before);
        }
        self.members.extend(now.map(|now| (now, id)));
    }

    /// Takes out a table that has gone. The last one moves to its place.
    fn remove(&mut self, tables: &mut Tables, ip4: &Ip4, id: TableId) {
        let Some((at, moved)) = self.places.remove(id) else { return };
        let last = tables.fibs.len() - 1;
        let of_place =
            |place: usize| &tables.fibs[if place == usize::from(at) { last } else { place }];
        let fibs = (0..last).map(of_place).cloned().collect();
        tables.fibs = fibs;
        let members = [u32::from(at), last as u32].map(|at| tables.members.get(at).copied());
        let [gone, of_last] = members.map(Option::flatten);
        if let Some(gone) = gone.filter(|i| self.members.get(i) == Some(&id)) {
            self.members.remove(&gone);
        }
        tables.members.set(last as u32, None);
        if let Some(moved) = moved {
            tables.members.set(at, of_last);
            for sw_if in ip4.bound_to(moved) {
                tables.interfaces.set(sw_if, self.row(ip4, sw_if));
            }
        }
    }
}

impl Family<u32> for Ipv4 {
    fn leaves(&self, c: &Control, id: TableId, serial: u32) -> Result<Leaves<u32>, LpmError> {
        // Small tables should not use huge pages.
        let pages = if id == TableId(0) { Pages::Huge } else { Pages::Normal };
        let lpm = Lpm4::new(lpm4::Lpm4Config { pages, ..Default::default() })?;
        let fib = Fib { id, serial, routes: lpm.reader(), unreachables: false };
        c.state::<Published>().borrow_mut().new.push(fib);
        Ok(Box::new(lpm))
    }

    fn publish(&self, c: &mut Control, id: TableId) {
        let (ip4, published) = (c.state::<Ip4>(), c.state::<Published>());
        let (ip4, mut published) = (ip4.borrow(), published.borrow_mut());
        let mut tables = published.writer.get().clone();
        let unreachables = ip4.answers_unreachable(id);
        match (published.places.of(id), ip4.serial(id)) {
            (Some(_), None) => published.remove(&mut tables, &ip4, id),
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
                published.note_member(&mut tables, &ip4, id);
            }
        }
        published.writer.publish(c.domain(), tables);
    }

    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex) {
        let (ip4, published) = (c.state::<Ip4>(), c.state::<Published>());
        let (ip4, mut published) = (ip4.borrow(), published.borrow_mut());
        let mut tables = published.writer.get().clone();
        tables.interfaces.set(sw_if, published.row(&ip4, sw_if));
        // Its table, and the one in which it was.
        let before = published.members.get(&sw_if).copied();
        for id in [Some(ip4.table_of(sw_if)), before].into_iter().flatten() {
            published.note_member(&mut tables, &ip4, id);
        }
        published.writer.publish(c.domain(), tables);
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
