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

    /// Inputs that fuzzing has found to matter, and those that it begins with; see
    /// `fuzz/README.md`.
    #[test]
    fn crashes_and_seeds_pass() {
        type Target = (&'static str, fn(&[u8]), usize);
        let targets: [Target; 2] =
            [("sflow_netlink", super::fuzz_netlink, 4), ("hsflowd_conf", super::fuzz_conf, 1)];
        for (target, run, least) in targets {
            files(&format!("corpus-crashes/{target}")).for_each(|input| run(&input));
            let seeds = files(&format!("seeds/{target}")).inspect(|seed| run(seed)).count();
            assert!(seeds >= least, "the seeds of {target} are elsewhere");
        }
    }
}
