//! Commands as articles and manuals write them, sent as `vppctl` sends them.

use std::fs;

use anyhow::{Context, Result, ensure};
use thalweg_smoke::vppctl::vppctl;
use thalweg_smoke::{Config, Router};
use thalweg_testkit::{Lab, lab_test};

/// A command, and what its answer has to contain, in this order.
type Step = (&'static str, &'static [&'static str]);

/// Interfaces, addresses, neighbours and routes.
const SET_UP: &[Step] = &[
    ("create host-interface v2 name eth0", &["host-eth0"]),
    ("set int state host-eth0 up", &[]),
    ("set int ip address host-eth0 10.10.1.1/24", &[]),
    ("delete host-interface name eth0", &[]),
    (
        "create host-interface v2 name eth0 num-rx-queues 1 num-tx-queues 1 \
         hw-addr 02:fe:00:00:00:01 rx-size 65536 tx-size 65536 rx-per-block 8 tx-per-block 8 \
         qdisc-bypass-disable cksum-gso-disable",
        &["host-eth0"],
    ),
    ("delete host-interface name eth0", &[]),
    ("create host-interface v3 name eth0", &["host-eth0"]),
    ("delete host-interface name eth0", &[]),
    ("create host-interface name eth0", &["host-eth0"]),
    ("create host-interface name eth1", &["host-eth1"]),
    ("set host-interface qdisc-bypass host-eth0 disable", &[]),
    ("set host-interface qdisc-bypass host-eth0 enable", &[]),
    ("set int state host-eth0 up", &[]),
    ("set interface state host-eth1 up", &[]),
    ("set int ip address host-eth0 10.10.1.1/24", &[]),
    ("set interface ip address host-eth1 10.10.2.1/24", &[]),
    ("set interface mtu packet 1500 host-eth0", &[]),
    ("set interface mtu 1500 host-eth1", &[]),
    ("set interface promiscuous on host-eth0", &[]),
    ("set interface promiscuous off host-eth0", &[]),
    ("set interface rx-mode host-eth0 queue 0 polling", &[]),
    ("set interface rx-mode host-eth0 adaptive", &[]),
    ("ip route add 16.0.0.0/24 via 10.10.1.2", &[]),
    ("ip route add 48.0.0.0/24 via 10.10.2.2 host-eth1", &[]),
    ("ip neighbor host-eth0 10.10.1.9 02:00:00:00:09:09 static", &[]),
    ("set ip neighbor host-eth1 10.10.2.9 02:00:00:00:09:0a", &[]),
];

const SHOWN: &[Step] = &[
    ("show int", &["Name", "Idx", "State", "MTU (L3/IP4/IP6/MPLS)", "Counter", "Count", "local0"]),
    ("show interface host-eth0", &["host-eth0", "up", "1500"]),
    ("show int addr", &["host-eth0 (up):", "10.10.1.1/24", "host-eth1 (up):", "10.10.2.1/24"]),
    ("show hardware-interfaces", &["Name", "Idx", "Link", "Hardware", "host-eth0", "up"]),
    (
        "show hard host-eth0",
        &["host-eth0", "Link speed:", "Ethernet address", "RX Queue 0", "TX Queue 0"],
    ),
    ("show ip fib", &["ipv4-VRF:0", "16.0.0.0/24", "48.0.0.0/24"]),
    ("show ip fib 16.0.0.1", &["16.0.0.0/24", "10.10.1.2", "host-eth0"]),
    ("show ip neighbor", &["Age", "IP", "Flags", "Ethernet", "Interface", "10.10.1.9"]),
    ("show ip neighbors", &["02:00:00:00:09:09"]),
    ("show threads", &["ID", "Name", "Type", "LWP"]),
    ("show plugins", &["ip4"]),
    ("show unix files", &["host-eth0"]),
    ("show version", &["thalweg"]),
    ("show buffers", &["Pool Name"]),
    ("show memory", &["resident", "Buffer pool"]),
    ("show run", &["Thread 0", "Name", "State", "Calls", "Vectors", "Suspends", "Clocks"]),
    ("show runtime verbose", &["ip4-lookup"]),
    ("show err", &["Count", "Node", "Reason", "Severity"]),
    ("show errors", &["Count"]),
    ("show sflow", &["sflow sampling-rate", "sflow direction", "Status", "interfaces enabled"]),
];

const SFLOW: &[Step] = &[
    ("sflow sampling-rate 100", &[]),
    ("sflow polling-interval 10", &[]),
    ("sflow header-bytes 128", &[]),
    ("sflow enable host-eth0", &[]),
    ("sflow enable host-eth0 disable", &[]),
    ("sflow enable-disable host-eth0", &[]),
    ("sflow enable-disable host-eth1 1000", &[]),
    ("sflow direction rx", &[]),
    ("sflow drop-monitoring disable", &[]),
    (
        "show sflow",
        &[
            "sflow sampling-rate 100",
            "sflow direction rx",
            "sflow polling-interval 10",
            "sflow header-bytes 128",
            "sflow drop-monitoring disable",
            "sflow enable host-eth0",
            "Status",
            "interfaces enabled: 2",
            "packet samples sent:",
            "packet samples dropped:",
            "counter samples sent:",
            "counter samples dropped:",
        ],
    ),
    ("sflow enable-disable host-eth1 disable", &[]),
    ("sflow enable-disable host-eth0 disable", &[]),
];

const TRAFFIC: &[Step] = &[
    ("clear interfaces", &[]),
    ("clear runtime", &[]),
    ("clear errors", &[]),
    ("clear trace", &[]),
    ("trace add af-packet-input 100", &[]),
    (
        "ping 10.10.1.2 repeat 2 interval 0.01",
        &["116 bytes from 10.10.1.2: icmp_seq=1 ttl=64 time=", " ms", "2 sent, 2 received, 0%"],
    ),
    ("ping 10.10.2.2 repeat 1 size 200 source host-eth1", &["216 bytes from 10.10.2.2"]),
    ("ping 10.10.2.2 repeat 1 table-id 0", &["1 sent, 1 received"]),
    ("show trace", &["Packet 1", "af-packet-input", "ethernet-input", "ip4-input"]),
    ("show trace max 1", &["Packet 1"]),
    ("clear trace", &[]),
    ("show trace", &["No packets in trace buffer"]),
    ("show int host-eth0", &["rx packets", "rx bytes", "tx packets", "tx bytes"]),
    ("show runtime", &["Time ", "vector rate", "vector rates in", "af-packet-input"]),
    ("show hardware-interfaces | grep rx", &["rx"]),
];

/// The prototype's rates by interface, and what it counted.
const SAMPLED: &[Step] = &[
    ("clear errors", &[]),
    ("sflow enable-disable host-eth0 1", &[]),
    ("sflow enable-disable host-eth1 1000", &[]),
    ("ping 10.10.1.2 repeat 3 interval 0.01", &["3 sent, 3 received, 0%"]),
    ("show err", &["sflow packets processed", "sflow packets sampled"]),
    ("show run", &["sflow"]),
    ("sflow enable-disable host-eth1 2000", &[]),
    (
        "show sflow",
        &[
            "sflow enable host-eth0 rate 1\n",
            "sflow enable host-eth1 rate 2000\n",
            "Status",
            "host-eth0: index",
            "rate 1,",
            "host-eth1: index",
            "rate 2000,",
        ],
    ),
    ("sflow enable-disable host-eth1 2000 disable", &[]),
    ("sflow enable host-eth0 disable", &[]),
    ("show sflow", &["interfaces enabled: 0"]),
];

const LAYER_2: &[Step] = &[
    ("set int l2 xconnect host-eth0 host-eth1", &[]),
    ("set int l2 xconnect host-eth1 host-eth0", &[]),
    ("set int l3 host-eth0", &[]),
    ("set int l3 host-eth1", &[]),
];

const TRANSLATION: &[Step] = &[
    ("nat44 plugin enable sessions 16384", &[]),
    ("nat44 add interface address host-eth1", &[]),
    ("nat addr-port-assignment-alg default", &[]),
    ("set interface nat44 in host-eth0 out host-eth1 output-feature", &[]),
    ("nat44 add address 10.10.2.100 - 10.10.2.103", &[]),
    ("nat44 add static mapping tcp local 10.10.1.2 80 external host-eth1 8080", &[]),
    ("nat44 add static mapping local 10.10.1.3 external 10.10.2.103", &[]),
    ("set nat44 session limit 1000 vrf 0", &[]),
    ("set nat timeout udp 30 tcp-established 3600", &[]),
    ("nat44 forwarding enable", &[]),
    ("nat44 forwarding disable", &[]),
    ("nat addr-port-assignment-alg map-e psid 10 psid-offset 6 psid-len 6", &[]),
    ("nat addr-port-assignment-alg port-range 32000 - 60000", &[]),
    ("nat addr-port-assignment-alg default", &[]),
    ("show nat44 sessions", &["NAT44 ED sessions:", "-------- thread 1"]),
    ("show nat44 addresses", &["10.10.2.1", "10.10.2.100", "busy"]),
    ("show nat44 interfaces", &["host-eth0", "host-eth1"]),
    ("show nat44 interface address", &["host-eth1"]),
    ("show nat44 summary", &["max translations per thread: 16384", "total sessions: 0"]),
    (
        "show nat44 static mappings",
        &["local 10.10.1.2 80 external host-eth1 8080", "local 10.10.1.3 external 10.10.2.103"],
    ),
    ("show nat timeouts", &["udp timeout: 30sec", "tcp-established timeout: 3600sec"]),
    ("set interface nat44 in host-eth0 out host-eth1 output-feature del", &[]),
    ("nat44 plugin disable", &[]),
];

const TAKE_DOWN: &[Step] = &[
    ("ip route del 16.0.0.0/24 via 10.10.1.2", &[]),
    ("ip route del 48.0.0.0/24", &[]),
    ("set ip neighbor del host-eth0 10.10.1.9 02:00:00:00:09:09", &[]),
    ("set int ip address del host-eth0 10.10.1.1/24", &[]),
    ("set int state host-eth0 down", &[]),
    ("delete host-interface name eth0", &[]),
    ("delete host-interface name eth1", &[]),
    ("show int", &["local0"]),
];

/// Words of the CLI when it does not know or does not do something.
const COMPLAINTS: &[&str] = &[
    "unknown input",
    "nknown interface",
    "not supported",
    "rror",
    "failed",
    "refused",
    "expected",
];

fn run(router: &Router, steps: &[Step]) -> Result<()> {
    for (command, parts) in steps {
        let text = vppctl(router.socket(), command)?;
        let mut rest = text.as_str();
        for part in *parts {
            let at = rest.find(part).with_context(|| {
                format!("`{command}' lacks {part:?} in its place; it said:\n{text}")
            })?;
            rest = &rest[at + part.len()..];
        }
        if !command.starts_with("show") {
            let complaint = COMPLAINTS.iter().find(|word| text.contains(**word));
            ensure!(complaint.is_none(), "`{command}' failed:\n{text}");
        }
    }
    Ok(())
}

lab_test! {
    fn every_command_of_the_articles() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &Config::empty())?;
        for part in [SET_UP, SHOWN, SFLOW, TRAFFIC, SAMPLED, TRANSLATION, LAYER_2, TAKE_DOWN] {
            run(&router, part)?;
        }
        router.stop().map(drop)
    }

    /// `exec`, comments, joined lines, several commands in one input.
    fn files_and_comments() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &Config::empty())?;
        let file = router.dir().join("setup.vpp");
        let text = "# both sides\n\
            comment { set int state nowhere up }\n\
            create host-interface name eth0   # left\n\
            create host-interface \\\n  name eth1\n\n\
            set int state host-eth0 up\nset int state host-eth1 up\n\
            set int ip address host-eth0 10.10.1.1/24\nset int ip address host-eth1 10.10.2.1/24\n";
        fs::write(&file, text)?;
        let answer = vppctl(router.socket(), &format!("exec {}", file.display()))?;
        ensure!(!answer.contains("rror"), "{answer}");
        lab.ping_all()?;
        let both = router.cli("show version\nshow clock")?;
        ensure!(both.contains("thalweg v") && both.contains("Time now"), "{both}");

        fs::write(&file, "set int state host-eth1 down\nset int stat nowhere up\nshow version\n")?;
        let answer = router.refused(&format!("exec {}", file.display()))?;
        ensure!(answer.contains("CLI line error") && answer.contains("nowhere"), "{answer}");
        ensure!(!answer.contains("thalweg v"), "it went on after the mistake: {answer}");
        let shown = router.json("show interface host-eth1")?;
        ensure!(shown[0]["admin_up"] == false, "{shown}");
        router.stop().map(drop)
    }

    /// Commands of the startup configuration's own file run before the CLI answers.
    fn a_file_at_the_start() {
        let lab = Lab::new()?;
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("start.vpp");
        fs::write(&file, thalweg_smoke::host_pair().commands.join("\n"))?;
        let config = Config::empty().stanza(&format!("unix {{ exec {} }}", file.display()));
        let router = Router::start(&lab.router, &config)?;
        // Commands wait for the file to be done; packets cannot.
        let shown = router.cli("show int addr")?;
        ensure!(shown.contains("10.10.2.1/24"), "{shown}");
        lab.ping_all()?;
        router.stop().map(drop)
    }

    fn abbreviations_and_their_limits() {
        let lab = Lab::new()?;
        let router = Router::start(&lab.router, &Config::empty())?;
        for command in ["sh ver", "sho int", "show hard", "show run", "show err", "cl run", "sh buf"] {
            router.cli(command)?;
        }
        for (command, word) in [("s int", "s"), ("show nonsense", "nonsense"), ("frobnicate", "frob")] {
            let text = router.refused(command)?;
            ensure!(text.contains(word), "`{command}': {text}");
        }
        router.stop().map(drop)
    }
}
