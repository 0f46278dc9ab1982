"""The memcached text protocol, byte for byte."""

import re

import ids
from runner import test


def exchange(c, sent, expected):
    """expected: a regular expression for the whole reply, one \r\n at its end left out."""
    c.send(sent)
    c.send(b"verbosity 7\r\n")  # what follows the reply
    got = b""
    while not got.endswith(b"OK\r\n"):
        got += c.line() + b"\r\n"
    got = got[:-4]
    assert re.fullmatch(expected + (b"\r\n" if expected else b""), got), \
        "%r: expected %r, found %r" % (sent, expected, got)
    return got


ID = rb"\d{15,19}"


@test("get, gets, gat, gats: values in order, a miss is silence")
def get(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        items = m.get("id:a", "plain", "id:b", "id:a")
        assert [k for k, _, _ in items] == ["id:a", "id:b", "id:a"]
        assert [cas for _, _, cas in items] == [None] * 3
        with_cas = m.get("id:a", "id:b", verb="gets")
        assert all(data == cas for _, data, cas in with_cas) and len(with_cas) == 2
        ids.check_increasing([int(d) for _, d, _ in items + with_cas])
        exchange(m, b"gat 10 id:a\r\n", rb"VALUE id:a 0 \d+\r\n" + ID + rb"\r\nEND")
        exchange(m, b"gats 10 id:a\r\n", rb"VALUE id:a 0 (\d+) (\d+)\r\n\2\r\nEND")
        exchange(m, b"get plain\r\n", b"END")
        exchange(m, b"GET id:a\r\n", rb"VALUE id:a 0 \d+\r\n" + ID + rb"\r\nEND")
        exchange(m, b"get  id:a  \n", rb"VALUE id:a 0 \d+\r\n" + ID + rb"\r\nEND")
        exchange(m, b"get id:\r\n", b"END")
        exchange(m, b"get id:" + b"n" * 200 + b"\r\n",
                 rb"VALUE id:n+ 0 \d+\r\n" + ID + rb"\r\nEND")
        exchange(m, b"get id:" + b"n" * 201 + b"\r\n", b"END")


@test("incr: one ID, or the last of n that nobody else gets")
def incr(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        values = []
        for n in (1, 2, 1000, 1024, 1, 1024):
            last = int(m.ask("incr id:a %d" % n))
            values += range(last - n + 1, last + 1)
            assert len({v >> ids.SEQUENCE_BITS for v in values[-n:]}) == 1, "not contiguous"
            values.append(m.id())
        ids.check_increasing(values)
        for bad in ("0", "1025", "-1", "x", "99999999999999999999"):
            assert m.ask("incr id:a " + bad).startswith("CLIENT_ERROR "), bad
        assert m.ask("incr plain 1") == "NOT_FOUND"


@test("writes are refused in a way that no client takes for a dead server")
def writes(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        for verb in (b"set", b"replace", b"append", b"prepend"):
            exchange(m, verb + b" id:a 0 0 5\r\nget x\r\n", b"CLIENT_ERROR id key is read-only")
        exchange(m, b"cas id:a 0 0 2 77\r\n\r\n\r\n", b"CLIENT_ERROR id key is read-only")
        exchange(m, b"add id:a 0 0 1\r\nx\r\n", b"NOT_STORED")
        exchange(m, b"set id:a 16 0 1 \r\n7\r\n", b"CLIENT_ERROR id key is read-only")
        exchange(m, b"delete id:a\r\n", b"NOT_FOUND")
        exchange(m, b"touch id:a 10\r\n", b"TOUCHED")
        exchange(m, b"decr id:a 1\r\n", b"CLIENT_ERROR [^\r]+")
        exchange(m, b"flush_all\r\n", b"CLIENT_ERROR flush_all not allowed")


@test("noreply is never answered")
def noreply(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        for line in (b"set id:a 0 0 1 noreply\r\nx\r\n", b"add id:a 0 0 1 noreply\r\nx\r\n",
                     b"delete id:a noreply\r\n", b"touch id:a 1 noreply\r\n",
                     b"incr id:a 1 noreply\r\n", b"decr id:a 1 noreply\r\n",
                     b"flush_all noreply\r\n", b"verbosity 1 noreply\r\n",
                     b"cas id:a 0 0 1 1 noreply\r\nx\r\n"):
            exchange(m, line, b"")


@test("errors: unknown commands, bad keys, long lines, HTTP")
def errors(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        exchange(m, b"frobnicate\r\n", b"ERROR")
        exchange(m, b"get\r\n", b"ERROR")
        exchange(m, b"get id:" + b"x" * 248 + b"\r\n",
                 b"CLIENT_ERROR bad command line format")
        exchange(m, b"get id:a\x01b\r\n", b"CLIENT_ERROR bad command line format")
    for sent in (b"x" * 2048, b"set " + b"k" * 3000, b"GET / HTTP/1.1\r\n", b"quit\r\n"):
        with s.mc() as m:
            try:
                m.send(sent)
            except OSError:
                pass
            assert not m.rest().startswith(b"VALUE"), sent
    with s.mc() as m:  # a get may be longer, and may have many keys
        keys = ["id:%d" % i for i in range(2000)]
        assert len(m.get(*keys)) == 2000


@test("stats, stats settings, stats conns, stats reset, version, verbosity, quit")
def stats(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        m.id()
        m.get("plain")
        st = m.stats()
        assert int(st["pid"]) == s.pid and int(st["get_hits"]) == 1 and int(st["get_misses"]) == 1
        assert re.fullmatch(r"[\d.]+", st["version"]) and int(st["curr_connections"]) >= 1
        assert any(k.startswith("sidflake_") for k in st) and st["sidflake_ready"] == "1"
        assert m.stats("settings")["maxconns"] == "4096"
        m.stats("conns")
        assert m.ask("stats reset") == "RESET"
        assert int(m.stats()["get_hits"]) == 0 and int(m.stats()["bytes_read"]) < 40
        m.id()
        assert int(m.stats()["get_hits"]) == 1
        assert re.fullmatch(r"VERSION \d+(\.\d+)*", m.ask("version"))
        m.send(b"quit\r\n")
        assert m.rest() == b""
