//! What fuzzing calls: everything that takes bytes from outside, with nothing to expect but that it
//! returns.

use thalweg_netlink::wire::Messages;

use crate::conf::{HsflowdConf, Reader};
use crate::netlink::{Channel, Message};

/// Reads a netlink datagram as each channel and the kernel's register of families do.
pub fn fuzz_netlink(data: &[u8]) {
    for channel in Channel::ALL {
        for raw in Messages::new(data) {
            let message = raw.and_then(|raw| Message::decode(channel, raw.header.kind, &raw));
            match message {
                Ok(Some(Message::Sample(sample))) => {
                    let _ = sample.one_in();
                }
                Ok(_) => {}
                Err(error) => drop(error.to_string()),
            }
        }
    }
    thalweg_netlink::fuzz_datagram(data);
}

/// Reads `hsflowd.conf`.
pub fn fuzz_conf(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for reader in [Reader::Agent, Reader::Router] {
        match HsflowdConf::parse(reader, "hsflowd.conf", &text) {
            Ok((conf, warnings)) => {
                assert!(!conf.collectors.is_empty());
                warnings.iter().for_each(|warning| drop(warning.to_string()));
            }
            Err(error) => drop(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    /// Files of a folder of `fuzz/`; none if it is not there.
    fn files(folder: &str) -> impl Iterator<Item = Vec<u8>> {
        let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz").join(folder);
        let entries = std::fs::read_dir(path).into_iter().flatten();
        entries.map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
    }

    /// Inputs that fuzzing has found to matter; see `fuzz/README.md`.
    #[test]
    fn the_crash_corpus_passes() {
        type Target = (&'static str, fn(&[u8]));
        let targets: [Target; 2] =
            [("sflow_netlink", super::fuzz_netlink), ("hsflowd_conf", super::fuzz_conf)];
        let mut count = 0;
        for (target, run) in targets {
            for input in files(&format!("corpus-crashes/{target}")) {
                run(&input);
                count += 1;
            }
        }
        assert!(count > 0, "the corpus is elsewhere");
    }

    #[test]
    fn the_netlink_seeds_pass() {
        let count = files("seeds/sflow_netlink").inspect(|seed| super::fuzz_netlink(seed)).count();
        assert!(count >= 4);
    }
}
