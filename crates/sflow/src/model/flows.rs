//! Flow records: what is known about one sampled packet.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::header::{HeaderProtocol, SampledHeader};
use crate::value::{Address, Record, Text, Value, Visitor, name, record, records};
use crate::xdr::{DecodeError, Reader, Writer};
use thalweg_wire::ethernet::MacAddr;

pub use super::paths::{
    AsPathSegment, ExtendedGateway, ExtendedMpls, ExtendedUrl, ExtendedUser, VlanTunnel,
};
use super::registry::{
    BroadcomQueue, FibreChannel, HttpTransaction, InfiniBandGlobal, InfiniBandLocal,
    InfiniBandTransport, NavigationTiming, NfsTransaction, OpenFlowEntry, ProxyRequest, QueueMet,
    ScsiTransaction, Transaction, VlanTags,
};

pub use super::services::{
    AppActorInitiator, AppActorTarget, AppContext, AppOperation, HttpRequest, HttpRequest2,
    MemcacheOperation,
};

records! {
    /// A record of a flow sample or of a discarded packet.
    FlowRecord<'a> {
        /// The first bytes of the packet.
        RawHeader(RawHeader<'a>) = 0:1;
        /// Ethernet fields of the packet.
        Ethernet(SampledEthernet) = 0:2;
        /// IPv4 fields of the packet.
        Ipv4(SampledIpv4) = 0:3;
        /// IPv6 fields of the packet.
        Ipv6(SampledIpv6) = 0:4;
        /// VLANs before and after.
        Switch(ExtendedSwitch) = 0:1001;
        /// Next hop and prefix lengths.
        Router(ExtendedRouter) = 0:1002;
        /// BGP attributes.
        Gateway(ExtendedGateway) = 0:1003;
        /// Users at both ends.
        User(ExtendedUser<'a>) = 0:1004;
        /// URL.
        Url(ExtendedUrl<'a>) = 0:1005;
        /// MPLS label stacks before and after.
        Mpls(ExtendedMpls) = 0:1006;
        /// Translated addresses.
        Nat(ExtendedNat) = 0:1007;
        /// MPLS tunnel.
        MplsTunnel(MplsTunnel<'a>) = 0:1008;
        /// MPLS virtual circuit.
        MplsVc(MplsVc<'a>) = 0:1009;
        /// MPLS FTN.
        MplsFtn(MplsFtn<'a>) = 0:1010;
        /// MPLS LDP FEC.
        MplsLdpFec(MplsLdpFec) = 0:1011;
        /// VLAN tags that were stripped.
        VlanTunnel(VlanTunnel) = 0:1012;
        /// Unencrypted wireless payload.
        WirelessPayload(WirelessPayload<'a>) = 0:1013;
        /// Wireless reception.
        WirelessRx(WirelessRx<'a>) = 0:1014;
        /// Wireless transmission.
        WirelessTx(WirelessTx<'a>) = 0:1015;
        /// OpenFlow entry.
        OpenFlowEntry(OpenFlowEntry) = 0:1017;
        /// Fibre Channel route.
        FibreChannel(FibreChannel) = 0:1018;
        /// Queue length met.
        QueueMet(QueueMet) = 0:1019;
        /// Translated ports.
        NatPort(ExtendedNatPort) = 0:1020;
        /// Outer Ethernet header added on output.
        L2TunnelEgress(SampledEthernet) = 0:1021, "tunnel_l2_out_";
        /// Outer Ethernet header removed on input.
        L2TunnelIngress(SampledEthernet) = 0:1022, "tunnel_l2_in_";
        /// Outer IPv4 header added on output.
        Ipv4TunnelEgress(SampledIpv4) = 0:1023, "tunnel_ipv4_out_";
        /// Outer IPv4 header removed on input.
        Ipv4TunnelIngress(SampledIpv4) = 0:1024, "tunnel_ipv4_in_";
        /// Outer IPv6 header added on output.
        Ipv6TunnelEgress(SampledIpv6) = 0:1025, "tunnel_ipv6_out_";
        /// Outer IPv6 header removed on input.
        Ipv6TunnelIngress(SampledIpv6) = 0:1026, "tunnel_ipv6_in_";
        /// The packet was decapsulated on output.
        DecapsulateEgress(Decapsulate) = 0:1027, "out_";
        /// The packet was decapsulated on input.
        DecapsulateIngress(Decapsulate) = 0:1028, "in_";
        /// Virtual network on output.
        VniEgress(Vni) = 0:1029, "out_";
        /// Virtual network on input.
        VniIngress(Vni) = 0:1030, "in_";
        /// InfiniBand local routing.
        InfiniBandLocal(InfiniBandLocal) = 0:1031;
        /// InfiniBand global routing.
        InfiniBandGlobal(InfiniBandGlobal) = 0:1032;
        /// InfiniBand transport.
        InfiniBandTransport(InfiniBandTransport) = 0:1033;
        /// VLAN tags on input.
        VlanIn(VlanTags) = 0:1034, "in_";
        /// VLAN tags on output.
        VlanOut(VlanTags) = 0:1035, "out_";
        /// Egress queue.
        EgressQueue(EgressQueue) = 0:1036;
        /// Access list that decided.
        Acl(Acl<'a>) = 0:1037;
        /// Function that dropped the packet.
        Function(Function<'a>) = 0:1038;
        /// Time spent in the device.
        TransitDelay(TransitDelay) = 0:1039;
        /// Queue depth met.
        QueueDepth(QueueDepth) = 0:1040;
        /// Trap that caught the packet.
        HardwareTrap(HardwareTrap<'a>) = 0:1041;
        /// Drop reason of the Linux kernel.
        LinuxReason(LinuxReason<'a>) = 0:1042;
        /// Time of the sample.
        Timestamp(Timestamp) = 0:1043;
        /// Transaction.
        Transaction(Transaction) = 0:2000;
        /// NFS operation.
        NfsTransaction(NfsTransaction<'a>) = 0:2001;
        /// SCSI operation.
        ScsiTransaction(ScsiTransaction) = 0:2002;
        /// Web transaction.
        HttpTransaction(HttpTransaction<'a>) = 0:2003;
        /// IPv4 socket.
        Socket4(Socket4) = 0:2100;
        /// IPv6 socket.
        Socket6(Socket6) = 0:2101;
        /// IPv4 socket on the far side of a proxy.
        ProxySocket4(Socket4) = 0:2102, "proxy_";
        /// IPv6 socket on the far side of a proxy.
        ProxySocket6(Socket6) = 0:2103, "proxy_";
        /// Memcache operation.
        Memcache(MemcacheOperation<'a>) = 0:2200;
        /// HTTP request, first form.
        Http(HttpRequest<'a>) = 0:2201;
        /// Application operation.
        AppOperation(AppOperation<'a>) = 0:2202;
        /// Server side of the operation.
        AppContext(AppContext<'a>) = 0:2203;
        /// The actor that asked.
        AppInitiator(AppActorInitiator<'a>) = 0:2204;
        /// The actor that was asked.
        AppTarget(AppActorTarget<'a>) = 0:2205;
        /// HTTP request.
        Http2(HttpRequest2<'a>) = 0:2206;
        /// Request of a proxy.
        ProxyRequest(ProxyRequest<'a>) = 0:2207;
        /// Page load in a browser.
        NavigationTiming(NavigationTiming) = 0:2208;
        /// State of the TCP connection.
        TcpInfo(TcpInfo) = 0:2209;
        /// Data sources at both ends.
        Entities(Entities) = 0:2210;
        /// Egress queue of a Broadcom chip.
        BroadcomQueue(BroadcomQueue) = 4413:1;
    }
}

/// The first bytes of a sampled packet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawHeader<'a> {
    /// Protocol that the bytes begin with.
    pub protocol: HeaderProtocol,
    /// Length of the packet on the wire, with what was stripped.
    pub frame_length: u32,
    /// Bytes that were removed before sampling, such as the 4 of the frame check sequence.
    pub stripped: u32,
    /// The bytes.
    pub header: &'a [u8],
}

impl<'a> Record<'a> for RawHeader<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(RawHeader {
            protocol: HeaderProtocol(r.u32("headerProtocol")?),
            frame_length: r.u32("frame length")?,
            stripped: r.u32("stripped")?,
            header: r.opaque("sampled header")?,
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.protocol.0);
        w.u32(self.frame_length);
        w.u32(self.stripped);
        w.opaque(self.header);
    }
    fn visit<V: Visitor>(&self, _prefix: &str, v: &mut V) {
        v.field(name!("flowSampleType"), Value::Str("HEADER"));
        v.field(name!("headerProtocol"), Value::U32(self.protocol.0));
        v.field(name!("sampledPacketSize"), Value::U32(self.frame_length));
        v.field(name!("strippedBytes"), Value::U32(self.stripped));
        v.field(name!("headerLen"), Value::U32(self.header.len() as u32));
        v.field(name!("headerBytes"), Value::Bytes(self.header));
        SampledHeader::parse(self.protocol, self.header).visit(self, v);
    }
}

/// Ethernet fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SampledEthernet {
    /// Length of the frame.
    pub length: u32,
    /// Source.
    pub source: MacAddr,
    /// Destination.
    pub destination: MacAddr,
    /// EtherType.
    pub ether_type: u32,
}

impl<'a> Record<'a> for SampledEthernet {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(SampledEthernet {
            length: r.u32("ethernet_len")?,
            source: MacAddr(r.mac("ethernet_src")?),
            destination: MacAddr(r.mac("ethernet_dst")?),
            ether_type: r.u32("ethernet_type")?,
        })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.length);
        w.padded(&self.source.0);
        w.padded(&self.destination.0);
        w.u32(self.ether_type);
    }
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
        v.field(name!("flowSampleType"), Value::Joined(prefix, "ETHERNET"));
        v.prefixed(prefix, name!("ethernet_type"), Value::U32(self.ether_type));
        v.prefixed(prefix, name!("ethernet_len"), Value::U32(self.length));
        v.prefixed(prefix, name!("ethernet_src"), Value::Mac(self.source.0));
        v.prefixed(prefix, name!("ethernet_dst"), Value::Mac(self.destination.0));
    }
}

/// Defines the IPv4 and IPv6 forms of the decoded packet, which differ in address and last word.
macro_rules! sampled_ip {
    (
        $(#[$meta:meta])* $name:ident, $address:ty, $unspecified:expr, $read:ident, $kind:literal,
        $src:literal, $dst:literal, $last:ident: $last_name:literal, $last_doc:literal
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name {
            /// Length of the packet.
            pub length: u32,
            /// IP protocol.
            pub protocol: u32,
            /// Source.
            pub source: $address,
            /// Destination.
            pub destination: $address,
            /// TCP or UDP source port.
            pub source_port: u32,
            /// TCP or UDP destination port; ICMP type from some agents.
            pub destination_port: u32,
            /// TCP flags.
            pub tcp_flags: u32,
            #[doc = $last_doc]
            pub $last: u32,
        }

        impl Default for $name {
            fn default() -> Self {
                $name {
                    length: 0,
                    protocol: 0,
                    source: $unspecified,
                    destination: $unspecified,
                    source_port: 0,
                    destination_port: 0,
                    tcp_flags: 0,
                    $last: 0,
                }
            }
        }

        impl<'a> Record<'a> for $name {
            fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
                Ok($name {
                    length: r.u32("packet length")?,
                    protocol: r.u32("IP protocol")?,
                    source: r.$read($src)?,
                    destination: r.$read($dst)?,
                    source_port: r.u32("source port")?,
                    destination_port: r.u32("destination port")?,
                    tcp_flags: r.u32("TCP flags")?,
                    $last: r.u32($last_name)?,
                })
            }
            fn encode(&self, w: &mut Writer<'_>) {
                w.u32(self.length);
                w.u32(self.protocol);
                w.padded(&self.source.octets());
                w.padded(&self.destination.octets());
                w.u32(self.source_port);
                w.u32(self.destination_port);
                w.u32(self.tcp_flags);
                w.u32(self.$last);
            }
            fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
                v.field(name!("flowSampleType"), Value::Joined(prefix, $kind));
                v.prefixed(prefix, name!("sampledPacketSize"), Value::U32(self.length));
                v.prefixed(prefix, name!("IPSize"), Value::U32(self.length));
                v.prefixed(prefix, name!($src), Value::Address(Some(self.source.into())));
                v.prefixed(prefix, name!($dst), Value::Address(Some(self.destination.into())));
                v.prefixed(prefix, name!("IPProtocol"), Value::U32(self.protocol));
                v.prefixed(prefix, name!($last_name), Value::U32(self.$last));
                let ports = (self.source_port, self.destination_port);
                visit_ports(prefix, self.protocol, ports, self.tcp_flags, v);
            }
        }
    };
}

fn visit_ports<V: Visitor>(prefix: &str, protocol: u32, ports: (u32, u32), flags: u32, v: &mut V) {
    match protocol {
        1 => v.prefixed(prefix, name!("ICMPType"), Value::U32(ports.1)),
        6 => {
            v.prefixed(prefix, name!("TCPSrcPort"), Value::U32(ports.0));
            v.prefixed(prefix, name!("TCPDstPort"), Value::U32(ports.1));
            v.prefixed(prefix, name!("TCPFlags"), Value::U32(flags));
        }
        17 => {
            v.prefixed(prefix, name!("UDPSrcPort"), Value::U32(ports.0));
            v.prefixed(prefix, name!("UDPDstPort"), Value::U32(ports.1));
        }
        _ => {}
    }
}

sampled_ip! {
    /// IPv4 fields.
    SampledIpv4, Ipv4Addr, Ipv4Addr::UNSPECIFIED, ipv4, "IPV4", "srcIP", "dstIP",
    tos: "IPTOS", "Type of service."
}
sampled_ip! {
    /// IPv6 fields.
    SampledIpv6, Ipv6Addr, Ipv6Addr::UNSPECIFIED, ipv6, "IPV6", "srcIP6", "dstIP6",
    priority: "priority", "Traffic class."
}

record! {
    /// VLANs and priorities before and after switching.
    ExtendedSwitch, "extendedType" => "SWITCH" {
        source_vlan: u32 = "in_vlan",
        source_priority: u32 = "in_priority",
        destination_vlan: u32 = "out_vlan",
        destination_priority: u32 = "out_priority",
    }
}

record! {
    /// Way in which the packet was routed.
    ExtendedRouter, "extendedType" => "ROUTER" {
        next_hop: Address = "nextHop",
        /// Prefix length of the route back to the source.
        source_mask: u32 = "srcSubnetMask",
        /// Prefix length of the route taken.
        destination_mask: u32 = "dstSubnetMask",
    }
}

record! {
    /// Addresses after translation.
    ExtendedNat, "extendedType" => "NAT" {
        source: Address = "nat_src",
        destination: Address = "nat_dst",
    }
}

record! {
    /// Ports after translation.
    ExtendedNatPort, "extendedType" => "NAT PORT" {
        source: u32 = "nat_src_port",
        destination: u32 = "nat_dst_port",
    }
}

record! {
    /// MPLS tunnel.
    MplsTunnel<'a> {
        name: Text<'a> = "mpls_tunnel_lsp_name",
        id: u32 = "mpls_tunnel_id",
        cos: u32 = "mpls_tunnel_cos",
    }
}

record! {
    /// MPLS virtual circuit.
    MplsVc<'a> {
        name: Text<'a> = "mpls_vc_name",
        id: u32 = "mpls_vll_vc_id",
        cos: u32 = "mpls_vc_cos",
    }
}

record! {
    /// MPLS FEC to next hop.
    MplsFtn<'a> {
        description: Text<'a> = "mpls_ftn_descr",
        mask: u32 = "mpls_ftn_mask",
    }
}

record! {
    /// MPLS LDP forwarding equivalence class.
    MplsLdpFec {
        prefix_length: u32 = "mpls_fec_addr_prefix_len",
    }
}

/// Unencrypted payload of a wireless frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WirelessPayload<'a> {
    /// OUI and suite type.
    pub cipher_suite: u32,
    /// The payload.
    pub payload: RawHeader<'a>,
}

impl<'a> Record<'a> for WirelessPayload<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        Ok(WirelessPayload { cipher_suite: r.u32("cipher_suite")?, payload: RawHeader::decode(r)? })
    }
    fn encode(&self, w: &mut Writer<'_>) {
        w.u32(self.cipher_suite);
        self.payload.encode(w);
    }
    fn visit<V: Visitor>(&self, prefix: &str, v: &mut V) {
        v.field(name!("cipher_suite"), Value::U32(self.cipher_suite));
        self.payload.visit(prefix, v);
    }
}

record! {
    /// Wireless reception.
    WirelessRx<'a> {
        ssid: Text<'a> = "rx_SSID",
        bssid: MacAddr = "rx_BSSID",
        version: u32 = "rx_version",
        channel: u32 = "rx_channel",
        /// Bits per second.
        speed: u64 = "rx_speed",
        rsni: u32 = "rx_rsni",
        rcpi: u32 = "rx_rcpi",
        /// Microseconds.
        duration: u32 = "rx_packet_uS",
    }
}

record! {
    /// Wireless transmission.
    WirelessTx<'a> {
        ssid: Text<'a> = "tx_SSID",
        bssid: MacAddr = "tx_BSSID",
        version: u32 = "tx_version",
        transmissions: u32 = "tx_transmissions",
        /// Microseconds.
        duration: u32 = "tx_packet_uS",
        /// Microseconds.
        retransmit_duration: u32 = "tx_retrans_uS",
        channel: u32 = "tx_channel",
        /// Bits per second.
        speed: u64 = "tx_speed",
        /// Milliwatts.
        power: u32 = "tx_power_mW",
    }
}

record! {
    /// Start of a decapsulated packet's inner header in the sampled header.
    Decapsulate, "extendedType" => "decap" {
        inner_offset: u32 = "decap_inner_header_offset",
    }
}

record! {
    /// Virtual network identifier.
    Vni, "extendedType" => "VNI" {
        vni: u32 = "VNI",
    }
}

record! {
    /// The queue that the packet left by.
    EgressQueue, "extendedType" => "egress_queue" {
        id: u32 = "egress_queue_id",
    }
}

record! {
    /// The access list that decided about the packet.
    Acl<'a>, "extendedType" => "acl" {
        number: u32 = "acl_number",
        name: Text<'a> = "acl_name",
        /// 0 unknown, 1 ingress, 2 egress.
        direction: u32 = "acl_direction",
    }
}

record! {
    /// The function that dropped the packet.
    Function<'a>, "extendedType" => "function" {
        symbol: Text<'a> = "symbol",
    }
}

record! {
    /// Time that the packet spent in the device.
    TransitDelay, "extendedType" => "transit_delay" {
        /// Nanoseconds.
        delay: u32 = "transit_delay_nS",
    }
}

record! {
    /// Depth of the queue that the packet met.
    QueueDepth, "extendedType" => "queue_depth" {
        /// Bytes.
        depth: u32 = "queue_depth_bytes",
    }
}

record! {
    /// The trap that caught a discarded packet.
    HardwareTrap<'a>, "extendedType" => "hw_trap" {
        group: Text<'a> = "hw_trap_group",
        name: Text<'a> = "hw_trap_name",
    }
}

record! {
    /// Drop reason of the Linux kernel.
    LinuxReason<'a>, "extendedType" => "linux_reason" {
        reason: Text<'a> = "linux_drop_reason",
    }
}

record! {
    /// Time when the packet was sampled.
    Timestamp, "extendedType" => "timestamp" {
        /// Nanoseconds since 1970, UTC.
        nanoseconds: u64 = "timestamp_nS",
    }
}

/// A bare IPv4 address in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ip4(pub Ipv4Addr);

/// A bare IPv6 address in a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ip6(pub Ipv6Addr);

macro_rules! bare_address {
    ($name:ident, $read:ident, $unspecified:expr) => {
        impl Default for $name {
            fn default() -> Self {
                $name($unspecified)
            }
        }
        impl<'a> crate::value::Field<'a> for $name {
            fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
                r.$read(what).map($name)
            }
            fn put(&self, w: &mut Writer<'_>) {
                w.padded(&self.0.octets());
            }
            fn value(&self) -> Option<Value<'_>> {
                Some(Value::Address(Some(self.0.into())))
            }
        }
    };
}
bare_address!(Ip4, ipv4, Ipv4Addr::UNSPECIFIED);
bare_address!(Ip6, ipv6, Ipv6Addr::UNSPECIFIED);

record! {
    /// An IPv4 socket of the sampled operation.
    Socket4, "extendedType" => "socket4" {
        protocol: u32 = "socket4_ip_protocol",
        local: Ip4 = "socket4_local_ip",
        remote: Ip4 = "socket4_remote_ip",
        local_port: u32 = "socket4_local_port",
        remote_port: u32 = "socket4_remote_port",
    }
}

record! {
    /// An IPv6 socket of the sampled operation.
    Socket6, "extendedType" => "socket6" {
        protocol: u32 = "socket6_ip_protocol",
        local: Ip6 = "socket6_local_ip",
        remote: Ip6 = "socket6_remote_ip",
        local_port: u32 = "socket6_local_port",
        remote_port: u32 = "socket6_remote_port",
    }
}

/// Direction of a packet, seen from the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct PacketDirection(pub u32);

impl<'a> crate::value::Field<'a> for PacketDirection {
    fn get(r: &mut Reader<'a>, what: &'static str) -> Result<Self, DecodeError> {
        r.u32(what).map(PacketDirection)
    }
    fn put(&self, w: &mut Writer<'_>) {
        w.u32(self.0);
    }
    fn value(&self) -> Option<Value<'_>> {
        Some(Value::Str(match self.0 {
            0 => "unknown",
            1 => "received",
            2 => "sent",
            _ => "<bad value>",
        }))
    }
}

record! {
    /// State of the TCP connection that the packet belongs to; times in microseconds.
    TcpInfo {
        direction: PacketDirection = "tcpinfo_direction",
        send_mss: u32 = "tcpinfo_send_mss",
        receive_mss: u32 = "tcpinfo_receive_mss",
        unacked: u32 = "tcpinfo_unacked_pkts",
        lost: u32 = "tcpinfo_lost_pkts",
        retransmitted: u32 = "tcpinfo_retrans_pkts",
        path_mtu: u32 = "tcpinfo_path_mtu",
        rtt: u32 = "tcpinfo_rtt_uS",
        rtt_variance: u32 = "tcpinfo_rtt_uS_var",
        send_window: u32 = "tcpinfo_send_congestion_win",
        reordering: u32 = "tcpinfo_reordering",
        min_rtt: u32 = "tcpinfo_rtt_uS_min",
    }
}

record! {
    /// Data sources of the two ends of the flow.
    Entities, "extendedType" => "entities" {
        source_class: u32 = "entities_src_class",
        source_index: u32 = "entities_src_index",
        destination_class: u32 = "entities_dst_class",
        destination_index: u32 = "entities_dst_index",
    }
}
