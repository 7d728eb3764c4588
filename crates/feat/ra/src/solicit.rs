//! The router's own solicitations of other routers (RFC 4861 section 6.3.7, with the intervals of
//! RFC 7559).

use crate::config::{RaError, usable};
use crate::packet::{ALL_ROUTERS, Way, solicitation};
use std::collections::BTreeMap;
use std::net::Ipv6Addr;
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceEvent, InterfaceView, SwIfIndex, interface};
use thalweg_feat_ip6::link_local;
use thalweg_feat_nd::RouterHeard;
use thalweg_feat_neighbor as neighbor;
use thalweg_graph::{Control, clock};
use thalweg_tables::random::Random;

/// Intervals and ends in seconds, as in RFC 8415 section 15; 0 for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// First interval.
    pub first: u32,
    /// Longest interval.
    pub longest: u32,
    /// Most solicitations.
    pub count: u32,
    /// Longest time for all.
    pub time: u32,
}

impl Default for Pace {
    /// RFC 7559 section 2.
    fn default() -> Self {
        Pace { first: 4, longest: 3600, count: 0, time: 0 }
    }
}

struct Asking {
    pace: Pace,
    began: Instant,
    interval: Duration,
    sent: u32,
    next: Instant,
}

/// State on the main thread.
struct All {
    asking: BTreeMap<SwIfIndex, Asking>,
    dice: Random,
}

/// Interval of checks for what is due.
const TICK: Duration = Duration::from_millis(500);

pub(crate) fn init(c: &mut Control) {
    c.insert(All { asking: BTreeMap::new(), dice: Random::from_system() });
    c.subscribe(|c, event: &InterfaceEvent| {
        if let InterfaceEvent::Deleted(i) = *event {
            stop(c, i);
        }
    });
    c.subscribe(|c, heard: &RouterHeard| {
        if heard.lifetime > 0 {
            stop(c, heard.sw_if);
        }
    });
    c.every(TICK, |c| {
        tick(c);
        true
    });
}

/// Asks for routers until one advertises itself.
///
/// # Errors
/// If the interface does not speak IPv6, or the first interval is 0.
pub fn start(c: &mut Control, sw_if: SwIfIndex, pace: Pace) -> Result<(), RaError> {
    usable(c, sw_if)?;
    if pace.first == 0 {
        return Err(RaError::Range("the first interval is at least a second"));
    }
    let now = clock::now();
    let interval = Duration::from_secs(pace.first.into());
    let asking = Asking { pace, began: now, interval, sent: 0, next: now };
    c.state::<All>().borrow_mut().asking.insert(sw_if, asking);
    tick(c);
    Ok(())
}

/// Stops asking.
pub fn stop(c: &mut Control, sw_if: SwIfIndex) {
    c.state::<All>().borrow_mut().asking.remove(&sw_if);
}

/// Asks where it is due.
fn tick(c: &mut Control) {
    let now = clock::now();
    let due: Vec<SwIfIndex> = {
        let all = c.state::<All>();
        let all = &mut all.borrow_mut().asking;
        all.retain(|_, a| {
            let over = a.pace.time != 0 && (now - a.began).as_secs() >= a.pace.time.into();
            !over && (a.pace.count == 0 || a.sent < a.pace.count)
        });
        all.iter().filter(|(_, a)| a.next <= now).map(|(i, _)| *i).collect()
    };
    for sw_if in due {
        let view = interface::view(c, sw_if).ok().filter(InterfaceView::is_up);
        // Without a link-local address yet, it is asked from none.
        let (Some(view), Some(_)) = (view, link_local::of(c, sw_if)) else { continue };
        let src = link_local::usable(c, sw_if).unwrap_or(Ipv6Addr::UNSPECIFIED);
        neighbor::send(c, &view, &solicitation(&Way::group(view.mac, src, ALL_ROUTERS)));
        let state = c.state::<All>();
        let All { asking, dice } = &mut *state.borrow_mut();
        let Some(a) = asking.get_mut(&sw_if) else { continue };
        // A tenth more or less, so that routers do not hear all hosts at once.
        a.next = now + a.interval * dice.between(90, 110) as u32 / 100;
        a.sent = a.sent.saturating_add(1);
        let longest = match a.pace.longest {
            0 => Duration::MAX,
            longest => Duration::from_secs(longest.into()),
        };
        a.interval = a.interval.saturating_mul(2).min(longest).min(Duration::from_secs(1 << 24));
    }
}
