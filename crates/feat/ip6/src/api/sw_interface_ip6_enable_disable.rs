//! `sw_interface_ip6_enable_disable`: makes an interface speak IPv6 without an address.

use crate::message_types::{IP, SwInterfaceIp6EnableDisable, SwInterfaceIp6EnableDisableReply};
use thalweg_api::{Call, Retval};
use thalweg_device::api_types::view;
use thalweg_feat_ip::Ip6;
use thalweg_feat_ip::address::set_enabled;
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, SwInterfaceIp6EnableDisable, SwInterfaceIp6EnableDisableReply> =
    Call::new(&IP, handle);

/// The interface speaks IPv6 already.
const VALUE_EXIST: Retval = Retval(-81);
/// The interface does not speak IPv6.
const IP6_NOT_ENABLED: Retval = Retval(-62);

fn handle(
    c: &mut Control,
    rq: SwInterfaceIp6EnableDisable,
) -> Result<SwInterfaceIp6EnableDisableReply, Retval> {
    let sw_if = view(c, rq.sw_if_index)?.sw_if;
    let is_configured = c.state::<Ip6>().borrow().is_configured(sw_if);
    match (rq.enable, is_configured) {
        (true, true) => Err(VALUE_EXIST),
        (false, false) => Err(IP6_NOT_ENABLED),
        (enable, _) => {
            set_enabled::<u128>(c, sw_if, enable)?;
            Ok(SwInterfaceIp6EnableDisableReply)
        }
    }
}
