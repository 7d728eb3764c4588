"""Metrics over HTTP, read by Prometheus' own parsers."""

import glob
import json
import os
import re
import socket
import time
import unittest
import urllib.error
import urllib.request

from lab import Case, Router, wait_for
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from vpp_papi.vpp_stats import VPPStats
from prometheus_client.parser import text_string_to_metric_families as prometheus

ACCEPTED = "application/openmetrics-text;version=1.0.0;q=0.75,text/plain;version=0.0.4;q=0.5"
HERE = os.path.dirname(os.path.abspath(__file__))


def samples(families):
    """Values by name and labels."""
    return {
        (s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples
    }


class Metrics(Case):
    stanzas = "metrics { listen 127.0.0.1:0 } cpu { workers 2 }"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        shown = json.loads(cls.vpp.api.cli_inband(cmd="show metrics | json").reply)
        cls.url = f"http://{shown['address']}"

    def setUp(self):
        if len(self.api.sw_interface_dump()) == 1:
            self.lab()
            self.cli("sflow sampling-rate 1000")
            self.cli("sflow enable-disable pg0")

    def get(self, path="/metrics", **headers):
        request = urllib.request.Request(self.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers, answer.read().decode()

    def read(self):
        _, text = self.get(Accept=ACCEPTED)
        return samples(openmetrics(text))

    def fresh(self):
        """Metrics of a moment after the call: figures may be 20 ms old."""
        loops = ("thalweg_main_loops_total", frozenset())
        for _ in range(2):
            old = self.read()[loops]
            wait_for(lambda: self.read()[loops] != old)
        return self.read()

    def value(self, metrics, metric, **labels):
        return metrics[(metric, frozenset(labels.items()))]

    def test_values_are_those_of_the_command_line(self):
        self.traffic("10.0.1.2", 3000)
        self.traffic("172.16.0.1", 500)
        metrics = self.fresh()
        interfaces = self.shown("show interface")
        self.assertLessEqual({"local0", "pg0", "pg1"}, {i["name"] for i in interfaces})
        for i in interfaces:
            name, counters = i["name"], i["counters"]
            get = lambda metric, **labels: self.value(
                metrics, f"thalweg_interface_{metric}", interface=name, **labels
            )
            for direction in ("rx", "tx"):
                for what in ("packets", "bytes"):
                    shown = counters[f"{direction}_{what}"]
                    self.assertEqual(get(f"{what}_total", direction=direction), shown)
            self.assertEqual(get("drops_total"), counters["drops"])
            self.assertEqual(get("punts_total"), counters["punt"])
            self.assertEqual(get("admin_up"), i["admin_up"])
            self.assertEqual(get("protocol_packets_total", protocol="ip4"), counters["ip4"])
        self.assertGreaterEqual(counters_of(interfaces, "pg0")["rx_packets"], 3500)

        # The same values in the statistics segment, which VPP's clients read.
        for node, reason, severity, count in self.errors():
            labels = {"node": node, "reason": reason, "severity": severity}
            self.assertEqual(self.value(metrics, "thalweg_node_errors_total", **labels), count)
        vectors = [
            self.value(metrics, "thalweg_node_vectors_total", node="ip4-input", worker=str(w))
            for w in (0, 1)
        ]
        self.assertEqual(sum(vectors), counters_of(interfaces, "pg0")["ip4"])

        # Each packet is accounted for.
        fates = {}
        for (metric, labels), count in metrics.items():
            if metric == "thalweg_worker_packets_total":
                fate = dict(labels)["event"]
                fates[fate] = fates.get(fate, 0) + count
        came = sum(fates[f] for f in ("received", "originated", "handed-in"))
        went = sum(fates[f] for f in ("sent", "delivered", "dropped", "consumed", "handed-out"))
        self.assertEqual(came, went)
        self.assertEqual(self.value(metrics, "thalweg_buffers", pool="default-numa-0", state="used"), 0)

        pool = self.value(metrics, "thalweg_sflow_pool_packets_total", interface="pg0")
        self.assertLessEqual(pool, counters_of(interfaces, "pg0")["rx_packets"])
        self.assertGreater(self.value(metrics, "thalweg_sflow_samples_taken_total", interface="pg0"), 0)

    def test_what_features_keep(self):
        names = {name for name, _ in self.read()}
        # Workers are not queried while NAT and tracking are unused.
        self.assertFalse({n for n in names if "nat44" in n or "conntrack" in n}, names)
        self.cli("create packet-generator interface pg7")
        self.cli("set interface state pg7 up")
        self.cli("create bridge-domain 7 learn-limit 9")
        self.cli("set interface l2 bridge pg7 7")
        self.cli("flow add 7 priority=1,ip,actions=ct(commit),normal")
        self.cli("flow add 7 priority=0,actions=normal")
        self.cli("set interface flow pg7 7")
        self.cli("nat44 plugin enable sessions 4096")
        self.cli("nat44 add address 10.0.1.7")
        self.cli("set interface nat44 in pg0 out pg1")
        self.traffic("10.0.1.2", 5)
        self.traffic("10.0.1.2", 3, mac="02:00:00:00:00:07", port="pg7")
        metrics = self.fresh()
        get = lambda name, **labels: self.value(metrics, f"thalweg_{name}", **labels)
        sessions = sum(get("nat44_sessions", worker=str(w), protocol="udp") for w in (0, 1))
        self.assertEqual(sessions, 1)
        self.assertEqual(get("nat44_sessions_max", worker="1"), 4096)
        created = sum(get("nat44_session_events_total", worker=str(w), event="created") for w in (0, 1))
        self.assertEqual(created, 1)
        ports = get("nat44_address_ports", address="10.0.1.7", pool="nat", protocol="udp")
        self.assertEqual(ports, 1)
        self.assertEqual(get("conntrack_connections", protocol="udp"), 1)
        self.assertGreaterEqual(get("conntrack_connections_max"), 1)
        self.assertEqual(get("flow_rules", set="7"), 2)
        self.assertEqual(get("flow_rule_packets_total", set="7"), 3)
        self.assertEqual(get("bridge_ports", bridge_domain="7"), 1)
        self.assertEqual(get("bridge_macs_learned", bridge_domain="7"), 1)
        self.assertEqual(get("bridge_macs_learned_max", bridge_domain="7"), 9)
        self.assertEqual(get("bridge_macs"), 1)
        self.assertEqual(get("bridge_mac_events_total", event="learned"), 1)
        # VPP's clients read the same from the segment.
        stats = VPPStats(os.path.join(self.router.dir, "stats.sock"))
        stats.connect()
        rows = [list(row) for row in stats["/nat44-ed/total-sessions"]]
        self.assertEqual(sum(map(sum, rows)), 1)
        self.assertEqual(stats["/nat44-ed/max-cfg-sessions"], 4096)
        interfaces = self.api.sw_interface_dump()
        inside = next(i.sw_if_index for i in interfaces if i.interface_name == "pg0")
        paths = [stats[f"/nat44-ed/in2out/{path}/udp"] for path in ("slowpath", "fastpath")]
        slow, fast = (sum(row[inside] for row in rows) for rows in paths)
        self.assertGreaterEqual(slow, 1)
        self.assertEqual(slow + fast, 5)
        drops = stats["/nat44-ed/out2in/slowpath/drops"]
        self.assertEqual(sum(row[inside] for row in drops), 0)
        stats.disconnect()
        self.cli("set interface nat44 in pg0 out pg1 del")
        self.cli("nat44 plugin disable")
        self.cli("set interface flow pg7 disable")

    def errors(self):
        for line in self.shown("show errors"):
            yield line["node"], line["reason"], line["severity"], line["count"]

    def test_the_rest(self):
        metrics = self.read()
        # The process metrics that common dashboards read of any program.
        self.assertGreater(self.value(metrics, "process_resident_memory_bytes"), 1 << 20)
        self.assertGreater(self.value(metrics, "process_cpu_seconds_total"), 0)
        started = self.value(metrics, "process_start_time_seconds")
        self.assertLess(abs(time.time() - started), 600)
        self.assertGreaterEqual(self.value(metrics, "thalweg_api_clients"), 1)
        for worker in ("0", "1"):
            self.assertGreater(self.value(metrics, "thalweg_worker_loops_total", worker=worker), 0)
            self.value(metrics, "thalweg_worker_busy_seconds_total", worker=worker)
            self.value(metrics, "thalweg_worker_cpu_seconds_total", worker=worker)
        version = self.cli("show version").split()[1].removeprefix("v")
        self.assertEqual(self.value(metrics, "thalweg_build_info", version=version), 1)

    def test_both_formats_say_the_same(self):
        headers, new = self.get(Accept=ACCEPTED)
        self.assertTrue(headers["Content-Type"].startswith("application/openmetrics-text"))
        headers, old = self.get()
        self.assertTrue(headers["Content-Type"].startswith("text/plain; version=0.0.4"))
        stable = lambda all: {
            key: value
            for key, value in all.items()
            if key[0].startswith(("thalweg_interface", "thalweg_node_errors"))
        }
        self.assertEqual(
            stable(samples(openmetrics(new))), stable(samples(prometheus(old)))
        )
        self.assertEqual(set(samples(openmetrics(new))), set(samples(prometheus(old))))
        for family in prometheus(old):
            self.assertIn(family.type, ("counter", "gauge"), family.name)
            self.assertNotEqual(family.documentation, "", family.name)

    def test_interfaces_come_and_go(self):
        loopback = self.loopback()
        name = self.interface(loopback).interface_name
        key = ("thalweg_interface_admin_up", frozenset({"interface": name}.items()))
        self.assertIn(key, self.fresh())
        self.ok(self.api.delete_loopback(sw_if_index=loopback))
        self.assertNotIn(key, self.fresh())

    def test_clients_that_are_none(self):
        with self.assertRaises(urllib.error.HTTPError) as error:
            self.get("/other")
        self.assertEqual(error.exception.code, 404)
        error.exception.close()
        host, port = self.url.removeprefix("http://").split(":")
        address = (host, int(port))
        # More connections than slots, all silent, and one that does not read its responses.
        silent = [socket.create_connection(address) for _ in range(50)]
        deaf = socket.create_connection(address)
        deaf.settimeout(60)
        try:
            for _ in range(1000):
                deaf.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        except OSError:
            pass
        self.assertGreater(len(self.read()), 100)
        for one in silent + [deaf]:
            one.close()
        self.assertGreater(self.shown("show metrics")["dropped"], 0)
        self.assertIn("clients dropped:", self.cli("show metrics"))

    def test_settings(self):
        self.assertNotIn("metrics", self.cli("show configuration"))
        old = self.url
        self.cli("metrics listen 127.0.0.1:0x", -1)
        self.assertIn("cannot listen", self.cli("metrics listen 192.0.2.1:9482", -1))
        self.assertIn("requests answered", self.cli("show metrics"))
        self.cli("metrics disable")
        self.assertIn("listen: none", self.cli("show configuration"))
        self.assertIn("metrics are disabled", self.cli("show metrics"))
        with self.assertRaises(OSError):
            self.get()
        self.cli("metrics default")
        shown = self.shown("show metrics")
        type(self).url = f"http://{shown['address']}"
        self.assertNotEqual(self.url, old)
        self.assertNotIn("metrics", self.cli("show configuration"))
        self.assertGreater(len(self.read()), 100)

    def test_dashboard(self):
        """Each query of the dashboard uses metrics and labels that exist."""
        metrics = self.read()
        names = {name for name, _ in metrics}
        labels = {label for _, all in metrics for label, _ in all}
        paths = glob.glob(os.path.join(HERE, "../../contrib/grafana/*.json"))
        self.assertTrue(paths)
        for path in paths:
            with open(path, encoding="utf-8") as file:
                dashboard = json.load(file)
            self.assertTrue(dashboard["title"] and dashboard["uid"])
            self.assertGreater(len(dashboard["panels"]), 5)
            ids = [panel["id"] for panel in dashboard["panels"]]
            self.assertEqual(len(ids), len(set(ids)))
            queries = [t["expr"] for p in dashboard["panels"] for t in p.get("targets", [])]
            queries += [v["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
            self.assertGreater(len(queries), 10)
            for query in queries:
                bare = re.sub(r'"[^"]*"', "", query)
                found = set(re.findall(r"\b(?:thalweg|process)_\w+", bare))
                self.assertTrue(found, query)
                self.assertEqual(found - names, set(), query)
                for inside in re.findall(r"\{([^}]*)\}", bare):
                    used = set(re.findall(r"(\w+)\s*[=!]", inside))
                    self.assertEqual(used - labels - {"instance", "job"}, set(), query)
                for inside in re.findall(r"\bby\s*\(([^)]*)\)", bare):
                    used = set(re.findall(r"\w+", inside))
                    self.assertEqual(used - labels - {"instance", "job"}, set(), query)


def counters_of(interfaces, name):
    (one,) = [i["counters"] for i in interfaces if i["name"] == name]
    return one


class Refused(unittest.TestCase):
    def test_off_unless_asked_for(self):
        router = Router()
        vpp = router.client()
        self.assertIn("metrics are disabled", vpp.api.cli_inband(cmd="show metrics").reply)
        vpp.disconnect()
        router.stop()
