//! Reports of the senders that a worker sees, limited to protect the main thread from a flood.

use crate::awaited::Awaited;
use crate::messages::{NeighborReport, Origin, ReportKind, ResetReports, Topics};
use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;
use thalweg_device::{MacAddr, SwIfIndex};
use thalweg_graph::{BuildCx, Event, NodeCx, Topic, clock};
use thalweg_tables::hash::{mix128, random_seed};
use thalweg_tables::limit::{RateLimit, Shares};

/// Allows `rate` events per second and bursts of `burst`.
fn bucket(rate: u32, burst: u32) -> RateLimit {
    RateLimit::steady(rate, burst, clock::hz() as u64)
}

/// The fate of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reported {
    /// The report is on its way.
    Sent,
    /// The same was reported within the last second.
    Known,
    /// The limit of requests was reached.
    Throttled,
    /// The main thread does not take more.
    Busy,
}

/// Reports senders from one node of a worker to the main thread.
pub struct Reporter {
    topic: Topic,
    recent: Recent,
    awaited: Arc<Awaited>,
    requests: Shares,
    replies: Shares,
    answers: Shares,
    /// Limit of what is not awaited, of all interfaces.
    unasked: RateLimit,
    conflicts: RateLimit,
}

impl Reporter {
    /// Makes a reporter, in the node's `build` function.
    pub fn new(cx: &BuildCx<'_>) -> Reporter {
        Reporter {
            topic: cx.shared::<Topics>().reports,
            recent: Recent::new(),
            awaited: cx.shared(),
            // Any host may send requests, and replies that nobody has asked for. They do not
            // compete with the answers that are waited for, without which neighbours would be lost,
            // nor with what hosts of other interfaces say.
            requests: Shares::of(&bucket(5000, 512)),
            replies: Shares::of(&bucket(5000, 512)),
            answers: Shares::of(&bucket(5000, 512)),
            unasked: bucket(20_000, 2048),
            conflicts: bucket(1, 1),
        }
    }

    /// Reports a sender, unless just reported or rate limited.
    pub fn sender(
        &mut self,
        cx: &mut NodeCx<'_>,
        rx_if: SwIfIndex,
        (ip, mac): (IpAddr, MacAddr),
        origin: Origin,
    ) -> Reported {
        let (kind, now) = (ReportKind::Sender(origin), cx.now());
        let report = NeighborReport { kind, mac, ip };
        if self.recent.knows(rx_if, &report, now) {
            return Reported::Known;
        }
        let is_awaited = origin != Origin::Request && self.awaited.knows(rx_if, ip, now);
        let bucket = match origin {
            _ if is_awaited => &mut self.answers,
            Origin::Reply => &mut self.replies,
            _ => &mut self.requests,
        };
        let allowed = bucket.allow(rx_if.get(), now) && (is_awaited || self.unasked.allow(now));
        if !allowed {
            Reported::Throttled
        } else if cx.event(Event::new(self.topic, rx_if, now, &report.encode())) {
            self.recent.note(rx_if, &report, now);
            Reported::Sent
        } else {
            Reported::Busy
        }
    }

    /// Reports a host that uses one of our addresses, at most once a second.
    pub fn conflict(
        &mut self,
        cx: &mut NodeCx<'_>,
        rx_if: SwIfIndex,
        (ip, mac): (IpAddr, MacAddr),
    ) {
        if self.conflicts.allow(cx.now()) {
            let report = NeighborReport { kind: ReportKind::Conflict, mac, ip };
            cx.event(Event::new(self.topic, rx_if, cx.now(), &report.encode()));
        }
    }

    /// Takes a message to the node.
    pub fn message(&mut self, message: &(dyn Any + Send)) {
        if message.is::<ResetReports>() {
            self.recent.reset();
        }
    }
}

/// Rows of [`Recent`].
const ROWS: usize = 1024;

/// Reports of the last second: an unchanged sender is reported once per second.
struct Recent {
    seed: u64,
    second: u64,
    /// Hash of a report and its tick count.
    rows: Box<[(u64, u64); ROWS]>,
}

impl Recent {
    fn new() -> Recent {
        Recent { seed: random_seed(), second: clock::hz() as u64, rows: Box::new([(0, 0); ROWS]) }
    }

    fn hash(&self, sw_if: SwIfIndex, report: &NeighborReport) -> u64 {
        let [a, b, c, d, e, f] = report.mac.octets();
        let (tag, sw_if) = (report.kind.tag(), u64::from(sw_if.get()) << 32);
        match report.ip {
            IpAddr::V4(ip) => {
                let low = u64::from_be_bytes([tag, 0, a, b, c, d, e, f]);
                mix128(self.seed, low, sw_if | u64::from(ip.to_bits()))
            }
            IpAddr::V6(ip) => {
                let low = u64::from_be_bytes([tag, 1, a, b, c, d, e, f]);
                let bits = ip.to_bits();
                let high = mix128(self.seed, (bits >> 64) as u64, bits as u64);
                mix128(self.seed, low, sw_if ^ high)
            }
        }
    }

    /// Returns whether the same was reported within the last second.
    fn knows(&self, sw_if: SwIfIndex, report: &NeighborReport, now: u64) -> bool {
        let hash = self.hash(sw_if, report);
        let (seen, at) = self.rows[hash as usize % ROWS];
        seen == hash && now.wrapping_sub(at) < self.second
    }

    fn note(&mut self, sw_if: SwIfIndex, report: &NeighborReport, now: u64) {
        let hash = self.hash(sw_if, report);
        self.rows[hash as usize % ROWS] = (hash, now);
    }

    fn reset(&mut self) {
        self.rows.fill((0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv6Addr;

    #[test]
    fn the_bucket_holds_its_rate() {
        let hz = clock::hz() as u64;
        let mut b = bucket(100, 10);
        let now = 5 * hz;
        assert_eq!((0..50).filter(|_| b.allow(now)).count(), 10);
        let later = (1..=1000).filter(|i| b.allow(now + i * hz / 1000)).count();
        assert!((95..=101).contains(&later), "{later}");
        assert_eq!((0..50).filter(|_| b.allow(now + 60 * hz)).count(), 10);
    }

    #[test]
    fn the_same_sender_is_known_for_a_second() {
        let hz = clock::hz() as u64;
        let mut r = Recent::new();
        let kind = ReportKind::Sender(Origin::Request);
        let a = NeighborReport { kind, mac: MacAddr([2; 6]), ip: [10, 0, 0, 1].into() };
        let moved = NeighborReport { mac: MacAddr([4; 6]), ..a };
        let six = NeighborReport { ip: Ipv6Addr::from_bits(0x0a00_0001).into(), ..a };
        let far = NeighborReport { ip: Ipv6Addr::from_bits(1 << 64 | 0x0a00_0001).into(), ..a };
        let now = 10 * hz;
        assert!(!r.knows(SwIfIndex(1), &a, now));
        r.note(SwIfIndex(1), &a, now);
        assert!(
            r.knows(SwIfIndex(1), &a, now + hz / 2) && !r.knows(SwIfIndex(1), &a, now + 2 * hz)
        );
        assert!(
            !r.knows(SwIfIndex(2), &a, now)
                && !r.knows(SwIfIndex(1), &moved, now)
                && !r.knows(SwIfIndex(1), &six, now)
        );
        r.note(SwIfIndex(1), &six, now);
        assert!(
            r.knows(SwIfIndex(1), &six, now)
                && !r.knows(SwIfIndex(1), &far, now)
                && !r.knows(SwIfIndex(2), &six, now)
        );
        r.reset();
        assert!(!r.knows(SwIfIndex(1), &a, now));
    }
}
