//! Helpers shared by layer 2 API messages.

use crate::L2Error;
use crate::message_types::L2IntfFeatFlags;
use thalweg_graph::Control;

/// Parameters of a bridge domain to create.
pub(crate) struct BridgeParams<'a> {
    pub(crate) id: u32,
    pub(crate) flood: bool,
    pub(crate) flood_unknown: bool,
    pub(crate) forward: bool,
    pub(crate) learn: bool,
    pub(crate) arp_term: bool,
    pub(crate) arp_ufwd: bool,
    pub(crate) mac_age: u8,
    pub(crate) tag: &'a str,
}

impl BridgeParams<'_> {
    /// Creates the bridge domain, or deletes it; returns its id.
    pub(crate) fn run(&self, c: &mut Control, is_add: bool) -> Result<u32, L2Error> {
        if !is_add {
            crate::delete_bridge(c, self.id)?;
            return Ok(self.id);
        }
        let id = match self.id {
            u32::MAX => {
                let l2 = c.state::<crate::L2>();
                let l2 = l2.borrow();
                (1..).find(|id| l2.bridges().get(*id).is_none()).unwrap_or(u32::MAX)
            }
            id => id,
        };
        crate::check_tag(self.tag)?;
        crate::create_bridge(c, id)?;
        crate::set_bridge(c, id, |s| {
            s.flood = self.flood;
            s.flood_unknown = self.flood_unknown;
            s.forward = self.forward;
            s.learn = self.learn;
            s.arp_term = self.arp_term;
            s.arp_ufwd = self.arp_ufwd;
            s.mac_age = self.mac_age;
        })?;
        crate::set_bridge_tag(c, id, self.tag)?;
        Ok(id)
    }
}

impl L2IntfFeatFlags {
    /// Reads VPP's bits of features.
    pub(crate) fn of_features(bits: u32) -> L2IntfFeatFlags {
        let (port, others) = crate::feature_bit::port_flags(bits);
        let ufwd = if others & (1 << 3) != 0 { Self::ARP_UFWD.0 } else { 0 };
        L2IntfFeatFlags(port.bits() | ufwd)
    }
}
