"""SIGUSR2 with real servers behind: what passes through goes on, too."""

import contextlib
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time

import binary
import harness
import procs
import test_auth
import test_upgrade
import wire
from harness import until
from passthrough import prepare_stalls, stall
from runner import Skip, test
from test_upgrade import TIMES, upgrade
from test_upstream import Names


class Foreign(test_upgrade.Load):
    """Clients that mix IDs with what goes to the real servers."""

    KINDS = ("resp_mixed", "resp_merged", "mc_mixed", "mc_binary", "resp_alone", "mc_alone",
             "deep", "resp3", "multi_there")

    def __init__(self, s):
        super().__init__(s)
        self.threads += [threading.Thread(target=self.run, args=(getattr(self, k),))
                         for k in self.KINDS]
        self.foreign = [0]

    def count(self, n):
        self.foreign.append(n)

    def resp_mixed(self):
        n = 0
        with self.s.resp() as r:
            while True:
                data = b""
                for i in range(10):
                    data += r.encode("SET", "mixed", n + i) + r.encode("GET", "mixed") + \
                        r.encode("GET", "id:orders")
                r.send(data)
                values = []
                for i in range(10):
                    assert r.reply() == b"OK"
                    assert r.reply() == b"%d" % (n + i), "a reply is lost or out of order"
                    values.append(int(r.reply()))
                n += 10
                self.count(20)
                yield values

    def resp_merged(self):
        with self.s.resp(unix=True) as r:
            while True:
                got = self.timed(lambda: r.ask("MGET", "id:orders", "none", "id:orders"))
                assert got[1] is None
                self.count(1)
                yield [int(got[0]), int(got[2])]

    def mc_mixed(self):
        n = 0
        with self.s.mc() as m:
            while True:
                n += 1
                text = str(n)
                m.send(("set m 0 0 %d noreply\r\n%s\r\nget m\r\nget id:orders\r\n"
                        "get m none id:orders\r\n" % (len(text), text)).encode())
                assert [v[:2] for v in m.values()] == [("m", text)]
                first = int(m.values()[0][1])
                got = m.values()
                assert got[0][:2] == ("m", text) and len(got) == 2, got
                self.count(3)
                yield [first, int(got[1][1])]

    def mc_binary(self):
        def request(opcode, key, opaque):
            return struct.pack(">BBHBBHII8x", 0x80, opcode, len(key), 0, 0, 0, len(key), opaque) + key
        n = 0
        with self.s.mc() as m:
            while True:
                m.send(request(0, b"none", n) + request(0, b"id:orders", n + 1) +
                       request(0, b"none", n + 2))
                for i in range(3):
                    head = m.take(24)
                    body = m.take(struct.unpack(">I", head[8:12])[0])
                    assert head[12:16] == struct.pack(">I", n + i), "out of order"
                    assert (head[7] == 0) == (i == 1), head
                    if i == 1:
                        value = int(body[4:])
                n = (n + 3) % (1 << 32)
                self.count(2)
                yield [value]

    def resp_alone(self):
        n = 0
        with self.s.resp() as r:
            while True:
                n += 1
                assert self.timed(lambda: r.ask("INCR", "alone")) == n
                self.count(1)
                yield []

    def resp3(self):
        n = 0
        with self.s.resp() as r:
            r.ask("HELLO", 3)
            assert r.ask("SELECT", 3) == b"OK"
            while True:
                n += 1
                r.send(r.encode("HSET", "h", "f", n) + r.encode("HGETALL", "h") +
                       r.encode("GET", "id:orders") + r.encode("GET", "h3"))
                assert r.reply() in (0, 1) and r.reply() == {b"f": b"%d" % n}
                value = int(r.reply())
                assert r.reply() is None
                self.count(3)
                yield [value]

    def multi_there(self):
        n = 0
        with self.s.resp() as r:
            while True:
                n += 1
                assert r.ask("WATCH", "watched") == b"OK"
                assert r.ask("MULTI") == b"OK"
                assert r.ask("INCR", "watched") == b"QUEUED"
                assert r.ask("EXEC") == [n]
                self.count(4)
                yield [int(r.ask("GET", "id:orders"))]

    def deep(self):
        """Replies are pending at any time."""
        n, many = 0, 2000
        with self.s.resp(unix=True) as r:
            batch = r.encode("INCR", "deep") * many
            r.send(batch)
            while True:
                r.send(batch)
                for _ in range(many):
                    n += 1
                    assert r.line() == b":%d" % n
                self.count(many)
                yield []

    def mc_alone(self):
        with self.s.mc(unix=True) as m:
            m.send(b"set alone 0 0 1\r\n0\r\n")
            assert m.line() == b"STORED"
            n = 0
            while True:
                n += 1
                m.send(b"incr alone 1\r\n")
                assert int(self.timed(m.line)) == n
                self.count(1)
                yield []


@test("SIGUSR2 dozens of times while others pass through: nothing closed, lost or out of order",
      timeout=120)
def passing_through(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "unix://" + redis.sock,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % case.memcached().port})
    s.wait_held(2)
    with Foreign(s) as load:
        for _ in range(TIMES):
            assert 'workerIds="taken over"' in upgrade(s)
            time.sleep(random.uniform(0, 0.05))
    load.check(3000)
    assert s.log().count("upgraded in place") == TIMES
    assert "are closed" not in s.log(), "every connection is expected to be carried"
    assert max(load.slowest) < 5, "a request took %.3f s" % max(load.slowest)
    print("# longest request %.1f ms, %d foreign ones" % (
        max(load.slowest) * 1000, sum(load.foreign)), flush=True)


@test("SIGUSR2: who has a connection of his own to Redis goes on where he was")
def links(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    there, sub, sub3, watch, lost, multi, blocked, monitor, mute, named = (s.resp() for _ in range(10))
    there.ask("HELLO", 3)
    assert there.ask("SELECT", 3) == b"OK" and there.ask("SET", "k", "in 3") == b"OK"
    assert sub.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    sub3.ask("HELLO", 3)
    assert sub3.ask("SUBSCRIBE", "c") == [b"subscribe", b"c", 1]
    for r in (watch, lost):
        assert r.ask("WATCH", "w", "v" if r is lost else "u") == b"OK"
    assert multi.ask("MULTI") == b"OK" and multi.ask("SET", "m", 1) == b"QUEUED"
    blocked.send(blocked.encode("BLPOP", "queue", 0) + blocked.encode("GET", "id:orders"))
    mute.send(mute.encode("CLIENT", "REPLY", "OFF") + mute.encode("SET", "muted", 1))
    assert named.ask("CLIENT", "SETNAME", "me") == b"OK" and named.ask("SELECT", 2) == b"OK"
    until("it blocks", lambda: b"cmd=blpop" in redis.ask("CLIENT", "LIST"))
    assert monitor.ask("MONITOR") == b"OK"
    for i in range(5):
        upgrade(s)
        redis.ask("PUBLISH", "c", i)
        if i == 2:
            redis.ask("SET", "v", 1)
        assert sub.reply() == sub3.reply() == [b"message", b"c", b"%d" % i]
        assert there.ask("GET", "k") == b"in 3" and int(there.ask("GET", "id:orders")) > 0
        assert b'"PUBLISH" "c" "%d"' % i in next(iter(
            line for line in iter(monitor.line, None) if b"PUBLISH" in line))
    for r, done in ((watch, [b"OK"]), (lost, None)):
        assert r.ask("MULTI") == b"OK" and r.ask("SET", "x", 1) == b"QUEUED"
        assert r.ask("EXEC") == done
    assert multi.ask("GET", "m") == b"QUEUED" and multi.ask("EXEC") == [b"OK", b"1"]
    assert redis.ask("RPUSH", "queue", "job") == 1
    assert blocked.reply() == [b"queue", b"job"] and int(blocked.reply()) > 0
    mute.send(mute.encode("SET", "muted", 2) + mute.encode("CLIENT", "REPLY", "ON"))
    assert mute.reply() == b"OK" and mute.ask("GET", "muted") == b"2"
    assert named.ask("CLIENT", "GETNAME") == b"me" and b"db=2" in named.ask("CLIENT", "INFO")
    assert "Can't execute 'get'" in str(sub.ask("GET", "id:orders"))
    assert sub.ask("UNSUBSCRIBE", "c") == [b"unsubscribe", b"c", 0]
    assert int(sub.ask("GET", "id:orders")) > 0 and sub.ask("GET", "k") is None
    assert "are closed" not in s.log()


@test("SIGUSR2: who has sent half a value holds up nobody else, and goes on where he ends it in time")
def half_a_value(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % case.memcached().port})
    with s.mc() as half, s.mc() as late, s.mc() as mc, s.resp() as r:
        for c, seconds in ((half, 0), (late, 0.3)):
            c.send(b"set k 0 0 900000\r\n" + 500_000 * b"x")
            assert mc.ask("get none") == "END" and r.ask("GET", "none") is None
            at, longest, end = len(s.log()), 0, None
            s.popen.send_signal(signal.SIGUSR2)
            s.wait_log("upgrading in place", after=at)
            begun = time.monotonic()
            while "upgraded in place" not in s.log()[at:]:
                assert time.monotonic() - begun < 20, s.log()
                if seconds and end is None and time.monotonic() - begun > seconds:
                    c.send(400_000 * b"x" + b"\r\n")
                    end = c.line()
                asked = time.monotonic()
                assert r.ask("GET", "none") is None and mc.ask("get none") == "END"
                longest = max(longest, time.monotonic() - asked)
            assert longest < 0.6, "others waited for %.0f ms" % (1000 * longest)
            assert ("are closed" in s.log()[at:]) == (seconds == 0)
        assert half.rest() == b"" and end == b"STORED" and late.ask("get none") == "END"


def cpu_ms(s):
    """Processor time of the loop's thread."""
    with open("/proc/%d/task/%d/schedstat" % (s.pid, s.pid)) as f:
        return int(f.read().split()[0]) / 1e6


def keep_much(s, sizes):
    """Clients who have sent so much of a request, and have nothing more to say."""
    half = wire.Resp.encode("SET", "k", "x" * 64_000)
    clients = [s.resp() for _ in sizes]
    for c, n in zip(clients, sizes):
        c.send(half[:n])
    until("all is kept", lambda: s.metric("sidflake_connections_kept_bytes") >= sum(sizes))
    return clients


@test("SIGUSR2: what is kept for many is not copied again and again while somebody is waited for")
def much_is_kept(case):
    s = case.sidecar(case.pool(), {"upstream.memcached": "tcp://127.0.0.1:%d" % case.memcached().port})
    with contextlib.ExitStack() as stack:
        for c in keep_much(s, 450 * [63_000]):
            stack.enter_context(c)
        at_once = cpu_ms(s)
        upgrade(s)
        at_once = cpu_ms(s) - at_once
        half = stack.enter_context(s.mc())
        half.send(b"set k 0 0 900000\r\n" + 500_000 * b"x")
        time.sleep(0.2)
        waited = cpu_ms(s)
        upgrade(s)
        waited = cpu_ms(s) - waited
        assert "are closed number=1" in s.log()
    assert waited < 5 * at_once, "%.0f ms of the loop where nobody is waited for, %.0f else" % (
        at_once, waited)


@test("SIGUSR2: where not all that is kept goes over, who keeps little stays")
def parcel_is_full(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "limits.memory": "128MiB"})
    with contextlib.ExitStack() as stack:
        for c in keep_much(s, 1100 * [63_000] + [2 ** n for n in range(15, 5, -1) for _ in "abc"]):
            stack.enter_context(c)
        r, sub = (stack.enter_context(s.resp()) for _ in "rs")
        assert r.ask("SET", "a", "1") == b"OK" and sub.ask("SUBSCRIBE", "ch")[2] == 1
        upgrade(s)
        assert "connections that cannot be carried are closed" in s.log()
        assert r.ask("PUBLISH", "ch", "there") == 1 and sub.reply() == [b"message", b"ch", b"there"]


@test("SIGUSR2: who takes nothing on a shared connection holds up others for a moment")
def stalled(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port})
    prepare_stalls(s, "redis")
    with s.resp(unix=True) as lazy, s.resp() as r:  # a unix socket keeps little
        stall(lazy, "redis")
        time.sleep(0.1)
        at, longest = len(s.log()), 0
        s.popen.send_signal(signal.SIGUSR2)
        s.wait_log("upgrading in place", after=at)
        time.sleep(0.1)
        while "upgraded in place" not in s.log()[at:]:
            asked = time.monotonic()
            assert r.ask("GET", "small") == b"x"
            longest = max(longest, time.monotonic() - asked)
        assert longest < 0.5, "another waited for %.0f ms" % (1000 * longest)


@test("SIGUSR2: who has sent half a value to Redis goes on in his own time, not the server's")
def half_in_time(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "upstream.timeout": "500ms"})
    with s.resp() as r:
        whole = r.encode("SET", "k", "x" * 300_000)
        r.send(whole[:100_000])
        time.sleep(0.2)
        upgrade(s)
        time.sleep(2)
        r.send(whole[100_000:])
        assert r.reply() == b"OK"
    assert "was lost" not in s.log()


@test("SIGUSR2: half a reply is waited for, and another server closes the links to the one before")
def links_lost(case):
    redis = case.redis()
    other = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port})
    redis.ask("SET", "big", "x" * (16 << 20))
    with s.resp() as r, s.resp() as idle:
        r.ask("HELLO", 3)
        assert idle.ask("GET", "none") is None
        r.send(r.encode("GET", "big"))
        at = len(s.log())
        s.popen.send_signal(signal.SIGUSR2)
        s.wait_log("upgrading in place", after=at)
        time.sleep(0.05)
        assert r.line() == b"$%d" % (16 << 20) and len(r.take((16 << 20) + 2)) == (16 << 20) + 2
        s.wait_log("upgraded in place", after=at)
        assert r.ask("GET", "none") is None
        with s.resp() as lazy:
            lazy.send(lazy.encode("SELECT", 0) + lazy.encode("GET", "big") * 4)
            lazy.take(1 << 16)  # else they may come after it
            upgrade(s)
            assert len(lazy.rest()) < 64 << 20
        s.wait_log("connections that cannot be carried are closed number=1")
        s.options["upstream.redis"] = "tcp://127.0.0.1:%d" % other.port
        s.write_conf()
        upgrade(s)
        assert r.rest() == b"", "its link is to another server"
        assert idle.ask("SET", "a", 1) == b"OK" and other.ask("GET", "a") in ("1", b"1")


def behind(s, redis=None, memcached=None):
    """Servers behind come or go, with an upgrade."""
    for name, server in (("redis", redis), ("memcached", memcached)):
        s.options.pop("upstream." + name, None)
        if server:
            s.options["upstream." + name] = "tcp://127.0.0.1:%d" % server.port
    s.write_conf()
    return upgrade(s)


@test("SIGUSR2 that brings servers behind: who is in the middle of something is closed, all else uses them")
def servers_come(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool())
    s.wait_held(2)
    doing = {"queued": ("MULTI", "INCR id:orders", "GET id:orders"), "begun": ("MULTI",),
             "subscribed": ("SUBSCRIBE c",), "patterns": ("PSUBSCRIBE c*",), "watching": ("WATCH k",)}
    done = {"named": ("CLIENT SETNAME me", "SELECT 4"), "resp3": ("HELLO 3",),
            "executed": ("WATCH k", "MULTI", "INCR id:orders", "EXEC"), "unwatched": ("WATCH k", "UNWATCH"),
            "ids watched": ("WATCH id:orders",), "unsubscribed": ("SUBSCRIBE c", "UNSUBSCRIBE c")}
    clients = {}
    for name, commands in (*doing.items(), *done.items()):
        clients[name] = s.resp()
        for c in commands:
            clients[name].ask(*c.split(" "))
    text, packets = s.mc(), binary.Binary(("127.0.0.1", s.mc_port))
    assert text.get("foo") == [] and text.id() > 0 and packets.id() > 0
    redis.ask("SET", "foo", "there")
    with wire.Memcached(("127.0.0.1", memcached.port)) as m:
        m.send(b"set foo 0 0 5\r\nthere\r\n")
        assert m.line() == b"STORED"
    behind(s, redis, memcached)
    for name in doing:
        assert clients[name].rest() == b"", name
    for name in done:
        with wire.Resp(redis.sock) as r:
            r.ask("SELECT", 4 if name == "named" else 0)
            assert clients[name].ask("SET", name, 1) == b"OK" and r.ask("GET", name) == b"1", name
        assert int(clients[name].ask("GET", "id:orders")) > 0
    assert redis.ask("EXISTS", "id:orders") == 0
    assert text.get("foo")[0][1] == "there" and text.id() > 0
    assert packets.ask(binary.GET, b"foo").value == b"there" and packets.id() > 0


@test("SIGUSR2 that takes servers away: who is in the middle of something is closed, all else has IDs")
def servers_go(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    s.wait_held(2)
    doing = {"there": ("MULTI", "SET k 1"), "here": ("MULTI", "GET id:orders"), "begun": ("MULTI",),
             "subscribed": ("SUBSCRIBE c",), "watching": ("WATCH k",), "own": ("SELECT 4", "GET k")}
    clients = {}
    for name, commands in doing.items():
        clients[name] = s.resp()
        for c in commands:
            clients[name].ask(*c.split(" "))
    text, plain = s.mc(), s.resp()
    assert text.get("foo") == [] and plain.ask("GET", "foo") is None
    behind(s)
    for name in doing:
        assert clients[name].rest() == b"", name
    assert text.id() > 0 and int(plain.ask("GET", "id:orders")) > 0


@test("a name whose first address drops all that comes: the next one is tried in time, and the next program begins there")
def first_drops(case):
    if harness.sanitized():
        raise Skip("a sanitizer's library has to be the first")
    names, redis = Names(case), case.redis()
    with contextlib.ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.9", redis.port), backlog=0))
        for _ in range(8):
            c = stack.enter_context(socket.socket())
            c.setblocking(False)
            c.connect_ex(full.getsockname())
        names.are("redis.example 127.0.0.9 127.0.0.1")
        s = case.sidecar("static:7", {"upstream.redis": "tcp://redis.example:%d" % redis.port, "upstream.timeout": "6s"},
                         env=names.env)
        with s.resp() as r:
            began = time.monotonic()
            assert r.ask("SET", "k", "v") == b"OK" and 2.5 < time.monotonic() - began < 5.9
            s.wait_log('one of the addresses of the server behind lets nobody connect: trying the next '
                       'protocol=redis why="the connection timed out"')
            upgrade(s)
            began = time.monotonic()
            assert r.ask("GET", "k") == b"v" and time.monotonic() - began < 2


@test("files of passwords and of users that are written over as the next program starts are read again by that one")
def written_over(case):
    password, users = case.path("password"), case.path("users")
    for path, text in ((password, "secret\n"), (users, "ann:%s:upstream=all\n" % test_auth.CRYPT)):
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, 0o600)
    s = harness.Sidecar(case, "s", "static:7", {"upstream.redis": "tcp://127.0.0.1:1", "auth.mode": "required",
                                                "upstream.redis_password_file": password, "auth.users_file": users})
    s.write_conf()
    if harness.sanitized():
        raise Skip("a sanitizer's library has to be the first")
    library = case.path("cut_file.so")
    case.run(os.environ.get("CC") or "cc", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", library,
             os.path.join(harness.HERE, "cut_file.c"), expect=0)

    def start(path, whole, times, heir):
        def leave():
            procs.die_with_parent()
            os.dup2(test_upgrade.parcel(test_upgrade.VERSION, test_upgrade.PARCEL_TAKE, os.getpid()), 900)
        env = dict(harness.clean_env({"SIDFLAKE_PARCEL": "900"} if heir else {}), LD_PRELOAD=library,
                   CUT_FILE=path, CUT_WHOLE=str(whole), CUT_TIMES=str(times))
        p = subprocess.Popen(s.argv, env=env, stderr=subprocess.PIPE, text=True, close_fds=False,
                             preexec_fn=leave)
        said, lets_in = "", None
        for line in p.stderr:
            said += line
            if " ready " in line:
                lets_in = s.resp().ask("AUTH", "ann", "secret") == b"OK"
                p.terminate()
        return p.wait(), said, lets_in
    for times, heir, status in ((0, False, 0), (1, False, 78), (3, True, 0), (1000, True, 1)):
        code, said, _ = start(password, 0, times, heir)
        assert code == status, (times, heir, code, said)
        assert ("upstream.redis_password_file, found none" in said) == (status != 0), said
    for path in (password, users):
        for whole in range(4):
            code, said, lets_in = start(path, whole, 1, True)
            assert code == 0 and lets_in, (path, whole, code, said)
    code, said, lets_in = start(users, 0, 1000, True)
    assert code == 0 and lets_in is False, (code, said)
