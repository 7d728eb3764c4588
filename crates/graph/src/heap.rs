//! How the C library's allocator is to work.

use std::sync::Once;

/// Has small pieces of memory that are freed joined at once. Otherwise glibc puts that off, and then joins
/// all of some hundred thousand in one go: milliseconds for whoever frees or asks for a larger piece
/// next, be it the main thread after another thread has dropped a great plan.
pub(crate) fn no_arrears() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(all(target_os = "linux", target_env = "gnu"))]
        // SAFETY: mallopt(3) may be called at any time by any thread (it takes the allocator's lock), and
        // this parameter changes no memory that is in use.
        let _ = unsafe { libc::mallopt(libc::M_MXFAST, 0) };
    });
}
