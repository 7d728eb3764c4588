//! Where the router's log goes.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Mutex;
use thalweg_config::StartupConfig;
use tracing::level_filters::LevelFilter;

/// Sends the log to `unix { log FILE }`, or else to standard error.
///
/// The level is that of `logging { default-log-level }`, or `info`; the environment variable
/// `THALWEG_LOG` (`error`, `warn`, `info`, `debug`, `trace`, `off`) overrides it.
///
/// # Errors
/// If the file cannot be opened.
pub(super) fn start(config: &StartupConfig) -> io::Result<()> {
    let from_config = config.logging.default_log_level.as_deref().map(level);
    let from_env = std::env::var("THALWEG_LOG").ok().map(|word| level(&word));
    let level = from_env.or(from_config).unwrap_or(LevelFilter::INFO);
    let log = tracing_subscriber::fmt().with_max_level(level).with_target(false);
    let started = match &config.unix.log {
        Some(path) => {
            let file = open(path)?;
            log.with_ansi(false).with_writer(Mutex::new(file)).try_init()
        }
        None => {
            let colour = io::IsTerminal::is_terminal(&io::stderr()) && !config.unix.nocolor;
            log.with_ansi(colour).with_writer(io::stderr).try_init()
        }
    };
    // Only a second start in one process, in a test, meets another log.
    drop(started);
    Ok(())
}

fn open(path: &Path) -> io::Result<std::fs::File> {
    OpenOptions::new().append(true).create(true).open(path)
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
