//! Clocks per IPv6 lookup: hot and random destinations over a table as the Internet's.
//!
//! `cargo run --release -p thalweg-tables --example lpm6_bench`

#![allow(clippy::unwrap_used)]

#[cfg(target_arch = "x86_64")]
fn main() {
    use std::hint::black_box;
    use thalweg_tables::hash::mix64;
    use thalweg_tables::lpm6::internet6;
    use thalweg_tables::{Domain, Leaf, Lpm6, Lpm6Config, Prefix};

    const ADDRS: usize = 1 << 20;
    let clocks = || {
        // SAFETY: every x86-64 has the counter.
        unsafe { std::arch::x86_64::_rdtsc() }
    };
    let domain = Domain::new();
    let mut lpm = Lpm6::new(Lpm6Config::default()).unwrap();
    let base = 0x2001_0db8u128 << 96;
    for n in 0..256u128 {
        let host = Prefix::host(base | n);
        lpm.insert(host, Leaf::new(2).unwrap(), &domain).unwrap();
        let wide = Prefix::new(base | n << 80, 48).unwrap();
        lpm.insert(wide, Leaf::new(3).unwrap(), &domain).unwrap();
    }
    let reader = lpm.reader();
    let measure = |name: &str, addrs: &[u128]| {
        let mut leaves = vec![0; ADDRS];
        let mut times: Vec<f64> = (0..9)
            .map(|_| {
                let start = clocks();
                for (addrs, leaves) in addrs.chunks(256).zip(leaves.chunks_mut(256)) {
                    reader.lookup_batch(addrs, leaves);
                }
                black_box(&leaves);
                (clocks() - start) as f64 / ADDRS as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:32} {:6.1} ({:.1}-{:.1})", times[4], times[0], times[8]);
    };
    let all = internet6(250_000);
    let start = std::time::Instant::now();
    for (n, p) in all.iter().enumerate() {
        lpm.insert(*p, Leaf::new(n as u32 + 1).unwrap(), &domain).unwrap();
    }
    domain.reclaim();
    println!("{} routes in {:?}, {} KiB", lpm.len(), start.elapsed(), lpm.memory() >> 10);
    let start = std::time::Instant::now();
    lpm.insert(Prefix::new(0, 0).unwrap(), Leaf::new(1).unwrap(), &domain).unwrap();
    println!("a default route around them in {:?}", start.elapsed());
    let host: Vec<u128> = (0..ADDRS).map(|_| base | 7).collect();
    measure("one host", &host);
    let hosts: Vec<u128> = (0..ADDRS).map(|n| base | (n as u128 & 255)).collect();
    measure("256 hosts of a /64", &hosts);
    let under: Vec<u128> =
        (0..ADDRS).map(|n| base | 7 << 80 | u128::from(mix64(n as u64)) & 0xffff).collect();
    measure("a /48", &under);
    let random: Vec<u128> = (0..ADDRS as u64)
        .map(|n| {
            let p = all[mix64(n) as usize % all.len()];
            p.addr() | u128::from(mix64(!n)) << 32 & !p.mask() | u128::from(mix64(n ^ 7))
        })
        .collect();
    measure("random hosts of 250,000 routes", &random);
}

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("lpm6_bench needs the time-stamp counter of x86-64");
}
