//! Limit of the wake-up latency of idle CPUs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// PM QoS device of Linux: a request holds as long as the file is open.
const DEVICE: &str = "/dev/cpu_dma_latency";

/// Limits the wake-up latency of CPUs to `micros` while the returned file is open.
///
/// # Errors
/// If the device does not exist or refuses the request.
pub fn ask(micros: u32) -> io::Result<File> {
    ask_at(Path::new(DEVICE), micros)
}

fn ask_at(device: &Path, micros: u32) -> io::Result<File> {
    let wish = i32::try_from(micros).unwrap_or(i32::MAX);
    let fail = |e: io::Error| {
        let what = format!("cannot set it with {}: {e}", device.display());
        io::Error::new(e.kind(), what)
    };
    let mut file = OpenOptions::new().write(true).open(device).map_err(fail)?;
    file.write_all(&wish.to_ne_bytes()).map_err(fail)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_is_one_number() {
        let file = tempfile::NamedTempFile::new().unwrap();
        ask_at(file.path(), 20).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), 20i32.to_ne_bytes());
        let error = ask_at(Path::new("/nonexistent"), 0).unwrap_err().to_string();
        assert!(error.starts_with("cannot set it with /nonexistent: "), "{error}");
    }
}
