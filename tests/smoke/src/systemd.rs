//! A systemd of its own, the first process of a namespace of process numbers.

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use tempfile::TempDir;
use thalweg_testkit::{Cmd, Netns, Running, WAIT_LIMIT, wait_until_seen};

/// Makes all files of the machine read-only for systemd, which would clean up directories as it
/// does when a machine starts, and has it begin with no unit of the machine's. Its number, as the
/// outside counts, comes first, since `/proc` changes afterwards. `/run/netns/plane` is the
/// namespace `$PLANE`.
const BOOT: &str = r#"set -eu
read -r number _ < /proc/self/stat
echo "$number" > "$FILES/number"
mount --make-rprivate /
exec 9< "$PLANE"
awk '$2 !~ /^\/(proc|sys|dev)(\/|$)/ { print $2 }' /proc/self/mounts | while read -r place; do
    mount -o remount,bind,ro "$place"
done
mount -t tmpfs run /run
mkdir -p /run/netns /run/systemd/system /run/lab
touch /run/netns/plane
mount --no-canonicalize --bind "/proc/$number/fd/9" /run/netns/plane
cp -a /etc /run/lab/etc
rm -rf /run/lab/etc/systemd/system
cp -a "$FILES/units" /run/lab/etc/systemd/system
# A unit that wants what starts a machine fails.
ln -s /dev/null /run/lab/etc/systemd/system/sysinit.target
mount --bind /run/lab/etc /etc
mount -t tmpfs state /var/lib
mount -t tmpfs cgroup /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t proc proc /proc
if touch "$FILES/writable" 2>/dev/null; then
    echo "the files of the machine are not read-only" >&2
    exit 1
fi
export container=lab
exec "$SYSTEMD" --system --unit=lab.target --log-target=console --show-status=no
"#;

/// Removes the control groups that units had, which stay when a systemd is killed.
const EMPTY: &str =
    "mount -t tmpfs cgroup /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup
cd /sys/fs/cgroup || exit
for _ in {1..50}; do
    find system.slice init.scope -depth -type d -exec rmdir {} + 2> /dev/null
    [ -e init.scope ] || exit 0
    sleep 0.1 # paced: its process ends
done
exit 1";

/// A target, and the part of a unit, that need nothing of the machine's.
const ALONE: &str = "[Unit]\nDefaultDependencies=no\n";

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
        let parts = format!("{}.d", unit.0);
        fs::create_dir_all(units.join(&parts)).context("make a directory")?;
        for (name, text) in [("lab.target", ALONE), (&*format!("{parts}/lab.conf"), ALONE), unit] {
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
        let number: String =
            wait_until_seen(WAIT_LIMIT, "the number of systemd", || -> Result<String> {
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
