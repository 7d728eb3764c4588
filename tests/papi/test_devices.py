"""Host interfaces and the packet generator. They require their own network namespace."""

import json
import os
import socket
import subprocess
import threading
import uuid

from lab import LIMIT, NONE, Case, wait_for


class HostInterfaces(Case):
    stanzas = "cpu { workers 2 }"

    @classmethod
    def setUpClass(cls):
        for a, b in (("pa", "pb"), ("pc", "pd")):
            subprocess.run(
                ["ip", "link", "add", a, "type", "veth", "peer", "name", b], check=True
            )
            for end in (a, b):
                subprocess.run(["ip", "link", "set", end, "up"], check=True)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        for a in ("pa", "pc"):
            subprocess.run(["ip", "link", "del", a], check=True)

    def devices(self):
        return {d.host_if_name: d.sw_if_index for d in self.api.af_packet_dump()}

    def test_first(self):
        create = lambda **more: self.api.af_packet_create(host_if_name="pa", **more)
        index = self.ok(create(hw_addr="02:00:00:00:00:aa")).sw_if_index
        self.assertEqual(self.devices(), {"pa": index})
        self.assertEqual(str(self.interface(index).l2_address), "02:00:00:00:00:aa")
        self.assertEqual(self.interface(index).interface_name, "host-pa")
        self.assertEqual(self.fails(-79, create()).sw_if_index, NONE)
        self.fails(-71, self.api.af_packet_create(host_if_name="absent"))
        self.ok(self.api.af_packet_delete(host_if_name="pa"))
        self.assertEqual(self.devices(), {})
        self.fails(-11, self.api.af_packet_delete(host_if_name="pa"))

    def test_arping(self):
        """The kernel answers behind the other end."""
        index = self.ok(self.api.af_packet_create(host_if_name="pa")).sw_if_index
        self.addCleanup(lambda: self.ok(self.api.af_packet_delete(host_if_name="pa")))
        self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.ok(
            self.api.sw_interface_add_del_address(sw_if_index=index, is_add=True, prefix="10.77.0.1/24")
        )
        subprocess.run(["ip", "address", "add", "10.77.0.2/24", "dev", "pb"], check=True)
        # /sys may show another namespace.
        seen = subprocess.run(["ip", "-j", "link", "show", "pb"], check=True, capture_output=True)
        mac = json.loads(seen.stdout)[0]["address"]
        ask = {"address": "10.77.0.2", "sw_if_index": index}
        self.assertEqual(self.ok(self.api.arping(repeat=3, interval=0.01, **ask)).reply_count, 3)
        reply = self.ok(self.api.arping_acd(repeat=1, interval=1, **ask))
        self.assertEqual((reply.reply_count, str(reply.mac_address)), (1, mac))
        said = self.cli("arping 10.77.0.2 host-pa")
        self.assertIn(f"Received 1 ARP Replies from {mac} (10.77.0.2)", said)

    def test_second(self):
        create = {"host_if_name": "pb", "use_random_hw_addr": True, "rx_frame_size": 4096}
        index = self.ok(self.api.af_packet_create_v2(**create)).sw_if_index
        self.assertEqual(self.devices(), {"pb": index})
        self.fails(-79, self.api.af_packet_create_v2(**create))
        self.ok(self.api.af_packet_delete(host_if_name="pb"))

    def test_third(self):
        create = {"host_if_name": "pc", "mode": 1, "use_random_hw_addr": True, "flags": 8 | 2 | 1}
        index = self.ok(self.api.af_packet_create_v3(num_rx_queues=2, **create)).sw_if_index
        queues = self.api.sw_interface_rx_placement_dump(sw_if_index=index)
        self.assertEqual([q.queue_id for q in queues], [0, 1])
        self.assertTrue(all(q.worker_id in (1, 2) for q in queues), queues)
        self.assertIn(index, [q.sw_if_index for q in self.api.sw_interface_rx_placement_dump()])
        place = lambda **to: self.api.sw_interface_set_rx_placement(sw_if_index=index, **to)
        self.ok(place(queue_id=0, worker_id=queues[0].worker_id - 1))
        self.ok(place(queue_id=0, worker_id=2 - queues[0].worker_id))
        moved = self.api.sw_interface_rx_placement_dump(sw_if_index=index)
        self.assertEqual(moved[0].worker_id, 3 - queues[0].worker_id)
        self.assertIn("rx-placement", self.cli("show configuration"))
        self.cli("set interface rx-placement host-pc queue 0 auto")
        self.assertNotIn("rx-placement", self.cli("show configuration"))
        self.fails(-126, self.api.sw_interface_set_rx_placement(sw_if_index=self.loopback()))
        self.fails(-7, place(queue_id=9, worker_id=0))
        self.fails(-7, place(queue_id=0, worker_id=9))
        self.fails(-7, place(queue_id=0, is_main=True))
        self.fails(-2, self.api.sw_interface_set_rx_placement(sw_if_index=9999))
        mode = lambda mode, **of: self.api.sw_interface_set_rx_mode(
            sw_if_index=index, mode=mode, **of
        )
        self.ok(mode(1))
        self.ok(mode(2, queue_id_valid=True, queue_id=1))
        queues = self.api.sw_interface_rx_placement_dump(sw_if_index=index)
        self.assertEqual([int(q.mode) for q in queues], [1, 2])
        self.ok(mode(4))
        self.fails(-7, mode(0))
        self.fails(-7, mode(1, queue_id_valid=True, queue_id=9))
        self.fails(-2, self.api.sw_interface_set_rx_mode(sw_if_index=9999, mode=1))
        self.fails(-126, self.api.sw_interface_set_rx_mode(sw_if_index=self.loopback(), mode=1))
        def placement(of, retval=0):
            reply, queues = self.api.sw_interface_tx_placement_get(sw_if_index=of)
            self.assertEqual((reply.retval, reply.cursor), (retval, NONE))
            return [(q.sw_if_index, q.queue_id, q.shared, list(q.threads)) for q in queues]

        self.assertEqual(placement(index), [(index, 0, 0, [1]), (index, 1, 0, [2])])
        self.assertEqual(placement(NONE), placement(index))
        self.assertEqual(placement(self.loopback()), [])
        self.assertEqual(placement(9999, retval=-2), [])
        self.ok(self.api.af_packet_delete(host_if_name="pc"))
        # An Ethernet device does not carry frames that begin with an IP header.
        create["mode"] = 2
        self.fails(-71, self.api.af_packet_create_v3(**create))

    def test_checksums(self):
        offload = lambda index, on: self.api.af_packet_set_l4_cksum_offload(
            sw_if_index=index, set=on
        )
        configured = lambda: "checksum-offload: false" in self.cli("show configuration")
        create = {"host_if_name": "pd", "mode": 1, "use_random_hw_addr": True}
        index = self.ok(self.api.af_packet_create_v3(flags=2, **create)).sw_if_index
        for on in (False, True, True):
            self.ok(offload(index, on))
            self.assertEqual(configured(), not on)
            word = "enabled" if on else "disabled"
            self.assertIn(f"cksum-gso-{word}", self.cli("show hardware-interfaces host-pd"))
        self.ok(self.api.af_packet_delete(host_if_name="pd"))
        # The offload does not fit into the rings.
        index = self.ok(self.api.af_packet_create_v3(flags=0, **create)).sw_if_index
        self.fails(-126, offload(index, True))
        self.ok(offload(index, False))
        self.assertTrue(configured())
        self.ok(self.api.af_packet_delete(host_if_name="pd"))
        self.fails(-71, offload(self.loopback(), True))
        self.fails(-2, offload(9999, True))

    def test_moving_queues(self):
        """A queue moves from worker to worker under traffic; each packet is counted somewhere."""
        for flags in (0, 8):
            index = self.ok(
                self.api.af_packet_create_v3(
                    host_if_name="pa", mode=1, use_random_hw_addr=True, flags=flags
                )
            ).sw_if_index
            self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
            frame = bytes.fromhex("ffffffffffff020000000099") + b"\x88\xb5" + bytes(50)
            # A worker discards packets received before it learned that the interface is up.
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as peer:
                peer.bind(("pb", 0))
                wait_for(lambda: peer.send(frame) and self.counters("host-pa")["rx_packets"] > 0)
            self.cli("clear interfaces")
            sent, got, stop = [0], [0], threading.Event()

            def received():
                got[0] = self.counters("host-pa")["rx_packets"]
                return got[0]

            def send():
                with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as peer:
                    peer.bind(("pb", 0))
                    while not stop.is_set():
                        # The packets on the way fit into the ring, even on a busy machine.
                        for _ in range(20 if sent[0] < got[0] + 500 else 0):
                            peer.send(frame)
                            sent[0] += 1
                        stop.wait(0.0005)

            sender = threading.Thread(target=send, daemon=True)
            sender.start()
            seen = set()
            try:
                for turn in range(60):
                    self.ok(
                        self.api.sw_interface_set_rx_placement(
                            sw_if_index=index, queue_id=0, worker_id=turn % 2
                        )
                    )
                    (queue,) = self.api.sw_interface_rx_placement_dump(sw_if_index=index)
                    self.assertEqual(queue.worker_id, turn % 2 + 1)
                    before = received()
                    wait_for(lambda: received() > before)
                    seen.add(turn % 2)
            finally:
                stop.set()
                sender.join(LIMIT)
            # Packets of the kernel itself (neighbour discovery) come on top.
            wait_for(lambda: received() >= sent[0])
            counters = self.counters("host-pa")
            self.assertEqual((counters["rx_miss"], counters["rx_no_buf"]), (0, 0))
            self.assertLess(counters["rx_packets"], sent[0] + 50)
            self.assertEqual(seen, {0, 1})
            self.ok(self.api.af_packet_delete(host_if_name="pa"))

    def test_xconnect(self):
        rx, tx = (
            self.ok(self.api.af_packet_create(host_if_name=n, use_random_hw_addr=True)).sw_if_index
            for n in ("pa", "pc")
        )
        connect = lambda rx, tx, **more: self.api.sw_interface_set_l2_xconnect(
            rx_sw_if_index=rx, tx_sw_if_index=tx, **more
        )
        dump = lambda: [(x.rx_sw_if_index, x.tx_sw_if_index) for x in self.api.l2_xconnect_dump()]
        self.ok(connect(rx, tx))
        self.ok(connect(tx, rx, enable=True))
        self.assertEqual(dump(), sorted([(rx, tx), (tx, rx)]))
        self.ok(connect(tx, rx, enable=False))
        self.assertEqual(dump(), [(rx, tx)])
        self.fails(-1, connect(rx, rx))
        self.fails(-2, connect(rx, 9999))
        self.fails(-126, connect(rx, 0))
        # The connection is removed with its interface.
        self.ok(self.api.af_packet_delete(host_if_name="pc"))
        self.assertEqual(dump(), [])
        self.ok(self.api.af_packet_delete(host_if_name="pa"))


class PacketGenerator(Case):
    def test_ports(self):
        first = self.ok(self.api.pg_create_interface(interface_id=0)).sw_if_index
        self.assertEqual(self.ok(self.api.pg_create_interface(interface_id=0)).sw_if_index, first)
        self.assertEqual(self.interface(first).interface_name, "pg0")
        self.assertEqual(self.interface(first).interface_dev_type, "pg")
        raw = self.ok(self.api.pg_create_interface_v2(interface_id=1, mode=1)).sw_if_index
        self.assertEqual(str(self.interface(raw).l2_address), "00:00:00:00:00:00")
        six = self.ok(self.api.pg_create_interface_v3(interface_id=6, mode=2)).sw_if_index
        self.assertEqual(str(self.interface(six).l2_address), "00:00:00:00:00:00")
        third = self.ok(self.api.pg_create_interface_v3(interface_id=2, pg_flags=3)).sw_if_index
        self.assertTrue(str(self.interface(third).l2_address).startswith("02:fe:"))
        self.fails(-7, self.api.pg_create_interface_v3(interface_id=3, mode=9))
        join = lambda on, of=third: self.api.pg_interface_enable_disable_coalesce(
            sw_if_index=of, coalesce_enabled=on
        )
        self.ok(join(False))
        self.fails(-9, join(True))
        self.fails(-2, join(False, 9999))
        self.ok(self.api.pg_delete_interface(sw_if_index=third))
        self.assertNotIn("pg2", [i.interface_name for i in self.api.sw_interface_dump()])
        self.fails(-2, self.api.pg_delete_interface(sw_if_index=third))
        self.fails(-2, self.api.pg_delete_interface(sw_if_index=self.loopback()))

    def test_streams_and_captures(self):
        a, b = (self.ok(self.api.pg_create_interface_v3(interface_id=n)).sw_if_index for n in (10, 11))
        for n, index in enumerate((a, b)):
            self.ok(self.api.sw_interface_set_flags(sw_if_index=index, flags=1))
        self.ok(self.api.sw_interface_set_l2_xconnect(rx_sw_if_index=a, tx_sw_if_index=b))
        self.cli(
            "packet-generator new { name s limit 5 node pg10-output-none size 64-64 "
            "data { IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 2.2.2.2 UDP: 1 -> 2 incrementing 20 } }"
            .replace("node pg10-output-none", "source pg10")
        )
        # Clients may not name files below the router's own directory.
        path = f"/tmp/thalweg_test_{uuid.uuid4().hex}.pcap"
        self.addCleanup(lambda: os.path.exists(path) and os.unlink(path))
        capture = lambda on=True, of=11: self.api.pg_capture(
            interface_id=of, is_enabled=on, pcap_file_name=path
        )
        self.ok(capture())
        self.ok(self.api.pg_enable_disable(is_enabled=True, stream_name="s"))
        while "Yes" in self.cli("show packet-generator"):
            pass
        self.ok(capture(False))
        # A header of 24 bytes, and five packets of 64 bytes with 16 bytes before each.
        self.assertEqual(os.path.getsize(path), 24 + 5 * (64 + 16))
        self.fails(-93, capture())
        self.fails(-71, capture(of=99))
        self.ok(self.api.pg_enable_disable(is_enabled=False))
        self.fails(-6, self.api.pg_enable_disable(is_enabled=True, stream_name="x"))
