//! Protocols for addresses of 32 and of 128 bits, without packets.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use thalweg_buffer::PktMut;
use thalweg_cli::Command;
use thalweg_config::declare::Section;
use thalweg_device::SwIfIndex;
use thalweg_device::testing::Lab;
use thalweg_engine::Feature;
use thalweg_feat_ip::cli::{
    ip_table::IpTable, set_interface_ip_table::SetInterfaceIpTable, show_ip_fib::ShowIpFib,
    show_ip_table::ShowIpTable,
};
use thalweg_feat_ip::ping::Echo;
use thalweg_feat_ip::{Family, IfAddress, Ip, Leaves, Path, PathKind, Settings, register};
use thalweg_fib::TableId;
use thalweg_graph::{Built, Control, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::qsbr::Domain;
use thalweg_tables::{Address, Leaf, Lpm, LpmError, Prefix};

/// Sample values of a type of addresses.
pub trait Sample: Address {
    const DROPPED: &'static [(Self, u8)];
    /// An address of the documentation's network of interface `n`.
    fn of(n: u8, host: u8) -> Self;
}

impl Sample for u32 {
    const DROPPED: &'static [(u32, u8)] = &[(0, 32)];
    fn of(n: u8, host: u8) -> u32 {
        u32::from_be_bytes([10, 0, n, host])
    }
}

impl Sample for u128 {
    const DROPPED: &'static [(u128, u8)] = &[(0xff << 120, 8)];
    fn of(n: u8, host: u8) -> u128 {
        0x2001_0db8 << 96 | u128::from(n) << 64 | u128::from(host)
    }
}

/// Leaves as workers would read them.
type Shared<A> = Arc<Mutex<BTreeMap<Prefix<A>, Leaf>>>;

#[derive(Default)]
struct Tree<A>(Shared<A>);

impl<A: Address> Lpm<A> for Tree<A> {
    fn set(&mut self, prefix: Prefix<A>, leaf: Leaf, _: &Domain) -> Result<(), LpmError> {
        self.0.lock().unwrap().insert(prefix, leaf);
        Ok(())
    }
    fn unset(&mut self, prefix: Prefix<A>) {
        self.0.lock().unwrap().remove(&prefix);
    }
    fn memory(&self) -> usize {
        self.0.lock().unwrap().len() * size_of::<Prefix<A>>()
    }
    fn lengths(&self) -> Vec<usize> {
        let mut all = vec![0; usize::from(A::BITS) + 1];
        self.0.lock().unwrap().keys().for_each(|p| all[usize::from(p.len())] += 1);
        all
    }
    fn reclaim(&mut self, _: &Domain) {}
}

/// The protocol's published state.
#[derive(Default)]
pub struct Published<A> {
    made: BTreeMap<TableId, Shared<A>>,
    /// Tables by id.
    pub tables: BTreeMap<TableId, Shared<A>>,
    /// Table and addresses of the interfaces.
    pub interfaces: BTreeMap<SwIfIndex, (TableId, Vec<IfAddress<A>>)>,
}

pub struct Stub<A>(PhantomData<fn(A)>);

impl<A: Sample> Family<A> for Stub<A> {
    fn leaves(&self, c: &Control, _: TableId, serial: u32) -> Result<Leaves<A>, LpmError> {
        let tree = Tree::default();
        c.state::<Published<A>>().borrow_mut().made.insert(TableId(serial), tree.0.clone());
        Ok(Box::new(tree))
    }
    fn publish(&self, c: &mut Control, _: TableId) {
        let (ip, published) = (c.state::<Ip<A>>(), c.state::<Published<A>>());
        let (ip, mut published) = (ip.borrow(), published.borrow_mut());
        let table = |id| Some((id, published.made.get(&TableId(ip.serial(id)?))?.clone()));
        published.tables = ip.table_ids().into_iter().filter_map(table).collect();
    }
    fn publish_interface(&self, c: &mut Control, sw_if: SwIfIndex) {
        let (ip, published) = (c.state::<Ip<A>>(), c.state::<Published<A>>());
        let ip = ip.borrow();
        let row = (ip.table_of(sw_if), ip.addresses(sw_if).to_vec());
        published.borrow_mut().interfaces.insert(sw_if, row);
    }
    fn dropped(&self) -> &'static [(A, u8)] {
        A::DROPPED
    }
    fn unusable(&self, addr: A, subnet: Prefix<A>) -> Option<&'static str> {
        if addr.to_ip().is_multicast() {
            return Some("it is a multicast address");
        }
        let is_subnet = addr == subnet.addr() && subnet.len() < A::BITS - 1;
        is_subnet.then_some("it is the subnet address")
    }
    fn routes(&self, sw_if: SwIfIndex, addr: A, subnet: Prefix<A>) -> Vec<(Prefix<A>, Path)> {
        vec![(subnet, Path::connected(sw_if)), (Prefix::host(addr), Path::special(PathKind::Local))]
    }
    fn lookup_node(&self) -> &'static str {
        "stub-lookup"
    }
    fn max_echo(&self) -> u16 {
        1000
    }
    fn echo_request(&self, from: A, to: A, echo: Echo<'_>) -> Option<Vec<u8>> {
        let head = format!("{} {} {} {}\n", from.to_ip(), to.to_ip(), echo.id, echo.seq);
        Some([head.as_bytes(), echo.data].concat())
    }
}

/// End of the arc of received packets.
static INPUT: NodeDecl =
    NodeDecl { name: "ethernet-input", build: |_| Built::node(Sink(None)), ..NodeDecl::DEFAULT };
static LOOKUP: NodeDecl = NodeDecl {
    name: "stub-lookup",
    build: |cx| Built::node(Sink(Some(cx.shared()))),
    ..NodeDecl::DEFAULT
};

/// Echo requests that the router has sent: their heads, and lengths of their data.
#[derive(Default)]
pub struct Requests(pub Mutex<Vec<(String, usize)>>);

struct Sink(Option<Arc<Requests>>);

impl Node for Sink {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (packet, kept) = cx.take(p);
        if let Some(requests) = &self.0 {
            let end = packet.data().iter().position(|b| *b == b'\n').expect("a head");
            let (head, data) = packet.data().split_at(end);
            let head = String::from_utf8(head.to_vec()).expect("text");
            requests.0.lock().unwrap().push((head, data.len() - 1));
        }
        cx.deliver(packet);
        kept
    }
}

static AROUND: Feature = Feature {
    name: "around",
    about: "what surrounds IP",
    nodes: &[&INPUT, &LOOKUP],
    init: |c| c.share(Arc::new(Requests::default())),
    ..Feature::DEFAULT
};

pub static SETTINGS_4: Settings<u32> = Settings(&Stub(PhantomData));
pub static SETTINGS_6: Settings<u128> = Settings(&Stub(PhantomData));

fn init<A: Sample>(c: &mut Control) {
    c.insert(Published::<A> {
        made: BTreeMap::new(),
        tables: BTreeMap::new(),
        interfaces: BTreeMap::new(),
    });
    register::<A>(c, &Stub(PhantomData));
}

/// A protocol of 32 bits, whose commands are there already.
pub static STUB_4: Feature = Feature {
    name: "stub4",
    settings: &[&SETTINGS_4 as &dyn Section<Control>],
    init: init::<u32>,
    ..Feature::DEFAULT
};

/// A protocol of 128 bits.
pub static STUB_6: Feature = Feature {
    name: "stub6",
    commands: &[
        &IpTable::<u128>(PhantomData) as &dyn Command<Control>,
        &SetInterfaceIpTable::<u128>(PhantomData),
        &ShowIpFib::<u128>(PhantomData),
        &ShowIpTable::<u128>(PhantomData),
    ],
    settings: &[&SETTINGS_6 as &dyn Section<Control>],
    init: init::<u128>,
    ..Feature::DEFAULT
};

/// Three interfaces with these protocols.
pub fn lab(protocols: &[&'static Feature]) -> Lab {
    let ip = [&thalweg_feat_ip::FEATURE, &AROUND];
    Lab::of_all(&[&ip[..], protocols].concat()).buffers(256).start()
}

/// The leaf of a prefix in the table that workers read.
pub fn leaf(lab: &Lab, table: TableId, prefix: &str) -> Option<Leaf> {
    let (addr, len) = prefix.split_once('/').expect("a prefix");
    let (addr, len) = (addr.parse().expect("an address"), len.parse().expect("a length"));
    match addr {
        IpAddr::V4(_) => leaf_of::<u32>(lab, table, addr, len),
        IpAddr::V6(_) => leaf_of::<u128>(lab, table, addr, len),
    }
}

fn leaf_of<A: Sample>(lab: &Lab, table: TableId, addr: IpAddr, len: u8) -> Option<Leaf> {
    let prefix = Prefix::new(A::from_ip(addr)?, len).expect("a length");
    let published = lab.c.state::<Published<A>>();
    let tables = &published.borrow().tables;
    tables.get(&table).and_then(|leaves| leaves.lock().unwrap().get(&prefix).copied())
}
