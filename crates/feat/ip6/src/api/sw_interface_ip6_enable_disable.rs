//! `sw_interface_ip6_enable_disable`: makes an interface speak IPv6 without an address.

use thalweg_api::types::InterfaceIndex;
use thalweg_api::{Call, Message, Retval};
use thalweg_device::api_types::view;
use thalweg_feat_ip::Ip6;
use thalweg_feat_ip::address::set_enabled;
use thalweg_feat_ip::api_types::IP;
use thalweg_graph::Control;

/// Makes an interface speak IPv6 without an address, or only with one.
#[derive(Debug, Message)]
#[api(request, autoreply)]
pub struct SwInterfaceIp6EnableDisable {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// True to enable, false to disable.
    pub enable: bool,
}

/// The service.
pub static SERVICE: Call<Control, SwInterfaceIp6EnableDisable, SwInterfaceIp6EnableDisableReply> =
    Call::new(&IP, handle);

/// It speaks IPv6 already.
const VALUE_EXIST: Retval = Retval(-81);
/// It does not speak IPv6.
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
