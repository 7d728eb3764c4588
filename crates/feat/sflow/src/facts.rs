//! What is known of a sampled packet besides its header, and how it lies in the ring.

/// Words that hold a sample's facts.
pub const FACTS: usize = thalweg_tables::lines::WORDS;

/// Why a packet was sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cause {
    /// An interface received it.
    #[default]
    Received,
    /// An interface sends it.
    Sent,
    /// It was dropped.
    Dropped,
    /// It was not: another worker has sampled it and asks, by the number in [`Facts::pool`], what
    /// has become of it.
    Asked,
}

/// Where a packet has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Not known: it is held.
    #[default]
    Unknown,
    /// Out by an interface.
    Out {
        /// The interface.
        tx_if: u32,
        /// The forwarding entry that it was routed by; 0 if it was not routed.
        entry: u32,
        /// Its outermost VLAN tag when it left.
        tag: Option<u16>,
    },
    /// Dropped, for the reason of that number.
    Dropped(u32),
    /// It was for the router itself.
    Delivered,
    /// Another worker has it, and tells of it by that number.
    Elsewhere(u32),
}

/// What is known of a sampled packet besides its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why it was sampled.
    pub cause: Cause,
    /// Interface that it was sampled on.
    pub sw_if: u32,
    /// Which interface of that number: it differs once the number has been given to another.
    pub generation: u32,
    /// One packet in so many was sampled; 0 of dropped ones.
    pub rate: u32,
    /// Bytes of the packet without FCS, all segments counted.
    pub frame_length: u32,
    /// Packets of the interface that this worker has seen, this one included; or a number, see
    /// [`Cause::Asked`].
    pub pool: u64,
    /// Samples of the interface that this worker has lost; of dropped packets, how many it has not
    /// told of.
    pub lost: u32,
    /// Interface that it came in by; 0 if the router made it.
    pub rx_if: u32,
    /// When, in ticks.
    pub at: u64,
    /// The header begins with the IP header: there was no other.
    pub bare: bool,
    /// Where it has gone.
    pub way: Way,
}

const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

const fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

const TAGGED: u64 = 1 << 8;

impl Way {
    /// The first of its two words among the facts.
    pub(crate) const AT: usize = 6;

    #[inline]
    pub(crate) fn words(self) -> [u64; 2] {
        match self {
            Way::Unknown => [0, 0],
            Way::Out { tx_if, entry, tag } => {
                let tag = tag.map_or(0, |tci| TAGGED | u64::from(tci) << 16);
                [1 | tag, pair(tx_if, entry)]
            }
            Way::Dropped(reason) => [2, u64::from(reason)],
            Way::Delivered => [3, 0],
            Way::Elsewhere(number) => [4, u64::from(number)],
        }
    }

    fn from_words(fate: u64, place: u64) -> Way {
        let (low, entry) = halves(place);
        match fate as u8 {
            1 => {
                let tag = (fate & TAGGED != 0).then_some((fate >> 16) as u16);
                Way::Out { tx_if: low, entry, tag }
            }
            2 => Way::Dropped(low),
            3 => Way::Delivered,
            4 => Way::Elsewhere(low),
            _ => Way::Unknown,
        }
    }
}

const BARE: u64 = 1 << 24;

impl Facts {
    #[inline]
    fn words(&self, header: u16) -> [u64; FACTS] {
        let cause = match self.cause {
            Cause::Received => 0,
            Cause::Sent => 1,
            Cause::Dropped => 2u64,
            Cause::Asked => 3,
        };
        let bare = if self.bare { BARE } else { 0 };
        let kind = u64::from(header) | cause << 16 | bare | u64::from(self.lost) << 32;
        let [fate, place] = self.way.words();
        [
            pair(self.sw_if, self.generation),
            pair(self.rate, self.frame_length),
            self.pool,
            self.at,
            kind,
            u64::from(self.rx_if),
            fate,
            place,
        ]
    }

    /// The facts, and how many bytes of header there are.
    pub(crate) fn from_words(words: &[u64; FACTS]) -> (Facts, usize) {
        let (sw_if, generation) = halves(words[0]);
        let (rate, frame_length) = halves(words[1]);
        let kind = words[4];
        let cause = match (kind >> 16) as u8 {
            0 => Cause::Received,
            1 => Cause::Sent,
            2 => Cause::Dropped,
            _ => Cause::Asked,
        };
        let facts = Facts {
            cause,
            sw_if,
            generation,
            rate,
            frame_length,
            pool: words[2],
            lost: (kind >> 32) as u32,
            rx_if: words[5] as u32,
            at: words[3],
            bare: kind & BARE != 0,
            way: Way::from_words(words[Way::AT], words[Way::AT + 1]),
        };
        (facts, usize::from(kind as u16))
    }
}

/// The facts of several samples that have most in common, as they lie in the ring.
#[derive(Clone, Debug)]
pub struct Template {
    words: [u64; FACTS],
    /// Where the header's length goes.
    kind: u64,
}

impl Template {
    /// Of the first of these samples.
    #[inline]
    #[must_use]
    pub fn of(facts: &Facts) -> Template {
        let words = facts.words(0);
        Template { words, kind: words[4] }
    }

    /// What every sample has for itself: the packet's length, and its number among those seen.
    #[inline]
    pub fn set(&mut self, rate: u32, frame_length: u32, pool: u64) {
        (self.words[1], self.words[2]) = (pair(rate, frame_length), pool);
    }

    /// Where a packet came in, and where it goes.
    #[inline]
    pub fn set_way(&mut self, rx_if: u32, way: Way) {
        let [fate, place] = way.words();
        (self.words[5], self.words[6], self.words[7]) = (u64::from(rx_if), fate, place);
    }

    #[inline]
    pub(crate) fn words(&mut self, header: u16) -> &[u64; FACTS] {
        self.words[4] = self.kind | u64::from(header);
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn way() -> impl Strategy<Value = Way> {
        let out = |(tx_if, entry, tag)| Way::Out { tx_if, entry, tag };
        prop_oneof![
            Just(Way::Unknown),
            Just(Way::Delivered),
            any::<u32>().prop_map(Way::Dropped),
            any::<u32>().prop_map(Way::Elsewhere),
            any::<(u32, u32, Option<u16>)>().prop_map(out),
        ]
    }

    proptest! {
        #[test]
        fn words_say_what_was_said(
            numbers: (u32, u32, u32, u32, u64, u32, u32, u64),
            cause in prop::sample::select(
                [Cause::Received, Cause::Sent, Cause::Dropped, Cause::Asked].as_slice()),
            bare: bool,
            header: u16,
            way in way(),
        ) {
            let (sw_if, generation, rate, frame_length, pool, lost, rx_if, at) = numbers;
            let facts = Facts {
                cause, sw_if, generation, rate, frame_length, pool, lost, rx_if, at, bare, way,
            };
            let read = Facts::from_words(&facts.words(header));
            prop_assert_eq!(read, (facts, usize::from(header)));
            // One of several that have the rest in common.
            let first = Facts { frame_length: !frame_length, pool: !pool, rx_if: 0, ..facts };
            let mut template = Template::of(&Facts { way: Way::Unknown, ..first });
            template.set(rate, frame_length, pool);
            template.set_way(rx_if, way);
            let read = Facts::from_words(template.words(header));
            prop_assert_eq!(read, (facts, usize::from(header)));
        }
    }
}
