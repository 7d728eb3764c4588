//! `ip_table_add_del_v2`: adds or deletes a routing table.

use crate::api_types::add_del_table;
use crate::message_types::{IP, IpTableAddDelV2, IpTableAddDelV2Reply};
use thalweg_api::{Call, Retval};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Call<Control, IpTableAddDelV2, IpTableAddDelV2Reply> = Call::new(&IP, handle);

fn handle(c: &mut Control, rq: IpTableAddDelV2) -> Result<IpTableAddDelV2Reply, Retval> {
    add_del_table(c, rq.is_add, &rq.table)?;
    Ok(IpTableAddDelV2Reply)
}
