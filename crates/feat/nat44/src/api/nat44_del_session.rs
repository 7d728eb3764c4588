//! `nat44_del_session`: ends a session.

use crate::api_types::has;
use crate::message_types::{NAT44_ED, Nat44DelSession, Nat44DelSessionReply, NatConfigFlags};
use crate::view::{self, Listing, REST, SessionFilter, WAIT};
use std::time::Duration;
use thalweg_api::{Call, Later, Retval};
use thalweg_fib::TableId;
use thalweg_graph::Control;
use thalweg_graph::control::Asked;
use thalweg_wire::nat::tuple::{MAX_TABLE, Tuple};

/// The service.
pub static SERVICE: Call<Control, Nat44DelSession, Nat44DelSessionReply> =
    Call::later(&NAT44_ED, handle);

fn handle(c: &mut Control, rq: Nat44DelSession, later: Later<Nat44DelSessionReply>) {
    let inside = has(rq.flags, NatConfigFlags::INSIDE);
    let near = Tuple {
        src: rq.address.0.into(),
        sport: rq.port,
        dst: rq.ext_host_address.0.into(),
        dport: rq.ext_host_port,
        protocol: rq.protocol,
        table: rq.vrf_id,
    };
    if near.table > MAX_TABLE {
        return finish(later, Err(Retval::INVALID_VALUE.because("no such table")));
    }
    if !has(rq.flags, NatConfigFlags::EXT_HOST_VALID) && near.dst.is_unspecified() {
        let filter = SessionFilter::of_end(
            inside,
            (near.src, near.sport),
            near.protocol,
            TableId(near.table),
        );
        return end_all(c, Listing::new(filter), 0, later);
    }
    let tuple = if inside { near } else { near.reversed() };
    let asked = c.begin_asking(view::removal(c, tuple, inside));
    when_ended(c, asked, later);
}

/// Answers when all workers have.
fn when_ended(c: &mut Control, mut asked: Asked<bool>, later: Later<Nat44DelSessionReply>) {
    match asked.wait(c, WAIT) {
        Some(done) => finish(later, some_of(usize::from(done.contains(&Some(true))))),
        None => _ = c.after(REST, move |c| when_ended(c, asked, later)),
    }
}

fn some_of(ended: usize) -> Result<(), Retval> {
    match ended {
        0 => Err(Retval::NO_SUCH_ENTRY.because("no such session")),
        _ => Ok(()),
    }
}

fn finish(later: Later<Nat44DelSessionReply>, result: Result<(), Retval>) {
    later.answer(result.map_or_else(|e| e.0, |()| 0), &Nat44DelSessionReply);
}

/// Ends a slice of the sessions, and the rest in later turns of the main thread.
fn end_all(
    c: &mut Control,
    mut listing: Listing,
    ended: usize,
    later: Later<Nat44DelSessionReply>,
) {
    match view::delete_some(c, &mut listing) {
        None => finish(later, some_of(ended)),
        Some(some) => {
            _ = c.after(Duration::ZERO, move |c| end_all(c, listing, ended + some, later))
        }
    }
}
