"""The connection itself, the program and its nodes."""

import os
import subprocess
import time

from lab import Case, PROGRAM
from vpp_papi import VPPApiClient


class Basics(Case):
    stanzas = "cpu { workers 1 }"

    def test_version(self):
        reply = self.ok(self.api.show_version())
        self.assertEqual(reply.program, "thalweg")
        self.assertRegex(reply.version, r"^v\d+\.\d+\.\d+")
        self.assertIn(reply.version, self.cli("show version"))

    def test_ping(self):
        reply = self.ok(self.api.control_ping())
        self.assertEqual(reply.vpe_pid, self.router.process.pid)
        self.assertGreater(reply.client_index, 1 << 31)
        self.ok(self.api.memclnt_keepalive())

    def test_threads(self):
        reply = self.ok(self.api.show_threads())
        self.assertEqual((reply.count, len(reply.thread_data)), (2, 2))
        self.assertEqual([t.id for t in reply.thread_data], [0, 1])
        self.assertEqual(reply.thread_data[1].type, "workers")
        self.assertIn(reply.thread_data[1].name, self.cli("show threads"))

    def test_nodes(self):
        index = self.ok(self.api.get_node_index(node_name="ip4-lookup")).node_index
        self.assertNotEqual(index, self.ok(self.api.get_node_index(node_name="drop")).node_index)
        self.assertEqual(self.fails(-63, self.api.get_node_index(node_name="x")).node_index, 2**32 - 1)
        edge = {"node_name": "ip4-input", "next_name": "ip4-lookup"}
        next_index = self.ok(self.api.get_next_index(**edge)).next_index
        # An existing edge has the same number again. A missing node is an error.
        self.assertEqual(self.ok(self.api.add_node_next(**edge)).next_index, next_index)
        self.fails(-9, self.api.add_node_next(node_name="drop", next_name="ip4-lookup"))
        self.fails(-64, self.api.get_next_index(node_name="drop", next_name="ip4-lookup"))
        self.fails(-64, self.api.get_next_index(node_name="drop", next_name="x"))
        self.fails(-63, self.api.add_node_next(node_name="x", next_name="drop"))

    def test_floats(self):
        self.assertEqual(self.ok(self.api.get_f64_endian_value(f64_one=1.0)).f64_one_result, 1.0)
        wrong = self.api.get_f64_endian_value(f64_one=2.0)
        self.assertEqual(wrong.retval, 2**32 - 159)
        self.assertEqual(self.ok(self.api.get_f64_increment_by_one(f64_value=1.5)).f64_value, 2.5)

    def test_time(self):
        before = self.ok(self.api.show_vpe_system_time()).vpe_system_time
        after = self.ok(self.api.show_vpe_system_time()).vpe_system_time
        self.assertGreater(after, before)
        # The time is of the day, as VPP's is.
        self.assertLess(abs(time.time() - after.timestamp()), 600)

    def test_log(self):
        lines = self.api.log_dump()
        self.assertTrue(any("command line at" in line.message for line in lines), lines)
        self.assertEqual({int(line.level) for line in lines} - {3, 4, 6}, set())
        self.assertLess(abs(lines[-1].timestamp.timestamp() - time.time()), 600)
        self.assertEqual(self.api.log_dump(start_timestamp=time.time() + 1000), [])
        self.assertIn("command line at", self.cli("show log"))

    def test_commands(self):
        self.assertEqual(self.cli("comment { nothing }"), "")
        self.assertIn("unknown", self.cli("show bogus", -1))
        # Runs up to the first command that fails; output printed before is included.
        text = self.cli("show version\nshow bogus\nshow threads", -1)
        self.assertIn("thalweg v", text)
        self.assertNotIn("LWP", text)
        start = time.monotonic()
        self.cli("wait 0.2")
        self.assertGreaterEqual(time.monotonic() - start, 0.2)
        self.assertIn("tests", self.cli("show api clients"))
        self.assertIn("control_ping", self.cli("show api message-table"))

    def test_modules(self):
        versions = self.ok(self.api.api_versions()).api_versions
        names = {v.name: (v.major, v.minor, v.patch) for v in versions}
        self.assertEqual(names["memclnt.api"], (2, 1, 0))
        self.assertEqual(names["sflow.api"], (0, 1, 0))
        first = self.ok(self.api.get_first_msg_id(name="sflow_01234567")).first_msg_id
        self.assertGreater(first, 28)
        self.fails(-7, self.api.get_first_msg_id(name="nothing"))

    def test_bootstrap(self):
        # Without any files, the descriptions come over the socket.
        vpp = VPPApiClient(bootstrapapi=True, server_address=self.router.socket)
        vpp.connect("bootstrap")
        self.assertEqual(vpp.api.show_version().retval, 0)
        self.assertEqual(vpp.api.sw_interface_dump()[0].interface_name, "local0")
        vpp.disconnect()
        self.assertIn("memclnt", self.ok(self.api.get_api_json()).json)

    def test_permissions(self):
        self.assertEqual(os.stat(self.router.socket).st_mode & 0o777, 0o660)
        self.assertTrue(os.access(PROGRAM, os.X_OK))


class Configured(Case):
    # The only group in the tests' namespace.
    stanzas = "socksvr { default mode 0600 group root }"

    def test_mode_and_group(self):
        found = os.stat(self.router.socket)
        self.assertEqual((found.st_mode & 0o777, found.st_gid), (0o600, 0))

    def test_a_group_that_is_none(self):
        words = f"unix {{ runtime-dir {self.router.dir}/other }} socksvr {{ group who-is-that }}"
        done = subprocess.run(
            [PROGRAM, "run", *words.split()], capture_output=True, text=True, timeout=60
        )
        self.assertEqual(done.returncode, 2)
        self.assertIn("no group `who-is-that`", done.stderr)
