//! The receiving end of sFlow.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use thalweg_sflow::SFLOW_PORT;
use thalweg_testkit::Netns;

/// A UDP socket on the sFlow port of a namespace.
pub struct Collector {
    socket: UdpSocket,
}

impl Collector {
    /// Listens on 127.0.0.1 in `ns`.
    ///
    /// # Errors
    /// If the port is taken.
    pub fn listen(ns: &Netns) -> Result<Collector> {
        let socket = ns
            .run(|| UdpSocket::bind(("127.0.0.1", SFLOW_PORT)))?
            .context("listen on the sFlow port")?;
        Ok(Collector { socket })
    }

    /// Hands datagrams to `probe` until it gives a value.
    ///
    /// # Errors
    /// If it has given none within `budget`.
    pub fn receive<T>(
        &self,
        budget: Duration,
        what: &str,
        mut probe: impl FnMut(&[u8]) -> Result<Option<T>>,
    ) -> Result<T> {
        let deadline = Instant::now() + budget;
        let mut datagram = vec![0; 65_536];
        let mut seen = 0;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = left.max(Duration::from_millis(1));
            self.socket.set_read_timeout(Some(left))?;
            let length = self
                .socket
                .recv(&mut datagram)
                .with_context(|| format!("waited {budget:?} for {what}; {seen} datagrams came"))?;
            seen += 1;
            if let Some(value) = probe(&datagram[..length])? {
                return Ok(value);
            }
        }
    }
}
