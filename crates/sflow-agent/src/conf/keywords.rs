//! The keywords of each object, and their effect.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use super::{HsflowdConf, Reader};
use crate::agent::{AddressPrefix, CollectorConfig, Host};
use crate::host::parse_uuid;
use thalweg_sflow::encode::DATAGRAM_BYTES;

/// The value that a keyword takes.
pub(super) enum Value {
    /// A number, K, M and G being thousands.
    Number(RangeInclusive<u64>, fn(&mut HsflowdConf, u64)),
    /// `on` or `off`.
    Switch(fn(&mut HsflowdConf, bool)),
    /// Any text; the function returns what is wrong with it.
    Text(&'static str, fn(&mut HsflowdConf, &str) -> Result<(), String>),
    /// An object with its own keywords; the function prepares it.
    Object(&'static [Keyword], fn(&mut HsflowdConf)),
    /// An object that is skipped: not supported here.
    Module(&'static str),
    /// A value that is skipped: no meaning here.
    NoEffect(&'static str),
    /// A value or an object that asks for measurements that are not supported: an error, with the
    /// remedy.
    Refused(&'static str),
}

/// A keyword and the value that it takes.
pub(super) struct Keyword(pub &'static str, pub Value);

use Value::{Module, NoEffect, Number, Object, Refused, Switch, Text};

/// Words in `sflow { }`.
pub(super) static SFLOW: &[Keyword] = &[
    Keyword("polling", Number(0..=300, |c, n| c.polling = n as u32)),
    Keyword("sampling", Number(0..=10_000_000, |c, n| c.sampling = Some(n as u32))),
    // Names that these had once.
    Keyword("counterPollingInterval", Number(0..=300, |c, n| c.polling = n as u32)),
    Keyword("packetSamplingRate", Number(0..=10_000_000, |c, n| c.sampling = Some(n as u32))),
    Keyword("headerBytes", Number(0..=256, |c, n| c.header_bytes = n as usize)),
    Keyword(
        "datagramBytes",
        Number(*DATAGRAM_BYTES.start() as u64..=8192, |c, n| c.datagram_bytes = n as usize),
    ),
    Keyword("agent", Text("a device such as eth0", |c, t| device(t).map(|d| c.agent.device = d))),
    Keyword(
        "agentIP",
        Text("an IP address", |c, t| {
            let ip: IpAddr = t.parse().map_err(|_| format!("`{t}' is not an IP address"))?;
            if ip.is_unspecified() || ip.is_multicast() {
                return Err(format!(
                    "{ip} is not a valid agent address: give a unicast address of this host"
                ));
            }
            c.agent.address = Some(ip);
            Ok(())
        }),
    ),
    Keyword(
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
    Keyword("subAgentId", Number(0..=199_999, |c, n| c.sub_agent = Some(n as u32))),
    Keyword(
        "uuid",
        Text("32 hexadecimal digits", |c, t| {
            let uuid = parse_uuid(t).ok_or_else(|| format!("`{t}' is not a UUID"))?;
            c.uuid = Some(uuid);
            Ok(())
        }),
    ),
    Keyword("refreshAdaptors", NoEffect(ADAPTORS)),
    Keyword("checkAdaptors", NoEffect(ADAPTORS)),
    Keyword("samplingDirection", Refused(DIRECTION)),
    Keyword("dropPriv", NoEffect("thalweg agent -P stays root")),
    Keyword("modules", NoEffect("there are no loadable modules")),
    Keyword("loopback", NoEffect("the loopback interface is not sampled")),
    Keyword("xen.update.dominfo", NoEffect(NO_GUESTS)),
    Keyword("xen.dsk", NoEffect(NO_GUESTS)),
    Keyword("refreshVMs", NoEffect(NO_GUESTS)),
    Keyword("forgetVMs", NoEffect(NO_GUESTS)),
    Keyword("ulogGroup", Refused(PACKETS)),
    Keyword("ulogProbability", Refused(PACKETS)),
    Keyword("nflogGroup", Refused(PACKETS)),
    Keyword("nflogProbability", Refused(PACKETS)),
    Keyword("jsonPort", Refused(APPLICATIONS)),
    Keyword("jsonFIFO", Refused(APPLICATIONS)),
    Keyword("collector", Object(COLLECTOR, |c| c.collectors.push(no_collector()))),
    Keyword("psample", Object(PSAMPLE, |c| _ = c.psample.get_or_insert_default())),
    Keyword("vpp", Object(VPP, |c| _ = c.vpp.get_or_insert_default())),
    Keyword("dropmon", Object(DROPMON, |c| _ = c.dropmon.get_or_insert_default())),
    Keyword(
        "DNS-SD",
        Module("collectors are not discovered by DNS-SD: list them with collector { }"),
    ),
    Keyword(
        "DNSSD",
        NoEffect("collectors are not discovered by DNS-SD: list them with collector { }"),
    ),
    Keyword(
        "DNSSD_domain",
        NoEffect("collectors are not discovered by DNS-SD: list them with collector { }"),
    ),
    Keyword("pcap", Refused(PACKETS)),
    Keyword("nflog", Refused(PACKETS)),
    Keyword("ulog", Refused(PACKETS)),
    Keyword("tcp", Refused("TCP measurements are not added to samples: remove it")),
    Keyword("json", Refused(APPLICATIONS)),
    Keyword("nlroute", Refused("only the router adds routes to samples: remove it")),
    Keyword("docker", Refused(GUESTS)),
    Keyword("containerd", Refused(GUESTS)),
    Keyword("podman", Refused(GUESTS)),
    Keyword("k8s", Refused(GUESTS)),
    Keyword("kvm", Refused(GUESTS)),
    Keyword("xen", Refused(GUESTS)),
    Keyword("systemd", Refused(GUESTS)),
    Keyword("dbus", Module("there is no D-Bus interface")),
    Keyword("nvml", Refused("GPUs are not monitored: remove it")),
    Keyword("eapi", Refused(SWITCHES)),
    Keyword("ovs", Refused(SWITCHES)),
    Keyword("cumulus", Refused(SWITCHES)),
    Keyword("dent", Refused(SWITCHES)),
    Keyword("opx", Refused(SWITCHES)),
    Keyword("os10", Refused(SWITCHES)),
    Keyword("sonic", Refused(SWITCHES)),
];

const ADAPTORS: &str = "devices are read again whenever the kernel reports a change";
const DIRECTION: &str =
    "say psample { ingress = on egress = on } or, in the router, sflow direction";
const PACKETS: &str = "packets are not sampled from devices: remove it, and have the kernel (tc … action \
                       sample group 1) or the router sample for psample { group = 1 }";
const APPLICATIONS: &str = "application samples are not supported: remove it";
const GUESTS: &str = "containers, virtual machines and services are not monitored: remove it";
const NO_GUESTS: &str = "virtual machines are not monitored";
const SWITCHES: &str = "vendor switch ASICs are not supported: remove it";

/// Words in `collector { }`.
static COLLECTOR: &[Keyword] = &[
    Keyword(
        "ip",
        Text("an IP address or a host's name", |c, t| {
            let host = CollectorConfig::parse_host(t)?;
            if matches!(host, Host::Ip(ip) if ip.is_unspecified()) {
                return Err(format!("{host} is not a unicast address"));
            }
            collector(c).host = host;
            Ok(())
        }),
    ),
    Keyword("udpport", Number(1..=65_535, |c, n| collector(c).port = n as u16)),
    Keyword("namespace", Text("a name under /var/run/netns", |c, t| place(c, t, true))),
    Keyword("dev", Text("a device such as eth0", |c, t| place(c, t, false))),
];

/// Words in `psample { }`.
static PSAMPLE: &[Keyword] = &[
    Keyword("group", Number(1..=32, |c, n| c.psample.get_or_insert_default().group = n as u32)),
    Keyword("ingress", Switch(|c, on| c.psample.get_or_insert_default().ingress = on)),
    Keyword("egress", Switch(|c, on| c.psample.get_or_insert_default().egress = on)),
];

/// Words in `vpp { }`.
static VPP: &[Keyword] = &[
    Keyword("osIndex", Switch(|c, on| c.vpp.get_or_insert_default().os_index = on)),
    Keyword(
        "ifOffset",
        Number(0..=4_000_000_000, |c, n| c.vpp.get_or_insert_default().if_offset = n as u32),
    ),
];

/// Words in `dropmon { }`.
static DROPMON: &[Keyword] = &[
    Keyword(
        "limit",
        Number(0..=1_000_000, |c, n| c.dropmon.get_or_insert_default().limit = n as u32),
    ),
    Keyword(
        "max",
        Number(0..=1_000_000_000, |c, n| c.dropmon.get_or_insert_default().max = n as u32),
    ),
    Keyword(
        "max_trip",
        Number(1..=1_000_000, |c, n| c.dropmon.get_or_insert_default().max_trip = n as u32),
    ),
    Keyword("start", Switch(|c, on| c.dropmon.get_or_insert_default().start = on)),
    Keyword("force", Switch(|c, on| c.dropmon.get_or_insert_default().force = on)),
    Keyword("sw", Switch(|c, on| c.dropmon.get_or_insert_default().software = on)),
    Keyword("hw", Switch(|c, on| c.dropmon.get_or_insert_default().hardware = on)),
    Keyword("rn", Switch(|c, on| c.dropmon.get_or_insert_default().reason_names = on)),
    Keyword("sw_passive", Switch(|c, on| c.dropmon.get_or_insert_default().software_passive = on)),
    Keyword("group", NoEffect("the kernel has a single group for drops")),
    Keyword("hw_function", NoEffect("functions of hardware drops are always reported")),
    Keyword("hw_passive", Switch(|c, on| c.dropmon.get_or_insert_default().hardware_passive = on)),
    Keyword("hw_unknown", Switch(|c, on| c.dropmon.get_or_insert_default().unknown = on)),
    Keyword(
        "hide",
        Text("a regular expression", |c, t| {
            regex_lite::Regex::new(t)
                .map_err(|e| format!("`{t}' is not a valid regular expression: {e}"))?;
            c.dropmon.get_or_insert_default().hide = Some(t.to_owned());
            Ok(())
        }),
    ),
];

/// Returns the reason why a word of an object has no effect with this reader of the file, if it has
/// none.
pub(super) fn idle(reader: Reader, object: &str, word: &str) -> Option<&'static str> {
    match (reader, object, word) {
        (Reader::Agent, "sflow", "sampling" | "packetSamplingRate") => Some(SENDER),
        (Reader::Router, "sflow", "psample" | "vpp") => Some("the router has its own agent"),
        (Reader::Router, "dropmon", "limit") => None,
        (Reader::Router, "dropmon", _) => Some("the router reports its own drops"),
        _ => None,
    }
}

/// Reason why `thalweg agent` sets no sampling rate.
pub(super) const SENDER: &str = "the source of the samples sets the rate";

/// A collector that was not named yet.
fn no_collector() -> CollectorConfig {
    CollectorConfig::new(Host::Name(String::new()), thalweg_sflow::SFLOW_PORT)
}

/// The collector whose object is being read.
fn collector(c: &mut HsflowdConf) -> &mut CollectorConfig {
    if c.collectors.is_empty() {
        c.collectors.push(no_collector());
    }
    let last = c.collectors.len() - 1;
    &mut c.collectors[last]
}

fn device(text: &str) -> Result<Option<String>, String> {
    let mut probe =
        CollectorConfig::new(Host::Ip([192, 0, 2, 1].into()), thalweg_sflow::SFLOW_PORT);
    probe.device = Some(text.to_owned());
    probe.check().map(|()| probe.device)
}

/// Sets the namespace or the device of a collector.
fn place(c: &mut HsflowdConf, text: &str, namespace: bool) -> Result<(), String> {
    let collector = collector(c);
    let mut probe =
        CollectorConfig::new(Host::Ip([192, 0, 2, 1].into()), thalweg_sflow::SFLOW_PORT);
    let name = Some(text.to_owned());
    if namespace {
        (probe.namespace, collector.namespace) = (name.clone(), name);
    } else {
        (probe.device, collector.device) = (name.clone(), name);
    }
    probe.check()
}
