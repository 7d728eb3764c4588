//! Datagrams passed on to other collectors as they came.
//!
//! Names are looked up again every minute by a thread of their own: a collector may move.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use thiserror::Error;

/// Reason why a target cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// The text does not name a host and a port.
    #[error("{0:?} is not a valid target: expected HOST/PORT, such as 192.0.2.50/6343 or ::1/6344")]
    Form(String),
    /// Its host has no address.
    #[error("cannot resolve {host}: {why}")]
    Resolve {
        /// The host.
        host: String,
        /// Reason.
        why: io::Error,
    },
    /// No socket could be opened.
    #[error("cannot open a forwarding socket: {0}")]
    Socket(io::Error),
}

/// One target, and what became of the datagrams for it.
#[derive(Debug)]
pub struct Target {
    /// Destination of datagrams.
    pub address: SocketAddr,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that could not be sent.
    pub failed: u64,
}

/// Interval in which names are looked up again.
const RESOLVE: Duration = Duration::from_secs(60);

/// Sends every datagram to every target.
#[derive(Debug)]
pub struct Forwarder {
    targets: Vec<Target>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
    /// Targets by number whose names have other addresses now.
    moved: Option<Receiver<(usize, SocketAddr)>>,
    /// Its end ends the thread that looks names up.
    _stop: Option<Sender<()>>,
}

/// A target by name.
struct Named {
    /// Its number.
    target: usize,
    host: String,
    port: u16,
    address: SocketAddr,
}

impl Forwarder {
    /// Takes targets as `HOST/PORT`; a host may be a name or an address of either family.
    ///
    /// # Errors
    /// When one is malformed or unknown.
    pub fn new<'t>(targets: impl IntoIterator<Item = &'t str>) -> Result<Self, TargetError> {
        let look_up = |host: &str, port: u16| Ok((host, port).to_socket_addrs()?.collect());
        Forwarder::with_resolver(targets, look_up, RESOLVE)
    }

    fn with_resolver<'t, R>(
        targets: impl IntoIterator<Item = &'t str>,
        mut look_up: R,
        every: Duration,
    ) -> Result<Self, TargetError>
    where
        R: FnMut(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    {
        let mut forwarder =
            Forwarder { targets: Vec::new(), v4: None, v6: None, moved: None, _stop: None };
        let mut names = Vec::new();
        for (number, target) in targets.into_iter().enumerate() {
            let (host, port) = parse(target)?;
            let failed = |why| TargetError::Resolve { host: host.to_owned(), why };
            let found = look_up(host, port).map_err(failed)?;
            let address = found.first().copied();
            let address = address.ok_or_else(|| failed(io::Error::other("it has none")))?;
            forwarder.socket(address).map_err(TargetError::Socket)?;
            forwarder.targets.push(Target { address, sent: 0, failed: 0 });
            if host.parse::<IpAddr>().is_err() {
                names.push(Named { target: number, host: host.to_owned(), port, address });
            }
        }
        if !names.is_empty() {
            let (stop, stopped) = mpsc::channel();
            let (to, moved) = mpsc::channel();
            let follow = move || follow(names, look_up, every, &stopped, &to);
            let thread = thread::Builder::new().name("sflow-resolve".into()).spawn(follow);
            thread.map_err(TargetError::Socket)?;
            (forwarder.moved, forwarder._stop) = (Some(moved), Some(stop));
        }
        Ok(forwarder)
    }

    /// A socket to send to that address.
    fn socket(&mut self, address: SocketAddr) -> io::Result<&UdpSocket> {
        let (socket, any) = match address.is_ipv4() {
            true => (&mut self.v4, "0.0.0.0:0"),
            false => (&mut self.v6, "[::]:0"),
        };
        match socket {
            Some(socket) => Ok(socket),
            none => Ok(none.insert(UdpSocket::bind(any)?)),
        }
    }

    /// Sends a datagram to all targets. A target that fails does not keep it from the others; its
    /// first failure is returned.
    pub fn send(&mut self, payload: &[u8]) -> Option<(SocketAddr, io::Error)> {
        while let Some((target, address)) = self.moved.as_ref().and_then(|m| m.try_recv().ok()) {
            // Without a socket for it, the target stays where it was.
            if self.socket(address).is_ok() {
                self.targets[target].address = address;
            }
        }
        let mut first = None;
        for target in &mut self.targets {
            let socket = if target.address.is_ipv4() { &self.v4 } else { &self.v6 };
            let Some(socket) = socket else { continue };
            match socket.send_to(payload, target.address) {
                Ok(_) => target.sent += 1,
                Err(error) => {
                    target.failed += 1;
                    if target.failed == 1 {
                        first.get_or_insert((target.address, error));
                    }
                }
            }
        }
        first
    }

    /// The targets.
    #[must_use]
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }
}

/// Host and port of a target.
fn parse(target: &str) -> Result<(&str, u16), TargetError> {
    let form = || TargetError::Form(target.to_owned());
    let (host, port) = target.rsplit_once('/').ok_or_else(form)?;
    let port: u16 = port.parse().map_err(|_| form())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || port == 0 { Err(form()) } else { Ok((host, port)) }
}

/// Looks names up again and again, until no receiver is left. A name that keeps its address, or is
/// not answered for now, stays where it is.
fn follow(
    mut names: Vec<Named>,
    mut look_up: impl FnMut(&str, u16) -> io::Result<Vec<SocketAddr>>,
    every: Duration,
    stopped: &Receiver<()>,
    to: &Sender<(usize, SocketAddr)>,
) {
    while matches!(stopped.recv_timeout(every), Err(RecvTimeoutError::Timeout)) {
        for name in &mut names {
            let Ok(found) = look_up(&name.host, name.port) else { continue };
            let Some(first) = found.first().filter(|_| !found.contains(&name.address)) else {
                continue;
            };
            name.address = *first;
            if to.send((name.target, *first)).is_err() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    #[test]
    fn a_name_is_followed_to_its_new_address() {
        let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let addresses = sockets.each_ref().map(|s| s.local_addr().unwrap());
        let now = Arc::new(Mutex::new(Some(vec![addresses[0]])));
        let answers = now.clone();
        let look_up = move |host: &str, _| {
            assert_eq!(host, "collector.example");
            answers.lock().unwrap().clone().ok_or_else(|| io::Error::other("no answer"))
        };
        let every = Duration::from_millis(1);
        let mut forwarder =
            Forwarder::with_resolver(["collector.example/6343"], look_up, every).unwrap();
        forwarder.send(b"first");
        // An answer with the old address among others, or with none at all, changes nothing.
        *now.lock().unwrap() = Some(vec![addresses[1], addresses[0]]);
        // Paced: the name is looked up some times meanwhile.
        thread::sleep(20 * every);
        *now.lock().unwrap() = None;
        // Paced: as above.
        thread::sleep(20 * every);
        forwarder.send(b"second");
        assert_eq!(forwarder.targets()[0].address, addresses[0]);
        *now.lock().unwrap() = Some(vec![addresses[1]]);
        let start = Instant::now();
        while forwarder.targets()[0].address != addresses[1] {
            assert!(start.elapsed() < Duration::from_secs(60), "the name is not looked up");
            forwarder.send(b"on the way");
        }
        let mut buf = [0; 64];
        let (length, _) = sockets[1].recv_from(&mut buf).unwrap();
        assert_eq!(&buf[..length], b"on the way");
    }

    #[test]
    fn datagrams_go_to_all_targets_unchanged() {
        let v4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sockets = vec![v4];
        // Some machines have no IPv6.
        sockets.extend(UdpSocket::bind("[::1]:0"));
        let targets: Vec<String> = sockets
            .iter()
            .map(|s| s.local_addr().unwrap())
            .map(|a| format!("{}/{}", a.ip(), a.port()))
            .collect();
        let mut forwarder = Forwarder::new(targets.iter().map(String::as_str)).unwrap();
        assert!(forwarder.send(b"as it is").is_none());
        for socket in &sockets {
            socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut buf = [0; 64];
            let (length, _) = socket.recv_from(&mut buf).unwrap();
            assert_eq!(&buf[..length], b"as it is");
        }
        assert!(forwarder.targets().iter().all(|t| (t.sent, t.failed) == (1, 0)));
    }

    #[test]
    fn a_target_that_fails_does_not_keep_the_others_waiting() {
        let good = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = good.local_addr().unwrap().port();
        // A datagram of this length is refused by the system, one of the other is not.
        let good = format!("127.0.0.1/{port}");
        let mut forwarder = Forwarder::new(["127.0.0.1/9", good.as_str()]).unwrap();
        let error = forwarder.send(&vec![0; 70_000]).unwrap();
        assert_eq!(error.0.port(), 9);
        assert!(forwarder.send(&vec![0; 70_000]).is_none(), "only the first failure is logged");
        assert!(forwarder.send(b"small").is_none());
        let counts: Vec<_> = forwarder.targets().iter().map(|t| (t.sent, t.failed)).collect();
        assert_eq!(counts, [(1, 2), (1, 2)]);
    }

    #[test]
    fn malformed_targets_are_explained() {
        for bad in ["192.0.2.1", "192.0.2.1/", "192.0.2.1/0", "/6343", "192.0.2.1/70000"] {
            let error = Forwarder::new([bad]).unwrap_err().to_string();
            assert!(error.contains("expected HOST/PORT"), "{error}");
        }
        assert_eq!(parse("[::1]/6343").unwrap(), ("::1", 6343));
    }
}
