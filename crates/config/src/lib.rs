//! Thalweg's configuration: the startup configuration, in the grammar of VPP's `startup.conf`, and
//! the declarative configuration, a document ([`declare`]).
//!
//! [`StartupConfig::from_args`] takes the arguments of the program, [`StartupConfig::parse_file`]
//! and [`StartupConfig::parse_args`] the two forms of the text. Errors come with their place, the
//! line they are in and, for misspelt words, the word that was probably meant.

#![forbid(unsafe_code)]

pub mod declare;
mod startup;
mod suggest;

pub use suggest::closest;

pub use startup::{
    ApiSegmentConfig, ApiTraceConfig, BuffersConfig, CliListen, CoreDumpSize, CoreList, CpuConfig,
    Item, LoggingConfig, MAX_CORE, MAX_WORKERS, MemoryConfig, MetricsConfig, PageSize,
    PhysmemConfig, PluginRule, PluginsConfig, Problem, SchedulerPolicy, SocksvrConfig, Stanza,
    StartupConfig, StartupError, StatsegConfig, UnixConfig, Warning, Word, fuzz_startup,
    parse_size,
};
