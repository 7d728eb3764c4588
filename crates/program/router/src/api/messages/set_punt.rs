//! `set_punt`: has UDP ports punted.

use crate::api::message_types::{IpProto, PUNT, PuntType, SetPunt, SetPuntReply};
use thalweg_api::types::AddressFamily;
use thalweg_api::{Call, Retval};
use thalweg_engine::cli::set_punt::NO_TCP;
use thalweg_engine::punt::{self, Port};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SetPunt, SetPuntReply> = Call::new(&PUNT, handle);

/// The port that means all without a listener.
const ALL: u16 = u16::MAX;

fn handle(c: &mut Control, rq: SetPunt) -> Result<SetPuntReply, Retval> {
    if rq.punt.r#type != PuntType::L4 {
        return Err(rq.punt.refuse("only UDP ports can be set: reasons go to who takes them"));
    }
    // An address family, a protocol and a port.
    let [af, protocol, high, low] = rq.punt.punt.0;
    let v6 = match AddressFamily(af) {
        AddressFamily::IP4 => false,
        AddressFamily::IP6 => true,
        _ => return Err(Retval::INVALID_ADDRESS_FAMILY),
    };
    match IpProto(protocol) {
        IpProto::UDP => {}
        IpProto::TCP => return Err(Retval::UNSPECIFIED.because(NO_TCP)),
        _ => return Err(Retval::UNSPECIFIED.because("only UDP ports are supported")),
    }
    let number = Some(u16::from_be_bytes([high, low])).filter(|port| *port != ALL);
    let set = punt::set_port(c, Port { v6, number }, rq.is_add);
    set.map(|()| SetPuntReply).map_err(|e| Retval::TABLE_TOO_BIG.because(e))
}
