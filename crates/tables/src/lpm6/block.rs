//! The routes from /33 to /48 of one /32, in a line or a few of memory.
//!
//! Most networks have few routes in their /32. The tail of such a network has a *block* with up to
//! 31 of them, the longest first: an address is compared with all of them at once, and so it takes
//! one load after the upper half's, whichever lengths there are. A tail with more routes has none.

use std::sync::atomic::{AtomicU16, AtomicU32, Ordering};

use super::table::{SITE, TOP};
use crate::paged::AllZeroValid;
use crate::prefix::Ipv6Prefix;

/// Value of a place: the /48 has longer routes.
pub(super) const DEEP: u32 = u32::MAX;
/// Number of sizes of blocks: 8, 16 and 32 places. A tail without a block is of the next class.
pub(super) const CLASSES: usize = 3;
/// Routes in the largest.
const MOST_ROUTES: usize = 31;

/// The routes of a tail. All but the values stays as it is while the block is used.
///
/// The last place is that of no route: its value is the leaf of the route up to /32 around the
/// tail, 0 if there is none; start and mask are the halves of the tail's index.
#[repr(C, align(64))]
pub(super) struct Block<const PLACES: usize> {
    /// Bits 33 to 48 of each prefix.
    starts: [AtomicU16; PLACES],
    /// Mask of the bits that an address in it shares. Places without a route have a start that is
    /// not within their mask.
    masks: [AtomicU16; PLACES],
    /// Leaf of each, [`DEEP`], or 0: as the last place.
    values: [AtomicU32; PLACES],
}

// SAFETY: integers, of which zero is a value.
unsafe impl<const PLACES: usize> AllZeroValid for Block<PLACES> {}

/// Parts that are the same for blocks of all sizes.
pub(super) trait Places {
    /// Writes a block that no worker reads yet. The block has a place for each of the routes.
    fn write(&self, tail: u32, fallback: u32, routes: &[Route]);

    /// Sets what places of value 0 lead to.
    fn set_fallback(&self, leaf: u32);

    /// Stores what the places lead to after a route has got another leaf or has gone.
    fn revalue(&self, routes: &[Route]);
}

impl<const PLACES: usize> Block<PLACES> {
    const LAST: usize = PLACES - 1;

    /// Index of the tail.
    #[inline]
    pub(super) fn tail(&self) -> u32 {
        let [low, high] =
            [&self.starts, &self.masks].map(|half| half[Self::LAST].load(Ordering::Relaxed));
        u32::from(high) << 16 | u32::from(low)
    }

    /// Returns the leaf that an address's bits from 33 to 48 lead to, or [`DEEP`].
    #[inline]
    pub(super) fn lookup(&self, middle: u16) -> u32 {
        const { assert!(PLACES.is_power_of_two() && PLACES >= 8 && PLACES <= 32) };
        let at = self.first(middle) & Self::LAST;
        let [value, fallback] =
            [at, Self::LAST].map(|place| self.values[place].load(Ordering::Acquire));
        if value == 0 { fallback } else { value }
    }

    /// The first place whose prefix an address is in; the last place if there is none.
    #[inline]
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    fn first(&self, middle: u16) -> usize {
        self.first_by_place(middle)
    }

    #[inline]
    #[cfg(any(all(test, not(loom)), not(all(target_arch = "x86_64", not(miri)))))]
    fn first_by_place(&self, middle: u16) -> usize {
        let places = self.starts[..Self::LAST].iter().zip(&self.masks);
        let mut is = places
            .map(|(start, mask)| [start, mask].map(|half| half.load(Ordering::Relaxed)))
            .map(|[start, mask]| middle & mask == start);
        is.position(|is| is).unwrap_or(Self::LAST)
    }

    /// The first place whose prefix an address is in; the last place if there is none.
    #[inline]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn first(&self, middle: u16) -> usize {
        // SAFETY: SSE2 is in every x86-64.
        unsafe { self.first_by_vector(middle) }
    }

    #[inline]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[target_feature(enable = "sse2")]
    fn first_by_vector(&self, middle: u16) -> usize {
        use std::arch::x86_64::*;
        let wanted = _mm_set1_epi16(middle as i16);
        // Each lane all ones if the address is in its prefix.
        let eight = |from: usize| {
            let halves = [&self.starts, &self.masks].map(|all| all[from..from + 8].as_ptr());
            // SAFETY: eight halves are there from `from` on, and nobody writes them while workers
            // read the block.
            let [starts, masks] = halves.map(|at| unsafe { _mm_loadu_si128(at.cast()) });
            _mm_cmpeq_epi16(_mm_and_si128(wanted, masks), starts)
        };
        let sixteen = |from| _mm_movemask_epi8(_mm_packs_epi16(eight(from), eight(from + 8)));
        let found = match PLACES {
            8 => _mm_movemask_epi8(_mm_packs_epi16(eight(0), _mm_setzero_si128())),
            16 => sixteen(0),
            _ => sixteen(0) | sixteen(16) << 16,
        };
        (found as u32 | 1 << Self::LAST).trailing_zeros() as usize
    }
}

impl<const PLACES: usize> Places for Block<PLACES> {
    fn write(&self, tail: u32, fallback: u32, routes: &[Route]) {
        let mut places: Vec<(u16, u16)> = routes.iter().map(Route::place).collect();
        // The longest first, and only one for a route and a mark.
        places.sort_unstable_by_key(|(start, mask)| (!mask, *start));
        places.dedup();
        debug_assert!(places.len() < PLACES, "{places:?}");
        places.resize(Self::LAST, NO_PLACE);
        places.push((tail as u16, (tail >> 16) as u16));
        for (n, (start, mask)) in places.into_iter().enumerate() {
            self.starts[n].store(start, Ordering::Relaxed);
            self.masks[n].store(mask, Ordering::Relaxed);
        }
        self.set_fallback(fallback);
        self.revalue(routes);
    }

    fn set_fallback(&self, leaf: u32) {
        self.values[Self::LAST].store(leaf, Ordering::Release);
    }

    fn revalue(&self, routes: &[Route]) {
        for place in 0..Self::LAST {
            let [start, mask] =
                [&self.starts, &self.masks].map(|half| half[place].load(Ordering::Relaxed));
            // Release: a worker that finds a leaf also sees the object that it refers to.
            let value = Route::longest(routes, start, mask);
            self.values[place].store(value, Ordering::Release);
        }
    }
}

/// Start and mask of a place without a route.
const NO_PLACE: (u16, u16) = (1, 0);

/// A route from /33 to /48, or the mark of a /48 with longer ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Route {
    /// Bits 33 to 48.
    start: u16,
    /// Length beneath the /32; that of a mark is longer than any.
    len: u8,
    leaf: u32,
}

const MARK: u8 = SITE - TOP + 1;

/// Bits 33 to 48 of an address.
#[inline]
pub(super) fn middle(addr: u128) -> u16 {
    (addr >> (128 - SITE)) as u16
}

impl Route {
    /// The route of up to /48 to a prefix.
    pub(super) fn new(prefix: Ipv6Prefix, leaf: u32) -> Route {
        Route { start: middle(prefix.addr()), len: prefix.len() - TOP, leaf }
    }

    /// The mark of an address's /48.
    pub(super) fn mark(addr: u128) -> Route {
        Route { start: middle(addr), len: MARK, leaf: DEEP }
    }

    /// Key by which routes are sorted and unique.
    pub(super) fn key(&self) -> (u16, u8) {
        (self.start, self.len)
    }

    fn mask(&self) -> u16 {
        !(u32::from(u16::MAX) >> self.len.min(MARK - 1)) as u16
    }

    /// Start and mask of its place.
    fn place(&self) -> (u16, u16) {
        (self.start, self.mask())
    }

    /// The value of a place: that of the longest of these routes that all of it is in; 0 if it is
    /// in none.
    fn longest(routes: &[Route], start: u16, mask: u16) -> u32 {
        let is_around = |r: &&Route| r.mask() & !mask == 0 && start & r.mask() == r.start;
        routes.iter().filter(is_around).max_by_key(|r| r.len).map_or(0, |r| r.leaf)
    }
}

/// Returns the class of the smallest block that has room for these routes; none if no block has.
pub(super) fn class_for(routes: &[Route]) -> Option<usize> {
    // A route and a mark in one place are counted twice; it hardly ever matters.
    match routes.len() {
        0..=7 => Some(0),
        8..=15 => Some(1),
        16..=MOST_ROUTES => Some(2),
        _ => None,
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::prefix::Prefix;
    use proptest::prelude::*;

    fn agree<const PLACES: usize>(routes: &[Route], middles: &[u16]) {
        let block = Block::<PLACES> {
            starts: std::array::from_fn(|_| AtomicU16::new(0)),
            masks: std::array::from_fn(|_| AtomicU16::new(0)),
            values: std::array::from_fn(|_| AtomicU32::new(0)),
        };
        block.write(0x12_3456, 7, routes);
        assert_eq!(block.tail(), 0x12_3456);
        for middle in middles {
            assert_eq!(block.first(*middle), block.first_by_place(*middle), "{middle:#x}");
        }
    }

    proptest! {
        /// Vectors find the place that one look after the other finds.
        #[test]
        fn vectors_find_the_same_place(
            all in prop::collection::vec((any::<u16>(), 33u8..=48), 0..32),
            middles in prop::collection::vec(any::<u16>(), 20),
        ) {
            let route = |&(middle, len): &(u16, u8)| {
                Route::new(Prefix::of(u128::from(middle) << 80, len), 9)
            };
            let routes: Vec<Route> = all.iter().map(route).take(MOST_ROUTES).collect();
            let own = routes.iter().map(|r| r.start);
            let middles: Vec<u16> = middles.into_iter().chain(own).collect();
            agree::<8>(&routes[..routes.len().min(7)], &middles);
            agree::<16>(&routes[..routes.len().min(15)], &middles);
            agree::<32>(&routes, &middles);
        }
    }
}
