//! The kernel's ethtool family: link modes and offloads of devices.

use std::io;

use crate::family::Family;
use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, Generic, Writer};

const NAME: &str = "ethtool";
const VERSION: u8 = 1;
const MSG_LINKMODES_GET: u8 = 4;
const MSG_LINKMODES_SET: u8 = 5;
const MSG_FEATURES_SET: u8 = 12;

/// The request's header has this number in each message.
const HEADER: u16 = 1;
const HEADER_DEV_INDEX: u16 = 1;
const HEADER_DEV_NAME: u16 = 2;
const HEADER_FLAGS: u16 = 3;
const FLAG_OMIT_REPLY: u32 = 1 << 1;

const LINKMODES_SPEED: u16 = 5;
const LINKMODES_DUPLEX: u16 = 6;
const FEATURES_WANTED: u16 = 3;
const BITSET_BITS: u16 = 3;
const BITSET_BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Speed in Mb/s and duplex (0 half, 1 full) of an interface of this thread's network namespace, as
/// far as its driver knows.
#[must_use]
pub fn link_modes(index: u32) -> (Option<u32>, Option<u8>) {
    let (mut speed, mut duplex) = (None, None);
    let fill = |w: &mut Writer<'_>| {
        w.nest(HEADER, |w| _ = w.u32(HEADER_DEV_INDEX, index));
    };
    // A device without modes refuses: then nothing is known.
    let _ = ask(MSG_LINKMODES_GET, fill, |payload| {
        let Ok((_, attributes)) = Generic::split(payload) else { return };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                LINKMODES_SPEED => speed = a.u32().ok().filter(|s| *s != u32::MAX),
                LINKMODES_DUPLEX => duplex = a.value.first().copied().filter(|d| *d < 2),
                _ => {}
            }
        }
    });
    (speed, duplex)
}

/// Sets the speed in Mb/s that a device of this thread's network namespace says it has, such as a
/// TAP, whose driver knows none.
///
/// # Errors
/// If there is no such device, its speed is not to be set, or the kernel has no ethtool over
/// netlink (before 5.6).
pub fn set_speed(index: u32, mbits: u32) -> io::Result<()> {
    let fill = |w: &mut Writer<'_>| {
        w.nest(HEADER, |w| {
            w.u32(HEADER_DEV_INDEX, index).u32(HEADER_FLAGS, FLAG_OMIT_REPLY);
        });
        w.u32(LINKMODES_SPEED, mbits);
    };
    ask(MSG_LINKMODES_SET, fill, |_| {})
}

/// Switches features of a device of this thread's network namespace on or off, by the names that
/// `ethtool -k` shows. Features that the device does not have, or whose state is fixed, stay.
///
/// # Errors
/// If there is no such device, or the kernel has no ethtool over netlink (before 5.6).
pub fn set_features<'a>(
    device: &str,
    features: impl Iterator<Item = (&'a str, bool)>,
) -> io::Result<()> {
    let fill = |w: &mut Writer<'_>| {
        w.nest(HEADER, |w| _ = w.text(HEADER_DEV_NAME, device).u32(HEADER_FLAGS, FLAG_OMIT_REPLY));
        w.nest(FEATURES_WANTED, |w| {
            w.nest(BITSET_BITS, |w| {
                for (name, on) in features {
                    w.nest(BITSET_BIT, |w| {
                        w.text(BIT_NAME, name);
                        if on {
                            w.flag(BIT_VALUE);
                        }
                    });
                }
            });
        });
    };
    ask(MSG_FEATURES_SET, fill, |_| {})
}

fn ask(command: u8, fill: impl FnOnce(&mut Writer<'_>), each: impl FnMut(&[u8])) -> io::Result<()> {
    let missing = || io::Error::new(io::ErrorKind::NotFound, "the kernel has no family ethtool");
    let family = Family::resolve(NAME)?.ok_or_else(missing)?;
    let encode = |out: &mut Vec<u8>, header| {
        let mut w = Writer::generic(out, header, Generic { command, version: VERSION });
        fill(&mut w);
        w.finish();
    };
    Port::open(Protocol::Generic)?.ask(Question::one(family.id), family.id, encode, each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_are_not_there_are_refused() {
        assert_eq!(link_modes(i32::MAX as u32), (None, None));
        assert!(set_speed(i32::MAX as u32, 1000).is_err());
        assert!(set_features("no-such-dev", [("rx-gro", true)].into_iter()).is_err());
    }
}
