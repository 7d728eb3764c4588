//! Counter records of hosts and virtual machines (sFlow Host Structures).

use crate::value::{Percent, Record, Text, Uuid, Value, Visitor, name, record};
use crate::xdr::{DecodeError, Reader, Writer};
use thalweg_wire::ethernet::MacAddr;

record! {
    /// The host's identity.
    HostId<'a> {
        /// Name of the host, at most 64 bytes.
        hostname: Text<'a> = "hostname",
        uuid: Uuid = "UUID",
        /// 3 is x86-64, 10 is ARM.
        machine_type: u32 = "machine_type",
        /// 2 is Linux.
        os_name: u32 = "os_name",
        /// Release of the system, at most 32 bytes.
        os_release: Text<'a> = "os_release",
    }
}

/// One network adapter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAdapter {
    /// ifIndex.
    pub index: u32,
    /// Its addresses.
    pub macs: Vec<MacAddr>,
}

/// Network adapters of a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostAdapters(pub Vec<HostAdapter>);

impl<'a> Record<'a> for HostAdapters {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let count = r.count(8, "adaptors")?;
        let mut adapters = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let index = r.u32("adaptor ifIndex")?;
            let count = r.count(8, "adaptor MACs")?;
            let macs =
                (0..count).map(|_| r.mac("adaptor MAC").map(MacAddr)).collect::<Result<_, _>>()?;
            adapters.push(HostAdapter { index, macs });
        }
        Ok(HostAdapters(adapters))
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.0.len() as u32);
        for adapter in &self.0 {
            w.u32(adapter.index);
            w.u32(adapter.macs.len() as u32);
            for mac in &adapter.macs {
                w.padded(&mac.0);
            }
        }
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        if v.structured() {
            v.open_list("adaptor_list");
            for adapter in &self.0 {
                v.open_object();
                v.field(name!("ifIndex"), Value::U32(adapter.index));
                v.field(name!("MACs"), Value::U32(adapter.macs.len() as u32));
                v.open_list("mac_list");
                for mac in &adapter.macs {
                    v.item(Value::Mac(mac.0));
                }
                v.close_list();
                v.close_object();
            }
            v.close_list();
        } else {
            for (i, adapter) in self.0.iter().enumerate() {
                v.numbered(format_args!("adaptor_{i}_ifIndex"), Value::U32(adapter.index));
                let count = adapter.macs.len() as u32;
                v.numbered(format_args!("adaptor_{i}_MACs"), Value::U32(count));
                for (j, mac) in adapter.macs.iter().enumerate() {
                    v.numbered(format_args!("adaptor_{i}_MAC_{j}"), Value::Mac(mac.0));
                }
            }
        }
    }
}

record! {
    /// The data source that contains this one.
    HostParent {
        class: u32 = "parent_dsClass",
        index: u32 = "parent_dsIndex",
    }
}

record! {
    /// Processor; times in milliseconds. The last three fields came in 2014.
    HostCpu {
        load_one: f32 = "cpu_load_one",
        load_five: f32 = "cpu_load_five",
        load_fifteen: f32 = "cpu_load_fifteen",
        running: u32 = "cpu_proc_run",
        processes: u32 = "cpu_proc_total",
        cpus: u32 = "cpu_num",
        /// MHz.
        speed: u32 = "cpu_speed",
        /// Seconds.
        uptime: u32 = "cpu_uptime",
        user: u32 = "cpu_user",
        nice: u32 = "cpu_nice",
        system: u32 = "cpu_system",
        idle: u32 = "cpu_idle",
        io_wait: u32 = "cpu_wio",
        interrupt: u32 = "cpuintr",
        soft_interrupt: u32 = "cpu_sintr",
        interrupts: u32 = "cpuinterrupts",
        contexts: u32 = "cpu_contexts",
        steal: Option<u32> = "cpu_steal",
        guest: Option<u32> = "cpu_guest",
        guest_nice: Option<u32> = "cpu_guest_nice",
    }
}

record! {
    /// Memory in bytes, paging in pages.
    HostMemory {
        total: u64 = "mem_total",
        free: u64 = "mem_free",
        shared: u64 = "mem_shared",
        buffers: u64 = "mem_buffers",
        cached: u64 = "mem_cached",
        swap_total: u64 = "swap_total",
        swap_free: u64 = "swap_free",
        page_in: u32 = "page_in",
        page_out: u32 = "page_out",
        swap_in: u32 = "swap_in",
        swap_out: u32 = "swap_out",
    }
}

record! {
    /// Disks; sizes in bytes, times in milliseconds.
    HostDisk {
        total: u64 = "disk_total",
        free: u64 = "disk_free",
        max_used: Percent = "disk_partition_max_used",
        reads: u32 = "disk_reads",
        bytes_read: u64 = "disk_bytes_read",
        read_time: u32 = "disk_read_time",
        writes: u32 = "disk_writes",
        bytes_written: u64 = "disk_bytes_written",
        write_time: u32 = "disk_write_time",
    }
}

record! {
    /// Network traffic of the host.
    HostNetIo {
        bytes_in: u64 = "nio_bytes_in",
        packets_in: u32 = "nio_pkts_in",
        errors_in: u32 = "nio_errs_in",
        drops_in: u32 = "nio_drops_in",
        bytes_out: u64 = "nio_bytes_out",
        packets_out: u32 = "nio_pkts_out",
        errors_out: u32 = "nio_errs_out",
        drops_out: u32 = "nio_drops_out",
    }
}

record! {
    /// The IP group of MIB-II.
    HostIp {
        forwarding: u32 = "ipForwarding",
        default_ttl: u32 = "ipDefaultTTL",
        in_receives: u32 = "ipInReceives",
        in_header_errors: u32 = "ipInHdrErrors",
        in_address_errors: u32 = "ipInAddrErrors",
        forwarded: u32 = "ipForwDatagrams",
        in_unknown_protocols: u32 = "ipInUnknownProtos",
        in_discards: u32 = "ipInDiscards",
        in_delivers: u32 = "ipInDelivers",
        out_requests: u32 = "ipOutRequests",
        out_discards: u32 = "ipOutDiscards",
        out_no_routes: u32 = "ipOutNoRoutes",
        reassembly_timeout: u32 = "ipReasmTimeout",
        reassembly_required: u32 = "ipReasmReqds",
        reassembly_ok: u32 = "ipReasmOKs",
        reassembly_failed: u32 = "ipReasmFails",
        fragmented: u32 = "ipFragOKs",
        fragment_failed: u32 = "ipFragFails",
        fragments_created: u32 = "ipFragCreates",
    }
}

record! {
    /// The ICMP group of MIB-II.
    HostIcmp {
        in_messages: u32 = "icmpInMsgs",
        in_errors: u32 = "icmpInErrors",
        in_unreachable: u32 = "icmpInDestUnreachs",
        in_time_exceeded: u32 = "icmpInTimeExcds",
        in_parameter_problem: u32 = "icmpInParamProbs",
        in_source_quench: u32 = "icmpInSrcQuenchs",
        in_redirect: u32 = "icmpInRedirects",
        in_echo: u32 = "icmpInEchos",
        in_echo_reply: u32 = "icmpInEchoReps",
        in_timestamp: u32 = "icmpInTimestamps",
        in_address_mask: u32 = "icmpInAddrMasks",
        in_address_mask_reply: u32 = "icmpInAddrMaskReps",
        out_messages: u32 = "icmpOutMsgs",
        out_errors: u32 = "icmpOutErrors",
        out_unreachable: u32 = "icmpOutDestUnreachs",
        out_time_exceeded: u32 = "icmpOutTimeExcds",
        out_parameter_problem: u32 = "icmpOutParamProbs",
        out_source_quench: u32 = "icmpOutSrcQuenchs",
        out_redirect: u32 = "icmpOutRedirects",
        out_echo: u32 = "icmpOutEchos",
        out_echo_reply: u32 = "icmpOutEchoReps",
        out_timestamp: u32 = "icmpOutTimestamps",
        out_timestamp_reply: u32 = "icmpOutTimestampReps",
        out_address_mask: u32 = "icmpOutAddrMasks",
        out_address_mask_reply: u32 = "icmpOutAddrMaskReps",
    }
}

record! {
    /// The TCP group of MIB-II.
    HostTcp {
        rto_algorithm: u32 = "tcpRtoAlgorithm",
        rto_min: u32 = "tcpRtoMin",
        rto_max: u32 = "tcpRtoMax",
        max_connections: u32 = "tcpMaxConn",
        active_opens: u32 = "tcpActiveOpens",
        passive_opens: u32 = "tcpPassiveOpens",
        attempt_fails: u32 = "tcpAttemptFails",
        established_resets: u32 = "tcpEstabResets",
        established: u32 = "tcpCurrEstab",
        in_segments: u32 = "tcpInSegs",
        out_segments: u32 = "tcpOutSegs",
        retransmitted: u32 = "tcpRetransSegs",
        in_errors: u32 = "tcpInErrs",
        out_resets: u32 = "tcpOutRsts",
        in_checksum_errors: u32 = "tcpInCsumErrors",
    }
}

record! {
    /// The UDP group of MIB-II.
    HostUdp {
        in_datagrams: u32 = "udpInDatagrams",
        no_ports: u32 = "udpNoPorts",
        in_errors: u32 = "udpInErrors",
        out_datagrams: u32 = "udpOutDatagrams",
        receive_buffer_errors: u32 = "udpRcvbufErrors",
        send_buffer_errors: u32 = "udpSndbufErrors",
        in_checksum_errors: u32 = "udpInCsumErrors",
    }
}

record! {
    /// A hypervisor.
    VirtualNode {
        mhz: u32 = "vnode_mhz",
        cpus: u32 = "vnode_cpus",
        memory: u64 = "vnode_memory",
        memory_free: u64 = "vnode_memory_free",
        domains: u32 = "vnode_num_domains",
    }
}

record! {
    /// Processor of a virtual machine.
    VirtualCpu {
        state: u32 = "vcpu_state",
        /// Milliseconds.
        time: u32 = "vcpu_cpu_mS",
        cpus: u32 = "vcpu_cpuCount",
    }
}

record! {
    /// Memory of a virtual machine, in bytes.
    VirtualMemory {
        memory: u64 = "vmem_memory",
        maximum: u64 = "vmem_maxMemory",
    }
}

record! {
    /// Disks of a virtual machine.
    VirtualDisk {
        capacity: u64 = "vdsk_capacity",
        allocation: u64 = "vdsk_allocation",
        available: u64 = "vdsk_available",
        reads: u32 = "vdsk_rd_req",
        bytes_read: u64 = "vdsk_rd_bytes",
        writes: u32 = "vdsk_wr_req",
        bytes_written: u64 = "vdsk_wr_bytes",
        errors: u32 = "vdsk_errs",
    }
}

record! {
    /// Network traffic of a virtual machine.
    VirtualNetIo {
        bytes_in: u64 = "vnio_bytes_in",
        packets_in: u32 = "vnio_pkts_in",
        errors_in: u32 = "vnio_errs_in",
        drops_in: u32 = "vnio_drops_in",
        bytes_out: u64 = "vnio_bytes_out",
        packets_out: u32 = "vnio_pkts_out",
        errors_out: u32 = "vnio_errs_out",
        drops_out: u32 = "vnio_drops_out",
    }
}
