//! The collectors: who they are, where they are now, what became of what they were sent.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use nix::net::if_::if_nametoindex;
use nix::sys::socket::{setsockopt, sockopt};

use super::background::{BackgroundTask, enter_namespace, namespace_file};
use super::transport::UdpSender;
use super::{Batch, Transport};

/// An interface, a route or a namespace may come later; there is no point in trying for each
/// datagram.
const RETRY: Duration = Duration::from_secs(1);
/// Interval in which a name is looked up again.
const RESOLVE: Duration = Duration::from_secs(60);
/// Interval of checks whether a namespace is still the one that was entered.
const LOOK: Duration = Duration::from_secs(2);
/// A collector that comes and goes is logged this often.
const LOG: Duration = Duration::from_secs(60);

/// A collector by address or by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Host {
    /// Its address.
    Ip(IpAddr),
    /// Its link-local address, and the device of that link.
    Scoped(Ipv6Addr, String),
    /// Its name, to be looked up.
    Name(String),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Host::Ip(ip) => ip.fmt(f),
            Host::Scoped(ip, device) => write!(f, "{ip}%{device}"),
            Host::Name(name) => name.fmt(f),
        }
    }
}

/// Destination of datagrams.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CollectorConfig {
    /// The collector.
    pub host: Host,
    /// Its UDP port.
    pub port: u16,
    /// Send from within this network namespace, a name under `/var/run/netns`.
    pub namespace: Option<String>,
    /// Send through this device, whatever routing says; in the namespace, if one is given.
    pub device: Option<String>,
    /// The local address to send from; `None` leaves it to routing.
    pub bind: Option<IpAddr>,
}

impl From<SocketAddr> for CollectorConfig {
    fn from(addr: SocketAddr) -> Self {
        CollectorConfig::new(Host::Ip(addr.ip()), addr.port())
    }
}

/// Its address or name and port, then its other settings.
impl fmt::Display for CollectorConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Ip(ip) => SocketAddr::new(*ip, self.port).fmt(f)?,
            Host::Scoped(..) => write!(f, "[{}]:{}", self.host, self.port)?,
            Host::Name(name) => write!(f, "{name}:{}", self.port)?,
        }
        for (word, value) in [("namespace", &self.namespace), ("dev", &self.device)] {
            if let Some(value) = value {
                write!(f, " {word} {value}")?;
            }
        }
        Ok(())
    }
}

impl CollectorConfig {
    /// A collector that is reached as routing says.
    #[must_use]
    pub fn new(host: Host, port: u16) -> Self {
        CollectorConfig { host, port, namespace: None, device: None, bind: None }
    }

    /// Reads an address or a name; the port is that of sFlow.
    ///
    /// # Errors
    /// If it is neither. The message says what is possible.
    pub fn parse_host(text: &str) -> Result<Host, String> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Host::Ip(ip));
        }
        if let Some((ip, device)) = text.split_once('%')
            && let Ok(ip) = ip.parse::<Ipv6Addr>()
        {
            if !ip.is_unicast_link_local() || bad_name(device, DEVICE) {
                let right = "only a link-local address takes a device, such as fe80::1%eth0";
                return Err(format!("`{text}': {right}"));
            }
            return Ok(Host::Scoped(ip, device.to_owned()));
        }
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        // A word of digits and dots is a mistyped address.
        let name = text.len() <= 253 && text.chars().all(good);
        let letter = text.contains(|c: char| c.is_ascii_alphabetic());
        if name && letter && !text.starts_with(['-', '.']) {
            return Ok(Host::Name(text.to_owned()));
        }
        Err(format!("`{text}' is neither an IP address nor a host's name"))
    }

    /// Checks that something could be sent there.
    ///
    /// # Errors
    /// If not. The message says why.
    pub fn check(&self) -> Result<(), String> {
        let nowhere = matches!(self.host, Host::Ip(ip) if ip.is_unspecified());
        if nowhere || self.port == 0 {
            let hint = "give an address and a port other than 0";
            return Err(format!("invalid collector {self}: {hint}"));
        }
        match (&self.namespace, &self.device) {
            (Some(name), _) if bad_name(name, 255) => {
                return Err(format!("`{name}' is not the name of a network namespace"));
            }
            (_, Some(name)) if bad_name(name, DEVICE) => {
                return Err(format!("`{name}' is not a device name"));
            }
            _ => {}
        }
        match self.host {
            Host::Ip(IpAddr::V6(ip)) if ip.is_unicast_link_local() && self.device.is_none() => {
                Err(format!("{ip} is an address on one link: say which, such as {ip}%eth0"))
            }
            _ => Ok(()),
        }
    }

    /// Opening its socket may take a while or must be done elsewhere.
    fn is_far(&self) -> bool {
        self.namespace.is_some() || matches!(self.host, Host::Name(_))
    }

    /// Returns its present addresses, by name resolution.
    fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        match &self.host {
            Host::Ip(ip) => Ok(vec![SocketAddr::new(*ip, self.port)]),
            // The device's number is found where the socket is.
            Host::Scoped(ip, _) => Ok(vec![SocketAddr::new((*ip).into(), self.port)]),
            Host::Name(name) => {
                let found = (name.as_str(), self.port).to_socket_addrs();
                let found = found.map_err(|e| io::Error::new(e.kind(), format!("{name}: {e}")))?;
                Ok(found.collect())
            }
        }
    }

    /// Opens a socket, from within the namespace if there is one: this thread stays there. A name
    /// that still has the address `current` changes nothing.
    fn open(&self, current: Option<SocketAddr>) -> io::Result<Option<(UdpSocket, SocketAddr)>> {
        // Names are looked up where the host's resolver is, not in the namespace.
        let found = self.addresses()?;
        if current.is_some_and(|current| found.contains(&current)) {
            return Ok(None);
        }
        if let Some(namespace) = &self.namespace {
            enter_namespace(namespace)?;
        }
        let mut failure = io::Error::other(format!("{} has no address", self.host));
        for addr in found {
            match self.connect(addr) {
                Ok(socket) => return Ok(Some((socket, addr))),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }

    fn connect(&self, addr: SocketAddr) -> io::Result<UdpSocket> {
        let any = match addr {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let socket = UdpSocket::bind((self.bind.unwrap_or(any), 0))?;
        let mut addr = addr;
        if let Some(device) = &self.device {
            setsockopt(&socket, sockopt::BindToDevice, &device.into())
                .map_err(|e| of_device(device, e))?;
        }
        let link = match &self.host {
            Host::Scoped(_, device) => Some(device),
            _ => self.device.as_ref(),
        };
        if let (Some(device), SocketAddr::V6(v6)) = (link, addr)
            && v6.ip().is_unicast_link_local()
        {
            let scope = if_nametoindex(device.as_str()).map_err(|e| of_device(device, e))?;
            addr = SocketAddrV6::new(*v6.ip(), v6.port(), 0, scope).into();
        }
        socket.connect(addr)?;
        Ok(socket)
    }
}

/// Most characters of a device's name.
const DEVICE: usize = 15;

/// True if nothing below a directory of the system can have this name.
fn bad_name(name: &str, longest: usize) -> bool {
    let special = name.is_empty() || name == "." || name == "..";
    // Characters with a meaning in a command line would not come back from a document.
    let odd = |c: char| c.is_whitespace() || c.is_control() || "/{}|\"'#\\".contains(c);
    special || name.len() > longest || name.contains(odd)
}

fn of_device(device: &str, error: nix::Error) -> io::Error {
    io::Error::new(io::Error::from(error).kind(), format!("{device}: {error}"))
}

/// Counts of datagrams for one collector.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectorStats {
    /// Datagrams sent.
    pub datagrams: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Datagrams not sent, or known to be lost.
    pub send_errors: u64,
    /// Errors among these for lack of room in the send buffer.
    pub would_block: u64,
    /// Errors among these for ICMP port unreachable.
    pub refused: u64,
    /// The address, once a name is known to have it.
    pub addr: Option<SocketAddr>,
    /// The latest reason.
    pub last_error: Option<String>,
}

impl CollectorStats {
    pub(super) fn failed(&mut self, datagrams: usize, why: &dyn fmt::Display) {
        self.send_errors += datagrams as u64;
        let why = why.to_string();
        if self.last_error.as_ref() != Some(&why) {
            self.last_error = Some(why);
        }
    }
}

/// Identity of a namespace's file.
type Identity = Option<(u64, u64)>;

type Opened = io::Result<Option<(UdpSocket, SocketAddr)>>;

/// One collector.
#[derive(Debug)]
struct Target {
    config: CollectorConfig,
    sender: Option<UdpSender>,
    task: Option<BackgroundTask<Opened>>,
    /// Time to try to open the socket, or to look the name up again.
    next_try: Option<Instant>,
    /// The namespace that the socket is in, and when to look whether it still exists.
    namespace: Identity,
    next_look: Instant,
    stats: CollectorStats,
    /// The latest logged state and its time.
    logged: Option<(bool, Instant)>,
}

impl Target {
    fn new(config: CollectorConfig, now: Instant) -> Target {
        let mut target = Target {
            config,
            sender: None,
            task: None,
            next_try: Some(now),
            namespace: None,
            next_look: now,
            stats: CollectorStats::default(),
            logged: None,
        };
        if target.config.is_far() {
            target.open(now);
        }
        target
    }

    fn identity(&self) -> Identity {
        let file = namespace_file(self.config.namespace.as_ref()?);
        std::fs::metadata(file).ok().map(|m| (m.dev(), m.ino()))
    }

    /// Begins to open a socket, or to look up the name again.
    fn open(&mut self, now: Instant) {
        self.next_try = None;
        let current = self.stats.addr.filter(|_| self.sender.is_some());
        if !self.config.is_far() {
            let opened = self.config.open(current);
            return self.opened(opened, now);
        }
        self.namespace = self.identity();
        let config = self.config.clone();
        match BackgroundTask::start("sflow-open", move || config.open(current)) {
            Ok(task) => self.task = Some(task),
            Err(error) => self.opened(Err(error), now),
        }
    }

    fn opened(&mut self, opened: Opened, now: Instant) {
        let named = matches!(self.config.host, Host::Name(_));
        match opened.and_then(|o| o.map(|(s, a)| Ok((UdpSender::new(s)?, a))).transpose()) {
            Ok(Some((sender, addr))) => {
                self.sender = Some(sender);
                self.stats.addr = Some(addr);
                self.next_try = named.then(|| now + RESOLVE);
            }
            Ok(None) => self.next_try = Some(now + RESOLVE),
            Err(error) => {
                // A name that is not answered for now keeps the address it had.
                let again = if self.sender.is_some() { RESOLVE } else { RETRY };
                self.next_try = Some(now + again);
                self.stats.failed(0, &error);
            }
        }
    }

    /// Does what is due.
    fn tick(&mut self, now: Instant) {
        if let Some(task) = &self.task
            && let Some(done) = task.poll()
        {
            self.task = None;
            self.opened(done.and_then(|opened| opened), now);
        }
        if self.config.namespace.is_some() && self.sender.is_some() && now >= self.next_look {
            self.next_look = now + LOOK;
            if self.identity() != self.namespace {
                // The socket keeps the old namespace alive, but no process can be in it any more.
                self.sender = None;
                self.next_try = Some(now);
                self.stats.failed(0, &"its namespace was deleted");
            }
        }
        if self.next_try.is_some_and(|at| now >= at) {
            self.open(now);
        }
    }

    fn send(&mut self, batch: &Batch, now: Instant) {
        self.tick(now);
        let errors = self.stats.send_errors;
        match &mut self.sender {
            Some(sender) => {
                if sender.send(batch, &mut self.stats).is_err() {
                    // The route, the device or the local address may be gone: start afresh.
                    self.sender = None;
                    self.next_try = Some(now + RETRY);
                }
            }
            None => {
                self.stats.send_errors += batch.len() as u64;
                if self.stats.last_error.is_none() {
                    self.stats.last_error = Some("its name is being resolved".into());
                }
            }
        }
        self.log(errors == self.stats.send_errors, now);
    }

    /// Logs that it went away or is back, but not all the time.
    fn log(&mut self, good: bool, now: Instant) {
        let first_good = self.logged.is_none() && good;
        let same = self.logged.is_some_and(|(was, _)| was == good);
        let soon = self.logged.is_some_and(|(_, at)| now < at + LOG);
        if first_good || same || soon {
            return;
        }
        self.logged = Some((good, now));
        let CollectorStats { send_errors, last_error, .. } = &self.stats;
        if good {
            tracing::info!(
                "sflow: collector {} is reachable again ({send_errors} datagrams lost)",
                self.config
            );
        } else {
            let why = last_error.as_deref().unwrap_or("unknown");
            tracing::warn!("sflow: collector {} is unreachable: {why}", self.config);
        }
    }
}

/// All collectors; each gets every datagram, and none waits for another.
#[derive(Debug, Default)]
pub struct Collectors {
    targets: Vec<Target>,
}

impl Collectors {
    /// Creates a set without collectors.
    #[must_use]
    pub fn new() -> Self {
        Collectors::default()
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// True if these are the present collectors, in this order.
    #[must_use]
    pub fn are(&self, configs: &[CollectorConfig]) -> bool {
        self.targets.iter().map(|t| &t.config).eq(configs)
    }

    /// Takes other collectors. One that stays keeps its socket and its counts.
    pub fn configure(&mut self, configs: &[CollectorConfig], now: Instant) {
        let mut old = std::mem::take(&mut self.targets);
        let target = |config: &CollectorConfig| match old.iter().position(|t| t.config == *config) {
            Some(at) => old.swap_remove(at),
            None => Target::new(config.clone(), now),
        };
        self.targets = configs.iter().map(target).collect();
    }

    /// Returns the counts by collector.
    pub fn stats(&self) -> impl ExactSizeIterator<Item = (&CollectorConfig, &CollectorStats)> {
        self.targets.iter().map(|t| (&t.config, &t.stats))
    }
}

impl Transport for Collectors {
    fn send(&mut self, batch: &Batch, now: Instant) {
        self.targets.iter_mut().for_each(|target| target.send(batch, now));
    }
}

impl Transport for std::rc::Rc<std::cell::RefCell<Collectors>> {
    fn send(&mut self, batch: &Batch, now: Instant) {
        self.borrow_mut().send(batch, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(datagrams: &[&[u8]]) -> Batch {
        let mut batch = Batch::new();
        datagrams.iter().for_each(|d| batch.push(d));
        batch
    }

    fn receiver(ip: &str) -> Option<UdpSocket> {
        let socket = UdpSocket::bind((ip, 0)).ok()?;
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        Some(socket)
    }

    fn receive(socket: &UdpSocket) -> Vec<u8> {
        let mut buf = [0; 2000];
        let length = socket.recv(&mut buf).unwrap();
        buf[..length].to_vec()
    }

    /// A batch of few and of many, of one length and of several, arrives as it was, in order, while
    /// another collector refuses everything.
    #[test]
    fn batches_arrive_and_a_missing_collector_is_counted() {
        for ip in ["127.0.0.1", "::1"] {
            let Some(here) = receiver(ip) else {
                assert_eq!(ip, "::1", "IPv4 is missing");
                continue;
            };
            let away = receiver(ip).unwrap().local_addr().unwrap();
            let now = Instant::now();
            let mut collectors = Collectors::new();
            collectors.configure(&[away.into(), here.local_addr().unwrap().into()], now);
            let mut sent = 0;
            for lengths in [[1000; 60].to_vec(), vec![9], vec![7, 7, 7, 5, 800, 800], vec![1; 64]] {
                let datagrams: Vec<Vec<u8>> =
                    lengths.iter().enumerate().map(|(i, n)| vec![i as u8; *n]).collect();
                let slices: Vec<&[u8]> = datagrams.iter().map(Vec::as_slice).collect();
                collectors.send(&batch(&slices), now);
                for expected in &datagrams {
                    assert_eq!(&receive(&here), expected);
                }
                sent += datagrams.len() as u64;
            }
            let stats: Vec<_> = collectors.stats().map(|(_, stats)| stats.clone()).collect();
            assert!(stats[0].refused >= 1, "{stats:?}");
            assert!(stats[0].last_error.as_ref().unwrap().contains("nothing listens"));
            assert_eq!((stats[1].datagrams, stats[1].send_errors), (sent, 0));
        }
    }

    fn wait(collectors: &mut Collectors, what: impl Fn(&CollectorStats) -> bool) {
        let end = Instant::now() + Duration::from_secs(60);
        while !collectors.stats().all(|(_, stats)| what(stats)) {
            assert!(Instant::now() < end, "{:?}", collectors.stats().collect::<Vec<_>>());
            std::thread::yield_now();
            collectors.send(&batch(&[b"x"]), Instant::now());
        }
    }

    #[test]
    fn names_are_looked_up_elsewhere() {
        let here = receiver("127.0.0.1").unwrap();
        let port = here.local_addr().unwrap().port();
        let mut collectors = Collectors::new();
        let named = |name: &str| CollectorConfig::new(Host::Name(name.into()), port);
        collectors.configure(&[named("localhost")], Instant::now());
        wait(&mut collectors, |stats| stats.addr.is_some());
        // A resolver that knows no name cannot be tested, only survived.
        collectors.configure(&[named("no-such-host.invalid")], Instant::now());
        wait(&mut collectors, |stats| {
            stats.last_error.as_ref().is_some_and(|e| e.contains("no-such-host.invalid"))
        });
    }

    #[test]
    fn what_is_not_there_is_said() {
        let config = CollectorConfig {
            namespace: Some("no-such-namespace".into()),
            ..CollectorConfig::from("127.0.0.1:6343".parse::<SocketAddr>().unwrap())
        };
        assert_eq!(config.to_string(), "127.0.0.1:6343 namespace no-such-namespace");
        let mut collectors = Collectors::new();
        collectors.configure(&[config], Instant::now());
        wait(&mut collectors, |stats| {
            let said = stats.last_error.as_deref().unwrap_or_default();
            said.contains("there is no /var/run/netns/no-such-namespace") && stats.send_errors > 0
        });
        let config = CollectorConfig {
            device: Some("no-such-device".into()),
            ..CollectorConfig::from("127.0.0.1:6343".parse::<SocketAddr>().unwrap())
        };
        collectors.configure(&[config], Instant::now());
        wait(&mut collectors, |stats| {
            stats.last_error.as_ref().is_some_and(|e| e.starts_with("no-such-device"))
        });
    }

    /// Collectors that stay keep their counts; collectors that go and come start over.
    #[test]
    fn collectors_come_and_go() {
        let now = Instant::now();
        let sockets: Vec<_> = (0..40).map(|_| receiver("127.0.0.1").unwrap()).collect();
        let configs: Vec<CollectorConfig> =
            sockets.iter().map(|s| s.local_addr().unwrap().into()).collect();
        let mut collectors = Collectors::new();
        for round in 0..40 {
            // One is away each time, and the order changes.
            let mut there = configs.clone();
            there.remove(round);
            there.rotate_left(round % 39);
            collectors.configure(&there, now);
            assert!(collectors.are(&there) && !collectors.are(&configs));
            collectors.send(&batch(&[&[round as u8]]), now);
        }
        for (socket, at) in sockets.iter().zip(0..) {
            for round in (0..40).filter(|round| *round != at) {
                assert_eq!(receive(socket), [round]);
            }
        }
        for (config, stats) in collectors.stats() {
            let at = configs.iter().position(|c| c == config).unwrap() as u64;
            assert_eq!((stats.datagrams, stats.send_errors), (39 - at, 0), "{config}");
        }
    }

    #[test]
    fn impossible_collectors_are_refused() {
        for bad in ["", "300.1.1.1", "1.2.3", "a b", "-x", "x/y", &"a".repeat(254)] {
            assert!(CollectorConfig::parse_host(bad).is_err(), "{bad}");
        }
        let name = CollectorConfig::parse_host("collector-1.example").unwrap();
        let good = CollectorConfig::new(name, 6343);
        assert_eq!((good.check(), good.to_string()), (Ok(()), "collector-1.example:6343".into()));
        let check = |change: fn(&mut CollectorConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert!(check(|c| c.port = 0).starts_with("invalid collector collector-1.example:0: "));
        assert!(
            check(|c| c.host = Host::Ip(Ipv4Addr::UNSPECIFIED.into())).contains("0.0.0.0:6343")
        );
        assert!(check(|c| c.namespace = Some("../x".into())).contains("network namespace"));
        assert!(check(|c| c.device = Some("a-very-long-name".into())).contains("device"));
    }
}
