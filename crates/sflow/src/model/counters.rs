//! Counter records of interfaces and switches.

use super::{
    AppCounters, AppResources, AppWorkers, HostAdapters, HostCpu, HostDisk, HostIcmp, HostId,
    HostIp, HostMemory, HostNetIo, HostParent, HostTcp, HostUdp, HttpCounters, JavaRuntime,
    JavaStatistics, MemcacheCounters, MemcacheCountersOld, VdiCounters, VirtualCpu, VirtualDisk,
    VirtualMemory, VirtualNetIo, VirtualNode,
};
use crate::model::registry::{
    BroadcomBuffers, BroadcomPortBuffers, Energy, Fans, Humidity, InfiniBandCounters, QueueLengths,
    SlowPathCounts, Temperature,
};
use crate::model::vendor::{BroadcomTables, NvidiaGpu};
use crate::value::{Hex64, Percent, Record, Text, Value, Visitor, name, record, records};
use crate::xdr::{DecodeError, Reader, Writer};
use thalweg_wire::ethernet::MacAddr;

records! {
    /// A record of a counter sample.
    CounterRecord<'a> {
        /// Interface counters.
        Interface(InterfaceCounters) = 0:1;
        /// Ethernet errors.
        Ethernet(EthernetCounters) = 0:2;
        /// Token ring errors.
        TokenRing(TokenRingCounters) = 0:3;
        /// 100BaseVG counters.
        Vg(VgCounters) = 0:4;
        /// Counters of a VLAN.
        Vlan(VlanCounters) = 0:5;
        /// Wireless counters.
        Wireless(WirelessCounters) = 0:6;
        /// Link aggregation.
        Lacp(LacpCounters) = 0:7;
        /// Packets forwarded in software.
        SlowPath(SlowPathCounts) = 0:8;
        /// InfiniBand port.
        InfiniBand(InfiniBandCounters) = 0:9;
        /// Optical module.
        Sfp(SfpCounters) = 0:10;
        /// Priority flow control.
        Pfc(PfcCounters) = 0:11;
        /// Processor and memory of a switch.
        Processor(ProcessorCounters) = 0:1001;
        /// Radio channel.
        Radio(RadioCounters) = 0:1002;
        /// Queue lengths.
        QueueLengths(QueueLengths) = 0:1003;
        /// OpenFlow port.
        OpenFlowPort(OpenFlowPort) = 0:1004;
        /// Interface name.
        PortName(PortName<'a>) = 0:1005;
        /// Host identity.
        HostId(HostId<'a>) = 0:2000;
        /// Network adapters of a host.
        HostAdapters(HostAdapters) = 0:2001;
        /// The host that a virtual machine runs on.
        HostParent(HostParent) = 0:2002;
        /// Host processor.
        HostCpu(HostCpu) = 0:2003;
        /// Host memory.
        HostMemory(HostMemory) = 0:2004;
        /// Host disks.
        HostDisk(HostDisk) = 0:2005;
        /// Host network I/O.
        HostNetIo(HostNetIo) = 0:2006;
        /// Host IP group.
        HostIp(HostIp) = 0:2007;
        /// Host ICMP group.
        HostIcmp(HostIcmp) = 0:2008;
        /// Host TCP group.
        HostTcp(HostTcp) = 0:2009;
        /// Host UDP group.
        HostUdp(HostUdp) = 0:2010;
        /// Hypervisor.
        VirtualNode(VirtualNode) = 0:2100;
        /// Virtual machine processor.
        VirtualCpu(VirtualCpu) = 0:2101;
        /// Virtual machine memory.
        VirtualMemory(VirtualMemory) = 0:2102;
        /// Virtual machine disks.
        VirtualDisk(VirtualDisk) = 0:2103;
        /// Virtual machine network I/O.
        VirtualNetIo(VirtualNetIo) = 0:2104;
        /// Java virtual machine.
        JavaRuntime(JavaRuntime<'a>) = 0:2105;
        /// Java statistics.
        JavaStatistics(JavaStatistics) = 0:2106;
        /// Memcache, deprecated form.
        MemcacheOld(MemcacheCountersOld) = 0:2200;
        /// HTTP server.
        Http(HttpCounters) = 0:2201;
        /// Application operations.
        App(AppCounters<'a>) = 0:2202;
        /// Application resources; Open vSwitch sends them too.
        AppResources(AppResources) = 0:2203;
        /// Memcache.
        Memcache(MemcacheCounters) = 0:2204;
        /// Virtual desktop.
        Vdi(VdiCounters) = 0:2205;
        /// Application workers.
        AppWorkers(AppWorkers) = 0:2206;
        /// Open vSwitch datapath.
        OvsDatapath(OvsDatapath) = 0:2207;
        /// Electric supply.
        Energy(Energy) = 0:3000;
        /// Temperatures.
        Temperature(Temperature) = 0:3001;
        /// Humidity.
        Humidity(Humidity) = 0:3002;
        /// Fans.
        Fans(Fans) = 0:3003;
        /// Buffer use of a Broadcom switch chip.
        BroadcomBuffers(BroadcomBuffers) = 4413:1;
        /// Buffer use of a port of a Broadcom switch chip.
        BroadcomPortBuffers(BroadcomPortBuffers) = 4413:2;
        /// Table use of a Broadcom switch chip.
        BroadcomTables(BroadcomTables) = 4413:3;
        /// NVIDIA graphics processor.
        NvidiaGpu(NvidiaGpu) = 5703:1;
    }
}

record! {
    /// Interface counters (sFlow v5, `if_counters`; RFC 2863). Octets are 64 bits and do not wrap
    /// in practice, packet counters are 32 bits and do.
    InterfaceCounters {
        /// ifIndex.
        index: u32 = "ifIndex",
        /// ifType, 6 is Ethernet.
        network_type: u32 = "networkType",
        /// Bits per second, 0 unknown.
        speed: u64 = "ifSpeed",
        /// 0 unknown, 1 full duplex, 2 half duplex, 3 in only, 4 out only.
        direction: u32 = "ifDirection",
        /// Bit 0 administratively up, bit 1 operationally up.
        status: u32 = "ifStatus",
        /// Bytes in.
        in_octets: u64 = "ifInOctets",
        /// Unicast packets in.
        in_unicast: u32 = "ifInUcastPkts",
        /// Multicast packets in.
        in_multicast: u32 = "ifInMulticastPkts",
        /// Broadcast packets in.
        in_broadcast: u32 = "ifInBroadcastPkts",
        /// Packets discarded on input.
        in_discards: u32 = "ifInDiscards",
        /// Packets in error on input.
        in_errors: u32 = "ifInErrors",
        /// Packets of unknown protocols.
        in_unknown_protocols: u32 = "ifInUnknownProtos",
        /// Bytes out.
        out_octets: u64 = "ifOutOctets",
        /// Unicast packets out.
        out_unicast: u32 = "ifOutUcastPkts",
        /// Multicast packets out.
        out_multicast: u32 = "ifOutMulticastPkts",
        /// Broadcast packets out.
        out_broadcast: u32 = "ifOutBroadcastPkts",
        /// Packets discarded on output.
        out_discards: u32 = "ifOutDiscards",
        /// Packets in error on output.
        out_errors: u32 = "ifOutErrors",
        /// 1 when promiscuous.
        promiscuous: u32 = "ifPromiscuousMode",
    }
}

record! {
    /// Ethernet-like interface counters (RFC 3635).
    EthernetCounters {
        alignment_errors: u32 = "dot3StatsAlignmentErrors",
        fcs_errors: u32 = "dot3StatsFCSErrors",
        single_collisions: u32 = "dot3StatsSingleCollisionFrames",
        multiple_collisions: u32 = "dot3StatsMultipleCollisionFrames",
        sqe_test_errors: u32 = "dot3StatsSQETestErrors",
        deferred_transmissions: u32 = "dot3StatsDeferredTransmissions",
        late_collisions: u32 = "dot3StatsLateCollisions",
        excessive_collisions: u32 = "dot3StatsExcessiveCollisions",
        internal_transmit_errors: u32 = "dot3StatsInternalMacTransmitErrors",
        carrier_sense_errors: u32 = "dot3StatsCarrierSenseErrors",
        frame_too_longs: u32 = "dot3StatsFrameTooLongs",
        internal_receive_errors: u32 = "dot3StatsInternalMacReceiveErrors",
        symbol_errors: u32 = "dot3StatsSymbolErrors",
    }
}

record! {
    /// Token ring counters (RFC 1748).
    TokenRingCounters {
        line_errors: u32 = "dot5StatsLineErrors",
        burst_errors: u32 = "dot5StatsBurstErrors",
        ac_errors: u32 = "dot5StatsACErrors",
        abort_errors: u32 = "dot5StatsAbortTransErrors",
        internal_errors: u32 = "dot5StatsInternalErrors",
        lost_frame_errors: u32 = "dot5StatsLostFrameErrors",
        receive_congestions: u32 = "dot5StatsReceiveCongestions",
        frame_copied_errors: u32 = "dot5StatsFrameCopiedErrors",
        token_errors: u32 = "dot5StatsTokenErrors",
        soft_errors: u32 = "dot5StatsSoftErrors",
        hard_errors: u32 = "dot5StatsHardErrors",
        signal_loss: u32 = "dot5StatsSignalLoss",
        transmit_beacons: u32 = "dot5StatsTransmitBeacons",
        recoveries: u32 = "dot5StatsRecoverys",
        lobe_wires: u32 = "dot5StatsLobeWires",
        removes: u32 = "dot5StatsRemoves",
        singles: u32 = "dot5StatsSingles",
        frequency_errors: u32 = "dot5StatsFreqErrors",
    }
}

record! {
    /// 100BaseVG counters (RFC 2020).
    VgCounters {
        in_high_frames: u32 = "dot12InHighPriorityFrames",
        in_high_octets: u64 = "dot12InHighPriorityOctets",
        in_normal_frames: u32 = "dot12InNormPriorityFrames",
        in_normal_octets: u64 = "dot12InNormPriorityOctets",
        in_ipm_errors: u32 = "dot12InIPMErrors",
        in_oversize_errors: u32 = "dot12InOversizeFrameErrors",
        in_data_errors: u32 = "dot12InDataErrors",
        in_null_addressed: u32 = "dot12InNullAddressedFrames",
        out_high_frames: u32 = "dot12OutHighPriorityFrames",
        out_high_octets: u64 = "dot12OutHighPriorityOctets",
        transitions: u32 = "dot12TransitionIntoTrainings",
        hc_in_high_octets: u64 = "dot12HCInHighPriorityOctets",
        hc_in_normal_octets: u64 = "dot12HCInNormPriorityOctets",
        hc_out_high_octets: u64 = "dot12HCOutHighPriorityOctets",
    }
}

record! {
    /// Counters of one VLAN.
    VlanCounters {
        vlan: u32 = "in_vlan",
        octets: u64 = "octets",
        unicast: u32 = "ucastPkts",
        multicast: u32 = "multicastPkts",
        broadcast: u32 = "broadcastPkts",
        discards: u32 = "discards",
    }
}

record! {
    /// IEEE 802.11 counters.
    WirelessCounters {
        transmitted_fragments: u32 = "dot11TransmittedFragmentCount",
        multicast_transmitted: u32 = "dot11MulticastTransmittedFrameCount",
        failed: u32 = "dot11FailedCount",
        retries: u32 = "dot11RetryCount",
        multiple_retries: u32 = "dot11MultipleRetryCount",
        duplicates: u32 = "dot11FrameDuplicateCount",
        rts_success: u32 = "dot11RTSSuccessCount",
        rts_failure: u32 = "dot11RTSFailureCount",
        ack_failure: u32 = "dot11ACKFailureCount",
        received_fragments: u32 = "dot11ReceivedFragmentCount",
        multicast_received: u32 = "dot11MulticastReceivedFrameCount",
        fcs_errors: u32 = "dot11FCSErrorCount",
        transmitted: u32 = "dot11TransmittedFrameCount",
        wep_undecryptable: u32 = "dot11WEPUndecryptableCount",
        qos_discarded: u32 = "dot11QoSDiscardedFragmentCount",
        associated_stations: u32 = "dot11AssociatedStationCount",
        cf_polls_received: u32 = "dot11QoSCFPollsReceivedCount",
        cf_polls_unused: u32 = "dot11QoSCFPollsUnusedCount",
        cf_polls_unusable: u32 = "dot11QoSCFPollsUnusableCount",
        cf_polls_lost: u32 = "dot11QoSCFPollsLostCount",
    }
}

/// Link aggregation counters of a port (sFlow LAG structures).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LacpCounters {
    /// Actor and partner of the port.
    pub parties: LacpParties,
    /// Actor's administrative and operational state, then the partner's, as IEEE 802.1AX bits.
    pub port_state: [u8; 4],
    /// Protocol units counted.
    pub units: LacpUnits,
}

record! {
    /// The systems of an aggregation.
    LacpParties {
        actor: MacAddr = "actorSystemID",
        partner: MacAddr = "partnerSystemID",
        /// ifIndex of the aggregator.
        aggregator: u32 = "attachedAggID",
    }
}

record! {
    /// Protocol units of an aggregation.
    LacpUnits {
        lacp_rx: u32 = "LACPDUsRx",
        marker_rx: u32 = "markerPDUsRx",
        marker_response_rx: u32 = "markerResponsePDUsRx",
        unknown_rx: u32 = "unknownRx",
        illegal_rx: u32 = "illegalRx",
        lacp_tx: u32 = "LACPDUsTx",
        marker_tx: u32 = "markerPDUsTx",
        marker_response_tx: u32 = "markerResponsePDUsTx",
    }
}

const LACP_STATES: [&str; 4] =
    ["actorAdminPortState", "actorOperPortState", "partnerAdminPortState", "partnerOperPortState"];

impl<'a> Record<'a> for LacpCounters {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(LacpCounters {
            parties: LacpParties::decode(r)?,
            port_state: r.u32("portState")?.to_be_bytes(),
            units: LacpUnits::decode(r)?,
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        self.parties.encode(w);
        w.u32(u32::from_be_bytes(self.port_state));
        self.units.encode(w);
    }
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
        self.parties.visit(prefix, v);
        for (name, state) in LACP_STATES.iter().zip(self.port_state) {
            v.numbered(format_args!("{name}"), Value::U32(state.into()));
        }
        self.units.visit(prefix, v);
    }
}

record! {
    /// The module of [`SfpCounters`].
    SfpModule {
        id: u32 = "sfp_module_id",
        lanes: u32 = "sfp_module_total_lanes",
        /// Millivolts.
        supply_voltage: u32 = "sfp_module_supply_voltage",
        /// Thousandths of a degree Celsius, signed.
        temperature: u32 = "sfp_module_temperature",
    }
}

/// Optical module (sFlow optical interface structures).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SfpCounters {
    /// The module.
    pub module: SfpModule,
    /// Its active lanes: index, bias current (µA), transmit power now, least and most (µW),
    /// transmit wavelength (nm), and the last four again for reception.
    pub lanes: Vec<[u32; 10]>,
}

const SFP_LANE: [&str; 10] = [
    "index",
    "tx_bias_current_uA",
    "tx_power_uW",
    "tx_power_min_uW",
    "tx_power_max_uW",
    "tx_wavelength_nM",
    "rx_power_uW",
    "rx_power_min_uW",
    "rx_power_max_uW",
    "rx_wavelength_nM",
];

impl<'a> Record<'a> for SfpCounters {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let module = SfpModule::decode(r)?;
        let count = r.count(40, "sfp lanes")?;
        let mut lanes = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let mut lane = [0; 10];
            for (word, name) in lane.iter_mut().zip(SFP_LANE) {
                *word = r.u32(name)?;
            }
            lanes.push(lane);
        }
        Ok(SfpCounters { module, lanes })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        self.module.encode(w);
        w.u32(self.lanes.len() as u32);
        for word in self.lanes.iter().flatten() {
            w.u32(*word);
        }
    }
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
        self.module.visit(prefix, v);
        v.field(name!("sfp_module_active_lanes"), Value::U32(self.lanes.len() as u32));
        if v.structured() {
            v.open_list("sfp_lanes");
            for lane in &self.lanes {
                v.open_object();
                for (name, word) in SFP_LANE.iter().zip(lane) {
                    v.numbered(format_args!("{name}"), Value::U32(*word));
                }
                v.close_object();
            }
            v.close_list();
        } else {
            for (i, lane) in self.lanes.iter().enumerate() {
                for (name, word) in SFP_LANE.iter().zip(lane) {
                    v.numbered(format_args!("sfp_lane_{name}.{i}"), Value::U32(*word));
                }
            }
        }
    }
}

record! {
    /// Priority flow control counters.
    PfcCounters {
        requests: u32 = "pfc_requests",
        indications: u32 = "pfc_indications",
        pause_duration: u32 = "pfc_pause_duration",
        storm_detected: u32 = "pfc_storm_detected",
        storm_restored: u32 = "pfc_storm_restored",
    }
}

record! {
    /// Processor and memory of a switch.
    ProcessorCounters {
        cpu_5s: Percent = "5s_cpu",
        cpu_1m: Percent = "1m_cpu",
        cpu_5m: Percent = "5m_cpu",
        /// Bytes.
        total_memory: u64 = "total_memory_bytes",
        /// Bytes.
        free_memory: u64 = "free_memory_bytes",
    }
}

record! {
    /// Use of a radio channel, in milliseconds.
    RadioCounters {
        elapsed: u32 = "radio_elapsed_time",
        on_channel: u32 = "radio_on_channel_time",
        on_channel_busy: u32 = "radio_on_channel_busy_time",
    }
}

record! {
    /// The OpenFlow name of a port.
    OpenFlowPort {
        datapath_id: Hex64 = "openflow_datapath_id",
        port: u32 = "openflow_port",
    }
}

record! {
    /// The name of the interface that the sample is about.
    PortName<'a> {
        name: Text<'a> = "ifName",
    }
}

record! {
    /// Open vSwitch datapath counters.
    OvsDatapath {
        hits: u32 = "OVS_dp_hits",
        misses: u32 = "OVS_dp_misses",
        lost: u32 = "OVS_dp_lost",
        mask_hits: u32 = "OVS_dp_mask_hits",
        flows: u32 = "OVS_dp_flows",
        masks: u32 = "OVS_dp_masks",
    }
}
