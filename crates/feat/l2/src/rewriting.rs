//! Changing the VLAN tags of a frame in place.

use crate::L2Table;
use crate::table::Rewriting;
use crate::trace::addresses;
use std::fmt::Write;
use std::marker::PhantomData;
use std::sync::Arc;
use thalweg_buffer::simd::Lanes;
use thalweg_buffer::{Flags, Frame, Iface, PktMut, Rows};
use thalweg_device::interface::MAX_REWRITTEN;
use thalweg_device::{SwIfIndex, TagEdit};
use thalweg_graph::trace::interface_token;
use thalweg_graph::{FrameVerdict, Node, NodeCx, NodeId, Verdict};
use thalweg_tables::snapshot::Snapshot;
use thalweg_wire::vlan::{self, TAG_LEN};

/// Bytes of both MAC addresses, behind which the tags are.
const ADDRESSES: usize = 12;

/// Puts tags, each with its TPID, in place of the first `pop` ones of a frame, which has these.
/// Returns false, and does nothing, if it ends before the type behind them, or has no room.
#[inline]
pub fn replace_tags(p: &mut PktMut<'_>, pop: usize, push: &[[u8; TAG_LEN]]) -> bool {
    let (old, new) = (pop * TAG_LEN, push.len() * TAG_LEN);
    let data = p.data();
    let Some(&addresses) = data.first_chunk::<ADDRESSES>() else { return false };
    if data.len() < ADDRESSES + old + 2 {
        return false;
    }
    if old > new {
        p.pull(old - new);
    } else if new > old && p.push(new - old).is_none() {
        return false;
    }
    let header = p.data_mut();
    if let Some(to) = header.first_chunk_mut() {
        *to = addresses;
    }
    for (at, tag) in (ADDRESSES..).step_by(TAG_LEN).zip(push) {
        if let Some(to) = header.get_mut(at..at + TAG_LEN) {
            to.copy_from_slice(tag);
        }
    }
    true
}

/// Changes the tags of a frame; returns false, and does nothing, if it has too few.
///
/// New tags have the priority and drop eligibility of the outermost tag that is removed; else of
/// the one that another rewrite has removed before, or of the outermost tag that stays.
#[inline]
pub fn edit_tags(edit: &TagEdit, p: &mut PktMut<'_>) -> bool {
    let data = p.data();
    let word = |at: usize| data.get(at..)?.first_chunk().copied().map(u16::from_be_bytes);
    let is_tag = |n: usize| word(ADDRESSES + n * TAG_LEN).is_some_and(vlan::is_tag);
    let (pop, push) = (edit.pop(), edit.push());
    if !(0..pop).all(is_tag) {
        return false;
    }
    let outer = if is_tag(0) { word(ADDRESSES + 2) } else { None };
    let outer = outer.map_or(0, |tci| Flags::of_priority(tci).priority());
    let removed = p.flags().priority();
    let priority = if pop == 0 && removed != 0 { removed } else { outer };
    let mut tags = [[0; TAG_LEN]; MAX_REWRITTEN];
    for (to, tag) in tags.iter_mut().zip(push) {
        *to = *tag;
        to[2] |= (priority >> 8) as u8;
    }
    if !replace_tags(p, pop, tags.get(..push.len()).unwrap_or_default()) {
        return false;
    }
    if push.is_empty() && priority != removed {
        p.unmark(Flags::PRIORITY);
        p.mark(Flags::of_priority(priority));
    }
    p.note_retagging();
    true
}

/// Bytes of headroom, and of a packet, that the kernel may touch: two tags more, or two less with
/// the type behind them.
const BEFORE: usize = 2 * TAG_LEN;
const WINDOW: usize = BEFORE + 24;

/// Does the work of [`edit_tags`] for all packets of a frame that neither have a priority nor get
/// one; returns the others unchanged. `None`, with nothing done at all, if some packet is too short
/// or has no headroom.
#[inline(always)]
pub(crate) fn apply_all(edit: &TagEdit, frame: &mut Frame) -> Option<Rows> {
    if frame.flags().intersects(Flags::PRIORITY) {
        return None;
    }
    let [one, two] = [0, 1].map(|i| edit.push().get(i).copied().unwrap_or_default());
    let tags = [one, two].as_flattened().try_into().unwrap_or([0; BEFORE]);
    match (edit.pop(), edit.push().len()) {
        (1, 0) => all::<1, 0>(tags, frame),
        (2, 0) => all::<2, 0>(tags, frame),
        (0, 1) => all::<0, 1>(tags, frame),
        (0, 2) => all::<0, 2>(tags, frame),
        (1, 1) => all::<1, 1>(tags, frame),
        (1, 2) => all::<1, 2>(tags, frame),
        (2, 1) => all::<2, 1>(tags, frame),
        (2, 2) => all::<2, 2>(tags, frame),
        _ => None,
    }
}

#[inline(always)]
fn all<const POP: usize, const PUSH: usize>(tags: [u8; BEFORE], frame: &mut Frame) -> Option<Rows> {
    let mut rest = Rows::NONE;
    let longest = u16::MAX - BEFORE as u16;
    for (i, window) in frame.long_windows_mut::<WINDOW>(BEFORE, longest)?.enumerate() {
        if !change::<POP, PUSH>(tags, window) {
            rest.insert(i as u8);
        }
    }
    if POP > PUSH {
        frame.pull_all(((POP - PUSH) * TAG_LEN) as u16, rest);
    } else if PUSH > POP {
        frame.push_all(((PUSH - POP) * TAG_LEN) as u16, rest);
    }
    frame.note_retagging();
    Some(rest)
}

/// Changes the tags of a packet, whose first byte is at `BEFORE`; returns false, with nothing done,
/// if it has too few, or one with a priority.
#[inline(always)]
fn change<const POP: usize, const PUSH: usize>(
    tags: [u8; BEFORE],
    window: &mut [u8; WINDOW],
) -> bool {
    const TAGS: usize = BEFORE + ADDRESSES;
    // Avoid closures, which frame kernels do not inline.
    let kinds = [
        u16::from_be_bytes([window[TAGS], window[TAGS + 1]]),
        u16::from_be_bytes([window[TAGS + TAG_LEN], window[TAGS + TAG_LEN + 1]]),
    ];
    let mut suits = vlan::is_tag(kinds[0]) == (POP > 0);
    if POP > 0 {
        suits &= window[TAGS + 2] & 0xf0 == 0;
    }
    if POP == 2 {
        suits &= vlan::is_tag(kinds[1]);
    }
    if !suits {
        return false;
    }
    let at = BEFORE + POP * TAG_LEN - PUSH * TAG_LEN;
    let mut addresses = [0; ADDRESSES];
    addresses.copy_from_slice(&window[BEFORE..BEFORE + ADDRESSES]);
    window[at..at + ADDRESSES].copy_from_slice(&addresses);
    let new = PUSH * TAG_LEN;
    window[at + ADDRESSES..at + ADDRESSES + new].copy_from_slice(&tags[..new]);
    true
}

/// A side of a port, on which it changes tags.
pub(crate) trait Side: Send + 'static {
    /// Name of the node.
    const NAME: &'static str;
    /// Verdict about frames with too few tags.
    const FEW_TAGS: Verdict;
    /// Verdict about frames without the tags that the port's own frames have.
    const OTHER_TAGS: Verdict = Self::GONE;
    /// Verdict about frames of a port that changes nothing any more.
    const GONE: Verdict;
    /// Returns the ports of a frame.
    fn ports(frame: &Frame) -> Iface;
    /// Returns the port of a packet.
    fn port(frame: &Frame, i: u8) -> SwIfIndex;
    /// Returns the same, of a packet by itself.
    fn packet(p: &PktMut<'_>) -> SwIfIndex;
    /// Returns the change, and the node that comes after it.
    fn change(rewriting: &Rewriting) -> (&TagEdit, Option<NodeId>);
    /// Returns the tags that a frame must have, if the port checks that.
    #[inline]
    fn checked(_rewriting: &Rewriting) -> Option<&[[u8; TAG_LEN]]> {
        None
    }
}

/// Returns whether a frame begins with these tags, whatever their priorities.
fn begins_with(frame: &[u8], tags: &[[u8; TAG_LEN]]) -> bool {
    let found = frame.get(ADDRESSES..).unwrap_or_default().as_chunks::<TAG_LEN>().0;
    let same = |(found, tag): (&[u8; TAG_LEN], &[u8; TAG_LEN])| {
        let word = |tag: &[u8; TAG_LEN]| u32::from_be_bytes(*tag) & 0xffff_0fff;
        word(found) == word(tag)
    };
    found.len() >= tags.len() && found.iter().zip(tags).all(same)
}

/// The node that changes tags on a side.
pub(crate) struct Retag<S> {
    table: Arc<Snapshot<L2Table>>,
    side: PhantomData<S>,
}

impl<S: Side> Retag<S> {
    pub(crate) fn new(table: Arc<Snapshot<L2Table>>) -> Retag<S> {
        Retag { table, side: PhantomData }
    }

    #[inline]
    fn one(rewriting: Option<&Rewriting>, mut p: PktMut<'_>) -> Verdict {
        // The rewrite and the destination may have gone since the packet came.
        if let Some(tags) = rewriting.and_then(S::checked)
            && !begins_with(p.data(), tags)
        {
            return S::OTHER_TAGS;
        }
        match rewriting.map(S::change) {
            Some((edit, Some(next))) if edit_tags(edit, &mut p) => Verdict::node(next),
            Some((_, Some(_))) => S::FEW_TAGS,
            _ => S::GONE,
        }
    }
}

impl<S: Side> Node for Retag<S> {
    fn packet(&mut self, cx: &mut NodeCx<'_>, p: PktMut<'_>) -> Verdict {
        Self::one(self.table.load(cx.guard()).rewriting(S::packet(&p)), p)
    }

    #[inline(always)]
    fn frame<V: Lanes>(
        &mut self,
        cx: &mut NodeCx<'_>,
        frame: &mut Frame,
        each: &mut [Verdict],
    ) -> FrameVerdict {
        let table = self.table.load(cx.guard());
        if let Iface::Uniform(port) = S::ports(frame)
            && let Some(rewriting) = table.rewriting(port)
            && S::checked(rewriting).is_none()
            && let (edit, Some(next)) = S::change(rewriting)
            && let Some(rest) = apply_all(edit, frame)
        {
            if rest.is_empty() {
                return FrameVerdict::Whole(Verdict::node(next));
            }
            each[..frame.len()].fill(Verdict::node(next));
            return FrameVerdict::Each(rest);
        }
        let mut last: Option<(SwIfIndex, Option<&Rewriting>)> = None;
        let n = frame.len();
        for (i, verdict) in each[..n].iter_mut().enumerate() {
            let port = S::port(frame, i as u8);
            let rewriting = match last {
                Some((of, rewriting)) if of == port => rewriting,
                _ => table.rewriting(port),
            };
            last = Some((port, rewriting));
            *verdict = Self::one(rewriting, frame.pkt(i as u8));
        }
        FrameVerdict::Each(Rows::NONE)
    }

    fn trace(&self, _cx: &NodeCx<'_>, frame: &Frame, i: u8, out: &mut dyn Write) {
        let port = interface_token(S::port(frame, i));
        let _ = writeln!(out, "{}: {port} {}", S::NAME, addresses(frame, i));
    }
}
