//! Messages find the protocol by the version of an address, or by a flag.

use crate::client::Client;
use crate::protocol::{STUB_4, STUB_6, lab, leaf};
use std::net::IpAddr;
use thalweg_api::types::fib::{FibPath, FibPathFlags, FibPathNh, FibPathNhProto, FibPathType};
use thalweg_api::types::{AddressWithPrefix, InterfaceIndex, Prefix};
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_feat_ip::message_types::{
    IpAddressDetails, IpAddressDump, IpDetails, IpDump, IpRoute, IpRouteAddDel, IpRouteAddDelReply,
    IpRouteAddDelV2, IpRouteAddDelV2Reply, IpRouteDetails, IpRouteDump, IpRouteLookup,
    IpRouteLookupReply, IpRouteLookupV2, IpRouteLookupV2Reply, IpRouteV2Details, IpRouteV2Dump,
    IpTable, IpTableAddDel, IpTableAddDelReply, IpTableAddDelV2, IpTableAddDelV2Reply,
    IpTableAllocate, IpTableAllocateReply, IpTableDetails, IpTableDump, IpTableFlush,
    IpTableFlushReply, IpTableReplaceBegin, IpTableReplaceBeginReply, IpTableReplaceEnd,
    IpTableReplaceEndReply, SwInterfaceAddDelAddress, SwInterfaceAddDelAddressReply,
    SwInterfaceAddressReplaceBegin, SwInterfaceAddressReplaceBeginReply,
    SwInterfaceAddressReplaceEnd, SwInterfaceAddressReplaceEndReply, SwInterfaceGetTable,
    SwInterfaceGetTableReply, SwInterfaceSetTable, SwInterfaceSetTableReply,
    WantPingFinishedEvents, WantPingFinishedEventsReply,
};
use thalweg_fib::TableId;

fn table(table_id: u32, is_ip6: bool, name: &str) -> IpTable {
    IpTable { table_id, is_ip6, name: name.into() }
}

fn prefix(text: &str) -> Prefix {
    let (ip, len) = text.split_once('/').expect("a prefix");
    (ip.parse::<IpAddr>().expect("an address"), len.parse().expect("a length")).into()
}

fn text(prefix: Prefix) -> String {
    let (ip, len) = prefix.parts().expect("a prefix");
    format!("{ip}/{len}")
}

fn via(hop: &str, sw_if_index: u32) -> FibPath {
    let ip: IpAddr = hop.parse().expect("an address");
    let proto = if ip.is_ipv4() { FibPathNhProto::IP4 } else { FibPathNhProto::IP6 };
    let nh = FibPathNh { address: ip.into(), ..FibPathNh::default() };
    FibPath { sw_if_index, nh, proto, weight: 1, ..FibPath::default() }
}

fn drop() -> FibPath {
    FibPath { r#type: FibPathType::DROP, ..FibPath::default() }
}

fn route(table_id: u32, to: &str, paths: Vec<FibPath>) -> IpRoute {
    IpRoute { table_id, stats_index: 0, prefix: prefix(to), paths }
}

/// A router and a client of it.
struct World(Lab, Client);

impl World {
    fn new(both: bool) -> World {
        let mut lab = if both { lab(&[&STUB_4, &STUB_6]) } else { lab(&[&STUB_4]) };
        let client = Client::new(&mut lab);
        World(lab, client)
    }

    fn change_table(&mut self, is_add: bool, table: IpTable) -> i32 {
        let request = IpTableAddDel { is_add, table };
        self.1.call::<_, IpTableAddDelReply>(&mut self.0, &request).0
    }

    fn change_route(&mut self, is_add: bool, is_multipath: bool, route: IpRoute) -> i32 {
        let request = IpRouteAddDel { is_add, is_multipath, route };
        self.1.call::<_, IpRouteAddDelReply>(&mut self.0, &request).0
    }

    fn change_address(&mut self, n: u8, is_add: bool, del_all: bool, address: &str) -> i32 {
        let sw_if_index = InterfaceIndex(self.0.sw_if(n).get());
        let prefix = AddressWithPrefix(prefix(address));
        let request = SwInterfaceAddDelAddress { sw_if_index, is_add, del_all, prefix };
        self.1.call::<_, SwInterfaceAddDelAddressReply>(&mut self.0, &request).0
    }

    /// Ends a dump.
    fn last() -> SwInterfaceGetTable {
        SwInterfaceGetTable { sw_if_index: InterfaceIndex(0), is_ipv6: false }
    }

    fn tables(&mut self) -> Vec<(u32, bool, String)> {
        let all: Vec<IpTableDetails> = self.1.dump(&mut self.0, &IpTableDump, &Self::last());
        let each = |d: IpTableDetails| {
            (d.table.table_id, d.table.is_ip6, d.table.name.as_str().to_owned())
        };
        all.into_iter().map(each).collect()
    }

    fn routes(&mut self, table: IpTable) -> Vec<String> {
        let request = IpRouteDump { table: table.clone() };
        let all: Vec<IpRouteDetails> = self.1.dump(&mut self.0, &request, &Self::last());
        let request = IpRouteV2Dump { src: 0, table };
        let more: Vec<IpRouteV2Details> = self.1.dump(&mut self.0, &request, &Self::last());
        let all: Vec<String> = all.into_iter().map(|d| text(d.route.prefix)).collect();
        let more: Vec<String> = more.into_iter().map(|d| text(d.route.prefix)).collect();
        assert_eq!(all, more);
        all
    }

    fn addresses(&mut self, n: u8, is_ipv6: bool) -> Vec<String> {
        let sw_if_index = InterfaceIndex(self.0.sw_if(n).get());
        let request = IpAddressDump { sw_if_index, is_ipv6 };
        let all: Vec<IpAddressDetails> = self.1.dump(&mut self.0, &request, &Self::last());
        all.into_iter().map(|d| text(d.prefix.0)).collect()
    }

    fn table_call(&mut self, which: u8, table: IpTable) -> i32 {
        let World(lab, client) = self;
        match which {
            0 => client.call::<_, IpTableFlushReply>(lab, &IpTableFlush { table }).0,
            1 => client.call::<_, IpTableReplaceBeginReply>(lab, &IpTableReplaceBegin { table }).0,
            _ => client.call::<_, IpTableReplaceEndReply>(lab, &IpTableReplaceEnd { table }).0,
        }
    }

    fn set_table(&mut self, n: u8, is_ipv6: bool, vrf_id: u32) -> i32 {
        let sw_if_index = InterfaceIndex(self.0.sw_if(n).get());
        let request = SwInterfaceSetTable { sw_if_index, is_ipv6, vrf_id };
        self.1.call::<_, SwInterfaceSetTableReply>(&mut self.0, &request).0
    }

    fn table_of(&mut self, n: u8, is_ipv6: bool) -> u32 {
        let sw_if_index = InterfaceIndex(self.0.sw_if(n).get());
        let request = SwInterfaceGetTable { sw_if_index, is_ipv6 };
        let (retval, reply): (i32, SwInterfaceGetTableReply) = self.1.call(&mut self.0, &request);
        assert_eq!(retval, 0);
        reply.vrf_id
    }

    fn lookup(&mut self, to: &str, exact: u8) -> (i32, IpRoute) {
        let (table_id, to) = (0, prefix(to));
        let request = IpRouteLookup { table_id, exact, prefix: to };
        let (retval, reply): (i32, IpRouteLookupReply) = self.1.call(&mut self.0, &request);
        let request = IpRouteLookupV2 { table_id, exact, prefix: to };
        let (again, more): (i32, IpRouteLookupV2Reply) = self.1.call(&mut self.0, &request);
        assert_eq!((retval, text(reply.route.prefix)), (again, text(more.route.prefix)));
        (retval, reply.route)
    }

    fn ping(&mut self, to: &str, repeat: u32, interval: f64) -> i32 {
        let address = to.parse::<IpAddr>().expect("an address").into();
        let request = WantPingFinishedEvents { address, repeat, interval };
        self.1.call::<_, WantPingFinishedEventsReply>(&mut self.0, &request).0
    }
}

#[test]
fn tables_of_the_other_version() {
    let mut w = World::new(true);
    let most = u32::MAX - 1;
    assert_eq!(w.change_table(true, table(7, true, "seven")), 0);
    assert_eq!(w.change_table(true, table(7, true, "")), 0);
    assert_eq!(w.change_table(true, table(most, true, "")), 0);
    assert_eq!(w.change_table(true, table(u32::MAX, true, "")), 0);
    let usual = |t: u32, six| (t, six, format!("ipv{}-VRF:{t}", if six { 6 } else { 4 }));
    let seven = (7, true, "seven".to_owned());
    let all = [usual(0, false), usual(0, true), seven, usual(most, true), usual(u32::MAX, true)];
    assert_eq!(w.tables(), all);
    // One that is not there, and the default table, which stays.
    for gone in [table(7, false, ""), table(7, true, ""), table(7, true, ""), table(0, true, "")] {
        assert_eq!(w.change_table(false, gone), 0);
    }
    assert_eq!(w.tables(), [all[0].clone(), all[1].clone(), all[3].clone(), all[4].clone()]);
    // The name has gone with the table, however that went.
    let request = IpTableAddDelV2 { table: table(7, true, "x"), create_mfib: true, is_add: true };
    assert_eq!(w.1.call::<_, IpTableAddDelV2Reply>(&mut w.0, &request).0, 0);
    w.0.ok("ip6 table del 7\nip6 table add 7");
    assert_eq!(w.tables()[2], usual(7, true));
    // Names that a command line cannot say are refused.
    for name in ["\u{1b}[2J\n", "'; drop"] {
        assert_eq!(w.change_table(true, table(7, true, name)), -7);
        assert_eq!(w.tables()[2], usual(7, true));
    }
    // Others are what clients make of them.
    for name in ["\u{fffd}\u{202e}x", &"ü".repeat(40)] {
        assert_eq!(w.change_table(true, table(7, true, name)), 0);
        let shown = w.tables()[2].2.clone();
        assert!(name.starts_with(shown.trim_end_matches('\u{fffd}')), "{shown:?}");
        assert!(w.0.cli("show ip6 table").contains("] table_id:7 ipv6-VRF:7 routes:"));
    }
    let request = IpTableAllocate { table: table(u32::MAX, true, "any") };
    let (retval, reply): (i32, IpTableAllocateReply) = w.1.call(&mut w.0, &request);
    assert_eq!((retval, reply.table.table_id, reply.table.is_ip6), (0, 1, true));
    w.0.close();
}

#[test]
fn routes_of_the_other_version() {
    let mut w = World::new(true);
    assert_eq!(w.change_address(0, true, false, "2001:db8::1/64"), 0);
    let test0 = w.0.sw_if(0);
    let (first, second) = (via("2001:db8::2", test0.get()), via("2001:db8::3", u32::MAX));
    assert_eq!(w.change_route(true, false, route(0, "2001:db8:9::/48", vec![first.clone()])), 0);
    assert_eq!(w.change_route(true, true, route(0, "2001:db8:9::/48", vec![second.clone()])), 0);
    let request = IpRouteAddDelV2 {
        is_add: true,
        is_multipath: false,
        route: route(0, "2001:db8:a::1/48", vec![drop()]).into(),
    };
    let (retval, reply): (i32, IpRouteAddDelV2Reply) = w.1.call(&mut w.0, &request);
    assert_eq!((retval, reply.stats_index != u32::MAX), (0, true));
    let all = [
        "::/0",
        "2001:db8::/64",
        "2001:db8::1/128",
        "2001:db8:9::/48",
        "2001:db8:a::/48",
        "ff00::/8",
    ];
    assert_eq!(w.routes(table(0, true, "")), all);
    assert_eq!(w.routes(table(0, false, "")), ["0.0.0.0/0", "0.0.0.0/32"]);
    assert_eq!(w.routes(table(3, true, "")), [""; 0]);
    let (retval, found) = w.lookup("2001:db8:9::/48", 1);
    assert_eq!((retval, text(found.prefix).as_str()), (0, "2001:db8:9::/48"));
    let mut hops: Vec<_> = found.paths.iter().map(|p| (p.proto, p.nh.address.0)).collect();
    hops.sort_unstable_by_key(|h| h.1);
    assert_eq!(hops, [(first.proto, first.nh.address.0), (second.proto, second.nh.address.0)]);
    assert_eq!(text(w.lookup("2001:db8:9:1::7/128", 0).1.prefix), "2001:db8:9::/48");
    assert_eq!(w.lookup("2001:db8:9:1::7/128", 1).0, -6);
    assert_eq!(w.change_route(false, true, route(0, "2001:db8:9::/48", vec![first])), 0);
    assert_eq!(w.lookup("2001:db8:9::/48", 1).1.paths.len(), 1);
    assert_eq!(w.change_route(false, false, route(0, "2001:db8:9::/48", vec![])), 0);
    assert_eq!(w.change_route(false, false, route(0, "2001:db8:9::/48", vec![])), 0);
    assert_eq!(w.change_route(true, false, route(9, "2001:db8:9::/48", vec![drop()])), -3);
    assert_eq!(w.change_route(true, false, route(0, "2001:db8:9::/48", vec![])), -52);
    // IPv4 over an IPv6 next hop, and the other way round.
    let six = vec![via("2001:db8::2", test0.get())];
    assert_eq!(w.change_route(true, false, route(0, "192.0.2.0/24", six)), 0);
    assert_eq!(w.lookup("192.0.2.0/24", 1).1.paths[0].proto, FibPathNhProto::IP6);
    let four = vec![via("10.0.0.9", test0.get())];
    assert_eq!(w.change_route(true, false, route(0, "2001:db8:b::/48", four)), 0);
    w.0.close();
}

/// Each field of a path is honoured and dumped, or refused.
#[test]
fn each_field_of_a_path_counts() {
    let mut w = World::new(true);
    assert_eq!(w.change_address(0, true, false, "10.0.0.1/24"), 0);
    let test0 = w.0.sw_if(0);
    let best = FibPath { weight: 3, ..via("10.0.0.2", test0.get()) };
    let next = FibPath { preference: 1, ..via("10.0.0.3", test0.get()) };
    let both = vec![best.clone(), next.clone()];
    assert_eq!(w.change_route(true, false, route(0, "192.0.2.0/24", both)), 0);
    let shown = |w: &mut World| {
        let paths = w.lookup("192.0.2.0/24", 1).1.paths;
        let mut all: Vec<_> = paths.iter().map(|p| (p.preference, p.weight)).collect();
        all.sort_unstable();
        all
    };
    assert_eq!(shown(&mut w), [(0, 3), (1, 1)]);
    // A path that is added again gets what it says now.
    let later = vec![FibPath { preference: 2, weight: 9, ..best.clone() }];
    assert_eq!(w.change_route(true, true, route(0, "192.0.2.0/24", later)), 0);
    assert_eq!(shown(&mut w), [(1, 1), (2, 9)]);
    // A path is found whatever its share is.
    assert_eq!(w.change_route(false, true, route(0, "192.0.2.0/24", vec![best.clone()])), 0);
    assert_eq!(shown(&mut w), [(1, 1)]);
    // One that leads nowhere yet is kept.
    let nowhere = vec![via("172.16.0.1", u32::MAX)];
    assert_eq!(w.change_route(true, true, route(0, "192.0.2.0/24", nowhere)), 0);
    assert_eq!(shown(&mut w).len(), 2);
    let refused = [
        (-9, FibPath { flags: FibPathFlags::RESOLVE_VIA_HOST, ..best.clone() }),
        (-9, FibPath { rpf_id: 7, ..best.clone() }),
        (-7, FibPath { n_labels: 17, ..best.clone() }),
        (-7, FibPath { n_labels: 13, ..best.clone() }),
        (-9, FibPath { r#type: FibPathType::CLASSIFY, ..best.clone() }),
        (-7, FibPath { r#type: FibPathType(99), ..best.clone() }),
        (-7, FibPath { proto: FibPathNhProto(99), ..best.clone() }),
        (-7, FibPath { preference: 1, ..drop() }),
        (-7, FibPath { weight: 2, ..drop() }),
        (-2, via("10.0.0.2", 77)),
        (-3, FibPath { table_id: 9, ..via("0.0.0.0", u32::MAX) }),
        (-9, FibPath { proto: FibPathNhProto::IP6, ..via("0.0.0.0", u32::MAX) }),
        (-7, FibPath { weight: 2, ..via("0.0.0.0", u32::MAX) }),
        (-7, FibPath { n_labels: 1, ..via("0.0.0.0", u32::MAX) }),
        (-9, FibPath { proto: FibPathNhProto::MPLS, ..best.clone() }),
        (-9, FibPath { proto: FibPathNhProto::MPLS, ..via("0.0.0.0", u32::MAX) }),
        (-54, FibPath { r#type: FibPathType::INTERFACE_RX, ..via("0.0.0.0", u32::MAX) }),
        (-2, FibPath { r#type: FibPathType::INTERFACE_RX, ..via("0.0.0.0", 77) }),
    ];
    for (retval, path) in refused {
        let text = format!("{path:?}");
        let route = route(0, "198.51.100.0/24", vec![path]);
        assert_eq!(w.change_route(true, false, route), retval, "{text}");
    }
    assert_eq!(w.lookup("198.51.100.0/24", 1).0, -6);
    w.0.close();
}

#[test]
fn packets_are_looked_up_again_by_a_path() {
    let mut w = World::new(true);
    let test1 = w.0.sw_if(1);
    assert_eq!(w.change_table(true, table(7, false, "")), 0);
    let look = FibPath { table_id: 7, ..via("0.0.0.0", u32::MAX) };
    let rx = FibPath { r#type: FibPathType::INTERFACE_RX, ..via("0.0.0.0", test1.get()) };
    for path in [look, rx] {
        assert_eq!(w.change_route(true, false, route(0, "192.0.2.0/24", vec![path.clone()])), 0);
        let (_, found) = w.lookup("192.0.2.0/24", 1);
        let [shown] = &found.paths[..] else { panic!("{found:?}") };
        assert_eq!((shown.r#type, shown.sw_if_index), (path.r#type, path.sw_if_index));
        assert!(shown.sw_if_index != u32::MAX || shown.table_id == 7);
        assert_eq!(w.change_route(false, true, route(0, "192.0.2.0/24", vec![path])), 0);
        assert_eq!(w.lookup("192.0.2.0/24", 1).0, -6);
    }
    w.0.close();
}

#[test]
fn a_table_goes_with_its_last_user() {
    let mut w = World::new(true);
    let there = |w: &mut World| w.tables().iter().any(|t| t.0 == 7);
    let add = |w: &mut World| {
        assert_eq!(w.change_table(true, table(7, false, "")), 0);
        assert_eq!(w.change_route(true, false, route(7, "192.0.2.0/24", vec![drop()])), 0);
    };
    add(&mut w);
    assert_eq!(w.set_table(1, false, 7), 0);
    assert_eq!(w.change_table(false, table(7, false, "")), 0);
    // Its configured routes go at once.
    assert!(there(&mut w) && w.routes(table(7, false, "")).iter().all(|r| r != "192.0.2.0/24"));
    assert_eq!(w.set_table(1, false, 0), 0);
    assert!(!there(&mut w));
    // A client that adds it again keeps it.
    add(&mut w);
    assert_eq!(w.set_table(1, false, 7), 0);
    assert_eq!(w.change_table(false, table(7, false, "")), 0);
    add(&mut w);
    assert_eq!(w.set_table(1, false, 0), 0);
    assert!(there(&mut w));
    w.0.close();
}

#[test]
fn routes_of_the_other_version_are_replaced() {
    let mut w = World::new(true);
    assert_eq!(w.change_table(true, table(7, true, "")), 0);
    assert_eq!(w.change_table(true, table(7, false, "")), 0);
    let add = |w: &mut World, to: &str| w.change_route(true, false, route(7, to, vec![drop()]));
    for to in ["2001:db8:1::/48", "2001:db8:2::/48", "192.0.2.0/24"] {
        assert_eq!(add(&mut w, to), 0);
    }
    let (four, six) = (table(7, false, ""), table(7, true, ""));
    let count = |w: &mut World| (w.routes(four.clone()).len(), w.routes(six.clone()).len());
    assert_eq!(count(&mut w), (3, 4));
    // A begin of one version means nothing to the other.
    assert_eq!(w.table_call(1, six.clone()), 0);
    assert_eq!(w.table_call(2, four.clone()), 0);
    assert_eq!(count(&mut w), (3, 4));
    assert_eq!((add(&mut w, "2001:db8:2::/48"), add(&mut w, "198.51.100.0/24")), (0, 0));
    assert_eq!(w.table_call(2, six.clone()), 0);
    assert_eq!(count(&mut w), (4, 3));
    assert!(leaf(&w.0, TableId(7), "2001:db8:2::/48").is_some());
    assert_eq!(leaf(&w.0, TableId(7), "2001:db8:1::/48"), None);
    assert_eq!(w.table_call(2, six.clone()), 0);
    assert_eq!(count(&mut w), (4, 3));
    // A table that has gone meanwhile is another one.
    assert_eq!(w.table_call(1, six.clone()), 0);
    w.0.ok("ip6 table del 7\nip6 table add 7\nip route add 2001:db8:3::/48 table 7 drop");
    assert_eq!(w.table_call(2, six.clone()), 0);
    assert_eq!(count(&mut w), (4, 3));
    assert_eq!(w.table_call(0, six.clone()), 0);
    assert_eq!(count(&mut w), (4, 2));
    for which in 0..3 {
        assert_eq!(w.table_call(which, table(8, true, "")), -3);
    }
    w.0.close();
}

#[test]
fn addresses_of_the_other_version() {
    let mut w = World::new(true);
    assert_eq!(w.change_table(true, table(7, true, "")), 0);
    assert_eq!((w.set_table(1, true, 7), w.set_table(1, true, 8)), (0, -3));
    assert_eq!((w.table_of(1, true), w.table_of(1, false)), (7, 0));
    for address in ["2001:db8::1/64", "2001:db8:0:1::1/127", "10.0.1.1/24"] {
        assert_eq!(w.change_address(1, true, false, address), 0);
    }
    assert_eq!(w.addresses(1, true), ["2001:db8::1/64", "2001:db8:0:1::1/127"]);
    assert_eq!(w.addresses(1, false), ["10.0.1.1/24"]);
    let request = IpDump { is_ipv6: true };
    let all: Vec<IpDetails> = w.1.dump(&mut w.0, &request, &World::last());
    let all: Vec<_> = all.iter().map(|d| (SwIfIndex(d.sw_if_index.0), d.is_ipv6)).collect();
    assert_eq!(all, [(w.0.sw_if(1), true)]);
    assert_eq!(w.set_table(1, true, 0), -114);
    assert_eq!(w.change_address(1, true, false, "2001:db8::1/64"), -105);
    assert_eq!(w.change_address(1, true, false, "ff02::1/64"), -7);
    assert_eq!(w.change_address(1, false, false, "2001:db8::9/64"), -60);
    // Replacing concerns both versions.
    let World(lab, client) = &mut w;
    let begin = SwInterfaceAddressReplaceBegin;
    let (retval, _): (i32, SwInterfaceAddressReplaceBeginReply) = client.call(lab, &begin);
    assert_eq!(retval, 0);
    assert_eq!(w.change_address(1, true, false, "2001:db8::1/64"), 0);
    let World(lab, client) = &mut w;
    let end = SwInterfaceAddressReplaceEnd;
    let (retval, _): (i32, SwInterfaceAddressReplaceEndReply) = client.call(lab, &end);
    assert_eq!(retval, 0);
    assert_eq!(
        (w.addresses(1, true), w.addresses(1, false)),
        (vec!["2001:db8::1/64".into()], vec![])
    );
    // The removal of all addresses ends it, too.
    assert_eq!(w.change_address(1, true, false, "10.0.1.1/24"), 0);
    assert_eq!(w.change_address(1, false, true, "0.0.0.0/0"), 0);
    assert_eq!((w.addresses(1, true), w.addresses(1, false)), (vec![], vec![]));
    assert_eq!(w.set_table(1, true, 0), 0);
    w.0.close();
}

#[test]
fn a_version_that_nobody_brings_is_refused() {
    let mut w = World::new(false);
    let six = || table(0, true, "");
    assert_eq!(w.change_table(true, table(7, true, "")), -9);
    assert_eq!(w.change_table(false, table(7, true, "")), -9);
    let request = IpTableAllocate { table: table(u32::MAX, true, "any") };
    let (retval, _): (i32, IpTableAllocateReply) = w.1.call(&mut w.0, &request);
    assert_eq!(retval, -9);
    assert_eq!(w.tables(), [(0, false, "ipv4-VRF:0".to_owned())]);
    for which in 0..3 {
        assert_eq!(w.table_call(which, six()), -9);
    }
    assert_eq!(w.routes(six()), [""; 0]);
    assert_eq!(w.change_route(true, false, route(0, "2001:db8::/32", vec![drop()])), -9);
    assert_eq!(w.change_route(true, false, route(0, "2001:db8::/32", vec![])), -9);
    assert_eq!(w.change_route(false, false, route(0, "2001:db8::/32", vec![])), -9);
    let six_hop = vec![via("fe80::1", w.0.sw_if(0).get())];
    assert_eq!(w.change_route(true, false, route(0, "192.0.2.0/24", six_hop)), -9);
    assert_eq!(w.lookup("2001:db8::/32", 0).0, -9);
    assert_eq!(w.change_address(0, true, false, "2001:db8::1/64"), -9);
    assert_eq!(w.change_address(0, false, false, "2001:db8::1/64"), -9);
    assert_eq!((w.set_table(0, true, 0), w.set_table(0, true, 7)), (0, -9));
    assert_eq!((w.table_of(0, true), w.addresses(0, true)), (0, vec![]));
    let request = IpDump { is_ipv6: true };
    let all: Vec<IpDetails> = w.1.dump(&mut w.0, &request, &World::last());
    assert!(all.is_empty());
    assert_eq!((w.ping("2001:db8::1", 1, 1.0), w.ping("2001:db8::1", 0, -1.0)), (-9, -9));
    w.0.close();
}

#[test]
fn pings_are_refused_or_end() {
    let mut w = World::new(true);
    assert_eq!(w.change_address(0, true, false, "2001:db8::1/64"), 0);
    for (to, repeat, interval, want) in [
        ("2001:db8::2", 0, 1.0, -7),
        ("2001:db8::2", 1, 0.0, -7),
        ("2001:db8::2", 1, -1.0, -7),
        ("2001:db8::2", 1, f64::NAN, -7),
        ("2001:db8::2", 1, 1e300, -7),
        ("2001:db8:7::2", 1, 1.0, -1),
        ("ff02::1", 1, 1.0, -1),
        ("2001:db8::2", u32::MAX, 1.0, 0),
    ] {
        assert_eq!(w.ping(to, repeat, interval), want, "{to} {repeat} {interval}");
    }
    w.0.close();
}
