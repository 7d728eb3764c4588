//! Secondary MAC addresses: frames to them are an interface's own, besides those to its MAC
//! address. Sub-interfaces have those of their parent.

use super::set::{accept, check_mac};
use super::*;
use crate::SwIfIndex;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of secondary MAC addresses of an interface.
pub const MAX_SECONDARY_MACS: usize = 64;

/// Adds a secondary MAC address to an interface, of a sub-interface to its parent. One that is
/// there already stays. The device receives frames for any address while there are some.
///
/// # Errors
/// If the interface does not exist or carries no Ethernet frames, the address is not unicast, or
/// the interface has as many as it can.
pub fn add_secondary_mac(
    c: &mut Control,
    sw_if: SwIfIndex,
    mac: MacAddr,
) -> Result<(), DeviceError> {
    check_mac(mac)?;
    let v = owner(c, sw_if)?;
    if v.secondary_macs.contains(&mac) {
        // One that was found is written from now on.
        c.state::<FoundMacs>().borrow_mut().only_found.remove(&(v.sw_if, mac.0));
        return Ok(());
    }
    if v.secondary_macs.len() >= MAX_SECONDARY_MACS {
        return Err(full(&v.name));
    }
    let mut all = v.secondary_macs.to_vec();
    all.push(mac);
    all.sort_unstable_by_key(|mac| mac.0);
    set_all(c, v.sw_if, all)
}

/// Removes a secondary MAC address of an interface, or of a sub-interface's parent.
///
/// # Errors
/// If the interface does not exist or has no such address.
pub fn remove_secondary_mac(
    c: &mut Control,
    sw_if: SwIfIndex,
    mac: MacAddr,
) -> Result<(), DeviceError> {
    let v = owner(c, sw_if)?;
    let mut all = v.secondary_macs.to_vec();
    all.retain(|other| *other != mac);
    c.state::<FoundMacs>().borrow_mut().only_found.remove(&(v.sw_if, mac.0));
    if all.len() == v.secondary_macs.len() {
        let text = format!("`{}' has no secondary MAC address {mac}", v.name);
        return Err(DeviceError::Failed(text));
    }
    set_all(c, v.sw_if, all)
}

/// Returns the secondary MAC addresses of an interface, or of a sub-interface's parent.
///
/// # Errors
/// [`DeviceError::Unknown`].
pub fn secondary_macs(c: &Control, sw_if: SwIfIndex) -> Result<Arc<[MacAddr]>, DeviceError> {
    let v = view(c, sw_if)?;
    match v.parent {
        Some(parent) => Ok(view(c, parent)?.secondary_macs),
        None => Ok(v.secondary_macs),
    }
}

/// Secondary MAC addresses that a protocol has found.
#[derive(Default)]
pub(crate) struct FoundMacs {
    /// Interface that has them, and addresses, by the interface that they were found for.
    by_user: BTreeMap<SwIfIndex, (SwIfIndex, BTreeSet<[u8; 6]>)>,
    /// Addresses of an interface that nobody has written.
    only_found: BTreeSet<(SwIfIndex, [u8; 6])>,
}

/// Gives an interface, of a sub-interface its parent, the secondary MAC addresses that a protocol
/// has found for it, in place of those that it had found before. They are no part of the
/// configuration.
///
/// # Errors
/// As [`add_secondary_mac`]; nothing has changed then, unless the interface is gone.
pub fn set_found_macs(
    c: &mut Control,
    sw_if: SwIfIndex,
    found: BTreeSet<[u8; 6]>,
) -> Result<(), DeviceError> {
    let state = c.state::<FoundMacs>();
    let before = state.borrow_mut().by_user.remove(&sw_if);
    let v = match owner(c, sw_if) {
        Ok(v) => v,
        Err(e) => {
            state.borrow_mut().only_found.retain(|(of, _)| *of != sw_if);
            return Err(e);
        }
    };
    let macs: Vec<MacAddr> = found.iter().map(|mac| MacAddr(*mac)).collect();
    for mac in &macs {
        check_mac(*mac)?;
    }
    let (written, all) = {
        let state = state.borrow();
        let is_written = |mac: &&MacAddr| !state.only_found.contains(&(v.sw_if, mac.0));
        let written: BTreeSet<[u8; 6]> =
            v.secondary_macs.iter().filter(is_written).map(|mac| mac.0).collect();
        let of_owner = state.by_user.values().filter(|(owner, _)| *owner == v.sw_if);
        let others = of_owner.flat_map(|(_, macs)| macs.iter().copied());
        let all: BTreeSet<[u8; 6]> =
            written.iter().copied().chain(others).chain(found.iter().copied()).collect();
        (written, all)
    };
    let done = match all.len() > MAX_SECONDARY_MACS {
        true => Err(full(&v.name)),
        false => set_all(c, v.sw_if, all.iter().map(|mac| MacAddr(*mac)).collect()),
    };
    let mut state = state.borrow_mut();
    if let Err(e) = done {
        state.by_user.extend(before.map(|before| (sw_if, before)));
        return Err(e);
    }
    state.only_found.retain(|(of, _)| *of != v.sw_if);
    state.only_found.extend(all.difference(&written).map(|mac| (v.sw_if, *mac)));
    if !found.is_empty() {
        state.by_user.insert(sw_if, (v.sw_if, found));
    }
    Ok(())
}

/// Returns whether nobody has written a secondary MAC address of an interface.
pub(crate) fn is_found(c: &Control, sw_if: SwIfIndex, mac: MacAddr) -> bool {
    c.state::<FoundMacs>().borrow().only_found.contains(&(sw_if, mac.0))
}

fn full(name: &str) -> DeviceError {
    let text = format!(
        "`{name}' has {MAX_SECONDARY_MACS} secondary MAC addresses, the most that it can have"
    );
    DeviceError::Failed(text)
}

/// The interface whose addresses are those of `sw_if`: itself, or its parent.
fn owner(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, DeviceError> {
    let v = view(c, sw_if)?;
    let v = match v.parent {
        Some(parent) => view(c, parent)?,
        None => v,
    };
    if v.ethernet {
        return Ok(v);
    }
    let what = "a secondary MAC address".into();
    Err(DeviceError::Unsupported { name: v.name, kind: v.dev_type.into(), what })
}

/// Gives an interface these addresses; if its device refuses, it keeps what it had.
fn set_all(c: &mut Control, sw_if: SwIfIndex, new: Vec<MacAddr>) -> Result<(), DeviceError> {
    let old = view(c, sw_if)?.secondary_macs;
    let new: Arc<[MacAddr]> = new.into();
    let done = accept(c, sw_if, &|i| i.view.secondary_macs = Arc::clone(&new));
    if done.is_err() {
        let all = c.state::<Interfaces>();
        let mut all = all.borrow_mut();
        all.row(sw_if)?.view.secondary_macs = old;
        all.publish(c, sw_if);
    }
    done
}
