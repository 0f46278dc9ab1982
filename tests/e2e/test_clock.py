"""Clocks that step, under a sidecar that serves all the while."""

import time

import ids
from harness import until
from runner import test

AROUND = 100  # requests before and after a step


class Asker:
    """Asks one request after the other on one connection; none may fail."""

    def __init__(self, sidecar):
        self.conn = sidecar.resp()
        self.values = []
        self.slowest_s = 0.0

    def ask(self, n):
        for _ in range(n):
            started = time.monotonic()
            reply = self.conn.ask("GET", "id:orders")
            self.slowest_s = max(self.slowest_s, time.monotonic() - started)
            assert isinstance(reply, bytes), "expected an ID, found %r" % (reply,)
            self.values.append(int(reply))

    def workers(self):
        """workerIds in the order in which they came up."""
        return list(dict.fromkeys(ids.worker_of(v) for v in self.values))


def setup(case, *init, options=None):
    clock = case.clock()
    redis = case.pool(*init)
    s = case.sidecar(redis, options, clock=clock)
    s.wait_held(2)
    return clock, redis, s, Asker(s)


@test("back by 10 ms: requests wait, none fails, IDs increase, same workerId")
def ten(case):
    clock, _, s, asker = setup(case)
    for _ in range(5):
        asker.ask(AROUND)
        clock.step(-0.010)
        asker.ask(AROUND)
    ids.check_increasing(asker.values)
    assert asker.workers() == [0]
    assert 0.005 < asker.slowest_s < 0.5, "a wait of about 10 ms is expected, found %.4f s" % \
        asker.slowest_s
    # Not each of the five has to be seen: a pause of this process lets the true time catch up.
    assert s.metric("sidflake_clock_rollbacks_total") >= 1
    assert s.metric("sidflake_rotations_total") == 0
    assert s.metric("sidflake_clock_wait_seconds_total") > 0.005


def rotates(case, step):
    clock, redis, s, asker = setup(case)
    asker.ask(AROUND)
    for _ in range(5):  # a pause of this process may let the true time catch up with a short step
        gap = time.monotonic()
        asker.ask(1)
        clock.step(-step)
        asker.ask(1)
        gap = time.monotonic() - gap
        if asker.workers() != [0]:
            break
        assert gap > 0.004, "back by %g s was not answered by a rotation" % step
    asker.ask(AROUND)
    ids.check_distinct(asker.values)
    assert asker.workers() == [0, 1], asker.workers()
    old = [v for v in asker.values if ids.worker_of(v) == 0]
    new = [v for v in asker.values if ids.worker_of(v) == 1]
    ids.check_increasing(old)
    ids.check_increasing(new)
    assert asker.slowest_s < 0.5, "slowest request: %.4f s" % asker.slowest_s
    until("0 is back in the queue", lambda: redis.queue()[-1] == 0)
    record = redis.record(0)
    assert record["token"] == "-" and record["hwm"] == ids.time_of(old[-1]), (record, old[-1])
    m = s.metrics()
    assert m.value("sidflake_rotations_total") == 1
    assert m.value("sidflake_clock_rollbacks_total") >= 1
    assert m.value("sidflake_clock_rollback_seconds_count") >= 1
    assert m.value("sidflake_worker_id", slot="0") == 1
    s.wait_log("clock stepped back: workerId rotated")


@test("back by 20 ms: the spare takes over within one request")
def twenty(case):
    rotates(case, 0.020)


@test("back by 1 s: the spare takes over within one request")
def second(case):
    rotates(case, 1)


@test("back by 1 h: the spare takes over within one request")
def hour(case):
    rotates(case, 3600)


@test("back by 500 ms without a spare: another workerId is claimed, and no request fails")
def no_spare(case):
    clock = case.clock()
    redis = case.pool()
    s = case.sidecar(redis, {"workers.spare": 0, "limits.max_wait": "1s"}, clock=clock)
    asker = Asker(s)
    asker.ask(AROUND)
    clock.step(-0.5)
    asker.ask(AROUND)
    ids.check_distinct(asker.values)
    assert len(asker.workers()) == 2, asker.workers()
    until("0 is back in the queue", lambda: redis.queue()[-1] == 0)


@test("back by 20 s without a spare, and nobody asks: a look at /readyz has another workerId claimed")
def nobody_asks(case):
    clock = case.clock()
    s = case.sidecar(case.pool(), {"workers.spare": 0}, clock=clock)
    value = s.id()
    clock.step(20)
    value = max(value, s.id())
    clock.step(-20)
    until("it is ready", lambda: s.ready_status() == 200)
    assert ids.worker_of(s.id()) != ids.worker_of(value)


@test("back by 1 h with neither spare nor Redis: an error after max_wait, then on in time")
def nothing_left(case):
    clock = case.clock()
    redis = case.pool()
    s = case.sidecar(redis, {"workers.spare": 0}, clock=clock)
    asker = Asker(s)
    asker.ask(AROUND)
    redis.pause()
    clock.step(-3600)
    started = time.monotonic()
    with s.resp() as r, s.mc() as m:
        reply = r.ask("GET", "id:orders")
        assert str(reply).startswith("TRYAGAIN "), reply
        assert m.ask("get id:orders").startswith("SERVER_ERROR ")
    assert 0.15 < time.monotonic() - started < 2
    assert s.ready_status() == 503
    clock.step(3600)
    asker.ask(AROUND)
    ids.check_increasing(asker.values)
    assert asker.workers() == [0]
    redis.resume()


@test("ahead by 1 h: refused above the ceiling; back again: on with the same workerId, no repeats")
def ahead(case):
    clock, redis, s, asker = setup(case)
    asker.ask(AROUND)
    ceiling = redis.record(0)["hwm"]
    clock.step(3600)
    with s.resp() as r:
        reply = r.ask("GET", "id:orders")
        assert str(reply).startswith("ERR ") and "range of time held" in str(reply), reply
    assert s.ready_status() == 503
    s.wait_log("clock jumped forward|clock is past every range")
    until("the clock is named, not the coordinator",
          lambda: "ahead of the coordinator's" in s.http("/readyz?verbose").text)
    assert s.metric("sidflake_coordinator_up") == 1
    clock.step(-3600)
    asker.ask(AROUND)
    ids.check_increasing(asker.values)
    assert asker.workers() == [0]
    assert redis.record(0)["hwm"] < ceiling + 60000, "the ceiling must come from Redis's time"


@test("ahead by 10 s, then back: IDs of the future are not repeated")
def ahead_and_back(case):
    clock, redis, _, asker = setup(case)
    asker.ask(AROUND)
    clock.step(10)
    asker.ask(AROUND)
    clock.step(-10)
    asker.ask(AROUND)
    ids.check_distinct(asker.values)
    assert asker.workers() == [0, 1]
    until("0 is back in the queue", lambda: redis.queue()[-1] == 0)
    old = [v for v in asker.values if ids.worker_of(v) == 0]
    assert redis.record(0)["hwm"] == ids.time_of(max(old)) > ids.now_ms() + 5000


@test("back by 1 s on all hosts at once, Redis too: both sidecars rotate, no ID repeats")
def everywhere(case):
    clock = case.clock()
    redis = case.pool(clock=clock)
    pair = [case.sidecar(redis, clock=clock) for _ in range(2)]
    askers = [Asker(s) for s in pair]
    for s in pair:
        s.wait_held(2)
    for a in askers:
        a.ask(AROUND)
    clock.step(-1)
    for a in askers:
        a.ask(AROUND)
    ids.check_distinct(askers[0].values + askers[1].values)
    assert sorted(askers[0].workers() + askers[1].workers()) == [0, 1, 2, 3]
    until("both are back in the queue",
          lambda: len([w for w in redis.queue()[-2:] if w < 4]) == 2)


@test("1 h off at a claim: refused, naming both clocks")
def skewed(case):
    clock = case.clock()
    clock.set(-3600)
    redis = case.pool()
    s = case.sidecar(redis, clock=clock, wait=False)
    s.wait_listening()
    found = s.wait_log(r"within 2000 ms of the coordinator's (\S+), found (\d\S+Z)")
    theirs, ours = (time.mktime(time.strptime(t[:19], "%Y-%m-%dT%H:%M:%S")) for t in found.groups())
    assert abs(theirs - ours - 3600) < 5, found.group(0)
    with s.resp() as r:
        assert str(r.ask("GET", "id:orders")).startswith("LOADING ")
    assert s.ready_status() == 503 and redis.held() == []
    assert abs(s.metric("sidflake_clock_skew_seconds") - 3600) < 5
    clock.set(0)
    s.wait_ready()
    s.id()
