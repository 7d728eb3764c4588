//! Datagrams that are ready to go.

/// Datagrams, one after the other in one piece of memory, so that a run of equally long ones can be
/// handed to the kernel as it lies there.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// End of each datagram.
    ends: Vec<usize>,
}

/// A batch with this many datagrams or bytes must be sent. Bytes are what one UDP send of many
/// segments can carry, so are the datagrams (Linux has 64 for its limit).
const FULL_DATAGRAMS: usize = 64;
/// See [`FULL_DATAGRAMS`].
const FULL_BYTES: usize = 64_000;

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Batch::default()
    }

    /// Adds a datagram.
    pub fn push(&mut self, datagram: &[u8]) {
        self.bytes.extend_from_slice(datagram);
        self.ends.push(self.bytes.len());
    }

    /// Datagrams in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// True if it is time to send it, given how long the next datagram may be.
    #[must_use]
    pub fn is_full(&self, next: usize) -> bool {
        self.len() >= FULL_DATAGRAMS || self.bytes.len() + next > FULL_BYTES
    }

    /// Forgets the datagrams and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn start(&self, at: usize) -> usize {
        if at == 0 { 0 } else { self.ends[at - 1] }
    }

    /// Datagrams `from` up to `to`, in one piece.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn span(&self, from: usize, to: usize) -> &[u8] {
        &self.bytes[self.start(from)..self.start(to)]
    }

    /// The datagrams.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|at| self.span(at, at + 1))
    }

    /// Returns the number of datagrams from `at` on that the kernel can cut out of one send: all as
    /// long as the first but the last, which may be shorter.
    #[must_use]
    pub fn run(&self, at: usize) -> usize {
        let length = |at: usize| self.span(at, at + 1).len();
        let Some(rest) = (self.len() - at).checked_sub(1) else { return 0 };
        let first = length(at);
        let equal = (1..=rest).take_while(|i| length(at + i) == first).count();
        let shorter = equal < rest && length(at + equal + 1) < first;
        (1 + equal + usize::from(shorter)).min(FULL_DATAGRAMS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn runs_are_what_the_kernel_cuts(lengths in prop::collection::vec(1_usize..4, 0..80)) {
            let mut batch = Batch::new();
            for (i, length) in lengths.iter().enumerate() {
                batch.push(&vec![i as u8; *length]);
            }
            prop_assert_eq!(batch.iter().map(<[u8]>::len).collect::<Vec<_>>(), lengths.clone());
            let mut at = 0;
            while at < batch.len() {
                let run = batch.run(at);
                prop_assert!((1..=64).contains(&run));
                let cut: Vec<_> = batch.span(at, at + run).chunks(lengths[at]).collect();
                prop_assert_eq!(cut, batch.iter().skip(at).take(run).collect::<Vec<_>>());
                at += run;
            }
        }
    }
}
