"""Bridge domains: settings, ports and MAC addresses."""

from lab import Case, wait_for

ADD, DELETE, MOVE = 0, 1, 2


class Bridges(Case):
    def domains(self):
        return {d.bd_id: d for d in self.api.bridge_domain_dump()}

    def test_settings_ports_and_macs(self):
        a, b = (self.ok(self.api.pg_create_interface_v3(interface_id=n)).sw_if_index for n in (0, 1))
        on = {"flood": True, "uu_flood": True, "forward": True, "learn": True}
        self.ok(self.api.bridge_domain_add_del(bd_id=7, bd_tag="lab", **on))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=8, **on))
        self.assertEqual(set(self.domains()), {7, 8})
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=8, is_add=False))
        self.assertLess(self.api.bridge_domain_add_del_v2(bd_id=8, is_add=False).retval, 0)
        self.assertEqual([d.bd_id for d in self.api.bridge_domain_dump(bd_id=7)], [7])
        self.assertEqual(self.api.bridge_domain_dump(bd_id=9), [])
        self.ok(self.api.bridge_domain_set_mac_age(bd_id=7, mac_age=5))
        self.assertLess(self.api.bridge_domain_set_mac_age(bd_id=9, mac_age=5).retval, 0)
        self.ok(self.api.bridge_domain_set_learn_limit(bd_id=7, learn_limit=100))
        self.assertLess(self.api.bridge_domain_set_learn_limit(bd_id=9, learn_limit=1).retval, 0)
        self.ok(self.api.bridge_flags(bd_id=7, is_set=False, flags=1))
        self.assertLess(self.api.bridge_flags(bd_id=9, is_set=False, flags=1).retval, 0)
        domain = self.domains()[7]
        self.assertEqual((domain.mac_age, domain.learn, domain.flood), (5, False, True))
        join = lambda of, **more: self.api.sw_interface_set_l2_bridge(rx_sw_if_index=of, bd_id=7, **more)
        self.ok(join(a))
        self.ok(join(b))
        self.assertLess(join(9999).retval, 0)
        self.assertEqual([p.sw_if_index for p in self.domains()[7].sw_if_details], [a, b])
        host = {"mac": "02:00:00:00:00:99", "bd_id": 7, "sw_if_index": a}
        self.ok(self.api.l2fib_add_del(static_mac=True, **host))
        self.assertLess(self.api.l2fib_add_del(mac="02:00:00:00:00:98", bd_id=9, sw_if_index=a).retval, 0)
        macs = lambda: [str(s.mac) for s in self.api.l2_fib_table_dump(bd_id=7)]
        self.assertEqual(macs(), ["02:00:00:00:00:99"])
        # Static entries stay; these flush learned ones.
        self.ok(self.api.l2fib_flush_all())
        self.ok(self.api.l2fib_flush_bd(bd_id=7))
        self.ok(self.api.l2fib_flush_int(sw_if_index=a))
        self.assertEqual(macs(), ["02:00:00:00:00:99"])
        self.ok(self.api.l2fib_add_del(is_add=False, **host))
        self.assertEqual(macs(), [])
        self.ok(self.api.l2_fib_clear_table())
        self.ok(self.api.bridge_domain_set_default_learn_limit(learn_limit=1 << 20))
        for port in (a, b):
            self.ok(join(port, enable=False))
        self.ok(self.api.bridge_domain_add_del(bd_id=7, is_add=False))
        self.assertEqual(self.domains(), {})

    def test_learned_macs_are_reported(self):
        ports = [self.ok(self.api.pg_create_interface_v3(interface_id=n)).sw_if_index for n in (2, 3)]
        for port in ports:
            self.ok(self.api.sw_interface_set_flags(sw_if_index=port, flags=1))
        on = {"flood": True, "uu_flood": True, "forward": True, "learn": True}
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=5, **on))
        for port in ports:
            self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=port, bd_id=5))
        self.fails(-7, self.api.want_l2_macs_events2(max_macs_in_event=0, pid=1))
        self.ok(self.api.want_l2_macs_events2(pid=17))
        # Repeating a request is not an error; the last one applies.
        self.ok(self.api.want_l2_macs_events2(pid=18))
        self.assertIn("L2MAC events client PID: 18  Delay: 1.00e-1sec  Max macs in event: 100", self.cli("show l2fib"))

        def event():
            ((name, event),) = self.take_events(1)
            self.assertEqual((name, event.pid, event.n_macs), ("l2_macs_event", 18, 1))
            (mac,) = event.mac
            self.assertEqual(str(mac.mac_addr), "02:00:00:00:00:99")
            return int(mac.action), mac.sw_if_index

        mac = "02:00:00:00:00:77"
        self.traffic("10.0.1.2", 3, mac=mac, port="pg2")
        self.assertEqual(event(), (ADD, ports[0]))
        self.traffic("10.0.1.2", 3, mac=mac, port="pg3")
        self.assertEqual(event(), (MOVE, ports[1]))
        self.ok(self.api.l2fib_flush_all())
        self.assertEqual(event(), (DELETE, ports[1]))
        self.fails(-7, self.api.l2fib_set_scan_delay(scan_delay=0))
        # A shorter one does not wait for the end of a longer one.
        self.ok(self.api.want_l2_macs_events2(enable_disable=False))
        self.ok(self.api.l2fib_set_scan_delay(scan_delay=0xFFFF))
        self.ok(self.api.want_l2_macs_events2(pid=18))
        self.traffic("10.0.1.2", 3, mac=mac, port="pg2")
        self.ok(self.api.l2fib_set_scan_delay(scan_delay=1))
        self.assertIn("scan-delay: 1", self.cli("show configuration"))
        self.assertEqual(event(), (ADD, ports[0]))
        self.ok(self.api.l2fib_flush_all())
        self.assertEqual(event(), (DELETE, ports[0]))
        self.traffic("10.0.1.2", 3, mac=mac, port="pg2")
        self.assertEqual(event(), (ADD, ports[0]))
        self.ok(self.api.l2fib_set_scan_delay(scan_delay=10))
        self.assertNotIn("scan-delay", self.cli("show configuration"))
        self.ok(self.api.want_l2_macs_events2(enable_disable=False))
        self.fails(-7, self.api.want_l2_macs_events(learn_limit=0, pid=19))
        self.fails(-7, self.api.want_l2_macs_events(learn_limit=1 << 24, pid=19))

        def known(source):
            self.cli(
                f"packet-generator new {{ name l limit 1 size 64-64 source pg2 data {{ "
                f"IP4: {source} -> {mac} UDP: 10.0.0.2 -> 10.0.1.2 UDP: 1 -> 2 incrementing 8 }} }}"
            )
            before = self.counters("pg2")["rx_packets"]
            self.cli("packet-generator enable-stream l")
            wait_for(lambda: self.counters("pg2")["rx_packets"] == before + 1)
            self.cli("packet-generator delete l")
            return source in {str(d.mac) for d in self.api.l2_fib_table_dump(bd_id=5)}

        # All bridge domains together learn that many while the client is subscribed.
        self.ok(self.api.want_l2_macs_events(learn_limit=1, pid=19))
        self.assertTrue(known("02:00:00:00:00:99"))
        self.assertFalse(any(known("02:00:00:00:00:98") for _ in range(3)))
        self.ok(self.api.want_l2_macs_events(enable_disable=False))
        wait_for(lambda: known("02:00:00:00:00:98"))
        # The least that a client asks for holds as long as that is connected.
        other = self.router.client("other")
        self.ok(other.api.want_l2_macs_events(learn_limit=1, pid=20))
        self.ok(self.api.want_l2_macs_events(learn_limit=1000, pid=19))
        self.assertFalse(any(known("02:00:00:00:00:97") for _ in range(3)))
        other.disconnect()
        wait_for(lambda: known("02:00:00:00:00:97"))
        self.ok(self.api.want_l2_macs_events(enable_disable=False))
        # Its interval is the one of all.
        self.ok(self.api.want_l2_macs_events(pid=19, scan_delay=2))
        self.assertIn("scan-delay: 2", self.cli("show configuration"))
        self.ok(self.api.want_l2_macs_events(enable_disable=False, scan_delay=0))
        self.ok(self.api.l2fib_set_scan_delay(scan_delay=10))
        self.events.clear()
        for port in ports:
            self.ok(self.api.sw_interface_set_l2_bridge(rx_sw_if_index=port, bd_id=5, enable=False))
        self.ok(self.api.bridge_domain_add_del_v2(bd_id=5, is_add=False))
