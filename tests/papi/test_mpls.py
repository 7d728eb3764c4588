"""Label tables, labels, and interfaces that take labelled packets."""

from lab import NONE, Case
from test_ip import path

EMPTY = {"is_uniform": 0, "label": 0, "ttl": 0, "exp": 0}


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
        self.fails(-3, self.change(16, via, table=77))
        self.fails(-52, self.change(16))
        self.fails(-9, self.change(16, via, proto=1))
        self.fails(-7, self.change(1 << 20, via))
