//! Changing an interface's settings.

use super::*;
use crate::SwIfIndex;
use thalweg_config::declare::Name;
use thalweg_graph::{RxMode, clock};
use thalweg_wire::MacAddr;

/// Brings an interface up or down.
///
/// # Errors
/// If the interface does not exist or the driver fails; its state is unchanged then.
pub fn set_admin(c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
    if bring(c, sw_if, up)? {
        family::follow(c, sw_if);
    }
    Ok(())
}

/// Brings an interface down before it is deleted.
pub(super) fn down(c: &mut Control, sw_if: SwIfIndex) {
    if let Err(e) = bring(c, sw_if, false) {
        tracing::warn!("{}: {e}", c.interface_name(sw_if));
    }
}

/// Brings an interface up or down, but not its sub-interfaces. Returns whether it was not so.
fn bring(c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<bool, DeviceError> {
    let all = c.state::<Interfaces>();
    let device = {
        let mut a = all.borrow_mut();
        let i = a.row(sw_if)?;
        if i.view.admin_up == up {
            return Ok(false);
        }
        if up && i.is_going {
            return Err(family::going(&i.view.name));
        }
        i.device.clone()
    };
    // The clock is read before the device receives anything.
    let since = clock::ticks();
    device.set_admin(c, sw_if, up)?;
    change(c, sw_if, |v| (v.admin_up, v.state_since) = (up, since))?;
    if !up {
        // Workers that begin a loop receive nothing by it.
        let now = c.domain().tag();
        c.state::<Interfaces>().borrow_mut().row(sw_if)?.down_since = Some(now);
    }
    c.publish(InterfaceEvent::State(sw_if));
    Ok(true)
}

/// Sets the link state; for drivers.
///
/// # Errors
/// If the interface does not exist.
pub fn set_link(c: &mut Control, sw_if: SwIfIndex, up: bool) -> Result<(), DeviceError> {
    if view(c, sw_if)?.link_up != up {
        change(c, sw_if, |v| (v.link_up, v.state_since) = (up, clock::ticks()))?;
        c.publish(InterfaceEvent::State(sw_if));
        family::follow(c, sw_if);
    }
    Ok(())
}

/// Sets the link speed in kbit/s, 0 if unknown; for drivers. Links learn their speed when they come
/// up.
///
/// # Errors
/// If the interface does not exist.
pub fn set_speed(c: &mut Control, sw_if: SwIfIndex, kbps: u32) -> Result<(), DeviceError> {
    if view(c, sw_if)?.speed_kbps != kbps {
        change(c, sw_if, |v| v.speed_kbps = kbps)?;
        c.publish(InterfaceEvent::State(sw_if));
        family::follow(c, sw_if);
    }
    Ok(())
}

/// Reads the device's offloads again.
///
/// # Errors
/// If the interface does not exist.
pub fn refresh_caps(c: &mut Control, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    let device = c.state::<Interfaces>().borrow().device(sw_if);
    let caps = device.and_then(|d| d.caps());
    match caps {
        Some(caps) if caps != view(c, sw_if)?.caps => change(c, sw_if, |v| v.caps = caps)?,
        _ => return Ok(()),
    }
    family::follow(c, sw_if);
    Ok(())
}

/// Checks that a MAC address can be an interface's.
///
/// # Errors
/// If it is not unicast, or zero.
pub fn check_mac(mac: MacAddr) -> Result<(), DeviceError> {
    if !mac.is_unicast() {
        let text = "not a unicast MAC address; one such as 02:00:5e:10:00:01 is";
        return Err(DeviceError::Failed(text.into()));
    }
    Ok(())
}

/// Sets an interface's MAC address.
///
/// # Errors
/// If the interface does not exist, the address is not unicast, or the driver cannot.
pub fn set_mac(c: &mut Control, sw_if: SwIfIndex, mac: MacAddr) -> Result<(), DeviceError> {
    check_mac(mac)?;
    let v = view(c, sw_if)?;
    let device = c.state::<Interfaces>().borrow().device(sw_if);
    let done = match device {
        Some(d) => d.set_mac(c, mac)?,
        None => false,
    };
    if !done || !v.ethernet {
        let what = "changing the MAC address".into();
        return Err(DeviceError::Unsupported { name: v.name, kind: v.dev_type.into(), what });
    }
    change(c, sw_if, |v| v.mac = mac)?;
    c.publish(InterfaceEvent::Mac(sw_if));
    family::follow(c, sw_if);
    Ok(())
}

/// Minimum and maximum MTU.
pub const MTU_RANGE: (u32, u32) = (68, 65_535 - 14);

fn check_mtu(what: &'static str, mtu: u32, max: u32) -> Result<(), DeviceError> {
    let (min, max, found) = (u64::from(MTU_RANGE.0), u64::from(max), u64::from(mtu));
    if found < min || found > max {
        return Err(DeviceError::Range { what, min, max, found });
    }
    Ok(())
}

/// Sets the device's MTU, and the L3 MTU with it.
///
/// # Errors
/// If the interface does not exist, the value is out of range, or the driver fails.
pub fn set_link_mtu(c: &mut Control, sw_if: SwIfIndex, mtu: u32) -> Result<(), DeviceError> {
    let v = view(c, sw_if)?;
    check_mtu("MTU", mtu, MTU_RANGE.1)?;
    let device = c.state::<Interfaces>().borrow().device(sw_if);
    if let Some(d) = device
        && !d.set_mtu(c, mtu)?
    {
        let what = format!("an MTU of {mtu}");
        return Err(DeviceError::Unsupported { name: v.name, kind: v.dev_type.into(), what });
    }
    change(c, sw_if, |v| {
        v.link_mtu = mtu;
        v.mtu.l3 = mtu;
    })?;
    c.publish(InterfaceEvent::Mtu(sw_if));
    family::follow(c, sw_if);
    Ok(())
}

/// Follows a change of the device's MTU by the system; for drivers. The L3 MTU follows if it was
/// the device's, or does not fit any more.
///
/// # Errors
/// If the interface does not exist.
pub fn follow_link_mtu(c: &mut Control, sw_if: SwIfIndex, mtu: u32) -> Result<(), DeviceError> {
    let old = view(c, sw_if)?.link_mtu;
    let mtu = mtu.clamp(MTU_RANGE.0, MTU_RANGE.1);
    if old == mtu {
        return Ok(());
    }
    change(c, sw_if, |v| {
        v.link_mtu = mtu;
        if v.mtu.l3 == old || v.mtu.l3 > mtu {
            v.mtu.l3 = mtu;
        }
        for of in [MtuOf::Ip4, MtuOf::Ip6, MtuOf::Mpls] {
            if v.mtu.get(of) > mtu {
                v.mtu.set(of, mtu);
            }
        }
    })?;
    c.publish(InterfaceEvent::Mtu(sw_if));
    family::follow(c, sw_if);
    Ok(())
}

/// Sets a packet MTU in bytes; 0, for all but L3, means that of L3. A loopback's may exceed its
/// frame size, as no device sends its frames.
///
/// # Errors
/// If the interface does not exist or the value exceeds the device's MTU.
pub fn set_mtu(c: &mut Control, sw_if: SwIfIndex, of: MtuOf, mtu: u32) -> Result<(), DeviceError> {
    let v = view(c, sw_if)?;
    if sw_if == SwIfIndex(0) {
        let what = format!("an MTU of {mtu}");
        return Err(DeviceError::Unsupported { name: v.name, kind: v.dev_type.into(), what });
    }
    if of == MtuOf::L3 || mtu != 0 {
        let most = if v.kind == Kind::Loopback { MTU_RANGE.1 } else { v.link_mtu };
        check_mtu("MTU", mtu, most.max(MTU_RANGE.0))?;
    }
    change(c, sw_if, |v| v.mtu.set(of, mtu))?;
    c.publish(InterfaceEvent::Mtu(sw_if));
    Ok(())
}

/// Sets all packet MTUs.
///
/// # Errors
/// The errors of [`set_mtu`]; nothing has changed then.
pub fn set_mtus(c: &mut Control, sw_if: SwIfIndex, mtus: Mtu) -> Result<(), DeviceError> {
    let before = view(c, sw_if)?.mtu;
    for of in [MtuOf::L3, MtuOf::Ip4, MtuOf::Ip6, MtuOf::Mpls] {
        if let Err(error) = set_mtu(c, sw_if, of, mtus.get(of)) {
            change(c, sw_if, |v| v.mtu = before)?;
            // Subscribers have seen those before the one that is refused.
            c.publish(InterfaceEvent::Mtu(sw_if));
            return Err(error);
        }
    }
    Ok(())
}

/// Clears the counters of one interface or of all.
pub fn clear_counters(c: &mut Control, sw_if: Option<SwIfIndex>) -> usize {
    let chosen: Vec<SwIfIndex> = {
        let all = c.state::<Interfaces>();
        let all = all.borrow();
        match sw_if {
            Some(one) => all.get(one).map(|i| i.sw_if).into_iter().collect(),
            None => all.iter().map(|i| i.sw_if).collect(),
        }
    };
    c.baseline.cleared = Some(std::time::SystemTime::now());
    for sw_if in &chosen {
        let now = c.interface_totals_raw(*sw_if);
        c.baseline.interfaces.insert(*sw_if, now);
    }
    chosen.len()
}

/// Switches promiscuous mode.
///
/// # Errors
/// If the interface does not exist or the driver fails.
pub fn set_promiscuous(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), DeviceError> {
    if view(c, sw_if)?.promiscuous == on {
        return Ok(());
    }
    if let Err(error) = accept(c, sw_if, &|i| i.view.promiscuous = on) {
        change(c, sw_if, |v| v.promiscuous = !on)?;
        return Err(error);
    }
    c.publish(InterfaceEvent::Promiscuous(sw_if));
    Ok(())
}

/// Sets the receive mode of one queue, or with `None` of all queues of the interface.
///
/// # Errors
/// If the interface or queue does not exist, or the driver supports one mode only.
pub fn set_rx_mode(
    c: &mut Control,
    sw_if: SwIfIndex,
    queue: Option<u32>,
    mode: RxMode,
) -> Result<(), DeviceError> {
    let device = with_queue(c, sw_if, queue, "a receive mode")?;
    device.set_rx_mode(c, sw_if, queue, mode)
}

/// Assigns a receive queue to a worker; `None` picks the one with the fewest. Packets in the queue
/// wait a moment longer; none are lost unless it overflows meanwhile.
///
/// # Errors
/// If the interface, queue or worker does not exist, or the driver cannot.
pub fn set_rx_placement(
    c: &mut Control,
    sw_if: SwIfIndex,
    queue: u32,
    worker: Option<usize>,
) -> Result<(), DeviceError> {
    let device = with_queue(c, sw_if, Some(queue), "moving receive queues")?;
    if let Some(worker) = worker.filter(|w| *w >= c.workers()) {
        let (max, found) = (c.workers().saturating_sub(1) as u64, worker as u64);
        return Err(DeviceError::Range { what: "worker", min: 0, max, found });
    }
    device.set_rx_placement(c, sw_if, queue, worker)
}

/// Returns the device of an interface that has this receive queue, or (`None`) any.
fn with_queue(
    c: &Control,
    sw_if: SwIfIndex,
    queue: Option<u32>,
    what: &str,
) -> Result<Rc<dyn Device>, DeviceError> {
    let v = view(c, sw_if)?;
    let unknown = || DeviceError::Unknown(v.name.clone());
    let device = c.state::<Interfaces>().borrow().device(sw_if).ok_or_else(unknown)?;
    let queues: Vec<u32> = device.rx_queues().iter().map(|q| q.queue).collect();
    let Some(last) = queues.iter().max().copied() else {
        let (kind, what) = (v.dev_type.into(), what.into());
        return Err(DeviceError::Unsupported { name: v.name, kind, what });
    };
    if let Some(n) = queue.filter(|n| !queues.contains(n)) {
        let (max, found) = (u64::from(last), u64::from(n));
        return Err(DeviceError::Range { what: "receive queue", min: 0, max, found });
    }
    Ok(device)
}

/// Makes an interface accept frames for any MAC address on behalf of a feature (bridging, cross
/// connect), or ends that. Calls are counted.
///
/// # Errors
/// If the interface does not exist or the driver fails.
pub fn accept_all(c: &mut Control, sw_if: SwIfIndex, on: bool) -> Result<(), DeviceError> {
    accept(c, sw_if, &|i| {
        i.accept_all = if on { i.accept_all + 1 } else { i.accept_all.saturating_sub(1) };
    })
}

/// Changes which frames an interface accepts, and what its device, or that of its parent, has to
/// receive for it.
pub(super) fn accept(
    c: &mut Control,
    sw_if: SwIfIndex,
    change: &dyn Fn(&mut Interface),
) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    let (parent, device, before, after) = {
        let mut a = all.borrow_mut();
        let i = a.row(sw_if)?;
        let before = i.needs_all();
        change(i);
        let after = i.needs_all();
        let found = (i.view.parent, i.device.clone(), before, after);
        a.publish(c, sw_if);
        found
    };
    if before == after {
        return Ok(());
    }
    match parent {
        None => device.set_promiscuous(c, after),
        Some(parent) => accept(c, parent, &|p| {
            let n = p.subs_accept_all;
            p.subs_accept_all = if after { n + 1 } else { n.saturating_sub(1) };
        }),
    }
}

/// Maximum length of a tag in bytes.
pub const MAX_TAG: usize = 63;

/// Sets an interface's tag; an empty one removes it.
///
/// # Errors
/// If the interface does not exist, or the tag is too long or not one word.
pub fn set_tag(c: &mut Control, sw_if: SwIfIndex, tag: &str) -> Result<(), DeviceError> {
    let (max, found) = (MAX_TAG as u64, tag.len() as u64);
    if found > max {
        return Err(DeviceError::Range { what: "length of a tag", min: 0, max, found });
    }
    // Documents contain tags, and take no others.
    if !tag.is_empty() && !Name::Any.takes(tag) {
        let text =
            "a tag is one word without quotes, braces, `|', `#' and backslashes, and not `?'";
        return Err(DeviceError::Failed(text.into()));
    }
    {
        let all = c.state::<Interfaces>();
        let mut all = all.borrow_mut();
        let old = std::mem::replace(&mut all.row(sw_if)?.view.tag, tag.to_owned());
        all.follow_tag(sw_if, &old, tag);
    }
    c.publish(InterfaceEvent::Tag(sw_if));
    Ok(())
}

/// Sets the system's device for an interface, by its index.
///
/// # Errors
/// If the interface does not exist.
pub fn set_twin(c: &mut Control, sw_if: SwIfIndex, twin: Option<u32>) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    let old = std::mem::replace(&mut all.borrow_mut().row(sw_if)?.view.twin, twin);
    if old != twin {
        c.publish(InterfaceEvent::Twin(sw_if));
    }
    Ok(())
}

/// Sets what becomes of the frames that an interface receives, from the workers' next loop on.
///
/// # Errors
/// If the interface does not exist.
pub fn set_mode(c: &mut Control, sw_if: SwIfIndex, mode: Mode) -> Result<(), DeviceError> {
    change(c, sw_if, |v| v.mode = mode)
}

/// Sets what an interface changes about VLAN tags in layer 2.
///
/// # Errors
/// If the interface does not exist or carries no Ethernet frames, its frames need not have the tags
/// to remove, or an id is out of range.
pub fn set_tag_rewrite(
    c: &mut Control,
    sw_if: SwIfIndex,
    rewrite: TagRewrite,
) -> Result<(), DeviceError> {
    rewrite.check(&view(c, sw_if)?)?;
    change(c, sw_if, |v| v.rewrite = rewrite)
}

/// Sets the node to which an interface's frames go when they leave, behind all features; `None` for
/// its device.
///
/// # Errors
/// If the interface does not exist, or has no device of its own.
pub fn set_output_end(
    c: &mut Control,
    sw_if: SwIfIndex,
    end: Option<NodeId>,
) -> Result<(), DeviceError> {
    let tx = c.state::<Interfaces>().borrow_mut().row(sw_if)?.tx;
    let failed = |e| DeviceError::Failed(format!("{e}"));
    c.set_arc_end("interface-output", sw_if, end.or(tx)).map_err(failed)
}

/// Sets the node to which the frames that an interface without a device receives go, behind its
/// features; `None` for `ethernet-input`.
///
/// # Errors
/// If the interface does not exist.
pub fn set_input_end(
    c: &mut Control,
    sw_if: SwIfIndex,
    end: Option<NodeId>,
) -> Result<(), DeviceError> {
    view(c, sw_if)?;
    let failed = |e| DeviceError::Failed(format!("{e}"));
    c.set_arc_end("device-input", sw_if, end).map_err(failed)
}

fn change(
    c: &mut Control,
    sw_if: SwIfIndex,
    f: impl FnOnce(&mut InterfaceView),
) -> Result<(), DeviceError> {
    let all = c.state::<Interfaces>();
    let mut a = all.borrow_mut();
    f(&mut a.row(sw_if)?.view);
    a.publish(c, sw_if);
    Ok(())
}
