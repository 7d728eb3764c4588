//! Types shared by layer 2 API messages.

use crate::L2Error;
use thalweg_api::schema::Module;
use thalweg_api::types::{Address, MacAddr};
use thalweg_api::{ApiType, api_enum};
use thalweg_graph::Control;

/// The API module.
pub static L2: Module = Module { name: "l2", folder: "core", version: "3.3.0" };

api_enum! {
    /// Flags of a bridge domain.
    pub struct BdFlags: u32 = "bd_flags" {
        /// No flag.
        NONE = 0, "BRIDGE_API_FLAG_NONE";
        /// Learns source MAC addresses.
        LEARN = 1, "BRIDGE_API_FLAG_LEARN";
        /// Forwards known unicast frames.
        FWD = 2, "BRIDGE_API_FLAG_FWD";
        /// Floods broadcast and multicast frames.
        FLOOD = 4, "BRIDGE_API_FLAG_FLOOD";
        /// Floods unknown unicast frames.
        UU_FLOOD = 8, "BRIDGE_API_FLAG_UU_FLOOD";
        /// ARP termination.
        ARP_TERM = 16, "BRIDGE_API_FLAG_ARP_TERM";
        /// ARP unicast forwarding.
        ARP_UFWD = 32, "BRIDGE_API_FLAG_ARP_UFWD";
    }
    /// Flags of a port of a bridge domain.
    pub struct L2IntfFeatFlags: u32 = "l2_intf_feat_flags" {
        /// No flag.
        NONE = 0, "L2_INTF_FEAT_NONE";
        /// Learns source MAC addresses.
        LEARN = 1, "L2_INTF_FEAT_LEARN";
        /// Forwards known unicast frames.
        FWD = 2, "L2_INTF_FEAT_FWD";
        /// Floods broadcast and multicast frames.
        FLOOD = 4, "L2_INTF_FEAT_FLOOD";
        /// Floods unknown unicast frames.
        UU_FLOOD = 8, "L2_INTF_FEAT_UU_FLOOD";
        /// ARP termination.
        ARP_TERM = 16, "L2_INTF_FEAT_ARP_TERM";
        /// ARP unicast forwarding.
        ARP_UFWD = 32, "L2_INTF_FEAT_ARP_UFWD";
    }
    /// Port type.
    pub struct L2PortType: u32 = "l2_port_type" {
        /// A normal port.
        NORMAL = 0, "L2_API_PORT_TYPE_NORMAL";
        /// The BVI, the router's own port.
        BVI = 1, "L2_API_PORT_TYPE_BVI";
        /// The port for unknown unicast frames.
        UU_FWD = 2, "L2_API_PORT_TYPE_UU_FWD";
    }
}

/// A host that a bridge domain answers for.
#[derive(Clone, Copy, Debug, ApiType)]
pub struct BdIpMac {
    /// Bridge domain id.
    pub bd_id: u32,
    /// Address.
    pub ip: Address,
    /// MAC address.
    pub mac: MacAddr,
}

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
