"""How workerIds are claimed, given back and kept, as seen in Redis."""

import json
import os
import re
import time

import ids
from harness import until
from runner import test

POOL = 32768


@test("pool init --fresh queues 32,768 workerIds, once")
def init_fresh(case):
    redis = case.pool()
    assert redis.free() == POOL
    assert redis.queue() == list(range(POOL))
    again = case.ctl("pool", "init", "--coordinator", redis.url, "--fresh")
    assert again.returncode == 1 and "already" in again.stderr, again
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--if-missing", expect=0)
    assert redis.free() == POOL


@test("the first sidecar holds 0 and 1, and SIGTERM puts them at the tail with their last time")
def first_two(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    assert redis.held() == [0, 1] and redis.free() == POOL - 2
    assert s.worker() == 0
    last = [s.id() for _ in range(10)][-1]
    assert s.stop() == 0, s.log()
    assert redis.free() == POOL and sorted(redis.queue()[-2:]) == [0, 1]
    assert redis.queue()[0] == 2, "the next claim is expected to get another workerId"
    used, spare = redis.record(0), redis.record(1)
    assert used["token"] == "-" and used["hwm"] == ids.time_of(last), used
    assert spare["token"] == "-" and spare["hwm"] == 0, "the spare was never used: %r" % spare
    assert redis.held() == []


@test("a workerId that was given back is issued from again above its last time")
def reuse(case):
    redis = case.pool("--workers", "7-7")
    first = case.sidecar(redis, {"workers.spare": 0})
    before = [first.id() for _ in range(100)]
    assert first.stop() == 0
    second = case.sidecar(redis, {"workers.spare": 0})
    after = [second.id() for _ in range(100)]
    assert {ids.worker_of(v) for v in before + after} == {7}
    ids.check_increasing(before + after)


@test("several sidecars and slots never share a workerId")
def disjoint(case):
    redis = case.pool()
    sidecars = [case.sidecar(redis, {"workers.active": 3, "workers.spare": 2}) for _ in range(4)]
    held = []
    for s in sidecars:
        s.wait_held(5)
        held += [int(v) for v in s.metrics().find("sidflake_worker_id")]
    assert len(set(held)) == 20, held
    assert redis.held() == sorted(held) and redis.free() == POOL - 20
    for s in sidecars:
        assert s.metric("sidflake_pool_free") >= POOL - 20


@test("renewals raise the ceiling and change the token")
def renewals(case):
    redis = case.pool()
    s = case.sidecar(redis)
    before = redis.record(0)
    until("a higher ceiling", lambda: redis.record(0)["hwm"] > before["hwm"])
    after = redis.record(0)
    assert after["token"] != before["token"] and after["n"] > before["n"], (before, after)
    assert after["t0"] == before["t0"] and after["era"] == before["era"]
    assert 0 < s.metric("sidflake_reservation_seconds") <= 30.5
    assert s.metric("sidflake_renewals_total", result="renewed") >= 1


@test("lease.on_stop keep: the next start goes on with the same workerIds")
def keep(case):
    redis = case.pool()
    s = case.sidecar(redis, {"lease.on_stop": "keep"})
    s.wait_held(2)
    before = [s.id() for _ in range(50)]
    assert s.stop() == 0
    assert redis.free() == POOL - 2 and redis.held() == [0, 1]
    s.start()
    after = [s.id() for _ in range(50)]
    ids.check_increasing(before + after)
    assert {ids.worker_of(v) for v in before + after} == {0}


@test("a second sidecar on one state_dir refuses to start and names the lock and the pid")
def one_each(case):
    redis = case.pool()
    first = case.sidecar(redis)
    second = case.sidecar(redis, state=first.state_dir, wait=False)
    assert second.wait() not in (0, None)
    page = os.path.join(first.state_dir, "worker.page")
    assert page in second.log() and "pid %d" % first.pid in second.log(), second.log()
    first.id()
    assert redis.held() == [0, 1], "the second sidecar must claim nothing"


@test("no writable state_dir: a warning, and IDs all the same")
def no_state(case):
    redis = case.pool()
    plain = case.path("file")
    open(plain, "w").close()
    s = case.sidecar(redis, state=os.path.join(plain, "state"))
    ids.check_increasing([s.id() for _ in range(10)])
    s.wait_log("warn +no state page.*Not a directory")


@test("two pools on one Redis are two pools")
def two_pools(case):
    redis = case.pool()
    case.ctl("pool", "init", "--coordinator", redis.url, "--pool", "other", "--workers", "100-109",
             expect=0)
    a = case.sidecar(redis)
    b = case.sidecar(redis, {"coordinator.pool": "other"})
    b.wait_held(2)
    assert (a.worker(), b.worker()) == (0, 100)
    assert redis.free("other") == 8 and redis.held("other") == [100, 101]
    assert redis.free() == POOL - 2


@test("no free workerId: -LOADING that says so, until one comes back")
def exhausted(case):
    redis = case.pool("--workers", "5-5")
    first = case.sidecar(redis, {"workers.spare": 0})
    second = case.sidecar(redis, {"workers.spare": 0}, wait=False)
    second.wait_log("no free workerId")
    with second.resp() as r:
        reply = r.ask("GET", "id:orders")
    assert str(reply).startswith("LOADING ") and "no free workerId" in str(reply), reply
    told = re.search(r"is so from (\S+) on", str(reply)).group(1)
    j = json.loads(case.ctl("pool", "status", "--json", "--coordinator", redis.url).stdout)
    assert j["free"] == 0 and abs(ids.ms_of(j["grants_from"]) - ids.ms_of(told)) < 40000, (j, told)
    assert ids.ms_of(told) > time.time() * 1000 + 60000, told  # its range, and the grace
    assert any("no workerId is free" in w and j["grants_from"] in w for w in j["warnings"]), j
    last = first.id()
    assert first.stop() == 0
    second.wait_ready()
    assert second.id() > last and second.worker() == 5
