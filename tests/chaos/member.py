"""Strangers, and a member that holds the job's token and does not fit. They call rank 0."""
import hashlib
import hmac
import os
import re
import socket
import struct
import threading
import time
from pathlib import Path

FRAME_H = (Path(__file__).parents[2] / "dist/comm/tcp/frame.h").read_text()
VERSION = int(re.search(r"kProtocolVersion = (\d+)", FRAME_H)[1])
WIRES = {"plain": 0, "mac": 1, "tls": 2}
HELLO = struct.Struct("<4sHBBIIIIHH64s32s")
CHALLENGE = struct.Struct("<4sHH32s32s")


def hello(trial, **changes):
    """The first bytes of a rank that calls rank 0 (dist/comm/tcp/handshake.h), with some fields changed."""
    fields = {"version": VERSION, "kind": 1, "wire": WIRES[trial.wire], "epoch": 0, "rank": trial.ranks - 1,
              "size": trial.ranks, "process": 4711, "port": 9, "listener": 0, **changes}
    return HELLO.pack(b"HELO", *fields.values(), b"chaos", os.urandom(32))


class Member(threading.Thread):
    """Calls rank 0 until it gets an answer to its hello. `verdict` is the answer; "" if it was let in."""

    CHANGES = {
        "size": lambda trial: {"size": trial.ranks + 1},
        "epoch": lambda trial: {"epoch": 7},
        "rank": lambda trial: {"rank": trial.ranks + 3},
        "version": lambda trial: {"version": VERSION + 1},
        "wire": lambda trial: {"wire": WIRES["plain" if trial.wire == "mac" else "mac"]},
        "listener": lambda trial: {"listener": 1},
        "token": lambda trial: {},
        "silent": lambda trial: {},
    }
    # What rank 0 says of each (docs/distributed.md: they are turned away). None: it closes the connection.
    ANSWERS = {"size": "is one of", "epoch": "is in epoch 7 of the job", "rank": "cannot join rank 0",
               "version": None, "wire": "has --wire", "listener": "calls rank 1, found rank 0", "token": None}

    def __init__(self, trial, port, token):
        super().__init__(daemon=True)
        self.wrong = trial.details["wrong"]
        self.hello = hello(trial, **self.CHANGES[self.wrong](trial))
        self.token = (token if self.wrong != "token" else "another token, which is wrong").encode()
        self.port = port
        self.verdict = None
        self.met = False  # whether rank 0 answered; it may have met all ranks before
        self.connection = None
        self.start()

    def run(self):
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and not self.met:
            try:
                self.connection = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                self._talk()
            except (OSError, struct.error):
                time.sleep(0.005)

    def _talk(self):
        self.connection.sendall(self.hello)
        challenge = self.connection.recv(CHALLENGE.size, socket.MSG_WAITALL)
        if CHALLENGE.unpack(challenge)[1] != VERSION:
            return
        self.met = True  # it refuses a wrong version or token without a word
        proof = hmac.new(self.token, b"tern caller" + self.hello + challenge, hashlib.sha256).digest()
        self.connection.sendall(proof)
        answer = self.connection.recv(4, socket.MSG_WAITALL)
        if len(answer) == 4:
            length = struct.unpack("<I", answer)[0]
            self.verdict = self.connection.recv(length, socket.MSG_WAITALL).decode() if length else ""

    def close(self):
        self.join(6)
        if self.connection:
            self.connection.close()


class Strangers(threading.Thread):
    """Many connections to rank 0 that know no token. They stay open until `close`."""

    def __init__(self, trial, port):
        super().__init__(daemon=True)
        self.words = {
            "nothing": b"", "noise": os.urandom(512), "http": b"GET / HTTP/1.1\r\nHost: tern\r\n\r\n",
            "half a hello": hello(trial)[:60], "a hello": hello(trial),
            "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + os.urandom(200)}[trial.details["words"]]
        self.count, self.port = trial.details["count"], port
        self.connections = []
        self.ending = False
        self.start()

    def run(self):
        deadline = time.monotonic() + 20
        while len(self.connections) < self.count and time.monotonic() < deadline and not self.ending:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), timeout=1)
                self.connections.append(connection)
                connection.sendall(self.words)
            except OSError:
                if self.connections:
                    return  # the ranks have met
                time.sleep(0.002)

    def close(self):
        self.ending = True
        self.join(3)
        for connection in self.connections:
            connection.close()
