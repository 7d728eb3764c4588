//! Devices without hardware: loopbacks, which carry addresses, and sinks for benchmarks. Both count
//! packets as sent and free them.

use crate::interface::{
    self, Caps, Device, DeviceError, InterfaceSpec, Kind, MacAddr, SwIfIndex, Transmit,
};
use crate::nodes::null_tx;
use thalweg_graph::Control;

struct NullDevice {
    kind: &'static str,
    prefix: &'static str,
    instance: u32,
}

impl Device for NullDevice {
    fn dev_type(&self) -> &'static str {
        self.kind
    }
    fn kind(&self) -> Kind {
        if self.prefix == "sink" { Kind::Sink } else { Kind::Loopback }
    }
    fn delete(&self, c: &mut Control, _sw_if: SwIfIndex) {
        interface::free_instance(c, self.prefix, self.instance);
    }
    fn set_mac(&self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        Ok(true)
    }
    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        vec!["no hardware: transmitted packets are freed".into()]
    }
}

/// Largest instance number of a loopback.
pub const MAX_INSTANCE: u32 = 16_383;

/// Creates `loop<instance>` (the next free one if `None`), by default with MAC address
/// `de:ad:00:00:00:<instance>`.
///
/// # Errors
/// If the instance exists or the limit of interfaces is reached.
pub fn create_loopback(
    c: &mut Control,
    instance: Option<u32>,
    mac: Option<MacAddr>,
) -> Result<SwIfIndex, DeviceError> {
    if let Some(mac) = mac {
        interface::check_mac(mac)?;
    }
    create(c, "loop", "Loopback", instance, |i| {
        mac.unwrap_or(MacAddr([0xde, 0xad, 0, 0, (i >> 8) as u8, i as u8]))
    })
}

/// Creates `bvi<instance>` (the next free one if `None`), a loopback by VPP's name for the router's
/// own port of a bridge domain; by default with MAC address `b0:b0:00:00:00:<instance>`.
///
/// # Errors
/// If the instance exists or the limit of interfaces is reached.
pub fn create_bvi(
    c: &mut Control,
    instance: Option<u32>,
    mac: Option<MacAddr>,
) -> Result<SwIfIndex, DeviceError> {
    if let Some(mac) = mac {
        interface::check_mac(mac)?;
    }
    create(c, "bvi", "BVI", instance, |i| {
        mac.unwrap_or(MacAddr([0xb0, 0xb0, 0, 0, (i >> 8) as u8, i as u8]))
    })
}

/// Deletes what [`create_bvi`] has made.
///
/// # Errors
/// If the interface does not exist, or is another one.
pub fn delete_bvi(c: &mut Control, sw_if: SwIfIndex) -> Result<(), DeviceError> {
    let view = interface::view(c, sw_if)?;
    if view.dev_type != "BVI" {
        let (kind, what) = (view.dev_type.into(), "`bvi delete'".into());
        return Err(DeviceError::Unsupported { name: view.name, kind, what });
    }
    interface::delete(c, sw_if)
}

/// Creates `sink<instance>` (the next free one if `None`), an interface that frees its packets.
///
/// # Errors
/// If the instance exists or the limit of interfaces is reached.
pub fn create_sink(c: &mut Control, instance: Option<u32>) -> Result<SwIfIndex, DeviceError> {
    create(c, "sink", "sink", instance, |i| MacAddr([0x02, 0x51, 0, 0, (i >> 8) as u8, i as u8]))
}

fn create(
    c: &mut Control,
    prefix: &'static str,
    kind: &'static str,
    instance: Option<u32>,
    mac: impl FnOnce(u32) -> MacAddr,
) -> Result<SwIfIndex, DeviceError> {
    let instance = instance.or_else(|| interface::next_instance(c, prefix));
    let instance = instance.ok_or(DeviceError::Full)?;
    let spec = InterfaceSpec {
        name: format!("{prefix}{instance}"),
        mac: mac(instance),
        mtu: 9000,
        speed_kbps: 0,
        link_up: true,
        caps: Caps { tx_csum: true, tx_tso: true, tx_uso: true },
        device: Box::new(NullDevice { kind, prefix, instance }),
        input: None,
    };
    let sw_if = interface::create(c, spec, Transmit::Shared(null_tx::NODE.name))?;
    interface::take_instance(c, prefix, instance);
    Ok(sw_if)
}
