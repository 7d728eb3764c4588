//! Reports of the load tester as pure functions of what was measured: [`Report`] is the JSON, and
//! from it come Markdown ([`Report::markdown`]) and one page of HTML with plots
//! ([`Report::html`]). [`compare`] sets two of them against each other.

#![forbid(unsafe_code)]

mod books;
mod compare;
mod html;
mod markdown;
mod model;
mod plots;
mod tables;
#[cfg(test)]
mod tests;
mod words;

pub use books::Books;
pub use compare::{Comparison, Difference, Differs, compare};
pub use model::{
    Connections, Cover, Device, Drop, FirstLost, Found, Goal, Grade, Kind, Latency, LimitedBy,
    Machine, Percentile, Port, Profile, ReadError, Report, SelfCheck, Series, StreamResult,
    Transport, Trial, Verdict,
};
pub use thalweg_plot::{PlotError, standalone};
pub use words::below;
