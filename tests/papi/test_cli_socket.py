"""The CLI socket, used byte by byte as vppctl does, and as socat does."""

import os
import shutil
import socket
import subprocess
import unittest

from lab import Case

# The server's first message, in one piece: vppctl cannot handle an option that is split.
GREETING = bytes.fromhex("fffc22fffe22fffb03fffd03fffb01fffe01fffd18fffa1801fff0fffd1ffffa1f01fff0")
VPPCTL = b"\xff\xfa\x18\x00vppctl\xff\xf0"


class CommandLine(Case):
    def connect(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(60)
        stream.connect(os.path.join(self.router.dir, "cli.sock"))
        return stream

    def until(self, stream, end):
        text = b""
        while not text.endswith(end):
            piece = stream.recv(4096)
            self.assertTrue(piece, text)
            text += piece
        return text

    def test_greeting_comes_in_one_piece(self):
        with self.connect() as stream:
            self.assertEqual(stream.recv(100), GREETING)

    def test_vppctl_byte_by_byte(self):
        with self.connect() as stream:
            stream.recv(100)
            for byte in VPPCTL + b"show version\n\0":
                stream.sendall(bytes([byte]))
            # No banner, no prompt, no echo: only the output and one NUL.
            answer = self.until(stream, b"\0")
            self.assertRegex(answer, rb"^thalweg v[^\0]*\n\0$")
            # The same for commands that print nothing, and for those that fail.
            for command, said in ((b"comment { x }\n", b""), (b"show bogus\n", b"bogus")):
                for byte in command:
                    stream.sendall(bytes([byte]))
                self.assertIn(said, self.until(stream, b"\0"))
            stream.sendall(b"quit\n")
            while piece := stream.recv(4096):
                self.assertLessEqual(set(piece), {0})

    def test_vppctl_in_one_segment(self):
        with self.connect() as stream:
            stream.recv(100)
            stream.sendall(VPPCTL + b"show version\n\0quit\n")
            text = b""
            while piece := stream.recv(4096):
                text += piece
            self.assertIn(b"thalweg v", text)

    def test_a_person_without_a_terminal(self):
        with self.connect() as stream:
            stream.recv(100)
            # A client that sends nothing about a terminal gets a prompt after a while.
            self.until(stream, b"# ")
            stream.sendall(b"show version\r\n")
            self.assertIn(b"thalweg v", self.until(stream, b"# "))

    @unittest.skipIf(not shutil.which("socat") and not os.environ.get("CI"), "no socat")
    def test_socat(self):
        path = os.path.join(self.router.dir, "cli.sock")
        run = subprocess.run(
            ["socat", "-t", "10", "-", f"UNIX-CONNECT:{path}"],
            input=b"show version\nquit\n",
            capture_output=True,
            timeout=60,
        )
        self.assertIn(b"thalweg v", run.stdout)

    def test_half_sessions_hurt_nobody(self):
        halves = [self.connect() for _ in range(16)]
        for n, stream in enumerate(halves):
            stream.sendall((VPPCTL + b"show version")[: n + 2])
        self.assertIn("thalweg v", self.cli("show version"))
        for stream in halves:
            stream.close()
        with self.connect() as stream:
            stream.recv(100)
            stream.sendall(VPPCTL + b"show version\n\0")
            self.assertIn(b"thalweg v", self.until(stream, b"\0"))
