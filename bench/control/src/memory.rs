//! Memory of this process, as the kernel counts it.

use std::fs;

/// Bytes that are in main memory now.
pub fn resident() -> u64 {
    sum("/proc/self/smaps_rollup", "Rss:")
}

/// Bytes of them in transparent huge pages.
pub fn huge() -> u64 {
    sum("/proc/self/smaps_rollup", "AnonHugePages:")
}

/// The sum of a file's lines `name <n> kB`; 0 if the kernel does not tell.
fn sum(file: &str, name: &str) -> u64 {
    let text = fs::read_to_string(file).unwrap_or_default();
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.split_whitespace().next());
    values.filter_map(|n| n.parse::<u64>().ok()).sum::<u64>() * 1024
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_kernel_tells() {
        assert!(super::resident() > 1 << 20);
        assert!(super::huge() <= super::resident());
    }
}
