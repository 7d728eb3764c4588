"""A router for each class of tests, and its clients."""

import atexit
import functools
import glob
import inspect
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from vpp_papi import VPPApiClient

NONE = 0xFFFFFFFF
PROGRAM = os.environ.get("THALWEG", "target/release/thalweg")

# Requests made by any test; __main__ compares them with all that exist.
called = set()


@functools.cache
def definitions():
    """The directory of the program's definitions of messages, which are made once."""
    directory = tempfile.TemporaryDirectory(prefix="thalweg-papi-")
    atexit.register(directory.cleanup)
    subprocess.run(
        [PROGRAM, "api", "json", "--dir", directory.name],
        check=True,
        stdout=subprocess.DEVNULL,
        timeout=LIMIT,
    )
    return directory.name


def offered():
    """All requests that the program supports."""
    services = set()
    for path in glob.glob(f"{definitions()}/*/*.api.json"):
        with open(path, encoding="utf-8") as document:
            services |= set(json.load(document)["services"])
    return services


class Recorder:
    """An api object that records which messages are sent."""

    def __init__(self, api):
        self._api = api

    def __getattr__(self, name):
        called.add(name)
        return getattr(self._api, name)


class Router:
    """A running router with its own directory."""

    def __init__(self, stanzas="", socket=None, config=False):
        self.dir = tempfile.mkdtemp(prefix="thalweg-papi-")
        self.socket = socket or os.path.join(self.dir, "api.sock")
        os.makedirs(os.path.dirname(self.socket), exist_ok=True)
        self.json = definitions()
        self.log = os.path.join(self.dir, "log")
        self.config_file = os.path.join(self.dir, "thalweg.yaml")
        words = ["--config", self.config_file] if config else []
        words += f"unix {{ runtime-dir {self.dir} log {self.log} }} {stanzas}".split()
        self.words = words
        self.start()

    def start(self):
        self.process = subprocess.Popen([PROGRAM, "run", *self.words])
        wait_for(lambda: os.path.exists(self.socket) or self.process.poll() is not None)

    def kill(self):
        """Kills it, as a crash would."""
        self.process.kill()
        self.process.wait(LIMIT)
        os.unlink(self.socket)

    def client(self, name="tests"):
        vpp = VPPApiClient(apidir=self.json, server_address=self.socket)
        vpp.connect(name)
        return vpp

    def await_log(self, pattern):
        """Waits until its log says this; whoever logs does not wait for the file."""
        path = self.log

        def logged():
            with open(path, encoding="utf-8") as log:
                return re.search(pattern, log.read())

        return wait_for(logged)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(LIMIT)
        with open(self.log, encoding="utf-8") as log:
            text = log.read()
        shutil.rmtree(self.dir)
        assert status == 0, f"status {status}\n{text}"
        return text


# Seconds that anything may take: processors may be busy with something else.
LIMIT = 60


def wait_for(condition, limit=LIMIT):
    """Waits until something is so, and returns it; the router's side of a connection is a thread of
    its own."""
    end = time.monotonic() + limit
    pause = 0.0005
    while not (seen := condition()):
        if time.monotonic() > end:
            what = inspect.getsource(condition).strip()
            raise AssertionError(f"waited {limit} s for `{what}`; last seen: {seen!r}")
        # Paced: this is what all others wait by.
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
    return seen


class Case(unittest.TestCase):
    """Tests that share a router and a client."""

    stanzas = ""

    @classmethod
    def setUpClass(cls):
        cls.router = Router(cls.stanzas)
        cls.vpp = cls.router.client()
        cls.api = Recorder(cls.vpp.api)
        cls.events = []
        cls.vpp.register_event_callback(lambda name, event: cls.events.append((name, event)))

    @classmethod
    def tearDownClass(cls):
        cls.vpp.disconnect()
        cls.router.stop()

    def cli(self, text, retval=0):
        reply = self.api.cli_inband(cmd=text + "\n")
        self.assertEqual(reply.retval, retval, reply.reply)
        return reply.reply

    def ok(self, reply):
        self.assertEqual(reply.retval, 0, reply)
        return reply

    def fails(self, retval, reply):
        self.assertEqual(reply.retval, retval, reply)
        return reply

    def loopback(self):
        return self.ok(self.api.create_loopback()).sw_if_index

    def interface(self, index):
        (one,) = [i for i in self.api.sw_interface_dump() if i.sw_if_index == index]
        return one

    def shown(self, command):
        """JSON output of a `show` command."""
        return json.loads(self.cli(f"{command} | json"))

    def counters(self, name):
        (one,) = [i for i in self.shown("show interface") if i["name"] == name]
        return one["counters"]

    def lab(self):
        """Two ports of the packet generator with a route from pg0 to pg1's neighbour 10.0.1.2."""
        for command in (
            "create packet-generator interface pg0",
            "create packet-generator interface pg1",
            "set interface state pg0 up",
            "set interface state pg1 up",
            "set interface ip address pg0 10.0.0.1/24",
            "set interface ip address pg1 10.0.1.1/24",
            "set ip neighbor pg1 10.0.1.2 02:00:00:00:01:02 static",
        ):
            self.cli(command)

    def traffic(self, destination, count, mac=None, port="pg0"):
        """Sends packets of 64 bytes into a port, and waits until they have been forwarded."""
        (index,) = [i for i in self.api.sw_interface_dump() if i.interface_name == port]
        before = self.counters(port)["rx_packets"]
        self.cli(
            f"packet-generator new {{ name t limit {count} size 64-64 source {port} data {{ "
            f"IP4: 02:00:00:00:00:99 -> {mac or index.l2_address} "
            f"UDP: 10.0.0.2 -> {destination} UDP: 1 -> 2 incrementing 8 }} }}"
        )
        self.cli("packet-generator enable-stream t")
        wait_for(lambda: self.counters(port)["rx_packets"] == before + count)
        self.cli("packet-generator delete t")
        # Some may still be in flight.
        wait_for(lambda: self.shown("show packet accounting")["threads"][-1]["in_flight"] == 0)

    def take_events(self, n):
        wait_for(lambda: len(self.events) >= n)
        taken, self.events[:] = list(self.events), []
        self.assertEqual(len(taken), n, taken)
        return taken
