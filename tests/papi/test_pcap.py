"""Captures of packets that interfaces receive, send and drop."""

import os
import struct
import subprocess
import uuid

from lab import Case, wait_for


def packets(path):
    """Original lengths and captured bytes of the packets in a pcap file."""
    with open(path, "rb") as file:
        data = file.read()
    magic, major, minor, _, _, snap, link = struct.unpack_from("=IHHIIII", data)
    assert (magic, major, minor, link) == (0xA1B2C3D4, 2, 4, 1)
    at, found, last = 24, [], 0
    while at < len(data):
        seconds, micros, kept, length = struct.unpack_from("=IIII", data, at)
        assert kept <= snap and micros < 1_000_000 and seconds + micros / 1e6 >= last
        last = seconds + micros / 1e6
        found.append((length, data[at + 16 : at + 16 + kept]))
        at += 16 + kept
    assert at == len(data)
    return found


class Pcap(Case):
    stanzas = "cpu { workers 2 }"

    def setUp(self):
        if len(self.api.sw_interface_dump()) == 1:
            self.lab()
        self.name = f"thalweg_test_{uuid.uuid4().hex}.pcap"
        self.path = f"/tmp/{self.name}"

    def tearDown(self):
        if os.path.exists(self.path):
            os.remove(self.path)

    def on(self, **of):
        return self.api.pcap_trace_on(**{"filename": self.name, **of})

    def index(self, name):
        (one,) = [i for i in self.api.sw_interface_dump() if i.interface_name == name]
        return one.sw_if_index

    def test_received_and_sent(self):
        self.ok(self.on(capture_rx=True, capture_tx=True))
        self.fails(-7, self.on(capture_rx=True))
        self.traffic("10.0.1.2", 20)
        status = self.shown("pcap trace status")
        self.assertEqual((status["capturing"], status["packets"]), (True, 40))
        self.assertIn("40 of 1000", self.cli("pcap trace status"))
        self.ok(self.api.pcap_trace_off())
        found = packets(self.path)
        self.assertEqual(len(found), 40)
        # The TTL as received, and as sent.
        ttl = sorted(p[14 + 8] for _, p in found)
        self.assertEqual(len(set(ttl)), 2)
        self.assertEqual({length for length, _ in found}, {64})
        self.fails(-81, self.api.pcap_trace_off())
        self.assertFalse(self.shown("pcap trace status")["capturing"])

    def test_dropped(self):
        self.ok(self.on(capture_drop=True, sw_if_index=self.index("pg0")))
        self.traffic("10.0.1.2", 5)
        # The packet for another MAC address is a whole frame.
        self.traffic("10.0.1.2", 7, mac="02:00:00:00:00:77")
        # Dropped after Ethernet processing, so without its Ethernet header.
        self.traffic("224.0.0.99", 3, mac="01:00:5e:00:00:63")
        self.ok(self.api.pcap_trace_off())
        found = packets(self.path)
        self.assertEqual(len(found), 10)
        self.assertEqual({length for length, _ in found}, {64})
        macs = [p[:6].hex() for _, p in found]
        self.assertEqual((macs.count("020000000077"), macs.count("01005e000063")), (7, 3))

    def test_limits(self):
        self.ok(self.on(capture_rx=True, max_packets=6, max_bytes_per_packet=32))
        self.traffic("10.0.1.2", 50)
        self.ok(self.api.pcap_trace_off())
        found = packets(self.path)
        self.assertEqual([(length, len(kept)) for length, kept in found], [(64, 32)] * 6)
        # Capture one interface only, which received nothing.
        self.ok(self.on(capture_rx=True, sw_if_index=self.index("pg1")))
        self.traffic("10.0.1.2", 5)
        self.fails(-6, self.api.pcap_trace_off())
        # Interfaces created later are included.
        self.ok(self.on(capture_rx=True))
        self.cli("create packet-generator interface pg7\nset interface state pg7 up")
        self.traffic("10.0.1.2", 4, port="pg7")
        self.ok(self.api.pcap_trace_off())
        self.assertEqual(len(packets(self.path)), 4)

    def test_only_one_reason(self):
        (one,) = [
            e
            for e in self.shown("show errors verbose")
            if (e["node"], e["reason"]) == ("ethernet-input", "l3 mac mismatch")
        ]
        for error in (
            f"ethernet-input.{one['name']}",
            f"ethernet-input.{one['reason']}",
            "{ethernet-input}.{" + one["name"] + "}",
        ):
            self.ok(self.on(capture_drop=True, error=error))
            self.traffic("10.0.1.2", 7, mac="02:00:00:00:00:77")
            self.traffic("224.0.0.99", 3, mac="01:00:5e:00:00:63")
            self.ok(self.api.pcap_trace_off())
            self.assertEqual({p[:6].hex() for _, p in packets(self.path)}, {"020000000077"})
        self.cli(f"pcap trace drop file {self.name} error 'ethernet-input.{one['reason']}'")
        self.traffic("10.0.1.2", 2, mac="02:00:00:00:00:77")
        self.assertIn("2 packets written", self.cli("pcap trace rx tx drop off"))

    def test_a_filter(self):
        self.cli("classify filter pcap mask l3 ip4 dst match l3 ip4 dst 10.0.1.2")
        self.ok(self.on(capture_rx=True, filter=True))
        self.traffic("10.0.1.2", 4)
        self.traffic("172.16.0.1", 3)
        self.ok(self.api.pcap_trace_off())
        found = packets(self.path)
        self.assertEqual([p[30:34] for _, p in found], [bytes([10, 0, 1, 2])] * 4)
        self.cli("classify filter pcap del")
        self.fails(-6, self.on(capture_rx=True, filter=True))

    def test_filters_of_interfaces(self):
        """Chains of classifier tables: for captures of all, and of one interface."""
        pg0, pg1 = self.index("pg0"), self.index("pg1")
        self.cli("classify filter pcap mask l3 ip4 dst match l3 ip4 dst 10.0.1.2")
        self.cli("classify filter pg0 mask l3 ip4 dst match l3 ip4 dst 172.16.0.1")
        tables = lambda sw_if: list(self.ok(self.api.classify_pcap_get_tables(sw_if_index=sw_if)).indices)
        (of_all,), (of_pg0,) = tables(0), tables(pg0)
        self.assertEqual(tables(pg1), [])
        self.assertRegex(self.cli("show classify filter"), rf"pg0: +first table {of_pg0}\n")
        mask = self.ok(self.api.classify_table_info(table_id=of_all))
        find = lambda sw_if: self.api.classify_pcap_lookup_table(
            sw_if_index=sw_if,
            skip_n_vectors=mask.skip_n_vectors,
            match_n_vectors=mask.match_n_vectors,
            mask_len=len(mask.mask),
            mask=mask.mask,
        )
        self.assertEqual([self.ok(find(i)).table_index for i in (0, pg0)], [of_all, of_pg0])
        for index, port, expected in ((0, None, 4), (pg0, "pg0", 3)):
            self.ok(self.on(capture_rx=True, filter=True, sw_if_index=index))
            self.traffic("10.0.1.2", 4)
            self.traffic("172.16.0.1", 3)
            self.ok(self.api.pcap_trace_off())
            self.assertEqual(len(packets(self.path)), expected, port)
        # An interface may share a chain, and takes nothing along when it goes.
        self.ok(self.api.classify_pcap_set_table(sw_if_index=pg1, table_index=of_all, sort_masks=True))
        self.assertEqual(tables(pg1), [of_all])
        self.cli("create packet-generator interface pg8")
        pg8 = self.index("pg8")
        self.ok(self.api.classify_pcap_set_table(sw_if_index=pg8, table_index=of_all))
        self.cli("delete packet-generator interface pg8")
        self.assertEqual(tables(0), [of_all])
        self.assertNotIn("pg8", self.cli("show classify filter"))
        for sw_if in (pg8, 9999, 0xFFFFFFFF):
            self.fails(-7, self.api.classify_pcap_get_tables(sw_if_index=sw_if))
            self.fails(-7, self.api.classify_pcap_set_table(sw_if_index=sw_if, table_index=of_all))
            self.fails(-7, find(sw_if))
        self.fails(-7, self.api.classify_pcap_set_table(sw_if_index=0, table_index=77))
        self.assertEqual(self.ok(self.api.classify_pcap_set_table(sw_if_index=pg1)).table_index, 0xFFFFFFFF)
        self.cli("classify filter pg0 del\nclassify filter pcap del")
        self.assertEqual(self.shown("show classify tables"), [])

    def test_dispatches(self):
        """Lists the packets of each node, as tshark reads them."""
        fails = lambda text: self.cli(f"pcap dispatch trace {text}", -1)
        fails("off")
        fails("on file ../x")
        fails("on buffer-trace drop 5")
        fails("on post-mortem")
        fails("max 7")
        self.cli(f"pcap dispatch trace on max 1000 file {self.name} buffer-trace pg-input 3")
        fails("on")
        self.traffic("10.0.1.2", 3)
        self.cli("pcap dispatch trace buffer-trace pg-input 2")
        self.traffic("172.16.0.1", 5)
        status = self.shown("pcap dispatch trace status")
        self.assertEqual([t["packets"] for t in status["traced"]], [5])
        self.assertIn(f"records written to {self.path}", self.cli("pcap dispatch trace off"))
        read = subprocess.run(
            ["tshark", "-r", self.path, "-T", "fields", "-e", "vpp.NodeName", "-e", "ip.dst", "-e", "vpp.BufferIndex"],
            capture_output=True, text=True, check=True,
        )
        self.assertNotIn("malformed", read.stdout.lower())
        rows = [row.split("\t") for row in read.stdout.splitlines()]
        nodes = [row[0] for row in rows]
        for node, times in (("pg-input", 5), ("ethernet-input", 5), ("ip4-lookup", 5), ("ip4-rewrite", 3), ("drop", 2)):
            self.assertEqual(nodes.count(node), times, nodes)
        # A packet has one number on its way, and its destination is read at all nodes that hint.
        ways = {}
        for node, destination, number in rows:
            ways.setdefault(number, []).append((node, destination))
        self.assertEqual(len(ways), 5)
        for way in ways.values():
            self.assertEqual(way[0][0], "pg-input")
            seen = {destination for _, destination in way if destination}
            self.assertEqual(len(seen), 1, way)
        whole = subprocess.run(
            ["tshark", "-r", self.path, "-V"], capture_output=True, text=True, check=True
        ).stdout
        self.assertIn("current_length: 64", whole)
        self.assertIn("(pg0)", whole)
        fails("off")
        # Nothing was traced.
        self.cli(f"clear trace\npcap dispatch trace on file {self.name}")
        self.traffic("10.0.1.2", 3)
        self.assertIn("no packets were captured", self.cli("pcap dispatch trace off", -1))

    def test_words_of_vpps_harness(self):
        """Types its commands for captures, in its order and abbreviations."""
        first = self.cli("loop create").strip()
        second = self.cli("loop create").strip()
        self.cli(f"""set int ip address {first} 10.77.1.1/24
            set int state {first} up
            set int ip address {second} 10.77.2.1/24
            set int state {second} up
            set ip neighbor {second} 10.77.2.9 02:00:00:00:77:02
            packet-generator new {{
              name harness limit 10 size 128-128
              interface {first} tx-interface {second} node {second}-output
              buffer-flags ip4 offload
              buffer-offload-flags offload-ip-cksum offload-udp-cksum
              data {{
                IP4: 2.0.1 -> 2.0.2
                UDP: 10.77.1.9 -> 10.77.2.9 ttl 2 checksum 13
                UDP: 1234 -> 2345 checksum 11
                incrementing 86
              }}
            }}""")
        self.assertIn("capture disabled", self.cli("pcap dispatch trace status"))
        self.cli("pcap dispatch trace on max 100 buffer-trace pg-input 10")
        self.cli("pa en")
        wait_for(lambda: self.shown("pcap dispatch trace status")["records"] >= 30)
        self.assertIn("of 100 pkts", self.cli("pcap dispatch trace status"))
        self.cli("pcap dispatch trace off")
        os.remove("/tmp/dispatch.pcap")
        self.cli("classify filter pcap mask l3 ip4 src match l3 ip4 src 10.77.1.9")
        for filtered in ("", " filter"):
            self.cli(f"pcap trace rx tx max 1000 intfc any file {self.name}{filtered}")
            self.cli("pa en")
            wait_for(lambda: self.shown("pcap trace status")["packets"] == 10)
            self.cli("pcap trace rx tx off")
            found = packets(self.path)
            self.assertEqual(len(found), 10)
            for _, frame in found:
                # The checksum of the header, which was typed, is right.
                words = struct.unpack(">10H", frame[14:34])
                self.assertEqual(sum(words) % 0xFFFF, 0)
        for show in ("show cla t verbose 2", "show cla t verbose", "show cla t"):
            self.assertIn("TableIdx", self.cli(show))
        self.cli("classify filter pcap del mask l3 ip4 src")
        self.assertEqual(self.shown("show classify filter"), [])
        self.cli("packet-generator delete harness")

    def test_errors(self):
        self.fails(-7, self.on())
        self.fails(-7, self.on(capture_rx=True, max_packets=0))
        self.fails(-7, self.on(capture_rx=True, max_bytes_per_packet=10))
        self.fails(-7, self.on(capture_rx=True, max_packets=1_000_000, max_bytes_per_packet=9000))
        self.fails(-7, self.on(capture_rx=True, filename="../etc/x"))
        self.fails(-2, self.on(capture_rx=True, sw_if_index=9999))
        self.fails(-7, self.on(capture_drop=True, error="ip4-input.x"))
        self.fails(-6, self.on(capture_rx=True, filter=True))
        self.fails(-81, self.api.pcap_trace_off())
        self.ok(self.api.pcap_set_filter_function(filter_function_name="vnet_is_packet_traced"))
        self.fails(-6, self.api.pcap_set_filter_function(filter_function_name="x"))
        # A symbolic link is replaced, not followed.
        os.symlink("/nowhere/else", self.path)
        self.cli(f"pcap trace rx max 10 file {self.name}")
        self.traffic("10.0.1.2", 2)
        self.assertIn("2 packets written to", self.cli("pcap trace off"))
        self.assertFalse(os.path.islink(self.path))
        self.assertEqual(len(packets(self.path)), 2)
        self.assertIn("nothing to capture", self.cli(f"pcap trace max 3 file {self.name}", -1))
        self.assertIn("no capture is running", self.cli("pcap trace off", -1))
