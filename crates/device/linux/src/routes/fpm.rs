//! Routes that FRRouting's `zebra` sends over a connection (FPM), apart from the kernel.
//!
//! A thread in the namespace listens; `zebra` connects, and sends all its routes and next-hop
//! objects, then what changes. The thread keeps a shadow, as of the kernel's routes, with one route
//! for each destination. After a lost connection the routes stay for a time, in which a new one
//! announces all again; what it does not announce goes then.
//!
//! One connection is served. One that has sent no frame makes way for another.

use super::shadow::Shadow;
use super::types::Limits;
use super::{Cause, Resync, Room, Routes, Shared, wake};
use crate::Namespace;
use crate::backoff::Backoff;
use crate::mirror::MirrorError;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with, sockopt};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use thalweg_netlink::fib::FibNotice;
use thalweg_netlink::fpm::{FRAME_BYTES, read, split};

/// Metric that `zebra` gives its routes in the kernel. Over the connection it sends the routing
/// protocol's, which ranks nothing there.
const METRIC: u32 = 20;

/// Next-hop objects of a connection.
const OBJECTS: usize = 1 << 16;
/// Connections that wait to be accepted, and most that are accepted at once.
const BACKLOG: i32 = 4;
/// Bytes that are kept of what came, at least one frame.
const BUFFER: usize = 2 * FRAME_BYTES;
/// Reads before the owner is notified and other things are done.
const AT_ONCE: usize = 64;
/// Time in which a frame must come whole.
const WHOLE: Duration = Duration::from_secs(30);
/// Time between two attempts to listen or to accept, and between two looks for objects without
/// routes.
const AGAIN: Duration = Duration::from_secs(1);
/// Least time for which routes stay after a connection that was closed for a list of all: `zebra`
/// connects again after some seconds.
const ASKED_HOLD: Duration = Duration::from_secs(30);
/// Probes of a silent connection: after how long, how often, and how many.
const PROBE: (Duration, Duration, u32) = (Duration::from_secs(15), Duration::from_secs(5), 3);

/// State of the connection by which `zebra` sends routes.
#[derive(Clone, Copy, Debug)]
pub struct FpmState {
    /// Address to which it connects.
    pub address: SocketAddr,
    /// False while the system does not let the router listen there.
    pub listens: bool,
    /// Its own address, while there is a connection.
    pub client: Option<SocketAddr>,
    /// Connections so far.
    pub connections: u64,
    /// Connections that were refused, as there was one.
    pub refused: u64,
    /// Frames that could not be read. Each has ended its connection, or was left out.
    pub faults: u64,
    /// Frames.
    pub frames: u64,
    /// The moment at which routes go that were not announced again since a connection was lost.
    pub stale_until: Option<Instant>,
}

impl Routes {
    /// Starts a thread to which `zebra` sends its routes. The thread listens at `address` in a
    /// namespace, or in the calling thread's. Routes of a lost connection stay for `hold`.
    /// `announce` is as in [`start`](Routes::start).
    ///
    /// # Errors
    /// If a system call fails. An address that is not free is tried again until it is.
    pub fn listen(
        namespace: Option<&Namespace>,
        limits: Limits,
        address: SocketAddr,
        hold: Duration,
        announce: impl Fn() -> bool + Send + 'static,
    ) -> Result<Routes, MirrorError> {
        let objects = limits.objects.min(OBJECTS);
        let shadow = Shadow::new(Limits { objects, ..limits });
        let fpm = FpmState {
            address,
            listens: false,
            client: None,
            connections: 0,
            refused: 0,
            faults: 0,
            frames: 0,
            stale_until: None,
        };
        // No list comes of what was before.
        let shared = Shared { shadow, fpm: Some(fpm), hold, complete: true, ..Shared::default() };
        let room = Arc::new(Room { shared: Mutex::new(shared), wake: wake()?, buffer: 0 });
        let inside = namespace.map(Namespace::try_clone).transpose();
        let inside = inside.map_err(|e| MirrorError::System("keep a namespace", e))?;
        let worker = Worker {
            room: room.clone(),
            name: namespace.map_or_else(String::new, |n| n.name().to_owned()),
            address,
            listener: None,
            has_failed: false,
            deaf_until: None,
            client: None,
            asked_until: None,
            ids: Ids { most: objects, ..Ids::default() },
            looked: Instant::now(),
        };
        let thread = std::thread::Builder::new().name("fpm".into());
        let started = thread.spawn(move || worker.run(inside, announce));
        started.map_err(|e| MirrorError::System("start a thread", e))?;
        Ok(Routes(room))
    }

    /// Sets for how long routes of a lost connection stay, from the next one that is lost or made.
    pub fn hold(&self, hold: Duration) {
        self.0.lock().hold = hold;
    }
}

/// Numbers of next-hop objects. `zebra` begins again when it restarts, and routes of before lead to
/// what a number was then.
#[derive(Debug, Default)]
struct Ids {
    /// Its numbers, with ours.
    of: BTreeMap<u32, u32>,
    last: u32,
    most: usize,
    /// Objects that it has deleted while routes led there.
    leaving: BTreeSet<u32>,
}

impl Ids {
    /// Returns our number for one of `zebra`'s; `None` if there are too many.
    fn number(&mut self, id: u32) -> Option<u32> {
        if let Some(own) = self.of.get(&id) {
            return Some(*own);
        }
        if self.of.len() >= self.most {
            return None;
        }
        self.last = self.last.wrapping_add(1);
        self.of.insert(id, self.last);
        Some(self.last)
    }

    /// Deletes an object, or has it wait for the last route that leads there.
    fn delete(&mut self, id: u32, shadow: &mut Shadow) {
        let Some(own) = self.of.get(&id).copied() else { return };
        if shadow.is_in_use(own) {
            self.leaving.insert(id);
            return;
        }
        shadow.delete_object(own);
        self.of.remove(&id);
    }

    /// Deletes objects that waited and have no routes any more.
    fn delete_unused(&mut self, shadow: &mut Shadow) {
        for id in std::mem::take(&mut self.leaving) {
            self.delete(id, shadow);
        }
    }
}

/// A connection.
struct Client {
    stream: TcpStream,
    peer: SocketAddr,
    buffer: Box<[u8]>,
    /// Bytes in the buffer.
    length: usize,
    /// A frame has come.
    has_spoken: bool,
    /// The moment at which the rest of a frame began to be awaited.
    since: Option<Instant>,
}

/// The thread's side.
struct Worker {
    room: Arc<Room>,
    /// The namespace's name, for the log.
    name: String,
    address: SocketAddr,
    listener: Option<TcpListener>,
    /// The log has why there is none.
    has_failed: bool,
    /// No connection is accepted before.
    deaf_until: Option<Instant>,
    client: Option<Client>,
    /// Routes stay until then at least, as all are asked for.
    asked_until: Option<Instant>,
    ids: Ids,
    /// The last look for objects without routes.
    looked: Instant,
}

impl Worker {
    fn run(mut self, inside: Option<Namespace>, announce: impl Fn() -> bool) {
        let mut backoff = Backoff::default();
        while let Some(Err(e)) = inside.as_ref().map(Namespace::enter) {
            if backoff.fail() {
                tracing::error!("FPM: namespace `{}' is not entered for now: {e}", self.name);
            }
            self.room.lock().counters.restarts += 1;
            while !backoff.is_due() {
                if self.room.lock().ended {
                    return;
                }
                self.room.wait(&[], backoff.left());
            }
        }
        loop {
            let (offers, asked) = {
                let mut shared = self.room.lock();
                if shared.ended {
                    return;
                }
                (std::mem::take(&mut shared.offers), std::mem::take(&mut shared.asked))
            };
            if asked {
                self.ask_for_all();
            }
            if !offers.is_empty() {
                let offer = self.room.lock().shadow.offer(offers);
                self.room.offer(&offer);
            }
            self.open();
            self.accept();
            let all_read = self.serve();
            self.look();
            self.expire();
            if self.room.has_news() && !announce() {
                return;
            }
            if all_read {
                self.wait();
            }
        }
    }

    /// Changes the state that others see.
    fn note(&self, change: impl FnOnce(&mut FpmState)) {
        if let Some(fpm) = &mut self.room.lock().fpm {
            change(fpm);
        }
    }

    fn stale_until(&self) -> Option<Instant> {
        self.room.lock().fpm.and_then(|fpm| fpm.stale_until)
    }

    /// Begins to listen, unless it does.
    fn open(&mut self) {
        let now = Instant::now();
        if self.listener.is_some() || self.deaf_until.is_some_and(|until| now < until) {
            return;
        }
        match listener(self.address) {
            Ok(listener) => {
                let address = listener.local_addr().unwrap_or(self.address);
                (self.listener, self.has_failed) = (Some(listener), false);
                self.note(|fpm| (fpm.address, fpm.listens) = (address, true));
            }
            Err(e) => {
                self.deaf_until = Some(now + AGAIN);
                if !std::mem::replace(&mut self.has_failed, true) {
                    let (address, name) = (self.address, &self.name);
                    tracing::error!("FPM: cannot listen at {address} in namespace `{name}': {e}");
                }
            }
        }
    }

    /// Accepts connections.
    fn accept(&mut self) {
        let now = Instant::now();
        if self.deaf_until.is_some_and(|until| now < until) {
            return;
        }
        self.deaf_until = None;
        for _ in 0..BACKLOG {
            let Some(listener) = &self.listener else { return };
            match listener.accept() {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                // One that went at once, or no descriptor is left: others wait meanwhile.
                Err(_) => {
                    self.deaf_until = Some(now + AGAIN);
                    return;
                }
            }
        }
    }

    fn admit(&mut self, stream: TcpStream, peer: SocketAddr) {
        if self.client.as_ref().is_some_and(|client| client.has_spoken) {
            let mut refused = 0;
            self.note(|fpm| {
                fpm.refused += 1;
                refused = fpm.refused;
            });
            if refused.is_power_of_two() {
                tracing::warn!(
                    "FPM: {peer} is refused, as another is connected ({refused} so far)"
                );
            }
            return;
        }
        let (idle, interval, count) = PROBE;
        let prepared = stream.set_nonblocking(true).and_then(|()| {
            sockopt::set_socket_keepalive(&stream, true)?;
            sockopt::set_tcp_keepidle(&stream, idle)?;
            sockopt::set_tcp_keepintvl(&stream, interval)?;
            sockopt::set_tcp_keepcnt(&stream, count)?;
            Ok(())
        });
        if let Err(e) = prepared {
            tracing::warn!("FPM: {peer} is refused: {e}");
            return;
        }
        let buffer = vec![0; BUFFER].into_boxed_slice();
        let client = Client { stream, peer, buffer, length: 0, has_spoken: false, since: None };
        self.client = Some(client);
        self.note(|fpm| {
            fpm.client = Some(peer);
            fpm.connections += 1;
        });
    }

    /// Reads what has come; returns whether that was all.
    fn serve(&mut self) -> bool {
        for _ in 0..AT_ONCE {
            let Some(client) = &mut self.client else { return true };
            match client.stream.read(&mut client.buffer[client.length..]) {
                Ok(0) => {
                    self.lose(format_args!("it was closed"));
                    return true;
                }
                Ok(n) => client.length += n,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    if client.since.is_some_and(|since| since.elapsed() >= WHOLE) {
                        self.fault(format_args!("a frame is not complete"));
                    }
                    return true;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    self.lose(format_args!("{e}"));
                    return true;
                }
            }
            self.digest();
        }
        false
    }

    /// Takes all frames that are whole.
    fn digest(&mut self) {
        let Some(mut client) = self.client.take() else { return };
        let mut at = 0;
        let done = loop {
            let (frame, rest) = match split(&client.buffer[at..client.length]) {
                Ok(Some(frame)) => frame,
                Ok(None) => break Ok(()),
                Err(e) => break Err(e),
            };
            if !std::mem::replace(&mut client.has_spoken, true) {
                self.begin(client.peer);
            }
            self.take(frame);
            at = client.length - rest.len();
        };
        client.buffer.copy_within(at..client.length, 0);
        client.length -= at;
        client.since = match (client.length, at) {
            (0, _) => None,
            (_, 0) => client.since.or_else(|| Some(Instant::now())),
            (_, _) => Some(Instant::now()),
        };
        self.client = Some(client);
        if let Err(e) = done {
            self.fault(format_args!("{e}"));
        }
    }

    /// Takes the messages of a frame. A change may be a deletion and a new route, between which
    /// nobody looks.
    fn take(&mut self, frame: &[u8]) {
        let mut shared = self.room.lock();
        let Shared { shadow, counters, fpm, .. } = &mut *shared;
        let Some(fpm) = fpm else { return };
        let (ids, is_listing) = (&mut self.ids, fpm.stale_until.is_some());
        let done = read(frame, |notice| {
            counters.notices += 1;
            apply(shadow, ids, is_listing, notice);
        });
        fpm.frames += 1;
        if let Err(e) = done {
            fpm.faults += 1;
            if fpm.faults.is_power_of_two() {
                tracing::warn!("FPM: a frame is not read to its end: {e}");
            }
        }
        let early = shadow.take_early();
        drop(shared);
        if let Some(offer) = early {
            self.room.offer(&offer);
        }
    }

    /// Begins with the first frame of a connection: what it does not announce goes later.
    fn begin(&mut self, peer: SocketAddr) {
        self.forget_all();
        let mut shared = self.room.lock();
        let (hold, routes) = (shared.hold, shared.shadow.len() + shared.shadow.labels());
        let (is_new, now) = (routes == 0 && shared.shadow.objects() == 0, Instant::now());
        if let Some(fpm) = &mut shared.fpm {
            let until = (now + hold).max(self.asked_until.take().unwrap_or(now));
            fpm.stale_until = (!is_new).then_some(until);
        }
        drop(shared);
        tracing::info!(
            "FPM: {peer} sends routes into namespace `{}'; {routes} are there from before",
            self.name
        );
    }

    /// Takes note that nothing of what is there was announced by the present connection.
    fn forget_all(&mut self) {
        let mut walk = self.room.lock().shadow.walk();
        while self.room.lock().shadow.mark_some(&mut walk) {}
        let mut shared = self.room.lock();
        shared.shadow.begin();
        shared.shadow.count_at_once();
        drop(shared);
        let Ids { last, most, .. } = self.ids;
        self.ids = Ids { last, most, ..Ids::default() };
    }

    /// Ends a connection whose bytes are no frames, or come too slowly.
    fn fault(&mut self, why: std::fmt::Arguments<'_>) {
        self.note(|fpm| fpm.faults += 1);
        self.lose(why);
    }

    /// Has `zebra` announce all again, which it does only over a new connection.
    fn ask_for_all(&mut self) {
        if self.client.is_none() {
            return;
        }
        self.lose(format_args!("a user asked for all routes"));
        let least = Instant::now() + ASKED_HOLD;
        self.asked_until = Some(least);
        self.note(|fpm| fpm.stale_until = fpm.stale_until.map(|until| until.max(least)));
    }

    /// Gives up a connection. Its routes stay for now.
    fn lose(&mut self, why: std::fmt::Arguments<'_>) {
        let Some(client) = self.client.take() else { return };
        let mut shared = self.room.lock();
        let hold = shared.hold;
        if let Some(fpm) = &mut shared.fpm {
            fpm.client = None;
            if client.has_spoken {
                fpm.stale_until = Some(Instant::now() + hold);
            }
        }
        drop(shared);
        // Anybody may connect and go.
        if client.has_spoken {
            let (peer, hold) = (client.peer, hold.as_secs());
            tracing::warn!(
                "FPM: the connection of {peer} ends: {why}; its routes stay for {hold} s"
            );
        } else {
            tracing::debug!("FPM: the connection of {} ends: {why}", client.peer);
        }
    }

    /// Looks for objects whose last route has gone.
    fn look(&mut self) {
        if !self.ids.leaving.is_empty() && self.looked.elapsed() >= AGAIN {
            self.looked = Instant::now();
            self.ids.delete_unused(&mut self.room.lock().shadow);
        }
    }

    /// Removes what was not announced again in time.
    fn expire(&mut self) {
        let begin = Instant::now();
        if self.stale_until().is_none_or(|until| begin < until) {
            return;
        }
        if !self.client.as_ref().is_some_and(|client| client.has_spoken) {
            // Nobody has announced anything.
            self.forget_all();
        }
        let (mut walk, before, waited) = {
            let mut shared = self.room.lock();
            let shadow = &mut shared.shadow;
            let (before, waited) = (shadow.len() + shadow.labels(), shadow.waiting());
            shadow.end();
            (shadow.walk(), before, waited)
        };
        while self.room.lock().shadow.sweep_some(&mut walk) {}
        let mut shared = self.room.lock();
        let Shared { shadow, counters, fpm, .. } = &mut *shared;
        let gone = before.saturating_sub(shadow.len() + shadow.labels());
        let (at, differences) = (Instant::now(), shadow.waiting().saturating_sub(waited));
        let took = at.duration_since(begin);
        counters.resyncs += 1;
        counters.last = Some(Resync { cause: Cause::Stale, took, differences, at });
        fpm.iter_mut().for_each(|fpm| fpm.stale_until = None);
        drop(shared);
        tracing::info!(
            "FPM: {gone} routes of namespace `{}' were not announced again, and are removed",
            self.name
        );
    }

    fn wait(&self) {
        let now = Instant::now();
        let is_deaf = self.deaf_until.is_some_and(|until| now < until);
        let client = self.client.as_ref();
        let due = [
            self.deaf_until,
            self.stale_until(),
            client.and_then(|client| client.since).map(|since| since + WHOLE),
            (!self.ids.leaving.is_empty()).then(|| self.looked + AGAIN),
        ];
        let first = due.into_iter().flatten().min();
        let listener = self.listener.as_ref().filter(|_| !is_deaf).map(AsFd::as_fd);
        let client = client.map(|client| client.stream.as_fd());
        let fds: Vec<BorrowedFd<'_>> = listener.into_iter().chain(client).collect();
        self.room.wait(&fds, first.map(|at| at.saturating_duration_since(now)));
    }
}

/// Takes what a message says.
fn apply(shadow: &mut Shadow, ids: &mut Ids, is_listing: bool, notice: FibNotice<'_>) {
    match notice {
        FibNotice::Route(_, mut route) => {
            route.metric = METRIC;
            if let Some(id) = route.object {
                route.object = ids.number(id);
                if route.object.is_none() {
                    shadow.leave_out();
                    return shadow.remove(&route);
                }
            }
            shadow.replace(&route);
        }
        FibNotice::RouteGone(route) => shadow.remove(&route),
        FibNotice::NextHop(object) => {
            let Some(id) = ids.number(object.id) else {
                shadow.leave_out();
                return;
            };
            ids.leaving.remove(&object.id);
            if is_listing {
                shadow.name_object(id);
            }
            shadow.set_object_as(id, &object, |member| ids.number(member));
        }
        FibNotice::NextHopGone(id) => ids.delete(id, shadow),
        FibNotice::Label(route) => shadow.set_label(&route),
        FibNotice::LabelGone(route) => shadow.delete_label(&route),
        FibNotice::Link(..)
        | FibNotice::LinkGone(_)
        | FibNotice::Addresses(_)
        | FibNotice::Lost => {}
    }
}

/// Listens at an address, which the namespace may have only later.
fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_freebind(&socket, true)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_freebind(&socket, true)?,
    }
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests;
