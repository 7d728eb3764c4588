"""Label tables, labels, and interfaces that take labelled packets."""

import ipaddress

from lab import NONE, Case
from test_ip import path

EMPTY = {"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}


def path6(via=None, sw_if_index=NONE, kind=0, **more):
    nh = {"address": {"ip6": ipaddress.IPv6Address(via)}} if via else {}
    return path(None, sw_if_index, kind, proto=1, **{"nh": nh, **more})


def out(*labels):
    stack = [{**EMPTY, "label": label} for label in labels]
    return {"n_labels": len(labels), "label_stack": stack + [EMPTY] * (16 - len(stack))}


class Mpls(Case):
    def setUp(self):
        super().setUp()
        self.ok(self.api.mpls_table_add_del(mt_table={"mt_table_id": 0}))
        self.port = self.ok(self.api.create_loopback()).sw_if_index

    def tearDown(self):
        self.ok(self.api.delete_loopback(sw_if_index=self.port))
        self.ok(self.api.mpls_table_add_del(mt_is_add=False, mt_table={"mt_table_id": 0}))
        super().tearDown()

    def change(self, label, *paths, add=True, multipath=False, eos=1, table=0, proto=0):
        route = {
            "mr_table_id": table, "mr_label": label, "mr_eos": eos, "mr_eos_proto": proto,
            "mr_n_paths": len(paths), "mr_paths": list(paths),
        }
        return self.api.mpls_route_add_del(
            mr_is_add=add, mr_is_multipath=multipath, mr_route=route
        )

    def labels(self, table=0):
        all = self.api.mpls_route_dump(table={"mt_table_id": table})
        return [(d.mr_route.mr_label, d.mr_route.mr_eos, d.mr_route.mr_paths) for d in all]

    def test_tables(self):
        tables = lambda: {d.mt_table.mt_table_id: d.mt_table.mt_name for d in self.api.mpls_table_dump()}
        change = lambda add: self.api.mpls_table_add_del(
            mt_is_add=add, mt_table={"mt_table_id": 5, "mt_name": "core"}
        )
        self.ok(change(True))
        self.ok(change(True))
        self.assertEqual(tables()[5], "core")
        self.assertEqual([(l, e) for l, e, _ in self.labels(5)], [(l, e) for l in range(3) for e in range(2)])
        self.ok(change(False))
        self.ok(change(False))
        self.assertNotIn(5, tables())

    def test_interfaces(self):
        enabled = lambda **more: [d.sw_if_index for d in self.api.mpls_interface_dump(**more)]
        set_to = lambda on: self.api.sw_interface_set_mpls_enable(sw_if_index=self.port, enable=on)
        self.ok(set_to(True))
        self.assertEqual(enabled(), [self.port])
        self.assertEqual(enabled(sw_if_index=self.port), [self.port])
        self.assertEqual(enabled(sw_if_index=0), [])
        # Enabled is enabled, and not how often.
        self.ok(set_to(True))
        self.ok(set_to(False))
        self.assertEqual(enabled(), [])
        self.fails(-2, self.api.sw_interface_set_mpls_enable(sw_if_index=9999, enable=True))

    def test_labels(self):
        via = path("10.0.0.2", self.port, **out(18, 17))
        self.ok(self.change(16, via))
        label, eos, paths = [l for l in self.labels() if l[0] == 16][0]
        self.assertEqual((eos, len(paths), paths[0].n_labels), (1, 1, 2))
        self.assertEqual([l.label for l in paths[0].label_stack[:2]], [18, 17])
        self.ok(self.change(16, path("10.0.0.3", self.port), multipath=True))
        self.assertEqual(len([l for l in self.labels() if l[0] == 16][0][2]), 2)
        self.ok(self.change(16, path("10.0.0.3", self.port), add=False, multipath=True))
        self.ok(self.change(16, add=False))
        self.ok(self.change(16, add=False))
        self.assertNotIn(16, [l[0] for l in self.labels()])
        marked = path("10.0.0.2", self.port, **out(18, 17))
        marked["label_stack"][0].update(ttl=9, exp=5)
        self.ok(self.change(16, marked))
        sent = [l for l in self.labels() if l[0] == 16][0][2][0].label_stack
        self.assertEqual([(l.ttl, l.exp) for l in sent[:2]], [(9, 5), (0, 0)])
        marked["label_stack"][0].update(exp=8)
        self.fails(-7, self.change(16, marked))
        self.ok(self.change(16, add=False))
        self.fails(-3, self.change(16, via, table=77))
        self.fails(-52, self.change(16))
        self.fails(-9, self.change(16, via, proto=4))
        self.fails(-7, self.change(1 << 20, via))

    def test_paths_that_follow_a_label(self):
        via = lambda label, **more: path(None, proto=2, **{"nh": {"via_label": label}, **more})
        self.ok(self.change(32, path("10.0.0.2", self.port, **out(33)), eos=0))
        self.ok(self.change(34, via(32, **out(44, 45))))
        found = [l for l in self.labels() if l[0] == 34][0][2][0]
        self.assertEqual((int(found.proto), found.nh.via_label, found.n_labels), (2, 32, 2))
        self.ok(self.change(33, via(32, **out(44)), eos=0))
        self.fails(-7, self.change(32, via(33, **out(44)), eos=0))
        self.fails(-7, self.change(34, via(7)))
        self.fails(-7, self.change(34, path("10.0.0.2", self.port, nh={"via_label": 32})))
        self.ok(self.change(33, add=False, eos=0))
        self.ok(self.change(34, add=False))
        for prefix in ("192.0.2.0/24", "2001:db8:2::/48"):
            route = {"prefix": prefix, "n_paths": 1, "paths": [via(32, weight=2, **out(55))]}
            self.ok(self.api.ip_route_add_del(is_add=1, route=route))
            found = self.ok(self.api.ip_route_lookup(prefix=prefix, exact=1)).route.paths[0]
            self.assertEqual((int(found.proto), found.nh.via_label, found.weight), (2, 32, 2))
            self.assertEqual([l.label for l in found.label_stack[: found.n_labels]], [55])
            bad = {**route, "paths": [via(3)]}
            self.fails(-7, self.api.ip_route_add_del(is_add=1, route=bad))
            self.ok(self.api.ip_route_add_del(is_add=0, route=route))
        self.ok(self.change(32, add=False, eos=0))

    def test_labels_of_prefixes(self):
        bind = lambda on=True, label=50, prefix="192.0.2.0/24", ip=0: self.api.mpls_ip_bind_unbind(
            mb_mpls_table_id=0, mb_label=label, mb_ip_table_id=ip, mb_is_bind=on, mb_prefix=prefix
        )
        self.ok(bind())
        self.ok(bind())
        self.assertEqual([(l, e) for l, e, _ in self.labels() if l == 50], [(50, 0), (50, 1)])
        self.fails(-81, bind(prefix="192.0.3.0/24"))
        self.fails(-3, bind(label=51, ip=77))
        self.ok(bind(label=52, prefix="2001:db8::/32"))
        self.assertIn((52, 1), [(l, e) for l, e, _ in self.labels()])
        self.ok(bind(on=False, label=52, prefix="2001:db8::/32"))
        self.fails(-7, bind(label=1 << 20))
        self.fails(-81, self.change(50, path("10.0.0.2", self.port, **out(17))))
        self.ok(bind(label=51))
        self.assertEqual({l for l, _, _ in self.labels() if l >= 50}, {51})
        self.ok(bind(on=False, label=51))
        self.ok(bind(on=False, label=51))
        self.assertEqual({l for l, _, _ in self.labels() if l >= 50}, set())

    def test_ip6_behind_labels(self):
        host = path6("2001:db8::2", self.port)
        self.ok(self.change(16, host, proto=1))
        self.fails(-7, self.change(16, host))
        look_up = path6()
        self.ok(self.change(17, look_up, proto=1))
        self.fails(-3, self.change(17, {**look_up, "table_id": 77}, proto=1))
        receive = path6(None, self.port, kind=9)
        self.ok(self.change(18, receive, proto=1))
        all = {d.mr_route.mr_label: d.mr_route for d in self.api.mpls_route_dump(table={"mt_table_id": 0}) if d.mr_route.mr_eos}
        for label in (2, 16, 17, 18):
            self.assertEqual((all[label].mr_eos_proto, int(all[label].mr_paths[0].proto)), (1, 1), label)
        for label in (16, 17, 18):
            self.ok(self.change(label, add=False))
        # 6PE: a next hop of IPv4, in its table.
        prefix = "2001:db8:2::/48"
        route = {"prefix": prefix, "n_paths": 1, "paths": [path("192.0.2.1", **out(102))]}
        self.ok(self.api.ip_route_add_del(is_add=1, route=route))
        found = self.ok(self.api.ip_route_lookup(prefix=prefix, exact=1)).route.paths[0]
        self.assertEqual((int(found.proto), found.table_id, found.label_stack[0].label), (0, 0, 102))
        self.ok(self.api.ip_route_add_del(is_add=0, route=route))
        self.fails(-3, self.api.ip_route_add_del(is_add=1, route={**route, "paths": [{**route["paths"][0], "table_id": 77}]}))

    def tunnel(self, *paths, add=True, sw_if_index=NONE, **more):
        tunnel = {"mt_sw_if_index": sw_if_index, "mt_n_paths": len(paths), "mt_paths": list(paths), **more}
        return self.api.mpls_tunnel_add_del(mt_is_add=add, mt_tunnel=tunnel)

    def tunnels(self, **more):
        return [d.mt_tunnel for d in self.api.mpls_tunnel_dump(**more)]

    def test_tunnels(self):
        via = path("10.0.0.2", self.port, **out(18, 17))
        made = self.ok(self.tunnel(via, mt_tag="core"))
        other = self.ok(self.tunnel(path("192.0.2.1", **out(19)), mt_l2_only=True))
        self.assertNotEqual(made.tunnel_index, other.tunnel_index)
        names = {i.sw_if_index: i for i in self.api.sw_interface_dump()}
        view = names[made.sw_if_index]
        self.assertEqual((view.interface_name, view.interface_dev_type, view.tag), ("mpls-tunnel0", "MPLS tunnel device", "core"))
        (first, second) = self.tunnels()
        self.assertEqual((first.mt_tag, first.mt_l2_only, first.mt_tunnel_index), ("core", False, made.tunnel_index))
        self.assertEqual([l.label for l in first.mt_paths[0].label_stack[:2]], [18, 17])
        self.assertTrue(second.mt_l2_only)
        self.assertEqual(self.tunnels(sw_if_index=other.sw_if_index), [second])
        self.assertEqual(self.tunnels(sw_if_index=9999), [])
        more = path("10.0.0.3", self.port, **out(20))
        self.ok(self.tunnel(more, sw_if_index=made.sw_if_index))
        self.assertEqual(len(self.tunnels(sw_if_index=made.sw_if_index)[0].mt_paths), 2)
        self.ok(self.tunnel(more, add=False, sw_if_index=made.sw_if_index))
        self.assertEqual(len(self.tunnels(sw_if_index=made.sw_if_index)[0].mt_paths), 1)
        self.ok(self.tunnel(via, add=False, sw_if_index=made.sw_if_index))
        self.ok(self.tunnel(add=False, sw_if_index=other.sw_if_index))
        self.assertEqual(self.tunnels(), [])
        self.fails(-52, self.tunnel())
        self.fails(-7, self.tunnel(path("10.0.0.2", self.port)))
        self.fails(-2, self.tunnel(via, sw_if_index=self.port))
        self.fails(-9, self.tunnel(via, mt_is_multicast=True))

    def test_pseudowires(self):
        word = 4
        via = path("10.0.0.2", self.port, **out(18), flags=word)
        made = self.ok(self.tunnel(via, mt_l2_only=True))
        end = {**path("0.0.0.0", made.sw_if_index, **out()), "type": 9, "proto": 3, "flags": word}
        self.ok(self.change(70, end, proto=3))
        (paths,) = [p for l, _, p in self.labels() if l == 70]
        self.assertEqual((paths[0].type, paths[0].proto, paths[0].flags), (9, 3, word))
        self.assertEqual(paths[0].sw_if_index, made.sw_if_index)
        self.assertEqual(self.tunnels()[0].mt_paths[0].flags, word)
        self.fails(-7, self.tunnel(via))
        self.ok(self.tunnel(add=False, sw_if_index=made.sw_if_index))
        self.assertNotIn(70, [l for l, _, _ in self.labels()])
