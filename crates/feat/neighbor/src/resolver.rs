//! Contributions of an address family's protocol.

use crate::Version;
use crate::neighbors::Neighbors;
use std::net::IpAddr;
use thalweg_device::{InterfaceView, MacAddr, SwIfIndex};
use thalweg_fib::{Forwarding, Kind, LinkType};
use thalweg_graph::Control;

/// Resolves the addresses of one family to MAC addresses: ARP, or neighbour discovery. To be
/// registered with [`register`]; all calls are on the main thread, without a borrow of
/// [`Neighbors`].
pub trait Resolver: Sync {
    /// The family.
    fn family(&self) -> Version;

    /// Nodes that report senders by a [`Reporter`](crate::Reporter) each. They get the messages for
    /// [`Reporter::message`](crate::Reporter::message).
    fn reporters(&self) -> &'static [&'static str];

    /// Returns whether the interface has an address from which to ask for `ip`.
    fn can_ask(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool;

    /// Sends a request for `ip` with [`send`](crate::send): to all, or to the MAC address at which
    /// it was last heard.
    fn ask(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr, to: Option<MacAddr>);

    /// Returns whether a host of the link can have this address, by the interface's addresses and
    /// by routes. Only such neighbours are learned.
    fn is_peer(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool;

    /// Returns whether a neighbour with this address gets a host route: a subnet of the interface,
    /// or a route to it, covers the address.
    fn is_connected(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> bool;

    /// Returns why a neighbour with this address cannot be configured.
    fn refuse(&self, c: &Control, sw_if: SwIfIndex, ip: IpAddr) -> Option<&'static str>;

    /// Announces an address to the interface's link, as if it had that.
    fn announce_one(&self, c: &mut Control, view: &InterfaceView, ip: IpAddr);

    /// Announces the interface's addresses to its link; returns their number.
    fn announce(&self, c: &mut Control, view: &InterfaceView) -> usize;
}

/// Nodes that hold packets of a link type in a [`Hold`](crate::Hold).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HoldNodes {
    /// Node of adjacencies whose neighbour is not resolved.
    pub incomplete: &'static str,
    /// Node of destinations in connected subnets.
    pub glean: Option<&'static str>,
}

/// Makes a resolver known. To be called from the `init` of its feature.
pub fn register(c: &mut Control, resolver: &'static dyn Resolver) {
    c.state::<Neighbors>().borrow_mut().add_resolver(resolver);
}

/// Sets the nodes that hold packets of a link type. To be called from the `init` of the feature
/// that has them.
pub fn hold_at(c: &mut Control, link: LinkType, nodes: HoldNodes) {
    {
        let forwarding = c.state::<Forwarding>();
        let mut f = forwarding.borrow_mut();
        f.set_exit(link, Kind::INCOMPLETE, nodes.incomplete);
        if let Some(glean) = nodes.glean {
            f.set_exit(link, Kind::GLEAN, glean);
        }
    }
    c.state::<Neighbors>().borrow_mut().add_holders(link, nodes);
}
