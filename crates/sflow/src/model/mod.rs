//! Parts of a datagram: identifiers, interfaces, records.

mod app;
mod counters;
mod flows;
mod host;
mod paths;
mod reason;
mod registry;
mod services;
mod vendor;

use std::fmt;

pub use app::*;
pub use counters::*;
pub use flows::*;
pub use host::*;
pub use reason::DiscardReason;
pub use registry::*;
pub use vendor::*;

/// The UDP port that IANA assigned to sFlow.
pub const SFLOW_PORT: u16 = 6343;

/// The type of a sample or record: enterprise in the upper 20 bits, format in the lower 12.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tag(pub u32);

impl Tag {
    /// A flow sample in the compact form.
    pub const FLOW_SAMPLE: Tag = Tag(1);
    /// A counter sample in the compact form.
    pub const COUNTER_SAMPLE: Tag = Tag(2);
    /// A flow sample in the expanded form.
    pub const FLOW_SAMPLE_EXPANDED: Tag = Tag(3);
    /// A counter sample in the expanded form.
    pub const COUNTER_SAMPLE_EXPANDED: Tag = Tag(4);
    /// A discarded packet.
    pub const DISCARDED_PACKET: Tag = Tag(5);
    /// Named values of a data source, as hsflowd relays them from programs.
    pub const NAMED_METRICS: Tag = Tag::new(4300, 1002);
    /// A sampled event with named values, as hsflowd relays it from programs.
    pub const NAMED_FLOW: Tag = Tag::new(4300, 1003);

    /// Puts a tag together. Bits that do not fit are cut off.
    #[must_use]
    pub const fn new(enterprise: u32, format: u32) -> Self {
        Tag(enterprise << 12 | format & 0xfff)
    }

    /// Returns the enterprise number of the format; 0 is sFlow.org.
    #[must_use]
    pub const fn enterprise(self) -> u32 {
        self.0 >> 12
    }

    /// The format within the enterprise.
    #[must_use]
    pub const fn format(self) -> u32 {
        self.0 & 0xfff
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.enterprise(), self.format())
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({self})")
    }
}

/// Source of samples: something of a class, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DataSource {
    /// 0 interface, 1 VLAN, 2 physical entity, 3 logical entity.
    pub class: u32,
    /// ifIndex, VLAN id or entity index.
    pub index: u32,
}

impl DataSource {
    /// The host as a whole, as hsflowd numbers it.
    pub const HOST: DataSource = DataSource { class: 2, index: 1 };
    /// No source in particular; discarded packets carry it.
    pub const NONE: DataSource = DataSource { class: 0, index: 0 };

    /// An interface by ifIndex.
    #[must_use]
    pub const fn interface(index: u32) -> Self {
        DataSource { class: 0, index }
    }

    /// Takes the compact form apart: class in the upper eight bits.
    #[must_use]
    pub const fn from_compact(word: u32) -> Self {
        DataSource { class: word >> 24, index: word & 0x00ff_ffff }
    }
}

impl fmt::Display for DataSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.class, self.index)
    }
}

/// Input or output of a sampled packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interface {
    /// An ifIndex; see [`Interface::UNKNOWN`] and [`Interface::INTERNAL`].
    Index(u32),
    /// The packet was discarded, for this reason.
    Discarded(u32),
    /// The packet went to this many interfaces; 0 is an unknown number above one.
    Multiple(u32),
    /// A format that sFlow v5 does not define.
    Other {
        /// The format found.
        format: u32,
        /// Its value.
        value: u32,
    },
}

impl Interface {
    /// The unknown interface.
    pub const UNKNOWN: Interface = Interface::Index(0);
    /// The packet came from or went to the host itself.
    pub const INTERNAL: Interface = Interface::Index(0x3fff_ffff);

    /// Converts from the expanded form.
    #[must_use]
    pub const fn from_parts(format: u32, value: u32) -> Self {
        match format {
            0 => Interface::Index(value),
            1 => Interface::Discarded(value),
            2 => Interface::Multiple(value),
            _ => Interface::Other { format, value },
        }
    }

    /// Converts from the compact form: format in the upper two bits.
    #[must_use]
    pub const fn from_compact(word: u32) -> Self {
        Self::from_parts(word >> 30, word & 0x3fff_ffff)
    }

    /// The expanded form, format and value.
    #[must_use]
    pub const fn parts(self) -> (u32, u32) {
        match self {
            Interface::Index(value) => (0, value),
            Interface::Discarded(value) => (1, value),
            Interface::Multiple(value) => (2, value),
            Interface::Other { format, value } => (format, value),
        }
    }
}

/// Writes the same as sflowtool: a plain index, or what the format means and its value.
impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Interface::Index(value) => write!(f, "{value}"),
            Interface::Discarded(value) => write!(f, "dropCode {value}"),
            Interface::Multiple(value) => write!(f, "multiple {value}"),
            Interface::Other { format, value } => write!(f, "format=={format} {value}"),
        }
    }
}

/// A 32-bit counter that a device does not keep is sent as all ones; neither a value nor a delta
/// may be made of it.
#[must_use]
pub fn supported(counter: u32) -> Option<u32> {
    (counter != u32::MAX).then_some(counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_forms_are_taken_apart() {
        assert_eq!(DataSource::from_compact(0x0200_03e8), DataSource { class: 2, index: 1000 });
        assert_eq!(Interface::from_compact(0x4000_0101), Interface::Discarded(257));
        assert_eq!(Interface::from_compact(0x8000_0003), Interface::Multiple(3));
        assert_eq!(Interface::from_compact(0x3fff_ffff), Interface::INTERNAL);
        assert_eq!(Interface::from_compact(0xc000_0001).to_string(), "format==3 1");
        assert_eq!(Tag::new(4413, 3).to_string(), "4413:3");
    }
}
