"""`make install`, and clients that find the installed files by default."""

import grp
import os
import stat
import subprocess
import sys
import tempfile
import unittest

from lab import PROGRAM, Router, wait_for

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")

# The published program, except for the interface number. No paths of descriptions or sockets are
# given.
SNIPPET = """
from vpp_papi import VPPApiClient, VPPApiJSONFiles

vpp_api_dir = VPPApiJSONFiles.find_api_dir([])
vpp_api_files = VPPApiJSONFiles.find_api_files(api_dir=vpp_api_dir)
vpp = VPPApiClient(apifiles=vpp_api_files, server_address="/run/vpp/api.sock")
vpp.connect("vpp-api-client")
print(vpp.api.show_version().version)
print(vpp.api.sflow_sampling_rate_set(sampling_N=1000).retval)
print(vpp.api.sflow_sampling_rate_get().sampling_N)
print(vpp.api.sflow_polling_interval_set(polling_S=10).retval)
print(vpp.api.sflow_polling_interval_get().polling_S)
print(vpp.api.sflow_header_bytes_set(header_B=128).retval)
print(vpp.api.sflow_header_bytes_get().header_B)
print(vpp.api.sflow_enable_disable(hw_if_index=1, enable_disable=True).retval)
print(vpp.api.sflow_enable_disable(hw_if_index=2, enable_disable=True).retval)
print([d.hw_if_index for d in vpp.api.sflow_interface_dump()])
print([d.hw_if_index for d in vpp.api.sflow_interface_dump(hw_if_index=2)])
print(vpp.api.sflow_interface_dump(hw_if_index=1234))
vpp.disconnect()
"""


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.TemporaryDirectory(prefix="thalweg-install-")
        cls.dest = cls.dir.name
        # The program under test has been built already.
        release = os.path.abspath(os.path.dirname(PROGRAM))
        subprocess.run(
            ["make", "install", "CARGO=true", f"RELEASE={release}", f"DESTDIR={cls.dest}", "PREFIX=/usr"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )

    @classmethod
    def tearDownClass(cls):
        cls.dir.cleanup()

    def mode(self, path):
        return stat.S_IMODE(os.stat(self.dest + path).st_mode)

    def test_files(self):
        for program in ("thalweg", "thalctl"):
            self.assertEqual(self.mode(f"/usr/bin/{program}"), 0o755)
            run = [f"{self.dest}/usr/bin/{program}", "--version"]
            self.assertIn(program, subprocess.run(run, check=True, capture_output=True, text=True).stdout)
        for module in ("core/memclnt", "core/interface", "plugins/sflow"):
            self.assertTrue(os.path.exists(f"{self.dest}/usr/share/vpp/api/{module}.api.json"), module)
        unit = "/usr/lib/systemd/system/thalweg.service"
        self.assertEqual(self.mode(unit), 0o644)
        with open(self.dest + unit, encoding="utf-8") as file:
            text = file.read()
        self.assertIn("ExecStart=/usr/bin/thalweg run --config /etc/thalweg/thalweg.yaml", text)
        self.assertNotIn("@", text)

    def test_the_units_privileges_are_enough(self):
        """With exactly the capabilities of the unit, the sockets' group can be chosen."""
        with open(self.dest + "/usr/lib/systemd/system/thalweg.service", encoding="utf-8") as file:
            lines = dict(line.strip().split("=", 1) for line in file if "=" in line)
        names = lines["CapabilityBoundingSet"].lower().split()
        bounds = ",".join("+" + name.removeprefix("cap_") for name in names)
        self.assertIn("cap_chown", names)
        # Others than root run these tests in a namespace with one group, which leaves no choice.
        with open("/proc/self/gid_map", encoding="utf-8") as file:
            mapped = sum(int(line.split()[2]) for line in file)
        group = grp.getgrnam("daemon" if mapped > 1 else "root")
        with tempfile.TemporaryDirectory() as dir:
            socket = f"{dir}/cli.sock"
            stanza = f"unix {{ nodaemon runtime-dir {dir} cli-listen {socket} gid {group.gr_name} }}"
            program = f"{self.dest}/usr/bin/thalweg"
            privileges = ["setpriv", f"--bounding-set=-all,{bounds}", "--no-new-privs"]
            router = subprocess.Popen(
                [*privileges, program, "run", *stanza.split()], stderr=subprocess.PIPE, text=True
            )
            try:
                wait_for(lambda: os.path.exists(socket) or router.poll() is not None)
                self.assertIsNone(router.poll(), "ended at once")
                client = [f"{self.dest}/usr/bin/thalctl", "-s", socket, "show", "version"]
                subprocess.run(client, check=True, capture_output=True, timeout=60)
                self.assertEqual(os.stat(socket).st_gid, group.gr_gid)
            finally:
                router.terminate()
                _, log = router.communicate(timeout=60)
            self.assertEqual(router.returncode, 0, log)

    def test_published_program(self):
        router = Router("socksvr { socket-name /run/vpp/api.sock }", socket="/run/vpp/api.sock")
        try:
            vpp = router.client()
            for n in range(2):
                vpp.api.pg_create_interface_v3(interface_id=n)
            vpp.disconnect()
            # /usr/share as on a machine with the installation.
            script = (
                'mount -t tmpfs share /usr/share && mkdir -p /usr/share/vpp/api && '
                'mount --bind "$1/usr/share/vpp/api" /usr/share/vpp/api && exec "$2" -c "$3"'
            )
            environment = {k: v for k, v in os.environ.items() if k != "VPP_API_DIR"}
            run = subprocess.run(
                ["unshare", "--mount", "sh", "-c", script, "sh", self.dest, sys.executable, SNIPPET],
                env=environment,
                capture_output=True,
                text=True,
                timeout=60,
            )
            self.assertEqual(run.stderr, "")
            version, *rest = run.stdout.splitlines()
            self.assertRegex(version, r"^v\d")
            wanted = ["0", "1000", "0", "10", "0", "128", "0", "0", "[1, 2]", "[2]", "[]"]
            self.assertEqual(rest, wanted)
        finally:
            router.stop()
