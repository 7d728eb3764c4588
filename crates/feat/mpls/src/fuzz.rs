//! Entry points for fuzzing: everything that reads labelled packets. The only expectations are that
//! it returns, and that a packet that is not understood stays as it was.

use crate::disposition::take_over;
use crate::error_message::{MAX_MESSAGE, MAX_MESSAGE6, cause6, message, message6};
use crate::nodes::{mpls_label_imposition_uniform, mpls_lookup};
use std::net::{Ipv4Addr, Ipv6Addr};
use thalweg_buffer::IcmpCause;
use thalweg_wire::ipv4::{self, Ipv4View};
use thalweg_wire::ipv6::Ipv6View;
use thalweg_wire::mpls::{ENTRY_LEN, Entry, Stack};

/// Reads a labelled packet as the nodes do.
///
/// # Panics
/// If one of them gets it wrong.
pub fn fuzz_packet(data: &[u8]) {
    let _ = mpls_lookup::hash(data);
    let mut stack = Stack::new(data);
    let n = stack.by_ref().count();
    let labels = data.get(..n * ENTRY_LEN).unwrap_or_default();
    if let Ok(original) = Ipv4View::parse_prefix(stack.payload()) {
        let (from, mut buf) = (Ipv4Addr::new(192, 0, 2, 1), [0; MAX_MESSAGE]);
        if let Some(all) = message(IcmpCause::TTL_EXCEEDED, from, &original, labels, &mut buf) {
            assert!(ipv4::check(all).is_ok(), "a message with a wrong header");
        }
    }
    for cause in [IcmpCause::TTL_EXCEEDED, IcmpCause::frag_needed(1400)] {
        let (from, mut buf) = (Ipv6Addr::LOCALHOST, [0; MAX_MESSAGE6]);
        if let Some(all) = message6(cause6(cause), from, stack.payload(), labels, &mut buf) {
            assert!(Ipv6View::parse(all).is_ok(), "a message with a wrong header");
        }
    }
    for len in (0..=n * ENTRY_LEN + ENTRY_LEN).step_by(ENTRY_LEN) {
        let mut packet = data.to_vec();
        mpls_label_imposition_uniform::set(&mut packet, len);
        let behind = data.get(len..).unwrap_or_default();
        assert!(packet.ends_with(behind), "what is behind the labels has changed");
    }
    let mut packet = stack.payload().to_vec();
    let entry = labels.last_chunk().map_or(Entry(0), |word| Entry(u32::from_be_bytes(*word)));
    take_over(&mut packet, entry);
    assert_eq!(packet.len(), stack.payload().len());
}
