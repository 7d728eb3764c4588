//! Features that take packets to the router itself: by IP protocol, or by UDP port.
//!
//! ICMP belongs to the version's own feature. Its node for local packets refuses the rest.

use crate::Version;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_graph::{BuildCx, Control, NodeId};
use thalweg_tables::Address;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::ip::protocol;

/// The protocol or port that packets are taken by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Key {
    Protocol(u8),
    UdpPort(u16),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Key::Protocol(p) => write!(f, "IP protocol {p}"),
            Key::UdpPort(p) => write!(f, "UDP port {p}"),
        }
    }
}

/// Reason why a protocol or port cannot be taken.
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

/// The nodes that take a version's local packets, as workers read them.
#[derive(Debug)]
pub struct Takers<A: 'static> {
    /// Sorted.
    protocols: Vec<(u8, NodeId)>,
    /// Sorted.
    udp_ports: Vec<(u16, NodeId)>,
    version: PhantomData<fn(A)>,
}

impl<A: 'static> Takers<A> {
    const NONE: Self =
        Takers { protocols: Vec::new(), udp_ports: Vec::new(), version: PhantomData };
}

fn find<K: Ord + Copy>(sorted: &[(K, NodeId)], key: K) -> Option<NodeId> {
    sorted.binary_search_by_key(&key, |e| e.0).ok().map(|i| sorted[i].1)
}

impl<A: 'static> Takers<A> {
    /// Returns the node that takes an IP protocol.
    pub fn protocol(&self, protocol: u8) -> Option<NodeId> {
        find(&self.protocols, protocol)
    }

    /// Returns the node that takes a UDP port.
    pub fn udp_port(&self, port: u16) -> Option<NodeId> {
        find(&self.udp_ports, port)
    }
}

struct Registry<A: 'static> {
    taken: BTreeMap<Key, &'static str>,
    writer: snapshot::Writer<Takers<A>>,
}

/// Called by the version's feature, in its `init`.
pub fn init<A: Address>(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(Takers::<A>::NONE);
    let snapshot: Arc<Snapshot<Takers<A>>> = snapshot;
    c.share(snapshot);
    c.insert(Registry { taken: BTreeMap::new(), writer });
}

/// Returns the table that the version's node for local packets reads.
pub fn takers<A: Address>(cx: &BuildCx<'_>) -> Arc<Snapshot<Takers<A>>> {
    cx.shared()
}

/// Publishes the takers whose nodes exist: before the graph is built, none does.
pub fn publish<A: Address>(c: &mut Control) {
    let registry = c.state::<Registry<A>>();
    let mut registry = registry.borrow_mut();
    let mut takers = Takers::<A>::NONE;
    for (key, name) in &registry.taken {
        let by = format_args!("{key} over {}", Version::of::<A>());
        let Some(node) = c.named_node(name, by) else { continue };
        match key {
            Key::Protocol(p) => takers.protocols.push((*p, node)),
            Key::UdpPort(p) => takers.udp_ports.push((*p, node)),
        }
    }
    registry.writer.publish(c.domain(), takers);
}

fn take<A: Address>(c: &mut Control, key: Key, node: &'static str) -> Result<(), LocalError> {
    let registry = c.state::<Registry<A>>();
    let (icmp, local) = match Version::of::<A>() {
        Version::V4 => ((protocol::ICMP, "ip4-icmp-input"), "ip4-local"),
        Version::V6 => ((protocol::ICMPV6, "ip6-icmp-input"), "ip6-local"),
    };
    let has = match key {
        Key::Protocol(p) if p == icmp.0 => Some(icmp.1),
        Key::Protocol(protocol::UDP) => Some(local),
        _ => registry.borrow().taken.get(&key).copied(),
    };
    if let Some(has) = has.filter(|n| *n != node) {
        return Err(LocalError::Taken { what: key.to_string(), node: has });
    }
    registry.borrow_mut().taken.insert(key, node);
    publish::<A>(c);
    Ok(())
}

/// Lets a node take the packets of an IP protocol to the router itself. They begin at the IP
/// header; fragments are not among them.
///
/// # Errors
/// [`LocalError::Taken`].
pub fn take_protocol<A: Address>(
    c: &mut Control,
    protocol: u8,
    node: &'static str,
) -> Result<(), LocalError> {
    take::<A>(c, Key::Protocol(protocol), node)
}

/// Lets a node take the datagrams to a UDP port of the router itself. They begin at the IP header;
/// their UDP length has been checked, and their checksum has not.
///
/// # Errors
/// [`LocalError::Taken`].
pub fn take_udp_port<A: Address>(
    c: &mut Control,
    port: u16,
    node: &'static str,
) -> Result<(), LocalError> {
    take::<A>(c, Key::UdpPort(port), node)
}

/// Returns the UDP ports that are taken, in order, and the nodes that take them.
pub fn udp_ports<A: Address>(c: &Control) -> Vec<(u16, &'static str)> {
    let registry = c.state::<Registry<A>>();
    let registry = registry.borrow();
    let port = |(key, node): (&Key, &&'static str)| match key {
        Key::UdpPort(port) => Some((*port, *node)),
        Key::Protocol(_) => None,
    };
    registry.taken.iter().filter_map(port).collect()
}

/// Gives a protocol back.
pub fn release_protocol<A: Address>(c: &mut Control, protocol: u8) {
    release::<A>(c, Key::Protocol(protocol));
}

/// Gives a UDP port back: datagrams to it are refused.
pub fn release_udp_port<A: Address>(c: &mut Control, port: u16) {
    release::<A>(c, Key::UdpPort(port));
}

fn release<A: Address>(c: &mut Control, key: Key) {
    let gone = c.state::<Registry<A>>().borrow_mut().taken.remove(&key);
    if gone.is_some() {
        publish::<A>(c);
    }
}
