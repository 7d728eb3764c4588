//! `arping`: asks a link for an address, whatever is known of it, and counts who answers; or
//! announces an address (RFC 5227 section 2.3, RFC 4861 section 7.2.6).

use crate::Resolver;
use crate::neighbors::{NeighborError, resolver};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Output, Task, TaskPoll};
use thalweg_device::command_line::refused;
use thalweg_device::{DeviceError, InterfaceEvent, InterfaceView, SwIfIndex, interface};
use thalweg_fib::Version;
use thalweg_graph::{BuildCx, Control, Event, NodeCx, Topic, clock};
use thalweg_tables::limit::RateLimit;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::MacAddr;

/// Time to wait for answers to the last request.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between looks for answers.
const LOOK: Duration = Duration::from_millis(5);
/// Longest interval between requests.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// Requests sent at once, and the pause after them.
const AT_ONCE: (u32, Duration) = (64, Duration::from_millis(1));
/// Answers per second and at once that a worker reports.
const ANSWERS: (u32, u32) = (5000, 512);

/// A series of requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The address.
    pub ip: IpAddr,
    /// The interface.
    pub sw_if: SwIfIndex,
    /// Announces the address instead.
    pub gratuitous: bool,
    /// Number of requests.
    pub repeat: u32,
    /// Time between them, up to [`LONGEST`].
    pub interval: Duration,
}

/// Reason why nothing is sent.
#[derive(Debug, thiserror::Error)]
pub enum ArpingError {
    /// One is running on the interface, also one that announces an address.
    #[error("arping is in progress on `{0}'; try again when it has ended")]
    Running(String),
    /// The interface is down, or its link layer is not Ethernet.
    #[error("`{0}' is {1}")]
    Unusable(String, &'static str),
    /// The interface has no address to ask from.
    #[error("`{0}' has no {family} address to ask from; `set interface ip address' sets one", family = .1)]
    NoSource(String, Version),
    /// The address is not that of a host.
    #[error("{0} is not a host's address")]
    NoHost(IpAddr),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Nothing resolves addresses of the family.
    #[error(transparent)]
    Neighbor(#[from] NeighborError),
}

impl From<ArpingError> for CliError {
    fn from(e: ArpingError) -> CliError {
        let code = match e {
            ArpingError::Device(e) => return refused(e),
            ArpingError::Running(_) | ArpingError::NoHost(_) => -7,
            ArpingError::Unusable(..) => -71,
            ArpingError::NoSource(..) => -60,
            ArpingError::Neighbor(_) => -9,
        };
        CliError::with_code(e, code)
    }
}

/// The address that is asked for on each interface, as workers read them.
type Asked = BTreeMap<SwIfIndex, IpAddr>;

/// Answers of an interface so far.
#[derive(Clone, Copy, Default)]
struct Heard {
    /// Distinguishes the session from a later one on an interface of the same index.
    session: u64,
    replies: u32,
    mac: MacAddr,
}

struct Arpings {
    running: BTreeMap<SwIfIndex, Heard>,
    sessions: u64,
    asked: snapshot::Writer<Asked>,
}

struct Answers(Topic);

pub(crate) fn init(c: &mut Control) {
    let (asked, snapshot) = snapshot::channel(Asked::new());
    let snapshot: Arc<Snapshot<Asked>> = snapshot;
    c.share(snapshot);
    c.insert(Arpings { running: BTreeMap::new(), sessions: 0, asked });
    let topic = c.topic("arping", hear);
    c.share(Arc::new(Answers(topic)));
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            let session = c.state::<Arpings>().borrow().running.get(&i).map(|heard| heard.session);
            session.map(|session| end(c, i, session));
        }
    });
}

/// An answer in the form of an event: the MAC address, then the address.
fn encode(ip: IpAddr, mac: MacAddr) -> ([u8; 22], usize) {
    let mut bytes = [0; 22];
    bytes[..6].copy_from_slice(&mac.octets());
    let end = match ip {
        IpAddr::V4(ip) => {
            bytes[6..10].copy_from_slice(&ip.octets());
            10
        }
        IpAddr::V6(ip) => {
            bytes[6..].copy_from_slice(&ip.octets());
            22
        }
    };
    (bytes, end)
}

fn decode(bytes: &[u8]) -> Option<(IpAddr, MacAddr)> {
    let (mac, ip) = bytes.split_first_chunk()?;
    let ip = match <[u8; 16]>::try_from(ip) {
        Ok(ip) => IpAddr::from(ip),
        Err(_) => IpAddr::from(*ip.first_chunk::<4>()?),
    };
    Some((ip, MacAddr(*mac)))
}

/// Takes what a worker has heard.
fn hear(c: &mut Control, event: &Event) {
    let Some((ip, mac)) = decode(event.bytes()) else { return };
    let state = c.state::<Arpings>();
    let mut state = state.borrow_mut();
    // An answer to an earlier question does not count.
    if state.asked.get().get(&event.sw_if) != Some(&ip) {
        return;
    }
    if let Some(heard) = state.running.get_mut(&event.sw_if) {
        (heard.replies, heard.mac) = (heard.replies.saturating_add(1), mac);
    }
}

/// Ends a session of an interface; returns what it has heard, if it is still there.
fn end(c: &Control, sw_if: SwIfIndex, session: u64) -> Option<Heard> {
    let state = c.state::<Arpings>();
    let mut state = state.borrow_mut();
    let heard = *state.running.get(&sw_if).filter(|heard| heard.session == session)?;
    state.running.remove(&sw_if);
    if state.asked.get().contains_key(&sw_if) {
        state.asked.update(c.domain(), |old| {
            let mut new = old.clone();
            new.remove(&sw_if);
            new
        });
    }
    Some(heard)
}

/// A worker's ear for answers, for the node that receives them.
pub struct Ear {
    asked: Arc<Snapshot<Asked>>,
    topic: Topic,
    limit: RateLimit,
}

impl Ear {
    /// Creates it for a node, in its `build` function.
    #[must_use]
    pub fn new(cx: &BuildCx<'_>) -> Ear {
        let (rate, burst) = ANSWERS;
        let limit = RateLimit::steady(rate, burst, clock::hz() as u64);
        Ear { asked: cx.shared(), topic: cx.shared::<Answers>().0, limit }
    }

    /// Reports an answer that is waited for.
    pub fn listen(&mut self, cx: &mut NodeCx<'_>, rx_if: SwIfIndex, ip: IpAddr, mac: MacAddr) {
        if self.asked.load(cx.guard()).get(&rx_if) != Some(&ip) || !self.limit.allow(cx.now()) {
            return;
        }
        let (bytes, end) = encode(ip, mac);
        cx.event(Event::new(self.topic, rx_if, cx.now(), &bytes[..end]));
    }
}

/// A running session. To be polled until it is done, or else cancelled.
pub struct Arping {
    request: Request,
    by: &'static dyn Resolver,
    sent: u32,
    /// Times when the next is due, and when the last was sent.
    next: Option<(Instant, Instant)>,
    /// Answers, at the end.
    heard: Heard,
}

/// Returns the interface if packets can leave by it.
fn usable(c: &Control, sw_if: SwIfIndex) -> Result<InterfaceView, ArpingError> {
    let view = interface::view(c, sw_if)?;
    let why = match () {
        () if !view.ethernet => "not Ethernet",
        () if !view.is_up() => "down",
        () => return Ok(view),
    };
    Err(ArpingError::Unusable(view.name, why))
}

/// Returns whether a session is running on an interface.
pub fn is_running(c: &Control, sw_if: SwIfIndex) -> bool {
    let state = c.state::<Arpings>();
    let state = state.borrow();
    state.running.contains_key(&sw_if) || state.asked.get().contains_key(&sw_if)
}

/// Starts a session.
///
/// # Errors
/// [`ArpingError`]; nothing is sent then.
pub fn start(c: &mut Control, request: Request) -> Result<Arping, ArpingError> {
    let Request { ip, sw_if, gratuitous, .. } = request;
    let view = usable(c, sw_if)?;
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    if ip.is_unspecified() || ip.is_multicast() || is_broadcast || ip.is_loopback() {
        return Err(ArpingError::NoHost(ip));
    }
    let by = resolver(c, ip)?;
    if !gratuitous && !by.can_ask(c, sw_if, ip) {
        return Err(ArpingError::NoSource(view.name, by.family()));
    }
    let state = c.state::<Arpings>();
    let mut state = state.borrow_mut();
    if state.running.contains_key(&sw_if) {
        return Err(ArpingError::Running(view.name));
    }
    state.sessions += 1;
    let heard = Heard { session: state.sessions, ..Heard::default() };
    state.running.insert(sw_if, heard);
    if !gratuitous {
        state.asked.update(c.domain(), |old| {
            let mut new = old.clone();
            new.insert(sw_if, ip);
            new
        });
    }
    Ok(Arping { request, by, sent: 0, next: None, heard })
}

impl Arping {
    /// Answers, and the sender of the last one.
    pub fn answers(&self) -> (u32, MacAddr) {
        (self.heard.replies, self.heard.mac)
    }

    fn send(&mut self, c: &mut Control, out: &mut Output) -> Result<(), ArpingError> {
        let Request { ip, sw_if, gratuitous, .. } = self.request;
        let view = usable(c, sw_if)?;
        if gratuitous {
            self.by.announce_one(c, &view, ip);
        } else if self.by.can_ask(c, sw_if, ip) {
            self.by.ask(c, &view, ip, None);
        } else {
            return Err(ArpingError::NoSource(view.name, self.by.family()));
        }
        let word = match (ip, gratuitous) {
            (IpAddr::V4(_), false) => "ARP Request",
            (IpAddr::V4(_), true) => "GARP",
            (IpAddr::V6(_), false) => "Neighbor Solicitation",
            (IpAddr::V6(_), true) => "Unsolicited Neighbor Advertisement",
        };
        self.sent += 1;
        out.line(format_args!("Sending {} {word} to {ip}", self.sent));
        Ok(())
    }

    /// Sends what is due; returns when to look again, or `None` at the end.
    fn step(
        &mut self,
        c: &mut Control,
        now: Instant,
        out: &mut Output,
    ) -> Result<Option<Instant>, ArpingError> {
        let Request { sw_if, gratuitous, repeat, interval, .. } = self.request;
        let view = interface::view(c, sw_if)?;
        let heard = c.state::<Arpings>().borrow().running.get(&sw_if).copied();
        self.heard = heard
            .filter(|heard| heard.session == self.heard.session)
            .ok_or(ArpingError::Unusable(view.name, "another interface now"))?;
        let (mut due, mut last) = self.next.unwrap_or((now, now));
        let mut room = AT_ONCE.0;
        while self.sent < repeat && now >= due && room > 0 {
            self.send(c, out)?;
            room -= 1;
            // Missed requests are not made up for after a long delay.
            due = if interval.is_zero() { now } else { (due + interval).max(now) };
            last = now;
        }
        self.next = Some((due, last));
        if self.sent < repeat {
            return Ok(Some(if room == 0 { now + AT_ONCE.1 } else { due }));
        }
        let is_over = gratuitous || self.heard.replies >= self.sent || now >= last + PATIENCE;
        Ok((!is_over).then_some(now + LOOK))
    }

    fn finish(&mut self, c: &Control, out: &mut Output) {
        let Request { ip, sw_if, gratuitous, .. } = self.request;
        if let Some(heard) = end(c, sw_if, self.heard.session) {
            self.heard = heard;
        }
        let Heard { replies, mac, .. } = self.heard;
        match replies {
            _ if gratuitous => {}
            0 => out.line("Received 0 Reply"),
            n => {
                let what = if ip.is_ipv4() { "ARP Replies" } else { "Neighbor Advertisements" };
                out.line(format_args!("Received {n} {what} from {mac} ({ip})"));
            }
        }
        let mac = (replies > 0).then(|| mac.to_string());
        out.json(json!({ "to": ip, "sent": self.sent, "received": replies, "mac": mac }));
    }
}

impl Task<Control> for Arping {
    fn poll(&mut self, c: &mut Control, now: Instant, out: &mut Output) -> TaskPoll {
        match self.step(c, now, out) {
            Ok(Some(at)) => TaskPoll::At(at),
            Ok(None) => {
                self.finish(c, out);
                TaskPoll::Done
            }
            Err(error) => {
                end(c, self.request.sw_if, self.heard.session);
                TaskPoll::Failed(error.into())
            }
        }
    }

    fn cancel(&mut self, c: &mut Control, out: &mut Output) {
        self.finish(c, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_as_they_are_written() {
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        for ip in ["192.0.2.1", "2001:db8::1"] {
            let ip: IpAddr = ip.parse().unwrap();
            let (bytes, end) = encode(ip, mac);
            assert_eq!(decode(&bytes[..end]), Some((ip, mac)));
        }
        assert_eq!(decode(&[1; 9]), None);
    }
}
