//! What a startup configuration holds once it is read. `None` means "not said".

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
    /// Every stanza as it was written, in order.
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
    /// Where the command line listens.
    pub cli_listen: Option<CliListen>,
    /// The prompt, with its closing blank if there is to be one.
    pub cli_prompt: Option<String>,
    /// Lines of history to keep; 0 keeps none.
    pub cli_history_limit: Option<u32>,
    /// Lines that the pager keeps; 0 switches it off.
    pub cli_pager_buffer_limit: Option<u32>,
    /// File of commands to run at the start (`exec`, or `startup-config`).
    pub exec: Option<PathBuf>,
    /// File that takes the log of commands.
    pub log: Option<PathBuf>,
    /// Directory for sockets.
    pub runtime_dir: Option<PathBuf>,
    /// File that takes the process number.
    pub pidfile: Option<PathBuf>,
    /// Group to run as, by name or number.
    pub gid: Option<String>,
    /// Dump all mapped memory when crashing.
    pub full_coredump: bool,
    /// Size limit of such a dump.
    pub coredump_size: Option<CoreDumpSize>,
    /// Microseconds to sleep in each turn of a polling loop.
    pub poll_sleep_usec: Option<u32>,
}

/// `coredump-size`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoreDumpSize {
    /// No limit.
    Unlimited,
    /// At most this many bytes.
    Bytes(u64),
}

/// `cli-listen`
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
    /// A word that ends in `:PORT` and holds no slash is an address, any other is a path.
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

    /// The socket's path, given the runtime directory.
    pub fn socket_path(&self, runtime_dir: &Path) -> Option<PathBuf> {
        match self {
            CliListen::Path(path) if path.components().count() == 1 && path.is_relative() => {
                Some(runtime_dir.join(path))
            }
            CliListen::Path(path) => Some(path.clone()),
            CliListen::Tcp { .. } => None,
        }
    }

    /// The addresses of `host:port`, none for a path.
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
    /// Number of workers, placed on the first cores that are free.
    pub workers: Option<u16>,
    /// One worker on each of these cores; excludes `workers`.
    pub corelist_workers: Option<CoreList>,
    /// Cores to leave alone, counted from the lowest.
    pub skip_cores: u16,
    /// Count cores within those that the process may use, instead of the machine's.
    pub relative: bool,
    /// How many microseconds a processor that has nothing to do may take to wake up, at most; 0: it
    /// does not sleep. Thalweg's own word.
    pub latency: Option<u32>,
    /// What the names of threads begin with.
    pub thread_prefix: Option<String>,
    /// Scheduling of the threads.
    pub scheduler_policy: Option<SchedulerPolicy>,
    /// Their priority, 1 to 99, with `fifo` and `rr`.
    pub scheduler_priority: Option<u8>,
}

impl CpuConfig {
    /// How many workers are asked for; none means that the main thread does all the work.
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
    /// Pages that hold them.
    pub page_size: PageSize,
}

/// Size of memory pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// The system's ordinary pages (`default`), or what the program prefers if nothing was said.
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
    /// Bytes of the main heap; here there is no such heap, and no limit.
    pub main_heap_size: Option<u64>,
    /// Its pages.
    pub main_heap_page_size: PageSize,
    /// Which huge pages are the default ones.
    pub default_hugepage_size: Option<u64>,
}

/// `physmem { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PhysmemConfig {
    /// Most bytes for packet buffers.
    pub max_size: Option<u64>,
}

/// `api-segment { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiSegmentConfig {
    /// Prefix that tells several instances apart.
    pub prefix: Option<String>,
    /// Owner of the socket, by name or number.
    pub uid: Option<String>,
    /// Group of the socket, by name or number.
    pub gid: Option<String>,
}

/// `api-trace { … }`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApiTraceConfig {
    /// Keep a trace of API messages from the start.
    pub on: bool,
    /// Messages to keep.
    pub nitems: Option<u32>,
}

/// `socksvr { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocksvrConfig {
    /// The stanza is there, be it empty or `default`.
    pub given: bool,
    /// Path of the socket; `api.sock` in the runtime directory if not said.
    pub socket_name: Option<PathBuf>,
    /// Permissions of the socket; 0660 if not said.
    pub mode: Option<u32>,
    /// Group of the socket, by name or number.
    pub group: Option<String>,
}

/// `statseg { … }`
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StatsegConfig {
    /// Path of the socket; `stats.sock` in the runtime directory if not said.
    pub socket_name: Option<PathBuf>,
    /// Bytes of the segment.
    pub size: Option<u64>,
    /// Pages that hold it.
    pub page_size: PageSize,
    /// Whether each node's counters are in it.
    pub per_node_counters: Option<bool>,
    /// Seconds between updates.
    pub update_interval: Option<f64>,
}

/// `metrics { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetricsConfig {
    /// Where they are told, as `host:port`; nowhere if not said.
    pub listen: Option<String>,
}

/// `logging { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggingConfig {
    /// Least severe level that is kept (`default-log-level`).
    pub default_log_level: Option<String>,
    /// Least severe level that goes to syslog (`default-syslog-log-level`).
    pub default_syslog_log_level: Option<String>,
    /// Entries to keep.
    pub size: Option<u32>,
}

/// `plugins { … }`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginsConfig {
    /// Directories to look in; nothing is loaded from them here.
    pub paths: Vec<PathBuf>,
    /// What was said of each plugin, in order; the name `default` stands for all others.
    pub rules: Vec<PluginRule>,
}

/// `plugin NAME { enable | disable }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRule {
    /// File name such as `nat_plugin.so`, or `default`.
    pub name: String,
    /// Whether it is to be there.
    pub enable: bool,
}

impl PluginsConfig {
    /// Whether a plugin is to be there: its own rule decides, then the rule for all, then yes.
    pub fn enabled(&self, name: &str) -> bool {
        let rule = |wanted: &str| self.rules.iter().rev().find(|rule| rule.name == wanted);
        rule(name).or_else(|| rule("default")).is_none_or(|rule| rule.enable)
    }
}
