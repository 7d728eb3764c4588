//! The server's thread.

use crate::client::{Client, ClientId, Links};
use crate::clients::Clients;
use crate::wire::{FRAMING, Framed, framed};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use thalweg_socket::{LocalSocket, Peer, crowding, peer_of};

/// Maximum number of bytes read at once.
const CHUNK: usize = 64 << 10;

pub(super) struct Thread {
    listener: LocalSocket,
    links: Arc<Links>,
    clients: Clients,
    stop: Arc<AtomicBool>,
    connections: Vec<Connection>,
    next: u32,
    chunk: Vec<u8>,
    /// Time to accept again after a failure.
    accept_at: Option<Instant>,
}

/// State that this thread has of a client.
struct Connection {
    client: Arc<Client>,
    /// Its user, if the system reports it.
    user: Option<Peer>,
    /// An incomplete message.
    partial: Vec<u8>,
    /// True if it sends nothing more.
    ended: bool,
    /// Time since which the client has kept the server waiting, and what for.
    waiting: Option<(Instant, Waiting)>,
    /// True if bytes were written since the last check.
    progress: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waiting {
    Name,
    Message,
    Reader,
}

impl Waiting {
    fn reason(self, patience: Duration) -> String {
        let seconds = patience.as_secs_f32();
        match self {
            Waiting::Name => format!("no `sockclnt_create' within {seconds} s"),
            Waiting::Message => format!("incomplete message for {seconds} s"),
            Waiting::Reader => format!("replies not read for {seconds} s"),
        }
    }
}

impl Thread {
    pub(super) fn new(
        listener: LocalSocket,
        links: Arc<Links>,
        clients: Clients,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            listener,
            links,
            clients,
            stop,
            connections: Vec::new(),
            next: 1 << 31,
            chunk: vec![0; CHUNK],
            accept_at: None,
        }
    }

    pub(super) fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            let deadline = self.look();
            let ready = match self.wait(deadline) {
                Ok(ready) => ready,
                Err(rustix::io::Errno::INTR) => continue,
                Err(error) => {
                    tracing::error!(%error, "the API server stops");
                    break;
                }
            };
            self.handle(&ready);
        }
        for connection in self.connections.drain(..) {
            end(&self.clients, &connection.client);
        }
    }

    /// Removes finished clients, and returns when to check again.
    fn look(&mut self) -> Option<Instant> {
        let (now, patience) = (Instant::now(), self.links.limits.patience);
        let mut deadline = self.accept_at;
        let clients = &self.clients;
        self.connections.retain_mut(|connection| {
            connection.client.unblock();
            if let Some(since) = connection.keeps_waiting(now) {
                let at = since + patience;
                if at <= now
                    && let Some((_, what)) = connection.waiting
                {
                    connection.client.close(what.reason(patience));
                }
                deadline = Some(deadline.map_or(at, |deadline| deadline.min(at)));
            }
            if connection.is_through() {
                end(clients, &connection.client);
                return false;
            }
            true
        });
        deadline
    }

    fn wait(&self, deadline: Option<Instant>) -> rustix::io::Result<Vec<PollFlags>> {
        let accept = match self.accept_at.is_some_and(|at| at > Instant::now()) {
            true => PollFlags::empty(),
            false => PollFlags::IN,
        };
        let mut fds = vec![
            PollFd::new(&self.links.waker, PollFlags::IN),
            PollFd::new(&self.listener, accept),
        ];
        for connection in &self.connections {
            let interest = connection.client.interest();
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, interest.read && !connection.ended);
            flags.set(PollFlags::OUT, interest.write);
            fds.push(PollFd::new(connection.client.stream(), flags));
        }
        let timeout = deadline.map(|at| {
            let left = at.saturating_duration_since(Instant::now());
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) }
        });
        poll(&mut fds, timeout.as_ref())?;
        Ok(fds.iter().map(PollFd::revents).collect())
    }

    fn handle(&mut self, ready: &[PollFlags]) {
        let [wake, accept, ready @ ..] = ready else { return };
        if !wake.is_empty() {
            self.links.waker.clear();
        }
        for (connection, flags) in self.connections.iter_mut().zip(ready) {
            let before = connection.client.info().3;
            if flags.contains(PollFlags::OUT) {
                connection.client.write();
                connection.client.unblock();
            }
            connection.progress |= connection.client.info().3 < before;
            if flags.contains(PollFlags::IN) {
                connection.read(&mut self.chunk, &self.links);
            } else if flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                // Nothing to read and nothing to write.
                connection.ended = true;
                connection.client.set_gone();
            }
        }
        if !accept.is_empty() {
            self.accept();
        }
    }

    fn accept_one(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::from(self.listener.accept()?);
        stream.set_nonblocking(true)?;
        Ok(stream)
    }

    fn accept(&mut self) {
        self.accept_at = None;
        loop {
            let stream = match self.accept_one() {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an API client");
                    // Descriptors have probably run out: it will not pass at once.
                    self.accept_at = Some(Instant::now() + Duration::from_millis(100));
                    return;
                }
            };
            let limits = &self.links.limits;
            let most = limits.clients;
            let user = peer_of(&stream).ok();
            let reserve = if user.is_some_and(Peer::is_root) { limits.root_clients } else { 0 };
            let seats = self.connections.iter().enumerate();
            let seats = seats.filter(|(_, c)| c.client.closing().is_none());
            if seats.clone().count() >= most + reserve {
                let Some(old) = crowding(user, seats.map(|(i, c)| (i, c.user))) else {
                    tracing::warn!("API client refused: the limit is {most} clients");
                    continue;
                };
                let why = "its user has the most clients, and another user's came";
                self.connections[old].client.close(why.to_owned());
            }
            // Clients treat 0 as none; no id is reused for a long time.
            self.next = (self.next + 1) | 1 << 31;
            let client = Client::new(ClientId(self.next), stream, self.links.clone());
            let client = Arc::new(client);
            self.clients.add(client.clone());
            self.connections.push(Connection {
                client,
                user,
                partial: Vec::new(),
                ended: false,
                waiting: None,
                progress: false,
            });
        }
    }
}

/// Disconnects a client and notifies the main thread.
fn end(clients: &Clients, client: &Arc<Client>) {
    match client.closing() {
        Some(reason) if !reason.is_empty() => {
            tracing::warn!("{} disconnected: {reason}", client.label());
        }
        _ => tracing::debug!("{} is gone", client.label()),
    }
    client.set_gone();
    clients.remove(client.id());
    let _ = client.stream().shutdown(Shutdown::Both);
    client.schedule();
}

impl Connection {
    /// Returns since when the client has kept the server waiting, if it does.
    fn keeps_waiting(&mut self, now: Instant) -> Option<Instant> {
        let interest = self.client.interest();
        let what = if interest.write {
            Some(Waiting::Reader)
        } else if !self.partial.is_empty() {
            Some(Waiting::Message)
        } else if !interest.registered {
            Some(Waiting::Name)
        } else {
            None
        };
        let progress = std::mem::take(&mut self.progress);
        self.waiting = match (what, self.waiting) {
            (None, _) => None,
            (Some(what), Some((since, before))) if what == before && !progress => {
                Some((since, what))
            }
            (Some(what), _) => Some((now, what)),
        };
        self.waiting.map(|(since, _)| since)
    }

    /// Returns true if nothing is left to do for the client.
    fn is_through(&self) -> bool {
        match self.client.closing() {
            // Earlier replies still have to be sent.
            Some(reason) if reason.is_empty() => !self.client.interest().write,
            Some(_) => true,
            None => self.ended && self.client.interest().idle,
        }
    }

    fn read(&mut self, chunk: &mut [u8], links: &Links) {
        match self.client.stream().read(chunk) {
            Ok(0) => {
                self.ended = true;
                self.client.set_ended();
            }
            Ok(n) => {
                self.progress = true;
                self.partial.extend_from_slice(&chunk[..n]);
                self.take_messages(links);
            }
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(_) => {
                self.ended = true;
                self.client.set_gone();
            }
        }
    }

    /// Moves complete messages from the input to the inbox.
    fn take_messages(&mut self, links: &Links) {
        let (mut at, most) = (0, links.limits.message);
        loop {
            match framed(&self.partial[at..], most) {
                Framed::Message(message) => {
                    self.client.push(message.to_vec());
                    at += FRAMING + message.len();
                }
                Framed::Partial => break,
                Framed::TooLong(length) => {
                    let reason = format!("message of {length} bytes, the limit is {most}");
                    self.client.close(reason);
                    self.ended = true;
                    break;
                }
            }
        }
        self.partial.drain(..at);
        if at > 0 {
            self.client.schedule();
        }
    }
}
