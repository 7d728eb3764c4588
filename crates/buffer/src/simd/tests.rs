//! Every level compared with the scalar one.

use super::*;
use proptest::prelude::*;

/// Every operation on lanes, once.
struct All<'a> {
    a: &'a [u32; LANES],
    b: &'a [u32; LANES],
    bytes: &'a [[u8; 20]; LANES],
}

type Outcome = (Vec<[u32; LANES]>, [u16; 2]);

impl Kernel for All<'_> {
    type Out = Outcome;
    #[inline(always)]
    fn run<V: Lanes>(self) -> Outcome {
        let (a, b) = (V::load(self.a), V::load(self.b));
        let masks = [a.eq(b), a.lt(b)];
        let at: [*const u8; LANES] = std::array::from_fn(|i| self.bytes[i].as_ptr());
        // SAFETY: 20 bytes are at each address.
        let words = unsafe { V::gather5(&at) };
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
        ];
        let store = |v: V| {
            let mut out = [0; LANES];
            v.store(&mut out);
            out
        };
        (values.into_iter().chain(words).map(store).collect(), masks)
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
        bytes in prop::array::uniform16(prop::array::uniform20(any::<u8>())),
    ) {
        let all = || All { a: &a, b: &b, bytes: &bytes };
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
        prop_assert_eq!(model.0[9][15].to_ne_bytes(), &bytes[15][..4]);
    }
}

#[test]
fn levels_are_named() {
    for level in Level::ALL {
        assert!(!level.name().is_empty());
    }
    assert!(Level::best() >= Level::Scalar);
}
