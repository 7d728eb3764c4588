//! BIRD in a network namespace.

use std::fs;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_netns::{Netns, Running, Signal, WAIT_LIMIT, wait_for_unix_socket};

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
        fs::write(dir.path().join("bird.conf"), config).context("write bird.conf")?;
        let daemon = launch(ns, &peer, &dir, &[])?;
        Ok(Bird { daemon, ns: ns.clone(), peer, dir })
    }

    /// Ends it as a fault would (`KILL`: its routes stay in the kernel) or as a service manager
    /// does (`TERM`), and starts it again with further arguments, such as `-R`.
    ///
    /// # Errors
    /// If it had ended before, or does not start.
    pub fn restart(&mut self, signal: Signal, args: &[&str]) -> Result<()> {
        self.end(signal)?;
        self.start_again(None, args)
    }

    /// Ends it.
    ///
    /// # Errors
    /// If it had ended before, or does not end.
    pub fn end(&mut self, signal: Signal) -> Result<()> {
        self.daemon.signal(signal)?;
        self.daemon.wait(WAIT_LIMIT).map(drop)
    }

    /// Starts it again after its end, in another namespace if one is given.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self, ns: Option<&Netns>, args: &[&str]) -> Result<()> {
        self.ns = ns.unwrap_or(&self.ns).clone();
        self.daemon = launch(&self.ns, &self.peer, &self.dir, args)?;
        Ok(())
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

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }

    /// Output so far, for the report of a failure.
    pub fn said(&self) -> String {
        self.daemon.stdout() + &self.daemon.stderr()
    }
}

fn launch(ns: &Netns, peer: &Peer, dir: &TempDir, args: &[&str]) -> Result<Running> {
    let socket = dir.path().join("bird.ctl");
    // The one of a killed daemon is still there, and nobody listens to it.
    let _ = fs::remove_file(&socket);
    let daemon = peer
        .command(Some(ns), BIRD)
        .args(["-f", "-c"])
        .arg(dir.path().join("bird.conf"))
        .arg("-s")
        .arg(&socket)
        .args(args)
        .spawn()?;
    wait_for_unix_socket(&socket, WAIT_LIMIT)
        .with_context(|| format!("bird: {}{}", daemon.stdout(), daemon.stderr()))?;
    Ok(daemon)
}
