//! Hints to the processor that safe code may give.

/// Asks for the line of `at` to be this core's own soon: another core has read it, and a store would
/// wait for that core to give it up. A hint; without the instruction nothing is done.
#[inline]
pub fn for_write<T>(at: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults and changes no register, flag or memory. Processors without
    // the instruction take it for one that does nothing.
    unsafe {
        std::arch::asm!(
            "prefetchw byte ptr [{}]",
            in(reg) std::ptr::from_ref(at),
            options(nostack, preserves_flags, readonly),
        );
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_fetched_stays_as_it_is() {
        let values: Vec<u64> = (0..1000).collect();
        values.iter().for_each(super::for_write);
        super::for_write(&());
        assert!(values.iter().copied().eq(0..1000));
    }
}
