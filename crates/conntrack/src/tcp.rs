//! TCP: one state per side, and the range of sequence numbers that each side may use.
//!
//! A firewall sees both directions but is neither endpoint, so it records for each side what the
//! other one's window allows. States and rules are those of OpenBSD's pf, which Open vSwitch uses
//! as well.
//!
//! [`Pair::update`] is a pure function of the two sides and a segment, so that a translator can use
//! it for its own sessions.

use thalweg_wire::tcp::flag::{ACK, FIN, PSH, RST, SYN, URG};

use crate::timeout::Timeout;

/// Tolerance for acknowledgement numbers: the largest unscaled window plus one segment.
pub const MAX_ACK_OFF: u32 = 65535 + 1500;

/// State of one side, in chronological order.
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

    /// The next state of a side whose data the other side acknowledges.
    #[inline]
    pub(crate) const fn acknowledged(self) -> TcpState {
        match self {
            TcpState::SynSent => TcpState::Established,
            TcpState::Closing => TcpState::FinWait2,
            state => state,
        }
    }

    /// Name in lists of connections.
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

/// Window scaling of a side (RFC 7323): the shift in the low four bits, and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scale(u8);

impl Scale {
    const SHIFT: u8 = 0x0f;
    /// The side offered scaling.
    const OFFERED: u8 = 0x80;
    /// The handshake was not seen.
    const UNKNOWN: u8 = 0x40;

    /// No scaling.
    pub const NONE: Scale = Scale(0);
    /// The handshake was not seen: the largest shift is assumed.
    pub const GUESSED: Scale = Scale(Scale::UNKNOWN | 14);

    /// The option of a SYN; shifts above 14 count as 14.
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

    /// Returns whether the side offered scaling.
    #[inline]
    pub fn is_offered(self) -> bool {
        self.0 & Scale::OFFERED != 0
    }

    /// The shift.
    #[inline]
    pub fn shift(self) -> u32 {
        u32::from(self.0 & Scale::SHIFT)
    }

    /// Returns whether two sides scale: both offered it, or the handshake was not seen.
    #[inline]
    pub(crate) fn is_with(self, other: Scale) -> bool {
        self.0 & other.0 & !Scale::SHIFT != 0
    }

    /// The shifts of two sides; 0 unless both scale.
    #[inline]
    fn of_both(self, other: Scale) -> (u32, u32) {
        if self.is_with(other) { (self.shift(), other.shift()) } else { (0, 0) }
    }
}

/// Tracking data of one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Side {
    /// Sequence number after the last one sent.
    pub sent: u32,
    /// Sequence number after the last one that the other side accepts.
    pub limit: u32,
    /// Largest window advertised, before scaling.
    pub window: u16,
    /// Window scaling. Once both sides have sent, either both have a shift in use or neither has.
    pub scale: Scale,
    /// State.
    pub state: TcpState,
}

/// The fields of a segment that tracking needs. They are laid out like a byte-swapped header, so
/// that few stores write them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Acknowledgement number.
    pub ack: u32,
    /// Sequence number.
    pub seq: u32,
    /// Bytes of payload.
    pub payload: u32,
    /// Window, before scaling.
    pub window: u16,
    /// Flags (see [`thalweg_wire::tcp::flag`]).
    pub flags: u8,
    /// Window scaling offered by a SYN.
    pub scale: Scale,
}

impl Segment {
    #[inline]
    fn has(&self, flags: u8) -> bool {
        self.flags & flags != 0
    }

    /// Sequence number after its last; SYN and FIN count as one each.
    #[inline]
    fn end(&self) -> u32 {
        let flags = u32::from(self.has(SYN)) + u32::from(self.has(FIN));
        self.seq.wrapping_add(self.payload).wrapping_add(flags)
    }

    /// Returns whether the combination of flags is valid.
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

    /// Returns whether a connection may begin with it or be picked up midstream: any valid segment
    /// but a SYN-ACK.
    #[inline]
    pub fn may_open(&self) -> bool {
        self.flags_are_valid() && self.flags & (SYN | ACK) != SYN | ACK
    }

    /// Returns whether it is a SYN without ACK.
    #[inline]
    pub fn is_bare_syn(&self) -> bool {
        self.flags & (SYN | ACK) == SYN
    }

    /// The window in units of the scaled windows that follow; that of a SYN is not scaled.
    #[inline]
    fn unscaled_window(&self) -> u16 {
        match self.has(SYN) && self.scale.is_offered() {
            true => u32::from(self.window).div_ceil(1 << self.scale.shift()) as u16,
            false => self.window,
        }
    }
}

/// Result of applying a segment to its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Valid.
    Valid,
    /// Valid, but does not refresh the timer.
    Stray,
    /// Segments out of the window, accepted because windows are not checked.
    Unchecked,
    /// Retransmission of the SYN.
    Repeated,
    /// Opens a new connection in place of this one, which has ended.
    Reopens,
    /// Invalid combination of flags.
    BadFlags,
    /// Segment out of the window.
    OutOfWindow,
}

/// Both sides of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Pair {
    /// The opener, the other side.
    pub sides: [Side; 2],
}

#[inline]
fn at_least(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) < 1 << 31
}

impl Pair {
    /// A connection that begins with this segment. Without SYN it is picked up midstream.
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

    /// Updates the connection for a segment of the opener or, with `reply`, of the other side. With
    /// `check` off, windows are not enforced.
    // Sides are kept in registers: one written to memory in parts and read back as a whole stalls
    // on store forwarding.
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

    /// The timeout that applies.
    #[inline]
    pub fn timeout(&self) -> Timeout {
        let [a, b] = &self.sides;
        timeout(a.state, b.state)
    }

    /// One state for both sides: that of the more advanced one.
    pub fn shown(&self) -> TcpState {
        let [a, b] = self.sides.map(|side| side.state);
        match a.max(b) {
            TcpState::FinWait2 => TcpState::TimeWait,
            TcpState::SynReceived => TcpState::Established,
            state => state,
        }
    }

    /// Returns whether both sides have been acknowledged.
    #[inline]
    pub fn is_established(&self) -> bool {
        self.sides.iter().all(|side| side.state >= TcpState::Established)
    }
}

/// The timeout that applies to a connection whose sides are in these states.
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

/// Values that a segment is compared with.
struct Measure {
    /// Window shifts of both sides.
    src_shift: u32,
    dst_shift: u32,
    /// The window.
    window: u16,
    /// True if its acknowledgement is judged by what the other side has sent.
    checks_ack: bool,
}

/// Handles the first segment of a side: initialises its sequence numbers and settles window
/// scaling.
///
/// Its acknowledgement is not judged, as in Open vSwitch: a connection that was picked up, or whose
/// opener has sent another SYN, may be anywhere.
#[inline(always)]
fn first_of_side(src: &mut Side, dst: &mut Side, segment: &Segment, end: u32) -> Measure {
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
                // Neither side scales if this one does not: the opener's window counts as it was
                // sent.
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
    let moves = src.limit == 1 || at_least(limit, src.limit);
    if moves {
        src.limit = limit;
    }
    src.window = src.window.max(seen);
    Measure { src_shift: shifts, dst_shift: window, window: seen, checks_ack: !moves }
}

#[inline(always)]
fn step(src: &mut Side, dst: &mut Side, segment: &Segment, check: bool) -> Outcome {
    let mut end = segment.end();
    let Measure { src_shift, dst_shift, window, checks_ack } = if src.state < TcpState::SynSent {
        first_of_side(src, dst, segment, end)
    } else {
        let both = || src.scale.of_both(dst.scale);
        let (src_shift, dst_shift) = if segment.has(SYN) { (0, 0) } else { both() };
        Measure { src_shift, dst_shift, window: segment.window, checks_ack: true }
    };
    // Without ACK, or with the zero that some stacks put into RSTs, there is no number to compare.
    let no_ack = !segment.has(ACK) || (segment.ack == 0 && segment.has(RST));
    let ack = if no_ack { dst.sent } else { segment.ack };
    let mut seq = segment.seq;
    if seq == end {
        (seq, end) = (src.sent, src.sent);
    }
    let is_near = |sent: u32| {
        let behind = sent.wrapping_sub(ack) as i32;
        behind >= -(MAX_ACK_OFF as i32) && i64::from(behind) <= i64::from(MAX_ACK_OFF) << src_shift
    };
    if !checks_ack && !is_near(dst.sent) {
        // The other side is where this answer says.
        (dst.sent, dst.limit) = (ack, ack);
    }
    let reset_hits = !segment.has(RST) || segment.seq.wrapping_sub(src.sent).wrapping_add(1) <= 2;
    let allowed = u32::from(dst.window) << dst_shift;
    let fits = at_least(src.limit, end)
        && at_least(seq, src.sent.wrapping_sub(allowed))
        && is_near(dst.sent)
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

/// Updates windows and sequence numbers.
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

/// Updates states.
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
