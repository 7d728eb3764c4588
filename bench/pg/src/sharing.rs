//! Finds cache lines that threads share, from what valgrind's lackey reports of each access.
//!
//! Threads run in turn there: the number of moves of a line is unknown. Known are the touches of
//! each thread, and whether one of them has written it.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Result};

/// Mark that the traced program writes to its standard error where tracing begins; `END` ends it.
pub const BEGIN: &str = "@begin";
/// See [`BEGIN`].
pub const END: &str = "@end";

/// Lines of other text that are kept.
const SAID: usize = 20;
/// Bytes of a cache line.
const LINE: u64 = 64;

/// A thread's accesses to a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Number of reads.
    pub reads: u64,
    /// Number of writes.
    pub writes: u64,
    /// The instruction that wrote it first, or read it if none did.
    pub by: u64,
}

impl Touches {
    fn add(&mut self, writes: bool, by: u64) {
        if self.reads + self.writes == 0 || (writes && self.writes == 0) {
            self.by = by;
        }
        *(if writes { &mut self.writes } else { &mut self.reads }) += 1;
    }

    fn all(self) -> u64 {
        self.reads + self.writes
    }
}

/// Accesses of threads between two marks.
#[derive(Debug, Default)]
pub struct Trace {
    begun: bool,
    thread: u32,
    /// The instruction at hand.
    at: u64,
    instructions: BTreeMap<u32, u64>,
    lines: HashMap<u64, BTreeMap<u32, Touches>>,
    said: Vec<String>,
}

/// A line that several threads touch, and one of them writes; or two lines side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    /// Address of its first byte.
    pub address: u64,
    /// Touches by thread.
    pub touches: Vec<(u32, Touches)>,
}

impl Shared {
    /// Most moves from thread to thread: as often as all but the busiest touch it.
    pub fn moves(&self) -> u64 {
        let all = || self.touches.iter().map(|(_, t)| t.all());
        all().sum::<u64>() - all().max().unwrap_or(0)
    }
}

impl Trace {
    /// Reads what a program run under lackey, with `--trace-mem=yes --trace-sched=yes`, writes to
    /// standard error.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(mut from: impl BufRead) -> Result<Trace> {
        let (mut trace, mut line) = (Trace::default(), Vec::new());
        while from.read_until(b'\n', &mut line)? > 0 {
            trace.line(line.trim_ascii_end());
            line.clear();
        }
        Ok(trace)
    }

    fn line(&mut self, line: &[u8]) {
        match line {
            [b'I', b' ', b' ', rest @ ..] => {
                if self.begun
                    && let Some((at, _)) = access(rest)
                {
                    self.at = at;
                    *self.instructions.entry(self.thread).or_default() += 1;
                }
            }
            [b' ', kind @ (b'L' | b'S' | b'M'), b' ', rest @ ..] => {
                if self.begun
                    && let Some(access) = access(rest)
                {
                    self.touch(*kind, access);
                }
            }
            other => self.note(&String::from_utf8_lossy(other)),
        }
    }

    fn touch(&mut self, kind: u8, (address, size): (u64, u64)) {
        for line in address / LINE..=address.saturating_add(size.max(1) - 1) / LINE {
            let touches = self.lines.entry(line).or_default().entry(self.thread).or_default();
            if kind != b'S' {
                touches.add(false, self.at);
            }
            if kind != b'L' {
                touches.add(true, self.at);
            }
        }
    }

    /// A mark, or who runs now.
    fn note(&mut self, line: &str) {
        if line.contains(BEGIN) {
            self.begun = true;
        } else if line.contains(END) {
            self.begun = false;
        } else if let Some((_, rest)) = line.split_once("SCHED[") {
            if let Some((thread, what)) = rest.split_once(']')
                && what.contains("acquired lock")
            {
                self.thread = thread.parse().unwrap_or(0);
            }
        } else if !line.is_empty() {
            if self.said.len() == SAID {
                self.said.remove(0);
            }
            self.said.push(line.into());
        }
    }

    /// Other lines of its output, the last of them: complaints, if there were any.
    pub fn said(&self) -> String {
        self.said.join("\n")
    }

    /// The `n` threads but one that ran most, with how many instructions of each.
    pub fn busiest_but(&self, one: u32, n: usize) -> Vec<(u32, u64)> {
        let others = self.instructions.iter().filter(|(t, _)| **t != one);
        let mut all: Vec<_> = others.map(|(t, n)| (*t, *n)).collect();
        all.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        all.truncate(n);
        all
    }

    /// Blocks of `lines` cache lines that one of these threads writes and another one touches,
    /// ordered by how often they may have moved.
    pub fn shared(&self, threads: &[u32], lines: u64) -> Vec<Shared> {
        let mut blocks: HashMap<u64, BTreeMap<u32, Touches>> = HashMap::new();
        for (line, by) in &self.lines {
            let block = blocks.entry(line / lines).or_default();
            for (thread, touches) in by.iter().filter(|(t, _)| threads.contains(t)) {
                let sum = block.entry(*thread).or_default();
                if sum.writes == 0 && (touches.writes > 0 || sum.reads == 0) {
                    sum.by = touches.by;
                }
                sum.reads += touches.reads;
                sum.writes += touches.writes;
            }
        }
        let written = |by: &BTreeMap<u32, Touches>| by.values().any(|t| t.writes > 0);
        let all = blocks.into_iter().filter(|(_, by)| by.len() > 1 && written(by));
        let mut all: Vec<_> = all
            .map(|(block, by)| Shared {
                address: block * lines * LINE,
                touches: by.into_iter().collect(),
            })
            .collect();
        all.sort_by_key(|shared| (std::cmp::Reverse(shared.moves()), shared.address));
        all
    }
}

/// Address and size.
fn access(text: &[u8]) -> Option<(u64, u64)> {
    let (address, size) = std::str::from_utf8(text).ok()?.split_once(',')?;
    Some((u64::from_str_radix(address, 16).ok()?, size.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "--1--   SCHED[1]:  acquired lock (x)
 S 00000040,8
@begin
I  00001000,4
 S 00000040,8
 L 000000c0,8
 L 00000200,8
I  00001004,4
 S 00000300,8
--1--   SCHED[2]:  acquired lock (x)
I  00002000,4
 L 0000007c,8
 L 000000c0,8
 M 00000340,8
I  00002004,4
 S 00000200,8
--1--   SCHED[2]: releasing lock (y)
--1--   SCHED[3]:  acquired lock (x)
I  00003000,4
 S 00000040,8
@end
 S 00000080,8
";

    #[test]
    fn lines_that_are_written_and_touched_are_shared() {
        let trace = Trace::read(TEXT.as_bytes()).unwrap();
        assert_eq!(trace.busiest_but(3, 2), [(1, 2), (2, 2)]);
        let shared = trace.shared(&[1, 2], 1);
        let touches = |reads, writes, by| Touches { reads, writes, by };
        let want = [
            (0x40, [(1, touches(0, 1, 0x1000)), (2, touches(1, 0, 0x2000))]),
            (0x200, [(1, touches(1, 0, 0x1000)), (2, touches(0, 1, 0x2004))]),
        ];
        let want = want.map(|(address, touches)| Shared { address, touches: touches.to_vec() });
        assert_eq!(shared, want);
        assert_eq!(shared[0].moves(), 1);
        // 0x7c is on two lines, and 0x300 and 0x340 are in one pair.
        let pairs: Vec<_> = trace.shared(&[1, 2], 2).iter().map(|s| s.address).collect();
        assert_eq!(pairs.len(), 3);
        assert!([0, 0x200, 0x300].iter().all(|pair| pairs.contains(pair)));
    }

    #[test]
    fn nonsense_is_left_out() {
        let text = b"@begin\nI  zz,4\n L 40\n S 40,x\n\xff\n SCHED[x]: acquired lock\n";
        let trace = Trace::read(&text[..]).unwrap();
        assert!(trace.lines.is_empty() && trace.instructions.is_empty());
        assert_eq!(trace.said(), "\u{fffd}");
    }
}
