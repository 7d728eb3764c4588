//! Counters of interfaces: one table, from which all that counts, shows and exports them is made.
//!
//! A row has the counter's name in the code, its unit, and its name in `show interface`. Further
//! clauses say where else the counter appears:
//!
//! | clause | meaning |
//! | --- | --- |
//! | `less r` | the total leaves out what the worker counted as `r` |
//! | `adds n` | packets as they are on the wire: the counter is a part of `n` there |
//! | `segment "n"` | `/if/n` of VPP's statistics segment; packets and bytes of one name are a pair |
//! | `metric F [l = "v"]` | a sample of the Prometheus metric `F` with these labels |
//! | `mib o` | a part of the IF-MIB's object `o`, which sFlow sends |
//!
//! A new counter is one row. The rows' order is that of `show interface` and of the segment.

use super::Counter;

/// Unit of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Packets.
    Packets,
    /// Bytes, from the link header on, without FCS.
    Bytes,
}

/// A counter of interfaces, with its names in what the router exports.
#[derive(Clone, Copy, Debug)]
pub struct IfCounter {
    /// Name, as `show interface` prints it.
    pub label: &'static str,
    /// Unit of the value.
    pub unit: Unit,
    /// Reads the value.
    pub value: fn(&IfTotals) -> u64,
    /// Name below `/if` in VPP's statistics segment.
    pub segment: Option<&'static str>,
    /// Metric with its labels, apart from the interface's name.
    pub metric: Option<(Metric, &'static [(&'static str, &'static str)])>,
}

/// A Prometheus metric that has samples for each interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// Packets by direction.
    Packets,
    /// Bytes by direction.
    Bytes,
    /// Packets to groups by direction and kind of group.
    NonUnicastPackets,
    /// Bytes to groups by direction and kind of group.
    NonUnicastBytes,
    /// Segments of GSO packets by direction.
    GsoPackets,
    /// Bytes of these segments' headers by direction.
    GsoBytes,
    /// Packets by network protocol.
    Protocols,
    /// Dropped packets.
    Drops,
    /// Punted packets.
    Punts,
    /// Lost packets by direction and reason.
    Errors,
}

impl Metric {
    /// Metrics in the order of a scrape.
    pub const ALL: [Metric; 10] = [
        Metric::Packets,
        Metric::Bytes,
        Metric::NonUnicastPackets,
        Metric::NonUnicastBytes,
        Metric::GsoPackets,
        Metric::GsoBytes,
        Metric::Protocols,
        Metric::Drops,
        Metric::Punts,
        Metric::Errors,
    ];

    /// Returns the metric's name and help text.
    pub const fn describe(self) -> (&'static str, &'static str) {
        match self {
            Metric::Packets => ("thalweg_interface_packets", "Packets received and sent"),
            Metric::Bytes => (
                "thalweg_interface_bytes",
                "Bytes received and sent, including the Ethernet header",
            ),
            Metric::NonUnicastPackets => {
                ("thalweg_interface_non_unicast_packets", "Multicast and broadcast packets")
            }
            Metric::NonUnicastBytes => {
                ("thalweg_interface_non_unicast_bytes", "Multicast and broadcast bytes")
            }
            Metric::GsoPackets => (
                "thalweg_interface_gso_packets",
                "Segments of GSO packets on the wire beyond one per packet",
            ),
            Metric::GsoBytes => {
                ("thalweg_interface_gso_bytes", "Header bytes of these segments on the wire")
            }
            Metric::Protocols => {
                ("thalweg_interface_protocol_packets", "Packets received, by network protocol")
            }
            Metric::Drops => ("thalweg_interface_drops", "Received packets dropped"),
            Metric::Punts => {
                ("thalweg_interface_punts", "Received packets punted to the control plane")
            }
            Metric::Errors => (
                "thalweg_interface_errors",
                "Packets lost or found invalid at the device, by reason",
            ),
        }
    }
}

/// Counters of an interface as the IF-MIB defines them (RFC 2863, `ifTable` and `ifXTable`).
#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub struct IfMib {
    /// `ifHCInOctets`.
    pub in_octets: u64,
    /// `ifHCInUcastPkts`.
    pub in_unicast: u64,
    /// `ifHCInMulticastPkts`.
    pub in_multicast: u64,
    /// `ifHCInBroadcastPkts`.
    pub in_broadcast: u64,
    /// `ifInDiscards`: discarded though nothing was wrong with them, for lack of room or by choice.
    pub in_discards: u64,
    /// `ifInErrors`.
    pub in_errors: u64,
    /// `ifHCOutOctets`.
    pub out_octets: u64,
    /// `ifHCOutUcastPkts`.
    pub out_unicast: u64,
    /// `ifHCOutMulticastPkts`.
    pub out_multicast: u64,
    /// `ifHCOutBroadcastPkts`.
    pub out_broadcast: u64,
    /// `ifOutErrors`.
    pub out_errors: u64,
}

/// An [`Option`] of what may stand in a row.
macro_rules! maybe {
    () => {
        None
    };
    ($value:expr) => {
        Some($value)
    };
}

/// Makes the counters, their totals and [`IfCounter::ALL`] of rows that workers count and of rows
/// that are differences of others.
macro_rules! interface_counters {
    ($(
        counted { $(
            $(#[$doc:meta])*
            $name:ident: $unit:ident, $label:literal
                $(, less $refused:ident)?
                $(, adds $whole:ident)?
                $(, segment $segment:literal)?
                $(, metric $metric:ident [$($key:ident = $word:literal),*])?
                $(, mib $object:ident)?;
        )* }
        derived { $(
            $(#[$derived_doc:meta])*
            $derived:ident: $derived_unit:ident = $all:ident $(- $less:ident)+, $derived_label:literal
                $(, segment $derived_segment:literal)?
                $(, mib $derived_object:ident)?;
        )* }
    )*) => {
        thalweg_tables::zeroable! {
            /// Counters of one interface on one worker.
            #[derive(Default, Debug)]
            #[repr(align(64))]
            pub struct IfStats {
                $($(
                    $(#[$doc])* pub $name: Counter,
                )*)*
                $($($(
                    /// The part that the device refused.
                    $refused: Counter,
                )?)*)*
            }
        }

        /// A copy of an interface's counters, summed over workers; not an atomic snapshot.
        #[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
        pub struct IfTotals { $($($(#[$doc])* pub $name: u64,)*)* }

        impl IfTotals {
            /// Adds one worker's counters.
            pub fn add(&mut self, s: &IfStats) {
                $($(
                    // Read before the counter, of which it is a part.
                    $(let $refused = s.$refused.get();)?
                    self.$name += s.$name.get();
                    $(self.$name = self.$name.saturating_sub($refused);)?
                )*)*
            }

            /// Returns the difference to `base`.
            pub fn since(&self, base: &IfTotals) -> IfTotals {
                IfTotals { $($($name: self.$name.wrapping_sub(base.$name),)*)* }
            }

            /// Returns the minimum of each counter.
            #[must_use]
            pub fn least(&self, other: &IfTotals) -> IfTotals {
                IfTotals { $($($name: self.$name.min(other.$name),)*)* }
            }

            /// Returns names, as `show interface` prints them, and values.
            pub fn rows(&self) -> Vec<(&'static str, u64)> {
                vec![$($(($label, self.$name),)*)*]
            }

            /// Returns the counters with GSO packets counted as the segments that are on the wire.
            #[must_use]
            pub fn on_wire(&self) -> IfTotals {
                let mut wire = *self;
                $($($(wire.$whole += self.$name;)?)*)*
                wire
            }

            /// Returns the IF-MIB's counters.
            pub fn mib(&self) -> IfMib {
                let mut mib = IfMib::default();
                $(
                    $($(mib.$object += self.$name;)?)*
                    $($(mib.$derived_object += self.$derived();)?)*
                )*
                mib
            }

            $($(
                $(#[$derived_doc])*
                /// The value is never below zero: the counters are read one after the other.
                pub fn $derived(&self) -> u64 {
                    self.$all$(.saturating_sub(self.$less))+
                }
            )*)*
        }

        impl IfCounter {
            /// All counters.
            pub const ALL: &[IfCounter] = &[$(
                $(IfCounter {
                    label: $label,
                    unit: Unit::$unit,
                    value: |t| t.$name,
                    segment: maybe!($($segment)?),
                    metric: maybe!($((
                        Metric::$metric,
                        &[$((stringify!($key), $word)),*],
                    ))?),
                },)*
                $(IfCounter {
                    label: $derived_label,
                    unit: Unit::$derived_unit,
                    value: IfTotals::$derived,
                    segment: maybe!($($derived_segment)?),
                    metric: None,
                },)*
            )*];
        }
    };
}

interface_counters! {
    counted {
        /// Packets received.
        rx_packets: Packets, "rx packets",
            segment "rx", metric Packets [direction = "rx"];
        /// Bytes received, from the Ethernet header on, without FCS.
        rx_bytes: Bytes, "rx bytes",
            segment "rx", metric Bytes [direction = "rx"], mib in_octets;
        /// Packets sent.
        tx_packets: Packets, "tx packets", less tx_refused,
            segment "tx", metric Packets [direction = "tx"];
        /// Bytes sent.
        tx_bytes: Bytes, "tx bytes", less tx_refused_bytes,
            segment "tx", metric Bytes [direction = "tx"], mib out_octets;
        /// Received packets that were dropped.
        drops: Packets, "drops", segment "drops", metric Drops [], mib in_discards;
        /// Received packets that were punted to the control plane.
        punt: Packets, "punt", segment "punt", metric Punts [];
        /// Received IPv4 packets.
        ip4: Packets, "ip4", segment "ip4", metric Protocols [protocol = "ip4"];
        /// Received IPv6 packets.
        ip6: Packets, "ip6", segment "ip6", metric Protocols [protocol = "ip6"];
        /// Packets lost because there was no buffer.
        rx_no_buf: Packets, "rx-no-buf", segment "rx-no-buf",
            metric Errors [direction = "rx", reason = "rx-no-buf"], mib in_discards;
        /// Packets that the device dropped before the router received them.
        rx_miss: Packets, "rx-miss", segment "rx-miss",
            metric Errors [direction = "rx", reason = "rx-miss"], mib in_discards;
        /// Received packets with errors.
        rx_error: Packets, "rx-error", segment "rx-error",
            metric Errors [direction = "rx", reason = "rx-error"], mib in_errors;
        /// Packets that could not be sent.
        tx_error: Packets, "tx-error", segment "tx-error",
            metric Errors [direction = "tx", reason = "tx-error"], mib out_errors;
        /// Received MPLS packets.
        mpls: Packets, "mpls", segment "mpls", metric Protocols [protocol = "mpls"];
    }
    derived {
        /// Returns the packets received that were sent to neither a group nor all.
        rx_unicast: Packets = rx_packets - rx_multicast - rx_broadcast, "rx unicast",
            segment "rx-unicast", mib in_unicast;
        /// Returns the bytes of these packets.
        rx_unicast_bytes: Bytes = rx_bytes - rx_multicast_bytes - rx_broadcast_bytes,
            "rx unicast bytes", segment "rx-unicast";
    }
    counted {
        /// Received multicast packets.
        rx_multicast: Packets, "rx multicast", segment "rx-multicast",
            metric NonUnicastPackets [direction = "rx", cast = "multicast"], mib in_multicast;
        /// Received broadcast packets.
        rx_broadcast: Packets, "rx broadcast", segment "rx-broadcast",
            metric NonUnicastPackets [direction = "rx", cast = "broadcast"], mib in_broadcast;
    }
    derived {
        /// Returns the packets sent to neither a group nor all.
        tx_unicast: Packets = tx_packets - tx_multicast - tx_broadcast, "tx unicast",
            segment "tx-unicast", mib out_unicast;
        /// Returns the bytes of these packets.
        tx_unicast_bytes: Bytes = tx_bytes - tx_multicast_bytes - tx_broadcast_bytes,
            "tx unicast bytes", segment "tx-unicast";
    }
    counted {
        /// Sent multicast packets.
        tx_multicast: Packets, "tx multicast", segment "tx-multicast",
            metric NonUnicastPackets [direction = "tx", cast = "multicast"], mib out_multicast;
        /// Sent broadcast packets.
        tx_broadcast: Packets, "tx broadcast", segment "tx-broadcast",
            metric NonUnicastPackets [direction = "tx", cast = "broadcast"], mib out_broadcast;
        /// Bytes of received multicast packets.
        rx_multicast_bytes: Bytes, "rx multicast bytes", segment "rx-multicast",
            metric NonUnicastBytes [direction = "rx", cast = "multicast"];
        /// Bytes of received broadcast packets.
        rx_broadcast_bytes: Bytes, "rx broadcast bytes", segment "rx-broadcast",
            metric NonUnicastBytes [direction = "rx", cast = "broadcast"];
        /// Bytes of sent multicast packets.
        tx_multicast_bytes: Bytes, "tx multicast bytes", segment "tx-multicast",
            metric NonUnicastBytes [direction = "tx", cast = "multicast"];
        /// Bytes of sent broadcast packets.
        tx_broadcast_bytes: Bytes, "tx broadcast bytes", segment "tx-broadcast",
            metric NonUnicastBytes [direction = "tx", cast = "broadcast"];
        /// Packets that came as segments of GSO packets, beyond the one that each GSO packet is
        /// counted as.
        rx_gso: Packets, "rx gso packets", adds rx_packets,
            metric GsoPackets [direction = "rx"];
        /// Bytes of the headers that these segments have on the wire.
        rx_gso_bytes: Bytes, "rx gso bytes", adds rx_bytes, metric GsoBytes [direction = "rx"];
        /// Packets sent as segments of GSO packets, likewise.
        tx_gso: Packets, "tx gso packets", adds tx_packets,
            metric GsoPackets [direction = "tx"];
        /// Bytes of the headers that these segments have on the wire.
        tx_gso_bytes: Bytes, "tx gso bytes", adds tx_bytes, metric GsoBytes [direction = "tx"];
    }
    derived {}
}

impl IfStats {
    /// Counts packets as errors that were counted as sent, and that the device did not take.
    pub fn refused(&self, packets: u64, bytes: u64) {
        self.tx_error.add(packets);
        self.tx_refused.add(packets);
        self.tx_refused_bytes.add(bytes);
    }

    /// Counts a received multicast or broadcast packet by its destination address.
    pub fn received_by_group(&self, dst: [u8; 6], bytes: u64) {
        let (packets, all) = match dst == [0xff; 6] {
            true => (&self.rx_broadcast, &self.rx_broadcast_bytes),
            false => (&self.rx_multicast, &self.rx_multicast_bytes),
        };
        packets.add(1);
        all.add(bytes);
    }

    /// Counts a sent multicast or broadcast packet by its destination address.
    pub fn sent_by_group(&self, dst: [u8; 6], bytes: u64) {
        let (packets, all) = match dst == [0xff; 6] {
            true => (&self.tx_broadcast, &self.tx_broadcast_bytes),
            false => (&self.tx_multicast, &self.tx_multicast_bytes),
        };
        packets.add(1);
        all.add(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters of which each has another value.
    fn different() -> IfTotals {
        let stats = IfStats::default();
        stats.rx_packets.add(100);
        stats.rx_bytes.add(9000);
        stats.tx_packets.add(80);
        stats.tx_bytes.add(7000);
        stats.refused(2, 150);
        stats.received_by_group([0xff; 6], 60);
        stats.received_by_group([1; 6], 70);
        stats.sent_by_group([0xff; 6], 64);
        stats.drops.add(3);
        stats.rx_miss.add(5);
        stats.rx_no_buf.add(7);
        stats.rx_gso.add(11);
        stats.rx_gso_bytes.add(594);
        let mut totals = IfTotals::default();
        totals.add(&stats);
        totals
    }

    #[test]
    fn each_counter_is_in_the_table() {
        let totals = different();
        let of = |label| IfCounter::ALL.iter().find(|c| c.label == label).unwrap();
        for (label, value) in totals.rows() {
            assert_eq!((of(label).value)(&totals), value, "{label}");
        }
        let shown = |metric| move |c: &&IfCounter| c.metric.is_some_and(|(of, _)| of == metric);
        for metric in Metric::ALL {
            assert!(IfCounter::ALL.iter().any(|c| shown(metric)(&c)), "{metric:?}");
        }
    }

    #[test]
    fn names_of_the_segment_are_pairs_or_single() {
        for (i, counter) in IfCounter::ALL.iter().enumerate() {
            let same = |c: &&IfCounter| c.segment == counter.segment;
            let units: Vec<Unit> = IfCounter::ALL.iter().filter(same).map(|c| c.unit).collect();
            let fine = counter.segment.is_none()
                || matches!(units[..], [Unit::Packets] | [Unit::Packets, Unit::Bytes]);
            assert!(fine, "row {i}: {counter:?}: {units:?}");
        }
    }

    #[test]
    fn the_mib_has_unicast_and_discards() {
        let mib = different().mib();
        let want = IfMib {
            in_octets: 9000,
            in_unicast: 98,
            in_multicast: 1,
            in_broadcast: 1,
            in_discards: 15,
            out_octets: 6850,
            out_unicast: 77,
            out_broadcast: 1,
            out_errors: 2,
            ..IfMib::default()
        };
        assert_eq!(mib, want);
        let wire = different().on_wire().mib();
        assert_eq!((wire.in_octets, wire.in_unicast), (9594, 109));
    }

    #[test]
    fn counters_read_out_of_order_are_not_negative() {
        let totals = IfTotals { rx_packets: 1, rx_multicast: 2, ..IfTotals::default() };
        assert_eq!((totals.rx_unicast(), totals.tx_unicast_bytes()), (0, 0));
    }
}
