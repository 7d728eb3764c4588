//! The directions of translation, and the nodes that each has.

/// Hand-off queues and the nodes they lead to, by [`Direction`]; the last one is [`ERRORS`].
pub(crate) const QUEUES: [(&str, &str); 6] = [
    ("nat44-ed-in2out-handoff", "nat44-ed-in2out"),
    ("nat44-ed-out2in-handoff", "nat44-ed-out2in"),
    ("nat44-ed-output-handoff", "nat44-ed-in2out-output"),
    ("nat44-ed-hairpin-handoff", "nat44-ed-hairpin"),
    ("nat44-ed-classify-handoff", "nat44-ed-classify"),
    (ERRORS, "nat44-ed-icmp-error"),
];

/// The queue of the router's own ICMP errors.
pub(crate) const ERRORS: &str = "nat44-ed-icmp-error-handoff";

/// Direction of the packets of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    /// Packets from inside.
    In2Out,
    /// Packets from outside.
    Out2In,
    /// Packets from inside, on output: routed already.
    Output,
    /// Packets from inside, if those to the outside are translated on output: only packets between
    /// inside hosts by external address.
    Hairpin,
    /// Packets from either side: of an interface that is both inside and outside.
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

    /// Returns whether packets found by the second key of a session, which are expected from the
    /// outside, are translated here: not those that leave for it.
    #[inline(always)]
    pub(crate) fn takes_second(self) -> bool {
        self != Direction::Output
    }
}
