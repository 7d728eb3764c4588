//! A systemd of its own, the first process of a namespace of process numbers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_testkit::{Cmd, Netns, Running, WAIT_LIMIT, wait_until_seen};

/// Gives systemd directories of its own where it and its units write, and a name to the namespace
/// `$PLANE`. Its number, as the outside counts, comes first, since `/proc` changes afterwards.
const BOOT: &str = r#"set -eu
read -r number _ < /proc/self/stat
mount --make-rprivate /
cp -a /etc "$FILES/etc"
mount --bind "$FILES/etc" /etc
mount -t tmpfs state /var/lib
mount -t tmpfs run /run
mkdir -p /run/netns /run/systemd/system
touch /run/netns/plane
mount --bind "$PLANE" /run/netns/plane
rm -rf /etc/systemd/system
mkdir /etc/systemd/system
cp "$FILES"/units/* /etc/systemd/system
mount -t tmpfs cgroup /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t proc proc /proc
echo "$number" > "$FILES/number"
export container=lab
exec "$SYSTEMD" --system --unit=lab.target --log-target=console --show-status=no
"#;

/// Removes the control groups that units had, which stay when a systemd is killed.
const EMPTY: &str = "mount -t tmpfs cgroup /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && \
                     cd /sys/fs/cgroup && rmdir --ignore-fail-on-non-empty system.slice/* system.slice \
                     init.scope";

/// A target that needs nothing of the machine's.
const TARGET: &str = "[Unit]\nDefaultDependencies=no\n";

/// A service manager with one unit, which is killed, with all that it started, when the value is
/// dropped.
pub struct Systemd {
    number: String,
    running: Option<Running>,
    _files: TempDir,
}

impl Systemd {
    /// Starts systemd in the network namespace `ns`; its units find `plane` as
    /// `/run/netns/plane`.
    ///
    /// # Errors
    /// If it is not there (`scripts/setup.sh test`), or does not start.
    pub fn start(ns: &Netns, plane: &Netns, unit: (&str, &str)) -> Result<Systemd> {
        let files = TempDir::with_prefix("thalweg-systemd-").context("make a directory")?;
        let units = files.path().join("units");
        fs::create_dir(&units).context("make a directory")?;
        for (name, text) in [("lab.target", TARGET), unit] {
            fs::write(units.join(name), text).context("write a unit")?;
        }
        let program = ["/usr/lib/systemd/systemd", "/lib/systemd/systemd"];
        let program = program.into_iter().find(|path| Path::new(path).exists());
        let running = ns
            .command("unshare")
            .args(["--mount", "--pid", "--fork", "--cgroup", "--uts", "--ipc"])
            .args(["--kill-child=KILL", "bash", "-c", BOOT])
            .env("FILES", files.path())
            .env("PLANE", plane.descriptor_path())
            .env("SYSTEMD", program.context("systemd is not installed")?)
            .spawn()?;
        let number = files.path().join("number");
        let number = wait_until_seen(WAIT_LIMIT, "the number of systemd", || {
            let text = fs::read_to_string(&number).with_context(|| running.stderr())?;
            Ok(text.trim().to_owned())
        })?;
        let systemd = Systemd { number, running: Some(running), _files: files };
        wait_until_seen(WAIT_LIMIT, "systemd to answer", || systemd.ctl("is-active lab.target"))?;
        Ok(systemd)
    }

    /// Runs a program among its units' processes and files.
    pub fn command(&self, program: &Path) -> Cmd {
        Cmd::new("nsenter")
            .args(["--target", &self.number, "--mount", "--pid", "--net", "--cgroup"])
            .arg(program)
    }

    /// Runs `systemctl` with words separated by blanks; gives what it prints.
    ///
    /// # Errors
    /// If it fails.
    pub fn ctl(&self, words: &str) -> Result<String> {
        self.command(Path::new("systemctl"))
            .args(words.split(' '))
            .deadline(Duration::from_secs(60))
            .output()
    }
}

impl Drop for Systemd {
    fn drop(&mut self) {
        self.running = None;
        let removed =
            Cmd::new("unshare").args(["--mount", "--cgroup", "bash", "-c", EMPTY]).output();
        if let Err(error) = removed {
            eprintln!("control groups stay: {error:#}");
        }
    }
}
