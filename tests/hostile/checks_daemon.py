"""Checks of the daemon itself: items 8, 12, 13 and what is left of 18."""

import os
import resource
import subprocess
import time

import harness
import wire
from checks import behind, check, short
from procs import clean_env, free_port, until
from scene import CRYPT, NotSupported, need

E = wire.Resp.encode


# ---- descriptors and time ------------------------------------------------------------------------


@check("descriptors", 8, "clients that take all descriptors do not keep it from renewing, and /livez answers")
def descriptors(case):
    pool = case.pool()
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, limit[1]))
    try:
        s = harness.Sidecar(case, "sidecar", pool.url, {"log.level": "info"})
        s.argv = ["prlimit", "--nofile=128:128"] + s.argv
        s.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    good = s.resp()
    streams = []
    try:
        for _ in range(300):
            streams.append(s.resp())
        end = time.monotonic() + 40  # a young tenure lasts for about 25 s
        while time.monotonic() < end:
            pool.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            reply = good.ask("GET", "id:x")
            assert isinstance(reply, bytes), "IDs stopped %.0f s after: %s" % (
                time.monotonic() - end + 40, short(str(reply)))
            time.sleep(1)
        try:
            status = s.http("/livez").status
        except (OSError, AssertionError) as e:
            status = "nothing (%s)" % type(e).__name__
        assert status == 200, "/livez: found %s" % status
    finally:
        for r in streams + [good]:
            r.close()


def closed_within(stream, seconds):
    started = time.monotonic()
    stream.sock.settimeout(seconds)
    try:
        while stream.sock.recv(1 << 16):
            pass
    except OSError as e:
        assert isinstance(e, ConnectionResetError), "still open after %g s" % seconds
    return time.monotonic() - started


@check("login-timeout", 8, "who connects and does not log in is closed in time")
def login_timeout(case):
    need("limits.login_timeout")
    path = case.path("users")
    with open(path, "w") as f:
        os.fchmod(f.fileno(), 0o600)
        f.write("ann:%s\n" % CRYPT)
    s = behind(case, options={"auth.mode": "required", "auth.users_file": path,
                              "limits.login_timeout": "1s"})
    with s.resp() as r, s.mc() as m, s.resp() as slow, s.resp() as good:
        assert good.ask("AUTH", "ann", "secret") == b"OK"
        slow.send(b"*3\r\n$4\r\nAU")
        for stream in (r, m, slow):
            closed_within(stream, 5)
        assert int(good.ask("GET", "id:x")) > 0


@check("request-timeout", 8, "a request that is begun and not ended closes in time, an idle client stays")
def request_timeout(case):
    need("limits.request_timeout")
    s = behind(case, options={"limits.request_timeout": "1s"})
    with s.resp() as r, s.mc() as m, s.resp() as idle, \
            wire.Stream(("127.0.0.1", s.http_port)) as h:
        r.send(b"*2\r\n$3\r\nGET\r\n$4\r\nid")
        m.send(b"get id")
        h.send(b"GET /livez HT")
        for stream in (r, m, h):
            closed_within(stream, 5)
        assert int(idle.ask("GET", "id:x")) > 0


@check("http-slots", 8, "limits.http_connections bounds HTTP, and takes nothing from others")
def http_slots(case):
    need("limits.http_connections")
    s = behind(case, options={"limits.http_connections": 8, "limits.connections": 16})
    held = [wire.Stream(("127.0.0.1", s.http_port)) for _ in range(40)]
    try:
        time.sleep(0.3)
        with s.resp() as r:
            assert int(r.ask("GET", "id:x")) > 0
    finally:
        for h in held:
            h.close()
    taken = []
    try:
        for _ in range(40):
            taken.append(s.resp())
        until("/livez answers", lambda: s.http("/livez").status == 200, 5)
    finally:
        for r in taken:
            r.close()


# ---- names ---------------------------------------------------------------------------------------


@check("name", 12, "an upstream may be a name")
def name(case):
    redis, memcached = case.redis(), case.memcached()
    s = behind(case, options={"upstream.redis": "tcp://localhost:%d" % redis.port,
                              "upstream.memcached": "tcp://localhost:%d" % memcached.port})
    with s.resp() as r, s.mc() as m:
        assert r.ask("SET", "a", "1") == b"OK" and m.ask("set a 0 0 1\r\n1") == "STORED"


@check("name-moves", 12, "a name that comes to mean another address is looked up again")
def name_moves(case):
    hosts = case.path("hosts")
    with open(hosts, "w") as f:
        f.write("127.0.0.1 localhost behind.test\n")
    probe = subprocess.run(["unshare", "--mount", "mount", "--bind", hosts, "/etc/hosts"],
                           capture_output=True)
    if probe.returncode != 0:
        raise NotSupported("mount namespaces, on this system")
    port = free_port()
    first = harness.Redis(case, "first", port=port).start()
    s = harness.Sidecar(case, "sidecar", "static:7", {
        "workers.spare": 0, "log.level": "info", "upstream.redis": "tcp://behind.test:%d" % port})
    s.argv = ["unshare", "--mount", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', hosts] + s.argv
    s.start()
    with s.resp() as r:
        assert r.ask("SET", "a", "1") == b"OK"
    first.kill()
    second = harness.Redis(case, "second", port=port)
    second.argv[second.argv.index("--bind") + 1] = "127.0.0.2"
    second.start()
    with open(hosts, "w") as f:
        f.write("127.0.0.2 localhost behind.test\n")

    def answered():
        with s.resp() as r:
            return r.ask("SET", "a", "2") == b"OK"
    until("the server at its new address is asked", answered, 10, 0.2)


@check("name-unknown", 12, "an upstream's name that is not known keeps nobody from having IDs")
def name_unknown(case):
    try:
        s = behind(case, options={"upstream.redis": "tcp://nosuch.invalid:6379"})
    except AssertionError:
        raise AssertionError("it does not start") from None
    with s.resp() as r:
        started = time.monotonic()
        r.send(E("GET", "a") + E("GET", "id:x"))
        assert isinstance(r.reply(), wire.Error) and int(r.reply()) > 0
        with s.resp() as other:
            assert int(other.ask("GET", "id:x")) > 0
    assert time.monotonic() - started < 5


# ---- files ---------------------------------------------------------------------------------------


@check("page-cut", 13, "worker.page cut while it runs is an error that says so, not SIGBUS")
def page_cut(case):
    s = case.sidecar("sqlite://" + case.path("p.db"), {"coordinator.auto_init": True, "log.level": "info"})
    page = os.path.join(s.state_dir, "worker.page")
    os.truncate(page, 0)
    try:
        with s.resp() as r:
            r.sock.settimeout(3)
            r.ask("GET", "id:x")
    except (OSError, wire.Closed):
        pass
    time.sleep(2)
    s.ended_by_us = True  # how it ended is looked at here
    status = s.popen.poll()
    assert status is None or status >= 0, "ended by signal %d" % -status
    assert "worker.page" in s.log(), "the log does not name it: %s" % short(s.log()[-200:])


@check("empty-list", 18, "`--set listen.http=[]` is an empty list")
def empty_list(case):
    r = subprocess.run([harness.SIDFLAKE, "-t", "--set", "listen.http=[]"], capture_output=True, text=True,
                       env=clean_env())
    assert r.returncode == 0, "found %s" % short(r.stderr.strip())
