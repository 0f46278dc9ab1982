"""A Redis that is slow, down, restarted or empty."""

import json
import os
import re
import shlex
import socket
import threading
import time

import harness
import ids
from harness import rest_ms, until
from runner import test

QUICK = ("--horizon", "60s", "--first-horizon", "20s", "--mature-after", "21s", "--max-skew", "1s",
         "--grace", "0s")


def refusals(s):
    """What a client is told by each protocol while there is no ID."""
    with s.resp() as r, s.mc() as m:
        return str(r.ask("GET", "id:orders")), m.ask("get id:orders"), s.ready_status()


@test("Redis stopped while serving: IDs go on, metrics and log say so; back: renewed, no restart")
def hangs(case):
    redis = case.pool()
    s = case.sidecar(redis)
    s.wait_held(2)
    assert s.metric("sidflake_coordinator_up") == 1
    redis.pause()
    until("coordinator_up 0", lambda: s.metric("sidflake_coordinator_up") == 0)
    s.wait_log("error coordinator down held=2 ids_until=20.*why=.*expected within")
    ledger = ids.Ledger()
    with s.resp() as r:
        for _ in range(200):
            ledger.ask(lambda: r.ask("GET", "id:orders"), {0})
    ledger.check(200)
    assert s.ready_status() == 200
    assert s.metric("sidflake_renewals_total", result="failed") >= 1
    hi = s.metric("sidflake_reservation_seconds")
    redis.resume()
    until("coordinator_up 1", lambda: s.metric("sidflake_coordinator_up") == 1)
    s.wait_log("coordinator answers again")
    until("a higher ceiling", lambda: s.metric("sidflake_reservation_seconds") > hi)
    assert redis.held() == [0, 1]


@test("another pool in the place of one that was lost: joined in the moment in which ranges end")
def another_pool(case):
    redis = case.pool("--workers", "0-9", *QUICK)
    s = case.sidecar(redis)
    s.wait_held(2)
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", "--workers", "10-19", expect=0)
    redis.ask("HDEL", "sidflake:{default}:h", "adopt")  # as if a newcomer had a workerId already
    values, had, longest, told = [], time.monotonic(), 0, set()
    end = had + 60
    with s.resp() as r:
        while time.monotonic() < end and not (values and ids.worker_of(values[-1]) >= 10):
            reply = r.ask("GET", "id:orders")
            now = time.monotonic()
            if isinstance(reply, bytes):
                values.append(int(reply))
                longest, had = max(longest, now - had), now
            else:
                told.add(str(reply))
            time.sleep(0.001)
    ids.check_increasing(values)
    assert ids.worker_of(values[0]) < 10 <= ids.worker_of(values[-1]), values[-1]
    assert longest < 1, (longest, told)
    assert not any("or the coordinator is away" in text for text in told), told


@test("Redis down for longer than the horizon: refused above the ceiling, then on, no restart")
def too_long(case):
    clock = case.clock()
    redis = case.pool(clock=clock, args=("--appendonly", "yes"))
    s = case.sidecar(redis, clock=clock)
    s.wait_held(2)
    before = s.id()
    redis.pause()
    clock.step(40)
    reply, line, ready = refusals(s)
    assert reply.startswith("ERR ") and line.startswith("SERVER_ERROR ") and ready == 503, \
        (reply, line, ready)
    redis.resume()
    s.wait_ready()
    assert ids.worker_of(s.id()) == 0 and s.id() > before


@test("Redis killed and restarted with its data: the pool is reopened, holders go on")
def restarted(case):
    redis = case.pool(args=("--appendonly", "yes", "--appendfsync", "always"))
    s = case.sidecar(redis)
    s.wait_held(2)
    before = [s.id() for _ in range(50)]
    redis.kill()
    before += [s.id() for _ in range(50)]
    redis.start()
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    before += [s.id() for _ in range(50)]
    ids.check_increasing(before)
    assert {ids.worker_of(v) for v in before} == {0}
    assert s.metric("sidflake_pool_era") == 2
    s.wait_log("pool reopened")
    status = case.ctl("pool", "status", "--coordinator", redis.url).stdout
    assert "reopened: its server restarted or failed over" in status, status


@test("started with fewer workers while Redis is away: all go on, and what is too many goes back")
def fewer_in_an_outage(case):
    redis = case.pool()
    s = case.sidecar(redis, {"workers.active": 4, "workers.spare": 1})
    s.wait_held(5)
    values = [s.id() for _ in range(20)]
    s.kill()
    redis.pause()
    s.options.update({"workers.active": 1, "workers.spare": 1})
    s.write_conf()
    s.start()
    assert s.held() == 5
    values += [s.id() for _ in range(20)]
    until("it is said", lambda: "\n[!]coordinator: the coordinator is away: " in s.http("/readyz?verbose").text, 20)
    assert s.http("/readyz?verbose").status == 200
    redis.resume()
    s.wait_held(2)
    assert "coordinator" not in s.http("/readyz?verbose").text
    until("given back", lambda: len(redis.held()) == 2, 20)
    ids.check_increasing(values + [s.id() for _ in range(20)])


@test("Redis back after an hour, and nobody has asked: pool status says for how long new sidecars will wait")
def nobody_asked(case):
    clock = case.clock()
    redis = case.pool(clock=clock, args=("--appendonly", "yes", "--appendfsync", "always"))

    case.ctl("pool", "init", "--coordinator", redis.url, "--pool", "ahead", "--after-loss", "--workers", "0-99",
             "--horizon", "1h", "--ahead", "4h", env=clock.env, expect=0)

    def status(pool):
        out = case.ctl("pool", "status", "--json", "--coordinator", redis.url, "--pool", pool, env=clock.env,
                       expect=0)
        return json.loads(out.stdout)
    assert status("default")["warnings"] == []
    for pool, away, wait in (("default", 5, 34), ("default", 3600, 3604), ("ahead", 5 * 3600, 4 * 3600)):
        redis.kill()
        clock.step(away)
        redis.start()
        j = status(pool)
        told = [w for w in j["warnings"] if "whoever asks next reopens it" in w]
        assert len(told) == 1, j
        assert abs(ids.ms_of(j["grants_from"]) - clock.ms() - wait * 1000) < 2000, j
        new = case.sidecar(redis, {"coordinator.pool": pool}, clock=clock, wait=False)
        assert wait - 3 <= rest_ms(new) / 1000 <= wait + 1
        new.stop()
        assert not [w for w in status(pool)["warnings"] if "whoever asks next" in w]
        clock.step(wait)


@test("start with Redis down and no state: retries with backoff, then serves")
def not_there(case):
    port = harness.free_port()
    attempts = []
    with socket.socket() as door:  # stands for a Redis that accepts and hangs up
        door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        door.bind(("127.0.0.1", port))
        door.listen()
        door.settimeout(0.1)
        done = threading.Event()

        def hang_up():
            while not done.is_set():
                try:
                    door.accept()[0].close()
                    attempts.append(time.monotonic())
                except socket.timeout:
                    pass
        t = threading.Thread(target=hang_up)
        t.start()
        s = case.sidecar("redis://127.0.0.1:%d/0" % port, wait=False)
        s.wait_listening()
        reply, line, ready = refusals(s)
        until("five attempts", lambda: len(attempts) >= 5)
        done.set()
        t.join()
    assert reply.startswith("LOADING ") and line.startswith("SERVER_ERROR ") and ready == 503, \
        (reply, line, ready)
    gaps = [b - a for a, b in zip(attempts, attempts[1:])]
    assert gaps[3] > 0.3 and gaps[3] > gaps[0], "the gaps must grow: %r" % gaps
    with s.resp() as r:
        assert b"loading:1" in r.ask("INFO")
    pid = s.pid
    redis = case.redis(port=port)
    s.wait_log("no pool")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    s.wait_ready(15)
    ids.check_increasing([s.id() for _ in range(5)])
    s.assert_running()
    assert s.pid == pid and s.metric("sidflake_coordinator_up") == 1
    with s.resp() as r:
        assert b"loading:0" in r.ask("INFO")


@test("start with a Redis that hangs: serves as soon as it answers")
def hangs_at_start(case):
    redis = case.pool()
    redis.pause()
    s = case.sidecar(redis, wait=False)
    s.wait_listening()
    assert refusals(s)[2] == 503
    redis.resume()
    s.wait_ready()
    assert ids.worker_of(s.id()) == 0


@test("requests that wait for the first workerId are answered when it comes")
def parked(case):
    redis = case.pool()
    redis.pause()
    s = case.sidecar(redis, {"limits.max_wait": "20s"}, wait=False)
    s.wait_listening()
    with s.resp() as r, s.mc() as m:
        r.send(r.encode("GET", "id:orders") + r.encode("PING"))
        m.send(b"get id:orders\r\n")
        assert r.silent() and m.silent()
        redis.resume()
        assert int(r.reply()) > 0 and r.reply() == b"PONG"
        assert len(m.values()) == 1


@test("FLUSHALL of a Redis with a password: the command that the log tells works as it stands")
def flushed_with_password(case):
    redis = case.redis(args=("--requirepass", "s3cret"))
    path = case.path("pass word")
    with open(path, "w") as f:
        f.write("s3cret\n")
    os.chmod(path, 0o600)
    in_url = redis.url.replace("://", "://:s3cret@")
    case.ctl("pool", "init", "--coordinator", in_url, "--fresh", *QUICK, expect=0)
    by_file = case.sidecar(redis, {"coordinator.password_file": path})
    by_url = case.sidecar(in_url)
    for s in (by_file, by_url):
        s.wait_held(2)
    case.run("redis-cli", "-p", str(redis.port), "-a", "s3cret", "FLUSHALL", expect=0)
    told = [shlex.split(s.wait_log(r"no pool .*`sidflakectl (pool init[^`]*)`").group(1))
            for s in (by_url, by_file)]
    assert told[0][told[0].index("--password-file") + 1] == "FILE", told
    assert "s3cret" not in by_file.log() + by_url.log()
    bare = [w for w in told[1] if w not in ("--password-file", path)]
    assert "name a password in --password-file" in case.ctl(*bare, expect=1).stderr
    case.ctl(*told[1], expect=0)
    until("reasserted", lambda: by_url.metric("sidflake_renewals_total", result="reasserted") >= 2)


@test("FLUSHALL under sidecars, pool init --after-loss: they go on, a newcomer waits, no repeats",
      timeout=90)
def flushed(case):
    clock = case.clock()
    redis = case.pool("--fresh", *QUICK, clock=clock)
    stays, sleeps = (case.sidecar(redis, clock=clock) for _ in range(2))
    for s in (stays, sleeps):
        s.wait_held(2)
    values = [s.id() for s in (stays, sleeps) for _ in range(50)]
    theirs = sleeps.worker()
    sleeps.pause()  # its range must be respected without a word from it
    redis.ask("FLUSHALL")
    until("the loss is seen", lambda: stays.metric("sidflake_coordinator_data_loss_total") >= 1)
    stays.wait_log("no pool .*sidflakectl pool init")
    values += [stays.id() for _ in range(50)]
    floor = clock.ms() + 62000
    case.ctl("pool", "init", "--coordinator", redis.url, "--after-loss",
             "--workers", "0-32767", *QUICK, expect=0)
    until("reasserted",
          lambda: stays.metric("sidflake_renewals_total", result="reasserted") >= 2)
    told = case.ctl("pool", "list", "--coordinator", redis.url, "--json", expect=0).stdout
    assert [w["holder"]["pid"] for w in json.loads(told)] == 2 * [stays.popen.pid], told
    told = case.ctl("pool", "status", "--coordinator", redis.url, expect=0).stdout
    assert "2 held, 32766 free" in told and "new sidecars get a workerId from" in told, told
    told = case.ctl("pool", "check", "--coordinator", redis.url, expect=0).stdout
    assert "queued" in told and "harmless" in told and "nothing is wrong" in told, told
    new = case.sidecar(redis, clock=clock, wait=False)
    new.wait_listening()
    hint = new.wait_log("rests for.*").group(0)
    assert "workerIds that this one can never give out" in hint and "auto_init" not in hint, hint
    assert refusals(new)[2] == 503
    values += [stays.id() for _ in range(50)]
    new.kill()
    free = "sidflake:{default}:free"
    redis.ask("LREM", free, "0", str(theirs))
    redis.ask("LPUSH", free, str(theirs))  # the next one that is handed out
    clock.step(63)
    new.start()
    stays.wait_ready()
    late = [new.id() for _ in range(50)]
    assert min(map(ids.time_of, late)) >= floor - 100, "a newcomer must begin above the floor"
    assert ids.worker_of(late[0]) == theirs, "the head of the queue was expected"
    values += late + [stays.id() for _ in range(50)]
    sleeps.resume()
    sleeps.wait_log("workerId lost", timeout=20)
    sleeps.wait_ready(20)
    values += [s.id() for s in (new, sleeps, stays) for _ in range(50)]
    ids.check_distinct(values)
    assert sleeps.worker() != theirs


@test("a lost pool with other parameters, a new range in its place as the runbook says: nobody waits")
def in_its_place(case):
    redis = case.pool("--fresh", "--epoch", "2025-01-01T00:00:00Z", "--workers", "100-199",
                      "--settle", "45s", *QUICK)
    stays = case.sidecar(redis)
    stays.wait_held(2)
    values = [stays.id()]
    redis.ask("FLUSHALL")
    told = shlex.split(stays.wait_log(r"no pool .*`sidflakectl (pool init[^`]*)`").group(1))
    assert told[told.index("--settle") + 1] == "45s", told
    told[told.index("--after-loss")] = "--fresh"
    del told[told.index("--uuid"):told.index("--uuid") + 2]
    told[told.index("--workers") + 1] = "16384-32767"
    del told[told.index("--epoch"):told.index("--epoch") + 2]
    warned = case.ctl(*told, expect=0).stdout
    assert "its epoch is 2026-01-01T00:00:00.000Z, as --epoch was not said" in warned, warned
    redis.ask("FLUSHALL")
    told += ["--epoch", "2025-01-01T00:00:00Z"]
    assert "--epoch" not in case.ctl(*told, expect=0).stdout
    new = case.sidecar(redis)
    values.append(new.id())
    assert ids.worker_of(values[-1]) >= 16384

    def moved():
        with stays.resp() as r:
            reply = r.ask("GET", "id:orders")
        values.extend([int(reply)] if isinstance(reply, bytes) else [])
        return isinstance(reply, bytes) and ids.worker_of(values[-1]) >= 16384
    until("one of the new range, at the latest when its own is over", moved, 30)
    values.append(new.id())
    ids.check_distinct(values)
    assert min(values) == values[0]


@test("a new range after a command with --ahead, as the runbook says: nobody waits, and who runs changes over")
def in_its_place_after_two(case):
    redis = case.pool("--fresh", "--workers", "0-9", "--horizon", "2h")
    stays = case.sidecar(redis)
    stays.wait_held(2)
    values = [stays.id()]

    def lost():
        seen = len(stays.log())
        redis.ask("FLUSHALL")
        command = r"no pool .*`sidflakectl (pool init[^`]*)`"
        stays.wait_log(command, after=seen)
        return shlex.split(re.findall(command, stays.log()[seen:])[-1])
    told = lost()
    told[told.index("--horizon") + 1] = "1m"  # by mistake
    case.ctl(*told, expect=0)
    until("reasserted", lambda: stays.metric("sidflake_renewals_total", result="reasserted") >= 2)
    told = lost()
    ahead = told.index("--ahead")
    assert told[ahead + 1] == "7204s", told
    told[told.index("--horizon") + 1] = told[ahead + 1]
    del told[ahead:ahead + 2]
    told.remove("--after-loss")
    told[told.index("--workers") + 1] = "16384-32767"
    case.ctl(*told, expect=0)
    values.append(case.sidecar(redis).id())
    until("claimed", lambda: len(redis.held()) == 4, 30)
    until("changed over", lambda: ids.worker_of(stays.id()) >= 16384, 5)
    values.append(stays.id())
    assert min(map(ids.worker_of, values[1:])) >= 16384, values
    ids.check_distinct(values)


@test("a lost pool made again with a range that was typed wrongly: sidecars go on, and in the right one then")
def mistyped(case):
    redis = case.pool("--fresh", "--workers", "100-199", *QUICK)
    s = case.sidecar(redis)
    s.wait_held(2)
    values = [s.id()]
    redis.ask("FLUSHALL")
    right = shlex.split(s.wait_log(r"no pool .*`sidflakectl (pool init[^`]*)`").group(1))
    wrong = list(right)
    wrong[wrong.index("--workers") + 1] = "0-99"
    case.ctl(*wrong, expect=0)
    s.wait_log("the pool's workerIds are others than before")
    lost = s.metric("sidflake_renewals_total", result="lost")
    until("refused again", lambda: s.metric("sidflake_renewals_total", result="lost") > lost)
    values.append(s.id())
    assert s.held() == 2 and s.metric("sidflake_coordinator_data_loss_total") == 1
    seen = len(s.log())
    redis.ask("FLUSHALL")
    command = r"no pool .*`sidflakectl (pool init[^`]*)`"
    s.wait_log(command, after=seen)
    told = shlex.split(re.findall(command, s.log()[seen:])[-1])
    assert told == right, (told, right)
    case.ctl(*told, expect=0)
    until("reasserted",
          lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    values.append(s.id())
    ids.check_increasing(values)
    assert {ids.worker_of(v) for v in values} == {ids.worker_of(values[0])}
    assert "workerId lost" not in s.log()


KEPT = ("--appendonly", "yes", "--appendfsync", "always")


def away(case, *init):
    """A pool with a sidecar, after three minutes without its Redis, which then comes back whole."""
    clock = case.clock()
    redis = case.pool("--fresh", *init, clock=clock, args=KEPT)
    s = case.sidecar(redis, clock=clock)
    s.wait_held(2)
    clock.step(125)
    until("an hour ahead", lambda: s.metric("sidflake_reservation_seconds") > 3500)
    redis.kill()
    clock.step(180)
    redis.start()
    until("reasserted", lambda: s.metric("sidflake_renewals_total", result="reasserted") >= 2)
    return clock, redis, s


@test("Redis away for three minutes, and restarted soon after: a word takes back the latter alone, and says so")
def one_word_of_two(case):
    clock, redis, _ = away(case)
    redis.kill()
    redis.start()
    era = lambda: json.loads(case.ctl("pool", "status", "--json", "--coordinator", redis.url,
                                      env=clock.env, expect=0).stdout)["era"]
    until("reopened again", lambda: era() == 3)
    url = ("--coordinator", redis.url)
    told = case.ctl("pool", "status", *url, env=clock.env, expect=0).stdout
    assert "takes back the latest reopening alone: what was before it stays until 20" in told, told
    new = case.sidecar(redis, wait=False, clock=clock)
    why = new.wait_log(r"rests for .* s more, until 20.*: the pool was reopened.*").group(0)
    assert "nothing-lost" not in why, why
    clock.step(101)
    said = case.ctl("pool", "reopen", "--nothing-lost", "--yes", *url, env=clock.env, expect=0).stdout
    assert "what was before it stays, so new sidecars get a workerId from 20" in said, said
    told = case.ctl("pool", "status", *url, env=clock.env, expect=0).stdout
    assert "what was taken back is the latest reopening alone" in told, told


@test("Redis away for three minutes, a pool with --settle 30s: a newcomer waits 34 s, not an hour")
def settles(case):
    clock, redis, _ = away(case, "--settle", "30s")
    new = case.sidecar(redis, wait=False, clock=clock)
    waits = rest_ms(new, ", until 20")
    assert 20_000 < waits <= 35_000, waits
    told = case.ctl("pool", "status", "--coordinator", redis.url, env=clock.env, expect=0).stdout
    assert "reopened: new sidecars get a workerId from 20" in told, told
    assert "nothing-lost" not in told + new.log(), "a word that is taken once nobody waits"
    clock.step(35)
    new.wait_ready()


@test("Redis away for three minutes with all it knew: an operator's word ends the hour's wait")
def word(case):
    clock, redis, _ = away(case)
    new = case.sidecar(redis, wait=False, clock=clock)
    waits = rest_ms(new, ", until 20.*pool reopen --nothing-lost .*`, which is taken from 20")
    assert waits > 3590_000, waits
    say = ("pool", "reopen", "--nothing-lost", "--coordinator", redis.url)
    assert "--yes" in case.ctl(*say, expect=2).stderr
    early = case.ctl(*say, "--yes", env=clock.env, expect=1).stderr
    assert "it is taken from 20" in early, early
    text = case.ctl("pool", "status", "--coordinator", redis.url, env=clock.env, expect=0).stdout
    assert "new sidecars get a workerId from 20" in text and "--nothing-lost" in text, text
    clock.step(101)
    case.ctl(*say, "--yes", env=clock.env, expect=0)
    new.wait_ready()
    again = case.ctl(*say, "--yes", env=clock.env, expect=1).stderr
    assert "found none" in again, again


@test("all data lost, and the pool made with --fresh: a sidecar that goes on shows it, and ends the mistake")
def fresh_by_mistake(case):
    redis = case.pool()
    old = case.sidecar(redis, {"workers.spare": 0})
    old.wait_held(1)
    before = [old.id() for _ in range(50)]
    old.pause()
    redis.ask("FLUSHALL")
    case.ctl("pool", "init", "--coordinator", redis.url, "--fresh", expect=0)
    new = case.sidecar(redis, {"workers.spare": 0})
    new.wait_held(1)  # of the same workerId
    old.resume()
    new.wait_log("workerId lost", timeout=20)
    new.wait_log(r"rests for [\d hmins]+ more")
    ids.check_increasing(before + [old.id() for _ in range(50)])
    status = case.ctl("pool", "status", "--coordinator", redis.url).stdout
    assert "reopened: a sidecar renewed that holds workerIds of a pool which was here before" in status, status
