"""What one client can cost the others: turns of the loop, slots, descriptors, memory.

Sizes are modest and limits generous: orders of magnitude are at stake, on a busy machine.
"""

import contextlib
import multiprocessing
import os
import resource
import selectors
import signal
import socket
import struct
import time
import warnings

import harness
import wire
from harness import until
from runner import Skip, test
from test_upgrade import upgrade


def conns(s, protocol="redis"):
    return s.metric("sidflake_connections", protocol=protocol)


def through(case, options=None):
    server = case.redis()
    options = dict(options or {}, **{"upstream.redis": "tcp://127.0.0.1:%d" % server.port})
    return server, case.sidecar(case.pool(), options)


# ---- attackers --------------------------------------------------------------------------------


def flood(address, n, payload, reads):
    """n connections that send payload again and again, take what comes or don't, and come again."""
    sel = selectors.DefaultSelector()

    def dial():
        c = socket.create_connection(address)
        c.setblocking(False)
        sel.register(c, selectors.EVENT_WRITE | (selectors.EVENT_READ if reads else 0), [0])

    for _ in range(n):
        dial()
    while True:
        for key, events in sel.select():
            c, at = key.fileobj, key.data
            try:
                if events & selectors.EVENT_READ and not c.recv(1 << 20):
                    raise ConnectionResetError
                if events & selectors.EVENT_WRITE:
                    at[0] = (at[0] + c.send(payload[at[0]:])) % len(payload)
            except BlockingIOError:
                pass
            except OSError:
                sel.unregister(c)
                c.close()
                time.sleep(0.01)
                dial()


class Flood:
    """Runs flood in a process of its own, which is less urgent than the sidecar."""

    def __init__(self, port, n, payload, reads=True):
        def run():
            os.nice(5)
            try:
                flood(("127.0.0.1", port), n, payload, reads)
            except OSError:
                pass  # the sidecar has ended
        self.process = multiprocessing.get_context("fork").Process(target=run, daemon=True)

    def __enter__(self):
        self.process.start()
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def longest_wait(s, seconds=2):
    """Of a client that asks for an ID, again and again, and of a probe."""
    ids, probes = [], []
    end = time.monotonic() + seconds
    with s.resp() as r:
        while time.monotonic() < end:
            begun = time.monotonic()
            assert int(r.ask("GET", "id:orders")) > 0
            ids.append(time.monotonic() - begun)
            time.sleep(0.005)
            if len(ids) % 20 == 1:
                begun = time.monotonic()
                assert s.http("/livez").status == 200
                probes.append(time.monotonic() - begun)
    return max(ids), max(probes)


# ---- turns ------------------------------------------------------------------------------------


@test("who pipelines what costs much holds up nobody: pages, COMMAND, KEYS, EXEC, stats, IDs",
      timeout=120)
def turns(case):
    s = case.sidecar(case.pool(), {"ids.names": ["orders"] + ["n%d" % i for i in range(500)],
                                   "limits.connections": 1000})
    page = b"%s HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for port, n, payload in (
            (s.http_port, 50, page % b"HEAD /" * 1000),
            (s.http_port, 4, page % b"GET /" * 1000),
            (s.http_port, 4, page % b"HEAD /metrics" * 1000),
            (s.resp_port, 50, b"COMMAND\r\n" * 5000),
            (s.resp_port, 50, b"KEYS *%s*\r\n" % (b"?" * 60) * 900),
            (s.resp_port, 20, b"MULTI\r\n" + b"KEYS *%s*\r\n" % (b"?" * 40) * 900 + b"EXEC\r\n"),
            (s.resp_port, 20, b"MGET " + b"id:orders " * 5000 + b"\r\n"),
            (s.mc_port, 50, b"stats\r\n" * 5000)):
        with Flood(port, n, payload):
            waits = longest_wait(s)
        assert max(waits) < 2, "%r by %d: %.3f s for an ID, %.3f s for /livez" % (
            payload[:40], n, *waits)


# ---- slots and times --------------------------------------------------------------------------


@test("data connections up to the limit, and HTTP connections beyond theirs, leave probes as they are")
def slots(case):
    s = case.sidecar(case.pool(), {"limits.connections": 300, "limits.http_connections": 8})
    first = s.resp()
    assert int(first.ask("GET", "id:a")) > 0
    data = [s.resp() for _ in range(299)]
    over = s.resp()
    assert "max number of clients" in str(over.reply())
    http = []
    for i in range(40):
        http.append(wire.Stream(("127.0.0.1", s.http_port)))
        if i % 2:
            http[-1].send(b"GET / HT")
        assert s.http("/livez").status == 200
    assert int(first.ask("GET", "id:a")) > 0
    assert s.metric("sidflake_connections_ended_total", protocol="http", reason="slot") >= 30
    assert conns(s, "http") <= 8 and conns(s) == 300
    with s.mc() as m:
        assert b"too many open connections" in m.rest()
    for c in data:
        c.close()


@test("limits.request_timeout: half requests, and values that do not come, end; slow ones do not")
def request_timeout(case):
    server, s = through(case, {"limits.request_timeout": "1500ms"})
    mc = s.mc()
    halves = [(s.resp(), b"*2\r\n$3\r\nGET\r\n$4\r\nid"), (s.resp(), b"PING\r\nPI"),
              (s.resp(), b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$900000\r\n" + b"v" * 200000),
              (s.mc(), b"set a 0 0 100\r\nabc"), (s.mc(), b"set a 0 0 900000\r\n" + b"v" * 200000),
              (s.mc(), b"\x80\x01\x00\x01"),
              (wire.Stream(("127.0.0.1", s.http_port)), b"GET / HTTP/1.1\r\nHost: x\r\n")]
    for c, text in halves:
        c.send(text)
    with s.resp() as slow:
        parts = 30
        slow.send(b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$%d\r\n" % (parts * 30000))
        for _ in range(parts):
            slow.send(b"v" * 30000)
            time.sleep(0.1)
        slow.send(b"\r\n")
        assert slow.reply() == b"OK"
    for c, text in halves:
        try:
            c.rest()
        except OSError:
            pass
    assert int(mc.id("id:a")) > 0  # it was silent, and is served
    until("all are gone", lambda: conns(s) == 0 and conns(s, "memcached") == 1)


@test("limits.login_timeout: the time that a password's check takes is not the client's")
def checked(case):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import crypt
    with open(case.path("users"), "w") as f:
        f.write("bob:%s\n" % crypt.crypt("secret", "$5$rounds=1000000$saltsalt"))
    s = case.sidecar("static:7", {"auth.mode": "required", "auth.users_file": case.path("users"),
                                  "limits.login_timeout": "50ms"})
    with s.resp() as r:
        assert r.ask("AUTH", "bob", "secret") == b"OK"
    with s.resp() as r:
        assert r.rest() == b""  # who says nothing


@test("few descriptors: clients take none of the coordinator's, of probes' or of IDs'")
def few_descriptors(case):
    import test_limits
    for options in ({}, {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port}):
        s = test_limits.Limited(case, case.pool().url, 60, options)
        s.start()
        s.wait_held(2)
        s.wait_log("fewer file descriptors than limits.connections needs.*connections=")
        clients = []
        for _ in range(150):
            clients.append(s.resp())
            clients[-1].send(b"SELECT 1\r\nGET id:a\r\n" if options else b"GET id:a\r\n")
        probes = [wire.Stream(("127.0.0.1", s.http_port)) for _ in range(30)]
        before = s.metric("sidflake_renewals_total", result="renewed")
        until("renewals go on",
              lambda: s.metric("sidflake_renewals_total", result="renewed") > before + 1, 15)
        assert s.metric("sidflake_renewals_total", result="failed") == 0
        assert s.ready_status() == 200 and s.fds() < 60
        for c in clients + probes:
            c.close()
        until("there is room again", lambda: conns(s) == 0)
        assert s.id() > 0
        assert s.stop() == 0


@test("many clients: the kernel's table of descriptors need not grow while they come")
def descriptors_table(case):
    def size():
        with open("/proc/%d/status" % s.pid) as f:
            return next(int(line.split()[1]) for line in f if line.startswith("FDSize"))

    s = case.sidecar(case.pool(), {"limits.connections": 2000})
    before = size()
    assert before > 2000, before
    s.popen.send_signal(signal.SIGUSR2)
    s.wait_log("upgraded in place")
    assert size() == before


# ---- memory -----------------------------------------------------------------------------------


def resident(s, what="VmRSS"):
    """MiB."""
    with open("/proc/%d/status" % s.pid) as f:
        return next(int(line.split()[1]) / 1024 for line in f if line.startswith(what))


HOLD = {
    "slow readers of the page": ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 100),
    "half a request": ("redis", b"*2\r\n$3\r\nGET\r\n$66000\r\n" + b"x" * 65000),
    "half a get": ("memcached", b"get " + b"x " * 32000),
    "transactions": ("redis", b"MULTI\r\n" + (b"SET k " + b"v" * 600 + b"\r\n") * 100),
    "replies not taken": ("redis", b"COMMAND\r\n" * 2000),
}


@test("limits.memory: a crowd that holds what it can, and who is served meanwhile; it is given back",
      timeout=180)
def memory(case):
    n = 400
    s = case.sidecar(case.pool(), {"limits.memory": "8MiB"})
    ports = {"http": s.http_port, "redis": s.resp_port, "memcached": s.mc_port}
    bound = 1000 if harness.sanitized() else 24
    before = resident(s)
    for name, (protocol, payload) in HOLD.items():
        crowd = []
        with s.resp() as r:
            for i in range(n):
                c = socket.create_connection(("127.0.0.1", ports[protocol]))
                c.setblocking(False)
                crowd.append(c)
                for _ in range(8):
                    try:
                        c.send(payload)
                    except OSError:
                        break
                if i % 20 == 0:
                    assert int(r.ask("GET", "id:a")) > 0
                    assert s.http("/livez").status == 200
            assert s.metric("sidflake_connections_kept_bytes") <= 9 << 20, name
            assert resident(s) < bound, "%s: %.1f MiB" % (name, resident(s))
            assert int(r.ask("GET", "id:a")) > 0
        for c in crowd:
            c.close()
        if not harness.sanitized():
            until("%s: given back, from %.1f MiB at most" % (name, resident(s, "VmHWM")),
                  lambda: resident(s) < before + 3, 20)
    assert s.metric("sidflake_connections_ended_total", protocol="redis", reason="memory") > 100
    s.wait_log("limits.memory is reached: connections that keep most are closed .* peer=127.0.0.1:")
    assert s.log().count("limits.memory is reached") < 20


# ---- gone -------------------------------------------------------------------------------------


@test("a client that goes while it waits for a blocked command is noticed, whatever it sent behind")
def gone_blocked(case):
    server, s = through(case)
    for words in (b"BLPOP k 0\r\nPING\r\n", b"BLPOP k 0\r\nGET id:a\r\nPING\r\n" * 3,
                  b"BLPOP k 0\r\n", b"BLPOP k 0\r\nSUBSCRIBE c\r\nPING\r\n"):
        clients = [s.resp() for _ in range(20)]
        for c in clients:
            c.send(words)
        until("all wait", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == 20)
        for c in clients[:10]:
            c.close()
        for c in clients[10:]:
            c.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            c.close()
        until("none is left, here", lambda: conns(s) == 0)
        until("nor there", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == 0)


def behind(n):
    """n requests of 1 KB each, and what is answered to them."""
    return (b"".join(wire.Resp.encode("ECHO", b"%d-%01000d" % (i, i)) for i in range(n)),
            [b"%d-%01000d" % (i, i) for i in range(n)])


@test("a client that goes is noticed behind more than a socket holds")
def gone_behind_much(case):
    server, s = through(case)
    much = behind(700)[0]
    for _ in range(5):
        c = s.resp()
        c.send(b"BLPOP k 0\r\n")
        until("it waits", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") > 0)
        c.send(much)
        c.close()
    until("none is left, here", lambda: conns(s) == 0)
    until("nor there", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == 0)


@test("who wants no replies and goes leaves nothing that takes all IDs for minutes")
def gone_untold(case):
    _, s = through(case)
    incrq = struct.pack(">BBHBBHIIQQQI", 0x80, 0x15, 4, 20, 0, 0, 24, 0, 0, 1024, 0, 0) + b"id:a"
    encode = wire.Resp.encode
    for protocol, dial, first, again in (
            ("memcached", s.mc, b"", b"incr id:a 1024 noreply\r\n"),
            ("memcached", s.mc, b"", b"ma id:a q D1024\r\n"),
            ("memcached", s.mc, b"", incrq),
            ("redis", s.resp, encode("CLIENT", "REPLY", "OFF"), encode("INCRBY", "id:a", "1024")),
            ("redis", s.resp, encode("CLIENT", "REPLY", "OFF"), encode("LPOP", "id:a", "1024"))):
        with dial() as c:
            c.send(first + 20000 * again)  # 20 s of IDs, of which nobody is told
        until("the %s client of %r is gone" % (protocol, again[:20]), lambda: conns(s, protocol) == 0, 10)


@test("many who are blocked and send much then cost others neither time nor memory")
def much_of_many(case):
    server, s = through(case)
    much, clients = behind(900)[0], [s.resp() for _ in range(150)]
    before = resident(s)
    for c in clients:
        c.send(b"BLPOP k 0\r\n")
    until("all wait", lambda: server.ask("CLIENT", "LIST").count(b"cmd=blpop") == len(clients))
    for c in clients:
        c.sock.setblocking(False)
        try:
            c.sock.send(much)
        except BlockingIOError:
            pass
    longest, end = 0, time.monotonic() + 4
    with s.resp() as good:
        while time.monotonic() < end:
            at = time.monotonic()
            assert int(good.ask("GET", "id:a")) > 0
            longest = max(longest, time.monotonic() - at)
    print("# longest %.1f ms, resident %.1f MiB, %.1f before" % (longest * 1e3, resident(s, "VmHWM"), before))
    assert s.metric("sidflake_connections_kept_bytes") <= 32 << 20
    assert s.metric("sidflake_connections_ended_total", protocol="redis", reason="memory") == 0
    if not harness.sanitized():
        assert resident(s, "VmHWM") < before + 48, resident(s, "VmHWM")
    for c in clients:
        c.close()
    until("none is left", lambda: conns(s) == 0, 60)


@test("what a client sends behind a blocked command is answered in its order, over an upgrade, too", timeout=120)
def much_behind(case):
    server, s = through(case)
    much, expected = behind(900)
    for upgrades in (0, 1):
        with s.resp() as r:
            r.send(b"GET a\r\nBLPOP k 0\r\n")
            assert r.reply() is None
            r.send(much)
            until("most of it is read", lambda: s.metric("sidflake_connections_kept_bytes") > len(much) * 3 // 4, 30)
            if upgrades:
                upgrade(s)
            assert server.ask("RPUSH", "k", "v") == 1
            assert r.reply() == [b"k", b"v"]
            assert [r.reply() for _ in expected] == expected
            assert r.ask("PING") == b"PONG"


@test("a client that has shut its own side gets its replies")
def half_closed(case):
    server, s = through(case)
    with s.resp() as r:
        r.send(b"SET a 1\r\nPING\r\nGET a\r\nGET id:a\r\nPING\r\nGET a\r\n")
        r.sock.shutdown(socket.SHUT_WR)
        assert r.reply() == b"OK" and r.reply() == b"PONG" and r.reply() == b"1"
        assert int(r.reply()) > 0 and r.reply() == b"PONG" and r.reply() == b"1"
        assert r.rest() == b""
    with s.resp() as r:  # as a real server ends it: what it could answer is answered
        r.send(b"GET a\r\nBLPOP k 0\r\nPING\r\n")
        r.sock.shutdown(socket.SHUT_WR)
        assert r.reply() == b"1" and r.rest() == b""


# ---- sequences --------------------------------------------------------------------------------


@test("who pipelines very many in a row, or more than there are, takes no sequence from others", timeout=180)
def many_in_a_row(case):
    define = ["good --on-loss refuse", "few --on-loss refuse --max 100000"]
    define += ["s" + d + " --order strict" for d in define]
    s = case.sidecar(case.pool(), {"sequences.define": define, "limits.max_wait": "5s"})
    s.wait_held(2)
    for name, many in (("good", 100000), ("sgood", 100000), ("sgood", 1000000), ("few", 999999), ("sfew", 999999)):
        with Flood(s.resp_port, 3, wire.Resp.encode("INCRBY", "seq:" + name, many) * 1000), s.resp() as r:
            replies = [r.ask(*words) for _ in range(8) for words in (
                ("INCR", "seq:" + name), ("INCRBY", "seq:" + name, 50), ("LPOP", "seq:" + name, 5))]
        assert not [x for x in replies if isinstance(x, wire.Error)], (name, replies)
    assert s.log().count("sequence refused") <= 2, "what one client wants too much of is not the max"


@test("a flood of names that nobody made takes no place, no number and no line from others", timeout=120)
def unmade(case):
    names = ["a%d" % i for i in range(6)]
    define = [name + " --on-loss refuse" for name in names + ["t --subs"]]
    s = case.sidecar(case.pool(), {"sequences.define": define, "sequences.counters": "16",
                                   "limits.max_wait": "5s"})
    s.wait_held(2)
    given = ["seq:" + name for name in names] + ["seq:t:%d" % i for i in range(4)]
    unmade = ["seq:x%d" % i for i in range(3000)]
    flood = b"".join(wire.Resp.encode("INCR", name) for name in unmade)
    with s.resp() as r:
        assert [r.ask("INCR", name) for name in given] == [1] * len(given)
        before, begun = resident(s), time.monotonic()
        with Flood(s.resp_port, 20, flood), Flood(s.mc_port, 5, ("get %s\r\n" % " ".join(unmade[:200])).encode()):
            for n in range(2, 40):
                assert [r.ask("INCR", name) for name in given] == [n] * len(given), n
                time.sleep(0.05)
            assert r.ask("INCR", "seq:t:new") == 1, "who is new has a place all the same"
        took = time.monotonic() - begun
        assert s.metric("sidflake_sequence_takes_total", outcome="unknown") > 50
        assert s.metric("sidflake_sequence_evicted_total") == 0
        assert s.metric("sidflake_sequence_places") <= 16
        for shown in (s.http("/metrics").text, s.http("/v1/status").text, r.ask("INFO", "sequences").decode()):
            assert "x1" not in shown
    assert s.log().count("unknown sequence") <= took + 2
    assert resident(s) < before + 8 or harness.sanitized(), (resident(s), before)


# ---- descriptors that come along ----------------------------------------------------------------


def lingering(seconds, keep):
    """A socket whose last close waits: it has sent what its peer does not read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        c = socket.create_connection(server.getsockname())
        keep.append(server.accept()[0])
    c.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            c.send(bytes(1 << 16))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
    return c


def old_kernel(case):
    """The environment in which a sidecar's kernel does not refuse them."""
    if harness.sanitized():
        raise Skip("a sanitizer's library has to be the first")
    library = case.path("old_kernel.so")
    case.run(os.environ.get("CC") or "cc", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC",
             "-o", library, os.path.join(harness.HERE, "old_kernel.c"), expect=0)
    return {"LD_PRELOAD": library}


@test("a descriptor that comes along, and whose last close would wait, holds up nobody")
def descriptors_along(case):
    for env in [{}] if harness.sanitized() else [{}, old_kernel(case)]:
        s = harness.Sidecar(case, "old" if env else "s", "static:7", env=env).start()
        seconds, keep = 20, []
        u = socket.socket(socket.AF_UNIX)
        u.connect(s.resp_sock)
        refused = False
        with s.resp() as r, lingering(seconds, keep) as c:
            try:
                socket.send_fds(u, [b"PING\r\n"], [c.fileno()])
            except PermissionError:
                refused = True
            c.close()
            began = time.monotonic()
            if not refused:
                u.settimeout(seconds / 2)
                assert u.recv(100) == b""
            assert int(r.ask("GET", "id:orders")) > 0
            assert time.monotonic() - began < seconds / 2
            assert not (refused and env)
            if refused:
                continue
        with s.resp() as r, s.resp(unix=True) as deaf, lingering(seconds, keep) as c:
            deaf.send(wire.Resp.encode("LPOP", "id:x", 1024) * 100)
            time.sleep(0.5)  # it is not read from any more
            socket.send_fds(deaf.sock, [b"PING\r\n"], [c.fileno()])
            c.close()
            began = time.monotonic()
            deaf.close()
            until("it is gone", lambda: conns(s) == 1)
            assert int(r.ask("GET", "id:orders")) > 0
            assert time.monotonic() - began < seconds / 2


@test("descriptors for which a full sidecar has no room, and that would wait, hold up nobody")
def descriptors_without_room(case):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    if hard < 2000:
        raise Skip("2000 descriptors are needed, RLIMIT_NOFILE gives %d" % hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    s = harness.Sidecar(case, "s", "static:7", env=old_kernel(case))
    s.argv = ["prlimit", "--nofile=1024:1024"] + s.argv
    s.start()
    with contextlib.ExitStack() as all_of_them, s.resp() as r:
        held = [all_of_them.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(1000)]
        for u in held:
            u.connect(s.resp_sock)
        until("all places are taken", lambda: "limits.connections is reached" in s.log())
        keep = []
        along = [lingering(20, keep) for _ in range(253)]
        for u in held:
            with contextlib.suppress(BrokenPipeError):  # it made room
                socket.send_fds(u, [b"PING\r\n"], [c.fileno() for c in along])
                break
        began = time.monotonic()
        for c in along:
            c.close()
        assert s.http("/livez").status == 200
        assert time.monotonic() - began < 10


@test("an upgrade does not wait for descriptors that are unread on connections that it gives up")
def descriptors_at_an_upgrade(case):
    redis = case.redis()
    s = harness.Sidecar(case, "s", "static:7", {
        "upstream.redis": "tcp://127.0.0.1:%d" % redis.port}, env=old_kernel(case)).start()
    encode = wire.Resp.encode
    keep = []
    with s.resp() as good, s.resp(unix=True) as amid, s.resp(unix=True) as barred:
        assert good.ask("SET", "large", "x" * 8000000) == b"OK"
        amid.send(encode("SELECT", 0) + encode("GET", "large"))  # and does not take it
        barred.send(encode("BLPOP", "none", 0) + encode("PING"))  # its listener will be gone
        time.sleep(0.5)
        for c in (amid, barred):
            with lingering(20, keep) as along:
                socket.send_fds(c.sock, [b"PING\r\n"], [along.fileno()])
        s.options["listen.redis"] = s.options["listen.redis"][:1]
        s.write_conf()
        began = time.monotonic()
        s.send(signal.SIGUSR2)
        s.wait_log("connections that cannot be carried are closed number=1")
        s.wait_log("upgraded in place")
        assert int(good.ask("GET", "id:orders")) > 0
        assert time.monotonic() - began < 10
