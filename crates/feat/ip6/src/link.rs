//! The link header of IPv6 packets, from their adjacency, and what goes before it: hop limit and
//! length.

use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, GsoKind, Iface, LOCAL_IF, PktMut, Rows};
use thalweg_fib::{Dpo, DpoTable, ETHERNET_HEADER, Entry, EntryState, LinkRewrite};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{BuildCx, FrameVerdict, NodeId, Verdict};
use thalweg_wire::ip::protocol;
use thalweg_wire::ipv6::{HEADER_LEN, Ipv6View};

/// Writes link headers.
pub(crate) struct Link {
    pub(crate) dpos: Arc<DpoTable>,
}

/// Returns whether a packet that exceeds the MTU is a GSO packet whose segments suit it.
#[cold]
pub(crate) fn suits(p: &PktMut<'_>, mtu: u16) -> bool {
    if !p.flags().contains(Flags::OFFLOAD) {
        return false;
    }
    let o = p.meta().offload;
    let Ok(transport) = Ipv6View::parse_prefix(p.data()).and_then(|ip| ip.transport()) else {
        return false;
    };
    // The device's length of the headers is only a hint.
    let headers = HEADER_LEN
        + transport.offset
        + match transport.protocol {
            protocol::UDP => 8,
            _ => usize::from(transport.payload.get(12).map_or(0, |b| b >> 4)) * 4,
        };
    o.gso != GsoKind::None && headers + usize::from(o.gso_size) <= usize::from(mtu)
}

/// Decrements the hop limit of an IPv6 header; returns false, with nothing done, if it has expired.
#[inline(always)]
pub(crate) fn decrement_hop_limit(ip: &mut [u8]) -> bool {
    match ip.get_mut(7) {
        Some(hops) if *hops > 1 => {
            *hops -= 1;
            true
        }
        _ => false,
    }
}

/// Writes the header of a packet; with `HOP`, decrements its hop limit, and returns false, with
/// nothing done, if that has expired.
#[inline(always)]
fn send<const LEN: usize, const WINDOW: usize, const HOP: bool>(
    header: [u64; 3],
    window: &mut [u8; WINDOW],
) -> bool {
    let (link, ip) = window.split_at_mut(LEN);
    if HOP && !decrement_hop_limit(ip) {
        return false;
    }
    // Two stores that overlap, or three.
    link[..8].copy_from_slice(&header[0].to_le_bytes());
    if LEN > 16 {
        link[8..16].copy_from_slice(&header[1].to_le_bytes());
    }
    link[LEN - 8..].copy_from_slice(&header[2].to_le_bytes());
    true
}

#[inline(always)]
fn output(node: u32) -> Verdict {
    Verdict::node(NodeId(node as u16))
}

impl Link {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Link {
        Link { dpos: cx.shared() }
    }

    /// Prepends the link header and returns the next node; `None` without headroom.
    #[inline(always)]
    pub(crate) fn write(
        &self,
        p: &mut PktMut<'_>,
        entry: Entry<'_>,
        state: EntryState,
    ) -> Option<Verdict> {
        let len = usize::from(state.len);
        let room = p.push(len)?;
        if len == ETHERNET_HEADER {
            room.copy_from_slice(&entry.rewrite()[..ETHERNET_HEADER]);
        } else {
            self.dpos.copy_rewrite(entry, room);
        }
        if self.names_sender(len) || p.tx_if() != LOCAL_IF {
            p.set_tx_if(state.tx_if());
        }
        Some(Verdict::node(NodeId(entry.next() as u16)))
    }

    /// Returns whether packets that get a header of `len` bytes may leave on behalf of a
    /// sub-interface: those with tags do, others hardly ever.
    #[inline(always)]
    fn names_sender(&self, len: usize) -> bool {
        len != ETHERNET_HEADER || self.dpos.names_senders()
    }

    /// Sets the tx interface of all packets but `rest`.
    #[inline(never)]
    fn name_senders(&self, frame: &mut Frame, rest: Rows) {
        let mut senders = [LOCAL_IF; FRAME_SIZE];
        for (i, (to, dpo)) in senders.iter_mut().zip(frame.aux()).enumerate() {
            let i = i as u8;
            *to = match rest.contains(i) {
                true => frame.tx_if(i),
                false => self.dpos.get(Dpo(*dpo)).state().tx_if(),
            };
        }
        frame.set_tx_each(&senders);
    }

    /// Rewrites the packets of a frame that fit the MTU and leave by an Ethernet interface; with
    /// `HOP`, decrements their hop limit. Not for frames with chained packets.
    #[inline(always)]
    pub(crate) fn frame<const HOP: bool>(
        &self,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Some(&dpo) = frame.aux().first() else { return FrameVerdict::PerPacket };
        // With tags if the first packet gets some; those whose header has another length are left.
        match self.dpos.get(Dpo(dpo)).state().len {
            18 => self.rewrite::<18, 26, HOP>(Dpo(dpo), frame, each),
            22 => self.rewrite::<22, 30, HOP>(Dpo(dpo), frame, each),
            _ => self.rewrite::<ETHERNET_HEADER, 22, HOP>(Dpo(dpo), frame, each),
        }
    }

    /// Rewrites the packets of a frame whose headers become `LEN` bytes long.
    #[inline(always)]
    fn rewrite<const LEN: usize, const WINDOW: usize, const HOP: bool>(
        &self,
        dpo: Dpo,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        const { assert!(WINDOW == LEN + 8) };
        let way = self.dpos.get(dpo).link::<LEN>();
        let named = self.names_sender(LEN) || frame.tx() != Iface::Uniform(LOCAL_IF);
        let alike = frame.aux().iter().fold(0, |differ, d| differ | (d ^ dpo.0)) == 0;
        let rest = if alike { Self::one_way::<LEN, WINDOW, HOP>(&way, frame) } else { None };
        match rest {
            Some(rest) if rest.is_empty() => {
                frame.push_all(LEN as u16, rest);
                if named {
                    frame.set_tx(self.dpos.get(dpo).state().tx_if());
                }
                FrameVerdict::Whole(output(way.next))
            }
            Some(rest) => {
                if named {
                    self.name_senders(frame, rest);
                }
                frame.push_all(LEN as u16, rest);
                each[..frame.len()].fill(output(way.next));
                FrameVerdict::Each(rest)
            }
            None => self.each_alone::<LEN, WINDOW, HOP>(named, frame, each),
        }
    }

    /// Rewrites packets with one adjacency each.
    #[inline(always)]
    fn each_alone<const LEN: usize, const WINDOW: usize, const HOP: bool>(
        &self,
        named: bool,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let longest = u16::MAX - LEN as u16;
        let Some(rows) = frame.long_windows_with_aux::<WINDOW>(LEN, longest) else {
            return FrameVerdict::PerPacket;
        };
        let mut rest = Rows::NONE;
        for (i, ((dpo, len, window), verdict)) in rows.zip(each).enumerate() {
            let way = self.dpos.get(Dpo(dpo)).link::<LEN>();
            *verdict = output(way.next);
            if len > usize::from(way.longest) || !send::<LEN, WINDOW, HOP>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        if named {
            self.name_senders(frame, rest);
        }
        frame.push_all(LEN as u16, rest);
        FrameVerdict::Each(rest)
    }

    /// Rewrites packets with one common adjacency; returns those left. `None`, with nothing done,
    /// if a packet has no headroom or is too long.
    #[inline(always)]
    fn one_way<const LEN: usize, const WINDOW: usize, const HOP: bool>(
        way: &LinkRewrite,
        frame: &mut Frame,
    ) -> Option<Rows> {
        let mut rest = Rows::NONE;
        for (i, window) in frame.long_windows_mut::<WINDOW>(LEN, way.longest)?.enumerate() {
            if !send::<LEN, WINDOW, HOP>(way.header, window) {
                rest.insert(i as u8);
            }
        }
        Some(rest)
    }

    /// Describes a packet whose link header has been written, or was not.
    pub(crate) fn trace(&self, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (dpo, data) = (frame.aux()[usize::from(i)], frame.data(i));
        let (s, header) = self.dpos.rewrite(Dpo(dpo));
        // A packet that is not forwarded has a drop reason in aux, and still starts with its IP
        // header.
        if !s.kind.is_complete() || !data.starts_with(&header) {
            let _ = writeln!(out, "not rewritten");
            let _ = thalweg_wire::fmt::ip6(data, out, 0);
            return;
        }
        let _ = writeln!(out, "tx {} dpo-idx {dpo}", interface_token(s.tx_if()));
        let _ = thalweg_wire::fmt::packet(data, out, 0);
    }
}
