"""IPv6 through the packet generator: templates, ports of IP packets, captures, filters, traces."""

import os
import uuid

from lab import Case, wait_for
from test_pcap import packets

FAR = "2001:db8:1::2"


class Generated(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name in ("pg0", "pg1"):
            cls.api.cli_inband(cmd=f"create packet-generator interface {name}")
        for command in (
            "create packet-generator interface pg6 mode ip6",
            "set interface state pg0 up",
            "set interface state pg1 up",
            "set interface state pg6 up",
            "set interface mac address pg0 02:00:00:00:00:01",
            "set interface ip address pg0 2001:db8::1/64",
            "set interface ip address pg1 2001:db8:1::1/64",
            "set interface ip address pg6 2001:db8:6::1/64",
            f"set ip neighbor pg1 {FAR} 02:00:00:00:01:02 static",
        ):
            reply = cls.api.cli_inband(cmd=command)
            assert reply.retval == 0, reply

    def setUp(self):
        self.name = f"thalweg_test_{uuid.uuid4().hex}.pcap"
        self.path = f"/tmp/{self.name}"
        self.addCleanup(lambda: os.path.exists(self.path) and os.remove(self.path))

    def send(self, port, data, count=4):
        """Has a port receive packets; all have been handled then."""
        before = self.counters(port)["rx_packets"]
        self.cli(f"packet-generator new {{ name s limit {count} interface {port} data {{ {data} }} }}")
        self.cli("packet-generator enable-stream s")
        wait_for(lambda: self.counters(port)["rx_packets"] == before + count)
        self.cli("packet-generator delete s")
        # Some may still be in flight.
        wait_for(lambda: self.shown("show packet accounting")["threads"][-1]["in_flight"] == 0)

    def captured(self, data, port="pg0", filter="", count=4):
        self.cli(f"pcap trace rx tx file {self.name} intfc any{filter}")
        self.send(port, data, count)
        self.cli("pcap trace rx tx off")
        return [p for _, p in packets(self.path)]

    def test_a_template(self):
        eth = "IP6: 0200.0000.0009 -> 0200.0000.0001"
        found = self.captured(f"""{eth} UDP: 2001:db8::9 - 2001:db8::c -> {FAR} hop-limit 9
            UDP: 1000 -> 2000 incrementing 40""")
        self.assertEqual(len(found), 8)
        self.assertEqual(sorted(p[21] for p in found), [8] * 4 + [9] * 4)
        self.assertEqual({p[37] for p in found}, {9, 10, 11, 12})
        # Forwarded to the neighbour's MAC address, else unchanged.
        sent = [p for p in found if p[21] == 8]
        self.assertEqual({p[:6].hex() for p in sent}, {"020000000102"})
        came = {p[37]: p[54:] for p in found if p[21] == 9}
        self.assertEqual(came, {p[37]: p[54:] for p in sent})

    def test_an_echo_is_answered(self):
        found = self.captured("""IP6: 0200.0000.0009 -> 0200.0000.0001
            ICMP6: 2001:db8::9 -> 2001:db8::1 ICMP6 echo_request id 7 seq 8 incrementing 40""")
        kinds = [p[54] for p in found if p[20] == 58]
        self.assertEqual(kinds.count(128), 4)
        # The host is not known: the router asks for it before it answers.
        self.assertGreaterEqual(kinds.count(135), 1)

    def test_a_port_of_ip_packets(self):
        found = self.captured(f"UDP: 2001:db8:6::9 -> {FAR} UDP: 1 -> 2 incrementing 40", "pg6")
        sent = [p for p in found if p[:6].hex() == "020000000102"]
        self.assertEqual((len(sent), {p[21] for p in sent}), (4, {63}))

    def test_a_filter(self):
        self.cli(f"classify filter pcap mask l3 ip6 dst match l3 ip6 dst {FAR}")
        eth = "IP6: 0200.0000.0009 -> 0200.0000.0001"
        found = self.captured(f"{eth} UDP: 2001:db8::9 -> {FAR} UDP: 1 -> 2", filter=" filter")
        self.assertEqual(len(found), 8)
        self.cli(f"pcap trace rx file {self.name} intfc any filter")
        self.send("pg0", f"{eth} UDP: 2001:db8::9 -> 2001:db8:1::77 UDP: 1 -> 2")
        self.assertIn("no packets were captured", self.cli("pcap trace rx tx off", -1))
        self.cli("classify filter pcap del")

    def test_a_trace(self):
        self.cli("trace add pg-input 2")
        self.send("pg0", f"""IP6: 0200.0000.0009 -> 0200.0000.0001
            TCP: 2001:db8::9 -> {FAR} TCP: 80 -> 99 SYN incrementing 40""")
        text = self.cli("show trace")
        at = -1
        for step in ("pg-input", "ethernet-input", "ip6-input", "ip6-lookup", "ip6-rewrite", "pg1-output"):
            after = text.find(f": {step}\n", at + 1)
            self.assertGreater(after, at, f"{step} in {text}")
            at = after
        for part in (f"2001:db8::9 -> {FAR}", "hop limit 64", "hop limit 63", "80 -> 99"):
            self.assertIn(part, text)
        self.cli("clear trace")
        # The trace has only what a filter passes.
        self.cli(f"classify filter trace mask l3 ip6 dst match l3 ip6 dst {FAR}")
        self.cli("trace add pg-input 10 filter")
        eth = "IP6: 0200.0000.0009 -> 0200.0000.0001"
        self.send("pg0", f"{eth} UDP: 2001:db8::9 -> 2001:db8:1::77 UDP: 1 -> 2")
        self.send("pg0", f"{eth} UDP: 2001:db8::9 -> {FAR} UDP: 1 -> 2", 3)
        text = self.cli("show trace")
        self.assertEqual(text.count("Packet "), 3, text)
        self.cli("clear trace\nclassify filter trace del")

    def test_listeners(self):
        """The groups that interfaces report, and their messages."""
        (one,) = self.shown("show ip6 mld pg1")
        self.assertEqual((one["interface"], one["version"]), ("pg1", 2))
        self.assertIn("ff02::1:ff00:1", one["groups"])
        self.assertIn("ff02::2", one["groups"])
        self.assertGreaterEqual(one["reports"], 1)
        self.cli(f"pcap trace tx file {self.name} intfc pg1")
        self.cli("set interface ip address pg1 2001:db8:7::77/64")
        sent = lambda: self.shown("show ip6 mld pg1")[0]["reports"] > one["reports"]
        wait_for(sent)
        wait_for(lambda: self.shown("pcap trace status")["packets"] > 0)
        self.cli("pcap trace rx tx off")
        report = next(p for _, p in packets(self.path) if p[20] == 0 and p[62] == 143)
        self.assertEqual((report[:6].hex(), report[21]), ("333300000016", 1))
        self.cli("set interface ip address del pg1 2001:db8:7::77/64")
