//! Devices that this process has opened.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

/// A namespace (device and inode of its file) and an interface index.
type Key = (u64, u64, u32);

static CLAIMED: Mutex<Option<HashSet<Key>>> = Mutex::new(None);

/// Marks a device as open until it is dropped.
#[derive(Debug)]
pub(super) struct Claim(Key);

impl Claim {
    /// Claims a device of the calling thread's namespace; `None` if it is claimed already.
    pub(super) fn take(ifindex: u32) -> Option<Self> {
        // Without /proc all namespaces look alike, which only means that the same index in two of
        // them cannot be open at once.
        let space = fs::metadata("/proc/thread-self/ns/net");
        let (dev, inode) = space.map_or((0, 0), |meta| (meta.dev(), meta.ino()));
        let key = (dev, inode, ifindex);
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        // `then_some` will not do: a claim created and dropped would release the device.
        claimed.get_or_insert_default().insert(key).then(|| Self(key))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claimed) = claimed.as_mut() {
            claimed.remove(&self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_claimed_once() {
        // No real device has these indices.
        let claim = Claim::take(u32::MAX).unwrap();
        assert!(Claim::take(u32::MAX).is_none());
        let other = Claim::take(u32::MAX - 1);
        assert!(other.is_some());
        drop(claim);
        assert!(Claim::take(u32::MAX).is_some());
    }
}
