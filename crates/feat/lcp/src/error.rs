//! Reason why a pair could not be made or deleted.

use std::io;
use thalweg_device::DeviceError;
use thalweg_device_tap::Error as TapError;
use thalweg_engine::setting::Refused;
use thalweg_fib::FibError;

/// Reason why a pair could not be made or deleted.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The interface has a pair.
    #[error("interface `{phy}' has the twin {name}: `lcp delete {phy}' deletes it")]
    Paired {
        /// The interface.
        phy: String,
        /// The device.
        name: String,
    },
    /// The interface has none.
    #[error("interface `{0}' has no twin; `show lcp' lists those that have")]
    NotPaired(String),
    /// The interface is itself the router's end of a twin.
    #[error("interface `{0}' is the router's end of a twin, and cannot have one")]
    IsHost(String),
    /// The interface cannot have a twin.
    #[error("interface `{0}' is the router's own: it has no twin")]
    Local(String),
    /// The table of pairs is full.
    #[error("there are {0} pairs, the most: `lcp delete' makes room")]
    Full(usize),
    /// A tunnel needs a TUN device.
    #[error("interface `{0}' has no Ethernet frames: give the word `tun'")]
    NeedsTun(String),
    /// An Ethernet interface needs a TAP device.
    #[error(
        "interface `{0}' has Ethernet frames, which a TUN device does not carry: leave `tun' out"
    )]
    NeedsTap(String),
    /// The name of a namespace is too long.
    #[error("the name of a network namespace has up to 31 bytes, not {0}")]
    LongNamespace(usize),
    /// The name of a namespace is no word.
    #[error(
        "\"{0}\" cannot be the name of a network namespace here: it is one word without quotes, \
         braces, `|', `#' and backslashes"
    )]
    BadNamespace(String),
    /// A sub-interface that receives frames of several tags.
    #[error(
        "sub-interface `{0}' has no twin, as it does not say all tags of its frames: make it with \
         `exact-match'"
    )]
    NotExact(String),
    /// The parent has no twin.
    #[error("`{parent}' has no twin: `lcp create {parent} host-if <name>' comes first")]
    NoParent {
        /// The interface with the parent's frames.
        parent: String,
    },
    /// The outer tag of two has no sub-interface.
    #[error(
        "`{sub}' has two tags: a sub-interface of `{parent}' with the outer one, {outer} exact-match, \
         needs a twin first"
    )]
    NoOuter {
        /// The sub-interface.
        sub: String,
        /// Its parent.
        parent: String,
        /// The outer tag.
        outer: String,
    },
    /// The namespace is not that of the parent.
    #[error("the twin of `{0}' is in the network namespace of its parent's: leave `netns' out")]
    OtherNamespace(String),
    /// The device of that name is another one.
    #[error("there is a device \"{0}\" already: choose another host-if, or `ip link del'")]
    NameTaken(String),
    /// The name is not one that Linux takes.
    #[error(
        "\"{0}\" cannot be the name of a network device: use 1 to 15 characters, without spaces, \
         slashes, colons and percent signs"
    )]
    BadName(String),
    /// The kernel has no VLAN links.
    #[error(
        "this kernel has no VLAN links, which the twin of a sub-interface is: load its module \
         (modprobe 8021q)"
    )]
    NoVlans,
    /// The parent's device is away.
    #[error("the device {0} is away: `show tap' says why")]
    Away(String),
    /// The kernel refused.
    #[error("device \"{name}\": cannot {what}: {source}")]
    Kernel {
        /// The device.
        name: String,
        /// The attempt.
        what: &'static str,
        /// The kernel's error.
        source: io::Error,
    },
    /// The TAP could not be made.
    #[error(transparent)]
    Tap(#[from] TapError),
    /// The interface does not exist, or could not be changed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No forwarding object could be made.
    #[error(transparent)]
    Fib(#[from] FibError),
}

impl Error {
    /// VPP's number of the error, for the binary API.
    pub fn code(&self) -> i32 {
        match self {
            Error::Paired { .. } => -81,
            Error::NotPaired(_) | Error::NoParent { .. } | Error::NoOuter { .. } => -2,
            Error::IsHost(_)
            | Error::Local(_)
            | Error::NeedsTun(_)
            | Error::NeedsTap(_)
            | Error::LongNamespace(_)
            | Error::BadNamespace(_)
            | Error::NotExact(_)
            | Error::OtherNamespace(_)
            | Error::BadName(_) => -73,
            Error::Full(_) | Error::Fib(_) => -162,
            Error::NameTaken(_) | Error::NoVlans | Error::Away(_) | Error::Kernel { .. } => -145,
            Error::Tap(e) => e.code(),
            Error::Device(e) => e.code(),
        }
    }
}

impl From<Error> for Refused {
    fn from(e: Error) -> Refused {
        Refused::new(e.code(), e)
    }
}
