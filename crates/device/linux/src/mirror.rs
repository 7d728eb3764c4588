//! Links of a namespace, kept as they are wanted and reported as they are: the means by which a
//! router and Linux follow each other.
//!
//! A thread in the namespace does both, one after the other. The thread takes *orders*, which
//! change a link, and listens to the kernel. Each link that either concerns is then looked at, and
//! reported whole, with the number of the last order that the link has seen done. Notices only
//! say where to look: a change that is no longer true is never reported, and a router's own change
//! comes back as what it ordered. A report from before the last order says nothing about what that
//! changes.
//!
//! Neighbours may be very many: notices of them are reported as they are, once none waits behind
//! them. An order for a neighbour takes back what was reported about it before, and its entry is
//! looked at after the order.

mod neighbours;
mod stuck;
#[cfg(test)]
mod tests;

use crate::backoff::Backoff;
use crate::{Namespace, NamespaceError};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{Mode, OFlags, open};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use stuck::Stuck;
use thalweg_netlink::label::LabelInput;
use thalweg_netlink::{
    Group, Link, LinkAddress, LinkSettings, Neighbour, Notice, Notices, Port, Protocol,
    add_address, delete_address,
};

/// Bytes of notices that may wait in the kernel; a notice of a link takes about 2 KiB.
const WAITING_BYTES: usize = 8 << 20;
/// Number of links to look at above which all addresses are asked for at once.
const FEW_LINKS: usize = 8;
/// Most notices that are taken before links are looked at.
const MAX_NOTICES: usize = 65_536;
/// Time after which a kernel that has not answered is asked again.
const RETRY: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// Most changes of neighbours that wait to be taken. Beyond, all are listed again.
const MAX_NEIGHBOURS: usize = 65_536;

const EEXIST: i32 = 17;
const ENODEV: i32 = 19;
const EADDRNOTAVAIL: i32 = 99;

/// A neighbour: the index of its link, and its address.
type NeighbourKey = (u32, IpAddr);

/// Changes of a link; what is not named stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Administrative state.
    pub up: Option<bool>,
    /// MTU in bytes.
    pub mtu: Option<u32>,
    /// MAC address.
    pub mac: Option<[u8; 6]>,
    /// Labelled packets are taken.
    pub labels: Option<bool>,
    /// Addresses and lengths of their prefixes: there, or not.
    pub addresses: BTreeMap<(IpAddr, u8), bool>,
}

impl Change {
    /// Adds a later change, which wins.
    pub fn merge(&mut self, later: Change) {
        self.up = later.up.or(self.up);
        self.mtu = later.mtu.or(self.mtu);
        self.mac = later.mac.or(self.mac);
        self.labels = later.labels.or(self.labels);
        self.addresses.extend(later.addresses);
    }

    /// Returns whether another change is part of this one.
    #[must_use]
    pub fn includes(&self, part: &Change) -> bool {
        fn is<T: PartialEq>(all: Option<T>, part: Option<T>) -> bool {
            part.is_none() || all == part
        }
        let mut addresses = part.addresses.iter();
        is(self.up, part.up)
            && is(self.mtu, part.mtu)
            && is(self.mac, part.mac)
            && is(self.labels, part.labels)
            && addresses.all(|(address, there)| self.addresses.get(address) == Some(there))
    }
}

/// A change that the kernel refused.
#[derive(Debug)]
pub struct Refusal {
    /// The change: one of those that there can be.
    pub change: Change,
    /// The kernel's reason.
    pub why: io::Error,
}

impl fmt::Display for Refusal {
    /// Describes the attempt, such as `set its MTU to 9000`, and the reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Change { up, mtu, mac, labels, addresses } = &self.change;
        match (up, mtu, mac, labels, addresses.first_key_value()) {
            (Some(true), ..) => write!(f, "bring it up"),
            (Some(false), ..) => write!(f, "bring it down"),
            (_, Some(mtu), ..) => write!(f, "set its MTU to {mtu}"),
            (_, _, Some(_), ..) => write!(f, "set its MAC address"),
            (.., Some(true), _) => write!(f, "take labelled packets"),
            (.., Some(false), _) => write!(f, "drop labelled packets"),
            (.., Some(((ip, length), true))) => write!(f, "add address {ip}/{length}"),
            (.., Some(((ip, length), false))) => write!(f, "delete address {ip}/{length}"),
            (.., None) => write!(f, "change it"),
        }?;
        write!(f, ": {}", self.why)
    }
}

/// The link that another one is on, which follows it in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lower {
    /// Administrative state.
    pub up: bool,
    /// True if the link was down at some time since the last report.
    pub was_down: bool,
    /// MTU in bytes.
    pub mtu: u32,
}

/// Link as in the kernel.
#[derive(Debug, Default)]
pub struct Seen {
    /// Number of the last order, of any link, that was done before the kernel was asked, or 0.
    pub order: u64,
    /// The link; `None` if there is none.
    pub link: Option<Link>,
    /// Its addresses, sorted.
    pub addresses: Vec<LinkAddress>,
    /// Routing table of the VRF that it is a member of.
    pub vrf: Option<u32>,
    /// Labelled packets are taken; `None` if the kernel knows none.
    pub labels: Option<bool>,
    /// The link that it is on; `None` if it is on none, or that is gone.
    pub lower: Option<Lower>,
    /// True if the link was down at some time since the last report: the kernel then takes IPv6
    /// addresses away.
    pub was_down: bool,
    /// Changes of orders since the last report that the kernel refused.
    pub refused: Vec<Refusal>,
}

/// All that was seen since the last time.
#[derive(Debug, Default)]
pub struct Report {
    /// Links, by index.
    pub links: BTreeMap<u32, Seen>,
    /// VLAN and MACVLAN links on links that are watched, by index: as they are, or `None` for one
    /// that is gone.
    pub above: BTreeMap<u32, Option<Link>>,
    /// Neighbours: as they are, or `None` for one that went away.
    pub neighbours: BTreeMap<(u32, IpAddr), Option<Neighbour>>,
    /// Links of which all neighbours were listed, as changes were lost, with what there is: others
    /// are gone.
    pub all_neighbours: BTreeMap<u32, BTreeSet<IpAddr>>,
}

/// Counters of a mirror.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MirrorCounters {
    /// Notices of the kernel.
    pub notices: u64,
    /// Times that the kernel had more notices than its buffer holds; all was asked for then.
    pub overruns: u64,
    /// Times that a link was looked at.
    pub looks: u64,
    /// Orders done.
    pub orders: u64,
    /// Changes that the kernel refused.
    pub refused: u64,
}

/// State that both threads have.
#[derive(Debug, Default)]
struct Shared {
    /// Links to report, and the link of the namespace that each is on.
    watched: BTreeMap<u32, Option<u32>>,
    /// Number of the last order.
    last: u64,
    /// Orders to be done.
    orders: BTreeMap<u32, Change>,
    /// Links to be looked at without an order.
    asked: BTreeSet<u32>,
    /// Links on others that were there before must be looked for.
    unsearched: bool,
    /// Neighbours that have other MAC addresses now.
    moved: BTreeMap<NeighbourKey, [u8; 6]>,
    report: Report,
    /// Something waits to be taken, and its owner knows.
    announced: bool,
    counters: MirrorCounters,
    ended: bool,
    /// The socket has failed, as a test has it.
    #[cfg(test)]
    has_failed: bool,
    /// The kernel refuses to move neighbours, as a test has it.
    #[cfg(test)]
    refuses_moves: bool,
}

#[derive(Debug)]
struct Room {
    shared: Mutex<Shared>,
    wake: OwnedFd,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic leaves the state whole: each change is one assignment.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }
}

/// A thread that keeps and reports links of a namespace. Dropping this ends the thread.
#[derive(Debug)]
pub struct Mirror(Arc<Room>);

impl Mirror {
    /// Starts one in a namespace, or in the calling thread's. `announce` is called from its thread
    /// when there is something to [`take`](Mirror::take), once until that is done; it returns
    /// false to end the thread.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or a system call fails.
    pub fn start(
        namespace: Option<&Namespace>,
        announce: impl Fn() -> bool + Send + 'static,
    ) -> Result<Mirror, MirrorError> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|e| MirrorError::System("make an eventfd", e.into()))?;
        let (notices, port) = sockets(namespace)?;
        let room = Arc::new(Room { shared: Mutex::default(), wake });
        let inside = namespace.map(Namespace::try_clone).transpose();
        let inside = inside.map_err(|e| MirrorError::System("keep a namespace", e))?;
        let worker = Worker {
            room: room.clone(),
            inside,
            notices,
            port,
            done: 0,
            dirty: BTreeSet::new(),
            downs: BTreeSet::new(),
            unlisted: BTreeSet::new(),
            heard: BTreeMap::new(),
            stuck: Stuck::default(),
            unsearched: false,
            backoff: Backoff::default(),
        };
        let thread = std::thread::Builder::new().name("mirror".into());
        let started = thread.spawn(move || worker.run(announce));
        started.map_err(|e| MirrorError::System("start a thread", e))?;
        Ok(Mirror(room))
    }

    /// Starts to report a link, first as it is. `lower` is the link that it is on, as VLAN links
    /// are: the state of that is reported, too.
    pub fn watch(&self, index: u32, lower: Option<u32>) {
        let mut shared = self.0.lock();
        shared.watched.insert(index, lower);
        shared.asked.insert(index);
        drop(shared);
        self.0.wake();
    }

    /// Reports a watched link again.
    pub fn look(&self, index: u32) {
        self.0.lock().asked.insert(index);
        self.0.wake();
    }

    /// Reports VLAN and MACVLAN links that existed before the link below them was watched.
    pub fn search(&self) {
        self.0.lock().unsearched = true;
        self.0.wake();
    }

    /// Stops reporting a link; its orders are not done.
    pub fn forget(&self, index: u32) {
        let mut shared = self.0.lock();
        shared.watched.remove(&index);
        shared.orders.remove(&index);
        shared.asked.remove(&index);
        shared.moved.retain(|(of, _), _| *of != index);
        shared.report.links.remove(&index);
        shared.report.above.remove(&index);
        shared.report.all_neighbours.remove(&index);
        shared.report.neighbours.retain(|(of, _), _| *of != index);
    }

    /// Orders a change of a link that is watched; returns the order's number.
    pub fn order(&self, index: u32, change: Change) -> u64 {
        let mut shared = self.0.lock();
        shared.last += 1;
        let number = shared.last;
        if shared.watched.contains_key(&index) {
            shared.orders.entry(index).or_default().merge(change);
        }
        drop(shared);
        self.0.wake();
        number
    }

    /// Gives a neighbour of a watched link its new MAC address, if the kernel has learned another
    /// one: it would go on to send there until it finds out. A report about the neighbour
    /// is older, and is taken back; the entry that the kernel has then is reported.
    pub fn move_neighbour(&self, index: u32, ip: IpAddr, mac: [u8; 6]) {
        let mut shared = self.0.lock();
        let has_room = shared.moved.len() < MAX_NEIGHBOURS;
        if shared.watched.contains_key(&index) && has_room {
            shared.moved.insert((index, ip), mac);
            shared.report.neighbours.remove(&(index, ip));
            drop(shared);
            self.0.wake();
        }
    }

    /// Takes what was seen since the last time.
    #[must_use]
    pub fn take(&self) -> Report {
        let mut shared = self.0.lock();
        shared.announced = false;
        std::mem::take(&mut shared.report)
    }

    /// Returns its counters.
    #[must_use]
    pub fn counters(&self) -> MirrorCounters {
        self.0.lock().counters
    }
}

impl Drop for Mirror {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.wake();
    }
}

/// A mirror that did not start.
#[derive(Debug, thiserror::Error)]
pub enum MirrorError {
    /// Its namespace.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A system call.
    #[error("cannot {0}")]
    System(&'static str, #[source] io::Error),
}

/// The thread's side.
struct Worker {
    room: Arc<Room>,
    /// The namespace, if it is not the router's own.
    inside: Option<Namespace>,
    notices: Notices,
    port: Port,
    /// Number of the last order that was done.
    done: u64,
    /// Links to be looked at.
    dirty: BTreeSet<u32>,
    /// Links that were down since they were looked at.
    downs: BTreeSet<u32>,
    /// Links whose neighbours wait to be listed.
    unlisted: BTreeSet<u32>,
    /// Neighbours of notices behind which others wait, which may be newer.
    heard: BTreeMap<NeighbourKey, Option<Neighbour>>,
    /// Neighbours that the kernel has not moved yet.
    stuck: Stuck,
    /// Links on others wait to be listed.
    unsearched: bool,
    /// The next attempt to open the sockets, once they have failed.
    backoff: Backoff,
}

/// Opens the sockets of a mirror in a namespace, or in the calling thread's.
fn sockets(namespace: Option<&Namespace>) -> Result<(Notices, Port), MirrorError> {
    let open = || -> io::Result<(Notices, Port)> {
        let groups = [
            Group::Links,
            Group::Neighbours,
            Group::Ip4Addresses,
            Group::Ip6Addresses,
            Group::LabelInputs,
        ];
        let notices = Notices::open(&groups)?;
        notices.set_receive_buffer(WAITING_BYTES);
        let port = Port::open(Protocol::Route)?;
        port.set_strict(true);
        Ok((notices, port))
    };
    let sockets = match namespace {
        Some(namespace) => namespace.run(open)?,
        None => open(),
    };
    sockets.map_err(|e| MirrorError::System("open a netlink socket", e))
}

impl Worker {
    fn run(mut self, announce: impl Fn() -> bool) {
        loop {
            let (orders, moved, ended) = {
                let mut shared = self.room.lock();
                self.dirty.append(&mut shared.asked);
                self.stuck.retain(|index| shared.watched.contains_key(&index));
                self.unsearched |= std::mem::take(&mut shared.unsearched);
                self.done = shared.last;
                let moved = std::mem::take(&mut shared.moved);
                (std::mem::take(&mut shared.orders), moved, shared.ended)
            };
            if ended {
                return;
            }
            self.dirty.extend(orders.keys());
            let refused = self.obey(orders);
            self.move_neighbours(moved);
            let mut all_taken = self.listen();
            if self.has_failed() {
                all_taken = true;
                self.reopen();
            } else if self.backoff.is_due() {
                self.backoff.succeed();
            }
            self.look(refused);
            self.list_neighbours();
            self.list_above();
            if self.has_news() && !announce() {
                return;
            }
            if all_taken {
                self.wait();
            }
        }
    }

    fn has_failed(&self) -> bool {
        #[cfg(test)]
        if self.room.lock().has_failed {
            return true;
        }
        self.notices.have_failed()
    }

    /// Opens the sockets again after they have failed, ever more rarely, and asks for all: it is as
    /// after an overrun.
    fn reopen(&mut self) {
        if self.backoff.left().is_none() {
            self.backoff.fail();
        }
        if !self.backoff.is_due() {
            return;
        }
        match sockets(self.inside.as_ref()) {
            Ok((notices, port)) => {
                (self.notices, self.port) = (notices, port);
                // One that fails at once is not opened again at once.
                self.backoff.fail();
                let mut shared = self.room.lock();
                shared.counters.overruns += 1;
                self.dirty.extend(shared.watched.keys());
                self.unlisted.extend(shared.watched.keys());
                self.unsearched = true;
                tracing::info!("the kernel's changes are seen again");
            }
            Err(_) => _ = self.backoff.fail(),
        }
    }

    /// Waits for a notice or an order, and not for long if the kernel has not answered.
    fn wait(&self) {
        let (notices, wake) = (self.notices.as_fd(), self.room.wake.as_fd());
        let mut fds = [PollFd::new(&wake, PollFlags::IN), PollFd::new(&notices, PollFlags::IN)];
        // A socket that has failed is ready at once.
        let listened_to = if self.has_failed() { 1 } else { 2 };
        let answered = self.dirty.is_empty() && self.unlisted.is_empty() && !self.unsearched;
        let again = self.backoff.left().into_iter().chain(self.stuck.left()).min();
        let again = again.map(|left| left.max(Duration::from_millis(1)));
        let again = again.and_then(|again| Timespec::try_from(again).ok());
        let most = again.or(if answered { None } else { Some(RETRY) });
        let _ = poll(&mut fds[..listened_to], most.as_ref());
        let _ = rustix::io::read(&self.room.wake, &mut [0; 8]);
    }

    /// Does orders; returns what the kernel refused, by link.
    fn obey(&self, orders: BTreeMap<u32, Change>) -> BTreeMap<u32, Vec<Refusal>> {
        let count = orders.len() as u64;
        let obeyed = |(index, change): (u32, Change)| {
            let mut refused = Vec::new();
            self.apply(index, change, &mut refused);
            (index, refused)
        };
        let refused: BTreeMap<_, _> = orders.into_iter().map(obeyed).collect();
        let counters = &mut self.room.lock().counters;
        counters.orders += count;
        counters.refused += refused.values().map(|of| of.len() as u64).sum::<u64>();
        refused
    }

    /// Changes a link; adds what the kernel refuses.
    fn apply(&self, index: u32, change: Change, refused: &mut Vec<Refusal>) {
        let port = &self.port;
        for change in parts(change) {
            let Change { up, mtu, mac, labels, .. } = change;
            let (done, fine): (_, &[i32]) = match change.addresses.first_key_value() {
                Some((&(ip, length), true)) => (add_address(port, index, ip, length), &[EEXIST]),
                Some((&(ip, length), false)) => {
                    (delete_address(port, index, ip, length), &[EADDRNOTAVAIL, ENODEV])
                }
                None => match labels {
                    Some(on) => (self.set_labels(index, on), &[]),
                    None => {
                        let settings = LinkSettings { up, mtu, mac, ..LinkSettings::default() };
                        (settings.set(port, index), &[])
                    }
                },
            };
            let is_fine = |e: &io::Error| e.raw_os_error().is_some_and(|code| fine.contains(&code));
            if let Err(why) = done
                && !is_fine(&why)
            {
                refused.push(Refusal { change, why });
            }
        }
    }

    /// Has a link take labelled packets, or drop them. The kernel has no message for it.
    fn set_labels(&self, index: u32, on: bool) -> io::Result<()> {
        let link = Link::find_by(&self.port, index)?;
        let Some(link) = link else { return Err(io::Error::from_raw_os_error(ENODEV)) };
        let setting = format!("/proc/sys/net/mpls/conf/{}/input", link.name);
        let value: &[u8] = if on { b"1" } else { b"0" };
        let write = || -> io::Result<()> {
            let file = open(&setting, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(file, value)?;
            Ok(())
        };
        match &self.inside {
            Some(inside) => inside.run(write).map_err(io::Error::other)?,
            None => write(),
        }
    }

    /// Takes the kernel's notices; returns whether that were all.
    fn listen(&mut self) -> bool {
        let (mut count, mut lost) = (0, 0);
        let mut above = Vec::new();
        for notice in self.notices.take().take(MAX_NOTICES) {
            count += 1;
            match notice {
                Notice::Link(link) => {
                    self.dirty.insert(link.index);
                    if !link.is_up() {
                        self.downs.insert(link.index);
                    }
                    if is_above(&link) {
                        above.push((link.lower, link.index, Some(link)));
                    }
                }
                Notice::LinkGone(link) => {
                    self.dirty.insert(link.index);
                    if is_above(&link) {
                        above.push((link.lower, link.index, None));
                    }
                }
                Notice::Address(a) | Notice::AddressGone(a) => _ = self.dirty.insert(a.index),
                Notice::Neighbour(n) => _ = self.heard.insert((n.index, n.ip), Some(n)),
                Notice::NeighbourGone(n) => _ = self.heard.insert((n.index, n.ip), None),
                Notice::LabelInput(input) => _ = self.dirty.insert(input.index),
                Notice::Lost => lost += 1,
            }
        }
        let mut shared = self.room.lock();
        let shared = &mut *shared;
        shared.counters.notices += count as u64;
        shared.counters.overruns += lost;
        let all_taken = count < MAX_NOTICES;
        // Notices from before an order that waits are older than that; it ends with a look.
        let heard = if all_taken { std::mem::take(&mut self.heard) } else { BTreeMap::new() };
        for (key, neighbour) in heard {
            let is_wanted = shared.watched.contains_key(&key.0) && !shared.moved.contains_key(&key);
            if is_wanted && self.stuck.lets_pass(&key, neighbour.as_ref()) {
                shared.report.neighbours.insert(key, neighbour);
            }
        }
        for (lower, index, link) in above {
            if lower.is_some_and(|lower| shared.watched.contains_key(&lower)) {
                shared.report.above.insert(index, link);
            }
        }
        if lost > 0 {
            self.dirty.extend(shared.watched.keys());
            self.unlisted.extend(shared.watched.keys());
            self.unsearched = true;
        } else if shared.report.neighbours.len() > MAX_NEIGHBOURS {
            // The list of what there is is bounded by the kernel.
            self.unlisted.extend(shared.report.neighbours.keys().map(|(index, _)| *index));
            shared.report.neighbours.clear();
        }
        if self.heard.len() > MAX_NEIGHBOURS {
            self.unlisted.extend(self.heard.keys().map(|(index, _)| *index));
            self.heard.clear();
        }
        all_taken
    }

    /// Reports all VLAN and MACVLAN links on links that are watched: notices of them were lost, or
    /// are older than the mirror.
    fn list_above(&mut self) {
        if !self.unsearched {
            return;
        }
        let Ok(all) = Link::all_by(&self.port) else { return };
        self.unsearched = false;
        let mut shared = self.room.lock();
        let Shared { watched, report, .. } = &mut *shared;
        for link in all.into_iter().filter(is_above) {
            if link.lower.is_some_and(|lower| watched.contains_key(&lower)) {
                report.above.insert(link.index, Some(link));
            }
        }
    }

    /// Adds the links that are on those to be looked at: the kernel changes them without a word.
    fn spread(&self, dirty: &mut BTreeSet<u32>) {
        let shared = self.room.lock();
        // A link is younger than the one that it is on, but numbers may have wrapped.
        loop {
            let is_above = |lower: &Option<u32>| lower.is_some_and(|lower| dirty.contains(&lower));
            let above = shared.watched.iter().filter(|(_, lower)| is_above(lower));
            let more: Vec<u32> = above.map(|(i, _)| *i).filter(|i| !dirty.contains(i)).collect();
            if more.is_empty() {
                return;
            }
            dirty.extend(more);
        }
    }

    /// Looks at links, and reports those that are watched.
    fn look(&mut self, mut refused: BTreeMap<u32, Vec<Refusal>>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        let downs = std::mem::take(&mut self.downs);
        self.spread(&mut dirty);
        let lowers: BTreeMap<u32, Option<u32>> = {
            let watched = &self.room.lock().watched;
            dirty.retain(|index| watched.contains_key(index));
            dirty.iter().filter_map(|index| Some((*index, *watched.get(index)?))).collect()
        };
        let all = match dirty.len() > FEW_LINKS {
            true => LinkAddress::all(&self.port, None).ok().map(by_link),
            false => None,
        };
        for index in dirty {
            let lower = lowers.get(&index).copied().flatten();
            let seen = self.seen(index, all.as_ref(), lower);
            let mut shared = self.room.lock();
            shared.counters.looks += 1;
            if !shared.watched.contains_key(&index) {
                continue;
            }
            let report = shared.report.links.entry(index).or_default();
            report.refused.extend(refused.remove(&index).unwrap_or_default());
            match seen {
                Ok(now) => {
                    let refused = std::mem::take(&mut report.refused);
                    let was_down = report.was_down || now.was_down || downs.contains(&index);
                    let fell = report.lower.is_some_and(|lower| lower.was_down)
                        || lower.is_some_and(|lower| downs.contains(&lower));
                    let lower = now.lower.map(|l| Lower { was_down: l.was_down || fell, ..l });
                    *report = Seen { refused, was_down, lower, ..now };
                }
                // Nothing is known: the kernel is asked again.
                Err(_) => {
                    if report.order == 0 && report.link.is_none() && report.refused.is_empty() {
                        shared.report.links.remove(&index);
                    }
                    self.dirty.insert(index);
                    self.downs.extend(downs.get(&index));
                    self.downs.extend(lower.filter(|lower| downs.contains(lower)));
                }
            }
        }
    }

    /// Asks the kernel for a link and its addresses.
    fn seen(
        &self,
        index: u32,
        all: Option<&BTreeMap<u32, Vec<LinkAddress>>>,
        lower: Option<u32>,
    ) -> io::Result<Seen> {
        let link = Link::find_by(&self.port, index)?;
        // Asked for later: a link that went with the one below is not there without it.
        let lower = lower.map(|lower| Link::find_by(&self.port, lower)).transpose()?.flatten();
        let described = |l: Link| Lower { up: l.is_up(), was_down: !l.is_up(), mtu: l.mtu };
        let addresses = match all {
            Some(all) => all.get(&index).cloned().unwrap_or_default(),
            None if link.is_none() => Vec::new(),
            None => LinkAddress::all(&self.port, Some(index))?,
        };
        let was_down = link.as_ref().is_none_or(|link| !link.is_up());
        let master = link.as_ref().and_then(|link| link.master);
        let master = master.map(|index| Link::find_by(&self.port, index)).transpose()?.flatten();
        let vrf = master.and_then(|link| link.table);
        let labels = LabelInput::find_by(&self.port, index)?.and_then(|input| input.on);
        let refused = Vec::new();
        let lower = lower.map(described);
        Ok(Seen { order: self.done, link, addresses, vrf, labels, lower, was_down, refused })
    }

    /// Returns whether something waits of which the owner does not know.
    fn has_news(&self) -> bool {
        let mut shared = self.room.lock();
        let report = &shared.report;
        let empty = report.links.is_empty()
            && report.above.is_empty()
            && report.neighbours.is_empty()
            && report.all_neighbours.is_empty();
        !empty && !std::mem::replace(&mut shared.announced, true)
    }
}

/// Returns whether a link is one of those on others that are reported.
fn is_above(link: &Link) -> bool {
    link.vlan.is_some() || link.kind == "macvlan"
}

fn by_link(all: Vec<LinkAddress>) -> BTreeMap<u32, Vec<LinkAddress>> {
    let mut of: BTreeMap<u32, Vec<LinkAddress>> = BTreeMap::new();
    for address in all {
        of.entry(address.index).or_default().push(address);
    }
    of
}

/// Parts a change into changes of one thing each: first what may be refused while a link is up,
/// then addresses, so that one that comes up has them.
fn parts(change: Change) -> Vec<Change> {
    let none = Change::default;
    let (down, up) = (change.up == Some(false), change.up == Some(true));
    let mut all = Vec::new();
    all.extend(down.then(|| Change { up: Some(false), ..none() }));
    all.extend(change.mac.map(|mac| Change { mac: Some(mac), ..none() }));
    all.extend(change.mtu.map(|mtu| Change { mtu: Some(mtu), ..none() }));
    all.extend(change.labels.map(|on| Change { labels: Some(on), ..none() }));
    let address = |of| Change { addresses: BTreeMap::from([of]), ..none() };
    all.extend(change.addresses.into_iter().map(address));
    all.extend(up.then(|| Change { up: Some(true), ..none() }));
    all
}
