//! Lanes in one register of AVX-512, or in two of AVX2.
//!
//! Values of these types are created in [`run_avx512`] and [`run_avx2`] only, which are entered on
//! processors that support the instructions: this makes the intrinsics below sound.
//!
//! An intrinsic is inlined only into code that is compiled for its instructions, so all functions
//! between it and [`run_avx2`] must be `#[inline(always)]`. Closures cannot be, and `array::map` is
//! not: with them, values passed through memory to a call for each operation, and AVX2 took 33
//! clocks a packet in `ip4-input` where plain words take 16.

use super::{Kernel, LANES, Lanes};
use std::arch::x86_64::*;
use std::ops::{Add, BitAnd, BitOr, BitXor, Mul, Sub};

pub(super) fn has_avx512() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("movbe")
}

/// # Safety
/// The processor supports what the attribute names.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,bmi2,movbe")]
pub(super) unsafe fn run_avx512<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Zmm>()
}

/// # Safety
/// The processor supports what the attribute names.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn run_avx2<K: Kernel>(kernel: K) -> K::Out {
    kernel.run::<Ymm>()
}

/// One 512-bit register.
#[derive(Clone, Copy)]
pub(super) struct Zmm(__m512i);

/// Two 256-bit registers: lanes 0 to 7, and 8 to 15.
#[derive(Clone, Copy)]
pub(super) struct Ymm(__m256i, __m256i);

/// Implements an operator by one intrinsic for each register.
macro_rules! operator {
    ($trait:ident, $method:ident, $zmm:ident, $ymm:ident) => {
        impl $trait for Zmm {
            type Output = Zmm;
            #[inline(always)]
            fn $method(self, other: Zmm) -> Zmm {
                // SAFETY: a value of this type exists, so the processor has AVX-512.
                Zmm(unsafe { $zmm(self.0, other.0) })
            }
        }
        impl $trait for Ymm {
            type Output = Ymm;
            #[inline(always)]
            fn $method(self, other: Ymm) -> Ymm {
                // SAFETY: a value of this type exists, so the processor has AVX2.
                unsafe { Ymm($ymm(self.0, other.0), $ymm(self.1, other.1)) }
            }
        }
    };
}

operator!(Add, add, _mm512_add_epi32, _mm256_add_epi32);
operator!(Sub, sub, _mm512_sub_epi32, _mm256_sub_epi32);
operator!(Mul, mul, _mm512_mullo_epi32, _mm256_mullo_epi32);
operator!(BitAnd, bitand, _mm512_and_si512, _mm256_and_si256);
operator!(BitOr, bitor, _mm512_or_si512, _mm256_or_si256);
operator!(BitXor, bitxor, _mm512_xor_si512, _mm256_xor_si256);

impl Lanes for Zmm {
    const WIDE: bool = true;
    #[inline(always)]
    fn splat(word: u32) -> Zmm {
        // SAFETY: this type is named in `run_avx512` only.
        Zmm(unsafe { _mm512_set1_epi32(word as i32) })
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Zmm {
        // SAFETY: as above; 64 bytes are there.
        Zmm(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) })
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        // SAFETY: as above; 64 bytes are there.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), self.0) };
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_slli_epi32::<N>(self.0) })
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_srli_epi32::<N>(self.0) })
    }
    #[inline(always)]
    fn eq(self, other: Zmm) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_cmpeq_epi32_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn lt(self, other: Zmm) -> u16 {
        // SAFETY: as above.
        unsafe { _mm512_cmplt_epu32_mask(self.0, other.0) }
    }
    #[inline(always)]
    fn replace(self, mask: u16, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_mask_mov_epi32(self.0, mask, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Zmm) -> Zmm {
        // SAFETY: as above.
        Zmm(unsafe { _mm512_min_epu32(self.0, other.0) })
    }
    #[inline(always)]
    unsafe fn gather6(at: impl Fn(usize) -> *const u8) -> [Zmm; 6] {
        // SAFETY: as above; by contract 24 bytes are there.
        unsafe {
            let ([a, b, c, d, e, f], [g, h, i, j, k, l]) =
                (gather6_half(&at, 0), gather6_half(&at, 8));
            [both(a, g), both(b, h), both(c, i), both(d, j), both(e, k), both(f, l)]
        }
    }
    #[inline(always)]
    unsafe fn gather(first: *const u32, at: Zmm) -> Zmm {
        // SAFETY: as above; by contract the words are there. Each element is loaded as an aligned
        // word, in order with the loads of other instructions.
        Zmm(unsafe { _mm512_i32gather_epi32::<4>(at.0, first.cast()) })
    }
    #[inline(always)]
    unsafe fn gather5<const FIFTH: usize>(at: &[*const u8; LANES]) -> [Zmm; 5] {
        // SAFETY: as above; by contract the bytes are there. Register k holds packets k, 4 + k, 8
        // + k and 12 + k, so that rotating its 128-bit lanes brings the packets into order.
        unsafe {
            let (a, b, c, d) = (
                every_fourth(at, 0),
                every_fourth(at, 1),
                every_fourth(at, 2),
                every_fourth(at, 3),
            );
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            let (ab_high, cd_high) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            let z = _mm512_castsi128_si512(four_words::<FIFTH>(at, 0));
            let z = _mm512_inserti32x4::<1>(z, four_words::<FIFTH>(at, 4));
            let z = _mm512_inserti32x4::<2>(z, four_words::<FIFTH>(at, 8));
            let fifth = _mm512_inserti32x4::<3>(z, four_words::<FIFTH>(at, 12));
            [
                Zmm(_mm512_unpacklo_epi64(ab, cd)),
                Zmm(_mm512_unpackhi_epi64(ab, cd)),
                Zmm(_mm512_unpacklo_epi64(ab_high, cd_high)),
                Zmm(_mm512_unpackhi_epi64(ab_high, cd_high)),
                Zmm(fifth),
            ]
        }
    }
}

impl Lanes for Ymm {
    const WIDE: bool = true;
    #[inline(always)]
    fn splat(word: u32) -> Ymm {
        // SAFETY: this type is named in `run_avx2` only.
        let v = unsafe { _mm256_set1_epi32(word as i32) };
        Ymm(v, v)
    }
    #[inline(always)]
    fn load(from: &[u32; LANES]) -> Ymm {
        let at = from.as_ptr().cast::<__m256i>();
        // SAFETY: as above; 64 bytes are there.
        unsafe { Ymm(_mm256_loadu_si256(at), _mm256_loadu_si256(at.add(1))) }
    }
    #[inline(always)]
    fn store(self, to: &mut [u32; LANES]) {
        let at = to.as_mut_ptr().cast::<__m256i>();
        // SAFETY: as above; 64 bytes are there.
        unsafe {
            _mm256_storeu_si256(at, self.0);
            _mm256_storeu_si256(at.add(1), self.1);
        }
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Ymm {
        let by = N as i32;
        // SAFETY: as above. The count is a constant once this is compiled.
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            Ymm(_mm256_sll_epi32(self.0, by), _mm256_sll_epi32(self.1, by))
        }
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Ymm {
        let by = N as i32;
        // SAFETY: as above.
        unsafe {
            let by = _mm_cvtsi32_si128(by);
            Ymm(_mm256_srl_epi32(self.0, by), _mm256_srl_epi32(self.1, by))
        }
    }
    #[inline(always)]
    fn eq(self, other: Ymm) -> u16 {
        // SAFETY: as above.
        unsafe { bits(_mm256_cmpeq_epi32(self.0, other.0), _mm256_cmpeq_epi32(self.1, other.1)) }
    }
    #[inline(always)]
    fn lt(self, other: Ymm) -> u16 {
        // SAFETY: as above. The instruction compares signed numbers: turn the top bits over.
        unsafe {
            let top = _mm256_set1_epi32(i32::MIN);
            let (a, b) = (_mm256_xor_si256(self.0, top), _mm256_xor_si256(other.0, top));
            let (c, d) = (_mm256_xor_si256(self.1, top), _mm256_xor_si256(other.1, top));
            bits(_mm256_cmpgt_epi32(b, a), _mm256_cmpgt_epi32(d, c))
        }
    }
    #[inline(always)]
    fn replace(self, mask: u16, other: Ymm) -> Ymm {
        // SAFETY: as above.
        unsafe {
            let all = _mm256_set1_epi32(i32::from(mask));
            let low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let high = _mm256_slli_epi32::<8>(low);
            let (of_low, of_high) = (_mm256_and_si256(all, low), _mm256_and_si256(all, high));
            Ymm(
                _mm256_blendv_epi8(self.0, other.0, _mm256_cmpeq_epi32(of_low, low)),
                _mm256_blendv_epi8(self.1, other.1, _mm256_cmpeq_epi32(of_high, high)),
            )
        }
    }
    #[inline(always)]
    fn min(self, other: Ymm) -> Ymm {
        // SAFETY: as above.
        unsafe { Ymm(_mm256_min_epu32(self.0, other.0), _mm256_min_epu32(self.1, other.1)) }
    }
    #[inline(always)]
    unsafe fn gather6(at: impl Fn(usize) -> *const u8) -> [Ymm; 6] {
        // SAFETY: as above; by contract 24 bytes are there.
        unsafe {
            let ([a, b, c, d, e, f], [g, h, i, j, k, l]) =
                (gather6_half(&at, 0), gather6_half(&at, 8));
            [Ymm(a, g), Ymm(b, h), Ymm(c, i), Ymm(d, j), Ymm(e, k), Ymm(f, l)]
        }
    }
    #[inline(always)]
    unsafe fn gather(first: *const u32, at: Ymm) -> Ymm {
        let first = first.cast();
        // SAFETY: as for `Zmm`.
        unsafe {
            Ymm(_mm256_i32gather_epi32::<4>(first, at.0), _mm256_i32gather_epi32::<4>(first, at.1))
        }
    }
    #[inline(always)]
    unsafe fn gather5<const FIFTH: usize>(at: &[*const u8; LANES]) -> [Ymm; 5] {
        // SAFETY: as above; by contract the bytes are there.
        unsafe {
            let ([a, b, c, d, e], [f, g, h, i, j]) =
                (gather5_half::<FIFTH>(at, 0), gather5_half::<FIFTH>(at, 8));
            [Ymm(a, f), Ymm(b, g), Ymm(c, h), Ymm(d, i), Ymm(e, j)]
        }
    }
}

/// The first 16 bytes of the packets `k`, 4 + `k`, 8 + `k` and 12 + `k`.
///
/// # Safety
/// The processor has AVX-512, and 16 bytes are at each address.
#[inline(always)]
unsafe fn every_fourth(at: &[*const u8; LANES], k: usize) -> __m512i {
    // SAFETY: by contract.
    unsafe {
        let z = _mm512_castsi128_si512(load16(at[k]));
        let z = _mm512_inserti32x4::<1>(z, load16(at[4 + k]));
        let z = _mm512_inserti32x4::<2>(z, load16(at[8 + k]));
        _mm512_inserti32x4::<3>(z, load16(at[12 + k]))
    }
}

/// The first 16 bytes of the packets `k` and 4 + `k`.
///
/// # Safety
/// The processor has AVX2, and 16 bytes are at each address.
#[inline(always)]
unsafe fn two_of_eight(at: &[*const u8; LANES], k: usize) -> __m256i {
    // SAFETY: by contract.
    unsafe {
        let y = _mm256_castsi128_si256(load16(at[k]));
        _mm256_inserti128_si256::<1>(y, load16(at[4 + k]))
    }
}

/// Five words of the eight packets from `from` on.
///
/// # Safety
/// The processor has AVX2, and 16 bytes, and `FIFTH` and four more, are at each address.
#[inline(always)]
unsafe fn gather5_half<const FIFTH: usize>(at: &[*const u8; LANES], from: usize) -> [__m256i; 5] {
    // SAFETY: by contract.
    unsafe {
        let (a, b) = (two_of_eight(at, from), two_of_eight(at, from + 1));
        let (c, d) = (two_of_eight(at, from + 2), two_of_eight(at, from + 3));
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        let fifth = _mm256_castsi128_si256(four_words::<FIFTH>(at, from));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
            _mm256_inserti128_si256::<1>(fifth, four_words::<FIFTH>(at, from + 4)),
        ]
    }
}

/// # Safety
/// 16 bytes are at the address.
#[inline(always)]
unsafe fn load16(at: *const u8) -> __m128i {
    // SAFETY: by contract.
    unsafe { _mm_loadu_si128(at.cast()) }
}

/// The words `FIFTH` bytes into four packets from `from` on.
///
/// # Safety
/// The processor has SSE 4.1, and that many bytes and four more are at each address.
#[inline(always)]
unsafe fn four_words<const FIFTH: usize>(at: &[*const u8; LANES], from: usize) -> __m128i {
    // SAFETY: by contract.
    unsafe {
        let v = _mm_cvtsi32_si128(word_at::<FIFTH>(at[from]));
        let v = _mm_insert_epi32::<1>(v, word_at::<FIFTH>(at[from + 1]));
        let v = _mm_insert_epi32::<2>(v, word_at::<FIFTH>(at[from + 2]));
        _mm_insert_epi32::<3>(v, word_at::<FIFTH>(at[from + 3]))
    }
}

/// # Safety
/// `OFF` bytes and four more are at the address.
#[inline(always)]
unsafe fn word_at<const OFF: usize>(at: *const u8) -> i32 {
    // SAFETY: by contract.
    unsafe { at.add(OFF).cast::<i32>().read_unaligned() }
}

/// Six words of the eight packets from `from` on.
///
/// # Safety
/// The processor has AVX2, and 24 bytes are at each address.
#[inline(always)]
unsafe fn gather6_half(at: &impl Fn(usize) -> *const u8, from: usize) -> [__m256i; 6] {
    // SAFETY: by contract.
    unsafe {
        let (a, b) = (four_apart(at, from), four_apart(at, from + 1));
        let (c, d) = (four_apart(at, from + 2), four_apart(at, from + 3));
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        let (ef, gh) = (two_ends(at, from), two_ends(at, from + 2));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
            _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(ef, gh)),
            _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(ef, gh)),
        ]
    }
}

/// The first 16 bytes of the packets `k` and 4 + `k`.
///
/// # Safety
/// The processor has AVX2, and 16 bytes are at each address.
#[inline(always)]
unsafe fn four_apart(at: &impl Fn(usize) -> *const u8, k: usize) -> __m256i {
    // SAFETY: by contract.
    unsafe {
        let y = _mm256_castsi128_si256(load16(at(k)));
        _mm256_inserti128_si256::<1>(y, load16(at(4 + k)))
    }
}

/// The bytes 16 to 24 of the packets `k`, 1 + `k`, 4 + `k` and 5 + `k`.
///
/// # Safety
/// The processor has AVX2, and 24 bytes are at each address.
#[inline(always)]
unsafe fn two_ends(at: &impl Fn(usize) -> *const u8, k: usize) -> __m256 {
    // SAFETY: by contract.
    unsafe {
        let (a, b) = (end(at(k)), end(at(k + 1)));
        let (c, d) = (end(at(k + 4)), end(at(k + 5)));
        let y = _mm256_castsi128_si256(_mm_unpacklo_epi64(a, b));
        _mm256_castsi256_ps(_mm256_inserti128_si256::<1>(y, _mm_unpacklo_epi64(c, d)))
    }
}

/// # Safety
/// 24 bytes are at the address.
#[inline(always)]
unsafe fn end(at: *const u8) -> __m128i {
    // SAFETY: by contract.
    unsafe { _mm_loadl_epi64(at.add(16).cast()) }
}

/// Both halves of a register.
///
/// # Safety
/// The processor has AVX-512.
#[inline(always)]
unsafe fn both(low: __m256i, high: __m256i) -> Zmm {
    // SAFETY: by contract.
    Zmm(unsafe { _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high) })
}

/// The top bits of sixteen lanes.
///
/// # Safety
/// The processor has AVX2.
#[inline(always)]
unsafe fn bits(low: __m256i, high: __m256i) -> u16 {
    // SAFETY: by contract.
    unsafe {
        let low = _mm256_movemask_ps(_mm256_castsi256_ps(low));
        let high = _mm256_movemask_ps(_mm256_castsi256_ps(high));
        (low | high << 8) as u16
    }
}
