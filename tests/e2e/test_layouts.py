"""Pools whose IDs have other bits than the usual ones, read here by their definition alone."""

import json
import os
import shlex
import time

import ids
from harness import SIDFLAKECTL
from runner import test

# --layout: shifts of time, workerId and sequence, bits of the last two, ms of a unit
LAYOUTS = {
    "twitter": (22, 12, 0, 10, 12, 1),
    "sonyflake": (24, 0, 16, 16, 8, 10),
    "js53": (15, 7, 0, 8, 7, 10),
    "time:36,unit=1s worker:8 zero:2 sequence:12 zero:1": (23, 15, 1, 8, 12, 1000),
}
SHORT = {"twitter": "t41.w5+5.s12", "sonyflake": "t39*10.s8.w16", "js53": "t38*10.w8.s7"}


def read(value, layout):
    """Unix ms of the unit, workerId, sequence; nothing else is set."""
    t, w, s, worker_bits, sequence_bits, unit = LAYOUTS[layout]
    ms = value >> t
    worker, sequence = value >> w & (1 << worker_bits) - 1, value >> s & (1 << sequence_bits) - 1
    assert value == ms << t | worker << w | sequence << s, "%x" % value
    return ms * unit + ids.EPOCH_MS, worker, sequence


def some_ids(s, layout):
    """As each protocol and command gives them, in the order of asking."""
    stride = 1 << LAYOUTS[layout][2]
    with s.resp() as r:
        out = [int(r.ask("GET", "id:orders")), r.ask("INCR", "id:orders")]
        out += [int(v) for v in r.ask("LPOP", "id:orders", "5")]
        out += [int(v) for v in r.ask("MGET", "id:orders", "id:b", "id:orders")]
        last = r.ask("INCRBY", "id:orders", "3")
        if stride == 1:
            out += [last - 2, last - 1, last]
        else:
            assert "expected 1 to 1, found 3" in str(last), last
        out += [int(v) for _ in range(30) for v in r.ask("LPOP", "id:orders", "50")]
    return out + [int(s.http("/v1/id/orders").text)]


@test("IDs of other layouts, over each protocol: their bits, their times, in order; decode and range")
def layouts(case):
    for layout in LAYOUTS:
        redis = case.pool("--fresh", "--layout", layout)
        at = ["--coordinator", redis.url]
        s = case.sidecar(redis, {"workers.active": 1})
        before = ids.now_ms()
        values = some_ids(s, layout)
        unit = LAYOUTS[layout][5]
        ids.check_increasing(values)
        held = s.worker()
        for value in values:
            ms, worker, _ = read(value, layout)
            assert before - unit - ids.SLACK_MS < ms <= ids.now_ms() + ids.SLACK_MS, (layout, value)
            assert worker == held, (layout, value)
        for by in (at, ["--connect", "tcp://127.0.0.1:%d" % s.resp_port], ["--epoch", "2026-01-01T00:00:00Z", "--layout", layout]):
            told = json.loads(case.ctl("decode", "--json", *by, str(values[-1]), expect=0).stdout)[0]
            assert (told["unix_ms"], told["worker"], told["sequence"]) == read(values[-1], layout), told
        assert "sequence=%d" % read(values[-1], layout)[2] in s.http("/v1/decode/%d" % values[-1]).text
        lo, hi = map(int, case.ctl("range", *at, "--from", told["time"], "--to", told["time"],
                                   expect=0).stdout.split())
        assert lo <= values[-1] <= hi and read(lo, layout)[0] == read(hi, layout)[0] == told["unix_ms"]
        status = json.loads(case.ctl("pool", "status", *at, "--json", expect=0).stdout)
        assert status["identity"].endswith("|" + SHORT.get(layout, "t36*1000.w8.z2.s12.z1")), status
        assert status["parameters"]["worker_to"] == min(2 ** LAYOUTS[layout][3], 32768) - 1, status
        s.stop()


@test("a pool of another layout than the config's is refused, naming both; of the same it serves")
def pinned_layout(case):
    redis = case.pool("--fresh", "--layout", "twitter")
    s = case.sidecar(redis, {"layout": "discord"})  # the same bits
    s.id()
    s = case.sidecar(redis, {"layout": "js53"}, wait=False)
    s.wait_log("expected a pool of layout .*time:38,unit=10ms worker:8 sequence:7.*, found layout "
               ".*time:41 worker:5.5 sequence:12")
    assert s.ready_status() == 503


@test("the sequence above the workerId wants workers.active: 1")
def active(case):
    redis = case.pool("--fresh", "--layout", "sonyflake")
    s = case.sidecar(redis, {"workers.active": 2}, wait=False)
    s.wait_log("expected workers.active: 1 for the pool's layout")
    assert redis.held() == []


@test("the command printed after a loss has the layout, and who runs goes on; so has that for none")
def recovery(case):
    redis = case.pool("--fresh", "--layout", "time:35,unit=100ms worker:6 sequence:11")
    s = case.sidecar(redis)
    s.wait_held(2)
    values = [s.id() for _ in range(20)]
    redis.ask("FLUSHALL")
    told = shlex.split(s.wait_log(r"no pool .*`sidflakectl (pool init[^`]*)`").group(1))
    assert told[told.index("--layout") + 1] == "t35*100.w6.s11", told
    case.ctl(*told, expect=0)
    s.wait_log("coordinator.*up|reassert|answers", timeout=40)
    values += [s.id() for _ in range(20)]
    ids.check_increasing(values)

    none = case.redis()
    s = case.sidecar(none, {"layout": "time:35,unit=100ms worker:6 sequence:11"}, wait=False)
    command = s.wait_log("make it with `(sidflakectl [^`]*)`").group(1)
    case.run("sh", "-c", command.replace("sidflakectl", SIDFLAKECTL, 1) + " --fresh", expect=0)
    s.wait_ready()
    s.id()


def popped(s):
    with s.resp() as r:
        return [int(v) for v in r.ask("LPOP", "id:a", "50")]


@test("a fresh pool behind one that was removed at once: no unit of the one before is used again")
def removed(case):
    layout = "time:36,unit=1s worker:8 zero:2 sequence:12 zero:1"
    url = "sqlite://" + os.path.join(case.path("pools"), "pool.db")
    os.makedirs(case.path("pools"))
    options = {"coordinator.auto_init": True, "layout": layout, "workers.active": 1}
    s = case.sidecar(url, options)
    for again in ("by itself", "by hand", "by itself"):
        time.sleep(1 - time.time() % 1)
        values = popped(s)
        s.stop()
        for name in os.listdir(case.path("pools")):
            os.unlink(os.path.join(case.path("pools"), name))
        os.unlink(os.path.join(s.state_dir, "worker.page"))
        if again == "by hand":
            case.ctl("pool", "init", "--coordinator", url, "--fresh", "--layout", layout, expect=0)
        s.start()
        values += popped(s)
        assert read(values[0], layout)[1] == read(values[-1], layout)[1], again  # so the time has to differ
        ids.check_increasing(values)


@test("static:N with a layout: its bits, and no N that has no room")
def static(case):
    s = case.sidecar("static:1023?layout=twitter", {"workers.spare": 0})
    assert read(s.id(), "twitter")[1] == 1023
    r = case.sidflake("-t", "--set", "coordinator.url=static:1024?layout=twitter")
    assert r.returncode == 78 and "N of 0 to 1023" in r.stderr, r


@test("layouts that are none are refused at the start, each with its reason")
def odd(case):
    redis = case.redis()
    for layout, says in (("twiter", 'found "twiter"'), ("time:41 worker:10", "found no sequence"),
                         ("worker:10 time:41 sequence:12", "found worker above it"),
                         ("time:45 worker:10 sequence:12", "63 bits at most")):
        r = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--layout", layout)
        assert r.returncode == 2 and says in r.stderr, r
        r = case.sidflake("-t", "--set", "coordinator.url=" + redis.url, "--set", "layout=" + layout)
        assert r.returncode == 78 and says in r.stderr, r
    r = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--layout", "js53",
                 "--workers", "0-256")
    assert r.returncode == 2 and "within 0-255" in r.stderr, r
    r = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--layout", "baidu",
                 "--epoch", "2016-05-20T00:00:00Z")
    assert r.returncode == 2 and "is not over" in r.stderr, r
