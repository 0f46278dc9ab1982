"""Sequences in front of a server: pipelines that mix `seq:`, `id:` and keys that pass through. Each
reply is its client's and comes in order, and the server behind hears of no `seq:` key."""

import os
import random
import socket
import threading
import time

import binary
import wire
from harness import until
from runner import test
from test_passthrough import SEED

DEFINE = ["fast --max-rate 1000000 --subs", "strict --max-rate 1000000 --order strict"]
STREAMS = int(os.environ.get("STREAMS", 6))
ENCODE = wire.Resp.encode


def front(case, **servers):
    """A sidecar before these, and the Redis that it has its numbers from."""
    pool = case.pool()
    s = case.sidecar(pool, {"sequences.define": DEFINE, "limits.max_wait": "60s",
                            **{"upstream." + k: "tcp://127.0.0.1:%d" % v.port for k, v in servers.items()}})
    s.wait_held(2)
    return s, pool


def number(reply):
    return int(reply) if isinstance(reply, (int, bytes)) else None


class Stream:
    """Requests of one client, each with what its reply must be."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.key = "k%d" % seed
        self.value = b"-1"
        self.last = {}
        self.out, self.want = [], []
        self.n = 0

    def put(self, check, *words):
        self.out.append(ENCODE(*words))
        if check:
            self.want.append((words, check))

    def is_value(self, value):
        return lambda reply: reply == value

    def rises(self, name):
        def check(reply):
            n = number(reply)
            good = n is not None and n > self.last.get(name, 0)
            self.last[name] = n
            return good
        return check

    def own(self):
        name = self.r.choice(["seq:strict", "seq:strict", "seq:fast", "seq:fast:acme", "id:x"])
        return name, self.rises(name)

    def one(self):
        name, check = self.own()
        self.put(check, self.r.choice(["GET", "INCR", "get"]), name)

    def there(self):
        if self.r.random() < 0.5:
            self.n += 1
            self.value = b"%s=%d" % (self.key.encode(), self.n)
            self.put(self.is_value(b"OK"), "SET", self.key, self.value)
        else:
            self.put(self.is_value(self.value), "GET", self.key)

    def several(self):
        words, checks = ["MGET"], []
        for _ in range(self.r.randrange(2, 8)):
            if self.r.random() < 0.5:
                words.append(self.key)
                checks.append(self.is_value(self.value))
            else:
                name, check = self.own()
                words.append(name)
                checks.append(check)
        self.put(lambda reply: isinstance(reply, list) and len(reply) == len(checks)
                 and all([c(x) for c, x in zip(checks, reply)]), *words)

    def transaction(self):
        ours, broken = self.r.random() < 0.5, False
        self.put(self.is_value(b"OK"), "MULTI")
        checks = []
        for i in range(self.r.randrange(1, 5)):
            if i > 0 and self.r.random() < 0.1:
                name, check = (self.key, None) if ours else self.own()
                broken = True
                self.put(lambda reply: isinstance(reply, wire.Error), "GET", name)
            elif ours:
                name, check = self.own()
                self.put(self.is_value(b"QUEUED"), "INCR", name)
                checks.append(check)
            else:
                self.put(self.is_value(b"QUEUED"), "GET", self.key)
                checks.append(self.is_value(self.value))
        if broken:
            self.put(lambda reply: isinstance(reply, wire.Error) and "EXECABORT" in str(reply), "EXEC")
        elif self.r.random() < 0.2:
            self.put(self.is_value(b"OK"), "DISCARD")
        else:
            self.put(lambda reply: isinstance(reply, list) and len(reply) == len(checks)
                     and all([c(x) for c, x in zip(checks, reply)]), "EXEC")

    def mute(self):
        if self.r.random() < 0.5:
            self.put(None, "CLIENT", "REPLY", "SKIP")
            self.put(None, "GET", self.own()[0])
        else:
            self.put(None, "CLIENT", "REPLY", "OFF")
            for _ in range(self.r.randrange(4)):
                self.put(None, "GET", self.r.choice([self.key, self.own()[0]]))
            self.put(self.is_value(b"OK"), "CLIENT", "REPLY", "ON")

    def hello(self):
        self.put(lambda reply: isinstance(reply, (list, dict)), "HELLO", self.r.choice("23"))

    def subscribed(self):
        self.put(self.is_value(b"OK"), "CLIENT", "SETNAME", "n")
        self.put(lambda reply: isinstance(reply, (list, dict)), "HELLO", "2")
        self.put(self.is_value([b"subscribe", b"c", 1]), "SUBSCRIBE", "c")
        self.put(lambda reply: isinstance(reply, wire.Error), "INCR", self.own()[0])
        self.put(self.is_value([b"unsubscribe", b"c", 0]), "UNSUBSCRIBE", "c")

    def refused(self):
        name = self.own()[0]
        words = self.r.choice([("MSET", self.key, "v", name, "v"), ("DEL", self.key, name), ("APPEND", name, "x"),
                               ("EVAL", "return 1", "1", name), ("RENAME", self.key, name), ("SET", name, "v"),
                               ("OBJECT", "ENCODING", name), ("NEW", name), ("INCR", "seq:"),
                               ("INCR", "seq:fast:m\xfcnchen"), ("MGET", self.key, "seq:fast:a b"),
                               ("GET", "seq:fast:\r\n+OK"), ("INCR", "seq:fast:" + 200 * "x")])
        self.put(lambda reply: isinstance(reply, wire.Error), *words)

    def make(self, n):
        self.put(self.is_value(b"OK"), "SET", self.key, self.value)
        makers = [self.one] * 8 + [self.there] * 8 + [self.several] * 5 + [self.transaction, self.mute, self.hello,
                  self.subscribed, self.refused]
        if self.r.random() < 0.5:
            makers = makers[:21]  # on the shared link from end to end
        for _ in range(n):
            self.r.choice(makers)()
        self.put(self.is_value(b"end"), "ECHO", "end")
        return b"".join(self.out)


def cut(r, data, stream):
    while data:
        n = stream.choice([1, 7, 100, 5000, 1 << 20])
        r.send(data[:n])
        data = data[n:]
        if n < 100 and stream.random() < 0.5:
            time.sleep(0.001)


def converse(s, seed):
    stream = Stream(seed)
    data = stream.make(60)
    with s.resp() as r:
        r.sock.settimeout(60)
        sender = threading.Thread(target=cut, args=(r, data, stream.r))
        sender.start()
        try:
            for i, (words, check) in enumerate(stream.want):
                reply = r.reply()
                assert check(reply), "SEED=%d: reply %d, to %r, is %r" % (seed, i, words, reply)
        finally:
            sender.join()
        assert r.silent(), "SEED=%d: more than was asked for: %r" % (seed, bytes(r.buf[:200]))


def leave(s, seed):
    """A client that goes in the midst of all that, by FIN or RST."""
    stream = Stream(seed)
    data = stream.make(30)
    r = s.resp()
    r.send(data[:stream.r.randrange(len(data))])
    if stream.r.random() < 0.5:
        r.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    time.sleep(stream.r.random() * 0.01)
    r.close()


def together(pool, jobs):
    """At once, while those who ask for strict numbers are made to wait again and again."""
    wrong = []

    def run(job):
        try:
            job()
        except Exception as e:  # whatever it is
            wrong.append(e)

    threads = [threading.Thread(target=run, args=(job,)) for job in jobs]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        pool.pause()
        time.sleep(0.05)
        pool.resume()
        time.sleep(0.05)
    if wrong:
        raise wrong[0]


class Monitor:
    """What a Redis is asked for meanwhile."""

    def __init__(self, redis):
        self.r = wire.Resp(("127.0.0.1", redis.port))
        assert self.r.ask("MONITOR") == b"OK"
        self.redis, self.seen = redis, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        self.r.sock.settimeout(60)
        line = b""
        while b"no more of this" not in line:
            line = self.r.line()
            self.seen.append(line)

    def end(self):
        self.redis.ask("ECHO", "no more of this")
        self.thread.join()
        self.r.close()
        return self.seen


@test("Redis: pipelines that mix sequences, IDs and others, with clients that go: in order, and none goes there")
def mixes(case):
    redis = case.redis()
    s, pool = front(case, redis=redis)
    monitor = Monitor(redis)
    try:
        for i in range(STREAMS):
            seed = SEED * 1000 + 20 * i
            together(pool, [lambda n=n: converse(s, n) for n in range(seed, seed + 10)]
                     + [lambda n=n: leave(s, n) for n in range(seed + 10, seed + 20)])
    finally:
        seen = monitor.end()
    leaked = [line for line in seen if b"seq:" in line or b"id:x" in line]
    assert len(seen) > 100 and not leaked, leaked[:5]
    s.assert_running()


class Text(Stream):
    """The same for memcached's text and meta commands: a check takes the connection."""

    def ask(self, check, line, data=None):
        self.out.append(line.encode() + b"\r\n" + (b"" if data is None else data + b"\r\n"))
        if check:
            self.want.append((line, check))

    def is_line(self, *starts):
        return lambda r: (line := r.line()).startswith(starts) or line

    def there(self):
        self.n += 1
        quiet = self.r.random() < 0.4
        self.value = b"%s=%d" % (self.key.encode(), self.n)
        if self.r.random() < 0.3:
            self.ask(None, "ms %s %d q" % (self.key, len(self.value)), self.value)
            self.ask(self.is_line(b"MN"), "mn")
        else:
            self.ask(None if quiet else self.is_line(b"STORED"), "set %s 0 0 %d%s" % (
                self.key, len(self.value), " noreply" if quiet else ""), self.value)

    def several(self, n=None):
        keys = [self.r.choice([self.key, self.own()[0]]) for _ in range(n or self.r.randrange(1, 9))]
        value = self.value

        def check(r):
            found = r.values()
            if [k for k, _, _ in found] != keys:
                return found
            for k, v, _ in found:
                if not (v.encode() == value if k == self.key else self.rises(k)(v.encode())):
                    return found
            return True
        self.ask(check, "%s %s" % (self.r.choice(["get", "get", "gets"]), " ".join(keys)))

    def one(self):
        name, check = self.own()
        if self.r.random() < 0.3:
            self.ask(None, "incr %s 1 noreply" % name)
        self.ask(lambda r: check(line := r.line()) or line, "incr %s 1" % name)

    def meta(self):
        name, rises = self.own()
        self.ask(self.is_line(b"MN"), "mn")
        for _ in range(self.r.randrange(1, 4)):
            value = self.value
            self.ask(lambda r, v=value: [r.line(), r.line()] == [b"VA %d" % len(v), v], "mg %s v q" % self.key)
            self.ask(self.is_line(b"MN"), "mn")
            self.ask(lambda r: (line := r.line()).startswith(b"VA") and rises(line := r.line()) or line,
                     self.r.choice(["mg %s v q", "ma %s v"]) % name)
            self.ask(None, "mg none v q")
            self.ask(None, "mg seq:none v q")
            self.ask(self.is_line(b"MN"), "mn")

    def refused(self):
        name = self.own()[0]
        line, data = self.r.choice([("incr seq:fast:m\xfcnchen 1", None), ("get %s seq:" % self.key, None),
                                    ("incr seq:fast:%s 1" % (200 * "x"), None), ("set %s 0 0 1" % name, b"x"),
                                    ("append %s 0 0 1" % name, b"x"),
                                    ("cas %s 0 0 1 5" % name, b"x"), ("delete %s" % name, None),
                                    ("decr %s 1" % name, None)])
        self.ask(self.is_line(b"CLIENT_ERROR", b"SERVER_ERROR", b"NOT_STORED", b"NOT_FOUND", b"EXISTS"), line, data)

    def make(self, n):
        self.ask(self.is_line(b"STORED"), "set %s 0 0 2" % self.key, self.value)
        makers = [self.one] * 4 + [self.there] * 6 + [self.several] * 6 + [self.refused] + [self.meta] * 2
        if self.r.random() < 0.5:
            makers = makers[:17]
        for _ in range(n):
            self.r.choice(makers)()
        self.ask(self.is_line(b"MN"), "mn")
        return b"".join(self.out)


class Packets(Stream):
    """And for its binary ones. What is quiet may have a reply or none, as the command has it."""

    def ask(self, check, opcode, *args, **kwargs):
        opaque = len(self.out) + 1
        self.out.append(binary.request(opcode, *args, opaque=opaque, **kwargs))
        if check:
            self.want.append(((opcode, args), lambda r: check(p := r.reply()) and p.opaque == opaque or p))

    def there(self):
        self.n += 1
        quiet = self.r.random() < 0.5
        self.value = b"%s=%d" % (self.key.encode(), self.n)
        self.ask(None if quiet else lambda p: p.status == 0, binary.SETQ if quiet else binary.SET,
                 self.key.encode(), self.value, b"\0" * 8)

    def several(self):
        value = self.value
        for _ in range(self.r.randrange(1, 9)):
            op = self.r.choice([binary.GET, binary.GETQ, binary.GETK, binary.GETKQ])
            if self.r.random() < 0.5:
                self.ask(lambda p: p.value == value, op, self.key.encode())
            else:
                name, rises = self.own()
                self.ask(lambda p, rises=rises: p.status == 0 and rises(p.value), op, name.encode())
            if self.r.random() < 0.3:
                self.ask(None, binary.GETQ, self.r.choice([b"none", b"seq:none"]))
        self.ask(lambda p: p.opcode == binary.NOOP, binary.NOOP)

    def one(self):
        name, rises = self.own()
        if self.r.random() < 0.3:
            self.ask(None, binary.INCRQ, name.encode(), extras=binary.delta(1))
        self.ask(lambda p: p.status == 0 and rises(int.from_bytes(p.value, "big")),
                 binary.INCR, name.encode(), extras=binary.delta(1))

    def refused(self):
        op, more = self.r.choice([(binary.SET, {"value": b"x", "extras": b"\0" * 8}), (binary.DELETE, {}),
                                  (binary.APPEND, {"value": b"x"}), (binary.DECR, {"extras": binary.delta(1)})])
        self.ask(lambda p: p.status != 0, op, self.own()[0].encode(), **more)

    def make(self, n):
        self.ask(lambda p: p.status == 0, binary.SET, self.key.encode(), self.value, b"\0" * 8)
        for _ in range(n):
            self.r.choice([self.one] * 4 + [self.there] * 6 + [self.several] * 4 + [self.refused])()
        self.ask(lambda p: p.opcode == binary.NOOP, binary.NOOP)
        return b"".join(self.out)


def converse_mc(s, kind, seed):
    stream = kind(seed)
    data = stream.make(60)
    with (binary.Binary if kind is Packets else wire.Memcached)(("127.0.0.1", s.mc_port)) as r:
        r.sock.settimeout(60)
        sender = threading.Thread(target=cut, args=(r, data, stream.r))
        sender.start()
        try:
            for i, (words, check) in enumerate(stream.want):
                found = check(r)
                assert found is True, "SEED=%d: reply %d, to %r, is %r; more: %r" % (
                    seed, i, words, found, bytes(r.buf[:100]))
        finally:
            sender.join()
        assert r.silent(), "SEED=%d: more than was asked for: %r" % (seed, bytes(r.buf[:200]))


def leave_mc(s, kind, seed):
    stream = kind(seed)
    data = stream.make(30)
    with s.mc() as r:
        r.send(data[:stream.r.randrange(len(data))])
        time.sleep(stream.r.random() * 0.01)


@test("memcached: the same in text, meta and binary, and it has none of those keys")
def mixes_memcached(case):
    memcached = case.memcached(args=["-vv"])
    s, pool = front(case, memcached=memcached)
    for i in range(STREAMS):
        seed = SEED * 1000 + 20 * i
        together(pool, [lambda n=n: converse_mc(s, (Text, Packets)[n % 2], n) for n in range(seed, seed + 10)]
                 + [lambda n=n: leave_mc(s, (Text, Packets)[n % 2], n) for n in range(seed + 10, seed + 20)])
    log = memcached.log()
    assert len(log) > 10000 and "seq:" not in log and "id:x" not in log, \
        [line for line in log.splitlines() if "seq:" in line or "id:x" in line][:5]
    s.assert_running()


@test("memcached: a get that waited and was refused leaves nothing to the next")
def given_up(case):
    memcached = case.memcached()
    s, pool = front(case, memcached=memcached)
    with s.mc() as r, s.mc() as other:
        r.sock.settimeout(60)
        assert r.ask("set k 0 0 1\r\nv") == "STORED" and r.id("seq:strict") == 1
        pool.pause()
        r.send(b"get id:a seq:strict k\r\n")
        time.sleep(0.5)
        memcached.kill()
        until("it is noticed", lambda: other.ask("get k").startswith("SERVER_ERROR"))
        pool.resume()
        assert r.line().startswith(b"SERVER_ERROR"), "it waits, then there is no server"
        memcached.start()
        until("it is back", lambda: other.ask("get k") == "END", 30, 0.2)
        assert [k for k, _, _ in r.get("id:b", "k", "id:c")] == ["id:b", "id:c"]
        assert r.ask("set k 0 0 1\r\nw") == "STORED"
        assert [k for k, _, _ in r.get("id:b", "k", "seq:strict")] == ["id:b", "k", "seq:strict"]
    s.assert_running()


@test("of several keys, some there, those are missing of which there are no more: no number is lost")
def no_more(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool(), {"sequences.define": ["few --max 4 --on-loss refuse"], "limits.max_wait": "10s",
                                   "upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    s.wait_held(2)
    with s.resp() as r, s.mc() as m:
        assert r.ask("SET", "k", "v") in (b"OK", "OK") and m.ask("set k 0 0 1\r\nw") == "STORED"
        assert r.ask("MGET", "seq:few", "k", "seq:few") == [b"1", b"v", b"2"]
        got = m.get("seq:few", "k")
        assert [(k, v) for k, v, _ in got] == [("seq:few", "3"), ("k", "w")], got
        assert r.ask("MGET", "k", "seq:few", "seq:few", "k") == [b"v", b"4", None, b"v"]
        assert r.ask("MGET", "seq:nobody-made-it", "k") == [None, b"v"]
        assert "used up" in str(r.ask("MGET", "k", "seq:few"))
        assert [k for k, _, _ in m.get("id:a", "seq:few", "k")] == ["id:a", "k"]
        assert m.ask("get k seq:few").startswith("CLIENT_ERROR used up")
        assert r.ask("GET", "k") == b"v" and m.ask("get seq:few").startswith("CLIENT_ERROR used up")


GONE = [
    [("INCR", "seq:strict")], [("GET", "k"), ("GET", "seq:strict"), ("GET", "k")],
    [("MGET", "k", "seq:strict", "id:x", "k")], [("MULTI",), ("INCR", "seq:strict"), ("INCR", "id:x"), ("EXEC",)],
    [("CLIENT", "REPLY", "OFF"), ("INCR", "seq:strict"), ("SET", "k", "v")],
    [("CLIENT", "REPLY", "SKIP"), ("INCR", "seq:strict")], [("HELLO", "3"), ("SUBSCRIBE", "c"), ("GET", "seq:strict")],
    [("WATCH", "k"), ("MULTI",), ("GET", "k"), ("EXEC",), ("GET", "seq:strict")],
    [("BLPOP", "none", "0.1"), ("LPOP", "seq:strict", "5"), ("BLPOP", "none", "0")],
]


@test("Redis: who is gone while a number is waited for, in any state, costs nobody else anything")
def gone(case):
    redis = case.redis()
    s, pool = front(case, redis=redis)
    redis.ask("SET", "k", "v")
    with s.resp() as r, s.resp() as waits:
        waits.sock.settimeout(60)
        assert waits.ask("INCR", "seq:strict") == 1 and r.ask("GET", "k") == b"v"
        before = s.metric("sidflake_connections", protocol="redis")
        pool.pause()
        left = []
        for i in range(10):
            for requests in GONE:
                left.append(s.resp())
                data = b"".join(ENCODE(*q) for q in requests)
                left[-1].send(data + (b"", ENCODE("GET", "seq:strict")[:-5], data)[i % 3])
        waits.send(ENCODE("MGET", "k", "seq:strict", "k"))
        until("all are there", lambda: s.metric("sidflake_connections", protocol="redis") == before + len(left))
        for i, c in enumerate(left):
            if i % 2:
                c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            c.close()
            assert r.ask("MGET", "k", "id:x", "k")[::2] == [b"v", b"v"]
        pool.resume()
        first, n, last = waits.reply()
        assert (first, last) == (b"v", b"v") and 1 < int(n), (first, n, last)
        assert waits.ask("INCR", "seq:strict") > int(n) and waits.silent()
        until("their places are free", lambda: s.metric("sidflake_connections", protocol="redis") == before)
    s.assert_running()
