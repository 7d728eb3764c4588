//! The router's own echo requests (RFC 792): sent by a worker, answered by events.
//!
//! Times are tick counts taken when a request is handed over and when its reply is received, so
//! they do not depend on when the main thread prints them.

use crate::family::{Version, family, for_version};
use crate::{Ip, RouteError, RouteView, Source, address};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Output, Task, TaskPoll};
use thalweg_device::{InterfaceEvent, SwIfIndex};
use thalweg_fib::{Dpo, Forwarding, Kind, TableId};
use thalweg_graph::{Control, Inject, NodeId, clock};
use thalweg_tables::Address;

/// Length in bytes of the timestamp before the data.
const STAMP: usize = 8;
/// Minimum interval in seconds.
pub(crate) const SHORTEST: f64 = 0.000_01;
/// Maximum number of requests sent at once after the main thread has fallen behind.
const MAX_BEHIND: u32 = 64;
/// Requests remembered to recognise late and duplicate replies: half of the sequence number space.
const MEMORY: usize = 1 << 15;
/// Minimum wait for a reply.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// First and longest wait between checks for a reply.
const POLL_INTERVAL: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(10));
/// Maximum number of replies that a session keeps and lists as JSON.
const MAX_REPLIES: usize = 1 << 16;

/// Contents of an echo request.
#[derive(Clone, Copy, Debug)]
pub struct Echo<'a> {
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub seq: u16,
    /// Data.
    pub data: &'a [u8],
}

/// An echo reply as received by a worker.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Its sender.
    pub from: IpAddr,
    /// Identifier.
    pub id: u16,
    /// Sequence number.
    pub seq: u16,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Length of the ICMP message in bytes.
    pub len: u32,
    /// Time of receipt in ticks.
    pub at: u64,
}

/// Replies to a session, and whether its interfaces are still those that it began with.
#[derive(Default)]
struct Session {
    replies: VecDeque<Reply>,
    /// Interface whose address is the source.
    source: Option<SwIfIndex>,
    /// Interface whose table the requests are looked up in.
    rx_if: SwIfIndex,
    /// Name of the source, which is deleted: another interface may have its number now.
    without_source: Option<String>,
    /// The other one is deleted.
    without_rx: bool,
}

/// All sessions, by ICMP identifier.
pub(crate) struct Pings {
    next: u16,
    sessions: HashMap<u16, Session>,
}

impl Pings {
    /// Picks an unused identifier.
    fn open(&mut self) -> Option<u16> {
        for _ in 0..=u16::MAX {
            self.next = self.next.wrapping_add(1);
            if !self.sessions.contains_key(&self.next) {
                self.sessions.insert(self.next, Session::default());
                return Some(self.next);
            }
        }
        None
    }
}

pub(crate) fn init(c: &mut Control) {
    // Keeps apart from other router processes on the same host.
    let next = std::process::id() as u16;
    c.insert(Pings { next, sessions: HashMap::new() });
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            interface_gone(c, i);
        }
    });
}

/// Notifies sessions that an interface is about to be deleted.
fn interface_gone(c: &Control, sw_if: SwIfIndex) {
    let pings = c.state::<Pings>();
    for session in pings.borrow_mut().sessions.values_mut() {
        if session.source == Some(sw_if) && session.without_source.is_none() {
            session.without_source = Some(c.interface_name(sw_if));
        }
        session.without_rx |= session.rx_if == sw_if;
    }
}

/// Passes an echo reply to the session that waits for it.
pub fn received(c: &Control, reply: Reply) {
    let pings = c.state::<Pings>();
    let mut pings = pings.borrow_mut();
    if let Some(session) = pings.sessions.get_mut(&reply.id)
        && session.replies.len() < MAX_REPLIES
    {
        session.replies.push_back(reply);
    }
}

/// Returns the maximum data after the timestamp, in bytes.
///
/// # Errors
/// If the router does not have this version of IP.
pub(crate) fn max_size(c: &Control, version: Version) -> Result<u16, RouteError> {
    fn most<A: Address>(c: &Control) -> Result<u16, RouteError> {
        Ok(family::<A>(c)?.max_echo().saturating_sub(STAMP as u16))
    }
    for_version!(version, most(c))
}

/// Parameters of a ping.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) to: IpAddr,
    /// Number of intervals.
    pub(crate) repeat: u32,
    pub(crate) interval: Duration,
    /// Bytes of data after the timestamp.
    pub(crate) size: u16,
    /// Interface whose address becomes the source.
    pub(crate) source: Option<SwIfIndex>,
    pub(crate) table: Option<TableId>,
    /// Requests per interval.
    pub(crate) burst: u32,
    /// Time to wait for answers after the last request.
    pub(crate) patience: Duration,
}

impl Request {
    /// Number of requests.
    fn total(&self) -> u32 {
        self.repeat.saturating_mul(self.burst)
    }
}

/// Source address, and the interface whose table the requests are looked up in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan<A> {
    from: A,
    rx_if: SwIfIndex,
    table: TableId,
}

fn no_egress(why: impl std::fmt::Display) -> CliError {
    CliError::failed(format_args!("Failed: no egress interface: {why}"))
}

/// Egress interface of a forwarding object; of a load balance, its first member's.
fn egress(f: &Forwarding, mut dpo: Dpo) -> Option<SwIfIndex> {
    for _ in 0..4 {
        if let Some((sw_if, _)) = f.owner(dpo) {
            return Some(sw_if);
        }
        dpo = f.members(dpo).first()?.dpo;
    }
    None
}

/// Selects source address and table.
fn plan<A: Address>(c: &Control, r: &Request, to: A) -> Result<Plan<A>, CliError> {
    let (ip, forwarding) = (c.state::<Ip<A>>(), c.state::<Forwarding>());
    let (ip, forwarding) = (ip.borrow(), forwarding.borrow());
    let table = r.table.or(r.source.map(|i| ip.table_of(i))).unwrap_or(TableId(0));
    if ip.serial(table).is_none() {
        return Err(crate::cli_args::route_failed(ip.no_table(table)));
    }
    if let Some(family) = ip.family.filter(|family| family.is_of_link(to)) {
        // Each link has its own; the packets are looked up as by its interface.
        let missing = || no_egress(format_args!("`source <interface>' names the link of {}", r.to));
        let rx_if = r.source.ok_or_else(missing)?;
        let from = family.link_source(c, rx_if).ok_or_else(|| no_source::<A>(c, rx_if))?;
        return Ok(Plan { from, rx_if, table });
    }
    let view = ip.lookup(table, to).filter(|v| v.source != Source::Default);
    let Some(view) = view else {
        return Err(no_egress(format_args!("no route to {} in table {table}", r.to)));
    };
    let out = egress(&forwarding, view.dpo);
    let local = forwarding.table().get(view.dpo).state().kind == Kind::LOCAL;
    if out.is_none() && !local {
        let end = forwarding.describe(c, view.dpo);
        return Err(no_egress(format_args!("route {} to {} is {end}", view.prefix, r.to)));
    }
    let from = match r.source.or(out) {
        Some(i) => sender(c, &ip, i, &view, to)?,
        // A ping to one of our addresses comes from that address.
        None => to,
    };
    let mine = |i: &SwIfIndex| ip.table_of(*i) == table;
    let known = r.source.into_iter().chain(out).chain([SwIfIndex(0)]).chain(ip.bound.interfaces());
    let rx_if = known
        .into_iter()
        .find(mine)
        .ok_or_else(|| no_egress(format_args!("no interface is in table {table}")))?;
    Ok(Plan { from, rx_if, table })
}

/// Address of an interface: the one nearest to the next hop.
fn sender<A: Address>(
    c: &Control,
    ip: &Ip<A>,
    sw_if: SwIfIndex,
    view: &RouteView<A>,
    to: A,
) -> Result<A, CliError> {
    let next_hop = view.paths.first().and_then(|p| p.next_hop).and_then(A::from_ip);
    address::nearest(ip, sw_if, next_hop.unwrap_or(to)).ok_or_else(|| no_source::<A>(c, sw_if))
}

fn no_source<A: Address>(c: &Control, sw_if: SwIfIndex) -> CliError {
    let (name, version) = (c.interface_name(sw_if), Version::of::<A>().name());
    CliError::failed(format_args!(
        "Failed: `{name}' has no {version} address to send from; `source <interface>' names another"
    ))
}

/// Source and table by which a session sends.
struct Sender {
    from: IpAddr,
    rx_if: SwIfIndex,
    table: TableId,
    node: NodeId,
    build: Builder,
}

impl Sender {
    /// # Errors
    /// If there is no route to the destination, or no source address.
    fn of(c: &Control, request: &Request) -> Result<Sender, CliError> {
        match request.to {
            IpAddr::V4(to) => Sender::of_version(c, request, to.to_bits()),
            IpAddr::V6(to) => Sender::of_version(c, request, to.to_bits()),
        }
    }

    fn of_version<A: Address>(c: &Control, request: &Request, to: A) -> Result<Sender, CliError> {
        let family = family::<A>(c).map_err(crate::cli_args::route_failed)?;
        let Plan { from, rx_if, table } = plan(c, request, to)?;
        let node = c.node(family.lookup_node()).filter(|_| c.workers() > 0);
        let node = node.ok_or_else(|| CliError::failed("Failed: no worker is running"))?;
        let build = Box::new(move |echo: Echo<'_>| family.echo_request(from, to, echo));
        Ok(Sender { from: from.to_ip(), rx_if, table, node, build })
    }

    /// Returns whether the interface still leads to the table.
    fn is_current(&self, c: &Control) -> bool {
        let table = match self.from {
            IpAddr::V4(_) => c.state::<Ip<u32>>().borrow().table_of(self.rx_if),
            IpAddr::V6(_) => c.state::<Ip<u128>>().borrow().table_of(self.rx_if),
        };
        table == self.table
    }
}

/// Starts a session.
///
/// # Errors
/// If there is no route to the destination, or no source address.
pub(crate) fn start(c: &mut Control, request: Request) -> Result<Ping, CliError> {
    let sender = Sender::of(c, &request)?;
    let pings = c.state::<Pings>();
    let id = pings.borrow_mut().open();
    let id = id.ok_or_else(|| CliError::failed("Failed: too many pings are running"))?;
    if let Some(session) = pings.borrow_mut().sessions.get_mut(&id) {
        (session.source, session.rx_if) = (request.source, sender.rx_if);
    }
    Ok(Ping {
        id,
        worker: usize::from(id) % c.workers(),
        sender,
        timeout: clock::ticks_in(request.interval.max(PATIENCE)),
        request,
        stats: Stats::default(),
        next: None,
    })
}

/// State of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ReplyState {
    Waiting,
    Answered,
    Lost,
}

/// Classification of a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Match {
    /// Reply in time; round-trip time in ticks.
    Answer(u64),
    /// Reply after the request was counted as lost; round-trip time in ticks.
    Late(u64),
    /// A further reply; round-trip time in ticks.
    Duplicate(u64),
    /// No such request is remembered.
    Unknown,
}

/// Requests and replies of a session.
#[derive(Default, Debug)]
struct Stats {
    sent: u32,
    received: u32,
    late: u32,
    duplicates: u32,
    /// The latest requests: send time and state.
    flights: VecDeque<(u64, ReplyState)>,
    /// Number of requests, from the first, that are no longer pending.
    settled: u32,
    waiting: u32,
    records: Vec<Value>,
}

impl Stats {
    fn forgotten(&self) -> u32 {
        self.sent - self.flights.len() as u32
    }

    fn flight(&mut self, index: u32) -> Option<&mut (u64, ReplyState)> {
        self.flights.get_mut(index.checked_sub(self.forgotten())? as usize)
    }

    /// Records a request; returns its sequence number, from 1.
    fn send(&mut self, at: u64) -> u16 {
        if self.flights.len() == MEMORY
            && let Some((_, ReplyState::Waiting)) = self.flights.pop_front()
        {
            self.waiting -= 1;
        }
        self.flights.push_back((at, ReplyState::Waiting));
        self.sent += 1;
        self.waiting += 1;
        self.sent as u16
    }

    /// Counts pending requests older than `timeout` as lost.
    fn expire(&mut self, now: u64, timeout: u64) {
        self.settled = self.settled.max(self.forgotten());
        let mut index = self.settled;
        while let Some((at, state)) = self.flight(index) {
            if *state == ReplyState::Waiting {
                if now.saturating_sub(*at) < timeout {
                    break;
                }
                *state = ReplyState::Lost;
                self.waiting -= 1;
            }
            index += 1;
        }
        self.settled = index;
    }

    /// Send time of the oldest pending request.
    fn oldest(&mut self) -> Option<u64> {
        let index = self.settled.max(self.forgotten());
        self.flight(index).map(|f| f.0)
    }

    /// Matches a reply to its request.
    fn receive(&mut self, seq: u16, at: u64) -> Match {
        // The latest request with that sequence number.
        let back = (self.sent as u16).wrapping_sub(seq);
        let Some(index) = self.sent.checked_sub(u32::from(back) + 1) else { return Match::Unknown };
        let Some((sent_at, state)) = self.flight(index) else { return Match::Unknown };
        let took = at.saturating_sub(*sent_at);
        match std::mem::replace(state, ReplyState::Answered) {
            ReplyState::Waiting => {
                self.waiting -= 1;
                self.received += 1;
                Match::Answer(took)
            }
            ReplyState::Lost => {
                self.late += 1;
                Match::Late(took)
            }
            ReplyState::Answered => {
                self.duplicates += 1;
                Match::Duplicate(took)
            }
        }
    }

    fn loss(&self) -> f64 {
        match self.sent {
            0 => 0.0,
            n => 100.0 * f64::from(n - self.received) / f64::from(n),
        }
    }

    fn line(&self) -> String {
        let mut loss = format!("{:.4}", self.loss());
        loss.truncate(loss.trim_end_matches('0').trim_end_matches('.').len());
        let mut text = format!(
            "Statistics: {} sent, {} received, {loss}% packet loss",
            self.sent, self.received
        );
        for (n, word) in [(self.late, "late"), (self.duplicates, "duplicate")] {
            if n > 0 {
                text += &format!(", {n} {word}");
            }
        }
        text
    }
}

/// Milliseconds as VPP prints them: four decimals, no leading zero.
fn milliseconds(ticks: u64) -> String {
    let text = format!("{:.4}", ticks as f64 * 1e3 / clock::hz());
    match text.strip_prefix("0.") {
        Some(digits) => format!(".{digits}"),
        None => text,
    }
}

/// Builds the packet of a request.
type Builder = Box<dyn Fn(Echo<'_>) -> Option<Vec<u8>> + Send>;

/// A running session.
pub(crate) struct Ping {
    id: u16,
    worker: usize,
    sender: Sender,
    /// Ticks after which a request counts as lost.
    timeout: u64,
    request: Request,
    stats: Stats,
    /// Times when the next requests are due, and when the last ones were sent.
    next: Option<(Instant, Instant)>,
}

/// Data of a request: the time, then `size` bytes that count.
fn data(at: u64, size: u16) -> Vec<u8> {
    at.to_be_bytes().into_iter().chain((0..size).map(|i| i as u8)).collect()
}

impl Ping {
    /// Requests sent, and replies received in time.
    pub(crate) fn counts(&self) -> (u32, u32) {
        (self.stats.sent, self.stats.received)
    }

    fn send(&mut self, c: &mut Control) {
        let at = clock::ticks();
        let seq = self.stats.send(at);
        let data = data(at, self.request.size);
        if let Some(bytes) = (self.sender.build)(Echo { id: self.id, seq, data: &data }) {
            let Sender { node, rx_if, .. } = self.sender;
            c.inject(self.worker, Inject { node, bytes, rx_if, ..Inject::default() });
        }
    }

    /// Finds another way to send if the interface that it went by is deleted or in another table.
    ///
    /// # Errors
    /// If there is none, or the source that was asked for is deleted.
    fn renew(&mut self, c: &Control) -> Result<(), CliError> {
        let pings = c.state::<Pings>();
        let mut pings = pings.borrow_mut();
        let Some(session) = pings.sessions.get_mut(&self.id) else { return Ok(()) };
        if let Some(name) = &session.without_source {
            let why = no_egress(format_args!("the source `{name}' is deleted"));
            return Err(why);
        }
        if session.without_rx || !self.sender.is_current(c) {
            self.sender = Sender::of(c, &self.request)?;
            (session.rx_if, session.without_rx) = (self.sender.rx_if, false);
        }
        Ok(())
    }

    /// Sends the requests that are due; returns when the next are.
    fn send_due(&mut self, c: &mut Control, now: Instant) {
        let (mut due, mut last) = self.next.unwrap_or((now, now));
        let mut room = MAX_BEHIND.max(self.request.burst);
        while self.stats.sent < self.request.total() && now >= due && room > 0 {
            for _ in 0..self.request.burst.min(self.request.total() - self.stats.sent) {
                self.send(c);
                room = room.saturating_sub(1);
            }
            due += self.request.interval;
            last = now;
        }
        // Missed requests are not made up for after a long delay.
        if room == 0 {
            due = due.max(now);
        }
        self.next = Some((due, last));
    }

    fn replies(&mut self, c: &Control, out: &mut Output) {
        let queue = match c.state::<Pings>().borrow_mut().sessions.get_mut(&self.id) {
            Some(session) => std::mem::take(&mut session.replies),
            None => return,
        };
        for r in queue.into_iter().filter(|r| r.from == self.request.to) {
            let (ticks, note) = match self.stats.receive(r.seq, r.at) {
                Match::Answer(t) => (t, ""),
                Match::Late(t) => (t, " (late)"),
                Match::Duplicate(t) => (t, " (duplicate)"),
                Match::Unknown => continue,
            };
            let (len, from, seq, ttl) = (r.len, r.from, r.seq, r.ttl);
            let time = milliseconds(ticks);
            out.line(format_args!(
                "{len} bytes from {from}: icmp_seq={seq} ttl={ttl} time={time} ms{note}"
            ));
            if out.wants_json() && self.stats.records.len() < MAX_REPLIES {
                self.stats.records.push(json!({
                    "bytes": len, "seq": seq, "ttl": ttl, "note": note.trim(),
                    "ms": ticks as f64 * 1e3 / clock::hz(),
                }));
            }
        }
    }

    fn finish(&mut self, c: &Control, out: &mut Output) {
        c.state::<Pings>().borrow_mut().sessions.remove(&self.id);
        let s = &mut self.stats;
        out.line(format_args!("\n{}", s.line()));
        out.json(json!({
            "to": self.request.to, "from": self.sender.from, "sent": s.sent,
            "received": s.received, "late": s.late, "duplicates": s.duplicates,
            "loss_percent": s.loss(), "replies": std::mem::take(&mut s.records),
        }));
    }

    /// Time of the next check.
    fn wake(&mut self, now: Instant) -> Instant {
        let (due, last) = self.next.unwrap_or((now, now));
        let mut at = (last + self.request.patience).max(now);
        if self.stats.sent < self.request.total() {
            at = due;
        }
        if self.stats.waiting > 0 {
            // Replies wake the main thread, but perhaps not this task: check often at first.
            let wait =
                (now.saturating_duration_since(last) / 8).clamp(POLL_INTERVAL.0, POLL_INTERVAL.1);
            at = at.min(now + wait);
            if let Some(sent) = self.stats.oldest() {
                let left = (sent + self.timeout).saturating_sub(clock::ticks());
                at = at.min(now + Duration::from_secs_f64(left as f64 / clock::hz()));
            }
        }
        at
    }
}

impl Task<Control> for Ping {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        self.replies(c, out);
        self.stats.expire(clock::ticks(), self.timeout);
        if self.stats.sent < self.request.total() {
            if let Err(error) = self.renew(c) {
                self.finish(c, out);
                return TaskPoll::Failed(error);
            }
            self.send_due(c, now);
        }
        let last = self.next.map_or(now, |(_, last)| last);
        let is_over = self.stats.waiting == 0 || now >= last + self.request.patience;
        if self.stats.sent == self.request.total() && is_over {
            self.finish(c, out);
            return TaskPoll::Done;
        }
        TaskPoll::At(self.wake(now))
    }

    fn cancel(&mut self, c: &mut Control, out: &mut Output) {
        self.replies(c, out);
        self.finish(c, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn replies_find_their_requests() {
        let mut s = Stats::default();
        for at in [100, 200, 300] {
            s.send(at);
        }
        assert_eq!(s.receive(2, 260), Match::Answer(60));
        assert_eq!(s.receive(2, 270), Match::Duplicate(70));
        assert_eq!((s.receive(4, 1), s.receive(0, 1)), (Match::Unknown, Match::Unknown));
        s.expire(1100, 1000);
        assert_eq!((s.waiting, s.oldest()), (1, Some(300)));
        assert_eq!(s.receive(1, 1200), Match::Late(1100));
        assert_eq!(s.receive(3, 1200), Match::Answer(900));
        s.expire(9999, 1000);
        assert_eq!(
            s.line(),
            "Statistics: 3 sent, 2 received, 33.3333% packet loss, 1 late, 1 duplicate"
        );
    }

    #[test]
    fn statistics_read_as_in_vpp() {
        let stats = |sent, received| Stats { sent, received, ..Stats::default() }.line();
        assert_eq!(stats(5, 5), "Statistics: 5 sent, 5 received, 0% packet loss");
        assert_eq!(stats(5, 0), "Statistics: 5 sent, 0 received, 100% packet loss");
        assert_eq!(stats(4, 3), "Statistics: 4 sent, 3 received, 25% packet loss");
        assert_eq!(stats(0, 0), "Statistics: 0 sent, 0 received, 0% packet loss");
        clock::init();
        let ticks = |s: f64| (clock::hz() * s) as u64;
        assert_eq!(milliseconds(ticks(0.000_135_2) + 1), ".1352");
        assert_eq!(milliseconds(ticks(12.5)), "12500.0000");
    }

    #[test]
    fn data_begin_with_the_time() {
        let stamp = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(data(u64::from_be_bytes(stamp), 0), stamp);
        let long = data(0, 300);
        assert_eq!((long.len(), long[8 + 255], long[8 + 256]), (308, 255, 0));
    }

    proptest! {
        /// Compared with a plain list of requests.
        #[test]
        fn counts_agree_with_a_list(
            steps in prop::collection::vec((0u8..4, any::<u16>()), 1..300), start in 0u32..200_000,
        ) {
            // A session that has run for a while: sequence numbers wrap.
            let mut s = Stats { sent: start, settled: start, ..Stats::default() };
            let mut model: Vec<(u64, ReplyState)> = Vec::new();
            let (mut now, timeout) = (0u64, 50);
            for (what, n) in steps {
                now += u64::from(n % 7);
                for f in &mut model {
                    if f.1 == ReplyState::Waiting && now - f.0 >= timeout { f.1 = ReplyState::Lost; }
                }
                s.expire(now, timeout);
                match what {
                    0 | 1 => {
                        let seq = s.send(now);
                        model.push((now, ReplyState::Waiting));
                        prop_assert_eq!(seq, (start + model.len() as u32) as u16);
                    }
                    _ if model.is_empty() => {}
                    _ => {
                        let i = usize::from(n) % model.len();
                        let seq = (start + i as u32 + 1) as u16;
                        let took = now - model[i].0;
                        let want = match model[i].1 {
                            ReplyState::Waiting => Match::Answer(took),
                            ReplyState::Lost => Match::Late(took),
                            ReplyState::Answered => Match::Duplicate(took),
                        };
                        model[i].1 = ReplyState::Answered;
                        prop_assert_eq!(s.receive(seq, now), want);
                    }
                }
                let waiting = model.iter().filter(|f| f.1 == ReplyState::Waiting).count();
                prop_assert_eq!(s.waiting as usize, waiting);
            }
        }
    }
}
