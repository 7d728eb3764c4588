"""The configuration as a document: everything that API clients can set is dumped and restored;
applying it does not affect other traffic; kills and confirmations."""

import os
import re

import yaml

from lab import NONE, Case, Recorder, Router, offered

# Messages that set nothing persistent, and why.
ACTIONS = {
    "add_node_next": "where nodes may send to, for programs that add nodes",
    "cli_inband": "the commands' own test walks these",
    "collect_detailed_interface_stats": "says which counters there are",
    "feature_enable_disable": "each feature has a setting of its own",
    "ip6nd_send_router_solicitation": "asks",
    "ip_neighbor_flush": "forgets what was learned",
    "ip_neighbor_replace_begin": "begins a replacement",
    "ip_path_mtu_replace_begin": "begins a replacement",
    "ip_path_mtu_replace_end": "takes away",
    "ip_neighbor_replace_end": "takes away",
    "arping": "asks",
    "bd_ip_mac_flush": "takes away",
    "classify_add_del_session": "chooses packets for a trace or capture",
    "classify_add_del_table": "chooses packets for a trace or capture",
    "classify_pcap_get_tables": "looks",
    "classify_pcap_lookup_table": "looks",
    "classify_pcap_set_table": "chooses packets for a capture",
    "classify_table_ids": "looks",
    "classify_table_info": "looks",
    "classify_trace_get_tables": "looks",
    "classify_trace_lookup_table": "looks",
    "classify_trace_set_table": "chooses packets for a trace",
    "bvi_delete": "takes away",
    "arping_acd": "asks",
    "ip_table_flush": "takes away",
    "ip_table_replace_begin": "begins a replacement",
    "ip_table_replace_end": "takes away",
    "sw_interface_address_replace_begin": "begins a replacement",
    "sw_interface_address_replace_end": "takes away",
    "lcp_itf_pair_replace_begin": "begins a replacement",
    "lcp_itf_pair_replace_end": "takes away",
    "l2_fib_clear_table": "forgets what was learned",
    "l2fib_flush_all": "forgets what was learned",
    "l2fib_flush_bd": "forgets what was learned",
    "l2fib_flush_int": "forgets what was learned",
    "nat44_del_session": "ends one",
    "nat44_ed_set_fq_options": "the room is fixed: only what is so anyway is taken",
    "pg_capture": "a test is started, and ends",
    "pg_enable_disable": "a test is started, and ends",
    "pg_interface_enable_disable_coalesce": "there is only one way",
    "sw_interface_clear_stats": "forgets what was counted",
}

# Read-only messages, by name.
LOOKS = re.compile(
    r"(_dump|_get|_get_table|_lookup(_v2)?)$|^(show|get|want|sockclnt|memclnt|trace|ping|graph|pcap)_|_get_"
    r"|^control_ping|^api_versions|_is_enabled$|^punt|_allocate$|_show_(running_config|fq_options)$"
)


def setters(api, port):
    """Requests that set something, by name, in an order that works."""
    pg, other, loop = port("pg0"), port("pg1"), port("loop3")
    route = lambda prefix, **path: {
        "prefix": prefix,
        "n_paths": 1,
        "paths": [{"sw_if_index": NONE, "label_stack": [{}] * 16, **path}],
    }
    yield "create_loopback", {}
    yield "create_loopback_instance", {"is_specified": True, "user_instance": 77}
    yield "delete_loopback", {"sw_if_index": lambda: port("loop77")}
    yield "create_vlan_subif", {"sw_if_index": pg, "vlan_id": 100}
    tags = {"sub_if_flags": 4 | 16, "outer_vlan_id": 200, "inner_vlan_id": 7}
    yield "create_subif", {"sw_if_index": pg, "sub_id": 5, **tags}
    yield "l2_interface_vlan_tag_rewrite", {
        "sw_if_index": lambda: port("pg0.5"), "vtr_op": 6, "push_dot1q": 1, "tag1": 8, "tag2": 9
    }
    yield "create_subif", {"sw_if_index": pg, "sub_id": 6, **tags, "inner_vlan_id": 8}
    yield "delete_subif", {"sw_if_index": lambda: port("pg0.6")}
    yield "pg_create_interface", {"interface_id": 10}
    yield "pg_create_interface_v2", {"interface_id": 11, "mode": 1}
    yield "pg_create_interface_v3", {"interface_id": 12}
    yield "pg_delete_interface", {"sw_if_index": lambda: port("pg12")}
    yield "af_packet_create", {"host_if_name": "ca", "hw_addr": "02:00:00:00:0c:0a"}
    yield "af_packet_create_v2", {"host_if_name": "cb", "hw_addr": "02:00:00:00:0c:0b"}
    yield "af_packet_delete", {"host_if_name": "cb"}
    yield "af_packet_create_v3", {"host_if_name": "cb", "num_rx_queues": 1, "use_random_hw_addr": True}
    yield "sw_interface_set_rx_mode", {"sw_if_index": lambda: port("host-ca"), "mode": 1}
    (queue,) = api.sw_interface_rx_placement_dump(sw_if_index=port("host-ca"))
    # Reported from 1, requested from 0.
    move = {"sw_if_index": queue.sw_if_index, "queue_id": 0, "worker_id": 2 - queue.worker_id}
    yield "sw_interface_set_rx_placement", move
    yield "af_packet_set_l4_cksum_offload", {"sw_if_index": lambda: port("host-ca"), "set": False}
    yield "sw_interface_set_flags", {"sw_if_index": pg, "flags": 1}
    yield "sw_interface_set_mac_address", {"sw_if_index": loop, "mac_address": "02:00:00:00:00:33"}
    yield "sw_interface_add_del_mac_address", {"sw_if_index": loop, "addr": "02:00:00:00:00:34", "is_add": 1}
    yield "hw_interface_set_mtu", {"sw_if_index": pg, "mtu": 2000}
    yield "sw_interface_set_mtu", {"sw_if_index": pg, "mtu": [1800, 1400, 1500, 0]}
    yield "sw_interface_set_promisc", {"sw_if_index": pg, "promisc_on": True}
    yield "ip_table_add_del", {"is_add": True, "table": {"table_id": 7}}
    yield "ip_table_add_del_v2", {"is_add": True, "table": {"table_id": 8}}
    yield "sw_interface_set_table", {"sw_if_index": other, "vrf_id": 7}
    yield "sw_interface_add_del_address", {"sw_if_index": pg, "is_add": True, "prefix": "10.0.0.1/24"}
    yield "sw_interface_set_unnumbered", {"sw_if_index": pg, "unnumbered_sw_if_index": loop, "is_add": True}
    yield "proxy_arp_add_del", {
        "is_add": True, "proxy": {"table_id": 7, "low": "10.0.0.5", "hi": "10.0.0.9"}
    }
    yield "proxy_arp_intfc_enable_disable", {"sw_if_index": pg, "enable": True}
    yield "sw_interface_set_ip_directed_broadcast", {"sw_if_index": pg, "enable": True}
    yield "mss_clamp_enable_disable", {"sw_if_index": pg, "ipv4_mss": 1400, "ipv4_direction": 3}
    yield "mss_clamp_enable_disable", {"sw_if_index": loop, "ipv4_mss": 1300, "ipv4_direction": 1}
    yield "mss_clamp_enable_disable", {"sw_if_index": loop, "ipv6_mss": 1300, "ipv6_direction": 2}
    redirect = {"rx_sw_if_index": NONE, "tx_sw_if_index": pg, "nh": "10.0.0.9"}
    yield "ip_punt_redirect", {"is_add": True, "punt": redirect}
    path = {"sw_if_index": pg, "proto": 1, "nh": {"address": {"ip6": "2001:db8::9"}}, "label_stack": [{}] * 16}
    redirect = {"rx_sw_if_index": loop, "af": 1, "n_paths": 1, "paths": [path]}
    yield "add_del_ip_punt_redirect_v2", {"is_add": True, "punt": redirect}
    yield "set_punt", {"is_add": True, "punt": {"type": 0, "punt": {"l4": {"af": 1, "protocol": 17, "port": 53}}}}
    yield "ip_path_mtu_update", {"pmtu": {"table_id": 0, "nh": "10.0.0.9", "path_mtu": 1400}}
    yield "sw_interface_ip4_enable_disable", {"sw_if_index": loop, "enable": True}
    yield "sw_interface_ip6_enable_disable", {"sw_if_index": loop, "enable": True}
    yield "sw_interface_ip6_set_link_local_address", {"sw_if_index": loop, "ip": "fe80::33"}
    yield "sw_interface_ip6nd_ra_config", {
        "sw_if_index": loop, "managed": 1, "default_router": 1, "lifetime": 1800, "max_interval": 20
    }
    yield "sw_interface_ip6nd_ra_prefix", {
        "sw_if_index": loop, "prefix": "2001:db8::/64", "val_lifetime": 3600, "pref_lifetime": 1800
    }
    yield "ip6_nd_address_autoconfig", {"sw_if_index": loop, "enable": True, "install_default_routes": True}
    yield "ip6nd_proxy_add_del", {"sw_if_index": pg, "is_add": True, "ip": "2001:db8::9"}
    yield "ip6_dad_enable_disable", {"enable": True, "dad_transmits": 2, "dad_retransmit_delay": 0.5}
    yield "mpls_table_add_del", {"mt_is_add": True, "mt_table": {"mt_table_id": 0}}
    yield "sw_interface_set_mpls_enable", {"sw_if_index": pg, "enable": True}
    yield "ip_neighbor_config", {"af": 0, "max_number": 500, "max_age": 60, "recycle": True}
    neighbor = {"sw_if_index": pg, "flags": 1, "ip_address": "10.0.0.9", "mac_address": "02:00:00:00:00:09"}
    yield "ip_neighbor_add_del", {"is_add": True, "neighbor": neighbor}
    via = {"nh": {"address": {"ip4": "10.0.0.9"}}}
    yield "ip_route_add_del", {"is_add": True, "route": route("10.9.0.0/16", **via)}
    label = {
        "mr_table_id": 0, "mr_label": 99, "mr_eos": 1, "mr_eos_proto": 0, "mr_n_paths": 1,
        "mr_paths": route("10.9.0.0/16", **via, sw_if_index=pg)["paths"],
    }
    yield "mpls_route_add_del", {"mr_is_add": True, "mr_is_multipath": False, "mr_route": label}
    yield "mpls_ip_bind_unbind", {
        "mb_mpls_table_id": 0, "mb_label": 100, "mb_ip_table_id": 7, "mb_is_bind": True,
        "mb_prefix": "10.9.0.0/16",
    }
    yield "mpls_tunnel_add_del", {
        "mt_is_add": True, "mt_tunnel": {
            "mt_sw_if_index": NONE, "mt_l2_only": True, "mt_n_paths": 1,
            "mt_paths": route("10.9.0.0/16", **via, sw_if_index=pg, n_labels=1, label_stack=[{"label": 44}] + [{}] * 15)["paths"],
        },
    }
    yield "ip_route_add_del_v2", {"is_add": True, "route": {**route("10.8.0.0/16", type=2), "src": 0}}
    yield "tap_create_v2", {"id": 40, "use_random_mac": True, "host_if_name_set": True, "host_if_name": "tap40h"}
    yield "tap_create_v3", {"id": 41, "use_random_mac": True}
    yield "tap_delete_v2", {"sw_if_index": lambda: port("tap41")}
    yield "sw_interface_set_l2_xconnect", {
        "rx_sw_if_index": lambda: port("pg10"), "tx_sw_if_index": loop, "enable": True
    }
    yield "sflow_enable_disable", {"hw_if_index": pg, "enable_disable": True}
    yield "sflow_sampling_rate_set", {"sampling_N": 512}
    yield "sflow_polling_interval_set", {"polling_S": 33}
    yield "sflow_header_bytes_set", {"header_B": 192}
    yield "sflow_direction_set", {"sampling_D": 3}
    yield "sflow_drop_monitoring_set", {"drop_M": 1}
    yield from more_setters(api, port)
    yield "lcp_default_ns_set", {"netns": "/proc/self/ns/net"}
    twin = {"sw_if_index": loop, "host_if_name": "twin3"}
    yield "lcp_itf_pair_add_del", {"is_add": True, **twin}
    yield "lcp_itf_pair_add_del_v2", {"is_add": False, **twin}
    yield "lcp_itf_pair_add_del_v3", {"is_add": True, **twin}
    yield "lcp_ethertype_enable", {"ethertype": 0x88CC}
    yield "lcp_osi_proto_enable", {"osi_proto": 0x83}
    yield "lcp_sync_unnumbered_set", {"is_enable": False}


def more_setters(api, port):
    """Objects of other features, if they exist."""
    pg = port("pg0")
    on = {"flood": True, "uu_flood": True, "forward": True, "learn": True}
    yield "bridge_domain_add_del", {"bd_id": 7, "bd_tag": "lab", **on}
    yield "bridge_domain_add_del_v2", {"bd_id": 8, **on}
    yield "bridge_domain_set_default_learn_limit", {"learn_limit": 5000}
    yield "l2fib_set_scan_delay", {"scan_delay": 25}
    yield "bridge_domain_set_mac_age", {"bd_id": 7, "mac_age": 5}
    yield "bridge_domain_set_learn_limit", {"bd_id": 7, "learn_limit": 100}
    yield "bridge_flags", {"bd_id": 7, "is_set": False, "flags": 1}
    yield "bridge_flags", {"bd_id": 7, "is_set": True, "flags": 16}
    yield "bd_ip_mac_add_del", {
        "is_add": True, "entry": {"bd_id": 7, "ip": "192.0.2.9", "mac": "02:00:00:00:00:09"}
    }
    yield "bvi_create", {"mac": "02:00:00:00:00:07", "user_instance": 7}
    yield "sw_interface_set_l2_bridge", {"rx_sw_if_index": lambda: port("loop0"), "bd_id": 7}
    yield "l2_flags", {"sw_if_index": lambda: port("loop0"), "is_set": False, "feature_bitmap": 1 | 8}
    flags = {"is_set": False, "input_feature_bitmap": 1 << 7, "output_feature_bitmap": 0}
    yield "l2_flags_set", {"sw_if_index": lambda: port("loop0"), **flags}
    yield "l2_interface_feat_flags_set", {"sw_if_index": lambda: port("loop0"), "is_set": False, "flags": 4}
    yield "l2_interface_efp_filter", {"sw_if_index": lambda: port("pg0.5"), "enable_disable": True}
    host = {"mac": "02:00:00:00:00:99", "bd_id": 7, "sw_if_index": lambda: port("loop0")}
    yield "l2fib_add_del", {**host, "static_mac": True}
    yield from nat44_setters(api, port)
    yield "sw_interface_tag_add_del", {"is_add": True, "sw_if_index": pg, "tag": "lab"}


def nat44_setters(api, port):
    outside = port("pg1")
    yield "nat44_ed_plugin_enable_disable", {"sessions": 5000, "enable": True}
    yield "nat44_add_del_address_range", {
        "is_add": True, "first_ip_address": "192.0.2.1", "last_ip_address": "192.0.2.2", "vrf_id": NONE
    }
    yield "nat44_add_del_interface_addr", {"is_add": True, "sw_if_index": outside}
    yield "nat44_interface_add_del_feature", {"is_add": True, "flags": 16, "sw_if_index": outside}
    yield "nat44_ed_add_del_output_interface", {"is_add": True, "sw_if_index": lambda: port("loop3")}
    yield "nat44_forwarding_enable_disable", {"enable": True}
    yield "nat_set_timeouts", {"udp": 60, "tcp_established": 3600, "tcp_transitory": 120, "icmp": 30}
    yield "nat_set_mss_clamping", {"mss_value": 1400, "enable": True}
    yield "nat44_set_session_limit", {"session_limit": 1000, "vrf_id": 0}
    mapping = {
        "is_add": True, "external_sw_if_index": NONE, "protocol": 6,
        "local_ip_address": "10.0.0.2", "local_port": 80, "external_ip_address": "192.0.2.1",
    }
    yield "nat44_add_del_static_mapping", {**mapping, "external_port": 8080}
    yield "nat44_add_del_static_mapping_v2", {**mapping, "external_port": 8081}
    yield "nat44_add_del_identity_mapping", {
        "is_add": True, "ip_address": "192.0.2.1", "protocol": 17, "port": 53, "sw_if_index": NONE
    }
    yield "nat44_ed_add_del_vrf_table", {"table_vrf_id": 7, "is_add": True}
    yield "nat44_ed_add_del_vrf_route", {"table_vrf_id": 7, "vrf_id": 8, "is_add": True}
    yield "nat_set_workers", {"worker_mask": 1}
    log = "nat44 log ipfix 127.0.0.1:9"
    yield "nat_ipfix_enable_disable", {"domain_id": 7, "enable": lambda: not api.cli_inband(cmd=log).retval}
    ends = [{"addr": f"10.0.0.{n}", "port": 80, "probability": 50, "vrf_id": 0} for n in (2, 3)]
    yield "nat44_add_del_lb_static_mapping", {
        "is_add": True, "external_addr": "192.0.2.1", "external_port": 90, "protocol": 6,
        "local_num": 2, "locals": ends,
    }
    yield "nat44_lb_static_mapping_add_del_local", {
        "is_add": True, "external_addr": "192.0.2.1", "external_port": 90, "protocol": 6,
        "local": {"addr": "10.0.0.9", "port": 80, "probability": 1, "vrf_id": 0},
    }


class Documents(Case):
    stanzas = "cpu { workers 2 }"

    @classmethod
    def setUpClass(cls):
        os.system("ip link add ca type veth peer name cb && ip link set ca up && ip link set cb up")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        os.system("ip link del ca")

    def dump(self):
        return self.cli("show configuration")

    def empty(self):
        path = os.path.join(self.router.dir, "empty.yaml")
        with open(path, "w", encoding="utf-8"):
            pass
        self.cli(f"config apply {path}")

    def interfaces(self):
        qualities = lambda i: {
            name: str(value) for name, value in i._asdict().items() if name not in ("context", "_0")
        }
        return {i.interface_name: qualities(i) for i in self.api.sw_interface_dump()}

    def shown(self):
        routes = [
            (str(r.route.prefix), [str(p) for p in r.route.paths])
            for table in (0, 7, 8)
            for r in self.api.ip_route_dump(table={"table_id": table})
        ]
        neighbors = [str(n.neighbor) for n in self.api.ip_neighbor_dump() if n.neighbor.flags & 1]
        sflow = [d.hw_if_index for d in self.api.sflow_interface_dump()]
        return self.interfaces(), sorted(routes), neighbors, sflow

    def test_all_that_is_set_is_dumped_and_comes_back(self):
        self.empty()
        self.cli(
            "create packet-generator interface pg0\ncreate packet-generator interface pg1\n"
            "create loopback interface instance 3"
        )

        def port(name):
            return {i.interface_name: i.sw_if_index for i in self.api.sw_interface_dump()}[name]

        known = offered()
        walked = set()
        before = self.dump()
        for name, arguments in setters(self.api, port):
            if name not in known:
                continue
            walked.add(name)
            arguments = {k: v() if callable(v) else v for k, v in arguments.items()}
            self.ok(getattr(self.api, name)(**arguments))
            after = self.dump()
            self.assertNotEqual(after, before, f"{name}: is not dumped")
            before = after
        rest = {n for n in known - walked - set(ACTIONS) if not LOOKS.search(n)}
        self.assertEqual(rest, set(), "do these set something? Put them into setters, or into ACTIONS")
        was = self.shown()
        path = os.path.join(self.router.dir, "all.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(before)
        self.empty()
        self.assertNotEqual(self.shown(), was)
        self.cli(f"config apply {path}")
        self.assertEqual(yaml.safe_load(self.dump()), yaml.safe_load(before))
        self.assertEqual(self.shown(), was)
        self.empty()

    def counted(self, name):
        text = self.cli(f"show interface {name}")
        counter = lambda key: int((re.search(rf"{key} +(\d+)", text) or [0, 0])[1])
        return {key: counter(key) for key in ("rx packets", "tx packets", "drops", "tx-error")}

    def test_applying_costs_others_nothing_under_full_load(self):
        self.empty()
        self.cli(
            "create packet-generator interface pg0\ncreate packet-generator interface pg1\n"
            "create packet-generator interface pg2\ncreate packet-generator interface pg3\n"
            "set interface l2 xconnect pg0 pg1\n"
            "set interface ip address pg2 10.2.0.1/24\nset interface ip address pg3 10.3.0.1/24\n"
            "set ip neighbor pg3 10.3.0.2 02:00:00:00:03:02 static\n"
            "ip route add 10.9.0.0/16 via 10.3.0.2\n"
            "set interface mac address pg2 02:fe:00:00:00:02\n"
            "set interface state pg0 up\nset interface state pg1 up\n"
            "set interface state pg2 up\nset interface state pg3 up\n"
        )
        base = self.dump()
        more = yaml.safe_load(base)
        # One of everything, but not on the path of the flows.
        more["loopbacks"] = {
            f"loop{n}": {"addresses": [f"10.77.{n}.1/24"], "mtu": 1500} for n in range(8)
        }
        more["interfaces"]["pg7"] = {"mtu": 1400, "sflow": True}
        more["interfaces"]["pg8"] = {"mtu": 1400, "l2xc": "pg7"}
        (table,) = more["thalweg"]["ip-tables"].values()
        table["routes"].update({f"10.88.{i}.0/24": "10.77.1.9 loop1" for i in range(200)})
        files = []
        for name, text in (("more", yaml.safe_dump(more)), ("base", base)):
            files.append(os.path.join(self.router.dir, f"{name}.yaml"))
            with open(files[-1], "w", encoding="utf-8") as file:
                file.write(text)
        data = "UDP: 10.2.0.2 -> 10.9.1.1 UDP: 1 -> 2 incrementing 20"
        self.cli(
            f"packet-generator new {{ name l2 limit 0 source pg0 size 64-64 data {{ IP4: 1.2.3 -> 4.5.6 {data} }} }}\n"
            f"packet-generator new {{ name l3 limit 0 source pg2 size 64-64 "
            f"data {{ IP4: 02:00:00:00:00:01 -> 02:fe:00:00:00:02 {data} }} }}\n"
            "clear interfaces\npacket-generator enable-stream"
        )
        for _ in range(10):
            for path in files:
                self.cli(f"config apply {path}")
        self.cli("packet-generator disable-stream")
        counted = lambda: [self.counted(f"pg{n}") for n in range(4)]
        last = None
        while last != (last := counted()):
            pass
        l2_in, l2_out, l3_in, l3_out = last
        for source, sink in ((l2_in, l2_out), (l3_in, l3_out)):
            self.assertGreater(source["rx packets"], 10_000)
            self.assertEqual(sink["tx packets"], source["rx packets"], last)
            for port in (source, sink):
                self.assertEqual((port["drops"], port["tx-error"]), (0, 0), last)
        self.cli("packet-generator delete l2\npacket-generator delete l3")
        self.empty()


class Kept(Case):
    """A router that saves its configuration, and is killed."""

    # Each test has its own router.
    @classmethod
    def setUpClass(cls):
        pass

    @classmethod
    def tearDownClass(cls):
        pass

    def connect(self):
        self.vpp = self.router.client()
        self.api = Recorder(self.vpp.api)

    def again(self):
        self.router.kill()
        self.router.start()
        self.connect()

    def setUp(self):
        self.router = Router(config=True)
        self.connect()

    def tearDown(self):
        self.vpp.disconnect()
        self.router.stop()

    def test_what_was_saved_outlives_a_kill(self):
        self.cli("create packet-generator interface pg0\nset interface state pg0 up")
        loop = self.loopback()
        self.ok(self.api.sw_interface_add_del_address(sw_if_index=loop, is_add=True, prefix="10.0.0.1/24"))
        self.cli("config commit")
        show = lambda: [self.cli(f"show {what}") for what in ("interface", "interface address", "configuration")]
        before = show()
        self.again()
        self.assertEqual(show(), before)
        self.assertEqual(self.cli("config diff"), "")

    def test_features_outlive_a_kill(self):
        self.cli(
            """
            create packet-generator interface pg0
            create packet-generator interface pg1
            create packet-generator interface pg2
            create packet-generator interface pg3
            set interface mac address pg2 02:fe:00:00:00:02
            set interface mac address pg3 02:fe:00:00:00:03
            set interface ip address pg2 10.0.0.1/24
            set interface ip address pg3 198.51.100.1/24
            ip table add 7
            ip route add 192.0.2.0/24 via 10.0.0.2 pg2 weight 3 via 10.0.0.3 pg2
            ip route add 192.0.2.0/24 table 7 via drop
            set ip neighbor pg2 10.0.0.2 02:00:00:00:00:02 static
            create bridge-domain 10 learn 0 mac-age 5 learn-limit 100 bd-tag lab
            set interface l2 bridge pg0 10
            set interface l2 bridge pg1 10 3
            l2fib add 02:00:00:00:00:01 10 pg0 static
            l2fib add 02:00:00:00:00:03 10 filter
            set bridge-domain default-learn-limit 1000
            flow add 1 priority=100,ip,ct_state=-trk,actions=ct(zone=5,table=1)
            flow add 1 table=1,ip,ct_state=+trk+new,actions=ct(commit,zone=5),normal
            flow add 1 priority=0,actions=drop
            set interface flow pg0 1
            set conntrack limit 5000
            set conntrack zone-limit 5 10
            set conntrack timeouts 5 udp_first=1
            nat44 plugin enable sessions 4096
            nat44 add address 198.51.100.7 - 198.51.100.9
            set interface nat44 in pg2 out pg3
            nat44 add static mapping tcp local 10.0.0.2 80 external 198.51.100.7 8080
            nat44 add identity mapping 10.0.0.9 tcp 80
            set nat timeout udp 77
            sflow sampling-rate 500
            sflow enable-disable pg2
            sflow collector add 127.0.0.1 port 6343
            metrics listen 127.0.0.1:0
            """
        )
        self.cli("config commit")
        shows = (
            "show interface address",
            "show bridge-domain 10 detail",
            "show l2fib verbose",
            "show mode",
            "flow dump",
            "show conntrack summary",
            "show nat44 addresses",
            "show nat44 interfaces",
            "show nat44 static mappings",
            "show nat timeouts",
            "show ip fib",
            "show ip neighbors",
            "show sflow",
            "show configuration",
        )
        # Ages, poll times and counters differ between runs.
        ran = re.compile(r"\d\.\d+e[-+]?\d+|(?m:^ *\d+\.\d{4} )|duration=\S+|(?s:Status\n.*)")
        show = lambda: {what: ran.sub("-", self.cli(what)) for what in shows}
        before = show()
        self.again()
        after = show()
        for what in shows:
            self.assertEqual(after[what], before[what], what)
        self.assertEqual(self.cli("config diff"), "")

    def test_what_nobody_has_confirmed_is_gone_after_a_kill(self):
        self.cli("create loopback interface instance 1\nconfig commit")
        saved = self.cli("show configuration")
        # The commit would have to be confirmed within a minute.
        self.cli("config commit confirm 60\ncreate loopback interface instance 2")
        self.assertIn("loop2", self.cli("show configuration"))
        self.again()
        self.assertEqual(self.cli("show configuration"), saved)
        path = os.path.join(self.router.dir, "more.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write("loopbacks: {loop1: {}, loop9: {}}\n")
        self.cli(f"config apply {path} confirm 60")
        self.again()
        self.assertEqual(self.cli("show configuration"), saved)
        self.assertEqual(self.cli("config diff"), "")
