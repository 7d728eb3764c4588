//! `mpls-lookup`: looks the label up, and swaps or pops it (RFC 3031 section 3.9 to 3.13).
//!
//! Reads: rx interface. Writes: aux (the adjacency, or a table for `lookup-ip4-dst`). Next:
//! `mpls-output` for what is still labelled, the disposition nodes for IP packets,
//! `mpls-icmp-error` where the TTL ends (RFC 3032 section 2.3: it is never sent with 0).

use crate::disposition::{Homes, take_over};
use crate::label_table::{Action, Behind, Leaves, Popped, Tables, To};
use crate::punt::Reasons;
use std::fmt::Write;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{FRAME_SIZE, Frame, IcmpCause, LabelsChanged, PktMut, Rows};
use thalweg_device::SwIfIndex;
use thalweg_engine::punt::Punt;
use thalweg_fib::rib::Mode;
use thalweg_fib::{Counted, Dpo, DpoTable, Kind, MAX_REWRITE, ObjectCounters, Version};
use thalweg_graph::{Built, FrameVerdict, Node, NodeCx, NodeDecl, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::flow::five_tuple;
use thalweg_wire::mpls::{ENTRY_LEN, Entry, Label, Stack, label};

thalweg_graph::next_nodes! {
    OUTPUT => "mpls-output",
    INCOMPLETE => "mpls-adj-incomplete",
    IP4 => "ip4-mpls-label-disposition-pipe",
    IP4_UNIFORM => "ip4-mpls-label-disposition-uniform",
    IP4_TABLE => "lookup-ip4-dst",
    IP4_HERE => "lookup-ip4-dst-itf",
    ICMP_ERROR => "mpls-icmp-error",
    L2 => "interface-rx-dpo-l2",
    CONTROL_WORD => "pw-cw-pop",
    PUNT => "punt-dispatch",
    IP6 => "ip6-mpls-label-disposition-pipe",
    IP6_UNIFORM => "ip6-mpls-label-disposition-uniform",
    IP6_TABLE => "lookup-ip6-dst",
    IP6_HERE => "lookup-ip6-dst-itf",
    IP4_RECEIVED => "interface-rx-dpo-ip4",
    IP6_RECEIVED => "interface-rx-dpo-ip6",
}
thalweg_graph::errors! {
    SHORT: Error, MPLS_PARSING, "mpls packet shorter than a label";
    NO_LABEL: Error, NET_UNREACHABLE, "mpls label is not bound";
    NO_TABLE: Error, NET_UNREACHABLE, "no mpls table";
    TTL_EXPIRED: Error, TTL_EXCEEDED, "mpls ttl expired";
    DROPPED: Error, BLACKHOLE_ROUTE, "mpls label is bound to a drop";
    PUNTED: Error, BLACKHOLE_ROUTE, "mpls packet to the router itself";
    DOWN: Error, DEV_READY, "next-hop interface is down";
    UNRESOLVED: Error, HOST_UNREACHABLE, "next hop of the mpls label leads nowhere";
    DEPTH: Error, MPLS_PARSING, "too many mpls look-ups of one packet";
    NOT_IP: Error, IP_HEADER_CORRUPTED, "no ip packet after the last mpls label";
}

/// The declaration.
pub static NODE: NodeDecl = NodeDecl {
    name: "mpls-lookup",
    next: NEXT_NODES,
    errors: ERRORS,
    drop: "error-drop",
    build: |cx| {
        let (tables, dpos, counters) = (cx.shared(), cx.shared(), cx.shared());
        let (punt, reasons, homes) = (Punt::new(cx), cx.shared(), Homes::new(cx));
        Built::node(MplsLookup { tables, dpos, counters, main: None, punt, reasons, homes })
    },
    ..NodeDecl::DEFAULT
};

/// Maximum number of look-ups for one packet: labels that routers have stacked, and some.
const MAX_LOOKUPS: usize = 16;
/// Maximum number of labels read for a hash.
const MAX_HASHED: usize = 16;

struct MplsLookup {
    tables: Arc<Snapshot<Tables>>,
    dpos: Arc<DpoTable>,
    counters: Arc<ObjectCounters>,
    /// The table of the frame's packets.
    main: Option<Arc<Leaves>>,
    punt: Punt,
    reasons: Arc<Reasons>,
    homes: Homes,
}

/// Hash of a flow: of the labels and the IP packet behind them. An entropy label is made for this,
/// and used alone (RFC 6790 section 4.3). Reserved labels do not count.
pub(crate) fn hash(data: &[u8]) -> u32 {
    let mut stack = Stack::new(data);
    let (mut hash, mut entropy) = (0u32, false);
    for entry in stack.by_ref().take(MAX_HASHED) {
        let label = entry.label();
        if entropy {
            return label.get().wrapping_mul(0x9e37_79b1).rotate_left(15);
        }
        entropy = label == label::ENTROPY_INDICATOR;
        if label.get() >= 16 {
            hash = (hash ^ label.get()).wrapping_mul(0x85eb_ca6b).rotate_left(13);
        }
    }
    let ip = stack.reached_bottom().then(|| stack.payload());
    let is_ip = |ip: &&[u8]| ip.first().is_some_and(|b| matches!(b >> 4, 4 | 6));
    let inner = ip.filter(is_ip).and_then(five_tuple).map_or(0, |t| t.hash32());
    hash ^ inner
}

/// Gives the last label the class that the IP packet behind it has, which thus keeps it when it
/// takes over what the label has.
fn keep_class(p: &mut PktMut<'_>, entry: Entry) -> Entry {
    let class = match p.data().get(ENTRY_LEN..) {
        Some([first, tos, ..]) if first >> 4 == 4 => tos >> 5,
        Some([first, ..]) if first >> 4 == 6 => first << 4 >> 5,
        _ => return entry,
    };
    let entry = Entry::new(entry.label(), class, entry.is_bottom(), entry.ttl());
    if let Some(word) = p.data_mut().first_chunk_mut() {
        *word = entry.0.to_be_bytes();
    }
    entry
}

impl MplsLookup {
    /// Asks for a time exceeded before the packet is dropped, of which `popped` labels have been
    /// taken off. One that would have left without labels belongs to the table of that interface:
    /// it is treated as received there, as the router's own table does not know its sender.
    #[cold]
    fn expired(
        &self,
        cx: &NodeCx<'_>,
        p: &mut PktMut<'_>,
        (action, popped): (Action, u8),
    ) -> Verdict {
        let bare = match action {
            Action::Ip(how, To::Sent(dpo)) => Some((how.version, dpo)),
            Action::Member(version, group) => {
                let dpo = self.dpos.resolve(group, || hash(p.data()));
                let is_popped = self.member_label(dpo) == label::IMPLICIT_NULL;
                let is_last = Entry::parse(p.data()).is_ok_and(|(entry, _)| entry.is_bottom());
                (is_popped && is_last).then_some((version, dpo))
            }
            _ => None,
        };
        if let Some((version, dpo)) = bare {
            let state = self.dpos.get(self.dpos.resolve(dpo, || hash(p.data()))).state();
            self.homes.answer_at(cx, p, version, state.tx_if());
        }
        p.set_aux(cx.error_id(TTL_EXPIRED));
        let meta = p.meta_mut();
        meta.icmp = IcmpCause::TTL_EXCEEDED;
        meta.labels = LabelsChanged { popped, pushed: 0 };
        meta.path = 0;
        ICMP_ERROR
    }

    /// Passes a packet to the feature that takes such packets, with its labels, if one does.
    #[cold]
    fn punt(&self, cx: &NodeCx<'_>, p: &mut PktMut<'_>, entry: Entry) -> Verdict {
        let reason = match entry.label() {
            label::ROUTER_ALERT => self.reasons.router_alert,
            _ => self.reasons.local,
        };
        if !self.punt.is_taken(cx.guard(), reason) {
            return Verdict::drop(PUNTED);
        }
        reason.mark(p);
        PUNT
    }

    /// Pops an entropy label with its indicator, whose path ends here (RFC 6790 section 4.3). An IP
    /// packet behind it is looked up as one behind an explicit null, as nothing else says what it
    /// is; `None` if more labels follow.
    #[cold]
    fn pop_entropy(p: &mut PktMut<'_>) -> Option<Verdict> {
        p.pull(ENTRY_LEN);
        let Ok((entropy, _)) = Entry::parse(p.data()) else { return Some(Verdict::drop(SHORT)) };
        p.pull(ENTRY_LEN);
        entropy.is_bottom().then(|| match p.data().first().map(|b| b >> 4) {
            Some(4) => IP4_HERE,
            Some(6) => IP6_HERE,
            _ => Verdict::drop(NO_LABEL),
        })
    }

    /// Sends a labelled packet, of which `popped` labels have been taken off, to an adjacency, or a
    /// member of a group.
    #[inline]
    fn to(&self, p: &mut PktMut<'_>, dpo: Dpo, popped: u8) -> Verdict {
        let dpo = self.dpos.resolve(dpo, || hash(p.data()));
        p.set_aux(dpo.get());
        let state = self.dpos.get(dpo).state();
        if popped > 0 && p.total_len() > usize::from(state.mtu) {
            p.meta_mut().labels = LabelsChanged { popped, pushed: 0 };
        }
        match state.kind {
            kind if kind.is_complete() => OUTPUT,
            Kind::INCOMPLETE => INCOMPLETE,
            Kind::UNRESOLVED => Verdict::drop(UNRESOLVED),
            _ => Verdict::drop(DOWN),
        }
    }

    /// Returns the label that a member of a group swaps: it lies behind the header.
    fn member_label(&self, dpo: Dpo) -> Label {
        let entry = self.dpos.get(dpo);
        let len = usize::from(entry.state().len);
        let mut bytes = [0; MAX_REWRITE];
        let Some(all) = bytes.get_mut(..len + ENTRY_LEN) else { return label::IMPLICIT_NULL };
        self.dpos.copy_rewrite(entry, all);
        let word = all.last_chunk().map_or(0, |word| u32::from_be_bytes(*word));
        Label(word >> 12)
    }

    /// Swaps the label.
    #[inline]
    fn swap(
        &self,
        p: &mut PktMut<'_>,
        (entry, label): (Entry, Label),
        dpo: Dpo,
        popped: u8,
    ) -> Verdict {
        let new = entry.with_label(label).with_ttl(entry.ttl() - 1);
        if let Some(word) = p.data_mut().first_chunk_mut() {
            *word = new.0.to_be_bytes();
        }
        self.to(p, dpo, popped)
    }

    /// Pops the last label before an IP packet.
    #[inline]
    fn pop_last(&self, p: &mut PktMut<'_>, entry: Entry, how: Behind, to: To) -> Verdict {
        let [sent, uniform, table, here, received] = match how.version {
            Version::V4 => [IP4, IP4_UNIFORM, IP4_TABLE, IP4_HERE, IP4_RECEIVED],
            Version::V6 => [IP6, IP6_UNIFORM, IP6_TABLE, IP6_HERE, IP6_RECEIVED],
        };
        let entry = match how.mode {
            Mode::Ttl => keep_class(p, entry),
            _ => entry,
        };
        let uniform_here = how.mode != Mode::Pipe;
        if let (To::Sent(dpo), true) = (to, uniform_here) {
            // The node reads the label.
            p.set_aux(dpo.get());
            return uniform;
        }
        p.pull(ENTRY_LEN);
        if uniform_here {
            take_over(p.data_mut(), entry);
        }
        match to {
            To::Sent(dpo) => {
                p.set_aux(dpo.get());
                sent
            }
            To::LookedUp(id) => {
                p.set_aux(id.get());
                table
            }
            To::Here => here,
            To::Received(sw_if) => {
                p.set_rx_if(SwIfIndex(sw_if));
                received
            }
        }
    }

    /// Returns the adjacency that packets meet in the end, if that is known and complete.
    #[inline(always)]
    fn sent(&self, dpo: Dpo) -> Option<Dpo> {
        let state = self.dpos.get(dpo).state();
        match state.kind {
            Kind::REWRITE => Some(dpo),
            Kind::REDIRECT_COMPLETE => Some(Dpo(state.value)),
            _ => None,
        }
    }

    /// Pops the labels of all packets, if all have the same usual kind of pop; returns the node
    /// that takes them.
    #[inline(always)]
    fn pop_all(frame: &mut Frame, words: &[u64; FRAME_SIZE]) -> Option<Verdict> {
        let to = match Leaves::pop_of(words[0])? {
            Popped::Sent(_) => IP4,
            Popped::LookedUp(_) => IP4_TABLE,
        };
        // The upper half says where to; without a branch, so that many are compared at once.
        let differs = |all: u64, word: &u64| all | (word ^ words[0]);
        let all = words.get(..frame.len())?.iter().fold(0, differs);
        if all as u32 != 0 {
            return None;
        }
        let values = words.iter().map(|word| (word >> 32) as u32);
        frame.aux_mut().iter_mut().zip(values).for_each(|(aux, value)| *aux = value);
        frame.pull_all(ENTRY_LEN as u16, Rows::NONE);
        Some(to)
    }

    /// Pops the labels of packets left over by the swaps where IPv4 packets follow, and returns the
    /// verdict of the frame.
    #[inline(always)]
    fn pop(
        frame: &mut Frame,
        each: &mut [Verdict],
        (words, dpos): (&[u64; FRAME_SIZE], &mut [u32; FRAME_SIZE]),
        mut rest: Rows,
    ) -> FrameVerdict {
        let all = rest.len() == frame.len();
        let (mut popped, mut first, mut alike) = (Rows::NONE, None, true);
        each[..frame.len()].fill(OUTPUT);
        for i in rest.iter() {
            let at = usize::from(i);
            let (to, value) = match Leaves::pop_of(words[at]) {
                Some(Popped::Sent(dpo)) => (IP4, dpo.get()),
                Some(Popped::LookedUp(table)) => (IP4_TABLE, table.get()),
                None => continue,
            };
            (dpos[at], each[at]) = (value, to);
            alike &= *first.get_or_insert(to) == to;
            popped.insert(i);
        }
        frame.aux_mut().iter_mut().zip(*dpos).for_each(|(aux, dpo)| *aux = dpo);
        let n = popped.len();
        if let Some(to) = first
            && all
            && alike
            && n == frame.len()
        {
            frame.pull_all(ENTRY_LEN as u16, Rows::NONE);
            return FrameVerdict::Whole(to);
        }
        if n > 0 {
            let others = Rows::of((0..frame.len()).map(|i| !popped.contains(i as u8)));
            frame.pull_all(ENTRY_LEN as u16, others);
            popped.iter().for_each(|i| rest.remove(i));
        }
        FrameVerdict::Each(rest)
    }

    fn act(&self, cx: &NodeCx<'_>, p: &mut PktMut<'_>) -> Verdict {
        let tables = self.tables.load(cx.guard());
        let Some(mut leaves) = tables.main.as_ref() else { return Verdict::drop(NO_TABLE) };
        let mut popped = 0;
        for _ in 0..MAX_LOOKUPS {
            let Ok((entry, _)) = Entry::parse(p.data()) else { return Verdict::drop(SHORT) };
            if entry.ttl() == 0 {
                return Verdict::drop(TTL_EXPIRED);
            }
            let action = leaves.get(entry);
            if let Action::Swap(_, dpo)
            | Action::Member(_, dpo)
            | Action::Ip(_, To::Sent(dpo))
            | Action::Pop(dpo) = action
            {
                if self.counters.is_on() {
                    self.counters.count(cx.worker(), Counted::To, [(dpo, p.total_len())]);
                }
                if entry.ttl() == 1 {
                    return self.expired(cx, p, (action, popped));
                }
            }
            match action {
                Action::Swap(label, dpo) => return self.swap(p, (entry, label), dpo, popped),
                Action::Member(version, group) => {
                    let dpo = self.dpos.resolve(group, || hash(p.data()));
                    match self.dpos.get(dpo).state().kind {
                        kind if kind.is_sent() => {}
                        Kind::UNRESOLVED => return Verdict::drop(UNRESOLVED),
                        _ => return Verdict::drop(DOWN),
                    }
                    match self.member_label(dpo) {
                        label::IMPLICIT_NULL => {
                            p.pull(ENTRY_LEN);
                            if !entry.is_bottom() {
                                return self.to(p, dpo, popped + 1);
                            }
                            p.set_aux(dpo.get());
                            return if version == Version::V4 { IP4 } else { IP6 };
                        }
                        label => return self.swap(p, (entry, label), dpo, popped),
                    }
                }
                Action::Pop(dpo) => {
                    p.pull(ENTRY_LEN);
                    return self.to(p, dpo, popped + 1);
                }
                Action::Ip(how, to) => return self.pop_last(p, entry, how, to),
                Action::AnyIp(mode, table) => {
                    let version = match p.data().get(ENTRY_LEN).map(|b| b >> 4) {
                        Some(4) => Version::V4,
                        Some(6) => Version::V6,
                        _ => return Verdict::drop(NOT_IP),
                    };
                    return self.pop_last(p, entry, Behind { version, mode }, To::LookedUp(table));
                }
                Action::ReceiveL2(sw_if, control_word) => {
                    p.pull(ENTRY_LEN);
                    p.set_rx_if(SwIfIndex(sw_if));
                    return if control_word { CONTROL_WORD } else { L2 };
                }
                Action::LookUpMpls(table) => {
                    p.pull(ENTRY_LEN);
                    popped += 1;
                    match tables.get(table) {
                        Some(next) => leaves = next,
                        None => return Verdict::drop(NO_TABLE),
                    }
                }
                Action::LookUpMplsHere => {
                    p.pull(ENTRY_LEN);
                    popped += 1;
                }
                Action::Miss if entry.label() == label::ENTROPY_INDICATOR && !entry.is_bottom() => {
                    if let Some(verdict) = Self::pop_entropy(p) {
                        return verdict;
                    }
                    popped += 2;
                }
                Action::Miss => return Verdict::drop(NO_LABEL),
                Action::Drop => return Verdict::drop(DROPPED),
                Action::Punt => return self.punt(cx, p, entry),
            }
        }
        Verdict::drop(DEPTH)
    }
}

impl Node for MplsLookup {
    #[inline]
    fn begin(&mut self, cx: &mut NodeCx<'_>, _: &Frame) {
        let main = self.tables.load(cx.guard()).main.as_ref();
        let same = match (&self.main, main) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        if !same {
            let old = std::mem::replace(&mut self.main, main.cloned());
            // The last holder of a deleted table unmaps it, which workers must not do.
            if let Some(old) = old {
                cx.discard(Box::new(old));
            }
        }
    }

    #[inline]
    fn packet(&mut self, cx: &mut NodeCx<'_>, mut p: PktMut<'_>) -> Verdict {
        self.act(cx, &mut p)
    }

    /// Fast path for labels that are swapped, and for those above IPv4 packets that are popped.
    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        _: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let Some(leaves) = self.main.as_deref().filter(|_| !self.counters.is_on()) else {
            return FrameVerdict::PerPacket;
        };
        let mut dpos = [0; FRAME_SIZE];
        let mut rest = Rows::NONE;
        let Some(windows) = frame.long_windows_mut::<4>(0, u16::MAX) else {
            return FrameVerdict::PerPacket;
        };
        // All words are loaded before one of them is needed. A packet whose TTL would end has none.
        let mut words = [0; FRAME_SIZE];
        for (word, window) in words.iter_mut().zip(windows) {
            let entry = u32::from_be_bytes(*window);
            let found = leaves.word(Entry(entry));
            *word = if entry & 0xfe == 0 { Action::Miss.pack() } else { found };
        }
        if let Some(to) = Self::pop_all(frame, &words) {
            return FrameVerdict::Whole(to);
        }
        let Some(windows) = frame.long_windows_mut::<4>(0, u16::MAX) else {
            return FrameVerdict::PerPacket;
        };
        for (i, ((window, word), to)) in windows.zip(&words).zip(&mut dpos).enumerate() {
            let entry = u32::from_be_bytes(*window);
            match Leaves::swap_of(*word).and_then(|(label, dpo)| Some((label, self.sent(dpo)?))) {
                Some((label, dpo)) => {
                    *window = ((label << 12) | ((entry & 0xfff) - 1)).to_be_bytes();
                    *to = dpo.get();
                }
                None => rest.insert(i as u8),
            }
        }
        if rest.is_empty() {
            frame.aux_mut().iter_mut().zip(dpos).for_each(|(aux, dpo)| *aux = dpo);
            return FrameVerdict::Whole(OUTPUT);
        }
        Self::pop(frame, each, (&words, &mut dpos), rest)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let (aux, data) = (frame.aux()[usize::from(i)], frame.data(i));
        let _ = writeln!(out, "MPLS: lookup fib index 0, dpo-idx {aux}");
        let version = data.first().map_or(0, |b| b >> 4);
        let _ = match (frame.stepped(i) > 0, version) {
            (true, 4) => thalweg_wire::fmt::ip4(data, out, 0),
            (true, 6) => thalweg_wire::fmt::ip6(data, out, 0),
            _ => thalweg_wire::fmt::mpls(data, out, 0),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::hash;
    use thalweg_wire::build::Packet;

    fn packet(labels: &[u32], port: u16) -> Vec<u8> {
        let stack = labels.iter().fold(Packet::new(), |p, label| p.mpls(*label));
        stack.ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into()).udp(port, 53).build()
    }

    #[test]
    fn flows_differ_by_labels_and_ports() {
        assert_ne!(hash(&packet(&[16], 1)), hash(&packet(&[16], 2)));
        assert_ne!(hash(&packet(&[16, 17], 1)), hash(&packet(&[16, 18], 1)));
        assert_eq!(hash(&packet(&[16], 1)), hash(&packet(&[16], 1)));
    }

    #[test]
    fn an_entropy_label_decides_alone() {
        assert_eq!(hash(&packet(&[16, 7, 99], 1)), hash(&packet(&[18, 7, 99], 2)));
        assert_ne!(hash(&packet(&[16, 7, 99], 1)), hash(&packet(&[16, 7, 98], 1)));
    }
}
