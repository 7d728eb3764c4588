//! Every level compared with the scalar one.

use super::*;
use proptest::prelude::*;

/// Every operation on lanes, once.
struct All<'a> {
    a: &'a [u32; LANES],
    b: &'a [u32; LANES],
    bytes: &'a [[u8; 28]; LANES],
    words: &'a [AtomicU32],
    lines: &'a [Line],
}

type Outcome = (Vec<[u32; LANES]>, [u16; 2]);

impl Kernel for All<'_> {
    type Out = Outcome;
    #[inline(always)]
    fn run<V: Lanes>(self) -> Outcome {
        let (a, b) = (V::load(self.a), V::load(self.b));
        let masks = [a.eq(b), a.lt(b)];
        let at: [*const u8; LANES] = std::array::from_fn(|i| self.bytes[i].as_ptr());
        // SAFETY: 28 bytes are at each address.
        let (words, six, apart) =
            unsafe { (V::gather5::<16>(&at), V::gather6(|i| at[i]), V::gather5::<24>(&at)) };
        let values = [
            a + b,
            a - b,
            a & b,
            a | b,
            a ^ b,
            a.shl::<7>(),
            a.shr::<9>(),
            a.replace(masks[1] ^ 0x5a3c, b),
            V::splat(self.a[3]),
            a * b,
            a.min(b),
            words_of(self.words, a),
            halves_of::<V, 1, false>(self.lines, a),
            halves_of::<V, 7, true>(self.lines, b),
        ];
        let store = |v: V| {
            let mut out = [0; LANES];
            v.store(&mut out);
            out
        };
        (values.into_iter().chain(words).chain(six).chain(apart).map(store).collect(), masks)
    }
}

fn small_or_any() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..4, any::<u32>()]
}

proptest! {
    #[test]
    fn every_level_agrees_with_the_scalar_one(
        a in prop::array::uniform16(small_or_any()),
        b in prop::array::uniform16(small_or_any()),
        bytes in prop::array::uniform16(prop::array::uniform28(any::<u8>())),
        words in prop::collection::vec(any::<u32>(), 0..4),
        lines in prop::collection::vec(any::<[u64; 8]>(), 0..4),
    ) {
        let table: Vec<AtomicU32> = words.iter().map(|w| AtomicU32::new(*w)).collect();
        let entries: Vec<Line> = lines.iter().map(|l| l.map(AtomicU64::new)).collect();
        let all = || All { a: &a, b: &b, bytes: &bytes, words: &table, lines: &entries };
        let model = all().run::<scalar::Words>();
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has it.
                prop_assert_eq!(&unsafe { x86::run_avx2(all()) }, &model);
            }
            if x86::has_avx512() {
                // SAFETY: the processor has it.
                prop_assert_eq!(&unsafe { x86::run_avx512(all()) }, &model);
            }
        }
        prop_assert_eq!(model.0[0][0], a[0].wrapping_add(b[0]));
        let last = |n: u32, len: usize| (n as usize).min(len.saturating_sub(1));
        let word = words.get(last(a[5], words.len())).copied();
        prop_assert_eq!(model.0[11][5], word.unwrap_or(0));
        let line = |n| lines.get(last(n, lines.len())).copied().unwrap_or_default();
        prop_assert_eq!(model.0[12][2], line(a[2])[1] as u32);
        prop_assert_eq!(model.0[13][7], (line(b[7])[7] >> 32) as u32);
        prop_assert_eq!(model.0[14][15].to_le_bytes(), &bytes[15][..4]);
        prop_assert_eq!(&model.0[14..19], &model.0[19..24]);
        prop_assert_eq!(model.0[24][15].to_le_bytes(), &bytes[15][20..24]);
        prop_assert_eq!(&model.0[14..18], &model.0[25..29]);
        prop_assert_eq!(model.0[29][15].to_le_bytes(), &bytes[15][24..]);
    }
}

#[test]
fn levels_are_named() {
    for level in Level::ALL {
        assert!(!level.name().is_empty());
    }
    assert!(Level::best() >= Level::Scalar);
}
