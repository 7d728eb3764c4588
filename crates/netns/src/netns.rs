//! Network namespaces.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use nix::sched::{CloneFlags, setns, unshare};

use crate::link::{LinkInfo, parse_links};
use crate::process::{Cmd, Running};

/// A network namespace. Clones are the same namespace; it ends with the last of them.
///
/// Note for what runs inside: `/proc/net` and `/sys/class/net` go by process or mount, not by
/// thread. In closures use `/proc/thread-self/net`; programs see the right `/proc/net`, but the
/// `/sys` of the outside.
#[derive(Clone)]
pub struct Netns(Arc<Inner>);

struct Inner {
    fd: Arc<OwnedFd>,
    label: String,
    named: Option<Named>,
    /// Things such as captures inside, which would keep the namespace alive.
    held: Mutex<Vec<Box<dyn Any + Send>>>,
}

struct Named {
    name: String,
    keep: AtomicBool,
}

/// Observer of the namespaces that this process makes: the test kit, which keeps those of a failed
/// test and captures its packets.
pub trait Observer: Sync {
    /// A namespace has been made.
    fn made(&self, ns: &Netns);
    /// A namespace may end.
    fn removed(&self, ns: &Netns);
    /// Captures the last packets of an interface for as long as its namespace lives.
    ///
    /// # Errors
    /// If there is no such interface.
    fn capture(&self, ns: &Netns, dev: &str) -> Result<()>;
}

static OBSERVER: OnceLock<&'static dyn Observer> = OnceLock::new();

/// Sets the observer of this process. The first one stays.
pub fn observe(observer: &'static dyn Observer) {
    OBSERVER.get_or_init(|| observer);
}

impl Netns {
    /// A namespace without a name, which the kernel removes as soon as this process is gone,
    /// however it ends. `label` is for messages. Loopback is up, IPv6 is off.
    pub fn new(label: impl Into<String>) -> Result<Netns> {
        let label = label.into();
        let made = thread::spawn(|| -> Result<File> {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Ok(File::open("/proc/thread-self/ns/net")?)
        })
        .join()
        .map_err(|_| anyhow!("the thread that makes a namespace panicked"))?;
        let fd = made.with_context(|| {
            format!("cannot make network namespace {label}: it takes root, or a user namespace")
        })?;
        Netns::prepare(Inner::new(fd, label, None))
    }

    /// A namespace that `ip netns exec NAME` finds under `/run/netns`. Removed when dropped,
    /// unless [`keep`](Netns::keep) was called; a killed process leaves it behind.
    ///
    /// # Errors
    /// If the name is taken: what is there may be in use and is left alone.
    pub fn named(name: &str) -> Result<Netns> {
        if name.is_empty() || name.contains('/') || name.starts_with(['-', '.']) {
            bail!("{name:?} is no name for a network namespace");
        }
        let path = named_path(name);
        if path.exists() {
            bail!("network namespace {name} exists already; to remove it: ip netns delete {name}");
        }
        Cmd::new("ip").args(["netns", "add", name]).output()?;
        let named = Some(Named { name: name.into(), keep: AtomicBool::new(false) });
        let fd = File::open(&path).with_context(|| format!("open {}", path.display()))?;
        Netns::prepare(Inner::new(fd, name.into(), named))
    }

    /// One that exists under `/run/netns` already; it is left there.
    pub fn existing(name: &str) -> Result<Netns> {
        let path = named_path(name);
        let fd = File::open(&path).with_context(|| {
            format!("no network namespace {name}: cannot open {}", path.display())
        })?;
        let named = Some(Named { name: name.into(), keep: AtomicBool::new(true) });
        Ok(Netns(Arc::new(Inner::new(fd, name.into(), named))))
    }

    fn prepare(inner: Inner) -> Result<Netns> {
        let ns = Netns(Arc::new(inner));
        // Router solicitations and duplicate address detection are noise in a packet test.
        ns.sysctl_if_present("net/ipv6/conf/all/disable_ipv6", "1")?;
        ns.sysctl_if_present("net/ipv6/conf/default/disable_ipv6", "1")?;
        ns.ip("link set lo up")?;
        if let Some(observer) = OBSERVER.get() {
            observer.made(&ns);
        }
        Ok(ns)
    }

    /// Gives up this clone, and what the [`Observer`] keeps (tests do so with `PAUSE=1`): for one
    /// whose end is an event.
    pub fn remove(self) {
        if let Some(observer) = OBSERVER.get() {
            observer.removed(&self);
        }
    }

    /// Captures an interface's last packets, to be written if the current test fails; without an
    /// [`Observer`] it does nothing. A [`Lab`](crate::Lab) does so for its hosts.
    ///
    /// # Errors
    /// If there is no such interface.
    pub fn capture(&self, dev: &str) -> Result<()> {
        OBSERVER.get().map_or(Ok(()), |observer| observer.capture(self, dev))
    }

    /// Ties a thing to the life of the namespace.
    pub fn hold(&self, thing: impl Any + Send) {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(thing));
    }

    /// Leaves a named namespace in place when the last clone is dropped.
    pub fn keep(&self) {
        if let Some(named) = &self.0.named {
            named.keep.store(true, Ordering::Relaxed);
        }
    }

    /// Its name in messages.
    pub fn label(&self) -> &str {
        &self.0.label
    }

    /// Its name under `/run/netns`, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.named.as_ref().map(|named| named.name.as_str())
    }

    /// A path that leads to it, for `ip link set … netns PATH` or setns(2), while this process
    /// lives.
    pub fn path(&self) -> PathBuf {
        match self.name() {
            Some(name) => named_path(name),
            None => self.descriptor_path(),
        }
    }

    /// The path that leads to it by this process, even from another mount namespace.
    pub fn descriptor_path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", process::id(), self.0.fd.as_raw_fd()).into()
    }

    /// Runs a closure in a thread inside the namespace. Sockets that it opens stay in the
    /// namespace. A panic goes on in the caller.
    ///
    /// # Errors
    /// If the namespace cannot be entered.
    pub fn run<T: Send>(&self, closure: impl FnOnce() -> T + Send) -> Result<T> {
        let result = thread::scope(|scope| {
            scope
                .spawn(|| {
                    setns(&*self.0.fd, CloneFlags::CLONE_NEWNET)?;
                    Ok::<T, nix::Error>(closure())
                })
                .join()
        });
        result
            .unwrap_or_else(|panic| resume_unwind(panic))
            .with_context(|| format!("enter network namespace {}", self.label()))
    }

    /// A program that will run inside.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Cmd {
        Cmd::new(program).inside(self.0.fd.clone(), self.label())
    }

    /// Starts `program` with `args` inside, in the background.
    pub fn spawn(&self, program: &str, args: &[&str]) -> Result<Running> {
        self.command(program).args(args).spawn()
    }

    /// Runs iproute2's `ip` inside, with words separated by blanks; gives what it prints.
    pub fn ip(&self, words: &str) -> Result<String> {
        self.command("ip").args(words.split_whitespace()).output()
    }

    /// Runs several `ip` commands with one start of the program.
    pub fn ip_batch(&self, lines: &[String]) -> Result<()> {
        let script = lines.join("\n") + "\n";
        self.command("ip")
            .args(["-batch", "-"])
            .stdin(script.as_str())
            .output()
            .map(drop)
            .with_context(|| format!("ip commands:\n{script}"))
    }

    /// Sets a variable below `/proc/sys`, such as `net/ipv4/ip_forward`.
    pub fn set_sysctl(&self, key: &str, value: &str) -> Result<()> {
        self.run(|| fs::write(format!("/proc/sys/{key}"), value))?
            .with_context(|| format!("set sysctl {key} to {value} in namespace {}", self.label()))
    }

    fn sysctl_if_present(&self, key: &str, value: &str) -> Result<()> {
        if self.run(|| Path::new("/proc/sys").join(key).exists())? {
            self.set_sysctl(key, value)?;
        }
        Ok(())
    }

    /// Reads a variable below `/proc/sys`.
    pub fn sysctl(&self, key: &str) -> Result<String> {
        self.run(|| fs::read_to_string(format!("/proc/sys/{key}")))?
            .map(|value| value.trim_end().to_owned())
            .with_context(|| format!("read sysctl {key} in namespace {}", self.label()))
    }

    /// The kernel's protocol counters (`/proc/net/snmp`, `netstat` and `snmp6`), by names such as
    /// `Ip.ForwDatagrams`, `IpExt.InNoRoutes` and `Ip6OutForwDatagrams`.
    ///
    /// Only TCP's count both families; a kernel without IPv6 has none of the last kind.
    pub fn snmp(&self) -> Result<BTreeMap<String, i64>> {
        let read = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
        let [snmp, netstat, snmp6] = self.run(|| ["snmp", "netstat", "snmp6"].map(read))?;
        let mut counters = parse_snmp(&snmp.context("read /proc/net/snmp")?);
        counters.extend(parse_snmp(&netstat.context("read /proc/net/netstat")?));
        match snmp6 {
            Ok(text) => counters.extend(parse_snmp6(&text)),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).context("read /proc/net/snmp6"),
        }
        Ok(counters)
    }

    /// The sum of some counters of [`snmp`](Netns::snmp); one that the kernel lacks counts 0.
    pub fn snmp_sum(&self, names: &[&str]) -> Result<u64> {
        let counters = self.snmp()?;
        Ok(names.iter().filter_map(|name| u64::try_from(*counters.get(*name)?).ok()).sum())
    }

    /// Every interface with its state and counters.
    pub fn links(&self) -> Result<Vec<LinkInfo>> {
        parse_links(&self.ip("-json -stats link show")?)
    }

    /// One interface with its state and counters.
    pub fn link(&self, dev: &str) -> Result<LinkInfo> {
        let links = parse_links(&self.ip(&format!("-json -stats link show dev {dev}"))?)?;
        links.into_iter().next().with_context(|| format!("ip showed nothing for {dev}"))
    }
}

/// True if both are the same namespace.
impl PartialEq for Netns {
    fn eq(&self, other: &Netns) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Netns {}

impl fmt::Debug for Netns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Netns({})", self.label())
    }
}

impl Inner {
    fn new(fd: File, label: String, named: Option<Named>) -> Inner {
        Inner { fd: Arc::new(fd.into()), label, named, held: Mutex::default() }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(named) = self.named.take()
            && !named.keep.load(Ordering::Relaxed)
            && let Err(error) = Cmd::new("ip").args(["netns", "delete", &named.name]).output()
        {
            eprintln!("network namespace {} is left behind: {error:#}", named.name);
        }
    }
}

fn named_path(name: &str) -> PathBuf {
    Path::new("/run/netns").join(name)
}

/// Each protocol has two lines, the names and the values, both headed by `Protocol:`.
fn parse_snmp(text: &str) -> BTreeMap<String, i64> {
    let mut counters = BTreeMap::new();
    let mut lines = text.lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let Some((protocol, names)) = names.split_once(':') else { continue };
        let values = values.split_whitespace().skip(1).filter_map(|value| value.parse().ok());
        for (name, value) in names.split_whitespace().zip(values) {
            counters.insert(format!("{protocol}.{name}"), value);
        }
    }
    counters
}

/// A counter of IPv6 has a line of its own: its name and its value.
fn parse_snmp6(text: &str) -> impl Iterator<Item = (String, i64)> {
    text.lines().filter_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        Some((name.to_owned(), value.trim().parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;
    use crate::{WAIT_LIMIT, wait_for_udp_port};
    use thalweg_testkit::lab_test;

    #[test]
    fn snmp_counters_are_named_by_protocol() {
        let counters = parse_snmp("Ip: Forwarding DefaultTTL\nIp: 1 64\nUdp: InErrors\nUdp: 7\nX");
        assert_eq!(counters["Ip.DefaultTTL"], 64);
        assert_eq!(counters["Udp.InErrors"], 7);
        assert_eq!(counters.len(), 3);
        let text = "Ip6InReceives                   \t7\nIcmp6InEchos\t0\nUdp6 x\nX\n";
        let counters: Vec<_> = parse_snmp6(text).collect();
        assert_eq!(counters, [("Ip6InReceives".to_owned(), 7), ("Icmp6InEchos".to_owned(), 0)]);
    }

    #[test]
    fn odd_names_are_refused() {
        for name in ["", "a/b", "-n", ".."] {
            assert!(Netns::named(name).is_err(), "{name:?}");
        }
    }

    lab_test! {
        fn an_anonymous_namespace_is_apart() {
            let ns = Netns::new("apart")?;
            let names: Vec<_> = ns.links()?.into_iter().map(|link| link.name).collect();
            assert_eq!(names, ["lo"]);
            assert!(ns.link("lo")?.up);
            assert_eq!(ns.sysctl("net/ipv4/ip_forward")?, "0");
            let counters = ns.snmp()?;
            for name in ["Ip.InReceives", "IpExt.InNoRoutes", "Ip6InReceives"] {
                assert!(counters.contains_key(name), "{name}");
            }
            Ok(())
        }

        fn commands_and_closures_share_the_namespace() {
            let ns = Netns::new("shared")?;
            ns.ip("link add probe0 type bridge")?;
            let inside = ns.run(|| fs::read_to_string("/proc/thread-self/net/dev"))??;
            assert!(inside.contains("probe0:"));
            let again = ns.command("cat").arg("/proc/net/dev").output()?;
            assert!(again.contains("probe0:"));
            let outside = Cmd::new("cat").arg("/proc/net/dev").output()?;
            assert!(!outside.contains("probe0:"));
            Ok(())
        }

        fn a_bound_port_is_seen() {
            let ns = Netns::new("ports")?;
            assert!(!crate::udp_port_is_bound(&ns, 6343)?);
            let _socket = ns.run(|| UdpSocket::bind("0.0.0.0:6343"))??;
            wait_for_udp_port(&ns, 6343, WAIT_LIMIT)
        }

        fn a_named_namespace_comes_and_goes() {
            let name = format!("tk-{}", process::id());
            let ns = Netns::named(&name)?;
            let listed = Cmd::new("ip").args(["netns", "list"]).output()?;
            assert!(listed.contains(&name), "{listed}");
            let taken = Netns::named(&name).unwrap_err().to_string();
            assert!(taken.contains("exists already"), "{taken}");
            Netns::existing(&name)?.ip("link show lo")?;
            let path = ns.path();
            assert!(path.exists());
            drop(ns);
            assert!(!path.exists());
            Ok(())
        }

        fn a_panic_inside_goes_on_outside() {
            let ns = Netns::new("panic")?;
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                ns.run(|| panic!("inside"))
            }));
            assert!(caught.is_err());
            Ok(())
        }

        fn a_failing_command_tells_all() {
            let ns = Netns::new("failing")?;
            let error = ns.ip("link show dev nope").unwrap_err().to_string();
            assert!(error.contains("in namespace failing"), "{error}");
            assert!(error.contains("does not exist"), "{error}");
            Ok(())
        }
    }
}
