//! TCP: one state per side, and the sequence numbers that each side may use next.
//!
//! A firewall sees both directions and is neither side, so it keeps for each what the other side's
//! window allows. The states and rules are those of OpenBSD's pf, which Open vSwitch has as well.
//!
//! [`Pair::update`] is a pure function of the two sides and a segment: a translator may use it for
//! connections of its own.

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN, URG};

use crate::timeout::Timeout;

/// How far acknowledgements may be off: the largest window without scaling, and a segment.
pub const MAX_ACK_OFF: u32 = 65535 + 1500;

/// A side's state, in order of age.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
#[expect(missing_docs, reason = "the names of RFC 9293")]
pub enum TcpState {
    #[default]
    Closed,
    Listen,
    SynSent,
    SynReceived,
    Established,
    CloseWait,
    FinWait1,
    Closing,
    LastAck,
    FinWait2,
    TimeWait,
}

impl TcpState {
    const ALL: [TcpState; 11] = [
        TcpState::Closed,
        TcpState::Listen,
        TcpState::SynSent,
        TcpState::SynReceived,
        TcpState::Established,
        TcpState::CloseWait,
        TcpState::FinWait1,
        TcpState::Closing,
        TcpState::LastAck,
        TcpState::FinWait2,
        TcpState::TimeWait,
    ];

    #[inline]
    pub(crate) const fn from_number(number: u32) -> TcpState {
        if number < TcpState::ALL.len() as u32 {
            TcpState::ALL[number as usize]
        } else {
            TcpState::Closed
        }
    }

    /// What a side's state becomes as the other one acknowledges what it has sent.
    #[inline]
    pub(crate) const fn acknowledged(self) -> TcpState {
        match self {
            TcpState::SynSent => TcpState::Established,
            TcpState::Closing => TcpState::FinWait2,
            state => state,
        }
    }

    /// Its name in lists of connections.
    pub const fn name(self) -> &'static str {
        match self {
            TcpState::Closed => "CLOSED",
            TcpState::Listen => "LISTEN",
            TcpState::SynSent => "SYN_SENT",
            TcpState::SynReceived => "SYN_RECV",
            TcpState::Established => "ESTABLISHED",
            TcpState::CloseWait => "CLOSE_WAIT",
            TcpState::FinWait1 => "FIN_WAIT_1",
            TcpState::Closing => "CLOSING",
            TcpState::LastAck => "LAST_ACK",
            TcpState::FinWait2 => "FIN_WAIT_2",
            TcpState::TimeWait => "TIME_WAIT",
        }
    }
}

/// How a side's windows are scaled (RFC 7323): a shift in the low four bits, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scale(u8);

impl Scale {
    const SHIFT: u8 = 0x0f;
    /// The side has offered it.
    const OFFERED: u8 = 0x80;
    /// The handshake was not seen.
    const UNKNOWN: u8 = 0x40;

    /// Windows are not scaled.
    pub const NONE: Scale = Scale(0);
    /// The handshake was not seen: the largest shift there is.
    pub const GUESSED: Scale = Scale(Scale::UNKNOWN | 14);

    /// What a SYN offers; shifts above 14 count as 14.
    #[inline]
    pub fn offered(shift: u8) -> Scale {
        Scale(Scale::OFFERED | shift.min(14))
    }

    #[inline]
    pub(crate) fn from_bits(bits: u8) -> Scale {
        Scale(bits)
    }
    #[inline]
    pub(crate) fn bits(self) -> u8 {
        self.0
    }

    /// Whether the side has offered it.
    #[inline]
    pub fn is_offered(self) -> bool {
        self.0 & Scale::OFFERED != 0
    }

    /// The shift.
    #[inline]
    pub fn shift(self) -> u32 {
        u32::from(self.0 & Scale::SHIFT)
    }

    /// Whether two sides scale, which they do only if both offer it, or both are unknown to have.
    #[inline]
    pub(crate) fn is_with(self, other: Scale) -> bool {
        self.0 & other.0 & !Scale::SHIFT != 0
    }

    /// Shifts of two sides, which scale only if both do.
    #[inline]
    fn of_both(self, other: Scale) -> (u32, u32) {
        if self.is_with(other) { (self.shift(), other.shift()) } else { (0, 0) }
    }
}

/// What is known of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Side {
    /// Behind the last number that it has sent.
    pub sent: u32,
    /// Behind the last number that the other side accepts.
    pub limit: u32,
    /// Its largest window, before scaling.
    pub window: u16,
    /// How its windows are scaled. Once both sides have been heard, both have a shift that holds, or none has.
    pub scale: Scale,
    /// Its state.
    pub state: TcpState,
}

/// A segment, as far as it matters. Its fields lie as they do in a header whose bytes are turned round, so that few
/// stores write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Number of the next byte expected.
    pub ack: u32,
    /// Number of the first byte.
    pub seq: u32,
    /// Bytes of data.
    pub payload: u32,
    /// The window, before scaling.
    pub window: u16,
    /// Flags (see [`thalweg_wire::tcp::flag`]).
    pub flags: u8,
    /// What a SYN offers.
    pub scale: Scale,
}

impl Segment {
    #[inline]
    fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Behind its last number: SYN and FIN have one each.
    #[inline]
    fn end(&self) -> u32 {
        let flags = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.seq.wrapping_add(self.payload).wrapping_add(flags)
    }

    /// Whether its flags make sense together.
    #[inline]
    pub fn flags_are_valid(&self) -> bool {
        if self.has(SYN) {
            !self.has(RST | FIN)
        } else if self.has(ACK) {
            true
        } else {
            self.has(RST) && !self.has(FIN | PSH | URG)
        }
    }

    /// Whether a connection may begin with it, or be picked up: not with an answer.
    #[inline]
    pub fn may_open(&self) -> bool {
        self.flags_are_valid() && self.flags & (SYN | ACK) != SYN | ACK
    }

    /// Whether it asks for a connection.
    #[inline]
    pub fn is_bare_syn(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// The window, as the larger ones that follow are understood: that of a SYN is not scaled.
    #[inline]
    fn unscaled_window(&self) -> u16 {
        match self.has(SYN) && self.scale.is_offered() {
            true => u32::from(self.window).div_ceil(1 << self.scale.shift()) as u16,
            false => self.window,
        }
    }
}

/// What a segment means for its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It belongs here.
    Valid,
    /// It belongs here, but need not keep the connection: the timer goes on.
    Stray,
    /// It is valid only because sequence numbers are not checked.
    Unchecked,
    /// It repeats the request for the connection.
    Repeated,
    /// It asks for a new connection in place of this one, which is over.
    Reopens,
    /// Its flags make no sense together.
    BadFlags,
    /// It is out of the window.
    OutOfWindow,
}

/// Both sides of a connection: the one that opened it first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pair {
    /// By direction.
    pub sides: [Side; 2],
}

#[inline]
fn at_least(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

impl Pair {
    /// A connection that begins with this segment. Without SYN it has begun before.
    pub fn open(segment: &Segment) -> Pair {
        let syn = segment.has(SYN);
        let scale = if syn { segment.scale } else { Scale::GUESSED };
        let end = segment.end();
        let opener = Side {
            sent: segment.seq,
            limit: end,
            window: segment.unscaled_window().max(1),
            scale,
            state: TcpState::SynSent,
        };
        let other = Side {
            sent: 0,
            limit: 1,
            window: 1,
            scale: if syn { Scale::NONE } else { scale },
            state: TcpState::Closed,
        };
        Pair { sides: [opener, other] }
    }

    /// Moves the connection on by a segment of the opener, or of the other side for a `reply`. With
    /// `check` off, all is within the window.
    // A side in memory is written in parts and read as a whole, which has to wait: it is to be in registers.
    #[inline(always)]
    pub fn update(&mut self, reply: bool, segment: &Segment, check: bool) -> Outcome {
        if !segment.flags_are_valid() {
            return Outcome::BadFlags;
        }
        let [opener, other] = self.sides;
        let (mut src, mut dst) = if reply { (other, opener) } else { (opener, other) };
        if segment.is_bare_syn() {
            if src.state >= TcpState::FinWait2 && dst.state >= TcpState::FinWait2 {
                return Outcome::Reopens;
            }
            if src.state <= TcpState::SynSent {
                src.state = TcpState::SynSent;
                self.put(reply, src, dst);
                return Outcome::Repeated;
            }
        }
        let outcome = step(&mut src, &mut dst, segment, check);
        if outcome != Outcome::OutOfWindow {
            self.put(reply, src, dst);
        }
        outcome
    }

    #[inline(always)]
    fn put(&mut self, reply: bool, src: Side, dst: Side) {
        self.sides = if reply { [dst, src] } else { [src, dst] };
    }

    /// What its end depends on.
    #[inline]
    pub fn timeout(&self) -> Timeout {
        let [a, b] = &self.sides;
        timeout(a.state, b.state)
    }

    /// The state that stands for both: that of the older one.
    pub fn shown(&self) -> TcpState {
        let [a, b] = self.sides.map(|side| side.state);
        match a.max(b) {
            TcpState::FinWait2 => TcpState::TimeWait,
            TcpState::SynReceived => TcpState::Established,
            state => state,
        }
    }

    /// Whether both sides have been acknowledged.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.sides.iter().all(|side| side.state >= TcpState::Established)
    }
}

/// What the end of a connection depends on whose sides are in these states.
pub(crate) const fn timeout(a: TcpState, b: TcpState) -> Timeout {
    let (a, b) = (a as u8, b as u8);
    let (young, old) = if a < b { (a, b) } else { (b, a) };
    if young >= TcpState::FinWait2 as u8 {
        Timeout::TcpClose
    } else if young >= TcpState::Closing as u8 {
        Timeout::TcpTimeWait
    } else if young < TcpState::Established as u8 {
        Timeout::TcpSynRecv
    } else if old >= TcpState::Closing as u8 {
        Timeout::TcpFinWait
    } else {
        Timeout::TcpEstablished
    }
}

/// The first segment of a side: takes over its numbers, and settles scaling. Returns shifts.
#[inline(always)]
fn first_of_side(src: &mut Side, dst: &mut Side, segment: &Segment, end: u32) -> (u32, u32, u16) {
    let (mut shifts, mut window) = src.scale.of_both(dst.scale);
    let mut seen = segment.window;
    if segment.has(SYN) {
        (shifts, window) = (0, 0);
        if dst.scale.is_offered() {
            if segment.scale.is_offered() {
                src.scale = segment.scale;
                (shifts, window) = (src.scale.shift(), dst.scale.shift());
                seen = segment.unscaled_window();
            } else {
                // It does not scale, so neither side does: the opener's window is as it was sent.
                let scaled = u32::from(dst.window) << dst.scale.shift();
                dst.window = scaled.min(u32::from(u16::MAX)) as u16;
                dst.scale = Scale::NONE;
            }
        }
    }
    if !src.scale.is_with(dst.scale) {
        (src.scale, dst.scale) = (Scale::NONE, Scale::NONE);
    }
    src.sent = segment.seq;
    src.state = TcpState::SynSent;
    let limit = end.wrapping_add((u32::from(dst.window) << window).max(1));
    if src.limit == 1 || at_least(limit, src.limit) {
        src.limit = limit;
    }
    src.window = src.window.max(seen);
    (shifts, window, seen)
}

#[inline(always)]
fn step(src: &mut Side, dst: &mut Side, segment: &Segment, check: bool) -> Outcome {
    let mut end = segment.end();
    let (src_shift, dst_shift, window) = if src.state < TcpState::SynSent {
        first_of_side(src, dst, segment, end)
    } else if segment.has(SYN) {
        (0, 0, segment.window)
    } else {
        let (a, b) = src.scale.of_both(dst.scale);
        (a, b, segment.window)
    };
    // Without ACK, or with the zero that some stacks put into resets, there is nothing to compare.
    let no_ack = !segment.has(ACK) || (segment.ack == 0 && segment.has(RST));
    let ack = if no_ack { dst.sent } else { segment.ack };
    let mut seq = segment.seq;
    if seq == end {
        (seq, end) = (src.sent, src.sent);
    }
    let behind = dst.sent.wrapping_sub(ack) as i32;
    let reset_hits = !segment.has(RST) || segment.seq.wrapping_sub(src.sent).wrapping_add(1) <= 2;
    let allowed = u32::from(dst.window) << dst_shift;
    let fits = at_least(src.limit, end)
        && at_least(seq, src.sent.wrapping_sub(allowed))
        && behind >= -(MAX_ACK_OFF as i32)
        && i64::from(behind) <= i64::from(MAX_ACK_OFF) << src_shift
        && reset_hits;
    if fits || !check {
        slide(src, dst, (ack, end, window, src_shift));
        advance(src, dst, segment);
        return if fits { Outcome::Valid } else { Outcome::Unchecked };
    }
    let loose = dst.state < TcpState::SynSent
        || dst.state >= TcpState::FinWait2
        || src.state >= TcpState::FinWait2;
    if loose
        && at_least(src.limit.wrapping_add(MAX_ACK_OFF), end)
        && at_least(seq, src.sent.wrapping_sub(MAX_ACK_OFF))
    {
        slide(src, dst, (ack, end, window, src_shift));
        if segment.has(FIN) {
            src.state = src.state.max(TcpState::Closing);
        }
        if segment.has(RST) {
            (src.state, dst.state) = (TcpState::TimeWait, TcpState::TimeWait);
        }
        return Outcome::Stray;
    }
    Outcome::OutOfWindow
}

/// Takes over what the segment says about windows.
#[inline(always)]
fn slide(src: &mut Side, dst: &mut Side, seen: (u32, u32, u16, u32)) {
    let (ack, end, window, shift) = seen;
    src.window = src.window.max(window);
    if at_least(end, src.sent) {
        src.sent = end;
    }
    let offered = u32::from(window) << shift;
    if at_least(ack.wrapping_add(offered), dst.limit) {
        dst.limit = ack.wrapping_add(offered.max(1));
    }
}

/// Takes over what the segment says about states.
#[inline(always)]
fn advance(src: &mut Side, dst: &mut Side, segment: &Segment) {
    if segment.has(FIN) {
        src.state = src.state.max(TcpState::Closing);
    }
    if segment.has(ACK) {
        dst.state = dst.state.acknowledged();
    }
    if segment.has(RST) {
        (src.state, dst.state) = (TcpState::TimeWait, TcpState::TimeWait);
    }
}
