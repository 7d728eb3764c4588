//! Label stacks of sampled packets before and after forwarding, and what their paths are called.
//!
//! The packet path notes nothing for this: the stack as it left follows from the one that came,
//! what the label tables say, and the labels of the adjacency by which the packet left.

use super::samples::Guide;
use crate::head::Head;
use std::net::IpAddr;
use thalweg_device::InterfaceView;
use thalweg_device::interface::Kind;
use thalweg_fib::{Dpo, DpoTable, ETHERNET_HEADER, LabelStep, LinkType};
use thalweg_sflow::FlowRecord;
use thalweg_sflow::model::{ExtendedMpls, MplsFtn, MplsTunnel, MplsVc};
use thalweg_sflow::value::{Address, Text};
use thalweg_tables::qsbr::Guard;
use thalweg_wire::mpls::{ENTRY_LEN, Entry, label};

/// Look-ups of one packet that are followed, as many as the packet path makes.
const MAX_LOOKUPS: usize = 16;
/// Device type of tunnels that put labels before packets.
const TUNNEL: &str = "MPLS tunnel device";

/// Labels that an adjacency puts before packets.
struct Pushed {
    labels: Vec<u32>,
    /// The label that takes the place of the packet's own, for a member of a group.
    swap: u32,
}

/// Reads the labels of an adjacency; `None` if packets leave it without any.
fn pushed(entries: &DpoTable, dpo: Dpo) -> Option<Pushed> {
    let (state, header) = entries.rewrite(dpo);
    if !state.kind.is_complete() {
        return None;
    }
    let is_link = |at: usize| header.get(at..at + 2) == Some(&LinkType::Mpls.ethertype());
    let labels_at = match header.len() {
        // Without a link header there are labels only.
        n if n < ETHERNET_HEADER => 0,
        _ => [12, 16, 20].into_iter().find(|at| is_link(*at)).map(|at| at + 2)?,
    };
    let all = header.get(labels_at..)?.as_chunks::<ENTRY_LEN>().0;
    let labels = all.iter().map(|word| u32::from_be_bytes(*word)).collect();
    let mut behind = vec![0; header.len() + ENTRY_LEN];
    entries.copy_rewrite(entries.get(dpo), &mut behind);
    let swap = behind.last_chunk().map_or(0, |word| u32::from_be_bytes(*word) >> 12);
    Some(Pushed { labels, swap })
}

/// An entry with another label, and with a TTL one lower.
fn swapped(entry: u32, label: u32) -> u32 {
    let ttl = (entry & 0xff).saturating_sub(1);
    label << 12 | entry & 0xf00 | ttl
}

impl Guide {
    /// The label stacks of a packet that left by an adjacency: as it came, and as it went.
    pub(super) fn labels(
        &self,
        guard: &Guard<'_>,
        entry: u32,
        head: &Head<'_>,
    ) -> Option<ExtendedMpls> {
        let input = head.labels();
        let by = pushed(self.entries()?, Dpo(entry));
        if input.is_empty() && by.is_none() {
            return None;
        }
        let next_hop = self.entries()?.get(Dpo(entry)).next_hop();
        let Pushed { labels, swap } = by.unwrap_or(Pushed { labels: Vec::new(), swap: 0 });
        let mut left = &input[..];
        let mut output = labels;
        let mut table = 0;
        for _ in 0..MAX_LOOKUPS {
            let Some((first, rest)) = left.split_first() else { break };
            left = rest;
            let entry = Entry(*first);
            // An entropy label goes with its indicator.
            let is_indicator = entry.label() == label::ENTROPY_INDICATOR && !entry.is_bottom();
            match self.label(guard, table, *first) {
                Some(LabelStep::Swapped(label)) => output.push(swapped(*first, label)),
                Some(LabelStep::ByMember) if swap != IMPLICIT_NULL => {
                    output.push(swapped(*first, swap));
                }
                Some(LabelStep::LookedUp(next)) => {
                    table = next;
                    continue;
                }
                None if is_indicator => {
                    left = left.split_first().map_or(&[], |(_, rest)| rest);
                    continue;
                }
                Some(LabelStep::ByMember | LabelStep::Popped) | None => {}
            }
            break;
        }
        output.extend(left);
        // The labels below a tunnel's are not known of a packet that came without any.
        let is_whole = output.last().is_some_and(|entry| Entry(*entry).is_bottom());
        if input.is_empty() && !is_whole {
            return None;
        }
        Some(ExtendedMpls { next_hop: Address(next_hop), input, output })
    }
}

/// The label that is popped instead of sent.
const IMPLICIT_NULL: u32 = label::IMPLICIT_NULL.0;

/// The number in the name of a tunnel.
fn number(view: &InterfaceView) -> u32 {
    let digits = view.name.rfind(|c: char| !c.is_ascii_digit()).map_or(0, |at| at + 1);
    view.name.get(digits..).and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns the record that names the tunnel or pseudowire of a packet's path.
pub(super) fn tunnel(view: &InterfaceView) -> Option<FlowRecord<'_>> {
    if view.kind != Kind::Tunnel || view.dev_type != TUNNEL {
        return None;
    }
    let name = if view.tag.is_empty() { &view.name } else { &view.tag };
    let (name, id) = (Text::from(name.as_str()), number(view));
    // The labels have class 0.
    Some(match view.ethernet {
        true => FlowRecord::MplsVc(MplsVc { name, id, cos: 0 }),
        false => FlowRecord::MplsTunnel(MplsTunnel { name, id, cos: 0 }),
    })
}

/// Name of the prefix for which a packet without labels got some.
pub(super) fn prefix_name(destination: IpAddr, len: u32) -> String {
    let masked = match destination {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - len.min(32)).unwrap_or(0);
            IpAddr::V4((v4.to_bits() & mask).into())
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - len.min(128)).unwrap_or(0);
            IpAddr::V6((v6.to_bits() & mask).into())
        }
    };
    format!("{masked}/{len}")
}

/// Returns the record that names the prefix whose packets got labels.
pub(super) fn prefix(name: &str, len: u32) -> FlowRecord<'_> {
    FlowRecord::MplsFtn(MplsFtn { description: Text::from(name), mask: len })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_named() {
        let v4 = |len| prefix_name([10, 1, 2, 3].into(), len);
        assert_eq!(
            (v4(0), v4(9), v4(32)),
            ("0.0.0.0/0".into(), "10.0.0.0/9".into(), "10.1.2.3/32".into())
        );
        let v6: IpAddr = "2001:db8:1::1".parse().unwrap();
        assert_eq!(prefix_name(v6, 32), "2001:db8::/32");
        assert_eq!(prefix_name(v6, 0), "::/0");
    }

    #[test]
    fn a_swap_keeps_class_and_bottom() {
        assert_eq!(swapped(16 << 12 | 5 << 9 | 1 << 8 | 64, 17), 17 << 12 | 5 << 9 | 1 << 8 | 63);
        assert_eq!(swapped(16 << 12, 17), 17 << 12);
    }
}
