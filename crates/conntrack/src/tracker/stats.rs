//! Counters of a tracker.

use thalweg_wire::ip::protocol::{ICMP, ICMPV6, TCP, UDP};

use super::events::EndReason;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// Counters since the tracker was created.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// All counters with their names.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name)),*].into_iter()
            }

            /// All counters with short names, for JSON and metric labels.
            pub fn keyed(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds the counters of another worker.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Connections committed.
    created: "connections committed",
    /// Connections that timed out.
    expired: "connections expired",
    /// Connections that made room for others.
    recycled: "connections recycled",
    /// Connections that a user flushed.
    flushed: "connections flushed",
    /// Connections replaced by a new one with the same addresses and ports.
    replaced: "connections replaced",
    /// Connections refused because the table was full.
    full: "connections refused: table full",
    /// Connections refused because their zone was full.
    zone_full: "connections refused: zone full",
    /// Connections refused because another one has the same translated reply tuple.
    taken: "connections refused: reply taken",
    /// Packets without a connection, or of one that is not answered yet.
    new: "packets new",
    /// Packets of answered connections.
    established: "packets established",
    /// ICMP errors about connections.
    related: "packets related",
    /// Packets of no other kind.
    invalid: "packets invalid",
    /// Part of `invalid`: bad header or checksum.
    invalid_headers: "invalid: headers",
    /// Part of `invalid`: bad combination of TCP flags.
    invalid_flags: "invalid: TCP flags",
    /// Part of `invalid`: no connection, and the packet may not open one.
    unexpected: "invalid: no connection",
    /// Part of `invalid`: TCP out of the window.
    out_of_window: "invalid: TCP out of window",
    /// TCP out of the window that was accepted because windows are not checked.
    unchecked: "packets out of window, unchecked",
    /// Connections refused because memory was not ready yet.
    unready: "connections refused: no memory yet",
}

impl Counts {
    #[inline]
    pub(super) fn ended(&mut self, why: EndReason) {
        match why {
            EndReason::Expired => self.expired += 1,
            EndReason::Recycled => self.recycled += 1,
            EndReason::Flushed => self.flushed += 1,
            EndReason::Replaced => self.replaced += 1,
        }
    }
}

/// Number of connections by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// TCP.
    pub tcp: u32,
    /// UDP.
    pub udp: u32,
    /// ICMP queries.
    pub icmp: u32,
    /// Other protocols.
    pub other: u32,
    /// Connections of IPv6, among all of these.
    pub ipv6: u32,
}

impl Live {
    #[inline]
    fn of(&mut self, protocol: u8) -> &mut u32 {
        match protocol {
            TCP => &mut self.tcp,
            UDP => &mut self.udp,
            ICMP | ICMPV6 => &mut self.icmp,
            _ => &mut self.other,
        }
    }

    #[inline]
    pub(super) fn add(&mut self, protocol: u8, is_ipv6: bool) {
        *self.of(protocol) += 1;
        if is_ipv6 {
            self.ipv6 += 1;
        }
    }

    #[inline]
    pub(super) fn remove(&mut self, protocol: u8, is_ipv6: bool) {
        let count = self.of(protocol);
        *count = count.saturating_sub(1);
        if is_ipv6 {
            self.ipv6 = self.ipv6.saturating_sub(1);
        }
    }

    /// Adds the connections of another worker.
    pub fn add_all(&mut self, other: &Live) {
        self.tcp += other.tcp;
        self.udp += other.udp;
        self.icmp += other.icmp;
        self.other += other.other;
        self.ipv6 += other.ipv6;
    }

    /// All connections.
    pub fn total(&self) -> u32 {
        self.tcp + self.udp + self.icmp + self.other
    }
}
