//! The directions of translation, and the nodes that each has.

use crate::session::{FAST_IN, FAST_OUT};

/// Hand-off queues and the nodes they lead to, by [`Direction`].
pub(crate) const QUEUES: [(&str, &str); 5] = [
    ("nat44-ed-in2out-handoff", "nat44-ed-in2out"),
    ("nat44-ed-out2in-handoff", "nat44-ed-out2in"),
    ("nat44-ed-output-handoff", "nat44-ed-in2out-output"),
    ("nat44-ed-hairpin-handoff", "nat44-ed-hairpin"),
    ("nat44-ed-classify-handoff", "nat44-ed-classify"),
];

/// Direction of the packets of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// From inside.
    In2Out,
    /// From outside.
    Out2In,
    /// From inside, on output: routed already.
    Output,
    /// From inside, where packets to the outside are translated on output: only packets between
    /// inside hosts by external address.
    Hairpin,
    /// From either side: of an interface that is both inside and outside.
    Both,
}

impl Direction {
    /// The direction with a number.
    pub(crate) const fn of(number: u8) -> Direction {
        match number {
            0 => Direction::In2Out,
            1 => Direction::Out2In,
            2 => Direction::Output,
            3 => Direction::Hairpin,
            _ => Direction::Both,
        }
    }

    /// Returns whether packets may come from inside, before they are routed.
    #[inline(always)]
    pub(crate) fn may_be_from_inside(self) -> bool {
        matches!(self, Direction::In2Out | Direction::Both)
    }

    /// Fast path flags of the directions that are translated here. A packet that leaves goes to the
    /// outside: it is none of those that a session expects from there.
    #[inline(always)]
    pub(crate) fn may(self) -> u64 {
        if self == Direction::Output { FAST_IN } else { FAST_IN | FAST_OUT }
    }
}
