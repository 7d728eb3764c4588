//! Captures of real agents, printed and compared byte for byte with what sflowtool 6.11 prints.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};

use thalweg_sflow::SFLOW_PORT;
use thalweg_sflow::pcapfile::PcapReader;
use thalweg_sflow::pcapout::{Packets, PcapOut};
use thalweg_sflow::text::{Arrival, Format, Printer, Zone};

const CAPTURES: [&str; 9] = [
    "host_counters_30s",
    "hsflowd_ipv6agent_tcpinfo",
    "hsflowd_veth_flows",
    "ovs_compact_switch",
    "psample_kernel_dropmon",
    "vppmsgs_cumulative_drops",
    "vppmsgs_osindex_off",
    "vppmsgs_osindex_on",
    "vppmsgs_osindex_on_noattr",
];

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(data(name)).unwrap()
}

/// Prints a capture as `sflowtool -r` does, in UTC.
fn printed(capture: &str, format: Format, exact: bool) -> String {
    let mut printer = Printer::new(format).with_zone(Zone::utc()).with_exact(exact);
    let mut reader = PcapReader::open(data(&format!("{capture}.pcap")), SFLOW_PORT).unwrap();
    let mut out = Vec::new();
    while let Some(datagram) = reader.next_datagram().unwrap() {
        let arrival = Arrival::captured(datagram.time);
        let errors = printer.print(&arrival, datagram.payload, &mut out).unwrap();
        assert_eq!(errors, [], "{capture}");
    }
    assert_eq!(reader.stats().packets, reader.stats().datagrams);
    String::from_utf8(out).unwrap()
}

/// Fails at the first line that differs, with some lines before it.
fn compare(what: &str, found: &str, expected: &str) {
    let mut before = Vec::new();
    for (i, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        if found != expected {
            let context = before[before.len().saturating_sub(8)..].join("\n");
            panic!("{what}, line {}:\n{context}\n-{expected}\n+{found}", i + 1);
        }
        before.push(found);
    }
    assert_eq!(found.len(), expected.len(), "{what}: one is the beginning of the other");
}

#[test]
fn text() {
    for name in CAPTURES {
        compare(name, &printed(name, Format::Text, true), &expected(&format!("{name}.txt")));
    }
}

#[test]
fn line() {
    for name in CAPTURES {
        let expected = expected(&format!("{name}.line.csv"));
        compare(name, &printed(name, Format::Line, true), &expected);
    }
}

#[test]
fn indented_json() {
    for name in CAPTURES {
        let expected = expected(&format!("{name}.json"));
        compare(name, &printed(name, Format::JsonIndented, true), &expected);
    }
}

#[test]
fn compact_json() {
    let expected = expected("hsflowd_veth_flows.compact5.json");
    let printed = printed("hsflowd_veth_flows", Format::Json, true);
    let first_five: String = printed.split_inclusive('\n').take(5).collect();
    compare("compact JSON", &first_five, &expected);
}

#[test]
fn grep() {
    let expected = expected("hsflowd_veth_flows.grep.head400.txt");
    let printed = printed("hsflowd_veth_flows", Format::Grep, true);
    let head: String = printed.split_inclusive('\n').take(400).collect();
    compare("grep", &head, &expected);
}

#[test]
fn fields() {
    let names = "localtime,agent,srcIP,dstIP,srcIP6,dstIP6,IPProtocol,meanSkipCount,\
                 sampledPacketSize";
    let names = names.split(',').map(str::to_owned).collect();
    let expected = expected("hsflowd_veth_flows.fields.csv");
    compare("fields", &printed("hsflowd_veth_flows", Format::Fields(names), true), &expected);
}

#[test]
fn fields_that_no_datagram_has_are_told() {
    let names = ["agent", "srcIp", "srcIP", "nosuch"].map(str::to_owned).into();
    let mut printer = Printer::new(Format::Fields(names));
    let mut reader = PcapReader::open(data("hsflowd_veth_flows.pcap"), SFLOW_PORT).unwrap();
    while let Some(datagram) = reader.next_datagram().unwrap() {
        printer.format(&Arrival::captured(datagram.time), datagram.payload);
    }
    assert_eq!(printer.never_found().collect::<Vec<_>>(), ["srcIp", "nosuch"]);
}

/// A capture file made of what the datagrams of `capture` hold.
fn packets(capture: &str, packets: Packets) -> Vec<u8> {
    let mut reader = PcapReader::open(data(&format!("{capture}.pcap")), SFLOW_PORT).unwrap();
    let mut out = PcapOut::new(packets, SFLOW_PORT);
    while let Some(datagram) = reader.next_datagram().unwrap() {
        let errors = out.add(datagram.time, Some(datagram.source), datagram.payload);
        assert_eq!(errors, [], "{capture}");
    }
    assert_eq!(out.skipped(), 0);
    out.bytes().to_vec()
}

#[test]
fn captures_of_what_was_sampled_and_discarded() {
    let sampled = std::fs::read(data("hsflowd_veth_flows.samples-t.pcap")).unwrap();
    assert!(packets("hsflowd_veth_flows", Packets::Sampled) == sampled);
    let discarded = std::fs::read(data("vppmsgs_osindex_off.discards-T.pcap")).unwrap();
    assert!(packets("vppmsgs_osindex_off", Packets::Discarded) == discarded);
}

/// A capture of the datagrams prints as the capture that they came from.
#[test]
fn captures_of_datagrams_print_the_same() {
    for name in CAPTURES {
        let copy = std::io::Cursor::new(packets(name, Packets::Datagrams));
        let mut reader = PcapReader::new(copy, SFLOW_PORT).unwrap();
        let mut printer = Printer::new(Format::Text).with_zone(Zone::utc());
        let mut out = Vec::new();
        while let Some(d) = reader.next_datagram().unwrap() {
            printer.print(&Arrival::captured(d.time), d.payload, &mut out).unwrap();
        }
        compare(name, std::str::from_utf8(&out).unwrap(), &expected(&format!("{name}.txt")));
    }
}

/// sflowtool reads flags past the sampled header; the honest output has none.
#[test]
fn only_flags_that_were_sampled_are_shown_when_not_exact() {
    let exact = printed("hsflowd_ipv6agent_tcpinfo", Format::Text, true);
    let honest = printed("hsflowd_ipv6agent_tcpinfo", Format::Text, false);
    assert_eq!(exact.lines().count(), honest.lines().count() + 5);
    for name in CAPTURES.into_iter().filter(|name| *name != "hsflowd_ipv6agent_tcpinfo") {
        assert_eq!(printed(name, Format::Text, true), printed(name, Format::Text, false));
    }
}
