//! `ethernet-input`: finds the interface to which received packets belong, and passes them on by
//! that interface's mode, or if it is routed, by ethertype.
//!
//! Reads: rx interface. Writes: rx interface, if that is a sub-interface; marks packets to
//! broadcast and multicast addresses. A priority tag (VLAN id 0) counts as none. Next: the node
//! registered for the interface's mode, with the packet as it came; or that of the ethertype, with
//! the packet's start advanced past the Ethernet header and its tags, which stay readable before
//! the start.
//!
//! Terms, here and in [`IfRow`]:
//!
//! | term | meaning |
//! | --- | --- |
//! | frame | packets that move through the graph together; one from the wire is a *packet* |
//! | uniform frame | all packets came by one interface |
//! | mode's node (`mode_input`) | takes all packets of an interface that is not routed |
//! | whole frame (`whole_input`) | goes to the mode's node unread: up, without sub-interfaces |
//! | plain interface (`is_plain`) | up, without sub-interfaces, and none itself |
//! | port | interface with sub-interfaces |
//! | reads tags (`reads_tags`) | is a port, or a sub-interface whose packets have come again |
//!
//! A frame takes the first of these ways that it can:
//!
//! | way | frame | packets are read |
//! | --- | --- | --- |
//! | `whole` | uniform, of an interface that takes whole frames | not at all |
//! | `frame` | uniform, of a plain, routed interface | against one pattern |
//! | `frame_of_interfaces` | of plain interfaces in the same mode | against a pattern of each |
//! | `frame_of_one_sub` | of a port; same tags, same destination | against one pattern |
//! | `frame_of_subs` | of a port; one tag each | one by one |
//! | `frame_by_tags` | with any that reads tags | one by one: `packet_by_tags` |
//! | `packet` | any other, and what the ways above leave | one by one |

use crate::Ethertypes;
use crate::tagged::Run;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::{Lanes, Pattern};
use thalweg_buffer::{FRAME_SIZE, Flags, Frame, Iface, LOCAL_IF, PktMut, Rows};
use thalweg_device::{IfRow, IfTable, Interfaces, NoInterface, SwIfIndex, interface};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::ethernet::ethertype;

thalweg_graph::errors! {
    SHORT: Error, PKT_TOO_SMALL, "frame too short";
    NOT_US: Error, DMAC_FILTER, "l3 mac mismatch";
    VLAN: Error, VLAN_TAG_MISMATCH, "unknown vlan";
    LLC: Error, NON_IP, "unsupported 802.3 LLC frame";
    UNKNOWN: Error, NON_IP, "unknown ethernet type";
    DOWN: Error, DEV_READY, "interface is down";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "ethernet-input",
    errors: ERRORS,
    build: |cx| {
        Built::node(EthernetInput {
            interfaces: Interfaces::table(cx),
            types: cx.shared(),
            ip4: None,
            row: IfRow::default(),
            is_uniform: false,
            whole_frame: None,
        })
    },
    ..NodeDecl::DEFAULT
};

struct EthernetInput {
    interfaces: Arc<Snapshot<IfTable>>,
    types: Arc<Snapshot<Ethertypes>>,
    /// Next node for IPv4, the most frequent ethertype; looked up once per frame.
    ip4: Option<Verdict>,
    /// Interface row of the frame, if all its packets share one interface.
    row: IfRow,
    /// True if all packets share `row`.
    is_uniform: bool,
    /// Verdict of all packets, if the mode's node takes whole frames of the interface.
    whole_frame: Option<Verdict>,
}

const HEADER: usize = 14;
/// Bytes of a header with two tags, and of what may be the type of a third.
const TWO_TAGS: usize = 24;

/// Patterns of the first and of the last 16 bytes of heads like this one: with the same tags except
/// priorities, the same type behind a header of `header` bytes, and no group address; and if
/// `same_host`, with the same destination.
fn head_patterns(head: &[u8; TWO_TAGS], header: usize, same_host: bool) -> [Pattern; 2] {
    let mut mask = [0; TWO_TAGS];
    mask[0] = 1;
    if same_host {
        mask[..6].fill(0xff);
    }
    mask[12..header.min(TWO_TAGS)].fill(0xff);
    // The priority is in the first byte behind each TPID.
    for at in (14..header.min(TWO_TAGS)).step_by(4) {
        mask[at] = 0x0f;
    }
    let (mut first, mut last) = ([[0; 16]; 2], [[0; 16]; 2]);
    for (to, of) in [(0, head), (1, &mask)] {
        first[to].copy_from_slice(&of[..16]);
        last[to].copy_from_slice(&of[TWO_TAGS - 16..]);
    }
    // Bytes that both have are compared once.
    last[1][..8].fill(0);
    [first, last].map(|[want, mask]| Pattern::new(want, mask))
}

/// Pattern of the first 16 bytes of a packet that takes the fast path.
fn plain_pattern(row: &IfRow, kind: [u8; 2]) -> Pattern {
    let (mut want, mut mask) = ([0u8; 16], [0u8; 16]);
    if row.accept_all {
        // Any destination address is accepted, but broadcast and multicast packets are counted.
        mask[0] = 1;
    } else {
        want[..6].copy_from_slice(&row.mac.0);
        mask[..6].fill(0xff);
    }
    want[12..14].copy_from_slice(&kind);
    mask[12..14].fill(0xff);
    Pattern::new(want, mask)
}

impl EthernetInput {
    /// Counts and marks broadcast and multicast packets. Returns whether a packet is addressed to
    /// this interface by its first address. Always inlined: a call would keep the packet in memory.
    #[inline(always)]
    fn is_for_us(cx: &NodeCx<'_>, row: &IfRow, dst: [u8; 6], p: &mut PktMut<'_>) -> bool {
        if dst[0] & 1 != 0 {
            cx.stats().interface(p.rx_if()).received_by_group(dst, p.total_len() as u64);
            p.mark(Flags::GROUP);
            return true;
        }
        dst == row.mac.0 || row.accept_all
    }

    /// Decides about a packet to an address that is not the interface's first one. Taking the
    /// packet along keeps it out of memory elsewhere.
    #[cold]
    #[inline(never)]
    fn packet_to_another(
        &self,
        cx: &NodeCx<'_>,
        p: PktMut<'_>,
        kind: u16,
        header: usize,
    ) -> Verdict {
        let table = self.interfaces.load(cx.guard());
        match p.data().first_chunk() {
            Some(dst) if table.is_secondary_mac(p.rx_if(), *dst) => {
                self.packet_by_type(cx, p, kind, header)
            }
            _ => Verdict::drop(NOT_US),
        }
    }

    /// Passes on what is addressed to an interface.
    #[inline(always)]
    fn packet_by_type(
        &self,
        cx: &NodeCx<'_>,
        mut p: PktMut<'_>,
        kind: u16,
        header: usize,
    ) -> Verdict {
        match self.ip4 {
            Some(v) if kind == ethertype::IPV4 => {
                p.pull(header);
                v
            }
            _ => match self.types.load(cx.guard()).get(kind) {
                Some(id) => {
                    p.pull(header);
                    Verdict::node(id)
                }
                None => self.packet_by_no_type(cx, p, kind, header),
            },
        }
    }

    /// Does the kernel's work for a frame of several interfaces, if all are in the same mode.
    #[inline(never)]
    fn frame_of_interfaces(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let guard = cx.guard();
        let table = self.interfaces.load(guard);
        let mode_input = table.get(frame.rx_if(0)).mode_input;
        let same = |row: &IfRow| row.is_plain && row.mode_input == mode_input;
        if !frame.rx_runs().all(|(rx_if, _)| same(table.get(rx_if))) {
            if frame.rx_runs().any(|(rx_if, _)| table.get(rx_if).reads_tags) {
                return self.frame_by_tags(cx, frame, each);
            }
            return FrameVerdict::PerPacket;
        }
        if let Some(node) = mode_input {
            return FrameVerdict::Whole(Verdict::node(node));
        }
        let Some(kind) = frame.data(0).get(12..14) else { return FrameVerdict::PerPacket };
        let kind = [kind[0], kind[1]];
        let known = self.types.load(guard).get(u16::from_be_bytes(kind));
        let Some(next) = known.map(Verdict::node) else { return FrameVerdict::PerPacket };
        let of = |rx_if: SwIfIndex| (rx_if, plain_pattern(table.get(rx_if), kind));
        let are_plain = frame.long_heads().is_some_and(|mut heads| {
            frame.rx_runs().all(|(rx_if, n)| of(rx_if).1.matches_all(heads.by_ref().take(n)))
        });
        if are_plain {
            frame.pull_all(HEADER as u16, Rows::NONE);
            return FrameVerdict::Whole(next);
        }
        let mut last = of(frame.rx_if(0));
        let rest = Rows::of(frame.heads().enumerate().map(|(i, head)| {
            let rx_if = frame.rx_if(i as u8);
            if rx_if != last.0 {
                last = of(rx_if);
            }
            !last.1.matches(head)
        }));
        frame.pull_all(HEADER as u16, rest);
        each[..frame.len()].fill(next);
        FrameVerdict::Each(rest)
    }

    /// Decides about a frame of one port whose packets have the same tags and, on a routed
    /// interface, the same address. Returns `None`, with nothing done, if they differ or need a
    /// closer look.
    #[inline(always)]
    fn frame_of_one_sub(&self, cx: &mut NodeCx<'_>, frame: &mut Frame) -> Option<Verdict> {
        let Iface::Uniform(port) = frame.rx() else { return None };
        let table = self.interfaces.load(cx.guard());
        let subs = table.subs(port).filter(|_| table.get(port).admin_up)?;
        let n = frame.len();
        let mut heads = frame.long_heads::<TWO_TAGS>()?;
        let first = heads.next()?;
        let (sub, header) = subs.find(first).ok()?;
        let sw_if = if sub == LOCAL_IF { port } else { sub };
        let row = table.get(sw_if);
        let kind = u16::from_be_bytes([first[header - 2], first[header - 1]]);
        let next = match row.mode_input {
            _ if !row.admin_up || first[0] & 1 != 0 => return None,
            Some(node) => Verdict::node(node),
            None if !row.carries_packets => return None,
            None if first[..6] != row.mac.0 && !row.accept_all => return None,
            None => Verdict::node(self.types.load(cx.guard()).get(kind)?),
        };
        let [a, b] = head_patterns(first, header, row.mode_input.is_none());
        if !Pattern::both_match_all(&a, &b, heads) {
            return None;
        }
        if sw_if != port {
            let has_features = cx.are_input_features() && cx.has_input_features(sw_if);
            if has_features || cx.input_taps_wait(sw_if, n as u64) {
                return None;
            }
            frame.set_rx(sw_if);
            cx.count_input(sw_if, n as u64, frame.bytes());
        }
        if row.mode_input.is_none() {
            frame.pull_all(header as u16, Rows::NONE);
        }
        Some(next)
    }

    /// Decides about a frame of one port whose packets belong to several sub-interfaces; those that
    /// are not routed, have not exactly one tag, or need a closer look are left. `None`, with
    /// nothing done, if the frame is not one of such packets.
    #[inline(always)]
    fn frame_of_subs(
        &self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> Option<FrameVerdict> {
        const ONE_TAG: usize = HEADER + 4;
        let Iface::Uniform(port) = frame.rx() else { return None };
        if frame.flags().contains(Flags::CHAINED) {
            return None;
        }
        let table = self.interfaces.load(cx.guard());
        let subs = table.subs(port).filter(|_| table.get(port).admin_up)?;
        let first = frame.data(0).first_chunk::<TWO_TAGS>()?;
        let kind = [first[ONE_TAG - 2], first[ONE_TAG - 1]];
        let next = Verdict::node(self.types.load(cx.guard()).get(u16::from_be_bytes(kind))?);
        // Frames of a sub-interface with features go there together.
        let are_features = cx.are_input_features();
        if are_features && cx.has_input_features(subs.find_one(first)) {
            return None;
        }
        let (mut rest, mut rx_ifs) = (Rows::NONE, [port; FRAME_SIZE]);
        for (i, (head, len)) in frame.long_heads::<TWO_TAGS>()?.zip(frame.lengths()).enumerate() {
            let sw_if = subs.find_one(head);
            let row = table.get(sw_if);
            let is_ours = sw_if != LOCAL_IF
                && row.admin_up & row.mode_input.is_none() & row.carries_packets
                && head[..6] == row.mac.0
                && head[ONE_TAG - 2..ONE_TAG] == kind
                && !cx.input_taps_wait(sw_if, 1)
                && !(are_features && cx.has_input_features(sw_if));
            if is_ours {
                rx_ifs[i] = sw_if;
                cx.count_input(sw_if, 1, len as u64);
            } else {
                rest.insert(i as u8);
            }
        }
        frame.set_rx_each(&rx_ifs);
        frame.pull_all(ONE_TAG as u16, rest);
        each[..frame.len()].fill(next);
        Some(FrameVerdict::Each(rest))
    }

    /// Does the kernel's work for a frame of which some packets may belong to sub-interfaces.
    #[inline(never)]
    fn frame_by_tags(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let table = self.interfaces.load(cx.guard());
        let (mut run, mut last) = (Run::default(), None);
        self.ip4 = self.types.load(cx.guard()).get(ethertype::IPV4).map(Verdict::node);
        let n = frame.len();
        for (i, verdict) in each[..n].iter_mut().enumerate() {
            let p = frame.pkt(i as u8);
            let (rx_if, row) = match last {
                Some((rx_if, row)) if rx_if == p.rx_if() => (rx_if, row),
                _ => (p.rx_if(), table.get(p.rx_if())),
            };
            last = Some((rx_if, row));
            *verdict = match row.reads_tags {
                true => self.packet_by_tags(cx, table, row, p, &mut run),
                false => self.packet_of(cx, row, p, HEADER),
            };
        }
        run.end(cx);
        FrameVerdict::Each(Rows::NONE)
    }

    /// Does the work of [`frame_by_tags`](Self::frame_by_tags) for one packet.
    #[inline(never)]
    fn packet_alone_by_tags(&self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        let (table, mut run) = (self.interfaces.load(cx.guard()), Run::default());
        let verdict = self.packet_by_tags(cx, table, table.get(p.rx_if()), p, &mut run);
        run.end(cx);
        verdict
    }

    /// Decides about a packet of an interface that has sub-interfaces, or is one.
    #[inline]
    fn packet_by_tags(
        &self,
        cx: &mut NodeCx<'_>,
        table: &IfTable,
        row: &IfRow,
        mut p: PktMut<'_>,
        run: &mut Run,
    ) -> Verdict {
        let port = p.rx_if();
        if !row.admin_up {
            return Verdict::drop(DOWN);
        }
        let Some(subs) = table.subs(port) else {
            // The packet is of a frame of one sub-interface's packets.
            let header = interface::header_len(p.data());
            return self.packet_of(cx, row, p, header);
        };
        match subs.find(p.data()) {
            Ok((SwIfIndex(0), header)) => self.packet_of(cx, row, p, header),
            Ok((sw_if, header)) => {
                p.set_rx_if(sw_if);
                // Check it for the port, also if the packet comes again as one of the
                // sub-interface.
                if let Some(dst) = p.data().first_chunk::<6>()
                    && dst[0] & 1 != 0
                {
                    let counters = cx.stats().interface(port);
                    counters.received_by_group(*dst, p.total_len() as u64);
                }
                let sub = table.get(sw_if);
                // One that is down takes nothing: neither its counters nor its features see it.
                if !sub.admin_up {
                    return Verdict::drop(DOWN);
                }
                if run.add(cx, sw_if, p.total_len()) {
                    return run.take(cx, p);
                }
                self.packet_of(cx, sub, p, header)
            }
            Err(NoInterface::Short) => Verdict::drop(SHORT),
            // A port in layer 2 takes what none of its sub-interfaces does.
            Err(NoInterface::Unknown) => row.mode_input.map_or(Verdict::drop(VLAN), Verdict::node),
        }
    }

    /// Decides about a packet of an interface, whose Ethernet header with its tags has `header`
    /// bytes.
    #[inline]
    fn packet_of(&self, cx: &NodeCx<'_>, row: &IfRow, mut p: PktMut<'_>, header: usize) -> Verdict {
        if !row.admin_up {
            return Verdict::drop(DOWN);
        }
        if let Some(node) = row.mode_input {
            return Verdict::node(node);
        }
        let data = p.data();
        let (Some(&dst), Some(&[a, b])) =
            (data.first_chunk::<6>(), data.get(header - 2..).and_then(|d| d.first_chunk()))
        else {
            return Verdict::drop(SHORT);
        };
        if !row.carries_packets {
            return Verdict::drop(VLAN);
        }
        let kind = u16::from_be_bytes([a, b]);
        if !Self::is_for_us(cx, row, dst, &mut p) {
            return self.packet_to_another(cx, p, kind, header);
        }
        self.packet_by_type(cx, p, kind, header)
    }

    /// Decides about a packet of an interface that is down, not routed, or reads tags.
    #[inline(never)]
    fn packet_not_plain(&self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        if let Some(all) = self.whole_frame {
            return all;
        }
        match self.row.mode_input {
            _ if self.row.reads_tags => self.packet_alone_by_tags(cx, p),
            Some(node) if self.row.admin_up => Verdict::node(node),
            None if p.data().len() < HEADER => Verdict::drop(SHORT),
            _ => Verdict::drop(DOWN),
        }
    }

    /// Decides about a packet with a priority tag, a length, or an ethertype that nothing handles.
    #[cold]
    fn packet_by_no_type(
        &self,
        cx: &NodeCx<'_>,
        mut p: PktMut<'_>,
        kind: u16,
        header: usize,
    ) -> Verdict {
        let is_tag = |kind| kind == ethertype::VLAN || kind == ethertype::DOT1AD;
        let (mut kind, mut header) = (kind, header);
        if is_tag(kind) && header == HEADER {
            let Some(&[a, b, c, d]) = p.data().get(HEADER..).and_then(|rest| rest.first_chunk())
            else {
                return Verdict::drop(SHORT);
            };
            // A priority tag names no VLAN (IEEE 802.1Q-2018 section 6.9).
            if u16::from_be_bytes([a, b]) & 0xfff == 0 {
                (kind, header) = (u16::from_be_bytes([c, d]), HEADER + 4);
            }
        }
        let types = self.types.load(cx.guard());
        let verdict = match types.get(kind) {
            Some(id) => Verdict::node(id),
            None if kind < 0x600 => types.llc().map_or(Verdict::drop(LLC), Verdict::node),
            None if is_tag(kind) => Verdict::drop(VLAN),
            None => Verdict::drop(UNKNOWN),
        };
        p.pull(header);
        verdict
    }
}

impl Node for EthernetInput {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, frame: &Frame) {
        let guard = cx.guard();
        self.is_uniform = matches!(frame.rx(), Iface::Uniform(_));
        self.whole_frame = None;
        if let Iface::Uniform(sw_if) = frame.rx() {
            let row = self.interfaces.load(guard).get(sw_if);
            if let Some(node) = row.whole_input {
                self.whole_frame = Some(Verdict::node(node));
                self.row.is_plain = false;
                return;
            }
            self.row = *row;
        }
        self.ip4 = self.types.load(guard).get(ethertype::IPV4).map(Verdict::node);
    }

    #[inline]
    fn whole(&self) -> Option<Verdict> {
        self.whole_frame
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        if !self.is_uniform {
            self.row = *self.interfaces.load(cx.guard()).get(p.rx_if());
        }
        if !self.row.is_plain || self.row.mode_input.is_some() {
            return self.packet_not_plain(cx, p);
        }
        let Some(header) = p.data().first_chunk::<HEADER>() else { return Verdict::drop(SHORT) };
        let dst = [header[0], header[1], header[2], header[3], header[4], header[5]];
        let kind = u16::from_be_bytes([header[12], header[13]]);
        if !Self::is_for_us(cx, &self.row, dst, &mut p) {
            return self.packet_to_another(cx, p, kind, HEADER);
        }
        self.packet_by_type(cx, p, kind, HEADER)
    }

    /// Packets are compared with the most frequent header: addressed to this
    /// interface, with the first packet's ethertype.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        if frame.is_empty() {
            return FrameVerdict::PerPacket;
        }
        if !self.is_uniform {
            return self.frame_of_interfaces(cx, frame, each);
        }
        if !self.row.is_plain {
            return match self.row.reads_tags {
                true => match self.frame_of_one_sub(cx, frame) {
                    Some(verdict) => FrameVerdict::Whole(verdict),
                    None => match self.frame_of_subs(cx, frame, each) {
                        Some(verdict) => verdict,
                        None => self.frame_by_tags(cx, frame, each),
                    },
                },
                false => FrameVerdict::PerPacket,
            };
        }
        let Some(kind) = frame.data(0).get(12..14) else { return FrameVerdict::PerPacket };
        let kind = [kind[0], kind[1]];
        let known = self.types.load(cx.guard()).get(u16::from_be_bytes(kind));
        let Some(next) = known.map(Verdict::node) else { return FrameVerdict::PerPacket };
        let pattern = plain_pattern(&self.row, kind);
        let rest = if frame.long_heads().is_some_and(|heads| pattern.matches_all(heads)) {
            Rows::NONE
        } else {
            Rows::of(frame.heads().map(|h| !pattern.matches(h)))
        };
        frame.pull_all(HEADER as u16, rest);
        if rest.is_empty() {
            return FrameVerdict::Whole(next);
        }
        each[..frame.len()].fill(next);
        FrameVerdict::Each(rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        // The start was moved past the header, unless the frame was too short for one or not for a
        // protocol.
        let mut header = [0u8; HEADER + 8];
        let before = match frame.stepped(i) {
            0 => frame.data(i).get(..HEADER).unwrap_or_default(),
            n => frame.before(i, n.clamp(HEADER, header.len())),
        };
        if let Some(header) = header.get_mut(..before.len()).filter(|h| h.len() >= HEADER) {
            header.copy_from_slice(before);
            let _ = thalweg_wire::fmt::ethernet(header, out, 0);
        }
    }
}
