"""Pass-through: an ID key is never answered by the server behind, nor written to it, whatever the
request looks like that names it."""

import base64
import random
import re

import binary
import wire
from binary import Binary
from harness import until
from passthrough import exchange
from runner import test
from test_passthrough import SEED, behind, error
from test_upgrade import upgrade

ENCODE = wire.Resp.encode
THERE = b"4711"  # what the servers behind have under the ID key
KEYS = ["key%060d" % i for i in range(1500)]
PAIRS = [word for key in KEYS for word in (key, "v")]


def is_id(reply):
    return isinstance(reply, (bytes, int)) and len(str(int(reply))) > 10


def is_apart(r, redis, *requests):
    """The last of them is an error, which ends the connection, and the server has what it had."""
    with r:
        for q in requests[:-1]:
            r.ask(*q)
        error(r.ask(*requests[-1]), "ERR an ID key ")
        assert r.rest() == b""
    assert redis.ask("GET", "id:a") == THERE, "%r reached the server" % (requests[-1][:2],)


@test("IDs and Redis: none behind MONITOR, SYNC and REPLCONF, accepted or not")
def tunnels(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "id:a", THERE)
    redis.ask("SET", "k", "v")
    for ask in ("INCR", "id:a"), ("GET", "id:a"), ("SET", "id:a", "5"), ("MGET", "k", "id:a"), ("NEW", "id:a"):
        is_apart(s.resp(), redis, ("MONITOR",), ("RESET",), ("GET", "k"), ask)
        is_apart(s.resp(), redis, ("REPLCONF", "capa", "eof"), ask)
    with s.resp() as r:  # in a transaction nothing comes of it
        assert r.ask("MULTI") == b"OK" and r.ask("MONITOR") == b"QUEUED"
        assert isinstance(r.ask("EXEC")[0], wire.Error)
        assert is_id(r.ask("INCR", "id:a"))
    redis.ask("ACL", "SETUSER", "default", "-monitor", "-sync", "-psync")
    for word in ("MONITOR",), ("SYNC",), ("PSYNC", "?", "-1"):
        with s.resp() as r:
            error(r.ask(*word), "NOPERM ")
            assert r.ask("GET", "k") == b"v" and r.ask("PING") == b"PONG"
        is_apart(s.resp(), redis, word, ("INCR", "id:a"))
    s.assert_running()


@test("MONITOR and what comes behind it, and replicas: as without us, also across an upgrade")
def still_tunnels(case):
    redis = case.redis(args=["--repl-diskless-sync-delay", "0"])
    s = behind(case, redis)
    redis.ask("SET", "k", "v")
    with s.resp() as monitor:
        assert monitor.ask("MONITOR") == b"OK"
        redis.ask("SET", "seen", "1")
        assert b'"seen"' in monitor.line()
        monitor.send(ENCODE("RESET"))
        assert monitor.line() == b"+RESET" and monitor.ask("GET", "k") == b"v"
        assert monitor.ask("QUIT") == b"OK" and monitor.rest() == b""
    slow = case.redis(args=["--rdb-key-save-delay", "20000", "--repl-diskless-sync-delay", "0"])
    for i in range(100):
        slow.ask("SET", "k%d" % i, "v")
    away = behind(case, slow)
    with away.resp() as sync:
        sync.send(ENCODE("SYNC"))
        assert sync.take(1) == b"\n", "a sign of life, before the data"
        assert sync.line().lstrip(b"\n").startswith(b"$"), "then those"
    slow.ask("BGSAVE")  # for which it has to wait
    with away.resp() as sync:
        sync.send(ENCODE("PSYNC", "?", "-1"))
        assert sync.take(1) == b"\n", "a sign of life, before it is told from where it goes on"
        assert sync.line().lstrip(b"\n").startswith(b"+FULLRESYNC ")
    assert "upstream lost" not in away.log(), away.log()
    replica = case.redis(args=["--replicaof", "127.0.0.1 %d" % s.resp_port])
    until("the replica follows", lambda: b"master_link_status:up" in replica.ask("INFO", "replication"))
    upgrade(s)
    redis.ask("SET", "after", "2")
    until("it has what was written since", lambda: replica.ask("GET", "after") == b"2")
    assert b"sync_full:1" in redis.ask("INFO", "stats"), "it has not begun anew"


@test("requests of more than 64 KiB: no ID key goes there, in whatever piece; all else passes")
def long_requests(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "id:a", THERE)
    for asked in (("MGET", *KEYS, "id:a"), ("MSET", *PAIRS, "id:a", "5"), ("DEL", *KEYS, "id:a", *KEYS),
                  ("EVAL", "return redis.call('incr', KEYS[1500])", 1500, *KEYS[1:], "id:a"),
                  ("EVAL", "return redis.call('incr', KEYS[1]) --" + "x" * 70000, 1, "id:a"),
                  ("SORT", "list", "BY", "x" * 70000, "STORE", "id:a"),
                  ("XREAD", "STREAMS", *KEYS, "id:a", *("0" for _ in range(1501))),
                  ("BITOP", "OR", "d", *KEYS, "id:a")):
        is_apart(s.resp(), redis, asked)
    is_apart(s.resp(), redis, ("MULTI",), ("SET", "q", "1"), ("MSET", *PAIRS, "id:a", "5"))
    assert redis.ask("GET", "q") is None
    with s.resp() as r:
        assert r.ask("MSET", *PAIRS) == b"OK" and r.ask("MGET", *KEYS) == [b"v"] * len(KEYS)
        assert r.ask("DEL", *KEYS) == len(KEYS)
        assert r.ask("SET", "k", "id:a" + "v" * 1000000) == b"OK" and r.ask("STRLEN", "k") == 1000004
        assert r.ask("SADD", "s", *("id:%08d" % i for i in range(9000))) == 9000
        assert r.ask("EVAL", "return #ARGV", 1, "k", *("id:%08d" % i for i in range(9000))) == 9000
        assert r.ask("SET", "k" * 70000, "v") == b"OK" and r.ask("GET", "k" * 70000) == b"v"
        assert is_id(r.ask("GET", "id:a"))
        for more in "x", "x" * 70000:
            error(r.ask("NEWER", "id:a", more), "ERR an ID key ")
            error(r.ask("NEWER", "k", more, "id:a"), "ERR unknown command ")
    with s.resp() as r:  # the replies before are given, in their order
        r.send(ENCODE("STRLEN", "k") + ENCODE("BLPOP", "none", "0.2") + ENCODE("ECHO", "a") +
               ENCODE("MGET", *KEYS, "id:a"))
        assert r.reply() == 1000004 and r.reply() is None and r.reply() == b"a"
        error(r.reply(), "ERR an ID key ")
    # where the input's end falls anywhere within the key, and the rest comes in any pieces
    rng = random.Random(SEED)
    for filler in range(67520, 67590):
        data = ENCODE("MSET", "x", "y" * filler, "id:a", "5")
        with s.resp() as r:
            at = len(data) - rng.randrange(1, 60)
            r.send(data[:at])
            try:
                for i in range(at, len(data)):
                    r.send(data[i:i + 1])
                error(r.reply(), "ERR ")
            except ConnectionError:
                pass
    assert redis.ask("GET", "id:a") == THERE
    s.assert_running()


@test("a request of more than 64 KiB across an upgrade: its keys are still looked at")
def long_upgraded(case):
    redis = case.redis()
    s = behind(case, redis)
    redis.ask("SET", "id:a", THERE)
    for last in "other", "id:a":
        data = ENCODE("MSET", *PAIRS, last, "5")
        with s.resp() as r:
            r.send(data[:100000])
            until("it is under way", lambda: redis.ask("CLIENT", "LIST").count(b"id=") > 1)
            upgrade(s)
            r.send(data[100000:])
            if last == "other":
                assert r.reply() == b"OK"
            else:
                error(r.reply(), "ERR an ID key ")
    assert redis.ask("GET", "id:a") == THERE


IN_BASE64 = base64.b64encode(b"id:a")
# What mc_parse takes for no request, or memcached for another one, with what would be a block.
ODD = [line + b"\r\n5\r\n" for line in (
    b"add id:a 0 +1 1", b"set id:a +0 0 1", b"set id:a 0 0 4294967297", b"ms id:a 01", b"ms id:a 1 N0\r",
    b"set id:a 0 0 +1", b"set id:a 0 0 1\0", b"set id:a -0 0 1 noreply", b"cas id:a 0 0 1 +1", b"SET id:a 0 0 +1",
    b"ms " + IN_BASE64 + b" 01 b", b"ms " + IN_BASE64[:3] + b"!" + IN_BASE64[3:] + b" 1 b", b"ms id:a 1 Z\0")] + [
        line + b"\r\n" for line in (
            b"get id:a x\x01", b"get x\x7f id:a", b"gat +1 id:a", b"gats +1 k id:a", b"gets id:a\0 x",
            b"get id:a\0", b"incr id:a +1", b"decr id:a -0", b"incr id:a 1\t", b"ma id:a D01", b"ma id:a D+1 N0",
            b"mg id:a v\0", b"mg " + IN_BASE64 + b" v b\0", b"mg " + IN_BASE64 + b" v b b", b"touch id:a +1",
            b"delete id:a 1", b"ma " + IN_BASE64[:4] + b"\x7f" + IN_BASE64[4:] + b" b", b"me id:a\0",
            b"me " + IN_BASE64 + b" v b", b"md id:a T+1", b"mg " + IN_BASE64.rstrip(b"=") + b"= b v",
            b"mg aWQ6eH=B b v", b"md aWQ6eH=B b")]  # id:xp


@test("IDs and memcached: no line that either of us reads otherwise asks it for an ID, or stores one")
def odd_lines(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    end = b"set end 0 0 3\r\nend\r\nget end\r\n"
    mark = b"VALUE end 0 3\r\nend\r\nEND\r\n"
    at, there = ("127.0.0.1", s.mc_port), ("127.0.0.1", memcached.port)
    both = b"get id:a id:xp\r\n"
    for stored in b"set %s 0 0 4\r\n4711\r\n", b"delete %s\r\n":
        exchange(there, stored % b"id:a" + stored % b"id:xp" + end, mark)
        want = exchange(there, both + end, mark)
        for line in ODD:
            got = exchange(at, line + b"get id:a\r\n" + end, mark, timeout=8)
            assert not re.search(rb"(?m)^471\d\r$", got), "to %r memcached said %r" % (line, got)
            assert got.count(b"VALUE id:a 0 18\r\n") == 1, "%r: expected an ID behind it: %r" % (line, got)
            found = exchange(there, both + end, mark)
            assert found == want, "%r: memcached has %r" % (line, found)
    s.assert_running()


@test("odd lines about an ID have one answer: an error, with the block that memcached would take")
def odd_block(case):
    s = behind(case, memcached=case.memcached())
    at = ("127.0.0.1", s.mc_port)
    block = b"get k\r\n"
    for head, error_line in ((b"set id:a +0 0 %d", b"CLIENT_ERROR bad command line format\r\n"),
                             (b"ms id:a +%d", b"CLIENT_ERROR bad command line format\r\n"),
                             (b"set id:a 0 +0 %d noreply", b"")):
        data = head % len(block) + b"\r\n" + block + b"\r\nversion\r\n"
        assert exchange(at, data, b"VERSION 1.6.18\r\n") == error_line + b"VERSION 1.6.18\r\n", head


@test("IDs and memcached's binary protocol: no request stands in what memcached and we cut otherwise")
def odd_binary(case):
    memcached = case.memcached()
    s = behind(case, memcached=memcached)
    there = ("127.0.0.1", memcached.port)
    with wire.Memcached(there) as m:
        m.ask("set id:x 0 0 4\r\n4711")
    within = (binary.request(binary.GET, b"id:x") +
              binary.request(binary.SET, b"id:x", b"WRITTEN", b"\0" * 8) + binary.request(binary.NOOP))
    behind_it = binary.request(binary.SET, b"k", within, b"\0" * 8)
    for opcode in (0x50, 0xdf, 0x1f, 0x1b):
        # memcached passes its key over twice, and so the head of what is behind it
        skips = binary.request(opcode, b"z" * (len(behind_it) - len(within)))
        with Binary(("127.0.0.1", s.mc_port)) as c:
            c.send(skips + behind_it + binary.request(binary.NOOP, opaque=7))
            assert [r.status for r in c.replies(7)] == [binary.UNKNOWN, binary.OK]
    for head in (binary.HEADER.pack(0x80, 0xdf, 0, 0, 0, 0, 0xffffffff, 0, 0),
                 binary.HEADER.pack(0x80, binary.SET, 1, 8, 0, 0, 0x80000009, 0, 0) + b"\0" * 8 + b"k"):
        with Binary(("127.0.0.1", s.mc_port)) as c:
            c.send(head + within)
            assert c.reply().status == binary.INVALID and c.rest() == b""
    with wire.Memcached(there) as m:
        assert m.get("id:x")[0][1] == THERE.decode(), m.get("id:x")
