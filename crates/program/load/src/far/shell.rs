//! A command of the user's.

use std::time::Duration;

use anyhow::{Result, bail};
use thalweg_device::MacAddr;
use thalweg_netns::{Netns, Running};

use super::{DEVICE, Far, TESTER};
use crate::spot::Drops;

/// Time for its end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time in which a command that cannot work has ended.
const START: Duration = Duration::from_secs(1);

/// A command that forwards between two interfaces, until it is ended.
pub(super) struct Shell {
    running: Running,
    command: String,
}

impl Shell {
    /// Starts it. The names and MAC addresses of both interfaces are in its environment.
    pub(super) fn start(ns: &Netns, command: &str, macs: [MacAddr; 2]) -> Result<Shell> {
        let running = ns
            .command("sh")
            .args(["-c", command])
            .env("CLIENTS_IF", DEVICE[0])
            .env("SERVERS_IF", DEVICE[1])
            .env("CLIENTS_MAC", macs[0].to_string())
            .env("SERVERS_MAC", macs[1].to_string())
            .spawn()?;
        let mut shell = Shell { running, command: command.to_owned() };
        // Paced: what the command needs for its start is not known; one that fails does so at once.
        std::thread::sleep(START);
        shell.check()?;
        Ok(shell)
    }

    fn check(&mut self) -> Result<()> {
        let status = self.running.try_status()?;
        // A command may set up something and end.
        if let Some(status) = status.filter(|status| !status.success()) {
            bail!("`{}' ended with {status}:\n{}", self.command, self.running.stderr());
        }
        Ok(())
    }
}

impl Far for Shell {
    fn name(&self) -> String {
        format!("`{}' between {} and {}", self.command, TESTER[0], TESTER[1])
    }

    fn drops(&mut self, _: &mut Drops) -> Result<()> {
        self.check()
    }

    fn stop(mut self: Box<Self>) -> Result<()> {
        if self.running.try_status()?.is_none() {
            self.running.stop(PATIENCE)?;
        }
        Ok(())
    }
}
