#!/usr/bin/python3
"""A server that is far away: far.py PORT SOCKET MS listens on 127.0.0.1:PORT, and everything takes
MS there and back, half of it each way. Any number of bytes may be under way."""

import collections
import selectors
import socket
import sys
import time


class Way:
    """One direction: what was read from `source` goes to `sink` when its time has come."""

    def __init__(self, source, sink, delay):
        self.source, self.sink, self.delay = source, sink, delay
        self.due = collections.deque()

    def read(self):
        data = self.source.recv(1 << 16)
        self.due.append((time.monotonic() + self.delay, data))
        return data

    def send(self, now):
        """False: the source had ended."""
        while self.due and self.due[0][0] <= now:
            data = self.due.popleft()[1]
            if not data:
                return False
            self.sink.sendall(data)
        return True


def serve(listener, path, delay):
    poll, ways = selectors.DefaultSelector(), set()
    poll.register(listener, selectors.EVENT_READ)

    def accept():
        near, far = listener.accept()[0], socket.socket(socket.AF_UNIX)
        near.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far.connect(path)
        for way in (Way(near, far, delay), Way(far, near, delay)):
            poll.register(way.source, selectors.EVENT_READ, way)
            ways.add(way)

    def end(way):
        for w in [w for w in ways if w.source in (way.source, way.sink)]:
            ways.discard(w)
            if w.source.fileno() in poll.get_map():
                poll.unregister(w.source)
        way.source.close()
        way.sink.close()

    while True:
        dues = [w.due[0][0] for w in ways if w.due]
        for key, _ in poll.select(max(0, min(dues) - time.monotonic()) if dues else None):
            if key.data is None:
                accept()
                continue
            try:
                if key.data in ways and not key.data.read():
                    poll.unregister(key.data.source)
            except OSError:
                end(key.data)
        now = time.monotonic()
        for way in list(ways):
            try:
                if way in ways and not way.send(now):
                    end(way)
            except OSError:
                end(way)


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
    serve(listener, sys.argv[2], float(sys.argv[3]) / 2000)


if __name__ == "__main__":
    main()
