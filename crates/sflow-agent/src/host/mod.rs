//! Counters of this host (sFlow Host Structures), from `/proc`, and of its network interfaces, from
//! netlink.
//!
//! Reading them may take milliseconds, or long where a disk hangs, so it is an [`BackgroundTask`];
//! a [`HostPoller`] says when. Unreadable parts are left out.

mod disk;
mod interfaces;
mod kernel;

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::agent::BackgroundTask;
use thalweg_sflow::model::{
    CounterRecord, HostAdapters, HostCpu, HostDisk, HostIcmp, HostId, HostIp, HostMemory,
    HostNetIo, HostTcp, HostUdp,
};
use thalweg_sflow::value::{Text, Uuid};

pub use interfaces::{LinuxInterface, linux_interface};

/// Seconds between two host samples, unless asked otherwise.
pub const DEFAULT_INTERVAL: u32 = 30;
/// `os_name` of Linux.
const LINUX: u32 = 2;
/// Maximum lengths of a host's name and of its release, in bytes.
const NAME: (usize, usize) = (64, 32);

/// A host's counters. Blocks that cannot be read are missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostCounters {
    /// Its name.
    pub hostname: String,
    /// UUID of the host; zero if unknown.
    pub uuid: Uuid,
    /// 3 is x86-64, 10 is ARM.
    pub machine_type: u32,
    /// Release of the kernel.
    pub os_release: String,
    /// Network adapters that are up.
    pub adapters: HostAdapters,
    /// Processor.
    pub cpu: Option<HostCpu>,
    /// Memory.
    pub memory: Option<HostMemory>,
    /// Disks.
    pub disk: Option<HostDisk>,
    /// Network traffic.
    pub net: Option<HostNetIo>,
    /// IP.
    pub ip: Option<HostIp>,
    /// ICMP.
    pub icmp: Option<HostIcmp>,
    /// TCP.
    pub tcp: Option<HostTcp>,
    /// UDP.
    pub udp: Option<HostUdp>,
}

impl HostCounters {
    /// Reads them. `uuid` is the user's setting.
    #[must_use]
    pub fn read(uuid: Option<Uuid>) -> HostCounters {
        let uname = rustix::system::uname();
        let text = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let links = thalweg_netlink::Link::all().unwrap_or_default();
        HostCounters {
            adapters: interfaces::adapters(&links),
            net: interfaces::totals(&links),
            hostname: text(uname.nodename()),
            uuid: uuid.or_else(machine_uuid).unwrap_or_default(),
            machine_type: machine_type(&text(uname.machine())),
            os_release: text(uname.release()),
            disk: disk::read(Path::new("/")),
            ..HostCounters::read_files(Path::new("/"))
        }
    }

    /// Reads the files under `root`.
    fn read_files(root: &Path) -> HostCounters {
        let file = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
        let ticks = rustix::param::clock_ticks_per_second();
        let snmp = file("proc/net/snmp");
        let snmp = kernel::Snmp::parse(&snmp);
        let cpu = kernel::cpu(&kernel::CpuFiles {
            stat: &file("proc/stat"),
            loadavg: &file("proc/loadavg"),
            uptime: &file("proc/uptime"),
            cpuinfo: &file("proc/cpuinfo"),
            max_frequency: &file("sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq"),
            ticks,
        });
        HostCounters {
            cpu,
            memory: kernel::memory(&file("proc/meminfo"), &file("proc/vmstat")),
            ip: snmp.ip(),
            icmp: snmp.icmp(),
            tcp: snmp.tcp(),
            udp: snmp.udp(),
            ..HostCounters::default()
        }
    }

    /// The records, in the reverse of the order in which hsflowd has them on the wire, as the
    /// encoder reverses them again.
    #[must_use]
    pub fn records(&self) -> Vec<CounterRecord<'_>> {
        // Cut between bytes: what is cut is longer than any name may be.
        let cut = |text: &str, limit: usize| text.len().min(limit);
        let id = HostId {
            hostname: Text(&self.hostname.as_bytes()[..cut(&self.hostname, NAME.0)]),
            uuid: self.uuid,
            machine_type: self.machine_type,
            os_name: LINUX,
            os_release: Text(&self.os_release.as_bytes()[..cut(&self.os_release, NAME.1)]),
        };
        [
            Some(CounterRecord::HostId(id)),
            self.net.map(CounterRecord::HostNetIo),
            self.cpu.map(CounterRecord::HostCpu),
            self.memory.map(CounterRecord::HostMemory),
            self.disk.map(CounterRecord::HostDisk),
            self.ip.map(CounterRecord::HostIp),
            self.icmp.map(CounterRecord::HostIcmp),
            self.tcp.map(CounterRecord::HostTcp),
            self.udp.map(CounterRecord::HostUdp),
            Some(CounterRecord::HostAdapters(self.adapters.clone())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// The number that the standard has for a kind of machine.
fn machine_type(machine: &str) -> u32 {
    match machine {
        "x86_64" => 3,
        "i386" | "i486" | "i586" | "i686" => 2,
        "ia64" => 4,
        m if m.starts_with("sparc") => 5,
        "alpha" => 6,
        m if m.starts_with("ppc") => 7,
        m if m.starts_with("mips") => 9,
        m if m.starts_with("arm") || m.starts_with("aarch") => 10,
        m if m.starts_with("s390") => 12,
        "" => 0,
        _ => 1,
    }
}

/// The identity that firmware or the system gave to this machine, if it may be read.
#[must_use]
pub fn machine_uuid() -> Option<Uuid> {
    find_uuid(Path::new("/"))
}

/// The identity that firmware or the system gave to the machine.
fn find_uuid(root: &Path) -> Option<Uuid> {
    ["sys/class/dmi/id/product_uuid", "etc/machine-id"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(root.join(path)).ok())
        .find_map(|text| parse_uuid(text.trim()))
}

/// Reads 32 hexadecimal digits, with dashes or without. All zeros are refused.
#[must_use]
pub fn parse_uuid(text: &str) -> Option<Uuid> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    if digits.len() != 32 || !digits.bytes().all(|c| c.is_ascii_hexdigit()) {
        return None;
    }
    let number = u128::from_str_radix(&digits, 16).ok()?;
    (number != 0).then(|| Uuid(number.to_be_bytes()))
}

/// Decides when the host's counters are due, and reads them.
#[derive(Debug, Default)]
pub struct HostPoller {
    interval: Option<Duration>,
    uuid: Option<Uuid>,
    next: Option<Instant>,
    task: Option<BackgroundTask<HostCounters>>,
}

/// Interval of checks whether they have been read.
const LOOK: Duration = Duration::from_millis(10);

impl HostPoller {
    /// Sets the interval; `None` never reads. The first time comes at random within the first
    /// interval, so that hosts that start together do not send together.
    pub fn configure(&mut self, interval: Option<Duration>, uuid: Option<Uuid>, now: Instant) {
        self.uuid = uuid;
        if self.interval != interval {
            self.interval = interval;
            self.next = interval.map(|interval| {
                let whole = interval.as_millis().max(1) as u64;
                now + Duration::from_millis(RandomState::new().build_hasher().finish() % whole)
            });
        }
    }

    /// Returns the time when [`poll`](Self::poll) should be called at the latest.
    #[must_use]
    pub fn deadline(&self, now: Instant) -> Option<Instant> {
        if self.task.is_some() { Some(now + LOOK) } else { self.next }
    }

    /// Begins to read when it is time, and returns what was read.
    pub fn poll(&mut self, now: Instant) -> Option<HostCounters> {
        if let Some(done) = self.task.as_ref().and_then(BackgroundTask::poll) {
            self.task = None;
            return done.ok();
        }
        if self.task.is_none() && self.next.is_some_and(|at| now >= at) {
            let interval = self.interval.unwrap_or(LOOK);
            // The next one is on time even if this call is late, but missed ones are not repeated.
            self.next = self.next.map(|at| if now < at + interval { at } else { now } + interval);
            let uuid = self.uuid;
            self.task = BackgroundTask::start("sflow-host", move || HostCounters::read(uuid)).ok();
        }
        None
    }
}

/// A file of one value.
fn value<T: std::str::FromStr>(path: &PathBuf) -> Option<T> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
