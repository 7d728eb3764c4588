//! FRRouting in a network namespace, apart from any that the system runs: its own configuration and
//! sockets, as the calling user, without the users and groups of its package.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_netns::{Netns, Running, Signal, WAIT_LIMIT, wait_for_unix_socket};

use crate::peer::Peer;

const ZEBRA: &str = "usr/lib/frr/zebra";
const VTYSH: &str = "usr/bin/vtysh";

/// Makes a daemon believe that root is in the group that may use its sockets, and keeps its reports
/// of crashes out of the system's directory.
///
/// Its models are read from `/usr/share/yang`, which is another directory where it was unpacked.
const APART: &str = "mount --bind \"$GROUPS_FILE\" /etc/group && mount -t tmpfs tmpfs /var/tmp && \
                     { [ -d /usr/share/yang ] || mount --bind \"$SHARED_FILES\" /usr/share; } && \
                     exec \"$@\"";

/// Daemons of FRRouting, which are killed when the value is dropped.
pub struct Frr {
    daemons: Vec<(String, Running)>,
    ns: Netns,
    peer: Peer,
    dir: TempDir,
}

impl Frr {
    /// Starts `zebra` and others, such as `bgpd`, each with its configuration.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh test`), or one does not start.
    pub fn start(ns: &Netns, daemons: &[(&str, &str)]) -> Result<Frr> {
        Frr::start_with(ns, &[], daemons)
    }

    /// Starts them, and `zebra` with further arguments, such as `-M dplane_fpm_nl`.
    ///
    /// # Errors
    /// Returns the errors of [`start`](Frr::start).
    pub fn start_with(ns: &Netns, zebra: &[&str], daemons: &[(&str, &str)]) -> Result<Frr> {
        let peer = Peer::find("frr", &[ZEBRA, VTYSH])?;
        let dir = TempDir::with_prefix("frr-").context("make a directory")?;
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        let others = groups.lines().filter(|line| !line.starts_with("frrvty:"));
        let all: Vec<&str> = others.chain(["frrvty:x:0:root"]).collect();
        fs::write(dir.path().join("group"), all.join("\n") + "\n").context("write groups")?;
        let mut frr = Frr { daemons: Vec::new(), ns: ns.clone(), peer, dir };
        let has_zebra = daemons.iter().any(|(name, _)| *name == "zebra");
        let first = [("zebra", "")];
        for (name, config) in first.iter().filter(|_| !has_zebra).chain(daemons) {
            frr.configure_file(name, config)?;
            frr.start_again(name, None, if *name == "zebra" { zebra } else { &[] })?;
        }
        Ok(frr)
    }

    /// Starts one more daemon.
    ///
    /// # Errors
    /// If it does not start.
    pub fn add(&mut self, name: &str, config: &str) -> Result<()> {
        self.configure_file(name, config)?;
        self.start_again(name, None, &[])
    }

    /// Writes the configuration that a daemon has from its next start on.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn configure_file(&self, name: &str, config: &str) -> Result<()> {
        let conf = self.dir.path().join(format!("{name}.conf"));
        fs::write(&conf, config).with_context(|| format!("write {}", conf.display()))
    }

    /// Ends a daemon as a fault would (`KILL`: `zebra`'s routes stay in the kernel) or as a service
    /// manager does (`TERM`).
    ///
    /// # Errors
    /// If it does not run, or does not end.
    pub fn end(&mut self, name: &str, signal: Signal) -> Result<()> {
        let at = self.daemons.iter().position(|(of, _)| of == name);
        let (_, mut running) = self.daemons.remove(at.with_context(|| format!("no {name}"))?);
        running.signal(signal)?;
        running.wait(WAIT_LIMIT).map(drop)
    }

    /// The process number of a daemon that runs.
    pub fn pid(&self, name: &str) -> Option<u32> {
        let (_, running) = self.daemons.iter().find(|(of, _)| of == name)?;
        Some(running.pid())
    }

    /// Starts a daemon again after its end, with further arguments, such as `-K 60`, and in
    /// another namespace if one is given.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start_again(&mut self, name: &str, ns: Option<&Netns>, args: &[&str]) -> Result<()> {
        self.ns = ns.unwrap_or(&self.ns).clone();
        let file = |name: String| self.dir.path().join(name);
        let (conf, pid) = (file(format!("{name}.conf")), file(format!("{name}.pid")));
        let socket = file(format!("{name}.vty"));
        // The one of a killed daemon is still there, and nobody listens to it.
        let _ = fs::remove_file(&socket);
        let wrapper = ["unshare", "-m", "sh", "-c", APART, "sh"];
        let path = self.libraries();
        let program = self.peer.path(&format!("usr/lib/frr/{name}"));
        let mut command = self
            .ns
            .command("env")
            .args(wrapper)
            .arg(program)
            .args(["-u", "root", "-g", "root", "-A", "127.0.0.1", "-P", "0"])
            .args(["--log", "stdout", "--log-level", "informational"])
            .arg("-f")
            .arg(&conf)
            .arg("-i")
            .arg(&pid)
            .arg("-z")
            .arg(file("zserv.api".into()))
            .arg("--vty_socket")
            .arg(self.dir.path())
            .args(args)
            .env("GROUPS_FILE", self.dir.path().join("group"))
            .env("SHARED_FILES", self.peer.path("usr/share"))
            .env("LD_LIBRARY_PATH", path);
        if args.contains(&"-M") {
            let modules = self.peer.library_dir().join("frr").join("modules");
            command = command.arg("--moduledir").arg(modules);
        }
        if name == "bfdd" {
            command = command.arg("--bfdctl").arg(file("bfdd.sock".into()));
        }
        let running = command.spawn()?;
        wait_for_unix_socket(&socket, WAIT_LIMIT)
            .with_context(|| format!("{name}: {}{}", running.stdout(), running.stderr()))?;
        self.daemons.push((name.to_owned(), running));
        Ok(())
    }

    /// Returns the directories of its libraries, and of others that were unpacked with it.
    fn libraries(&self) -> OsString {
        let usual = self.peer.library_dir();
        let early = self.peer.path("lib").join(usual.file_name().unwrap_or_default());
        env::join_paths([usual.join("frr"), usual, early]).unwrap_or_default()
    }

    /// Returns the answer to a command of `vtysh`.
    ///
    /// # Errors
    /// If it fails.
    pub fn vtysh(&self, command: &str) -> Result<String> {
        self.all(&[command])
    }

    /// Changes its configuration.
    ///
    /// # Errors
    /// If `vtysh` refuses a line.
    pub fn configure(&self, lines: &[&str]) -> Result<String> {
        self.all(&[&["configure terminal"], lines].concat())
    }

    /// Has `vtysh` run commands.
    fn all(&self, commands: &[&str]) -> Result<String> {
        self.peer
            .command(Some(&self.ns), VTYSH)
            .arg("--vty_socket")
            .arg(self.dir.path())
            .args(commands.iter().flat_map(|command| ["-c", command]))
            .env("LD_LIBRARY_PATH", self.libraries())
            .output()
    }

    /// Its directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Output of its daemons so far, for the report of a failure.
    pub fn said(&self) -> String {
        let each = self
            .daemons
            .iter()
            .map(|(name, running)| format!("{name}: {}{}", running.stdout(), running.stderr()));
        each.collect::<Vec<_>>().join("\n")
    }
}
