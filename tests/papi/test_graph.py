"""Nodes and edges, features on arcs, traces, punted packets, pings."""

from lab import Case, NONE, wait_for


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

    def test_punted_ports(self):
        """`set punt`: such datagrams go by a redirect, or nowhere; others are answered."""
        l4 = lambda port, protocol=17, af=0: {
            "type": 0, "punt": {"l4": {"af": af, "protocol": protocol, "port": port}}
        }
        call = lambda punt, is_add=True: self.api.set_punt(is_add=is_add, punt=punt)
        shown = lambda: [(r["protocol"], r["port"]) for r in self.shown("show punt ports")]
        self.fails(-1, call(l4(53, protocol=6)))
        self.fails(-1, call(l4(53, protocol=1)))
        self.fails(-97, call(l4(53, af=7)))
        self.fails(-1, call({"type": 1, "punt": {"ip_proto": {"af": 0, "protocol": 89}}}))
        self.assertIn("TCP ports", self.cli("set punt tcp 53", -1))
        self.assertIn("`all' or a port", self.cli("set punt udp", -1))
        self.cli("create packet-generator interface pg20\ncreate packet-generator interface pg21")
        self.cli(
            """set interface state pg20 up
            set interface state pg21 up
            set interface mac address pg20 02:fe:00:00:00:20
            set interface ip address pg20 10.20.0.1/24
            set interface ip address pg21 10.21.0.1/24
            set ip neighbor pg20 10.20.0.9 02:00:00:00:20:09 static
            set ip neighbor pg21 10.21.0.9 02:00:00:00:21:09 static"""
        )

        def sent(port):
            """Sends a datagram to a port of the router; what leaves by either interface."""
            before = [self.counters(name)["tx_packets"] for name in ("pg20", "pg21")]
            self.cli(
                f"packet-generator new {{ name punts limit 1 source pg20 size 64-64 data {{ "
                f"IP4: 02:00:00:00:20:09 -> 02:fe:00:00:00:20 "
                f"UDP: 10.20.0.9 -> 10.20.0.1 UDP: 7 -> {port} incrementing 22 }} }}\n"
                "packet-generator enable-stream"
            )
            wait_for(lambda: "Yes" not in self.cli("show packet-generator"))
            self.cli("packet-generator delete punts")
            after = [self.counters(name)["tx_packets"] for name in ("pg20", "pg21")]
            return [b - a for a, b in zip(before, after)]

        # An ICMP error; with the port set, silence.
        self.assertEqual(sent(4789), [1, 0])
        self.ok(call(l4(4789)))
        self.ok(call(l4(4789)))
        self.assertEqual(shown(), [("ip4", 4789)])
        self.assertEqual((sent(4789), sent(4790)), ([0, 0], [1, 0]))
        self.cli("ip punt redirect add rx pg20 via 10.21.0.9 pg21")
        self.assertEqual(sent(4789), [0, 1])
        self.cli("ip punt redirect del rx pg20")
        # All without a listener.
        self.ok(call(l4(0xFFFF)))
        self.cli("set punt ipv6 udp 53")
        self.assertEqual(shown(), [("ip4", "all"), ("ip4", 4789), ("ip6", 53)])
        self.assertEqual(sent(4790), [0, 0])
        self.ok(call(l4(0xFFFF), is_add=False))
        self.cli("set punt del 4789\nset punt ipv6 del 53")
        self.assertEqual((shown(), sent(4789)), ([], [1, 0]))


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

        # Slices come from the cache: packets traced in between have no effect.
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

        # Packets that met a node, and packets that did not.
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
        self.fails(-65, self.api.trace_set_filters(flag=3, count=10, classifier_table_index=77))
        self.fails(-7, self.api.trace_set_filters(flag=9))
        (function,) = self.api.trace_filter_function_dump()
        self.assertTrue(function.selected)
        self.ok(self.api.trace_set_filter_function(filter_function_name=function.name))
        self.fails(-6, self.api.trace_set_filter_function(filter_function_name="nothing"))


class Classifier(Case):
    """Tables that choose packets for traces."""

    def setUp(self):
        if len(self.api.sw_interface_dump()) == 1:
            self.lab()

    def add(self, mask, **of):
        return self.api.classify_add_del_table(
            **{"is_add": True, "match_n_vectors": len(mask) // 16, "mask_len": len(mask), "mask": mask, **of}
        )

    def session(self, table, match, is_add=True, **of):
        return self.api.classify_add_del_session(
            is_add=is_add, table_index=table, match_len=len(match), match=match, **of
        )

    def test_tables_and_sessions(self):
        # The destination of an IPv4 packet: bytes 30 to 33 of its frame.
        mask = bytes(14) + b"\xff" * 4 + bytes(14)
        first = self.ok(self.add(mask, skip_n_vectors=1))
        self.assertEqual((first.skip_n_vectors, first.match_n_vectors), (1, 2))
        first = first.new_table_index
        second = self.ok(self.add(b"\xff" * 16, next_table_index=first)).new_table_index
        ids = self.ok(self.api.classify_table_ids())
        self.assertEqual((ids.count, list(ids.ids)), (2, [first, second]))
        match = bytes(30) + bytes([10, 0, 1, 2]) + b"\x99" * 14
        self.ok(self.session(first, match, opaque_index=9, hit_next_index=3, advance=-14))
        info = self.ok(self.api.classify_table_info(table_id=first))
        self.assertEqual(
            (info.table_id, info.skip_n_vectors, info.match_n_vectors, info.active_sessions, info.mask),
            (first, 1, 2, 1, mask),
        )
        self.assertEqual((info.nbuckets, info.next_table_index, info.miss_next_index), (2, NONE, NONE))
        self.assertEqual(self.api.classify_table_info(table_id=second).next_table_index, first)
        (one,) = self.api.classify_session_dump(table_id=first)
        kept = bytes(14) + bytes([10, 0, 1, 2]) + bytes(14)
        self.assertEqual(
            (one.table_id, one.match, one.opaque_index, one.hit_next_index, one.advance),
            (first, kept, 9, 3, -14),
        )
        # The same again says something else of the same packets.
        self.ok(self.session(first, match, opaque_index=10))
        self.assertEqual([s.opaque_index for s in self.api.classify_session_dump(table_id=first)], [10])
        (row,) = self.shown(f"show classify tables index {first}")
        self.assertEqual((row["skip"], row["vectors"], row["mask"]), (1, 2, mask.hex()))
        self.assertEqual(row["sessions"][0]["match"], kept.hex())
        self.assertIn(kept.hex(), self.cli("show classify tables verbose"))
        self.ok(self.session(first, match, is_add=False))
        self.fails(-6, self.session(first, match, is_add=False))

        # Requests that are refused.
        self.fails(-65, self.session(77, match))
        self.fails(-7, self.session(first, match[:-1]))
        self.fails(-126, self.session(first, match, action=3, metadata=7))
        self.fails(-7, self.session(first, match, action=9))
        self.fails(-7, self.add(mask, match_n_vectors=1))
        self.fails(-7, self.add(bytes(96)))
        self.fails(-7, self.add(mask, skip_n_vectors=6))
        self.fails(-7, self.add(mask, nbuckets=0))
        self.fails(-70, self.add(mask, memory_size=0))
        self.fails(-7, self.add(mask, current_data_offset=14))
        self.fails(-65, self.add(mask, next_table_index=77))
        self.fails(-65, self.add(mask, table_index=77))
        self.fails(-7, self.add(mask, table_index=first, next_table_index=second))
        self.fails(-91, self.api.classify_table_info(table_id=77))
        self.assertEqual(self.api.classify_session_dump(table_id=77), [])
        self.fails(-65, self.add(b"", is_add=False, table_index=77, match_n_vectors=0))
        # A chain goes as one.
        self.ok(self.add(b"", is_add=False, del_chain=True, table_index=second, match_n_vectors=0))
        self.assertEqual(self.ok(self.api.classify_table_ids()).count, 0)
        self.assertIn("No classifier tables", self.cli("show classify tables"))

    def test_filters_of_traces(self):
        node = self.ok(self.api.get_node_index(node_name="pg-input")).node_index
        mask = bytes(14) + b"\xff" * 4 + bytes(14)
        to = lambda *address: bytes(30) + bytes(address) + bytes(14)
        table = self.ok(self.add(mask, skip_n_vectors=1)).new_table_index
        self.ok(self.session(table, to(10, 0, 1, 2)))
        find = lambda: self.api.classify_trace_lookup_table(
            skip_n_vectors=1, match_n_vectors=2, mask_len=32, mask=mask
        )
        self.assertEqual(self.ok(find()).table_index, NONE)
        self.fails(-7, self.api.classify_trace_lookup_table(match_n_vectors=1, mask_len=15, mask=bytes(15)))
        self.fails(-7, self.api.classify_trace_set_table(table_index=77))
        self.assertEqual(self.ok(self.api.classify_trace_set_table(table_index=table)).table_index, table)
        self.assertEqual(self.ok(find()).table_index, table)
        self.assertEqual(list(self.api.classify_trace_get_tables().indices), [table])

        # Packets that are traced.
        capture = lambda **of: self.api.trace_capture_packets(
            node_index=node, max_packets=100, pre_capture_clear=True, **of
        )
        shown = lambda refresh=True: len(self.api.trace_v2_dump(clear_cache=refresh, max=100))
        self.ok(capture(use_filter=True))
        self.traffic("172.16.0.1", 4)
        self.traffic("10.0.1.2", 3)
        self.assertEqual(shown(), 3)

        # Packets that are shown, of those that were traced; the last table leads to the first.
        self.ok(capture())
        self.traffic("172.16.0.1", 4)
        self.traffic("10.0.1.2", 3)
        last = self.ok(self.add(b"\xff" * 16, next_table_index=table)).new_table_index
        for flag, of, count, expected in (
            (3, table, 10, 3),
            (3, table, 2, 2),
            (3, last, 10, 3),
            (4, table, 10, 4),
            (0, NONE, 0, 7),
        ):
            self.ok(self.api.trace_set_filters(flag=flag, count=count, classifier_table_index=of))
            self.assertEqual(shown(False), expected)
        self.cli(f"trace filter exclude table {table} 3")
        self.assertEqual(len(self.shown("show trace")[0]["packets"]), 3)
        self.cli("trace filter include table 77 3", -65)
        # A session more changes what is shown; the filter ends with its table.
        self.cli(f"trace filter include table {table} 10")
        self.ok(self.session(table, to(172, 16, 0, 1)))
        self.assertEqual(len(self.shown("show trace")[0]["packets"]), 7)
        self.ok(self.api.classify_trace_set_table())
        self.assertEqual(self.api.classify_trace_get_tables().count, 0)
        self.cli(f"classify table table {table} del\nclassify table table {last} del")
        self.assertEqual(len(self.shown("show trace")[0]["packets"]), 7)
        self.cli("trace filter none\nclear trace")
        self.fails(-6, capture(use_filter=True))

    def test_words(self):
        table = int(self.cli("classify table mask l3 ip4 src dst buckets 16 memory-size 64M"))
        self.cli(f"classify session table-index {table} match l3 ip4 src 10.0.0.2 dst 10.0.1.2 opaque-index 7")
        (row,) = self.shown("show classify tables")
        self.assertEqual((row["table"], row["buckets"]), (table, 16))
        self.assertEqual(row["sessions"][0]["opaque"], 7)
        self.assertIn("0a0000020a000102", row["sessions"][0]["match"])
        text = self.cli("show classify tables verbose 2")
        self.assertRegex(text, r"TableIdx +Sessions +NextTbl +NextNode\n +\d+ +1 +-1 +-1\n")
        self.cli(f"classify session table-index {table} match l3 ip4 src 10.0.0.2 dst 10.0.1.2 del")
        self.cli(f"classify session table-index {table} match l3 ip4 src 10.0.0.2 dst 10.0.1.2 del", -6)
        other = int(self.cli(f"classify table mask l4 dst next-table {table}"))
        self.cli(f"classify table table {table} next-table {other}", -7)
        self.cli(f"classify table table {other} del-chain")
        self.assertEqual(self.shown("show classify tables"), [])
        self.cli("classify table mask l3 ip4 src match 9", -7)
        # Patterns are sessions; sorting puts the masks with more bits first.
        self.cli("classify filter trace mask l3 ip4 src match l3 ip4 src 10.0.0.2")
        self.cli("classify filter trace mask l3 ip4 src match l3 ip4 src 10.0.0.3")
        self.cli("classify filter trace mask l3 ip4 src dst match l3 ip4 src 10.0.0.4 dst 10.0.0.5")
        text = self.cli("show classify filter")
        self.assertRegex(text, r"Filter Used By +Table\(s\)\n-+ +-+\npacket tracer: +first table 1\n")
        self.assertRegex(self.cli("show classify filter verbose"), r"packet tracer: +1 0\n")
        self.assertEqual(len(self.shown("show classify filter")), 3)
        reply = self.ok(self.api.classify_trace_set_table(table_index=1, sort_masks=True))
        self.assertEqual(reply.table_index, 1)
        self.cli("classify filter trace del")
        self.assertEqual(self.shown("show classify tables"), [])


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
