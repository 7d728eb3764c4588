//! Entry points for fuzzing: everything that takes bytes from outside, with nothing to expect but
//! that it returns.

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
