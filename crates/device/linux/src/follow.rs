//! Interfaces follow the Linux devices that they are on: link, speed, MTU and MAC address. An
//! interface whose device goes away waits for one of that name, and is attached to it.

use crate::{IfInfo, LinkEvent, LinkMonitor};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd;
use thalweg_device::{Device, DeviceCame, Interfaces, MacAddr, SwIfIndex, SystemDevice, interface};
use thalweg_graph::{Control, Remote};

/// The devices of all interfaces.
#[derive(Default)]
struct Links {
    by_index: BTreeMap<u32, SwIfIndex>,
    /// Interfaces that wait for their device, by its name.
    waiting: BTreeMap<String, SwIfIndex>,
    /// Names of devices that interfaces could not be created on, as they were missing.
    expected: BTreeSet<String>,
    watching: bool,
}

/// A report to the main thread.
enum Report {
    Event(LinkEvent),
    /// All devices that there are, after events were lost.
    All(Vec<IfInfo>),
}

/// Prepares following; for the `init` of each driver that needs it.
pub fn init(c: &mut Control) {
    c.insert(Links::default());
}

/// Has an interface follow its device.
pub fn follow(c: &mut Control, sw_if: SwIfIndex, info: &IfInfo) {
    c.state::<Links>().borrow_mut().by_index.insert(info.ifindex, sw_if);
    watch(c);
}

/// Most devices that are expected at once.
const MAX_EXPECTED: usize = 4096;

/// Has [`DeviceCame`] published when a device of this name comes, once.
pub fn expect(c: &mut Control, name: &str) {
    let links = c.state::<Links>();
    let mut links = links.borrow_mut();
    if links.expected.len() < MAX_EXPECTED {
        links.expected.insert(name.to_owned());
    }
    drop(links);
    watch(c);
}

/// Ends following, before an interface is deleted.
pub fn forget(c: &Control, sw_if: SwIfIndex) {
    let links = c.state::<Links>();
    links.borrow_mut().by_index.retain(|_, i| *i != sw_if);
    links.borrow_mut().waiting.retain(|_, i| *i != sw_if);
}

/// Returns a device's speed in kbit/s, 0 if unknown.
pub fn kbps(info: &IfInfo) -> u32 {
    info.speed_mbps.unwrap_or(0).saturating_mul(1000)
}

/// Starts the thread that watches links, once.
fn watch(c: &mut Control) {
    let links = c.state::<Links>();
    if std::mem::replace(&mut links.borrow_mut().watching, true) {
        return;
    }
    let unseen = |why: &dyn std::fmt::Display| {
        tracing::warn!("link changes will not be detected: {why}");
    };
    let monitor = match LinkMonitor::open() {
        Ok(m) => m,
        Err(e) => return unseen(&e),
    };
    let remote = c.remote();
    let watch = move || watch_links(monitor, &remote);
    if let Err(e) = std::thread::Builder::new().name("links".into()).spawn(watch) {
        unseen(&e);
    }
}

fn watch_links(mut monitor: LinkMonitor, remote: &Remote) {
    loop {
        let events: Vec<LinkEvent> = monitor.events().collect();
        for report in events.into_iter().map(completed) {
            if !remote.submit(move |c| take(c, report)) {
                return;
            }
        }
        let fd = monitor.as_fd();
        let mut fds = [rustix::event::PollFd::new(&fd, rustix::event::PollFlags::IN)];
        let _ = rustix::event::poll(&mut fds, None);
    }
}

/// Adds the link speed, which events do not carry; queried here, as drivers are slow.
fn completed(e: LinkEvent) -> Report {
    let with_speed = |mut info: IfInfo| {
        info.find_speed();
        info
    };
    match e {
        LinkEvent::Changed(info) => Report::Event(LinkEvent::Changed(with_speed(info))),
        LinkEvent::Lost => match IfInfo::list() {
            Ok(all) => Report::All(all.into_iter().map(with_speed).collect()),
            Err(_) => Report::Event(LinkEvent::Lost),
        },
        gone @ LinkEvent::Gone { .. } => Report::Event(gone),
    }
}

fn take(c: &mut Control, report: Report) {
    match report {
        Report::Event(LinkEvent::Changed(info)) => changed(c, &info),
        Report::Event(LinkEvent::Gone { ifindex, name }) => gone(c, ifindex, &name),
        Report::Event(LinkEvent::Lost) => {}
        Report::All(all) => {
            let known: Vec<u32> = c.state::<Links>().borrow().by_index.keys().copied().collect();
            for index in known.into_iter().filter(|i| !all.iter().any(|info| info.ifindex == *i)) {
                let name = name_of(c, index);
                gone(c, index, &name);
            }
            all.iter().for_each(|info| changed(c, info));
        }
    }
}

/// Returns the name of a device that an interface is on, as the driver knows it.
fn name_of(c: &Control, index: u32) -> String {
    let sw_if = c.state::<Links>().borrow().by_index.get(&index).copied();
    sw_if.and_then(|i| device(c, i)?.system_device()).unwrap_or_default()
}

fn device(c: &Control, sw_if: SwIfIndex) -> Option<std::rc::Rc<dyn Device>> {
    c.state::<Interfaces>().borrow().device(sw_if)
}

fn changed(c: &mut Control, info: &IfInfo) {
    let links = c.state::<Links>();
    let followed = links.borrow().by_index.get(&info.ifindex).copied();
    let Some(sw_if) = followed.or_else(|| attached(c, info)) else {
        if links.borrow_mut().expected.remove(&info.name) {
            c.publish(DeviceCame { name: info.name.clone() });
        }
        return;
    };
    let _ = interface::set_speed(c, sw_if, kbps(info));
    let _ = interface::set_link(c, sw_if, info.is_running());
    let Some(device) = device(c, sw_if) else { return };
    // A device gets its queueing discipline when it first comes up.
    let _ = device.set_option("unqueued", info.unqueued);
    let (name, mac, mtu) = (info.name.clone(), info.mac.0, info.mtu);
    let mtu = device.system_changed(&SystemDevice { name, mac: MacAddr(mac), mtu });
    if let Some(mtu) = mtu {
        let _ = interface::follow_link_mtu(c, sw_if, mtu);
    }
    let _ = interface::refresh_caps(c, sw_if);
}

fn gone(c: &mut Control, index: u32, name: &str) {
    let links = c.state::<Links>();
    let Some(sw_if) = links.borrow_mut().by_index.remove(&index) else { return };
    links.borrow_mut().waiting.insert(name.to_owned(), sw_if);
    let interface = c.interface_name(sw_if);
    tracing::warn!("device {name} went away; {interface} waits for it to come back");
    if let Some(device) = device(c, sw_if) {
        device.detach(c, sw_if);
    }
    let _ = interface::set_link(c, sw_if, false);
}

/// Attaches the interface that waits for a device of this name, if any.
fn attached(c: &mut Control, info: &IfInfo) -> Option<SwIfIndex> {
    let links = c.state::<Links>();
    let sw_if = links.borrow().waiting.get(&info.name).copied()?;
    let interface = c.interface_name(sw_if);
    // A later change tries again.
    if let Err(e) = device(c, sw_if)?.attach(c, sw_if, &info.name) {
        tracing::warn!("device {} is back, and {interface} cannot use it: {e}", info.name);
        return None;
    }
    tracing::info!("device {} is back; {interface} is attached to it", info.name);
    links.borrow_mut().waiting.remove(&info.name);
    links.borrow_mut().by_index.insert(info.ifindex, sw_if);
    Some(sw_if)
}
