//! Counters of the kernel, from the texts under `/proc`. Fields are found by name: kernels have
//! added some in the middle.

use thalweg_sflow::model::{HostCpu, HostIcmp, HostIp, HostMemory, HostTcp, HostUdp};

/// The texts that [`cpu`] reads.
pub(super) struct CpuFiles<'a> {
    pub stat: &'a str,
    pub loadavg: &'a str,
    pub uptime: &'a str,
    pub cpuinfo: &'a str,
    pub max_frequency: &'a str,
    /// Clock ticks per second.
    pub ticks: u64,
}

/// The words behind the first one of a line that begins with it.
fn line<'a>(text: &'a str, first: &str) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        (words.next() == Some(first)).then_some(words)
    })
}

fn number(text: &str, first: &str) -> Option<u64> {
    line(text, first)?.next()?.parse().ok()
}

/// The first number of the field `name : number` of `/proc/cpuinfo`.
fn megahertz(files: &CpuFiles<'_>) -> Option<u32> {
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == "cpu MHz").then(|| value.trim().parse::<f64>().ok()).flatten()
    };
    let kilohertz = || files.max_frequency.trim().parse::<f64>().ok().map(|khz| khz / 1000.0);
    files.cpuinfo.lines().find_map(field).or_else(kilohertz).map(|mhz| mhz as u32)
}

/// Processor: load, times in milliseconds, interrupts.
pub(super) fn cpu(files: &CpuFiles<'_>) -> Option<HostCpu> {
    let times: Vec<u32> = line(files.stat, "cpu")?
        .map_while(|word| word.parse::<u64>().ok())
        .map(|ticks| (ticks.wrapping_mul(1000) / files.ticks.max(1)) as u32)
        .collect();
    let time = |at: usize| times.get(at).copied();
    let mut load = files.loadavg.split_ascii_whitespace();
    let mut average = || load.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let (load_one, load_five, load_fifteen) = (average(), average(), average());
    let processes = load.next().and_then(|word| word.split_once('/'));
    let (running, all) = processes.unwrap_or(("0", "0"));
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let uptime = files.uptime.split(['.', ' ']).next().and_then(|word| word.parse().ok());
    Some(HostCpu {
        load_one,
        load_five,
        load_fifteen,
        running: running.parse().unwrap_or(0),
        processes: all.parse().unwrap_or(0),
        cpus: files.stat.lines().filter(is_core).count() as u32,
        speed: megahertz(files).unwrap_or(0),
        uptime: uptime.unwrap_or(0),
        user: time(0)?,
        nice: time(1)?,
        system: time(2)?,
        idle: time(3)?,
        io_wait: time(4).unwrap_or(0),
        interrupt: time(5).unwrap_or(0),
        soft_interrupt: time(6).unwrap_or(0),
        interrupts: number(files.stat, "intr").unwrap_or(0) as u32,
        contexts: number(files.stat, "ctxt").unwrap_or(0) as u32,
        steal: Some(time(7).unwrap_or(0)),
        guest: Some(time(8).unwrap_or(0)),
        guest_nice: Some(time(9).unwrap_or(0)),
    })
}

/// Memory in bytes, paging as the kernel counts it.
pub(super) fn memory(meminfo: &str, vmstat: &str) -> Option<HostMemory> {
    let bytes = |name: &str| number(meminfo, name).map(|kib| kib.saturating_mul(1024));
    let count = |name: &str| number(vmstat, name).unwrap_or(0) as u32;
    Some(HostMemory {
        total: bytes("MemTotal:")?,
        free: bytes("MemFree:")?,
        shared: bytes("Shmem:").unwrap_or(0),
        buffers: bytes("Buffers:").unwrap_or(0),
        cached: bytes("Cached:").unwrap_or(0),
        swap_total: bytes("SwapTotal:").unwrap_or(0),
        swap_free: bytes("SwapFree:").unwrap_or(0),
        page_in: count("pgpgin"),
        page_out: count("pgpgout"),
        swap_in: count("pswpin"),
        swap_out: count("pswpout"),
    })
}

/// `/proc/net/snmp`: a line of names and a line of values for each group.
pub(super) struct Snmp<'a>(Vec<(&'a str, &'a str, u32)>);

impl<'a> Snmp<'a> {
    pub(super) fn parse(text: &'a str) -> Snmp<'a> {
        let mut values = Vec::new();
        let mut lines = text.lines();
        while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
            let (Some((group, names)), Some((again, numbers))) =
                (names.split_once(':'), numbers.split_once(':'))
            else {
                continue;
            };
            if group != again {
                continue;
            }
            let pairs = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
            // Some are signed, some have 64 bits: sFlow takes the low 32.
            let pairs = pairs.filter_map(|(n, v)| Some((group, n, v.parse::<i128>().ok()? as u32)));
            values.extend(pairs);
        }
        Snmp(values)
    }

    /// Values of a group by name; `None` if there is no such group.
    fn group<'s>(&'s self, group: &'s str) -> Option<impl Fn(&str) -> u32 + use<'s, 'a>> {
        self.0.iter().any(|(of, ..)| *of == group).then_some(move |name: &str| {
            let found = self.0.iter().find(|(of, n, _)| *of == group && *n == name);
            found.map_or(0, |(.., value)| *value)
        })
    }

    pub(super) fn ip(&self) -> Option<HostIp> {
        let get = self.group("Ip")?;
        Some(HostIp {
            forwarding: get("Forwarding"),
            default_ttl: get("DefaultTTL"),
            in_receives: get("InReceives"),
            in_header_errors: get("InHdrErrors"),
            in_address_errors: get("InAddrErrors"),
            forwarded: get("ForwDatagrams"),
            in_unknown_protocols: get("InUnknownProtos"),
            in_discards: get("InDiscards"),
            in_delivers: get("InDelivers"),
            out_requests: get("OutRequests"),
            out_discards: get("OutDiscards"),
            out_no_routes: get("OutNoRoutes"),
            reassembly_timeout: get("ReasmTimeout"),
            reassembly_required: get("ReasmReqds"),
            reassembly_ok: get("ReasmOKs"),
            reassembly_failed: get("ReasmFails"),
            fragmented: get("FragOKs"),
            fragment_failed: get("FragFails"),
            fragments_created: get("FragCreates"),
        })
    }

    pub(super) fn icmp(&self) -> Option<HostIcmp> {
        let get = self.group("Icmp")?;
        Some(HostIcmp {
            in_messages: get("InMsgs"),
            in_errors: get("InErrors"),
            in_unreachable: get("InDestUnreachs"),
            in_time_exceeded: get("InTimeExcds"),
            in_parameter_problem: get("InParmProbs"),
            in_source_quench: get("InSrcQuenchs"),
            in_redirect: get("InRedirects"),
            in_echo: get("InEchos"),
            in_echo_reply: get("InEchoReps"),
            in_timestamp: get("InTimestamps"),
            in_address_mask: get("InAddrMasks"),
            in_address_mask_reply: get("InAddrMaskReps"),
            out_messages: get("OutMsgs"),
            out_errors: get("OutErrors"),
            out_unreachable: get("OutDestUnreachs"),
            out_time_exceeded: get("OutTimeExcds"),
            out_parameter_problem: get("OutParmProbs"),
            out_source_quench: get("OutSrcQuenchs"),
            out_redirect: get("OutRedirects"),
            out_echo: get("OutEchos"),
            out_echo_reply: get("OutEchoReps"),
            out_timestamp: get("OutTimestamps"),
            out_timestamp_reply: get("OutTimestampReps"),
            out_address_mask: get("OutAddrMasks"),
            out_address_mask_reply: get("OutAddrMaskReps"),
        })
    }

    pub(super) fn tcp(&self) -> Option<HostTcp> {
        let get = self.group("Tcp")?;
        Some(HostTcp {
            rto_algorithm: get("RtoAlgorithm"),
            rto_min: get("RtoMin"),
            rto_max: get("RtoMax"),
            max_connections: get("MaxConn"),
            active_opens: get("ActiveOpens"),
            passive_opens: get("PassiveOpens"),
            attempt_fails: get("AttemptFails"),
            established_resets: get("EstabResets"),
            established: get("CurrEstab"),
            in_segments: get("InSegs"),
            out_segments: get("OutSegs"),
            retransmitted: get("RetransSegs"),
            in_errors: get("InErrs"),
            out_resets: get("OutRsts"),
            in_checksum_errors: get("InCsumErrors"),
        })
    }

    pub(super) fn udp(&self) -> Option<HostUdp> {
        let get = self.group("Udp")?;
        Some(HostUdp {
            in_datagrams: get("InDatagrams"),
            no_ports: get("NoPorts"),
            in_errors: get("InErrors"),
            out_datagrams: get("OutDatagrams"),
            receive_buffer_errors: get("RcvbufErrors"),
            send_buffer_errors: get("SndbufErrors"),
            in_checksum_errors: get("InCsumErrors"),
        })
    }
}
