//! `arping`: asks a link for an address, whatever is known of it, and counts who answers; or
//! announces an address (RFC 5227 section 2.3).

use crate::counters::{ArpCounters, Counted};
use crate::packet;
use crate::resolver;
use serde_json::json;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thalweg_cli::{CliError, Output, Task, TaskPoll};
use thalweg_device::command_line::refused;
use thalweg_device::{DeviceError, InterfaceEvent, InterfaceView, SwIfIndex, interface};
use thalweg_feat_neighbor as neighbor;
use thalweg_graph::{BuildCx, Control, Event, NodeCx, Topic, clock};
use thalweg_tables::limit::RateLimit;
use thalweg_tables::snapshot::{self, Snapshot};
use thalweg_wire::MacAddr;
use thalweg_wire::arp::{ArpRepr, Operation};

/// How long answers to the last request are waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time between looks for answers.
const LOOK: Duration = Duration::from_millis(5);
/// Longest interval between requests.
pub const LONGEST: Duration = Duration::from_secs(86_400);
/// Requests sent at once, and the pause after them.
const AT_ONCE: (u32, Duration) = (64, Duration::from_millis(1));
/// Answers per second and at once that a worker reports.
const ANSWERS: (u32, u32) = (5000, 512);

/// What is asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// The address.
    pub ip: Ipv4Addr,
    /// The interface.
    pub sw_if: SwIfIndex,
    /// Announces the address instead.
    pub gratuitous: bool,
    /// Number of requests.
    pub repeat: u32,
    /// Time between them, up to [`LONGEST`].
    pub interval: Duration,
}

/// Why nothing is sent.
#[derive(Debug, thiserror::Error)]
pub enum ArpingError {
    /// One is running on the interface.
    #[error("arping is in progress on `{0}'; try again when it has ended")]
    Running(String),
    /// The interface is down, or its link layer is not Ethernet.
    #[error("`{0}' is {1}")]
    Unusable(String, &'static str),
    /// There is no address to ask from.
    #[error("`{0}' has no IPv4 address to ask from; `set interface ip address` sets one")]
    NoSource(String),
    /// The address is not that of a host.
    #[error("{0} is not a host's address")]
    NoHost(Ipv4Addr),
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<ArpingError> for CliError {
    fn from(e: ArpingError) -> CliError {
        let code = match e {
            ArpingError::Device(e) => return refused(e),
            ArpingError::Running(_) | ArpingError::NoHost(_) => -7,
            ArpingError::Unusable(..) => -71,
            ArpingError::NoSource(_) => -60,
        };
        CliError::with_code(e, code)
    }
}

/// The address that is asked for on each interface, as workers read them.
type Asked = BTreeMap<SwIfIndex, Ipv4Addr>;

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

/// Takes what a worker has heard.
fn hear(c: &mut Control, event: &Event) {
    let Some(&[a, b, d, e, mac @ ..]) = event.bytes().first_chunk::<10>() else { return };
    let state = c.state::<Arpings>();
    let mut state = state.borrow_mut();
    // An answer to an earlier question does not count.
    if state.asked.get().get(&event.sw_if) != Some(&Ipv4Addr::new(a, b, d, e)) {
        return;
    }
    if let Some(heard) = state.running.get_mut(&event.sw_if) {
        (heard.replies, heard.mac) = (heard.replies.saturating_add(1), MacAddr(mac));
    }
}

/// Ends a session of an interface; returns what it has heard, if it is still there.
fn end(c: &Control, sw_if: SwIfIndex, session: u64) -> Option<Heard> {
    let state = c.state::<Arpings>();
    let mut state = state.borrow_mut();
    let heard = *state.running.get(&sw_if).filter(|heard| heard.session == session)?;
    state.running.remove(&sw_if);
    state.asked.update(c.domain(), |old| {
        let mut new = old.clone();
        new.remove(&sw_if);
        new
    });
    Some(heard)
}

/// A worker's ear for answers.
pub(crate) struct Ear {
    asked: Arc<Snapshot<Asked>>,
    topic: Topic,
    limit: RateLimit,
}

impl Ear {
    pub(crate) fn new(cx: &BuildCx<'_>) -> Ear {
        let (rate, burst) = ANSWERS;
        let limit = RateLimit::steady(rate, burst, clock::hz() as u64);
        Ear { asked: cx.shared(), topic: cx.shared::<Answers>().0, limit }
    }

    /// Reports an answer that is waited for.
    pub(crate) fn listen(&mut self, cx: &mut NodeCx<'_>, rx_if: SwIfIndex, arp: &ArpRepr) {
        if arp.operation != Operation::Reply
            || self.asked.load(cx.guard()).get(&rx_if) != Some(&arp.sender_ip)
            || !self.limit.allow(cx.now())
        {
            return;
        }
        let mut bytes = [0; 10];
        bytes[..4].copy_from_slice(&arp.sender_ip.octets());
        bytes[4..].copy_from_slice(&arp.sender_mac.octets());
        cx.event(Event::new(self.topic, rx_if, cx.now(), &bytes));
    }
}

/// A running session. To be polled until it is done, or else cancelled.
pub struct Arping {
    request: Request,
    sent: u32,
    /// When the next is due, and when the last was sent.
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

/// Starts a session.
///
/// # Errors
/// [`ArpingError`]; nothing is sent then.
pub fn start(c: &mut Control, request: Request) -> Result<Arping, ArpingError> {
    let Request { ip, sw_if, gratuitous, .. } = request;
    let view = usable(c, sw_if)?;
    if ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback() {
        return Err(ArpingError::NoHost(ip));
    }
    let mut heard = Heard::default();
    if !gratuitous {
        if resolver::source_for(c, sw_if, ip).is_none() {
            return Err(ArpingError::NoSource(view.name));
        }
        let state = c.state::<Arpings>();
        let mut state = state.borrow_mut();
        if state.running.contains_key(&sw_if) {
            return Err(ArpingError::Running(view.name));
        }
        state.sessions += 1;
        heard.session = state.sessions;
        state.running.insert(sw_if, heard);
        state.asked.update(c.domain(), |old| {
            let mut new = old.clone();
            new.insert(sw_if, ip);
            new
        });
    }
    Ok(Arping { request, sent: 0, next: None, heard })
}

impl Arping {
    /// Answers, and the sender of the last one.
    pub fn answers(&self) -> (u32, MacAddr) {
        (self.heard.replies, self.heard.mac)
    }

    fn send(&mut self, c: &mut Control, out: &mut Output) -> Result<(), ArpingError> {
        let Request { ip, sw_if, gratuitous, .. } = self.request;
        let view = usable(c, sw_if)?;
        let (frame, counted, word) = if gratuitous {
            (packet::announcement(view.mac, ip), Counted::TxGratuitous, "GARP")
        } else {
            let source = resolver::source_for(c, sw_if, ip)
                .ok_or_else(|| ArpingError::NoSource(view.name.clone()))?;
            (packet::request(view.mac, source, ip, None), Counted::TxRequest, "ARP Request")
        };
        neighbor::send(c, &view, &frame);
        c.shared::<ArpCounters>().count_main(sw_if, counted);
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
        if !gratuitous {
            let view = interface::view(c, sw_if)?;
            let heard = c.state::<Arpings>().borrow().running.get(&sw_if).copied();
            self.heard = heard
                .filter(|heard| heard.session == self.heard.session)
                .ok_or(ArpingError::Unusable(view.name, "another interface now"))?;
        }
        let (mut due, mut last) = self.next.unwrap_or((now, now));
        let mut room = AT_ONCE.0;
        while self.sent < repeat && now >= due && room > 0 {
            self.send(c, out)?;
            room -= 1;
            // After a long delay, missed requests are not made up for.
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
        if !gratuitous && let Some(heard) = end(c, sw_if, self.heard.session) {
            self.heard = heard;
        }
        let Heard { replies, mac, .. } = self.heard;
        match replies {
            _ if gratuitous => {}
            0 => out.line("Received 0 Reply"),
            n => out.line(format_args!("Received {n} ARP Replies from {mac} ({ip})")),
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
                if !self.request.gratuitous {
                    end(c, self.request.sw_if, self.heard.session);
                }
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
    use crate::testing::{Bench, OUR_IP, US, ip, mac};

    fn request(b: &Bench, n: u8, repeat: u32) -> Request {
        let interval = Duration::from_secs(1);
        Request { ip: ip(n), sw_if: b.sw_if, gratuitous: false, repeat, interval }
    }

    #[test]
    fn requests_are_sent_one_by_one_and_replies_counted() {
        let mut b = Bench::new();
        let r = request(&b, 7, 2);
        let mut session = start(&mut b.c, r).unwrap();
        assert!(matches!(start(&mut b.c, r), Err(ArpingError::Running(_))));
        let (now, mut out) = (Instant::now(), Output::new());
        assert!(matches!(session.poll(&mut b.c, now, &mut out), TaskPoll::At(at) if at > now));
        b.settle();
        let asked = [(MacAddr::BROADCAST, ArpRepr::request(US, OUR_IP, ip(7)))];
        assert_eq!(b.sent_arp(), asked);
        // Each reply counts, also the same within a second; others and requests do not.
        b.reply_from(7);
        b.reply_from(7);
        b.reply_from(8);
        b.request_from(7);
        b.sent();
        let later = now + Duration::from_secs(1);
        assert!(matches!(session.poll(&mut b.c, later, &mut out), TaskPoll::Done));
        b.settle();
        assert_eq!(b.sent_arp(), asked);
        assert_eq!(session.answers(), (2, mac(7)));
        // Nothing is waited for now.
        b.reply_from(7);
        assert_eq!(session.answers(), (2, mac(7)));
        assert!(b.c.state::<Arpings>().borrow().asked.get().is_empty());
        assert_eq!(b.known(7), Some(mac(7)), "it is learned as ever");
        b.finish();
    }

    #[test]
    fn silence_ends_a_second_after_the_last_request() {
        let mut b = Bench::new();
        let r = request(&b, 7, 1);
        let mut session = start(&mut b.c, r).unwrap();
        let (now, mut out) = (Instant::now(), Output::new());
        assert!(matches!(session.poll(&mut b.c, now, &mut out), TaskPoll::At(_)));
        let early = now + Duration::from_millis(999);
        assert!(matches!(session.poll(&mut b.c, early, &mut out), TaskPoll::At(_)));
        assert!(matches!(session.poll(&mut b.c, now + PATIENCE, &mut out), TaskPoll::Done));
        assert_eq!(session.answers().0, 0);
        b.finish();
    }

    #[test]
    fn any_number_is_sent_in_slices() {
        let mut b = Bench::new();
        let r = Request { interval: Duration::ZERO, ..request(&b, 7, u32::MAX) };
        let mut session = start(&mut b.c, r).unwrap();
        let (now, mut out) = (Instant::now(), Output::new());
        assert!(matches!(session.poll(&mut b.c, now, &mut out), TaskPoll::At(at) if at > now));
        b.settle();
        assert_eq!(b.sent_arp().len(), AT_ONCE.0 as usize);
        session.cancel(&mut b.c, &mut out);
        assert!(b.c.state::<Arpings>().borrow().running.is_empty());
        b.finish();
    }

    #[test]
    fn announcements_need_no_address_and_wait_for_nothing() {
        let mut b = Bench::new();
        crate::set_addresses(&mut b.c, b.sw_if, &[]);
        let r = Request { gratuitous: true, ..request(&b, 9, 1) };
        let mut session = start(&mut b.c, r).unwrap();
        let (now, mut out) = (Instant::now(), Output::new());
        assert!(matches!(session.poll(&mut b.c, now, &mut out), TaskPoll::Done));
        b.settle();
        assert_eq!(b.sent_arp(), [(MacAddr::BROADCAST, ArpRepr::request(US, ip(9), ip(9)))]);
        let r = request(&b, 9, 1);
        assert!(matches!(start(&mut b.c, r), Err(ArpingError::NoSource(_))));
        b.finish();
    }

    #[test]
    fn a_session_leaves_that_of_the_next_interface_alone() {
        let mut b = Bench::new();
        let r = request(&b, 7, 2);
        let (now, mut out) = (Instant::now(), Output::new());
        let mut old = start(&mut b.c, r).unwrap();
        b.c.publish(InterfaceEvent::Deleted(r.sw_if));
        crate::set_addresses(&mut b.c, r.sw_if, &[(OUR_IP, 24)]);
        let mut new = start(&mut b.c, r).unwrap();
        assert!(matches!(old.poll(&mut b.c, now, &mut out), TaskPoll::Failed(_)));
        old.cancel(&mut b.c, &mut out);
        assert!(matches!(new.poll(&mut b.c, now, &mut out), TaskPoll::At(_)));
        new.cancel(&mut b.c, &mut out);
        assert!(b.c.state::<Arpings>().borrow().running.is_empty());
        b.finish();
    }

    #[test]
    fn a_session_fails_with_its_interface() {
        let mut b = Bench::new();
        let r = request(&b, 7, 3);
        let mut session = start(&mut b.c, r).unwrap();
        let (now, mut out) = (Instant::now(), Output::new());
        assert!(matches!(session.poll(&mut b.c, now, &mut out), TaskPoll::At(_)));
        interface::set_admin(&mut b.c, r.sw_if, false).unwrap();
        let next = session.poll(&mut b.c, now + r.interval, &mut out);
        assert!(matches!(next, TaskPoll::Failed(_)));
        assert!(matches!(start(&mut b.c, r), Err(ArpingError::Unusable(..))));
        assert!(b.c.state::<Arpings>().borrow().running.is_empty());
        for bad in ["0.0.0.0", "224.0.0.1", "255.255.255.255", "127.0.0.1"] {
            interface::set_admin(&mut b.c, r.sw_if, true).unwrap();
            let r = Request { ip: bad.parse().unwrap(), gratuitous: true, ..r };
            assert!(matches!(start(&mut b.c, r), Err(ArpingError::NoHost(_))));
        }
        b.finish();
    }
}
