"""A govpp client (tests/govpp), built by scripts/govpp-client.sh if Go is installed."""

import os
import subprocess
import unittest

from lab import Case, wait_for

GOVPP = os.environ.get("GOVPP", "")


class Govpp(Case):
    stanzas = "statseg { per-node-counters on }"

    @unittest.skipIf(not GOVPP and not os.environ.get("CI"), "no Go: GOVPP names no client")
    def test_client(self):
        self.cli(
            "create packet-generator interface pg0\n"
            "set interface state pg0 up\n"
            "packet-generator new { name s limit 5 source pg0 size 64-64 "
            "data { IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 incrementing 20 } }\n"
            "packet-generator enable-stream"
        )
        wait_for(lambda: "Yes" not in self.cli("show packet-generator"))
        client = subprocess.run(
            [GOVPP, "-api", self.router.socket, "-stats", f"{self.router.dir}/stats.sock"],
            capture_output=True,
            text=True,
            timeout=60,
        )
        said = client.stdout + client.stderr
        self.assertEqual(client.returncode, 0, said)
        self.assertIn("statistics: ok", said)
        self.cli("sflow sampling-rate 10000")
