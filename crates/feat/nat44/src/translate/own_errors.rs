//! ICMP errors of the router itself about translated packets: what they quote is restored.

use crate::kernel;
use crate::session;
use crate::worker::Nat;
use thalweg_feat_ip4::tables::Tables;
use thalweg_fib::TableId;
use thalweg_tables::flow::{Found, Millis};
use thalweg_wire::nat::packet::{self, Kind};
use thalweg_wire::nat::tuple::{MAX_TABLE, Tuple};

/// Tables that are searched for the session of a quoted packet, at most: more would take longer
/// than an error is worth.
const SEARCHED: usize = 256;

/// The tables between which a packet was translated.
#[derive(Clone, Copy)]
pub(crate) struct Way<'a> {
    /// The table of the interface that received it.
    pub(crate) from: TableId,
    /// The table of the interface by which it would have left, if one was chosen.
    pub(crate) to: Option<TableId>,
    /// All tables.
    pub(crate) tables: &'a Tables,
}

impl Way<'_> {
    /// Tables in which answers to the packet may be looked up, the likeliest first: without an
    /// interface, or if a route leads to that of another table, it may be any.
    fn ends(&self) -> impl Iterator<Item = TableId> {
        let likely = self.to.into_iter().chain([self.from]);
        likely.chain(self.tables.ids().take(SEARCHED)).filter(|table| table.get() <= MAX_TABLE)
    }
}

/// The result of restoring a quoted packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Restored {
    /// No session has translated it.
    Not,
    /// The packet is as it came.
    Whole,
    /// This worker knows only the second of its two translations. The tuple is the answer to it in
    /// its present form.
    Half(Tuple),
}

/// Restores the packet that an ICMP error of the router quotes, and sends the error to its sender.
/// `is_half`: one of two translations is undone.
pub(crate) fn restore(
    nat: &mut Nat,
    l3: &mut [u8],
    way: Way<'_>,
    is_half: bool,
    now: Millis,
) -> Restored {
    let Some(last) = undo(nat, l3, way, now) else { return Restored::Not };
    // Packets between inside hosts are translated as from inside, and then as from outside.
    let marks = session::marks(nat.table.rest(last.flow()));
    if is_half || last.by_second() || marks & session::HAIRPIN == 0 {
        return Restored::Whole;
    }
    match undo(nat, l3, way, now) {
        Some(_) => Restored::Whole,
        None => Restored::Half(Tuple::of(&packet::parse(l3, way.from.get()).key)),
    }
}

/// Undoes the last translation of a quoted packet. Answers to the translated packet are found by
/// one of the session's keys, in the table where the packet would have gone. The other key has the
/// table from which it came.
fn undo(nat: &mut Nat, l3: &mut [u8], way: Way<'_>, now: Millis) -> Option<Found> {
    let parsed = packet::parse(l3, 0);
    let Kind::Error(_) = parsed.kind else { return None };
    let answer = Tuple::of(&parsed.key);
    let found = way.ends().find_map(|table| {
        let found = nat.find(&Tuple { table: table.get(), ..answer }.key(), now)?;
        let (inside, outside) = nat.keys(found.flow());
        let sent = if found.by_second() { inside } else { outside };
        (Tuple::of(&sent).table == way.from.get()).then_some(found)
    })?;
    let change = kernel::change(nat, found);
    packet::rewrite_error(l3, &parsed, &change, false);
    Some(found)
}
