//! Disks: what was read and written, and how full they are.

use std::collections::BTreeMap;
use std::path::Path;

use thalweg_sflow::model::HostDisk;
use thalweg_sflow::value::Percent;

/// `/proc/diskstats` counts in these, whatever the disk has.
const SECTOR: u64 = 512;

/// Reads everything about disks.
pub(super) fn read(root: &Path) -> Option<HostDisk> {
    let file = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let whole = |name: &str| root.join("sys/block").join(name.replace('/', "!")).exists();
    let mut disk = transfers(&file("proc/diskstats"), whole);
    let mounts = file("proc/mounts");
    let mut places = mount_points(&mounts, &file("proc/filesystems"));
    if places.is_empty() {
        // A container: the root is what it has.
        places.push("/".into());
    }
    let mut worst = 0.0_f64;
    for place in &places {
        let Ok(stat) = rustix::fs::statvfs(place.as_str()) else { continue };
        let (total, free) = (stat.f_blocks * stat.f_frsize, stat.f_bavail * stat.f_frsize);
        disk.total += total;
        disk.free += free;
        if total > 0 {
            worst = worst.max((total.saturating_sub(free)) as f64 / total as f64);
        }
    }
    disk.max_used = Percent((worst * 10_000.0) as u32);
    (disk.total > 0 || disk.reads > 0).then_some(disk)
}

/// Sums what whole disks read and wrote. Partitions are parts of these, and what is made of other
/// disks (loop, device mapper, RAID) would count twice.
fn transfers(diskstats: &str, whole: impl Fn(&str) -> bool) -> HostDisk {
    let mut sum = HostDisk::default();
    for line in diskstats.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let Some(name) = words.next() else { continue };
        let made = ["loop", "ram", "zram", "dm-", "md"].iter().any(|kind| name.starts_with(kind));
        let numbers: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
        if made || numbers.len() < 8 || !whole(name) {
            continue;
        }
        sum.reads = sum.reads.wrapping_add(numbers[0] as u32);
        sum.bytes_read = sum.bytes_read.wrapping_add(numbers[2].wrapping_mul(SECTOR));
        sum.read_time = sum.read_time.wrapping_add(numbers[3] as u32);
        sum.writes = sum.writes.wrapping_add(numbers[4] as u32);
        sum.bytes_written = sum.bytes_written.wrapping_add(numbers[6].wrapping_mul(SECTOR));
        sum.write_time = sum.write_time.wrapping_add(numbers[7] as u32);
    }
    sum
}

/// Returns the mount points of file systems on this host's disks, each once. To ask others, on the
/// network for example, might never end.
fn mount_points(mounts: &str, filesystems: &str) -> Vec<String> {
    let on_disk =
        |kind: &str| filesystems.lines().any(|l| !l.starts_with("nodev") && l.trim() == kind);
    let mut places = BTreeMap::new();
    for line in mounts.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(device), Some(place), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let read_only_image = matches!(kind, "squashfs" | "iso9660" | "erofs");
        if device.starts_with('/') && on_disk(kind) && !read_only_image {
            places.entry(device).or_insert_with(|| unescape(place));
        }
    }
    places.into_values().collect()
}

/// Characters such as blanks are three octal digits behind a backslash.
fn unescape(place: &str) -> String {
    let mut out = Vec::new();
    let mut rest = place.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail.get(..3).filter(|d| d.iter().all(|c| (b'0'..=b'7').contains(c)));
        match (first, digits) {
            (b'\\', Some(digits)) => {
                let byte = digits.iter().fold(0_u32, |n, c| n * 8 + u32::from(c - b'0'));
                out.push(byte as u8);
                rest = &tail[3..];
            }
            _ => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_disks_are_counted_once() {
        let text = "   7  0 loop0 9 9 9 9 9 9 9 9 9 9 9\n\
            254  0 vda 100 5 2000 30 40 6 800 70 0 80 90\n\
            254  1 vda1 99 5 1999 29 39 5 799 69 0 79 89\n\
            259  0 nvme0n1 1 0 2 3 4 0 5 6 0 0 0 1 2 3 4\n\
            253  0 dm-0 9 9 9 9 9 9 9 9 9 9 9\n 1 2 short 4\n\n";
        let disk = transfers(text, |name| name != "vda1");
        assert_eq!((disk.reads, disk.bytes_read, disk.read_time), (101, 2002 * 512, 33));
        assert_eq!((disk.writes, disk.bytes_written, disk.write_time), (44, 805 * 512, 76));
    }

    #[test]
    fn file_systems_on_disks_are_asked_once() {
        let mounts = "/dev/vda1 / ext4 rw 0 0\n/dev/vda1 /again ext4 rw 0 0\nproc /proc proc rw 0 0\n\
            server:/x /net nfs rw 0 0\n/dev/vdb /with\\040blank ext4 rw 0 0\n\
            /dev/loop1 /snap squashfs ro 0 0\noverlay /o overlay rw 0 0\n";
        let kinds = "nodev\tproc\n\text4\nnodev\tnfs\n\tsquashfs\nnodev\toverlay\n";
        assert_eq!(mount_points(mounts, kinds), ["/", "/with blank"]);
    }
}
