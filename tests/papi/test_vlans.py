"""Sub-interfaces, tag rewrites, BVIs: each message and field."""

from lab import Case

NO_TAGS, ONE_TAG, TWO_TAGS, DOT1AD, EXACT, DEFAULT, ANY_OUTER, ANY_INNER = (1 << bit for bit in range(8))
# Error codes of VPP.
UNSPECIFIED, NO_INTERFACE, INVALID, VLAN, IN_USE, FEW_TAGS, NOT_A_SUB, HAS_BVI = (
    -1, -2, -7, -55, -56, -72, -98, -152)


class Vlans(Case):
    def port(self, number):
        return self.ok(self.api.pg_create_interface_v3(interface_id=number)).sw_if_index

    def details(self, index):
        (details,) = self.api.sw_interface_dump(sw_if_index=index)
        return details

    def test_sub_interfaces(self):
        port = self.port(0)
        made = self.ok(self.api.create_vlan_subif(sw_if_index=port, vlan_id=100)).sw_if_index
        seen = self.details(made)
        self.assertEqual((seen.interface_name, seen.sup_sw_if_index, seen.sub_id), ("pg0.100", port, 100))
        self.assertEqual((seen.type, seen.sub_number_of_tags, seen.sub_outer_vlan_id), (1, 1, 100))
        self.assertEqual((int(seen.sub_if_flags), int(seen.flags)), (ONE_TAG | EXACT, 0))
        self.assertEqual(seen.interface_dev_type, self.details(port).interface_dev_type)
        # Number, flags, outer and inner id; what the dump says of tags and ids.
        for sub, flags, outer, inner, tags in [
            (1, ONE_TAG, 7, 0, (1, 7, 0)),
            (2, ONE_TAG | DOT1AD | EXACT, 7, 0, (1, 7, 0)),
            (3, TWO_TAGS | EXACT, 8, 9, (2, 8, 9)),
            (4, TWO_TAGS | DOT1AD, 8, 9, (2, 8, 9)),
            (5, TWO_TAGS | ANY_INNER, 8, 0, (2, 8, 0)),
            (6, DEFAULT, 0, 0, (0, 0, 0)),
            (7, NO_TAGS | EXACT, 0, 0, (0, 0, 0)),
            (8, ONE_TAG | ANY_OUTER, 0, 0, (1, 0, 0)),
        ]:
            made = self.ok(self.api.create_subif(
                sw_if_index=port, sub_id=sub, sub_if_flags=flags, outer_vlan_id=outer, inner_vlan_id=inner)).sw_if_index
            seen = self.details(made)
            self.assertEqual((seen.sub_id, int(seen.sub_if_flags)), (sub, flags))
            self.assertEqual((seen.sub_number_of_tags, seen.sub_outer_vlan_id, seen.sub_inner_vlan_id), tags)
        create = lambda **fields: self.api.create_subif(
            **{"sw_if_index": port, "sub_id": 50, "sub_if_flags": ONE_TAG | EXACT, "outer_vlan_id": 50, **fields})
        self.fails(NO_INTERFACE, create(sw_if_index=9999))
        self.fails(IN_USE, create(sub_id=100))
        self.fails(UNSPECIFIED, create(outer_vlan_id=100))
        self.fails(INVALID, create(sub_id=0))
        self.fails(INVALID, create(outer_vlan_id=4095))
        self.fails(INVALID, create(sub_if_flags=0))
        self.fails(INVALID, create(sub_if_flags=NO_TAGS | ONE_TAG))
        self.fails(INVALID, create(sub_if_flags=ONE_TAG | ANY_OUTER | EXACT))
        for vlan in (0, 4095, 4096):
            self.fails(VLAN, self.api.create_vlan_subif(sw_if_index=port, vlan_id=vlan))
        self.fails(IN_USE, self.api.create_vlan_subif(sw_if_index=port, vlan_id=100))
        self.fails(NO_INTERFACE, self.api.create_vlan_subif(sw_if_index=9999, vlan_id=1))
        # Addresses and state are those of any interface.
        index = self.details(made).sw_if_index
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.ok(self.api.sw_interface_set_mtu(sw_if_index=index, mtu=[1400, 0, 0, 0]))
        self.assertEqual(self.details(index).mtu[0], 1400)
        self.fails(NOT_A_SUB, self.api.delete_subif(sw_if_index=port))
        self.fails(NO_INTERFACE, self.api.delete_subif(sw_if_index=9999))
        self.ok(self.api.delete_subif(sw_if_index=index))
        self.assertEqual(self.api.sw_interface_dump(sw_if_index=index), [])

    def test_tag_rewrites(self):
        port = self.port(1)
        sub = self.ok(self.api.create_subif(
            sw_if_index=port, sub_id=1, sub_if_flags=TWO_TAGS | DOT1AD | EXACT, outer_vlan_id=8, inner_vlan_id=9)).sw_if_index
        rewrite = lambda index, op, dot1q=0, tag1=0, tag2=0: self.api.l2_interface_vlan_tag_rewrite(
            sw_if_index=index, vtr_op=op, push_dot1q=dot1q, tag1=tag1, tag2=tag2)
        for op, used in enumerate([0, 1, 2, 0, 0, 1, 2, 1, 2]):
            self.ok(rewrite(sub, op, 1, 100, 200))
            seen = self.details(sub)
            tags = (100 if used > 0 else 0, 200 if used > 1 else 0)
            self.assertEqual((seen.vtr_op, seen.vtr_tag1, seen.vtr_tag2), (op, *tags))
            self.assertEqual(seen.vtr_push_dot1q, int(used > 0))
        self.ok(rewrite(port, 1, 0, 300))
        self.fails(FEW_TAGS, rewrite(port, 3))
        self.fails(INVALID, rewrite(sub, 9))
        self.fails(INVALID, rewrite(sub, 1, 1, 4095))
        self.fails(NO_INTERFACE, rewrite(9999, 0))
        for index in (port, sub):
            self.ok(rewrite(index, 0))
        self.ok(self.api.delete_subif(sw_if_index=sub))

    def test_bvis(self):
        first = self.ok(self.api.bvi_create()).sw_if_index
        seen = self.details(first)
        self.assertEqual((seen.interface_name, seen.interface_dev_type), ("bvi0", "BVI"))
        self.assertEqual(str(seen.l2_address), "b0:b0:00:00:00:00")
        mac = "02:00:00:00:00:55"
        second = self.ok(self.api.bvi_create(mac=mac, user_instance=5)).sw_if_index
        self.assertEqual(str(self.details(second).l2_address), mac)
        self.fails(-31, self.api.bvi_create(user_instance=5))
        self.fails(-31, self.api.bvi_create(user_instance=16384))
        loop = self.ok(self.api.create_loopback()).sw_if_index
        self.fails(NO_INTERFACE, self.api.bvi_delete(sw_if_index=loop))
        self.fails(NO_INTERFACE, self.api.bvi_delete(sw_if_index=9999))
        self.ok(self.api.delete_loopback(sw_if_index=loop))
        for index in (first, second):
            self.ok(self.api.bvi_delete(sw_if_index=index))

    def test_addresses_need_one_kind_of_frames(self):
        port = self.port(3)
        sub = self.ok(self.api.create_subif(
            sw_if_index=port, sub_id=1, sub_if_flags=ONE_TAG, outer_vlan_id=8)).sw_if_index
        add = lambda index: self.api.sw_interface_add_del_address(
            sw_if_index=index, is_add=True, prefix="192.0.2.1/24"
        )
        self.fails(-126, add(sub))
        self.fails(-126, add(0))
        self.ok(self.api.delete_subif(sw_if_index=sub))

    def test_arp_termination(self):
        on = {"flood": True, "uu_flood": True, "forward": True, "learn": True, "arp_term": True}
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=78, arp_ufwd=True, **on))
        ((domain,),) = ([d for d in self.api.bridge_domain_dump() if d.bd_id == 78],)
        self.assertTrue(domain.arp_term and domain.arp_ufwd)
        # VPP's bits: all but that of a port for unknown frames, and those that are cleared.
        flags = lambda is_set, flags: self.ok(
            self.api.bridge_flags(bd_id=78, is_set=is_set, flags=flags)).resulting_feature_bitmap
        self.assertEqual(flags(True, 1), 0xffffffff & ~(1 << 6))
        self.assertEqual(flags(False, 16 | 32), 0xffffffff & ~(1 << 6 | 1 << 4 | 1 << 3))
        self.assertEqual(flags(True, 16), 0xffffffff & ~(1 << 6 | 1 << 3))
        change = lambda ip, mac, is_add=True, bd=78: self.api.bd_ip_mac_add_del(
            is_add=is_add, entry={"bd_id": bd, "ip": ip, "mac": mac})
        known = lambda bd=78: [(str(d.entry.ip), str(d.entry.mac)) for d in self.api.bd_ip_mac_dump(bd_id=bd)]
        one, other = "02:00:00:00:00:01", "02:00:00:00:00:02"
        for ip, mac in (("192.0.2.1", one), ("192.0.2.1", one), ("192.0.2.1", other), ("2001:db8::1", one)):
            self.ok(change(ip, mac))
        self.assertEqual(known(), [("192.0.2.1", other), ("2001:db8::1", one)])
        self.assertEqual(known(0xffffffff), known())
        self.assertEqual(known(79), [])
        self.fails(UNSPECIFIED, change("192.0.2.1", one, is_add=False))
        self.fails(-6, change("192.0.2.1", one, bd=79))
        self.fails(-6, self.api.bd_ip_mac_flush(bd_id=79))
        self.ok(change("192.0.2.1", other, is_add=False))
        self.assertEqual(known(), [("2001:db8::1", one)])
        self.ok(self.api.bd_ip_mac_flush(bd_id=78))
        self.assertEqual(known(), [])
        self.ok(self.api.want_l2_arp_term_events(enable=True, pid=7))
        self.fails(-31, self.api.want_l2_arp_term_events(enable=True, pid=7))
        # A host asks.
        port = self.port(4)
        self.cli("set interface state pg4 up\nset interface l2 bridge pg4 78")
        self.cli(
            "packet-generator new { name asks limit 1 size 64-64 source pg4 data { "
            "ARP: 02:00:00:00:00:09 -> ffff.ffff.ffff "
            "request: 02:00:00:00:00:09/192.0.2.9 -> 0.0.0/192.0.2.1 incrementing 8 } }"
        )
        self.events.clear()
        self.cli("packet-generator enable-stream asks")
        ((name, event),) = self.take_events(1)
        self.assertEqual((name, event.pid), ("l2_arp_term_event", 7))
        self.assertEqual((str(event.ip), str(event.mac)), ("192.0.2.9", "02:00:00:00:00:09"))
        self.assertEqual(event.sw_if_index, port)
        self.ok(self.api.want_l2_arp_term_events(enable=False, pid=7))
        self.fails(-31, self.api.want_l2_arp_term_events(enable=False, pid=7))
        self.cli("packet-generator delete asks")
        self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=port, bd_id=78, enable=False))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=78, is_add=False))

    def test_flags_of_ports(self):
        port, other = self.port(5), self.port(6)
        learn, forward, flood, uu_flood, arp_term = (1 << bit for bit in range(5))
        # VPP's bits of features: those of a port that does all.
        usual = 1 << 9 | 1 << 7 | 1 << 6 | 1 << 5 | 1 << 4 | 1 << 3 | 1 << 2 | 1
        flags = lambda index, is_set, bits: self.api.l2_flags(sw_if_index=index, is_set=is_set, feature_bitmap=bits)
        self.fails(NO_INTERFACE, flags(9999, True, learn))
        self.fails(NO_INTERFACE, flags(port, True, learn))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=79, flood=True, uu_flood=True, forward=True, learn=True))
        for index in (port, other):
            self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=index, bd_id=79))
        left = lambda index, is_set, bits: self.ok(flags(index, is_set, bits)).resulting_feature_bitmap
        self.assertEqual(left(port, True, learn), usual)
        self.assertEqual(left(port, False, learn | arp_term), usual & ~(1 << 9 | 1 << 4))
        self.assertEqual(left(port, False, forward | flood | uu_flood), 1 << 6 | 1 << 3 | 1)
        self.assertEqual(left(other, False, 0), usual)
        self.ok(self.api.l2_interface_vlan_tag_rewrite(sw_if_index=other, vtr_op=1, push_dot1q=1, tag1=7))
        self.assertEqual(left(other, False, 0), usual | 1 << 11)
        self.ok(self.api.l2_interface_vlan_tag_rewrite(sw_if_index=other, vtr_op=0))
        self.assertEqual(left(port, True, 31), usual)
        self.ok(self.api.l2_interface_efp_filter(sw_if_index=port))
        self.assertIn("efp-filter: true", self.cli("show configuration"))
        self.ok(self.api.l2_interface_efp_filter(sw_if_index=port, enable_disable=False))
        self.assertNotIn("efp-filter", self.cli("show configuration"))
        self.fails(NO_INTERFACE, self.api.l2_interface_efp_filter(sw_if_index=9999))
        self.fails(-71, self.api.l2_interface_efp_filter(sw_if_index=0))
        # The same by the other messages, with flags of their own and by VPP's bits.
        get, put = self.api.l2_interface_feat_flags_get, self.api.l2_interface_feat_flags_set
        of = lambda index: int(self.ok(get(sw_if_index=index)).flags)
        self.assertEqual(of(port), 63)
        self.ok(put(sw_if_index=port, is_set=False, flags=learn | flood))
        self.assertEqual(of(port), 63 & ~(learn | flood))
        self.assertEqual(left(port, False, 0), usual & ~(1 << 9 | 1 << 2))
        self.ok(put(sw_if_index=port, is_set=True, flags=63))
        self.assertEqual((of(port), of(other)), (63, 63))
        # Flag 32 is a setting of bridge domains.
        self.fails(-126, put(sw_if_index=port, is_set=False, flags=32))
        self.fails(-7, put(sw_if_index=port, is_set=False, flags=64))
        for call in (get, lambda **of: put(is_set=True, flags=1, **of), self.api.l2_flags_get):
            self.fails(NO_INTERFACE, call(sw_if_index=9999))
        bits = lambda index: self.ok(self.api.l2_flags_get(sw_if_index=index))
        self.assertEqual((bits(port).input_feature_bitmap, bits(port).output_feature_bitmap), (usual, 1))
        change = lambda index, is_set, into, out=0: self.api.l2_flags_set(
            sw_if_index=index, is_set=is_set, input_feature_bitmap=into, output_feature_bitmap=out)
        self.ok(change(port, False, 1 << 9 | 1 << 4))
        self.ok(change(port, True, 0, 1 << 6))
        self.assertEqual(bits(port).input_feature_bitmap, usual & ~(1 << 9 | 1 << 4))
        self.assertEqual(bits(port).output_feature_bitmap, 1 | 1 << 6)
        self.assertIn("efp-filter: true", self.cli("show configuration"))
        self.ok(change(port, True, 1 << 9 | 1 << 4))
        self.ok(change(port, False, 0, 1 << 6))
        self.assertEqual((bits(port).input_feature_bitmap, bits(port).output_feature_bitmap), (usual, 1))
        self.fails(-126, change(port, False, 1 << 8))
        self.fails(-126, change(port, True, 0, 1))
        self.fails(NO_INTERFACE, change(9999, True, 0))
        # An address of a port that is in no bridge domain.
        self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=other, bd_id=79, enable=False))
        self.assertEqual((of(other), bits(other).output_feature_bitmap), (0, 0))
        self.fails(NO_INTERFACE, self.api.l2fib_add_del(mac="02:00:00:00:00:98", bd_id=79, sw_if_index=other))
        self.fails(-6, self.api.l2fib_add_del(mac="02:00:00:00:00:98", bd_id=80, sw_if_index=port))
        self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=port, bd_id=79, enable=False))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=79, is_add=False))

    def test_secondary_macs(self):
        port = self.port(7)
        sub = self.ok(self.api.create_vlan_subif(sw_if_index=port, vlan_id=100)).sw_if_index
        change = lambda index, mac, is_add=1: self.api.sw_interface_add_del_mac_address(
            sw_if_index=index, addr=mac, is_add=is_add)
        mac = "02:00:00:00:00:98"
        # A sub-interface's addresses are its port's.
        self.ok(change(sub, mac))
        self.ok(change(port, mac))
        for name in ("pg7", "pg7.100"):
            self.assertEqual(self.cli(f"show interface secondary-mac-address {name}").split(), [name, "(down):", mac])
        self.ok(change(port, mac, is_add=0))
        self.fails(-9, change(port, mac, is_add=0))
        self.fails(-9, change(port, "01:00:00:00:00:98"))
        self.fails(-9, change(0, mac))
        self.fails(NO_INTERFACE, change(9999, mac))
        self.ok(self.api.delete_subif(sw_if_index=sub))

    def test_special_ports_of_bridge_domains(self):
        port = self.port(2)
        loop, other = (self.ok(self.api.create_loopback()).sw_if_index for _ in range(2))
        join = lambda index, kind: self.api.sw_interface_set_l2_bridge(rx_sw_if_index=index, bd_id=77, port_type=kind)
        self.ok(join(loop, 1))
        self.ok(join(port, 2))
        ((domain,),) = ([d for d in self.api.bridge_domain_dump() if d.bd_id == 77],)
        self.assertEqual((domain.bvi_sw_if_index, domain.uu_fwd_sw_if_index), (loop, port))
        # The port for unknown frames is no member.
        self.assertEqual([p.sw_if_index for p in domain.sw_if_details], [loop])
        self.fails(HAS_BVI, join(other, 1))
        (mac,) = self.api.l2_fib_table_dump(bd_id=77)
        self.assertEqual((mac.sw_if_index, mac.bvi_mac, mac.static_mac), (loop, True, True))
        for index in (loop, port):
            self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=index, bd_id=77, enable=False))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=77, is_add=False))
        for index in (loop, other):
            self.ok(self.api.delete_loopback(sw_if_index=index))
