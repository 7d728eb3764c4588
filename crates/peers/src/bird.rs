//! BIRD in a network namespace.

use std::fs;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_netns::{Netns, Running, WAIT_LIMIT, wait_for_unix_socket};

use crate::peer::Peer;

const BIRD: &str = "usr/sbin/bird";
const CLIENT: &str = "usr/sbin/birdc";

/// A running BIRD, which is killed when the value is dropped.
pub struct Bird {
    daemon: Running,
    ns: Netns,
    peer: Peer,
    dir: TempDir,
}

impl Bird {
    /// Starts it with a configuration.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh test`), or does not start.
    pub fn start(ns: &Netns, config: &str) -> Result<Bird> {
        let peer = Peer::find("bird", &[BIRD, CLIENT])?;
        let dir = TempDir::with_prefix("bird-").context("make a directory")?;
        let file = |name: &str| dir.path().join(name);
        fs::write(file("bird.conf"), config).context("write bird.conf")?;
        let socket = file("bird.ctl");
        let daemon = peer
            .command(Some(ns), BIRD)
            .args(["-f", "-c"])
            .arg(file("bird.conf"))
            .arg("-s")
            .arg(&socket)
            .spawn()?;
        wait_for_unix_socket(&socket, WAIT_LIMIT)
            .with_context(|| format!("bird: {}{}", daemon.stdout(), daemon.stderr()))?;
        Ok(Bird { daemon, ns: ns.clone(), peer, dir })
    }

    /// Returns the answer to a command of `birdc`.
    ///
    /// # Errors
    /// If it fails.
    pub fn birdc(&self, command: &str) -> Result<String> {
        let socket = self.dir.path().join("bird.ctl");
        let client = self.peer.command(Some(&self.ns), CLIENT);
        client.arg("-s").arg(socket).args(command.split_whitespace()).output()
    }

    /// Output so far, for the report of a failure.
    pub fn said(&self) -> String {
        self.daemon.stdout() + &self.daemon.stderr()
    }
}
