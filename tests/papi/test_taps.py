"""TAP and TUN interfaces. They require their own network namespace."""

import json
import subprocess

from lab import NONE, Case, wait_for

GSO, CSUM, PERSIST, ATTACH, TUN, COALESCE, PACKED = 1, 2, 4, 8, 16, 32, 64
ANY = {"id": NONE, "use_random_mac": True}


def link(name):
    """Returns the kernel's view of a device; /sys may show another namespace."""
    seen = subprocess.run(["ip", "-j", "address", "show", "dev", name], capture_output=True, text=True)
    return json.loads(seen.stdout)[0] if seen.returncode == 0 else None


class Taps(Case):
    def dump(self, index=NONE):
        return {d.dev_name: d for d in self.api.sw_interface_tap_v2_dump(sw_if_index=index)}

    def made(self, reply):
        index = self.ok(reply).sw_if_index
        self.addCleanup(lambda: self.api.tap_delete_v2(sw_if_index=index))
        return index

    def test_create_v3(self):
        index = self.made(
            self.api.tap_create_v3(
                id=7,
                use_random_mac=False,
                mac_address="02:fe:00:00:00:07",
                num_rx_queues=2,
                num_tx_queues=2,
                tx_ring_sz=1024,
                rx_ring_sz=512,
                host_mtu_set=True,
                host_mtu_size=1400,
                host_mac_addr_set=True,
                host_mac_addr="02:00:00:00:00:07",
                host_ip4_prefix_set=True,
                host_ip4_prefix="10.77.0.2/24",
                host_ip6_prefix_set=True,
                host_ip6_prefix="fd77::2/64",
                host_ip4_gw_set=True,
                host_ip4_gw="10.77.0.1",
                host_if_name_set=True,
                host_if_name="lan7",
                tap_flags=GSO | COALESCE | PACKED,
                tag="customers",
            )
        )
        (one,) = self.dump(index).values()
        self.assertEqual((one.dev_name, one.host_if_name, one.id), ("tap7", "lan7", 7))
        self.assertEqual((one.tx_ring_sz, one.rx_ring_sz, one.host_mtu_size), (1024, 512, 1400))
        self.assertEqual(str(one.host_mac_addr), "02:00:00:00:00:07")
        self.assertEqual(str(one.host_ip4_prefix), "10.77.0.2/24")
        self.assertEqual(str(one.host_ip6_prefix), "fd77::2/64")
        self.assertEqual(int(one.tap_flags), GSO | COALESCE | PACKED)
        interface = self.interface(index)
        self.assertEqual(str(interface.l2_address), "02:fe:00:00:00:07")
        # vppcfg knows TAPs by this type.
        self.assertEqual((interface.interface_dev_type, interface.tag), ("virtio", "customers"))
        seen = link("lan7")
        self.assertEqual((seen["mtu"], seen["txqlen"], seen["address"]), (1400, 512, "02:00:00:00:00:07"))
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        wait_for(lambda: "LOWER_UP" in link("lan7")["flags"])
        self.ok(self.api.tap_delete_v2(sw_if_index=index))
        wait_for(lambda: link("lan7") is None)

    def test_create_v2(self):
        index = self.made(self.api.tap_create_v2(**ANY, num_rx_queues=1, tap_flags=TUN))
        (one,) = self.dump(index).values()
        self.assertEqual((one.dev_name, one.host_if_name, one.id), ("tun0", "tun0", 0))
        self.assertEqual((one.tx_ring_sz, one.rx_ring_sz, one.host_mtu_size), (256, 256, 0))
        self.assertEqual(int(one.tap_flags), TUN)
        self.assertIn("POINTOPOINT", link("tun0")["flags"])

    def test_dump(self):
        self.assertEqual(self.dump(), {})
        first, second = (self.made(self.api.tap_create_v3(**ANY)) for _ in range(2))
        self.assertEqual(list(self.dump()), ["tap0", "tap1"])
        self.assertEqual(list(self.dump(second)), ["tap1"])
        self.assertEqual(list(self.dump(0)), [])
        self.ok(self.api.tap_delete_v2(sw_if_index=first))
        self.assertEqual(list(self.dump()), ["tap1"])

    def test_errors(self):
        create = lambda **more: self.api.tap_create_v3(**{**ANY, **more})
        self.made(create(id=3))
        self.assertEqual(self.fails(-71, create(id=3)).sw_if_index, NONE)
        self.fails(-1, create(id=8193))
        self.fails(-144, create(rx_ring_sz=300))
        self.fails(-54, create(tap_flags=ATTACH))
        self.fails(-7, create(tap_flags=1 << 9))
        self.fails(-171, create(host_ip4_prefix_set=True, host_ip4_prefix={"address": "10.0.0.1", "len": 33}))
        self.fails(-12, create(host_namespace_set=True, host_namespace="no-such-one"))
        self.fails(-145, create(host_bridge_set=True, host_bridge="no-such-one"))
        self.fails(-11, create(host_if_name_set=True, host_if_name="lo"))
        self.fails(-2, self.api.tap_delete_v2(sw_if_index=self.loopback()))
        self.fails(-2, self.api.tap_delete_v2(sw_if_index=NONE))

    def test_persistent(self):
        words = {**ANY, "host_if_name_set": True, "host_if_name": "keep0", "tap_flags": PERSIST}
        index = self.ok(self.api.tap_create_v3(**words)).sw_if_index
        self.ok(self.api.tap_delete_v2(sw_if_index=index))
        self.addCleanup(lambda: subprocess.run(["ip", "link", "del", "keep0"], check=True))
        self.assertIsNotNone(link("keep0"))
        self.ok(self.api.tap_create_v3(**words))
        (again,) = self.dump().values()
        self.ok(self.api.tap_delete_v2(sw_if_index=again.sw_if_index))
