//! `bridge_domain_dump`: bridges, of which there are none yet; clients such as `vppcfg` insist on
//! the message.

use thalweg_api::schema::Module;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{ApiType, Details, Dump, Message, Text};
use thalweg_graph::Control;

static L2: Module = Module { name: "l2", folder: "core", version: "3.3.0" };

/// Asks for bridges.
#[derive(Debug, Message)]
#[api(request)]
pub struct BridgeDomainDump {
    /// Which one; all ones means all.
    #[api(default = 0xffff_ffff)]
    pub bd_id: u32,
    /// That of this interface; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface of a bridge.
#[derive(Debug, ApiType)]
pub struct BridgeDomainSwIf {
    /// Without a meaning.
    pub context: u32,
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// Interfaces of one group do not talk to each other.
    pub shg: u8,
}

/// A bridge.
#[derive(Debug, Message)]
#[api(details)]
pub struct BridgeDomainDetails {
    /// Its number.
    pub bd_id: u32,
    /// Floods to all.
    pub flood: bool,
    /// Floods what it does not know.
    pub uu_flood: bool,
    /// Forwards.
    pub forward: bool,
    /// Learns addresses.
    pub learn: bool,
    /// Answers ARP.
    pub arp_term: bool,
    /// Forwards ARP to those that it knows.
    pub arp_ufwd: bool,
    /// Minutes after which it forgets an address.
    pub mac_age: u8,
    /// What somebody noted about it.
    pub bd_tag: Text<64>,
    /// The router's own port.
    pub bvi_sw_if_index: InterfaceIndex,
    /// Where what it does not know goes.
    pub uu_fwd_sw_if_index: InterfaceIndex,
    /// Its ports.
    #[api(count = "n_sw_ifs: u32")]
    pub sw_if_details: Vec<BridgeDomainSwIf>,
}

/// The service.
pub static SERVICE: Dump<Control, BridgeDomainDump, BridgeDomainDetails> = Dump::new(&L2, handle);

fn handle(_: &mut Control, _: BridgeDomainDump, _: &mut Details<BridgeDomainDetails>) {}
