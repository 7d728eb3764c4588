//! Reason why the engine cannot start.

use crate::arc::ArcError;
use thalweg_buffer::PoolError;

/// Reason why the engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The buffer pool cannot be allocated.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// An arc's features cannot be ordered.
    #[error(transparent)]
    Arc(#[from] ArcError),
    /// The graph is inconsistent.
    #[error("graph: {0}")]
    Graph(String),
    /// A feature cannot start.
    #[error("{0}")]
    Feature(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// The operation.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
}
