//! Interfaces follow the Linux devices that they are on: link, speed, MTU and MAC address. An
//! interface whose device goes away waits for one of that name, and is attached to it.

use crate::backoff::Backoff;
use crate::{IfInfo, LinkEvent, LinkMonitor, Namespace, NamespaceId};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use thalweg_device::{Device, DeviceCame, Interfaces, MacAddr, SwIfIndex, SystemDevice, interface};
use thalweg_engine::{Absent, absent};
use thalweg_graph::{Control, Remote};
use thalweg_netlink::Link;

/// A namespace, and the index or name of a device in it. The router's own namespace is the default.
type Place<T> = (NamespaceId, T);

/// The condition under which a link is up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkBy {
    /// The device has a carrier.
    #[default]
    Carrier,
    /// The device is administratively up: the router makes its carrier.
    Admin,
}

/// An interface that follows a device.
#[derive(Clone, Copy, Debug)]
struct Follower {
    sw_if: SwIfIndex,
    link: LinkBy,
    /// Number that had begun to follow by then. A list of devices does not describe one that began
    /// after the list was asked for.
    since: u64,
}

/// The devices of all interfaces.
#[derive(Default)]
struct Links {
    by_index: BTreeMap<Place<u32>, Follower>,
    /// Interfaces that wait for their device, by its name.
    waiting: BTreeMap<Place<String>, Follower>,
    /// Names of devices of the router's namespace that interfaces could not be created on, as they
    /// were missing.
    expected: BTreeSet<String>,
    /// Namespaces with a thread that watches them, which ends when this is closed.
    watched: BTreeMap<NamespaceId, Option<OwnedFd>>,
    /// Number of interfaces that have begun to follow a device.
    begun: Arc<AtomicU64>,
}

impl Links {
    fn follow(&mut self, place: Place<u32>, sw_if: SwIfIndex, link: LinkBy) -> Follower {
        let follower =
            Follower { sw_if, link, since: self.begun.fetch_add(1, Ordering::AcqRel) + 1 };
        self.by_index.insert(place, follower);
        follower
    }

    /// Returns the devices of a namespace that a list does not have, which was asked for when this
    /// many had begun to follow theirs.
    fn missing(&self, ns: NamespaceId, all: &[IfInfo], begun: u64) -> Vec<Place<u32>> {
        let is_there = |index: u32| all.iter().any(|info| info.ifindex == index);
        let of_list = self.by_index.iter().filter(|(p, f)| p.0 == ns && f.since <= begun);
        of_list.map(|(place, _)| *place).filter(|p| !is_there(p.1)).collect()
    }
}

/// A report to the main thread.
enum Report {
    Event(LinkEvent),
    /// All existing devices, after events were lost, and the number of followers then.
    All(Vec<IfInfo>, u64),
}

/// Prepares following; for the `init` of each driver that needs it.
pub fn init(c: &mut Control) {
    c.insert(Links::default());
}

/// Makes an interface follow its device, with the carrier, in the router's namespace.
pub fn follow(c: &mut Control, sw_if: SwIfIndex, info: &IfInfo) {
    follow_in(c, sw_if, info, None, LinkBy::Carrier);
}

/// Makes an interface follow its device, in a namespace or the router's own.
pub fn follow_in(
    c: &mut Control,
    sw_if: SwIfIndex,
    info: &IfInfo,
    namespace: Option<&Namespace>,
    link: LinkBy,
) {
    let place = (namespace.map_or(NamespaceId::default(), Namespace::id), info.ifindex);
    let links = c.state::<Links>();
    links.borrow_mut().waiting.retain(|_, f| f.sw_if != sw_if);
    links.borrow_mut().follow(place, sw_if, link);
    watch(c, namespace);
}

/// Most devices that are expected at once.
const MAX_EXPECTED: usize = 4096;

/// Notes that a command fails for lack of a device of this name, and publishes [`DeviceCame`] when
/// one comes, once.
pub fn expect(c: &mut Control, name: &str) {
    absent(c, Absent::Device(name.to_owned()));
    let links = c.state::<Links>();
    let mut links = links.borrow_mut();
    if links.expected.len() < MAX_EXPECTED {
        links.expected.insert(name.to_owned());
    }
    drop(links);
    watch(c, None);
    // The device may have come before it was watched for.
    let is_there = matches!(Link::named(name), Ok(Some(_)));
    if is_there && c.state::<Links>().borrow_mut().expected.remove(name) {
        c.publish(DeviceCame { name: name.to_owned() });
    }
}

/// Ends following, before an interface is deleted.
pub fn forget(c: &Control, sw_if: SwIfIndex) {
    let links = c.state::<Links>();
    let mut links = links.borrow_mut();
    let Links { by_index, waiting, watched, .. } = &mut *links;
    by_index.retain(|_, f| f.sw_if != sw_if);
    waiting.retain(|_, f| f.sw_if != sw_if);
    // A thread keeps its namespace from going.
    let places = || by_index.keys().map(|p| p.0).chain(waiting.keys().map(|p| p.0));
    watched.retain(|ns, _| *ns == NamespaceId::default() || places().any(|used| used == *ns));
}

/// Returns the interfaces whose devices went away, with the names of these.
pub fn away(c: &Control) -> Vec<(SwIfIndex, String)> {
    let links = c.state::<Links>();
    let links = links.borrow();
    links.waiting.iter().map(|((_, name), follower)| (follower.sw_if, name.clone())).collect()
}

/// Returns a device's speed in kbit/s, 0 if unknown.
pub fn kbps(info: &IfInfo) -> u32 {
    info.speed_mbps.unwrap_or(0).saturating_mul(1000)
}

/// Starts the thread that watches the links of a namespace, once.
fn watch(c: &mut Control, namespace: Option<&Namespace>) {
    let id = namespace.map_or(NamespaceId::default(), Namespace::id);
    let links = c.state::<Links>();
    if links.borrow().watched.contains_key(&id) {
        return;
    }
    let begun = links.borrow().begun.clone();
    let watcher = Watcher { id, begun, remote: c.remote() };
    let watched = start(watcher, namespace).inspect_err(|why| {
        tracing::warn!("link changes will not be detected: {why}");
    });
    links.borrow_mut().watched.insert(id, watched.ok().flatten());
}

/// A thread's means to report.
struct Watcher {
    id: NamespaceId,
    begun: Arc<AtomicU64>,
    remote: Remote,
}

/// Starts a thread; returns what ends it, for all but the router's own namespace.
fn start(
    watcher: Watcher,
    namespace: Option<&Namespace>,
) -> Result<Option<OwnedFd>, Box<dyn std::error::Error>> {
    let thread = std::thread::Builder::new().name("links".into());
    let Some(namespace) = namespace else {
        let monitor = LinkMonitor::open()?;
        thread.spawn(move || watcher.watch(monitor, None))?;
        return Ok(None);
    };
    let (until, end) = pipe_with(PipeFlags::CLOEXEC)?;
    let monitor = namespace.run(LinkMonitor::open)??;
    let inside = namespace.try_clone()?;
    thread.spawn(move || {
        // The thread asks for speeds and lists, too.
        let mut backoff = Backoff::default();
        while let Err(e) = inside.enter() {
            if backoff.fail() {
                tracing::error!("links of namespace `{}' are not seen for now: {e}", inside.name());
            }
            if has_ended(&until, &backoff) {
                return;
            }
        }
        watcher.watch(monitor, Some(&until));
    })?;
    Ok(Some(end))
}

/// Waits for the next attempt; returns true if there is none, as the thread's end has come.
fn has_ended(until: &OwnedFd, backoff: &Backoff) -> bool {
    let left = backoff.left().and_then(|left| Timespec::try_from(left).ok());
    let mut fds = [PollFd::new(until, PollFlags::IN)];
    let _ = poll(&mut fds, left.as_ref());
    !fds[0].revents().is_empty()
}

impl Watcher {
    fn watch(&self, mut monitor: LinkMonitor, until: Option<&OwnedFd>) {
        let id = self.id;
        let mut backoff = Backoff::default();
        loop {
            if monitor.has_failed() {
                backoff.fail();
                match until {
                    Some(until) if has_ended(until, &backoff) => return,
                    Some(_) => {}
                    None => std::thread::sleep(backoff.left().unwrap_or_default()),
                }
                let Ok(again) = LinkMonitor::open() else { continue };
                monitor = again;
                let report = self.completed(LinkEvent::Lost);
                if !self.remote.submit(move |c| take(c, id, report)) {
                    return;
                }
            }
            let events: Vec<LinkEvent> = monitor.events().collect();
            for event in events {
                let report = self.completed(event);
                if !self.remote.submit(move |c| take(c, id, report)) {
                    return;
                }
            }
            if monitor.has_failed() {
                continue;
            }
            backoff.succeed();
            let fd = monitor.as_fd();
            let event = PollFd::new(&fd, PollFlags::IN);
            let Some(until) = until else {
                let _ = poll(&mut [event], None);
                continue;
            };
            let mut fds = [event, PollFd::new(until, PollFlags::IN)];
            let _ = poll(&mut fds, None);
            if !fds[1].revents().is_empty() {
                return;
            }
        }
    }

    /// Adds the link speed, which events do not carry; queried here, as drivers are slow.
    fn completed(&self, e: LinkEvent) -> Report {
        let with_speed = |mut info: IfInfo| {
            info.find_speed();
            info
        };
        match e {
            LinkEvent::Changed(info) => Report::Event(LinkEvent::Changed(with_speed(info))),
            LinkEvent::Lost => {
                let begun = self.begun.load(Ordering::Acquire);
                match IfInfo::list() {
                    Ok(all) => Report::All(all.into_iter().map(with_speed).collect(), begun),
                    Err(_) => Report::Event(LinkEvent::Lost),
                }
            }
            gone @ LinkEvent::Gone(_) => Report::Event(gone),
        }
    }
}

fn take(c: &mut Control, ns: NamespaceId, report: Report) {
    match report {
        Report::Event(LinkEvent::Changed(info)) => changed(c, ns, &info),
        Report::Event(LinkEvent::Gone(info)) => {
            let last = described(&info);
            gone(c, (ns, info.ifindex), &last.name, Some(&last));
        }
        Report::Event(LinkEvent::Lost) => {}
        Report::All(all, begun) => {
            let missing = c.state::<Links>().borrow().missing(ns, &all, begun);
            for place in missing {
                let name = name_of(c, place);
                gone(c, place, &name, None);
            }
            all.iter().for_each(|info| changed(c, ns, info));
        }
    }
}

fn described(info: &IfInfo) -> SystemDevice {
    let (name, mac) = (info.name.clone(), MacAddr(info.mac.0));
    SystemDevice { name, mac, mtu: info.mtu, tx_dropped: info.tx_dropped }
}

/// Returns the name of a device that an interface is on, as the driver knows it.
fn name_of(c: &Control, place: Place<u32>) -> String {
    let follower = c.state::<Links>().borrow().by_index.get(&place).copied();
    follower.and_then(|f| device(c, f.sw_if)?.system_device()).unwrap_or_default()
}

fn device(c: &Control, sw_if: SwIfIndex) -> Option<std::rc::Rc<dyn Device>> {
    c.state::<Interfaces>().borrow().device(sw_if)
}

fn changed(c: &mut Control, ns: NamespaceId, info: &IfInfo) {
    let links = c.state::<Links>();
    // One that a TAP of the router has made may be expected as well.
    if ns == NamespaceId::default() && links.borrow_mut().expected.remove(&info.name) {
        c.publish(DeviceCame { name: info.name.clone() });
    }
    let followed = links.borrow().by_index.get(&(ns, info.ifindex)).copied();
    let Some(Follower { sw_if, link, .. }) = followed.or_else(|| attached(c, ns, info)) else {
        return;
    };
    let up = match link {
        LinkBy::Carrier => info.is_running(),
        LinkBy::Admin => info.is_up(),
    };
    if link == LinkBy::Carrier {
        let _ = interface::set_speed(c, sw_if, kbps(info));
    }
    let _ = interface::set_link(c, sw_if, up);
    let Some(device) = device(c, sw_if) else { return };
    // A device gets its queueing discipline when it first comes up.
    let _ = device.set_option("unqueued", info.unqueued);
    if let Some(mtu) = device.system_changed(&described(info)) {
        let _ = interface::follow_link_mtu(c, sw_if, mtu);
    }
    let _ = interface::refresh_caps(c, sw_if);
}

fn gone(c: &mut Control, place: Place<u32>, name: &str, last: Option<&SystemDevice>) {
    let links = c.state::<Links>();
    let Some(follower) = links.borrow_mut().by_index.remove(&place) else { return };
    links.borrow_mut().waiting.insert((place.0, name.to_owned()), follower);
    let sw_if = follower.sw_if;
    let interface = c.interface_name(sw_if);
    tracing::warn!("device {name} went away; {interface} waits for it to come back");
    if let Some(device) = device(c, sw_if) {
        if let Some(last) = last {
            device.system_gone(c, sw_if, last);
        }
        device.detach(c, sw_if);
    }
    let _ = interface::set_link(c, sw_if, false);
}

/// Attaches the interface that waits for a device of this name, if any.
fn attached(c: &mut Control, ns: NamespaceId, info: &IfInfo) -> Option<Follower> {
    let links = c.state::<Links>();
    let key = (ns, info.name.clone());
    let follower = links.borrow().waiting.get(&key).copied()?;
    let sw_if = follower.sw_if;
    let interface = c.interface_name(sw_if);
    // A later change tries again.
    if let Err(e) = device(c, sw_if)?.attach(c, sw_if, &info.name) {
        tracing::warn!("device {} is back, and {interface} cannot use it: {e}", info.name);
        return None;
    }
    tracing::info!("device {} is back; {interface} is attached to it", info.name);
    links.borrow_mut().waiting.remove(&key);
    Some(links.borrow_mut().follow((ns, info.ifindex), sw_if, follower.link))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_nothing_of_devices_that_came_later() {
        let mut links = Links::default();
        let lo = IfInfo::query("lo").unwrap();
        let (here, there) = (NamespaceId::default(), NamespaceId::own());
        links.follow((here, lo.ifindex), SwIfIndex(1), LinkBy::Carrier);
        links.follow((here, 1000), SwIfIndex(2), LinkBy::Carrier);
        links.follow((there, 1001), SwIfIndex(3), LinkBy::Admin);
        let begun = links.begun.load(Ordering::Acquire);
        links.follow((here, 1002), SwIfIndex(4), LinkBy::Admin);
        assert_eq!(links.missing(here, &[lo], begun), [(here, 1000)]);
    }
}
