//! New interfaces, and the indices and instance numbers that they take.

use super::{
    Caps, Device, DeviceError, IfTable, Interface, InterfaceEvent, InterfaceView, Interfaces, Mode,
    Mtu, TagRewrite, Tags, check_mac,
};
use crate::nodes::interface_output::{self, Scratch};
use std::rc::Rc;
use std::sync::Arc;
use thalweg_buffer::SwIfIndex;
use thalweg_config::declare::Name;
use thalweg_graph::stats::MAX_INTERFACES;
use thalweg_graph::{Built, Control, EngineError, NodeDecl, NodeId, clock};
use thalweg_tables::qsbr::Tag;
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::MacAddr;

/// Parameters of a new interface.
pub struct InterfaceSpec {
    /// Interface name: `host-eth0`, `pg0`, `loop3` …
    pub name: String,
    /// MAC address; all zero if the interface is not Ethernet.
    pub mac: MacAddr,
    /// MTU in bytes, without Ethernet header.
    pub mtu: u32,
    /// Speed in kbit/s, 0 if unknown.
    pub speed_kbps: u32,
    /// Initial link state.
    pub link_up: bool,
    /// Offloads of the device.
    pub caps: Caps,
    /// The driver.
    pub device: Box<dyn Device>,
    /// Next node of received frames by default; `None` for `ethernet-input`.
    pub input: Option<NodeId>,
}

/// End of the name of an interface's output node.
pub const OUTPUT_END: &str = "-output";
/// End of the name of an interface's transmit node.
pub(super) const TX_END: &str = "-tx";

/// The transmit node of a new interface.
pub enum Transmit<'a> {
    /// Node of its own, for a device: the declaration, and the function that makes the instance for
    /// a worker. The interface gets an output node of its own, too.
    Own(&'static NodeDecl, &'a mut dyn FnMut(SwIfIndex, usize) -> Built),
    /// Node of this name, which finds the interface in the frame's tx column. The interface costs
    /// no nodes.
    Shared(&'static str),
}

/// Checks that a document and a command line can have a name.
///
/// # Errors
/// If they cannot.
pub(super) fn check_name(name: &str) -> Result<(), DeviceError> {
    if Name::Any.takes(name) {
        return Ok(());
    }
    let text = "the name of an interface has 1 to 63 bytes, without blanks, quotes, braces, `|', \
                `#', backslashes and control characters";
    Err(DeviceError::Failed(format!("{}: {text}", name.escape_debug())))
}

/// Ends the reservation of an index.
///
/// # Errors
/// If none is reserved for this name.
pub fn release_index(c: &mut Control, name: &str) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    match all.borrow_mut().indices.release(name) {
        true => Ok(()),
        false => Err(DeviceError::Failed(format!("no index is reserved for `{name}'"))),
    }
}

/// Reserves an index for the next interface of this name, so that it keeps the same index.
///
/// # Errors
/// If the interface exists, or the index is in use or out of range.
pub fn reserve_index(c: &mut Control, name: &str, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    check_name(name)?;
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    if let Ok(there) = all.find(name) {
        let text = format!("interface `{name}` already exists; its index is {there}");
        return Err(DeviceError::Failed(text));
    }
    let (max, found) = (MAX_INTERFACES as u64 - 1, u64::from(sw_if.get()));
    if found == 0 || found > max {
        return Err(DeviceError::Range { what: "index", min: 1, max, found });
    }
    let holder = all.indices.holder(sw_if.get()).filter(|holder| *holder != name);
    if let Some(holder) = all.get(sw_if).map(|v| v.name.as_str()).or(holder) {
        return Err(DeviceError::Failed(format!("index {sw_if} belongs to `{holder}`")));
    }
    all.indices.reserve(name, sw_if.get());
    Ok(())
}

/// Keeps the index of an interface that is being deleted from others, until [`free_index`]: for
/// tables that still name it.
pub fn keep_index(c: &Control, sw_if: SwIfIndex) {
    c.state::<Interfaces>().borrow_mut().kept.insert(sw_if);
}

/// Ends what [`keep_index`] began.
pub fn free_index(c: &Control, sw_if: SwIfIndex) {
    let all = c.state::<Interfaces>();
    let mut all = all.borrow_mut();
    if all.kept.remove(&sw_if) && all.get(sw_if).is_none() {
        all.indices.give_back(sw_if.get());
        // Packets may be under way that were looked up in these tables a moment ago.
        all.left.insert(sw_if, c.domain().tag());
    }
}

/// Maximum number of times that a packet is handed over: to the worker that tracks its connection,
/// and to the one that translates it.
const HAND_OFFS: usize = 2;

/// Waits until all packets that workers had under way at a time have ended, unless that is known:
/// of very many interfaces that went down and are deleted then, the first one waits for all.
pub(super) fn drain_of(c: &mut Control, since: Tag) {
    let all = c.state::<Interfaces>();
    let drained = all.borrow().drained;
    if drained.is_none_or(|drained| drained < since) {
        drain(c);
    }
}

/// Waits until all packets that workers have under way have ended. A worker that does not respond
/// leaves that unknown.
fn drain(c: &mut Control) {
    let now = c.domain().tag();
    let mut have_ended = true;
    // Workers answer at the start of a loop: what they had received is on its way to others then.
    let hand_offs = if c.workers() > 1 { HAND_OFFS } else { 0 };
    for _ in 0..hand_offs {
        have_ended &= c.sync();
        have_ended &= c.await_handed_over();
    }
    // Packets that arrived last have ended when the workers answer again.
    have_ended &= c.sync();
    if have_ended {
        c.state::<Interfaces>().borrow_mut().drained = Some(now);
    }
}

/// Returns the index of a new interface. If another one had it, none of its packets are under way,
/// so that they are neither forwarded nor counted as those of the new one.
pub(super) fn new_index(c: &mut Control, name: &str) -> Result<SwIfIndex, DeviceError> {
    let (sw_if, left) = {
        let all = c.state::<Interfaces>();
        let mut all = all.borrow_mut();
        let sw_if = SwIfIndex(all.indices.next(name).ok_or(DeviceError::Full)?);
        (sw_if, all.left.remove(&sw_if))
    };
    if let Some(left) = left {
        if !c.domain().passed(left) || c.is_handing_over() {
            drain_of(c, left);
        }
        let counted = c.interface_totals_raw(sw_if);
        c.baseline.interfaces.insert(sw_if, counted);
    }
    Ok(sw_if)
}

/// Returns the lowest free instance number of interfaces with this prefix (`loop`).
pub fn next_instance(c: &Control, prefix: &'static str) -> Option<u32> {
    let all = c.state::<Interfaces>();
    all.borrow_mut().instances(prefix).next("")
}

/// Notes that an instance exists.
pub fn take_instance(c: &Control, prefix: &'static str, instance: u32) {
    c.state::<Interfaces>().borrow_mut().instances(prefix).take("", SwIfIndex(instance).get());
}

/// Notes that an instance was deleted.
pub fn free_instance(c: &Control, prefix: &'static str, instance: u32) {
    c.state::<Interfaces>().borrow_mut().instances(prefix).give_back(SwIfIndex(instance).get());
}

/// Creates an interface: its nodes, its place on the arcs, its row in the table.
///
/// # Errors
/// If the name is in use or the table is full; nothing has changed then.
pub fn create(
    c: &mut Control,
    spec: InterfaceSpec,
    tx: Transmit<'_>,
) -> Result<SwIfIndex, DeviceError> {
    let all = c.state::<Interfaces>();
    if all.borrow().by_name.contains_key(&spec.name) {
        return Err(DeviceError::Exists(spec.name));
    }
    check_name(&spec.name)?;
    if spec.mac != MacAddr([0; 6]) {
        check_mac(spec.mac)?;
    }
    let sw_if = new_index(c, &spec.name)?;
    let shares_output = matches!(tx, Transmit::Shared(_));
    let failed = |e: &dyn std::fmt::Display| DeviceError::Failed(e.to_string());
    let (output, tx) = find_nodes(c, sw_if, &spec.name, tx).map_err(|e| failed(&e))?;
    let ends = [("interface-output", Some(tx)), ("device-input", spec.input)];
    for (arc, end) in ends {
        if let Err(e) = c.set_arc_end(arc, sw_if, end) {
            c.remove_interface(sw_if);
            if !shares_output {
                [output, tx].into_iter().for_each(|node| c.remove_node(node));
            }
            return Err(failed(&e));
        }
    }
    let view = InterfaceView {
        sw_if,
        name: spec.name.clone(),
        kind: spec.device.kind(),
        dev_type: spec.device.dev_type(),
        mac: spec.mac,
        secondary_macs: Arc::default(),
        admin_up: false,
        link_up: spec.link_up,
        state_since: clock::ticks(),
        link_mtu: spec.mtu,
        mtu: Mtu { l3: spec.mtu, ..Mtu::default() },
        speed_kbps: spec.speed_kbps,
        promiscuous: false,
        caps: spec.caps,
        output,
        shares_output,
        ethernet: !spec.mac.is_zero(),
        tag: String::new(),
        mode: Mode::Routed,
        parent: None,
        sub: None,
        tags: Tags::NONE,
        rewrite: TagRewrite::NONE,
        twin: None,
    };
    let can_segment = {
        let mut a = all.borrow_mut();
        a.add(Interface::new(view, Rc::from(spec.device), Some(tx)));
        a.publish(c, sw_if);
        std::mem::replace(&mut a.can_segment, true)
    };
    if !can_segment {
        c.message_all(output, |_| Box::new(Scratch::new()));
    }
    c.make_interface_ready(sw_if);
    c.publish(InterfaceEvent::Created(sw_if));
    Ok(sw_if)
}

fn find_nodes(
    c: &mut Control,
    sw_if: SwIfIndex,
    name: &str,
    tx: Transmit<'_>,
) -> Result<(NodeId, NodeId), EngineError> {
    let shared = |c: &Control, name: &str| {
        let missing = || EngineError::Graph(format!("no node `{name}`"));
        c.node(name).ok_or_else(missing)
    };
    let (output, tx) = match tx {
        Transmit::Shared(tx) => (shared(c, interface_output::NODE.name)?, shared(c, tx)?),
        Transmit::Own(decl, build) => {
            let (table, scratch) = (c.shared::<Snapshot<IfTable>>(), c.per_worker());
            let own = |_| interface_output::build(Some(sw_if), table.clone(), scratch);
            let output =
                c.add_node(&format!("{name}{OUTPUT_END}"), &interface_output::NODE, own)?;
            match c.add_node(&format!("{name}{TX_END}"), decl, |worker| build(sw_if, worker)) {
                Ok(tx) => (output, tx),
                Err(e) => {
                    c.remove_node(output);
                    return Err(e);
                }
            }
        }
    };
    Ok((output, tx))
}
