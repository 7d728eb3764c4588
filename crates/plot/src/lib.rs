//! Plots as SVG that takes the colours of the page it is on, and the style of such pages.

#![forbid(unsafe_code)]

mod curves;

use plotters::coord::Shift;
use plotters::prelude::*;

pub use curves::{Curve, Look, Scale, curves};

/// Style of pages with tables and plots, in light and dark.
pub const STYLE: &str = include_str!("page.css");

/// A plot that cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot draw: {0}")]
pub struct PlotError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PlotError {
    fn from(error: DrawingAreaErrorKind<E>) -> PlotError {
        PlotError(error.to_string())
    }
}

/// A plot as a file of its own, on white.
pub fn standalone(svg: &str) -> String {
    svg.replacen("<svg ", "<svg style=\"background:#fff;color:#222\" ", 1)
}

/// A text in HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const SIZE: (u32, u32) = (760, 380);
/// Readable on white and on black.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x2f, 0x7f, 0xd6),
    RGBColor(0xd9, 0x82, 0x1b),
    RGBColor(0x2b, 0x9e, 0x6d),
    RGBColor(0xc9, 0x4a, 0x4a),
    RGBColor(0x8a, 0x63, 0xc7),
    RGBColor(0x80, 0x80, 0x80),
    RGBColor(0x1f, 0x9a, 0xa8),
];

/// A line of a plot: its name and a value for each of the axis's labels.
pub type Line = (String, Vec<Option<f64>>);

/// Titles of a plot and of its axes.
#[derive(Clone, Copy, Debug)]
pub struct Titles {
    /// The plot's.
    pub title: &'static str,
    /// The horizontal axis's.
    pub x: &'static str,
    /// The vertical axis's.
    pub y: &'static str,
}

/// Draws, and lets text and axes have the colour of the page's text.
fn draw(
    titles: &Titles,
    paint: impl FnOnce(&DrawingArea<SVGBackend<'_>, Shift>) -> Result<(), PlotError>,
) -> Result<String, PlotError> {
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let root =
            root.titled(titles.title, ("sans-serif", 18)).map_err(|e| PlotError(e.to_string()))?;
        paint(&root)?;
        root.present().map_err(|e| PlotError(e.to_string()))?;
    }
    Ok(svg.replace("#000000", "currentColor"))
}

fn most(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|l| &l.1).flatten().fold(0.0, |most: f64, v| most.max(*v))
}

/// Lines over labels; `log`: with a logarithmic vertical axis.
///
/// # Errors
/// [`PlotError`].
pub fn line_plot(
    titles: &Titles,
    labels: &[String],
    lines: &[Line],
    log: bool,
) -> Result<String, PlotError> {
    let scale = |v: f64| if log { v.max(1e-3).log10() } else { v };
    let values = || lines.iter().flat_map(|l| &l.1).flatten().map(|v| scale(*v));
    let top = values().fold(f64::MIN, f64::max);
    let low = if log { values().fold(f64::MAX, f64::min).floor() } else { 0.0 };
    let label = |x: &f64| match labels.get(x.round() as usize) {
        Some(text) if (x - x.round()).abs() < 0.01 => text.clone(),
        _ => String::new(),
    };
    let last = labels.len().saturating_sub(1) as f64;
    draw(titles, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(-0.2..last + 0.2, low..top + (top - low).max(0.1) * 0.1)?;
        let y_label = |v: &f64| {
            let v = if log { 10f64.powf(*v) } else { *v };
            if v >= 10.0 { format!("{v:.0}") } else { format!("{v:.2}") }
        };
        chart
            .configure_mesh()
            .x_labels(labels.len() * 4)
            .x_label_formatter(&label)
            .y_label_formatter(&y_label)
            .x_desc(titles.x)
            .y_desc(titles.y)
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (i, (name, values)) in lines.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let points: Vec<(f64, f64)> =
                (0..).zip(values).filter_map(|(x, v)| Some((f64::from(x), scale((*v)?)))).collect();
            let line = LineSeries::new(points.clone(), colour.stroke_width(2));
            chart.draw_series(line)?.label(name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
            chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled())))?;
        }
        legend(&mut chart, SeriesLabelPosition::LowerLeft)
    })
}

type Chart<'a, 'b> = ChartContext<
    'a,
    SVGBackend<'b>,
    Cartesian2d<plotters::coord::types::RangedCoordf64, plotters::coord::types::RangedCoordf64>,
>;

fn legend<'a, 'b: 'a>(chart: &mut Chart<'a, 'b>, at: SeriesLabelPosition) -> Result<(), PlotError> {
    let mut labels = chart.configure_series_labels();
    labels.position(at).border_style(TRANSPARENT).draw().map_err(|e| PlotError(e.to_string()))
}

/// Bars over labels: next to each other, or on top of each other.
///
/// # Errors
/// [`PlotError`].
pub fn bars(
    titles: &Titles,
    labels: &[String],
    sets: &[Line],
    stacked: bool,
) -> Result<String, PlotError> {
    let sum = |at: usize| sets.iter().filter_map(|s| s.1.get(at).copied().flatten()).sum::<f64>();
    let top = if stacked { (0..labels.len()).map(sum).fold(0.0, f64::max) } else { most(sets) };
    let label = |x: &f64| match labels.get(x.floor() as usize) {
        Some(text) if (x - x.floor() - 0.5).abs() < 0.01 => text.clone(),
        _ => String::new(),
    };
    draw(titles, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(10)
            .x_label_area_size(32)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..labels.len().max(1) as f64, 0.0..top.clamp(1.0, 1e15) * 1.1)?;
        chart
            .configure_mesh()
            .x_labels(labels.len() * 2 + 1)
            .x_label_formatter(&label)
            .y_desc(titles.y)
            .disable_x_mesh()
            .light_line_style(TRANSPARENT)
            .draw()?;
        let mut floor = vec![0.0; labels.len()];
        let width = if stacked { 0.6 } else { 0.8 / sets.len().max(1) as f64 };
        for (i, (name, values)) in sets.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let left = if stacked { 0.2 } else { 0.1 + width * i as f64 };
            let mut boxes = Vec::new();
            for (at, value) in values.iter().enumerate() {
                let (Some(v), Some(low)) = (value, floor.get_mut(at)) else { continue };
                let x = at as f64 + left;
                boxes.push(Rectangle::new([(x, *low), (x + width, *low + v)], colour.filled()));
                if stacked {
                    *low += v;
                }
            }
            chart.draw_series(boxes)?.label(name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}
