//! Privileges of this process, and how to get more without being root.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getgid, getuid};

use crate::process::Cmd;

/// Way to make network namespaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Possible at once: by root, or by root of a user namespace.
    Root,
    /// Possible after entering a user namespace of one's own ([`enter_user_namespace`]).
    UserNamespaces,
    /// Impossible, with the reason.
    None(String),
}

impl Privilege {
    /// Finds out by trying.
    pub fn check() -> Privilege {
        // A thread of its own: the namespace ends with it.
        let tried = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET)).join();
        let Ok(Err(refused)) = tried else { return Privilege::Root };
        match try_user_namespace() {
            Ok(()) => Privilege::UserNamespaces,
            Err(error) => Privilege::None(format!(
                "network namespaces need root ({refused}), and user namespaces are not allowed \
                 here: {error:#}"
            )),
        }
    }
}

/// Without [`Cmd`], whose threads would stay: [`enter_user_namespace`] may come next.
fn try_user_namespace() -> Result<()> {
    let words = ["--map-root-user", "--net", "true"];
    let output = match std::process::Command::new("unshare").args(words).output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(missing_program(OsStr::new("unshare")));
        }
        output => output.context("run unshare")?,
    };
    if !output.status.success() {
        bail!("unshare: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Makes this process root of a user namespace of its own, with a network namespace and an empty
/// `/run`, so that labs with named namespaces work for everybody.
///
/// Call it first thing in `main`: the kernel refuses it to a process with several threads.
pub fn enter_user_namespace() -> Result<()> {
    let threads = fs::read_dir("/proc/self/task").context("count our threads")?.count();
    if threads != 1 {
        bail!("cannot enter a user namespace with {threads} threads; do so first thing in main");
    }
    let (uid, gid) = (getuid(), getgid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)
        .context(
            "cannot make a user namespace; run as root, or allow them \
             (sysctl kernel.unprivileged_userns_clone=1, or \
             kernel.apparmor_restrict_unprivileged_userns=0)",
        )?;
    // Without this the kernel does not let an ordinary user map a group (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny").context("write /proc/self/setgroups")?;
    fs::write("/proc/self/uid_map", format!("0 {uid} 1")).context("write /proc/self/uid_map")?;
    fs::write("/proc/self/gid_map", format!("0 {gid} 1")).context("write /proc/self/gid_map")?;
    let none: Option<&str> = None;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_SLAVE, none)
        .context("detach our mounts from the system's")?;
    mount(Some("tmpfs"), "/run", Some("tmpfs"), MsFlags::empty(), Some("mode=0755"))
        .context("mount an empty /run")
}

/// A command that runs `program` as root of a user namespace of its own, as
/// [`enter_user_namespace`] sets one up, for callers that have several threads.
pub fn user_namespace_command(program: impl AsRef<OsStr>) -> Cmd {
    // The change of credentials cancels the order to die with us: give it again.
    Cmd::new("unshare")
        .args(["--map-root-user", "--net", "--mount", "--", "sh", "-c"])
        .arg(
            "mount -t tmpfs -o mode=0755 tmpfs /run && \
             exec setpriv --pdeathsig KILL -- \"$0\" \"$@\"",
        )
        .arg(program)
}

/// Debian packages of the programs that the labs call.
const PACKAGES: &[(&str, &str)] = &[
    ("bridge", "iproute2"),
    ("ethtool", "ethtool"),
    ("ip", "iproute2"),
    ("iperf3", "iperf3"),
    ("nc", "netcat-openbsd"),
    ("ping", "iputils-ping"),
    ("python3", "python3"),
    ("setpriv", "util-linux"),
    ("socat", "socat"),
    ("ss", "iproute2"),
    ("sysctl", "procps"),
    ("tc", "iproute2"),
    ("tcpdump", "tcpdump"),
    ("traceroute", "traceroute"),
    ("tshark", "tshark"),
    ("unshare", "util-linux"),
];

/// Checks that these programs are installed.
///
/// # Errors
/// Names the missing ones and the command that installs them.
pub fn require_tools(programs: &[&str]) -> Result<()> {
    let missing: Vec<_> =
        programs.iter().filter(|program| find_program(OsStr::new(program)).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut packages: Vec<_> =
        missing.iter().map(|program| package_of(OsStr::new(program)).unwrap_or(program)).collect();
    packages.sort_unstable();
    packages.dedup();
    let names: Vec<_> = missing.iter().map(|program| **program).collect();
    bail!(
        "not installed: {}; on Debian: apt-get install --no-install-recommends {}",
        names.join(", "),
        packages.join(" ")
    )
}

fn package_of(program: &OsStr) -> Option<&'static str> {
    PACKAGES.iter().find(|(name, _)| program == *name).map(|(_, package)| *package)
}

pub(crate) fn missing_program(program: &OsStr) -> anyhow::Error {
    let name = program.to_string_lossy();
    match package_of(program) {
        Some(package) => anyhow!(
            "{name} is not installed; on Debian: apt-get install --no-install-recommends {package}"
        ),
        None => anyhow!("there is no program {name}"),
    }
}

/// Finds a program as a shell would, and in the directories that Debian keeps for root.
pub(crate) fn find_program(program: &OsStr) -> Option<PathBuf> {
    let runs = |path: &Path| {
        fs::metadata(path)
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    let path = Path::new(program);
    if path.components().count() > 1 {
        return runs(path).then(|| path.to_owned());
    }
    let search = env::var_os("PATH").unwrap_or_else(|| OsString::from("/usr/bin:/bin"));
    env::split_paths(&search)
        .chain(["/usr/local/sbin", "/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|dir| dir.join(path))
        .find(|candidate| runs(candidate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_tools_come_with_their_packages() {
        require_tools(&["sh", "setpriv"]).unwrap();
        let error = require_tools(&["sh", "no-such-tool"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "not installed: no-such-tool; on Debian: apt-get install --no-install-recommends \
             no-such-tool"
        );
        assert_eq!(package_of(OsStr::new("ping")), Some("iputils-ping"));
    }

    #[test]
    fn programs_are_found_by_name_and_by_path() {
        assert!(find_program(OsStr::new("sh")).is_some());
        assert!(find_program(OsStr::new("/bin/sh")).is_some());
        assert_eq!(find_program(OsStr::new("/etc/passwd")), None);
        assert_eq!(find_program(OsStr::new("/etc")), None);
    }

    #[test]
    fn a_threaded_process_is_told_why_it_cannot_enter() {
        // The test harness itself has a second thread.
        let wait = std::sync::Barrier::new(2);
        thread::scope(|scope| {
            scope.spawn(|| wait.wait());
            let error = enter_user_namespace().unwrap_err().to_string();
            wait.wait();
            assert!(error.contains("first thing in main"), "{error}");
        });
    }

    #[test]
    fn a_user_namespace_gives_root_and_an_empty_run() {
        if let Privilege::None(why) = Privilege::check() {
            assert!(env::var_os("CI").is_none(), "{why}");
            return eprintln!("NOT RUN: {why}");
        }
        let seen = user_namespace_command("sh")
            .args(["-c", "id -u; ls /run; ip netns add x; ls /run/netns"])
            .output()
            .unwrap();
        assert_eq!(seen, "0\nx\n");
    }
}
