//! The words that can stand in each object, and what they mean.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::{HsflowdConf, Reader};
use crate::agent::{AddressPrefix, CollectorConfig, Host};
use crate::encode::DATAGRAM_BYTES;
use crate::host::parse_uuid;

/// What follows a word.
pub(super) enum Value {
    /// A number, K, M and G being thousands.
    Number(RangeInclusive<u64>, fn(&mut HsflowdConf, u64)),
    /// `on` or `off`.
    Switch(fn(&mut HsflowdConf, bool)),
    /// Anything; the function says what is wrong with it.
    Text(&'static str, fn(&mut HsflowdConf, &str) -> Result<(), String>),
    /// An object with words of its own, after something was prepared for it.
    Object(&'static [Word], fn(&mut HsflowdConf)),
    /// An object that is read over: this is not done here.
    Module(&'static str),
    /// A value that is read over: it has no meaning here.
    NoEffect(&'static str),
    /// A value or an object that would have something else measured than is here: a mistake, with
    /// what to do instead.
    Refused(&'static str),
}

/// A word and what follows it.
pub(super) struct Word(pub &'static str, pub Value);

use Value::{Module, NoEffect, Number, Object, Refused, Switch, Text};

/// In `sflow { }`.
pub(super) static SFLOW: &[Word] = &[
    Word("polling", Number(0..=300, |c, n| c.polling = n as u32)),
    Word("sampling", Number(0..=10_000_000, |c, n| c.sampling = Some(n as u32))),
    // Names that these had once.
    Word("counterPollingInterval", Number(0..=300, |c, n| c.polling = n as u32)),
    Word("packetSamplingRate", Number(0..=10_000_000, |c, n| c.sampling = Some(n as u32))),
    Word("headerBytes", Number(0..=256, |c, n| c.header_bytes = n as usize)),
    Word(
        "datagramBytes",
        Number(*DATAGRAM_BYTES.start() as u64..=8192, |c, n| c.datagram_bytes = n as usize),
    ),
    Word("agent", Text("a device such as eth0", |c, t| device(t).map(|d| c.agent.device = d))),
    Word(
        "agentIP",
        Text("an IP address", |c, t| {
            let ip: IpAddr = t.parse().map_err(|_| format!("`{t}' is no IP address"))?;
            if ip.is_unspecified() || ip.is_multicast() {
                return Err(format!("{ip} names no agent: give an address of this host"));
            }
            c.agent.address = Some(ip);
            Ok(())
        }),
    ),
    Word(
        "agent.cidr",
        Text("a prefix such as 10.0.0.0/8, or one to avoid such as !10.0.0.0/8", |c, t| {
            let (list, text) = match t.strip_prefix('!') {
                Some(text) => (&mut c.agent.excluded, text),
                None => (&mut c.agent.preferred, t),
            };
            list.push(text.parse::<AddressPrefix>()?);
            Ok(())
        }),
    ),
    Word("subAgentId", Number(0..=199_999, |c, n| c.sub_agent = Some(n as u32))),
    Word(
        "uuid",
        Text("32 hexadecimal digits", |c, t| {
            let uuid = parse_uuid(t).ok_or_else(|| format!("`{t}' is no UUID"))?;
            c.uuid = Some(uuid);
            Ok(())
        }),
    ),
    Word("refreshAdaptors", NoEffect(ADAPTORS)),
    Word("checkAdaptors", NoEffect(ADAPTORS)),
    Word("samplingDirection", Refused(DIRECTION)),
    Word("dropPriv", NoEffect("thalweg agent -P stays root")),
    Word("modules", NoEffect("there are no modules: all is within this program")),
    Word("loopback", NoEffect("the loopback has no samples")),
    Word("xen.update.dominfo", NoEffect(NO_GUESTS)),
    Word("xen.dsk", NoEffect(NO_GUESTS)),
    Word("refreshVMs", NoEffect(NO_GUESTS)),
    Word("forgetVMs", NoEffect(NO_GUESTS)),
    Word("ulogGroup", Refused(PACKETS)),
    Word("ulogProbability", Refused(PACKETS)),
    Word("nflogGroup", Refused(PACKETS)),
    Word("nflogProbability", Refused(PACKETS)),
    Word("jsonPort", Refused(APPLICATIONS)),
    Word("jsonFIFO", Refused(APPLICATIONS)),
    Word("collector", Object(COLLECTOR, |c| c.collectors.push(nobody()))),
    Word("psample", Object(PSAMPLE, |c| _ = c.psample.get_or_insert_default())),
    Word("vpp", Object(VPP, |c| _ = c.vpp.get_or_insert_default())),
    Word("dropmon", Object(DROPMON, |c| _ = c.dropmon.get_or_insert_default())),
    Word("DNS-SD", Module("collectors are not looked for by DNS-SD: name them")),
    Word("DNSSD", NoEffect("collectors are not looked for by DNS-SD: name them")),
    Word("DNSSD_domain", NoEffect("collectors are not looked for by DNS-SD: name them")),
    Word("pcap", Refused(PACKETS)),
    Word("nflog", Refused(PACKETS)),
    Word("ulog", Refused(PACKETS)),
    Word("tcp", Refused("TCP's own measurements are not added to samples: remove it")),
    Word("json", Refused(APPLICATIONS)),
    Word("nlroute", Refused("only the router's own samples have routes: remove it")),
    Word("docker", Refused(GUESTS)),
    Word("containerd", Refused(GUESTS)),
    Word("podman", Refused(GUESTS)),
    Word("k8s", Refused(GUESTS)),
    Word("kvm", Refused(GUESTS)),
    Word("xen", Refused(GUESTS)),
    Word("systemd", Refused(GUESTS)),
    Word("dbus", Module("there is no D-Bus interface")),
    Word("nvml", Refused("graphics processors are not looked at: remove it")),
    Word("eapi", Refused(SWITCHES)),
    Word("ovs", Refused(SWITCHES)),
    Word("cumulus", Refused(SWITCHES)),
    Word("dent", Refused(SWITCHES)),
    Word("opx", Refused(SWITCHES)),
    Word("os10", Refused(SWITCHES)),
    Word("sonic", Refused(SWITCHES)),
];

const ADAPTORS: &str = "the host's devices are looked at whenever they are told of";
const DIRECTION: &str =
    "say psample { ingress = on egress = on } or, in the router, sflow direction";
const PACKETS: &str = "packets are not sampled from devices: remove it, and have the kernel (tc … action \
                       sample group 1) or the router sample for psample { group = 1 }";
const APPLICATIONS: &str = "no messages of applications are taken: remove it";
const GUESTS: &str = "containers, virtual machines and services are not measured: remove it";
const NO_GUESTS: &str = "there are no measurements of virtual machines";
const SWITCHES: &str = "switches of other makers are not measured: remove it";

/// In `collector { }`.
static COLLECTOR: &[Word] = &[
    Word(
        "ip",
        Text("an IP address or a host's name", |c, t| {
            let host = CollectorConfig::parse_host(t)?;
            if matches!(host, Host::Ip(ip) if ip.is_unspecified()) {
                return Err(format!("{host} is no address to send to"));
            }
            collector(c).host = host;
            Ok(())
        }),
    ),
    Word("udpport", Number(1..=65_535, |c, n| collector(c).port = n as u16)),
    Word("namespace", Text("a name under /var/run/netns", |c, t| place(c, t, true))),
    Word("dev", Text("a device such as eth0", |c, t| place(c, t, false))),
];

/// In `psample { }`.
static PSAMPLE: &[Word] = &[
    Word("group", Number(1..=32, |c, n| c.psample.get_or_insert_default().group = n as u32)),
    Word("ingress", Switch(|c, on| c.psample.get_or_insert_default().ingress = on)),
    Word("egress", Switch(|c, on| c.psample.get_or_insert_default().egress = on)),
];

/// In `vpp { }`.
static VPP: &[Word] = &[
    Word("osIndex", Switch(|c, on| c.vpp.get_or_insert_default().os_index = on)),
    Word(
        "ifOffset",
        Number(0..=4_000_000_000, |c, n| c.vpp.get_or_insert_default().if_offset = n as u32),
    ),
];

/// In `dropmon { }`.
static DROPMON: &[Word] = &[
    Word("limit", Number(0..=1_000_000, |c, n| c.dropmon.get_or_insert_default().limit = n as u32)),
    Word("max", Number(0..=1_000_000_000, |c, n| c.dropmon.get_or_insert_default().max = n as u32)),
    Word(
        "max_trip",
        Number(1..=1_000_000, |c, n| c.dropmon.get_or_insert_default().max_trip = n as u32),
    ),
    Word("start", Switch(|c, on| c.dropmon.get_or_insert_default().start = on)),
    Word("force", Switch(|c, on| c.dropmon.get_or_insert_default().force = on)),
    Word("sw", Switch(|c, on| c.dropmon.get_or_insert_default().software = on)),
    Word("hw", Switch(|c, on| c.dropmon.get_or_insert_default().hardware = on)),
    Word("rn", Switch(|c, on| c.dropmon.get_or_insert_default().reason_names = on)),
    Word("sw_passive", Switch(|c, on| c.dropmon.get_or_insert_default().software_passive = on)),
    Word("group", NoEffect("the kernel has one group for drops")),
    Word("hw_function", NoEffect("functions that hardware drops in are always told")),
    Word("hw_passive", Switch(|c, on| c.dropmon.get_or_insert_default().hardware_passive = on)),
    Word("hw_unknown", Switch(|c, on| c.dropmon.get_or_insert_default().unknown = on)),
    Word(
        "hide",
        Text("a regular expression", |c, t| {
            regex_lite::Regex::new(t).map_err(|e| format!("`{t}' is no expression: {e}"))?;
            c.dropmon.get_or_insert_default().hide = Some(t.to_owned());
            Ok(())
        }),
    ),
];

/// Why a word of an object has no effect with whoever reads the file, if it has none.
pub(super) fn idle(reader: Reader, object: &str, word: &str) -> Option<&'static str> {
    match (reader, object, word) {
        (Reader::Agent, "sflow", "sampling" | "packetSamplingRate") => Some(SENDER),
        (Reader::Router, "sflow", "psample" | "vpp") => Some("the router's agent is within it"),
        (Reader::Router, "dropmon", "limit") => None,
        (Reader::Router, "dropmon", _) => Some("the router tells of its own drops"),
        _ => None,
    }
}

/// Who decides the rate of what `thalweg agent` sends.
pub(super) const SENDER: &str = "who takes the samples decides the rate";

/// A collector that was not named yet.
fn nobody() -> CollectorConfig {
    CollectorConfig::new(Host::Name(String::new()), crate::SFLOW_PORT)
}

/// The collector whose object is being read.
fn collector(c: &mut HsflowdConf) -> &mut CollectorConfig {
    if c.collectors.is_empty() {
        c.collectors.push(nobody());
    }
    let last = c.collectors.len() - 1;
    &mut c.collectors[last]
}

fn device(text: &str) -> Result<Option<String>, String> {
    let mut probe = CollectorConfig::new(Host::Ip([192, 0, 2, 1].into()), crate::SFLOW_PORT);
    probe.device = Some(text.to_owned());
    probe.check().map(|()| probe.device)
}

/// Sets the namespace or the device of a collector.
fn place(c: &mut HsflowdConf, text: &str, namespace: bool) -> Result<(), String> {
    let collector = collector(c);
    let mut probe = CollectorConfig::new(Host::Ip([192, 0, 2, 1].into()), crate::SFLOW_PORT);
    let name = Some(text.to_owned());
    if namespace {
        (probe.namespace, collector.namespace) = (name.clone(), name);
    } else {
        (probe.device, collector.device) = (name.clone(), name);
    }
    probe.check()
}
