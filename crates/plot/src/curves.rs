//! Curves of numbers over numbers.

use plotters::prelude::*;

use super::{COLOURS, PlotError, Titles, draw, legend};

/// Scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Linear, from 0.
    Linear,
    /// Logarithmic; values of 0 and less are left out.
    Log,
    /// Logarithmic, with 0 and values up to this one next to each other.
    LogFrom(f64),
}

/// Look of a curve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Look {
    /// A line.
    #[default]
    Line,
    /// Dots.
    Dots,
    /// An upright line at each of the points' places.
    Bounds,
}

/// Points with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name.
    pub name: String,
    /// Points, in the order of a line.
    pub points: Vec<(f64, f64)>,
    /// Look.
    pub look: Look,
}

/// Greatest number that is drawn: axes of greater ones have no marks that a number can hold.
const MOST: f64 = 1e15;

impl Scale {
    fn place(self, value: f64) -> Option<f64> {
        match self {
            _ if !value.is_finite() || value.abs() > MOST => None,
            Scale::Linear => Some(value),
            Scale::Log => (value > 0.0).then(|| value.log10()),
            Scale::LogFrom(least) if value <= least => Some(value.max(0.0) / least),
            Scale::LogFrom(least) => Some(1.0 + (value / least).log10()),
        }
    }

    fn value(self, place: f64) -> f64 {
        match self {
            Scale::Linear => place,
            Scale::Log => 10f64.powf(place),
            Scale::LogFrom(least) if place <= 1.0 => place * least,
            Scale::LogFrom(least) => least * 10f64.powf(place - 1.0),
        }
    }

    fn range(self, places: impl Iterator<Item = f64>) -> (f64, f64) {
        let (least, most) =
            places.fold((f64::MAX, f64::MIN), |(a, b), place| (a.min(place), b.max(place)));
        let (least, most) = if least > most { (0.0, 1.0) } else { (least, most) };
        let least = match self {
            Scale::Linear | Scale::LogFrom(_) => least.min(0.0),
            Scale::Log => least,
        };
        // Marks on an axis need some distance, compared with the numbers at them.
        let narrow = most - least < 1e-9_f64.max(most.abs() * 1e-6);
        (least, if narrow { least + most.abs().max(1.0) } else { most + (most - least) * 0.05 })
    }
}

/// A number with at most three digits that count.
fn short(value: f64) -> String {
    let (value, suffix) = match value.abs() {
        1e9.. => (value / 1e9, "G"),
        1e6.. => (value / 1e6, "M"),
        1e3.. => (value / 1e3, "k"),
        _ => (value, ""),
    };
    match value.abs() {
        0.0 => "0".into(),
        100.0.. => format!("{value:.0}{suffix}"),
        10.0.. => format!("{:.1}{suffix}", value),
        0.01.. => format!("{value:.2}{suffix}"),
        _ => format!("{value:.0e}"),
    }
}

/// Draws curves.
///
/// # Errors
/// [`PlotError`].
pub fn curves(titles: &Titles, all: &[Curve], x: Scale, y: Scale) -> Result<String, PlotError> {
    let place = |(a, b): &(f64, f64)| Some((x.place(*a)?, y.place(*b)?));
    let placed: Vec<Vec<(f64, f64)>> =
        all.iter().map(|curve| curve.points.iter().filter_map(place).collect()).collect();
    let (left, right) = x.range(placed.iter().flatten().map(|point| point.0));
    let (low, high) = y.range(placed.iter().flatten().map(|point| point.1));
    draw(titles, |root| {
        let mut chart = ChartBuilder::on(root)
            .margin(10)
            .x_label_area_size(44)
            .y_label_area_size(64)
            .build_cartesian_2d(left..right, low..high)?;
        chart
            .configure_mesh()
            .x_labels(8)
            .y_labels(8)
            .x_label_formatter(&|at: &f64| short(x.value(*at)))
            .y_label_formatter(&|at: &f64| short(y.value(*at)))
            .x_desc(titles.x)
            .y_desc(titles.y)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (n, (curve, points)) in all.iter().zip(&placed).enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            let series = match curve.look {
                Look::Line => {
                    chart.draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))?
                }
                Look::Dots => {
                    let dots = points.iter().map(|point| Circle::new(*point, 4, colour.filled()));
                    chart.draw_series(dots)?
                }
                Look::Bounds => {
                    let upright = points.iter().map(|(at, _)| {
                        PathElement::new([(*at, low), (*at, high)], colour.stroke_width(1))
                    });
                    chart.draw_series(upright)?
                }
            };
            series.label(&curve.name).legend(move |(x, y)| {
                Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled())
            });
        }
        legend(&mut chart, SeriesLabelPosition::UpperLeft)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_values_agree() {
        for scale in [Scale::Linear, Scale::Log, Scale::LogFrom(1e-6)] {
            for value in [1e-7, 1e-6, 0.5, 1.0, 1e9] {
                let place = scale.place(value).unwrap();
                assert!((scale.value(place) / value - 1.0).abs() < 1e-9, "{scale:?} {value}");
            }
        }
        assert_eq!(Scale::LogFrom(1e-6).place(0.0), Some(0.0));
        assert_eq!((Scale::Log.place(0.0), Scale::Linear.place(f64::NAN)), (None, None));
    }

    #[test]
    fn curves_are_drawn_whatever_their_points() {
        let titles = Titles { title: "Loss by rate", x: "packets/s", y: "share" };
        let points = [
            vec![],
            vec![(0.0, 0.0)],
            vec![(1e6, 1e-6), (2e6, 0.5), (f64::NAN, 1.0), (f64::INFINITY, -1.0)],
            // Spans like these kept the drawing of axes busy without end.
            vec![(1e300, 1e-300), (-1e300, 1e15), (1e15, 1e15)],
            vec![(1e15, 1e15), (1e15 + 1.0, 1e15 + 1.0)],
        ];
        for points in points {
            for look in [Look::Line, Look::Dots, Look::Bounds] {
                for scale in [Scale::Linear, Scale::Log, Scale::LogFrom(1e-6)] {
                    let curve = Curve { name: "trials".into(), points: points.clone(), look };
                    let svg = curves(&titles, &[curve], scale, scale).unwrap();
                    assert!(svg.starts_with("<svg") && svg.contains("Loss by rate"));
                }
            }
        }
    }
}
