"""memcached's binary protocol and meta commands for ID keys."""

import re
import time

import pylibmc

import binary
import ids
from binary import Binary
from procs import until
from runner import test

ROUNDS = 50


def binary_to(s, unix=False):
    return Binary(s.mc_sock if unix else ("127.0.0.1", s.mc_port))


@test("reads give increasing IDs, over TCP and unix sockets; the cas is the ID")
def reads(case):
    s = case.sidecar(case.pool())
    seen = []
    for unix in (False, True):
        with binary_to(s, unix) as c:
            for _ in range(ROUNDS):
                seen.append(c.id())
            for opcode in (binary.GAT, binary.GATK, binary.GETK):
                extras = b"\0\0\0\5" if opcode != binary.GETK else b""
                r = c.ask(opcode, b"id:a", extras=extras, opaque=0xdeadbeef)
                assert r.status == 0 and r.opaque == 0xdeadbeef and r.cas == int(r.value), r
                assert r.key == (b"" if opcode == binary.GAT else b"id:a"), r
                seen.append(int(r.value))
    ids.check_increasing(seen)


@test("a batch of quiet gets: hits in order, misses are silence, a noop ends it")
def batch(case):
    s = case.sidecar(case.pool())
    with binary_to(s) as c:
        keys = [b"id:%d" % i if i % 3 else b"miss%d" % i for i in range(600)]
        c.send(b"".join(binary.request(binary.GETKQ, k, opaque=i) for i, k in enumerate(keys)) +
               binary.request(binary.NOOP, opaque=77))
        found = c.replies(77)
        assert [r.key for r in found] == [k for k in keys if k.startswith(b"id:")]
        assert all(keys[r.opaque] == r.key and r.status == 0 for r in found)
        ids.check_increasing([int(r.value) for r in found])


@test("incr: the last of n contiguous IDs; other deltas are refused")
def incr(case):
    s = case.sidecar(case.pool())
    with binary_to(s) as c:
        values = []
        for n in (1, 1024, 2, 1000):
            r = c.ask(binary.INCR, b"id:a", extras=binary.delta(n))
            last = int.from_bytes(r.value, "big")
            assert r.status == 0 and r.cas == last and len(r.value) == 8, r
            values += range(last - n + 1, last + 1)
            values.append(c.id())
        ids.check_increasing(values)
        for n in (0, 1025, 2**64 - 1):
            assert c.ask(binary.INCR, b"id:a", extras=binary.delta(n)).status == binary.INVALID


@test("writes are not stored, whatever their size, and the connection goes on")
def writes(case):
    s = case.sidecar(case.pool())
    with binary_to(s) as c:
        for size in (0, 10, 1 << 20, 3 << 20):
            for opcode in (binary.SET, binary.ADD, binary.REPLACE, binary.SETQ):
                r = c.ask(opcode, b"id:a", b"\x80" * size, b"\0" * 8, opaque=size)
                assert (r.status, r.opcode, r.opaque) == (binary.NOT_STORED, opcode, size), r
            assert c.ask(0x77, b"", b"\x80" * size).status == binary.UNKNOWN
        assert c.ask(binary.DELETE, b"id:a").status == binary.NOT_FOUND
        assert c.ask(binary.FLUSH).status == binary.NOT_STORED
        assert c.ask(binary.SASL_LIST).value == b"PLAIN"
        assert c.ask(binary.SASL_AUTH, b"PLAIN", b"\0user\0secret").status == binary.OK
        assert c.ask(binary.SASL_AUTH, b"PLAIN", b"secret").status == binary.AUTH_ERROR
        c.id()


@test("no ID to be had: temporary failure after max_wait, then IDs again")
def no_id(case):
    redis = case.redis()
    s = case.sidecar(redis, {"limits.max_wait": "200ms"}, wait=False)
    s.wait_listening()
    with binary_to(s) as c, s.mc() as m:
        started = time.monotonic()
        c.send(binary.request(binary.GETKQ, b"id:a") + binary.request(binary.GETQ, b"miss") +
               binary.request(binary.NOOP, opaque=5))
        r = c.reply()
        assert r.status == binary.TEMPORARY and b"no workerId" in r.value, r
        assert time.monotonic() - started >= 0.2
        assert c.reply().opcode == binary.NOOP
        assert m.ask("mg id:a v q").startswith("SERVER_ERROR no workerId")
        case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
        s.wait_ready(30)
        c.id()


@test("meta: values, flags in their order, base64 keys, quiet misses, no ID spent without v")
def meta(case):
    s = case.sidecar(case.pool())

    def spent():
        return s.metric("sidflake_ids_issued_total")
    with s.mc() as m:
        seen = []
        for key, flags in (("id:a", ""), ("aWQ6YQ==", " b")):
            m.send(("mg %s k%s s O9 v c\r\n" % (key, flags)).encode())
            found = re.fullmatch(r"VA (\d+) k%s s\1 O9 c(\d+)" % (key + flags), m.line().decode())
            assert found, (key, flags)
            seen.append(int(m.line()))
            assert seen[-1] == int(found.group(2)) and len(str(seen[-1])) == int(found.group(1))
        m.send(b"ma id:a N0 J1 MI v D5\r\n")
        assert m.line().startswith(b"VA ")
        seen.append(int(m.line()))
        before = spent()
        assert re.fullmatch(r"HD s\d+ t-1 f0 c0", m.ask("mg id:a s t f c"))
        assert spent() == before
        # as dalli asks for several keys
        m.send(b"".join(b"mg id:%d v f k q s\r\nmg no%d v f k q s\r\n" % (i, i)
                        for i in range(500)) + b"mn\r\n")
        for i in range(500):
            assert re.fullmatch(rb"VA \d+ f0 kid:%d s\d+" % i, m.line())
            seen.append(int(m.line()))
        assert m.line() == b"MN"
        ids.check_increasing(seen)


@test("meta: writes, of any size, are swallowed and not stored")
def meta_writes(case):
    s = case.sidecar(case.pool())
    with s.mc() as m:
        for size in (0, 5, 1 << 20):
            m.send(b"ms id:a %d k O1 T0 q\r\n%s\r\n" % (size, b"\n" * size))
            assert m.line() == b"NS kid:a O1"
        assert m.ask("md id:a k") == "NF kid:a"
        assert m.ask("me id:a") == "EN"
        m.id()


@test("metrics: text, meta and binary commands under their names")
def metrics(case):
    s = case.sidecar(case.pool())
    with s.mc() as m, binary_to(s) as c:
        m.ask("mg id:a")
        m.ask("mn")
        c.id()
        c.ask(binary.NOOP)
        c.ask(binary.SASL_LIST)

        def count(command):
            return s.metric("sidflake_requests_total", protocol="memcached", command=command)
        until("all are counted", lambda: s.metrics().find(
            "sidflake_requests_total", protocol="memcached", command="sasl"))
        assert [count(x) for x in ("mg", "mn", "get", "noop", "sasl")] == [1] * 5
        row = {}
        c.send(binary.request(binary.STAT))
        while not row or r.key:
            r = c.reply()
            row[r.key] = r.value
        assert row[b"cmd_get"] == b"2" and row[b"sidflake_ready"] == b"1", row
        assert int(row[b"pid"]) == s.pid and row[b"version"] == m.stats()["version"].encode()


@test("pylibmc, binary: get, get_multi, incr, refused writes, misses")
def python_pylibmc(case):
    s = case.sidecar(case.pool())
    for where in ("127.0.0.1:%d" % s.mc_port, s.mc_sock):
        c = pylibmc.Client([where], binary=True)
        seen = []
        for _ in range(ROUNDS):
            seen.append(int(c.get("id:a")))
            seen += [int(v) for v in c.get_multi(["id:a#1", "id:b", "other"]).values()]
            seen.append(c.incr("id:a"))
        assert len(set(seen)) == 4 * ROUNDS
        assert c.get("other") is None and c.set("id:a", 1) is False and c.add("id:a", 1) is False
        assert c.delete("id:a") is False and c.touch("id:a", 10) is True
        assert int(c.get("id:a")) > max(seen)
        c.disconnect_all()


@test("libmemcached's tools, text and binary: memcping, memcstat, memccat, memctouch")
def tools(case):
    s = case.sidecar(case.pool())
    server = "--servers=127.0.0.1:%d" % s.mc_port
    case.run("memcping", server, expect=0)
    for form in ([], ["--binary"]):
        assert "sidflake_ready: 1" in case.run("memcstat", *form, server, expect=0).stdout
        lines = case.run("memccat", *form, server, "id:a", "id:b", expect=0).stdout.split()
        assert len(set(map(int, lines))) == 2, lines
        case.run("memctouch", *form, server, "id:a", expect=0)
        assert case.run("memccat", *form, server, "other").stdout.strip() == ""
