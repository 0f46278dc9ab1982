"""RESP2 and RESP3, as a standalone Redis 7 would answer."""

import ids
import wire
from runner import test


def error(reply, *starts):
    assert isinstance(reply, wire.Error) and str(reply).startswith(starts), \
        "expected an error that begins with %r, found %r" % (starts, reply)
    return str(reply)


@test("GET GETEX GETDEL MGET LPOP RPOP SPOP SRANDMEMBER INCR INCRBY: fresh IDs, in order")
def read(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        values = [int(r.ask(*c)) for c in (
            ("GET", "id:a"), ("get", "id:a"), ("GETEX", "id:a"), ("GETDEL", "id:a"),
            ("LPOP", "id:a"), ("RPOP", "id:a"), ("SPOP", "id:a"), ("SRANDMEMBER", "id:a"),
            ("INCR", "id:a"), ("INCRBY", "id:a", 1))]
        for verb in ("LPOP", "RPOP", "SPOP", "SRANDMEMBER"):
            got = r.ask(verb, "id:a", 1024)
            assert len(got) == 1024 and all(isinstance(v, bytes) for v in got)
            values += map(int, got)
        got = r.ask("MGET", "id:a", "plain", "id:b#1", "id:b#2")
        assert got[1] is None
        values += [int(v) for v in got if v is not None]
        last = r.ask("INCRBY", "id:a", 1024)
        values += range(last - 1023, last + 1)
        values.append(int(r.ask("GET", "id:a")))
        ids.check_increasing(values)
        assert isinstance(r.ask("INCR", "id:a"), int)
        for n in (0, -1, 1025, "x", 1 << 63):
            error(r.ask("INCRBY", "id:a", n), "ERR value is not an integer or out of range")
        assert r.ask("GET", "plain") is None and r.ask("LPOP", "plain") is None
        assert isinstance(r.ask("LPOP", "id:a", 1025), wire.Error)
        assert r.ask("GET", "__Booksleeve_TieBreak") is None


@test("a plain key is no ID for any command, and no ID is spent by looking")
def plain(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        before = s.metric("sidflake_ids_issued_total")
        assert r.ask("EXISTS", "id:a", "plain", "id:b") == 2
        assert r.ask("TYPE", "id:a") == b"string" and r.ask("TYPE", "plain") == b"none"
        assert r.ask("TTL", "id:a") == -1 and r.ask("PTTL", "plain") == -2
        assert isinstance(r.ask("DBSIZE"), int) and isinstance(r.ask("KEYS", "*"), list)
        assert len(r.ask("SCAN", 0)) == 2
        assert s.metric("sidflake_ids_issued_total") == before


@test("writes are refused, without a prefix that clients act on")
def writes(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        for c in (("SET", "id:a", 1), ("DEL", "id:a"), ("EXPIRE", "id:a", 1), ("APPEND", "id:a", 1),
                  ("LPUSH", "id:a", 1), ("DECR", "id:a"), ("HSET", "id:a", "f", 1)):
            error(r.ask(*c), "ERR id key 'id:a' is read-only")
        for c in (("FLUSHALL",), ("FLUSHDB",), ("EVAL", "return 1", 0), ("CONFIG", "SET", "x", "y"),
                  ("MONITOR",), ("SHUTDOWN",), ("SYNC",), ("DEBUG", "SLEEP", 0),
                  ("CLIENT", "TRACKING", "ON"), ("CLIENT", "CACHING", "YES")):
            error(r.ask(*c), "ERR ")
        assert r.ask("PING") == b"PONG"
        error(r.ask("CLUSTER", "NODES"), "ERR This instance has cluster support disabled")


@test("MULTI EXEC DISCARD WATCH, EXECABORT")
def multi(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        assert r.ask("WATCH", "id:a") == b"OK" and r.ask("UNWATCH") == b"OK"
        assert r.ask("MULTI") == b"OK"
        for c in (("GET", "id:a"), ("INCRBY", "id:a", 1), ("LPOP", "id:a", 3), ("GET", "plain")):
            assert r.ask(*c) == b"QUEUED"
        got = r.ask("EXEC")
        ids.check_increasing([int(got[0]), got[1], *map(int, got[2])])
        assert got[3] is None
        r.ask("MULTI")
        error(r.ask("NOSUCH"), "ERR unknown command")
        error(r.ask("EXEC"), "EXECABORT ")
        error(r.ask("EXEC"), "ERR EXEC without MULTI")
        error(r.ask("DISCARD"), "ERR DISCARD without MULTI")
        r.ask("MULTI")
        error(r.ask("MULTI"), "ERR MULTI calls can not be nested")
        assert r.ask("DISCARD") == b"OK"


@test("HELLO, AUTH, SELECT, CLIENT, INFO, CONFIG, COMMAND, ECHO, TIME, RESET, QUIT")
def session(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        assert r.ask("HELLO", 2)[:2] == [b"server", b"redis"]
        error(r.ask("HELLO", 4), "NOPROTO ")
        hello = r.ask("HELLO", 3, "SETNAME", "me")
        assert hello[b"proto"] == 3 and hello[b"mode"] == b"standalone" and \
            hello[b"role"] == b"master" and isinstance(hello[b"id"], int), hello
        assert r.ask("CLIENT", "GETNAME") == b"me" and r.ask("CLIENT", "ID") == hello[b"id"]
        assert r.ask("CLIENT", "SETINFO", "LIB-NAME", "x") == b"OK"
        r.send(r.encode("GET", "plain"))
        assert r.line() == b"_", "RESP3 has a null of its own"
        assert int(r.ask("GET", "id:a")) > 0
        info = r.ask("INFO")
        assert b"loading:0" in info and b"redis_version:7." in info
        assert isinstance(r.ask("CONFIG", "GET", "save"), dict)
        assert r.ask("SELECT", 15) == b"OK"
        error(r.ask("SELECT", 16), "ERR DB index is out of range")
        assert r.ask("ECHO", b"\0\r\n") == b"\0\r\n"
        assert abs(int(r.ask("TIME")[0]) * 1000 - ids.now_ms()) < 2000
        assert r.ask("COMMAND", "COUNT") > 10
        assert r.ask("PING", "x") == b"x"
        assert r.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
        assert r.ask("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 0]
        assert r.ask("RESET") == b"RESET"
        r.send(r.encode("GET", "plain"))
        assert r.line() == b"$-1", "RESET goes back to RESP2"
        assert r.ask("QUIT") == b"OK" and r.rest() == b""


@test("unknown commands, wrong arguments, inline commands, protocol errors: Redis's own texts")
def texts(case):
    s = case.sidecar(case.pool())
    with s.resp() as r:
        assert error(r.ask("FROB", "a", "b"), "ERR") == \
            "ERR unknown command 'FROB', with args beginning with: 'a' 'b' "
        assert error(r.ask("GET"), "ERR") == "ERR wrong number of arguments for 'get' command"
        r.send(b'get "id:a"\r\n\r\nping\n')
        assert int(r.reply()) > 0 and r.reply() == b"PONG"
    for sent, text in ((b"*1\r\nPING\r\n", b"-ERR Protocol error: expected '$', got 'P'\r\n"),
                       (b"*x\r\n", b"-ERR Protocol error: invalid multibulk length\r\n"),
                       (b"*1\r\n$x\r\n", b"-ERR Protocol error: invalid bulk length\r\n"),
                       (b'get "a\r\n', b"-ERR Protocol error: unbalanced quotes in request\r\n"),
                       (b"POST / HTTP/1.1\r\n", b""), (b"Host: x\r\n", b"")):
        with s.resp() as r:
            r.send(sent)
            assert r.rest() == text, sent
