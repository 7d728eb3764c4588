//! `ip_unnumbered_dump`: interfaces that borrow another's addresses, of which there are none.

use crate::api_types::IP;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Asks for interfaces that borrow addresses.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpUnnumberedDump {
    /// Which one; none means all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An interface that borrows addresses.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpUnnumberedDetails {
    /// Its index.
    pub sw_if_index: InterfaceIndex,
    /// The one whose addresses it has.
    pub ip_sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Dump<Control, IpUnnumberedDump, IpUnnumberedDetails> = Dump::new(&IP, handle);

fn handle(_: &mut Control, _: IpUnnumberedDump, _: &mut Details<IpUnnumberedDetails>) {}
