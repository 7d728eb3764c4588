//! Reason why a request about MPLS fails.

use thalweg_cli::CliError;
use thalweg_device::DeviceError;
use thalweg_feat_ip::RouteError;
use thalweg_fib::rib::RibError;
use thalweg_fib::{FibError, TableId};
use thalweg_wire::mpls::Label;

/// Error of a request.
#[derive(Debug, thiserror::Error)]
pub enum MplsError {
    /// Table 0 has to be there before an interface takes MPLS.
    #[error("default MPLS table must be created first: `mpls table add 0'")]
    NoDefaultTable,
    /// The table does not exist.
    #[error("MPLS table-id {0} does not exist; `mpls table add {0}' creates it")]
    NoTable(TableId),
    /// The table is used by interfaces.
    #[error("interfaces use MPLS table 0; `set interface mpls <interface> disable' frees it")]
    TableInUse,
    /// The limit of tables is reached.
    #[error("no room for another MPLS table: the limit is {}", crate::MAX_TABLES)]
    TooManyTables,
    /// The label is not bound.
    #[error("no label {0} in MPLS table {1}")]
    NoLabel(String, TableId),
    /// The path does not exist.
    #[error("label {0} in MPLS table {1} has no such path")]
    NoPath(String, TableId),
    /// The route has no paths.
    #[error("no paths: `via <next hop> <interface> out-labels <label>'")]
    NoPaths,
    /// Only a single path may be of this kind.
    #[error("a path without a next hop cannot share a label with other paths")]
    Alone,
    /// The path is for another kind of label.
    #[error("{0}")]
    Unsuitable(&'static str),
    /// The label is in use.
    #[error("label {0} is bound to {1}; `mpls local-label del' unbinds it")]
    Bound(String, String),
    /// The label is not bound to the prefix.
    #[error("label {0} in MPLS table {1} is not bound to {2}")]
    NotBound(String, TableId, String),
    /// Labels would follow each other.
    #[error("label {0} would lead to itself: it is among the labels that the path follows")]
    Loop(Label),
    /// The interface is no tunnel.
    #[error("`{0}' is no MPLS tunnel; `show mpls tunnel' lists them")]
    NoTunnel(String),
    /// A tunnel needs labels.
    #[error("No Output Labels: a path of a tunnel has some, `via <next hop> out-labels <label>'")]
    NoLabels,
    /// The limit of tunnels is reached.
    #[error("no room for another MPLS tunnel: the limit is {}", crate::tunnels::MAX_TUNNELS)]
    TooManyTunnels,
    /// The interface does not exist.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// No forwarding object could be created.
    #[error(transparent)]
    Fib(#[from] FibError),
    /// The IP route or table is refused.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The path is refused.
    #[error(transparent)]
    Rib(#[from] RibError),
}

impl MplsError {
    /// Returns the API's number for the error.
    #[must_use]
    pub fn code(&self) -> i32 {
        match self {
            MplsError::NoDefaultTable
            | MplsError::NoTable(_)
            | MplsError::Route(RouteError::NoTable(..)) => -3,
            MplsError::NoLabel(..) | MplsError::NoPath(..) | MplsError::NotBound(..) => -6,
            MplsError::NoPaths => -52,
            MplsError::Alone
            | MplsError::Unsuitable(_)
            | MplsError::Loop(_)
            | MplsError::NoLabels => -7,
            MplsError::TableInUse => -122,
            MplsError::Bound(..) => -81,
            MplsError::Device(_)
            | MplsError::Fib(FibError::NoInterface(_))
            | MplsError::NoTunnel(_) => -2,
            _ => -1,
        }
    }
}

impl From<MplsError> for CliError {
    fn from(e: MplsError) -> CliError {
        let code = e.code();
        CliError::with_code(e, code)
    }
}

impl From<MplsError> for thalweg_api::Retval {
    fn from(e: MplsError) -> Self {
        Self(e.code()).because(e)
    }
}
