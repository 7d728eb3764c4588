//! The parsed startup configuration. `None` means "not set".

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use super::tree::Stanza;
use super::values::CoreList;

/// A whole startup configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartupConfig {
    /// `unix { }`: the process and its command line.
    pub unix: UnixConfig,
    /// `cpu { }`: threads and where they run.
    pub cpu: CpuConfig,
    /// `buffers { }`: packet buffers.
    pub buffers: BuffersConfig,
    /// `memory { }` and `heapsize`.
    pub memory: MemoryConfig,
    /// `physmem { }`.
    pub physmem: PhysmemConfig,
    /// `api-segment { }`: the binary API over shared memory, of which only the prefix and the
    /// owner matter here.
    pub api_segment: ApiSegmentConfig,
    /// `api-trace { }`.
    pub api_trace: ApiTraceConfig,
    /// `socksvr { }`: the binary API over a socket.
    pub socksvr: SocksvrConfig,
    /// `statseg { }`: the statistics segment.
    pub statseg: StatsegConfig,
    /// `metrics { }`: counters over HTTP.
    pub metrics: MetricsConfig,
    /// `logging { }`.
    pub logging: LoggingConfig,
    /// `plugins { }` and `plugin_path`.
    pub plugins: PluginsConfig,
    /// All stanzas as they were written, in order.
    pub stanzas: Vec<Stanza>,
}

/// `unix { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnixConfig {
    /// Stay in the foreground.
    pub nodaemon: bool,
    /// Log to standard error instead of syslog.
    pub nosyslog: bool,
    /// Command line on standard input and output; implies `nodaemon`.
    pub interactive: bool,
    /// No colours in the command line's output.
    pub nocolor: bool,
    /// No greeting (`nobanner`, or `cli-no-banner`).
    pub nobanner: bool,
    /// No pager (`cli-no-pager`).
    pub cli_no_pager: bool,
    /// Read whole lines from standard input (`cli-line-mode`).
    pub cli_line_mode: bool,
    /// Address of the command line's socket (`cli-listen`).
    pub cli_listen: Option<CliListen>,
    /// The prompt, with its trailing space if wanted.
    pub cli_prompt: Option<String>,
    /// Number of history lines; 0 keeps none.
    pub cli_history_limit: Option<u32>,
    /// Number of lines that the pager keeps; 0 switches it off.
    pub cli_pager_buffer_limit: Option<u32>,
    /// File of commands to run at startup (`exec`, or `startup-config`).
    pub exec: Option<PathBuf>,
    /// Log file of commands.
    pub log: Option<PathBuf>,
    /// Directory for sockets.
    pub runtime_dir: Option<PathBuf>,
    /// Directories below which clients may name files to write.
    pub files: Vec<PathBuf>,
    /// File for the process id.
    pub pidfile: Option<PathBuf>,
    /// Group to run as, by name or number.
    pub gid: Option<String>,
    /// Dump all mapped memory when crashing.
    pub full_coredump: bool,
    /// Size limit of such a core dump.
    pub coredump_size: Option<CoreDumpSize>,
    /// Microseconds to sleep in each polling loop.
    pub poll_sleep_usec: Option<u32>,
}

/// `coredump-size`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreDumpSize {
    /// No limit.
    Unlimited,
    /// Number of bytes, at most.
    Bytes(u64),
}

/// Address of `cli-listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliListen {
    /// A Unix socket; a name without directory is in the runtime directory.
    Path(PathBuf),
    /// `host:port`, over TCP.
    Tcp {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
}

impl CliListen {
    /// Parses an address: a word that ends in `:PORT` and contains no slash is a TCP address, any
    /// other is a path.
    pub(super) fn parse(text: &str) -> Result<CliListen, String> {
        let Some((host, port)) = text.rsplit_once(':').filter(|_| !text.contains('/')) else {
            return Ok(CliListen::Path(text.into()));
        };
        match port.parse() {
            Ok(port) if port > 0 && !host.is_empty() => {
                let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
                Ok(CliListen::Tcp { host, port })
            }
            _ => Err(format!("{text} is neither a path nor host:port with a port from 1 to 65535")),
        }
    }

    /// Returns the socket's path, given the runtime directory.
    pub fn socket_path(&self, runtime_dir: &Path) -> Option<PathBuf> {
        match self {
            CliListen::Path(path) if path.components().count() == 1 && path.is_relative() => {
                Some(runtime_dir.join(path))
            }
            CliListen::Path(path) => Some(path.clone()),
            CliListen::Tcp { .. } => None,
        }
    }

    /// Resolves `host:port`; returns no addresses for a path.
    ///
    /// # Errors
    /// If the name cannot be resolved.
    pub fn socket_addrs(&self) -> std::io::Result<Vec<SocketAddr>> {
        match self {
            CliListen::Path(_) => Ok(Vec::new()),
            CliListen::Tcp { host, port } => {
                Ok((host.as_str(), *port).to_socket_addrs()?.collect())
            }
        }
    }
}

/// `cpu { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuConfig {
    /// Core of the main thread.
    pub main_core: Option<u16>,
    /// Number of workers, on the first free cores.
    pub workers: Option<u16>,
    /// One worker on each of these cores; mutually exclusive with `workers`.
    pub corelist_workers: Option<CoreList>,
    /// Cores to leave alone, counted from the lowest.
    pub skip_cores: u16,
    /// Count cores within the process's affinity mask, instead of the machine's.
    pub relative: bool,
    /// Maximum time in microseconds that an idle processor may take to wake up; 0 prevents it from
    /// sleeping. Thalweg's own setting.
    pub latency: Option<u32>,
    /// Prefix of thread names.
    pub thread_prefix: Option<String>,
    /// Scheduling policy of the threads.
    pub scheduler_policy: Option<SchedulerPolicy>,
    /// Scheduling priority, 1 to 99, for `fifo` and `rr`.
    pub scheduler_priority: Option<u8>,
}

impl CpuConfig {
    /// Returns the number of workers; 0 means that the main thread does all the work.
    pub fn worker_count(&self) -> usize {
        match &self.corelist_workers {
            Some(list) => list.len(),
            None => self.workers.unwrap_or(0).into(),
        }
    }
}

/// `scheduler-policy`, see sched(7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchedulerPolicy {
    /// `other`
    Other,
    /// `batch`
    Batch,
    /// `idle`
    Idle,
    /// `fifo`
    Fifo,
    /// `rr`
    RoundRobin,
}

/// `buffers { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BuffersConfig {
    /// Number of buffers per NUMA node.
    pub buffers_per_numa: Option<u32>,
    /// Bytes of packet data in a buffer (`default data-size`).
    pub default_data_size: Option<u32>,
    /// Page size of the buffers.
    pub page_size: PageSize,
}

/// Size of memory pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// The system's ordinary pages (`default`), or the program's preference if not set.
    #[default]
    Default,
    /// The system's default huge pages (`default-hugepage`).
    DefaultHugepage,
    /// Pages of this many bytes, a power of two.
    Bytes(u64),
}

/// `memory { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Bytes of the main heap; Thalweg has no such heap, and no limit.
    pub main_heap_size: Option<u64>,
    /// Page size of the main heap.
    pub main_heap_page_size: PageSize,
    /// Default huge page size.
    pub default_hugepage_size: Option<u64>,
}

/// `physmem { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhysmemConfig {
    /// Maximum bytes for packet buffers.
    pub max_size: Option<u64>,
}

/// `api-segment { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiSegmentConfig {
    /// Prefix that distinguishes several instances.
    pub prefix: Option<String>,
    /// Owner of the socket, by name or number.
    pub uid: Option<String>,
    /// Group of the socket, by name or number.
    pub gid: Option<String>,
}

/// `api-trace { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiTraceConfig {
    /// Trace API messages from the start.
    pub on: bool,
    /// Number of messages to keep.
    pub nitems: Option<u32>,
}

/// `socksvr { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocksvrConfig {
    /// True if the stanza is present, be it empty or `default`.
    pub given: bool,
    /// Path of the socket; by default `api.sock` in the runtime directory.
    pub socket_name: Option<PathBuf>,
    /// Permissions of the socket; by default 0660.
    pub mode: Option<u32>,
    /// Group of the socket, by name or number.
    pub group: Option<String>,
}

/// `statseg { … }`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatsegConfig {
    /// Path of the socket; by default `stats.sock` in the runtime directory.
    pub socket_name: Option<PathBuf>,
    /// Size of the segment in bytes.
    pub size: Option<u64>,
    /// Page size of the segment.
    pub page_size: PageSize,
    /// True to include each node's counters.
    pub per_node_counters: Option<bool>,
    /// Seconds between updates.
    pub update_interval: Option<f64>,
}

/// `metrics { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Address of the HTTP server as `host:port`; none by default.
    pub listen: Option<String>,
}

/// `logging { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggingConfig {
    /// Lowest severity that is kept (`default-log-level`).
    pub default_log_level: Option<String>,
    /// Lowest severity that is sent to syslog (`default-syslog-log-level`).
    pub default_syslog_log_level: Option<String>,
    /// Number of entries to keep.
    pub size: Option<u32>,
}

/// `plugins { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Directories of plugins; Thalweg loads nothing from them.
    pub paths: Vec<PathBuf>,
    /// Rules for plugins, in order; the name `default` matches all others.
    pub rules: Vec<PluginRule>,
}

/// `plugin NAME { enable | disable }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRule {
    /// File name such as `nat_plugin.so`, or `default`.
    pub name: String,
    /// True to enable it.
    pub enable: bool,
}

impl PluginsConfig {
    /// Returns true if a plugin is enabled: by its own rule, else the rule for all, else by
    /// default.
    pub fn enabled(&self, name: &str) -> bool {
        let rule = |wanted: &str| self.rules.iter().rev().find(|rule| rule.name == wanted);
        rule(name).or_else(|| rule("default")).is_none_or(|rule| rule.enable)
    }
}
