//! Links of a namespace are kept as ordered, and reported as they are.

use std::cell::Cell;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use thalweg_device_linux::Namespace;
use thalweg_device_linux::mirror::{Change, Mirror, Report, Seen};
use thalweg_netns::{LinkOptions, Netns, veth, wait_until};
use thalweg_testkit::lab_test;

/// Longer than a machine under load takes.
const LONG: Duration = Duration::from_secs(20);

/// A namespace with a link whose other end is up, and its mirror.
struct Lab {
    ns: Netns,
    _other: Netns,
    mirror: Mirror,
    news: Receiver<()>,
    index: u32,
}

impl Lab {
    fn new() -> Result<Lab> {
        let (ns, other) = (Netns::new("twins")?, Netns::new("other")?);
        ns.set_sysctl("net/ipv6/conf/default/disable_ipv6", "0")?;
        let down = LinkOptions { up: false, ..LinkOptions::default() };
        veth((&ns, "twin", &down), (&other, "peer", &LinkOptions::default()))?;
        let index = ns.link("twin")?.index;
        let (send, news) = channel();
        let place = Namespace::open(&ns.path().display().to_string())?;
        let mirror = Mirror::start(Some(&place), move || send.send(()).is_ok())?;
        mirror.watch(index, None);
        Ok(Lab { ns, _other: other, mirror, news, index })
    }

    /// Waits for reports until one is as asked for; returns it.
    fn until(&self, what: &str, is: impl Fn(&Report) -> bool) -> Result<Report> {
        loop {
            self.news.recv_timeout(LONG).with_context(|| format!("{what}: no report"))?;
            let report = self.mirror.take();
            if is(&report) {
                return Ok(report);
            }
        }
    }

    /// Waits until the link is reported as asked for.
    fn until_seen(&self, what: &str, is: impl Fn(&Seen) -> bool) -> Result<Seen> {
        let mut report = self.until(what, |r| r.links.get(&self.index).is_some_and(&is))?;
        report.links.remove(&self.index).context("seen")
    }
}

fn is_up(seen: &Seen) -> bool {
    seen.link.as_ref().is_some_and(|link| link.is_up())
}

fn has(seen: &Seen, address: &str) -> bool {
    seen.addresses.iter().any(|a| a.ip.to_string() == address)
}

lab_test! {
    fn a_link_is_reported_as_it_is_and_as_it_changes() {
        let lab = Lab::new()?;
        let first = lab.until_seen("first", |_| true)?;
        assert_eq!(first.link.as_ref().map(|l| (l.name.as_str(), l.mtu)), Some(("twin", 1500)));
        assert_eq!((first.order, is_up(&first), first.addresses.len()), (0, false, 0));
        lab.ns.ip("link set twin up mtu 1400")?;
        let seen = lab.until_seen("up", |s| is_up(s) && s.link.as_ref().unwrap().mtu == 1400)?;
        ensure!(seen.refused.is_empty(), "{seen:?}");
        lab.ns.ip("address add 192.0.2.1/24 dev twin")?;
        lab.until_seen("address", |s| has(s, "192.0.2.1"))?;
        lab.ns.ip("address delete 192.0.2.1/24 dev twin")?;
        lab.until_seen("no address", |s| !has(s, "192.0.2.1"))?;
        lab.ns.ip("link set twin name other")?;
        lab.until_seen("name", |s| s.link.as_ref().is_some_and(|l| l.name == "other"))?;
        lab.ns.ip("link delete other")?;
        lab.until_seen("gone", |s| s.link.is_none())?;
        Ok(())
    }

    fn orders_are_done_and_come_back_with_their_number() {
        let lab = Lab::new()?;
        let ip6: IpAddr = "2001:db8::1".parse()?;
        let addresses = [(([192, 0, 2, 1].into(), 24), true), ((ip6, 64), true)];
        let change = Change {
            up: Some(true),
            mtu: Some(1300),
            mac: Some([2, 0, 0, 0, 0, 7]),
            addresses: addresses.into(),
            labels: None,
        };
        let number = lab.mirror.order(lab.index, change);
        let seen = lab.until_seen("done", |s| s.order >= number)?;
        let link = seen.link.as_ref().context("a link")?;
        assert_eq!((link.is_up(), link.mtu, link.mac), (true, 1300, Some([2, 0, 0, 0, 0, 7])));
        ensure!(has(&seen, "192.0.2.1") && has(&seen, "2001:db8::1"), "{seen:?}");
        ensure!(seen.refused.is_empty(), "{:?}", seen.refused);
        // Each link's orders in a row come to what the last of each says.
        for round in 0..100_u32 {
            let up = Some(round % 2 == 1);
            lab.mirror.order(lab.index, Change { up, ..Change::default() });
        }
        let mtu = Some(1301);
        let number = lab.mirror.order(lab.index, Change { mtu, ..Change::default() });
        let seen = lab.until_seen("in a row", |s| s.order >= number)?;
        ensure!(is_up(&seen) && seen.link.as_ref().unwrap().mtu == 1301, "{seen:?}");
        Ok(())
    }

    fn a_refusal_is_reported_and_the_rest_is_done() {
        let lab = Lab::new()?;
        let change = Change { up: Some(true), mtu: Some(1 << 30), ..Change::default() };
        let number = lab.mirror.order(lab.index, change);
        let seen = lab.until_seen("done", |s| s.order >= number)?;
        assert_eq!(seen.refused.len(), 1, "{:?}", seen.refused);
        let said = seen.refused[0].to_string();
        ensure!(said.contains("MTU to 1073741824"), "{said}");
        ensure!(is_up(&seen) && lab.mirror.counters().refused == 1, "{seen:?}");
        Ok(())
    }

    fn neighbours_come_and_go() {
        let lab = Lab::new()?;
        lab.ns.ip("link set twin up")?;
        lab.ns.ip("neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 nud permanent dev twin")?;
        let key = (lab.index, [192, 0, 2, 9].into());
        let report = lab.until("neighbour", |r| r.neighbours.contains_key(&key))?;
        let neighbour = report.neighbours[&key].context("a neighbour")?;
        assert_eq!(neighbour.mac, Some([2, 0, 0, 0, 0, 9]));
        ensure!(neighbour.is_valid() && neighbour.is_static(), "{neighbour:?}");
        lab.ns.ip("neighbour delete 192.0.2.9 dev twin")?;
        let gone = |r: &Report| r.neighbours.get(&key).is_some_and(|n| n.is_none_or(|n| !n.is_valid()));
        lab.until("no neighbour", gone)?;
        Ok(())
    }

    /// A neighbour that the kernel has learned gets its new MAC address; one that is written, or
    /// not there, is left alone.
    fn neighbours_move() {
        let lab = Lab::new()?;
        lab.ns.ip("link set twin up")?;
        lab.ns.ip("neighbour add 192.0.2.8 lladdr 02:00:00:00:00:08 nud permanent dev twin")?;
        lab.ns.ip("neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 nud reachable dev twin")?;
        let new = [2, 0, 0, 0, 0, 0x77];
        for n in [7, 8, 9] {
            lab.mirror.move_neighbour(lab.index, [192, 0, 2, n].into(), new);
        }
        let key = (lab.index, [192, 0, 2, 9].into());
        let has_moved = |n: &Option<thalweg_netlink::Neighbour>| {
            n.is_some_and(|n| n.mac == Some(new))
        };
        lab.until("the new address", |r| r.neighbours.get(&key).is_some_and(has_moved))?;
        let shown = lab.ns.ip("neighbour show dev twin")?;
        let is_kept = shown.contains("02:00:00:00:00:08") && !shown.contains("192.0.2.7");
        ensure!(is_kept, "{shown}");
        Ok(())
    }

    /// Reports of a neighbour from before an order are older than the order.
    fn an_order_takes_back_what_was_reported_of_a_neighbour() {
        let lab = Lab::new()?;
        lab.ns.ip("link set twin up")?;
        for (ip, round) in [("192.0.2.9", 1), ("2001:db8::9", 2)] {
            let key = (lab.index, ip.parse()?);
            lab.ns.ip(&format!("neighbour add {ip} lladdr 02:00:00:00:00:09 nud reachable dev twin"))?;
            lab.until("neighbour", |r| r.neighbours.contains_key(&key))?;
            let before = lab.mirror.counters().notices;
            lab.ns.ip(&format!("neighbour change {ip} lladdr 02:00:00:00:00:0a nud stale dev twin"))?;
            wait_until(LONG, "the notice", || (lab.mirror.counters().notices > before).then_some(()))?;
            let new = [2, 0, 0, 0, 0, 0x70 + round];
            lab.mirror.move_neighbour(lab.index, key.1, new);
            let mac = |r: &Report| r.neighbours.get(&key).map(|n| n.and_then(|n| n.mac));
            let at_once = mac(&lab.mirror.take());
            ensure!(at_once.is_none_or(|mac| mac == Some(new)), "{at_once:?}");
            // One that has it is reported again, too.
            lab.mirror.move_neighbour(lab.index, key.1, new);
            lab.until("the new address", |r| mac(r) == Some(Some(new)))?;
            // So is one that is written, and stays.
            lab.ns.ip(&format!("neighbour replace {ip} lladdr 02:00:00:00:00:0b nud permanent dev twin"))?;
            let before = lab.mirror.counters().notices;
            lab.mirror.move_neighbour(lab.index, key.1, new);
            lab.until("as it is", |r| mac(r) == Some(Some([2, 0, 0, 0, 0, 0x0b])))?;
            ensure!(lab.mirror.counters().notices >= before);
        }
        Ok(())
    }

    /// Notices beyond the kernel's buffer are lost; the present state is reported then.
    fn a_burst_of_changes_ends_in_what_there_is() {
        let lab = Lab::new()?;
        lab.ns.ip("link set twin up")?;
        let lines: Vec<String> = (0..4000_u32)
            .map(|n| {
                let (ip, verb) = (n / 2 % 250 + 1, ["add", "delete"][n as usize % 2]);
                format!("address {verb} 192.0.2.{ip}/32 dev twin")
            })
            .chain(["address add 198.51.100.1/32 dev twin".to_owned()])
            .collect();
        lab.ns.ip_batch(&lines)?;
        let last = lab.until_seen("the last", |s| has(s, "198.51.100.1"))?;
        assert_eq!(last.addresses.iter().filter(|a| a.ip.is_ipv4()).count(), 1);
        Ok(())
    }

    /// A link's report includes the link below, even if the kernel does not report the link itself.
    fn a_link_follows_the_one_that_it_is_on() {
        let lab = Lab::new()?;
        lab.ns.ip("link add link twin name above type macvlan")?;
        let above = lab.ns.link("above")?.index;
        lab.mirror.watch(above, Some(lab.index));
        let until = |what: &str, is: &dyn Fn(&Seen) -> bool| {
            lab.until(what, |r| r.links.get(&above).is_some_and(is)).map(drop)
        };
        let lower = |s: &Seen| s.lower.map(|l| (l.up, l.was_down, l.mtu));
        until("first", &|s| lower(s) == Some((false, true, 1500)) && s.link.is_some())?;
        lab.ns.ip("link set twin up mtu 1400")?;
        until("up", &|s| s.lower.is_some_and(|l| l.up && l.mtu == 1400))?;
        lab.ns.ip("link set twin down")?;
        lab.ns.ip("link set twin up")?;
        // A report keeps the first of both changes, unless that was taken before the second.
        let has_fallen = Cell::new(false);
        until("down and up", &|s| {
            has_fallen.set(has_fallen.get() || s.lower.is_some_and(|l| l.was_down));
            has_fallen.get() && s.lower.is_some_and(|l| l.up)
        })?;
        lab.ns.ip("link delete above")?;
        until("deleted alone", &|s| s.link.is_none() && s.lower.is_some())?;
        lab.ns.ip("link add link twin name above type macvlan")?;
        let above = lab.ns.link("above")?.index;
        lab.mirror.watch(above, Some(lab.index));
        lab.ns.ip("link delete twin")?;
        let gone = |s: &Seen| s.link.is_none() && s.lower.is_none();
        lab.until("deleted with it", |r| r.links.get(&above).is_some_and(gone))?;
        Ok(())
    }

    /// Notices are lost while their reader is held up; all is asked for then.
    fn what_an_overrun_has_lost_is_asked_for() {
        let mut lab = Lab::new()?;
        let place = Namespace::open(&lab.ns.path().display().to_string())?;
        let ((send, news), (go, may)) = (channel(), channel::<()>());
        let announce = move || {
            // The first report waits; the kernel goes on.
            let _ = may.recv();
            send.send(()).is_ok()
        };
        (lab.mirror, lab.news) = (Mirror::start(Some(&place), announce)?, news);
        lab.mirror.watch(lab.index, None);
        lab.ns.ip("link set twin up")?;
        let changes = |n: usize| {
            let verb = ["add", "delete"][n % 2];
            format!("address {verb} 192.0.2.1/32 dev twin")
        };
        let lines: Vec<String> = (0..60_000).map(changes).collect();
        lab.ns.ip_batch(&lines)?;
        lab.ns.ip("address add 198.51.100.1/32 dev twin")?;
        lab.ns.ip("neighbour add 192.0.2.9 lladdr 02:00:00:00:00:09 nud permanent dev twin")?;
        drop(go);
        let (mut seen, mut listed) = (false, false);
        let key = (lab.index, [192, 0, 2, 9].into());
        while !(seen && listed) {
            lab.news.recv_timeout(LONG).context("no report")?;
            let report = lab.mirror.take();
            seen |= report.links.get(&lab.index).is_some_and(|s| has(s, "198.51.100.1"));
            listed |= report.all_neighbours.contains_key(&lab.index)
                && report.neighbours.contains_key(&key);
        }
        ensure!(lab.mirror.counters().overruns > 0, "{:?}", lab.mirror.counters());
        Ok(())
    }

    fn a_link_that_is_forgotten_is_not_reported() {
        let lab = Lab::new()?;
        lab.until_seen("first", |_| true)?;
        lab.mirror.forget(lab.index);
        lab.mirror.order(lab.index, Change { up: Some(true), ..Change::default() });
        lab.ns.ip("link set twin mtu 1400")?;
        lab.mirror.watch(lab.index, None);
        let seen = lab.until_seen("again", |_| true)?;
        ensure!(!is_up(&seen) && seen.link.as_ref().unwrap().mtu == 1400, "{seen:?}");
        Ok(())
    }
}
