//! `mpls_ip_bind_unbind`: binds a label to a prefix, or unbinds it.

use crate::MplsError;
use crate::api_types::bound;
use crate::message_types::{MPLS, MplsIpBindUnbind, MplsIpBindUnbindReply};
use thalweg_api::{Call, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_wire::mpls::{Label, MAX_LABEL};

/// The service.
pub static SERVICE: Call<Control, MplsIpBindUnbind, MplsIpBindUnbindReply> =
    Call::new(&MPLS, handle);

fn handle(c: &mut Control, rq: MplsIpBindUnbind) -> Result<MplsIpBindUnbindReply, Retval> {
    let (id, label) = (TableId(rq.mb_mpls_table_id), Label(rq.mb_label));
    if label > MAX_LABEL {
        return Err(Retval::INVALID_VALUE.because("a label has up to 20 bits"));
    }
    let bound = bound(TableId(rq.mb_ip_table_id), rq.mb_prefix)?;
    if rq.mb_is_bind {
        crate::bind(c, id, label, bound)?;
    } else {
        match crate::unbind(c, id, label, bound) {
            Err(MplsError::NotBound(..)) => {}
            done => done?,
        }
    }
    Ok(MplsIpBindUnbindReply)
}
