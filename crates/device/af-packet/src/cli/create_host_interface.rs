//! `create host-interface`.

use crate::device::{self, HostConfig};
use crate::ring::Version;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_device_linux::Framing;
use thalweg_graph::Control;

/// `create host-interface [v2|v3] name <device> …`
pub struct CreateHostInterface;

/// The command.
pub static COMMAND: CreateHostInterface = CreateHostInterface;

impl Command<Control> for CreateHostInterface {
    fn path(&self) -> &'static str {
        "create host-interface"
    }

    fn usage(&self) -> &'static str {
        "[v2|v3] name <device> [hw-addr <mac>] [mode ethernet|ip] [num-rx-queues <n>] [num-tx-queues <n>] [rx-size <bytes>] [tx-size <bytes>] [rx-per-block <n>] [tx-per-block <n>] [qdisc-bypass-disable] [checksum-offload-disable]"
    }

    fn help(&self) -> &'static str {
        "Create interface host-<device> on a Linux network device\n\
         v2 (the default) delivers each frame as it arrives; v3 collects frames for up to 1 ms: higher\n\
         throughput, but higher latency. Flows are spread over receive queues by hash; each\n\
         worker has a transmit queue of its own. Frames bypass the queueing discipline\n\
         unless qdisc-bypass-disable is given, and checksums and segmentation are offloaded\n\
         unless checksum-offload-disable (VPP: cksum-gso-disable) is given."
    }

    fn run(
        &self,
        cx: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let config = parse(args)?;
        let sw_if = device::create(cx, config).map_err(CliError::failed)?;
        out.line(cx.interface_name(sw_if));
        Ok(Outcome::Done)
    }
}

const WORDS: &[&str] = &[
    "name",
    "hw-addr",
    "mode",
    "num-rx-queues",
    "num-tx-queues",
    "rx-size",
    "tx-size",
    "rx-per-block",
    "tx-per-block",
    "qdisc-bypass-disable",
    "checksum-offload-disable",
    "cksum-gso-disable",
    "v2",
    "v3",
];

fn parse(args: &mut Args<'_>) -> Result<HostConfig, CliError> {
    let mut c = HostConfig::default();
    while !args.is_empty() {
        match args.choice("option", WORDS)? {
            "name" => c.name = args.word("device")?.to_string(),
            "hw-addr" => c.mac = Some(args.mac("MAC address")?),
            "mode" => {
                c.options.framing = match args.choice("mode", &["ethernet", "ip"])? {
                    "ip" => Framing::Ip,
                    _ => Framing::Ethernet,
                }
            }
            "num-rx-queues" => c.options.rx_queues = args.number("queues", 1, 64)? as u16,
            "num-tx-queues" => c.options.tx_queues = args.number("queues", 1, 64)? as u16,
            "rx-size" => c.options.rx_size = Some(args.u32("bytes")?),
            "tx-size" => c.options.tx_size = Some(args.u32("bytes")?),
            "rx-per-block" => c.options.rx_per_block = Some(args.u32("frames per block")?),
            "tx-per-block" => c.options.tx_per_block = Some(args.u32("frames per block")?),
            "qdisc-bypass-disable" => c.options.qdisc_bypass = false,
            "checksum-offload-disable" | "cksum-gso-disable" => c.options.offload = false,
            "v2" => c.options.version = Version::V2,
            _ => c.options.version = Version::V3,
        }
    }
    if c.name.is_empty() {
        return Err(args.bad("device", "`name <device>', a Linux network device"));
    }
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ok(text: &str) -> HostConfig {
        parse(&mut Args::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn all_options() {
        let c =
            ok("v3 name eth0 hw-addr 02:fe:00:00:00:01 num-rx-queues 2 num-tx-queues 3 rx-size \
                    4096 tx-size 2048 rx-per-block 8 tx-per-block 16 qdisc-bypass-disable \
                    checksum-offload-disable");
        assert!(!ok("name eth0 cksum-gso-disable").options.offload);
        assert_eq!((c.name.as_str(), c.options.version), ("eth0", Version::V3));
        assert_eq!((c.options.rx_queues, c.options.tx_queues), (2, 3));
        assert_eq!((c.options.rx_size, c.options.tx_size), (Some(4096), Some(2048)));
        assert!(!c.options.qdisc_bypass && !c.options.offload);
        assert_eq!(ok("name tun0 mode ip").options.framing, Framing::Ip);
        assert_eq!(ok("name eth0").options, crate::ring::Options::default());
    }

    #[test]
    fn mistakes_are_explained() {
        let err = |t: &str| parse(&mut Args::parse(t).unwrap()).unwrap_err().to_string();
        assert!(err("").contains("name"), "{}", err(""));
        assert!(err("name eth0 num-rx-queues 0").contains('1'));
        assert!(err("name eth0 mode token-ring").contains("ethernet"));
        assert!(err("name eth0 bogus").contains("bogus"));
    }
}
