"""Many clients, crashing clients, clients that send garbage."""

import multiprocessing
import os
import signal
import socket
import struct

from vpp_papi import VPPApiClient

from lab import Case, wait_for


def frame(body):
    return struct.pack(">QII", 0, len(body), 0) + body


def ask_on(router, number, ready, go):
    """Dumps interfaces once, and when all may go until terminated."""
    # The library shares its context lock with forked processes: one killed while holding it would
    # block all others.
    VPPApiClient.get_context = VPPApiClient.ContextId()
    vpp = router.client(f"client-{number}")
    ask = lambda: vpp.api.sw_interface_dump()[0].interface_name
    assert ask() == "local0"
    ready.put(number)
    go.wait()
    while ask() == "local0":
        pass


class Clients(Case):
    def connected(self):
        return self.cli("show api clients").count("client-")

    def test_many_and_killed(self):
        for _ in range(50):
            self.loopback()
        context = multiprocessing.get_context("fork")
        ready, go = context.Queue(), context.Event()
        processes = [
            context.Process(target=ask_on, args=(self.router, n, ready, go)) for n in range(64)
        ]
        for process in processes:
            process.start()
        for _ in processes:
            ready.get(timeout=60)
        self.assertEqual(self.connected(), 64)
        # All have woken when this returns.
        go.set()
        self.ok(self.api.control_ping())
        # The processes do nothing but dumps, so this is in the middle of one.
        for process in processes:
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        wait_for(lambda: self.connected() == 0)
        self.ok(self.api.control_ping())

    def raw(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(self.router.socket)
        stream.settimeout(60)
        return stream

    def test_nonsense(self):
        with self.raw() as stream:
            stream.sendall(struct.pack(">QII", 0, 0xFFFFFFFF, 0))
            self.assertEqual(stream.recv(100), b"")
        self.router.await_log("message of 4294967295 bytes, the limit is")
        with self.raw() as stream, self.raw() as half:
            half.sendall(b"\0" * 20)
            # Unknown, empty and nameless messages get no reply, and do no harm.
            for body in (b"\xff\xff" + b"\0" * 8, b"", b"\0", struct.pack(">HII", 23, 0, 5)):
                stream.sendall(frame(body))
            stream.sendall(frame(struct.pack(">HI64s", 15, 99, b"socat")))
            head = stream.recv(16, socket.MSG_WAITALL)
            length = struct.unpack(">QII", head)[1]
            body = stream.recv(length, socket.MSG_WAITALL)
            self.assertEqual(struct.unpack(">HIIi", body[:14]), (16, 0, 99, 0))
            stream.sendall(frame(struct.pack(">HII", 23, 0, 7)))
            self.assertEqual(stream.recv(26, socket.MSG_WAITALL)[16:], struct.pack(">HIi", 24, 7, 0))
            self.ok(self.api.control_ping())

    def test_a_wrong_crc_is_no_message(self):
        vpp = self.router.client("crc")
        table = vpp.transport.message_table
        self.assertIn("control_ping_51077d14", table)
        self.assertNotIn("control_ping_51077d15", table)
        vpp.disconnect()

    def take(self, stream):
        """Receives one message."""
        return stream.read(struct.unpack(">QII", stream.read(16))[1])

    def test_who_does_not_read_costs_little(self):
        routes = 50_000
        self.cli(f"ip route add count {routes} 10.64.0.0/32 local")
        # A reply this long is assembled outside the main thread.
        text = self.cli("show ip fib all")
        self.assertGreater(len(text), 1 << 20)
        self.assertEqual(text.count("unicast-ip4-chain"), routes + 4)
        waiting = lambda: {c["name"]: c["waiting"] for c in self.shown("show api clients")}["slow"]
        with self.raw() as stream, stream.makefile("rb") as answers:
            stream.sendall(frame(struct.pack(">HI64s", 15, 1, b"slow")))
            table = self.take(answers)[20:]
            rows = [struct.unpack(">H64s", table[at : at + 66]) for at in range(0, len(table), 66)]
            (dump,) = [i for i, name in rows if name.rstrip(b"\0") == b"ip_route_dump_b9d2e09e"]
            stream.sendall(frame(struct.pack(">HII", dump, 0, 7) + bytes(69)))
            stream.sendall(frame(struct.pack(">HII", 23, 0, 7)))
            wait_for(lambda: waiting() > 1 << 19)
            # All of it would be about 10 MB; other clients are served meanwhile.
            for _ in range(20):
                self.ok(self.api.control_ping())
                self.assertLess(waiting(), 2 << 20)
            # The client gets everything once it reads.
            details = 0
            while struct.unpack(">H", (message := self.take(answers))[:2])[0] != 24:
                self.assertEqual(struct.unpack(">I", message[2:6])[0], 7)
                details += 1
            self.assertGreater(details, routes)
            # The same, but it disconnects in the middle.
            stream.sendall(frame(struct.pack(">HII", dump, 0, 8) + bytes(69)))
            wait_for(lambda: waiting() > 1 << 19)
        wait_for(lambda: "slow" not in self.cli("show api clients"))
        self.cli(f"ip route del count {routes} 10.64.0.0/32")
