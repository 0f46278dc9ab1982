"""What either holds or does not: a function each, that fails by an assertion whose words say what was
found instead. Kinds of them are in checks_*.py."""

import socket

import harness
import wire

CHECKS = []

class Check:
    def __init__(self, name, item, what, function):
        self.name, self.item, self.what, self.function = name, item, what, function


def check(name, item, what):
    """Marks one. item: of the list of what was once found."""
    def register(function):
        CHECKS.append(Check(name, item, what, function))
        return function
    return register


def answer(case, entry):
    """The row of one."""
    row = {"name": entry.name, "item": entry.item, "what": entry.what, "holds": True, "note": ""}
    try:
        entry.function(case)
    except (AssertionError, OSError, wire.Closed, wire.Error) as e:
        row["holds"] = False
        row["note"] = (str(e).splitlines() or [type(e).__name__])[0][:300] or type(e).__name__
    return row


# ---- what several of them need -------------------------------------------------------------------


def behind(case, redis=None, memcached=None, options=None, **kwargs):
    """A sidecar with the servers behind it, which needs no coordinator."""
    given = {"workers.spare": 0, "log.level": "info"}
    if redis:
        given["upstream.redis"] = "tcp://127.0.0.1:%d" % redis.port
    if memcached:
        given["upstream.memcached"] = "tcp://127.0.0.1:%d" % memcached.port
    given.update(options or {})
    return case.sidecar("static:7", given, **kwargs)


def others(s, protocols=("redis", "memcached")):
    """Connections for data."""
    return sum(s.metric("sidflake_connections", protocol=p) for p in protocols)


def all_that_comes(address, data, quiet=0.3, most=5.0):
    """What a server says to data until it has been quiet for a while, or closes."""
    with wire.Stream(address, most) as c:
        got = b""
        try:
            c.send(data)
            while True:
                part = c.sock.recv(1 << 16)
                if not part:
                    return got + b"<closed>"
                got += part
                c.sock.settimeout(quiet)
        except (socket.timeout, ConnectionResetError, BrokenPipeError):  # closed before it was sent
            return got


def short(data):
    text = repr(bytes(data) if isinstance(data, (bytes, bytearray)) else data)
    return text if len(text) <= 90 else text[:87] + "..."


def is_error(reply):
    return isinstance(reply, wire.Error)


def source(*path):
    """A file of the tree, as text."""
    with open("/".join((harness.TOP,) + path)) as f:
        return f.read()


# Each registers its own.
import checks_through  # noqa: E402,F401
import checks_users  # noqa: E402,F401
import checks_daemon  # noqa: E402,F401
