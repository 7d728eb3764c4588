//! The books of a trial: where each packet that was intended has ended.

use serde::{Deserialize, Serialize};

/// Packets of a direction, in the order of their way. Each is in exactly one row, but `sent`, which
/// is what was intended without the two rows before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Books {
    /// Due in the trial.
    pub intended: u64,
    /// Packets not sent: the tester was late.
    pub unsent_late: u64,
    /// Packets not sent: the transport had no room.
    pub unsent_no_room: u64,
    /// Lost between tester and device.
    pub link_in: u64,
    /// Dropped by the device's ring or network card on receipt.
    pub device_rx: u64,
    /// Dropped by the device's nodes.
    pub device: u64,
    /// Kept by the device on purpose.
    pub device_kept: u64,
    /// Dropped by the device's ring on sending.
    pub device_tx: u64,
    /// Lost between device and tester.
    pub link_out: u64,
    /// Dropped by the tester's own ring.
    pub tester_rx: u64,
    /// Arrived damaged.
    pub damaged: u64,
    /// Arrived intact.
    pub received: u64,
}

impl Books {
    /// Packets that the transport accepted.
    pub fn sent(&self) -> u64 {
        self.intended.saturating_sub(self.unsent_late).saturating_sub(self.unsent_no_room)
    }

    /// Packets sent that have not arrived intact.
    pub fn lost(&self) -> u64 {
        self.sent().saturating_sub(self.received)
    }

    /// Rows in which packets are lost: key, text, packets.
    pub fn losses(&self) -> [(&'static str, &'static str, u64); 8] {
        [
            ("link_in", "link to the device", self.link_in),
            ("device_rx", "device: receiving ring", self.device_rx),
            ("device", "device: nodes", self.device),
            ("device_kept", "device: kept", self.device_kept),
            ("device_tx", "device: sending ring", self.device_tx),
            ("link_out", "link from the device", self.link_out),
            ("tester_rx", "tester: receiving ring", self.tester_rx),
            ("damaged", "arrived damaged", self.damaged),
        ]
    }

    /// Packets sent that no row explains; less than 0 if some are counted twice.
    pub fn unexplained(&self) -> i64 {
        let losses = self.losses();
        let explained = losses.iter().fold(0u64, |sum, (.., n)| sum.saturating_add(*n));
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        number(self.sent()).saturating_sub(number(self.received)).saturating_sub(number(explained))
    }

    /// All rows with their texts, in the order of the way.
    pub fn rows(&self) -> Vec<(&'static str, i64)> {
        let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let mut rows = vec![
            ("intended", number(self.intended)),
            ("unsent: tester late", number(self.unsent_late)),
            ("unsent: no room", number(self.unsent_no_room)),
            ("sent", number(self.sent())),
        ];
        rows.extend(self.losses().map(|(_, text, packets)| (text, number(packets))));
        rows.push(("received", number(self.received)));
        rows.push(("unexplained", self.unexplained()));
        rows
    }

    /// The sum of two directions or trials.
    #[must_use]
    pub fn plus(&self, other: &Books) -> Books {
        Books {
            intended: self.intended.saturating_add(other.intended),
            unsent_late: self.unsent_late.saturating_add(other.unsent_late),
            unsent_no_room: self.unsent_no_room.saturating_add(other.unsent_no_room),
            link_in: self.link_in.saturating_add(other.link_in),
            device_rx: self.device_rx.saturating_add(other.device_rx),
            device: self.device.saturating_add(other.device),
            device_kept: self.device_kept.saturating_add(other.device_kept),
            device_tx: self.device_tx.saturating_add(other.device_tx),
            link_out: self.link_out.saturating_add(other.link_out),
            tester_rx: self.tester_rx.saturating_add(other.tester_rx),
            damaged: self.damaged.saturating_add(other.damaged),
            received: self.received.saturating_add(other.received),
        }
    }
}
