"""Advertisements of routers, and addresses that are tested before they are used."""

import ipaddress
import os
import struct

from lab import Case, wait_for

ROUTER = "fe80::99"
HOSTS = "02:00:00:00:00:99"


def checksum(data):
    words = struct.unpack(f"!{len(data) // 2}H", data)
    total = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def advertisement():
    """A frame with a router's advertisement: hop limit 70, 1800 s, the prefix 2001:db8:7::/64."""
    message = struct.pack("!BBHBBHII", 134, 0, 0, 70, 0x40, 1800, 30000, 1000)
    prefix = ipaddress.ip_address("2001:db8:7::").packed
    message += struct.pack("!BBBBIII16s", 3, 4, 64, 0xC0, 7200, 3600, 0, prefix)
    message += bytes([1, 1]) + bytes.fromhex(HOSTS.replace(":", ""))
    source, group = (ipaddress.ip_address(a).packed for a in (ROUTER, "ff02::1"))
    pseudo = source + group + struct.pack("!II", len(message), 58)
    message = message[:2] + struct.pack("!H", checksum(pseudo + message)) + message[4:]
    ip = struct.pack("!IHBB", 6 << 28, len(message), 58, 255) + source + group
    ether = bytes.fromhex("333300000001" + HOSTS.replace(":", "") + "86dd")
    return ether + ip + message


class Autoconfig(Case):
    def port(self, name):
        self.cli(f"create packet-generator interface {name}")
        self.cli(f"set interface state {name} up")
        (index,) = [
            i.sw_if_index for i in self.api.sw_interface_dump() if i.interface_name == name
        ]
        self.ok(self.api.sw_interface_ip6_enable_disable(sw_if_index=index, enable=True))
        return index

    def test_advertisements_are_events(self):
        index = self.port("pg0")
        self.ok(self.api.want_ip6_ra_events(enable=True, pid=7))
        self.ok(self.api.ip6nd_send_router_solicitation(sw_if_index=index, irt=1, mrt=4, mrc=3))
        frame, file = advertisement(), os.path.join(self.router.dir, "ra.pcap")
        with open(file, "wb") as out:
            out.write(struct.pack("=IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            out.write(struct.pack("=IIII", 0, 0, len(frame), len(frame)) + frame)
        self.cli(f"packet-generator new {{ name ra limit 1 source pg0 pcap {file} }}")
        self.cli("packet-generator enable-stream ra")
        ((name, event),) = self.take_events(1)
        self.assertEqual((name, event.pid, event.sw_if_index), ("ip6_ra_event", 7, index))
        self.assertEqual(str(event.router_addr), ROUTER)
        self.assertEqual(
            (event.current_hop_limit, event.flags, event.router_lifetime_in_sec), (70, 0x40, 1800)
        )
        self.assertEqual(event.neighbor_reachable_time_in_msec, 30000)
        self.assertEqual(event.time_in_msec_between_retransmitted_neighbor_solicitations, 1000)
        (prefix,) = event.prefixes
        self.assertEqual(str(prefix.prefix), "2001:db8:7::/64")
        self.assertEqual((prefix.valid_time, prefix.preferred_time), (7200, 3600))
        # One that answers ends the asking; to stop is no error then.
        stop = {"sw_if_index": index, "stop": True}
        self.ok(self.api.ip6nd_send_router_solicitation(**stop))
        self.fails(-2, self.api.ip6nd_send_router_solicitation(**(stop | {"sw_if_index": 777})))
        self.ok(self.api.want_ip6_ra_events(enable=False, pid=7))
        self.cli("packet-generator enable-stream ra")
        wait_for(lambda: self.counters("pg0")["rx_packets"] == 2)
        self.assertEqual(self.events, [])

    def test_what_is_advertised_is_dumped(self):
        index = self.port("pg1")
        self.ok(
            self.api.sw_interface_ip6nd_ra_config(
                sw_if_index=index,
                managed=1,
                default_router=1,
                lifetime=300,
                max_interval=100,
                min_interval=50,
            )
        )
        self.ok(
            self.api.sw_interface_ip6nd_ra_prefix(
                sw_if_index=index, prefix="2001:db8:8::/64", val_lifetime=900, pref_lifetime=600
            )
        )
        (one,) = self.api.sw_interface_ip6nd_ra_dump(sw_if_index=index)
        self.assertEqual(one.sw_if_index, index)
        self.assertEqual((one.adv_managed_flag, one.adv_router_lifetime), (True, 300))
        self.assertEqual((one.max_radv_interval, one.min_radv_interval), (100.0, 50.0))
        (prefix,) = one.prefixes
        self.assertEqual(str(prefix.prefix), "2001:db8:8::/64")
        every = self.api.sw_interface_ip6nd_ra_dump(sw_if_index=0xFFFFFFFF)
        self.assertIn(index, [i.sw_if_index for i in every])

    def test_proxies(self):
        index = self.port("pg2")
        proxy = {"sw_if_index": index, "ip": "2001:db8:9::9"}
        self.ok(self.api.ip6nd_proxy_add_del(is_add=True, **proxy))
        (one,) = self.api.ip6nd_proxy_dump()
        self.assertEqual((one.sw_if_index, str(one.ip)), (index, proxy["ip"]))
        self.ok(self.api.ip6nd_proxy_add_del(is_add=False, **proxy))
        self.assertEqual(self.api.ip6nd_proxy_dump(), [])

    def test_addresses_are_tested(self):
        (state,) = self.api.ip6_dad_dump()
        self.assertFalse(state.enabled)
        self.ok(
            self.api.ip6_dad_enable_disable(
                enable=True, dad_transmits=2, dad_retransmit_delay=0.5
            )
        )
        self.addCleanup(self.api.ip6_dad_enable_disable, enable=False)
        (state,) = self.api.ip6_dad_dump()
        self.assertEqual(
            (state.enabled, state.dad_transmits, state.dad_retransmit_delay), (True, 2, 0.5)
        )
        index = self.port("pg3")
        self.ok(self.api.want_ip6_dad_events(enable_disable=True, pid=8))
        self.ok(
            self.api.sw_interface_add_del_address(
                sw_if_index=index, is_add=True, prefix="2001:db8:a::1/64"
            )
        )

        def of_it(state):
            return [
                e
                for name, e in self.events
                if (name, e.sw_if_index, str(e.address), e.state)
                == ("ip6_dad_event", index, "2001:db8:a::1", state)
            ]

        wait_for(lambda: of_it(1))
        wait_for(lambda: of_it(2))
        (used,) = of_it(2)
        self.assertEqual((used.pid, used.dad_count, used.dad_transmits), (8, 2, 2))
        self.ok(self.api.want_ip6_dad_events(enable_disable=False, pid=8))
        self.events.clear()
