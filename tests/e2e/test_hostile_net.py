"""What one client can cost the others: turns of the loop, slots, descriptors, memory.

Sizes are modest and limits generous: orders of magnitude are at stake, on a busy machine.
"""

import socket
import struct
import time

import wire
from harness import until
from runner import test


def conns(s, protocol="redis"):
    return s.metric("sidflake_connections", protocol=protocol)


def through(case, options=None):
    server = case.redis()
    options = dict(options or {}, **{"upstream.redis": "tcp://127.0.0.1:%d" % server.port})
    return server, case.sidecar(case.pool(), options)


# ---- gone -------------------------------------------------------------------------------------


@test("a client that goes while it waits for a blocked command is noticed, whatever it sent behind")
def gone_blocked(case):
    server, s = through(case)
    for words in (b"BLPOP k 0\r\nPING\r\n", b"BLPOP k 0\r\nGET id:a\r\nPING\r\n" * 3,
                  b"BLPOP k 0\r\n", b"BLPOP k 0\r\nSUBSCRIBE c\r\nPING\r\n"):
        clients = [s.resp() for _ in range(20)]
        for c in clients:
            c.send(words)
        until("all wait", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == 20)
        for c in clients[:10]:
            c.close()
        for c in clients[10:]:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.close()
        until("none is left, here", lambda: conns(s) == 0)
        until("nor there", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == 0)


@test("a client that has shut its own side gets its replies")
def half_closed(case):
    server, s = through(case)
    with s.resp() as r:
        r.send(b"SET a 1\r\nPING\r\nGET a\r\nGET id:a\r\nPING\r\nGET a\r\n")
        r.sock.shutdown(socket.SHUT_WR)
        assert r.reply() == b"OK" and r.reply() == b"PONG" and r.reply() == b"1"
        assert int(r.reply()) > 0 and r.reply() == b"PONG" and r.reply() == b"1"
        assert r.rest() == b""
    with s.resp() as r:  # as a real server ends it: what it could answer is answered
        r.send(b"GET a\r\nBLPOP k 0\r\nPING\r\n")
        r.sock.shutdown(socket.SHUT_WR)
        assert r.reply() == b"1" and r.rest() == b""
