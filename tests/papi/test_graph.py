"""Nodes and edges, features on arcs, traces, punted packets, pings."""

from lab import Case, NONE


class Graph(Case):
    def nodes(self, **of):
        """All nodes, from any number of replies."""
        found, cursor = [], NONE
        while True:
            reply, details = self.api.graph_node_get(
                **{"cursor": cursor, "index": NONE, "name": "", "flags": 0, "want_arcs": True, **of}
            )
            found += details
            if reply.retval != -165:
                return reply, found
            cursor = reply.cursor

    def test_nodes(self):
        reply, nodes = self.nodes()
        self.assertEqual((reply.retval, reply.cursor), (0, NONE))
        by_index = {n.index: n for n in nodes}
        self.assertEqual(sorted(by_index), list(range(len(nodes))))
        lookup = self.ok(self.api.get_node_index(node_name="ip4-lookup")).node_index
        self.assertEqual(by_index[lookup].name, "ip4-lookup")
        names = [by_index[i].name for i in by_index[lookup].arcs_out]
        self.assertIn("ip4-rewrite", names)
        edge = {"node_name": "ip4-lookup", "next_name": "ip4-rewrite"}
        at = self.ok(self.api.get_next_index(**edge)).next_index
        self.assertEqual(names[at], "ip4-rewrite")

        reply, (one,) = self.nodes(name="drop")
        self.assertEqual((one.name, int(one.flags) & 4, reply.retval), ("drop", 4, 0))
        reply, (one,) = self.nodes(index=lookup, want_arcs=False)
        self.assertEqual((one.name, one.arcs_out), ("ip4-lookup", []))
        self.assertEqual(self.nodes(name="nothing")[0].retval, -6)
        self.assertEqual(self.nodes(index=99999)[0].retval, -6)
        self.assertLessEqual({"drop", "error-drop"}, {n.name for n in self.nodes(flags=4)[1]})
        # Any cursor is handled.
        for cursor in (0, len(nodes), 99999, NONE - 1):
            reply, rest = self.api.graph_node_get(
                cursor=cursor, index=NONE, name="", flags=0, want_arcs=False
            )
            self.assertEqual(reply.retval, 0)
            self.assertEqual(len(rest), max(0, len(nodes) - cursor))
        # A pointer into memory that is not shared.
        self.fails(-9, self.api.get_node_graph())

    def test_features(self):
        port = self.ok(self.api.pg_create_interface_v3(interface_id=0)).sw_if_index
        on = {"arc_name": "device-input", "feature_name": "sflow", "sw_if_index": port}
        state = lambda **of: self.api.feature_is_enabled(**{**on, **of})
        switch = lambda enable, **of: self.api.feature_enable_disable(**{**on, **of}, enable=enable)
        self.assertFalse(self.ok(state()).is_enabled)
        self.ok(switch(True))
        self.assertTrue(self.ok(state()).is_enabled)
        self.assertIn("sflow", self.cli("show interface pg0 features"))
        self.assertFalse(self.ok(state(sw_if_index=0)).is_enabled)
        self.ok(switch(False))
        self.assertFalse(self.ok(state()).is_enabled)
        # A graph feature enabled by its owner stays until that one disables it.
        self.ok(self.api.sflow_enable_disable(hw_if_index=port, enable_disable=True))
        self.ok(switch(True))
        self.ok(switch(False))
        self.assertTrue(self.ok(state()).is_enabled)
        self.ok(self.api.sflow_enable_disable(hw_if_index=port, enable_disable=False))
        self.assertFalse(self.ok(state()).is_enabled)
        for call in (state, lambda **of: switch(True, **of)):
            self.fails(-2, call(sw_if_index=9999))
            self.fails(-7, call(arc_name="no-arc"))
            self.fails(-8, call(feature_name="no-feature"))

    def test_punt(self):
        udp = {"type": 0, "punt": {"l4": {"af": 0, "protocol": 17, "port": 4789}}}
        other = {"type": 2, "punt": {"exception": {"id": 1}}}
        self.fails(-1, self.api.set_punt(is_add=True, punt=udp))
        self.fails(-1, self.api.set_punt(is_add=True, punt=other))
        self.fails(-1, self.api.punt_socket_register(header_version=1, punt=udp, pathname="/x"))
        self.fails(-1, self.api.punt_socket_deregister(punt=udp))
        self.assertEqual(self.api.punt_socket_dump(type=0), [])
        reasons = self.api.punt_reason_dump(reason={"id": 0, "name": ""})
        self.assertEqual([r.reason.id for r in reasons], list(range(len(reasons))))
        name = "ip4-unknown-protocol"
        self.assertIn(name, [r.reason.name for r in reasons])
        one = self.api.punt_reason_dump(reason={"id": 0, "name": name})
        self.assertEqual([r.reason.name for r in one], [name])
        self.assertEqual(self.api.punt_reason_dump(reason={"id": 0, "name": "none"}), [])


class Traces(Case):
    stanzas = "cpu { workers 2 }"

    def test_traces(self):
        self.lab()
        node = self.ok(self.api.get_node_index(node_name="pg-input")).node_index
        capture = lambda **of: self.api.trace_capture_packets(
            **{"node_index": node, "max_packets": 10, "pre_capture_clear": True, **of}
        )
        self.ok(capture())
        self.traffic("10.0.1.2", 30)
        reply, packets = self.api.trace_dump(clear_cache=1, thread_id=0, position=0, max_records=100)
        self.ok(reply)
        self.assertEqual((len(packets), reply.done, reply.flush_only), (10, 1, 0))
        self.assertEqual([p.position for p in packets], list(range(10)))
        self.assertEqual([p.done for p in packets], [0] * 9 + [1])
        for packet in packets:
            self.assertIn("ip4-rewrite", packet.trace_data)
            self.assertIn(packet.trace_data.splitlines()[1], self.cli("show trace max 100"))

        # In slices from the cache: packets traced in between have no effect.
        self.traffic("10.0.1.2", 1)
        thread, position, seen = 0, 0, []
        while True:
            reply, some = self.api.trace_dump(
                clear_cache=0, thread_id=thread, position=position, max_records=3
            )
            seen += [p.trace_data for p in some]
            self.assertLessEqual(len(some), 3)
            if reply.done:
                break
            thread, position = reply.last_thread_id, reply.last_position + 1
            if not reply.more_this_thread:
                thread, position = thread + 1, 0
        self.assertEqual(seen, [p.trace_data for p in packets])
        reply, none = self.api.trace_dump(clear_cache=1, thread_id=0, position=0, max_records=0)
        self.assertEqual((reply.flush_only, none), (1, []))

        other = self.api.trace_v2_dump(clear_cache=True, max=4)
        self.assertEqual([p.trace_data for p in other], seen[:4])
        self.assertEqual([p.more for p in other], [True] * 4)
        of = other[0].thread_id
        rest = self.api.trace_v2_dump(thread_id=of, position=8, max=50)
        self.assertEqual([(p.position, p.more) for p in rest], [(8, True), (9, False)])
        self.assertEqual(self.api.trace_v2_dump(thread_id=77), [])

        # The cache stays until it is cleared, or the traces are.
        self.cli("clear trace")
        self.assertEqual(len(self.api.trace_v2_dump()), 10)
        self.ok(self.api.trace_clear_cache())
        self.assertEqual(self.api.trace_v2_dump(), [])
        self.ok(capture(max_packets=5))
        self.traffic("10.0.1.2", 8)
        self.assertEqual(len(self.api.trace_v2_dump(clear_cache=True)), 5)
        self.ok(self.api.trace_clear_capture())
        self.assertEqual(self.api.trace_v2_dump(), [])

        self.fails(-63, capture(node_index=99999))
        drop = self.ok(self.api.get_node_index(node_name="drop")).node_index
        self.fails(-63, capture(node_index=drop))

        self.fails(-6, capture(use_filter=True))
        self.cli("classify filter trace mask l3 ip4 dst match l3 ip4 dst 10.0.1.2")
        self.ok(capture(use_filter=True))
        self.traffic("172.16.0.1", 4)
        self.traffic("10.0.1.2", 3)
        shown = lambda **of: len(self.api.trace_v2_dump(**{"clear_cache": True, "max": 50, **of}))
        self.assertEqual(shown(), 3)
        self.cli("classify filter trace del")

        # What met a node, and what did not.
        self.ok(capture())
        self.traffic("172.16.0.1", 4)
        self.traffic("10.0.1.2", 3)
        rewrite = self.ok(self.api.get_node_index(node_name="ip4-rewrite")).node_index
        for flag, count, expected in ((0, 0, 7), (1, 10, 3), (1, 2, 2), (2, 10, 4), (0, 0, 7)):
            self.ok(self.api.trace_set_filters(flag=flag, count=count, node_index=rewrite))
            self.assertEqual(shown(clear_cache=False), expected)

    def test_filters(self):
        self.ok(self.api.trace_set_filters(flag=0))
        self.fails(-63, self.api.trace_set_filters(flag=1, count=10, node_index=99999))
        self.fails(-65, self.api.trace_set_filters(flag=3, count=10, classifier_table_index=1))
        self.fails(-7, self.api.trace_set_filters(flag=9))
        (function,) = self.api.trace_filter_function_dump()
        self.assertTrue(function.selected)
        self.ok(self.api.trace_set_filter_function(filter_function_name=function.name))
        self.fails(-6, self.api.trace_set_filter_function(filter_function_name="nothing"))


class Pings(Case):
    def test_ping(self):
        index = self.loopback()
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.cli(f"set interface ip address {self.interface(index).interface_name} 10.7.0.1/24")
        ping = lambda address, **of: self.api.want_ping_finished_events(address=address, **of)
        self.ok(ping("10.7.0.1", repeat=3, interval=0.01))
        ((name, event),) = self.take_events(1)
        self.assertEqual(name, "ping_finished_event")
        self.assertEqual((event.request_count, event.reply_count), (3, 3))
        # The reply arrives before the pings are done, and other clients are served meanwhile.
        self.ok(ping("10.7.0.1", repeat=2, interval=0.2))
        self.ok(self.api.control_ping())
        self.assertEqual(self.events, [])
        self.take_events(1)
        # No host replies at this address.
        self.ok(ping("10.7.0.77", interval=0.01))
        ((_, event),) = self.take_events(1)
        self.assertEqual((event.request_count, event.reply_count), (1, 0))
        self.fails(-1, ping("192.0.2.77"))
        self.fails(-1, ping("2001:db8::1"))
        self.fails(-7, ping("10.7.0.1", repeat=0))
        self.fails(-7, ping("10.7.0.1", interval=-1.0))
        self.fails(-7, ping("10.7.0.1", interval=1e300))
        self.fails(-97, ping({"af": 7, "un": {"ip4": "1.2.3.4"}}))
        # The pings of a client end when it disconnects.
        other = self.router.client("gone")
        self.assertEqual(
            other.api.want_ping_finished_events(address="10.7.0.1", repeat=100000, interval=0.01).retval, 0
        )
        other.disconnect()
        self.ok(self.api.control_ping())
