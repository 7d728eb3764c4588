//! Compares tries: batched lookups in this crate's DIR-24-8, in a 16-8-8 trie and in a poptrie, the
//! latter two in their barest form: built once, never changed.
//!
//! `cargo run --release -p thalweg-tables --example lpm_compare`
//!
//! Clocks per lookup in frames of 256, median of 9 (Zen 5, 2.6 GHz time-stamp counter, 32 MiB of
//! L3, transparent huge pages); memory in MiB. `random`: anywhere in the address space; `routed`:
//! beneath a random route.
//!
//! | routes | DIR-24-8 random | routed | MiB | 16-8-8 random | routed | MiB | poptrie random | routed | MiB |
//! | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
//! | 1000 | 8.4 | 1.8 | 64.0 | 5.3 | 6.6 | 1.2 | 2.7 | 17.7 | 0.3 |
//! | 100000 | 8.4 | 5.3 | 64.5 | 15.8 | 11.6 | 45.5 | 15.9 | 23.8 | 4.0 |
//! | 1000000 | 8.3 | 7.4 | 69.0 | 13.3 | 14.1 | 61.0 | 37.8 | 76.8 | 25.1 |
//!
//! DIR-24-8 stays: one access for nearly every look-up, at most two, and the cheapest to change. A
//! small table would be better off in a cache; but it takes 8 clocks at most, whatever comes.

#![allow(clippy::unwrap_used)]

#[cfg(not(target_arch = "x86_64"))]
fn main() {
    eprintln!("lpm_compare needs the time-stamp counter of x86-64");
}

#[cfg(target_arch = "x86_64")]
fn main() -> Result<(), thalweg_tables::LpmError> {
    compare::main()
}

#[cfg(target_arch = "x86_64")]
mod compare {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    use std::hint::black_box;

    use thalweg_tables::Ipv4Prefix;
    use thalweg_tables::hash::mix64;
    use thalweg_tables::lpm4::{Leaf, Lpm4, Lpm4Config, LpmError, internet};

    const ADDRS: usize = 1 << 20;
    const FRAME: usize = 256;
    const RUNS: usize = 9;
    /// Flag in a word of a trie: the other bits are the index of a child.
    const CHILD: u32 = 1 << 31;

    type Route = (Ipv4Prefix, u32);

    fn fetch<T>(all: &[T], at: usize) {
        // SAFETY: a prefetch is a hint and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(all.as_ptr().wrapping_add(at).cast()) };
    }

    /// 2^16 words, and nodes of 256 words for each of the two following bytes.
    struct Trie1688 {
        root: Vec<u32>,
        nodes: Vec<u32>,
    }

    impl Trie1688 {
        /// Builds the trie from routes, the shorter ones first: a word that is painted over is
        /// never a child.
        fn new(routes: &[Route]) -> Self {
            let mut trie = Self { root: vec![0; 1 << 16], nodes: Vec::new() };
            for &(prefix, leaf) in routes {
                let (addr, len) = (prefix.addr(), usize::from(prefix.len()));
                let high = (addr >> 16) as usize;
                if len <= 16 {
                    trie.root[high..high + (1 << (16 - len))].fill(leaf);
                    continue;
                }
                let mut node = Self::child(&mut trie.root[high], &mut trie.nodes);
                let mut byte = (addr >> 8 & 255) as usize;
                if len > 24 {
                    let mut word = trie.nodes[node * 256 + byte];
                    node = Self::child(&mut word, &mut trie.nodes);
                    let upper = (trie.root[high] & !CHILD) as usize;
                    trie.nodes[upper * 256 + byte] = word;
                    byte = (addr & 255) as usize;
                }
                let count = 1 << (if len > 24 { 32 } else { 24 } - len);
                trie.nodes[node * 256 + byte..][..count].fill(leaf);
            }
            trie
        }

        fn child(word: &mut u32, nodes: &mut Vec<u32>) -> usize {
            if *word & CHILD == 0 {
                let node = nodes.len() / 256;
                nodes.resize(nodes.len() + 256, *word);
                *word = node as u32 | CHILD;
            }
            (*word & !CHILD) as usize
        }

        fn memory(&self) -> usize {
            (self.root.len() + self.nodes.len()) * 4
        }

        fn lookup(&self, addrs: &[u32], leaves: &mut [u32]) {
            addrs.iter().for_each(|addr| fetch(&self.root, (addr >> 16) as usize));
            for (addr, word) in addrs.iter().zip(&mut *leaves) {
                *word = self.root[(addr >> 16) as usize];
                let at = (*word & !CHILD) as usize * 256 + (addr >> 8 & 255) as usize;
                fetch(&self.nodes, if *word & CHILD != 0 { at } else { 0 });
            }
            for shift in [8, 0] {
                for (addr, word) in addrs.iter().zip(&mut *leaves) {
                    if *word & CHILD != 0 {
                        let node = (*word & !CHILD) as usize * 256;
                        *word = self.nodes[node + (addr >> shift & 255) as usize];
                    }
                }
            }
        }
    }

    /// A node of 64 slots: bitmaps of those that are children, and of those where a leaf differs
    /// from the one before.
    #[derive(Clone, Copy, Default)]
    struct Node {
        children: u64,
        changes: u64,
        first_child: u32,
        first_leaf: u32,
    }

    /// 2^16 words, then nodes of six bits each.
    struct Poptrie {
        root: Vec<u32>,
        nodes: Vec<Node>,
        leaves: Vec<u32>,
    }

    impl Poptrie {
        /// Builds the trie from routes in order of address, the shorter first.
        fn new(routes: &[Route]) -> Self {
            let mut trie = Self { root: vec![0; 1 << 16], nodes: Vec::new(), leaves: Vec::new() };
            let mut rest = routes;
            let mut covers: Vec<Route> = Vec::new();
            for slot in 0..1u32 << 16 {
                let here = Ipv4Prefix::new(slot << 16, 16).unwrap_or(Ipv4Prefix::DEFAULT);
                let end = rest.partition_point(|(p, _)| p.addr() <= here.last());
                let (inside, behind) = rest.split_at(end);
                rest = behind;
                covers.retain(|(p, _)| p.contains(here.addr()));
                let short =
                    inside.partition_point(|(p, _)| p.addr() == here.addr() && p.len() <= 16);
                covers.extend(&inside[..short]);
                let leaf = covers.last().map_or(0, |c| c.1);
                let inside = &inside[short..];
                trie.root[slot as usize] = if inside.is_empty() {
                    leaf
                } else {
                    let node = trie.nodes.len();
                    trie.nodes.push(Node::default());
                    trie.fill(node, inside, here.addr(), 16, leaf);
                    node as u32 | CHILD
                };
            }
            trie
        }

        /// Fills a node for the addresses from `addr` on that share `depth` bits.
        fn fill(&mut self, node: usize, routes: &[Route], addr: u32, depth: u32, leaf: u32) {
            let (mut made, mut sub) = (Node::default(), Vec::new());
            made.first_leaf = self.leaves.len() as u32;
            let mut covers: Vec<Route> = Vec::new();
            let (mut rest, mut last) = (routes, None);
            // The last level has four bits left: its slots count by four.
            let bits = depth + 6;
            for way in 0..64u64 {
                if bits > 32 && way % (1 << (bits - 32)) != 0 {
                    continue;
                }
                let from = u64::from(addr) + (way << 32 >> bits);
                let to = from + (1u64 << 32 >> bits).max(1);
                let end = rest.partition_point(|(p, _)| u64::from(p.addr()) < to);
                let (inside, behind) = rest.split_at(end);
                rest = behind;
                covers.retain(|(p, _)| p.contains(from as u32));
                let short = inside.partition_point(|(p, _)| {
                    u64::from(p.addr()) == from && u32::from(p.len()) <= bits
                });
                covers.extend(&inside[..short]);
                let best = covers.last().map_or(leaf, |c| c.1);
                if inside.len() > short {
                    made.children |= 1 << way;
                    sub.push((inside[short..].to_vec(), from as u32, best));
                } else if last != Some(best) {
                    made.changes |= 1 << way;
                    self.leaves.push(best);
                    last = Some(best);
                }
            }
            made.first_child = self.nodes.len() as u32;
            self.nodes.resize(self.nodes.len() + sub.len(), Node::default());
            for (n, (routes, addr, leaf)) in sub.iter().enumerate() {
                self.fill(made.first_child as usize + n, routes, *addr, bits, *leaf);
            }
            self.nodes[node] = made;
        }

        fn memory(&self) -> usize {
            self.root.len() * 4 + self.nodes.len() * size_of::<Node>() + self.leaves.len() * 4
        }

        /// Looks up a level at a time, for all addresses of the frame that are not done.
        #[target_feature(enable = "popcnt,bmi1,bmi2")]
        fn lookup(&self, addrs: &[u32], leaves: &mut [u32]) {
            addrs.iter().for_each(|addr| fetch(&self.root, (addr >> 16) as usize));
            let (mut left, mut count) = ([0u8; FRAME], 0);
            for (i, (addr, word)) in addrs.iter().zip(&mut *leaves).enumerate() {
                *word = self.root[(addr >> 16) as usize];
                left[count] = i as u8;
                if *word & CHILD != 0 {
                    fetch(&self.nodes, (*word & !CHILD) as usize);
                    count += 1;
                }
            }
            let mut depth = 16;
            while count > 0 {
                let mut more = 0;
                for k in 0..count {
                    let i = usize::from(left[k]);
                    let node = &self.nodes[(leaves[i] & !CHILD) as usize];
                    let way = (u64::from(addrs[i]) << 32 << depth >> 58) as u32;
                    let upto = u64::MAX >> (63 - way);
                    if node.children >> way & 1 == 1 {
                        let child = node.first_child + (node.children & upto).count_ones() - 1;
                        leaves[i] = child | CHILD;
                        fetch(&self.nodes, child as usize);
                        left[more] = i as u8;
                        more += 1;
                    } else {
                        let at = node.first_leaf + (node.changes & upto).count_ones() - 1;
                        leaves[i] = self.leaves[at as usize];
                    }
                }
                (count, depth) = (more, depth + 6);
            }
        }
    }

    fn measure(addrs: &[u32], lookup: impl Fn(&[u32], &mut [u32])) -> (f64, Vec<u32>) {
        let mut leaves = vec![0; ADDRS];
        let mut run = || {
            // SAFETY: every x86-64 has the counter.
            let start = unsafe { std::arch::x86_64::_rdtsc() };
            for (addrs, leaves) in addrs.chunks(FRAME).zip(leaves.chunks_mut(FRAME)) {
                lookup(addrs, leaves);
            }
            black_box(&leaves);
            // SAFETY: as above.
            (unsafe { std::arch::x86_64::_rdtsc() } - start) as f64 / ADDRS as f64
        };
        run();
        let mut times: Vec<f64> = (0..RUNS).map(|_| run()).collect();
        times.sort_by(f64::total_cmp);
        (times[RUNS / 2], leaves)
    }

    pub fn main() -> Result<(), LpmError> {
        let popcnt = is_x86_feature_detected!("popcnt") && is_x86_feature_detected!("bmi2");
        for count in [1000, 100_000, 1_000_000] {
            let mut routes: Vec<Route> = internet(count).into_iter().zip(1..).collect();
            let mut lpm = Lpm4::new(Lpm4Config::default())?;
            for &(prefix, leaf) in &routes {
                lpm.insert(prefix, Leaf::new(leaf).unwrap_or(const { Leaf::new(1).unwrap() }))?;
            }
            let inside = |n: u64| {
                let prefix = routes[(mix64(n) % count as u64) as usize].0;
                prefix.addr() + (mix64(!n) as u32 & !prefix.mask())
            };
            let routed: Vec<u32> = (0..ADDRS as u64).map(inside).collect();
            let random: Vec<u32> = (0..ADDRS as u64).map(|n| mix64(n) as u32).collect();
            routes.sort_unstable_by_key(|(prefix, _)| prefix.len());
            let trie = Trie1688::new(&routes);
            routes.sort_unstable();
            let pop = Poptrie::new(&routes);
            let reader = lpm.reader();
            let mut cells = Vec::new();
            let dir_memory = Lpm4::FIRST_LEVEL_BYTES + lpm.usage().groups * 1024;
            let mib = |bytes: usize| format!("{:.1}", bytes as f64 / f64::from(1 << 20));
            let dir =
                [&random, &routed].map(|addrs| measure(addrs, |a, l| reader.lookup_batch(a, l)));
            cells.extend(dir.iter().map(|d| format!("{:.1}", d.0)));
            cells.push(mib(dir_memory));
            for (addrs, (_, expected)) in [&random, &routed].iter().zip(&dir) {
                let (clocks, leaves) = measure(addrs, |a, l| trie.lookup(a, l));
                assert!(leaves == *expected, "the 16-8-8 trie disagrees");
                cells.push(format!("{clocks:.1}"));
            }
            cells.push(mib(trie.memory()));
            for (addrs, (_, expected)) in [&random, &routed].iter().zip(&dir).filter(|_| popcnt) {
                // SAFETY: the processor has the instructions.
                let (clocks, leaves) = measure(addrs, |a, l| unsafe { pop.lookup(a, l) });
                assert!(leaves == *expected, "the poptrie disagrees");
                cells.push(format!("{clocks:.1}"));
            }
            cells.push(mib(pop.memory()));
            println!("| {count} | {} |", cells.join(" | "));
        }
        Ok(())
    }
}
