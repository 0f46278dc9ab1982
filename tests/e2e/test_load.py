"""Many IDs, many clients, and clients that mean harm."""

import collections
import re
import select
import socket
import threading
import time

import harness
import ids
import wire
from harness import until
from runner import test

PER_MS = 1024
MILLION = 1000 * PER_MS


class Collector:
    """Sends the same request many times on several connections, and reads all replies raw; replies
    are looked at when the clock has stopped."""

    def __init__(self, conns, request, per_conn, id_bytes_end):
        self.conns, self.request, self.per_conn = conns, request, per_conn
        self.end = id_bytes_end  # how many times this must have come, per connection
        self.data = [bytearray() for _ in conns]

    def run(self, timeout=60):
        started = time.monotonic()
        left = {c.sock: self.per_conn for c in self.conns}
        index = {c.sock: i for i, c in enumerate(self.conns)}
        for c in self.conns:
            c.sock.setblocking(False)
        pending = {c.sock: memoryview(self.request * self.per_conn) for c in self.conns}
        seen = dict.fromkeys(left, 0)
        open_socks = set(left)
        while open_socks:
            assert time.monotonic() - started < timeout, "not all replies within %d s" % timeout
            writers = [s for s in open_socks if pending[s]]
            r, w, _ = select.select(list(open_socks), writers, [], 1)
            for s in w:
                try:
                    pending[s] = pending[s][s.send(pending[s][:1 << 16]):]
                except BlockingIOError:
                    pass
            for s in r:
                got = s.recv(1 << 20)
                assert got, "closed by the peer"
                buf = self.data[index[s]]
                back = max(0, len(buf) - len(self.end[0]) + 1)
                buf += got
                seen[s] += buf.count(self.end[0], back)
                if seen[s] >= self.end[1]:
                    open_socks.discard(s)
        return time.monotonic() - started


def check_million(values, elapsed, worker):
    assert len(values) == MILLION, "expected %d IDs, found %d" % (MILLION, len(values))
    ids.check_distinct(values)
    assert {ids.worker_of(v) for v in values} == {worker}
    full = max(collections.Counter(v >> ids.SEQUENCE_BITS for v in values).values())
    assert full == PER_MS, "expected at most %d IDs in a millisecond and that once, found %d" % (
        PER_MS, full)
    span_ms = ids.time_of(max(values)) - ids.time_of(min(values))
    assert 999 <= span_ms <= 4000, "expected about one second, found %d ms" % span_ms
    assert elapsed < 8, "expected a second or two, found %.1f s" % elapsed


@test("1,024,000 IDs of one workerId by LPOP, 8 connections: all distinct, none refused")
def million_resp(case):
    s = case.sidecar(case.pool(), {"workers.active": 1})
    conns = [s.resp(unix=i % 2 == 0) for i in range(8)]
    each = MILLION // PER_MS // len(conns)
    request = wire.Resp.encode("LPOP", "id:orders", PER_MS)
    c = Collector(conns, request, each, (b"\r\n$", each * PER_MS))
    elapsed = c.run()
    for conn in conns:  # the last bytes of the last reply
        conn.sock.setblocking(True)
    values = []
    for conn, data in zip(conns, c.data):
        while data.count(b"\r\n") < each * (2 * PER_MS + 1):
            data += conn.sock.recv(1 << 16)
        assert b"-" not in data, bytes(data[:200])
        values += map(int, re.findall(rb"\$\d+\r\n(\d+)\r\n", data))
    check_million(values, elapsed, s.worker())
    m = s.metrics()
    assert m.value("sidflake_sequence_peak") == PER_MS
    assert m.value("sidflake_ids_issued_total") == MILLION
    assert m.value("sidflake_sequence_exhausted_total") > 0


@test("1,024,000 IDs of one workerId by get, 8 connections: all distinct, none refused")
def million_mc(case):
    s = case.sidecar(case.pool(), {"workers.active": 1})
    conns = [s.mc(unix=i % 2 == 0) for i in range(8)]
    keys = 128
    request = b"get " + b" ".join(b"id:o#%d" % i for i in range(keys)) + b"\r\n"
    each = MILLION // keys // len(conns)
    c = Collector(conns, request, each, (b"END\r\n", each))
    elapsed = c.run()
    values = []
    for data in c.data:
        assert b"ERROR" not in data
        values += map(int, re.findall(rb"VALUE id:o#\d+ 0 \d+\r\n(\d+)\r\n", data))
    check_million(values, elapsed, s.worker())


@test("two workerIds give twice as many IDs in a millisecond, in order")
def two_active(case):
    s = case.sidecar(case.pool(), {"workers.active": 2, "workers.spare": 0})
    s.wait_held(2)
    values = []
    with s.resp() as r:
        r.send(r.encode("LPOP", "id:orders", PER_MS) * 200)
        for _ in range(200):
            values += map(int, r.reply())
    ids.check_increasing(values)
    assert {ids.worker_of(v) for v in values} == {0, 1}


@test("one greedy client does not starve another")
def fair(case):
    s = case.sidecar(case.pool())
    stop = threading.Event()

    def greedy():
        with s.resp() as r:
            while not stop.is_set():
                r.send(r.encode("LPOP", "id:orders", PER_MS) * 8)
                for _ in range(8):
                    r.reply()
    threads = [threading.Thread(target=greedy) for _ in range(2)]
    for t in threads:
        t.start()
    try:
        took = sorted(polite(s, 300))
    finally:
        stop.set()
        for t in threads:
            t.join()
    assert took[len(took) // 2] < 0.05, "median of a polite client: %.4f s" % took[len(took) // 2]


def polite(s, n):
    """Seconds that each of n requests took; none may fail."""
    took = []
    with s.resp() as r, s.mc() as m:
        for i in range(n):
            started = time.monotonic()
            if i % 2:
                m.id()
            else:
                assert int(r.ask("GET", "id:orders")) > 0
            took.append(time.monotonic() - started)
    return took


def assert_unharmed(s, what):
    s.assert_running()
    slowest = max(polite(s, 100))
    assert slowest < 0.5, "%s: another client waited for %.3f s" % (what, slowest)
    assert s.ready_status() == 200


@test("who had to wait for a turn leaves the loop asleep")
def asleep_after_turns(case):
    s = case.sidecar("static:7")
    with s.resp() as r:
        r.send(r.encode("COMMAND") * 20)
        for _ in range(20):
            assert r.reply()
    before = s.metric("process_cpu_seconds_total")
    time.sleep(2)
    spent = s.metric("process_cpu_seconds_total") - before
    assert spent < 0.3, "%.2f s of CPU in 2 s of rest" % spent


@test("clients that send garbage harm nobody else")
def garbage(case):
    s = case.sidecar(case.pool())
    blobs = [bytes(range(256)) * 64, b"\0" * 5000, b"\xff" * 5000, b"\r\n" * 5000, b"*" * 70000,
             b"*1000000000\r\n", b"*-5\r\n$-1\r\n", b"$5\r\nhello\r\n",
             b"*2\r\n$3\r\nGET\r\n$-7\r\n", b"*1\r\n$99999999999999999999\r\n",
             b"get " + b"k" * 3000 + b"\r\n", b"set a b c d\r\n",
             b"set a 0 0 2147483647\r\n" + b"x" * 5000, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
             b"POST / HTTP/1.1\r\nHost: x\r\n\r\n", b"\x80" + b"\x01" * 23, b"\x16\x03\x01\x02\x00",
             b"incr id:orders 99999999999999999999\r\n", b"LPOP id:orders 99999999999\r\n"]
    for blob in blobs:
        for make in (s.mc, s.resp, lambda: wire.Stream(("127.0.0.1", s.http_port))):
            with make() as c:
                try:
                    c.send(blob)
                    c.half_close()
                    c.rest()
                except OSError:
                    pass
    assert_unharmed(s, "garbage")


@test("clients that send half a command and wait harm nobody else")
def halves(case):
    s = case.sidecar(case.pool())
    conns = []
    for make, blob in ((s.mc, b"get id:ord"), (s.mc, b"set id:orders 0 0 100\r\nabc"),
                       (s.resp, b"*2\r\n$3\r\nGET\r\n$9\r\nid:o"), (s.resp, b"GET id:or")):
        for _ in range(25):
            c = make()
            c.send(blob)
            conns.append((c, blob))
    assert_unharmed(s, "halves")
    rest = {b"get id:ord": b"ers\r\n", b"GET id:or": b"ders\r\n",
            b"*2\r\n$3\r\nGET\r\n$9\r\nid:o": b"rders\r\n"}
    for c, blob in conns:
        if blob in rest:
            c.send(rest[blob])
            reply = c.reply() if isinstance(c, wire.Resp) else c.values()[0][1]
            assert int(reply) > 0
        c.close()


@test("10 MB without a newline, and 10 MB values: bounded memory, closed or refused")
def ten_megabytes(case):
    s = case.sidecar(case.pool())
    base = s.rss_kib()
    junk = b"x" * (10 << 20)
    mc_set = b"set id:orders 0 0 %d\r\n" % len(junk)
    resp_set = b"*3\r\n$3\r\nSET\r\n$9\r\nid:orders\r\n$%d\r\n" % len(junk)
    for make, head, closes in ((s.mc, b"", True), (s.resp, b"", True), (s.mc, mc_set, False),
                               (s.resp, resp_set, None)):
        with make() as c:
            try:
                c.send(head + junk)
                if closes is False:
                    c.send(b"\r\n")
                    assert c.line() == b"CLIENT_ERROR id key is read-only"
                elif closes:
                    c.rest()  # until the peer closes
            except (BrokenPipeError, ConnectionResetError):
                assert closes is not False, "closed in the middle of a data block"
        assert_unharmed(s, "10 MB")
    grown = s.rss_kib() - base
    bound = 8 * 1024 * (8 if harness.sanitized() else 1)
    assert grown < bound, "VmRSS grew by %d KiB" % grown


@test("clients that never read their replies: bounded memory, and nobody else waits")
def never_read(case):
    s = case.sidecar(case.pool())
    base = s.rss_kib()
    conns = []
    requests = wire.Resp.encode("LPOP", "id:orders", PER_MS) * 20
    for i in range(40):
        c = s.resp(unix=i % 2 == 0) if i % 4 < 2 else s.mc(unix=i % 2 == 0)
        data = requests if isinstance(c, wire.Resp) else \
            (b"get " + b" ".join([b"id:orders"] * 200) + b"\r\n") * 100
        c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.sock.setblocking(False)
        conns.append((c, data))
    for _ in range(20):
        for c, data in conns:
            try:
                c.sock.send(data)
            except BlockingIOError:
                pass
    assert_unharmed(s, "clients that never read")
    grown = s.rss_kib() - base
    bound = len(conns) * 640 * (8 if harness.sanitized() else 1)  # 512 KiB of output, 66 of input
    assert grown < bound, "VmRSS grew by %d KiB over %d connections" % (grown, len(conns))
    for c, _ in conns:
        c.close()
    until("they are gone", lambda: s.metric("sidflake_connections", protocol="redis") == 0)


@test("connections that come and go by the thousand leave nothing behind")
def churn(case):
    s = case.sidecar(case.pool())
    fds = s.metric("process_open_fds")
    for i in range(2000):
        c = s.resp(unix=i % 2 == 0)
        if i % 3 == 0:
            c.send(b"GET id:orders\r\n")
        c.close()
    until("all are closed", lambda: s.metric("sidflake_connections", protocol="redis") == 0)
    until("no descriptor is left", lambda: s.metric("process_open_fds") <= fds + 1)
    assert s.metric("sidflake_connections_accepted_total", protocol="redis") == 2000
    assert_unharmed(s, "churn")


@test("500 connections at once, each in turn")
def many(case):
    s = case.sidecar(case.pool())
    conns = [s.resp(unix=i % 2 == 0) for i in range(500)]
    values = []
    for _ in range(3):
        for c in conns:
            c.send(c.encode("GET", "id:orders"))
        values += [int(c.reply()) for c in conns]
    ids.check_distinct(values)
    assert s.metric("sidflake_connections", protocol="redis") == 500
    for c in conns:
        c.close()
