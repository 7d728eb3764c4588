//! The TTL of packets that `drop-ttl-chosen` drops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use thalweg_engine::setting::Refused;
use thalweg_graph::Control;

/// The TTL, as workers read it.
#[derive(Debug)]
pub struct Unlucky(pub AtomicU8);

/// The TTL at the start.
pub const DEFAULT: u8 = 13;

pub(crate) fn init(c: &mut Control) {
    c.share(Arc::new(Unlucky(AtomicU8::new(DEFAULT))));
}

/// Returns the TTL.
pub fn unlucky(c: &Control) -> u32 {
    c.shared::<Unlucky>().0.load(Relaxed).into()
}

/// Sets the TTL.
///
/// # Errors
/// If it is that of the router's own packets.
pub fn set_unlucky(c: &mut Control, ttl: u32) -> Result<(), Refused> {
    match u8::try_from(ttl) {
        Ok(ttl) if ttl != 64 => c.shared::<Unlucky>().0.store(ttl, Relaxed),
        _ => {
            let text = format_args!("TTL {ttl} cannot be unlucky: a number up to 255, not 64");
            return Err(Refused::new(-7, text));
        }
    }
    Ok(())
}
