//! Tasks of a driver for its interface.

use super::{DeviceError, Kind};
use thalweg_buffer::SwIfIndex;
use thalweg_graph::{Control, RxMode};
use thalweg_wire::MacAddr;

/// Transmit offloads of a device.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Caps {
    /// Completes partial TCP and UDP checksums.
    pub tx_csum: bool,
    /// Segments TCP GSO packets.
    pub tx_tso: bool,
    /// Segments UDP GSO packets.
    pub tx_uso: bool,
}

/// A receive queue, as `show interface rx-placement` lists it.
#[derive(Clone, Debug)]
pub struct RxQueue {
    /// Queue number.
    pub queue: u32,
    /// Worker that polls it, from 0.
    pub worker: usize,
    /// Name of the input node.
    pub node: String,
    /// Receive mode.
    pub mode: RxMode,
    /// The user assigned the queue to its worker.
    pub pinned: bool,
}

/// Driver of one interface, on the main thread.
///
/// Methods take `&self`, and a driver keeps what changes in cells of its own: what it calls, such
/// as [`set_link`](super::set_link), makes others follow, and these may call the same driver again.
pub trait Device: 'static {
    /// Device type, as VPP's clients know it: `af-packet`, `pg`, `Loopback` …
    fn dev_type(&self) -> &'static str;
    /// Returns the interface's kind.
    fn kind(&self) -> Kind {
        Kind::Hardware
    }
    /// Starts or stops receiving and transmitting.
    ///
    /// # Errors
    /// If the system fails.
    fn set_admin(&self, _c: &mut Control, _sw_if: SwIfIndex, _up: bool) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Switches promiscuous mode.
    ///
    /// # Errors
    /// If the system fails.
    fn set_promiscuous(&self, _c: &mut Control, _on: bool) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Sets the MAC address. False if the driver cannot.
    ///
    /// # Errors
    /// If the system fails.
    fn set_mac(&self, _c: &mut Control, _mac: MacAddr) -> Result<bool, DeviceError> {
        Ok(false)
    }
    /// Sets the device's MTU (without Ethernet header). False if the driver cannot.
    ///
    /// # Errors
    /// If the system fails.
    fn set_mtu(&self, _c: &mut Control, _mtu: u32) -> Result<bool, DeviceError> {
        Ok(true)
    }
    /// Driver's lines in `show hardware-interfaces`.
    fn hardware(&self, _c: &Control, _verbose: bool) -> Vec<String> {
        Vec::new()
    }
    /// The same as JSON.
    fn hardware_json(&self, _c: &Control) -> serde_json::Value {
        serde_json::Value::Null
    }
    /// Returns whether the setting of another interface makes it: configurations do not say it.
    fn is_of_another(&self) -> bool {
        false
    }
    /// Receive queues.
    fn rx_queues(&self) -> Vec<RxQueue> {
        Vec::new()
    }
    /// Number of transmit queues: the first belongs to the first worker, and so on.
    fn tx_queues(&self) -> u32 {
        0
    }
    /// Switches a driver option.
    ///
    /// # Errors
    /// If the driver has no such option or the system fails.
    fn set_option(&self, option: &str, _on: bool) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: no option `{option}`", self.dev_type())))
    }
    /// Sets the receive mode of a queue (`None`: all); called only with a queue listed by
    /// [`Device::rx_queues`].
    ///
    /// # Errors
    /// If the driver supports one mode only.
    fn set_rx_mode(
        &self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: Option<u32>,
        _mode: RxMode,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: the receive mode is fixed", self.dev_type())))
    }
    /// Assigns a receive queue to a worker (`None`: to the one with the fewest); called only with a
    /// queue listed by [`Device::rx_queues`] and an existing worker.
    ///
    /// # Errors
    /// If queues cannot move, or a worker does not answer.
    fn set_rx_placement(
        &self,
        _c: &mut Control,
        _sw_if: SwIfIndex,
        _queue: u32,
        _worker: Option<usize>,
    ) -> Result<(), DeviceError> {
        Err(DeviceError::Failed(format!("{}: receive queues cannot be moved", self.dev_type())))
    }
    /// Follows changes of the system's device behind the interface; returns the MTU of the link if
    /// that has changed.
    fn system_changed(&self, _now: &SystemDevice) -> Option<u32> {
        None
    }
    /// Name of the system's device behind the interface.
    fn system_device(&self) -> Option<String> {
        None
    }
    /// Takes what the system says last of a device that goes away; [`Device::detach`] is next.
    fn system_gone(&self, _c: &mut Control, _sw_if: SwIfIndex, _last: &SystemDevice) {}
    /// Stops receiving and transmitting: the system's device went away.
    fn detach(&self, _c: &mut Control, _sw_if: SwIfIndex) {}
    /// Receives and transmits by a device of this name, as before the other went away.
    ///
    /// [`Device::system_changed`] is called next, and reports the MTU if it is not that of the
    /// device before.
    ///
    /// # Errors
    /// If the device is of another kind or the system fails.
    fn attach(&self, _c: &mut Control, _sw_if: SwIfIndex, _to: &str) -> Result<(), DeviceError> {
        Ok(())
    }
    /// Current offloads, if they can change while the device is in use.
    fn caps(&self) -> Option<Caps> {
        None
    }
    /// Called periodically after [`count_missed`](crate::queues::count_missed): passes the device's
    /// drop counts to workers, which own the counters.
    fn poll_missed(&self, _c: &mut Control, _sw_if: SwIfIndex) {}
    /// Stops everything before the interface is deleted.
    fn delete(&self, _c: &mut Control, _sw_if: SwIfIndex) {}
}

/// The system's device behind an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SystemDevice {
    /// Its name, which may change.
    pub name: String,
    /// Its own MAC address.
    pub mac: MacAddr,
    /// Its MTU in bytes.
    pub mtu: u32,
    /// Frames that the system has dropped on their way to it.
    pub tx_dropped: u64,
}
