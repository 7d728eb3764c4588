//! Records of the sFlow structure registry (sflow.org) that sflowtool passes over. Their fields
//! have the registry's names.

use crate::value::{Record, Text, Uuid, Value, Visitor, name, record};
use crate::xdr::{DecodeError, Reader, Writer};

use super::paths::VlanTunnel;

record! {
    /// OpenFlow 1.0 entry that the packet matched, deprecated.
    OpenFlowEntry, "extendedType" => "openflow_v1" {
        cookie: u64 = "flow_cookie",
        matched: u32 = "flow_match",
        actions: u32 = "flow_actions",
    }
}

record! {
    /// Fibre Channel route (RFC 4625).
    FibreChannel, "extendedType" => "fc" {
        source_mask: u32 = "fc_src_mask_len",
        destination_mask: u32 = "fc_dst_mask_len",
        next_hop: u32 = "fc_next_hop",
        metric: u32 = "fc_metric",
    }
}

record! {
    /// Length of the queue that the packet met, in segments.
    QueueMet, "extendedType" => "queue_length" {
        index: u32 = "queueIndex",
        length: u32 = "queueLength",
    }
}

record! {
    /// InfiniBand local routing header, before and after.
    InfiniBandLocal, "extendedType" => "ib_lrh" {
        source_lane: u32 = "ib_src_vl",
        source_level: u32 = "ib_src_sl",
        source_dlid: u32 = "ib_src_dlid",
        source_slid: u32 = "ib_src_slid",
        source_next: u32 = "ib_src_lnh",
        destination_lane: u32 = "ib_dst_vl",
        destination_level: u32 = "ib_dst_sl",
        destination_dlid: u32 = "ib_dst_dlid",
        destination_slid: u32 = "ib_dst_slid",
        destination_next: u32 = "ib_dst_lnh",
    }
}

record! {
    /// InfiniBand global routing header.
    InfiniBandGlobal, "extendedType" => "ib_grh" {
        flow_label: u32 = "ib_flow_label",
        traffic_class: u32 = "ib_tc",
        source: Uuid = "ib_s_gid",
        destination: Uuid = "ib_d_gid",
        next_header: u32 = "ib_next_header",
        length: u32 = "ib_length",
    }
}

record! {
    /// InfiniBand base transport header.
    InfiniBandTransport, "extendedType" => "ib_bth" {
        partition: u32 = "ib_pkey",
        destination: u32 = "ib_dst_qp",
        opcode: u32 = "ib_opcode",
    }
}

/// VLAN tags of the packet on one side of the switch, outermost first, as in [`VlanTunnel`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VlanTags(pub VlanTunnel);

impl<'a> Record<'a> for VlanTags {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        VlanTunnel::decode(r).map(VlanTags)
    }
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
        self.0.visit_as(prefix, name!("vlan_tags"), v);
    }
}

record! {
    /// A transaction of any application.
    Transaction, "flowSampleType" => "transaction" {
        /// 1 seen by the client, 2 by the server.
        direction: u32 = "transaction_direction",
        /// Microseconds in a queue.
        wait: u32 = "transaction_wait_uS",
        /// Microseconds.
        duration: u32 = "transaction_duration_uS",
        status: u32 = "transaction_status",
        received: u64 = "transaction_bytes_received",
        sent: u64 = "transaction_bytes_sent",
    }
}

record! {
    /// An NFS operation (RFC 3530).
    NfsTransaction<'a>, "extendedType" => "nfs_transaction" {
        path: Text<'a> = "nfs_path",
        operation: u32 = "nfs_operation",
        status: u32 = "nfs_status",
    }
}

record! {
    /// A SCSI operation.
    ScsiTransaction, "extendedType" => "scsi_transaction" {
        lun: u32 = "scsi_lun",
        operation: u32 = "scsi_operation",
        status: u32 = "scsi_status",
    }
}

record! {
    /// A web transaction.
    HttpTransaction<'a>, "extendedType" => "http_transaction" {
        url: Text<'a> = "http_url",
        host: Text<'a> = "http_host",
        referrer: Text<'a> = "http_referrer",
        user_agent: Text<'a> = "http_useragent",
        user: Text<'a> = "http_authuser",
        status: u32 = "http_status",
    }
}

record! {
    /// The request that a proxy made on behalf of another.
    ProxyRequest<'a>, "extendedType" => "proxy_request" {
        uri: Text<'a> = "proxy_http_uri",
        host: Text<'a> = "proxy_http_host",
    }
}

record! {
    /// Times that a page took to load in the browser (W3C Navigation Timing): milliseconds since
    /// the first event, 0 for events that did not happen.
    NavigationTiming, "extendedType" => "nav_timing" {
        kind: u32 = "nav_type",
        redirects: u32 = "nav_redirectCount",
        start: u32 = "nav_navigationStart",
        unload_start: u32 = "nav_unloadEventStart",
        unload_end: u32 = "nav_unloadEventEnd",
        redirect_start: u32 = "nav_redirectStart",
        redirect_end: u32 = "nav_redirectEnd",
        fetch_start: u32 = "nav_fetchStart",
        lookup_start: u32 = "nav_domainLookupStart",
        lookup_end: u32 = "nav_domainLookupEnd",
        connect_start: u32 = "nav_connectStart",
        connect_end: u32 = "nav_connectEnd",
        secure_start: u32 = "nav_secureConnectionStart",
        request_start: u32 = "nav_requestStart",
        response_start: u32 = "nav_responseStart",
        response_end: u32 = "nav_responseEnd",
        loading: u32 = "nav_domLoading",
        interactive: u32 = "nav_domInteractive",
        content_start: u32 = "nav_domContentLoadedEventStart",
        content_end: u32 = "nav_domContentLoadedEventEnd",
        complete: u32 = "nav_domComplete",
        load_start: u32 = "nav_loadEventStart",
        load_end: u32 = "nav_loadEventEnd",
    }
}

record! {
    /// Packets that a switch forwarded in software, by reason.
    SlowPathCounts {
        unknown: u32 = "slow_path_unknown",
        other: u32 = "slow_path_other",
        cam_miss: u32 = "slow_path_cam_miss",
        cam_full: u32 = "slow_path_cam_full",
        no_hardware: u32 = "slow_path_no_hw_support",
        control: u32 = "slow_path_cntrl",
    }
}

record! {
    /// InfiniBand port counters.
    InfiniBandCounters {
        packets_out: u64 = "ib_port_xmit_pkts",
        packets_in: u64 = "ib_port_rcv_pkts",
        symbol_errors: u32 = "ib_symbol_errors",
        link_recoveries: u32 = "ib_link_error_recovery",
        link_downed: u32 = "ib_link_downed",
        errors_in: u32 = "ib_port_rcv_errors",
        remote_errors_in: u32 = "ib_port_rcv_remote_physical_errors",
        relay_errors_in: u32 = "ib_port_rcv_switch_relay_errors",
        discards_out: u32 = "ib_port_xmit_discards",
        constraint_errors_out: u32 = "ib_port_xmit_constraint_errors",
        constraint_errors_in: u32 = "ib_port_rcv_constraint_errors",
        integrity_errors: u32 = "ib_local_link_integrity_errors",
        buffer_overruns: u32 = "ib_excessive_buffer_overrun_errors",
        vl15_dropped: u32 = "ib_vl15_dropped",
    }
}

record! {
    /// Lengths of one queue, in segments, as packets met them.
    QueueLengths {
        index: u32 = "queueIndex",
        /// Bytes.
        segment_size: u32 = "segmentSize",
        segments: u32 = "queueSegments",
        length_0: u32 = "queueLength0",
        length_1: u32 = "queueLength1",
        length_2: u32 = "queueLength2",
        length_4: u32 = "queueLength4",
        length_8: u32 = "queueLength8",
        length_32: u32 = "queueLength32",
        length_128: u32 = "queueLength128",
        length_1024: u32 = "queueLength1024",
        length_more: u32 = "queueLengthMore",
        dropped: u32 = "queueDropped",
    }
}

record! {
    /// Electric supply; the power factor is signed.
    Energy {
        voltage: u32 = "energy_voltage",
        current: u32 = "energy_current",
        real_power: u32 = "energy_real_power",
        power_factor: u32 = "energy_power_factor",
        energy: u32 = "energy_consumed",
        errors: u32 = "energy_errors",
    }
}

record! {
    /// Temperatures, signed.
    Temperature {
        minimum: u32 = "temperature_minimum",
        maximum: u32 = "temperature_maximum",
        errors: u32 = "temperature_errors",
    }
}

record! {
    /// Relative humidity.
    Humidity {
        relative: u32 = "humidity_relative",
    }
}

record! {
    /// Fans.
    Fans {
        total: u32 = "fans_total",
        failed: u32 = "fans_failed",
        speed: u32 = "fans_speed",
    }
}

record! {
    /// The egress queue that a Broadcom switch chose (enterprise 4413).
    BroadcomQueue, "extendedType" => "bst_egress_queue" {
        queue: u32 = "bst_egress_queue",
    }
}

record! {
    /// Peak use of the buffers of a Broadcom switch chip, in percent (enterprise 4413).
    BroadcomBuffers {
        unicast: u32 = "bst_device_uc_pc",
        multicast: u32 = "bst_device_mc_pc",
    }
}

/// Peak use of the buffers of a port of a Broadcom switch chip, in percent (enterprise 4413).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BroadcomPortBuffers {
    /// Unicast in, multicast in, unicast out, multicast out.
    pub sides: [u32; 4],
    /// Unicast by egress queue.
    pub unicast_queues: [u32; 8],
    /// Multicast by egress queue.
    pub multicast_queues: [u32; 8],
}

const SIDES: [&str; 4] =
    ["bst_port_uc_pc_in", "bst_port_mc_pc_in", "bst_port_uc_pc_out", "bst_port_mc_pc_out"];

impl<'a> Record<'a> for BroadcomPortBuffers {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut out = BroadcomPortBuffers::default();
        let lists = [&mut out.sides[..], &mut out.unicast_queues, &mut out.multicast_queues];
        for word in lists.into_iter().flatten() {
            *word = r.u32("port buffers")?;
        }
        Ok(out)
    }
    fn encode(&self, w: &mut Writer<'_>) {
        let lists = [&self.sides[..], &self.unicast_queues, &self.multicast_queues];
        lists.into_iter().flatten().for_each(|word| w.u32(*word));
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        for (name, word) in SIDES.iter().zip(self.sides) {
            v.numbered(format_args!("{name}"), Value::U32(word));
        }
        for (name, queues) in [("uc", self.unicast_queues), ("mc", self.multicast_queues)] {
            for (i, word) in queues.into_iter().enumerate() {
                v.numbered(format_args!("bst_port_queue_{name}_pc.{i}"), Value::U32(word));
            }
        }
    }
}
