//! The plots of a report.

use thalweg_plot::{Curve, Line, Look, PlotError, Scale, Titles, bars, curves};

use crate::model::{Report, Trial};
use crate::tables;
use crate::words::rate;

/// Loss that is drawn next to none.
const LEAST_LOSS: f64 = 1e-7;
/// Most points of a curve.
const MOST_POINTS: usize = 2000;

/// All plots that have data: the table that each belongs to, and its SVG.
pub(crate) fn all(report: &Report) -> Result<Vec<(&'static str, String)>, PlotError> {
    let mut plots = Vec::new();
    if report.trials.len() > 1 {
        plots.push(("trials", losses(report)?));
        plots.push(("trials", search(report)?));
    }
    let beyond: Vec<Curve> = report.latency.iter().flat_map(distributions).collect();
    if !beyond.is_empty() {
        let titles = Titles {
            title: "Latency: share of packets that took longer",
            x: "ns",
            y: "share that took longer",
        };
        plots.push(("latency", curves(&titles, &beyond, Scale::Log, Scale::Log)?));
    }
    let shown = tables::bounds(report);
    if !shown.is_empty() {
        plots.push(("books", books(&shown)?));
    }
    Ok(plots)
}

/// The plots of values over time.
pub(crate) fn series(report: &Report) -> Result<Vec<String>, PlotError> {
    let Some(series) = &report.series else { return Ok(Vec::new()) };
    let step = f64::from(series.step_ms) / 1000.0;
    let curve = |name: &str| {
        let values = series.values.get(name)?;
        let every = values.len().div_ceil(MOST_POINTS).max(1);
        let points = values.iter().enumerate().step_by(every);
        let points = points.map(|(n, value)| (n as f64 * step, *value)).collect();
        Some(Curve { name: name.to_owned(), points, look: Look::Line })
    };
    let mut plots = Vec::new();
    for (title, y, names) in [
        ("Rates over time", "per second", &["sent", "received", "begun", "completed", "lost"][..]),
        ("Connections over time", "open", &["active", "established", "time_wait"]),
    ] {
        let drawn: Vec<Curve> = names.iter().filter_map(|name| curve(name)).collect();
        if !drawn.is_empty() {
            let titles = Titles { title, x: "s", y };
            plots.push(curves(&titles, &drawn, Scale::Linear, Scale::Linear)?);
        }
    }
    Ok(plots)
}

/// Loss by rate, with the trials and the bounds.
fn losses(report: &Report) -> Result<String, PlotError> {
    let points = |invalid: bool| {
        let these = report.trials.iter().filter(|trial| trial.invalid.is_some() == invalid);
        these.map(|trial| (trial.load, trial.loss_ratio)).collect::<Vec<_>>()
    };
    let mut all = vec![Curve { name: "trials".into(), points: points(false), look: Look::Dots }];
    let spoiled = points(true);
    if !spoiled.is_empty() {
        all.push(Curve { name: "spoiled".into(), points: spoiled, look: Look::Dots });
    }
    for found in &report.results {
        let bounds = [found.lower, found.upper].into_iter().flatten();
        let points: Vec<(f64, f64)> = bounds.map(|load| (load, 0.0)).collect();
        all.push(Curve { name: format!("{} bounds", found.goal), points, look: Look::Bounds });
    }
    let titles = Titles { title: "Loss by rate", x: "load per second", y: "share lost" };
    curves(&titles, &all, Scale::Linear, Scale::LogFrom(LEAST_LOSS))
}

/// The loads in the order of the trials.
fn search(report: &Report) -> Result<String, PlotError> {
    let points = report.trials.iter().map(|trial| (trial.at_ns as f64 / 1e9, trial.load)).collect();
    let all = [Curve { name: "load".into(), points, look: Look::Line }];
    let titles = Titles { title: "The search", x: "s", y: "load per second" };
    curves(&titles, &all, Scale::Linear, Scale::Linear)
}

/// Distributions of latency, and of the floor.
fn distributions(latency: &crate::model::Latency) -> Vec<Curve> {
    let curve = |name: String, beyond: &[(u64, f64)]| {
        let every = beyond.len().div_ceil(MOST_POINTS).max(1);
        let points = beyond.iter().step_by(every).map(|(at, share)| (*at as f64, *share));
        Curve { name, points: points.collect(), look: Look::Line }
    };
    let mut all = Vec::new();
    if !latency.scheduled.beyond.is_empty() {
        let name = format!("{} at {}", latency.class, rate(latency.load));
        all.push(curve(name, &latency.scheduled.beyond));
    }
    if let Some(floor) = latency.floor.as_ref().filter(|floor| !floor.beyond.is_empty()) {
        all.push(curve("back to back".into(), &floor.beyond));
    }
    all
}

/// Plots the places at which packets were lost, by load.
fn books(shown: &[&Trial]) -> Result<String, PlotError> {
    let labels: Vec<String> = shown.iter().map(|trial| rate(trial.load)).collect();
    let sums: Vec<_> = shown.iter().map(|trial| tables::sum(trial)).collect();
    let mut sets: Vec<Line> = Vec::new();
    let mut add = |name: &str, of: &dyn Fn(usize) -> u64| {
        let values: Vec<Option<f64>> = (0..sums.len()).map(|at| Some(of(at) as f64)).collect();
        if values.iter().flatten().any(|value| *value > 0.0) {
            sets.push((name.to_owned(), values));
        }
    };
    add("unsent", &|at| sums[at].unsent_late.saturating_add(sums[at].unsent_no_room));
    for (row, (_, text, _)) in crate::Books::default().losses().into_iter().enumerate() {
        add(text, &|at| sums[at].losses()[row].2);
    }
    add("unexplained", &|at| sums[at].unexplained().max(0) as u64);
    let titles = Titles { title: "Where packets were lost", x: "", y: "packets" };
    bars(&titles, &labels, &sets, true)
}
