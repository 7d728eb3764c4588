//! Receiving from all three: joining groups, waiting for families that are not there yet, telling
//! of what was lost.

use super::dropmon::{Control, PacketDrop};
use super::psample::PacketSample;
use super::usersock::{self, PortCounters, Status};
use super::{Channel, missing};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use thalweg_netlink::wire::{MessageError, Messages, Raw};
use thalweg_netlink::{Family, Port, Protocol, Question};

/// Room for what was not read yet.
pub const RECEIVE_BUFFER: usize = 8 << 20;
/// Time before a family that was missing is looked for again, and one that was there looked at: a
/// module that was loaded again has another number.
pub const RETRY: Duration = Duration::from_secs(5);
/// Longer datagrams than anybody sends.
const BUFFER: usize = 64 * 1024;
/// Datagrams taken from one channel before the next one's turn.
const TURN: usize = 128;

/// Starts the kernel's drop monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartDrops {
    /// The kernel's own drops.
    pub software: bool,
    /// Drops of devices.
    pub hardware: bool,
    /// Bytes of each packet.
    pub truncate: u32,
    /// Packets that may wait per processor.
    pub queue: u32,
    /// If it runs already, stop it and start it as wanted here.
    pub force: bool,
}

impl Default for StartDrops {
    fn default() -> Self {
        StartDrops { software: true, hardware: true, truncate: 128, queue: 1000, force: false }
    }
}

/// Channels and options of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// Channels.
    pub channels: Vec<Channel>,
    /// Room for what was not read yet, in bytes, per channel.
    pub receive_buffer: usize,
    /// Time until a family that was missing is looked for again.
    pub retry: Duration,
    /// Options to start the kernel's drop monitor, which is stopped at the end; `None` starts none.
    pub start_drops: Option<StartDrops>,
}

impl Default for ReceiverConfig {
    fn default() -> Self {
        ReceiverConfig {
            channels: Channel::ALL.to_vec(),
            receive_buffer: RECEIVE_BUFFER,
            retry: RETRY,
            start_drops: None,
        }
    }
}

/// A message of any channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// A sampled packet.
    Sample(PacketSample<'a>),
    /// A router lives.
    Status(Status),
    /// An interface's counters.
    Counters(PortCounters<'a>),
    /// A dropped packet.
    Drop(PacketDrop<'a>),
}

impl<'a> Message<'a> {
    /// Reads a message of a channel; `family` is its family's number. `None` if the kind is unknown
    /// here.
    ///
    /// # Errors
    /// If its lengths are wrong.
    pub fn decode(
        channel: Channel,
        family: u16,
        raw: &Raw<'a>,
    ) -> Result<Option<Message<'a>>, MessageError> {
        match (channel, raw.header.kind) {
            (Channel::Usersock, usersock::STATUS) => {
                Status::decode(raw.payload).map(|status| Some(Message::Status(status)))
            }
            (Channel::Usersock, usersock::IF_COUNTERS) => {
                PortCounters::decode(raw.payload).map(|port| Some(Message::Counters(port)))
            }
            (Channel::Psample, kind) if kind == family => {
                PacketSample::decode(raw.payload).map(|sample| sample.map(Message::Sample))
            }
            (Channel::Dropmon, kind) if kind == family => {
                PacketDrop::decode(raw.payload).map(|drop| drop.map(Message::Drop))
            }
            _ => Ok(None),
        }
    }
}

/// A notice for the user.
#[derive(Debug)]
pub enum Notice {
    /// The channel can be heard.
    Joined(Channel),
    /// Its family is not there; it is looked for again and again.
    Missing(Channel),
    /// The system refuses; it is tried again and again.
    Refused(Channel, io::Error),
    /// Number of datagrams, each with one or more messages, lost for lack of room, at least.
    Overrun(Channel, u64),
    /// Invalid message.
    Malformed(Channel, MessageError),
    /// A datagram that is longer than any should be.
    TooLong(Channel, usize),
    /// The kernel's drop monitor was started.
    DropsStarted,
    /// The monitor runs already, started by another program.
    DropsRunning,
    /// The monitor could not be started.
    DropsRefused(io::Error),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Joined(channel) => write!(f, "{channel}: listening"),
            Notice::Missing(channel) => write!(f, "{channel}: {}", missing(*channel)),
            Notice::Refused(channel, error) => {
                write!(f, "{channel}: cannot listen: {error}")?;
                match error.kind() {
                    io::ErrorKind::PermissionDenied => f.write_str(" (CAP_NET_ADMIN is needed)"),
                    _ => Ok(()),
                }
            }
            Notice::Overrun(channel, datagrams) => write!(
                f,
                "{channel}: {datagrams} datagrams lost: they arrived faster than they were read"
            ),
            Notice::Malformed(channel, error) => {
                write!(f, "{channel}: malformed message: {error}")
            }
            Notice::TooLong(channel, bytes) => {
                write!(f, "{channel}: skipped a datagram of {bytes} bytes")
            }
            Notice::DropsStarted => f.write_str("kernel drop monitor started"),
            Notice::DropsRunning => f.write_str(
                "kernel drop monitor already running, with the settings of the program that started it",
            ),
            Notice::DropsRefused(error) => {
                write!(f, "cannot start the kernel drop monitor: {error}")
            }
        }
    }
}

/// An incoming message, or a notice.
#[derive(Debug)]
pub enum Event<'a> {
    /// A message.
    Message(Message<'a>),
    /// A notice.
    Notice(Notice),
}

/// The last notice of a channel, which is not repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reported {
    Nothing,
    Joined,
    Missing,
    Refused,
}

/// A channel, heard or not yet.
#[derive(Debug)]
struct Feed {
    channel: Channel,
    port: Option<Port>,
    /// The numbers of family and group that the port has joined.
    numbers: (u16, u32),
    /// Datagrams lost by the port, as far as reported.
    lost: u64,
    reported: Reported,
}

/// Listens to several channels.
#[derive(Debug)]
pub struct Receiver {
    feeds: Vec<Feed>,
    config: ReceiverConfig,
    /// Time to look for families again.
    look: Instant,
    /// The monitor was started here and must be stopped.
    started: Option<StartDrops>,
    buffer: Vec<u8>,
}

impl Receiver {
    /// Takes the configuration. Channels are joined by the first [`poll`](Self::poll), in the
    /// network namespace of the thread that calls it.
    #[must_use]
    pub fn new(config: ReceiverConfig) -> Receiver {
        let feed = |channel: &Channel| Feed {
            channel: *channel,
            port: None,
            numbers: (0, 0),
            lost: 0,
            reported: Reported::Nothing,
        };
        Receiver {
            feeds: config.channels.iter().map(feed).collect(),
            config,
            look: Instant::now(),
            started: None,
            buffer: vec![0; BUFFER],
        }
    }

    /// Returns descriptors that become readable when there is something.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.feeds.iter().filter_map(|feed| feed.port.as_ref().map(Port::as_fd))
    }

    /// Returns the time when [`poll`](Self::poll) wants to be called although nothing can be read.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        self.look
    }

    /// True if a channel is heard.
    #[must_use]
    pub fn hears(&self, channel: Channel) -> bool {
        self.feeds.iter().any(|feed| feed.channel == channel && feed.port.is_some())
    }

    /// Waits up to `timeout` for something to read, and hands it to `handle`, until that breaks or
    /// every channel had its turn. A signal ends the wait.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn poll(
        &mut self,
        timeout: Duration,
        mut handle: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let now = Instant::now();
        if now >= self.look {
            self.look = now + self.config.retry;
            if self.join(&mut handle).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let timeout = timeout.min(self.look.saturating_duration_since(now));
        let mut fds: Vec<PollFd<'_>> = self
            .feeds
            .iter()
            .filter_map(|feed| feed.port.as_ref())
            .map(|port| PollFd::new(port, PollFlags::IN))
            .collect();
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        match poll(&mut fds, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(ControlFlow::Continue(())),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        for feed in &mut self.feeds {
            if feed.read(&mut self.buffer, &mut handle).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Joins new groups, and leaves those that are gone.
    fn join(&mut self, handle: &mut impl FnMut(Event<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        for at in 0..self.feeds.len() {
            let feed = &mut self.feeds[at];
            let (reported, notice) = match feed.join(self.config.receive_buffer) {
                Ok(Some(false)) => continue,
                Ok(Some(true)) => (Reported::Joined, Notice::Joined(feed.channel)),
                Ok(None) => (Reported::Missing, Notice::Missing(feed.channel)),
                Err(error) => (Reported::Refused, Notice::Refused(feed.channel, error)),
            };
            let news = reported == Reported::Joined || feed.reported != reported;
            feed.reported = reported;
            if news {
                handle(Event::Notice(notice))?;
            }
            let drops = self.feeds[at].channel == Channel::Dropmon;
            if let (Reported::Joined, true, Some(how)) = (reported, drops, self.config.start_drops)
            {
                let notice = self.start_drops(at, how);
                handle(Event::Notice(notice))?;
            }
        }
        ControlFlow::Continue(())
    }

    fn start_drops(&mut self, at: usize, how: StartDrops) -> Notice {
        let family = self.feeds[at].numbers.0;
        let mut result = start(family, how);
        let busy = |e: &io::Error| {
            matches!(e.raw_os_error(), Some(code) if code == Errno::BUSY.raw_os_error()
                || code == Errno::AGAIN.raw_os_error())
        };
        if how.force && result.as_ref().is_err_and(busy) {
            let _ = control(family, Control::Stop { software: true, hardware: false });
            let _ = control(family, Control::Stop { software: false, hardware: true });
            result = start(family, how);
        }
        match result {
            Ok(()) => {
                self.started = Some(how);
                Notice::DropsStarted
            }
            Err(error) if busy(&error) => Notice::DropsRunning,
            Err(error) => Notice::DropsRefused(error),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let feed = self.feeds.iter().find(|feed| feed.channel == Channel::Dropmon);
        if let (Some(StartDrops { software, hardware, .. }), Some(feed)) = (self.started, feed) {
            // If this fails, another program has stopped it.
            let _ = control(feed.numbers.0, Control::Stop { software, hardware });
        }
    }
}

fn start(family: u16, how: StartDrops) -> io::Result<()> {
    let StartDrops { software, hardware, truncate, queue, .. } = how;
    control(family, Control::Configure { truncate, queue })?;
    control(family, Control::Start { software, hardware })
}

/// Asks by a socket of its own, so that what the kernel answers is not among the alerts.
fn control(family: u16, what: Control) -> io::Result<()> {
    let port = Port::open(Protocol::Generic)?;
    port.ask(Question::one(family), family, |out, header| what.encode(out, header), |_| {})
}

impl Feed {
    /// True if it was joined right now, false if it is as it was, `None` if it is not there.
    fn join(&mut self, receive_buffer: usize) -> io::Result<Option<bool>> {
        let numbers = match self.channel.family() {
            None => Some((0, usersock::GROUP)),
            Some((family, group, _)) => Family::resolve(family)?
                .and_then(|found| found.group(group).map(|group| (found.id, group))),
        };
        let Some(numbers) = numbers else {
            self.port = None;
            return Ok(None);
        };
        if self.port.is_some() && self.numbers == numbers {
            return Ok(Some(false));
        }
        let protocol = match self.channel {
            Channel::Usersock => Protocol::Usersock,
            _ => Protocol::Generic,
        };
        self.port = None;
        let port = Port::open(protocol)?;
        port.set_receive_buffer(receive_buffer);
        port.join(numbers.1)?;
        (self.port, self.numbers, self.lost) = (Some(port), numbers, 0);
        Ok(Some(true))
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        handle: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let Feed { channel, port: Some(port), numbers, lost, .. } = self else {
            return ControlFlow::Continue(());
        };
        for _ in 0..TURN {
            let length = match port.receive(buffer) {
                Ok(length) => length,
                Err(Errno::AGAIN) => break,
                Err(Errno::NOBUFS) => {
                    // The system reports a lack of room once, and counts the losses.
                    let all = port.lost().unwrap_or(0).max(*lost + 1);
                    let news = all - std::mem::replace(lost, all);
                    handle(Event::Notice(Notice::Overrun(*channel, news)))?;
                    continue;
                }
                Err(error) => {
                    handle(Event::Notice(Notice::Refused(*channel, error.into())))?;
                    break;
                }
            };
            let Some(datagram) = buffer.get(..length) else {
                handle(Event::Notice(Notice::TooLong(*channel, length)))?;
                continue;
            };
            read_datagram(*channel, numbers.0, datagram, handle)?;
        }
        ControlFlow::Continue(())
    }
}

/// A group of any generic family that stands in for PSAMPLE's, for measurements on kernels without.
#[derive(Debug)]
pub struct Joined {
    feed: Feed,
    buffer: Vec<u8>,
}

impl Joined {
    /// Joins the group of that name.
    ///
    /// # Errors
    /// If there is none or the system refuses.
    pub fn generic(family: &Family, group: &str) -> io::Result<Joined> {
        let group = family.group(group).ok_or(io::ErrorKind::NotFound)?;
        let port = Port::open(Protocol::Generic)?;
        port.set_receive_buffer(RECEIVE_BUFFER);
        port.join(group)?;
        let (channel, numbers) = (Channel::Psample, (family.id, group));
        let feed = Feed { channel, port: Some(port), numbers, lost: 0, reported: Reported::Joined };
        Ok(Joined { feed, buffer: vec![0; BUFFER] })
    }

    /// Waits up to `timeout`, and hands over what there is.
    ///
    /// # Errors
    /// If the system cannot wait.
    pub fn read(
        &mut self,
        timeout: Duration,
        mut handle: impl FnMut(Event<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let timeout = Timespec::try_from(timeout).map_err(io::Error::other)?;
        if let Some(port) = &self.feed.port {
            poll(&mut [PollFd::new(port, PollFlags::IN)], Some(&timeout))?;
        }
        Ok(self.feed.read(&mut self.buffer, &mut handle))
    }
}

/// Hands over the messages of a datagram.
pub(super) fn read_datagram(
    channel: Channel,
    family: u16,
    datagram: &[u8],
    handle: &mut impl FnMut(Event<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for raw in Messages::new(datagram) {
        match raw.and_then(|raw| Message::decode(channel, family, &raw)) {
            Ok(Some(message)) => handle(Event::Message(message))?,
            Ok(None) => {}
            Err(error) => handle(Event::Notice(Notice::Malformed(channel, error)))?,
        }
    }
    ControlFlow::Continue(())
}
