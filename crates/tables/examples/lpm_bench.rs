//! Clocks per IPv4 lookup: tables of 1 to a million routes, hot and random destinations.
//!
//! `cargo run --release -p thalweg-tables --example lpm_bench`
//!
//! Each number is the median of several runs, with the fastest and the slowest. Clocks are those
//! of the time stamp counter, which ticks at a constant rate whatever the core does.

#![allow(clippy::unwrap_used)]

#[cfg(target_arch = "x86_64")]
fn main() -> Result<(), thalweg_tables::LpmError> {
    bench::main()
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("lpm_bench needs the time-stamp counter of x86-64");
}

#[cfg(target_arch = "x86_64")]
mod bench {
    use std::hint::black_box;
    use std::time::Instant;

    use thalweg_tables::hash::mix64;
    use thalweg_tables::lpm4::{Leaf, Lpm4, Lpm4Config, Lpm4Reader, LpmError, internet};

    /// Number of destinations per run: random ones do not fit into the caches.
    const ADDRS: usize = 1 << 20;
    const FRAME: usize = 256;
    const RUNS: usize = 9;

    fn clocks() -> u64 {
        // SAFETY: every x86-64 has the counter.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    fn measure(mut run: impl FnMut()) -> String {
        run();
        let mut times: Vec<f64> = (0..RUNS)
            .map(|_| {
                let start = clocks();
                run();
                (clocks() - start) as f64 / ADDRS as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        format!("{:6.1} ({:.1}-{:.1})", times[RUNS / 2], times[0], times[RUNS - 1])
    }

    fn line(name: &str, reader: &Lpm4Reader, addrs: &[u32]) {
        let mut leaves = vec![0; ADDRS];
        let single = measure(|| {
            for (addr, leaf) in addrs.iter().zip(&mut leaves) {
                *leaf = reader.lookup(*addr);
            }
            black_box(&leaves);
        });
        let batch = measure(|| {
            for (addrs, leaves) in addrs.chunks(FRAME).zip(leaves.chunks_mut(FRAME)) {
                reader.lookup_batch(addrs, leaves);
            }
            black_box(&leaves);
        });
        let found = leaves.iter().filter(|&&leaf| leaf != 0).count() * 100 / ADDRS;
        println!("  {name:<8} single {single:<22} batch {batch:<22} {found:3} % found");
    }

    pub fn main() -> Result<(), LpmError> {
        for count in [1, 1000, 100_000, 500_000, 1_000_000] {
            let routes = internet(count);
            let mut lpm = Lpm4::new(Lpm4Config::default())?;
            let start = Instant::now();
            for (&prefix, n) in routes.iter().zip(1..) {
                lpm.insert(prefix, Leaf::new(n).unwrap_or(const { Leaf::new(1).unwrap() }))?;
            }
            let rate = count as f64 / start.elapsed().as_secs_f64() / 1e6;
            let usage = lpm.usage();
            println!(
                "{count} routes: {rate:.2} M inserts/s, {:.1} MiB besides the first level, {} groups",
                usage.memory as f64 / f64::from(1 << 20),
                usage.groups
            );
            let inside = |n: u64| {
                let prefix = routes[(mix64(n) % count as u64) as usize];
                prefix.addr() + (mix64(!n) as u32 & !prefix.mask())
            };
            let reader = lpm.reader();
            let hot: Vec<u32> = (0..ADDRS as u64).map(|n| inside(n % 64)).collect();
            let routed: Vec<u32> = (0..ADDRS as u64).map(inside).collect();
            let random: Vec<u32> = (0..ADDRS as u64).map(|n| mix64(n) as u32).collect();
            line("hot", &reader, &hot);
            line("routed", &reader, &routed);
            line("random", &reader, &random);
            let start = Instant::now();
            let routes_in_order = lpm.iter().count();
            println!("  listed {routes_in_order} in order in {:.1?}", start.elapsed());
            let start = Instant::now();
            let removed = routes.iter().filter_map(|&prefix| lpm.remove(prefix)).count();
            let rate = removed as f64 / start.elapsed().as_secs_f64() / 1e6;
            println!("  {rate:.2} M removals/s");
        }
        Ok(())
    }
}
