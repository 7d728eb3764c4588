//! `create tap`.

use crate::config::{Flags, MAX_ID, MAX_QUEUES, TapConfig};
use crate::device;
use thalweg_cli::{Args, CliError, Command, Outcome, Output};
use thalweg_graph::Control;

/// `create tap [id <n>] …`
pub struct CreateTap;

/// The command.
pub static COMMAND: CreateTap = CreateTap;

impl Command<Control> for CreateTap {
    fn path(&self) -> &'static str {
        "create tap"
    }

    fn usage(&self) -> &'static str {
        "[id <n>] [if-name <name>] [hw-addr <mac>] [num-rx-queues <n>] [num-tx-queues <n>] [rx-ring-size <n>] [tx-ring-size <n>] [host-if-name <device>] [host-ns <namespace>] [host-mac-addr <mac>] [host-mtu-size <bytes>] [host-bridge <device>] [host-ip4-addr <prefix>] [host-ip4-gw <ip4>] [host-ip6-addr <prefix>] [host-ip6-gw <ip6>] [no-gso|gso] [gro-coalesce] [csum-offload] [persist] [attach] [tun] [packed] [in-order] [consistent-qp]"
    }

    fn help(&self) -> &'static str {
        "Create interface tap<n> and a device of the kernel, the two ends of a link\n\
         With `tun', tun<n>: IP packets without an Ethernet header. host-... set the kernel's end up, in\n\
         the network namespace host-ns: a name of `ip netns', a path or pid:<n>. The carrier follows\n\
         `set interface state'. gso leaves segmentation and checksums to the kernel, csum-offload\n\
         checksums alone; gro-coalesce joins TCP segments. The device goes with the interface\n\
         unless `persist' is given; `attach', and a restart with `persist', take one over that is there.\n\
         tx-ring-size, packed, in-order and consistent-qp are VPP's and have no effect."
    }

    fn run(
        &self,
        c: &mut Control,
        args: &mut Args<'_>,
        out: &mut Output,
    ) -> Result<Outcome<Control>, CliError> {
        let config = parse(args)?;
        let sw_if = device::create(c, config).map_err(CliError::failed)?;
        let name = c.interface_name(sw_if);
        out.json(serde_json::json!({ "name": name, "index": sw_if.get() }));
        out.line(name);
        Ok(Outcome::Done)
    }
}

const WORDS: &[&str] = &[
    "id",
    "if-name",
    "hw-addr",
    "num-rx-queues",
    "num-tx-queues",
    "rx-ring-size",
    "tx-ring-size",
    "host-if-name",
    "host-ns",
    "host-mac-addr",
    "host-mtu-size",
    "host-bridge",
    "host-ip4-addr",
    "host-ip4-gw",
    "host-ip6-addr",
    "host-ip6-gw",
    "no-gso",
    "gso",
    "gro-coalesce",
    "csum-offload",
    "persist",
    "attach",
    "tun",
    "packed",
    "in-order",
    "consistent-qp",
];

/// Takes a ring size: 0 is the default.
fn ring(args: &mut Args<'_>) -> Result<Option<u16>, CliError> {
    Ok(Some(args.number("ring size", 0, u16::MAX.into())? as u16).filter(|n| *n != 0))
}

pub(crate) fn parse(args: &mut Args<'_>) -> Result<TapConfig, CliError> {
    let mut c = TapConfig::default();
    let queues = u64::from(MAX_QUEUES);
    while !args.is_empty() {
        match args.choice("option", WORDS)? {
            "id" => c.id = Some(args.number("id", 0, MAX_ID.into())? as u32),
            "if-name" => c.if_name = Some(args.word("name")?.into()),
            "hw-addr" => c.mac = Some(args.mac("MAC address")?),
            "num-rx-queues" => c.rx_queues = args.number("queues", 1, queues)? as u16,
            "num-tx-queues" => c.tx_queues = args.number("queues", 1, queues)? as u16,
            "rx-ring-size" => c.rx_ring = ring(args)?,
            "tx-ring-size" => c.tx_ring = ring(args)?,
            "host-if-name" => c.host.name = Some(args.word("device")?.into()),
            "host-ns" => c.host.namespace = Some(args.word("namespace")?.into()),
            "host-mac-addr" => c.host.mac = Some(args.mac("MAC address")?),
            "host-mtu-size" => c.host.mtu = Some(args.u32("MTU")?),
            "host-bridge" => c.host.bridge = Some(args.word("bridge")?.into()),
            "host-ip4-addr" => c.host.ip4 = Some(args.ipv4_prefix("address")?),
            "host-ip4-gw" => c.host.ip4_gw = Some(args.ipv4("gateway")?),
            "host-ip6-addr" => c.host.ip6 = Some(args.ipv6_prefix("address")?),
            "host-ip6-gw" => c.host.ip6_gw = Some(args.ipv6("gateway")?),
            "no-gso" => c.flags.set(Flags::GSO, false),
            word => {
                for (_, flag) in Flags::WORDS.iter().filter(|(w, _)| *w == word) {
                    c.flags.set(*flag, true);
                }
            }
        }
    }
    Ok(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostSide;
    use thalweg_device::MacAddr;

    fn ok(text: &str) -> TapConfig {
        parse(&mut Args::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn all_options() {
        let c = ok("id 7 if-name lan hw-addr 02:fe:00:00:00:01 num-rx-queues 2 num-tx-queues 3 \
                    rx-ring-size 512 tx-ring-size 1024 host-if-name vpp7 host-ns lab \
                    host-mac-addr 02:00:00:00:00:02 host-mtu-size 9000 host-ip4-addr 192.0.2.1/24 \
                    host-ip4-gw 192.0.2.2 host-ip6-addr 2001:db8::1/64 host-ip6-gw 2001:db8::2 gso \
                    gro-coalesce csum-offload persist attach packed in-order consistent-qp");
        assert_eq!((c.id, c.if_name.as_deref()), (Some(7), Some("lan")));
        assert_eq!((c.rx_queues, c.tx_queues), (2, 3));
        assert_eq!((c.rx_ring, c.tx_ring), (Some(512), Some(1024)));
        assert_eq!(c.mac, Some(MacAddr([2, 0xfe, 0, 0, 0, 1])));
        let host = HostSide {
            name: Some("vpp7".into()),
            namespace: Some("lab".into()),
            mac: Some(MacAddr([2, 0, 0, 0, 0, 2])),
            mtu: Some(9000),
            down: false,
            bridge: None,
            ip4: Some(("192.0.2.1".parse().unwrap(), 24)),
            ip6: Some(("2001:db8::1".parse().unwrap(), 64)),
            ip4_gw: Some("192.0.2.2".parse().unwrap()),
            ip6_gw: Some("2001:db8::2".parse().unwrap()),
        };
        assert_eq!(c.host, host);
        assert_eq!(c.flags.0, 0x1ef);
        assert!(c.check().is_ok());
        assert_eq!(ok("tun gso no-gso").flags, Flags::TUN);
        assert_eq!(ok("host-bridge br0 rx-ring-size 0").host.bridge.as_deref(), Some("br0"));
        assert_eq!(ok(""), TapConfig::default());
    }

    #[test]
    fn mistakes_are_explained() {
        let err = |t: &str| parse(&mut Args::parse(t).unwrap()).unwrap_err().to_string();
        assert!(err("id 9000").contains("8192"));
        assert!(err("num-rx-queues 0").contains('1'));
        assert!(err("host-ip4-addr 192.0.2.1").contains("192.0.2.1"));
        assert!(err("bogus").contains("bogus"));
    }
}
