//! Layer 2: cross connects and bridge domains.
//!
//! The frames of an interface in layer 2 go from `ethernet-input` to `l2-input`. A cross connect's
//! frames go to the other interface; a bridge domain's to `l2-learn`, `l2-fwd` and, if
//! needed, `l2-flood`. Workers look addresses up and report unknown ones to the main thread, which
//! alone writes the table ([`Bridges`]).
#![forbid(unsafe_code)]

pub mod api;
mod api_module;
mod api_types;
mod arp_term;
mod bridges;
pub mod cli;
mod cli_support;
mod error;
mod flush;
pub mod fuzzing;
mod learning;
pub mod message_types;
pub mod nodes;
mod ports;
mod rewriting;
mod section;
pub mod settings;
mod table;
mod trace;

pub use arp_term::{MAX_ARP_ENTRIES, flush_arp_entries, remove_arp_entry, set_arp_entry};
pub use bridges::{
    Address, Bridges, Counts, Domain, LEARN_LIMIT, Origin, PortFlags, Role, Settings,
};
pub use error::{L2Error, MAX_BRIDGE_ID};
pub(crate) use ports::bit as feature_bit;
pub use ports::{output_flags, port_flags, set_efp_filter, set_port_flags};
pub use rewriting::{edit_tags, replace_tags};
pub use table::L2Table;

use flush::{Done, FlushFilter};
use learning::Learning;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;
use std::sync::{Arc, Mutex};
use thalweg_device::{
    DeviceError, InterfaceEvent, Interfaces, MacAddr, Mode, SwIfIndex, TagRewrite, interface,
};
use thalweg_engine::{Came, Feature};
use thalweg_graph::{Control, NodeId};
use thalweg_tables::mac::MacTable;
use thalweg_tables::snapshot::{self, Snapshot};

/// The feature.
pub static FEATURE: Feature = Feature {
    name: "l2",
    about: "layer 2: cross connects and bridge domains",
    needs: &[&thalweg_device::FEATURE],
    nodes: nodes::NODES,
    commands: cli::COMMANDS,
    api: api::SERVICES,
    settings: &[&section::SETTINGS],
    declared: settings::SETTINGS,
    init,
    ready,
    ..Feature::DEFAULT
};

/// The event that this port has joined or left a bridge domain, or has become another one there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortsChanged(pub SwIfIndex);

/// State of layer 2 on the main thread.
pub struct L2 {
    xconnects: BTreeMap<SwIfIndex, SwIfIndex>,
    /// The same, from the other end.
    peers: BTreeSet<(SwIfIndex, SwIfIndex)>,
    bridges: Bridges,
    /// Interfaces that check the tags of frames that they send.
    efp_filters: BTreeSet<SwIfIndex>,
    writer: snapshot::Writer<L2Table>,
}

impl L2 {
    /// All cross connects as (rx, tx).
    pub fn xconnects(&self) -> impl Iterator<Item = (SwIfIndex, SwIfIndex)> + '_ {
        self.xconnects.iter().map(|(a, b)| (*a, *b))
    }
    /// Returns the interface that an interface's frames leave by, if it is cross connected.
    pub fn xconnect(&self, rx: SwIfIndex) -> Option<SwIfIndex> {
        self.xconnects.get(&rx).copied()
    }
    fn connect(&mut self, rx: SwIfIndex, tx: SwIfIndex) -> bool {
        let was = self.disconnect(rx);
        self.xconnects.insert(rx, tx);
        self.peers.insert((tx, rx));
        was
    }
    fn disconnect(&mut self, rx: SwIfIndex) -> bool {
        let tx = self.xconnects.remove(&rx);
        tx.is_some_and(|tx| self.peers.remove(&(tx, rx)))
    }
    /// All bridge domains.
    pub fn bridges(&self) -> &Bridges {
        &self.bridges
    }
}

fn init(c: &mut Control) {
    let (writer, snapshot) = snapshot::channel(L2Table::default());
    let snapshot: Arc<Snapshot<L2Table>> = snapshot;
    c.share(snapshot);
    // Reserves address space, hardly any memory; without it the router cannot run.
    let macs = match MacTable::new(bridges::MAX_ADDRESSES) {
        Ok(macs) => macs,
        Err(e) => return c.refuse_start(format_args!("MAC address table: {e}")),
    };
    c.share(macs.shared());
    let topic = c.topic("l2 address", learning::address_seen);
    let learning = Arc::new(Learning { seen: Mutex::new(Vec::new()), topic });
    c.share(Arc::clone(&learning));
    let bridges = Bridges::new(macs, learning);
    let (xconnects, peers) = (BTreeMap::new(), BTreeSet::new());
    c.insert(L2 { xconnects, peers, bridges, efp_filters: BTreeSet::new(), writer });
    c.insert(learning::Scan::default());
    c.insert(api_types::Watchers::default());
    c.insert(api_types::ArpWatchers::default());
    arp_term::init(c);
    c.subscribe(interface_changed);
}

fn ready(c: &mut Control) {
    for mode in [
        Mode::CrossConnect(SwIfIndex(0)),
        Mode::Bridged { domain: 0, number: 0, group: 0, bvi: false },
    ] {
        interface::register_mode(c, mode, "l2-input");
    }
    table::check_nodes(c);
    c.named_node("bvi-output", "the output of a BVI");
}

fn interface_changed(c: &mut Control, event: &InterfaceEvent) {
    let state = c.state::<L2>();
    match *event {
        InterfaceEvent::Created(new) => {
            let parent = interface::view(c, new).ok().and_then(|view| view.parent);
            if parent.is_some_and(|parent| is_bvi(c, parent)) {
                let output = c.node("bvi-output");
                // The interface exists, so this cannot fail.
                let _ = interface::set_output_end(c, new, output);
            }
        }
        InterfaceEvent::Deleted(gone) => {
            if interface::view(c, gone).is_ok_and(|v| !v.rewrite.is_none()) {
                // Its number may be another one's soon.
                let _ = set_tag_rewrite(c, gone, TagRewrite::NONE);
            }
            // The interface exists, so this cannot fail.
            let _ = set_efp_filter(c, gone, false);
            let ends: Vec<SwIfIndex> = {
                let l2 = state.borrow();
                let to_it = l2
                    .peers
                    .range((gone, SwIfIndex::MIN)..=(gone, SwIfIndex::MAX))
                    .map(|(_, rx)| *rx);
                let is_used = l2.xconnect(gone).is_some() || l2.bridges.of(gone).is_some();
                to_it.chain(is_used.then_some(gone)).collect()
            };
            for rx in ends {
                // Both interfaces still exist here, so this cannot fail.
                let _ = set_l3(c, rx);
            }
            // The table still says of hosts that they are behind it.
            if state.borrow().bridges.is_flushing_port(gone) {
                state.borrow_mut().bridges.leaving.push(gone);
                interface::keep_index(c, gone);
            }
        }
        InterfaceEvent::Mac(sw_if) if is_bvi(c, sw_if) => {
            // Only the table's limit can prevent it: the BVI then gets what is flooded.
            if let Err(e) = bvi_mac_changed(c, sw_if) {
                let name = c.interface_name(sw_if);
                tracing::warn!(
                    "`{name}' gets only what is flooded: no entry for its new MAC address: {e}"
                );
            }
        }
        // Hosts on a port that is down may reappear on another.
        InterfaceEvent::State(sw_if) => {
            let down = interface::view(c, sw_if).is_ok_and(|v| !v.is_up());
            if down && state.borrow().bridges.of(sw_if).is_some() {
                let learned = |origin| origin == Origin::Learned;
                let which = FlushFilter { port: Some(sw_if), origins: learned, ..FlushFilter::ALL };
                state.borrow_mut().bridges.flush(which, None);
                flush::start(c);
            }
        }
        _ => {}
    }
}

/// Cross connects `rx` to `tx`.
///
/// # Errors
/// If an interface does not exist or is not Ethernet, or both are the same.
pub fn set_xconnect(c: &mut Control, rx: SwIfIndex, tx: SwIfIndex) -> Result<(), DeviceError> {
    let (a, b) = (interface::view(c, rx)?, interface::view(c, tx)?);
    if rx == tx {
        let text = format!("`{}` cannot be connected to itself", a.name);
        return Err(DeviceError::Failed(text));
    }
    needs_ethernet(&a)?;
    needs_ethernet(&b)?;
    let state = c.state::<L2>();
    let was = {
        let mut l2 = state.borrow_mut();
        let bridged = l2.bridges.leave(rx);
        l2.connect(rx, tx) || bridged
    };
    enter(c, rx, was, Mode::CrossConnect(tx))?;
    flush::start(c);
    c.publish(PortsChanged(rx));
    Ok(())
}

fn needs_ethernet(v: &interface::InterfaceView) -> Result<(), DeviceError> {
    if v.ethernet {
        return Ok(());
    }
    let what = "layer 2 (it carries no Ethernet frames)".into();
    let kind = v.dev_type.into();
    Err(DeviceError::Unsupported { name: v.name.clone(), kind, what })
}

/// Moves an interface to layer 2, once workers have its new table.
fn enter(c: &mut Control, rx: SwIfIndex, was_there: bool, mode: Mode) -> Result<(), DeviceError> {
    table::publish_port(c, rx);
    if !was_there {
        interface::accept_all(c, rx, true)?;
    }
    interface::set_mode(c, rx, mode)
}

/// Returns an interface to layer 3.
///
/// # Errors
/// If the interface does not exist.
pub fn set_l3(c: &mut Control, rx: SwIfIndex) -> Result<(), DeviceError> {
    interface::view(c, rx)?;
    let state = c.state::<L2>();
    let was_bvi = is_bvi(c, rx);
    let was = {
        let mut l2 = state.borrow_mut();
        let bridged = l2.bridges.leave(rx);
        l2.disconnect(rx) || bridged
    };
    if !was {
        return Ok(());
    }
    interface::set_mode(c, rx, Mode::Routed)?;
    match was_bvi {
        true => {
            set_output_end(c, rx, None)?;
            interface::set_input_end(c, rx, None)?;
        }
        false => interface::accept_all(c, rx, false)?,
    }
    table::publish_port(c, rx);
    flush::start(c);
    c.publish(PortsChanged(rx));
    Ok(())
}

/// Sets what an interface changes about the VLAN tags of its frames while it is in layer 2.
///
/// # Errors
/// The errors of [`interface::set_tag_rewrite`].
pub fn set_tag_rewrite(
    c: &mut Control,
    sw_if: SwIfIndex,
    rewrite: TagRewrite,
) -> Result<(), DeviceError> {
    interface::set_tag_rewrite(c, sw_if, rewrite)?;
    ports::publish(c, sw_if);
    Ok(())
}

/// Creates a bridge domain.
///
/// # Errors
/// If the id is in use or out of range.
pub fn create_bridge(c: &mut Control, id: u32) -> Result<(), L2Error> {
    c.state::<L2>().borrow_mut().bridges.create(id)?;
    table::publish_bridge(c, id);
    c.publish(Came);
    Ok(())
}

/// Deletes a bridge domain that has no ports.
///
/// # Errors
/// If it does not exist or has ports.
pub fn delete_bridge(c: &mut Control, id: u32) -> Result<(), L2Error> {
    if c.state::<L2>().borrow().bridges.get(id).is_some_and(|d| d.ports.is_empty()) {
        arp_term::flush_arp_entries(c, id)?;
    }
    let number = c.state::<L2>().borrow_mut().bridges.delete(id)?;
    table::remove_bridge(c, number);
    flush::start(c);
    Ok(())
}

/// Changes settings of a bridge domain.
///
/// # Errors
/// If it does not exist.
pub fn set_bridge(
    c: &mut Control,
    id: u32,
    change: impl FnOnce(&mut Settings),
) -> Result<(), L2Error> {
    change(&mut c.state::<L2>().borrow_mut().bridges.find(id)?.settings);
    table::publish_bridge(c, id);
    learning::arm(c);
    Ok(())
}

/// Checks that a command line and a document can express a tag.
///
/// # Errors
/// [`L2Error::Tag`].
pub(crate) fn check_tag(tag: &str) -> Result<(), L2Error> {
    let odd = |c: char| c.is_control() || ['\'', '"'].contains(&c);
    if tag.len() <= 63 && !tag.contains(odd) { Ok(()) } else { Err(L2Error::Tag) }
}

/// Sets the user tag of a bridge domain; an empty tag removes it.
///
/// # Errors
/// If it does not exist, or the tag is not one.
pub fn set_bridge_tag(c: &Control, id: u32, tag: &str) -> Result<(), L2Error> {
    check_tag(tag)?;
    c.state::<L2>().borrow_mut().bridges.find(id)?.tag = tag.into();
    Ok(())
}

/// Adds an interface to a bridge domain, which is created if needed. Ports of the same nonzero
/// split horizon `group` do not exchange frames.
///
/// # Errors
/// If the interface does not exist or is not Ethernet, or the id is out of range.
///
/// The BVI is a loopback: frames to its MAC address go to layer 3, and what the router sends by it
/// is bridged. A bridge domain has one.
pub fn join_bridge(
    c: &mut Control,
    sw_if: SwIfIndex,
    id: u32,
    role: Role,
    group: u8,
) -> Result<(), L2Error> {
    let view = interface::view(c, sw_if)?;
    needs_ethernet(&view)?;
    if role == Role::Bvi && view.kind != interface::Kind::Loopback {
        return Err(L2Error::NotALoopback(view.name));
    }
    let state = c.state::<L2>();
    let other = |l2: &L2| match role {
        Role::Bvi => l2.bridges.get(id)?.bvi(),
        Role::UnknownForward => l2.bridges.get(id)?.unknown_forward(),
        Role::Member => None,
    };
    let other = other(&state.borrow()).filter(|other| *other != sw_if);
    match other {
        Some(bvi) if role == Role::Bvi => {
            return Err(L2Error::HasBvi { id, name: c.interface_name(bvi) });
        }
        // The last one that was named gets unknown frames.
        Some(before) => set_l3(c, before)?,
        None => {}
    }
    if is_bvi(c, sw_if) || role == Role::Bvi {
        // A BVI has settings that another port has not.
        set_l3(c, sw_if)?;
    }
    let (was, number) = {
        let mut l2 = state.borrow_mut();
        if l2.bridges.get(id).is_none() {
            l2.bridges.create(id)?;
        }
        let elsewhere = l2.bridges.of(sw_if).filter(|was| *was != id).is_some();
        let same = l2.bridges.of(sw_if) == Some(id);
        if elsewhere {
            l2.bridges.leave(sw_if);
        }
        let was = l2.disconnect(sw_if) || elsewhere || same;
        l2.bridges.join(id, sw_if, role, group)?;
        (was, l2.bridges.find(id)?.number)
    };
    let bvi = role == Role::Bvi;
    let mode = Mode::Bridged { domain: id, number, group, bvi };
    if bvi {
        let [input, output] = ["bvi-end-of-arc", "bvi-output"].map(|name| c.node(name));
        table::publish_port(c, sw_if);
        interface::set_input_end(c, sw_if, input)?;
        set_output_end(c, sw_if, output)?;
        interface::set_mode(c, sw_if, mode)?;
        add_address(c, id, view.mac, Some(sw_if), Origin::Bvi)?;
    } else {
        enter(c, sw_if, was, mode)?;
    }
    flush::start(c);
    c.publish(PortsChanged(sw_if));
    Ok(())
}

/// Sets the node to which frames of a BVI and of its sub-interfaces go when they leave.
fn set_output_end(c: &mut Control, bvi: SwIfIndex, end: Option<NodeId>) -> Result<(), DeviceError> {
    interface::set_output_end(c, bvi, end)?;
    let subs: Vec<SwIfIndex> = c.state::<Interfaces>().borrow().subs_of(bvi).collect();
    for sub in subs {
        interface::set_output_end(c, sub, end)?;
    }
    Ok(())
}

/// Returns whether an interface is the BVI of its bridge domain.
fn is_bvi(c: &Control, sw_if: SwIfIndex) -> bool {
    let state = c.state::<L2>();
    let l2 = state.borrow();
    let domain = l2.bridges.of(sw_if).and_then(|id| l2.bridges.get(id));
    domain.is_some_and(|domain| domain.role(sw_if) == Role::Bvi)
}

/// Gives the bridge domain of a BVI its new MAC address.
fn bvi_mac_changed(c: &Control, sw_if: SwIfIndex) -> Result<(), L2Error> {
    let (Some(id), mac) =
        (c.state::<L2>().borrow().bridges.of(sw_if), interface::view(c, sw_if)?.mac)
    else {
        return Ok(());
    };
    let readers = Arc::clone(c.domain());
    {
        let state = c.state::<L2>();
        let mut l2 = state.borrow_mut();
        if let Some(old) = l2.bridges.bvi_address(id) {
            l2.bridges.remove(&readers, id, old)?;
        }
    }
    add_address(c, id, mac, Some(sw_if), Origin::Bvi)
}

/// Adds an address to a bridge domain. [`Origin::Filter`] needs no port.
///
/// # Errors
/// If the bridge domain or port does not exist, or the table is full.
pub fn add_address(
    c: &Control,
    id: u32,
    mac: MacAddr,
    port: Option<SwIfIndex>,
    origin: Origin,
) -> Result<(), L2Error> {
    let view = port.map(|p| interface::view(c, p)).transpose()?;
    let port = view.as_ref().map(|v| (v.sw_if, v.name.as_str()));
    let domain = Arc::clone(c.domain());
    c.state::<L2>().borrow_mut().bridges.add(&domain, id, mac, port, origin)
}

/// Deletes an address from a bridge domain.
///
/// # Errors
/// If the address is not in the table.
pub fn remove_address(c: &Control, id: u32, mac: MacAddr) -> Result<(), L2Error> {
    let domain = Arc::clone(c.domain());
    c.state::<L2>().borrow_mut().bridges.remove_other(&domain, id, mac)?;
    table::publish_room(c);
    Ok(())
}

/// Scope of a flush.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flush {
    /// All learned addresses.
    Learned,
    /// Learned addresses of a bridge domain.
    Bridge(u32),
    /// Learned addresses of a port.
    Port(SwIfIndex),
    /// All addresses, static ones included.
    Everything,
}

/// Flushes addresses in slices, and calls `done` with their number. None of them is listed from now
/// on.
///
/// # Errors
/// If the bridge domain or interface does not exist.
pub fn flush(
    c: &mut Control,
    what: Flush,
    done: impl FnOnce(u32) + 'static,
) -> Result<(), L2Error> {
    let learned = FlushFilter {
        origins: |o| matches!(o, Origin::Learned | Origin::Added),
        ..FlushFilter::ALL
    };
    let state = c.state::<L2>();
    let which = match what {
        Flush::Learned => learned,
        Flush::Everything => FlushFilter { origins: |o| o != Origin::Bvi, ..FlushFilter::ALL },
        Flush::Bridge(id) => {
            FlushFilter { bridge: Some(state.borrow_mut().bridges.find(id)?.number), ..learned }
        }
        Flush::Port(sw_if) => {
            FlushFilter { port: Some(interface::view(c, sw_if)?.sw_if), ..learned }
        }
    };
    let done: Done = Box::new(done);
    state.borrow_mut().bridges.flush(which, Some(done));
    flush::start(c);
    Ok(())
}

/// Sets the learn limit of new bridge domains.
pub fn set_default_learn_limit(c: &Control, limit: u32) {
    c.state::<L2>().borrow_mut().bridges.set_default_learn_limit(limit);
}

/// Sets the interval of MAC address events to API clients, in hundredths of a second.
pub fn set_scan_delay(c: &mut Control, hundredths: NonZeroU16) {
    api_types::set_delay(c, api_types::Delay(hundredths));
}

#[cfg(test)]
mod lists {
    #[test]
    fn are_current() {
        thalweg_testkit::check_feature_lists(env!("CARGO_MANIFEST_DIR"));
    }
}
