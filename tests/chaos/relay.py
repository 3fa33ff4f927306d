"""A man in the middle of a job's TCP connections.

The preloaded library sends one rank's connections here. A connection begins with the port that the rank asked for. The
relay connects to this port and passes bytes on, until it does harm to one direction of one connection.
"""
import re
import selectors
import socket
import struct
import threading
import time

HELLO_BYTES = 124
CONTROL, DATA = 1, 2


class Pair:
    """A connection of a rank, and the one to the rank that it called."""

    def __init__(self, caller, listener):
        self.ends = {"forth": caller, "back": listener}  # the end that the direction's bytes come from
        self.held = {"forth": 0.0, "back": 0.0}  # nothing passes before this time
        self.late = {"forth": b"", "back": b""}  # what passes then
        self.passed = {"forth": 0, "back": 0}
        self.first = b""  # of the caller's bytes

    def other(self, direction):
        return self.ends["back" if direction == "forth" else "forth"]


class Relay:
    """Passes on what one rank sends and gets. Uses a thread of its own."""

    def __init__(self, trial):
        self.fault, self.details = trial.fault, trial.details
        self.at_start = trial.moment == "start"
        self.armed = self.at_start
        self.acted = None  # when it did harm
        self.calls = {}  # of connections over TLS: how many there were to each rank
        self.pairs = []
        self.ending = False
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def variables(self):
        return {"CHAOS_RELAY": str(self.port), "CHAOS_RANK": str(self.details["rank"])}

    def arm(self):
        """From now on, does harm to the next bytes of its connection."""
        self.armed = True

    def close(self):
        self.ending = True
        self.thread.join()
        for pair in self.pairs:
            self._end(pair)
        self.listener.close()

    def _run(self):
        while not self.ending:
            with selectors.DefaultSelector() as ready:
                ready.register(self.listener, selectors.EVENT_READ, None)
                now = time.monotonic()
                for pair in self.pairs:
                    for direction, end in pair.ends.items():
                        if end.fileno() >= 0 and now >= pair.held[direction]:
                            self._send(pair, pair.other(direction), pair.late[direction])
                            pair.late[direction] = b""
                        if end.fileno() >= 0 and now >= pair.held[direction]:
                            ready.register(end, selectors.EVENT_READ, (pair, direction))
                for key, _ in ready.select(0.02):
                    if key.data is None:
                        self._accept()
                    elif key.fileobj.fileno() >= 0:
                        self._pass(*key.data)
            self.pairs = [pair for pair in self.pairs if any(end.fileno() >= 0 for end in pair.ends.values())]

    def _accept(self):
        caller, _ = self.listener.accept()
        try:
            caller.settimeout(2)
            (port,) = struct.unpack(">H", caller.recv(2, socket.MSG_WAITALL))
            listener = socket.create_connection(("127.0.0.1", port), timeout=2)
        except (OSError, struct.error):
            caller.close()  # the rank that it calls does not listen yet
            return
        for end in (caller, listener):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            end.settimeout(5)
        self.pairs.append(Pair(caller, listener))

    def _pass(self, pair, direction):
        source, target = pair.ends[direction], pair.other(direction)
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._end(pair)
            return
        if direction == "forth" and len(pair.first) < 1024:
            pair.first += data
            self._name(pair)
        before = pair.passed[direction]
        pair.passed[direction] += len(data)
        if self._is_meant(pair, direction):
            self._harm(pair, direction, data, before)
        else:
            self._send(pair, target, data)

    def _send(self, pair, target, data):
        try:
            if data:
                target.sendall(data)
        except OSError:
            self._end(pair)

    def _name(self, pair):
        """Reads whom the connection is for, from a hello or from TLS's first message."""
        if getattr(pair, "kind", None):
            return
        said = re.search(rb"tern epoch \d+ rank \d+ to (\d+)", pair.first)
        if said:
            pair.peer = int(said[1])
            self.calls[pair.peer] = self.calls.get(pair.peer, 0) + 1
            pair.kind = "control" if pair.peer == 0 and self.calls[0] % 2 == 1 else "data"
        elif len(pair.first) >= HELLO_BYTES and pair.first[:4] == b"HELO":
            pair.peer = struct.unpack_from("<H", pair.first, 26)[0]
            pair.kind = "control" if pair.first[6] == CONTROL else "data"

    def _is_meant(self, pair, direction):
        if not self.armed or self.acted or direction != self.details["direction"]:
            return False
        if getattr(pair, "kind", None) != self.details["kind"] or pair.peer != self.details["peer"]:
            return False
        return not self.at_start or pair.passed[direction] > self.details["after_bytes"]

    def _harm(self, pair, direction, data, before):
        """Does it at byte `after_bytes` of the direction, or somewhere in these bytes."""
        self.acted = time.monotonic()
        target = pair.other(direction)
        place = max(0, self.details["after_bytes"] - before) if self.at_start else len(data) // 2
        if self.fault == "byte flipped":
            changed = bytearray(data)
            changed[place] ^= 4
            self._send(pair, target, bytes(changed))
        elif self.fault == "duplicated":
            self._send(pair, target, data + data)
        elif self.fault == "delayed":
            pair.held[direction] = self.acted + self.details["for_s"]
            pair.late[direction] = data
        elif self.fault == "truncated":
            self._send(pair, target, data[:place])
            self._end(pair)
        elif self.fault == "half-closed":
            pair.held[direction] = float("inf")
            try:
                target.shutdown(socket.SHUT_WR)
            except OSError:
                self._end(pair)
        else:
            for end in pair.ends.values():  # close() sends a reset
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._end(pair)

    @staticmethod
    def _end(pair):
        for end in pair.ends.values():
            end.close()
