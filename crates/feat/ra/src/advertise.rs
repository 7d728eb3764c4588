//! Times when the router advertises (RFC 4861 section 6.2).

use crate::config::{Config, Ports, Progress, forget_silent};
use crate::packet::{ALL_NODES, Way, advertisement};
use std::time::{Duration, Instant};
use thalweg_device::{InterfaceView, MtuOf, SwIfIndex, interface};
use thalweg_feat_ip6::link_local;
use thalweg_feat_nd::{self as nd, RouterSolicited};
use thalweg_feat_neighbor as neighbor;
use thalweg_graph::{Control, clock};
use thalweg_tables::random::Random;

/// Interval of checks for what is due.
const TICK: Duration = Duration::from_millis(500);
/// Least time between advertisements to all (`MIN_DELAY_BETWEEN_RAS`).
const LEAST: Duration = Duration::from_secs(3);

/// State on the main thread.
struct Dice(Random);

pub(crate) fn init(c: &mut Control) {
    c.insert(Dice(Random::from_system()));
    c.subscribe(|c, asked: &RouterSolicited| solicited(c, *asked));
    c.every(TICK, |c| {
        forget_silent(c);
        tick(c);
        true
    });
}

/// Returns an interface on which an advertisement can be sent, and its source.
fn sender(c: &Control, sw_if: SwIfIndex) -> Option<(InterfaceView, std::net::Ipv6Addr)> {
    let view = interface::view(c, sw_if).ok().filter(InterfaceView::is_up)?;
    let src = link_local::usable(c, sw_if)?;
    Some((view, src))
}

fn change<R>(
    c: &Control,
    sw_if: SwIfIndex,
    f: impl FnOnce(&Config, &mut Progress) -> R,
) -> Option<R> {
    let ports = c.state::<Ports>();
    let mut ports = ports.borrow_mut();
    let port = ports.0.get_mut(&sw_if)?;
    Some(f(&port.config, &mut port.progress))
}

/// Begins again: the first advertisements come in short intervals. Recent answers do not count.
pub(crate) fn restart(c: &mut Control, sw_if: SwIfIndex) {
    let sends = change(c, sw_if, |config, progress| {
        progress.initial_sent = 0;
        progress.last_to_all = None;
        progress.asked = false;
        progress.next = config.send.then(clock::now);
        config.send
    });
    if let Some(sends) = sends {
        nd::set_router(c, sw_if, sends);
    }
}

/// Sends what is due.
fn tick(c: &mut Control) {
    let now = clock::now();
    let due: Vec<SwIfIndex> = {
        let ports = c.state::<Ports>();
        let ports = ports.borrow();
        let is_due = |p: &Progress| match p.next {
            Some(next) => next <= now || p.asked && may_tell_all(p, now),
            // Hosts hear that the router stops.
            None => p.known,
        };
        ports.0.iter().filter(|(_, port)| is_due(&port.progress)).map(|(i, _)| *i).collect()
    };
    for sw_if in due {
        tell_all(c, sw_if, now);
    }
}

fn may_tell_all(p: &Progress, now: Instant) -> bool {
    p.last_to_all.is_none_or(|last| now - last >= LEAST)
}

/// Advertises to all, and says when to do so next.
fn tell_all(c: &mut Control, sw_if: SwIfIndex, now: Instant) {
    let Some((view, src)) = sender(c, sw_if) else {
        // The next try is when the interface comes up.
        change(c, sw_if, |_, p| (p.known, p.asked) = (false, false));
        return;
    };
    let way = Way::group(view.mac, src, ALL_NODES);
    send(c, &view, &way, now);
    let roll = c.state::<Dice>().borrow_mut().0.bits();
    change(c, sw_if, |config, p| {
        p.last_to_all = Some(now);
        p.asked = false;
        p.known = config.send && !config.cease;
        p.next = config.send.then(|| now + pause(config, p, roll));
    });
}

/// Time until the next advertisement to all.
fn pause(config: &Config, p: &mut Progress, roll: u64) -> Duration {
    let (longest, shortest) = config.interval;
    let range = u64::from(longest - shortest.min(longest)) * 1000 + 1;
    let usual = Duration::from_millis(u64::from(shortest) * 1000 + roll % range);
    p.initial_sent = p.initial_sent.saturating_add(1);
    match p.initial_sent < config.initial.0 {
        true => usual.min(Duration::from_secs(config.initial.1.into())),
        false => usual,
    }
}

fn send(c: &mut Control, view: &InterfaceView, way: &Way, now: Instant) {
    let mtu = view.mtu.of(MtuOf::Ip6);
    let frame = change(c, view.sw_if, |config, p| {
        p.sent = p.sent.wrapping_add(1);
        p.last = Some(now);
        advertisement(way, config, mtu, config.cease || !config.send, now)
    });
    if let Some(frame) = frame {
        neighbor::send(c, view, &frame);
    }
}

/// Answers a host.
fn solicited(c: &mut Control, asked: RouterSolicited) {
    let RouterSolicited { sw_if, src, mac } = asked;
    let now = clock::now();
    let answer = change(c, sw_if, |config, p| {
        if !config.send {
            return None;
        }
        p.solicited = p.solicited.wrapping_add(1);
        let alone = config.unicast && !src.is_unspecified();
        let last = if alone { p.last } else { p.last_to_all };
        if last.is_some_and(|last| now - last < LEAST) {
            // The next one to all is for this host, too.
            p.dropped = p.dropped.wrapping_add(1);
            p.asked = true;
            return None;
        }
        Some(alone)
    });
    let (Some(Some(alone)), Some((view, own))) = (answer, sender(c, sw_if)) else { return };
    if alone {
        send(c, &view, &Way { mac: view.mac, src: own, dst: src, dst_mac: mac }, now);
    } else {
        // VPP does the same: to all by its address, to the host by its MAC address.
        let dst_mac = if src.is_unspecified() { None } else { Some(mac) };
        let way = Way::group(view.mac, own, ALL_NODES);
        let way = Way { dst_mac: dst_mac.unwrap_or(way.dst_mac), ..way };
        send(c, &view, &way, now);
        change(c, sw_if, |_, p| p.last_to_all = Some(now));
    }
}
