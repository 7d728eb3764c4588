//! Tests that every driver of devices passes: [statements], each of which is a test of a driver
//! that has an [`Outside`] and calls [`driver_statements!`](crate::driver_statements).
//!
//! A statement runs a router of two interfaces of the driver, each of which sends what the other
//! one receives. The test is the world outside, behind the devices.

mod bench;
pub mod statements;

pub use bench::{Bench, Crossing};

use crate::SwIfIndex;
use thalweg_engine::Feature;
use thalweg_graph::{Control, RxMode};
use thalweg_wire::MacAddr;

/// Abilities of a driver and its devices.
#[derive(Clone, Debug)]
pub struct Abilities {
    /// Length in bytes of the shortest frame that the device sends.
    pub shortest: usize,
    /// Number of frames of 1000 bytes that is more than a device holds which nobody polls.
    pub burst: usize,
    /// Number of receive queues.
    pub rx_queues: u32,
    /// Receive modes that it accepts.
    pub modes: &'static [RxMode],
    /// Frames come from outside while the interface is down, too.
    pub hears_while_down: bool,
    /// Accepts another MAC address.
    pub sets_mac: bool,
    /// Largest MTU that is accepted, if frames are held to an MTU at all.
    pub mtu: Option<u32>,
    /// The device has a carrier.
    pub carrier: bool,
    /// The device can go away and come back.
    pub unplugs: bool,
    /// A flow comes by the queue that its frames were last sent by, so that its order may be lost
    /// while queues move.
    pub steers: bool,
}

/// The world outside of two interfaces, 0 and 1. A driver that fails is a panic.
pub trait Outside {
    /// The driver.
    fn feature(&self) -> &'static Feature;
    /// Abilities of the driver and of these devices.
    fn abilities(&self) -> Abilities;
    /// Creates interface `n`, with an MTU of [`MTU`] and its device, if there is none yet.
    fn create(&mut self, c: &mut Control, n: usize) -> SwIfIndex;
    /// Deletes interface `n`; the device stays.
    fn delete(&mut self, c: &mut Control, n: usize);
    /// Sends frames to interface `n`. `worker` is the one to receive them, if that is for the
    /// outside to say.
    ///
    /// # Errors
    /// If nothing can carry such a frame; those before it are sent.
    fn send(
        &mut self,
        c: &mut Control,
        n: usize,
        worker: usize,
        frames: &[Vec<u8>],
    ) -> Result<(), String>;
    /// Takes the frames that came out of interface `n`, without waiting for any.
    fn take(&mut self, c: &mut Control, n: usize) -> Vec<Vec<u8>>;
    /// Switches the carrier of interface `n`.
    fn set_carrier(&mut self, _n: usize, _on: bool) {}
    /// Takes the device of interface `n` away.
    fn unplug(&mut self, _n: usize) {}
    /// Brings a device like that of interface `n` back, with another MTU.
    fn plug(&mut self, _n: usize, _mtu: u32) {}
    /// Returns whether the device of interface `n` takes frames to any address, if it can tell.
    fn takes_all(&self, _n: usize) -> Option<bool> {
        None
    }
    /// Returns the address of the device of interface `n`, if it has one of its own.
    fn device_mac(&self, _n: usize) -> Option<MacAddr> {
        None
    }
}

/// The MTU of new interfaces.
pub const MTU: u32 = 9000;

/// One fact about drivers.
pub type Statement = fn(Box<dyn Outside>);

/// Makes a test of each statement, in the module that calls it. `$run` is a function that takes the
/// test's path, as the test program knows it, and the [`Statement`].
#[macro_export]
macro_rules! driver_statements {
    ($run:path) => {
        $crate::driver_statements! { $run:
            frames_of_all_sizes_arrive_whole_and_in_order,
            frames_with_vlan_tags_arrive_whole_and_in_order,
            workers_send_on_both_interfaces,
            a_burst_larger_than_the_ring_is_counted_to_the_last_frame,
            frames_without_a_buffer_are_counted,
            an_interface_that_is_down_sends_nothing,
            an_interface_that_is_down_receives_nothing_then_or_later,
            frames_that_wait_when_an_interface_goes_down_do_not_come_later,
            queues_move_to_every_worker_under_traffic,
            every_receive_mode_works_or_is_refused,
            the_mac_address_is_changed_or_that_is_refused,
            promiscuous_mode_takes_frames_to_all_addresses,
            frames_longer_than_the_mtu_are_dropped_with_a_reason,
            the_link_follows_the_carrier,
            a_device_that_comes_back_is_used_as_before,
            a_device_that_comes_back_with_another_mtu_is_followed,
            settings_before_it_is_known_that_a_device_went_away_hold,
            losses_before_a_device_went_away_are_counted,
            an_interface_is_deleted_while_its_device_is_away,
            interfaces_come_and_go_under_traffic,
            frames_that_are_none_are_refused_or_dropped,
        }
    };
    ($run:path: $($statement:ident),* $(,)?) => {
        $(
            #[test]
            fn $statement() {
                let path = concat!(module_path!(), "::", stringify!($statement));
                let (_, in_program) = path.split_once("::").unwrap_or(("", path));
                $run(in_program, $crate::testing::drivers::statements::$statement);
            }
        )*
    };
}
