//! The commands, as people and scripts type them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod lab;

use lab::Lab;
use thalweg_sflow_agent::conf::{HsflowdConf, Reader};

#[test]
fn what_is_shown_can_be_typed() {
    let mut lab = Lab::new(1);
    lab.interface();
    lab.interface();
    for line in [
        "sflow sampling-rate 100",
        "sflow sampling-rate 40000 speed 40000M",
        "sflow sampling-rate 1000 speed 1G",
        "sflow sampling-rate 5 speed 100M",
        "sflow sampling-rate default speed 100M",
        "sflow polling-interval 10",
        "sflow header-bytes 64",
        "sflow direction both",
        "sflow drop-monitoring enable limit 250",
        "sflow enable loop0",
        "sflow enable-disable loop1 1000",
        "sflow collector add 192.0.2.1",
        "sflow collector add 2001:db8::1 port 7000",
        "sflow collector add localhost namespace there dev eth7",
        "sflow collector add fe80::7%eth7",
        "sflow agent-address auto dev eth0 prefer 10.0.0.0/8 prefer fd00::/8 exclude 10.9.0.0/16",
        "sflow agent-address 192.0.2.2",
        "sflow netlink disable group 5 6",
        "sflow host-interval 10",
        "sflow datagram-bytes 1200",
        "sflow sub-agent 7",
    ] {
        assert_eq!(lab.cli(line), "", "{line}");
    }
    let shown = lab.cli("show sflow");
    let configuration: Vec<&str> = shown.lines().take_while(|l| *l != "Status").collect();
    let expected = [
        "sflow sampling-rate 100",
        "sflow direction both",
        "sflow polling-interval 10",
        "sflow header-bytes 64",
        "sflow drop-monitoring enable limit 250",
        "sflow sampling-rate 1000 speed 1G",
        "sflow sampling-rate 40000 speed 40G",
        "sflow enable loop0",
        "sflow enable loop1 rate 1000",
        "sflow host-interval 10",
        "sflow datagram-bytes 1200",
        "sflow sub-agent 7",
        "sflow agent-address 192.0.2.2",
        "sflow collector add 192.0.2.1",
        "sflow collector add 2001:db8::1 port 7000",
        "sflow collector add localhost namespace there dev eth7",
        "sflow collector add fe80::7%eth7",
        "sflow netlink disable group 5 6",
    ];
    assert_eq!(configuration, expected);
    let mut other = Lab::new(1);
    other.interface();
    other.interface();
    for line in &configuration {
        other.cli(line);
    }
    let again = other.cli("show sflow");
    assert!(again.lines().take_while(|l| *l != "Status").eq(configuration), "{again}");
    let status: Vec<&str> = again.lines().skip_while(|l| *l != "Status").skip(1).take(7).collect();
    let expected = [
        "  interfaces enabled: 2",
        "  packet samples sent: 0",
        "  packet samples dropped: 0",
        "  counter samples sent: 0",
        "  counter samples dropped: 0",
        "  drop samples sent: 0",
        "  drop samples dropped: 0",
    ];
    assert_eq!(status, expected);
    let elected = "sflow agent-address auto dev eth0 prefer 10.0.0.0/8 exclude 10.9.0.0/16";
    other.cli(elected);
    assert!(other.cli("show sflow").lines().any(|line| line == elected));
    for line in ["sflow agent-address auto", "sflow collector del 192.0.2.1"] {
        other.cli(line);
    }
    let again = other.cli("show sflow");
    let mut configuration = again.lines().take_while(|l| *l != "Status");
    assert!(!configuration.any(|l| l.contains("192.0.2.")), "{again}");
    lab.close();
    other.close();
}

#[test]
fn errors_say_what_is_wrong() {
    let mut lab = Lab::new(1);
    lab.interface();
    lab.cli("sflow enable loop0");
    for (line, text, code) in [
        ("sflow sampling-rate", "missing sampling rate (argument 1): expected a number", -1),
        ("sflow polling-interval", "missing polling interval (argument 1)", -1),
        ("sflow header-bytes", "missing header bytes (argument 1)", -1),
        ("sflow direction", "usage: sflow direction rx|tx|both", -1),
        ("sflow enable-disable", "missing interface (argument 1)", -1),
        ("sflow enable local0", "Invalid interface, only works on physical ports", -2),
        ("sflow enable loop0 enable", "sflow is already enabled on `loop0'", -81),
        ("sflow enable loop7", "loop0", -1),
        ("sflow polling-interval 0", "a number from 1 to", -1),
        ("sflow direction up", "rx", -1),
        ("sflow drop-monitoring enable limit", "packets a second", -1),
        ("sflow netlink", "`enable', `disable' or `auto'", -1),
        ("sflow drop-monitoring", "usage: sflow drop-monitoring enable|disable", -1),
        ("sflow collector", "missing action (argument 1): expected `add' or `del'", -1),
        ("sflow collector add", "missing collector (argument 2): expected an IP address", -1),
        ("sflow netlink enable group 3 3", "give two different groups other than 0", -7),
        ("sflow sampling-rate many", "a number from 0 to 4294967295", -1),
        ("sflow sampling-rate 9 speed 10T", "a speed such as 10G", -1),
        ("sflow collector add 0.0.0.0", "invalid collector", -7),
        ("sflow collector add 192.0.2.1 port 0", "a number from 1 to 65535", -1),
        ("sflow collector del 192.0.2.9", "collector 192.0.2.9:6343 is not configured", -6),
        ("sflow collector add 192.0.2.256", "neither an IP address nor a host's name", -1),
        ("sflow collector add fe80::1", "say which, such as fe80::1%eth0", -7),
        ("sflow collector add 2001:db8::1%eth0", "only a link-local address takes a device", -1),
        ("sflow collector add c.example namespace ../x", "not the name of a network namespace", -7),
        ("sflow collector add c.example dev", "device", -1),
        ("sflow agent-address 0.0.0.0", "not a valid agent address", -7),
        ("sflow agent-address auto prefer 10.0.0.0/40", "a prefix such as", -1),
        ("sflow host-interval", "missing seconds (argument 1)", -1),
        ("sflow host-interval 100000", "a number from 0 to 86400", -1),
        ("sflow datagram-bytes 100", "a number from 200 to 65507", -1),
        ("sflow sub-agent -1", "a number from 0", -1),
        ("sflow agent-address here", "or `auto'", -1),
    ] {
        let error = lab.cli_error(line);
        assert!(error.to_string().contains(text), "{line}: {error}");
        assert_eq!(error.code(), code, "{line}: {error}");
    }
    lab.cli("sflow enable loop0 disable");
    let error = lab.cli_error("sflow enable loop0 disable");
    assert_eq!((error.code(), error.is_syntax()), (-81, false));
    lab.cli("sflow collector add 192.0.2.1");
    assert_eq!(lab.cli_error("sflow collector add 192.0.2.1 port 6343").code(), -81);
    for n in 2..=64 {
        lab.cli(&format!("sflow collector add 192.0.2.{n}"));
    }
    assert_eq!(lab.cli_error("sflow collector add 192.0.2.65").code(), -162);
    lab.close();
}

/// The router reads a configuration of hsflowd.
#[test]
fn a_configuration_of_hsflowd_is_taken() {
    let mut lab = Lab::new(1);
    let dir = std::env::temp_dir().join(format!("thalweg-conf-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let file = dir.join("hsflowd.conf");
    let command = format!("sflow agent-config {}", file.display());
    assert!(lab.cli_error(&command).to_string().contains("cannot read"));
    std::fs::write(
        &file,
        "sflow {\n polling = 15 sampling = 2K headerBytes = 96 datagramBytes = 1000\n \
         agent.cidr = 10.0.0.0/8 subAgentId = 9\n collector { ip = 192.0.2.7 udpport = 7000 }\n \
         dropmon { limit = 50 }\n dbus { } sampling.10G = 10K\n}\n",
    )
    .unwrap();
    let said = lab.cli(&command);
    assert!(said.contains("hsflowd.conf:6:2: dbus { } is not supported"), "{said}");
    let shown = lab.cli("show sflow");
    let configuration: Vec<&str> = shown.lines().take_while(|l| *l != "Status").collect();
    let expected = [
        "sflow sampling-rate 2000",
        "sflow direction rx",
        "sflow polling-interval 15",
        "sflow header-bytes 96",
        "sflow drop-monitoring enable limit 50",
        "sflow sampling-rate 10000 speed 10G",
        "sflow host-interval 15",
        "sflow datagram-bytes 1000",
        "sflow sub-agent 9",
        "sflow agent-address auto prefer 10.0.0.0/8",
        "sflow collector add 192.0.2.7 port 7000",
    ];
    assert_eq!(configuration, expected);
    // Settings that the router cannot follow are refused. With a mistake, nothing changes.
    std::fs::write(&file, "sflow { collector { ip = 192.0.2.8 }\n pcap { dev = eth0 } }").unwrap();
    let error = lab.cli_error(&command).to_string();
    assert!(error.contains("hsflowd.conf:2:2: pcap is not supported"), "{error}");
    std::fs::write(&file, "sflow { collector { ip = 192.0.2.8 } wrong = 1 }").unwrap();
    let error = lab.cli_error(&command).to_string();
    assert!(error.contains("hsflowd.conf:1:38: unknown keyword `wrong'"), "{error}");
    // The lines below that are what the service does in its own time.
    let again = lab.cli("show sflow");
    assert!(again.lines().take_while(|l| *l != "Status").eq(expected), "{again}");
    std::fs::remove_dir_all(&dir).unwrap();
    lab.close();
}

/// The blocks of the page for operators that a router or an agent is given: lines that are
/// indented, without remarks.
fn blocks(page: &str) -> Vec<Vec<&str>> {
    let mut blocks = vec![Vec::new()];
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(text) => {
                let text = text.split_once('#').map_or(text, |(text, _)| text).trim_end();
                blocks.last_mut().unwrap().push(text);
            }
            None => blocks.push(Vec::new()),
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Commands on the pages for operators can be typed, and the first page names each command.
#[test]
fn the_pages_for_operators_are_right() {
    let page = include_str!("../../../../docs/sflow.md");
    let agent = include_str!("../../../../docs/sflow-agent.md");
    let (mut typed, mut read) = (0, 0);
    for block in [blocks(page), blocks(agent)].concat() {
        if block[0] == "sflow {" {
            let text = block.join("\n");
            let (_, warnings) = HsflowdConf::parse(Reader::Agent, "docs", &text).unwrap();
            assert_eq!(warnings, []);
            read += 1;
            continue;
        }
        let mut lab = Lab::new(1);
        lab.interface();
        for line in block {
            if line.starts_with("sflow ") || line.starts_with("show sflow") {
                lab.cli(&line.replace("host-eth1", "loop0"));
                typed += 1;
            }
        }
        lab.close();
    }
    assert!(typed >= 8 && read >= 1, "{typed} commands and {read} configurations were found");
    let sflow = thalweg_feat_sflow::FEATURE.all_commands();
    let missing: Vec<_> = sflow.map(|c| c.path()).filter(|p| !page.contains(p)).collect();
    assert!(missing.is_empty(), "not on the page: {missing:?}");
}
