//! Features that take packets to the router itself: by IP protocol, or by UDP port.
//!
//! ICMPv6 belongs to this feature. What nobody takes is refused by `ip6-local`.

use std::collections::BTreeMap;
use std::sync::Arc;
use thalweg_graph::{BuildCx, Control, NodeId};
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::ip::protocol;

/// What a packet is taken by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Protocol(u8),
    UdpPort(u16),
}

/// Why a protocol or port cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LocalError {
    /// Another node takes it.
    #[error("{what} is taken by `{node}'")]
    Taken {
        /// The protocol or port.
        what: String,
        /// The node that has it.
        node: &'static str,
    },
}

/// The nodes that take local packets, as workers read them.
#[derive(Debug, Default)]
pub struct Takers {
    /// Sorted.
    protocols: Vec<(u8, NodeId)>,
    /// Sorted.
    udp_ports: Vec<(u16, NodeId)>,
}

fn find<K: Ord + Copy>(sorted: &[(K, NodeId)], key: K) -> Option<NodeId> {
    sorted.binary_search_by_key(&key, |e| e.0).ok().map(|i| sorted[i].1)
}

impl Takers {
    /// Returns the node that takes an IP protocol.
    pub fn protocol(&self, protocol: u8) -> Option<NodeId> {
        find(&self.protocols, protocol)
    }

    /// Returns the node that takes a UDP port.
    pub fn udp_port(&self, port: u16) -> Option<NodeId> {
        find(&self.udp_ports, port)
    }
}

struct Registry {
    taken: BTreeMap<Key, &'static str>,
    writer: snapshot::Writer<Takers>,
}

pub(crate) fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Takers::default());
    let snapshot: Arc<Snapshot<Takers>> = snapshot;
    c.share(snapshot);
    c.insert(Registry { taken: BTreeMap::new(), writer });
}

/// What `ip6-local` reads.
pub(crate) fn takers(cx: &BuildCx<'_>) -> Arc<Snapshot<Takers>> {
    cx.shared()
}

/// Publishes the takers whose nodes exist: before the graph is built, none does.
pub(crate) fn publish(c: &mut Control) {
    let registry = c.state::<Registry>();
    let mut registry = registry.borrow_mut();
    let mut takers = Takers::default();
    for (key, name) in &registry.taken {
        let Some(node) = c.node(name) else { continue };
        match key {
            Key::Protocol(p) => takers.protocols.push((*p, node)),
            Key::UdpPort(p) => takers.udp_ports.push((*p, node)),
        }
    }
    registry.writer.publish(c.domain(), takers);
}

fn take(c: &mut Control, key: Key, node: &'static str) -> Result<(), LocalError> {
    let registry = c.state::<Registry>();
    let has = match key {
        Key::Protocol(protocol::ICMPV6) => Some("ip6-icmp-input"),
        Key::Protocol(protocol::UDP) => Some("ip6-local"),
        _ => registry.borrow().taken.get(&key).copied(),
    };
    if let Some(has) = has.filter(|n| *n != node) {
        let what = match key {
            Key::Protocol(p) => format!("IP protocol {p}"),
            Key::UdpPort(p) => format!("UDP port {p}"),
        };
        return Err(LocalError::Taken { what, node: has });
    }
    registry.borrow_mut().taken.insert(key, node);
    publish(c);
    Ok(())
}

/// Has a node take the packets of an IP protocol to the router itself. They begin at the IPv6
/// header; fragments are not among them.
///
/// # Errors
/// [`LocalError::Taken`].
pub fn take_protocol(c: &mut Control, protocol: u8, node: &'static str) -> Result<(), LocalError> {
    take(c, Key::Protocol(protocol), node)
}

/// Has a node take the datagrams to a UDP port of the router itself. They begin at the IPv6 header;
/// their UDP length has been checked, and their checksum has not.
///
/// # Errors
/// [`LocalError::Taken`].
pub fn take_udp_port(c: &mut Control, port: u16, node: &'static str) -> Result<(), LocalError> {
    take(c, Key::UdpPort(port), node)
}

/// Returns the UDP ports that are taken, in order, and the nodes that take them.
pub fn udp_ports(c: &Control) -> Vec<(u16, &'static str)> {
    let registry = c.state::<Registry>();
    let registry = registry.borrow();
    let port = |(key, node): (&Key, &&'static str)| match key {
        Key::UdpPort(port) => Some((*port, *node)),
        Key::Protocol(_) => None,
    };
    registry.taken.iter().filter_map(port).collect()
}

/// Gives a protocol back.
pub fn release_protocol(c: &mut Control, protocol: u8) {
    release(c, Key::Protocol(protocol));
}

/// Gives a UDP port back: datagrams to it are refused.
pub fn release_udp_port(c: &mut Control, port: u16) {
    release(c, Key::UdpPort(port));
}

fn release(c: &mut Control, key: Key) {
    let gone = c.state::<Registry>().borrow_mut().taken.remove(&key);
    if gone.is_some() {
        publish(c);
    }
}
