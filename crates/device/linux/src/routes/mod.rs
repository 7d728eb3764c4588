//! Routes of a namespace, followed: the kernel's whole table, and every change of it.
//!
//! A thread in the namespace listens to the kernel and keeps a shadow of all routes and next-hop
//! objects, from which the owner takes changes in slices, at its own pace: each destination once,
//! as it is then. The kernel removes routes silently when a link goes down, or loses its carrier or
//! its last address. Hops are used again when that comes back. Too many notices are dropped. After
//! such an event all is listed again, which takes a third of a second for a million routes, and the
//! shadow changes where it differs. A list that changed while it was read is read again.
//!
//! Sockets that fail are opened again, and all is listed then.
//!
//! A thread of [another kind](Routes::listen) has the routes that FRRouting's `zebra` sends to it.

mod fpm;
mod labels;
mod lists;
mod objects;
mod shadow;
mod table;
#[cfg(test)]
mod tests;
mod types;

pub use fpm::FpmState;
pub use labels::{LabelChange, LabelRoute};
pub use types::{Change, Hops, Left, Limits, NextHop, ObjectHops, Taken, Used, Visited};

use crate::Namespace;
use crate::backoff::Backoff;
use crate::mirror::MirrorError;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use shadow::{Offer, Shadow, Walk};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thalweg_netlink::fib::{FibNotice, FibNotices, LinkRole, LinkState, all_next_hops, all_routes};
use thalweg_netlink::label::all_labels;
use thalweg_netlink::{Link, Port, Protocol};

/// Bytes of notices that may wait in the kernel: 160,000 of routes, or twice as many for the
/// privileged, as the kernel doubles it. Only what waits takes memory.
pub const WAITING_BYTES: usize = 128 << 20;
/// Datagrams that are read, and then taken with the shadow locked.
const AT_ONCE: usize = 64;
/// Datagrams that are read before the owner is notified.
const BEFORE_NEWS: usize = 4096;
/// Least time between two lists, as the same event has several notices.
const BETWEEN: Duration = Duration::from_secs(1);
/// Time for the notices of one event to come.
const SETTLE: Duration = Duration::from_millis(20);
/// Time between two attempts at a list that was interrupted, doubled each time.
const RETRY: Duration = Duration::from_millis(100);
const RETRY_MOST: Duration = Duration::from_secs(2);

/// Reason of a list of all routes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The first one.
    Start,
    /// The kernel had more notices than its buffer holds.
    Overrun,
    /// A link went down or came up, was deleted, or has other addresses.
    Link,
    /// A notice did not fit what was seen before.
    Doubt,
    /// A user asked for it.
    Asked,
    /// A lost connection's routes were not announced again.
    Stale,
    /// The thread's sockets had failed, and were opened again.
    Failure,
}

impl Cause {
    /// Returns its name, as it is shown.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Cause::Start => "start",
            Cause::Overrun => "notices were lost",
            Cause::Link => "a link changed",
            Cause::Doubt => "a notice did not fit",
            Cause::Asked => "a user asked",
            Cause::Stale => "a connection was lost",
            Cause::Failure => "a socket had failed",
        }
    }
}

/// A list of all routes that was taken.
#[derive(Clone, Copy, Debug)]
pub struct Resync {
    /// Its reason.
    pub cause: Cause,
    /// Time that it took.
    pub took: Duration,
    /// Destinations that had changed without a notice.
    pub differences: usize,
    /// The moment of its end.
    pub at: Instant,
}

/// Counters of a namespace.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteCounters {
    /// Notices of routes and objects.
    pub notices: u64,
    /// Times that notices were lost.
    pub overruns: u64,
    /// Lists of all routes.
    pub resyncs: u64,
    /// Lists that changed while they were read.
    pub interrupted: u64,
    /// Lists that the kernel refused.
    pub failed: u64,
    /// Attempts to go on after the thread's sockets had failed.
    pub restarts: u64,
    /// The last list.
    pub last: Option<Resync>,
}

/// State of a namespace's routes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RouteState {
    /// Counters.
    pub counters: RouteCounters,
    /// Routes of both versions, those that are not used included.
    pub routes: usize,
    /// Routes of labels.
    pub labels: usize,
    /// Next-hop objects.
    pub objects: usize,
    /// Changes that wait to be taken.
    pub waiting: usize,
    /// Bytes of the shadow.
    pub memory: usize,
    /// Bytes of notices that the kernel keeps.
    pub buffer: usize,
    /// Counts of routes and objects that are left out.
    pub left: Left,
    /// True once all that existed at the start has been listed.
    pub complete: bool,
    /// The connection of `zebra`, if the routes come from there.
    pub fpm: Option<FpmState>,
}

/// TTL of labels where neither a route nor its encapsulation says (`net.mpls`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LabelTtl {
    /// Labels have the TTL of the packet, which takes over that of the last one.
    pub propagates: bool,
    /// Otherwise they have this.
    pub usual: u8,
}

impl Default for LabelTtl {
    /// Returns the kernel's own.
    fn default() -> Self {
        LabelTtl { propagates: true, usual: 255 }
    }
}

impl LabelTtl {
    /// Reads the settings of the calling thread's namespace; the kernel's own, if it has none.
    fn read() -> LabelTtl {
        let number = |name: &str| {
            let text = std::fs::read_to_string(format!("/proc/sys/net/mpls/{name}")).ok()?;
            text.trim().parse::<u8>().ok()
        };
        let own = LabelTtl::default();
        LabelTtl {
            propagates: number("ip_ttl_propagate").map_or(own.propagates, |n| n != 0),
            usual: number("default_ttl").filter(|ttl| *ttl > 0).unwrap_or(own.usual),
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    shadow: Shadow,
    /// Links by which packets do not leave.
    roles: BTreeMap<u32, LinkRole>,
    /// Some have changed, which the owner does not know yet.
    roles_changed: bool,
    ttl: LabelTtl,
    counters: RouteCounters,
    /// A list is wanted by a user.
    asked: bool,
    /// Links whose routes are offered again; `None` for all.
    offers: BTreeSet<Option<u32>>,
    /// Something waits to be taken, and its owner knows.
    announced: bool,
    /// Changes that were taken.
    taken: usize,
    complete: bool,
    ended: bool,
    fpm: Option<FpmState>,
    /// Time for which routes of a lost connection stay.
    hold: Duration,
    /// Times that reading notices fails, for a test.
    #[cfg(test)]
    faults: u32,
}

impl Shared {
    /// Changes so far: those that were taken, and those that wait.
    fn changes(&self) -> usize {
        self.taken.wrapping_add(self.shadow.waiting())
    }
}

#[cfg(test)]
impl Shared {
    fn take_fault(&mut self) -> bool {
        let fails = self.faults > 0;
        self.faults -= u32::from(fails);
        fails
    }
}

#[derive(Debug)]
struct Room {
    shared: Mutex<Shared>,
    wake: OwnedFd,
    buffer: usize,
}

impl Room {
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A counter that is full wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Waits until someone wakes it, one of `others` has something to read, or a time has passed.
    fn wait(&self, others: &[BorrowedFd<'_>], most: Option<Duration>) {
        let wake = self.wake.as_fd();
        let all = others.iter().chain([&wake]);
        let mut fds: Vec<PollFd<'_>> = all.map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        // Less than a millisecond waits for that.
        let most = most.map(|most| most.max(Duration::from_millis(1)));
        let most = most.and_then(|most| Timespec::try_from(most).ok());
        let _ = poll(&mut fds, most.as_ref());
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }

    /// Offers routes again, in slices.
    fn offer(&self, offer: &Offer) {
        let mut walk = self.lock().shadow.walk();
        while self.lock().shadow.offer_some(&mut walk, offer) {}
    }

    /// Returns whether something waits of which the owner does not know.
    fn has_news(&self) -> bool {
        let mut shared = self.lock();
        let waits = shared.shadow.waiting() > 0 || shared.roles_changed;
        waits && !std::mem::replace(&mut shared.announced, true)
    }
}

/// A thread that follows the routes of a namespace. Dropping this ends the thread.
#[derive(Debug)]
pub struct Routes(Arc<Room>);

impl Routes {
    /// Starts one in a namespace, or in the calling thread's. `buffer` is the number of bytes of
    /// notices that may wait in the kernel. `announce` is called from its thread when there is
    /// something to [`take`](Routes::take), once until nothing is left; it returns false to end the
    /// thread.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or a system call fails.
    pub fn start(
        namespace: Option<&Namespace>,
        limits: Limits,
        buffer: usize,
        announce: impl Fn() -> bool + Send + 'static,
    ) -> Result<Routes, MirrorError> {
        let wake = wake()?;
        let sockets = Sockets::open(namespace, buffer)?;
        let shadow = Shadow::new(limits);
        let shared = Mutex::new(Shared { shadow, ..Shared::default() });
        let room = Arc::new(Room { shared, wake, buffer: sockets.notices.receive_buffer() });
        let name = namespace.map_or_else(String::new, |n| n.name().to_owned());
        let inside = namespace.map(Namespace::try_clone).transpose();
        let inside = inside.map_err(|e| MirrorError::System("keep a namespace", e))?;
        let worker = Worker {
            room: room.clone(),
            name,
            inside,
            buffer,
            sockets: Some(sockets),
            backoff: Backoff::default(),
            unread: Backoff::default(),
            up: BTreeMap::new(),
            due: Some((Cause::Start, Instant::now())),
            last: None,
            retry: RETRY,
        };
        let thread = std::thread::Builder::new().name("routes".into());
        let started = thread.spawn(move || worker.run(announce));
        started.map_err(|e| MirrorError::System("start a thread", e))?;
        Ok(Routes(room))
    }

    /// Takes up to `most` changes.
    #[must_use]
    pub fn take(&self, most: usize) -> Taken {
        let mut shared = self.0.lock();
        let was_doubtful = shared.shadow.is_doubtful;
        let taken = shared.shadow.take(most);
        let changes = taken.objects.len() + taken.routes.len() + taken.labels.len();
        shared.taken = shared.taken.wrapping_add(changes + taken.gone.len());
        if shared.shadow.is_doubtful && !was_doubtful {
            // The thread lists all again.
            self.0.wake();
        }
        shared.announced = taken.more;
        Taken { roles: std::mem::take(&mut shared.roles_changed), ..taken }
    }

    /// Lists all routes again, and compares them. A connection of `zebra` is closed for that: it
    /// announces all only when it has connected again.
    pub fn resync(&self) {
        self.0.lock().asked = true;
        self.0.wake();
    }

    /// Offers routes over a link again, or all (`None`), as they lead elsewhere now.
    pub fn offer(&self, link: Option<u32>) {
        self.0.lock().offers.insert(link);
        self.0.wake();
    }

    /// Returns the route of a destination that the kernel uses, in the first table that has one.
    #[must_use]
    pub fn find(&self, tables: &[u32], destination: (IpAddr, u8)) -> Option<Used> {
        self.0.lock().shadow.find(tables, destination)
    }

    /// Returns the route of a label.
    #[must_use]
    pub fn find_label(&self, label: u32) -> Option<LabelRoute> {
        self.0.lock().shadow.find_label(label)
    }

    /// Returns where packets go that leave by a link.
    #[must_use]
    pub fn role(&self, link: u32) -> LinkRole {
        self.0.lock().roles.get(&link).copied().unwrap_or(LinkRole::Usual)
    }

    /// Returns the tables that have routes, or had some that wait to be taken, and those of VRFs.
    #[must_use]
    pub fn tables(&self) -> BTreeSet<u32> {
        let shared = self.0.lock();
        let vrf = |role: &LinkRole| match role {
            LinkRole::Vrf(table) => Some(*table),
            LinkRole::Usual | LinkRole::Loopback => None,
        };
        let of_vrfs = shared.roles.values().filter_map(vrf);
        let of_routes = shared.shadow.v4.keys().chain(shared.shadow.v6.keys()).copied();
        of_routes.chain(of_vrfs).collect()
    }

    /// Returns the TTL of labels where nothing else says.
    #[must_use]
    pub fn label_ttl(&self) -> LabelTtl {
        self.0.lock().ttl
    }

    /// Begins a walk over all destinations.
    #[must_use]
    pub fn walk(&self) -> RouteWalk {
        RouteWalk(self.0.lock().shadow.walk())
    }

    /// Adds some hundreds of destinations to `out`, with the routes that the kernel uses or, while
    /// that waits to be taken, none; returns false at the end.
    pub fn some(&self, walk: &mut RouteWalk, out: &mut Visited) -> bool {
        self.0.lock().shadow.some(&mut walk.0, out)
    }

    /// Returns counters and sizes.
    #[must_use]
    pub fn state(&self) -> RouteState {
        let shared = self.0.lock();
        RouteState {
            counters: shared.counters,
            routes: shared.shadow.len(),
            labels: shared.shadow.labels(),
            objects: shared.shadow.objects(),
            waiting: shared.shadow.waiting(),
            memory: shared.shadow.memory(),
            buffer: self.0.buffer,
            left: shared.shadow.left(),
            complete: shared.complete,
            fpm: shared.fpm,
        }
    }
}

/// Makes the counter that wakes a thread.
fn wake() -> Result<OwnedFd, MirrorError> {
    let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
    made.map_err(|e| MirrorError::System("make an eventfd", e.into()))
}

/// A walk over all destinations of a namespace.
#[derive(Debug)]
pub struct RouteWalk(Walk);

impl Drop for Routes {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.wake();
    }
}

/// Sockets of a thread.
struct Sockets {
    notices: FibNotices,
    port: Port,
}

impl Sockets {
    /// Opens them in a namespace, or in the calling thread's, for this many bytes of notices.
    fn open(namespace: Option<&Namespace>, buffer: usize) -> Result<Sockets, MirrorError> {
        let open = move || -> io::Result<Sockets> {
            let notices = FibNotices::open(buffer)?;
            let port = Port::open(Protocol::Route)?;
            port.set_strict(true);
            Ok(Sockets { notices, port })
        };
        let sockets = match namespace {
            Some(namespace) => namespace.run(open)?,
            None => open(),
        };
        sockets.map_err(|e| MirrorError::System("open a netlink socket", e))
    }
}

/// The thread's side.
struct Worker {
    room: Arc<Room>,
    /// The namespace's name, for the log.
    name: String,
    /// The namespace, unless the thread is in it.
    inside: Option<Namespace>,
    /// Bytes of notices that are to wait in the kernel.
    buffer: usize,
    /// Its sockets; `None` from when they have failed until they are opened again.
    sockets: Option<Sockets>,
    /// The next attempt to do that.
    backoff: Backoff,
    /// The next attempt to read the namespace's settings.
    unread: Backoff,
    /// Links that are up and have a carrier, or not, as they were last seen.
    up: BTreeMap<u32, bool>,
    /// A list is due.
    due: Option<(Cause, Instant)>,
    /// The end of the last list.
    last: Option<Instant>,
    retry: Duration,
}

impl Worker {
    fn run(mut self, announce: impl Fn() -> bool) {
        loop {
            if self.obey() {
                return;
            }
            let all_read = self.hear();
            let may_list = all_read && self.sockets.is_some();
            if may_list && self.due.is_some_and(|(_, at)| at <= Instant::now()) {
                self.list(&announce);
            } else if may_list && self.unread.left().is_some_and(|left| left.is_zero()) {
                self.list_settings_again();
            }
            if self.room.has_news() && !announce() {
                return;
            }
            if all_read {
                self.wait();
            }
        }
    }

    /// Does what the owner has asked for; returns true if it has ended.
    fn obey(&mut self) -> bool {
        let (asked, offers) = {
            let mut shared = self.room.lock();
            if shared.ended {
                return true;
            }
            (std::mem::take(&mut shared.asked), std::mem::take(&mut shared.offers))
        };
        if asked {
            self.due = Some((Cause::Asked, Instant::now()));
        }
        if !offers.is_empty() {
            let offer = self.room.lock().shadow.offer(offers);
            self.room.offer(&offer);
        }
        false
    }

    fn wait(&self) {
        let Some(Sockets { notices, .. }) = &self.sockets else {
            return self.room.wait(&[], self.backoff.left());
        };
        let due = self.due.map(|(_, at)| at.saturating_duration_since(Instant::now()));
        self.room.wait(&[notices.as_fd()], due.into_iter().chain(self.unread.left()).min());
    }

    /// Reads notices, of sockets that are opened again after they have failed; returns whether
    /// those were all.
    fn hear(&mut self) -> bool {
        if self.sockets.is_none() && self.backoff.is_due() {
            self.room.lock().counters.restarts += 1;
            match Sockets::open(self.inside.as_ref(), self.buffer) {
                Ok(sockets) => {
                    self.sockets = Some(sockets);
                    self.due = Some((Cause::Failure, Instant::now()));
                }
                Err(e) => self.fail(&e),
            }
        }
        self.listen().unwrap_or_else(|e| {
            self.fail(&e);
            true
        })
    }

    /// Gives up sockets that have failed. The routes stay as they are meanwhile.
    fn fail(&mut self, e: &dyn std::error::Error) {
        self.sockets = None;
        if self.backoff.fail() {
            tracing::error!("routes of namespace `{}' are not seen for now: {e}", self.name);
        }
    }

    /// Reads notices; returns whether those were all.
    fn listen(&mut self) -> io::Result<bool> {
        let Worker { room, sockets, up, .. } = self;
        let Some(Sockets { notices, .. }) = sockets else { return Ok(true) };
        #[cfg(test)]
        if room.lock().take_fault() {
            return Err(io::Error::other("a test"));
        }
        let (mut read, mut causes) = (0, [false; 2]);
        let mut all_read = false;
        while read < BEFORE_NEWS && !all_read {
            all_read = notices.read(AT_ONCE)?;
            read += AT_ONCE;
            let mut shared = room.lock();
            let Shared { shadow, counters, roles, roles_changed, .. } = &mut *shared;
            notices.hand_out(|notice| {
                counters.notices += 1;
                match notice {
                    FibNotice::Route(placing, route) => shadow.add(placing, &route),
                    FibNotice::RouteGone(route) => shadow.delete(&route),
                    FibNotice::NextHop(object) => shadow.set_object(&object),
                    FibNotice::NextHopGone(id) => shadow.delete_object(id),
                    FibNotice::Label(route) => shadow.set_label(&route),
                    FibNotice::LabelGone(route) => shadow.delete_label(&route),
                    FibNotice::Link(index, LinkState { is_up, role }) => {
                        *roles_changed |= set_role(roles, index, role);
                        causes[1] |= up.insert(index, is_up) != Some(is_up);
                    }
                    FibNotice::LinkGone(index) => {
                        up.remove(&index);
                        *roles_changed |= roles.remove(&index).is_some();
                        causes[1] = true;
                    }
                    FibNotice::Addresses(_) => causes[1] = true,
                    FibNotice::Lost => {
                        counters.overruns += 1;
                        causes[0] = true;
                    }
                }
            });
        }
        let early = self.room.lock().shadow.take_early();
        if let Some(offer) = early {
            self.room.offer(&offer);
        }
        let [lost, link] = causes;
        if lost {
            self.want(Cause::Overrun, RETRY);
        } else if link {
            self.want(Cause::Link, BETWEEN);
        } else if std::mem::take(&mut self.room.lock().shadow.is_doubtful) {
            self.want(Cause::Doubt, BETWEEN);
        }
        Ok(all_read)
    }

    /// Wants a list soon, but not before some time after the last one.
    fn want(&mut self, cause: Cause, between: Duration) {
        let now = Instant::now();
        let earliest = self.last.map_or(now, |last| last + between);
        let at = earliest.max(now + SETTLE);
        match self.due {
            Some((_, due)) if due <= at => {}
            _ => self.due = Some((cause, at)),
        }
    }

    /// Reads the TTL of labels in the namespace, and nowhere else; `None` if it cannot be entered:
    /// then what was read before holds, and it is tried again.
    fn read_ttl(&mut self) -> Option<LabelTtl> {
        match self.inside.as_ref().map(Namespace::enter) {
            Some(Err(e)) => {
                if self.unread.fail() {
                    let name = &self.name;
                    tracing::warn!("settings of namespace `{name}' are not read for now: {e}");
                }
                return None;
            }
            Some(Ok(())) | None => self.inside = None,
        }
        if self.unread.succeed() {
            tracing::info!("settings of namespace `{}' are read", self.name);
        }
        Some(LabelTtl::read())
    }

    /// Lists what could not be read with the routes.
    fn list_settings_again(&mut self) {
        let ttl = self.read_ttl();
        let Some(Sockets { port, .. }) = self.sockets.as_ref().filter(|_| ttl.is_some()) else {
            return;
        };
        if let Err(e) = self.list_settings(port, ttl) {
            tracing::debug!("cannot list the links of namespace `{}': {e}", self.name);
            self.unread.fail();
        }
    }

    /// Lists all objects and routes, and changes the shadow where it differs. The owner takes what
    /// has been listed while the list goes on.
    fn list(&mut self, announce: &impl Fn() -> bool) {
        let ttl = self.read_ttl();
        let Some(Sockets { port, .. }) = &self.sockets else { return };
        let Some((cause, _)) = self.due.take() else { return };
        let begin = Instant::now();
        let before = {
            let mut shared = self.room.lock();
            shared.shadow.begin();
            shared.shadow.is_doubtful = false;
            shared.changes()
        };
        let room = self.room.clone();
        let done = self
            .list_settings(port, ttl)
            .and_then(|()| all_next_hops(port, |object| room.lock().shadow.list_object(&object)))
            .and_then(|()| list_routes(port, &room, announce))
            .and_then(|()| all_labels(port, |route| room.lock().shadow.set_label(&route)));
        match done {
            Ok(()) => self.end(cause, begin, before),
            Err(e) => self.abandon(cause, &e),
        }
    }

    /// Lists links by which packets do not leave, and takes the TTL of labels, if that is known.
    /// Routes that these concern are taken again.
    fn list_settings(&self, port: &Port, ttl: Option<LabelTtl>) -> io::Result<()> {
        let mut roles = BTreeMap::new();
        for link in Link::all_by(port)? {
            let _ = set_role(&mut roles, link.index, LinkState::of(&link).role);
        }
        let offer = {
            let mut shared = self.room.lock();
            let known = std::mem::replace(&mut shared.roles, roles.clone());
            let ttl = ttl.unwrap_or(shared.ttl);
            let has_other_ttl = std::mem::replace(&mut shared.ttl, ttl) != ttl;
            let all = known.iter().chain(&roles);
            let others = all.filter(|(link, _)| known.get(link) != roles.get(link));
            let mut links: BTreeSet<Option<u32>> = others.map(|(link, _)| Some(*link)).collect();
            if has_other_ttl {
                links.insert(None);
            }
            shared.roles_changed |= !links.is_empty();
            shared.shadow.offer(links)
        };
        if !offer.is_empty() {
            self.room.offer(&offer);
        }
        Ok(())
    }

    /// Removes what a whole list has not named.
    fn end(&mut self, cause: Cause, begin: Instant, before: usize) {
        let mut walk = {
            let shadow = &mut self.room.lock().shadow;
            shadow.end();
            shadow.walk()
        };
        while self.room.lock().shadow.sweep_some(&mut walk) {}
        let early = self.room.lock().shadow.take_early();
        if let Some(offer) = early {
            self.room.offer(&offer);
        }
        let mut shared = self.room.lock();
        let differences = shared.changes().saturating_sub(before);
        let now = Instant::now();
        let took = now.duration_since(begin);
        shared.complete = true;
        shared.counters.resyncs += 1;
        shared.counters.last = Some(Resync { cause, took, differences, at: now });
        let routes = shared.shadow.len();
        drop(shared);
        self.retry = RETRY;
        self.last = Some(now);
        if self.backoff.succeed() {
            tracing::info!("routes of namespace `{}' are seen again", self.name);
        }
        tracing::info!(
            "namespace `{}': {routes} routes listed in {} ms, {differences} differ ({})",
            self.name,
            took.as_millis(),
            cause.word()
        );
    }

    /// Gives up a list, and tries again later.
    fn abandon(&mut self, cause: Cause, e: &io::Error) {
        let mut walk = {
            let mut shared = self.room.lock();
            shared.shadow.abandon();
            match e.kind() {
                io::ErrorKind::Interrupted => shared.counters.interrupted += 1,
                _ => {
                    shared.counters.failed += 1;
                    tracing::warn!("cannot list the routes of namespace `{}': {e}", self.name);
                }
            }
            shared.shadow.walk()
        };
        while self.room.lock().shadow.mark_some(&mut walk) {}
        self.due = Some((cause, Instant::now() + self.retry));
        self.retry = (2 * self.retry).min(RETRY_MOST);
    }
}

/// Lists all routes, and has the owner take them meanwhile.
fn list_routes(port: &Port, room: &Room, announce: &impl Fn() -> bool) -> io::Result<()> {
    let mut shared = None;
    all_routes(port, |route| match route {
        Some(route) => shared.get_or_insert_with(|| room.lock()).shadow.list(&route),
        None => {
            shared = None;
            if room.has_news() {
                // The thread asks later if the owner is gone.
                let _ = announce();
            }
        }
    })
}

/// Takes note of the role of a link; returns whether that has changed.
fn set_role(roles: &mut BTreeMap<u32, LinkRole>, index: u32, role: LinkRole) -> bool {
    match role {
        LinkRole::Usual => roles.remove(&index).is_some(),
        role => roles.insert(index, role) != Some(role),
    }
}
