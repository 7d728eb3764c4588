//! Translates the startup configuration into the layout of the engine: threads on cores, buffers.

use std::fs;
use thalweg_buffer::PoolConfig;
use thalweg_config::{CoreList, CpuConfig, PageSize, StartupConfig};
use thalweg_graph::EngineConfig;

/// Error in the layout of threads or buffers.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum LayoutError {
    /// A core that is not there.
    #[error("cpu {{ {word} }}: core {core} is not online; online cores are {online}")]
    Offline {
        /// The setting that names it.
        word: String,
        /// The core.
        core: usize,
        /// The cores that are online.
        online: String,
    },
    /// A position beyond the cores that the process may use.
    #[error(
        "cpu {{ {word} relative }}: position {position} is beyond the {count} cores that this \
         process may use ({allowed})"
    )]
    Position {
        /// The setting that names it.
        word: String,
        /// The position, from 0.
        position: usize,
        /// Number of cores.
        count: usize,
        /// The cores.
        allowed: String,
    },
    /// More workers than cores.
    #[error(
        "cpu {{ workers {wanted} }}: only {free} cores are free for workers ({cores}); configure \
         fewer, or list cores with `corelist-workers`"
    )]
    TooFew {
        /// Workers asked for.
        wanted: usize,
        /// Cores that are left for workers.
        free: usize,
        /// The cores.
        cores: String,
    },
    /// The system has no huge pages.
    #[error(
        "buffers {{ page-size default-hugepage }}: /proc/meminfo has no huge page size; omit \
         `page-size`"
    )]
    NoHugePages,
}

/// The machine's processor cores, in ascending order.
#[derive(Clone, Debug)]
pub struct Cores {
    /// The cores that are online.
    pub online: Vec<usize>,
    /// The online cores that this process may use.
    pub allowed: Vec<usize>,
}

impl Cores {
    /// Asks the system.
    pub fn of_this_machine() -> Cores {
        let allowed: Vec<usize> = match rustix::thread::sched_getaffinity(None) {
            Ok(set) => (0..rustix::thread::CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect(),
            Err(_) => vec![0],
        };
        let text = fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default();
        let online = match CoreList::parse(text.trim()) {
            Ok(list) => list.cores().iter().map(|n| usize::from(*n)).collect(),
            // Without /sys, what we may use is what we know.
            Err(_) => allowed.clone(),
        };
        Cores { online, allowed }
    }
}

fn list(cores: &[usize]) -> String {
    if cores.is_empty() {
        return "none".into();
    }
    let runs = cores.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        [one] => one.to_string(),
        [] => String::new(),
    });
    runs.collect::<Vec<_>>().join(",")
}

/// Buffers for a worker: of the default pool for 32, a half is in the caches of workers, and a half
/// may be on its way to one that stands still.
const BUFFERS_PER_WORKER: usize = 512;

/// The engine's layout, and remarks for the log.
///
/// # Errors
/// [`LayoutError`] if the machine lacks what the configuration asks for.
pub fn engine(
    config: &StartupConfig,
    cores: &Cores,
) -> Result<(EngineConfig, Vec<String>), LayoutError> {
    let mut notes = Vec::new();
    let (main_core, workers) = threads(&config.cpu, cores, &mut notes)?;
    let default = PoolConfig::default();
    let usual = default.buffers.max(workers.len() * BUFFERS_PER_WORKER);
    let buffers = config.buffers.buffers_per_numa.map_or(usual, |n| n as usize);
    if buffers < workers.len() * BUFFERS_PER_WORKER {
        let workers = workers.len();
        notes.push(format!(
            "buffers {{ buffers-per-numa {buffers} }}: few for {workers} workers: one that stands \
             still can leave the others without buffers; the default is {usual}"
        ));
    }
    let pool = PoolConfig {
        buffers,
        data_size: config.buffers.default_data_size.map_or(default.data_size, |n| n as usize),
        page_size: match config.buffers.page_size {
            PageSize::Default => None,
            PageSize::DefaultHugepage => Some(default_huge_page().ok_or(LayoutError::NoHugePages)?),
            PageSize::Bytes(bytes) => Some(usize::try_from(bytes).unwrap_or(usize::MAX)),
        },
    };
    Ok((EngineConfig { workers, main_core, pool, ..EngineConfig::default() }, notes))
}

fn default_huge_page() -> Option<usize> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok().map(|kib| kib << 10)
}

type Threads = (Option<usize>, Vec<Option<usize>>);

fn threads(
    cpu: &CpuConfig,
    cores: &Cores,
    notes: &mut Vec<String>,
) -> Result<Threads, LayoutError> {
    let place = |number: u16, word: &str| {
        let number = usize::from(number);
        if cpu.relative {
            return cores.allowed.get(number).copied().ok_or_else(|| LayoutError::Position {
                word: word.into(),
                position: number,
                count: cores.allowed.len(),
                allowed: list(&cores.allowed),
            });
        }
        match cores.online.contains(&number) {
            true => Ok(number),
            false => Err(LayoutError::Offline {
                word: word.into(),
                core: number,
                online: list(&cores.online),
            }),
        }
    };
    let main = cpu.main_core.map(|n| place(n, &format!("main-core {n}"))).transpose()?;
    if cpu.scheduler_policy.is_some() || cpu.scheduler_priority.is_some() {
        notes.push("cpu: scheduler-policy and scheduler-priority have no effect".into());
    }
    if cpu.thread_prefix.is_some() {
        notes.push("cpu: thread-prefix has no effect".into());
    }
    if let Some(chosen) = &cpu.corelist_workers {
        let word = format!("corelist-workers {chosen}");
        let workers = chosen.cores().iter().map(|n| place(*n, &word).map(Some));
        return Ok((main, workers.collect::<Result<_, _>>()?));
    }
    let wanted = usize::from(cpu.workers.unwrap_or(0));
    if wanted == 0 {
        // The main thread never forwards, so that there is always a worker; it floats.
        return Ok((main, vec![None]));
    }
    let mut free: Vec<usize> =
        cores.allowed.iter().copied().skip(usize::from(cpu.skip_cores)).collect();
    match main {
        Some(main) => free.retain(|core| *core != main),
        // The first core is left to the main thread and the rest of the system while there are
        // enough others.
        None if free.len() > wanted => drop(free.remove(0)),
        None if free.len() == wanted => {
            notes.push(format!(
                "cpu: workers use all cores ({}); the main thread shares them",
                list(&free)
            ));
        }
        None => {}
    }
    if free.len() < wanted {
        let cores = list(&free);
        return Err(LayoutError::TooFew { wanted, free: free.len(), cores });
    }
    Ok((main, free.into_iter().take(wanted).map(Some).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cores() -> Cores {
        Cores { online: (0..8).collect(), allowed: vec![2, 3, 4, 5] }
    }

    fn lay_out(text: &str) -> Result<EngineConfig, String> {
        let (config, _) = StartupConfig::parse_file("startup.conf", text).unwrap();
        engine(&config, &cores()).map(|(engine, _)| engine).map_err(|e| e.to_string())
    }

    fn workers(text: &str) -> (Option<usize>, Vec<Option<usize>>) {
        let engine = lay_out(text).unwrap();
        (engine.main_core, engine.workers)
    }

    #[test]
    fn silence_is_one_floating_worker() {
        assert_eq!(workers(""), (None, vec![None]));
        assert_eq!(workers("cpu { main-core 1 }"), (Some(1), vec![None]));
    }

    #[test]
    fn workers_go_to_free_cores() {
        assert_eq!(workers("cpu { workers 2 }"), (None, vec![Some(3), Some(4)]));
        assert_eq!(workers("cpu { workers 4 }").1, [2, 3, 4, 5].map(Some));
        assert_eq!(
            workers("cpu { main-core 3 workers 3 }"),
            (Some(3), vec![Some(2), Some(4), Some(5)])
        );
        assert_eq!(workers("cpu { workers 1 skip-cores 2 }").1, [Some(5)]);
        assert_eq!(workers("cpu { corelist-workers 0,6-7 }").1, [0, 6, 7].map(Some));
        assert_eq!(
            workers("cpu { main-core 0 corelist-workers 2-3 relative }"),
            (Some(2), vec![Some(4), Some(5)])
        );
    }

    #[test]
    fn what_the_machine_has_not_is_refused() {
        let refused = |text: &str| lay_out(text).unwrap_err();
        assert_eq!(
            refused("cpu { main-core 9 }"),
            "cpu { main-core 9 }: core 9 is not online; online cores are 0-7"
        );
        assert!(refused("cpu { corelist-workers 1,8 }").contains("core 8 is not online"));
        assert_eq!(
            refused("cpu { main-core 3 workers 4 }"),
            "cpu { workers 4 }: only 3 cores are free for workers (2,4-5); configure fewer, or \
             list cores with `corelist-workers`"
        );
        assert!(refused("cpu { workers 5 }").contains("only 4 cores"));
        assert!(refused("cpu { main-core 4 relative }").contains("position 4 is beyond the 4"));
    }

    #[test]
    fn buffers_are_taken_over() {
        let pool = lay_out("buffers { buffers-per-numa 4096 default data-size 4096 page-size 2m }");
        let pool = pool.unwrap().pool;
        assert_eq!((pool.buffers, pool.data_size, pool.page_size), (4096, 4096, Some(2 << 20)));
        assert_eq!(lay_out("").unwrap().pool.page_size, None);
    }

    #[test]
    fn buffers_grow_with_the_workers() {
        let online: Vec<usize> = (0..256).collect();
        let cores = Cores { allowed: online.clone(), online };
        let laid_out = |text: &str| {
            let (config, _) = StartupConfig::parse_file("startup.conf", text).unwrap();
            let (engine, notes) = engine(&config, &cores).unwrap();
            (engine.pool.buffers, notes)
        };
        for (workers, buffers) in [(1, 16_384), (32, 16_384), (64, 32_768), (255, 130_560)] {
            let (found, notes) = laid_out(&format!("cpu {{ workers {workers} }}"));
            assert_eq!((found, notes), (buffers, Vec::new()), "{workers}");
        }
        let (found, notes) = laid_out("cpu { workers 64 } buffers { buffers-per-numa 16384 }");
        assert_eq!(found, 16_384);
        let text = "buffers { buffers-per-numa 16384 }: few for 64 workers: one that stands still \
                    can leave the others without buffers; the default is 32768";
        assert_eq!(notes, [text]);
    }

    #[test]
    fn this_machine_has_cores() {
        let cores = Cores::of_this_machine();
        assert!(!cores.online.is_empty() && !cores.allowed.is_empty());
        assert_eq!(list(&[0, 1, 2, 5]), "0-2,5");
    }

    proptest! {
        #[test]
        fn no_worker_shares_a_core(main in proptest::option::of(0_u16..10), n in 0_u16..6, skip in 0_u16..4) {
            let cpu = CpuConfig { main_core: main, workers: Some(n), skip_cores: skip, ..Default::default() };
            let config = StartupConfig { cpu, ..Default::default() };
            if let Ok((engine, _)) = engine(&config, &cores()) {
                prop_assert_eq!(engine.workers.len(), usize::from(n).max(1));
                let mut pinned: Vec<_> = engine.workers.iter().chain([&engine.main_core]).flatten().collect();
                let all = pinned.len();
                pinned.sort();
                pinned.dedup();
                prop_assert_eq!(pinned.len(), all);
            }
        }
    }
}
