"""The program: arguments, configuration, sockets, limits, signals."""

import json
import os
import re
import signal
import socket
import stat
import time

import yaml

import harness
import ids
import wire
from harness import until
from procs import Manager
from runner import test


def write(case, text, name="c.yaml"):
    path = case.path(name)
    with open(path, "w") as f:
        f.write(text)
    return path


@test("-t: OK and exit 0; a mistake is FILE:LINE:COLUMN and exit 78")
def check_config(case):
    good = write(case, "limits:\n  batch: 64\n")
    assert case.sidflake("-t", "-c", good, expect=0).stdout == good + ": OK\n"
    assert case.sidflake("-t", "-c", write(case, "", "empty.yaml"), expect=0)
    for text, place, words in (
            ("limits:\n  batch: none\n", "2:10", ["none"]),
            ("limits:\n  bach: 64\n", "2:3", ["bach"]),
            ("workers:\n  active: 17\n", "2:11", ["16", "17"]),
            ("listen:\n  redis: [\"tcp://127.0.0.1:70000\"]\n", "2:11", ["70000"]),
            ("coordinator:\n  url: \"etcd://x\"\n", "2:8", ["redis://", "static:", "etcd"]),
            ("coordinator:\n  url: \"redis://h:0/0\"\n", "2:8", ["a port of 1 to 65535", "\"0\""]),
            ("coordinator:\n  url: \"redis://h:1/abc\"\n", "2:8", ["a database", "\"abc\""]),
            ("upstream:\n  redis: \"tcp://127.0.0.1:6380\"\n", "2:10", ["listen.redis"]),
            ("epoch: \"tomorrow\"\n", "1:8", ["tomorrow"]),
            ("limits:\n  batch: \"64\n", "3:1", [])):
        path = write(case, text, "bad.yaml")
        for args in (("-t", "-c", path), ("-c", path)):
            r = case.sidflake(*args, expect=78)
            assert r.stderr.startswith("%s:%s: " % (path, place)), (text, r.stderr)
            assert "expected" in r.stderr and "found" in r.stderr or not words, r.stderr
            assert all(w in r.stderr for w in words), r.stderr
    with open(case.path("password"), "w") as f:
        f.write("sec ret\n")
    os.chmod(case.path("password"), 0o600)
    login = ("--set", "upstream.memcached=tcp://127.0.0.1:1", "--set", "upstream.memcached_user=u",
             "--set", "upstream.memcached_password_file=" + case.path("password"))
    for args in (("-t", *login), login):
        r = case.sidflake(*args, expect=78)
        assert "without spaces for upstream.memcached_password_file" in r.stderr, r.stderr
        assert r.stdout == "", r.stdout
    for url, words in (("redis://h:99999/0", "65535"), ("redis://h:1/x", "database"),
                       ("redis+unix:///tmp/x?db=z", "database"), ("redis+sentinel://a/", "/MASTER"),
                       ("redis+sentinel://a,b,c,d,e,f,g,h,i/m", "sentinels"),
                       ("redis://u:p@/0", "host"), ("redis://u@h/0", "a password with the user"),
                       ("redis://[::1/0", "IPV6"), ("sqlite:///a/", "PATH of a file")):
        for args in (("-t",), ()):
            r = case.sidflake(*args, "--set", "coordinator.url=" + url, expect=78)
            assert "expected" in r.stderr and words in r.stderr, (url, r.stderr)
            assert r.stdout == "", (url, r.stdout)
    many = write(case, """limits:
  bach: 64
coordinator:
  url: "redis://h:0/0"
  pol: x
upstream:
  redis: "http://x"
listen:
  redis: ["tcp://127.0.0.1:70000"]
auth:
  mode: required
  users_file: /nonexistent
""", "many.yaml")
    told = case.sidflake("-t", "-c", many, expect=78).stderr.splitlines()
    assert [line.split(":")[1:3] for line in told] == [
        ["2", "3"], ["4", "8"], ["5", "3"], ["7", "10"], ["9", "11"], ["12", "15"]], told
    assert "/nonexistent: expected a readable users file" in told[5], told
    assert "did you mean limits.batch?" in told[0] and "did you mean coordinator.pool?" in told[2], told
    r = case.sidflake("-t", "-c", case.path("missing.yaml"), expect=78)
    assert "missing.yaml" in r.stderr


@test("--dump-config: what holds, and it loads to the same")
def dump(case):
    first = case.sidflake("--dump-config", "--set", "limits.batch=77", "--set",
                          "ids.names=orders,users", expect=0).stdout
    loaded = yaml.safe_load(first)
    assert loaded["limits"]["batch"] == 77 and loaded["ids"]["names"] == ["orders", "users"]
    assert loaded["coordinator"]["url"] == "sqlite:///var/lib/sidflake/pool.db"
    again = case.sidflake("--dump-config", "-c", write(case, first), expect=0).stdout
    assert again == first
    secret = case.sidflake("--dump-config", "--set",
                           "coordinator.url=redis://u:hunter2@localhost:6379/0", expect=0)
    assert "hunter2" not in secret.stdout + secret.stderr


@test("defaults < file < environment < --set")
def order(case):
    path = write(case, "limits:\n  batch: 2\n  max_wait: 20ms\n  connections: 20\n")
    env = {"SIDFLAKE_LIMITS_BATCH": "3", "SIDFLAKE_LIMITS_MAX_WAIT": "30ms"}
    out = case.sidflake("-c", path, "--dump-config", "--set", "limits.batch=4", env=env, expect=0)
    limits = yaml.safe_load(out.stdout)["limits"]
    assert (limits["batch"], limits["max_wait"], limits["connections"]) == (4, "30ms", 20), limits
    assert limits["idle_timeout"] == "0s"
    r = case.sidflake("-t", env={"SIDFLAKE_LIMITS_BATCH": "x"}, expect=78)
    assert "SIDFLAKE_LIMITS_BATCH" in r.stderr
    r = case.sidflake("-t", "--set", "limits.nonsense=1", expect=78)
    assert "limits.nonsense" in r.stderr


@test("the shipped configurations are right, and sidflake.yaml is the defaults")
def shipped(case):
    conf = os.path.join(harness.TOP, "conf")
    defaults = case.sidflake("--dump-config", expect=0).stdout
    full = case.sidflake("--dump-config", "-c", os.path.join(conf, "sidflake.yaml"), expect=0)
    assert defaults == full.stdout
    case.sidflake("-t", "-c", os.path.join(conf, "sidflake.dev.yaml"), expect=0)


@test("usage errors exit 2; --help, --help-config and -V exit 0")
def usage(case):
    for bad in (["--nonsense"], ["extra"], ["-c"], ["--set", "novalue"]):
        assert case.sidflake(*bad, expect=2).stderr
    help_text = case.sidflake("--help", expect=0).stdout
    assert "--dump-config" in help_text and max(map(len, help_text.split("\n"))) < 80, help_text
    assert "limits.max_wait" in case.sidflake("--help-config", expect=0).stdout
    assert re.fullmatch(r"sidflake \d+\.\d+\.\d+\n", case.sidflake("-V", expect=0).stdout)
    case.ctl("--help", expect=0)
    case.ctl("-V", expect=0)


@test("a stale socket file is replaced, a live one refused, another file left alone")
def socket_files(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.kill()
    assert os.path.exists(s.mc_sock) and os.path.exists(s.resp_sock)
    s.start()
    with s.resp(unix=True) as r:
        assert int(r.ask("GET", "id:orders")) > 0
    second = case.sidecar(redis, {"listen.redis": ["unix://" + s.resp_sock]}, wait=False)
    assert second.wait() not in (0, None)
    assert s.resp_sock in second.log(), second.log()
    with s.resp(unix=True) as r:
        assert int(r.ask("GET", "id:orders")) > 0
    plain = write(case, "precious", "plain")
    third = case.sidecar(redis, {"listen.redis": ["unix://" + plain]}, wait=False)
    assert third.wait() not in (0, None) and plain in third.log()
    assert open(plain).read() == "precious"
    assert s.stop() == 0
    assert not os.path.exists(s.mc_sock) and not os.path.exists(s.resp_sock)


@test("an address in use: refused, naming it")
def address_in_use(case):
    redis = case.pool()
    s = case.sidecar(redis)
    second = case.sidecar(redis, {"listen.redis": ["tcp://127.0.0.1:%d" % s.resp_port]}, wait=False)
    assert second.wait() not in (0, None)
    assert "127.0.0.1:%d" % s.resp_port in second.log() and "in use" in second.log(), second.log()
    assert redis.held() == [0, 1], "it must not hold a workerId"


@test("socket_mode, and port 0")
def mode(case):
    redis = case.pool()
    s = case.sidecar(redis, {"listen.socket_mode": "0600"})
    assert stat.S_IMODE(os.stat(s.resp_sock).st_mode) == 0o600
    t = case.sidecar(redis, {"listen.redis": ["tcp://127.0.0.1:0"]})
    assert stat.S_IMODE(os.stat(t.mc_sock).st_mode) == 0o660
    port = int(t.wait_log(r"listening protocol=redis address=\S*?:(\d+)").group(1))
    with wire.Resp(("127.0.0.1", port)) as r:
        assert int(r.ask("GET", "id:orders")) > 0


@test("limits.connections: one too many is told so and closed")
def connection_limit(case):
    s = case.sidecar(case.pool(), {"limits.connections": 10})
    until("the probes' connections are closed", lambda: s.metric(
        "sidflake_connections", protocol="http") == 1)
    conns = [s.resp() for _ in range(10)]
    for c in conns:
        until("accepted", lambda: c.ask("PING") == b"PONG", timeout=2)
    with s.resp() as extra:
        assert extra.rest() == b"-ERR max number of clients reached\r\n"
    with s.mc() as extra:
        assert extra.rest() == b"SERVER_ERROR too many open connections\r\n"
    for c in conns:
        assert int(c.ask("GET", "id:orders")) > 0
        c.close()
    until("room again", lambda: s.ready_status() == 200)
    assert s.metric("sidflake_connections_refused_total", protocol="redis") == 1


@test("limits.idle_timeout closes the silent, and nobody else")
def idle(case):
    s = case.sidecar(case.pool(), {"limits.idle_timeout": "400ms"})
    silent, busy = s.mc(), s.mc()
    started = time.monotonic()
    while True:
        busy.id()
        if silent.silent(0.02) is None:
            break
        assert time.monotonic() - started < 5, "the silent connection is expected to be closed"
    assert time.monotonic() - started >= 0.35
    busy.id()
    with s.resp() as told: # by nobody, without an upstream; it waits all the same
        assert told.ask("SUBSCRIBE", "c")[2] == 1
        assert told.silent(1) and told.ask("UNSUBSCRIBE", "c")[2] == 0
        assert told.rest() == b""


@test("pipelining: one write, many requests, replies in order; byte by byte, too")
def pipelining(case):
    s = case.sidecar(case.pool())
    with s.resp() as r, s.mc() as m:
        r.send(b"".join(r.encode("ECHO", i) + r.encode("GET", "id:orders") for i in range(1000)))
        values = []
        for i in range(1000):
            assert r.reply() == b"%d" % i
            values.append(int(r.reply()))
        m.send(b"version\r\nget id:orders\r\n" * 500)
        for _ in range(500):
            assert m.line().startswith(b"VERSION ")
            values.append(int(m.values()[0][1]))
        for c, data, answer in ((r, r.encode("GET", "id:orders"), r.reply),
                                (m, b"get id:orders\r\n", lambda: m.values()[0][1])):
            for i in range(len(data)):
                c.send(data[i:i + 1])
            values.append(int(answer()))
    ids.check_increasing(values)


@test("a half-closed client gets its answers, then the end")
def half_closed(case):
    s = case.sidecar(case.pool())
    for unix in (False, True):
        with s.mc(unix) as m:
            m.send(b"get id:orders\r\nget id:orders\r\n")
            m.half_close()
            found = re.fullmatch(rb"(VALUE id:orders 0 \d+\r\n\d+\r\nEND\r\n){2}", m.rest())
            assert found
        with s.resp(unix) as r:
            r.send(b"GET id:orders\r\nGET id:or")
            r.half_close()
            assert re.fullmatch(rb"\$\d+\r\n\d+\r\n", r.rest())


@test("SIGTERM drains: what was asked is answered, connections end, exit 0")
def drain(case):
    s = case.sidecar(case.pool())
    idle_conn, r = s.mc(), s.resp()
    idle_conn.id()
    r.ask("PING")
    r.send(r.encode("LPOP", "id:orders", 100) * 200)
    started = time.monotonic()
    s.send(signal.SIGTERM)
    values = [int(v) for _ in range(200) for v in r.reply()]
    ids.check_increasing(values)
    assert len(values) == 20000
    assert r.rest() == b"" and idle_conn.rest() == b""
    assert s.wait() == 0 and time.monotonic() - started < 3
    s.wait_log("stopping signal=SIGTERM")


@test("SIGINT stops like SIGTERM; a second signal ends at once")
def signals(case):
    s = case.sidecar(case.pool())
    s.send(signal.SIGINT)
    assert s.wait() == 0
    assert "not waited for" not in s.log()
    s.start()
    r = s.resp()  # does not read, so that the drain has to wait for it
    r.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    r.sock.setblocking(False)
    try:
        while True:
            r.sock.send(r.encode("LPOP", "id:orders", 1000))
    except BlockingIOError:
        pass
    started = time.monotonic()
    at = len(s.log())
    s.send(signal.SIGTERM)
    s.wait_log("stopping", after=at)
    assert s.running()
    s.send(signal.SIGTERM)
    s.wait()
    assert time.monotonic() - started < 2


@test("SIGTERM while Redis hangs: in the time that is said, and a second one ends at once", beside=True)
def stops_beside_a_call(case):
    for often, most in ((1, 6), (2, 1.5)):  # 4.1 and 0.7 s, where nobody else is
        redis = case.pool()
        s = case.sidecar(redis, {"coordinator.timeout": "20s", "lease.renew_every": "1s"})
        redis.send(signal.SIGSTOP)
        time.sleep(2)  # a renewal is under way
        started = time.monotonic()
        for _ in range(often):
            s.send(signal.SIGTERM)
            time.sleep(0.3)
        assert s.wait() == 0
        assert time.monotonic() - started < most, time.monotonic() - started
        s.wait_log("the coordinator's answer is not waited for")
        assert not os.path.exists(s.resp_sock)
        redis.send(signal.SIGCONT)
        s.start()
        assert s.id() > 0


@test("SIGHUP reloads what can be reloaded, all or nothing")
def reload(case):
    s = case.sidecar(case.pool(), {"limits.batch": 10})
    with s.resp() as r:
        assert len(r.ask("LPOP", "id:orders", 10)) == 10
        assert isinstance(r.ask("LPOP", "id:orders", 11), wire.Error)

        def reload_with(options, pattern):
            at = len(s.log())
            s.options.update(options)
            s.write_conf()
            s.popen.send_signal(signal.SIGHUP)
            s.wait_log(pattern, after=at)
        reload_with({"limits.batch": 20}, "configuration reloaded")
        assert len(r.ask("LPOP", "id:orders", 20)) == 20
        reload_with({"limits.batch": 30, "workers.active": 2}, "reload refused.*workers.active")
        assert isinstance(r.ask("LPOP", "id:orders", 30), wire.Error)
        reload_with({"limits.batch": 20, "workers.active": 1}, "configuration reloaded")
        before = dict(s.options)
        for option, value in (("listen.socket_mode", "0600"), ("lease.renew_every", "19s"),
                              ("auth.mode", "accept_any"), ("upstream.timeout", "4s"), ("ids.prefix", "x:"),
                              ("sequences.cache_max", 7), ("coordinator.timeout", "3s"),
                              ("clock.wait_below", "9ms")):
            reload_with({"limits.batch": 30, option: value}, "reload refused.*option=" + re.escape(option))
            s.options = dict(before)
        reload_with({"lease.on_stop": "keep", "listen.busy_poll": "1us"}, "configuration reloaded")
        reload_with({"limits.batch": "lots"}, "reload refused.*lots")
        assert len(r.ask("LPOP", "id:orders", 20)) == 20
        reload_with({"limits.batch": 20, "limits.max_wait": "14ms"},  # as a start tells it
                    "warn +configuration warning=.*limits.max_wait: below clock.wait_below")


@test("SIGHUP: the configuration has become a pipe: refused at once, and all are served")
def reload_pipe(case):
    s = case.sidecar(case.pool())
    os.unlink(s.conf)
    os.mkfifo(s.conf)  # nobody writes to it: whoever opens it waits
    s.popen.send_signal(signal.SIGHUP)
    s.wait_log("reload refused, nothing changed.*%s: expected a regular file, found another kind" % re.escape(s.conf))
    assert s.id() > 0


@test("a file that nests without end, or is all directives: -t, start, SIGHUP refuse it at once")
def deep(case):
    files = {"lists": "x: " + "[" * 200000, "mappings": "x: " + "{a: " * 60000,
             "items": "ids: {names: [" + "[" * 100000, "value": "log: {level: " + "[" * 100000,
             "key": "? " + "[" * 100000, "root": "[" * 100000,
             "directives": "".join("%%TAG !%x! b\n" % i for i in range(70000)) + "---\n",
             "second": "log:\n...\n" + "".join("%%TAG !%x! b\n" % i for i in range(70000))}
    s = case.sidecar(case.pool())
    for name, text in files.items():
        path = write(case, text, name + ".yaml")
        for more in (("-t",), ()):
            why = case.sidflake("-c", path, *more, timeout=3, expect=78).stderr
            assert "%s:" % path in why and "expected" in why, (name, why)
        with open(s.conf, "w") as f:
            f.write(text)
        at = len(s.log())
        s.popen.send_signal(signal.SIGHUP)
        s.wait_log("reload refused.*%s:" % re.escape(s.conf), timeout=3, after=at)
    why = case.sidflake("-t", "-c", write(case, "log: {}\nx: " + "[" * 200), expect=78).stderr
    told = r":2:1: expected one of .*\n.*:2:20: expected at most 16 levels .*\n$"
    assert re.search(told, why), why
    assert s.id() > 0


@test("log.format json: one object a line")
def json_log(case):
    s = case.sidecar(case.pool(), {"log.format": "json"})
    assert s.stop() == 0
    lines = [json.loads(line) for line in s.log().splitlines()]
    assert len(lines) > 3 and all({"time", "level", "msg"} <= set(line) for line in lines)
    assert any(line["msg"] == "workerId held" and line["worker"] == 0 for line in lines)


@test("under journald lines begin with a priority")
def journal(case):
    s = case.sidecar(case.pool(), env={"JOURNAL_STREAM": "8:1"})
    assert all(re.match(r"<[3-7]>", line) for line in s.log().splitlines()), s.log()


@test("environment and --set configure a running sidecar")
def environment(case):
    s = harness.Sidecar(case, "s", case.pool().url,
                        env={"SIDFLAKE_IDS_PREFIX": "key:", "SIDFLAKE_LIMITS_BATCH": "5"})
    s.start(["--set", "limits.batch=7"])
    with s.resp() as r:
        assert int(r.ask("GET", "key:orders")) > 0 and r.ask("GET", "id:orders") is None
        assert len(r.ask("LPOP", "key:orders", 7)) == 7
        assert isinstance(r.ask("LPOP", "key:orders", 8), wire.Error)


@test("ids.names: others are a miss")
def names(case):
    s = case.sidecar(case.pool(), {"ids.names": ["orders", "users"]})
    with s.resp() as r, s.mc() as m:
        assert int(r.ask("GET", "id:users")) > 0 and r.ask("GET", "id:other") is None
        assert m.id("id:orders#x") > 0 and m.get("id:other") == []
    assert s.metric("sidflake_ids_issued_total", name="orders") == 1
    assert s.metric("sidflake_ids_issued_total", name="users") == 1


@test("ids.names as long as they may be: /metrics and /v1/status have them all")
def longest_names(case):
    names = ["%04d%s" % (i, '"' * 98) for i in range(1024)]
    s = case.sidecar(case.pool(), {"ids.names": names})
    with s.resp() as r:
        assert isinstance(r.ask("GET", "id:" + names[7]), bytes)
    page = s.http("/metrics")
    assert page.status == 200 and page.text.count("sidflake_ids_issued_total{") == 1024, page.status
    listed = json.loads(s.http("/v1/status").text)["names"]
    assert [n["name"] for n in listed] == names and listed[7]["issued_total"] == 1
    names[7] += '"'
    longer = write(case, "ids: {names: %s}" % json.dumps(names))
    why = case.sidflake("-t", "-c", longer, expect=78).stderr
    assert "expected at most 204800 bytes in all names" in why, why


@test("systemd is told: ready, status, reloads, stopping; the watchdog stops when the loop does")
def notifications(case):
    manager = Manager(case)
    s = harness.Sidecar(case, "s", case.pool().url, env={"NOTIFY_SOCKET": manager.path,
                                                         "WATCHDOG_USEC": "200000"})
    s.start(wait=False)
    manager.wait("READY=1")
    manager.wait("STATUS=serving with ")
    manager.wait("WATCHDOG=1")
    manager.heard.clear()
    s.popen.send_signal(signal.SIGHUP)
    manager.wait("RELOADING=1\nMONOTONIC_USEC=")
    manager.wait("READY=1")
    s.popen.send_signal(signal.SIGSTOP)
    manager.listen(0.3)
    manager.heard.clear()
    assert manager.listen(0.6) == []
    s.popen.send_signal(signal.SIGCONT)
    manager.wait("WATCHDOG=1")
    assert s.stop() == 0
    manager.wait("STOPPING=1")


@test("systemd is told what a sidecar without a workerId waits for")
def notified_why(case):
    manager = Manager(case)
    port = harness.free_port()
    s = harness.Sidecar(case, "s", "redis://127.0.0.1:%d/0" % port,
                        env={"NOTIFY_SOCKET": manager.path})
    s.start(wait=False)
    manager.wait("READY=1")
    manager.wait("STATUS=no workerId: connection to 127.0.0.1 port %d" % port)
    assert not [m for m in manager.listen(0.5) if m.startswith("WATCHDOG")]
