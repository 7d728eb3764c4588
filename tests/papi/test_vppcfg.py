"""The real vppcfg: check, dump, plan and apply, with files that `thalweg config` accepts, too."""

import json
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import unittest

import vppcfg.vppcfg
import yaml

from lab import LIMIT, PROGRAM, Router

VPPCFG = os.path.join(os.path.dirname(sys.executable), "vppcfg")
THALCTL = os.path.join(os.path.dirname(PROGRAM), "thalctl")

# Socket that `vppcfg apply` 1.2.4 always connects to; /run is the tests' own here.
FIXED = "/run/vpp/api.sock"

# vppcfg takes physical ports as they are.
PORTS = """\
create packet-generator interface pg0
create packet-generator interface pg1
create host-interface name va
create host-interface name vb
"""

FIRST = """
interfaces:
  host-va:
    description: to the north
    device-type: af-packet
    mac: 02:00:5e:00:00:01
    mtu: 1500
    addresses: [192.0.2.1/24, 198.51.100.1/32]
    sflow: true
  host-vb:
    device-type: af-packet
    mtu: 1400
    state: down
  pg0: {mtu: 9000, l2xc: pg1}
  pg1: {mtu: 9000, l2xc: pg0, sflow: true}
loopbacks:
  loop0: {mtu: 9000, addresses: [10.255.0.1/32, 10.254.0.1/24]}
  loop7: {description: spare, mtu: 1280, mac: 02:00:5e:00:00:07}
sflow: {header-bytes: 64, polling-interval: 30, sampling-rate: 1000}
"""

SECOND = """
interfaces:
  host-va: {mtu: 1400, addresses: [198.51.100.1/32]}
  host-vb: {mtu: 1500, addresses: [192.0.2.1/24], sflow: true}
  pg0: {mtu: 1500}
  pg1: {mtu: 2000, state: down}
loopbacks:
  loop0: {mtu: 1500, addresses: [10.255.0.1/32]}
  loop3: {mac: 02:00:5e:00:00:03}
sflow: {header-bytes: 128, polling-interval: 10, sampling-rate: 100000}
"""

BRIDGED = """
interfaces:
  host-va: {mtu: 1400}
  host-vb: {mtu: 1500, addresses: [192.0.2.1/24]}
  pg0: {mtu: 1400}
  pg1: {mtu: 1500}
bridgedomains:
  bd10:
    description: the lab
    mtu: 1400
    interfaces: [host-va, pg0]
    settings:
      learn: false
      mac-age-minutes: 5
      unicast-flood: false
      unicast-forward: true
      unknown-unicast-flood: false
  bd20: {interfaces: [pg1]}
sflow: {header-bytes: 128, polling-interval: 20, sampling-rate: 10000}
"""

# The same ports with another configuration.
BRIDGED_OTHERWISE = """
interfaces:
  host-va: {mtu: 1500}
  host-vb: {mtu: 1500}
  pg0: {mtu: 2000}
  pg1: {mtu: 1500, l2xc: host-vb}
bridgedomains:
  bd10: {interfaces: [host-va]}
  bd30: {mtu: 2000, interfaces: [pg0], settings: {unicast-forward: false}}
sflow: {header-bytes: 128, polling-interval: 20, sampling-rate: 10000}
"""

# TAPs, one of them bridged, and twins of ports and of a loopback.
TAPPED = """
interfaces:
  host-va: {mtu: 1500, lcp: xe0, addresses: [192.0.2.1/24, "2001:db8:2::1/64"]}
  host-vb: {mtu: 1500}
  pg0: {mtu: 1500, lcp: xe1, mac: 02:00:5e:00:00:09}
  pg1: {mtu: 1500}
  tap7: {mtu: 1400}
loopbacks:
  loop0: {lcp: lo0, addresses: [10.255.0.1/32]}
taps:
  tap7:
    host: {name: vpp7, mac: 02:00:5e:00:00:07, mtu: 1400}
    rx-ring-size: 512
    tx-ring-size: 1024
  tap8: {host: {name: vpp8}}
bridgedomains:
  bd10: {mtu: 1400, interfaces: [tap7]}
sflow: {header-bytes: 128, polling-interval: 20, sampling-rate: 10000}
"""

# VLANs: routed, cross connected, bridged with a BVI.
TAGGED = """
interfaces:
  host-va:
    mtu: 1500
    sub-interfaces:
      100: {description: customers, addresses: [192.0.2.1/24]}
      200: {mtu: 1400, encapsulation: {dot1q: 200}, l2xc: host-vb.20}
      300: {encapsulation: {dot1ad: 300, exact-match: true}}
      301: {encapsulation: {dot1ad: 300, inner-dot1q: 7, exact-match: true}, addresses: [198.51.100.1/24], state: down}
  host-vb:
    mtu: 1500
    sub-interfaces:
      20: {mtu: 1400, encapsulation: {dot1q: 222}, l2xc: host-va.200}
      400: {mtu: 1400}
  pg0: {mtu: 1400}
  pg1: {mtu: 9000}
loopbacks:
  loop0: {mtu: 1400, addresses: [10.255.0.1/24]}
bridgedomains:
  bd40: {mtu: 1400, bvi: loop0, interfaces: [host-vb.400, pg0]}
sflow: {header-bytes: 128, polling-interval: 20, sampling-rate: 10000}
"""

# Ports only: vppcfg has no sFlow defaults to return to; these are Thalweg's.
BARE = """
interfaces:
  host-va: {state: down}
  host-vb: {state: down}
  pg0: {state: down, mtu: 9000}
  pg1: {state: down, mtu: 9000}
sflow: {header-bytes: 128, polling-interval: 20, sampling-rate: 10000}
"""


# One document for each kind of thing that vppcfg's own tests accept and that this router has, in an
# order in which each change between two is one that vppcfg's tests make: what was routed becomes
# bridged, numbers of sub-interfaces change their tags, and so on. Every port is named.
KINDS = {
    # Two addresses of one subnet on one interface, of either family, and host routes.
    "addresses": """
interfaces:
  host-va: {mtu: 1500, addresses: [192.0.2.1/29, "2001:db8:1::1/64"], sub-interfaces: {
    100: {addresses: [192.0.2.9/29, 192.0.2.10/29]},
    101: {description: and of IPv6, addresses: ["2001:db8:2::1/64", "2001:db8:2::2/64"]}}}
  host-vb: {mtu: 1500}
  pg0: {mtu: 2000}
  pg1: {mtu: 1500, state: down}
loopbacks:
  loop0: {addresses: [10.0.0.1/32, "2001:db8::1/128"]}
bridgedomains:
  bd10: {description: one port, mtu: 2000, interfaces: [pg0]}
""",
    # Loopbacks with the largest MTU, a large number, and nothing at all.
    "loopbacks": """
interfaces: {host-va: {mtu: 1500}, host-vb: {mtu: 1500}, pg0: {mtu: 1500}, pg1: {mtu: 1500}}
loopbacks:
  loop0: {description: has both, mtu: 9216, addresses: [192.0.2.1/29]}
  loop20: {mtu: 9216}
  loop1234: {description: has a name}
""",
    # Loopbacks, ports and sub-interfaces that lend and borrow addresses, of either family.
    "unnumbered": """
interfaces:
  host-va: {mtu: 1500, addresses: [198.51.100.85/24, "2001:db8:98::1/64"], sub-interfaces: {
    100: {addresses: [203.0.113.185/29, "2001:db8:99::1/64"]}, 101: {unnumbered: loop0}}}
  host-vb: {mtu: 1500, unnumbered: host-va.100, sub-interfaces: {100: {unnumbered: host-va}, 101: {unnumbered: loop0}}}
  pg0: {mtu: 1500, addresses: [192.0.2.5/30, "2001:db8:2::1/64"]}
  pg1: {mtu: 1500, unnumbered: pg0}
loopbacks:
  loop0: {mtu: 9216, addresses: [192.0.2.1/32, "2001:db8:1::1/128"]}
  loop1: {mtu: 1500, addresses: [192.0.2.17/32, "2001:db8:10::1/128"]}
  loop2: {mtu: 1500, unnumbered: loop1}
  loop3: {mtu: 1500, unnumbered: host-va}
  loop4: {mtu: 1500, unnumbered: host-va.100}
""",
    # One and two tags of both kinds, exact or not, with the same numbers on several ports.
    "tags": """
interfaces:
  host-va: {mtu: 1500, sub-interfaces: {
    100: {description: "by its number"},
    101: {encapsulation: {dot1q: 100, inner-dot1q: 100, exact-match: true}},
    200: {encapsulation: {dot1ad: 100, exact-match: true}},
    201: {encapsulation: {dot1ad: 100, inner-dot1q: 100, exact-match: true}}}}
  host-vb: {mtu: 1500, sub-interfaces: {
    100: {description: the same},
    200: {encapsulation: {dot1ad: 100, exact-match: true}},
    201: {encapsulation: {dot1ad: 100, inner-dot1q: 100}}}}
  pg0: {mtu: 1500, sub-interfaces: {
    100: {description: and again},
    101: {encapsulation: {dot1q: 100, inner-dot1q: 100}},
    200: {encapsulation: {dot1ad: 100, exact-match: true}}}}
  pg1: {mtu: 1500}
""",
    # A sub-interface with one tag only so that one with two has a parent; the other two bridged.
    "customers": """
interfaces:
  host-va: {mtu: 1500, addresses: [198.51.100.85/24, "2001:db8:98::1/64"], sub-interfaces: {
    100: {description: a customer, addresses: [203.0.113.185/29, "2001:db8:99::1/64"]},
    101: {description: layer 2 for a customer}}}
  host-vb: {mtu: 1500}
  pg0: {description: in a bridge, mtu: 1500}
  pg1: {mtu: 1500, sub-interfaces: {
    200: {encapsulation: {dot1q: 1000, exact-match: true}},
    201: {encapsulation: {dot1ad: 1000}},
    202: {encapsulation: {dot1q: 1000, inner-dot1q: 1234, exact-match: true}, addresses: [192.168.1.1/24]},
    203: {encapsulation: {dot1ad: 1000, inner-dot1q: 1000}}}}
loopbacks:
  loop0: {mtu: 9216, addresses: [192.0.2.1/32, "2001:db8:1::1/128"]}
bridgedomains:
  bd10: {description: Bridge Domain 10, mtu: 1500, interfaces: [pg1.203, pg0]}
""",
    # Ports, a port and a sub-interface, two sub-interfaces of one port.
    "cross connects": """
interfaces:
  host-va: {mtu: 1500, l2xc: host-vb.100}
  host-vb: {mtu: 1500, sub-interfaces: {100: {description: to the port, l2xc: host-va}}}
  pg0: {mtu: 1500, l2xc: pg2}
  pg1: {mtu: 9000, sub-interfaces: {
    100: {mtu: 2500, l2xc: pg1.200, encapsulation: {dot1q: 100, exact-match: false}},
    200: {mtu: 2500, l2xc: pg1.100, encapsulation: {dot1q: 200, exact-match: false}},
    500: {mtu: 2000, encapsulation: {dot1ad: 500, exact-match: false}},
    501: {mtu: 2000, encapsulation: {dot1ad: 501, exact-match: false}}}}
  pg2: {mtu: 1500, l2xc: pg0}
""",
    # The same numbers with each other's tags.
    "tags swapped": """
interfaces:
  host-va: {mtu: 1500}
  host-vb: {mtu: 1500}
  pg0: {mtu: 1500}
  pg1: {mtu: 9000, sub-interfaces: {
    200: {mtu: 2500, l2xc: pg1.100, encapsulation: {dot1q: 100, exact-match: false}},
    100: {mtu: 2500, l2xc: pg1.200, encapsulation: {dot1q: 200, exact-match: false}},
    501: {mtu: 2000, encapsulation: {dot1ad: 500, exact-match: false}},
    500: {mtu: 2000, encapsulation: {dot1ad: 501, exact-match: false}}}}
  pg2: {mtu: 1500}
""",
    # Bridges with a BVI, without, with ports and sub-interfaces, and without any member.
    "bridges": """
interfaces:
  host-va: {mtu: 1500, sub-interfaces: {100: {mtu: 1400}}}
  host-vb: {mtu: 1500, sub-interfaces: {100: {mtu: 1400}}}
  pg0: {mtu: 3000}
  pg1: {mtu: 9000, sub-interfaces: {
    500: {mtu: 2000, encapsulation: {dot1ad: 500, exact-match: false}},
    501: {mtu: 2000, encapsulation: {dot1ad: 501, exact-match: false}}}}
  pg2: {description: bridged, mtu: 2000}
loopbacks:
  loop0: {addresses: [10.0.0.1/32, "2001:db8::1/128"]}
  loop1: {mtu: 2000, addresses: [10.0.1.1/24, "2001:db8:1::1/64"]}
  loop11: {mtu: 1400, mac: "02:de:ad:11:be:ef", addresses: [10.0.2.1/24, "2001:db8:3::1/64"]}
bridgedomains:
  bd1: {mtu: 2000, bvi: loop1, interfaces: [pg1.500, pg1.501, pg2]}
  bd10: {description: a port, mtu: 3000, interfaces: [pg0]}
  bd11: {mtu: 1400, bvi: loop11, interfaces: [host-va.100, host-vb.100], settings: {learn: true, mac-age-minutes: 10}}
  bd13: {description: no member}
""",
    # Ports that are not used, with their addresses.
    "unused": """
interfaces:
  host-va: {mtu: 1500, state: down, description: Not Used}
  host-vb: {mtu: 1500, state: down}
  pg0: {mtu: 9000, state: up, sub-interfaces: {100: {mtu: 9000, l2xc: pg1}}}
  pg1: {mtu: 9000, l2xc: pg0.100}
  pg2: {mtu: 1500, mac: "02:de:ad:00:00:02", state: down, description: Not Used}
""",
}


# The ports that stand for those of vppcfg's example.
STAND_INS = {
    "GigabitEthernet3/0/0": "pg3",
    "GigabitEthernet3/0/1": "pg4",
    "HundredGigabitEthernet12/0/0": "pg0",
    "HundredGigabitEthernet12/0/1": "pg1",
    "BondEthernet0": "pg2",
}


def example():
    """The document that comes with vppcfg, on our ports, without bonds, VXLAN, access lists and
    twins of sub-interfaces, for which not every kernel has VLAN links."""
    path = os.path.join(os.path.dirname(vppcfg.__file__), "example.yaml")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    for port, ours in STAND_INS.items():
        text = text.replace(port, ours)
    whole = yaml.safe_load(text)
    document = {k: whole[k] for k in ("interfaces", "loopbacks", "bridgedomains", "taps", "sflow")}
    missing = ("vxlan_tunnel1",)
    for name in missing:
        del document["interfaces"][name]
    for domain in document["bridgedomains"].values():
        domain["interfaces"] = [i for i in domain["interfaces"] if i not in missing]
    for qualities in (*document["interfaces"].values(), *document["loopbacks"].values()):
        qualities.pop("device-type", None)
        for some in qualities.get("sub-interfaces", {}).values():
            some.pop("lcp", None)
    # vppcfg wants a word about every port.
    document["interfaces"].update({"host-va": {}, "host-vb": {}})
    return document


def schema_keys():
    """Paths of all keys that the installed vppcfg's schema knows."""
    path = os.path.join(os.path.dirname(vppcfg.__file__), "schema.yaml")
    with open(path, encoding="utf-8") as file:
        top, *parts = yaml.safe_load_all(file)
    parts = {name: keys for part in parts for name, keys in part.items()}

    def walk(path, kind):
        yield path
        if isinstance(kind, dict):
            below = kind
        else:
            if step := {"map(": "*", "list(": "[]"}.get(kind[: kind.find("(") + 1]):
                path += f".{step}"
                yield path
            name = re.search(r"include\('([^']+)'", kind)
            below = parts[name.group(1)] if name else {}
        # A component may also be a kind of value.
        for key, kind in below.items() if isinstance(below, dict) else ():
            yield from walk(f"{path}.{key}", kind)

    return {key for name, kind in top.items() for key in walk(name, kind)}


def run(*words, fails=False):
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert (done.returncode != 0) == fails, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout, done.stderr


def forked(words, out, errors):
    """Does in a fork what the program vppcfg does, which would import its modules first."""
    for file, number in ((out, 1), (errors, 2)):
        os.dup2(file.fileno(), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    logging.root.handlers.clear()
    sys.argv = [VPPCFG, *words]
    vppcfg.vppcfg.main()


def by_vppcfg(*words):
    """Runs vppcfg; returns what it prints and logs."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        process = multiprocessing.get_context("fork").Process(
            target=forked, args=(words, out, errors)
        )
        process.start()
        process.join(LIMIT)
        out.seek(0), errors.seek(0)
        said = out.read(), errors.read()
        assert process.exitcode == 0, f"vppcfg {words}: {process.exitcode}\n{said[0]}\n{said[1]}"
        return said


def commands(plan):
    return [line for line in plan.splitlines() if line and not line.startswith("comment")]


class Machine(Router):
    """A router with ports."""

    def __init__(self):
        super().__init__()
        self.cli = os.path.join(self.dir, "cli.sock")
        self.exec(PORTS)

    def file(self, name, text):
        path = os.path.join(self.dir, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def exec(self, script):
        return run(THALCTL, "-s", self.cli, "exec", self.file("script", script))[0]

    def show(self, *words):
        return run(THALCTL, "-s", self.cli, "show", *words)[0]

    def config(self, verb, *words, **more):
        return run(PROGRAM, "config", verb, "-s", self.cli, *words, **more)[0]

    def dump(self):
        path = os.path.join(self.dir, "dump.yaml")
        _, said = by_vppcfg("dump", "-a", self.socket, "-o", path)
        for line in said.splitlines():
            # Linux control plane plugin: missing here.
            assert line.startswith("[INFO") or "LinuxCP" in line, said
        with open(path, encoding="utf-8") as file:
            return path, yaml.safe_load(file)

    def plan(self, path):
        out = os.path.join(self.dir, "plan")
        by_vppcfg("plan", "-a", self.socket, "-c", path, "-o", out)
        with open(out, encoding="utf-8") as file:
            return file.read()

    def apply(self, path):
        """Has vppcfg apply its plan."""
        os.makedirs(os.path.dirname(FIXED), exist_ok=True)
        os.symlink(self.socket, FIXED)
        try:
            return by_vppcfg("apply", "-a", self.socket, "-c", path)[1]
        finally:
            os.unlink(FIXED)


def without_marks(document):
    """vppcfg tags the objects it manages; a router that it never managed has no such tags."""
    document = yaml.safe_load(document)
    ours = document.get("thalweg", {})
    for kind in ("interfaces", "bridgedomains"):
        marked = ours.get(kind, {})
        for qualities in marked.values():
            if qualities.get("tag") == "vppcfg":
                del qualities["tag"]
        if not any(marked.values()):
            ours.pop(kind, None)
    if not ours:
        document.pop("thalweg", None)
    return document


class Vppcfg(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        run("ip", "link", "add", "va", "type", "veth", "peer", "name", "vb")
        self.machines = []

    def tearDown(self):
        for machine in self.machines:
            machine.stop()
        run("ip", "link", "del", "va")

    def machine(self):
        # Both would open the same devices, so they run one after the other.
        while self.machines:
            self.machines.pop().stop()
        self.machines.append(Machine())
        return self.machines[0]

    def reach(self, machine, path):
        """Executing vppcfg's plan results in the document, as both dumps confirm."""
        plan = machine.plan(path)
        machine.exec(plan)
        self.assertEqual(commands(machine.plan(path)), [])
        self.assertEqual(machine.config("plan", path), "")
        return plan

    def test_plans_lead_there_and_back(self):
        machine = self.machine()
        bare = machine.dump()[1]
        for name, text in (
            ("first", FIRST),
            ("second", SECOND),
            ("bridged", BRIDGED),
            ("otherwise", BRIDGED_OTHERWISE),
            ("tagged", TAGGED),
            ("tapped", TAPPED),
            ("again", FIRST),
            ("bare", BARE),
        ):
            path = machine.file(f"{name}.yaml", text)
            by_vppcfg("check", "-c", path)
            run(PROGRAM, "config", "check", path)
            self.assertNotEqual(commands(self.reach(machine, path)), [], name)
        after = machine.dump()[1]
        # MAC addresses stay if a document does not set them.
        for document in (bare, after):
            for qualities in document["interfaces"].values():
                qualities.pop("mac", None)
        self.assertEqual(after, bare)

    def test_thalweg_comes_to_the_same(self):
        for text in (FIRST, SECOND, BRIDGED, TAGGED):
            machine = self.machine()
            self.reach(machine, machine.file("a.yaml", text))
            theirs = without_marks(machine.config("dump"))
            interfaces = machine.show("interface", "address")
            dumped = machine.dump()[1]
            machine = self.machine()
            machine.config("apply", machine.file("a.yaml", text))
            ours = without_marks(machine.config("dump"))
            for document in (theirs, ours):
                # vppcfg makes interfaces with two tags last, so that indices differ.
                more = document.get("thalweg", {}).get("interfaces", {})
                for name in [name for name, own in more.items() if own.keys() == {"index"}]:
                    del more[name]
                if not more:
                    document.pop("thalweg", None)
                named = [document.get(k, {}) for k in ("interfaces", "loopbacks", "bridgedomains")]
                for qualities in (q for kind in named for q in kind.values()):
                    # Comments are Thalweg's; MAC addresses of devices are random.
                    for some in (qualities, *qualities.get("sub-interfaces", {}).values()):
                        some.pop("description", None), some.pop("mac", None)
            self.assertEqual(ours, theirs)
            self.assertEqual(machine.show("interface", "address"), interfaces)
            self.assertEqual(machine.dump()[1].keys(), dumped.keys())

    def test_its_own_example_leads_there_and_back(self):
        document = example()
        parts = [{k: document[k] for k in kinds} for kinds in (
            ("interfaces", "taps", "sflow"),
            ("interfaces", "loopbacks", "bridgedomains", "taps", "sflow"),
        )]
        parts.append({**document, "interfaces": {
            name: {k: v for k, v in qualities.items() if k != "sub-interfaces"}
            for name, qualities in document["interfaces"].items()
        }, "bridgedomains": {"bd11": document["bridgedomains"]["bd11"]}})
        for bridge in ("br0", "br1"):
            run("ip", "link", "add", bridge, "type", "bridge")
            self.addCleanup(run, "ip", "link", "del", bridge)
        machine = self.machine()
        more = "".join(f"create packet-generator interface pg{n}\n" for n in (2, 3, 4))
        # Users of MPLS make its table first, like with VPP.
        more += "mpls table add 0\n"
        machine.exec(more)
        for part in parts:
            path = machine.file("a.yaml", yaml.safe_dump(part))
            by_vppcfg("check", "-c", path)
            run(PROGRAM, "config", "check", path)
            self.assertNotEqual(commands(self.reach(machine, path)), [])
        twins = json.loads(machine.show("lcp", "|", "json"))["pairs"]
        self.assertEqual(
            {(pair["phy"], pair["name"]) for pair in twins},
            {("pg0", "ice12-0-0"), ("pg2", "bond0"), ("loop0", "lo0"), ("loop1", "bvi1"), ("loop11", "bvi11")},
        )
        # Thalweg gets there by itself, too, and vppcfg finds nothing left to do.
        for part in parts:
            machine = self.machine()
            machine.exec(more)
            path = machine.file("a.yaml", yaml.safe_dump(part))
            machine.config("apply", path)
            left = [c for c in commands(machine.plan(path)) if " tag " not in c]
            self.assertEqual(left, [])

    def test_each_kind_of_document_follows_each_other(self):
        machine = self.machine()
        machine.exec("create packet-generator interface pg2\n")
        for name, text in (*KINDS.items(), ("again", KINDS["addresses"])):
            document = yaml.safe_load(text)
            document["interfaces"].setdefault("pg2", {"state": "down"})
            path = machine.file("a.yaml", yaml.safe_dump(document))
            with self.subTest(name):
                by_vppcfg("check", "-c", path)
                run(PROGRAM, "config", "check", path)
                self.assertNotEqual(commands(self.reach(machine, path)), [])
        # Thalweg's own way there leaves nothing to plan, either.
        for name, text in KINDS.items():
            document = yaml.safe_load(text)
            document["interfaces"].setdefault("pg2", {"state": "down"})
            path = machine.file("a.yaml", yaml.safe_dump(document))
            with self.subTest(f"{name}, by thalweg"):
                machine.config("apply", path)
                self.assertEqual([c for c in commands(machine.plan(path)) if " tag " not in c], [])

    def test_apply_sends_its_plan(self):
        machine = self.machine()
        for text in (FIRST, BRIDGED, TAGGED, BRIDGED_OTHERWISE, SECOND):
            path = machine.file("a.yaml", text)
            n = len(commands(machine.plan(path)))
            said = machine.apply(path)
            self.assertIn(f"VPP API calls: {n}, success: {n}", said)
            self.assertEqual(commands(machine.plan(path)), [])
            self.assertIn("Nothing to do", machine.apply(path))
            self.assertEqual(machine.config("plan", path), "")

    def test_a_dump_makes_another_the_same(self):
        for text in (FIRST, BRIDGED, TAGGED):
            self.dumped_and_restored(text)

    def dumped_and_restored(self, text):
        machine = self.machine()
        self.reach(machine, machine.file("a.yaml", text))
        path, first = machine.dump()
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for how in ("exec", "apply", "thalweg"):
            machine = self.machine()
            path = machine.file("dumped.yaml", text)
            by_vppcfg("check", "-c", path)
            if how == "exec":
                self.reach(machine, path)
            elif how == "apply":
                machine.apply(path)
            else:
                machine.config("apply", path)
            self.assertEqual(machine.dump()[1], first, how)

    def test_mtus_of_bridges_are_held(self):
        machine = self.machine()
        path = machine.file("a.yaml", BRIDGED.replace("pg0: {mtu: 1400}", "pg0: {mtu: 1500}"))
        run(VPPCFG, "check", "-c", path, fails=True)
        _, errors = run(PROGRAM, "config", "check", path, fails=True)
        self.assertRegex(errors, r"bridgedomains\.bd10\.interfaces\[1\]: .*pg0.*1500.*1400")

    def test_what_does_not_fit_is_named(self):
        # vppcfg accepts it; Thalweg reports what it cannot do, and changes nothing.
        machine = self.machine()
        text = """
interfaces:
  pg0:
    mtu: 1500
    device-type: dpdk
"""
        path = machine.file("a.yaml", text)
        _, errors = run(PROGRAM, "config", "check", path, fails=True)
        self.assertIn("a.yaml:5:", errors)
        self.assertIn("interfaces.pg0.device-type: only a host interface has this setting", errors)

    def test_what_a_dump_says_of_ports(self):
        machine = self.machine()
        machine.exec("create loopback interface\nsflow enable pg1\nset interface state pg0 up\n")
        interfaces = machine.dump()[1]["interfaces"]
        self.assertEqual(interfaces["host-va"]["device-type"], "af-packet")
        self.assertRegex(interfaces["host-va"]["mac"], r"^[0-9a-f:]{17}$")
        self.assertEqual(interfaces["host-va"]["state"], "down")
        self.assertEqual(interfaces["pg1"]["sflow"], True)
        self.assertNotIn("state", interfaces["pg0"])

    def test_keys_are_all_known(self):
        here = os.path.dirname(os.path.abspath(__file__))
        with open(f"{here}/../../crates/program/router/tests/vppcfg/keys.txt", encoding="utf-8") as file:
            listed = {line.split("\t")[0].strip() for line in file if not line.startswith("#")}
        self.assertEqual(listed, schema_keys())

    def test_what_there_is_not_yet(self):
        machine = self.machine()
        for text, where in (
            ("vxlan_tunnels: {vxlan_tunnel0: {local: 192.0.2.1, remote: 192.0.2.2, vni: 7}}", "vxlan_tunnels"),
        ):
            # The check fails when one of these becomes supported; add it to the plans above.
            path = machine.file("a.yaml", f"interfaces: {{pg0: {{}}}}\n{text}\n")
            refused = subprocess.run(
                [PROGRAM, "config", "check", path], capture_output=True, text=True, timeout=60
            )
            self.assertEqual(refused.returncode, 2)
            self.assertIn(f"not supported yet: {where}", refused.stderr)
        # A plan stops at an unknown command, and reports it.
        path = machine.file("plan", "create vxlan tunnel src 192.0.2.1 dst 192.0.2.2 vni 7\n")
        done = subprocess.run(
            [THALCTL, "-s", machine.cli, "exec", path], capture_output=True, text=True, timeout=60
        )
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("vxlan", done.stdout + done.stderr)
