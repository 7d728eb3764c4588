"""Interfaces and loopbacks."""

from lab import NONE, Case


class Interfaces(Case):
    def test_dump(self):
        index = self.loopback()
        all_of_them = self.api.sw_interface_dump()
        self.assertEqual(all_of_them[0].interface_name, "local0")
        self.assertEqual(all_of_them[0].interface_dev_type, "local")
        (one,) = self.api.sw_interface_dump(sw_if_index=index)
        self.assertEqual((one.sw_if_index, one.sup_sw_if_index), (index, index))
        self.assertEqual(one.interface_dev_type, "Loopback")
        self.assertEqual((one.link_mtu, one.mtu[0], int(one.flags)), (9000, 9000, 2))
        self.assertTrue(str(one.l2_address).startswith("de:ad:00:00:00:"))
        self.assertEqual(len(self.api.sw_interface_dump(sw_if_index=0)), len(all_of_them))
        self.assertEqual(self.api.sw_interface_dump(sw_if_index=9999), [])
        named = self.api.sw_interface_dump(name_filter_valid=True, name_filter="OCAL")
        self.assertEqual([i.interface_name for i in named], ["local0"])

    def test_state(self):
        index = self.loopback()
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.assertEqual(int(self.interface(index).flags), 3)
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=0))
        self.assertEqual(int(self.interface(index).flags), 2)
        self.fails(-2, self.api.sw_interface_set_flags(sw_if_index=9999, flags=1))

    def test_mtu(self):
        index = self.loopback()
        self.ok(self.api.sw_interface_set_mtu(sw_if_index=index, mtu=[1500, 1400, 0, 0]))
        self.assertEqual(list(self.interface(index).mtu), [1500, 1400, 0, 0])
        self.fails(-7, self.api.sw_interface_set_mtu(sw_if_index=index, mtu=[1400, 3, 0, 0]))
        self.assertEqual(list(self.interface(index).mtu), [1500, 1400, 0, 0])
        self.fails(-2, self.api.sw_interface_set_mtu(sw_if_index=9999, mtu=[1500, 0, 0, 0]))
        self.ok(self.api.hw_interface_set_mtu(sw_if_index=index, mtu=2000))
        self.assertEqual(self.interface(index).link_mtu, 2000)
        self.fails(-7, self.api.hw_interface_set_mtu(sw_if_index=index, mtu=1))
        self.fails(-2, self.api.hw_interface_set_mtu(sw_if_index=9999, mtu=1500))

    def test_mac(self):
        index = self.loopback()
        mac = "02:00:00:00:00:07"
        self.ok(self.api.sw_interface_set_mac_address(sw_if_index=index, mac_address=mac))
        self.assertEqual(str(self.interface(index).l2_address), mac)
        got = self.ok(self.api.sw_interface_get_mac_address(sw_if_index=index))
        self.assertEqual(str(got.mac_address), mac)
        group = "01:00:00:00:00:07"
        self.fails(-1, self.api.sw_interface_set_mac_address(sw_if_index=index, mac_address=group))
        self.fails(-2, self.api.sw_interface_set_mac_address(sw_if_index=9999, mac_address=mac))
        self.fails(-2, self.api.sw_interface_get_mac_address(sw_if_index=9999))

    def test_promiscuous(self):
        index = self.loopback()
        name = self.interface(index).interface_name
        self.ok(self.api.sw_interface_set_promisc(sw_if_index=index, promisc_on=True))
        self.assertIn("promiscuous", self.cli(f"show hardware-interfaces {name}"))
        self.ok(self.api.sw_interface_set_promisc(sw_if_index=index, promisc_on=False))
        self.fails(-2, self.api.sw_interface_set_promisc(sw_if_index=9999, promisc_on=True))

    def test_loopbacks(self):
        mac = "02:00:00:00:01:01"
        first = self.ok(self.api.create_loopback(mac_address=mac)).sw_if_index
        self.assertEqual(str(self.interface(first).l2_address), mac)
        wish = {"is_specified": True, "user_instance": 77}
        index = self.ok(self.api.create_loopback_instance(**wish)).sw_if_index
        self.assertEqual(self.interface(index).interface_name, "loop77")
        self.assertEqual(str(self.interface(index).l2_address), "de:ad:00:00:00:4d")
        self.assertEqual(self.fails(-31, self.api.create_loopback_instance(**wish)).sw_if_index, NONE)
        wish["user_instance"] = 99999
        self.fails(-31, self.api.create_loopback_instance(**wish))
        self.ok(self.api.delete_loopback(sw_if_index=index))
        self.assertNotIn("loop77", [i.interface_name for i in self.api.sw_interface_dump()])
        self.fails(-2, self.api.delete_loopback(sw_if_index=index))
        self.fails(-2, self.api.delete_loopback(sw_if_index=0))

    def test_events(self):
        self.ok(self.api.want_interface_events(enable_disable=1, pid=4711))
        self.fails(-31, self.api.want_interface_events(enable_disable=1, pid=4711))
        index = self.loopback()
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        # Nothing changes, so no event is sent.
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.ok(self.api.delete_loopback(sw_if_index=index))
        events = self.take_events(4)
        seen = [(e.sw_if_index, int(e.flags), e.deleted) for _, e in events]
        # Created, up, down, deleted.
        self.assertEqual(
            seen, [(index, 0, False), (index, 3, False), (index, 2, False), (index, 0, True)]
        )
        self.assertEqual({(n, e.pid) for n, e in events}, {("sw_interface_event", 4711)})
        self.ok(self.api.want_interface_events(enable_disable=0, pid=4711))
        self.fails(-31, self.api.want_interface_events(enable_disable=0, pid=4711))
        self.loopback()
        self.api.control_ping()
        self.assertEqual(self.events, [])

    def test_counters(self):
        self.ok(self.api.sw_interface_clear_stats(sw_if_index=NONE))
        self.ok(self.api.sw_interface_clear_stats(sw_if_index=0))
        self.fails(-2, self.api.sw_interface_clear_stats(sw_if_index=9999))

    def test_tag(self):
        index = self.loopback()
        tag = lambda text, **of: self.api.sw_interface_tag_add_del(
            **{"is_add": True, "sw_if_index": index, "tag": text, **of}
        )
        self.ok(tag("vppcfg"))
        self.assertEqual(self.interface(index).tag, "vppcfg")
        self.assertIn("vppcfg", self.cli("show configuration"))
        self.ok(tag("", is_add=False))
        self.assertEqual(self.interface(index).tag, "")
        self.fails(-7, tag(""))
        self.fails(-7, tag("two words"))
        self.fails(-2, tag("x", sw_if_index=9999))

    def test_detailed_statistics(self):
        index = self.loopback()
        self.ok(self.api.collect_detailed_interface_stats(sw_if_index=index, enable_disable=True))
        self.fails(-2, self.api.collect_detailed_interface_stats(sw_if_index=9999))

    def test_addresses(self):
        index = self.loopback()
        add = lambda prefix, **more: self.api.sw_interface_add_del_address(
            sw_if_index=index, prefix=prefix, is_add=True, **more
        )
        remove = lambda prefix, **more: self.api.sw_interface_add_del_address(
            sw_if_index=index, prefix=prefix, is_add=False, **more
        )
        dump = lambda **of: [str(a.prefix) for a in self.api.ip_address_dump(sw_if_index=index, **of)]
        self.ok(add("192.0.2.1/24"))
        self.ok(add("198.51.100.1/31"))
        self.assertEqual(dump(), ["192.0.2.1/24", "198.51.100.1/31"])
        self.assertEqual(dump(is_ipv6=True), [])
        self.assertIn(index, [d.sw_if_index for d in self.api.ip_dump()])
        self.assertEqual(self.api.ip_dump(is_ipv6=True), [])
        self.fails(-105, add("192.0.2.1/24"))
        self.fails(-105, add("192.0.2.129/25"))
        self.fails(-7, add("224.0.0.1/24"))
        self.fails(-60, remove("192.0.2.9/24"))
        self.ok(remove("192.0.2.1/24"))
        self.assertEqual(dump(), ["198.51.100.1/31"])
        self.ok(remove("0.0.0.0/0", del_all=True))
        self.assertEqual(dump(), [])
        self.fails(-2, self.api.sw_interface_add_del_address(sw_if_index=9999, prefix="192.0.2.1/24"))
        self.assertEqual(self.api.ip_address_dump(sw_if_index=9999), [])
        self.assertEqual(self.api.ip_unnumbered_dump(), [])

    def test_unnumbered(self):
        lender, borrower = self.loopback(), self.loopback()
        use = lambda is_add=True: self.api.sw_interface_set_unnumbered(
            sw_if_index=lender, unnumbered_sw_if_index=borrower, is_add=is_add
        )
        dump = lambda **some: [
            (d.sw_if_index, d.ip_sw_if_index) for d in self.api.ip_unnumbered_dump(**some)
        ]
        self.ok(use())
        self.ok(use())
        self.assertEqual(dump(), [(borrower, lender)])
        self.assertEqual(dump(sw_if_index=borrower), [(borrower, lender)])
        self.assertEqual(dump(sw_if_index=lender), [])
        set = lambda **which: self.api.sw_interface_set_unnumbered(is_add=True, **which)
        self.fails(-7, set(sw_if_index=lender, unnumbered_sw_if_index=lender))
        self.fails(-10, set(sw_if_index=9999, unnumbered_sw_if_index=borrower))
        self.fails(-2, set(sw_if_index=lender, unnumbered_sw_if_index=9999))
        self.ok(use(is_add=False))
        self.fails(-6, use(is_add=False))
        self.assertEqual(dump(), [])

    def test_tables(self):
        index = self.loopback()
        self.ok(self.api.ip_table_add_del(table={"table_id": 70}))
        table = lambda vrf, **more: self.api.sw_interface_set_table(
            sw_if_index=index, vrf_id=vrf, **more
        )
        self.ok(table(70))
        self.assertEqual(self.ok(self.api.sw_interface_get_table(sw_if_index=index)).vrf_id, 70)
        self.fails(-3, table(71))
        self.ok(table(0, is_ipv6=True))
        self.fails(-3, table(70, is_ipv6=True))
        self.ok(self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix="203.0.113.1/24"))
        self.fails(-114, table(0))
        self.fails(-2, self.api.sw_interface_set_table(sw_if_index=9999))
        self.fails(-2, self.api.sw_interface_get_table(sw_if_index=9999))

    def test_what_there_is_none_of(self):
        for name in (
            "bridge_domain",
            "mpls_interface",
            "mpls_table",
            "sw_bond_interface",
            "sw_interface_tap_v2",
            "sw_member_interface",
            "vxlan_tunnel_v2",
        ):
            self.assertEqual(getattr(self.api, f"{name}_dump")(), [])
        self.assertEqual(self.api.acl_dump(acl_index=NONE), [])
        reply, pairs = self.api.lcp_itf_pair_get()
        self.assertEqual((self.ok(reply).cursor, pairs), (NONE, []))
        index = self.loopback()
        lists = {a.sw_if_index: list(a.acls) for a in self.api.acl_interface_list_dump()}
        self.assertEqual(lists[index], [])
        self.assertEqual(set(lists), {i.sw_if_index for i in self.api.sw_interface_dump()})
