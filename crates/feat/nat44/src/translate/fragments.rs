//! Later fragments, which wait for the first one of their datagram.

use super::Translator;
use crate::direction::Direction;
use crate::worker::{Fate, Nat};
use thalweg_buffer::{Search, SwIfIndex};
use thalweg_fib::Parked;
use thalweg_graph::{NodeCx, Verdict};
use thalweg_wire::nat::tuple::Key;

impl Translator {
    /// Returns whether a fragment that came by an interface may wait; drops the one that gives way
    /// for it.
    #[cold]
    pub(super) fn has_room(
        &self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        datagram: &Key,
        of: SwIfIndex,
    ) -> bool {
        match nat.fragments.make_room(datagram, of.get()) {
            Ok(Some((_, packet))) => cx.send(packet, Verdict::drop(self.outcomes.fragment)),
            Ok(None) => {}
            Err(_) => return false,
        }
        true
    }

    /// Releases fragments that arrived before their first one.
    #[cold]
    pub(super) fn release(&mut self, cx: &mut NodeCx<'_>, nat: &mut Nat, datagram: &Key) {
        let Some(fate) = nat.fragments.find(datagram, self.now) else { return };
        let here = self.direction as u8;
        while let Some((_, mut packet)) = nat.fragments.next_of(datagram, |w| w.0 == here) {
            let verdict = self.follow(fate, packet.data_mut());
            if let Some(table) = fate.across() {
                packet.set_aux(table.get());
            }
            if matches!(fate, Fate::Worker(_)) {
                packet.meta_mut().search = Search::Done;
            } else if self.direction == Direction::Output {
                packet.set_aux(self.dpos.unpark(Parked(packet.aux())).get());
            }
            cx.send(packet, verdict);
        }
    }

    /// Records the fate of a datagram's first fragment.
    pub(super) fn remember(&mut self, nat: &mut Nat, of: SwIfIndex, datagram: Key, fate: Fate) {
        nat.fragments.note(datagram, of.get(), fate, self.now);
        if nat.fragments.any_waits() {
            self.datagram = Some((datagram, true));
        }
    }
}
