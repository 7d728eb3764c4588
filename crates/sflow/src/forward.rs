//! Datagrams passed on to other collectors as they came.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs, UdpSocket};

use thiserror::Error;

/// Why a target cannot be used.
#[derive(Debug, Error)]
pub enum TargetError {
    /// It does not name a host and a port.
    #[error("{0:?} is not a valid target: expected HOST/PORT, such as 192.0.2.50/6343 or ::1/6344")]
    Form(String),
    /// Its host has no address.
    #[error("cannot resolve {host}: {why}")]
    Resolve {
        /// The host.
        host: String,
        /// Why not.
        why: io::Error,
    },
    /// There is no socket to send by.
    #[error("cannot open a forwarding socket: {0}")]
    Socket(io::Error),
}

/// One target, and what became of the datagrams for it.
#[derive(Debug)]
pub struct Target {
    /// Where datagrams go.
    pub address: SocketAddr,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams that could not be sent.
    pub failed: u64,
}

/// Sends every datagram to every target.
#[derive(Debug)]
pub struct Forwarder {
    targets: Vec<Target>,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Forwarder {
    /// Takes targets as `HOST/PORT`; a host may be a name or an address of either family.
    ///
    /// # Errors
    /// When one is malformed or unknown.
    pub fn new<'t>(targets: impl IntoIterator<Item = &'t str>) -> Result<Self, TargetError> {
        let mut forwarder = Forwarder { targets: Vec::new(), v4: None, v6: None };
        for target in targets {
            let address = resolve(target)?;
            let socket = if address.is_ipv4() { &mut forwarder.v4 } else { &mut forwarder.v6 };
            if socket.is_none() {
                let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
                *socket = Some(UdpSocket::bind(any).map_err(TargetError::Socket)?);
            }
            forwarder.targets.push(Target { address, sent: 0, failed: 0 });
        }
        Ok(forwarder)
    }

    /// Sends a datagram to all targets. A target that fails does not keep it from the others; its
    /// first failure is returned.
    pub fn send(&mut self, payload: &[u8]) -> Option<(SocketAddr, io::Error)> {
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

fn resolve(target: &str) -> Result<SocketAddr, TargetError> {
    let form = || TargetError::Form(target.to_owned());
    let (host, port) = target.rsplit_once('/').ok_or_else(form)?;
    let port: u16 = port.parse().map_err(|_| form())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || port == 0 {
        return Err(form());
    }
    let failed = |why| TargetError::Resolve { host: host.to_owned(), why };
    let mut found = (host, port).to_socket_addrs().map_err(failed)?;
    found.next().ok_or_else(|| failed(io::Error::other("it has none")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn datagrams_go_to_all_targets_unchanged() {
        let v4 = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut sockets = vec![v4];
        // There are machines without IPv6.
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
        assert_eq!(resolve("[::1]/6343").unwrap(), "[::1]:6343".parse().unwrap());
    }
}
