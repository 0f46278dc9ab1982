"""Pools that were closed, and are opened again."""

import json
import os
import re

import harness
import ids
from harness import until
from runner import test
from terminal import Terminal


def ctl_json(case, *args, **kwargs):
    return json.loads(case.ctl(*args, "--json", **kwargs).stdout)


def coordinators(case, *args):
    """A pool in Redis, and one in an SQLite file."""
    url = "sqlite://" + case.path("pool.db")
    case.ctl("pool", "init", "--coordinator", url, *(args or ("--fresh",)), expect=0)
    return case.pool(*args).url, url


@test("pool open takes pool close and drain back: Redis and SQLite; it asks, and says what it means")
def opens(case):
    for url in coordinators(case):
        on = ("--coordinator", url)
        s = case.sidecar(url)
        s.wait_held(2)
        case.ctl("pool", "close", "--yes", *on, expect=0)
        second = case.sidecar(url, wait=False)
        second.wait_log("closed")
        [warning] = [w for w in ctl_json(case, "pool", "status", *on)["warnings"] if "closed" in w]
        assert "`sidflakectl pool open --coordinator %s --pool default`" % url in warning, warning
        refused = case.ctl("pool", "open", *on, expect=2).stderr
        assert "pool open: expected --yes where there is no terminal" in refused, refused
        with Terminal([harness.SIDFLAKECTL, "pool", "open", *on], rows=10, cols=300) as t:
            t.shows("If it was made again at another coordinator and is not closed there, IDs will repeat")
            t.keys("n\n")
            t.shows("nothing was changed")
            assert t.end() == 1
        assert ctl_json(case, "pool", "status", *on)["closed"]
        case.ctl("pool", "drain", "--yes", "--timeout", "0", *on, expect=1)
        with Terminal([harness.SIDFLAKECTL, "pool", "open", *on], rows=10, cols=300) as t:
            t.shows(r"\[y/N\]")
            t.keys("y\n")
            t.shows("^open: sidecars renew again; new ones get a workerId at once")
            assert t.end() == 0
        second.wait_ready()
        first = [s.id() for _ in range(20)]
        assert not set(first) & {second.id() for _ in range(20)}
        assert "open already" in case.ctl("pool", "open", *on, expect=0).stdout


@test("pool open: of a pool without a free workerId it is not said that new sidecars get one")
def opens_what_is_held(case):
    for url in coordinators(case, "--fresh", "--workers", "0-1"):
        on = ("--coordinator", url)
        case.sidecar(url).wait_held(2)
        case.ctl("pool", "close", "--yes", *on, expect=0)
        told = case.ctl("pool", "open", "--yes", *on, expect=0).stdout
        assert re.search(r"new ones get a workerId from 20\S+ on, if its holder is gone: none is free$", told), told


@test("pool open: not beside the pool that was made in its place; once that one is closed, new sidecars wait")
def opens_what_moved(case):
    for url in coordinators(case):
        on = ("--coordinator", url)
        case.ctl("pool", "close", "--moved", "--yes", *on, expect=0)
        case.ctl("pool", "drain", "--yes", *on, expect=0)  # which closes it again, and keeps the mark
        assert ctl_json(case, "pool", "status", *on)["moved"] is True
        refused = case.ctl("pool", "open", "--yes", *on, expect=1).stderr
        assert "was closed as moved" in refused and "IDs would repeat" in refused, refused
        assert "with --horizon, --max-skew and --ahead as the line options of its" in refused, refused
        command = re.search("`sidflakectl ([^`]*)`", refused).group(1).split()
        for wrong in ("30s", "25h"):
            case.ctl(*command, "--yes", "--horizon", wrong, expect=2)
        for option in (("--horizon", "1h"), ("--max-skew", "1s"), ("--ahead", "2h")):
            alone = case.ctl("pool", "open", "--yes", *on, *option, expect=2).stderr
            assert "expected with --moved-back alone" in alone, alone
        with Terminal([harness.SIDFLAKECTL, "pool", "open", "--moved-back", *on], rows=10, cols=900) as t:
            asked = t.shows(r"New sidecars get a workerId from (20\S+) on\.").group(1)
            assert ids.ms_of(asked) > ids.now_ms() + 86400_000, asked  # as long as any pool may grant
            t.keys("n\n")
            assert t.end() == 1
        r = case.ctl(*command, "--yes", "--horizon", "1h", "--max-skew", "2s", expect=0)
        status = ctl_json(case, "pool", "status", *on)
        assert status["grants_from"] in r.stdout and not status["moved"], (r.stdout, status)
        assert 3590_000 < ids.ms_of(status["grants_from"]) - ids.now_ms() < 3605_000, status
        assert status["opened_because"] == "it was opened after another had been in its place", status
        case.sidecar(url, wait=False).wait_log("every free workerId rests")


@test("pool open: the pool in its place had a longer horizon: who is cut off from both repeats nothing")
def opens_what_moved_to_a_longer_horizon(case):
    clock = case.clock()
    old, new = case.redis(clock=clock), case.redis(clock=clock)

    def ctl(*args):
        return case.ctl("pool", *args, env=clock.env, expect=0).stdout
    ctl("init", "--coordinator", old.url, "--fresh", "--workers", "0-9")
    ctl("close", "--moved", "--yes", "--coordinator", old.url)
    ctl("init", "--coordinator", new.url, "--fresh", "--workers", "0-9", "--horizon", "24h")
    a = case.sidecar(new, {"workers.spare": 0}, clock=clock)
    clock.step(130)
    day = 86400_000
    until("a day ahead", lambda: new.record(0)["hwm"] > clock.ms() + day - 60_000)
    ctl("close", "--yes", "--coordinator", new.url)
    told = ctl("open", "--moved-back", "--yes", "--coordinator", old.url)
    assert ids.ms_of(told.split("from ")[1].split(" on")[0]) > clock.ms() + day, told
    clock.step(3605)
    b = case.sidecar(old, {"workers.spare": 0}, clock=clock, wait=False)
    b.wait_log("every free workerId rests for 2[23] h")
    a.id()


@test("pool open: a sidecar that asks a closed pool and knows more than it shows that it lives elsewhere")
def open_after_a_move_unsaid(case):
    redis = case.pool()
    on = ("--coordinator", redis.url)
    s = case.sidecar(redis)
    s.wait_held(2)
    case.ctl("pool", "close", "--yes", *on, expect=0)
    r = redis.record(0)
    redis.ask("HSET", "sidflake:{default}:h", "0", "%d %d %s %d 0" % (
        r["era"], r["hwm"], r["token"], r["t0"]))  # as the name of the other Redis had it meanwhile
    until("seen", lambda: ctl_json(case, "pool", "status", *on)["moved"])
    refused = case.ctl("pool", "open", "--yes", *on, expect=1).stderr
    assert "a sidecar was heard since that has workerIds of another pool" in refused, refused


@test("a pool that moves as sidflakectl(1) says: who finds it by the URL of before goes on, another URL waits")
def moves(case):
    old, new = case.pool(), case.redis()
    place = case.path("redis")  # the name that leads to either
    os.symlink(old.sock, place)
    s, other = case.sidecar("redis+unix://" + place), case.sidecar(old)
    s.wait_held(2)
    other.wait_held(2)
    case.ctl("pool", "close", "--moved", "--yes", "--coordinator", old.url, expect=0)
    status = case.ctl("pool", "status", "--coordinator", old.url, expect=0).stdout
    options = re.search("^options +(.*)$", status, re.M).group(1).split()
    case.ctl("pool", "init", "--coordinator", new.url, "--pool", "default", *options, expect=0)
    os.unlink(place)
    os.symlink(new.sock, place)
    s.wait_log("pool reopened: .* era=2", timeout=20)
    s.id()
    assert s.worker() in new.held()
    assert other.stop() == 0
    case.sidecar(new, wait=False).wait_log("every free workerId rests for 1 h 0 min")
    s.id()
