//! Packets are translated once, whatever the roles of the interfaces by which they come and leave,
//! and those that are forwarded as they are, not at all.

use super::Translator;
use crate::config::INSIDE;
use crate::direction::Direction;
use crate::worker::{Fate, Nat};
use thalweg_buffer::{PktMut, SwIfIndex};
use thalweg_graph::{NodeCx, Verdict};
use thalweg_tables::flow::Found;
use thalweg_wire::nat::packet::{Kind, Parsed};
use thalweg_wire::nat::tuple::{Key, Tuple};

impl Translator {
    /// The session with a key of a packet that is translated here.
    pub(super) fn find(&self, nat: &mut Nat, key: &Key) -> Option<Found> {
        let second = self.direction.takes_second();
        nat.find(key, self.now).filter(|found| second || !found.by_second())
    }

    /// The direction of a packet without a session: of an interface that is both inside and
    /// outside, it is from outside if it is for an external address.
    pub(super) fn side(&self, cx: &NodeCx<'_>, parsed: &Parsed) -> Direction {
        if self.direction != Direction::Both {
            return self.direction;
        }
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let dst = t.dst.to_bits();
        let mapped = || config.mappings.by_external(dst, t.dport, t.protocol);
        // A packet for a host that is not translated may be from either side.
        let outside =
            config.addresses.contains(&dst) || mapped().is_some_and(|m| m.external != m.local);
        if outside { Direction::Out2In } else { Direction::In2Out }
    }

    /// Returns whether a packet has been translated already: a session yields just such packets.
    /// One such packet leaves and was translated when it came; another is between inside hosts, and
    /// comes here once more after the second of its two translations.
    pub(super) fn is_done(
        &self,
        cx: &NodeCx<'_>,
        nat: &mut Nat,
        p: &PktMut<'_>,
        parsed: &Parsed,
    ) -> bool {
        let config = self.config.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let table = match self.direction {
            Direction::Out2In | Direction::Hairpin => return false,
            Direction::In2Out | Direction::Both if config.addresses.contains(&t.src.to_bits()) => {
                t.table
            }
            Direction::In2Out | Direction::Both => return false,
            Direction::Output if config.role(p.rx_if()) == 0 => return false,
            // Its answer is looked up in the table of the interface by which it leaves.
            Direction::Output => self.tables.load(cx.guard()).fib_id(p.tx_if()).get(),
        };
        self.find(nat, &parsed.key).is_none()
            && nat.find(&Tuple { table, ..t.reversed() }.key(), self.now).is_some()
    }

    /// The verdict for a packet that is not translated though it has a session or goes outside.
    pub(super) fn passes(&mut self, nat: &mut Nat, of: SwIfIndex, parsed: &Parsed) -> Verdict {
        if let Some(datagram) = parsed.datagram {
            self.remember(nat, of, datagram, Fate::Passed);
        }
        Verdict::CONTINUE
    }

    /// Forwards a packet from outside as it is, to an inside host whose answers would be translated
    /// if no session said otherwise.
    pub(super) fn straight(
        &mut self,
        cx: &mut NodeCx<'_>,
        nat: &mut Nat,
        p: &mut PktMut<'_>,
        parsed: &Parsed,
    ) -> Verdict {
        let config = self.config.load(cx.guard());
        let tables = self.tables.load(cx.guard());
        let t = Tuple::of(&parsed.key);
        let to = tables.resolve(&self.dpos, p.rx_if(), t.dst.to_bits());
        let meets_us = config.role(to.tx_if()) & INSIDE != 0 || config.any_output;
        let is_error = matches!(parsed.kind, Kind::Error(_));
        // Packets that leave by an interface with translation on output are translated there.
        if is_error || !to.kind.is_sent() || !meets_us || config.is_output(to.tx_if()) {
            return Verdict::CONTINUE;
        }
        let inside = Tuple { table: tables.fib_id(to.tx_if()).get(), ..t.reversed() };
        match nat.open_direct(config, &inside, &t, self.now) {
            Ok(flow) => self.opened(cx, nat, p, parsed, flow),
            // The packet passes nevertheless; its answers are treated as any packet from inside.
            Err(_) => Verdict::CONTINUE,
        }
    }
}
