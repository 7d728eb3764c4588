//! Fields: constant, or different from packet to packet.

/// Trigger of a field's next value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Steps {
    /// A step with each packet.
    #[default]
    Packet,
    /// The place of another field of the stream, by its path: both take their n-th values together.
    With(String),
    /// A step each time another field begins again, by its path.
    After(String),
}

/// The values of a field, in the order of packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// Single value.
    One(u128),
    /// Counts from `first` up to at most `last`; or down, if `last` is less.
    Count {
        /// First value.
        first: u128,
        /// Last value.
        last: u128,
        /// Distance between two values, at least 1.
        step: u128,
        /// Value of the first packet, in the place that it has in the count.
        start: u128,
    },
    /// Values one after the other, over and over.
    List(Vec<u128>),
    /// Drawn at random, each equally often.
    Random {
        /// Least value.
        least: u128,
        /// Greatest value.
        most: u128,
        /// Decides the values, together with the seed of the run.
        seed: u64,
        /// Number of different values, which repeat in the same order; `None`: one is drawn for
        /// each packet.
        distinct: Option<u32>,
    },
}

impl Values {
    /// Number of values that are kept as a list.
    pub(super) fn listed(&self) -> usize {
        match self {
            Values::List(list) => list.len(),
            Values::Random { distinct: Some(distinct), .. } => *distinct as usize,
            _ => 0,
        }
    }
}

/// A field of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its values.
    pub values: Values,
    /// Time when the next one comes.
    pub steps: Steps,
}

impl Field {
    /// A constant field.
    pub fn one(value: impl Into<u128>) -> Field {
        Field { values: Values::One(value.into()), steps: Steps::Packet }
    }

    /// A field that counts up from `first` to `last`, or down.
    pub fn count(first: impl Into<u128>, last: impl Into<u128>) -> Field {
        let (first, last) = (first.into(), last.into());
        Field { values: Values::Count { first, last, step: 1, start: first }, steps: Steps::Packet }
    }

    /// A field with values drawn from `least` to `most`.
    pub fn random(least: impl Into<u128>, most: impl Into<u128>, seed: u64) -> Field {
        let (least, most) = (least.into(), most.into());
        let values = Values::Random { least, most, seed, distinct: None };
        Field { values, steps: Steps::Packet }
    }

    /// The same values, with other steps.
    #[must_use]
    pub fn stepping(self, steps: Steps) -> Field {
        Field { steps, ..self }
    }
}

impl Default for Field {
    fn default() -> Field {
        Field::one(0u8)
    }
}

/// Mixes the bits of a number, so that counted numbers become random ones (splitmix64).
#[inline]
pub(super) const fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

/// Draws a number below `count`.
#[inline]
pub(super) const fn below(random: u64, count: u64) -> u64 {
    ((random as u128 * count as u128) >> 64) as u64
}
