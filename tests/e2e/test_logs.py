"""What the log says of a coordinator in trouble, and when; the page and the probes beside it."""

import fcntl
import os
import re
import resource
import shutil
import signal
import time

import wire
from harness import until
from procs import Manager
from runner import test


def lines(s, pattern, after=0):
    return [line for line in s.log()[after:].splitlines() if re.search(pattern, line)]


def at_ms(text):
    """Of a time as RFC 3339."""
    parsed = time.strptime(text[:19], "%Y-%m-%dT%H:%M:%S")
    return (time.mktime(parsed) - time.timezone) * 1000 + int(text[20:23])


@test("ready is said once, with until when; that IDs have ended is said though nobody asks; then ready again",
      timeout=120)
def ends(case):
    redis = case.redis()
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--first-horizon", "16s", expect=0)
    manager = Manager(case)
    s = case.sidecar(redis, {"coordinator.timeout": "500ms"}, env={"NOTIFY_SOCKET": manager.path})
    ready = s.wait_log(r"info  ready held=[12] ids_until=(\S+Z)")
    assert at_ms(ready.group(1)) > time.time() * 1000 and s.log().index("ready held") > 0
    s.wait_held(2)
    redis.pause()
    down = s.wait_log(r"error coordinator down held=2 ids_until=(\S+Z) why=.*expected within 500 ms, found nothing", timeout=20)
    told = s.http("/readyz?verbose").text
    assert "[!]coordinator: the coordinator is away: " in told, told
    assert "; IDs can be had until %s, for " % down.group(1) in told, told
    s.wait_log("error no IDs can be had why=.*each range of time held has ended", timeout=30)
    assert time.time() * 1000 > at_ms(down.group(1)), "before the time that was told"
    assert s.ready_status() == 503
    manager.wait("STATUS=serving with 2 workerIds")
    manager.wait("STATUS=no IDs: each range of time held has ended")
    manager.heard.clear()
    redis.resume()
    s.wait_log("info  ready again held=", timeout=30)
    manager.wait("STATUS=serving with ")
    assert len(lines(s, " ready held=")) == 1 and len(lines(s, "no IDs can be had")) == 1, s.log()
    s.wait_held(2)
    s.id()
    assert s.stop() == 0
    assert not re.search(r"(last|until|ceiling)_ms=", s.log()), s.log()
    lasts = sorted(re.findall(r"workerId given back worker=\d+ status=ok last=(20|none)", s.log()))
    assert lasts == ["20", "none"], s.log()  # nothing came of the spare


@test("a replica, -NOREPLICAS: why, once each, and it is there, not away")
def not_ready(case):
    redis = case.pool()
    s = case.sidecar(redis, {"lease.renew_every": "1s", "coordinator.timeout": "500ms"})
    s.wait_held(2)
    with wire.Resp(redis.sock) as r:
        for on, off, said in (
                (("CONFIG", "SET", "min-replicas-to-write", "3"), ("CONFIG", "SET", "min-replicas-to-write", "0"),
                 "-NOREPLICAS Not enough good replicas to write."),
                (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"),
                 "expected a master, found a replica of 127.0.0.1:1: claims and renewals need the master")):
            seen = len(s.log())
            assert r.ask(*on) == b"OK"
            s.wait_log("error coordinator not ready held=2 ids_until=20.*" + re.escape(said), after=seen)
            time.sleep(3)
            told = s.http("/readyz?verbose").text
            assert "the coordinator refuses: " in told and said in told and "; IDs can be had until 20" in told, told
            assert s.metric("sidflake_coordinator_up") == 0 and s.metric("sidflake_coordinator_answers") == 1
            page = s.http("/").text
            assert "Needs attention" in page and "IDs can be had until 20" in page and "is away" not in page
            assert r.ask(*off) == b"OK"
            s.wait_log("coordinator answers again", after=seen)
            after = s.log()[seen:]
            assert after.count("error ") == 1 and after.count("answers again") == 1, after


@test("SQLite on a full disk: one line, and one when there is room again", timeout=60)
def full(case):
    s = case.sidecar("sqlite://" + case.path("pool.db"), {"coordinator.auto_init": True,
                                                         "lease.renew_every": "1s",
                                                         "coordinator.timeout": "3s"})
    s.wait_held(2)
    seen = len(s.log())
    soft, hard = resource.prlimit(s.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s.pid, resource.RLIMIT_FSIZE, (32 << 10, hard))
    s.wait_log("error coordinator not ready held=2 ids_until=20.*expected the transaction to be written", after=seen)
    time.sleep(6)
    s.id()
    told = lines(s, "error ", seen)
    assert len(told) <= 2 and all("not ready" in line for line in told), s.log()  # with the error's name, and without
    assert not lines(s, "answers again", seen), s.log()
    resource.prlimit(s.pid, resource.RLIMIT_FSIZE, (soft, hard))
    s.wait_log("coordinator answers again", after=seen)
    assert len(lines(s, "answers again", seen)) == 1 and len(lines(s, "error ", seen)) == len(told), s.log()


@test("a log that has reached the limit on files: lines are lost, IDs go on; an upgrade is refused, or done")
def size_limit(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    limits = resource.prlimit(s.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(s.pid, resource.RLIMIT_FSIZE, (len(s.log()), limits[1]))
    before = s.id()
    for signo in (signal.SIGHUP, signal.SIGUSR2):  # each is told
        s.send(signo)
        until("lines are lost", lambda: "[!]log: lines of the log are lost" in s.http("/readyz?verbose").text)
    time.sleep(1)  # the program that was asked to take over has been asked
    s.assert_running()
    assert s.id() > before
    seen = len(s.log())
    resource.prlimit(s.pid, resource.RLIMIT_FSIZE, limits)
    s.send(signal.SIGHUP)
    s.wait_log("configuration reloaded", after=seen)


@test("state_dir deleted while it runs: unhealthy but serving, by metric, page and probe; the true reason at a stop")
def deleted(case):
    s = case.sidecar(case.pool(), {"lease.renew_every": "1s"})
    s.wait_held(2)
    assert s.metric("sidflake_state_page") == 1
    shutil.rmtree(s.state_dir)
    until("it is noticed", lambda: s.metric("sidflake_state_page") == 0)
    told = s.http("/readyz?verbose")
    assert told.status == 200 and "[!]state_page: no state page: a restart costs workerIds" in told.text, told.text
    assert "no state page: a restart costs workerIds" in s.http("/").text
    s.id()
    s.stop()
    why = s.wait_log("state page without a new generation: (.*)").group(1)
    assert "No such file or directory" in why and "earlier state" not in why, why


@test("a mistyped prefix: its misses show on the page, in the metrics and by the probe")
def misses(case):
    s = case.sidecar(case.pool())
    s.id()
    with s.mc() as m, s.resp() as r:
        for _ in range(60):
            assert m.ask("get if:orders") == "END" and r.ask("GET", "if:orders") is None
    assert s.metric("sidflake_requests_total", protocol="redis", command="get", result="miss") == 60
    said = "120 reads in the last 5 minutes were of keys that are no IDs: those begin with "
    assert "[!]misses: " + said + '"id:", "seq:", "no:"\n' in s.http("/readyz?verbose").text
    page = s.http("/").text
    assert said in page and ">misses</th>" in page, page


@test("an upstream's outage is no failure of IDs; upstream.connections that is reached is told", timeout=60)
def behind(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port, "upstream.connections": 1})
    with s.resp() as a, s.resp() as b:
        assert a.ask("GET", "plain") is None
        assert a.ask("WATCH", "plain") == b"OK"
        try:
            b.ask("WATCH", "plain")
        except (OSError, wire.Closed):
            pass  # it is closed, so that it tries again
        told = s.http("/readyz?verbose").text
        assert "[!]upstream.redis: upstream.connections is reached: a client was refused one more than 1 " in told, told
        assert "upstream.connections is reached" in s.http("/").text
    redis.kill()
    with s.resp() as r:
        until("it is away", lambda: "LOADING" in str(r.ask("GET", "plain")))
        assert int(r.ask("GET", "id:orders")) > 0
    m = s.metrics()
    assert m.value("sidflake_requests_total", protocol="redis", command="get", result="away") >= 1
    assert not re.search('(redis|memcached)".*result="failed"', s.http("/metrics").text)
    page = s.http("/").text
    assert "requests for IDs or numbers failed" not in page and "Servers behind: IDs go on without them" in page, page


@test("nobody reads the log: all are served, the page says so, and the next line how many were lost")
def unread(case):
    s = case.sidecar("static:7")
    s.stop()
    kept, s.log_path = s.log_path, case.path("log.fifo")
    os.mkfifo(s.log_path)
    reader = os.open(s.log_path, os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(reader, fcntl.F_SETPIPE_SZ, 8192)
    try:
        s.start()
        for _ in range(200):
            s.popen.send_signal(signal.SIGHUP)
            assert s.id() > 0
        told = s.http("/readyz?verbose").text
        assert re.search(r"\[!\]log: lines of the log are lost, \d+ by now: nobody reads it\n", told), told
        assert os.read(reader, 65536)
        s.popen.send_signal(signal.SIGHUP)
        until("it is told", lambda: "[!]log" not in s.http("/readyz?verbose").text)
        assert re.match(rb"\S+ warn  lines of the log were lost number=\d+\n", os.read(reader, 65536))
        assert s.stop() == 0
    finally:
        os.close(reader)
        s.log_path = kept


@test("a socket file that is gone, or another's: the page and the probe say so, until an upgrade makes it anew")
def lost_file(case):
    s = case.sidecar("static:7")
    told = "[!]listen: the socket file %s is gone, or another's: nobody can connect there until SIGUSR2 or a restart\n" \
        % s.resp_sock
    assert "[!]listen" not in s.http("/readyz?verbose").text
    os.unlink(s.resp_sock)
    assert told in s.http("/readyz?verbose").text and "is gone, or another" in s.http("/").text
    s.popen.send_signal(signal.SIGUSR2)
    s.wait_log("upgraded in place")
    assert "[!]listen" not in s.http("/readyz?verbose").text
    with s.resp(unix=True) as r:
        assert int(r.ask("GET", "id:orders")) > 0
