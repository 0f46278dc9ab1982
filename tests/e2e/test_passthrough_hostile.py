"""Pass-through between clients and servers that mean no good, or are merely slow."""

import socket
import struct
import threading
import time

import wire
from harness import sanitized, until
from runner import test


class Puppet:
    """A server that says what the test says, and reads what the test has it read."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.socks = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [self.listener, *self.socks]:
            s.close()

    def accept(self):
        self.listener.settimeout(10)
        s = self.listener.accept()[0]
        s.settimeout(10)
        self.socks.append(s)
        return s


def before_puppet(case, puppet, options=None):
    given = {"upstream.redis": "tcp://127.0.0.1:%d" % puppet.port}
    given.update(options or {})
    return case.sidecar(case.pool(), given)


def reset(stream):
    """Closes without a good-bye."""
    stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()


@test("a client that is gone when its last reply is passed on")
def gone(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        foreign, own = wire.Resp.encode("GET", "a"), wire.Resp.encode("GET", "id:a")
        with s.resp() as other:
            other.send(foreign)
            link = puppet.accept()
            assert link.recv(len(foreign), socket.MSG_WAITALL) == foreign
            for _ in range(20):
                with s.resp() as r:
                    r.send(foreign + own)  # it waits behind the first …
                    assert link.recv(len(foreign), socket.MSG_WAITALL) == foreign
                    r.send(own)  # … and is not looked at any more
                    time.sleep(0.02)
                    reset(r)
                link.sendall(b"$1\r\nx\r\n")
                assert other.reply() == b"x"
                other.send(foreign)
                assert link.recv(len(foreign), socket.MSG_WAITALL) == foreign
                link.sendall(b"$1\r\ny\r\n")
                until("it is noticed", lambda: s.metric(
                    "sidflake_connections", protocol="redis") == 1)
        s.assert_running()
