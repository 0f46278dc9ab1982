"""What a sidecar goes on with after it was killed."""

import json
import os
import re
import shutil
import threading
import time

import ids
import wire
from harness import until
from runner import test

AT_ONCE_S = 2.0  # start of the process included, on a busy machine


def hammer(sidecar, out, stop):
    """Pipelines GETs until the connection breaks; out gets every ID that was received."""
    try:
        with sidecar.resp() as r:
            while not stop.is_set():
                r.send(r.encode("GET", "id:orders") * 50)
                for _ in range(50):
                    out.append(int(r.reply()))
    except (wire.Closed, OSError):
        pass


def restarted(s):
    """Starts s again; the first ID, which must come at once."""
    started = time.monotonic()
    s.start()
    value = s.id()
    took = time.monotonic() - started
    assert took < AT_ONCE_S, "expected an ID within %g s, found %.1f" % (AT_ONCE_S, took)
    return value


@test("SIGKILL and restart: the same workerId at once, and no ID repeats, five times under load")
def killed(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    seen = []
    for _ in range(5):
        stop = threading.Event()
        t = threading.Thread(target=hammer, args=(s, seen, stop))
        t.start()
        target = len(seen) + 2000
        until("2000 more IDs", lambda: len(seen) > target)
        s.kill()
        stop.set()
        t.join()
        seen.append(restarted(s))
    ids.check_increasing(seen)
    assert {ids.worker_of(v) for v in seen} == {0}
    assert redis.held() == [0, 1] and redis.free() == 32766
    assert "workerId lost" not in s.log()


def restart_without_redis(case, down, up):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    before = [s.id() for _ in range(100)]
    s.kill()
    down(redis)
    after = [restarted(s)] + [s.id() for _ in range(100)]
    ids.check_increasing(before + after)
    assert {ids.worker_of(v) for v in before + after} == {0}
    # of the pool nothing is known yet
    status = json.loads(s.http("/v1/status").text)
    assert [status["pool"][k] for k in ("era", "free", "size", "horizon_ms")] == [None] * 4, status
    assert not [f for f in status["findings"] if f["name"] == "pool"], status["findings"]
    assert not re.search("^sidflake_pool_", s.http("/metrics").text, re.M)
    assert s.metric("sidflake_coordinator_up") == 0
    told = s.http("/metrics").text + s.http("/readyz?verbose").text
    assert "sidflake_pool_free" not in told and "left in the pool" not in told, told
    up(redis)
    return redis, s, after


@test("SIGKILL and restart while Redis hangs (SIGSTOP): the same workerId at once")
def redis_hangs(case):
    redis, s, _ = restart_without_redis(case, lambda r: r.pause(), lambda r: r.resume())
    until("renewed", lambda: s.metric("sidflake_renewals_total", result="renewed") +
          s.metric("sidflake_renewals_total", result="again") >= 1)
    assert s.metric("sidflake_coordinator_up") == 1
    assert redis.held() == [0, 1]


@test("SIGKILL and restart while Redis is gone: the same workerId at once")
def redis_gone(case):
    _, s, _ = restart_without_redis(case, lambda r: r.kill(), lambda r: None)
    s.wait_log("coordinator down")


@test("SIGTERM while Redis hangs: the workerIds are not issued from again before it knows")
def leaving(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    redis.pause()
    assert s.stop(timeout=20) == 0
    s.start(wait=False)
    s.wait_listening()
    with s.resp() as r:
        assert str(r.ask("GET", "id:orders")).startswith("LOADING "), "a leaving slot was used"
    redis.resume()
    s.wait_ready(20)
    after = [s.id() for _ in range(20)]
    ids.check_distinct(before + after)
    assert ids.worker_of(after[0]) == 2, "expected a workerId that nobody had"


WINDOW_S = 0.5  # for which IDs are taken before the kill


def batches(sidecar, seconds):
    """IDs without a pause, so that every millisecond of the span is used."""
    end = time.monotonic() + seconds
    out = []
    with sidecar.resp() as r:
        while not out or time.monotonic() < end:
            out += [int(v) for v in r.ask("LPOP", "id:orders", "50")]
    return out


def set_back(case, seconds=None, redis_down=False):
    """Kills, sets the clock back, by default to the time of the first ID, restarts; (IDs before,
    IDs after, sidecar)"""
    clock = case.clock()
    redis = case.pool()
    s = case.sidecar(redis, clock=clock)
    s.wait_held(2)
    began = time.monotonic()
    before = batches(s, WINDOW_S)
    s.kill()
    clock.step(-(seconds or time.monotonic() - began))
    if redis_down:
        redis.kill()
    started = time.monotonic()
    s.start()
    after = [s.id()]
    assert time.monotonic() - started < AT_ONCE_S
    after += batches(s, WINDOW_S)
    ids.check_distinct(before + after)
    return before, after, s


@test("SIGKILL, clock back by 1 h, restart: no ID repeats, the spare takes over")
def back_an_hour(case):
    before, after, _ = set_back(case, 3600, redis_down=False)
    assert {ids.worker_of(v) for v in before} == {0}
    assert {ids.worker_of(v) for v in after} == {1}


@test("SIGKILL, clock back by 1 h, restart while Redis is gone: no ID repeats")
def back_an_hour_alone(case):
    before, after, s = set_back(case, 3600, redis_down=True)
    assert {ids.worker_of(v) for v in after} == {1}
    # Killed once more: the slot that was left must stay unused.
    s.kill()
    s.clock.step(3600)
    s.start()
    more = [s.id() for _ in range(20)]
    ids.check_distinct(before + after + more)


@test("SIGKILL, clock back into the time of IDs that were issued, restart: no ID repeats")
def back_into(case):
    before, after, _ = set_back(case)
    assert ids.time_of(after[0]) < ids.time_of(before[-1]), "the spans were meant to overlap"
    assert {ids.worker_of(v) for v in after} == {1}


@test("SIGKILL, clock back by a little, restart: waits, the same workerId, IDs increase")
def back_a_little(case):
    clock = case.clock()
    s = case.sidecar(case.pool(), clock=clock)
    s.wait_held(2)
    before = batches(s, 0.05)
    s.kill()
    s.start(wait=False)
    clock.set(-(ids.now_ms() - ids.time_of(before[-1]) + 8) / 1000)  # 8 ms before the last ID
    s.wait_ready()
    ids.check_increasing(before + batches(s, 0.1))
    assert s.worker() == 0 and s.metric("sidflake_rotations_total") == 0


def damaged(case, damage):
    """Kills, damages the state, restarts; (redis, sidecar, IDs before, IDs after)"""
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    before = [s.id() for _ in range(20)]
    s.kill()
    damage(os.path.join(s.state_dir, "worker.page"))
    s.start()
    after = [s.id() for _ in range(20)]
    ids.check_distinct(before + after)
    return redis, s, after


@test("a damaged state page is set aside, and another workerId claimed")
def torn(case):
    def flip(path):
        with open(path, "r+b") as f:
            f.seek(300)
            byte = f.read(1)
            f.seek(300)
            f.write(bytes([byte[0] ^ 0x55]))
    redis, s, after = damaged(case, flip)
    assert {ids.worker_of(v) for v in after} == {2}
    s.wait_log("state page set aside")
    assert os.path.exists(os.path.join(s.state_dir, "worker.page.aside"))
    assert redis.record(0)["token"] != "-", "a dead workerId rests"


@test("a copied state page is not gone on with: released without its last time")
def copied(case):
    def copy(path):
        shutil.copyfile(path, path + ".copy")
        os.rename(path + ".copy", path)
    redis, s, after = damaged(case, copy)
    assert {ids.worker_of(v) for v in after} == {2}
    s.wait_log("state page set aside.*copy")
    until("0 and 1 are released", lambda: redis.held() == [2, 3])
    assert redis.record(0)["hwm"] > ids.now_ms(), "its range stays taken"


@test("a state page of another pool of the same Redis is set aside: no ID by what is held there")
def another_pool(case):
    redis = case.pool()
    case.ctl("pool", "init", "--coordinator", redis.url, "--pool", "other", "--workers", "100-109",
             expect=0)
    s = case.sidecar(redis)
    s.wait_held(2)
    assert ids.worker_of(s.id()) == 0
    s.kill()
    s.options["coordinator.pool"] = "other"
    s.write_conf()
    s.start()
    s.wait_log("state page set aside")
    assert {ids.worker_of(s.id()) for _ in range(20)} == {100}
    s.kill()
    redis.kill()
    s.options["coordinator.pool"] = "default"
    s.write_conf()
    said = len(s.log())
    s.start(wait=False)
    s.wait_log("listening protocol=http", after=said)
    with s.resp() as r:
        assert isinstance(r.ask("GET", "id:orders"), wire.Error)


@test("a lost state page costs a workerId, no more")
def lost(case):
    redis, s, after = damaged(case, os.unlink)
    assert {ids.worker_of(v) for v in after} == {2}
    s.wait_held(2)
    assert redis.held() == [0, 1, 2, 3]


@test("an earlier state page put back in place, Redis away: not issued from, by a stop or a kill")
def earlier_state(case):
    for end, others in (("stop", 4), ("kill", 3)):
        redis = case.pool("--workers", "0-3")
        clock = case.clock()
        a = case.sidecar(redis, clock=clock)
        a.wait_held(2)
        page = os.path.join(a.state_dir, "worker.page")
        with open(page, "rb") as f:
            earlier = f.read()
        if end == "kill":  # what it gave up, others may have
            before = [a.id()]
            clock.step(-1)
            before.append(a.id())
            until("0 is given back", lambda: redis.record(0)["token"] == "-")
            a.kill()
            clock.step(1)
        else:
            before = [a.id()]
            assert a.stop() == 0
        with open(page, "r+b") as f:  # the same inode
            f.write(earlier)
        b = case.sidecar(redis, {"workers.active": others, "workers.spare": 0})
        b.wait_held(others)
        assert 0 in redis.held()
        redis.pause()
        before += [b.id() for _ in range(20)]
        a.start(wait=False)
        a.wait_log("state page set aside.*earlier state")
        a.wait_log("coordinator down")
        with a.resp() as r:
            reply = r.ask("GET", "id:orders")
        assert str(reply).startswith("LOADING "), reply
        redis.resume()
        assert b.stop() == 0
        a.wait_ready(20)
        ids.check_distinct(before + [a.id() for _ in range(20)])
        assert a.stop() == 0


# ---- the state page, while it is in use ----------------------------------------------------------

PAGE_LOST = 74


def under_load(s, seen, seconds=5):
    """Draws IDs of both protocols into seen until the sidecar is gone."""
    end = time.monotonic() + seconds
    try:
        with s.resp() as r, s.mc() as m:
            while time.monotonic() < end:
                seen.append(int(r.ask("GET", "id:a")))
                seen.append(m.id())
    except (OSError, wire.Closed):
        return True
    return False


@test("a state page that is cut short ends the process with a reason, and nothing is issued twice")
def cut_short(case):
    for url in (case.pool(), "static:9"):
        for then in ("", "restored"):
            s = case.sidecar(url)
            page, seen = os.path.join(s.state_dir, "worker.page"), []
            with open(page, "rb") as f:
                earlier = f.read()
            loads = threading.Thread(target=under_load, args=(s, seen))
            loads.start()
            until("IDs", lambda: len(seen) > 200)
            os.truncate(page, 0)
            loads.join()
            assert s.wait() == PAGE_LOST, "expected status 74, found %r" % s.popen.returncode
            last = s.log().splitlines()[-1]
            for word in ("error", "state page lost", page, "somebody has cut it short"):
                assert word in last, "expected %r in the last line, found %r" % (word, last)
            if then:
                with open(page, "wb") as f:  # the same file, as it was earlier in this boot …
                    f.write(earlier[:4000])  # … and not whole
            if url == "static:9":  # nobody else knows up to when IDs were issued
                s.start(wait=False)
                s.wait_log(page + " is damaged .*remove it if no later ID than now")
                until("it has ended", lambda: not s.running())
                os.unlink(page)
            s.start()
            under_load(s, seen, 0.5)
            assert len(set(seen)) == len(seen), "%d IDs of %d are not the first" % (
                len(seen) - len(set(seen)), len(seen))
            s.stop()


@test("a state page that is cut short while nobody asks: a renewal notices")
def cut_short_idle(case):
    s = case.sidecar(case.pool())
    seen = [s.id()]
    os.truncate(os.path.join(s.state_dir, "worker.page"), 0)
    assert s.wait(15) == PAGE_LOST
    assert "somebody has cut it short" in s.log()
    s.start()
    assert s.id() not in seen


@test("static:N: a page that is missed costs no workerId, and the log says what it costs")
def missed_alone(case):
    for harm, starts in ((os.unlink, True), (lambda page: os.truncate(page, 100), False)):
        s = case.sidecar("static:9", {"lease.renew_every": "1s"})
        seen = [s.id()]
        harm(os.path.join(s.state_dir, "worker.page"))
        s.wait_log("error state page lost: a restart may be refused, or repeat IDs if the clock", 15)
        seen.append(s.id())
        s.kill()
        s.start(wait=starts)
        if starts:
            assert s.id() not in seen
        else:
            until("it has ended", lambda s=s: not s.running())


@test("a state page that is deleted, replaced or overwritten is missed in the log, and IDs go on")
def missed(case):
    url = case.pool()

    def overwrite(page):
        with open(page, "r+b") as f:
            f.write(b"\0" * 4096)

    def replace(page):
        with open(page + ".new", "wb") as f:
            f.write(b"\0" * 4096)
        os.rename(page + ".new", page)

    for harm, why in ((os.unlink, "cannot find"), (replace, "another file"),
                                     (overwrite, "no state page"),
                                     (lambda page: os.truncate(page, 100), "found 100")):
        s = case.sidecar(url, {"lease.renew_every": "1s"})
        page, seen = os.path.join(s.state_dir, "worker.page"), []
        under_load(s, seen, 0.1)
        harm(page)
        s.wait_log("error state page lost: a restart will cost a workerId.*" + why, 15)
        under_load(s, seen, 0.3)
        assert s.log().count("state page lost") == 1
        ready = s.http("/readyz?verbose")
        assert ready.status == 200 and re.search(r"^\[!\]state_page: .*" + why, ready.text, re.M)
        assert "no state page: a restart costs workerIds" in s.http("/").text
        s.kill()
        s.start()
        under_load(s, seen, 0.3)
        assert len(set(seen)) == len(seen)
        s.stop()
