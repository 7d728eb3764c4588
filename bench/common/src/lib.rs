//! Parts that all benchmarks share.
//!
//! - [`Args`] reads a benchmark's command line: `--json FILE`, `--full` and words that select.
//! - [`Machine`] says where figures come from, [`Processors`] what those did meanwhile.
//! - [`Pair`] measures a bare loop on one processor and on two.
//! - [`Series`], [`Rounds`] and [`Spread`] hold what was measured, and give ratios only between
//!   what was measured close together: machines drift.
//! - [`Stalls`] compares a worker's long loops with those of a loop without packets.
//! - [`Table`] and [`Report`] print it as Markdown and write it as JSON.
//!
//! # The JSON of a report
//!
//! ```json
//! { "bench": "wire", "title": "…", "about": ["…"],
//!   "machine": { "cpu": "…", "cores": 2, "tsc_mhz": 2596.1, "kernel": "…",
//!                "huge_pages": "madvise", "memory_gib": 23.4, "hypervisor": true },
//!   "started": "2026-01-02T03:04:05Z", "ended": "…", "steal_percent": 0.1, "noisy": false,
//!   "one_processor": [945, 940], "two_processors": [1.98, 1.97], "line_ns": [50, 206],
//!   "tables": [ { "title": "…", "columns": [ { "name": "rate", "unit": "Mpps" } ],
//!                 "rows": [ [ "text", 1.5, { "median": 2.0, "least": 1.9, "most": 2.1,
//!                             "rounds": 5, "digits": 1, "noisy": false },
//!                             { "guide": "≤ 1.3 ×", "holds": true }, { "missing": "why" },
//!                             null ] ],
//!                 "notes": [ "…" ] } ] }
//! ```
//!
//! A cell is a text, a number, a spread, a guide, a reason why there is no value, or `null` where
//! none belongs. Fields may be added; these stay.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![forbid(unsafe_code)]

mod args;
mod machine;
mod pair;
mod report;
mod series;
mod stalls;
mod table;

pub use args::Args;
pub use machine::{Machine, Processors, Usage};
pub use pair::{Bare, Pair, Pauses, on_two_cores, pauses, pin, spin, steps, with_others_awake};
pub use report::Report;
pub use series::{Apart, NEAR, NOISY, Rounds, Series, Spread};
pub use stalls::{Loops, Stalls};
pub use table::{Cell, Column, Table};
