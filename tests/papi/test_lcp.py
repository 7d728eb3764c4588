"""Pairs of interfaces and their twins in the kernel. They require their own network namespace."""

import json
import subprocess

from lab import NONE, Case

LLDP, ISIS = 0x88CC, 0x83
# Types of twins, and the flag of a TAP that is a TUN device.
TYPE_TAP, TYPE_TUN, TUN = 0, 1, 16


def link(name):
    """Returns the kernel's view of a device; /sys may show another namespace."""
    seen = subprocess.run(["ip", "-j", "address", "show", "dev", name], capture_output=True, text=True)
    return json.loads(seen.stdout)[0] if seen.returncode == 0 else None


class Pairs(Case):
    def setUp(self):
        super().setUp()
        self.phy = self.loopback()
        self.addCleanup(self.api.lcp_itf_pair_add_del, is_add=False, sw_if_index=self.phy)

    def pairs(self, index=None):
        if index is None:
            reply, pairs = self.api.lcp_itf_pair_get()
        else:
            reply, pairs = self.api.lcp_itf_pair_get_v2(sw_if_index=index)
        self.assertEqual(self.ok(reply).cursor, NONE)
        return pairs

    def test_a_pair_comes_and_goes(self):
        self.assertEqual(self.pairs(), [])
        self.ok(self.api.lcp_itf_pair_add_del(is_add=True, sw_if_index=self.phy, host_if_name="twin0"))
        (one,) = self.pairs()
        self.assertEqual((one.phy_sw_if_index, one.host_if_name, one.netns), (self.phy, "twin0", ""))
        self.assertEqual(int(one.host_if_type), 0)
        self.assertEqual(link("twin0")["ifindex"], one.vif_index)
        mac = self.interface(self.phy).l2_address
        self.assertEqual(link("twin0")["address"], str(mac))
        (again,) = self.pairs(self.phy)
        self.assertEqual((again.vif_index, again.host_sw_if_index), (one.vif_index, one.host_sw_if_index))
        again = self.api.lcp_itf_pair_add_del(is_add=True, sw_if_index=self.phy, host_if_name="twin1")
        self.assertEqual(again.retval, -81)
        self.ok(self.api.lcp_itf_pair_add_del(is_add=False, sw_if_index=self.phy))
        self.assertEqual((self.pairs(), link("twin0")), ([], None))
        gone = self.api.lcp_itf_pair_add_del(is_add=False, sw_if_index=self.phy)
        self.assertEqual(gone.retval, -2)

    def test_later_versions_say_what_was_made(self):
        reply = self.api.lcp_itf_pair_add_del_v2(is_add=True, sw_if_index=self.phy, host_if_name="twin0")
        self.ok(reply)
        (one,) = self.pairs()
        self.assertEqual(reply.host_sw_if_index, one.host_sw_if_index)
        self.ok(self.api.lcp_itf_pair_add_del_v2(is_add=False, sw_if_index=self.phy))
        reply = self.api.lcp_itf_pair_add_del_v3(is_add=True, sw_if_index=self.phy, host_if_name="twin0")
        self.ok(reply)
        (one,) = self.pairs()
        self.assertEqual(
            (reply.host_sw_if_index, reply.vif_index), (one.host_sw_if_index, one.vif_index)
        )

    def test_a_replacement_keeps_what_it_names(self):
        other = self.loopback()
        for index, name in ((self.phy, "twin0"), (other, "twin1")):
            self.ok(self.api.lcp_itf_pair_add_del(is_add=True, sw_if_index=index, host_if_name=name))
        before = {p.host_if_name: p.vif_index for p in self.pairs()}
        self.ok(self.api.lcp_itf_pair_replace_begin())
        self.ok(self.api.lcp_itf_pair_add_del(is_add=True, sw_if_index=self.phy, host_if_name="twin0"))
        self.ok(self.api.lcp_itf_pair_replace_end())
        (one,) = self.pairs()
        self.assertEqual((one.host_if_name, one.vif_index), ("twin0", before["twin0"]))
        self.assertIsNone(link("twin1"))

    def test_a_replacement_makes_again_what_is_elsewhere(self):
        words = ["unshare", "--net", "sh", "-c", "echo; exec cat"]
        child = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(child.communicate)
        child.stdout.readline()
        elsewhere = f"pid:{child.pid}"

        def make(netns):
            request = {"is_add": True, "sw_if_index": self.phy, "host_if_name": "twin0", "netns": netns}
            return self.ok(self.api.lcp_itf_pair_add_del_v3(**request)).vif_index

        before = make("")
        for netns, is_kept in (("", True), (elsewhere, False), (elsewhere, True), ("", False)):
            self.ok(self.api.lcp_itf_pair_replace_begin())
            now = make(netns)
            self.ok(self.api.lcp_itf_pair_replace_end())
            (one,) = self.pairs()
            self.assertEqual((one.netns, one.vif_index), (netns, now))
            self.assertEqual(link("twin0") is None, netns == elsewhere)
            if is_kept:
                self.assertEqual(now, before)
            before = now

    def test_an_interface_without_ethernet_has_a_tun_device(self):
        made = self.ok(self.api.tap_create_v3(id=NONE, use_random_mac=True, tap_flags=TUN))
        index = made.sw_if_index
        self.addCleanup(lambda: self.api.tap_delete_v2(sw_if_index=index))
        request = {"is_add": True, "sw_if_index": index, "host_if_name": "twin0"}
        refused = self.api.lcp_itf_pair_add_del_v3(host_if_type=TYPE_TAP, **request)
        self.assertEqual(refused.retval, -73)
        refused = self.api.lcp_itf_pair_add_del_v3(
            is_add=True, sw_if_index=self.phy, host_if_name="twin1", host_if_type=TYPE_TUN
        )
        self.assertEqual(refused.retval, -73)
        reply = self.ok(self.api.lcp_itf_pair_add_del_v3(host_if_type=TYPE_TUN, **request))
        (one,) = self.pairs()
        self.assertEqual((int(one.host_if_type), one.vif_index), (TYPE_TUN, reply.vif_index))
        self.assertEqual(link("twin0")["link_type"], "none")
        for replaced in (True, False):
            self.ok(self.api.lcp_itf_pair_replace_begin())
            if replaced:
                again = self.ok(self.api.lcp_itf_pair_add_del_v3(host_if_type=TYPE_TUN, **request))
                self.assertEqual(again.vif_index, reply.vif_index)
            self.ok(self.api.lcp_itf_pair_replace_end())
        self.assertEqual((self.pairs(), link("twin0")), ([], None))

    def test_the_namespace_for_all(self):
        self.ok(self.api.lcp_default_ns_set(netns="no-such-one"))
        self.assertEqual(self.api.lcp_default_ns_get().netns, "no-such-one")
        refused = self.api.lcp_itf_pair_add_del(is_add=True, sw_if_index=self.phy, host_if_name="twin0")
        self.assertEqual(refused.retval, -12)
        self.ok(self.api.lcp_default_ns_set(netns=""))
        self.assertEqual(self.api.lcp_default_ns_get().netns, "")

    def test_protocols(self):
        self.ok(self.api.lcp_ethertype_enable(ethertype=LLDP))
        self.assertEqual(self.ok(self.api.lcp_ethertype_get()).ethertypes, [LLDP])
        self.assertEqual(self.api.lcp_ethertype_enable(ethertype=0x0800).retval, -126)
        self.assertEqual(self.api.lcp_ethertype_enable(ethertype=5).retval, -73)
        self.ok(self.api.lcp_osi_proto_enable(osi_proto=ISIS))
        self.assertEqual(list(self.ok(self.api.lcp_osi_proto_get()).osi_protos), [ISIS])
        self.api.cli_inband(cmd="lcp ethertype disable lldp")
        self.api.cli_inband(cmd="lcp osi-proto disable 0x83")

    def test_borrowed_addresses(self):
        self.assertTrue(self.ok(self.api.lcp_sync_unnumbered_get()).is_enable)
        self.ok(self.api.lcp_sync_unnumbered_set(is_enable=False))
        self.assertFalse(self.ok(self.api.lcp_sync_unnumbered_get()).is_enable)
        self.ok(self.api.lcp_sync_unnumbered_set(is_enable=True))
