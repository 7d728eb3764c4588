//! Several sFlow datagrams in what a capture shows as one.
//!
//! A capture sees a large send before the sender's kernel or network card cuts it into datagrams,
//! and arriving datagrams after the receiver's kernel has put them together. Only the datagrams say
//! where one ends: their samples hold their lengths.

use crate::decode::Datagram;

/// The shortest possible: version, type and bytes of an IPv4 address, five words.
const SHORTEST: usize = 28;

/// Splits the first datagram of a payload from the others. Inseparable bytes stay together, so that
/// the decoder finds the fault.
pub(crate) fn split_first(payload: &[u8]) -> (&[u8], &[u8]) {
    let behind = match payload.len() >= 2 * SHORTEST {
        true => Datagram::parse(payload).ok().and_then(|datagram| datagram.behind()),
        false => None,
    };
    let behind = behind.filter(|rest| begins(rest)).unwrap_or_default();
    payload.split_at(payload.len() - behind.len())
}

/// True if a datagram begins here, as far as can be seen.
pub(crate) fn begins(data: &[u8]) -> bool {
    data.len() >= SHORTEST
        && data.starts_with(&[0, 0, 0, 5])
        && Datagram::parse(data).is_ok_and(|datagram| datagram.first_fits())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::{DatagramEncoder, Push};
    use crate::model::{CounterRecord, DataSource, InterfaceCounters};
    use proptest::prelude::*;
    use std::net::IpAddr;

    fn apart(mut payload: &[u8]) -> Vec<&[u8]> {
        let mut all = Vec::new();
        while !payload.is_empty() {
            let (first, rest) = split_first(payload);
            assert!(!first.is_empty());
            all.push(first);
            payload = rest;
        }
        all
    }

    fn datagrams(agent: IpAddr, samples: &[u32]) -> Vec<Vec<u8>> {
        let mut encoder = DatagramEncoder::new(agent, 3, 8000);
        let one = |count: &u32| {
            for n in 0..*count {
                let record = CounterRecord::Interface(InterfaceCounters::default());
                let pushed = encoder.counter_sample(n, DataSource::interface(n), &[record]);
                assert_eq!(pushed, Ok(Push::Added));
            }
            encoder.finish(7).map(<[u8]>::to_vec).expect("it has samples")
        };
        samples.iter().map(one).collect()
    }

    proptest! {
        #[test]
        fn what_was_put_together_is_taken_apart(
            agent: IpAddr,
            samples in prop::collection::vec(1_u32..20, 1..9),
        ) {
            let all = datagrams(agent, &samples);
            let together = all.concat();
            prop_assert_eq!(apart(&together), all.iter().map(Vec::as_slice).collect::<Vec<_>>());
        }

        /// Nothing is lost or made up, whatever the bytes.
        #[test]
        fn pieces_are_the_whole(
            agent: IpAddr,
            at in any::<prop::sample::Index>(),
            bytes in prop::collection::vec(any::<u8>(), 1..50),
        ) {
            let mut together = datagrams(agent, &[2, 1, 3]).concat();
            let at = at.index(together.len());
            for (to, from) in together[at..].iter_mut().zip(&bytes) {
                *to = *from;
            }
            prop_assert_eq!(apart(&together).concat(), together);
            prop_assert_eq!(apart(&bytes).concat(), bytes);
        }
    }

    #[test]
    fn what_is_no_datagram_stays_with_the_one_before() {
        let agent = IpAddr::from([192, 0, 2, 1]);
        let first = datagrams(agent, &[2]).concat();
        for behind in [&b"x"[..], &[0, 0, 0, 5], &[0; 100], &[0, 0, 0, 5, 0, 0, 0, 1, 9]] {
            let bytes = [&first[..], behind].concat();
            assert_eq!(apart(&bytes), [&bytes[..]]);
        }
        // The second is cut: that it begins must be seen.
        let both = datagrams(agent, &[1, 2]).concat();
        let cut = &both[..both.len() - 40];
        assert_eq!(apart(cut).len(), 2);
    }
}
