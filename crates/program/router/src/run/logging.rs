//! Targets of the router's log.

use std::fmt::{self, Write as _};
use std::fs::OpenOptions;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::SystemTime;
use thalweg_config::StartupConfig;
use thalweg_files::Appended;
use thalweg_graph::log;
use thalweg_terminal::log::Log;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Keeps the last lines for `show logging` and the binary API.
struct Keep;

impl<S: tracing::Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let meta = event.metadata();
        let level = match *meta.level() {
            tracing::Level::ERROR => log::Level::Error,
            tracing::Level::WARN => log::Level::Warning,
            tracing::Level::INFO => log::Level::Info,
            _ => log::Level::Debug,
        };
        let class = class(meta.target());
        let mut text = Text::default();
        event.record(&mut text);
        let message = text.message + &text.fields;
        log::keep(log::Line { at: SystemTime::now(), level, class, message });
    }
}

/// Name of this crate in events.
const OWN: &str = env!("CARGO_CRATE_NAME");

/// The class of an event: the crate that it is from. This crate is the router as a whole.
fn class(target: &str) -> String {
    match target.split("::").next().unwrap_or_default() {
        OWN => "thalweg".into(),
        other => other.strip_prefix("thalweg_").unwrap_or(other).replace('_', "-"),
    }
}

/// An event's text: the message, and behind it what it says besides.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Sends the log to `unix { log FILE }`, or else to standard error.
///
/// The level is that of `logging { default-log-level }`, or `info`; the environment variable
/// `THALWEG_LOG` (`error`, `warn`, `info`, `debug`, `trace`, `off`) overrides it.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn start(config: &StartupConfig) -> io::Result<Log> {
    let from_config = config.logging.default_log_level.as_deref().map(level);
    let from_env = std::env::var("THALWEG_LOG").ok().map(|word| level(&word));
    let level = from_env.or(from_config).unwrap_or(LevelFilter::INFO);
    let all = tracing_subscriber::registry().with(level).with(Keep);
    let log = tracing_subscriber::fmt::layer().with_target(false);
    let (to, colour): (Box<dyn Write + Send>, bool) = match &config.unix.log {
        Some(path) => (open(path)?, false),
        None => (Box::new(io::stderr()), io::stderr().is_terminal() && !config.unix.nocolor),
    };
    let lines = Log::new();
    lines.begin(to)?;
    let queue = lines.clone();
    let log = log.with_ansi(colour).with_writer(move || queue.line());
    // Only a second start in one process, in a test, meets another log.
    let _ = all.with(log).try_init();
    Ok(lines)
}

/// Opens the log: a file that only its owner reads, no link followed. A terminal or `/dev/null` is
/// fine, too.
fn open(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    let is_device = std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_char_device());
    Ok(match is_device {
        true => Box::new(OpenOptions::new().append(true).open(path)?),
        false => Box::new(Appended::open(path).map_err(|e| e.source)?),
    })
}

/// The level of a word, as syslog and VPP call them; `info` for what is none.
fn level(word: &str) -> LevelFilter {
    match word.to_ascii_lowercase().as_str() {
        "disabled" | "off" => LevelFilter::OFF,
        "emerg" | "alert" | "crit" | "err" | "error" => LevelFilter::ERROR,
        "warn" | "warning" => LevelFilter::WARN,
        "debug" => LevelFilter::DEBUG,
        "trace" => LevelFilter::TRACE,
        _ => LevelFilter::INFO,
    }
}

#[cfg(test)]
mod tests {
    use super::class;

    #[test]
    fn classes_are_names_of_crates() {
        assert_eq!(class(module_path!()), "thalweg");
        assert_eq!(class("thalweg_feat_mss_clamp::state"), "feat-mss-clamp");
    }
}
