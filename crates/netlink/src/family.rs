//! The kernel's register of generic families.

use std::io;

use netlink_packet_generic::GenlMessage;
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};

use crate::socket::{Port, Protocol, Question};
use crate::wire::{Attributes, Generic};

/// The family that knows the others (`GENL_ID_CTRL`).
const CONTROLLER: u16 = 16;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_MCAST_GROUPS: u16 = 7;
const CTRL_ATTR_MCAST_GRP_NAME: u16 = 1;
const CTRL_ATTR_MCAST_GRP_ID: u16 = 2;

/// A family of generic netlink.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Family {
    /// Its number: messages' kind.
    pub id: u16,
    /// Its multicast groups with their numbers.
    pub groups: Vec<(String, u32)>,
}

impl Family {
    /// Looks a family up in this thread's network namespace; `None` if it is not there.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn resolve(name: &str) -> io::Result<Option<Family>> {
        let port = Port::open(Protocol::Generic)?;
        let mut family = Family::default();
        let name = GenlCtrlAttrs::FamilyName(name.to_owned());
        let request = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] };
        let request = GenlMessage::from_payload(request);
        let answer = port.ask_with(Question::one(CONTROLLER), request, |payload| {
            family.learn(payload);
        });
        match answer {
            Ok(()) => Ok((family.id != 0).then_some(family)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The number of one of its groups.
    #[must_use]
    pub fn group(&self, name: &str) -> Option<u32> {
        self.groups.iter().find(|(known, _)| known == name).map(|(_, id)| *id)
    }

    /// Takes what the controller says; what is not as expected stays unknown.
    pub fn learn(&mut self, payload: &[u8]) {
        let Ok((_, attributes)) = Generic::split(payload) else { return };
        for a in Attributes::new(attributes).flatten() {
            match a.kind {
                CTRL_ATTR_FAMILY_ID => self.id = a.u16().unwrap_or(0),
                CTRL_ATTR_MCAST_GROUPS => {
                    let groups = a.attributes().flatten().filter_map(|group| {
                        let mut found = (None, None);
                        for part in group.attributes().flatten() {
                            match part.kind {
                                CTRL_ATTR_MCAST_GRP_NAME => found.0 = Some(part.text()),
                                CTRL_ATTR_MCAST_GRP_ID => found.1 = part.u32().ok(),
                                _ => {}
                            }
                        }
                        Some((String::from_utf8_lossy(found.0?).into_owned(), found.1?))
                    });
                    self.groups = groups.collect();
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_looked_up() {
        // The one that every kernel has.
        let controller = Family::resolve("nlctrl").unwrap().unwrap();
        assert_eq!(controller.id, CONTROLLER);
        assert_eq!(controller.group("notify"), Some(16));
        assert_eq!(controller.group("nonsense"), None);
        assert_eq!(Family::resolve("thalweg-none").unwrap(), None);
    }
}
