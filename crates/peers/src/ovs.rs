//! Open vSwitch with its datapath in user space, in a namespace, apart from any that the system
//! runs: its own database, its own directories.

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;
use thalweg_netns::{
    Cmd, Netns, Running, Signal, WAIT_LIMIT, wait_for_unix_socket, wait_until_seen,
};

use crate::peer::Peer;

const TOOL: &str = "usr/bin/ovsdb-tool";
const SERVER: &str = "usr/sbin/ovsdb-server";
const SWITCH: &str = "usr/lib/openvswitch-switch/ovs-vswitchd";
const SCHEMA: &str = "usr/share/openvswitch/vswitch.ovsschema";

/// Options for running Open vSwitch.
#[derive(Clone, Debug, Default)]
pub struct OvsOptions {
    /// Settings in `other_config` of the whole, such as `userspace-tso-enable=true`.
    pub settings: Vec<String>,
    /// The type of the ports: `afxdp`, or its own choice (packet sockets) if none.
    pub port_type: Option<&'static str>,
    /// Directory for its own one, or the system's for temporary files.
    pub directory: Option<PathBuf>,
}

/// A running Open vSwitch with one bridge, `br0`, and no flows but those that are added.
///
/// Dropping the value kills it.
pub struct Ovs {
    // Ends before the database does.
    switch: Running,
    server: Option<Running>,
    ns: Netns,
    peer: Peer,
    dir: TempDir,
}

impl Ovs {
    /// Starts it in `ns`, with the given interfaces as ports 1, 2 and so on.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh bench`), does not start or takes no such port.
    pub fn start(ns: &Netns, ports: &[&str], options: &OvsOptions) -> Result<Ovs> {
        let peer = Peer::find("openvswitch", &[TOOL, SERVER, SWITCH, SCHEMA])?;
        let within = options.directory.clone().unwrap_or_else(std::env::temp_dir);
        let dir = TempDir::with_prefix_in("ovs-", within).context("make a directory")?;
        let file = |name: &str| dir.path().join(name);
        let inside = |command: Cmd| surroundings(command, &peer, &dir);
        inside(peer.command(Some(ns), TOOL))
            .arg("create")
            .arg(file("conf.db"))
            .arg(peer.path(SCHEMA))
            .output()?;
        let socket = file("db.sock");
        let server = inside(peer.command(Some(ns), SERVER))
            .arg(file("conf.db"))
            .args([format!("--remote=punix:{}", socket.display()), "--no-chdir".into()])
            .spawn()?;
        wait_for_unix_socket(&socket, WAIT_LIMIT)
            .with_context(|| format!("ovsdb-server: {}", server.stderr()))?;
        vsctl(&peer, ns, &dir, &["--no-wait", "init"])?;
        for setting in &options.settings {
            let setting = format!("other_config:{setting}");
            vsctl(&peer, ns, &dir, &["--no-wait", "set", "Open_vSwitch", ".", &setting])?;
        }
        let switch = inside(peer.command(Some(ns), SWITCH))
            .args([format!("unix:{}", socket.display()), "--no-chdir".into()])
            .spawn()?;
        let ovs = Ovs { switch, server: Some(server), ns: ns.clone(), peer, dir };
        ovs.vsctl(&["add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=netdev"])?;
        ovs.vsctl(&["set-fail-mode", "br0", "secure"])?;
        for (i, port) in ports.iter().enumerate() {
            ovs.add_port(port, i + 1, options)?;
        }
        Ok(ovs)
    }

    fn add_port(&self, port: &str, number: usize, options: &OvsOptions) -> Result<()> {
        let request = format!("ofport_request={number}");
        let mut words = vec!["add-port", "br0", port, "--", "set", "interface", port, &request];
        let kind = options.port_type.map(|kind| format!("type={kind}"));
        words.extend(kind.as_deref());
        self.vsctl(&words)?;
        wait_until_seen(WAIT_LIMIT, "the port to be there", || {
            let got = self.vsctl(&["get", "interface", port, "ofport", "error"]);
            let got = got.map_err(|error| format!("{error:#}"))?;
            let lines: Vec<&str> = got.split_whitespace().collect();
            if lines.first() == Some(&number.to_string().as_str()) { Ok(()) } else { Err(got) }
        })
        .with_context(|| format!("port {port} of Open vSwitch; it says: {}", self.complaints()))
    }

    /// The last warnings and errors of its log, without times.
    fn complaints(&self) -> String {
        complaints(&self.switch.stderr())
    }

    /// Its process number.
    pub fn pid(&self) -> u32 {
        self.switch.pid()
    }

    /// Its own version text, such as `3.1.0`.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn version(&self) -> Result<String> {
        let text = self.vsctl(&["--version"])?;
        let first = text.lines().next().unwrap_or_default();
        Ok(first.rsplit(' ').next().unwrap_or_default().to_owned())
    }

    /// Runs `ovs-vsctl`.
    ///
    /// # Errors
    /// If it fails.
    pub fn vsctl(&self, words: &[&str]) -> Result<String> {
        vsctl(&self.peer, &self.ns, &self.dir, words)
    }

    /// Runs `ovs-ofctl` with a command for the bridge: its first word, the bridge, the others.
    ///
    /// # Errors
    /// If it fails.
    pub fn ofctl(&self, words: &[&str]) -> Result<String> {
        let Some((command, rest)) = words.split_first() else { bail!("no command for ovs-ofctl") };
        let command = self.run("usr/bin/ovs-ofctl").args([command, &"br0"]).args(rest);
        command.output()
    }

    /// Adds flows in the words of ovs-ofctl(8).
    ///
    /// # Errors
    /// If one is refused.
    pub fn add_flows(&self, flows: &[&str]) -> Result<()> {
        flows.iter().try_for_each(|flow| self.ofctl(&["add-flow", flow]).map(drop))
    }

    /// Runs `ovs-appctl` with a command for the switch.
    ///
    /// # Errors
    /// If it fails.
    pub fn appctl(&self, words: &[&str]) -> Result<String> {
        let socket = self.dir.path().join(format!("ovs-vswitchd.{}.ctl", self.pid()));
        self.run("usr/bin/ovs-appctl").arg("-t").arg(socket).args(words).output()
    }

    fn run(&self, program: &str) -> Cmd {
        surroundings(self.peer.command(Some(&self.ns), program), &self.peer, &self.dir)
    }

    /// Stops its threads, some of which never sleep, until [`resume`](Ovs::resume).
    ///
    /// # Errors
    /// If it has ended.
    pub fn pause(&self) -> Result<()> {
        self.switch.signal(Signal::STOP)
    }

    /// Lets it go on.
    ///
    /// # Errors
    /// If it has ended.
    pub fn resume(&self) -> Result<()> {
        self.switch.signal(Signal::CONT)
    }

    /// Asks it to end, and waits for it.
    ///
    /// # Errors
    /// If it does not end, or not well.
    pub fn stop(mut self) -> Result<()> {
        self.resume()?;
        self.switch.signal(Signal::TERM)?;
        let status = self.switch.wait(WAIT_LIMIT)?;
        ensure!(status.success() || status.code().is_none(), "ovs-vswitchd ended with {status}");
        match self.server.take() {
            Some(server) => server.stop(WAIT_LIMIT).map(drop),
            None => Ok(()),
        }
    }
}

/// Lines of a log are `TIME|NUMBER|MODULE|LEVEL|TEXT`.
fn complaints(log: &str) -> String {
    let lines = log.lines().filter_map(|line| line.splitn(3, '|').nth(2));
    let bad: Vec<_> = lines.filter(|l| l.contains("|WARN|") || l.contains("|ERR|")).collect();
    bad[bad.len().saturating_sub(3)..].join("; ")
}

fn vsctl(peer: &Peer, ns: &Netns, dir: &TempDir, words: &[&str]) -> Result<String> {
    let socket = format!("--db=unix:{}", dir.path().join("db.sock").display());
    surroundings(peer.command(Some(ns), "usr/bin/ovs-vsctl"), peer, dir)
        .args([socket.as_str(), "--timeout=60"])
        .args(words)
        .output()
}

/// Keeps all it reads and writes in the package and in its own directory.
fn surroundings(command: Cmd, peer: &Peer, dir: &TempDir) -> Cmd {
    let variables = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
    variables
        .iter()
        .fold(command, |command, name| command.env(name, dir.path()))
        .env("OVS_PKGDATADIR", peer.path("usr/share/openvswitch"))
        .env("LIBXDP_OBJECT_PATH", peer.library_dir().join("bpf"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_the_last_warnings_and_errors() {
        let log = "T|00001|a|INFO|fine\nT|00002|a|WARN|one\nT|00003|b|ERR|two\nlibxdp: odd\n\
            T|00004|b|WARN|three\nT|00005|b|WARN|four";
        assert_eq!(complaints(log), "b|ERR|two; b|WARN|three; b|WARN|four");
        assert_eq!(complaints(""), "");
    }
}
