//! Keepalived in a network namespace: VRRP.

use std::fs;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_netns::{Netns, Running};

use crate::peer::Peer;

const PROGRAM: &str = "usr/sbin/keepalived";

/// A running keepalived, which is killed when the value is dropped; its links and addresses go with
/// the namespace.
pub struct Keepalived {
    daemon: Running,
    _dir: TempDir,
}

impl Keepalived {
    /// Starts it with a configuration.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh test`), or does not start.
    pub fn start(ns: &Netns, config: &str) -> Result<Keepalived> {
        let peer = Peer::find("keepalived", &[PROGRAM])?;
        let dir = TempDir::with_prefix("keepalived-").context("make a directory")?;
        let file = |name: &str| dir.path().join(name);
        fs::write(file("keepalived.conf"), config).context("write keepalived.conf")?;
        let daemon = peer
            .command(Some(ns), PROGRAM)
            .args(["--vrrp", "--dont-fork", "--log-console", "--log-detail", "--use-file"])
            .arg(file("keepalived.conf"))
            .arg("--pid")
            .arg(file("pid"))
            .arg("--vrrp_pid")
            .arg(file("vrrp.pid"))
            .spawn()?;
        Ok(Keepalived { daemon, _dir: dir })
    }

    /// Returns its output, for the report of a failure.
    pub fn said(&self) -> String {
        self.daemon.stdout() + &self.daemon.stderr()
    }
}
