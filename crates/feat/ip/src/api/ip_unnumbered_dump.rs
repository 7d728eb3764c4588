//! `ip_unnumbered_dump`: lists unnumbered interfaces, of which there are none.

use crate::api_types::IP;
use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Details, Dump, Message};
use thalweg_graph::Control;

/// Requests unnumbered interfaces.
#[derive(Debug, Message)]
#[api(request)]
pub struct IpUnnumberedDump {
    /// Interface; all ones for all.
    #[api(default = 0xffff_ffff)]
    pub sw_if_index: InterfaceIndex,
}

/// An unnumbered interface.
#[derive(Debug, Message)]
#[api(details)]
pub struct IpUnnumberedDetails {
    /// Interface index.
    pub sw_if_index: InterfaceIndex,
    /// Interface whose addresses it borrows.
    pub ip_sw_if_index: InterfaceIndex,
}

/// The service.
pub static SERVICE: Dump<Control, IpUnnumberedDump, IpUnnumberedDetails> = Dump::new(&IP, handle);

fn handle(_: &mut Control, _: IpUnnumberedDump, _: &mut Details<IpUnnumberedDetails>) {}
