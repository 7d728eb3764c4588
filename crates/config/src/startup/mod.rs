//! The startup configuration: stanzas such as `unix { nodaemon cli-listen /run/x/cli.sock }`.
//!
//! Text is cut into tokens ([`source`]), these are put into a tree ([`tree`]), and each stanza that
//! Thalweg knows is read from the tree by its own function ([`sections`], [`lenient`]). `unix`,
//! `cpu` and `buffers` are fully known, so that a misspelt word in one of them is an error. Any
//! other unknown word is a warning, as is an unknown stanza: configurations written for VPP name
//! plugins, devices and words that do not exist here.

mod lenient;
mod model;
mod reader;
mod report;
mod sections;
mod source;
mod tree;
mod values;

use std::path::Path;

pub use model::{
    ApiSegmentConfig, ApiTraceConfig, BuffersConfig, CliListen, CoreDumpSize, CpuConfig,
    LoggingConfig, MemoryConfig, MetricsConfig, PageSize, PhysmemConfig, PluginRule, PluginsConfig,
    SchedulerPolicy, SocksvrConfig, StartupConfig, StatsegConfig, UnixConfig,
};
pub use report::{Problem, StartupError, Warning};
pub use tree::{Item, Stanza, Word};
pub use values::{CoreList, MAX_CORE, MAX_WORKERS, parse_size};

use report::Report;
use source::Source;

/// Maximum size of a file of stanzas in bytes.
const MAX_FILE: u64 = 1 << 20;

impl StartupConfig {
    /// Reads the arguments of the program, without its own name: either `-c FILE`, optionally
    /// followed by further stanzas, or stanzas alone.
    ///
    /// # Errors
    /// If the file cannot be read, or the configuration has errors; all of them are reported.
    pub fn from_args<A: AsRef<str>>(args: &[A]) -> Result<(Self, Vec<Warning>), StartupError> {
        let mut config = StartupConfig::default();
        let mut warnings = Vec::new();
        let mut rest = args;
        if let [flag, tail @ ..] = args
            && flag.as_ref() == "-c"
        {
            let [file, tail @ ..] = tail else { return Err(StartupError::NoFile) };
            let path = Path::new(file.as_ref());
            let bytes = thalweg_files::read(path, MAX_FILE)?;
            let text = String::from_utf8_lossy(&bytes);
            warnings.extend(config.apply(Source::file(file.as_ref(), &text))?);
            rest = tail;
        }
        warnings.extend(config.apply(Source::args(rest))?);
        Ok((config, warnings))
    }

    /// Parses a file's text, in which `#` at the start of a word makes the rest of the line a
    /// comment. `name` is for messages.
    ///
    /// # Errors
    /// If there are errors; all of them are reported.
    pub fn parse_file(name: &str, text: &str) -> Result<(Self, Vec<Warning>), StartupError> {
        let mut config = StartupConfig::default();
        let warnings = config.apply(Source::file(name, text))?;
        Ok((config, warnings))
    }

    /// Parses arguments, joined by spaces.
    ///
    /// # Errors
    /// If there are errors; all of them are reported.
    pub fn parse_args<A: AsRef<str>>(args: &[A]) -> Result<(Self, Vec<Warning>), StartupError> {
        let mut config = StartupConfig::default();
        let warnings = config.apply(Source::args(args))?;
        Ok((config, warnings))
    }

    /// Returns the last stanza of this name, for a feature that reads its own.
    pub fn stanza(&self, name: &str) -> Option<&Stanza> {
        self.stanzas.iter().rev().find(|stanza| stanza.name.text == name)
    }

    /// Applies a text on top of earlier settings; a later word wins.
    fn apply(&mut self, source: Source) -> Result<Vec<Warning>, StartupError> {
        let mut report = Report::new(source);
        let tokens = source::tokens(&mut report);
        let stanzas = tree::stanzas(&tokens, &mut report);
        for stanza in &stanzas {
            if !sections::read(self, stanza, &mut report) {
                lenient::read(self, stanza, &mut report);
            }
        }
        sections::check(self, &stanzas, &mut report);
        self.stanzas.extend(stanzas);
        report.finish()
    }
}

/// Parses arbitrary bytes as a file and as arguments, without a panic; for fuzzing.
pub fn fuzz_startup(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let args: Vec<&str> = text.split('\0').collect();
    for result in [StartupConfig::parse_file("fuzz", &text), StartupConfig::parse_args(&args)] {
        match result {
            Ok((config, warnings)) => {
                let _ = format!("{config:?}");
                warnings.iter().for_each(|warning| drop(warning.to_string()));
            }
            Err(error) => drop(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests;
