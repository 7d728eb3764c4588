//! Metrics as text, for programs that scrape them over HTTP: OpenMetrics 1.0, and the older format
//! of Prometheus (0.0.4) for clients that do not accept it.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use std::fmt;

/// Text format of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.0.
    OpenMetrics,
    /// Prometheus' own, 0.0.4.
    Prometheus,
}

impl Format {
    /// Returns the format for a client that accepts this (the value of an HTTP `Accept`). Quality
    /// values are ignored: a client that names OpenMetrics gets it.
    pub fn accepted(accept: &str) -> Format {
        match accept.contains("application/openmetrics-text") {
            true => Format::OpenMetrics,
            false => Format::Prometheus,
        }
    }

    /// Returns its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

/// A metric's value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A count.
    Int(u64),
    /// Seconds and ratios.
    Float(f64),
}

impl From<u64> for Number {
    fn from(n: u64) -> Number {
        Number::Int(n)
    }
}

impl From<usize> for Number {
    fn from(n: usize) -> Number {
        Number::Int(n as u64)
    }
}

impl From<f64> for Number {
    fn from(n: f64) -> Number {
        Number::Float(n)
    }
}

impl From<bool> for Number {
    fn from(is: bool) -> Number {
        Number::Int(is.into())
    }
}

/// Metrics as they were at one time.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Writes all metrics.
    ///
    /// # Errors
    /// Only those of `page`.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result;
}

/// The page that a [`Source`] writes to.
pub struct Page<'a>(DescriptorEncoder<'a>);

impl Page<'_> {
    /// Adds a counter; `_total` is appended to its name.
    ///
    /// # Errors
    /// The errors of `each`, which adds the values.
    pub fn counter(
        &mut self,
        name: &str,
        help: &str,
        each: impl FnOnce(&mut Values<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.metric(name, help, MetricType::Counter, each)
    }

    /// Adds a gauge.
    ///
    /// # Errors
    /// See [`counter`](Self::counter).
    pub fn gauge(
        &mut self,
        name: &str,
        help: &str,
        each: impl FnOnce(&mut Values<'_>) -> fmt::Result,
    ) -> fmt::Result {
        self.metric(name, help, MetricType::Gauge, each)
    }

    fn metric(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        each: impl FnOnce(&mut Values<'_>) -> fmt::Result,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, kind)?;
        each(&mut Values { encoder, kind })
    }
}

/// The values of a metric.
pub struct Values<'a> {
    encoder: MetricEncoder<'a>,
    kind: MetricType,
}

impl Values<'_> {
    /// Adds the value for these labels.
    ///
    /// # Errors
    /// If it cannot be written, which does not happen in memory.
    pub fn add(&mut self, labels: &[(&str, &str)], value: impl Into<Number>) -> fmt::Result {
        let (kind, value) = (self.kind, value.into());
        if labels.is_empty() {
            // An empty label set would be written as empty braces; a plain metric has none.
            return write(&mut self.encoder, kind, value);
        }
        write(&mut self.encoder.encode_family(&labels)?, kind, value)
    }
}

fn write(encoder: &mut MetricEncoder<'_>, kind: MetricType, value: Number) -> fmt::Result {
    match (kind, value) {
        (MetricType::Counter, Number::Int(n)) => {
            encoder.encode_counter::<[(&str, &str); 0], _, u64>(&n, None)
        }
        (MetricType::Counter, Number::Float(n)) => {
            encoder.encode_counter::<[(&str, &str); 0], _, u64>(&n, None)
        }
        // Integers stay integers as long as they fit.
        (_, Number::Int(n)) => match i64::try_from(n) {
            Ok(n) => encoder.encode_gauge(&n),
            Err(_) => encoder.encode_gauge(&(n as f64)),
        },
        (_, Number::Float(n)) => encoder.encode_gauge(&n),
    }
}

#[derive(Debug)]
struct Once<S>(S);

impl<S: Source> Collector for Once<S> {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Page(encoder))
    }
}

/// Formats metrics.
pub fn render(source: impl Source, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Once(source)));
    let mut text = String::new();
    // Writing to memory does not fail.
    let _ = text::encode(&mut text, &registry);
    match format {
        Format::OpenMetrics => text,
        Format::Prometheus => older(&text),
    }
}

/// Converts to the older format, in which the description of a counter has the same name as its
/// values.
fn older(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    let mut help = None;
    for line in text.lines() {
        let mut words = line.splitn(4, ' ');
        let what = (words.next(), words.next(), words.next(), words.next());
        match what {
            (Some("#"), Some("HELP"), Some(name), Some(text)) => help = Some((name, text)),
            (Some("#"), Some("TYPE"), Some(name), Some(kind)) => {
                let total = if kind == "counter" { "_total" } else { "" };
                if let Some((name, text)) = help.take() {
                    out.extend(["# HELP ", name, total, " ", text, "\n"]);
                }
                out.extend(["# TYPE ", name, total, " ", kind, "\n"]);
            }
            (Some("#"), ..) => {}
            _ => out.extend([line, "\n"]),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Example;

    impl Source for Example {
        fn write(&self, page: &mut Page<'_>) -> fmt::Result {
            page.counter("lab_packets", "Packets", |v| {
                v.add(&[("interface", "a\"b\\c\nd"), ("direction", "rx")], u64::MAX)?;
                v.add(&[("interface", "pg0"), ("direction", "tx")], 0_u64)
            })?;
            page.gauge("lab_rate", "Rate", |v| v.add(&[], 1.5))?;
            page.gauge("lab_up", "Up", |v| v.add(&[("interface", "pg0")], true))?;
            page.counter("lab_seconds", "Time", |v| v.add(&[], 0.25))
        }
    }

    #[test]
    fn openmetrics() {
        let text = render(Example, Format::OpenMetrics);
        let want = "# HELP lab_packets Packets\n# TYPE lab_packets counter\n\
            lab_packets_total{interface=\"a\\\"b\\\\c\\nd\",direction=\"rx\"} 18446744073709551615\n\
            lab_packets_total{interface=\"pg0\",direction=\"tx\"} 0\n\
            # HELP lab_rate Rate\n# TYPE lab_rate gauge\nlab_rate 1.5\n\
            # HELP lab_up Up\n# TYPE lab_up gauge\nlab_up{interface=\"pg0\"} 1\n\
            # HELP lab_seconds Time\n# TYPE lab_seconds counter\nlab_seconds_total 0.25\n# EOF\n";
        assert_eq!(text, want);
    }

    #[test]
    fn the_older_format() {
        let text = render(Example, Format::Prometheus);
        assert!(text.starts_with(
            "# HELP lab_packets_total Packets\n# TYPE lab_packets_total counter\n\
             lab_packets_total{interface"
        ));
        assert!(text.contains("# TYPE lab_rate gauge\nlab_rate 1.5\n"));
        assert!(!text.contains("EOF"));
    }

    #[test]
    fn clients_choose_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
        assert_eq!(Format::accepted(prometheus), Format::OpenMetrics);
        assert_eq!(Format::accepted("*/*"), Format::Prometheus);
    }
}
