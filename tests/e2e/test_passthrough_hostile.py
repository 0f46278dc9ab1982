"""Pass-through between clients and servers that mean no good, or are merely slow."""

import contextlib
import os
import signal
import socket
import struct
import threading
import time

import wire
from harness import sanitized, until
from passthrough import SMALL, Puppet, prepare_stalls, stall
from runner import test


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


GET = wire.Resp.encode("GET", "a")


@test("who asks for much at once has others wait for little of it")
def share(case):
    n, reply = 1000, b"$1\r\nx\r\n"
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        with s.resp() as greedy, s.resp() as other:
            greedy.send(GET * n)
            link = puppet.accept()
            asked = len(puppet.hear(link)) // len(GET)
            assert 0 < asked <= 64, "expected at most 64 of %d requests, found %d" % (n, asked)
            other.send(GET)
            assert puppet.hear(link) == GET
            link.sendall(reply * (asked + 1))
            assert other.reply() == b"x"
            answered = asked
            while answered < n:
                asked = len(puppet.hear(link, 0.05)) // len(GET)
                assert asked <= 64 and answered + asked <= n
                link.sendall(reply * asked)
                answered += asked
            assert greedy.take(n * len(reply)) == n * reply


@test("what all have asked for on a shared link is bounded, and who waits is not forgotten")
def bounded(case):
    clients, each, reply = 700, 6, b"$1\r\nx\r\n"
    with Puppet() as puppet:
        s = before_puppet(case, puppet)
        streams = [s.resp() for _ in range(clients)]
        for r in streams:
            r.send(GET * each)
        link = puppet.accept()
        answered = 0
        while answered < clients * each:
            asked = len(puppet.hear(link)) // len(GET)
            assert 0 < asked <= 2048, "expected 1 to 2048 requests, found %d" % asked
            link.sendall(reply * asked)
            answered += asked
        for r in streams:
            assert r.take(each * len(reply)) == each * reply
            r.close()


def ask_all(redis, s, clients, each):
    streams = [s.resp() for _ in range(clients)]
    os.kill(redis.popen.pid, signal.SIGSTOP)  # until all are under way
    try:
        for c, r in enumerate(streams):
            r.send(b"".join(wire.Resp.encode("ECHO", "%d-%d" % (c, i)) if i % 7 < 6 else
                            wire.Resp.encode("GET", "id:a") for i in range(each)))
        time.sleep(0.3)
    finally:
        os.kill(redis.popen.pid, signal.SIGCONT)
    for c, r in enumerate(streams):
        for i in range(each):
            got = r.reply()
            assert got == b"%d-%d" % (c, i) if i % 7 < 6 else int(got) > 0, \
                "client %d, reply %d: found %r" % (c, i, got)
        r.close()


@test("many clients with many requests at once: all are answered, in order")
def many(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    ask_all(redis, s, 100, 600)
    ask_all(redis, s, 700, 6)


@test("clients that ask for much and read nothing: bounded memory, and others go on")
def unread(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    for size in (20_000, 100_000):
        redis.ask("SET", "a", "x" * size)
        before = s.rss_kib()
        lazy = [s.resp() for _ in range(100)]
        for r in lazy:
            r.send(GET * (4_000_000 // size))
        with s.resp() as r:
            slowest = 0
            for i in range(100):
                started = time.monotonic()
                assert r.ask("SET", "k", i) == b"OK" and int(r.ask("GET", "id:a")) > 0
                slowest = max(slowest, time.monotonic() - started)
            assert slowest < 10, "%d bytes: one took %.1f s" % (size, slowest)
        grown = s.rss_kib() - before
        assert grown < (65536 if sanitized() else 32768), "grown by %d KiB" % grown
        for r in lazy:
            reset(r)
        until("they are gone", lambda: s.metric("sidflake_connections", protocol="redis") == 0, 20)
    s.assert_running()


def stall_and_go(s, protocol, stop):
    while not stop.is_set():
        with (s.resp if protocol == "redis" else s.mc)(unix=True) as r:  # it keeps little
            stall(r, protocol)
            time.sleep(0.2)


@test("one that takes nothing and goes before it is closed, again and again: others go on")
def goes_in_time(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % case.memcached().port})
    for protocol in ("redis", "memcached"):
        prepare_stalls(s, protocol)
        ask, reply = SMALL[protocol]
        stop, took, end = threading.Event(), [], time.monotonic() + 4
        attacker = threading.Thread(target=stall_and_go, args=(s, protocol, stop))
        attacker.start()
        with (s.resp() if protocol == "redis" else s.mc()) as r:
            while time.monotonic() < end:
                asked = time.monotonic()
                r.send(ask)
                assert r.take(len(reply)) == reply
                took.append(time.monotonic() - asked)
                time.sleep(0.002)
        stop.set()
        attacker.join()
        slow = sum(t for t in took if t > 0.05)
        assert slow < 1.5, "%s: waited %.1f s of 4, at most %.2f" % (protocol, slow, max(took))


def accept_all(puppet, stop):
    while not stop.is_set():
        try:
            puppet.accept_soon()
        except OSError:
            pass


@test("what links held whose clients are long gone is given back, without anybody's coming or going")
def links_later(case):
    if sanitized():  # whose allocator gives nothing back
        return
    with Puppet() as puppet:
        puppet.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s = before_puppet(case, puppet, {"upstream.timeout": "10s"})
        stop, request = threading.Event(), wire.Resp.encode("GET", "k" * 8000)
        server = threading.Thread(target=accept_all, args=(puppet, stop))
        server.start()
        before, end = s.rss_kib(), time.monotonic() + 7
        while time.monotonic() < end:  # each time the shared link is left, and makes way
            crowd = [s.resp(unix=True) for _ in range(120)]
            with contextlib.suppress(BrokenPipeError):  # one that had to make room
                for r in crowd:
                    r.send(request)
            time.sleep(0.05)
            for r in crowd:
                r.close()
        most = s.rss_kib()
        assert most > before + 8192, "%d KiB of links" % (most - before)
        until("given back, of %d KiB" % (most - before),
              lambda: s.rss_kib() < before + (most - before) // 4, 25, 0.1)
        stop.set()
        server.join()
        s.assert_running()


@test("a server that reads nothing: bounded memory, IDs go on, an error in time")
def deaf(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet, {"upstream.timeout": "2s"})
        value = wire.Resp.encode("SET", "a", "x" * 50_000)
        before = s.rss_kib()
        senders = [s.resp() for _ in range(100)]
        for r in senders:
            r.sock.setblocking(False)
            try:
                for _ in range(20):
                    r.sock.send(value)
            except BlockingIOError:
                pass
        with s.resp() as r:
            assert int(r.ask("GET", "id:a")) > 0
            grown = s.rss_kib() - before
            assert grown < (65536 if sanitized() else 16384), "grown by %d KiB" % grown
            got = r.ask("GET", "a")
            assert str(got).startswith("LOADING sidflake: "), got
            assert int(r.ask("GET", "id:a")) > 0
        for r in senders:
            reset(r)
        until("they are gone", lambda: s.metric("sidflake_connections", protocol="redis") == 0, 20)
        s.assert_running()


def request(protocol, n, *more):
    """n IDs, and other keys."""
    names = ["id:a"] * n + list(more)
    if protocol == "redis":
        return wire.Resp.encode("MGET", *names)
    return b"get " + " ".join(names).encode() + b"\r\n"


def values(protocol, r):
    if protocol == "redis":
        return r.reply()
    got = []
    while (line := r.line()) != b"END":
        assert line.startswith(b"VALUE "), line
        got.append(r.line())
    return got


def after_one_given_up(case, protocol):
    """The server goes away, and refuses who comes, while a merge waits for its IDs; then another is
    asked for. None: the first had gone out already."""
    n = 1500 if protocol == "redis" else 100
    with Puppet() as puppet:
        s = case.sidecar("static:7", {"workers.spare": 0,
                                      "upstream." + protocol: "tcp://127.0.0.1:%d" % puppet.port})
        with s.resp() as hog, (s.resp() if protocol == "redis" else s.mc()) as r:
            r.send(request(protocol, 0, "foo"))
            link = puppet.accept()
            puppet.hear(link)
            link.sendall(b"*1\r\n$1\r\n0\r\n" if protocol == "redis" else b"END\r\n")
            values(protocol, r)
            puppet.listener.close()
            hog.send(wire.Resp.encode("LPOP", "id:z", 1024) * 60)
            r.send(request(protocol, n, "foo"))
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.close()
            try:
                first = str(r.reply() if protocol == "redis" else r.line())
            except wire.Closed:
                return None
            assert first.startswith("LOADING") or "SERVER_ERROR" in first, first
            puppet.listener = socket.create_server(("127.0.0.1", puppet.port), backlog=512)
            time.sleep(1.2)  # it is tried again after a while
            r.send(request(protocol, 2 * n, "bar", "baz"))
            puppet.hear(puppet.accept())
            puppet.socks[-1].sendall(
                b"*2\r\n$1\r\n1\r\n$1\r\n2\r\n" if protocol == "redis"
                else b"VALUE bar 0 1\r\n1\r\nVALUE baz 0 1\r\n2\r\nEND\r\n")
            got = values(protocol, r)
            assert len(set(got[:-2])) == 2 * n and got[-2:] == [b"1", b"2"], len(got)
            assert s.stop() == 0
            return True


@test("a merge that was given up is nobody else's: neither its room nor its IDs", timeout=90)
def given_up(case):
    for protocol in ("redis", "memcached"):
        assert any([after_one_given_up(case, protocol) for _ in range(5)]), "none was parked"


@test("replies to what came before a value do not wait for its end, and who is gone amid it is noticed")
def pauses_amid(case):
    server = case.memcached()
    s = case.sidecar("static:7", {"upstream.memcached": "tcp://127.0.0.1:%d" % server.port,
                                  "upstream.timeout": "500ms"})
    large = b"x" * 100_000 + b"\r\n"
    text = b"mg n v\r\nset k 0 0 100000\r\n" + large
    packet = struct.pack("!BBHBBHLLQ", 0x80, 0, 1, 0, 0, 7, 1, 0, 0) + b"n" + \
        struct.pack("!BBHBBHLLQ", 0x80, 1, 1, 8, 0, 0, 9 + len(large), 0, 0) + bytes(8) + b"k" + large
    for data, first, reply in ((text, b"EN\r\n", b"STORED\r\n"), (packet, b"\x81\x00", b"\x81\x01")):
        with s.mc() as r:
            r.send(data[:80_000])
            assert r.take(len(first)) == first
            time.sleep(1)
            r.send(data[80_000:])
            until("its reply", lambda: reply in r.buf or r.fill())
        with s.mc() as r:
            r.send(data[:80_000])
            assert r.take(len(first)) == first
        until("it is gone", lambda: s.metric("sidflake_connections", protocol="memcached") == 0, 0.4)
    assert "was lost" not in s.log()


@test("a reply that is dropped and breaks off costs its client nothing; half a value costs the connection")
def breaks_off(case):
    with Puppet() as puppet:
        s = before_puppet(case, puppet, {"upstream.redis": "",
                                         "upstream.memcached": "tcp://127.0.0.1:%d" % puppet.port})
        with s.mc() as quiet, s.mc() as asks:
            quiet.send(b"set k 0 0 1 noreply\r\nv\r\n")
            link = puppet.accept()
            assert puppet.hear(link).startswith(b"set k 0 0 1")
            link.sendall(b"STO")
            time.sleep(0.2)  # read before the end
            link.close()
            assert quiet.id() > 0 and quiet.silent()
            asks.send(b"get k\r\n")
            link = puppet.accept()
            assert puppet.hear(link).startswith(b"get k")
            link.sendall(b"VALUE k 0 9\r\nhalf")
            time.sleep(0.2)
            link.close()
            assert asks.rest() in (b"", b"VALUE k 0 9\r\nhalf")
            assert quiet.id() > 0
        s.assert_running()
