"""Random requests for a real server, the way to send them, and a server that is told what to say:
what the tests of pass-through share."""

import random
import socket
import struct
import threading

from wire import Resp

SCRIPTS = ("return redis.call('set', KEYS[1], ARGV[1])", "return {1, 'two', {3, 4}, false}",
           "return redis.error_reply('MY error')", "return redis.call('lrange', KEYS[1], 0, -1)",
           "return #ARGV", "return redis.pcall('incr', KEYS[1])", "error('bad')")


def exchange(address, data, marker, cut=None, timeout=60):
    """Sends all of data, in pieces if cut is a random.Random, and returns what comes back up to and
    with the marker."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(timeout)
        s.connect(address)

        def send():
            at = 0
            while at < len(data):
                n = cut.choice((1, 7, 100, 5000, 70000, 1 << 20)) if cut else len(data)
                try:
                    s.sendall(data[at:at + n])
                except OSError:
                    return
                at += n

        sender = threading.Thread(target=send, daemon=True)
        sender.start()
        got = bytearray()
        while not got.endswith(marker):
            piece = s.recv(1 << 18)
            if not piece:
                break
            got += piece
        sender.join(timeout)
        return bytes(got)


class Puppet:
    """A server that says what the test says, and reads what the test has it read. It answers a
    connection that begins with sidflake's probe, as shared ones do."""

    PROBES = {b"version\r\n": b"VERSION 1.6\r\n", Resp.encode("PING"): b"+PONG\r\n",
              b"\x80\x0a" + bytes(22): b"\x81\x0a" + bytes(22)}

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port = self.listener.getsockname()[1]
        self.socks = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in [self.listener, *self.socks]:
            s.close()

    def accept_soon(self):
        """TimeoutError: nobody connects just now."""
        return self.accept(0.2)

    def accept(self, timeout=10):
        self.listener.settimeout(timeout)
        s = self.listener.accept()[0]
        s.settimeout(10)
        self.socks.append(s)
        self.let_in(s)
        return s

    @classmethod
    def let_in(cls, link):
        asked = link.recv(64, socket.MSG_PEEK)
        if asked in cls.PROBES:
            link.recv(len(asked))
            link.sendall(cls.PROBES[asked])

    @staticmethod
    def hear(link, quiet=0.3):
        """All that comes until nothing does for a while."""
        got = bytearray()
        link.settimeout(quiet)
        try:
            while True:
                part = link.recv(1 << 16)
                if not part:
                    return bytes(got)
                got += part
        except TimeoutError:
            return bytes(got)
        finally:
            link.settimeout(10)


class RedisStream:
    """A stream of commands whose replies depend on nothing but those before it."""

    def __init__(self, seed, resp3=False, tag=""):
        self.rng = random.Random(seed)
        self.tag = tag  # what its keys have and no other stream's
        self.resp3 = resp3
        self.out = bytearray()
        if resp3:
            self.put("HELLO", 3, "SETNAME", "x")
            self.out = bytearray()

    def put(self, *args):
        self.out += Resp.encode(*args)

    def key(self, kind):
        return "%s%s%d" % (kind, self.tag, self.rng.randrange(6))

    def value(self):
        n = self.rng.choice((0, 1, 5, 40, 300, 3000, 20000, 80000, 200000))
        return self.rng.choice((b"v", b"\r\n", b"$5\r\n", b"\x00\xff")) * (n // 3 + 1)

    def small(self):
        return self.rng.choice(("a", "b", "", "0", "17", "-3", "2.5", "x y", "\r\n*1\r\n"))

    def string(self):
        k, r = self.key("s"), self.rng
        self.put(*r.choice((
            ("SET", k, self.value()), ("GET", k), ("GET", k), ("set", k, r.randrange(99)),
            ("INCR", k), ("INCRBY", k, r.randrange(9)), ("DECR", k), ("APPEND", k, self.small()),
            ("STRLEN", k), ("GETRANGE", k, 1, 30), ("SETNX", k, 1), ("GETSET", k, self.small()),
            ("MGET", k, self.key("s"), self.key("h"), "none"), ("EXISTS", k, self.key("l")),
            ("MSET", k, self.small(), self.key("s"), self.value()), ("DEL", k, self.key("l")),
            ("TYPE", self.key("h")), ("TTL", k), ("PERSIST", k), ("INCRBYFLOAT", k, "1.5"),
            ("SETRANGE", k, 3, "zz"), ("GETDEL", k), ("OBJECT", "ENCODING", k), ("BITCOUNT", k),
            ("COPY", k, self.key("s"), "REPLACE"), ("RENAME", k, self.key("s")), ("GETEX", k))))

    def aggregate(self):
        r = self.rng
        l, h, z, s = self.key("l"), self.key("h"), self.key("z"), self.key("S")
        self.put(*r.choice((
            ("LPUSH", l, self.small(), self.value()), ("RPOP", l), ("LPOP", l, 3),
            ("LRANGE", l, 0, -1), ("LLEN", l), ("LINDEX", l, 0), ("LPOS", l, "a"),
            ("RPUSH", l, 1, 2, 3), ("LMPOP", 2, l, self.key("l"), "LEFT", "COUNT", 2),
            ("HSET", h, self.small(), self.value()), ("HGETALL", h), ("HGET", h, "a"),
            ("HMGET", h, "a", "b"), ("HINCRBY", h, "n", 2), ("HDEL", h, "a"), ("HLEN", h),
            ("ZADD", z, r.randrange(9), self.small()), ("ZRANGE", z, 0, -1, "WITHSCORES"),
            ("ZSCORE", z, "a"), ("ZPOPMIN", z), ("ZRANK", z, "b"), ("ZADD", z, "bad", "x"),
            ("SADD", s, 1), ("SADD", s, 5, 6), ("SCARD", s), ("SISMEMBER", s, 5), ("SMEMBERS", s),
            ("SINTERCARD", 2, s, self.key("S")), ("XADD", self.key("x"), "%d-1" % len(self.out),
                                                  "f", self.small()),
            ("XRANGE", self.key("x"), "-", "+"), ("XREAD", "COUNT", 2, "STREAMS", self.key("x"), 0),
            ("SORT", l, "ALPHA"), ("BLPOP", l, "full", "0.01"), ("LMOVE", l, "full", "LEFT",
                                                                 "LEFT"))))

    def plain(self):
        """Nothing that needs a link of its own: many clients' requests share one."""
        r = self.rng
        k, l, h, small = self.key("s"), self.key("l"), self.key("h"), self.small()
        value = r.choice((b"v", b"\r\n", b"$5\r\n:1\r\n")) * r.choice((0, 1, 3, 40, 700))
        self.put(*r.choice((
            ("SET", k, value), ("GET", k), ("get", k), ("Get", k), ("SET", k, r.randrange(99)),
            ("INCR", k), ("APPEND", k, small), ("STRLEN", k), ("MGET", k, self.key("s"), "none"),
            ("MSET", k, small, self.key("s"), value), ("DEL", k, l), ("DEL", k), ("EXISTS", k, k),
            ("LPUSH", l, value), ("LPUSH", l, small, value), ("RPOP", l), ("RPOP", l, 2),
            ("LLEN", l), ("LRANGE", l, 0, 3), ("HSET", h, small, value), ("HGET", h, small),
            ("HGETALL", h), ("HSET", l, small, 1), ("TTL", k))))

    def script(self):
        r = self.rng
        self.put("EVAL", r.choice(SCRIPTS), 1, self.key("s"), self.small(), 2)

    def odd(self):
        r = self.rng
        self.put(*r.choice((
            ("NOSUCH", "a", "b"), ("GET",), ("GET", "a", "b"), ("SET", "a"), ("PING",),
            ("PING", "x"), ("ECHO", self.small()), ("SELECT", r.randrange(3)), ("SELECT", "x"),
            ("DBSIZE",), ("COMMAND", "COUNT"), ("CONFIG", "GET", "maxmemory-policy"),
            ("CLIENT", "NOSUCH"), ("FLUSHDB",), ("SCRIPT", "EXISTS", "abc"), ("TYPE", "nothing"),
            ("EVAL", "return 1"), ("OBJECT", "HELP"), ("LATENCY", "RESET"),
            ("DEBUG", "SLEEP", 0), ("CLUSTER", "INFO"), ("SWAPDB", 0, 1),
            ("KEYS", "none*"), ("PUBLISH", "ch", "m"),
            ("XINFO", "STREAM", "none"), ("WAIT", 0, 0), ("CLIENT", "SETNAME", "me"),
            ("CLIENT", "GETNAME"), ("UNWATCH",), ("DISCARD",), ("EXEC",))))

    def transaction(self):
        r = self.rng
        if r.random() < 0.3:
            self.put("WATCH", self.key("s"), self.key("h"))
        if r.random() < 0.2:
            self.put("SET", self.key("s"), 1)
        self.put("MULTI")
        for _ in range(r.randrange(5)):
            r.choice((self.string, self.aggregate, self.script))()
        if r.random() < 0.1:
            self.put("NOSUCH")
        if r.random() < 0.1:
            self.put("MULTI")
        self.put("DISCARD" if r.random() < 0.2 else "EXEC")

    def subscription(self):
        r = self.rng
        channels = r.sample(("c1", "c2", "c3"), r.randrange(1, 4))
        self.put("SUBSCRIBE", *channels)
        if r.random() < 0.5:
            self.put("PSUBSCRIBE", "p*")
        self.put("PING", "sub")
        if not self.resp3:
            self.put("GET", "s1")
        # the order in which all are left is random
        self.put("UNSUBSCRIBE", *r.choice(((), channels) if len(channels) == 1 else (channels,)))
        self.put("PUNSUBSCRIBE")

    def mute(self):
        r = self.rng
        if r.random() < 0.5:
            self.put("CLIENT", "REPLY", "OFF")
            for _ in range(r.randrange(4)):
                self.string()
            self.put("CLIENT", "REPLY", "ON")
        else:
            self.put("CLIENT", "REPLY", "SKIP")
            self.string()

    def inline(self):
        self.out += self.rng.choice((b"get s1\r\n", b'set s1 "a b"\r\n', b"  \r\n", b"*0\r\n",
                                     b"lrange l1 0 1\n"))

    def make(self, n):
        kinds = [self.string] * 8 + [self.aggregate] * 8 + [self.script, self.odd,
                                                            self.transaction, self.inline,
                                                            self.mute, self.subscription]
        for _ in range(n):
            self.rng.choice(kinds)()
        return bytes(self.out)


class MemcachedStream:
    """The same for memcached's text protocol."""

    def __init__(self, seed, tag=""):
        self.rng = random.Random(seed)
        self.tag = tag  # what its keys have and no other stream's
        self.out = bytearray()

    def line(self, text, *args):
        self.out += (text % args).encode() + b"\r\n"

    def key(self):
        return "k%s%d" % (self.tag, self.rng.randrange(8))

    def value(self):
        n = self.rng.choice((0, 1, 5, 40, 300, 3000, 20000, 80000, 200000))
        return self.rng.choice((b"v", b"\r\n", b"END\r\n", b"\x00\xff")) * (n // 3 + 1)

    def noreply(self):
        return " noreply" if self.rng.random() < 0.3 else ""

    def store(self):
        r, v = self.rng, self.value()
        verb = r.choice(("set", "set", "set", "add", "replace", "append", "prepend", "cas"))
        if r.random() < 0.02:
            v = b"x" * (3 << 20)
        self.line("%s %s %d 0 %d%s%s", verb, self.key(), r.randrange(9), len(v),
                  " %d" % r.randrange(1, 30) if verb == "cas" else "", self.noreply())
        self.out += v + (b"\r\n" if r.random() < 0.98 else b"xx")

    def retrieve(self):
        r = self.rng
        keys = " ".join(self.key() for _ in range(r.randrange(1, 6)))
        self.line("%s %s%s", r.choice(("get", "gets", "gat 0", "gats 100")), keys,
                  r.choice(("", "", " ")))

    def plain(self):
        """What nearly all requests are, and mostly gets: they go on the link that clients share."""
        r = self.rng
        v = r.choice((b"v", b"\r\n", b"END\r\n", b"VALUE k 0 1\r\n")) * r.choice((0, 1, 3, 40, 900))
        if r.random() < 0.2:
            self.line("set %s %d 0 %d", self.key(), r.randrange(9), len(v))
            self.out += v + b"\r\n"
        elif r.random() < 0.1:
            self.line(r.choice(("delete %s", "touch %s 0", "touch %s 100", "delete %s noreply")),
                      self.key())
        else:
            self.line("%s %s", r.choice(("get", "get", "get", "get", "gets")), self.key())

    def number(self):
        r = self.rng
        self.line("set n%d 0 0 2%s", r.randrange(3), self.noreply())
        self.out += b"17\r\n"
        self.line("%s n%d %d%s", r.choice(("incr", "decr")), r.randrange(4), r.randrange(30),
                  self.noreply())

    def other(self):
        r = self.rng
        self.line(r.choice((
            "delete %s", "delete %s noreply", "touch %s 0", "touch %s 100 noreply", "nosuch %s",
            "get", "version", "verbosity 0", "delete", "incr %s x", "set %s x 0 0",
            "slabs reassign", "lru tune", "cache_memlimit", "stats nosuch", "flush_all 100000",
            "mn")).replace("%s", self.key()))

    def meta(self):
        r = self.rng
        quiet = " q" if r.random() < 0.4 else ""
        kind = r.randrange(5)
        opaque = " O%d" % len(self.out)
        if kind < 2:
            self.line("mg %s%s%s%s", self.key(), r.choice(("", " v", " v f c", " k s v", " f s")),
                      opaque, quiet)
        elif kind == 2:
            v = self.value()
            self.line("ms %s %d%s%s%s", self.key(), len(v),
                      r.choice(("", " T0", " F7", " MA", " ME", " MR", " C3")), opaque, quiet)
            self.out += v + b"\r\n"
        elif kind == 3:
            self.line("md %s%s%s", self.key(), opaque, quiet)
        else:
            self.line("ma n%d%s%s%s", r.randrange(3), r.choice((" v", "", " N0 J5 v", " MD D3 v")),
                      opaque, quiet)
        if quiet and r.random() < 0.5:
            self.line("mn")

    def odd(self):
        """Words that are almost those of a request, with what may be its block."""
        r = self.rng
        # 7: the length of the blocks below, and as a time seconds: longer than a stream takes
        number = lambda: r.choice(("0", "8", "7", "7", "7", "07", "+7", "-1", "7x", "x", "", "\t7",
                                   "4294967303", "99999999999999999999", "2147483646", "noreply"))
        verb = r.choice(("set", "add", "append", "cas", "ms", "get", "gat", "touch", "incr", "delete",
                         "mg", "md", "ma", "verbosity", "SET", "nosuch", "mn", "version"))
        # memcached reads behind the end of a value that is spaces, if it is to be a number
        words = [verb, "i" + self.key() if verb in ("ma", "incr") else self.key()]
        words += [number() for _ in range(r.choice((0, 1, 2, 3, 3, 3, 4, 5)))]
        words += r.sample(("q", "v", "k", "T", "T0", "Tx", "MS", "MZ", "O1", "F3", "noreply", "E12"),
                          r.choice((0, 0, 0, 1, 1, 2)))
        line = r.choice((" ", " ", " ", "  ")).join(words)
        if r.random() < 0.15:
            at = r.choice((len(line), r.randrange(len(verb + words[1]))))  # else a block may be huge
            # behind a key of a get that is too long memcached may forget the replies before it
            line = line[:at] + r.choice(("\0", "\r", "\t", "\x7f", "\xe4", " ",
                                         " " if verb.startswith("g") else "k" * 250)) + line[at:]
        self.out += line.encode("latin-1") + r.choice((b"\r\n", b"\r\n", b"\r\n", b"\n"))
        if r.random() < 0.6:
            self.out += r.choice((b"version", b"get k0 ", b"touch k", b"END\r\nxx")) + b"\r\n"

    def make(self, n):
        kinds = [self.store] * 6 + [self.retrieve] * 6 + [self.number, self.other] + [self.meta] * 4
        for _ in range(n):
            self.rng.choice(kinds)()
        return bytes(self.out)


class BinaryStream:
    """The same for memcached's binary protocol."""

    STORES = (0x01, 0x02, 0x03, 0x11, 0x12, 0x13)  # set, add, replace and their quiet forms
    GETS = (0x00, 0x09, 0x0c, 0x0d)
    KEYED = (0x04, 0x14)  # delete
    APPENDS = (0x0e, 0x0f, 0x19, 0x1a)
    NUMBERS = (0x05, 0x06, 0x15, 0x16)

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.out = bytearray()

    def put(self, opcode, key=b"", extras=b"", value=b"", cas=0):
        self.out += struct.pack(">BBHBBHIIQ", 0x80, opcode, len(key), len(extras), 0, 0,
                                len(extras) + len(key) + len(value), len(self.out), cas)
        self.out += extras + key + value

    def one(self):
        r = self.rng
        key = b"b%d" % r.randrange(8)
        v = b"\x81\x0a\x00" * (r.choice((0, 1, 30, 3000, 70000, 200000)) // 3 + 1)
        kind = r.randrange(8)
        if kind < 3:
            self.put(r.choice(self.GETS), key)
        elif kind == 3:
            self.put(r.choice(self.STORES), key, struct.pack(">II", r.randrange(9), 0), v,
                     r.choice((0, 0, 0, 5)))
        elif kind == 4:
            self.put(r.choice(self.KEYED), key)
        elif kind == 5:
            self.put(r.choice(self.APPENDS), key, value=v)
        elif kind == 6:
            self.put(r.choice(self.NUMBERS), b"n%d" % r.randrange(3),
                     struct.pack(">QQI", r.randrange(9), 50, r.choice((0, 0xffffffff))))
        else:
            opcode = r.choice((0x0a, 0x0b, 0x7e, 0x1c, 0x1d))  # noop, version, none, touch, gat
            self.put(opcode, *((key, struct.pack(">I", 0)) if 0x1c <= opcode < 0x7e else ()))

    def make(self, n):
        for _ in range(n):
            self.one()
        return bytes(self.out)


SMALL = {"redis": (Resp.encode("GET", "small"), b"$1\r\nx\r\n"),
         "memcached": (b"get small\r\n", b"VALUE small 0 1\r\nx\r\nEND\r\n")}


def prepare_stalls(s, protocol):
    """The values that stall() asks for."""
    with (s.resp() if protocol == "redis" else s.mc()) as r:
        for key, value in (("small", "x"), ("large", "x" * 60_000)):
            if protocol == "redis":
                assert r.ask("SET", key, value) == b"OK"
            else:
                assert r.ask("set %s 0 0 %d\r\n%s" % (key, len(value), value)) == "STORED"


def stall(r, protocol):
    """Has many short replies, so that many are expected to be; then takes nothing of long ones."""
    ask, reply = SMALL[protocol]
    for _ in range(8):
        r.send(32 * ask)
        assert r.take(32 * len(reply)) == 32 * reply
    r.send(64 * ask.replace(b"$5\r\nsmall", b"$5\r\nlarge").replace(b"small", b"large"))
