"""API traces: requests are recorded, saved and replayed."""

import json
import os
import uuid

from lab import Case


class ApiTrace(Case):
    stanzas = "api-trace { on nitems 500 }"

    def test_trace(self):
        status = lambda: self.shown("api trace status")
        self.assertTrue(status()["on"])
        self.cli("api trace free")
        index = self.loopback()
        name = self.interface(index).interface_name
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.ok(
            self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix="10.9.0.1/24")
        )
        self.cli("set interface tag " + name + " kept")
        self.cli("api trace off")
        kept = [r["name"].rsplit("_", 1)[0] for r in self.shown("api trace dump")]
        for expected in ("create_loopback", "sw_interface_set_flags", "sw_interface_add_del_address"):
            self.assertEqual(kept.count(expected), 1, kept)
        self.assertIn("cli_inband", kept)

        file = f"thalweg_api_trace.{uuid.uuid4().hex}"
        self.addCleanup(os.remove, f"/tmp/{file}")
        self.cli(f"api trace save {file}")
        self.assertIn("exists", self.cli(f"api trace save {file}", -1))
        self.assertIn("file name without directory", self.cli("api trace save ../etc/x", -1))
        self.assertIn("create_loopback_", self.cli(f"api trace dump {file}"))
        self.cli("api trace free")
        self.assertEqual(status()["requests"], 0)

        # The same as a list in JSON.
        json_file = file + ".json"
        self.addCleanup(os.remove, f"/tmp/{json_file}")
        self.cli(f"api trace replay {file}")
        self.cli("api trace on")
        self.ok(self.api.show_version())
        self.cli("api trace off")
        self.cli(f"api trace save-json {json_file}")
        with open(f"/tmp/{json_file}") as whole:
            records = json.load(whole)
        self.assertTrue([r for r in records if r["name"].startswith("show_version_")])
        self.assertEqual(self.shown(f"api trace replay-json {json_file}")["truncated"], 0)
        with open(os.path.join(self.router.dir, "odd.json"), "w") as out:
            json.dump([{**records[0], "fields": "0"}], out)
        odd = self.cli(f"api trace replay-json {self.router.dir}/odd.json", -1)
        self.assertIn("request 1: `at_us'", odd)
        self.assertIn("only requests are kept", self.cli("api trace tx on"))
        self.cli("api trace free")

        # Another state, then the first one again.
        self.ok(self.api.delete_loopback(sw_if_index=index))
        done = self.shown(f"api trace replay {file}")
        self.assertEqual((done["unknown"], done["truncated"]), (0, 0))
        self.assertGreaterEqual(done["done"], 4)
        again = self.interface(index)
        self.assertEqual((again.interface_name, int(again.flags) & 1), (name, 1))
        self.assertEqual(again.tag, "kept")
        (address,) = self.api.ip_address_dump(sw_if_index=index)
        self.assertEqual(str(address.prefix), "10.9.0.1/24")

        with open(f"/tmp/{file}", "rb") as whole:
            text = whole.read()
        wrong = os.path.join(self.router.dir, "wrong")
        for cut, message in ((text[:-1], "is truncated"), (text[5:], "not a trace of API requests")):
            with open(wrong, "wb") as out:
                out.write(cut)
            self.assertIn(message, self.cli(f"api trace replay {wrong}", -1))
        with open(wrong, "wb") as out:
            out.write(text.replace(b"create_loopback_", b"create_nothings_"))
        self.assertEqual(self.shown(f"api trace replay {wrong}")["unknown"], 1)
        self.assertIn("cannot read", self.cli("api trace replay /nowhere/x", -1))
        self.assertIn("regular", self.cli("api trace dump /dev/zero", -1))
        self.ok(self.api.control_ping())

    def test_bounds(self):
        self.cli("api trace free")
        self.cli("api trace on nitems 10")
        for _ in range(30):
            self.ok(self.api.show_version())
        status = self.shown("api trace status")
        self.assertEqual((status["items"], status["requests"]), (10, 10))
        self.assertGreater(status["overwritten"], 15)
        self.assertIn("enabled", self.cli("api trace status"))
        self.cli("api trace on nitems 0", -1)
        self.cli("api trace bogus", -1)
