"""Pass-through: what goes on the connection to Redis that clients share, and what odd requests do to
those who are on it: nothing."""

import os
import random
import socket
import threading
import time

import redis as redispy

import wire
from harness import until
from runner import test
from test_passthrough import SEED, behind

R = wire.Resp.encode

# Bytes in which somebody might see other requests than we do, or another number of replies.
ODD = [
    b"*2\r\n$3\r\nGET\r\n$1\r\na__",             # no CRLF behind a bulk
    b"*2\r\n$3\r\nGET__$1\r\na\r\n",
    b"*2\r\n$3\r\nGET\r\n$1\r\na\n\r",
    b"*2\r\n$3\r\nGET\r\n$1\r\na\0\0",
    b"*2\r\n$3\r\nGET\r\n$1\r\na*1",
    b"*2\r\n$3\r\nGET\r\n$1\r\na*1\r\n$4\r\nPING\r\n",
    b"*2\rX$3\rXGET\r\n$1\rXa\r\n",              # another byte for the LF
    b"*2\n$3\nGET\n$1\na\n",                     # no CR
    b"*+2\r\n$3\r\nGET\r\n$1\r\na\r\n",          # numbers that are not canonical
    b"*02\r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"* 2\r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"*2 \r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"*2\r\n$03\r\nGET\r\n$1\r\na\r\n",
    b"*2\r\n$+3\r\nGET\r\n$1\r\na\r\n",
    b"*2\r\n$-0\r\n\r\n$1\r\na\r\n",
    b"*2\r\n$3\r\nGET\r\n$-1\r\n",
    b"*2\r\n$3\r\nGET\r\n$18446744073709551617\r\na\r\n",
    b"*18446744073709551618\r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"*4294967298\r\n$3\r\nGET\r\n$1\r\na\r\n",
    b"*-1\r\n*0\r\n*-2147483649\r\n", b"*\r\n", b"*2\r\n$\r\n", b"*1\r\n$0\r\n\r\n",
    R("GET\0", "a"), R("GET", "a\0b"), R("\0"), R("GET ", "a"), R("POST", "/"), R("Host:", "x"),
    b"GET a\0b\r\n", b"SET a \"\0\"\r\n", b"GET a\rb\r\n", b"GET 'a\r\n", b"GET a\n", b"\0\r\n",
    b"PING\r\n\r\n\r\nGET a\r\n", b"GET \"a\"b\r\n",
    R("NOSUCH", "a"), R("GET"), R("GET", "a", "b"), R("SET", "a"), R("SUBSCRIBE"), R("CLIENT"),
    R("CLIENT", "REPLY", "OFF"), R("CLIENT", "REPLY", "SKIP"), R("CLIENT", "REPLY", "ODD"),
    R("CLIENT", "LIST"), R("CLIENT", "NOSUCH"), R("CLIENT", "NO-TOUCH", "ON"),
    R("MONITOR"), R("REPLCONF", "ACK", "0"), R("REPLCONF", "GETACK", "*"), R("PSYNC", "?", "-1"),
    R("SYNC"), R("HELLO", "3"), R("HELLO", "9"), R("SELECT", "1"), R("SELECT", "x"), R("AUTH", "x"),
    R("SUBSCRIBE", "a", "b"), R("UNSUBSCRIBE", "a", "b"), R("UNSUBSCRIBE"), R("PUNSUBSCRIBE"),
    R("SSUBSCRIBE", "a"), R("SUNSUBSCRIBE"), R("PSUBSCRIBE", "*"), R("PUBLISH", "a", "b"),
    R("MULTI") + R("GET", "a"), R("WATCH", "a"), R("MULTI") + R("NOSUCH") + R("EXEC"), R("EXEC"),
    R("BLPOP", "none", "1"), R("WAIT", "1", "500"), R("BLMPOP", "1", "1", "none", "LEFT"),
    R("XREAD", "BLOCK", "500", "STREAMS", "none", "$"),
    R("EVAL", "return {1,2}", "0"), R("EVAL", "return redis.call('client','reply','off')", "0"),
    R("SCRIPT", "DEBUG", "YES"), R("SCRIPT", "LOAD", "return 1"), R("FUNCTION", "LIST"),
    R("DEBUG", "PROTOCOL", "attrib"), R("CONFIG", "GET", "save"), R("QUIT"), R("RESET"),
    R("READONLY"), R("ASKING"), R("OBJECT", "HELP"), R("MEMORY", "DOCTOR"), R("LATENCY", "DOCTOR"),
    R("ZUNION", "1", "a"), R("SINTERCARD", "1", "a"), R("SORT", "none"), R("LOLWUT"), R("ROLE"),
]


class Bystanders:
    """Clients on the shared connection that know what each of their replies has to be."""

    def __init__(self, s, redis, n=3):
        self.s, self.wrong, self.asked, self.ending = s, [], 0, False
        for i in range(n):
            redis.ask("SET", "mine-%d" % i, "secret of %d" % i)
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]

    def run(self, i):
        n = 0
        try:
            with self.s.resp() as r:
                while not self.ending:
                    n += 1
                    r.send(R("GET", "mine-%d" % i) + R("STRLEN", "mine-%d" % i)
                           + R("HGET", "nobodys", n) + R("INCRBY", "count-%d" % i, 1))
                    got = [r.reply() for _ in range(4)]
                    if got != [b"secret of %d" % i, len("secret of %d" % i), None, n]:
                        self.wrong.append(got)
                        return
                    self.asked += 1
        except (OSError, wire.Closed) as e:
            self.wrong.append(e)

    def __enter__(self):
        for t in self.threads:
            t.start()
        return self

    def __exit__(self, *_):
        self.ending = True
        for t in self.threads:
            t.join(10)

    def check(self, what):
        assert not self.wrong, "SEED=%d, beside %r: %r" % (SEED, what, self.wrong)


def converse(port, data, quiet):
    """All that comes for data, until nothing has for a while; and whether it was closed then."""
    got, end = b"", time.monotonic() + 50 * quiet  # MONITOR goes on for ever
    with socket.create_connection(("127.0.0.1", port), timeout=10) as c:
        c.sendall(data)
        c.settimeout(quiet)
        try:
            while time.monotonic() < end:
                piece = c.recv(1 << 16)
                if not piece:
                    return got, True
                got += piece
        except socket.timeout:
            return got, False
        except OSError:
            return got, True
    return got, False


@test("odd requests: each beside clients on the shared connection, whose every reply is right")
def odd(case):
    redis = case.redis()
    s = behind(case, redis)
    with Bystanders(s, redis) as b:
        for data in ODD:
            for tail in (b"", R("GET", "a") * 3):
                converse(s.resp_port, data + tail, 0.02)
                b.check(data)
        before = b.asked
        time.sleep(0.2)
        assert b.asked > before, "the bystanders have come to a stop"
        b.check("nothing")
        until("what is not answered to be given up", lambda: s.metric(
            "sidflake_upstream_connections", protocol="redis") == 1, 15)
    b.check("the end")
    s.assert_running()


@test("odd requests leave the shared connection for good, and no other client takes their place")
def apart(case):
    redis = case.redis()
    s = behind(case, redis)
    # as Redis sees them: it is asked by its Unix socket, and /metrics may be a quarter of a second old
    links = lambda: redis.ask("CLIENT", "LIST").count(b" addr=127.0.0.1:")
    with s.resp() as r:
        assert r.ask("GET", "a") is None and links() == 1
        for data, n in ((b"*2\r\n$3\r\nGET\r\n$1\r\na__", 1), (b"*2\rX$3\r\nGET\r\n$1\r\na\r\n", 1),
                        (b"GET a\r\n", 1), (R("NOSUCH"), 1), (R("GET", "a", "b"), 1),
                        (R("EVAL", "return 1", 0), 1), (R("CONFIG", "GET", "save"), 1),
                        (R("PUBLISH", "a", "b"), 1), (R("OBJECT", "HELP"), 1),
                        (R("COMMAND", "COUNT"), 1), (R("KEYS", "*"), 1)):  # long for the server
            until("the links of those who have gone are closed", lambda: links() == 1)
            with s.resp() as own:
                own.send(data)
                own.reply()
                n = links()
                assert n == 2, "%r: expected a connection of its own, found %d in all" % (data, n)
                for i in range(3):
                    assert own.ask("SET", "a", i) == b"OK" and own.ask("GET", "a") == b"%d" % i
                assert own.ask("RESET") == b"RESET" and own.ask("GET", "a") == b"2"
                assert links() == 2, "%r came back to the shared connection" % data
                redis.ask("DEL", "a")
            assert r.ask("GET", "a") is None
        until("the last one's link is closed", lambda: links() == 1)
        for request in (("INFO",), ("TIME",), ("DBSIZE",), ("SCAN", 0),
                        ("SET", "a", 1), ("MGET", "a", "id:a"), ("HSET", "h", "f", "v"),
                        ("XADD", "x", "*", "f", "v"), ("SELECT", 0)):
            r.ask(*request)
            assert links() == 1, request


def requests(rng):
    key = rng.choice(("a", "b", "none", "list", "1"))
    return rng.choice((R("GET", key), R("SET", key, rng.choice(("1", "x\r\ny", ""))), R("INCR", key),
                       R("MGET", key, "b"), R("LPUSH", "list", "1"), R("LRANGE", "list", 0, 2),
                       R("ECHO", key), R("PING"), R("EXISTS", key), R("NOSUCH", key), R("STRLEN", key),
                       b"get %s\r\n" % key.encode(), b"PING\r\n", R("TYPE", key)))


def odd_stream(rng):
    """Requests of which some bytes are others, and the replies that can be told apart in the end."""
    out = bytearray(b"".join(requests(rng) for _ in range(rng.randrange(1, 5))))
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(out))
        how = rng.randrange(4)
        byte = rng.choice(b"\r\n\0$*+-0123456789 '\"aX\xff")
        if how == 0:
            out[at] = byte
        elif how == 1:
            out.insert(at, byte)
        elif how == 2:
            del out[at]
        else:
            out[at:at] = out[rng.randrange(len(out)):][:rng.randrange(1, 6)]
        if not out:
            out += b"\r\n"
    return bytes(out) + R("ECHO", "behind")


def forget(redis):
    """All but what the bystanders have there; an odd stream may have made a key of any name."""
    keys = [k for k in redis.ask("KEYS", "*") if not k.startswith((b"mine-", b"count-"))]
    if keys:
        redis.ask("DEL", *keys)


@test("random odd streams: as many replies as from Redis, and the same; bystanders see nothing",
      timeout=180)
def as_redis(case):
    direct, other = case.redis(), case.redis()
    s = behind(case, other)
    n = int(os.environ.get("STREAMS", "250"))
    with Bystanders(s, other) as b:
        for i in range(n):
            data = odd_stream(random.Random(SEED + i))
            direct.ask("FLUSHALL"), forget(other)
            want, got = (converse(port, data, 0.05) for port in (direct.port, s.resp_port))
            if want != got:  # one of them was slow, perhaps
                direct.ask("FLUSHALL"), forget(other)
                want, got = (converse(port, data, 0.5) for port in (direct.port, s.resp_port))
            # Redis looks for the end of a line up to a NUL, and waits for ever; we say what is wrong
            waits = b"\0" in data and not want[1] and got[0].startswith(want[0])
            assert want == got or waits, "SEED=%d: %r: expected %r, found %r" % (
                SEED + i, data, want, got)
            b.check(data)
    b.check("the end")


@test("a pipeline of megabytes is sent whole before the first reply is taken, also over a unix socket")
def pipeline(case):
    n, value = 20000, "x" * 100
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    s.wait_held(2)
    for where in ({"port": s.resp_port}, {"unix_socket_path": s.resp_sock}):
        client = redispy.Redis(socket_timeout=20, **where)
        for transaction in (False, True):
            several = client.pipeline(transaction)
            for i in range(n):
                several.set("k%d" % i, value)
            assert several.execute() == n * [True]
        several = client.pipeline(False)
        for i in range(n):
            several.get("k%d" % i)
            several.get("id:x")
        found = several.execute()
        assert found[::2] == n * [value.encode()] and len(set(found[1::2])) == n
        client.close()
