//! Return values of requests, with VPP's numbers.

use std::fmt;

/// Error of a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub struct Retval(pub i32);

macro_rules! retvals {
    ($($name:ident $number:literal $text:literal)*) => {
        impl Retval {
            $(#[doc = $text] pub const $name: Retval = Retval($number);)*

            fn text(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

retvals! {
    UNSPECIFIED -1 "unspecified error"
    INVALID_SW_IF_INDEX -2 "invalid interface index"
    NO_SUCH_FIB -3 "no such route table"
    NO_SUCH_ENTRY -6 "no such entry"
    INVALID_VALUE -7 "invalid value"
    INVALID_VALUE_2 -8 "invalid second value"
    UNIMPLEMENTED -9 "unimplemented"
    INVALID_SW_IF_INDEX_2 -10 "invalid second interface index"
    SYSCALL_ERROR_1 -11 "system call failed"
    FEATURE_DISABLED -30 "feature disabled by configuration"
    INVALID_REGISTRATION -31 "invalid registration"
    NEXT_HOP_NOT_IN_FIB -50 "next hop not in the route table"
    NO_PATHS_IN_ROUTE -52 "a route needs a path"
    NO_MATCHING_INTERFACE -54 "no matching interface"
    INVALID_VLAN -55 "invalid VLAN"
    VLAN_ALREADY_EXISTS -56 "VLAN or sub-interface number in use"
    ADDRESS_NOT_FOUND_FOR_INTERFACE -60 "address not found for interface"
    ADDRESS_NOT_DELETABLE -61 "address not deletable"
    IP6_NOT_ENABLED -62 "IPv6 not enabled"
    NO_SUCH_NODE -63 "no such node"
    NO_SUCH_NODE2 -64 "no such next node"
    NO_SUCH_TABLE -65 "no such table"
    INVALID_INTERFACE -71 "invalid interface"
    INVALID_ARGUMENT -73 "invalid argument"
    VALUE_EXIST -81 "value already exists"
    SAME_SRC_DST -82 "source and destination are the same"
    CANNOT_CREATE_PCAP_FILE -93 "cannot create the pcap file"
    INVALID_ADDRESS_FAMILY -97 "invalid address family"
    INVALID_SUB_SW_IF_INDEX -98 "not a sub-interface"
    TABLE_TOO_BIG -99 "table too big"
    ADDRESS_IN_USE -105 "address in use"
    ADDRESS_NOT_IN_USE -106 "address not in use"
    IF_ALREADY_EXISTS -79 "interface exists"
    ENTRY_ALREADY_EXISTS -116 "entry exists"
    BD_ALREADY_EXISTS -119 "bridge domain exists"
    BD_IN_USE -120 "bridge domain has member interfaces"
    BD_ID_EXCEED_MAX -122 "bridge domain id too large"
    UNSUPPORTED -126 "unsupported"
    INSTANCE_IN_USE -147 "instance in use"
    BD_ALREADY_HAS_BVI -152 "bridge domain already has a BVI"
    NO_CHANGE -160 "no change"
    LIMIT_EXCEEDED -162 "limit exceeded"
    EAGAIN -165 "call again with this cursor"
    BUSY -167 "busy"
    FEATURE_ALREADY_DISABLED -169 "feature already disabled"
    FEATURE_ALREADY_ENABLED -170 "feature already enabled"
    INVALID_PREFIX_LENGTH -171 "invalid prefix length"
}

impl Retval {
    /// Logs the reason, which the number does not contain.
    pub fn because(self, reason: impl fmt::Display) -> Self {
        tracing::debug!("API request fails with {self}: {reason}");
        self
    }
}

impl fmt::Display for Retval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.text() {
            Some(text) => write!(f, "{} ({text})", self.0),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for Retval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
