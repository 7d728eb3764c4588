"""Tables, routes and neighbours."""

import ipaddress

from lab import NONE, Case


def path(via=None, sw_if_index=NONE, kind=0, weight=1, **more):
    nh = {"address": {"ip4": ipaddress.IPv4Address(via)}} if via else {}
    return {"sw_if_index": sw_if_index, "weight": weight, "type": kind, "nh": nh, **{
        "n_labels": 0, "label_stack": [{"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}] * 16, **more
    }}


class Tables(Case):
    def tables(self):
        return {t.table.table_id: t.table.name for t in self.api.ip_table_dump() if not t.table.is_ip6}

    def test_first(self):
        change = lambda table, **more: self.api.ip_table_add_del(table={"table_id": table, **more})
        self.ok(change(10, name="ten"))
        self.assertEqual(self.tables()[10], "ten")
        self.assertEqual(self.tables()[0], "ipv4-VRF:0")
        self.ok(change(10))
        self.assertEqual(self.tables()[10], "ten")
        self.ok(change(11, is_ip6=True, name="six"))
        six = {t.table.table_id: t.table.name for t in self.api.ip_table_dump() if t.table.is_ip6}
        self.assertEqual((six[0], six[11]), ("ipv6-VRF:0", "six"))
        self.ok(self.api.ip_table_add_del(is_add=False, table={"table_id": 11, "is_ip6": True}))
        remove = lambda table: self.api.ip_table_add_del(is_add=False, table={"table_id": table})
        self.ok(remove(10))
        self.assertNotIn(10, self.tables())
        # One that is not there, and the default table, which stays.
        self.ok(remove(10))
        self.ok(remove(0))
        self.assertIn(0, self.tables())

    def test_last_user(self):
        change = lambda add: self.api.ip_table_add_del(is_add=add, table={"table_id": 50})
        port = self.ok(self.api.create_loopback()).sw_if_index
        self.ok(change(True))
        self.ok(self.api.sw_interface_set_table(sw_if_index=port, vrf_id=50))
        self.cli("ip route add 198.51.100.0/24 table 50 drop")
        self.ok(change(False))
        self.assertIn(50, self.tables())
        found = self.api.ip_route_lookup(table_id=50, prefix="198.51.100.0/24", exact=1)
        self.fails(-6, found)
        self.ok(self.api.sw_interface_set_table(sw_if_index=port, vrf_id=0))
        self.assertNotIn(50, self.tables())
        self.ok(self.api.delete_loopback(sw_if_index=port))

    def test_second(self):
        self.ok(self.api.ip_table_add_del_v2(table={"table_id": 20}))
        self.assertIn(20, self.tables())
        self.ok(self.api.ip_table_add_del_v2(is_add=False, table={"table_id": 20}))
        self.assertNotIn(20, self.tables())
        self.ok(self.api.ip_table_add_del_v2(is_add=False, table={"table_id": 20}))

    def test_allocated(self):
        table = self.ok(self.api.ip_table_allocate(table={"table_id": NONE, "name": "any"})).table
        self.assertEqual(self.tables()[table.table_id], "any")
        again = self.ok(self.api.ip_table_allocate(table={"table_id": NONE})).table
        self.assertNotEqual(again.table_id, table.table_id)
        six = self.ok(self.api.ip_table_allocate(table={"table_id": NONE, "is_ip6": True})).table
        self.assertTrue(six.is_ip6)

    def routes(self, table):
        dump = self.api.ip_route_dump(table={"table_id": table})
        return {str(d.route.prefix) for d in dump if d.route.paths[0].type != 2}

    def add(self, prefix):
        route = {"table_id": 40, "prefix": prefix, "n_paths": 1, "paths": [path(kind=1)]}
        self.ok(self.api.ip_route_add_del(route=route))

    def test_flushed_and_replaced(self):
        table = {"table_id": 40}
        self.ok(self.api.ip_table_add_del(table=table))
        self.cli("ip route add count 3000 198.51.0.0/32 table 40 local")
        self.assertEqual(len(self.routes(40)), 3000)
        self.ok(self.api.ip_table_flush(table=table))
        self.assertEqual(self.routes(40), set())
        self.cli("ip route add count 3000 198.51.0.0/32 table 40 local")
        # Only routes added between begin and end stay.
        self.ok(self.api.ip_table_replace_begin(table=table))
        self.add("192.0.2.1/32")
        self.add("198.51.0.7/32")
        self.assertEqual(len(self.routes(40)), 3001)
        self.ok(self.api.ip_table_replace_end(table=table))
        self.assertEqual(self.routes(40), {"192.0.2.1/32", "198.51.0.7/32"})
        # Without a begin, nothing is removed.
        self.ok(self.api.ip_table_replace_end(table=table))
        self.assertEqual(len(self.routes(40)), 2)
        for call in (
            self.api.ip_table_flush,
            self.api.ip_table_replace_begin,
            self.api.ip_table_replace_end,
        ):
            self.fails(-3, call(table={"table_id": 4711}))
            self.fails(-3, call(table={"table_id": 40, "is_ip6": True}))
        self.ok(self.api.ip_table_add_del(is_add=False, table=table))


class Routes(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = cls.vpp.api.create_loopback().sw_if_index
        cls.vpp.api.sw_interface_set_flags(sw_if_index=cls.port, flags=1)
        cls.vpp.api.sw_interface_add_del_address(
            sw_if_index=cls.port, is_add=True, prefix="10.0.0.1/24"
        )

    def change(self, prefix, *paths, table=0, v2=False, **how):
        route = {"table_id": table, "prefix": prefix, "n_paths": len(paths), "paths": list(paths)}
        call = self.api.ip_route_add_del_v2 if v2 else self.api.ip_route_add_del
        return call(route=route, **how)

    def routes(self, table=0):
        dump = self.api.ip_route_dump(table={"table_id": table})
        return {str(d.route.prefix): d.route for d in dump}

    def find(self, prefix, table=0, exact=1):
        return self.api.ip_route_lookup(table_id=table, prefix=prefix, exact=exact)

    def test_a_fresh_table(self):
        self.ok(self.api.ip_table_add_del(table={"table_id": 30}))
        fresh = {"0.0.0.0/0", "240.0.0.0/4", "224.0.0.0/4", "0.0.0.0/32", "255.255.255.255/32"}
        self.assertEqual(set(self.routes(30)), fresh)
        self.assertEqual(int(self.routes(30)["240.0.0.0/4"].paths[0].type), 2)
        self.assertEqual(self.routes(31), {})
        self.assertEqual(self.api.ip_route_dump(table={"table_id": 30, "is_ip6": True}), [])
        connected = self.routes()
        for prefix in ("10.0.0.0/24", "10.0.0.1/32", "10.0.0.0/32", "10.0.0.255/32"):
            self.assertIn(prefix, connected)
        self.assertEqual(connected["10.0.0.0/24"].paths[0].sw_if_index, self.port)
        own = connected["10.0.0.1/32"].paths[0]
        self.assertEqual((int(own.type), own.sw_if_index), (1, self.port))
        # Addresses have routes while their interface is up.
        self.ok(self.api.sw_interface_set_flags(sw_if_index=self.port, flags=0))
        self.assertNotIn("10.0.0.1/32", self.routes())
        (address,) = self.api.ip_address_dump(sw_if_index=self.port)
        self.assertEqual(str(address.prefix), "10.0.0.1/24")
        self.ok(self.api.sw_interface_set_flags(sw_if_index=self.port, flags=1))
        self.assertEqual(set(self.routes()), set(connected))

    def test_enabled_without_an_address(self):
        call = self.api.sw_interface_ip4_enable_disable
        port = self.ok(self.api.create_loopback()).sw_if_index
        name = self.api.sw_interface_dump(sw_if_index=port)[0].interface_name
        silent = lambda: "ip4-not-enabled" in self.cli(f"show interface features {name}")
        self.assertTrue(silent())
        self.ok(call(sw_if_index=port, enable=True))
        self.assertFalse(silent())
        self.ok(call(sw_if_index=port, enable=False))
        self.assertTrue(silent())
        address = {"sw_if_index": port, "is_add": True, "prefix": "10.5.0.1/24"}
        self.ok(self.api.sw_interface_add_del_address(**address))
        self.assertFalse(silent())
        self.fails(-2, call(sw_if_index=9999, enable=True))
        self.ok(self.api.delete_loopback(sw_if_index=port))

    def test_paths_join_and_leave(self):
        first, second = path("10.0.0.2", self.port), path("10.0.0.3", self.port, weight=3)
        reply = self.ok(self.change("192.0.2.0/24", first))
        self.assertNotEqual(reply.stats_index, NONE)
        self.ok(self.change("192.0.2.0/24", second, is_multipath=True))
        (route,) = [r for p, r in self.routes().items() if p == "192.0.2.0/24"]
        hops = {str(p.nh.address.ip4): p.weight for p in route.paths}
        self.assertEqual(hops, {"10.0.0.2": 1, "10.0.0.3": 3})
        self.ok(self.change("192.0.2.0/24", first, is_add=False, is_multipath=True))
        self.assertEqual(self.routes()["192.0.2.0/24"].n_paths, 1)
        self.ok(self.change("192.0.2.0/24", first, is_add=False, is_multipath=True))
        # Without is_multipath, the path replaces the existing ones.
        self.ok(self.change("192.0.2.0/24", first))
        self.assertEqual(str(self.routes()["192.0.2.0/24"].paths[0].nh.address.ip4), "10.0.0.2")
        self.ok(self.change("192.0.2.0/24", is_add=False))
        self.assertNotIn("192.0.2.0/24", self.routes())
        self.assertEqual(self.ok(self.change("192.0.2.0/24", is_add=False)).stats_index, NONE)

    def test_paths_of_all_forms(self):
        forms = {
            "198.51.100.0/32": path("10.0.0.9"),
            "198.51.100.1/32": path(sw_if_index=self.port),
            "198.51.100.2/32": path(kind=1),
            "198.51.100.3/32": path(kind=2),
            "198.51.100.4/32": path(kind=5),
            "198.51.100.5/32": path(kind=6),
            "198.51.100.6/32": path(),
            "198.51.100.7/32": path(sw_if_index=self.port, kind=9),
        }
        for prefix, way in forms.items():
            self.ok(self.change(prefix, way))
            (found,) = self.ok(self.find(prefix)).route.paths
            self.assertEqual(int(found.type), way["type"])
            self.assertEqual(found.sw_if_index, way["sw_if_index"])
        for prefix in forms:
            self.ok(self.change(prefix, is_add=False))

    def test_what_cannot_be(self):
        refused = lambda retval, way, prefix="203.0.113.0/24", **more: self.assertEqual(
            self.fails(retval, self.change(prefix, way, **more)).stats_index, NONE
        )
        way = path("10.0.0.2", self.port)
        refused(-3, way, table=4711)
        refused(-2, path("10.0.0.2", 9999))
        refused(-3, path(table_id=4711))
        refused(-54, path(kind=9))
        refused(-9, path(kind=3))
        refused(-7, path(kind=99))
        refused(-7, path("10.0.0.2", self.port, n_labels=13))
        refused(-3, path("10.0.0.2", table_id=5))
        self.fails(-52, self.change("203.0.113.0/24"))
        self.assertNotIn("203.0.113.0/24", self.routes())
        # A next hop of the other version is fine (RFC 8950).
        for prefix, hop in (
            ("2001:db8::/32", way), ("203.0.113.0/24", path("10.0.0.2", self.port, proto=1))
        ):
            self.ok(self.change(prefix, hop))
            self.ok(self.change(prefix, is_add=False))
        # The host bits of the prefix are ignored.
        self.ok(self.change("203.0.113.77/24", way))
        self.assertIn("203.0.113.0/24", self.routes())
        self.ok(self.change("203.0.113.0/24", is_add=False))

    def test_lookup(self):
        self.ok(self.change("172.16.0.0/12", path("10.0.0.2", self.port)))
        longest = self.ok(self.find("172.16.5.5/32", exact=0)).route
        self.assertEqual(str(longest.prefix), "172.16.0.0/12")
        self.fails(-6, self.find("172.16.5.5/32"))
        nowhere = self.ok(self.find("9.9.9.9/32", exact=0)).route
        self.assertEqual((str(nowhere.prefix), int(nowhere.paths[0].type)), ("0.0.0.0/0", 2))
        self.fails(-65, self.find("172.16.5.5/32", table=4711))
        second = self.api.ip_route_lookup_v2(table_id=0, prefix="172.16.0.0/12", exact=1)
        self.assertEqual((str(self.ok(second).route.prefix), second.route.src), ("172.16.0.0/12", 2))
        self.fails(-6, self.api.ip_route_lookup_v2(table_id=0, prefix="172.17.0.0/32", exact=1))
        self.ok(self.change("172.16.0.0/12", is_add=False))

    def test_sources(self):
        sources = {d.src.id: d.src.name for d in self.api.fib_source_dump()}
        self.ok(self.change("192.168.0.0/16", path("10.0.0.2", self.port), v2=True))
        self.fails(-3, self.change("192.168.0.0/16", path(kind=2), v2=True, table=4711))
        dump = lambda src: {
            str(d.route.prefix): d.route.src
            for d in self.api.ip_route_v2_dump(src=src, table={"table_id": 0})
        }
        self.assertEqual(sources[dump(0)["192.168.0.0/16"]], "CLI")
        self.assertEqual(sources[dump(0)["10.0.0.0/24"]], "interface")
        self.assertEqual(dump(2), {"192.168.0.0/16": 2})
        self.ok(self.change("192.168.0.0/16", is_add=False, v2=True))

    def test_many(self):
        self.cli("ip route add 100.64.0.0/32 count 5000 via 10.0.0.2")
        routes = self.routes()
        self.assertGreater(len(routes), 5000)
        self.assertIn("100.64.19.135/32", routes)
        self.cli("ip route del 100.64.0.0/32 count 5000")


class Neighbours(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.port = cls.vpp.api.create_loopback().sw_if_index
        cls.vpp.api.sw_interface_set_flags(sw_if_index=cls.port, flags=1)
        cls.vpp.api.sw_interface_add_del_address(
            sw_if_index=cls.port, is_add=True, prefix="10.0.0.1/24"
        )

    def change(self, ip, mac="02:00:00:00:00:02", add=True, flags=0, port=None):
        port = self.port if port is None else port
        neighbor = {"sw_if_index": port, "flags": flags, "mac_address": mac, "ip_address": ip}
        return self.api.ip_neighbor_add_del(is_add=add, neighbor=neighbor)

    def neighbors(self, **of):
        dump = self.api.ip_neighbor_dump(**of)
        return {str(d.neighbor.ip_address): d.neighbor for d in dump}

    def test_add_and_delete(self):
        self.assertNotEqual(self.ok(self.change("10.0.0.2")).stats_index, NONE)
        self.ok(self.change("10.0.0.3", flags=3))
        found = self.neighbors()
        self.assertEqual(str(found["10.0.0.2"].mac_address), "02:00:00:00:00:02")
        self.assertEqual((int(found["10.0.0.2"].flags), int(found["10.0.0.3"].flags)), (0, 3))
        self.assertEqual(set(self.neighbors(sw_if_index=self.port)), set(found))
        self.assertEqual(self.neighbors(sw_if_index=0), {})
        self.assertEqual(self.neighbors(af=1), {})
        (one, *_) = self.api.ip_neighbor_dump()
        self.assertGreaterEqual(one.age, 0.0)
        self.ok(self.change("10.0.0.2", add=False))
        self.ok(self.change("10.0.0.3", add=False))
        self.assertEqual(self.neighbors(), {})
        self.assertEqual(self.fails(-6, self.change("10.0.0.2", add=False)).stats_index, NONE)

    def test_what_cannot_be(self):
        self.fails(-2, self.change("10.0.0.2", port=9999))
        self.fails(-126, self.change("10.0.0.2", port=0))
        self.fails(-7, self.change("10.0.0.2", mac="01:00:00:00:00:02"))
        self.fails(-7, self.change("10.0.0.1"))
        self.ok(self.change("2001:db8::1"))
        self.assertEqual(set(self.neighbors(af=1)), {"2001:db8::1"})
        self.ok(self.change("2001:db8::1", add=False))
        self.assertEqual(self.neighbors(), {})

    def test_flush(self):
        self.ok(self.change("10.0.0.4"))
        self.ok(self.change("10.0.0.5", flags=1))
        self.ok(self.api.ip_neighbor_flush(sw_if_index=0))
        self.assertEqual(set(self.neighbors()), {"10.0.0.4", "10.0.0.5"})
        self.ok(self.api.ip_neighbor_flush())
        self.assertEqual(set(self.neighbors()), {"10.0.0.5"})
        self.fails(-2, self.api.ip_neighbor_flush(sw_if_index=9999))
        self.ok(self.api.ip_neighbor_flush(af=1))
        self.assertEqual(set(self.neighbors()), {"10.0.0.5"})
        self.ok(self.change("10.0.0.5", add=False))

    def test_replaced(self):
        self.ok(self.change("10.0.0.4"))
        self.ok(self.change("10.0.0.5", flags=1))
        self.ok(self.change("10.0.0.6", flags=1))
        self.ok(self.api.ip_neighbor_replace_begin())
        self.ok(self.change("10.0.0.5", flags=1))
        self.ok(self.change("10.0.0.7"))
        self.ok(self.api.ip_neighbor_replace_end())
        self.assertEqual(set(self.neighbors()), {"10.0.0.5", "10.0.0.7"})
        self.ok(self.api.ip_neighbor_replace_end())
        self.assertEqual(len(self.neighbors()), 2)
        for ip in ("10.0.0.5", "10.0.0.7"):
            self.ok(self.change(ip, add=False))

    def test_config(self):
        usual = self.ok(self.api.ip_neighbor_config_get())
        self.assertEqual((usual.max_number, usual.max_age, usual.recycle), (50000, 300, False))
        new = {"max_number": 10, "max_age": 60, "recycle": True}
        self.ok(self.api.ip_neighbor_config(**new))
        now = self.ok(self.api.ip_neighbor_config_get())
        self.assertEqual((now.max_number, now.max_age, now.recycle), (10, 60, True))
        self.fails(-7, self.api.ip_neighbor_config(max_number=0))
        # IPv6 has limits of its own.
        self.ok(self.api.ip_neighbor_config(af=1, max_number=20, max_age=30))
        self.assertEqual(self.ok(self.api.ip_neighbor_config_get(af=1)).max_number, 20)
        self.assertEqual(self.ok(self.api.ip_neighbor_config_get()).max_number, 10)
        self.ok(self.api.ip_neighbor_config(af=1, max_number=50000, max_age=300))
        self.ok(self.api.ip_neighbor_config(max_number=50000, max_age=300))

    def test_events(self):
        want = self.api.want_ip_neighbor_events_v2
        self.ok(want(enable=True, pid=12, ip="10.0.0.6"))
        self.fails(-31, want(enable=True, pid=12, ip="10.0.0.6"))
        self.ok(self.api.want_ip_neighbor_events(enable=True, pid=13, sw_if_index=self.port))
        self.ok(self.change("10.0.0.6"))
        self.ok(self.change("10.0.0.7"))
        self.ok(self.change("10.0.0.6", add=False))
        self.ok(self.change("10.0.0.7", add=False))
        seen = {
            (name, event.pid, str(event.neighbor.ip_address), int(getattr(event, "flags", 0)))
            for name, event in self.take_events(4)
        }
        self.assertEqual(
            seen,
            {
                ("ip_neighbor_event_v2", 12, "10.0.0.6", 1),
                ("ip_neighbor_event_v2", 12, "10.0.0.6", 2),
                ("ip_neighbor_event", 13, "10.0.0.6", 0),
                ("ip_neighbor_event", 13, "10.0.0.7", 0),
            },
        )
        self.ok(want(enable=False, pid=12, ip="10.0.0.6"))
        self.fails(-31, want(enable=False, pid=12, ip="10.0.0.6"))
        self.ok(self.api.want_ip_neighbor_events(enable=False, pid=13, sw_if_index=self.port))
        self.fails(-31, self.api.want_ip_neighbor_events(enable=False, pid=13))


class Addresses(Case):
    def addresses(self, port):
        return {str(a.prefix) for a in self.api.ip_address_dump(sw_if_index=port)}

    def test_replaced(self):
        a, b = self.loopback(), self.loopback()
        change = lambda **more: self.api.sw_interface_add_del_address(is_add=True, **more)
        self.ok(change(sw_if_index=a, prefix="10.0.0.1/24"))
        self.ok(change(sw_if_index=a, prefix="10.0.0.2/24"))
        self.ok(change(sw_if_index=b, prefix="10.0.1.1/24"))
        self.ok(self.api.sw_interface_address_replace_begin())
        self.ok(change(sw_if_index=a, prefix="10.0.0.2/24"))
        self.ok(change(sw_if_index=b, prefix="10.0.2.1/24"))
        self.assertEqual(len(self.addresses(a) | self.addresses(b)), 4)
        self.ok(self.api.sw_interface_address_replace_end())
        self.assertEqual((self.addresses(a), self.addresses(b)), ({"10.0.0.2/24"}, {"10.0.2.1/24"}))
        # The transaction has ended: the entry exists already.
        self.fails(-105, change(sw_if_index=a, prefix="10.0.0.2/24"))
        self.ok(self.api.sw_interface_address_replace_end())
        self.assertEqual(self.addresses(a), {"10.0.0.2/24"})


class Arping(Case):
    def test_silence(self):
        """Nobody answers on a loopback."""
        port = self.loopback()
        call = lambda address="10.3.0.2", port=port, **more: self.api.arping(
            address=address, sw_if_index=port, **{"repeat": 1, "interval": 0, **more}
        )
        self.fails(-71, call())
        self.ok(self.api.sw_interface_set_flags(sw_if_index=port, flags=1))
        self.fails(-60, call())
        self.ok(
            self.api.sw_interface_add_del_address(sw_if_index=port, is_add=True, prefix="10.3.0.1/24")
        )
        self.assertEqual(self.ok(call(repeat=3)).reply_count, 0)
        self.assertEqual(self.ok(call("10.3.0.1", is_garp=True)).reply_count, 0)
        said = self.cli(f"arping gratuitous 10.3.0.1 {port}")
        self.assertEqual(said, "Sending 1 GARP to 10.3.0.1\n")
        said = self.cli(f"arping 10.3.0.2 {port} repeat 2 interval 0.01")
        ask = "Sending {} ARP Request to 10.3.0.2\n"
        self.assertEqual(said, ask.format(1) + ask.format(2) + "Received 0 Reply\n")
        reply = self.api.arping_acd(address="10.3.0.2", sw_if_index=port, repeat=1, interval=0)
        self.assertEqual((self.ok(reply).reply_count, str(reply.mac_address)), (0, "00:00:00:00:00:00"))
        for wrong in ({"repeat": 0}, {"interval": -1}, {"interval": float("nan")}, {"interval": 1e9}):
            self.fails(-7, call(**wrong))
        self.fails(-7, call("224.0.0.1"))
        self.fails(-2, call(port=9999))
        self.fails(-60, call("2001:db8::1"))
        self.ok(self.api.sw_interface_ip6_enable_disable(sw_if_index=port, enable=True))
        self.assertEqual(self.ok(call("2001:db8::1", repeat=2)).reply_count, 0)
        self.assertEqual(self.ok(call("2001:db8::1", is_garp=True)).reply_count, 0)
        self.fails(-7, call("ff02::1"))
        said = self.cli(f"arping 2001:db8::1 {port}")
        self.assertEqual(said, "Sending 1 Neighbor Solicitation to 2001:db8::1\nReceived 0 Reply\n")


class DirectedBroadcast(Case):
    def test_route(self):
        port = self.loopback()
        call = lambda enable, port=port: self.api.sw_interface_set_ip_directed_broadcast(
            sw_if_index=port, enable=enable
        )
        self.ok(self.api.sw_interface_set_flags(sw_if_index=port, flags=1))
        self.ok(
            self.api.sw_interface_add_del_address(sw_if_index=port, is_add=True, prefix="10.4.0.1/24")
        )
        route = lambda: self.ok(
            self.api.ip_route_lookup(table_id=0, exact=1, prefix="10.4.0.255/32")
        ).route.paths[0]
        self.assertEqual(route().type, 2)
        for _ in range(2):
            self.ok(call(True))
            self.assertEqual((route().type, route().sw_if_index), (0, port))
        self.ok(call(False))
        self.assertEqual(route().type, 2)
        self.fails(-2, call(True, port=9999))


class MssClamp(Case):
    def test_limits(self):
        port, other = self.loopback(), self.loopback()
        call = lambda mss, direction, port=port, **ip6: self.api.mss_clamp_enable_disable(
            sw_if_index=port, ipv4_mss=mss, ipv4_direction=direction, **ip6
        )
        get = lambda port=NONE: self.api.mss_clamp_get(cursor=0, sw_if_index=port)
        rows = lambda: [
            (d.sw_if_index, d.ipv4_mss, int(d.ipv4_direction), int(d.ipv6_direction))
            for d in get()[1]
        ]
        self.assertEqual(rows(), [])
        self.assertEqual(get(port)[0].retval, -30)
        for direction in (1, 2, 3):
            self.ok(call(1424, direction, ipv6_mss=1300))
            self.assertEqual(rows(), [(port, 1424, direction, 0)])
        self.ok(call(1300, 1, port=other))
        self.assertEqual(rows(), [(port, 1424, 3, 0), (other, 1300, 1, 0)])
        (reply, (one,)) = get(other)
        self.assertEqual((reply.retval, one.sw_if_index, one.ipv4_mss), (0, other, 1300))
        self.fails(-7, call(63, 1))
        self.fails(-7, call(1400, 4))
        self.ok(call(1400, 1, ipv6_mss=1380, ipv6_direction=2))
        (one,) = get(port)[1]
        self.assertEqual((one.ipv6_mss, int(one.ipv6_direction)), (1380, 2))
        self.fails(-7, call(1400, 1, ipv6_mss=63, ipv6_direction=1))
        self.ok(call(1424, 3))
        (one,) = get(port)[1]
        self.assertEqual((one.ipv6_mss, int(one.ipv6_direction)), (65535, 0))
        self.fails(-2, call(1400, 1, port=9999))
        self.assertEqual(get(9999)[0].retval, -2)
        self.ok(call(0, 0))
        self.assertEqual(rows(), [(other, 1300, 1, 0)])
        self.ok(self.api.delete_loopback(sw_if_index=other))
        self.assertEqual(rows(), [])


class PuntRedirect(Case):
    def path(self, port, **nh):
        return {"sw_if_index": port, "nh": {"address": nh}, "label_stack": [{}] * 16}

    def test_one_path(self):
        port, tx = self.loopback(), self.loopback()
        call = lambda rx, nh, is_add=True, tx=tx: self.api.ip_punt_redirect(
            is_add=is_add, punt={"rx_sw_if_index": rx, "tx_sw_if_index": tx, "nh": nh}
        )
        rows = lambda rx=NONE, v6=False: [
            (d.punt.rx_sw_if_index, d.punt.tx_sw_if_index, str(d.punt.nh))
            for d in self.api.ip_punt_redirect_dump(sw_if_index=rx, is_ipv6=v6)
        ]
        self.ok(call(NONE, "10.0.0.2"))
        self.ok(call(port, "0.0.0.0"))
        self.ok(call(port, "2001:db8::2"))
        self.assertEqual(rows(), [(NONE, tx, "10.0.0.2"), (port, tx, "0.0.0.0")])
        self.assertEqual(rows(port), [(port, tx, "0.0.0.0")])
        self.assertEqual(rows(v6=True), [(port, tx, "2001:db8::2")])
        self.fails(-2, call(9999, "10.0.0.2"))
        self.fails(-2, call(port, "10.0.0.2", tx=9999))
        self.fails(-7, call(port, "0.0.0.0", tx=NONE))
        self.ok(call(NONE, "10.0.0.2", is_add=False))
        self.ok(call(NONE, "10.0.0.2", is_add=False))
        self.assertEqual(rows(), [(port, tx, "0.0.0.0")])
        self.ok(self.api.delete_loopback(sw_if_index=tx))
        self.assertEqual((rows(), rows(v6=True)), ([], []))

    def test_paths(self):
        port, tx = self.loopback(), self.loopback()
        call = lambda *paths, rx=port, af=0, is_add=True: self.api.add_del_ip_punt_redirect_v2(
            is_add=is_add,
            punt={"rx_sw_if_index": rx, "af": af, "n_paths": len(paths), "paths": list(paths)},
        )
        rows = lambda af=0: [
            (d.punt.rx_sw_if_index, sorted(str(p.nh.address.ip4) for p in d.punt.paths))
            for d in self.api.ip_punt_redirect_v2_dump(sw_if_index=NONE, af=af)
        ]
        a, b = self.path(tx, ip4="10.0.0.2"), self.path(tx, ip4="10.0.0.3")
        self.ok(call(a, b))
        self.assertEqual(rows(), [(port, ["10.0.0.2", "10.0.0.3"])])
        self.ok(call(a))
        self.assertEqual(rows(), [(port, ["10.0.0.2"])])
        self.ok(call({**self.path(tx, ip6="2001:db8::2"), "proto": 1}, af=1, rx=NONE))
        self.assertEqual([r for r, _ in rows(1)], [NONE])
        self.fails(-7, call())
        self.fails(-7, call({**self.path(NONE), "type": 2}))
        self.fails(-2, call(a, rx=9999))
        self.ok(call(is_add=False))
        self.ok(call(is_add=False, af=1, rx=NONE))
        self.assertEqual((rows(), rows(1)), ([], []))


class PathMtu(Case):
    def test_addresses(self):
        set_ = lambda nh, mtu, table=0: self.api.ip_path_mtu_update(
            pmtu={"table_id": table, "nh": nh, "path_mtu": mtu}
        )
        rows = lambda: [
            (d.pmtu.table_id, str(d.pmtu.nh), d.pmtu.path_mtu)
            for d in self.api.ip_path_mtu_get(cursor=0)[1]
        ]
        self.assertEqual(rows(), [])
        self.ok(set_("10.0.0.2", 1400))
        self.ok(set_("2001:db8::2", 1380))
        self.ok(set_("10.0.0.2", 1300))
        self.assertEqual(rows(), [(0, "10.0.0.2", 1300), (0, "2001:db8::2", 1380)])
        self.fails(-65, set_("10.0.0.2", 1300, table=9))
        self.fails(-7, set_("2001:db8::2", 1279))
        self.ok(self.api.ip_path_mtu_replace_begin())
        self.ok(set_("10.0.0.3", 1200))
        self.ok(set_("2001:db8::2", 1380))
        self.ok(self.api.ip_path_mtu_replace_end())
        self.assertEqual(rows(), [(0, "10.0.0.3", 1200), (0, "2001:db8::2", 1380)])
        for absent in (0, 65535):
            self.ok(set_("10.0.0.3", absent))
        self.ok(set_("2001:db8::2", 0))
        self.assertEqual(rows(), [])


class ProxyArp(Case):
    def test_ranges(self):
        call = lambda low, hi, table=0, is_add=True: self.api.proxy_arp_add_del(
            is_add=is_add, proxy={"table_id": table, "low": low, "hi": hi}
        )
        dump = lambda: [
            (d.proxy.table_id, str(d.proxy.low), str(d.proxy.hi)) for d in self.api.proxy_arp_dump()
        ]
        self.assertEqual(dump(), [])
        self.ok(call("10.0.0.5", "10.0.0.9"))
        self.ok(call("10.0.0.5", "10.0.0.9"))
        self.ok(self.api.ip_table_add_del(table={"table_id": 60}))
        self.ok(call("10.0.0.1", "10.0.0.1", table=60))
        want = [(0, "10.0.0.5", "10.0.0.9"), (60, "10.0.0.1", "10.0.0.1")]
        self.assertEqual(dump(), want)
        self.fails(-3, call("10.0.0.5", "10.0.0.9", table=61))
        self.fails(-7, call("10.0.0.9", "10.0.0.5"))
        self.fails(-6, call("10.0.0.5", "10.0.0.8", is_add=False))
        # A range goes out of sight with its table.
        self.ok(self.api.ip_table_add_del(is_add=False, table={"table_id": 60}))
        self.assertEqual(dump(), want[:1])
        self.ok(call("10.0.0.5", "10.0.0.9", is_add=False))
        self.assertEqual(dump(), [])

    def test_interfaces(self):
        call = self.api.proxy_arp_intfc_enable_disable
        dump = lambda: [d.sw_if_index for d in self.api.proxy_arp_intfc_dump()]
        port = self.loopback()
        self.ok(call(sw_if_index=port, enable=True))
        self.assertEqual(dump(), [port])
        self.ok(call(sw_if_index=port, enable=False))
        self.assertEqual(dump(), [])
        self.fails(-2, call(sw_if_index=9999, enable=True))
        self.ok(call(sw_if_index=port, enable=True))
        self.ok(self.api.delete_loopback(sw_if_index=port))
        self.assertEqual(dump(), [])


class Six(Case):
    """The same messages with IPv6 addresses, and those of IPv6 alone."""

    def setUp(self):
        super().setUp()
        self.port = self.ok(self.api.create_loopback()).sw_if_index
        self.ok(self.api.sw_interface_set_flags(sw_if_index=self.port, flags=1))

    def tearDown(self):
        self.ok(self.api.delete_loopback(sw_if_index=self.port))
        super().tearDown()

    def address(self, prefix, add=True):
        return self.api.sw_interface_add_del_address(
            sw_if_index=self.port, prefix=prefix, is_add=add
        )

    def routes(self, table=0):
        dump = self.api.ip_route_dump(table={"table_id": table, "is_ip6": True})
        return {str(d.route.prefix): d.route for d in dump}

    def test_addresses_and_routes(self):
        self.assertEqual(set(self.routes()), {"::/0", "fe80::/10"})
        self.ok(self.address("2001:db8:7::1/64"))
        dump = self.api.ip_address_dump(sw_if_index=self.port, is_ipv6=True)
        self.assertEqual([str(a.prefix) for a in dump], ["2001:db8:7::1/64"])
        self.assertLessEqual({"2001:db8:7::/64", "2001:db8:7::1/128"}, set(self.routes()))
        self.fails(-105, self.address("2001:db8:7::1/64"))
        self.fails(-7, self.address("ff02::1/64"))
        hop = {
            "sw_if_index": self.port, "weight": 1, "proto": 1, "n_labels": 0,
            "nh": {"address": {"ip6": ipaddress.IPv6Address("2001:db8:7::2")}},
            "label_stack": [{"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}] * 16,
        }
        route = {"table_id": 0, "prefix": "2001:db8:8::/48", "n_paths": 1, "paths": [hop]}
        self.ok(self.api.ip_route_add_del(route=route, is_add=True))
        found = self.ok(self.api.ip_route_lookup(table_id=0, prefix="2001:db8:8::9/128", exact=0))
        self.assertEqual(str(found.route.prefix), "2001:db8:8::/48")
        self.assertEqual(str(found.route.paths[0].nh.address.ip6), "2001:db8:7::2")
        self.ok(self.api.ip_route_add_del(route=route, is_add=False))
        self.ok(self.address("2001:db8:7::1/64", add=False))
        self.assertEqual(set(self.routes()), {"::/0", "fe80::/10"})

    def test_link_local_addresses(self):
        get = lambda: self.api.sw_interface_ip6_get_link_local_address(sw_if_index=self.port)
        enable = lambda on=True: self.api.sw_interface_ip6_enable_disable(
            sw_if_index=self.port, enable=on
        )
        put = lambda ip: self.api.sw_interface_ip6_set_link_local_address(
            sw_if_index=self.port, ip=ip
        )
        self.fails(-62, get())
        self.fails(-62, enable(False))
        self.ok(enable())
        self.fails(-81, enable())
        self.assertTrue(ipaddress.IPv6Address(str(self.ok(get()).ip)).is_link_local)
        self.ok(put("fe80::77"))
        self.assertEqual(str(get().ip), "fe80::77")
        self.fails(-7, put("2001:db8::1"))
        self.fails(-7, self.address("fe80::78/64"))
        self.ok(self.address("fe80::78/128"))
        self.assertEqual(str(get().ip), "fe80::78")
        self.fails(-60, self.address("fe80::77/128", add=False))
        # Link-local addresses are never among the others.
        dump = self.api.ip_address_dump(sw_if_index=self.port, is_ipv6=True)
        self.assertEqual(list(dump), [])
        self.ok(enable(False))
        self.fails(-62, get())
