"""NAT44: pools, interfaces, mappings, sessions."""

from lab import NONE, Case

INSIDE, OUTSIDE, TWICE, ADDRESS_ONLY = 32, 16, 1, 8
NO_SUCH_ENTRY = -6


class Nat44(Case):
    def setUp(self):
        super().setUp()
        self.inside, self.outside = (
            self.ok(self.api.pg_create_interface_v3(interface_id=n)).sw_if_index for n in (20, 21)
        )
        self.ok(self.api.nat44_ed_plugin_enable_disable(sessions=5000, enable=True))

    def tearDown(self):
        self.ok(self.api.nat44_ed_plugin_enable_disable(enable=False))
        for port in (self.inside, self.outside):
            self.ok(self.api.pg_delete_interface(sw_if_index=port))
        super().tearDown()

    def refused(self, reply):
        self.assertLess(reply.retval, 0, reply)

    def pool(self, first, last=None, **more):
        return self.api.nat44_add_del_address_range(
            first_ip_address=first, last_ip_address=last or first, **{"vrf_id": NONE, "is_add": True, **more}
        )

    def test_settings(self):
        config = self.ok(self.api.nat44_show_running_config())
        self.assertEqual((config.sessions, config.forwarding_enabled), (5000, False))
        self.ok(self.api.nat44_forwarding_enable_disable(enable=True))
        times = {"udp": 60, "tcp_established": 3600, "tcp_transitory": 120, "icmp": 30}
        self.ok(self.api.nat_set_timeouts(**times))
        config = self.ok(self.api.nat44_show_running_config())
        self.assertTrue(config.forwarding_enabled)
        self.assertEqual({name: getattr(config.timeouts, name) for name in times}, times)
        self.refused(self.api.nat_set_timeouts(**{**times, "udp": 0xFFFFFFFF}))
        self.ok(self.api.nat_set_mss_clamping(mss_value=1400, enable=True))
        clamping = self.ok(self.api.nat_get_mss_clamping())
        self.assertEqual((clamping.mss_value, clamping.enable), (1400, True))
        self.ok(self.api.nat_set_mss_clamping(enable=False))
        self.assertFalse(self.ok(self.api.nat_get_mss_clamping()).enable)
        workers = [w.worker_index for w in self.api.nat_worker_dump()]
        self.assertGreater(len(workers), 0)
        self.ok(self.api.nat_set_workers(worker_mask=1))
        self.assertEqual([w.worker_index for w in self.api.nat_worker_dump()], [0])
        self.refused(self.api.nat_set_workers(worker_mask=0))
        self.refused(self.api.nat_set_workers(worker_mask=1 << 63))
        self.ok(self.api.nat_set_workers(worker_mask=sum(1 << w for w in workers)))
        self.assertEqual([w.worker_index for w in self.api.nat_worker_dump()], workers)
        room = self.ok(self.api.nat44_ed_show_fq_options()).frame_queue_nelts
        self.ok(self.api.nat44_ed_set_fq_options(frame_queue_nelts=room))
        self.refused(self.api.nat44_ed_set_fq_options(frame_queue_nelts=room + 1))

    def test_ipfix(self):
        on = lambda **more: self.api.nat_ipfix_enable_disable(enable=True, **more)
        is_on = lambda: self.ok(self.api.nat44_show_running_config()).ipfix_logging_enabled
        log = lambda: self.api.cli_inband(cmd="show nat44 log").reply
        self.refused(on())
        self.assertFalse(is_on())
        self.api.cli_inband(cmd="nat44 log ipfix 127.0.0.1:9")
        self.assertTrue(is_on())
        self.ok(on(domain_id=7))
        self.assertIn("ipfix 127.0.0.1:9 domain 7", log())
        self.ok(self.api.nat_ipfix_enable_disable(enable=False))
        self.assertFalse(is_on())
        self.refused(self.api.nat_ipfix_enable_disable(enable=False))
        self.ok(on())
        self.assertIn("ipfix 127.0.0.1:9 domain 7", log())
        self.ok(self.api.nat_ipfix_enable_disable(enable=False))

    def test_limits(self):
        self.ok(self.api.nat44_set_session_limit(session_limit=100, vrf_id=3))
        self.assertIn("vrf 3: 100 sessions", self.api.cli_inband(cmd="show nat44 session limits").reply)
        self.ok(self.api.nat44_set_session_limit(session_limit=0, vrf_id=3))
        self.refused(self.api.nat44_set_session_limit(session_limit=1, vrf_id=0xFFFFFFFF))

    def test_vrf_tables(self):
        table = lambda n, add=True: self.api.nat44_ed_add_del_vrf_table(table_vrf_id=n, is_add=add)
        route = lambda n, to, add=True: self.api.nat44_ed_add_del_vrf_route(
            table_vrf_id=n, vrf_id=to, is_add=add
        )
        listed = lambda dump: {t.table_vrf_id: list(t.vrf_ids) for t in dump()}
        self.refused(route(7, 0))
        self.ok(table(7))
        self.refused(table(7))
        self.ok(route(7, 9))
        self.ok(route(7, 0))
        self.refused(route(7, 9))
        self.refused(route(7, 0xFFFFFFFF))
        self.ok(table(8))
        for dump in (self.api.nat44_ed_vrf_tables_dump, self.api.nat44_ed_vrf_tables_v2_dump):
            self.assertEqual(listed(dump), {7: [9, 0], 8: []})
        self.ok(route(7, 9, False))
        self.refused(route(7, 9, False))
        self.assertEqual(listed(self.api.nat44_ed_vrf_tables_v2_dump), {7: [0], 8: []})
        self.ok(table(7, False))
        self.ok(table(8, False))
        self.refused(table(8, False))
        self.assertEqual(self.api.nat44_ed_vrf_tables_v2_dump(), [])

    def test_back_ends(self):
        host = lambda n: {"addr": f"10.0.0.{n}", "port": 8080, "probability": 10, "vrf_id": 0}
        name = {"external_addr": "192.0.2.1", "external_port": 80, "protocol": 6}
        change = lambda n, add=True: self.api.nat44_lb_static_mapping_add_del_local(
            is_add=add, local=host(n), **name
        )
        self.refused(change(2))
        self.ok(
            self.api.nat44_add_del_lb_static_mapping(
                is_add=True, affinity=60, local_num=2, locals=[host(2), host(3)], **name
            )
        )
        self.ok(change(4))
        self.refused(change(4))
        (mapping,) = self.api.nat44_lb_static_mapping_dump()
        self.assertEqual((mapping.affinity, [str(b.addr) for b in mapping.locals]),
                         (60, ["10.0.0.2", "10.0.0.3", "10.0.0.4"]))
        self.ok(change(2, False))
        self.ok(change(3, False))
        self.refused(change(4, False))
        self.ok(self.api.nat44_add_del_lb_static_mapping(is_add=False, local_num=0, locals=[], **name))
        self.assertEqual(self.api.nat44_lb_static_mapping_dump(), [])

    def test_pools(self):
        addresses = lambda: sorted(str(a.ip_address) for a in self.api.nat44_address_dump())
        self.ok(self.pool("192.0.2.1", "192.0.2.3"))
        self.ok(self.pool("192.0.2.9", flags=TWICE))
        self.assertEqual(addresses(), ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.9"])
        self.refused(self.pool("192.0.2.9", "192.0.2.1"))
        self.ok(self.pool("192.0.2.1", "192.0.2.3", is_add=False))
        self.refused(self.pool("192.0.2.1", is_add=False))
        self.assertEqual(addresses(), ["192.0.2.9"])
        of = lambda port, add: self.api.nat44_add_del_interface_addr(is_add=add, sw_if_index=port)
        self.ok(of(self.outside, True))
        self.refused(of(9999, True))
        self.assertEqual([i.sw_if_index for i in self.api.nat44_interface_addr_dump()], [self.outside])
        self.ok(of(self.outside, False))
        self.assertEqual(self.api.nat44_interface_addr_dump(), [])

    def test_interfaces(self):
        feature = lambda port, add=True, flags=INSIDE: self.api.nat44_interface_add_del_feature(
            is_add=add, flags=flags, sw_if_index=port
        )
        self.ok(feature(self.inside))
        self.ok(feature(self.outside, flags=OUTSIDE))
        self.refused(feature(9999))
        there = {i.sw_if_index: int(i.flags) for i in self.api.nat44_interface_dump()}
        self.assertEqual(there, {self.inside: INSIDE, self.outside: OUTSIDE})
        self.ok(feature(self.inside, add=False))
        self.ok(feature(self.outside, add=False, flags=OUTSIDE))
        output = lambda port, add: self.api.nat44_ed_add_del_output_interface(is_add=add, sw_if_index=port)
        listed = lambda: [d.sw_if_index for d in self.api.nat44_ed_output_interface_get()[1]]
        self.assertEqual(listed(), [])
        self.ok(output(self.outside, True))
        self.assertEqual(listed(), [self.outside])
        self.refused(output(9999, True))
        self.ok(output(self.outside, False))
        self.assertEqual(listed(), [])
        self.assertEqual(self.api.nat44_interface_dump(), [])

    def test_mappings(self):
        self.ok(self.pool("192.0.2.1"))
        ports = {"protocol": 6, "local_port": 80, "external_port": 8080}
        ends = {"local_ip_address": "10.0.0.2", "external_ip_address": "192.0.2.1"}
        by = {"external_sw_if_index": NONE, "is_add": True, **ends}
        add = self.api.nat44_add_del_static_mapping
        self.ok(add(**by, **ports))
        self.ok(self.api.nat44_add_del_static_mapping_v2(**by, **{**ports, "external_port": 8081}))
        self.refused(add(**{**by, "is_add": False}, **{**ports, "external_port": 9}))
        found = sorted((m.external_port, m.local_port) for m in self.api.nat44_static_mapping_dump())
        self.assertEqual(found, [(8080, 80), (8081, 80)])
        self.ok(add(**{**by, "is_add": False}, **ports))
        self.assertEqual(len(self.api.nat44_static_mapping_dump()), 1)
        same = {"ip_address": "192.0.2.1", "protocol": 17, "port": 53, "sw_if_index": NONE}
        self.ok(self.api.nat44_add_del_identity_mapping(is_add=True, **same))
        self.assertEqual([m.port for m in self.api.nat44_identity_mapping_dump()], [53])
        self.ok(self.api.nat44_add_del_identity_mapping(is_add=False, **same))
        self.refused(self.api.nat44_add_del_identity_mapping(is_add=False, **same))
        ends = [{"addr": f"10.0.0.{n}", "port": 80, "probability": 50, "vrf_id": 0} for n in (2, 3)]
        many = {"external_addr": "192.0.2.1", "external_port": 90, "protocol": 6, "local_num": 2, "locals": ends}
        self.ok(self.api.nat44_add_del_lb_static_mapping(is_add=True, **many))
        (mapping,) = self.api.nat44_lb_static_mapping_dump()
        self.assertEqual([str(e.addr) for e in mapping.locals], ["10.0.0.2", "10.0.0.3"])
        self.refused(self.api.nat44_add_del_lb_static_mapping(is_add=True, **{**many, "local_num": 0, "locals": []}))
        self.ok(self.api.nat44_add_del_lb_static_mapping(is_add=False, **many))
        self.assertEqual(self.api.nat44_lb_static_mapping_dump(), [])

    def test_words_that_are_not_heeded_are_refused(self):
        one = {
            "is_add": True, "local_ip_address": "10.0.0.2", "external_ip_address": "10.0.1.9", "protocol": 6,
            "local_port": 80, "external_port": 80, "external_sw_if_index": 0xFFFFFFFF, "vrf_id": 0xFFFFFFFF,
            "match_pool": True, "pool_ip_address": "10.9.9.9", "tag": "",
        }
        self.refused(self.api.nat44_add_del_static_mapping_v2(flags=0, **one))
        self.ok(self.api.nat44_add_del_static_mapping_v2(flags=1, **one))
        self.assertIn("exact 10.9.9.9", self.cli("show nat44 static mappings"))
        for flags in (2, 4, 8):
            self.refused(self.api.nat44_ed_plugin_enable_disable(enable=True, flags=flags))
        self.refused(self.api.nat44_ed_plugin_enable_disable(enable=True, inside_vrf=7))
        self.ok(self.api.nat44_ed_plugin_enable_disable(enable=True, flags=1))

    def test_sessions_there_are_none(self):
        self.assertEqual(self.api.nat44_user_dump(), [])
        for dump in ("", "_v2", "_v3"):
            sessions = getattr(self.api, f"nat44_user_session{dump}_dump")
            self.assertEqual(sessions(ip_address="10.0.0.2", vrf_id=0), [])
        self.refused(
            self.api.nat44_del_session(
                address="10.0.0.2", protocol=6, port=1, flags=INSIDE, ext_host_address="192.0.2.7", ext_host_port=80
            )
        )


class Sessions(Case):
    def test_sessions_are_told_and_ended(self):
        self.lab()
        self.cli("nat44 add address 10.0.1.100")
        self.cli("set interface nat44 in pg0 out pg1")
        self.traffic("10.0.1.2", 5)
        (user,) = self.api.nat44_user_dump()
        self.assertEqual((str(user.ip_address), user.nsessions), ("10.0.0.2", 1))
        for dump in ("", "_v2", "_v3"):
            (s,) = getattr(self.api, f"nat44_user_session{dump}_dump")(ip_address="10.0.0.2", vrf_id=0)
            self.assertEqual((str(s.outside_ip_address), s.inside_port, s.total_pkts), ("10.0.1.100", 1, 5))
            self.assertEqual((s.protocol, str(s.ext_host_address), s.ext_host_port), (17, "10.0.1.2", 2))
        one = {"address": "10.0.0.2", "protocol": 17, "port": 1, "vrf_id": 0, "flags": INSIDE}
        self.ok(self.api.nat44_del_session(ext_host_address="10.0.1.2", ext_host_port=2, **one))
        self.assertEqual(self.api.nat44_user_session_dump(ip_address="10.0.0.2", vrf_id=0), [])
        # Name no external host: all sessions of the port.
        self.cli("set ip neighbor pg1 10.0.1.3 02:00:00:00:01:03 static")
        self.traffic("10.0.1.2", 5)
        self.traffic("10.0.1.3", 5)
        self.assertEqual(len(self.api.nat44_user_session_dump(ip_address="10.0.0.2", vrf_id=0)), 2)
        self.ok(self.api.nat44_del_session(**one))
        self.assertEqual(self.api.nat44_user_session_dump(ip_address="10.0.0.2", vrf_id=0), [])
        self.fails(NO_SUCH_ENTRY, self.api.nat44_del_session(**one))
        self.ok(self.api.nat44_ed_plugin_enable_disable(enable=False))
