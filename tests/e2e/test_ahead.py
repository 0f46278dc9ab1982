"""IDs ahead of the clock: borrowed in a burst, or held while the clock steps back."""

import os
import re

import ids
from harness import TOP, until
from runner import test
from test_clock import AROUND, setup
from test_ctl import on_top
from test_upgrade import upgrade

HOLD = {"clock.on_rollback": "hold"}
BORROW = {"ids.overflow": "borrow"}
FEW = "time:41 worker:10 sequence:2"  # 4 in a millisecond


def time_of(value):
    """Of those of FEW."""
    return (value >> 12) + ids.EPOCH_MS


def burst(r, requests, each):
    return [int(v) for _ in range(requests) for v in r.ask("LPOP", "id:orders", str(each))]


@test("hold: clock steps of -10 ms, -1 s, -1 h, +1 h and back: no error, strictly increasing, no rotation")
def hold(case):
    clock, _, s, asker = setup(case, options=HOLD)
    asker.ask(AROUND)
    for step in (-0.010, -1, -3600, 3600):
        clock.step(step)
        asker.ask(AROUND)
        clock.step(-step)
        asker.ask(AROUND)
    clock.step(-3600)
    with s.resp() as r:  # more than the latest millisecond has: the time goes on
        asker.values += burst(r, 10, 1000)
    ids.check_increasing(asker.values)
    assert asker.workers() == [0]
    assert asker.slowest_s < 0.5, "slowest request: %.4f s" % asker.slowest_s
    clock.step(3600)
    # +1 h was believed as far as the coordinator's time bears out.
    assert ids.time_of(asker.values[-1]) < clock.ms() + 5000, ids.time_of(asker.values[-1])
    m = s.metrics()
    assert m.value("sidflake_rotations_total") == 0
    assert m.value("sidflake_clock_rollbacks_total") >= 3
    assert m.value("sidflake_ahead_seconds") <= 5
    assert s.ready_status() == 200


@test("borrow: in the place of an SQLite file, a fresh pool made as sidflake.yaml(5) says repeats no ID")
def fresh_after_borrow(case):
    with open(os.path.join(TOP, "packaging", "man", "sidflake.yaml.5")) as f:
        told = re.search("^Who must not wait.*?^Or he makes", f.read(), re.M | re.S).group()
    clock = case.clock()
    s = case.sidecar("sqlite://" + case.path("pool.db"), {
        **BORROW, "coordinator.auto_init": True, "layout": FEW, "limits.batch": 8192}, clock=clock)
    with s.resp() as r:
        values = burst(r, 20, 5000)
    assert time_of(values[-1]) > clock.ms() + 5000
    assert s.stop() == 0
    for name in os.listdir(case.dir):
        if name == "pool.db" or name.startswith(".pool.db-tally."):
            os.unlink(case.path(name))
    os.unlink(os.path.join(s.state_dir, "worker.page"))
    clock.step(30 if re.search(r"waits.*\.Fl -first-horizon", told, re.S) else 0)
    s.start()
    with s.resp() as r:
        ids.check_distinct(values + burst(r, 20, 5000))


@test("borrow: 100,000 IDs as fast as they are asked for, though a ms has 4; none above the range")
def borrow(case):
    redis = case.pool("--fresh", "--layout", FEW)
    s = case.sidecar(redis, {**BORROW, "limits.batch": 8192, "limits.max_wait": "0s"})
    s.wait_held(2)
    with s.resp() as r:
        values = burst(r, 20, 5000)
        ahead = time_of(values[-1]) - ids.now_ms()
        ids.check_increasing(values)
        # It would have waited for 25 s otherwise.
        assert len(values) == 100000 and 15000 < ahead < 30500, ahead
        assert s.metric("sidflake_carried_total") > 24000
        assert 10 < s.metric("sidflake_ahead_seconds") <= 30
        record = redis.record(s.worker())
        assert time_of(values[-1]) <= record["hwm"], (values[-1], record)
        # No farther than the pool's first horizon above its time: there requests wait, and none fails.
        more = burst(r, 10, 5000)
        assert time_of(more[-1]) - ids.now_ms() < 30500, time_of(more[-1])
        assert s.metric("sidflake_rotations_total") == 0
    ids.check_increasing(values + more)
    page = s.http("/").text
    assert re.search("<dt>ahead</dt><dd>[0-9.]+ s of the clock; carried into a later unit [0-9,]+ times</dd>",
                     page), page
    assert "at most 4 of 4 IDs in 1 ms" in page, page
    with on_top(s) as t:
        t.shows(r"Sequence +peak 4 of 4 in 1\.0 ms; used up for \S+ requests *$")
        t.shows(r"Clock +0 rollbacks, 0 rotations, \S+ m?s waited; IDs [\d.]+ s ahead")
    worker = s.worker()
    s.stop()  # with its exact last time, ahead as it is
    assert redis.record(worker)["hwm"] == time_of(more[-1]), (redis.record(worker), more[-1])


@test("an upgrade in place goes on with what was borrowed, above the exact last time")
def upgraded(case):
    redis = case.pool("--fresh", "--layout", FEW)
    s = case.sidecar(redis, {**BORROW, "limits.batch": 8192})
    s.wait_held(2)
    with s.resp() as r:
        values = burst(r, 4, 5000)
    worker = s.worker()
    redis.kill()
    assert 'workerIds="taken over"' in upgrade(s)
    with s.resp() as r:
        for _ in range(4):
            values.append(int(r.ask("GET", "id:orders")))
    ids.check_increasing(values)
    assert s.worker() == worker and time_of(values[-1]) > ids.now_ms() + 1000


@test("killed while ahead: its workerIds rest until their ranges end, others are claimed, IDs go on above")
def killed(case):
    clock, redis, s, asker = setup(case, options=HOLD)
    asker.ask(AROUND)
    ranges = {w: redis.record(w)["hwm"] for w in (0, 1)}
    s.kill()
    clock.step(-1.5)  # within what the pool takes of a clock
    s.start()
    with s.resp() as r:
        again = [int(r.ask("GET", "id:orders")) for _ in range(AROUND)]
    ids.check_increasing(asker.values + again)
    assert {ids.worker_of(v) for v in again} == {2}
    until("they are given back", lambda: redis.held() == [2, 3])
    for w, hwm in ranges.items():
        assert redis.record(w)["hwm"] == hwm and redis.record(w)["token"] == "-", redis.record(w)


@test("killed while ahead, and no coordinator: nothing to issue from until there is one")
def killed_alone(case):
    redis = case.pool()
    s = case.sidecar(redis, {**BORROW, "limits.max_wait": "100ms"})
    value = s.id()
    s.kill()
    redis.pause()
    s.start(wait=False)
    s.wait_listening()
    with s.resp() as r:
        assert str(r.ask("GET", "id:orders")).startswith("LOADING "), "an ID without a coordinator"
    redis.resume()
    until("it serves", lambda: s.ready_status() == 200, timeout=20)
    assert s.id() > value
