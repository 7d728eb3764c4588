//! What a tracker counts.

use thalweg_wire::ip::protocol::{ICMP, ICMPV6, TCP, UDP};

use super::events::EndReason;

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident: $text:literal,)*) => {
        /// What happened since the tracker was made.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// All of them with their names.
            pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($text, self.$name)),*].into_iter()
            }

            /// All of them with short names, for machines.
            pub fn keyed(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),*].into_iter()
            }

            /// Adds those of another worker.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }
        }
    };
}

counts! {
    /// Connections that were committed.
    created: "connections committed",
    /// Connections that were silent for too long.
    expired: "connections expired",
    /// Connections that gave their place to others.
    recycled: "connections recycled",
    /// Connections that somebody asked to forget.
    flushed: "connections flushed",
    /// Connections whose addresses and ports were taken by a new one.
    replaced: "connections replaced",
    /// Connections for which there was no room.
    full: "connections refused: table full",
    /// Connections for which their zone had no room.
    zone_full: "connections refused: zone full",
    /// Connections whose translated replies are another one's.
    taken: "connections refused: reply taken",
    /// Packets of no connection, or of one that was not answered.
    new: "packets new",
    /// Packets of answered connections.
    established: "packets established",
    /// ICMP errors about connections.
    related: "packets related",
    /// Packets that are none of these.
    invalid: "packets invalid",
    /// Of these: headers or checksums were wrong.
    invalid_headers: "invalid: headers",
    /// Of these: TCP flags that make no sense together.
    invalid_flags: "invalid: TCP flags",
    /// Of these: no connection, and none may begin so.
    unexpected: "invalid: no connection",
    /// Of these: TCP out of the window.
    out_of_window: "invalid: TCP out of window",
    /// TCP out of the window that passed, since windows are not checked.
    unchecked: "packets past unchecked windows",
    /// Connections for which the kernel had not found memory yet.
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

/// Connections that there are, by protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// TCP.
    pub tcp: u32,
    /// UDP.
    pub udp: u32,
    /// ICMP queries.
    pub icmp: u32,
    /// All others.
    pub other: u32,
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
    pub(super) fn add(&mut self, protocol: u8) {
        *self.of(protocol) += 1;
    }

    #[inline]
    pub(super) fn remove(&mut self, protocol: u8) {
        let count = self.of(protocol);
        *count = count.saturating_sub(1);
    }

    /// All of them.
    pub fn total(&self) -> u32 {
        self.tcp + self.udp + self.icmp + self.other
    }
}
