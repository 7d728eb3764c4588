//! `sw_bond_interface_dump`: bonds, of which there are none yet; clients such as `vppcfg` insist on
//! the message.

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message, Text, api_enum};
use thalweg_graph::Control;

pub(super) static BOND: Module = Module { name: "bond", folder: "core", version: "2.1.0" };

api_enum! {
    /// How a bond shares out frames.
    pub struct BondMode: u32 = "bond_mode" {
        /// By turns.
        ROUND_ROBIN = 1, "BOND_API_MODE_ROUND_ROBIN";
        /// To one, and to another if that fails.
        ACTIVE_BACKUP = 2, "BOND_API_MODE_ACTIVE_BACKUP";
        /// By flow.
        XOR = 3, "BOND_API_MODE_XOR";
        /// To all.
        BROADCAST = 4, "BOND_API_MODE_BROADCAST";
        /// By flow, as agreed with the other side.
        LACP = 5, "BOND_API_MODE_LACP";
    }
    /// What makes a flow.
    pub struct BondLbAlgo: u32 = "bond_lb_algo" {
        /// MAC addresses.
        L2 = 0, "BOND_API_LB_ALGO_L2";
        /// Addresses and ports.
        L34 = 1, "BOND_API_LB_ALGO_L34";
        /// MAC and IP addresses.
        L23 = 2, "BOND_API_LB_ALGO_L23";
        /// Nothing: by turns.
        RR = 3, "BOND_API_LB_ALGO_RR";
        /// Nothing: to all.
        BC = 4, "BOND_API_LB_ALGO_BC";
        /// Nothing: to one.
        AB = 5, "BOND_API_LB_ALGO_AB";
    }
}

/// Asks for bonds.
#[derive(Debug, Message)]
#[api(request)]
pub struct SwBondInterfaceDump {
    /// Which one; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// A bond.
#[derive(Debug, Message)]
#[api(details)]
pub struct SwBondInterfaceDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The number in its name.
    pub id: u32,
    /// How it shares out frames.
    pub mode: BondMode,
    /// What makes a flow.
    pub lb: BondLbAlgo,
    /// Only to members on the same socket.
    pub numa_only: bool,
    /// Members that take frames.
    pub active_members: u32,
    /// All members.
    pub members: u32,
    /// Its name.
    pub interface_name: Text<64>,
}

/// The service.
pub static SERVICE: Dump<Control, SwBondInterfaceDump, SwBondInterfaceDetails> =
    Dump::new(&BOND, handle);

fn handle(_: &mut Control, _: SwBondInterfaceDump, _: &mut Details<SwBondInterfaceDetails>) {}
