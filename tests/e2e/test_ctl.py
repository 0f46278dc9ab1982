"""sidflakectl as operators see it: top, drain, sorting, JSON, help, on a terminal and without."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import termios
import time

import binary
import harness
import ids
import wire
from harness import until
from procs import Answers
from runner import test
from terminal import Terminal

COLORS = {str(n) for n in range(30, 38)}


def on_top(s, *args, **kwargs):
    return Terminal([harness.SIDFLAKECTL, "top", "--connect", "http://127.0.0.1:%d" % s.http_port,
                     "-d", "0.2", *args], **kwargs)


def pool_top(redis, *args, **kwargs):
    return Terminal([harness.SIDFLAKECTL, "top", "--coordinator", redis.url, "-d", "0.2", *args],
                    **kwargs)


def ctl_json(case, *args, **kwargs):
    return json.loads(case.ctl(*args, "--json", **kwargs).stdout)


# ---- top ----------------------------------------------------------------------------------------


@test("top of a sidecar: rates, latencies, workerIds, lease; q gives the terminal back")
def top(case):
    s = case.sidecar(case.pool(), {"ids.names": ["orders", "users"]})
    s.wait_held(2)
    with on_top(s) as t:
        t.shows(r"READY  2 workerIds held")
        assert t.screen.alternate and not t.screen.cursor
        t.shows(r"^ +0  active +█.* left of 30 s")
        t.shows(r"^ +1  spare +█.* left of 30 s")

        def busy():
            with s.resp() as r:
                for _ in range(20):
                    r.ask("GET", "id:orders")
            t.read(0.05)
            return re.search(r"orders [1-9].*/s", t.screen.text())
        until("a rate", busy)
        t.shows(r"^ redis +[\d.,]+ /s +\d+ +[\d.]+ .s +[\d.]+ .s")
        t.shows(r"Coordinator up; calls p50")
        t.shows(r"Sequence +peak \d+ of 1,024 in 1\.0 ms; used up for 0 requests *$")
        t.shows(r"Pool +32,766 workerIds free; era 1; IDs last for 7\.\d years")
        assert len(t.screen.text().split("\n")[0]) <= 80
        assert COLORS & t.screen.styles
        t.keys("q")
        assert t.end() == 0 and t.is_given_back()


@test("top: a line for each server behind: since when it is up or away, connections, failures")
def top_upstreams(case):
    redis = case.redis()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "unix:" + case.path("nobody.sock")})
    with on_top(s, rows=50) as t:
        def away():
            with contextlib.suppress(wire.Closed), s.resp() as r:
                r.ask("GET", "none")
            t.read(0.05)
            return re.search(r"^ +redis +AWAY for [\d.]+ s; 0 connections; .*; [1-9]\d* failures?$",
                             t.screen.text(), re.M)
        t.shows(r"^ Upstream +memcached +not asked yet; 0 connections; .*; 0 failures$")
        with s.resp() as r:
            r.ask("GET", "none")
            t.shows(r"^ +redis +up for [\d.]+ s; [1-9] connections?; [\d.]+ /s; 0 failures$")
        redis.kill()
        until("away", away)
    with on_top(case.sidecar(case.pool())) as t:
        t.shows(r"READY")
        assert "Upstream" not in t.screen.text()


@test("top: the numbers of sequences, and which one ends")
def top_numbers(case):
    s = case.sidecar(case.pool(), {"sequences.define": ["few --max 9 --on-loss refuse", "orders --on-loss refuse",
                                                        "wide --on-loss refuse --template W@{seq,width=1}"]})
    with on_top(s, cols=120) as t, s.resp() as r:
        t.shows(r"READY")
        assert "Numbers" not in t.screen.text()
        for _ in range(9):
            until("a number", lambda: isinstance(r.ask("INCR", "seq:few"), int))
        t.shows(r"^ Numbers +[\d.]+ /s +\d+ in hand, 0 gaps; few is USED UP$")

        def counts():
            for _ in range(5):
                r.ask("INCR", "seq:orders")
            t.read(0.05)
            return re.search(r"^ by sequence +orders [\d.]+ /s", t.screen.text(), re.M)
        until("orders has a rate", counts)
        until("all that the template takes", lambda: isinstance(r.ask("LPOP", "no:wide", 9), list))
        t.shows(r"^ Numbers .*; few is USED UP; template of wide is USED UP$")
        assert ("[!]template: sequence wide: used up: its template takes numbers up to 9: "
                "sidflakectl seq alter wide --template TEXT\n") in s.http("/readyz?verbose").text


@test("top: what needs attention, whole where there is room; nothing is said twice, or of one that is away")
def top_findings(case):
    s = case.sidecar(case.pool(), {"upstream.redis": "unix:" + case.path("nobody.sock"), "state_dir": "/proc/none"})
    s.wait_held(2)
    with contextlib.suppress(wire.Closed), s.resp() as r:
        r.ask("GET", "none")
    with on_top(s, rows=50, cols=200) as t:
        t.shows("^ READY  2 workerIds held.*\n WARNING +no state page: a restart costs workerIds, and gives no IDs "
                "while the coordinator is away: cannot make state_dir /proc/none: No such file or directory\n\n")
        t.shows("redis +AWAY")
        assert t.screen.text().count("WARNING") == 1, t.screen.text()
        s.kill()
        t.shows("NO ANSWER for")
        assert "WARNING" not in t.screen.text(), t.screen.text()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % case.redis().port,
                                   "upstream.connections": 1})
    with s.resp() as r, s.resp() as another:
        assert r.ask("SELECT", 1) == b"OK"
        with contextlib.suppress(wire.Closed):
            another.ask("WATCH", "a")
        with on_top(s, rows=50, cols=200) as t:
            t.shows("^ WARNING +upstream.connections is reached: a client was refused one more than 1 to the Redis")
            t.shows("^ Upstream +redis +up for")


@test("top: a sidecar that has no workerId, one that goes away, one that comes back")
def top_states(case):
    redis = case.redis()
    s = case.sidecar(redis, wait=False)
    s.wait_listening()
    whole = "sidflakectl pool init --coordinator %s --pool default --fresh`" % redis.url
    out = case.ctl("top", "--once", "--connect", "http://127.0.0.1:%d" % s.http_port).stdout
    assert re.search("^ NOT READY  .*" + re.escape(whole), out, re.M), out
    with on_top(s) as t:
        t.shows(r"NOT READY  .*no pool.*…$")
        t.shows("NONE HELD")
        case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
        t.shows("READY  2 workerIds", 20)
        case.ctl("pool", "close", "--yes", "--coordinator", redis.url, expect=0)
        t.shows(r"READY, COORDINATOR REFUSES  IDs can be had for .* more", 20)
        t.shows("Coordinator REFUSES")
        assert "<dt>Coordinator</dt><dd>refuses</dd>" in s.http("/").text
        redis.kill()
        t.shows(r"READY, COORDINATOR DOWN  IDs can be had for .* more", 20)
        t.shows("Coordinator DOWN")
        t.shows(r"^ WARNING +the coordinator is away: connection to 127.0.0.1 port \d+: Conn.*…$")
        s.kill()
        t.shows(r"NO ANSWER for .*refused")
        s.start(wait=False)
        t.shows("^ READY, COORDINATOR DOWN", 20)
        t.keys("q")
        assert (t.end(), t.is_given_back()) == (0, True)
    with on_top(s, env={"LC_ALL": "C"}) as t:
        t.shows("active +#+")
        assert not re.search(rb"[\x80-\xff]", t.raw)


@test("top: for how long a sidecar is up, whatever the clock of who looks, and of both")
def top_up(case):
    clock, other = case.clock(), case.clock()
    s = case.sidecar(case.pool(), clock=clock)
    for here, there in ((-3600, 0), (86400, 0), (3600, 3600)):
        other.set(here)
        clock.set(there)
        out = case.ctl("top", "--once", "--connect", "http://127.0.0.1:%d" % s.http_port,
                       env=other.env).stdout
        assert re.search(r"\bup [\d.]+ s ", out), out.splitlines()[0]


@test("top: every size of terminal, resized as it runs")
def top_resize(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    with on_top(s, rows=50, cols=200) as t:
        t.shows(r"Process +CPU")
        for rows, cols in ((24, 80), (5, 20), (1, 1), (2, 300), (60, 132), (24, 80)):
            t.resize(rows, cols)
            until("drawn anew", lambda: t.read(0.05) and t.screen.drawn())
            while select.select([t.fd], [], [], 0.1)[0]:
                t.read(0)
        t.shows(r"^ q quit .* every 0.2 s")
        t.keys("x?\x1b[A")
        t.shows("READY")
        t.keys("q")
        assert t.end() == 0 and t.is_given_back()


@test("top: a resize is drawn at once, not at the next look")
def top_resize_now(case):
    s = case.sidecar(case.pool())
    with on_top(s, "-d", "600") as t:
        t.shows(r"q quit .* every 10 min 0 s$")
        time.sleep(0.5)  # the second look comes soon after the first
        t.resize(30, 90)
        until("drawn anew", lambda: t.read(0.05) and t.screen.drawn())
        t.shows(r"^ q quit .* every 10 min 0 s$")


def is_stopped(t):
    t.read(0.05)
    with open("/proc/%d/stat" % t.pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "T"


@test("top: a Ctrl-Z while the screen is being set up: taken again as the view needs it")
def top_stopped_early(case):
    if harness.sanitized():
        return  # whose library has to be the first
    library = case.path("stop_early.so")
    case.run(os.environ.get("CC") or "cc", "-std=c11", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o",
             library, os.path.join(harness.HERE, "stop_early.c"), expect=0)
    s = case.sidecar(case.pool())
    for where in ("newterm", "cbreak", "start_color"):
        with on_top(s, env={"LD_PRELOAD": library, "STOP_IN": where}) as t:
            # what it has written may be read after it is seen to be stopped
            until("given back in " + where, lambda: is_stopped(t) and t.is_given_back())
            t.signal(signal.SIGCONT)
            t.shows("READY")
            now = termios.tcgetattr(t.fd)
            assert not now[3] & (termios.ICANON | termios.ECHO) and now[3] & termios.ISIG, where
            t.keys("q")
            assert t.end() == 0 and t.is_given_back(), where


@test("top: Ctrl-C, SIGTERM, SIGHUP, Ctrl-D and Ctrl-Z give the terminal back")
def top_signals(case):
    s = case.sidecar(case.pool())
    for keys, status in (("\x03", -signal.SIGINT), ("\x04", 0), ("\x1c", -signal.SIGQUIT)):
        with on_top(s) as t:
            t.shows("READY")
            t.keys(keys)
            assert t.end() == status and t.is_given_back(), (keys, t.status)
    for signo in (signal.SIGTERM, signal.SIGHUP, signal.SIGSEGV):
        with on_top(s) as t:
            t.shows("READY")
            t.signal(signo)
            assert t.end() in (-signo, 1) and t.is_given_back(), (signo, t.status)
    with on_top(s) as t:
        t.shows("READY")
        t.keys("\x1a")
        until("stopped", lambda: is_stopped(t))
        t.read(0.1)
        assert t.is_given_back()
        t.signal(signal.SIGCONT)
        t.shows("READY")
        assert t.screen.alternate and not t.screen.cursor
        t.keys("q")
        assert t.end() == 0 and t.is_given_back()


@test("top: no colours with NO_COLOR or --no-color; -n ends by itself")
def top_colors(case):
    s = case.sidecar(case.pool())
    for args, env in ((("--no-color",), {}), ((), {"NO_COLOR": "1"}), ((), {"NO_COLOR": ""})):
        with on_top(s, "-n", "3", *args, env=env) as t:
            assert t.end() == 0 and t.is_given_back()
            assert bool(COLORS & t.screen.styles) == (env == {"NO_COLOR": ""}), t.screen.styles


@test("top, not a terminal: plain text, once or -n times; --once and a dumb terminal likewise")
def top_plain(case):
    s = case.sidecar(case.pool())
    args = ("top", "--connect", "http://127.0.0.1:%d" % s.http_port, "-d", "0.1")
    out = case.ctl(*args, expect=0).stdout
    assert "READY" in out and "\x1b" not in out and out.count("Coordinator up") == 1, out
    assert out.isascii() == (not re.search("[█·]", out)), out
    assert max(map(len, out.split("\n"))) <= 100
    out = case.ctl(*args, "-n", "3", expect=0, env={"LC_ALL": "C.UTF-8"}).stdout
    assert out.count("Coordinator up") == 3 and "█" in out, out
    for more, env in ((("--once",), {}), ((), {"TERM": "dumb"}), ((), {"TERM": "no-such-terminal"})):
        with on_top(s, *more, rows=200, env=env) as t:
            assert t.end() == 0 and b"\x1b" not in t.raw and b"READY" in t.raw
    s.kill()
    r = case.ctl(*args, expect=3)
    assert "refused" in r.stderr and r.stdout == "", r
    for bad in ("ftp://x", "http://", "https://127.0.0.1:1"):
        assert "expected http://HOST:PORT" in case.ctl("top", "--connect", bad, expect=2).stderr
    case.ctl(*args, "--coordinator", "redis://127.0.0.1:1/0", expect=2)
    case.ctl("top", "-d", "0.01", expect=2)


@test("top: an answer that is no status, of an earlier sidecar, without end, deep, not HTTP, a login")
def top_hostile(case):
    ok = "HTTP/1.0 200 OK\r\n\r\n"
    head = ok + '{"version":"\\u001b[31m","ready":true'
    answers = [
        (ok + "<html>", "expected JSON, found another answer"),
        (ok + "{}", "expected the status of a sidecar, found other JSON"),
        (head, "expected JSON, found another answer"),
        (head + ',"pool":' + "[" * 100000, "expected JSON"),
        ("HTTP/1.0 404 Not Found\r\n\r\n", "a sidecar of an earlier version"),
        ("HTTP/1.0 401 No\r\n\r\n", "expected --user NAME --password-file FILE"),
        ("HTTP/1.0 421 No\r\n\r\nwhy\x1b", "expected status 200, found 421: why?"),
        ("SSH-2.0-x\r\n", "expected an answer of HTTP/1"),
        (head + ',"x":"' + "x" * 3000000, "expected an answer of less than"),
    ]
    for answer, expected in answers:
        with Answers(answer) as url:
            r = case.ctl("top", "--connect", url, "-d", "0.1", timeout=60)
            assert r.returncode in (2, 3) and expected in r.stderr, (answer[:40], r.stderr)
            assert "\x1b" not in r.stderr, r.stderr
    with Answers(head + " " * 1000, pause=0.2) as url:
        r = case.ctl("top", "--connect", url, timeout=60)
        assert r.returncode in (2, 3) and "expected an answer in time" in r.stderr, r.stderr
    rows = '{"protocol":"\\u001b","name":"\\u001b%d","issued_total":%d},'
    many = head + ',"names":[' + "".join(rows % (i, i) for i in range(15000)) + "null]}"
    wrong = head + ',"pool":7,"names":{"x":1},"worker_ids":[7,null],"protocols":[{"protocol":' \
        '"redis","connections":"x","request_duration":{"bounds_us":[1],"counts":[1]}}]}'
    for page in (head + "}", many, wrong):
        with Answers(page) as url:
            out = case.ctl("top", "--connect", url, "-d", "0.1", expect=0).stdout
            assert "\x1b" not in out and "?[31m" in out, out


@test("top: the fastest comes first; how much a workerId was granted is not taken for another's")
def top_looks(case):
    def look(i, worker, left_ms):
        names = [{"name": n, "issued_total": i * k} for n, k in (("few", 10), ("many", 1000), ("some", 100))]
        ids_of = [{"worker": worker, "use": "active", "left_ms": left_ms}]
        return "HTTP/1.0 200 OK\r\n\r\n" + json.dumps({"version": "1", "ready": True, "names": names, "pool": {
            "horizon_ms": 3600000, "first_horizon_ms": 30000}, "worker_ids": ids_of})
    with Answers(look(1, 7, 3000000), look(2, 8, 20000)) as url:
        out = case.ctl("top", "--connect", url, "-d", "0.1", "--once", expect=0).stdout
    assert re.search(r"by name +many .*, some .*, few (.|\n)* 8  active .* 20 s left of 30 s", out), out


@test("top of a pool: counts, the next to expire, oldest and youngest, warnings, order by key")
def top_of_pool(case):
    redis = case.pool("--workers", "0-19")
    s = case.sidecar(redis, env={"POD_NAME": "shop-7"})
    s.wait_held(2)
    with pool_top(redis, rows=30, cols=120) as t:
        t.shows(r"OPEN  era 2 since")
        t.shows(r"Held +2 of 20  █.* 10\.0 %; 18 free")
        t.shows(r"Oldest .*: workerId \d of .* shop-7")
        t.shows(r"^ +0 +\S+ shop-7 .* s +█")
        t.shows(r"next to expire first")
        t.keys("s")
        t.shows(r"by holder")
        t.keys("sr")
        t.shows(r"by worker, reversed\n +1 .*\n +0 ")
        t.shows(r"Changes +renewals [\d.]+ /s, claims 0 /s")
        second = case.sidecar(redis, {"workers.active": 16, "workers.spare": 2})
        second.wait_held(18)
        t.shows(r"Held +20 of 20 .* 0 free")
        t.shows(r"WARNING +no workerId is free: the range that ends first is over and rested on 20")
        case.ctl("pool", "close", "--yes", "--coordinator", redis.url, expect=0)
        t.shows(r"CLOSED  era 2")
        redis.send(signal.SIGSTOP)
        t.shows(r"NO ANSWER for .* expected within")
        redis.send(signal.SIGCONT)
        t.shows(r"CLOSED  era 2", timeout=10)  # what a look waits for in vain is no reason to look less often
        redis.kill()
        t.shows(r"NO ANSWER for .* (refused|No such)")
        t.keys("q")
        assert t.end() == 0 and t.is_given_back()
    case.ctl("top", "--coordinator", redis.url, expect=3)


@test("top of a pool: its name is shown whole, however long")
def top_long_name(case):
    redis, name = case.redis(), "a" + 62 * "-" + "z"
    case.ctl("pool", "init", "--fresh", "--pool", name, "--coordinator", redis.url, expect=0)
    assert "sidflake pool %s " % name in case.ctl("top", "--pool", name, "--coordinator", redis.url, expect=0).stdout


# ---- drain --------------------------------------------------------------------------------------


@test("pool drain: closes, waits for the last holder, says so")
def drain(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    argv = [harness.SIDFLAKECTL, "pool", "drain", "--yes", "--coordinator", redis.url]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until("closed", lambda: ctl_json(case, "pool", "status", "--coordinator", redis.url)["closed"])
    s.id()
    time.sleep(1.5)
    assert p.poll() is None, p.communicate()
    assert s.stop() == 0
    out, _ = p.communicate(timeout=20)
    assert p.returncode == 0 and "nobody issues IDs" in out, out
    done = ctl_json(case, "pool", "drain", "--coordinator", redis.url, expect=0)
    assert done == {"drained": True, "closed": True, "held": 0, "ranges_end_by": None}, done


@test("pool drain: a holder that is dead has gone when its range has ended")
def drain_dead(case):
    clock = case.clock()
    redis = case.pool("--fresh", "--max-skew", "9s", clock=clock)
    s = case.sidecar(redis, clock=clock)
    s.wait_held(2)
    s.kill()
    url = ("--coordinator", redis.url)
    j = ctl_json(case, "pool", "drain", "--yes", *url, "--timeout", "0", expect=1)
    assert j["held"] == 2 and not j["drained"] and j["closed"], j
    assert "held, and the last range ends by 2" in case.ctl(
        "pool", "drain", "--yes", *url, "--timeout", "1s", expect=1).stderr
    # the holder's clock may be behind the coordinator's by as much as max-skew
    clock.step((ids.ms_of(j["ranges_end_by"]) - clock.ms()) / 1000 + 2)
    assert not ctl_json(case, "pool", "drain", *url, "--timeout", "0", env=clock.env,
                        expect=1)["drained"]
    with Terminal([harness.SIDFLAKECTL, "pool", "drain", *url], rows=10, cols=200, env=clock.env) as t:
        t.shows(r"2 held; the last range ends in [0-7]\.\d+ s")
        t.keys("\x03")
        assert t.end() == 130
    clock.step(10)
    assert ctl_json(case, "pool", "drain", *url, env=clock.env, expect=0)["drained"]
    assert redis.held() == [0, 1], "their records stay as they are"


@test("pool drain, release: a coordinator whose clock is ahead makes no living holder look gone")
def drain_clock_ahead(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    s = case.sidecar(redis, {"workers.spare": 0})
    w = s.worker()
    url = ("--coordinator", redis.url)
    clock.step(7200)
    r = case.ctl("pool", "release", *url, "--worker", str(w), "--yes", expect=1)
    assert "who renews lives" in r.stderr, r.stderr
    j = ctl_json(case, "pool", "drain", "--yes", *url, "--timeout", "0", expect=1)
    assert j["held"] == 1 and not j["drained"], j
    s.id()


def not_drained(case, redis):
    """Closed, and the holder, of whom the table knows nothing, is told of by the time alone."""
    url = ("--coordinator", redis.url)
    j = ctl_json(case, "pool", "drain", "--yes", *url, "--timeout", "0", expect=1)
    assert not j["drained"] and j["closed"] and j["held"] == 0, j
    r = case.ctl("pool", "drain", "--coordinator", redis.url, "--timeout", "0", expect=1)
    assert "the last range that was taken away, or that the pool has lost" in r.stderr, r.stderr
    return j["ranges_end_by"]


@test("pool drain: a holder whose workerId was taken away is waited for")
def drain_released(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    s = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    w = s.worker()
    ends = ctl_json(case, "pool", "list", "--coordinator", redis.url)[0]["ceiling"]
    s.pause()
    case.ctl("pool", "release", "--coordinator", redis.url, "--worker", str(w), "--yes",
             "--even-if-alive", expect=0)
    assert not_drained(case, redis) >= ends
    clock.step(35)
    assert ctl_json(case, "pool", "drain", "--yes", "--coordinator", redis.url, env=clock.env,
                    expect=0)["drained"]


@test("pool drain: a holder that an older data set lacks is waited for")
def drain_lost(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    redis.ask("SAVE")
    s = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    s.worker()
    s.pause()
    redis.kill()
    redis.start()
    not_drained(case, redis)
    clock.step(3700)
    assert ctl_json(case, "pool", "drain", "--yes", "--coordinator", redis.url, env=clock.env,
                    expect=0)["drained"]


@test("pool drain, close: a pool made again after a loss is waited for")
def drain_made_again(case):
    clock = case.clock()
    redis = case.redis(clock=clock)
    made = ctl_json(case, "pool", "init", "--coordinator", redis.url, "--after-loss",
                    "--workers", "0-9", expect=0)
    ends = not_drained(case, redis)
    assert made["grants_from"][:18] == ends[:18], (made, ends)
    closed = ctl_json(case, "pool", "close", "--yes", "--coordinator", redis.url, expect=0)
    assert closed["ranges_end_by"] == ends, (closed, ends)
    clock.step(86400 + 200)
    assert ctl_json(case, "pool", "drain", "--coordinator", redis.url, env=clock.env,
                    expect=0)["drained"]


@test("pool drain: an older data set that comes back while it waits is closed again")
def drain_set_back(case):
    redis = case.pool()
    redis.ask("SAVE")
    s = case.sidecar(redis)
    s.wait_held(2)
    argv = [harness.SIDFLAKECTL, "pool", "drain", "--yes", "--coordinator", redis.url]
    p = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def closed():
        return ctl_json(case, "pool", "status", "--coordinator", redis.url)["closed"]
    until("closed", closed)
    redis.kill()
    redis.start()
    until("closed again", closed)
    assert p.poll() is None, p.communicate()
    p.terminate()
    _, told = p.communicate(timeout=20)
    assert "not drained: the pool is closed" in told, told


@test("pool close and drain: asked for on a terminal, --yes without one; not once it is closed")
def close_asks(case):
    redis = case.pool()
    case.sidecar(redis).wait_held(2)
    url = ("--coordinator", redis.url)

    def closed():
        return ctl_json(case, "pool", "status", *url)["closed"]
    for command in ("close", "drain"):
        r = case.ctl("pool", command, *url, expect=2)
        assert "pool %s: expected --yes where there is no terminal" % command in r.stderr, r.stderr
        for answer in ("n\n", "\n", "no\n", "\x04"):
            with Terminal([harness.SIDFLAKECTL, "pool", command, *url], rows=10, cols=250) as t:
                t.shows(r'^Close pool "default" at %s\?' % redis.url)
                t.shows(r"2 workerIds are held, .* ends by 20\d\d-[-0-9T:.]+Z\. \[y/N\]")
                t.keys(answer)
                t.shows("nothing was changed")
                assert t.end() == 1
        assert not closed()
    with Terminal([harness.SIDFLAKECTL, "pool", "close", *url], rows=10, cols=250) as t:
        t.shows("last range ends by")
        t.keys("y\n")
        t.shows("^closed: no more grants and renewals")
        assert t.end() == 0 and closed()
    case.ctl("pool", "close", *url, expect=0)
    case.ctl("pool", "drain", *url, "--timeout", "0", expect=1)


@test("pool drain: somebody opens the pool meanwhile: whoever breaks it off is told how the pool is")
def drain_opened(case):
    redis = case.pool()
    case.sidecar(redis).wait_held(2)
    on = ("--coordinator", redis.url)

    def closed():
        return ctl_json(case, "pool", "status", *on)["closed"]
    p = subprocess.Popen([harness.SIDFLAKECTL, "pool", "drain", "--yes", *on],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until("closed", closed)
    case.ctl("pool", "open", "--yes", *on, expect=0)
    p.terminate()  # most likely before it has looked again, and closed it
    _, told = p.communicate(timeout=20)
    assert ("opened meanwhile" in told) != closed(), told


@test("pool drain on a terminal: progress; Ctrl-C says how it stands and how to go on")
def drain_terminal(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    with Terminal([harness.SIDFLAKECTL, "pool", "drain", "--coordinator", redis.url],
                  rows=10, cols=200) as t:
        t.shows(r"^Close pool ")
        t.keys("y\n")
        t.shows(r"2 held; the last range ends in \d+")
        t.keys("\x03")
        assert t.end() == 130
        t.shows(r"not drained: the pool is closed, 2 workerIds are held, .*same command")
    s.id()


@test("pool drain without a pool or a Redis: exit 1 and 3")
def drain_absent(case):
    redis = case.redis()
    assert "pool init" in case.ctl("pool", "drain", "--coordinator", redis.url, expect=1).stderr
    redis.kill()
    case.ctl("pool", "drain", "--coordinator", redis.url, expect=3)


# ---- the rest -----------------------------------------------------------------------------------


@test("pool list --sort and --reverse")
def sort(case):
    redis = case.pool("--workers", "5-9")
    for pod in ("b", "a", "c"):
        case.sidecar(redis, {"workers.spare": 0}, env={"POD_NAME": pod})

    def order(*args):
        return [r["worker"] for r in ctl_json(case, "pool", "list", "--coordinator", redis.url,
                                              *args, expect=0)]
    assert order() == order("--sort", "worker") == [5, 6, 7]
    assert order("--reverse") == [7, 6, 5]
    assert order("--sort", "age") == [7, 6, 5] and order("--sort", "age", "--reverse") == [5, 6, 7]
    assert order("--sort", "holder") == [6, 5, 7]
    left = order("--sort", "left")
    assert sorted(left) == [5, 6, 7] and left[::-1] == order("--sort", "ceiling", "--reverse")
    r = case.ctl("pool", "list", "--coordinator", redis.url, "--sort", "size", expect=2)
    assert "expected worker, age, left, holder or ceiling" in r.stderr


@test("--json on every command that tells facts")
def all_json(case):
    redis = case.redis()
    url = ("--coordinator", redis.url)
    j = ctl_json(case, "pool", "init", *url, "--fresh", expect=0)
    assert j["made"] and j["worker_to"] == 32767 and j["grants_from"].endswith("Z"), j
    again = ctl_json(case, "pool", "init", *url, "--fresh", "--if-missing", expect=0)
    assert again == {"made": False, "identity": j["identity"], "warnings": []}, again
    s = case.sidecar(redis)
    s.wait_held(2)
    there = ("--connect", "unix://" + s.resp_sock)
    listed = ctl_json(case, "next", "orders", "-n", "3", *there, expect=0)
    assert len({v["id"] for v in listed}) == 3, listed
    decoded = ctl_json(case, "decode", *(v["id"] for v in listed), expect=0)
    assert [d["id"] for d in decoded] == [v["id"] for v in listed]
    assert ctl_json(case, "ping", *there, expect=0) == {"ready": True}
    assert ctl_json(case, "pool", "check", *url, expect=0)["faults"] == 0
    j = ctl_json(case, "pool", "release", *url, "--worker", "1", "--yes", "--even-if-alive",
                 expect=0)
    assert j == {"worker": 1, "released": True}, j
    redis.ask("LPOP", "sidflake:{default}:free")
    j = ctl_json(case, "pool", "check", *url, "--repair", expect=0)
    assert j["repaired"] and len(j["lost"]) == 1, j
    assert ctl_json(case, "pool", "close", "--yes", *url, expect=0)["closed"] is True
    opened = ctl_json(case, "pool", "open", "--yes", *url, expect=0)
    assert opened["open"] and opened["changed"] and opened["grants_from"].endswith("Z"), opened
    assert ctl_json(case, "pool", "open", *url, expect=0)["changed"] is False
    empty = case.sidecar(case.redis(), wait=False)
    empty.wait_listening()
    assert ctl_json(case, "ping", "--connect", "unix://" + empty.mc_sock,
                    expect=1) == {"ready": False}


@test("ping with servers behind, and while they hang or are away: what sidflake says of itself")
def ping_behind(case):
    redis, memcached = case.redis(), case.memcached()
    s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                   "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port})
    s.wait_held(2)
    ways = ["unix://" + s.mc_sock, "unix://" + s.resp_sock]

    def well():
        for at in ways:
            assert ctl_json(case, "ping", "--connect", at, expect=0) == {"ready": True}, at
    well()
    with binary.Binary(("127.0.0.1", s.mc_port)) as b:
        b.send(binary.request(binary.STAT, b"sidflake"))
        rows = {}
        while True:
            r = b.reply()
            if not r.key:
                break
            rows[r.key] = r.value
        assert rows[b"sidflake_ready"] == b"1", rows
    with s.resp() as r:
        assert b"sidflake_ready:1" in r.ask("INFO", "sidflake") and b"redis_git" in r.ask("INFO")
        assert r.ask("SUBSCRIBE", "c") and "Can't execute" in str(r.ask("INFO", "sidflake"))
    for server in (redis, memcached):
        server.pause()
    well()
    for server in (redis, memcached):
        server.resume()
        server.kill()
    well()
    empty = case.sidecar(case.redis(), {k: v for k, v in s.options.items() if "upstream" in k}, wait=False)
    empty.wait_listening()
    for at in (empty.mc_sock, empty.resp_sock):
        assert ctl_json(case, "ping", "--connect", "unix://" + at, expect=1) == {"ready": False}


@test("ping of a sidecar whose connections are all taken: refused, in its own words")
def ping_refused(case):
    s = case.sidecar(case.pool(), {"limits.connections": 2})
    with s.resp() as a, s.resp() as b:
        assert a.ask("PING") == b.ask("PING") == b"PONG"
        for port, words in ((s.resp_port, "-ERR max number of clients reached"),
                            (s.mc_port, "SERVER_ERROR too many open connections")):
            at = "tcp://127.0.0.1:%d" % port
            assert words in case.ctl("ping", "--connect", at, expect=1).stderr
    s.wait_log("limits.connections is reached: connections are refused .* peer=")


@test("a user's password is sent to who asks for it alone: never to what is behind")
def password_is_kept(case):
    redis, memcached = case.redis(), case.memcached()
    path = case.path("password")
    with open(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as f:
        f.write("secret\n")
    for mode in ("off", "accept_any"):
        s = case.sidecar(case.pool(), {"upstream.redis": "tcp://127.0.0.1:%d" % redis.port,
                                       "upstream.memcached": "tcp://127.0.0.1:%d" % memcached.port,
                                       "auth.mode": mode})
        s.wait_held(2)
        for at in (s.mc_sock, s.resp_sock):
            for command in (("next", "orders"), ("ping",)):
                case.ctl(*command, "--connect", "unix://" + at, "--user", "alice",
                         "--password-file", path, expect=0)
        with wire.Memcached(("127.0.0.1", memcached.port)) as m:
            assert m.get("login") == [], mode
        assert b"cmdstat_auth" not in redis.ask("INFO", "commandstats"), mode
        s.stop()


@test("pool check --repair of a pool whose queue is gone: in moments, Redis and SQLite")
def repair_all(case):
    import sqlite3
    redis = case.pool()
    redis.ask("LTRIM", "sidflake:{default}:free", "0", "3")
    sqlite = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", sqlite, "--fresh", expect=0)
    with sqlite3.connect(case.path("pool.db")) as db:
        db.execute("DELETE FROM queue WHERE worker > 3")
        db.execute("INSERT INTO queue(pool, worker) VALUES (1, 'junk'), (1, -1), (1, 99999)")
    db.close()
    for url in (redis.url, sqlite):
        j = ctl_json(case, "pool", "check", "--coordinator", url, "--repair", expect=0, timeout=20)
        assert len(j["lost"]) == 32764 and j["repaired"], j["faults"]
        case.ctl("pool", "check", "--coordinator", url, expect=0)
    assert redis.queue() == list(range(32768))


@test("--help of each command, and what was meant")
def helps(case):
    overview = case.ctl("--help", expect=0).stdout
    assert max(map(len, overview.split("\n"))) < 80, overview
    names = re.findall(r"^  ((?:pool |seq )?[a-z]+) +\S", overview, re.M)
    assert len(names) == 27 and "pool drain" in names and "passwd" in names, names
    for name in names:
        out = case.ctl(*name.split(), "--help", expect=0).stdout
        assert out.startswith("Usage: sidflakectl %s" % name), out
        assert max(map(len, out.split("\n"))) < 80, out
    assert "did you mean pool list?" in case.ctl("pool", "lst", expect=2).stderr
    assert "did you mean decode?" in case.ctl("decoed", "1", expect=2).stderr
    for wrong in ("--horzion", "--horzion=2h"):
        assert "did you mean --horizon?" in case.ctl("pool", "init", wrong, "2h", expect=2).stderr
    for other in ("--zzz", "--", "-q"):
        assert "did you mean --" not in case.ctl("pool", "init", other, expect=2).stderr
    assert "did you mean" not in case.ctl("pool", "status", "--horzion", "2h", expect=2).stderr  # takes none
    assert "pool list --help" in case.ctl("pool", "list", "--worker", "1", "--coordinator",
                                          "redis://x", expect=2).stderr
    assert case.ctl("pool", "--help", expect=0).stdout == overview


@test("a password file: sidflake and sidflakectl read the same from it, and refuse the same")
def password_file(case):
    redis, path = case.redis(), case.path("password")
    on_pool = ("--coordinator", redis.url, "--password-file", path)
    on_sidecar = ("--connect", "unix://" + redis.sock, "--user", "ann", "--password-file", path)
    option = "coordinator.password_file"

    def write(content):
        with open(path, "wb") as f:
            f.write(content)

    redis.ask("CONFIG", "SET", "requirepass", "two\nlines")
    write(b"two\nlines\n")
    case.ctl("pool", "init", "--fresh", *on_pool, expect=0)
    case.sidecar(redis, {option: path}).wait_held(2)
    for content in (b"two\n", b"two\nlines\n\n"):
        write(content)
        r = case.ctl("pool", "status", *on_pool)
        assert r.returncode != 0 and "WRONGPASS" in r.stderr, r
    for content, words in ((b"x" * 1025, "found more"), (b"x" * 9000, "found more"),
                           (b"two\nlines\0\n", "found a NUL"), (b"\n", "found none"),
                           (None, "No such file")):
        os.unlink(path)
        if content is not None:
            write(content)
        why = case.sidflake("-t", "--set", option + "=" + path, expect=78).stderr
        assert "expected" in why and words in why, why
        for args in (("pool", "status", *on_pool), ("ping", *on_sidecar)):
            told = case.ctl(*args, expect=2).stderr.removeprefix("sidflakectl: ")
            assert why.endswith(told.replace("--password-file", option)), (why, told)
    assert "--password-file" in case.ctl("ping", *on_sidecar[:4], expect=2).stderr
