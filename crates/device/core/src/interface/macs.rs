//! Secondary MAC addresses: frames to them are an interface's own, besides those to its MAC
//! address. Sub-interfaces have those of their parent.

use super::set::{accept, check_mac};
use super::*;
use crate::SwIfIndex;

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
        return Ok(());
    }
    if v.secondary_macs.len() >= MAX_SECONDARY_MACS {
        let name = &v.name;
        let text = format!(
            "`{name}' has {MAX_SECONDARY_MACS} secondary MAC addresses, the most that it can have"
        );
        return Err(DeviceError::Failed(text));
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
