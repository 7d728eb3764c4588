"""The statistics segment, read with VPP's own reader."""

import os
import sys
import threading
import time

from lab import Case, wait_for
from vpp_papi.vpp_stats import VPPStats

COUNTERS = {
    "/if/rx": ("rx_packets", "rx_bytes"),
    "/if/tx": ("tx_packets", "tx_bytes"),
    "/if/rx-multicast": ("rx_multicast", "rx_multicast_bytes"),
    "/if/rx-broadcast": ("rx_broadcast", "rx_broadcast_bytes"),
    "/if/tx-multicast": ("tx_multicast", "tx_multicast_bytes"),
    "/if/tx-broadcast": ("tx_broadcast", "tx_broadcast_bytes"),
}
SIMPLE = {
    "/if/drops": "drops",
    "/if/punt": "punt",
    "/if/ip4": "ip4",
    "/if/ip6": "ip6",
    "/if/rx-no-buf": "rx_no_buf",
    "/if/rx-miss": "rx_miss",
    "/if/rx-error": "rx_error",
    "/if/tx-error": "tx_error",
}


class Statistics(Case):
    stanzas = "cpu { workers 2 } statseg { per-node-counters on update-interval 0.05 }"

    def setUp(self):
        self.stats = VPPStats(os.path.join(self.router.dir, "stats.sock"))
        self.stats.connect()
        if len(self.api.sw_interface_dump()) == 1:
            self.lab()

    def tearDown(self):
        self.stats.disconnect()

    def fresh(self):
        """Waits until all values have been updated."""
        beat = self.stats["/sys/heartbeat"]
        wait_for(lambda: self.stats["/sys/heartbeat"] >= beat + 2)

    def of(self, name, index):
        column = self.stats[name][:, index]
        return column.sum_packets(), column.sum_octets()

    def test_system(self):
        self.fresh()
        self.assertLess(abs(self.stats["/sys/boottime"] - time.time()), 600)
        self.assertEqual(self.stats["/sys/num_worker_threads"], 2)
        # A row per thread, main first.
        self.assertEqual(len(self.stats["/sys/loops_per_worker"]), 3)
        self.assertEqual(len(self.stats["/sys/vector_rate_per_worker"]), 3)
        for name in ("/sys/vector_rate", "/sys/input_rate", "/sys/last_stats_clear"):
            self.assertGreaterEqual(self.stats[name], 0)
        pool = "/buffer-pools/default-numa-0"
        self.assertEqual(
            sorted(self.stats.ls(pool)), [f"{pool}/{n}" for n in ("available", "cached", "used")]
        )
        (shown,) = self.shown("show buffers")
        sums = [self.stats[f"{pool}/{n}"] for n in ("available", "cached", "used")]
        self.assertEqual(sum(sums), shown["total"])

    def test_interfaces_under_traffic(self):
        self.cli("clear interfaces")
        self.traffic("10.0.1.2", 2000)
        self.traffic("10.0.1.2", 30, mac="ff:ff:ff:ff:ff:ff")
        self.traffic("224.0.0.5", 40, mac="01:00:5e:00:00:05")
        self.traffic("172.16.0.1", 50)
        self.fresh()
        names = self.stats["/if/names"]
        for shown in self.shown("show interface"):
            index, counters = shown["index"], shown["counters"]
            self.assertEqual(names[index], shown["name"])
            for name, keys in COUNTERS.items():
                want = tuple(counters[key] for key in keys)
                self.assertEqual(self.of(name, index), want, (name, shown["name"]))
                link = self.stats[f"/interfaces/{shown['name']}/{name.removeprefix('/if/')}"]
                self.assertEqual((link.sum_packets(), link.sum_octets()), want)
            for name, key in SIMPLE.items():
                self.assertEqual(self.stats[name][:, index].sum(), counters[key], name)
                link = f"/interfaces/{shown['name']}/{name.removeprefix('/if/')}"
                self.assertEqual(self.stats[link].sum(), counters[key], name)
        pg0 = list(names).index("pg0")
        self.assertEqual(self.of("/if/rx", pg0), (2120, 2120 * 64))
        self.assertEqual(self.of("/if/rx-broadcast", pg0), (30, 30 * 64))
        self.assertEqual(self.of("/if/rx-multicast", pg0), (40, 40 * 64))
        self.assertEqual(self.of("/if/rx-unicast", pg0), (2050, 2050 * 64))
        # This address has no neighbour entry: the router sends an ARP request.
        self.traffic("10.0.1.77", 1)
        pg1 = list(names).index("pg1")
        wait_for(lambda: self.of("/if/tx-broadcast", pg1)[0] >= 1)
        self.assertGreaterEqual(self.stats["/if/drops"][:, pg0].sum(), 40)
        asked = lambda: self.stats["/net/arp/tx/requests"][:, pg1].sum()
        wait_for(lambda: asked() >= 1)
        for name in ("rx/requests", "rx/replies", "rx/gratuitous", "tx/replies", "tx/gratuitous"):
            self.assertEqual(self.stats[f"/net/arp/{name}"][:, pg1].sum(), 0, name)

    def test_mtu_exceeded(self):
        self.assertEqual(self.stats["/err/ip4-input/mtu_exceeded"].sum(), 0)
        for name in (
            "nat44-ed-in2out-slowpath/out of ports",
            "nat44-ed-in2out-slowpath/maximum sessions exceeded",
            "nat44-ed-in2out-output-slowpath/out of ports",
            "nat44-ed-out2in-slowpath/maximum sessions exceeded",
        ):
            self.assertEqual(self.stats["/err/" + name].sum(), 0, name)
        (pg0,) = [i for i in self.api.sw_interface_dump() if i.interface_name == "pg0"]
        self.cli("set interface mtu packet 100 pg1")
        self.cli(
            "packet-generator new { name long limit 7 size 200-200 source pg0 "
            "data { IP4: 02:00:00:00:00:99 -> " + str(pg0.l2_address) + " "
            "UDP: 10.0.0.2 -> 10.0.1.2 DF UDP: 1 -> 2 incrementing 8 } }"
        )
        self.cli("packet-generator enable-stream long")
        wait_for(lambda: self.stats["/err/ip4-input/mtu_exceeded"].sum() == 7)
        self.cli("packet-generator delete long")
        self.cli("set interface mtu packet 9000 pg1")

    def test_errors(self):
        self.traffic("172.16.0.1", 25)
        self.fresh()
        shown = {
            f"/err/{e['node']}/{e['reason'].replace('/', '_')}": e["count"]
            for e in self.shown("show errors")
        }
        self.assertTrue(shown)
        self.assertEqual(self.stats.set_errors(), shown)
        for name, count in shown.items():
            self.assertEqual(self.stats.get_err_counter(name), count)
        self.assertIn("ERRORS:", self.stats.set_errors_str())
        self.cli("clear errors")
        self.fresh()
        self.assertEqual(self.stats.set_errors(), {})

    def test_clearing(self):
        now = int(time.time())
        for clear in (
            lambda: self.cli("clear interfaces"),
            lambda: self.ok(self.api.sw_interface_clear_stats(sw_if_index=0xFFFFFFFF)),
            lambda: self.cli("clear errors"),
        ):
            self.traffic("10.0.1.2", 10)
            clear()
            self.fresh()
            self.assertGreaterEqual(self.stats["/sys/last_stats_clear"], now)
        self.cli("clear interfaces")
        self.fresh()
        for index in range(len(self.stats["/if/names"])):
            self.assertEqual(self.of("/if/rx", index), (0, 0))

    def test_nodes(self):
        self.cli("clear runtime")
        self.traffic("10.0.1.2", 1000)
        self.fresh()
        names = list(self.stats["/sys/node/names"])
        index = names.index("ip4-rewrite")
        self.assertEqual(self.ok(self.api.get_node_index(node_name="ip4-rewrite")).node_index, index)
        vectors = self.stats["/sys/node/vectors"][:, index].sum()
        self.assertEqual(vectors, 1000)
        self.assertEqual(self.stats["/nodes/ip4-rewrite/vectors"].sum(), vectors)
        for what in ("calls", "clocks"):
            self.assertGreater(self.stats[f"/nodes/ip4-rewrite/{what}"].sum(), 0)
            self.assertEqual(
                self.stats[f"/nodes/ip4-rewrite/{what}"].sum(),
                self.stats[f"/sys/node/{what}"][:, index].sum(),
            )
        self.assertEqual(self.stats["/nodes/ip4-rewrite/suspends"].sum(), 0)

    def test_interfaces_come_and_go(self):
        index = self.loopback()
        name = self.interface(index).interface_name
        link = f"/interfaces/{name}/rx"
        wait_for(lambda: self.stats.ls(link))
        self.assertEqual(list(self.stats["/if/names"])[index], name)
        self.assertEqual(self.stats[link].sum_packets(), 0)
        self.ok(self.api.delete_loopback(sw_if_index=index))
        wait_for(lambda: not self.stats.ls(link))
        self.assertEqual(list(self.stats["/if/names"])[index], "deleted")
        # The next one takes its slot.
        again = self.loopback()
        wait_for(lambda: self.stats.ls(link))
        self.assertEqual(list(self.stats["/if/names"])[again], name)
        self.ok(self.api.delete_loopback(sw_if_index=again))

    def test_readers_while_the_directory_changes(self):
        """A reader sees consistent vectors of equal length, while interfaces come and go."""
        self.cli("clear interfaces")
        self.traffic("10.0.1.2", 100)
        self.fresh()
        pg0 = list(self.stats["/if/names"]).index("pg0")
        stop, wrong, reads = threading.Event(), [], [0]

        def read():
            stats = VPPStats(os.path.join(self.router.dir, "stats.sock"))
            stats.connect()
            while not stop.is_set():
                try:
                    got = stats["/interfaces/pg0/rx"].sum_packets(), stats["/if/names"][pg0]
                    if got != (100, "pg0"):
                        wrong.append(got)
                    if stats["/if/rx"][:, pg0].sum_octets() != 6400:
                        wrong.append("octets")
                    reads[0] += 1
                except Exception as error:  # pylint: disable=broad-except
                    wrong.append(error)
                    break
            stats.disconnect()

        # Otherwise each call of this thread would wait for each reader's turn of 5 ms.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.0002)
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for _ in range(8):
            made = [self.loopback() for _ in range(12)]
            self.fresh()
            for index in made:
                self.ok(self.api.delete_loopback(sw_if_index=index))
            self.fresh()
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual(wrong, [])
        self.assertGreater(reads[0], 100)


class StatisticsAtOnce(Case):
    stanzas = ""

    def test_a_new_interface_is_there_when_the_call_returns(self):
        stats = VPPStats(os.path.join(self.router.dir, "stats.sock"))
        stats.connect()
        for index in range(20):
            reply = self.api.create_loopback()
            self.assertEqual(reply.retval, 0)
            sw_if = reply.sw_if_index
            name = f"loop{index}"
            self.assertEqual(stats["/if/names"][sw_if], name)
            self.assertEqual(stats[f"/interfaces/{name}/rx"].sum_packets(), 0)
            self.assertNotIn(f"/nodes/{name}-output/calls", stats.directory)
        self.cli("create packet-generator interface pg7")
        self.assertEqual(stats["/nodes/pg7-output/calls"].sum(), 0)
        self.assertTrue([n for n in stats.directory if n.startswith("/err/pg7-output/")])
        self.assertIn("pg7", list(stats["/if/names"]))
        self.assertTrue(stats.ls("/interfaces/pg7/tx-error"))
        self.assertEqual(stats["/err/ethernet-input/no error"].sum(), 0)
        self.cli("delete packet-generator interface pg7")
        self.assertNotIn("pg7", list(stats["/if/names"]))
        self.assertFalse(stats.ls("/interfaces/pg7/tx-error"))
        stats.disconnect()
