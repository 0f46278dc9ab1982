"""README's table of outages: each row is measured, and has the words that were measured.

An hour passes by a clock that is set, for sidecars and Redis alike; what a newcomer still waits is
what its log says. The copy of memory is measured by a unit test: no process can be copied here.
"""

import contextlib
import os
import re
import shlex
import shutil
import signal
import sqlite3
import time

import harness
import ids
import test_clock
import test_replicas
import wire
from harness import rest_ms, until
from runner import test

MINUTE, HOUR = 60, 3600
SKEWS = 4  # two of --max-skew
SLACK = 1.5  # a busy machine
ROWS = {}
UNIT = os.path.join(harness.TOP, "tests", "unit", "lease", "test_lease_lives.c")


def table():
    """{event: effect} of README."""
    with open(os.path.join(harness.TOP, "README.md")) as f:
        text = f.read()
    rows = text.split("| event | effect |\n|---|---|\n")[1].split("\n\n")[0]
    return dict(re.match(r"\| (.*?) \| (.*?) \|$", line).groups() for line in rows.splitlines())


def row(event, effect, **options):
    ROWS[event] = effect
    return test("README's table: " + event, **options)


@test("README's table: every row is measured, and says what was measured")
def complete(case):
    assert table() == ROWS, "\n".join(
        "%s: expected %r, found %r" % (k, ROWS.get(k), table().get(k))
        for k in sorted(set(ROWS) | set(table())) if ROWS.get(k) != table().get(k))
    with open(UNIT) as f:
        assert "static void a_cloned_process_issues_until_its_second_renewal(" in f.read()


# ---- what is measured ----------------------------------------------------------------------------

def newcomer(case, redis, seconds, event, clock=None):
    """One that starts now; what it waits by its log: so many seconds, less at most what has gone by
    since the event (of time.monotonic(), taken before it), and a second for rounding."""
    s = case.sidecar(redis, clock=clock, wait=False)
    found = rest_ms(s) / 1000
    least = seconds - (time.monotonic() - event) - 1
    assert least <= found <= seconds + 1, (
        "expected a wait of %g to %g s, found %g s" % (least, seconds, found))
    assert s.ready_status() == 503
    return s


def left(s):
    """Seconds up to the ceiling."""
    return s.metric("sidflake_reservation_seconds")


def ages(s, clock, seconds):
    """Time goes by, and it is renewed."""
    renewed = s.metric("sidflake_renewals_total", result="renewed")
    clock.step(seconds)
    until("renewed", lambda: s.metric("sidflake_renewals_total", result="renewed") > renewed + 1)


def refused(s):
    with s.resp() as r:
        return not isinstance(r.ask("GET", "id:orders"), bytes)


def goes_on(s, values):
    values += [s.id() for _ in range(20)]
    ids.check_increasing(values)


def old_sidecar(case, redis, clock, **kwargs):
    """One that has its workerIds for longer than two minutes."""
    s = case.sidecar(redis, clock=clock, **kwargs)
    s.wait_held(2)
    ages(s, clock, 20)
    for _ in range(6):
        ages(s, clock, 25)
    assert HOUR - 10 < left(s) <= HOUR, left(s)
    return s


@row("Redis down",
     "sidecars older than 2 minutes serve for up to an hour, younger ones for about 25 s")
def down(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    old = old_sidecar(case, redis, clock)
    young = case.sidecar(redis, {"lease.renew_every": "20s"}, clock=clock)
    young.wait_held(2)
    ends = [left(young)]
    for _ in range(70):  # its first renewals are every 5 s, give or take a fifth
        time.sleep(0.1)
        ends.append(left(young))
    assert 24 - SLACK <= min(ends) and max(ends) <= 30, (min(ends), max(ends))
    redis.pause()
    clock.step(left(young) - 2)
    young.id()
    clock.step(2.5)
    assert refused(young)
    old.id()
    rest = left(old)
    assert rest > HOUR - 40, rest
    clock.step(rest - 5)
    old.id()
    clock.step(6)
    assert refused(old)


KEPT = ("--appendonly", "yes", "--appendfsync", "always")


@row("Redis restarted with its data", "sidecars go on; new ones wait 34 s")
def restarted(case):
    clock = case.clock()
    redis = case.pool(clock=clock, args=KEPT)
    s = old_sidecar(case, redis, clock)
    values = [s.id()]
    redis.kill()
    clock.step(80)
    goes_on(s, values)
    event = time.monotonic()
    redis.start()
    new = newcomer(case, redis, 30 + SKEWS, event, clock)
    goes_on(s, values)
    clock.step(30 + SKEWS)
    new.wait_ready()


@row("Redis away for more than 80 s, back with its data",
     "sidecars go on; new ones wait an hour, or the pool's `--settle`; `sidflakectl pool reopen "
     "--nothing-lost` ends the wait", timeout=90)
def away(case):
    for settle, wait in (((), HOUR), (("--settle", "1m"), MINUTE)):
        clock = case.clock()
        files = ("--appenddirname", "aof%d" % wait)
        redis = case.pool("--fresh", *settle, clock=clock, args=KEPT + files)
        s = old_sidecar(case, redis, clock)
        values = [s.id()]
        redis.kill()
        clock.step(2 * MINUTE)
        goes_on(s, values)
        event = time.monotonic()
        redis.start()
        new = newcomer(case, redis, wait + SKEWS, event, clock)
        goes_on(s, values)
        if not settle:
            clock.step(101)  # four renewals
            case.ctl("pool", "reopen", "--nothing-lost", "--yes", "--coordinator", redis.url,
                     env=clock.env, expect=0)
            new.wait_ready()
        s.stop()
        new.stop()


@row("Redis restarted with its data after two minutes in which no sidecar ran",
     "new ones wait as if it had been away for as long")
def unused(case):
    clock = case.clock()
    redis = case.pool(clock=clock, args=KEPT)
    s = case.sidecar(redis, clock=clock)
    s.stop()
    clock.step(2 * MINUTE)
    redis.kill()
    event = time.monotonic()
    redis.start()
    new = newcomer(case, redis, HOUR + SKEWS, event, clock)
    clock.step(101)
    case.ctl("pool", "reopen", "--nothing-lost", "--yes", "--coordinator", redis.url,
             env=clock.env, expect=0)
    new.wait_ready()


@row("Redis failed over, with `--replicas`", "sidecars go on; new ones wait 34 s", timeout=90)
def failed_over(case):
    nodes = test_replicas.Nodes(case, 2)
    nodes.watch()
    case.ctl("pool", "init", "--coordinator", nodes.url, "--fresh", "--replicas", "1", expect=0)
    options = {"coordinator.timeout": "1s"}
    s = case.sidecar(nodes.url, options)
    s.wait_held(2)
    values = [s.id()]
    event = time.monotonic()
    nodes.node[0].kill()
    nodes.hurry(test_replicas.QUICK_MS)
    until("another master", lambda: nodes.masters(), 30)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2, 30)
    goes_on(s, values)
    newcomer(case, nodes.url, 30 + SKEWS, event)
    goes_on(s, values)


@row("Redis lost everything, or was restarted with old data",
     "sidecars go on if renewed within the hour; new ones wait an hour, or not at all with a range "
     "of workerIds never used before")
def lost(case):
    clock = case.clock()
    redis = case.pool(clock=clock, args=("--dbfilename", "dump.rdb"))
    s = old_sidecar(case, redis, clock)
    values = [s.id()]
    redis.ask("SAVE")
    ages(s, clock, 3 * MINUTE)
    redis.kill()
    event = time.monotonic()
    redis.start()  # from what was saved
    new = newcomer(case, redis, HOUR + SKEWS, event, clock)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    goes_on(s, values)
    new.stop()
    redis.ask("FLUSHALL")
    told = s.wait_log(r"no pool .*`sidflakectl (pool init[^`]*)`")
    event = time.monotonic()
    case.ctl(*shlex.split(told.group(1)), env=clock.env, expect=0)
    new = newcomer(case, redis, HOUR + SKEWS, event, clock)
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 4)
    goes_on(s, values)
    new.stop()
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", "--coordinator", redis.url, "--workers", "1000-1999",
             env=clock.env, expect=0)
    new = case.sidecar(redis, clock=clock)
    values.append(new.id())
    assert ids.worker_of(values[-1]) >= 1000
    until("it goes on, with its own or a new one", lambda: not refused(s))
    ids.check_distinct(values + [s.id()])


@row("the pool's keys put back within a Redis that runs (`RESTORE`, `SWAPDB`, a backup piped in)",
     "not seen before a sidecar renews: a new one may repeat its IDs until then, and numbers for "
     "longer. Put data back by a restart ([what to do](packaging/prometheus/RUNBOOK.md#sidflakedataloss))")
def put_back(case):
    redis = case.pool()
    dumps = [(key, redis.ask("DUMP", key)) for key in redis.ask("KEYS", "sidflake:*")]
    options = {"workers.spare": 0, "sequences.define": ["orders --on-loss refuse"], "limits.max_wait": "5s"}

    def number(of):
        with of.resp() as r:
            return r.ask("INCR", "seq:orders")

    s = case.sidecar(redis, options)
    numbers = {number(s) for _ in range(50)}
    with wire.Resp(redis.sock) as r:  # at once: whoever asks meanwhile would know that it is gone
        keys = r.ask("KEYS", "sidflake:*")
        r.ask("MULTI")
        r.ask("DEL", *keys)
        for key, dump in dumps:
            r.ask("RESTORE", key, 0, dump)
        assert len(r.ask("EXEC")) == 1 + len(dumps)
    new = case.sidecar(redis, options)
    assert new.worker() == s.worker()
    assert number(new) in numbers
    until("one of them loses it", lambda: "workerId lost" in s.log() + new.log(), 60)
    until("and has another", lambda: s.held() == new.held() == 1 and new.worker() != s.worker())
    assert number(new) in numbers


@row("sidecar killed, restarted with its `state_dir`",
     "goes on with the same workerId at once, Redis up or down; where Redis hangs, after "
     "`coordinator.timeout`")
def killed(case):
    redis = case.pool()
    s = case.sidecar(redis, {"coordinator.timeout": "1s"})
    s.wait_held(2)
    values = [s.id()]
    for seconds, what_else in ((0, lambda: None), (1, lambda: os.kill(redis.pid, signal.SIGSTOP)),
                               (0, redis.kill)):
        what_else()
        s.kill()
        started = time.monotonic()
        s.start()
        goes_on(s, values)
        assert time.monotonic() - started < seconds + SLACK
    assert {ids.worker_of(v) for v in values} == {0}


@row("sidecar upgraded (`systemctl reload`, SIGUSR2)",
     "the new program takes over sockets, connections and workerIds: clients wait a few "
     "milliseconds")
def upgraded(case):
    s = case.sidecar(case.pool())
    s.wait_held(2)
    asker = test_clock.Asker(s)
    pid = s.pid
    asker.ask(1)
    os.kill(pid, signal.SIGUSR2)
    end = time.monotonic() + 10
    while "taken over" not in s.log() and time.monotonic() < end:
        asker.ask(20)
    asker.ask(100)
    ids.check_increasing(asker.values)
    assert s.pid == pid and s.log().count("starting") == 2 and asker.workers() == [0]
    assert asker.slowest_s < 0.5, asker.slowest_s


@row("sidecar killed, `state_dir` gone", "that workerId rests for up to an hour and a minute")
def forgotten(case):
    clock = case.clock()
    redis = case.pool("--workers", "0-1", clock=clock)
    s = old_sidecar(case, redis, clock)
    before = s.id()
    s.kill()
    shutil.rmtree(s.state_dir)
    s.start(wait=False)
    s.wait_listening()
    clock.step(HOUR + MINUTE - 10)
    time.sleep(2)
    assert s.ready_status() == 503
    clock.step(10 + SKEWS)
    s.wait_ready(20)
    assert s.id() > before


@row("SQLite file deleted, or put back from a copy, be it by `cp` over it",
     "sidecars go on if renewed within the hour; new ones wait an hour")
def sqlite(case):
    clock = case.clock()
    path = case.path("pool.db")
    url = "sqlite://" + path
    s = old_sidecar(case, url, clock, options={"coordinator.auto_init": True,
                                               "lease.renew_every": "1s"})
    values = [s.id()]
    event = time.monotonic()
    os.unlink(path)
    s.wait_log("pool made.*after-loss")
    new = newcomer(case, url, HOUR + SKEWS, event, clock)
    goes_on(s, values)
    new.stop()
    for put_back in (shutil.copyfile, os.rename):
        shutil.copyfile(path, path + ".copy")
        with contextlib.closing(sqlite3.connect(path)) as shell:  # somebody has it open meanwhile
            shell.execute("SELECT count(*) FROM pool").fetchall()
            ages(s, clock, 3 * MINUTE)
            event = time.monotonic()
            put_back(path + ".copy", path)
            new = newcomer(case, url, HOUR + SKEWS, event, clock)
        goes_on(s, values)
        new.stop()


@row("clock back by less than 15 ms", "requests wait it out")
def little(case):
    test_clock.ten(case)


@row("clock back by more",
     "a spare workerId takes over within the same request; where it steps again before the spare is "
     "replaced (up to 30 s), the coordinator gives another only to a clock that is right within 2 s: "
     "errors until then")
def more(case):
    test_clock.rotates(case, 1)
    clock = case.clock()
    s = case.sidecar(case.pool(), {"workers.spare": 0, "limits.max_wait": "1s"}, clock=clock)
    asker = test_clock.Asker(s)
    asker.ask(5)
    clock.step(-1)
    asker.ask(5)  # waits for another workerId
    assert len(asker.workers()) == 2
    clock.step(-9)
    assert refused(s)
    clock.step(9)
    asker.ask(5)
    ids.check_distinct(asker.values)


ROWS["memory of a running sidecar cloned (a VM snapshot restored twice)"] = \
    "not closable by any local issuer: both copies issue until the second renewal that the " \
    "coordinator answers, so for two intervals, and up to the horizon while it is away. Numbers of " \
    "sequences that it held repeat where it is restored once"
