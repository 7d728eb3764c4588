"""sFlow settings, and a program published by a user."""

import os
import socket
import subprocess
import sys
import textwrap

from lab import LIMIT, Case


class SFlow(Case):
    def test_settings(self):
        for name, field, value, read in (
            ("sampling_rate", "sampling_N", 1000, 1000),
            ("polling_interval", "polling_S", 30, 30),
            ("header_bytes", "header_B", 100, 128),
            ("header_bytes", "header_B", 1, 64),
            ("header_bytes", "header_B", 9999, 256),
            ("direction", "sampling_D", 2, 2),
            ("direction", "sampling_D", 3, 3),
            ("direction", "sampling_D", 1, 1),
            ("drop_monitoring", "drop_M", 7, 1),
            ("drop_monitoring", "drop_M", 0, 0),
        ):
            setter = getattr(self.api, f"sflow_{name}_set")
            getter = getattr(self.api, f"sflow_{name}_get")
            self.ok(setter(**{field: value}))
            self.assertEqual(getattr(getter(), field), read, name)
        self.ok(self.api.sflow_sampling_rate_set())
        self.assertEqual(self.api.sflow_sampling_rate_get().sampling_N, 10000)
        self.fails(-7, self.api.sflow_polling_interval_set(polling_S=0))
        self.fails(-7, self.api.sflow_direction_set(sampling_D=4))

    def test_interfaces(self):
        port = self.ok(self.api.pg_create_interface_v3(interface_id=0)).sw_if_index
        other = self.ok(self.api.pg_create_interface_v3(interface_id=1)).sw_if_index
        enable = lambda index, on=True: self.api.sflow_enable_disable(
            hw_if_index=index, enable_disable=on
        )
        dump = lambda **of: [d.hw_if_index for d in self.api.sflow_interface_dump(**of)]
        self.assertEqual(dump(), [])
        self.ok(enable(port))
        self.ok(enable(other))
        self.assertEqual(dump(), [port, other])
        self.assertEqual(dump(hw_if_index=port), [port])
        self.assertEqual(dump(hw_if_index=1234), [])
        self.fails(-81, enable(port))
        self.ok(enable(port, False))
        self.fails(-81, enable(port, False))
        self.fails(-2, enable(9999))
        self.fails(-2, enable(0))
        self.assertEqual(dump(), [other])
        self.ok(enable(other, False))

    def test_clock(self):
        """Counters are due when the clock of timers says so."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as collector:
            collector.bind(("127.0.0.1", 0))
            collector.settimeout(LIMIT)
            to = f"127.0.0.1 port {collector.getsockname()[1]}"
            for on, off in (
                ("agent-address 192.0.2.1", "agent-address auto"),
                ("host-interval 0", "host-interval 30"),
                (f"collector add {to}", f"collector del {to}"),
            ):
                self.cli("sflow " + on)
                self.addCleanup(self.cli, "sflow " + off)
            self.ok(self.api.sflow_polling_interval_set(polling_S=3600))
            port = self.ok(self.api.pg_create_interface_v3(interface_id=9)).sw_if_index
            self.ok(self.api.sflow_enable_disable(hw_if_index=port, enable_disable=True))
            # The first at once, the next in an hour.
            for _ in range(3):
                self.assertEqual(collector.recv(2000)[:4], bytes([0, 0, 0, 5]))
                self.cli("set clock adjust 3600")
            self.ok(self.api.sflow_enable_disable(hw_if_index=port, enable_disable=False))

    def test_published_program(self):
        """The steps of an article on sFlow in VPP: settings, interfaces, read-back."""
        port = self.ok(self.api.pg_create_interface_v3(interface_id=7)).sw_if_index
        program = textwrap.dedent(f"""
            from vpp_papi import VPPApiClient, VPPApiJSONFiles
            vpp_api_dir = VPPApiJSONFiles.find_api_dir([])
            vpp_api_files = VPPApiJSONFiles.find_api_files(api_dir=vpp_api_dir)
            vpp = VPPApiClient(apifiles=vpp_api_files, server_address="{self.router.socket}")
            vpp.connect("vpp-api-client")
            print(vpp.api.show_version().version)
            vpp.api.sflow_sampling_rate_set(sampling_N=1000)
            print(vpp.api.sflow_sampling_rate_get().sampling_N)
            vpp.api.sflow_polling_interval_set(polling_S=10)
            vpp.api.sflow_header_bytes_set(header_B=128)
            print(vpp.api.sflow_enable_disable(hw_if_index={port}, enable_disable=True).retval)
            print([d.hw_if_index for d in vpp.api.sflow_interface_dump()])
            print(vpp.api.sflow_interface_dump(hw_if_index=1234))
        """)
        environment = {**os.environ, "VPP_API_DIR": self.router.json}
        run = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60
        )
        self.assertEqual(run.stderr, "")
        version, *rest = run.stdout.splitlines()
        self.assertRegex(version, r"^v\d")
        self.assertEqual(rest, ["1000", "0", f"[{port}]", "[]"])
        self.ok(self.api.sflow_enable_disable(hw_if_index=port, enable_disable=False))
