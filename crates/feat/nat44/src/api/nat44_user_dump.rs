//! `nat44_user_dump`: lists inside hosts that have sessions.

use crate::message_types::{NAT44_ED, Nat44UserDetails, Nat44UserDump};
use crate::view::{Listing, Next, SessionFilter};
use std::collections::BTreeMap;
use thalweg_api::types::Ip4Address;
use thalweg_api::{Details, Dump, Walk};
use thalweg_graph::Control;

/// The service.
pub static SERVICE: Dump<Control, Nat44UserDump, Nat44UserDetails> =
    Dump::slices(&NAT44_ED, handle);

/// Number of hosts reported per step.
const STEP: usize = 1024;

fn handle(_: &mut Control, _: Nat44UserDump, mut out: Details<Nat44UserDetails>) -> Walk<Control> {
    let (mut users, mut counted) = (BTreeMap::new(), false);
    let mut listing = Listing::new(SessionFilter::default());
    Box::new(move |c| {
        if !counted {
            let some = match listing.next(c) {
                Next::Some(slice) => slice.sessions,
                Next::Late => return true,
                Next::End => {
                    counted = true;
                    return true;
                }
            };
            for s in some {
                let n: &mut [u32; 2] = users.entry((s.inside.table, s.inside.src)).or_default();
                n[usize::from(s.is_static())] += 1;
            }
            return true;
        }
        for _ in 0..STEP {
            let Some(((vrf_id, address), [nsessions, nstaticsessions])) = users.pop_first() else {
                return false;
            };
            let ip_address = Ip4Address(address.octets());
            out.send(&Nat44UserDetails { vrf_id, ip_address, nsessions, nstaticsessions });
        }
        true
    })
}
