"""Pass-through: what is no ID goes to a real server and back, byte for byte and in order."""

import concurrent.futures
import os
import random
import signal
import socket
import threading
import time

import ids
import wire
from harness import sanitized, until
from passthrough import BinaryStream, MemcachedStream, RedisStream, exchange
from runner import test

SEED = int(os.environ.get("SEED", "0")) or random.randrange(1 << 32)
BIG = 512 << 20


def behind(case, redis=None, memcached=None, options=None, **kwargs):
    """A sidecar with the servers behind it."""
    given = {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port if redis else "",
             "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port if memcached else ""}
    given.update(options or {})
    return case.sidecar(case.pool(), given, **kwargs)


UNSERVED = ("LOADING sidflake: the server behind is unreachable: it answers, but refuses: NOAUTH "
            "Authentication required.")


def error(reply, *starts):
    assert isinstance(reply, wire.Error) and str(reply).startswith(starts), \
        "expected an error that begins with %r, found %r" % (starts, reply)


def same(want, got, what):
    if want == got:
        return
    at = next((i for i, (a, b) in enumerate(zip(want, got)) if a != b), min(len(want), len(got)))
    raise AssertionError("%s, SEED=%d: expected %r, found %r, at byte %d of %d" % (
        what, SEED, want[max(0, at - 60):at + 100], got[max(0, at - 60):at + 100], at, len(want)))


def compare(case, streams, options=None):
    """Each stream to one Redis directly, and to another through the sidecar."""
    # the order of what is kept in tables is random
    kept = ("--hash-max-listpack-value", "1000000", "--hash-max-listpack-entries", "100000",
            "--zset-max-listpack-value", "1000000")
    direct, other = case.redis(args=kept), case.redis(args=kept)
    s = behind(case, other, options=options)
    cut = random.Random(SEED)
    for number, (head, data) in enumerate(streams):
        marker = b"$%d\r\nthe end of %d\r\n" % (len(b"the end of %d" % number), number)
        data = head + data + wire.Resp.encode("ECHO", "the end of %d" % number)
        for redis in (direct, other):
            redis.ask("FLUSHALL")
        want = exchange(("127.0.0.1", direct.port), data, marker)
        got = exchange(("127.0.0.1", s.resp_port), data, marker, cut)
        same(want, got, "stream %d" % number)
    s.assert_running()
    return s


@test("random streams of commands give the same bytes through the sidecar as directly: RESP2")
def resp2(case):
    compare(case, [(b"", RedisStream(SEED + i).make(400)) for i in range(6)])


@test("random streams of commands give the same bytes through the sidecar as directly: RESP3")
def resp3(case):
    # HELLO's answer holds the connection's number
    head = wire.Resp.encode("CLIENT", "REPLY", "SKIP") + wire.Resp.encode("HELLO", 3)
    compare(case, [(head, RedisStream(SEED + i, resp3=True).make(400)) for i in range(6)])


@test("random streams without state, of many clients at once on one link: the same bytes")
def together(case):
    kept = ("--hash-max-listpack-value", "1000000", "--hash-max-listpack-entries", "100000")
    direct, other = case.redis(args=kept), case.redis(args=kept)
    s = behind(case, other)
    rng = random.Random(SEED)
    marker = b"$3\r\nend\r\n"
    streams = []
    for i in range(12):
        stream = RedisStream(SEED + i, tag="-%d-" % i)
        for _ in range(3000):
            stream.plain()
        streams.append(bytes(stream.out) + wire.Resp.encode("ECHO", "end"))
    want = [exchange(("127.0.0.1", direct.port), data, marker) for data in streams]
    with concurrent.futures.ThreadPoolExecutor(len(streams)) as pool:
        got = list(pool.map(lambda data: exchange(("127.0.0.1", s.resp_port), data, marker,
                                                  random.Random(rng.random())), streams))
    for i, pair in enumerate(zip(want, got)):
        same(*pair, "stream %d" % i)
    links = s.metric("sidflake_upstream_connections", protocol="redis")
    assert links == 1, "expected one link for all, found %r" % links
    s.assert_running()


@test("IDs and other keys in one pipeline: each reply in its place")
def order(case):
    redis = case.redis()
    s = behind(case, redis)
    rng = random.Random(SEED)
    issued = []
    for round_ in range(4):
        data, want = bytearray(), []
        for i in range(1500):
            kind = rng.randrange(8)
            if kind == 0:
                data += wire.Resp.encode("GET", "id:a")
                want.append("id")
            elif kind == 1:
                data += wire.Resp.encode("SET", "k%d" % (i % 7), i)
                want.append(b"OK")
            elif kind == 2:
                data += wire.Resp.encode("ECHO", i)
                want.append(b"%d" % i)
            elif kind == 3:
                data += wire.Resp.encode("INCRBY", "n%d" % round_, 1)
                want.append("number")
            elif kind == 4:
                data += wire.Resp.encode("MGET", "id:x", "none", "id:y", "id:z", "n%d" % round_)
                want.append("merged")
            elif kind == 5: # as an ID is asked for, but for the key
                data += wire.Resp.encode("GET", "k none")
                want.append(None)
            elif kind == 6:
                data += wire.Resp.encode("LPOP", "none", 3)
                want.append(None)
            else:
                data += wire.Resp.encode("LPOP", "id:a", 3)
                want.append("ids")
        with s.resp() as r:
            sender = threading.Thread(target=r.send, args=(bytes(data),))
            sender.start()
            n = 0
            for i, w in enumerate(want):
                got = r.reply()
                what = "SEED=%d, reply %d: expected %r, found %r" % (SEED, i, w, got)
                if w == "id":
                    issued.append(int(got))
                elif w == "ids":
                    assert len(got) == 3, what
                    issued += map(int, got)
                elif w == "number":
                    n += 1
                    assert got == n, what
                elif w == "merged":
                    assert got[1] is None and got[4] == (b"%d" % n if n else None), what
                    issued += [int(got[0]), int(got[2]), int(got[3])]
                else:
                    assert got == w, what
            sender.join()
    ids.check_increasing(issued)


@test("after RESET, too, replies come in the order of the requests")
def order_after_reset(case):
    s = behind(case, case.redis())
    pairs = 500
    with s.resp() as r:
        assert r.ask("SET", "k", "v") == b"OK" and r.ask("RESET") == b"RESET"
        assert r.ask("PING") == b"PONG"
        r.send(wire.Resp.encode("SET", "k", "v") + wire.Resp.encode("GET", "id:a")
               + (wire.Resp.encode("SET", "k", "v") * 2 + wire.Resp.encode("GET", "id:a")) * pairs)
        assert r.reply() == b"OK"
        issued = [int(r.reply())]
        for _ in range(pairs):
            assert r.reply() == b"OK" and r.reply() == b"OK"
            issued.append(int(r.reply()))
    ids.check_increasing(issued)


@test("MGET of IDs and others: merged, in RESP2 and RESP3; an error is the answer as a whole")
def merged(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "a", "x" * 300000)
    redis.ask("RPUSH", "list", "1")
    for proto in (2, 3):
        with s.resp() as r:
            r.ask("HELLO", proto)
            got = r.ask("MGET", "id:1", "a", "none", "id:2", "list", "a", "id:3")
            assert [got[1], got[2], got[4], got[5]] == [b"x" * 300000, None, None, b"x" * 300000]
            ids.check_increasing([int(got[i]) for i in (0, 3, 6)])
            got = r.ask("MGET", *["id:%d" % i if i % 3 else "a%d" % i for i in range(500)])
            assert [v is None for v in got] == [i % 3 == 0 for i in range(500)]
    locked = behind(case, case.redis(args=("--requirepass", "secret")))
    with locked.resp() as r:
        error(r.ask("MGET", "id:1", "a"), UNSERVED)
        assert r.ask("AUTH", "secret") == b"OK"
        got = r.ask("MGET", "a", "id:1")
        assert got[0] is None and int(got[1]) > 0


@test("IDs where they cannot be: mixed keys, scripts, transactions; and TRACKING")
def misplaced(case):
    s = behind(case, case.redis())
    with s.resp() as r:
        for c in (("DEL", "a", "id:a"), ("EXISTS", "id:a", "a"), ("MSET", "a", 1, "id:a", 1),
                  ("SUNION", "a", "id:b"), ("RENAME", "a", "id:a"), ("BLPOP", "a", "id:b", 0),
                  ("ZUNIONSTORE", "a", 2, "b", "id:c"), ("SORT", "a", "STORE", "id:a"),
                  ("XREAD", "STREAMS", "a", "id:a", 0, 0), ("EVAL", "return 1", 2, "a", "id:a"),
                  ("EVAL", "return 1", 1, "id:a"), ("FCALL", "f", 1, "id:a")):
            error(r.ask(*c), "ERR an ID key", "ERR ID keys")
        error(r.ask("SET", "id:a", 1), "ERR id key 'id:a' is read-only")
        error(r.ask("CLIENT", "TRACKING", "on"), "ERR client-side caching is not allowed")
        error(r.ask("CLIENT", "CACHING", "yes"), "ERR client-side caching is not allowed")
        assert r.ask("MULTI") == b"OK" and r.ask("SET", "a", 1) == b"QUEUED"
        error(r.ask("GET", "id:a"), "ERR an ID key")
        error(r.ask("EXEC"), "EXECABORT")
        assert r.ask("EXISTS", "a") == 0 and r.ask("SET", "a", 5) == b"OK"
        assert r.ask("MULTI") == b"OK" and r.ask("PING") == b"QUEUED"
        assert r.ask("GET", "id:a") == b"QUEUED"
        error(r.ask("GET", "a"), "ERR a transaction that gives out IDs")
        error(r.ask("EXEC"), "EXECABORT")
        assert r.ask("MULTI") == b"OK" and r.ask("PING") == b"QUEUED"
        assert r.ask("GET", "a") == b"QUEUED" and r.ask("EXEC") == [b"PONG", b"5"]
        assert r.ask("MULTI") == b"OK" and r.ask("INCRBY", "id:a", 1) == b"QUEUED"
        assert r.ask("GET", "id:a") == b"QUEUED" and len(r.ask("EXEC")) == 2


@test("messages reach subscribers, and IDs are had again after the last unsubscription")
def pubsub(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as r:
        assert r.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        until("a subscriber", lambda: redis.ask("PUBLISH", "c", "hello") == 1)
        assert r.reply() == [b"message", b"c", b"hello"]
        error(r.ask("GET", "id:a"), "ERR Can't execute 'get'")
        assert r.ask("UNSUBSCRIBE") == [b"unsubscribe", b"c", 0]
        assert int(r.ask("GET", "id:a")) > 0 and r.ask("GET", "a") is None
    with s.resp() as r:
        r.ask("HELLO", 3)
        assert r.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        until("a subscriber", lambda: redis.ask("PUBLISH", "c", "hello") == 1)
        assert r.reply() == [b"message", b"c", b"hello"]
        assert int(r.ask("GET", "id:a")) > 0 and r.ask("GET", "a") is None
    with s.resp() as r:
        assert r.ask("MONITOR") == b"OK"
        redis.ask("SET", "seen", "1")
        while b"seen" not in r.line():
            pass


@test("a value of 512 MiB goes up and down, and the sidecar's memory does not follow")
def big(case):
    redis = case.redis()
    s = behind(case, redis)
    before = s.rss_kib()
    with s.resp() as r, s.resp() as other:
        r.sock.settimeout(120)
        chunk = os.urandom(1 << 20)
        r.send(b"*3\r\n$3\r\nSET\r\n$3\r\nbig\r\n$%d\r\n" % BIG)
        for i in range(BIG >> 20):
            r.send(chunk)
            if i % 64 == 0:
                assert int(other.ask("GET", "id:a")) > 0
        r.send(b"\r\n")
        assert r.reply() == b"OK"
        r.send(wire.Resp.encode("GET", "big") + wire.Resp.encode("GET", "id:a"))
        assert r.line() == b"$%d" % BIG
        for i in range(BIG >> 20):
            assert r.take(1 << 20) == chunk, "at %d MiB" % i
            if i % 64 == 0:
                assert int(other.ask("GET", "id:a")) > 0
        assert r.take(2) == b"\r\n" and int(r.reply()) > 0
        grown = s.peak_kib() - before
    assert grown < (16384 if sanitized() else 4096), "grown by %d KiB" % grown


@test("Redis down: others get an error, IDs go on; it comes back by itself")
def down(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as idle, s.resp() as r:
        assert r.ask("SET", "a", 1) == b"OK" and idle.ask("GET", "a") == b"1"
        redis.kill()
        s.wait_log("upstream lost")  # who asked before that would be closed
        error(idle.ask("GET", "a"), "LOADING sidflake: the server behind is unreachable: ")
        error(idle.ask("SELECT", 99), "ERR DB index is out of range")
        assert int(idle.ask("GET", "id:a")) > 0
        with s.resp() as fresh:
            assert fresh.ask("HELLO", 3)[b"proto"] == 3
            assert b"redis_version" in fresh.ask("INFO")
            assert fresh.ask("SELECT", 2) == b"OK"
            assert int(fresh.ask("GET", "id:a")) > 0
            error(fresh.ask("GET", "a"), "LOADING sidflake: the server behind is unreachable: ")
            assert s.metric("sidflake_upstream_up", protocol="redis") == 0
            redis.start()
            until("it is back", lambda: fresh.ask("SET", "a", 2) == b"OK", 5)
            redis.ask("SELECT", 2)
            with wire.Resp(("127.0.0.1", redis.port)) as d:
                assert d.ask("GET", "a") is None and d.ask("SELECT", 2) == b"OK"
                assert d.ask("GET", "a") == b"2"
        assert int(idle.ask("GET", "id:a")) > 0 and idle.ask("GET", "a") is None
        assert s.metric("sidflake_upstream_up", protocol="redis") == 1
        assert s.metric("sidflake_upstream_errors_total", protocol="redis") >= 1


@test("Redis breaks off with requests in flight: who waits for a reply is closed, as by Redis")
def broken(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as shared, s.resp() as own, s.resp() as idle:
        own.ask("SELECT", 1)
        assert idle.ask("GET", "a") is None
        os.kill(redis.popen.pid, signal.SIGSTOP)
        shared.send(wire.Resp.encode("GET", "a") * 3 + wire.Resp.encode("GET", "id:a"))
        own.send(wire.Resp.encode("GET", "a"))
        time.sleep(0.3)
        redis.kill()
        assert shared.rest() == b"" and own.rest() == b""
        assert int(idle.ask("GET", "id:a")) > 0


@test("a Redis that does not answer: closed in time, blocking commands excepted")
def slow(case):
    redis = case.redis()
    s = behind(case, redis, options={"upstream.timeout": "400ms"})
    with s.resp() as r, s.resp() as b:
        b.send(wire.Resp.encode("BLPOP", "list", 30))
        assert r.ask("GET", "a") is None
        time.sleep(1)
        assert r.ask("RPUSH", "list", "x") in (1, 0)
        assert b.reply() == [b"list", b"x"]
        os.kill(redis.popen.pid, signal.SIGSTOP)
        try:
            started = time.monotonic()
            r.send(wire.Resp.encode("GET", "a"))
            assert r.rest() == b"" and time.monotonic() - started < 5
            with s.resp() as again:
                assert int(again.ask("GET", "id:a")) > 0
        finally:
            os.kill(redis.popen.pid, signal.SIGCONT)
        with s.resp() as again:
            until("it is back", lambda: again.ask("GET", "a") is None, 5)


@test("clients that do not read harm nobody else, and cost bounded memory")
def stalled(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "big", "x" * (8 << 20))
    before = s.rss_kib()
    lazy = [s.resp() for _ in range(8)]
    for r in lazy:
        r.send(wire.Resp.encode("GET", "big") * 4)
    with s.resp() as r:
        slowest = 0
        for i in range(200):
            started = time.monotonic()
            assert r.ask("SET", "k%d" % i, i) == b"OK" and r.ask("GET", "k%d" % i) == b"%d" % i
            assert int(r.ask("GET", "id:a")) > 0
            slowest = max(slowest, time.monotonic() - started)
        assert slowest < 5, "one took %.1f s" % slowest
        grown = s.rss_kib() - before
        assert grown < (16384 if sanitized() else 8192), "grown by %d KiB" % grown
    for r in lazy:
        r.close()
    until("they are gone", lambda: s.metric("sidflake_connections", protocol="redis") == 0)
    s.assert_running()


@test("who wants no replies and goes has said all that he has said, as to Redis itself")
def says_and_goes(case):
    redis = case.redis()
    s = behind(case, redis)
    n, say = 150000, wire.Resp.encode
    data = say("CLIENT", "REPLY", "OFF") + b"".join(say("SET", "k%d" % i, "v" * 100) for i in range(n))
    for how in ("closes", "half-closes", "quits"):
        redis.ask("FLUSHALL")
        c = socket.socket(socket.AF_UNIX)
        c.settimeout(60)
        c.connect(s.resp_sock)
        c.sendall(data + (say("QUIT") if how == "quits" else b""))
        if how == "half-closes":
            c.shutdown(socket.SHUT_WR)
        if how != "closes":
            assert c.recv(99) == b"", how
        c.close()
        until("all of %d are there: who %s" % (n, how), lambda: redis.ask("DBSIZE") == n, 60)


@test("an idle client costs no connection upstream, and an idle sidecar does not wake up")
def idle(case):
    redis = case.redis()
    s = behind(case, redis)
    with s.resp() as r, s.resp() as used:
        assert r.ask("HELLO", 3) and int(r.ask("GET", "id:a")) > 0
        assert s.metric("sidflake_upstream_connections", protocol="redis") == 0
        assert used.ask("SELECT", 1) == b"OK" and used.ask("GET", "a") is None
        assert s.metric("sidflake_upstream_connections", protocol="redis") == 1
    until("it is closed with its client",
          lambda: s.metric("sidflake_upstream_connections", protocol="redis") == 0)


# ---- memcached --------------------------------------------------------------------------------


def compare_memcached(case, make, end, marker):
    direct, other = case.memcached(), case.memcached()
    s = behind(case, memcached=other)
    cut = random.Random(SEED)
    for number in range(6):
        data = make(SEED + number) + end
        want = exchange(("127.0.0.1", direct.port), data, marker)
        got = exchange(("127.0.0.1", s.mc_port), data, marker, cut)
        same(want, got, "stream %d" % number)
    s.assert_running()


@test("random streams of commands give the same bytes: memcached's text and meta commands")
def text(case):
    compare_memcached(case, lambda seed: MemcachedStream(seed).make(500),
                      b"set the_end 0 0 1\r\nx\r\nget the_end\r\n",
                      b"VALUE the_end 0 1\r\nx\r\nEND\r\n")


@test("random streams of commands give the same bytes: memcached's binary protocol")
def binary(case):
    end = b"\x80\x0a" + bytes(10) + b"\xee\xee\xee\xee" + bytes(8)
    compare_memcached(case, lambda seed: BinaryStream(seed).make(500), end,
                      b"\x81" + end[1:])


@test("memcached: IDs and other keys in one pipeline, and in one get")
def memcached_order(case):
    s = behind(case, memcached=case.memcached())
    rng = random.Random(SEED)
    issued = []
    with s.mc() as m:
        for i in range(0, 50, 2):
            assert m.ask("set k%d 0 0 3\r\nv%02d" % (i, i)) == "STORED"
        asked = []
        for _ in range(300):
            keys = [rng.choice(("id:a", "id:b#%d" % i, "k%d" % rng.randrange(50)))
                    for i in range(rng.randrange(1, 9))]
            asked.append((rng.choice(("get", "gets", "gat 0")), keys))
        m.send("".join("%s %s\r\n" % (verb, " ".join(keys)) for verb, keys in asked).encode())
        for verb, keys in asked:
            there = [k for k in keys if k.startswith("id:") or int(k[1:]) % 2 == 0]
            got = m.values()
            assert [k for k, _, _ in got] == there, "SEED=%d: expected %r, found %r" % (
                SEED, there, got)
            for k, v, cas in got:
                if k.startswith("id:"):
                    issued.append(int(v))
                    assert cas == (v if verb == "gets" else None)
                else:
                    assert v == "v%02d" % int(k[1:])
        assert m.ask("set id:a 0 0 1\r\nx") == "CLIENT_ERROR id key is read-only"
        assert int(m.ask("incr id:a 1")) > issued[-1]
    ids.check_increasing(issued)


@test("memcached down: others get SERVER_ERROR, IDs go on; it comes back by itself")
def memcached_down(case):
    server = case.memcached()
    s = behind(case, memcached=server)
    with s.mc() as m:
        assert m.ask("set a 0 0 1\r\nx") == "STORED"
        server.kill()
        for ask in ("get a", "get a id:b", "set a 0 0 5\r\n12345", "incr a 1", "mg a v"):
            assert m.ask(ask) == "SERVER_ERROR upstream unavailable"
        assert m.id() > 0 and m.ask("version").startswith("VERSION")
        assert s.metric("sidflake_upstream_up", protocol="memcached") == 0
        server.start()
        until("it is back", lambda: m.ask("set a 0 0 1\r\ny") == "STORED", 5)
        assert m.get("a") == [("a", "y", None)] and m.id() > 0


@test("memcached clients that do not read harm nobody else")
def memcached_stalled(case):
    s = behind(case, memcached=case.memcached())
    with s.mc() as m:
        for i in range(10):
            m.send(b"set big%d 0 0 1000000\r\n%s\r\n" % (i, b"x" * 1000000))
            assert m.line() == b"STORED"
        before = s.rss_kib()
        lazy = [s.mc() for _ in range(8)]
        for c in lazy:
            c.send(b"get " + b" ".join(b"big%d" % i for i in range(10)) + b"\r\n")
        for _ in range(100):
            started = time.monotonic()
            assert m.ask("set a 0 0 1\r\nx") == "STORED" and m.id() > 0
            assert time.monotonic() - started < 5
        assert s.rss_kib() - before < (16384 if sanitized() else 8192)
        for c in lazy:
            c.close()
    s.assert_running()


# ---- both -------------------------------------------------------------------------------------


@test("a value that is sent slowly outlasts upstream.timeout, and so does one that is read slowly")
def slowly(case):
    s = behind(case, case.redis(), case.memcached(), {"upstream.timeout": "300ms"})
    n = 8 << 20
    with s.resp() as r, s.mc() as m:
        r.send(b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$%d\r\n" % n)
        m.send(b"set a 0 0 %d\r\n" % 900000)
        for i in range(10):
            r.send(b"x" * (n // 8) if i < 8 else b"")
            m.send(b"y" * 90000)
            time.sleep(0.1)
        r.send(b"\r\n")
        m.send(b"\r\n")
        assert r.reply() == b"OK" and m.line() == b"STORED"
        r.send(wire.Resp.encode("GET", "a"))
        time.sleep(1)
        assert r.reply() == b"x" * n
        assert m.get("a")[0][1] == "y" * 900000


@test("a whole pipeline, megabytes of it and of replies, is sent before the first reply is read")
def pipeline_unread(case):
    redis = case.redis()
    s = case.sidecar("static:7", {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    many = 450000
    with socket.create_connection(("127.0.0.1", s.resp_port), timeout=30) as c:
        c.sendall(wire.Resp.encode("SET", "k", "v") * many)
        with c.makefile("rb") as f:
            assert f.read(5 * many) == b"+OK\r\n" * many


@test("where users are required nothing reaches the upstream before one has come")
def users(case):
    redis, server = case.redis(), case.memcached()
    hashed = case.ctl("passwd", "alice", "--upstream", "all", stdin="secret\n", expect=0).stdout
    with open(case.path("users"), "w") as f:
        f.write(hashed)
    s = behind(case, redis, server, {"auth.mode": "required", "auth.users_file": f.name},
               wait=False)
    s.wait_listening()
    with s.resp() as r:
        for c in (("GET", "a"), ("MGET", "a", "id:a"), ("NOSUCH",), ("EVAL", "return 1", 0),
                  ("MULTI",), ("SELECT", 1), ("MONITOR",), ("SUBSCRIBE", "a")):
            error(r.ask(*c), "NOAUTH", "ERR unknown command 'NOSUCH'")
        assert s.metric("sidflake_upstream_requests_total", protocol="redis") == 0
        assert r.ask("AUTH", "alice", "secret") == b"OK"
        assert r.ask("SET", "a", 1) == b"OK" and r.ask("MGET", "a", "id:a")[0] == b"1"
        assert r.ask("HELLO", 3, "AUTH", "alice", "secret")[b"proto"] == 3
        assert r.ask("SELECT", 1) == b"OK" and r.ask("GET", "a") is None
    with s.mc() as m:
        for ask in ("get a", "get a id:a", "nosuch", "stats"):
            assert m.ask(ask) == "CLIENT_ERROR unauthenticated"
        assert s.metric("sidflake_upstream_requests_total", protocol="memcached") == 0
        assert m.ask("set auth 0 0 12\r\nalice secret") == "STORED"
        assert m.ask("set a 0 0 1\r\nz") == "STORED" and m.get("a") == [("a", "z", None)]


@test("passwords are the upstream's where auth.mode is off; while it is down any will do for IDs")
def passwords(case):
    redis = case.redis(args=("--requirepass", "secret"))
    s = behind(case, redis)
    with s.resp() as r:
        error(r.ask("GET", "a"), UNSERVED)
        error(r.ask("AUTH", "wrong"), "WRONGPASS")
        error(r.ask("GET", "a"), "NOAUTH")  # its own link has the server's own words
        assert r.ask("AUTH", "secret") == b"OK" and r.ask("GET", "a") is None
    with s.resp() as r:
        assert r.ask("HELLO", 3, "AUTH", "default", "secret")[b"proto"] == 3
        assert r.ask("GET", "a") is None and int(r.ask("GET", "id:a")) > 0
    redis.kill()
    with s.resp() as r:
        assert r.ask("HELLO", 3, "AUTH", "default", "secret")[b"proto"] == 3
        assert int(r.ask("GET", "id:a")) > 0
        error(r.ask("GET", "a"), "LOADING sidflake: ")
        redis.popen = None
        redis.start()
        until("it is back", lambda: "NOAUTH" in str(r.ask("GET", "a")), 5)
        assert r.rest() == b""
