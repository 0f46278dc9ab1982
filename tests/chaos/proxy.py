"""A TCP proxy that spoils what goes through it: between a sidecar and its coordinator.

Invariants
  - Bytes are delayed, held back or lost together with their connection, never changed and never
    reordered within one.
  - A request that has been taken from a client is delivered even when the client has gone, unless
    it is to be lost: so a renewal can arrive long after its sender has given it up.
"""

import collections
import random
import socket
import struct
import threading
import time


class Proxy:
    """to: (host, port). The attributes below may be set at any time; connections look at them for
    each piece of data."""

    def __init__(self, port, to, seed):
        self.to = to
        self.rng = random.Random(seed)
        self.delay_s = (0, 0)    # of each piece, from … to
        self.hold_s = 0          # of requests alone
        self.cut = 0             # probability that a piece ends its connection half-way
        self.half_close = 0      # … that the direction it came from is closed after it
        self.lose_requests = self.lose_replies = False
        self.uploads = collections.deque(maxlen=30)  # all that each connection has asked
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen(64)
        self.spawn(self.accept)

    @staticmethod
    def spawn(function, *args):
        threading.Thread(target=function, args=args, daemon=True).start()

    def straight(self):
        self.delay_s, self.hold_s, self.cut, self.half_close = (0, 0), 0, 0, 0
        self.lose_requests = self.lose_replies = False

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                client = self.listener.accept()[0]
            except OSError:
                return
            try:
                server = socket.create_connection(self.to, timeout=2)
            except OSError:
                client.close()
                continue
            server.settimeout(None)
            upload = bytearray()
            self.uploads.append(upload)
            self.spawn(self.pump, client, server, upload)
            self.spawn(self.pump, server, client, None)

    def pump(self, source, sink, upload):
        """upload: where requests are kept; None: these are replies."""
        try:
            while True:
                data = source.recv(65536)
                if not data:
                    break
                if upload is not None:
                    upload += data
                if not self.pass_on(data, source, sink, upload is not None):
                    break
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            abort(source)
            abort(sink)

    def pass_on(self, data, source, sink, up):
        """False: this direction is over."""
        time.sleep(self.rng.uniform(*self.delay_s) + (self.hold_s if up else 0))
        if self.rng.random() < self.cut:
            sink.sendall(data[:self.rng.randrange(len(data))])
            abort(source)
            raise OSError("cut")
        if not (self.lose_requests if up else self.lose_replies):
            try:
                sink.sendall(data)
            except OSError:
                if not up:
                    raise
        if self.rng.random() < self.half_close:
            source.shutdown(socket.SHUT_RD)
            return False
        return True

    def replay(self):
        """Some connection's requests once more, as they were; returns how many bytes of them."""
        with_requests = [u for u in list(self.uploads) if u]
        if not with_requests:
            return 0
        data = bytes(self.rng.choice(with_requests))
        try:
            with socket.create_connection(self.to, timeout=1) as s:
                s.sendall(data)
                s.settimeout(0.3)
                while s.recv(65536):
                    pass
        except OSError:
            pass  # no more replies, or no server: the requests were sent all the same
        return len(data)


def abort(s):
    try:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    s.close()
