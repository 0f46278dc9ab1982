#!/usr/bin/python3
"""stall.py PORT SERVER: relays connections to a server on this host, and swallows all of one on which
SELECT 9 was asked for, as a server that hangs for some of its clients does."""

import selectors
import socket
import sys


class Side:
    def __init__(self, sock):
        self.sock, self.other, self.deaf = sock, None, False


def pair(selector, listener, server):
    a = Side(listener.accept()[0])
    try:
        b = Side(socket.create_connection(("127.0.0.1", server)))
    except OSError:
        a.sock.close()
        return
    a.other, b.other = b, a
    for side in (a, b):
        side.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        selector.register(side.sock, selectors.EVENT_READ, side)


def part(selector, side):
    for s in (side, side.other):
        selector.unregister(s.sock)
        s.sock.close()


def pass_on(selector, side):
    try:
        data = side.sock.recv(1 << 16)
        if not data:
            part(selector, side)
            return
        side.deaf = side.deaf or b"SELECT\r\n$1\r\n9" in data
        if not side.deaf:
            side.other.sock.sendall(data)
    except OSError:
        part(selector, side)


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=512)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    while True:
        for key, _ in selector.select():
            if key.data is None:
                pair(selector, listener, int(sys.argv[2]))
            elif key.fileobj.fileno() >= 0:
                pass_on(selector, key.data)


main()
