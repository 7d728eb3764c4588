//! Errors of opening or configuring a host interface.

use std::io;
use thalweg_device_linux::LinkError;

/// Reason why a host interface could not be opened or configured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device does not exist, or cannot be described.
    #[error(transparent)]
    Link(#[from] LinkError),

    /// The device does not carry Ethernet frames.
    #[error(
        "device \"{name}\" does not carry Ethernet frames (its ARP hardware type is {kind}, not 1): \
         use `mode ip' if it carries bare IP packets, as tunnels do"
    )]
    NotEthernet {
        /// Name of the device.
        name: String,
        /// Its ARP hardware type (`ARPHRD_*`).
        kind: u16,
    },

    /// The device carries Ethernet frames, but `mode ip` was given.
    #[error("device \"{0}\" carries Ethernet frames: remove `mode ip'")]
    NotIp(String),

    /// This process has already opened the device.
    #[error("device \"{0}\" is attached already: delete its host interface first")]
    AlreadyAttached(String),

    /// The kernel denied permission.
    #[error(
        "not allowed to {what}: this needs CAP_NET_RAW in the network namespace (run as root, \
         or inside `unshare -Urn`)"
    )]
    Permission {
        /// The refused operation.
        what: &'static str,
    },

    /// An option is out of range.
    #[error("{option} {value} is out of range: {want}")]
    BadOption {
        /// Name of the option, as in `create host-interface`.
        option: &'static str,
        /// Value given.
        value: u64,
        /// Valid values.
        want: &'static str,
    },

    /// The kernel has no memory even for the smallest rings.
    #[error(
        "no memory for the packet rings of \"{name}\", not even {kib} KiB: use smaller rx-size, \
         rx-per-block, tx-size or tx-per-block"
    )]
    RingMemory {
        /// Name of the device.
        name: String,
        /// Size of the last attempt in KiB.
        kib: usize,
    },

    /// Another system call failed.
    #[error("device \"{name}\": {what} failed")]
    System {
        /// Name of the device.
        name: String,
        /// The failed operation.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
}

impl Error {
    /// Wraps a failed system call; missing privileges get their own message.
    pub(crate) fn system(name: &str, what: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission { what },
            _ => Self::System { name: name.to_owned(), what, source },
        }
    }

    /// Returns whether the reason is that the device went away.
    pub(crate) fn is_away(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.raw_os_error() == Some(libc::ENODEV))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_help() {
        let denied = Error::system("x", "open a packet socket", io::Error::from_raw_os_error(1));
        assert!(denied.to_string().contains("CAP_NET_RAW"), "{denied}");
    }
}
