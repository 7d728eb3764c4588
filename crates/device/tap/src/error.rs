//! Reason why a TAP could not be made.

use std::io;
use thalweg_device::DeviceError;
use thalweg_device_linux::NamespaceError;

/// Reason why a TAP could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The namespace is not there, or cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),

    /// The kernel, or the container, has no TUN driver.
    #[error(
        "there is no {0}: load the kernel's module (modprobe tun), or give the container this device"
    )]
    NoDriver(&'static str),

    /// The kernel denied permission.
    #[error(
        "not allowed to {what}: this needs CAP_NET_ADMIN in the network namespace (run as root, \
         or inside `unshare -Urn`)"
    )]
    Permission {
        /// The attempt.
        what: &'static str,
    },

    /// A device of that name is there.
    #[error("there is a device \"{0}\" already: `attach' uses it, or choose another host-if-name")]
    NameTaken(String),

    /// The device is another program's.
    #[error("device \"{0}\" is in use by another program or interface")]
    Busy(String),

    /// The device is of another kind.
    #[error("device \"{name}\" is not a {kind} device with {queues} queue(s): see `ip tuntap'")]
    OtherKind {
        /// Its name.
        name: String,
        /// `TAP` or `TUN`.
        kind: &'static str,
        /// Number of queues that were asked for.
        queues: u16,
    },

    /// No device exists to attach to.
    #[error("there is no device \"{0}\" to attach to: `ip tuntap add' makes one")]
    NoDevice(String),

    /// A device to attach to was not named.
    #[error("`attach' needs the name of a device: host-if-name <name>")]
    AttachToWhat,

    /// The name is not one that Linux takes.
    #[error(
        "\"{0}\" cannot be the name of a network device: use 1 to 15 characters, without spaces, \
         slashes, colons and percent signs"
    )]
    BadName(String),

    /// The number is in use.
    #[error("interface `{0}' already exists: choose another id")]
    IdTaken(String),

    /// The size of a ring is invalid.
    #[error("{option} {size}: a power of two up to 32768 expected")]
    RingSize {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        size: u16,
    },

    /// An option is out of range.
    #[error("{option} {value} is out of range: {want}")]
    BadOption {
        /// Name of the option.
        option: &'static str,
        /// Value given.
        value: u64,
        /// Valid values.
        want: &'static str,
    },

    /// Options exclude each other.
    #[error("{0}")]
    Conflict(&'static str),

    /// The kernel's end could not be set up.
    #[error("device \"{name}\": cannot {what}: {source}")]
    Setup {
        /// Name of the device.
        name: String,
        /// The attempt.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },

    /// The device cannot be a port of a bridge that is not there.
    #[error("device \"{name}\": cannot find its bridge: there is no bridge \"{bridge}\"")]
    NoBridge {
        /// Name of the device.
        name: String,
        /// Name of the bridge.
        bridge: String,
    },

    /// Another system call failed.
    #[error("device \"{name}\": cannot {what}: {source}")]
    System {
        /// Name of the device.
        name: String,
        /// The attempt.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },

    /// The interface could not be made.
    #[error(transparent)]
    Interface(#[from] DeviceError),
}

impl Error {
    /// Wraps a failed system call; missing privileges get their own message.
    pub(crate) fn system(name: &str, what: &'static str, source: io::Error) -> Self {
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Permission { what },
            _ => Self::System { name: name.to_owned(), what, source },
        }
    }

    /// VPP's number of the error, for the binary API.
    pub fn code(&self) -> i32 {
        match self {
            Error::NoDriver(_) | Error::Namespace(NamespaceError::Unknown { .. }) => -12,
            Error::Namespace(_) => -13,
            Error::AttachToWhat => -54,
            Error::IdTaken(_) => -71,
            Error::RingSize { .. } => -144,
            Error::Setup { .. } | Error::NoBridge { .. } => -145,
            Error::BadName(_) | Error::Conflict(_) => -73,
            Error::BadOption { option: "id", .. } => -1,
            Error::BadOption { .. } => -7,
            Error::Interface(e) => e.code(),
            Error::Permission { .. }
            | Error::NameTaken(_)
            | Error::Busy(_)
            | Error::OtherKind { .. }
            | Error::NoDevice(_)
            | Error::System { .. } => -11,
        }
    }
}

impl From<Error> for DeviceError {
    fn from(e: Error) -> DeviceError {
        match e {
            Error::Interface(e) => e,
            e => DeviceError::Failed(e.to_string()),
        }
    }
}
